# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# exports.sh - cases about the formats for other programs, live: what is in the files, and what becomes of them.

# The calls in a Chrome trace, as the table's JSON names them, or why it is none.
chrome_calls() {
	python3 - "$1" <<- 'EOF'
		import gzip, json, sys
		path = sys.argv[1]
		trace = json.load((gzip.open if path.endswith(".gz") else open)(path))
		calls = [e["name"] for e in trace["traceEvents"] if e.get("cat") in ("cuda_runtime", "cuda_driver")]
		print(len(calls), *sorted(set(calls)))
	EOF
}

case_chrome() {
	ct --format chrome -o "$T/trace.json" -e memory,copy -- "$CALLS" mix 3 2 1
	ok_rc
	ct_json -e memory,copy -- "$CALLS" mix 3 2 1
	expect "the calls" "$(chrome_calls "$T/trace.json")" "$(grep -c '^{"type":"call"' "$T/out") cudaFree cudaMalloc cudaMemcpy"
}

# A file for each process, with its place in the job; compressed.
case_chrome_split() { # long
	local file n=0
	# they live on for a second after their first call, so that their environment can be read
	STANDIN_DELAY_US=cudaMalloc:1000000 RANK=3 WORLD_SIZE=8 ct -f --format chrome -o "$T/trace.%p.json.gz" -e memory -- sh -c "'$CALLS' sizes 64 64 & '$CALLS' sizes 64 64; wait"
	ok_rc
	for file in "$T"/trace.*.json.gz; do
		n=$((n + 1))
		gzip -t "$file" || fail "$file is no gzip"
		expect "the calls" "$(chrome_calls "$file")" "2 cudaMalloc"
		zcat "$file" | grep -q '"distributedInfo":{"rank":3,"world_size":8}' || fail "no rank in $(zcat "$file" | head -n 1)"
	done
	expect "the files" "$n" 2
}

# Perfetto's own definitions look at such files in tests/export; here: that a live one is whole, plain and compressed.
case_perfetto() { # long
	ct --format perfetto -o "$T/trace.pftrace" -- "$CALLS" mix 50 50 50
	ok_rc
	expect "the first packet" "$(head -c 15 "$T/trace.pftrace" | od -An -tx1 | tr -d ' \n')" 0a0d50016801da0303d00303b80501
	expect "names sent once" "$(grep -a -o cudaMemset "$T/trace.pftrace" | wc -l)" 1
	ct --format perfetto -o "$T/trace.pftrace.gz" -- "$CALLS" mix 50 50 50
	gzip -t "$T/trace.pftrace.gz" || fail "not gzip"
	(($(stat -c %s "$T/trace.pftrace.gz") < $(stat -c %s "$T/trace.pftrace"))) || fail "it is not smaller"
}

case_json_gz() {
	ct --format json -o "$T/rows.jsonl.gz" -- "$CALLS" queries 500
	ok_rc
	zcat "$T/rows.jsonl.gz" > "$T/out" || fail "not gzip"
	expect_rows cudaStreamQuery 500
	grep -q '^{"type":"end","reason":"finished"' "$T/out" || fail "the end is missing: $(tail -n 1 "$T/out")"
}

case_binary_terminal() {
	command -v script > /dev/null || skip "there is no script(1)"
	script -q -e -c "'$CUDATRACE' --format perfetto -- true" "$T/typed" > "$T/out" 2>&1 < /dev/null && fail "written to a terminal"
	grep -q 'give -o FILE' "$T/out" || fail "$(cat "$T/out")"
}

# A name that a program chose is no formula for a spreadsheet, and numbers stay numbers.
case_csv_formula() {
	cp "$CALLS" "$T/=1+1"
	LD_LIBRARY_PATH=$STANDIN ct --format csv -o "$T/csv" -e cudaMalloc -- "$T/=1+1" mix 1 1 1
	ok_rc
	expect "process, its number, result" "$(python3 -c '
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    if r["type"] == "call":
        print(r["process"], int(r["pid"]) > 0, r["result"], int(r["duration_ns"]) > 0)' "$T/csv" | sort -u)" "'=1+1 True cudaSuccess True"
	LD_LIBRARY_PATH=$STANDIN ct stat --csv --by process -o "$T/csv" -e cudaMalloc -- "$T/=1+1" mix 1 1 1
	ok_rc
	expect "stat: names" "$(python3 -c '
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    if "1+1" in r["name"]:
        print(r["name"][:5], int(r["calls"]))' "$T/csv" | sort -u)" "'=1+1 2"
}

# Outputs of a recording are the same bytes each time, however much time the machine gives to it.
case_replay_same_each_time() {
	local n first sum
	for n in $(seq 12); do
		# shellcheck disable=SC2312 # the sum says it
		sum=$("$CUDATRACE" replay --format json "$ROOT/docs/step.ctrace" 2> "$T/err" | sha256sum)
		first=${first:-$sum}
		[ "$sum" = "$first" ] || fail "run $n is another one"
	done
	[ "$("$CUDATRACE" replay --format json "$ROOT/docs/step.ctrace" 2> "$T/err" | wc -l)" -gt 5000 ] || fail "few lines"
}
