#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# versions.sh - the agent with the CUPTI of each minor version of CUDA, which tests/wheels.sh --cupti fetches: tests/agent/versions.sh [--table]
#
# Where there is no libcuda the agent has to say so, and not to call CUPTI: that of 13.2 ends the program. With a driver that has no device
# (.output/standin/none) CUPTI comes as far as cuptiSubscribe(): before that the agent has asked it for its version and for the names of all
# functions that it knows, afterwards it has to say why nothing is recorded, and end. (With the stand-in's driver the agent refuses every real
# CUPTI: the case gpu_versions.) A version whose own cuptiGetVersion() ends a program with such a driver, or says nothing there, is
# skipped in that part. Prints `ok VERSION`, `not ok VERSION: why`, `skip VERSION: why`; --table prints the table of docs/versions.md.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
out=${OUTPUT:-.output}
table=false failed=0 n=0
[ "${1:-}" != --table ] || table=true
make -s "$out/agent/libcudatrace-agent.so" standin > /dev/null || exit 1

# alone LIBCUPTI: what it says of its version to a program whose driver has no device; "": nothing
alone() {
	LD_LIBRARY_PATH=$out/standin/none timeout 300 python3 -c 'import ctypes, sys
version = ctypes.c_uint()
print("" if ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(version)) else version.value)' "$1" 2> /dev/null
}

result() {
	$table || echo "$1 cupti $2${3:+: $3}"
	! $table || echo "| $2 | ${4:-} | ${5:-} | $3 |"
}

for folder in $(printf '%s\n' "$out"/wheels/cupti/*/ | sort -V); do
	library=$(printf '%s\n' "$folder"libcupti.so.* | head -n 1)
	version=$(basename "$folder")
	[ -e "$library" ] || continue
	n=$((n + 1))
	said=$(timeout 300 python3 tests/agent/no_driver.py "$out/agent/libcudatrace-agent.so" "$library" 2>&1)
	if ! grep -q 'there is no CUDA driver (libcuda.so.1: ' <<< "$said" || ! grep -q '^bye$' <<< "$said"; then
		result "not ok" "$version" "without a libcuda: $(tail -n 2 <<< "$said" | tr '\n' ' ')"
		failed=1
		continue
	fi
	$table || echo "ok cupti $version without a libcuda"
	{ own=$(alone "$library"); } 2> /dev/null
	status=$?
	if [ $status -gt 128 ]; then
		result skip "$version" "its own cuptiGetVersion() ends a program whose driver has no device (signal $((status - 128)))"
		continue
	elif [ -z "$own" ]; then
		result skip "$version" "cuptiGetVersion() fails where the driver has no device"
		continue
	fi
	said=$(LD_LIBRARY_PATH=$out/standin/none timeout 300 python3 tests/agent/no_driver.py "$out/agent/libcudatrace-agent.so" "$library" 2>&1)
	reported=$(sed -n 's/^version //p' <<< "$said") names=$(sed -n 's/^names: //p' <<< "$said")
	reason=$(grep -o 'finds no CUDA driver (CUPTI_ERROR_[A-Z_]*)' <<< "$said" | head -n 1)
	if [ "$reported" = "$own" ] && [ "${names:-0}" -gt 1000 ] && [ -n "$reason" ] && grep -q '^bye$' <<< "$said"; then
		if $table; then result ok "$version" "$reason" "$reported" "$names"; else result ok "$version"; fi
	else
		result "not ok" "$version" "$(tail -n 2 <<< "$said" | tr '\n' ' ')"
		failed=1
	fi
done
[ $n != 0 ] || echo "skip cupti: tests/wheels.sh --cupti fetched none"
exit $failed
