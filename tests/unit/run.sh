#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - runs unit programs one after the other and says in the end which of them failed: tests/unit/run.sh PROGRAM...
# What a program prints is shown when it fails; otherwise its last line, with its name. CASE=orders in the environment runs
# the cases that have this in their names (unit.h).
cd "$(dirname "$0")/../.." || exit 1

failed=()
for program in "$@"; do
	name=${program##*/}
	if [ $# = 1 ]; then
		"$program" || failed+=("$name")
		continue
	fi
	out=$("$program" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		printf '%-22s %s\n' "$name" "$(tail -n 1 <<< "$out")"
	else
		failed+=("$name")
		printf '%s\n%-22s FAILED (status %d)\n' "$out" "$name" $status
	fi
done
if [ ${#failed[@]} != 0 ]; then
	echo "failed: ${failed[*]} (again: make unit T=${failed[0]#test_})"
	exit 1
fi
