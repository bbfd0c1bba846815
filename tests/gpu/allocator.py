#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""allocator.py - what PyTorch's allocator of memory does in a training: tests/gpu/allocator.py SAID [GO]

Trains with batches of several sizes, gives memory back to CUDA in between, and asks once for more than there is. Writes to SAID, as JSON, what
torch.cuda.memory_stats() says in the end, and the longest free stretch of torch.cuda.memory_snapshot(). With GO it warms up, prints `warmed`,
waits until that file is there, and adds to SAID what the statistics were then. It ends without freeing anything.
"""
import json
import os
import sys
import time

import torch


def train(model, optimizer, steps):
    for step in range(steps):
        x = torch.randn(64 + 96 * (step % 7), 1024, device='cuda')
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 3 == 0)
        if step % 10 == 9:
            del x, loss
            torch.cuda.empty_cache()


def stats():
    torch.cuda.synchronize()
    return dict(torch.cuda.memory_stats())


def main():
    said = {}
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(12)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    if len(sys.argv) > 2:
        train(model, optimizer, 5)
        print('warmed', flush=True)
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.05)
        torch.cuda.reset_peak_memory_stats()
        said['then'] = stats()
    train(model, optimizer, 40)
    held = [torch.empty(3 << 20, dtype=torch.uint8, device='cuda') for _ in range(20)]
    del held[1::2]
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device='cuda')
    except torch.OutOfMemoryError:
        pass
    said['end'] = stats()
    snapshot = torch.cuda.memory_snapshot()
    said['longest_free'] = max((block['size'] for segment in snapshot for block in segment['blocks'] if block['state'] == 'inactive'), default=0)
    said['segments'] = [(s['address'], s['total_size'], s['allocated_size'], [(b['address'], b['size']) for b in s['blocks'] if b['state'] != 'inactive'])
                        for s in snapshot]
    with open(sys.argv[1], 'w', encoding='ascii') as f:
        json.dump(said, f)
    sys.stdout.flush()
    os._exit(0)


main()
