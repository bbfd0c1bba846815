# SPDX-License-Identifier: BSD-2-Clause
"""A training step, matrix products, convolutions, sorts and attention in PyTorch, between cudaProfilerStart and
cudaProfilerStop, with torch.profiler's own list of kernels: {name: count} is written to the file given by --kernels."""
import argparse
import collections
import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

from wait_go import wait_go

parser = argparse.ArgumentParser()
parser.add_argument("--kernels", required=True)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--go-file")
args = parser.parse_args()

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0).cuda()
opt = torch.optim.SGD(layer.parameters(), lr=1e-3)
x = torch.randn(8, 64, 256, device="cuda")
a = torch.randn(512, 512, device="cuda")
h = a.bfloat16()
conv = torch.nn.Conv2d(3, 64, 7).cuda()
image = torch.randn(8, 3, 64, 64, device="cuda")


def step():
    opt.zero_grad(set_to_none=True)
    layer(x).square().mean().backward()
    opt.step()
    torch.softmax(a @ a, 1)
    (h @ h).relu_()
    conv(image).sum()
    torch.sort(a, 1)
    torch.cumsum(a, 1)
    a.index_select(0, torch.arange(64, device="cuda"))


for _ in range(3):
    step()
torch.cuda.synchronize()
if args.go_file:
    wait_go()
with profile(activities=[ProfilerActivity.CUDA]) as prof:
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for _ in range(args.steps):
        step()
    torch.cuda.cudart().cudaProfilerStop()
    torch.cuda.synchronize()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    prof.export_chrome_trace(path)
    with open(path) as f:
        events = json.load(f)["traceEvents"]
counts = collections.Counter(e["name"] for e in events if e.get("cat") == "kernel")
with open(args.kernels, "w") as f:
    json.dump(counts, f)
print("launches", sum(counts.values()))
