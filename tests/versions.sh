#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# versions.sh - the tables of user/api against each version of CUDA that tests/wheels.sh --all fetched: its headers
# (scripts/check_api.py), and the functions that its libcudart exports. Prints `ok VERSION`, `not ok VERSION: why`, and the counts.
#
#     tests/versions.sh             the checks
#     tests/versions.sh --table     the table of docs/versions.md
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

out=${OUTPUT:-.output}/wheels
passed=0 failed=0
table=false
[ "${1:-}" != --table ] || table=true

# What NVIDIA exports and no header declares.
undeclared='^(libcudart\.so\.[0-9.]+|cudaSubgrid(Create|WorkerGridCreate|WorksetCreate))$'

# exported LIBRARY: its functions, without the suffix of the per-thread default stream
exported() {
	nm -D --defined-only "$1" | awk '{ print $3 }' | sed -E 's/@.*//; s/_(ptsz|ptds)$//' | grep -Ev "$undeclared" | sort -u
}

grep -oE '^API\w*\(\w+' user/api/runtime.def | sed 's/.*(//' | sort -u > "$out/rows"
for folder in "$out"/*/include; do
	folder=${folder%/include}
	[ -e "$folder/include/cuda.h" ] || continue
	version=${folder##*/}
	number=$(echo "$version" | awk -F. '{ print $1 * 1000 + $2 * 10 }')
	checked=$(python3 scripts/check_api.py --include "$folder/include" --version "$number" 2>&1)
	status=$?
	if [ "$status" = 77 ]; then
		echo "skip versions: $checked"
		continue
	fi
	library=$(ls "$folder"/libcudart.so.*)
	exported "$library" > "$out/exported"
	unknown=$(comm -23 "$out/exported" "$out/rows" | tr '\n' ' ')
	if [ "$status" != 0 ]; then
		echo "not ok $version: $(echo "$checked" | grep -v 'all agree' | head -n 3)"
		failed=$((failed + 1))
	elif [ -n "$unknown" ]; then
		echo "not ok $version: libcudart exports functions without a row: $unknown"
		failed=$((failed + 1))
	else
		$table || echo "ok $version"
		passed=$((passed + 1))
	fi
	! $table || echo "$checked" | sed -nE "s/^check_api: CUDA [0-9]+: ([0-9]+) functions, ([0-9]+) offsets.*all agree\$/| $version | \1 | $(grep -c . "$out/exported") | \2 |/p"
done
$table || [ $((passed + failed)) != 0 ] || echo "skip versions: tests/wheels.sh --all fetched no version of CUDA"
$table || echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
