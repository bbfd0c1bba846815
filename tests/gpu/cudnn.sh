#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cudnn.sh - the layer `cudnn` on a real GPU: tests/gpu/cudnn.sh [CUDATRACE]
#
# PyTorch convolves by cuDNN, forward and backward, tensors of known sizes (tests/gpu/cudnn.py). Each call of cuDNN has the sizes and the FLOP of one of them, there are as
# many as the program made, and the kernels are as fast as the program measured, within 10 percent: its own times have the gaps between kernels in them. SOURCE=hooks does it
# by hooks. Needs root, a GPU and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
source=()
[ "${SOURCE:-}" != hooks ] || source=(--source=hooks)

"$ct" "${source[@]}" --gpu --layers cudnn -e gemm --format json -o "$tmp/json" -- "$python" tests/gpu/cudnn.py "$tmp/said" > "$tmp/out" 2> "$tmp/err"
tail -n 2 "$tmp/err" | sed 's/^/# /'
"$ct" stat "${source[@]}" --gpu --by class --layers cudnn,cublas -o "$tmp/classes" -- "$python" tests/gpu/cudnn.py "$tmp/again" > "$tmp/out" 2> "$tmp/err"
sed 's/^/# /' "$tmp/classes"
python3 - "$tmp/json" "$tmp/said" << 'EOF'
import collections, json, sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
gemms = {r['range_id']: r for r in rows if r['type'] == 'gemm' and r['name'].startswith('cudnn')}
failed = 0


def check(name, good, detail):
    global failed
    failed |= not good
    print(f'ok {name} ({detail})' if good else f'not ok {name}: {detail}')


calls, rates = collections.Counter(), collections.defaultdict(list)
for r in gemms.values():
    calls[r.get('operation', '?')] += 1
for k in rows:
    if k['type'] == 'kernel' and k.get('scope') in gemms and 'tflops' in k:
        rates[gemms[k['scope']]['operation']].append((k['flop'], k['duration_ns']))
print('# without a shape:', calls['?'], 'no product:', calls['no product'])
for s in json.load(open(sys.argv[2], encoding='utf-8')):
    sizes = ', '.join(f'{n}{s[n]}' for n in 'xwy')
    flop = {r['flop'] for r in gemms.values() if r.get('operation', '').endswith(sizes)}
    check(f'flop {sizes}', flop == {s['flop']}, f'{flop}, computed {s["flop"]}')
    check(f'forward {sizes}', calls[f'forward, {sizes}'] == s['forward'], f'{calls["forward, " + sizes]} of {s["forward"]} calls')
    for way in 'data gradient', 'filter gradient':
        # PyTorch leaves some of them to kernels of its own
        check(f'{way} {sizes}', calls[f'{way}, {sizes}'] in (0, s['backward']), f'{calls[way + ", " + sizes]} of {s["backward"]} calls')
    mine = rates.get(f'forward, {sizes}', [])
    rate = sum(f for f, _ in mine) / max(1, sum(ns for _, ns in mine)) / 1e3
    check(f'rate {sizes}', mine and 0.9 < rate / s['tflops'], f'{rate:.1f} TFLOP/s, measured around the calls {s["tflops"]:.1f}')
sys.exit(failed)
EOF
