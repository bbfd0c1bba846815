#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# diary.sh - programs at random on a real GPU, compared with what they wrote down: tests/gpu/diary.sh [CUDATRACE [A..B [WAYS]]]
#
# tests/diary/diary.c, built with CUDA's own headers and libraries, makes random calls of seeds A to B (1..8) in each of the WAYS of
# tests/diary/run.py. With the way `gpu` each kernel, copy and set that CUPTI reports must have its call, and each successful call must have
# one. Left out: calls inside of callbacks and of host functions, and CUDA after fork(), which CUDA does not allow; the stand-in of another
# version. Needs root, a GPU, gcc, and CUDA's headers. Prints `ok` and `not ok` lines.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
CUDATRACE=$ct
if ! build "$tmp/diary" tests/diary/diary.c -L"$cuda/lib64/stubs" -lcudart -lcuda -lpthread; then
	not_ok diary "$(head -n 3 "$tmp/err" | tr '\n' ' ')"
	leave
fi
export CUDATRACE DIARY=$tmp/diary
tests/diary/run.py ${KEEP:+--keep} --seeds "${2:-1..8}" ${3:+--ways "$3"} --without callback,hostfunc,fork,dlopen

