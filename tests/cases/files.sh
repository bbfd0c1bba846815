# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# files.sh - cases of outputs that are files for other programs: live, and by way of a recording.

case_files_csv() {
	ct --format csv -k -e cudaMalloc -o "$T/a.csv" -- "$CHAIN" often 250
	ok_rc
	expect "rows" "$(python3 - "$T/a.csv" <<'PY'
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1], newline=""), strict=True) if r["type"] == "call"]
print(len(rows), {r["name"] for r in rows}, {r["result"] for r in rows}, {r["size_bytes"] for r in rows},
      all(int(r["duration_ns"]) > 0 for r in rows), sorted(int(r["correlation"]) for r in rows) == list(range(1, 251)))
stacks = {r["stack_id"]: r["stack"] for r in rows if r["stack"]}
print(len(stacks) == sum(r["stack"] != "" for r in rows), {r["stack_id"] for r in rows} == set(stacks), all("inner " in s for s in stacks.values()))
PY
)" "250 {'cudaMalloc'} {'cudaSuccess'} {'128'} True True
True True True"
}

case_files_html() {
	ct --format html -e cudaMalloc -o "$T/a.html" -- "$CHAIN" often 250
	ok_rc
	python3 "$ROOT/tests/timeline/page.py" "$T/a.html" > "$T/page" || fail "the page cannot be read"
	expect "calls" "$(grep -c '^call thread [0-9]* \[chain ([0-9]*)\] [0-9]*+[0-9]* cudaMalloc #' "$T/page")" 250
	grep -q '^title: ".*/chain often 250"$' "$T/page" || fail "$(grep ^title "$T/page")"
}

case_files_speedscope() {
	ct --format speedscope -e cudaMalloc -o "$T/a.json" -- "$CHAIN" often 250
	ok_rc
	expect "file" "$(python3 "$ROOT/tests/export/check_speedscope.py" "$T/a.json")" "$T/a.json: good"
	expect "sum" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
f, p = d["shared"]["frames"], d["profiles"][0]
print(p["endValue"], [f[i]["name"] for i in p["samples"][0]][-4:], f[p["samples"][0][-2]]["file"].endswith("chain.c"))' "$T/a.json")" \
		"250 ['outer', 'middle', 'inner', 'cudaMalloc'] True"
}

# What was recorded is exported as it would have been printed.
case_files_export() {
	ct record -k -e cudaMalloc -o "$T/a.ctrace" -- "$CHAIN" often 250
	ok_rc
	ct export --to csv "$T/a.ctrace"
	ok_rc
	ct replay --format csv -k --nested -o "$T/b.csv" "$T/a.ctrace"
	ok_rc
	cmp "$T/a.csv" "$T/b.csv" || fail "not what replay prints"
	expect "calls" "$(grep -c ^call, "$T/a.csv")" 250
	ct export --to folded -o "$T/a.folded" "$T/a.ctrace"
	ok_rc
	expect "folded" "$(cat "$T/a.folded")" "chain;main;outer;middle;inner;cudaMalloc 250"
}
