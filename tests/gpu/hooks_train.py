# SPDX-License-Identifier: BSD-2-Clause
"""Trains a small transformer and prints the loss of each step, bit by bit; with --code also whether the code of libcudart and
libcuda is, at the end, what their files have.

    hooks_train.py [--steps N] [--go-file FILE] [--until FILE] [--code]

--until: goes on until FILE is there, and prints the first N losses alone."""
import os
import struct
import sys

import torch

from wait_go import wait_go


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def changed_code():
    """Bytes of the two libraries' executable mappings that are not those of the file."""
    changed = 0
    for line in open("/proc/self/maps"):
        f = line.split()
        if len(f) < 6 or "x" not in f[1] or not any(n in f[5] for n in ("libcudart", "libcuda.so")):
            continue
        lo, hi = (int(x, 16) for x in f[0].split("-"))
        with open("/proc/self/mem", "rb") as mem, open(f[5], "rb") as file:
            mem.seek(lo)
            file.seek(int(f[2], 16))
            a, b = mem.read(hi - lo), file.read(hi - lo)
        changed += sum(x != y for x, y in zip(a, b)) if a != b else 0
    return changed


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0) for _ in range(4)]).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
x = torch.randn(16, 64, 256, device="cuda")
steps, until = int(option("--steps", "200")), option("--until", None)


def step():
    opt.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    return loss.item()


wait_go()
losses = []
while len(losses) < steps or (until and not os.path.exists(until)):
    losses.append(step())
for loss in losses[:steps]:
    print("loss", struct.pack(">d", loss).hex())
print("steps", len(losses), file=sys.stderr)
if "--code" in sys.argv:
    print("changed bytes of code", changed_code())
