# SPDX-License-Identifier: BSD-2-Clause
"""A small Llama that decodes, eagerly, as a rank of a node does.

    node_decode.py [--tokens N] [--profile] [--go FILE] [--steps-file FILE]

Decodes N (200) tokens and prints `tokens N kernels K ms T`: how many kernels torch.profiler saw meanwhile (--profile, else 0), and the
median of a token's time. Before, it has decoded some tokens and, with --go, waited until the file exists. All processes with the same
arguments launch the same kernels.
"""
import argparse
import os
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

PROMPT, CACHE = 128, 256

parser = argparse.ArgumentParser()
parser.add_argument("--tokens", type=int, default=200)
parser.add_argument("--profile", action="store_true")
parser.add_argument("--go")
opts = parser.parse_args()

torch.manual_seed(0)
config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4,
                     vocab_size=16000, max_position_embeddings=2048)
model = LlamaForCausalLM(config).cuda().bfloat16().eval()
cache = StaticCache(config=config, max_cache_len=CACHE)
tokens = torch.zeros((8, 1), dtype=torch.long, device="cuda")
done = 0


def token():
    """Decodes one token, and returns the milliseconds. The cache is emptied when it is full."""
    global tokens, done
    if done and done % (CACHE - 1) == 0:
        cache.reset()
    began = time.perf_counter()
    position = torch.tensor([done % (CACHE - 1)], device="cuda")
    with torch.no_grad():
        out = model(tokens, past_key_values=cache, cache_position=position, use_cache=True)
    tokens = out.logits[:, -1:].argmax(-1)
    tokens[0].item()
    done += 1
    return (time.perf_counter() - began) * 1e3


for _ in range(30):
    token()
torch.cuda.synchronize()
print(f"ready {os.getpid()}", flush=True)
while opts.go and not os.path.exists(opts.go):
    time.sleep(0.01)


def decode():
    """Decodes the tokens between two ranges by which they are found in a recording; returns the median of the milliseconds."""
    torch.cuda.nvtx.range_push("decode")
    times = [token() for _ in range(opts.tokens)]
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
    return statistics.median(times)


kernels = 0
if opts.profile:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        median = decode()
    kernels = sum(1 for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset"))
                  and e.name != "decode")
else:
    median = decode()
print(f"tokens {opts.tokens} kernels {kernels} ms {median:.2f}", flush=True)
