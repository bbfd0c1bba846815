#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh - builds cudatrace and prints a trace of the sample program: scripts/demo.sh [OPTIONS OF CUDATRACE...]
#
# With a GPU and a CUDA toolkit the sample runs on the GPU, otherwise on the stand-in (tests/standin): a libcudart and a libcuda
# that need no GPU. The script needs root, and leaves nothing behind except the build. When cudatrace starts a program, it writes its rows
# to standard error; here they go to standard output, with what the sample prints.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

die() {
	echo "demo.sh: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die "tracing needs root: sudo $0"
scripts/deps.sh build || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
echo "# building cudatrace; the first build takes some minutes"
make -s -j "$(nproc)" cudatrace > "$tmp/log" 2>&1 || die "the build failed: $(tail -n 3 "$tmp/log")"

has_gpu() {
	{ [ -e /dev/nvidia0 ] || nvidia-smi -L > /dev/null 2>&1; } && ldconfig -p 2> /dev/null | grep -q 'libcuda\.so\.1 '
}

# The sample is built into $tmp: its own path to the stand-in must not come before the driver's.
cuda=${CUDA_HOME:-/usr/local/cuda}
sample=
if has_gpu; then
	if [ -e "$cuda/include/cuda_runtime_api.h" ]; then
		lib=$cuda/lib64
		[ -e "$lib/libcudart.so" ] || lib=$cuda/lib
		gcc -std=gnu11 -D_GNU_SOURCE -O2 -I"$cuda/include" -o "$tmp/cuda_events_test" cuda_events_test.c -L"$lib" \
			-lcudart -ldl -Wl,-rpath,"$lib" 2> "$tmp/log" && sample=$tmp/cuda_events_test
		[ -n "$sample" ] || why="the sample does not build with the toolkit in $cuda: $(head -n 1 "$tmp/log")"
	else
		why="there is a GPU, but no CUDA toolkit in $cuda (set CUDA_HOME)"
	fi
else
	why="there is no GPU here"
fi
if [ -n "$sample" ]; then
	echo "# on the GPU: $(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1)"
else
	make -s -j "$(nproc)" standin cuda_events_test > "$tmp/log" 2>&1 ||
		die "the stand-in does not build: $(tail -n 3 "$tmp/log")"
	sample=./cuda_events_test
	export LD_LIBRARY_PATH=$PWD/.output/standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	echo "# on the stand-in: $why"
fi
echo "# cudatrace${*:+ $*} -- cuda_events_test"
./cudatrace "$@" -- "$sample" 2>&1
