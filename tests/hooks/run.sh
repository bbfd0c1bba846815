#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the engine that hooks functions inside a process (docs/hooks.md): tests/hooks/run.sh [--builds | --all]. Prints `ok NAME`,
# `not ok NAME: why`, `skip NAME: why`. Each program runs with builds of the functions that are hooked: with two of them, with each
# (--builds), or with each and many rounds, and with stand-ins of four compilers (--all).
cd "$(dirname "$0")/../.." || exit 1
out=${OUTPUT:-.output}/hooks-tests
if [ "$(uname -m)" != x86_64 ]; then
	echo "skip hooks: the engine knows x86-64 alone"
	exit 0
fi
builds=(gcc-O2 gcc-O2-fp)
rounds=()
if [ -n "${1:-}" ]; then
	builds=(gcc-O0 gcc-O2 gcc-O2-fp gcc-O2-endbr clang-O0 clang-O2 clang-O2-fp)
fi
[ "${1:-}" != --all ] || rounds=(--all)
failed=0

make -s -j "$(nproc)" hooks-tests > "$out.log" 2>&1 || {
	echo "not ok hooks: make hooks-tests failed: $(grep -m 1 -E 'error|Error' "$out.log")"
	exit 1
}

# What runs at a hook calls nothing outside: a function of the C library may use vector registers.
calls=$(nm -u "${out%-tests}/hooks/target/engine/call.o" | awk '{ print $2 }' | grep -vE '^(engine_(counting|live|ops|parts|within)|hooks_region|threads_get|threads_is_here|_GLOBAL_OFFSET_TABLE_)$')
if [ -z "$calls" ]; then echo "ok hooks: what runs at a hook calls nothing outside"; else
	echo "not ok hooks: what runs at a hook calls nothing outside: $calls"
	failed=1
fi

# tried NAME COMMAND...: its lines, with the name
tried() {
	local name=$1 status
	shift
	"$@" > "$out/log" 2>&1
	status=$?
	sed -E "s/^((not )?ok|skip) /&$name: /" "$out/log"
	[ $status = 0 ] || failed=1
	grep -qE '^(ok|not ok|skip) ' "$out/log" || echo "not ok $name: status $status"
}

for build in "${builds[@]}"; do
	for program in engine calls counting; do
		tried "$build" "$out/test_$program-$build" "${rounds[@]}"
	done
done
tried text "$out/test_text"
tried slots "$out/test_slots" "${rounds[@]}"
tried unwind "$out/test_unwind" "${rounds[@]}"
tried uprobes tests/hooks/uprobes.py "$out/beside" "$out/libvictims-gcc-O2-fp.so"
tried insn "$out/test_insn" "$([ "${1:-}" = --all ] && echo 1000000 || echo 100000)"

# All functions of a library on and off under callers: of 1000 so many can be hooked at the least.
# Under another name, by which other tracers of this machine do not find it.
library() {
	# a new file: another tracer may have found the last one, and would write into other places of this one
	cp --remove-destination "$2" "$out/plain.so" && tried "$1" "$out/test_library" "$PWD/$out/plain.so" "${@:3}"
}
export LD_LIBRARY_PATH=$PWD/.output/standin
runtime=(cudaGetDevice cudaGetDeviceCount cudaRuntimeGetVersion)
make -s standin > "$out.log" 2>&1 || echo "not ok hooks: make standin failed: $(tail -n 1 "$out.log")"
library "stand-in's libcudart 13" .output/standin/libcudart.so.13 950 20 "${runtime[@]}"
library "stand-in's libcuda" .output/standin/libcuda.so.1 900 20 cuDriverGetVersion
real=${CUDA_HOME:-/usr/local/cuda}/lib64/libcudart.so.13
if [ -e "$real" ]; then
	library "libcudart 13" "$real" 990 20 "${runtime[@]}"
else
	echo "skip libcudart 13: it is not here"
fi
if [ "${1:-}" = --all ]; then
	while read -r name cc flags; do
		make -s -j "$(nproc)" OUTPUT="$out/$name" CC="$cc" \
			STANDIN_CFLAGS="-std=gnu11 -D_GNU_SOURCE -g -fPIC -fvisibility=hidden -w -pthread $flags" standin > "$out.log" 2>&1 ||
			echo "not ok $name: $(tail -n 1 "$out.log")"
		library "stand-in $name" "$out/$name/standin/libcudart.so.13" 900 50 "${runtime[@]}"
	done << 'END'
gcc-O0 gcc -O0
gcc-O2 gcc -O2 -fomit-frame-pointer
gcc-O2-endbr gcc -O2 -fcf-protection=full
clang-O2 clang -O2 -fomit-frame-pointer
END
fi
exit $failed
