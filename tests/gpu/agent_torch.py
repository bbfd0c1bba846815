# SPDX-License-Identifier: BSD-2-Clause
"""agent_torch.py STEPS [profile] - training steps of a small transformer. With `profile` torch.profiler counts what the device
does in them and prints "device N"; without it cudatrace is to count. Prints "step X ms", the median."""
import statistics
import sys
import time

import torch

steps, profile = int(sys.argv[1]), "profile" in sys.argv
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0) for _ in range(2)]).cuda()
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(8, 64, 256, device="cuda")


def step():
    opt.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    opt.step()


for _ in range(5):
    step()
torch.cuda.synchronize()
times = []


def run():
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)


if profile:
    from torch.profiler import ProfilerActivity
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as prof:
        run()
    print("device", sum(1 for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA))
else:
    run()
print("step %.3f ms" % (statistics.median(times) * 1e3))
