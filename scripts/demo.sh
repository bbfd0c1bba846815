#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh - builds cudatrace and prints a trace of the sample program: scripts/demo.sh [OPTIONS OF CUDATRACE...]
#
# With a GPU and a CUDA toolkit the sample runs on the GPU, otherwise on the stand-in (tests/standin): a libcudart and a libcuda
# that need no GPU. It first installs what building needs and is not here. Root starts it, or an ordinary user: then only what installs and
# what traces is run through sudo. It leaves nothing behind except what it installs and the build, which belongs to this folder's owner. When
# cudatrace starts a program, it writes its rows to standard error; here they go to standard output, with what the sample prints.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/common.sh disable=SC1091
. scripts/common.sh

die() {
	echo "demo.sh: $*" >&2
	exit 1
}

[ -w . ] || die "$(id -un) may not write to $PWD: copy the repository to a folder of your own"
need_root || exit 1
scripts/deps.sh build || exit 1
hand_back
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"; [ "$(id -u)" != 0 ] || hand_back' EXIT

# build TARGET...
build() {
	local of
	of=$(make -n "$@" 2> /dev/null | grep -c "printf '  ")
	LINES_ARE="of about $of files" patiently 'still building' "$tmp/log" make -s -j "$(nproc)" "$@" || die "the build failed: $(tail -n 3 "$tmp/log")"
}

if make -q cudatrace > /dev/null 2>&1; then
	echo "# cudatrace is built already"
else
	echo "# building cudatrace: this takes one to five minutes"
	build cudatrace
fi

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
	build standin cuda_events_test
	sample=./cuda_events_test
	LD_LIBRARY_PATH=$PWD/.output/standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	echo "# on the stand-in: $why"
fi
echo "# cudatrace${*:+ $*} -- cuda_events_test"
as_root env ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} ./cudatrace "$@" -- "$sample" 2>&1
