#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gemms.py - products of known shapes: tests/gpu/gemms.py SAID [GO]

Multiplies matrices, measures the time of each shape between two of CUDA's events, and writes to SAID, as JSON, for each shape what it did:
m, n, k as cuBLAS numbers them, batch, type, how many, FLOP, TFLOP/s. With GO it warms up, prints `warmed`, and waits until that file is there.
"""
import json
import os
import sys
import time

import torch

SHAPES = [
    (8192, 8192, 8192, 1, 'bfloat16', 20),
    (8192, 8192, 4096, 1, 'float16', 40),
    (4096, 4096, 4096, 1, 'float32', 20),
    (4096, 4096, 4096, 1, 'tf32', 20),
    (4096, 2048, 1024, 32, 'bfloat16', 20),
    (8193, 8191, 4095, 1, 'float16', 20),
]


def main():
    runs = []
    for rows, cols, inner, batch, name, times in SHAPES:
        kind = torch.float32 if name == 'tf32' else getattr(torch, name)
        lead = (batch,) if batch > 1 else ()
        a = torch.randn(*lead, rows, inner, device='cuda', dtype=kind)
        b = torch.randn(*lead, inner, cols, device='cuda', dtype=kind)
        out = torch.empty(*lead, rows, cols, device='cuda', dtype=kind)
        runs.append((a, b, out, rows, cols, inner, batch, name, times))
    traced = len(sys.argv) <= 2
    for warm in (True, False):
        if not warm and not traced:
            print('warmed', flush=True)
            while not os.path.exists(sys.argv[2]):
                time.sleep(0.02)
        said = []
        for a, b, out, rows, cols, inner, batch, name, times in runs:
            torch.backends.cuda.matmul.allow_tf32 = name == 'tf32'
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            # the device is kept busy while the calls are made, so that it runs one product after the other
            torch.cuda._sleep(200_000_000)
            begin.record()
            for _ in range(1 if warm else times):
                torch.matmul(a, b, out=out)
            end.record()
            torch.cuda.synchronize()
            flop = 2 * rows * cols * inner * batch * times
            # PyTorch's rows are cuBLAS' columns
            said.append({'m': cols, 'n': rows, 'k': inner, 'batch': batch, 'type': name, 'count': times + traced, 'flop': flop // times * (times + traced),
                         'tflops': flop / begin.elapsed_time(end) / 1e9})
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        json.dump(said, f)


main()
