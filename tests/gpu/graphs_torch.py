# SPDX-License-Identifier: BSD-2-Clause
"""graphs_torch.py - a model of PyTorch that is captured in a CUDA graph and replayed: graphs_torch.py STEPS [wait]

The capture is in the NVTX range "capture", each replay in the range "step". With "wait" it says "ready" after the
capture, and waits for a line on stdin before it replays.
"""
import sys

import torch

steps = int(sys.argv[1])
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 64)).cuda()
x = torch.randn(128, 512, device='cuda')
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.nvtx.range_push('capture')
    with torch.cuda.graph(graph):
        y = model(x)
        z = torch.softmax(y, -1).sum()
    torch.cuda.nvtx.range_pop()
if len(sys.argv) > 2:
    print('ready', flush=True)
    sys.stdin.readline()
for _ in range(steps):
    torch.cuda.nvtx.range_push('step')
    graph.replay()
    torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
print('sum', float(z), flush=True)
