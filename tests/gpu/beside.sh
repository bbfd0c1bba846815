#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# beside.sh - PyTorch's own profiler in a program that is traced with --gpu, in each order: tests/gpu/beside.sh [CUDATRACE]
#
# The program's profiles have as many kernels as without cudatrace, all of them, and the last line says from when on the trace has none; with
# the agent there first, the kernels before the first profile are in the trace. Needs root, a GPU and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
says() { if grep -qE "$2" "$tmp/err"; then ok "$1"; else not_ok "$1" "$(tail -n 3 "$tmp/err" | tr '\n' ' ')"; fi; }
has_torch || {
	echo "skip beside: no PyTorch with a GPU"
	exit 0
}
OWN='lost of those seen.*; process [0-9]+ (\([^)]*\) )?profiled itself with CUPTI: what its devices did meanwhile is not known, from '

begin() {
	rm -f "$tmp/go" "$tmp/stop" "$tmp/out"
	python3 tests/gpu/beside_loop.py "$tmp/go" "$tmp/stop" > "$tmp/out" 2> "$tmp/prog.err" &
	pid=$!
	until grep -qs ready "$tmp/out"; do
		kill -0 $pid 2> /dev/null || { cat "$tmp/prog.err"; exit 1; }
		sleep 0.1
	done
}
end() {
	touch "$tmp/stop"
	wait $pid
	same "$1: the program ends well" "$? $(tail -n 1 "$tmp/out")" '0 ended'
	pid=''
}
# profile: lets the program profile itself, and waits for its end
profile() {
	local had
	had=$(grep -c profile "$tmp/out")
	touch "$tmp/go"
	until [ "$(grep -c profile "$tmp/out")" -gt "$had" ]; do
		kill -0 $pid 2> /dev/null || return
		sleep 0.1
	done
}
last() { grep profile "$tmp/out" | tail -n 1 | cut -d' ' -f "$1"; }
# record ARGS...: in the background; returns when the agent has started, or has said why not
record() {
	rm -f "$tmp/err"
	"$ct" -v --gpu -e launch --format json -o "$tmp/json" -p $pid "$@" 2> "$tmp/err" &
	ct_pid=$!
	until grep -qsE 'the agent (has|did not) start' "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || return; sleep 0.05; done
}
leave() { # WHAT STATUS
	kill -INT $ct_pid
	wait $ct_pid
	same "$1: status of --strict" "$?" "$2"
}
# kernels FROM_NS TO_NS: how many kernels the trace has that began then
kernels() { grep '^{"type":"kernel"' "$tmp/json" | grep -o '"start_ns":[0-9]*' | cut -d: -f2 | awk -v a="$1" -v b="$2" '$1 >= a && $1 < b' | wc -l; }

begin
profile
want=$(last 4)
end alone
least "kernels of the profile without cudatrace" "$want" 1000

for source in probes hooks; do
	begin
	record --strict --source=$source
	sleep 2
	profile
	same "$source first: the program's profile" "$(last 4)" "$want"
	from=$(last 2) to=$(last 3)
	sleep 4
	profile
	same "$source first: the program's second profile" "$(last 4)" "$want"
	leave "$source first" 3
	says "$source first: the last line has the hole" "$OWN"
	least "$source first: kernels before the profile" "$(kernels 0 "$from")" 1000
	same "$source first: kernels from the profile on" "$(kernels $((from + 200000000)) $((to + 4000000000)))" 0
	echo "# $source: $(grep '^{"type":"end"' "$tmp/json" | grep -o '"matched":[0-9]*,"unmatched":[0-9]*,"inferred":[0-9]*'); $(tail -n 1 "$tmp/err")"
	# the program has used CUPTI and rests: once more
	record --source=$source
	sleep 1
	profile
	same "$source again: the program's profile" "$(last 4)" "$want"
	kill -INT $ct_pid
	wait $ct_pid
	says "$source again: it is said" 'CUPTI'
	echo "# $source again: $(tail -n 1 "$tmp/err")"
	end "$source first"

	# attached while its profiler runs
	begin
	touch "$tmp/go"
	while [ -e "$tmp/go" ]; do sleep 0.01; done
	sleep 0.3
	record --strict --source=$source
	until grep -q profile "$tmp/out"; do sleep 0.1; done
	sleep 1
	leave "$source while it runs" 3
	same "$source while it runs: the program's profile" "$(last 4)" "$want"
	says "$source while it runs: the last line has the hole" "$OWN"
	end "$source while it runs"
done
all_done
