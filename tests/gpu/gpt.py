# SPDX-License-Identifier: BSD-2-Clause
"""Training steps of a GPT in bfloat16, whose FLOP are known by a formula: gpt.py SAID [--steps N]

All products are those of matrices, attention too. Writes to SAID, as JSON: the formula's FLOP of a step, the time of each step of N (10) by
the host's clock, each of which ends when the GPU has done it, and what the device can do at most. The steps are ranges ProfilerStep#N.
"""
import argparse
import json
import subprocess
import time

import torch
import torch.nn.functional as F
from torch.profiler import record_function

parser = argparse.ArgumentParser()
parser.add_argument("said")
parser.add_argument("--steps", type=int, default=10)
opts = parser.parse_args()
LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 6, 2048, 16, 1024, 8, 32768
torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.proj = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-1, -2) / 11.3, -1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, t):
        x = self.words(t)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Gpt().cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
# two FLOP a weight and token forward, four backward; and the two products of attention, which have no weights
flop = 6 * BATCH * LENGTH * (LAYERS * 12 * WIDTH * WIDTH + WORDS * WIDTH) + 12 * LAYERS * BATCH * LENGTH * LENGTH * WIDTH


def step():
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(tokens).view(-1, WORDS), tokens.view(-1)).backward()
    optimizer.step()
    torch.cuda.synchronize()


for _ in range(3):
    step()
seconds = []
for n in range(opts.steps):
    begin = time.perf_counter()
    with record_function(f"ProfilerStep#{n + 1}"):
        step()
    seconds.append(time.perf_counter() - begin)
clock = subprocess.run(["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True)
# compute capability 9.0: 4096 FLOP of bfloat16 in a clock
peak = torch.cuda.get_device_properties(0).multi_processor_count * float(clock.stdout.split()[0]) * 1e6 * 4096
with open(opts.said, "w", encoding="utf-8") as out:
    json.dump({"flop": flop, "seconds": seconds, "peak": peak, "capability": torch.cuda.get_device_capability()}, out)
