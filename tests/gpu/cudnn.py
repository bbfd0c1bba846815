#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cudnn.py - convolutions of known shapes: tests/gpu/cudnn.py SAID

Convolves forward, then backward to the input and to the filter, and writes to SAID, as JSON, for each direction and shape how many FLOP there
were, and how many a second by CUDA's events around the forward pass.
"""
import json
import sys

import torch

# batch, channels, height and width, filters, size of a filter, stride, groups, type
SHAPES = [
    (32, 64, 56, 128, 3, 1, 1, 'float16'),
    (32, 64, 56, 128, 3, 2, 1, 'bfloat16'),
    (32, 256, 28, 256, 1, 1, 1, 'float16'),
    (16, 64, 56, 64, 3, 1, 4, 'float16'),
    (16, 64, 32, 64, 5, 1, 1, 'float32'),
]
TIMES = 20


def main():
    torch.backends.cudnn.benchmark = False
    said = []
    for n, c, size, k, filters, stride, groups, kind in SHAPES:
        x = torch.randn(n, c, size, size, device='cuda', dtype=getattr(torch, kind), requires_grad=True).to(memory_format=torch.channels_last)
        w = torch.randn(k, c // groups, filters, filters, device='cuda', dtype=getattr(torch, kind), requires_grad=True)
        w = w.to(memory_format=torch.channels_last)

        def convolve():
            return torch.nn.functional.conv2d(x, w, stride=stride, padding=filters // 2, groups=groups)

        y = convolve()
        grad = torch.ones_like(y)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(TIMES):
            y = convolve()
        end.record()
        torch.cuda.synchronize()
        ms = begin.elapsed_time(end)
        for _ in range(TIMES):
            torch.autograd.grad(convolve(), (x, w), grad)
        torch.cuda.synchronize()
        flop = 2 * y.numel() * w.numel() // k
        # one before the time was taken, and one for each gradient
        said.append({'x': list(x.shape), 'w': list(w.shape), 'y': list(y.shape), 'flop': flop, 'forward': 2 * TIMES + 1, 'backward': TIMES,
                     'tflops': flop * TIMES / ms / 1e9})
    with open(sys.argv[1], 'w', encoding='utf-8') as out:
        json.dump(said, out)


main()
