"""Training steps of a small GPT, with the habits of real programs: a value is read back in each step, batches are made on the host."""
import sys
import time

import torch
import torch.nn.functional as F

WORDS, WIDTH, HEADS, LENGTH, BATCH = 8192, 512, 8, 256, 8


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.proj = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(layers))
        self.head = torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch():
    return torch.randint(0, WORDS, (BATCH, LENGTH))


def train(model, optimizer, steps):
    for n in range(steps):
        with torch.cuda.nvtx.range(f"step {n}"):
            tokens = batch().cuda()
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(tokens).view(-1, WORDS), tokens.view(-1))
            loss.backward()
            optimizer.step()
            print(f"step {n}: {loss.item():.3f}", flush=True)


torch.manual_seed(0)
model = Gpt(int(sys.argv[1])).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
train(model, optimizer, 3)
torch.cuda.profiler.start()
train(model, optimizer, int(sys.argv[2]))
torch.cuda.profiler.stop()
time.sleep(0.2)
