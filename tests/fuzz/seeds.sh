#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# seeds.sh - makes what the fuzzers begin with, in .output/fuzz/seeds: tests/fuzz/seeds.sh SEEDS-PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."

seeds=.output/fuzz/seeds
rm -rf "$seeds"
mkdir -p "$seeds"/{trace,elf,functions,device,dwarf,agent,hooks,saved,python,payload}
for file in tests/traces/*.ctrace; do
	"$1" trace "$file" "$seeds/trace"
done
for what in agent hooks python payload device; do
	"$1" $what "$seeds/$what"
done
for how in "-O1" "-O1 -g" "-O1 -g -gdwarf-4 -gz" "-O1 -s"; do
	# shellcheck disable=SC2086
	${CC:-gcc} $how -shared -fPIC -nostdlib -o "$seeds/elf/lib${how// /}" tests/fuzz/seed.c
done
# what fuzz_functions.c takes has a letter in front
for how in "-O1 -fno-tree-vectorize" "-O1 -s"; do
	# shellcheck disable=SC2086
	${CC:-gcc} $how -shared -fPIC -nostdlib -o "$seeds/library" tests/fuzz/operators.c
	{ printf F && cat "$seeds/library"; } > "$seeds/functions/lib${how// /}"
done
printf 'R\x55\x48\x89\xe5\x5d\xc3' > "$seeds/functions/code"
printf 'S(Tensor(a!) self, Tensor? other, int[2] n=[1, 1], *, Scalar alpha=1) -> (Tensor(a!), Tensor)' > "$seeds/functions/schema"
printf 'N_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_' > "$seeds/functions/symbol"
{ printf 'Cglibc-ld.so.cache1.1\1' && head -c 31 /dev/zero && printf '\x48\0\0\0\x48' && head -c 15 /dev/zero && printf 'libcuda.so.1'; } \
	> "$seeds/functions/cache"
printf 'P.version 8.0\n.target sm_80 // \n.visible .entry /* */ kernel(.param .u64 a) { ret; }' > "$seeds/device/ptx"
{ printf X && xz -0 -c "$seeds/library"; } > "$seeds/device/symbols"
rm "$seeds/library"
for file in "$seeds"/elf/*-g; do
	"$1" dwarf "$file" "$seeds/dwarf"
done
