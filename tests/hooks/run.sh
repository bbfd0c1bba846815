#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the engine that hooks functions inside a process (docs/hooks.md): tests/hooks/run.sh [--all]. Prints `ok NAME`, `not ok NAME: why`,
# `skip NAME: why`. Each program runs with each build of the functions that are hooked; without --all, with fewer rounds and two builds.
cd "$(dirname "$0")/../.." || exit 1
out=${OUTPUT:-.output}/hooks-tests
if [ "$(uname -m)" != x86_64 ]; then
	echo "skip hooks: the engine knows x86-64 alone"
	exit 0
fi
builds=(gcc-O2 gcc-O2-fp)
rounds=()
if [ "${1:-}" = --all ]; then
	builds=(gcc-O0 gcc-O2 gcc-O2-fp gcc-O2-endbr clang-O0 clang-O2 clang-O2-fp)
	rounds=(--all)
fi
failed=0

make -s -j "$(nproc)" hooks-tests > "$out.log" 2>&1 || {
	echo "not ok hooks: make hooks-tests failed: $(grep -m 1 -E 'error|Error' "$out.log")"
	exit 1
}

# What runs at a hook calls nothing outside: a function of the C library may use vector registers.
calls=$(nm -u "${out%-tests}/hooks/call.o" | awk '{ print $2 }' | grep -vE '^(engine_(live|ops)|hooks_region|threads_get|_GLOBAL_OFFSET_TABLE_)$')
if [ -z "$calls" ]; then echo "ok hooks: what runs at a hook calls nothing outside"; else
	echo "not ok hooks: what runs at a hook calls nothing outside: $calls"
	failed=1
fi

for build in "${builds[@]}"; do
	"$out/test_engine-$build" "${rounds[@]}" > "$out/log" 2>&1
	status=$?
	sed -E "s/^((not )?ok|skip) /&$build: /" "$out/log"
	[ $status = 0 ] || failed=1
	grep -qE '^(ok|not ok|skip) ' "$out/log" || echo "not ok $build: status $status"
done
exit $failed
