#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# stat.sh - sums of a real program on a real GPU: tests/gpu/stat.sh [CUDATRACE]
#
# As root, with PyTorch. `stat --gpu` of training steps against torch.profiler's sums of the same steps, in a process of its own,
# since CUPTI serves one at a time; the same from a recording; and runs compared with runs.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
load=(python3 tests/gpu/stat_load.py)

check() { # NAME SAVED: the lines of stat_check.py, each counted
	local line
	while read -r line; do
		case $line in
		"ok "*) ok "$1: ${line#ok }" ;;
		*) not_ok "$1" "${line#not ok }" ;;
		esac
	done < <(python3 tests/gpu/stat_check.py "$2" "$tmp/profiled.json" 2>&1)
}

if ! has_torch; then
	skip stat "no PyTorch with a GPU"
elif ! "${load[@]}" "$tmp/profiled.json" > "$tmp/out" 2>&1; then
	not_ok profiler "$(tail -n 1 "$tmp/out")"
else
	if "$ct" stat --gpu --counters -o "$tmp/table" --save "$tmp/live.json" -- "${load[@]}" > "$tmp/out" 2> "$tmp/err"; then
		check live "$tmp/live.json"
		grep -A 12 '^Hardware counters' "$tmp/table" | sed 's/^/# /'
	else
		not_ok live "$(tail -n 1 "$tmp/err")"
	fi
	if "$ct" record --gpu -o "$tmp/r.ctrace" -- "${load[@]}" > "$tmp/out" 2> "$tmp/err"; then
		"$ct" stat --json -o "$tmp/file.json" "$tmp/r.ctrace" 2> "$tmp/err"
		check recorded "$tmp/file.json"
	else
		not_ok recorded "$(tail -n 1 "$tmp/err")"
	fi
	# The same program twice is no regression; its launches are the same to the one.
	"$ct" stat --gpu --runs 4 --save "$tmp/a.json" -o "$tmp/table" -- "${load[@]}" > /dev/null 2> "$tmp/err"
	"$ct" stat --gpu --runs 4 --save "$tmp/b.json" -o "$tmp/table" -- "${load[@]}" > /dev/null 2>> "$tmp/err"
	if "$ct" check --fail-if 'launches!=+0' --fail-if 'kernel_time>+10%' --fail-if 'failed>0' "$tmp/a.json" "$tmp/b.json" > "$tmp/out" 2>> "$tmp/err"; then
		ok "the same program is no regression"
	else
		not_ok "the same program is no regression" "$(grep FAIL "$tmp/out" || tail -n 1 "$tmp/err")"
	fi
	sed -n '/Conditions/,$p' "$tmp/out" | sed 's/^/# /'
fi
all_done
