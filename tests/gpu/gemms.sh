#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# gemms.sh - the layer `cublas` on a real GPU: tests/gpu/gemms.sh [CUDATRACE]
#
# PyTorch multiplies matrices of known shapes and types, and measures by CUDA's events how fast. `stat --by gemm` has the same shapes and
# counts, the same FLOP, and the same TFLOP/s within 2 percent, in a program that was started and in one that runs already. Needs root, a
# GPU and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"

# compare NAME: the sums in $tmp/sums and what the program says in $tmp/said.
compare() {
	if python3 tests/gpu/gemms_check.py "$tmp/sums" "$tmp/said" > "$tmp/got"; then
		ok "$1"
	else
		not_ok "$1" "$(grep '^wrong' "$tmp/got" | head -n 3 | tr '\n' ' ') $(tail -n 2 "$tmp/err" | tr '\n' ' ')"
	fi
	sed 's/^/# /' "$tmp/got"
}

"$ct" stat --gpu --by gemm --json -o "$tmp/sums" -- "$python" tests/gpu/gemms.py "$tmp/said" > "$tmp/out" 2> "$tmp/err"
compare gemms-started

"$python" tests/gpu/gemms.py "$tmp/said" "$tmp/go" > "$tmp/out" 2> "$tmp/prog.err" &
pid=$!
until grep -qs warmed "$tmp/out"; do kill -0 $pid || exit; sleep 0.1; done
rm -f "$tmp/sums"
"$ct" stat -v --gpu --by gemm --json -o "$tmp/sums" -p $pid > /dev/null 2> "$tmp/err" &
ct_pid=$!
until grep -q 'the agent has started' "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || break; sleep 0.05; done
touch "$tmp/go"
wait $pid
pid=''
wait $ct_pid
compare gemms-attached

"$ct" stat --gpu --by class -o "$tmp/classes" -- "$python" tests/gpu/gemms.py "$tmp/said" > "$tmp/out" 2> "$tmp/err"
if grep -q ' gemm$' "$tmp/classes"; then ok gemms-classes; else not_ok gemms-classes "no row of products"; fi
sed 's/^/# /' "$tmp/classes"
all_done
