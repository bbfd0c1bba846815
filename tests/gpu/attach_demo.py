# SPDX-License-Identifier: BSD-2-Clause
"""A training loop to attach to by hand: prints its pid and runs for 20 seconds."""
import os
import time

import torch

model = torch.nn.Linear(1024, 1024).cuda()
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
print("pid", os.getpid(), flush=True)
end = time.time() + 20
while time.time() < end:
    x = torch.randn(64, 1024).pin_memory().cuda(non_blocking=True)
    opt.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    loss.item()
    time.sleep(0.01)
