#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the agent as a file: what it needs of the system it is loaded into, its offsets and ids against CUDA's headers, and the
# real libcupti where there is no driver. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`.
cd "$(dirname "$0")/../.." || exit 1
out=${OUTPUT:-.output}
agent=$out/agent/libcudatrace-agent.so
cuda=${CUDA_HOME:-/usr/local/cuda}
failed=0
ok() { echo "ok $1"; }
not_ok() {
	echo "not ok $1: $2"
	failed=1
}
skip() { echo "skip $1: $2"; }

make -s "$agent" "$out/agent/params_dump" > /dev/null || exit 1

# ---- what it needs ----
newest=$(objdump -T "$agent" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
if [ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ]; then
	ok "no symbol newer than glibc 2.17 ($newest)"
else
	not_ok "no symbol newer than glibc 2.17" "$(objdump -T "$agent" | grep "GLIBC_$newest" | awk '{ print $NF }' | tr '\n' ' ')"
fi
needed=$(readelf -d "$agent" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v -x -E 'libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-.*' | tr '\n' ' ')
if [ -z "$needed" ]; then ok "needs libc, libdl and libpthread alone"; else not_ok "needs libc, libdl and libpthread alone" "$needed"; fi
exports=$(nm -D --defined-only "$agent" | awk '{ print $3 }' | sort | tr '\n' ' ')
if [ "$exports" = 'InitializeInjection InitializeInjectionNvtx2 cudatrace_agent_start cudatrace_agent_stop ' ]; then
	ok "exports four functions"
else
	not_ok "exports four functions" "$exports"
fi
stack=$(readelf -lW "$agent" | awk '$1 == "GNU_STACK" { print $7 }')
if [ "$stack" = RW ]; then ok "no executable stack"; else not_ok "no executable stack" "$stack"; fi

# ---- CUDA's headers ----
if [ -e "$cuda/include/cupti.h" ]; then
	why=$(gcc -std=gnu11 -I"$cuda/include" -fsyntax-only tests/agent/layout.c 2>&1)
	if [ -z "$why" ]; then ok "records and numbers as in cupti.h"; else not_ok "records and numbers as in cupti.h" "$(grep -m 3 error <<< "$why" | tr '\n' ' ')"; fi
	why=$(tests/agent/params.py "$out/agent/params_dump" "$cuda/include" 2>&1)
	if grep -q '^ok params' <<< "$why"; then ok "parameters as in CUDA's headers"; else not_ok "parameters as in CUDA's headers" "$(tail -n 3 <<< "$why" | tr '\n' ' ')"; fi
else
	skip "records and numbers as in cupti.h" "no CUPTI headers in $cuda/include"
	skip "parameters as in CUDA's headers" "no CUPTI headers in $cuda/include"
fi

# ---- no driver: CUPTI is not called, because one of its versions does not survive it ----
make -s standin > /dev/null || exit 1
driver_here=$(ldconfig -p | grep 'libcuda\.so\.1')
if [ -n "$driver_here" ]; then
	skip "no CUPTI without a libcuda" "there is a driver"
else
	said=$(timeout 300 python3 tests/agent/no_driver.py "$agent" "$out/standin/libcupti.so.13" 2>&1)
	if grep -q '^version 0$' <<< "$said" && grep -q 'there is no CUDA driver (libcuda.so.1: cannot open .*): device work is not shown' <<< "$said" &&
		grep -q '^bye$' <<< "$said"; then
		ok "no CUPTI without a libcuda"
	else
		not_ok "no CUPTI without a libcuda" "$(tail -n 4 <<< "$said" | tr '\n' ' ')"
	fi
fi

# ---- the real CUPTI, with a driver that has no device ----
real=$(find "$cuda/lib" "$cuda/lib64" "$cuda/extras/CUPTI/lib64" -name 'libcupti.so.1?' 2> /dev/null | head -n 1)
if [ -z "$real" ]; then
	skip "the real CUPTI without a driver" "no libcupti"
elif [ -n "$driver_here" ]; then
	skip "the real CUPTI without a driver" "there is a driver"
else
	said=$(LD_LIBRARY_PATH=$out/standin/none timeout 300 python3 tests/agent/no_driver.py "$agent" "$real" 2>&1)
	if grep -q 'finds no CUDA driver (CUPTI_ERROR_UNKNOWN)' <<< "$said" && grep -q 'names: [89][0-9][0-9]\|names: 1[0-9][0-9][0-9]' <<< "$said" &&
		grep -q '^bye$' <<< "$said"; then
		ok "the real CUPTI without a driver"
	else
		not_ok "the real CUPTI without a driver" "$(tail -n 4 <<< "$said" | tr '\n' ' ')"
	fi
fi
exit $failed
