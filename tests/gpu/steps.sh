#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# steps.sh - the steps of PyTorch's training on a real GPU: tests/gpu/steps.sh [CUDATRACE]
#
# `stat --by step`, attached to a program that runs already, finds as many steps as the program makes, by the sort of sign that it
# gives; the four parts of each add up to its length; each has the kernels that torch.profiler counts in a step; the slowest is the one
# in which the program slept. The use (MFU) of a GPT's training is the formula's within 3 percent. ONLY=mfu does this alone. Needs root, a GPU and PyTorch. Prints `ok NAME`, `not ok NAME: why`, the tables after `# `, and the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
if ! nvidia-smi -L > /dev/null 2>&1 || ! "$python" -c 'import torch' 2> /dev/null; then
	skip steps "a GPU and PyTorch are needed"
	leave
fi

# recorded HOW LAYERS: the program is attached to once it has warmed up
recorded() {
	local ct_pid
	rm -f "$tmp/go"
	"$python" tests/gpu/steps.py --go-file "$tmp/go" --how "$1" > "$tmp/out" 2> "$tmp/prog.err" &
	pid=$!
	until grep -qs warmed "$tmp/out"; do kill -0 $pid || return; sleep 0.1; done
	"$ct" record -v --gpu --layers "$2" -o "$tmp/run.ctrace" -p $pid 2> "$tmp/err" &
	ct_pid=$!
	until grep -q 'the agent has started' "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || return; sleep 0.05; done
	touch "$tmp/go"
	wait $pid
	wait $ct_pid
	tail -n 1 "$tmp/err" | sed 's/^/# /'
}

# compare HOW FOUND_BY STEPS KERNELS [OPTIONS]: KERNELS 0 where they are not those of the profiled step
compare() {
	local how=$1 by=$2 steps=$3 kernels=$4
	shift 4
	"$ct" stat --by step --json "$@" "$tmp/run.ctrace" > "$tmp/steps" 2> "$tmp/stat.err"
	"$ct" stat --by step "$@" "$tmp/run.ctrace" 2> /dev/null | sed 's/^/# /'
	python3 - "$tmp/steps" "$by" "$steps" "$kernels" > "$tmp/got" << 'EOF'
import collections, json, sys
found_by, most, kernels = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
p, = [p for p in json.load(open(sys.argv[1], encoding='utf-8'))['processes'] if p['steps'] or p['found_by'] == 'none']
steps = p['steps']
# what is found by its period begins anywhere in a step of the program: what is left at both ends is no step
least = most - (found_by in ('operators', 'launches'))
want = len(steps)
if p['found_by'] != found_by or not least <= want <= most:
    print(f"found {len(steps)} by {p['found_by']} (confidence {p.get('confidence')}), not {most} by {found_by}")
    raise SystemExit
sums = [s['step'] for s in steps if s['compute_ns'] + s['exposed_ns'] + s['copy_ns'] + s['idle_ns'] != s['duration_ns']]
if sums:
    print('the parts do not add up in steps', sums)
# by ranges a step is a step of the program; by others it may begin within one
counts = collections.Counter(s['kernels'] for s in steps)
if kernels and counts != {kernels: want}:
    print(f'kernels in a step: {dict(counts)}, torch.profiler: {kernels}')
slowest = max(steps, key=lambda s: s['duration_ns'])
if slowest['idle_ns'] < 50_000_000:
    print('the slowest step has not the sleep:', slowest)
EOF
	if [ -s "$tmp/got" ]; then not_ok "steps-$how" "$(head -n 3 "$tmp/got" | tr '\n' ' ')"; else ok "steps-$how ($steps by $by)"; fi
}

if [ "${ONLY:-}" != mfu ]; then
	"$python" tests/gpu/steps.py --want "$tmp/want" > "$tmp/profile.out" 2>&1 || echo "# $(tail -n 1 "$tmp/profile.out")"
	kernels=$(cat "$tmp/want" 2> /dev/null || echo -1)
	echo "# torch.profiler: $kernels kernels in a step"
	recorded named torch && compare named profiler 20 "$kernels"
	recorded optimizer torch && compare optimizer optimizer 19 0
	recorded plain torch && compare plain operators 20 0
	recorded nvtx nvtx && compare nvtx range 20 "$kernels" --step train_step
	recorded plain nvtx && compare launches launches 20 0
fi

# ---- how much of what the device can do a GPT's training uses ----------------------------------------------------------------
"$ct" record --gpu --layers nvtx,torch,cublas -o "$tmp/gpt.ctrace" -- "$python" tests/gpu/gpt.py "$tmp/gpt.said" > "$tmp/out" 2> "$tmp/err"
tail -n 1 "$tmp/err" | sed 's/^/# /'
"$ct" stat --by step --json "$tmp/gpt.ctrace" > "$tmp/steps" 2> "$tmp/stat.err"
"$ct" stat --by step "$tmp/gpt.ctrace" 2> /dev/null | sed 's/^/# /'
python3 - "$tmp/steps" "$tmp/gpt.said" > "$tmp/got" << 'EOF'
import json, sys
said = json.load(open(sys.argv[2], encoding='utf-8'))
p, = [p for p in json.load(open(sys.argv[1], encoding='utf-8'))['processes'] if p['steps']]
steps = p['steps']
if p['found_by'] != 'profiler' or len(steps) != len(said['seconds']):
    print(f"found {len(steps)} steps by {p['found_by']}, not {len(said['seconds'])}")
for s, seconds in zip(steps, said['seconds']):
    if abs(s.get('flop', 0) / said['flop'] - 1) > 0.03:
        print(f"step {s['step']}: {s.get('flop', 0):.4g} FLOP, by the formula {said['flop']:.4g}")
    if said['capability'] != [9, 0]:
        continue
    mfu = said['flop'] / seconds / said['peak']
    if abs(s.get('mfu', 0) / mfu - 1) > 0.03:
        print(f"step {s['step']}: MFU {s.get('mfu', 0):.4f}, by the formula {mfu:.4f}")
mean = sum(said['flop'] / t / said['peak'] for t in said['seconds']) / len(said['seconds'])
print(f"# MFU by the formula {mean:.4f}, by the trace {sum(s.get('mfu', 0) for s in steps) / len(steps):.4f}; FLOP of a step {said['flop']:.5g}, {steps[0].get('flop', 0):.5g}")
EOF
grep '^# ' "$tmp/got"
if [ ! -s "$tmp/got" ] || grep -qv '^# ' "$tmp/got"; then
	not_ok mfu "$(grep -v '^# ' "$tmp/got" | head -n 3 | tr '\n' ' ') $(tail -n 2 "$tmp/err" | tr '\n' ' ')"
else
	ok mfu
fi
all_done && [ $passed -eq "$([ "${ONLY:-}" = mfu ] && echo 1 || echo 6)" ]
