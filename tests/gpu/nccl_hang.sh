#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# nccl_hang.sh - a job of PyTorch with NCCL, of which one rank does not arrive: tests/gpu/nccl_hang.sh [CUDATRACE]
#
# Needs root, two GPUs or more, and a python3 with PyTorch. Each rank in turn is the absent one; cudatrace comes after the hang began
# and must name it, its collective, and the line of Python that it is at. A job that goes on must not be reported. Prints `ok NAME`,
# `not ok NAME: why`, `skip NAME: why`, and at the end the counts.
set -u
cd "$(dirname "$0")/../.." || exit
ct=$(readlink -f "${1:-.output/static/cudatrace}")
tmp=$(mktemp -d)
pids=()
# shellcheck disable=SC2317 # by the trap
tidy() {
	[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2> /dev/null
	rm -rf "$tmp"
}
trap tidy EXIT
passed=0 failed=0 skipped=0
ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: $2"; failed=$((failed + 1)); }
skip() { echo "skip $1: $2"; skipped=$((skipped + 1)); }
end() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}

gpus=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU')
if [ "$gpus" -lt 2 ] || ! python3 -c 'import torch' 2> /dev/null; then
	skip nccl-hang "two GPUs and PyTorch are needed"
	end
fi
ranks=$((gpus < 4 ? gpus : 4))

# start ABSENT [KIND]: waits until all ranks have come to the collective that hangs; false: they have not
start() {
	local rank i
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		python3 tests/gpu/nccl_rank.py $rank $ranks "$1" $((29500 + $$ % 1000)) "${2:-absent}" > "$tmp/$rank.out" 2> "$tmp/$rank.err" &
		pids+=($!)
	done
	for ((i = 0; i < 1200; i++)); do
		[ "$(cat "$tmp"/*.out | grep -c '^ready')" = $ranks ] && return
		sleep 0.1
	done
	return 1
}

stop() {
	kill -KILL "${pids[@]}"
	wait 2> /dev/null
	rm -f "$tmp"/*.out
}

for ((absent = 0; absent < ranks; absent++)); do
	if ! start "$absent"; then
		not_ok "rank-$absent-absent" "the job did not begin: $(tail -n 1 "$tmp/0.err")"
		stop
		continue
	fi
	"$ct" stuck --over 2 > "$tmp/rows" 2> "$tmp/err"
	status=$?
	sed -n '/^communicator/,$p' "$tmp/rows" | sed 's/^/# /'
	if [ $status != 4 ]; then
		not_ok "rank-$absent-absent" "status $status: $(tail -n 1 "$tmp/err")"
	elif ! grep -q "of $ranks ranks: rank $absent has not arrived" "$tmp/rows"; then
		not_ok "rank-$absent-absent" "it is not named"
	elif ! grep -q "AllReduce #11: rank $absent has not begun it (the last was #10)" "$tmp/rows"; then
		not_ok "rank-$absent-absent" "not the collective that it should be"
	elif ! grep -q "rank $absent, absent: .*PID ${pids[$absent]}" "$tmp/rows"; then
		not_ok "rank-$absent-absent" "not its process"
	elif ! grep -q 'load_batch (.*nccl_rank.py:[0-9]*) \[python\]' "$tmp/rows"; then
		not_ok "rank-$absent-absent" "not the line that it is at"
	else
		ok "rank-$absent-absent"
	fi
	stop
done

if start -1 none; then
	"$ct" stuck --over 2 > "$tmp/rows" 2> "$tmp/err"
	if grep -q 'not arrived' "$tmp/rows"; then
		not_ok nccl-goes-on "$(grep 'not arrived' "$tmp/rows")"
	else
		ok nccl-goes-on
	fi
else
	not_ok nccl-goes-on "the job did not begin"
fi
stop
end
