#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# check_format.sh - is every C file laid out as .clang-format has it? scripts/check_format.sh [--fix]
#
# Other versions of clang-format break some lines elsewhere: 14 is what the tree is held to. Prints ok, not ok or skip.
cd "$(dirname "$0")/.." || exit 1
version=$(clang-format --version 2> /dev/null | grep -oE 'version [0-9]+' | cut -d' ' -f2)
if [ "$version" != 14 ]; then
	echo "skip format: it takes clang-format 14, and here is ${version:-none}"
	exit 0
fi
mapfile -t files < <(find bpf capture counters target wire scripts tests user cuda_events_test.c -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu')
if [ "${1:-}" = --fix ]; then
	exec clang-format -i "${files[@]}"
fi
wrong=$(clang-format --dry-run "${files[@]}" 2>&1 | grep -oE '^[^: ]+:[0-9]+' | awk -F: '!seen[$1]++' | head -n 10)
if [ -z "$wrong" ]; then
	echo "ok format: ${#files[@]} files"
else
	echo "not ok format: $(tr '\n' ' ' <<< "$wrong"): run make format"
	exit 1
fi
