# SPDX-License-Identifier: BSD-2-Clause
"""Steps with ranges by torch.cuda.nvtx, whose NVTX is header-only inside libtorch. Prints how many ranges the traced steps have."""
import torch

from wait_go import wait_go

STEPS = 20
x = torch.randn(512, 512, device="cuda")
nvtx = torch.cuda.nvtx


def step(i):
    with nvtx.range(f"step {i}"):
        with nvtx.range("forward"):
            y = x @ x
        with nvtx.range("backward"):
            y.sum().item()
        nvtx.mark("done")


for i in range(3):
    step(-1)
torch.cuda.synchronize()
wait_go()
for i in range(STEPS):
    step(i)
# started in one place, ended in another
started = nvtx.range_start("started")
torch.cuda.synchronize()
nvtx.range_end(started)
