# SPDX-License-Identifier: BSD-2-Clause
"""Training steps of a small transformer, for tests/gpu/steps.sh.

    steps.py --want FILE                              the kernels of one step, as torch.profiler counts them
    steps.py --go-file FILE --how HOW [--steps N]     N (20) steps after five that warm up; HOW: named (record_function ProfilerStep#K),
                                                      optimizer (AdamW's own range), plain (neither: the optimizer is written by hand),
                                                      nvtx (ranges train_step)
Each step ends when the GPU has done it. Step 12 sleeps for 50 ms on the host.
"""
import argparse
import contextlib
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from wait_go import wait_go

parser = argparse.ArgumentParser()
parser.add_argument("--go-file")
parser.add_argument("--want")
parser.add_argument("--how", default="optimizer")
parser.add_argument("--steps", type=int, default=20)
opts = parser.parse_args()
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(16, 64, 256, device="cuda")


@contextlib.contextmanager
def nvtx(name):
    torch.cuda.nvtx.range_push(name)
    yield
    torch.cuda.nvtx.range_pop()


def step(number=0):
    model.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    if opts.how == "plain":
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(p.grad, alpha=1e-3)
    else:
        optimizer.step()
    if number == 12:
        time.sleep(0.05)
    torch.cuda.synchronize()


def around(number):
    if opts.how == "named":
        return record_function(f"ProfilerStep#{number}")
    return nvtx("train_step") if opts.how == "nvtx" else contextlib.nullcontext()


for _ in range(5):
    step()
if opts.want:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        step()
    kernels = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset"))
               and not e.is_user_annotation]
    with open(opts.want, "w", encoding="utf-8") as out:
        print(len(kernels), file=out)
    raise SystemExit
wait_go()
for k in range(1, opts.steps + 1):
    with around(k):
        step(k)
