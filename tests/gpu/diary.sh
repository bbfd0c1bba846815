#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# diary.sh - programs at random on a real GPU, compared with what they wrote down: tests/gpu/diary.sh [CUDATRACE [A..B [WAYS]]]
#
# tests/diary/diary.c, built with CUDA's own headers and libraries, makes random calls of seeds A to B (1..8) in each of the WAYS of
# tests/diary/run.py. With the way `gpu` each kernel, copy and set that CUPTI reports must have its call, and each successful call must have
# one. Left out: calls inside of callbacks and of host functions, and CUDA after fork(), which CUDA does not allow; the stand-in of another
# version. Needs root, a GPU, gcc, and CUDA's headers. Prints `ok` and `not ok` lines.
set -u
cd "$(dirname "$0")/../.." || exit
CUDATRACE=$(readlink -f "${1:-.output/static/cudatrace}")
cuda=${CUDA_HOME:-/usr/local/cuda}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if ! gcc -O2 -D_GNU_SOURCE -I"$cuda/include" -o "$tmp/diary" tests/diary/diary.c -L"$cuda/lib64" -L"$cuda/lib64/stubs" -lcudart -lcuda -ldl -lpthread \
	-Wl,-rpath,"$cuda/lib64" 2> "$tmp/err"; then
	echo "not ok diary: $(head -n 3 "$tmp/err" | tr '\n' ' ')"
	exit 1
fi
export CUDATRACE DIARY=$tmp/diary
tests/diary/run.py ${KEEP:+--keep} --seeds "${2:-1..8}" ${3:+--ways "$3"} --without callback,hostfunc,fork,dlopen
