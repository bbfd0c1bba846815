#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# node.sh - several processes that decode on one GPU, all layers recorded: tests/gpu/node.sh [CUDATRACE] [PROCESSES] [SOURCE...]
#
# PROCESSES (4) small Llamas decode the same tokens (tests/gpu/node_decode.py). With each SOURCE (hooks, probes, and auto where there is
# such) they are started by cudatrace, attached to, and attached to with Ctrl-C in the middle. The recording must have as many kernels in
# each process as torch.profiler counts there without cudatrace, each with its call, and no losses; how long cudatrace goes on after the
# end is printed. Needs root, a GPU, PyTorch and transformers.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
processes=${2:-4}
shift $(($# < 2 ? $# : 2))
sources=("$@")
[ ${#sources[@]} -gt 0 ] || sources=(hooks probes)
if ! has_torch || ! "$python" -c 'import transformers' 2> /dev/null; then
	echo "skip node: no PyTorch with a GPU, or no transformers"
	exit 0
fi
TOKENS=60

# programs ARGS...: starts the processes and waits until all have warmed up; their pids in $pids
programs() {
	local i
	rm -f "$tmp"/out.*
	for ((i = 0; i < processes; i++)); do
		"$python" tests/gpu/node_decode.py "$@" > "$tmp/out.$i" 2> "$tmp/prog.err.$i" &
	done
	until [ "$(cat "$tmp"/out.* | grep -c ready)" = "$processes" ]; do sleep 0.1; done
	mapfile -t pids < <(sed -n 's/^ready //p' "$tmp"/out.*)
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
# judge NAME: the recording against what torch.profiler has counted
judge() {
	"$ct" replay --format json "$tmp/rec" 2> "$tmp/replay.err" | grep -E '^\{"type":"(range|kernel|end)"' > "$tmp/json"
	python3 - "$tmp/json" "$want" "$processes" << 'EOF' > "$tmp/got"
import collections, json, sys

want, processes = int(sys.argv[2]), int(sys.argv[3])
ranges, kernels, end = {}, collections.defaultdict(list), {}
for line in open(sys.argv[1], encoding='utf-8'):
    row = json.loads(line)
    if row['type'] == 'range' and row.get('name') == 'decode':
        ranges[row['pid']] = (row['start_ns'], row['start_ns'] + row['duration_ns'])
    elif row['type'] == 'kernel':
        kernels[row['pid']].append(row['start_ns'])
    elif row['type'] == 'end':
        end = row
got = sorted(sum(1 for k in kernels[pid] if a <= k < b) for pid, (a, b) in ranges.items())
print('kernels', *got)
print('right', int(got == [want] * processes))
print('lost', sum(end.get('lost', {}).values()))
print('all', sum(map(len, kernels.values())))
print('device', json.dumps(end.get('device')))
EOF
	same "$1: kernels of each process as torch.profiler counts them" "$(sed -n 's/^kernels //p' "$tmp/got" | tr ' ' '\n' | uniq -c | tr -s ' ' | paste -sd,)" " $processes $want"
	same "$1: lost" "$(sed -n 's/^lost //p' "$tmp/got")" 0
	echo "# $1: $(stat -c %s "$tmp/rec") bytes, $(tail -n 1 "$tmp/err"); $(sed -n 's/^device //p' "$tmp/got")"
}

"$python" tests/gpu/node_decode.py --tokens $TOKENS --profile > "$tmp/alone" 2> "$tmp/prog.err" || { tail -n 3 "$tmp/prog.err"; exit 1; }
want=$(sed -n 's/.* kernels \([0-9]*\) .*/\1/p' "$tmp/alone")
echo "# $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1): $TOKENS tokens, $want kernels; profiled: $(tail -n 1 "$tmp/alone")"
programs --tokens $TOKENS --go "$tmp/go"
touch "$tmp/go"
wait
echo "# $processes without cudatrace: $(sed -n 's/.* ms //p' "$tmp"/out.* | paste -sd' ') ms a token"

for source in "${sources[@]}"; do
	layers=(--gpu "--layers=torch,nvtx" --source="$source")
	for ((i = 0; i < processes; i++)); do echo "python3 tests/gpu/node_decode.py --tokens $TOKENS > $tmp/out.$i 2> $tmp/prog.err.$i &"; done > "$tmp/all.sh"
	echo wait >> "$tmp/all.sh"
	"$ct" record "${layers[@]}" -o "$tmp/rec" -- sh "$tmp/all.sh" 2> "$tmp/err"
	same "$source, started: status" $? 0
	echo "# $source, started: $(sed -n 's/.* ms //p' "$tmp"/out.* | paste -sd' ') ms a token"
	judge "$source, started"

	rm -f "$tmp/go"
	programs --tokens $TOKENS --go "$tmp/go"
	"$ct" record -v "${layers[@]}" -o "$tmp/rec" -p "$(IFS=, && echo "${pids[*]}")" 2> "$tmp/err" &
	pid=$!
	until grep -q 'ready' "$tmp/err" || ! kill -0 $pid 2> /dev/null; do sleep 0.1; done
	sleep 1
	touch "$tmp/go"
	until [ "$(cat "$tmp"/out.* | grep -c '^tokens')" = "$processes" ]; do sleep 0.02; done
	from=$(now_ms)
	wait $pid
	same "$source, attached: status" $? 0
	echo "# $source, attached: $(sed -n 's/.* ms //p' "$tmp"/out.* | paste -sd' ') ms a token; cudatrace ended $(($(now_ms) - from)) ms after the programs"
	wait
	pids=() pid=''
	judge "$source, attached"

	programs --tokens 100000
	"$ct" record -v "${layers[@]}" -o "$tmp/rec" -p "$(IFS=, && echo "${pids[*]}")" 2> "$tmp/err" &
	pid=$!
	until grep -q 'ready' "$tmp/err" || ! kill -0 $pid 2> /dev/null; do sleep 0.1; done
	sleep 8
	from=$(now_ms)
	kill -INT $pid
	wait $pid
	status=$? took=$(($(now_ms) - from))
	same "$source, Ctrl-C: status" $status 0
	if [ $took -le 2500 ]; then ok "$source, Ctrl-C: ends in $took ms"; else not_ok "$source, Ctrl-C" "$took ms until the end"; fi
	echo "# $source, Ctrl-C: $(stat -c %s "$tmp/rec") bytes, $(tail -n 1 "$tmp/err")"
	kill "${pids[@]}"
	pids=() pid=''
	wait
done
all_done
