#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# seeds.sh - makes what the fuzzers begin with, in .output/fuzz/seeds: tests/fuzz/seeds.sh SEEDS-PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."

seeds=.output/fuzz/seeds
rm -rf "$seeds"
mkdir -p "$seeds"/{trace,elf,dwarf,agent,hooks,saved,python,payload}
for file in tests/traces/*.ctrace; do
	"$1" trace "$file" "$seeds/trace"
done
for what in agent hooks python payload; do
	"$1" $what "$seeds/$what"
done
for how in "-O1" "-O1 -g" "-O1 -g -gdwarf-4 -gz" "-O1 -s"; do
	# shellcheck disable=SC2086
	${CC:-gcc} $how -shared -fPIC -nostdlib -o "$seeds/elf/lib${how// /}" tests/fuzz/seed.c
done
for file in "$seeds"/elf/*-g; do
	"$1" dwarf "$file" "$seeds/dwarf"
done
