#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# nccl_hang.sh - a job of PyTorch with NCCL, of which one rank does not arrive: tests/gpu/nccl_hang.sh [CUDATRACE]
#
# Needs root, two GPUs or more, and a python3 with PyTorch. Each rank in turn is the absent one; cudatrace comes after the hang began
# and must name it, its collective, and the line of Python that it is at; so must answers of several machines put together. A rank
# that only comes late is named while it does, and the job ends as if nobody had looked. A job that goes on must not be reported. Prints
# `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and at the end the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
gpus=$(count_gpus)
port=$((28500 + $$ % 1000))
if [ "$gpus" -lt 2 ] || ! "$python" -c 'import torch' 2> /dev/null; then
	skip nccl-hang "two GPUs and PyTorch are needed"
	leave
fi
ranks=$((gpus < 4 ? gpus : 4))

# start ABSENT [KIND]: waits until all ranks have come to the collective that hangs; false: they have not. What is written to $tmp/in
# ends the wait of a late rank.
start() {
	local rank i
	pids=()
	port=$((port + 1))
	for ((rank = 0; rank < ranks; rank++)); do
		"$python" tests/gpu/nccl_rank.py $rank $ranks "$1" $port "${2:-absent}" > "$tmp/$rank.out" 2> "$tmp/$rank.err" < "$tmp/in" &
		pids+=($!)
	done
	exec 9> "$tmp/in"
	for ((i = 0; i < 900; i++)); do
		[ "$(cat "$tmp"/*.out | grep -c '^ready')" = $ranks ] && return
		sleep 0.1
	done
	return 1
}

stop() {
	exec 9>&-
	kill -KILL "${pids[@]}" 2> /dev/null
	wait "${pids[@]}" 2> /dev/null
	pids=()
	rm -f "$tmp"/*.out
}

stuck() { timeout 60 "$ct" stuck --over 2 "$@" 2> "$tmp/err"; }

# named NAME ABSENT STATUS: is the rank named, and what it has not begun?
named() {
	if [ "$3" != 4 ]; then
		not_ok "$1" "status $3: $(tail -n 1 "$tmp/err")"
	elif ! grep -q "of $ranks ranks: rank $2 has not arrived" "$tmp/rows"; then
		not_ok "$1" "it is not named"
	elif ! grep -q "AllReduce #11: rank $2 has not begun it (the last was #10)" "$tmp/rows"; then
		not_ok "$1" "not the collective that it should be"
	elif ! grep -q "rank $2, absent: .*PID ${pids[$2]}" "$tmp/rows"; then
		not_ok "$1" "not its process"
	elif ! grep -q 'load_batch (.*nccl_rank.py:[0-9]*) \[python\]' "$tmp/rows"; then
		not_ok "$1" "not the line that it is at"
	else
		ok "$1"
	fi
}

mkfifo "$tmp/in"
for ((absent = 0; absent < ranks; absent++)); do
	if ! start "$absent"; then
		not_ok "rank-$absent-absent" "the job did not begin: $(tail -n 1 "$tmp/0.err")"
		stop
		continue
	fi
	stuck > "$tmp/rows"
	status=$?
	sed -n '/^communicator/,$p' "$tmp/rows" | sed 's/^/# /'
	named "rank-$absent-absent" "$absent" $status
	# as if each rank was on a machine of its own
	stuck --format json > "$tmp/json"
	for ((rank = 0; rank < ranks; rank++)); do
		grep "\"type\":\"communicator\".*\"pid\":${pids[$rank]}," "$tmp/json" > "$tmp/$rank.json"
	done
	timeout 60 "$ct" stuck --merge "$tmp"/[0-9].json > "$tmp/rows" 2> "$tmp/err"
	named "rank-$absent-absent-merged" "$absent" $?
	stop
done

if start 1 late; then
	stuck -p "${pids[0]}" > "$tmp/rows"
	named rank-1-late 1 $?
	exec 9>&-
	fine=1
	for p in "${pids[@]}"; do wait "$p" || fine=0; done
	sums=$(cat "$tmp"/[0-9].out | grep -c "^sum $((ranks ** 11))\$")
	if [ $fine = 1 ] && [ "$sums" = $ranks ]; then
		ok late-job-ends
	else
		not_ok late-job-ends "$(cat "$tmp"/[0-9].out | tr '\n' ' '); $(tail -n 1 "$tmp/0.err")"
	fi
else
	not_ok rank-1-late "the job did not begin"
fi
stop

if start -1 none; then
	stuck > "$tmp/rows"
	if grep -q 'not arrived' "$tmp/rows"; then
		not_ok nccl-goes-on "$(grep 'not arrived' "$tmp/rows")"
	else
		ok nccl-goes-on
	fi
else
	not_ok nccl-goes-on "the job did not begin"
fi
stop
all_done
