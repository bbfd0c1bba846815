# SPDX-License-Identifier: BSD-2-Clause
"""Operators with all sorts of arguments on the CPU: pytorch_shapes.py FILE. torch.profiler writes their shapes and types to FILE, in its
own format; then the same operators run inside record_function("measured")."""
import sys

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(0)
torch.set_num_threads(1)
a, b, bias = torch.randn(4, 3), torch.randn(3, 5), torch.randn(5)
image, kernel = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
deep = torch.randn(2, 1, 2, 1, 2, 3)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x, y = torch.randn(8, 16), torch.randint(0, 10, (8,))


def work():
    c = torch.addmm(bias, a, b)
    c.add_(1).mul_(c)
    torch.cat([c, c]).half().to(torch.bfloat16)
    torch.equal(c, c)
    torch.max(a, 1)
    torch.max(a, 1, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
    c.sum().item()
    c.clone().resize_(2, 2)
    torch.mul(a, 2, out=torch.empty(4, 3))
    torch.where(a > 0, a, torch.zeros(()))
    F.layer_norm(c, (5,), bias, None)
    F.conv2d(image, kernel, padding=1)
    F.scaled_dot_product_attention(image, image, image)
    F.embedding(y, torch.randn(10, 4))
    torch.bmm(torch.randn(2, 3, 4), torch.randn(2, 4, 5))
    (a * (1 + 2j)).abs()
    deep + deep
    torch.empty(0, 3) + 1
    (y > 3).any()
    torch.split(a, 2)
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


work()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("measured"):
        work()
prof.export_chrome_trace(sys.argv[1])
with record_function("measured"):
    work()
