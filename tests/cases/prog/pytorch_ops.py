# SPDX-License-Identifier: BSD-2-Clause
"""Training steps on the CPU: pytorch_ops.py FILE. The operators of some steps are counted by torch.profiler and written to FILE; then as
many steps run inside record_function("measured")."""
import collections
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

STEPS = 5
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))


def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    try:
        torch.empty(2, 3) @ torch.empty(2, 3)
    except RuntimeError:
        pass


def steps():
    with record_function("measured"):
        for _ in range(STEPS):
            step()


steps_before = 3
for _ in range(steps_before):
    step()
with profile(activities=[ProfilerActivity.CPU]) as prof:
    with record_function("profiled"):
        for _ in range(STEPS):
            step()
counts = collections.Counter({e.key: e.count for e in prof.key_averages()})
counts["measured"] = counts.pop("profiled")
with open(sys.argv[1], "w", encoding="utf-8") as out:
    json.dump(counts, out)
steps()
