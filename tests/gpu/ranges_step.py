#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
ranges_step.py - training steps of PyTorch inside NVTX ranges: ranges_step.py MODE OUT

The parts of each step are in ranges: forward, loss, backward (which autograd's own threads do: they are in no range), optimizer, all
inside "step". MODE plain runs them and writes nothing. MODE profile runs the same steps under torch.profiler and writes to OUT how
many kernels and copies the innermost range around their launch has, as JSON: {"forward": [kernels, copies, ns], ...}. Work that was
launched in no range is "none".
"""
import collections
import contextlib
import json
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile, record_function

STEPS = 20


@contextlib.contextmanager
def part(name):
    with record_function(name), torch.cuda.nvtx.range(name):
        yield


def steps(model, optimizer, x, y, n):
    for _ in range(n):
        with part('step'):
            with part('forward'):
                out = model(x)
            with part('loss'):
                loss = torch.nn.functional.mse_loss(out, y)
            with part('backward'):
                loss.backward()
            with part('optimizer'):
                optimizer.step()
                optimizer.zero_grad()
    torch.cuda.synchronize()


def by_range(path):
    """What a trace of torch.profiler says: the innermost annotation around each launch."""
    with open(path, encoding='utf-8') as f:
        events = json.load(f)['traceEvents']
    names = {'step', 'forward', 'loss', 'backward', 'optimizer'}
    notes = collections.defaultdict(list)
    for e in events:
        if e.get('cat') == 'user_annotation' and e['name'] in names:
            notes[e['tid']].append((e['ts'], e['ts'] + e['dur'], e['name']))
    launched = {}
    for e in events:
        if e.get('cat') in ('cuda_runtime', 'cuda_driver') and 'correlation' in e.get('args', {}):
            inside = [n for n in notes[e['tid']] if n[0] <= e['ts'] <= n[1]]
            launched[e['args']['correlation']] = min(inside, key=lambda n: n[1] - n[0])[2] if inside else 'none'
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for e in events:
        if e.get('cat') in ('kernel', 'gpu_memcpy', 'gpu_memset'):
            s = sums[launched.get(e['args']['correlation'], 'none')]
            s[0] += e['cat'] == 'kernel'
            s[1] += e['cat'] != 'kernel'
            s[2] += round(e['dur'] * 1000)
    return sums


def main():
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(1024, 1024), torch.nn.GELU())]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = torch.randn(256, 1024, device='cuda'), torch.randn(256, 1024, device='cuda')
    if sys.argv[1] == 'profile':
        steps(model, optimizer, x, y, 3)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            steps(model, optimizer, x, y, STEPS)
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            p.export_chrome_trace(f.name)
            sums = by_range(f.name)
        with open(sys.argv[2], 'w', encoding='utf-8') as f:
            json.dump(sums, f)
        return
    torch.cuda.synchronize()
    steps(model, optimizer, x, y, 3)
    print('ready', flush=True)
    sys.stdin.readline()
    steps(model, optimizer, x, y, STEPS)
    print('done', flush=True)
    sys.stdin.readline()


if __name__ == '__main__':
    main()
