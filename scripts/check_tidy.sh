#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# check_tidy.sh - clang-tidy with the checks of .clang-tidy over the C files of user/, target/ and counters/, or those that are named:
# scripts/check_tidy.sh [FILE...]. Of the files for one architecture it reads those for the machine's own. Prints a line for each file with a fault, and one in the end. Needs a tree that is built (the
# skeleton of the BPF programs is included). The analyzer looks at each function with little effort, or this would take ten minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

command -v clang-tidy > /dev/null || {
	echo "skip tidy: clang-tidy is not installed (scripts/deps.sh all)"
	exit 0
}
case $(uname -m) in x86_64) other=aarch64 ;; *) other=x86 ;; esac
files=("$@")
[ $# != 0 ] || mapfile -t files < <(find user target counters -name '*.c' ! -name "*_$other.c" | sort)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2016 # the inner shell's
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 sh -c '
	clang-tidy --quiet --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=mode=shallow "$@" -- \
		-std=gnu11 -D_GNU_SOURCE "-DCT_VERSION=\"\"" "-DCT_COMMIT=\"\"" "-DCT_COUNTERS_HELPER=\"\"" "-DCT_AGENT=\"\"" "-DCT_AGENT_FILE=\"\"" "-DCT_HOOKS_FILE=\"\"" "-DCT_NVTX_FILE=\"\"" \
		-I.output -Itests/standin/include -pthread 2>&1 || true' sh > "$log"
faults=$(grep -E '(warning|error): ' "$log" | sed "s|$PWD/||" | sort -u)
if [ -z "$faults" ]; then
	echo "ok tidy: ${#files[@]} files"
else
	printf 'not ok tidy: %s\n' "${faults//$'\n'/$'\n'not ok tidy: }"
	exit 1
fi
