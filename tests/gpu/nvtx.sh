#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# nvtx.sh - ranges of PyTorch (torch.cuda.nvtx: NVTX 3, header-only inside libtorch), started and attached: tests/gpu/nvtx.sh [CUDATRACE]
#
# Every range must be there once, with its parent, and around the calls that it made. Needs what run.sh needs, and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
here=tests/gpu

if ! python3 -c 'import torch' 2> /dev/null; then
	echo "skip nvtx: python3 has no torch"
	exit 0
fi

# judge NAME: the ranges of 20 steps, each once
judge() {
	python3 - "$tmp/rows" > "$tmp/said" 2>&1 << 'EOF'
import collections, json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
ranges = [r for r in rows if r['type'] in ('range', 'mark') and r.get('layer') == 'nvtx']
names = collections.Counter(r['name'] for r in ranges)
by_id = {(r['pid'], r['range_id']): r for r in ranges}
bad = []
for i in range(20):
    if names[f'step {i}'] != 1:
        bad.append(f'step {i}: {names[f"step {i}"]} times')
steps = {(r['pid'], r['range_id']) for r in ranges if r['name'] in {f'step {i}' for i in range(20)}}
for what in ('forward', 'backward', 'done'):
    n = sum(r['name'] == what and (r['pid'], r.get('parent_id')) in steps for r in ranges)
    if n != 20:
        bad.append(f'{what}: {n} inside the steps, not 20')
if names['started'] != 1:
    bad.append(f'started: {names["started"]} times')
launches = [r for r in rows if r['type'] == 'call' and 'Launch' in r['name']]
backward = [r for r in ranges if r['name'] == 'backward' and (r['pid'], r.get('parent_id')) in steps]
empty = sum(not any(b['start_ns'] <= c['start_ns'] <= b['start_ns'] + b['duration_ns'] and c['tid'] == b['tid'] for c in launches) for b in backward)
if empty:
    bad.append(f'{empty} ranges "backward" have no launch in them')
end = rows[-1]
for word in ('lost', 'scopes_dropped'):
    number = end.get(word)
    if any(number.values()) if isinstance(number, dict) else number:
        bad.append(f'{word}: {end[word]}')
print('; '.join(bad) if bad else f'{len(ranges)} ranges and marks')
sys.exit(bool(bad))
EOF
	local status=$?
	if [ $status = 0 ]; then ok "$1"; else not_ok "$1" "$(tail -n 1 "$tmp/said"); $(tail -n 1 "$tmp/err")"; fi
	sed "s/^/# $1: /" "$tmp/said"
}

"$ct" --layers nvtx --format json -o "$tmp/rows" -- python3 $here/nvtx_torch.py > "$tmp/out" 2> "$tmp/err"
judge started

python3 $here/nvtx_torch.py --go-file "$tmp/go" > "$tmp/out" 2> "$tmp/pyerr" &
pid=$!
for ((i = 0; i < 1200; i++)); do
	grep -q warmed "$tmp/out" && break
	kill -0 $pid 2> /dev/null || break
	sleep 0.1
done
"$ct" -v -p $pid --layers nvtx --format json -o "$tmp/rows" 2> "$tmp/err" &
for ((i = 0; i < 600; i++)); do
	grep -q 'cudatrace: ready' "$tmp/err" && break
	sleep 0.05
done
touch "$tmp/go"
wait $pid
program=$?
wait
judge attached
if [ $program = 0 ]; then ok attached-program; else not_ok attached-program "it ended with status $program: $(tail -n 1 "$tmp/pyerr")"; fi
sed -n 's/^cudatrace: process [0-9]*: \(NVTX 3 in .*\|the object came in .*\)/# \1/p' "$tmp/err"

# the device's records beside it: none of the ranges is there twice
"$ct" --layers nvtx --gpu=kernel,nvtx --format json -o "$tmp/rows" -- python3 $here/nvtx_torch.py > "$tmp/out" 2> "$tmp/err"
judge with-gpu
n=$(grep -c '"type":"marker"' "$tmp/rows")
if [ "$n" = 0 ]; then ok with-gpu-once; else not_ok with-gpu-once "$n ranges by CUPTI too"; fi

all_done
