# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# stat.sh - `cudatrace stat`: what is counted in the kernel is what was called. Sourced by run.sh.

# stat_of NAME FIELD: of the JSON in $T/stat.json, summed over the sections runtime and driver.
stat_of() {
	python3 - "$T/stat.json" "$1" "$2" <<- 'E'
		import json, sys
		d = json.load(open(sys.argv[1]))
		print(sum(r[sys.argv[3]] for s in ("runtime", "driver") for r in d[s] if r["name"] == sys.argv[2]))
	E
}

case_stat_counts() {
	ct stat --json -o "$T/stat.json" -- "$CALLS" mix 500
	ok_rc
	expect "cudaMalloc" "$(stat_of cudaMalloc calls)" 501
	expect "cudaFree" "$(stat_of cudaFree calls)" 501
	expect "failed" "$(stat_of cudaMalloc failed)" 0
}

case_stat_same_as_the_rows() {
	ct stat --json -o "$T/stat.json" -- "$PWD/cuda_events_test"
	ok_rc
	ct_json -- "$PWD/cuda_events_test"
	python3 - "$T/stat.json" "$T/out" <<- 'E' || fail "the counts are not those of the rows"
		import collections, json, sys
		d = json.load(open(sys.argv[1]))
		have = {r["name"]: r["calls"] for s in ("runtime", "driver") for r in d[s]}
		want = collections.Counter(r["api"] for r in map(json.loads, open(sys.argv[2])) if r.get("type") == "call")
		sys.exit(have != dict(want) and f"{have} {want}" or 0)
	E
}
