#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""beside_loop.py - a loop of PyTorch's whose own profiler runs whenever a file appears: beside_loop.py GO STOP

Each time the file GO is there, it is removed, and 40 steps are profiled: "profile BEGIN_NS END_NS KERNELS". Ends when STOP is there.
"""
import os
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

go, stop = sys.argv[1:3]
torch.manual_seed(0)
width = 256
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.LayerNorm(width), torch.nn.GELU())
                              for _ in range(12)]).cuda().eval()
x = torch.randn(64, width, device='cuda')


def step():
    with torch.no_grad():
        model(x)
    torch.cuda.synchronize()


for _ in range(10):
    step()
print('ready %d' % os.getpid(), flush=True)
while not os.path.exists(stop):
    if os.path.exists(go):
        os.unlink(go)
        begin = time.monotonic_ns()
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as prof:
            for _ in range(40):
                step()
        kernels = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        print('profile %d %d %d' % (begin, time.monotonic_ns(), len(kernels)), flush=True)
    step()
print('ended', flush=True)
