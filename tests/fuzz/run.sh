#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - fuzzes what reads foreign bytes, and what writes their texts into columns: tests/fuzz/run.sh [-l | SECONDS [TARGET...]], each target for SECONDS (60). -l lists the targets.
#
# Needs `make fuzz-programs fuzz-seeds`. Each target begins with the inputs in tests/fuzz/corpus/TARGET, of which each was a fault
# once, and with seeds made of our own recordings and programs; what it finds new is kept in .output/fuzz/TARGET and is begun
# with the next time. An input that crashes a target, or takes 20 s, or 2 GiB, is stored in .output/fuzz as TARGET-crash-...: put it
# into the corpus with the mending. Prints `ok` and `not ok` lines. For a night: tests/fuzz/run.sh 7200.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

targets=(trace elf functions device dwarf agent counters saved hooks nccl options http web python payload columns)
if [ "${1:-}" = -l ]; then
	printf '%s\n' "${targets[@]}"
	exit 0
fi
seconds=${1:-60}
[ $# = 0 ] || shift
programs=.output/fuzzed
kept=.output/fuzz
failed=0
[ $# -gt 0 ] || set -- "${targets[@]}"
for target; do
	program=$programs/fuzz_$target
	if [ ! -x "$program" ]; then
		echo "not ok fuzz-$target: $program is missing: run make fuzz-programs"
		failed=1
		continue
	fi
	mkdir -p "$kept/$target" "$kept/seeds/$target" "tests/fuzz/corpus/$target"
	log=$kept/$target.log
	# libelf and libdw lose some bytes for good when they give up on a damaged file
	leaks=1
	[ "$target" != elf ] && [ "$target" != dwarf ] || leaks=0
	# Ten times the time that was asked for ends what hangs in a way that the fuzzer does not see.
	if timeout -k 5 $((seconds * 10 + 120)) env ASAN_OPTIONS=detect_leaks=$leaks \
		"$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -close_fd_mask=3 \
		-verbosity=1 -print_final_stats=1 -artifact_prefix="$kept/$target-" \
		"$kept/$target" "tests/fuzz/corpus/$target" "$kept/seeds/$target" > "$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		if [ "${runs:-0}" -gt 0 ]; then
			echo "ok fuzz-$target ($runs inputs)"
			continue
		fi
	fi
	echo "not ok fuzz-$target: $(grep -m 1 -E 'ERROR|SUMMARY|error' "$log" | cut -c1-200); see $log"
	failed=1
done
exit $failed
