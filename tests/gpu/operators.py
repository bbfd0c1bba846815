# SPDX-License-Identifier: BSD-2-Clause
"""Training steps of a small transformer in eager mode.

    operators.py --want FILE [--steps N]        torch.profiler counts what N (5) steps do: operators, and the kernels under each of
                                                them (the innermost operator, or node of autograd's graph, at the launch)
    operators.py --go-file FILE [--steps N]     as many steps run inside record_function("measured"), for the tracer

These are two processes, since torch.profiler keeps CUPTI. Its events lack an operator that is the only one inside another of its name
(EventList._remove_dup_nodes).
"""
import argparse
import collections
import json
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from wait_go import wait_go

parser = argparse.ArgumentParser()
parser.add_argument("--go-file")
parser.add_argument("--want")
parser.add_argument("--trace", help="with --want: torch.profiler's trace with shapes too, in Kineto's format")
parser.add_argument("--compiled", action="store_true", help="the model by torch.compile")
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--time", type=int, default=0, help="print the median of so many steps, and do nothing else")
opts = parser.parse_args()
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(16, 64, 256, device="cuda")
if opts.compiled:
    model = torch.compile(model)


def step():
    optimizer.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    optimizer.step()


def steps(name):
    with record_function(name):
        for _ in range(opts.steps):
            step()
        torch.cuda.synchronize()


for _ in range(5):
    step()
torch.cuda.synchronize()
if opts.time:
    wait_go()
    took = []
    for _ in range(opts.time):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begin)
    print("median_us", sorted(took)[len(took) // 2] * 1e6, flush=True)
    raise SystemExit

if not opts.want:
    wait_go()
    steps("measured")
    raise SystemExit

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=bool(opts.trace)) as prof:
    steps("measured" if opts.trace else "profiled")
if opts.trace:
    prof.export_chrome_trace(opts.trace)
operators, kernels = collections.Counter(), collections.Counter()
for e in prof.events():
    if e.device_type != torch.autograd.DeviceType.CPU or e.name.startswith(("cuda", "cu")):
        continue
    if e.name.startswith("autograd::engine") or e.name in ("detach", "detach_", "Activity Buffer Request"):
        continue  # the engine's and the profiler's own work: no operator
    operators[e.name] += 1
    for k in e.kernels:
        if not k.name.startswith(("Memcpy", "Memset")):
            kernels[e.name] += 1
operators["measured"] = operators.pop("profiled", operators["measured"])
with open(opts.want, "w", encoding="utf-8") as out:
    json.dump({"operators": operators, "kernels": kernels}, out)
