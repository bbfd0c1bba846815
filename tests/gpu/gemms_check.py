#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gemms_check.py - compares `stat --by gemm --json` with what gemms.py says: tests/gpu/gemms_check.py SUMS SAID

Each shape has its count and FLOP exactly, and its TFLOP/s within 2 percent. float32 and TF32 have one row, since cuBLAS is called with the
same arguments: only their counts and FLOP are compared. No share of the peak is above 1. No kernel is in an unknown scope.
"""
import json
import sys

with open(sys.argv[1], encoding='utf-8') as f:
    sums = json.load(f)
with open(sys.argv[2], encoding='utf-8') as f:
    said = json.load(f)
failed = False
want = {}
for s in said:
    kind = 'float32' if s['type'] == 'tf32' else s['type']
    w = want.setdefault((s['m'], s['n'], s['k'], s['batch'], kind), {'count': 0, 'flop': 0, 'tflops': []})
    w['count'] += s['count']
    w['flop'] += s['flop']
    w['tflops'].append(s['tflops'])
rows = {}
for r in sums['rows']:
    if 'm' in r:
        rows.setdefault((r['m'], r['n'], r['k'], r['batch'], r.get('a_type')), []).append(r)
for key, w in want.items():
    found = rows.get(key, [])
    count, flop = sum(r['count'] for r in found), sum(r.get('flop', 0) for r in found)
    ns = sum(r.get('flop_ns', 0) for r in found)
    tflops = flop / ns / 1e3 if ns else 0
    share = [r['peak_share'] for r in found if 'peak_share' in r]
    right = count == w['count'] and flop == w['flop'] and all(s <= 1 for s in share)
    if len(w['tflops']) == 1:
        right = right and abs(tflops / w['tflops'][0] - 1) <= 0.02
    failed |= not right
    print('right' if right else 'wrong', key, 'count', count, 'of', w['count'], 'FLOP', flop, 'of', w['flop'], f'TFLOP/s {tflops:.1f}', 'program',
          [round(t, 1) for t in w['tflops']], 'of the peak', share or 'unknown', [r['name'] for r in found])
for r in sums['rows']:
    if 'name' in r and ('m' not in r or (r['m'], r['n'], r['k'], r['batch'], r.get('a_type')) not in want):
        print('other', r['name'], r['count'])
for r in sums['rows']:
    if r.get('unknown'):
        print('wrong', r['kernels'], 'kernels in an unknown scope')
        failed = True
sys.exit(failed or not want)
