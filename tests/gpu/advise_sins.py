# SPDX-License-Identifier: BSD-2-Clause
"""advise_sins.py good|bad STEPS: a small training for tests/gpu/advise.sh. `bad` reads the loss in each step, copies pageable memory with
non_blocking=True, and has an optimiser of tiny kernels; `good` pins, reads at the end, and replays a graph."""
import sys

import torch

bad, steps = sys.argv[1] == "bad", int(sys.argv[2])
size = 64 if bad else 2048
model = torch.nn.Sequential(*[torch.nn.Linear(size, size) for _ in range(16)]).cuda()
opt = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=not bad)
host = torch.randn(1024 if bad else 4096, size)
if not bad:
    host = host.pin_memory()
x = torch.empty_like(host, device="cuda")


def step():
    opt.zero_grad(set_to_none=bad)
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    return loss


def warm_up():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)


x.copy_(host)
warm_up()
if not bad:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = step()
torch.cuda.synchronize()
torch.cuda.profiler.start()
total = 0.0
for _ in range(steps):
    if bad:
        x.copy_(torch.randn(1024, size), non_blocking=True)
        total += step().item()
    else:
        x.copy_(host, non_blocking=True)
        graph.replay()
if not bad:
    total = kept.item()
torch.cuda.synchronize()
torch.cuda.profiler.stop()
print("loss", total)
