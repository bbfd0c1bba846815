# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# stat.sh - `cudatrace stat` and `compare`: what is counted is what was called, and what a change of it is said to be. Sourced by run.sh.

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
	# what it cost is said: each of these calls hit a probe, and the driver's calls inside them
	expect "hits of probes" "$(python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))["summary"]
print(s["probe_hits"] > s["total_api_calls"] == 1002 and s["own_cost_ns"] > 0)' "$T/stat.json")" True
}

case_stat_same_as_the_rows() {
	ct stat --json -o "$T/stat.json" -- "$SAMPLE"
	ok_rc
	ct_json -- "$SAMPLE"
	python3 - "$T/stat.json" "$T/out" <<- 'E' || fail "the counts are not those of the rows"
		import collections, json, sys
		d = json.load(open(sys.argv[1]))
		have = {r["name"]: r["calls"] for s in ("runtime", "driver") for r in d[s]}
		want = collections.Counter(r["name"] for r in map(json.loads, open(sys.argv[2])) if r.get("type") == "call")
		sys.exit(have != dict(want) and f"{have} {want}" or 0)
	E
}

# sums FILE: calls, failures and bytes of each row of a saved stat, one a line, without times.
sums() {
	python3 - "$1" <<- 'E'
		import json, re, sys
		d = json.load(open(sys.argv[1]))
		for s in ("runtime", "driver", "kernels", "copies"):
		    for r in d[s]:
		        print(s, re.sub("^[^ ]+ [0-9/]+ |0x[0-9a-f]+", "", r["name"]), r["calls"], r["failed"], r["bytes"], r.get("max_bytes"))
	E
}

# Counted in the kernel, told one by one, and read from a file: the same numbers of two runs of one program.
case_stat_same_live_and_stored() { # long
	local by n
	n=$(random 5 50)
	ct record --gpu -o "$T/w.ctrace" -- "$WORK" -t 2 -s "$n" return
	ok_rc
	for by in function process kernel cgroup device; do
		ct stat --gpu --by $by --json -o "$T/live.json" -- "$WORK" -t 2 -s "$n" return
		ok_rc
		ct stat --by $by --json -o "$T/file.json" "$T/w.ctrace"
		ok_rc
		expect "by $by" "$(sums "$T/live.json" | sort)" "$(sums "$T/file.json" | sort)"
	done
	expect "peak of memory" "$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["summary"]["peak_bytes"])' "$T/live.json")" 8192
	expect "launches" "$(sums "$T/live.json" | grep -c "^kernels .*vec_mul(float\*, int) $((2 * n)) 0 0")" 1
	expect "bytes" "$(sums "$T/live.json" | grep -c "^copies .*memcpy HtoD $((2 * n)) 0 $((2 * n * 4096)) 4096")" 1
	expect "kernel time" "$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["summary"]["kernel_time_ns"])' "$T/live.json")" \
		$((2 * n * 5000))
}

case_stat_by_thread() {
	local want got
	ct stat --by thread --json -o "$T/stat.json" -- "$CALLS" threads 6 200 0
	ok_rc
	want=$(sed -n 's/^thread \([0-9]*\) \([0-9]*\)$/\1 \2/p' "$T/out" | sort)
	got=$(python3 -c '
import json, sys
for r in json.load(open(sys.argv[1]))["runtime"]:
    who, what = r["name"].split("  ")
    if what == "cudaStreamQuery":
        print(who.split("/")[1], r["calls"])' "$T/stat.json" | sort)
	expect "calls of each thread" "$got" "$want"
}

# A function that is given no stream is not booked under the default stream.
case_stat_by_stream() {
	ct record -o "$T/r.ctrace" -- "$CALLS" failing 5 2
	ok_rc
	ct stat --by stream --json -o "$T/file.json" "$T/r.ctrace"
	ok_rc
	ct stat --by stream --json -o "$T/live.json" -- "$CALLS" failing 5 2
	ok_rc
	for f in live file; do
		expect "$f" "$(python3 -c '
import json, re, sys
print(*sorted((re.sub("^[^ ]+ [0-9]+ ", "", r["name"]), r["calls"]) for r in json.load(open(sys.argv[1]))["runtime"]))' "$T/$f.json")" \
			"('no stream  cudaSetDevice', 2) ('stream 0x0  cudaStreamQuery', 5)"
	done
}

case_stat_by_process() {
	local child
	ct stat -f --by process --json -o "$T/stat.json" -- "$CALLS" fork 30 12
	ok_rc
	child=$(sed -n 's/^child //p' "$T/out")
	expect "the child's calls" "$(stat_of "calls $child  cudaStreamQuery" calls)" 12
	expect "all calls" "$(python3 -c '
import json, sys
print(sum(r["calls"] for r in json.load(open(sys.argv[1]))["runtime"] if r["name"].endswith("cudaStreamQuery")))' "$T/stat.json")" 42
}

case_stat_filters() { # long
	ct stat --failed --json -o "$T/stat.json" -- "$CALLS" failing 20 7
	ok_rc
	expect "failed calls" "$(stat_of cudaSetDevice calls) $(stat_of cudaSetDevice failed) $(stat_of cudaStreamQuery calls)" "7 7 0"
	ct stat --min-size 1000 --json -o "$T/stat.json" -- "$CALLS" sizes 10 999 1000 5000
	ok_rc
	expect "large allocations" "$(stat_of cudaMalloc calls) $(stat_of cudaMalloc bytes)" "2 6000"
	ct stat --comm 'c*s' --json -o "$T/stat.json" -- "$CALLS" sizes 10 20
	ok_rc
	expect "of a name" "$(stat_of cudaMalloc calls)" 2
	ct stat --comm 'x*' --json -o "$T/stat.json" -- "$CALLS" sizes 10 20
	ok_rc
	expect "of another name" "$(stat_of cudaMalloc calls)" 0
	ct stat --min-duration 1h --json -o "$T/stat.json" -- "$CALLS" sizes 10 20
	ok_rc
	expect "that took an hour" "$(stat_of cudaMalloc calls)" 0
	ct stat --no-return --json -o "$T/stat.json" -- "$CALLS" sizes 10 20
	ok_rc
	expect "entries alone" "$(stat_of cudaMalloc calls)" 2
	! grep -q total_ns "$T/stat.json" || fail "times that nobody can know: $(grep -m 1 total_ns "$T/stat.json")"
	! grep -q total_api_time "$T/stat.json" || fail "a sum of times that nobody can know"
}

# memory_of FILE: what is held and could not be told, and what calls gave back, by function.
memory_of() {
	python3 - "$1" <<- 'E'
		import json, sys
		d = json.load(open(sys.argv[1]))
		back = {r["name"]: r["bytes"] for s in ("runtime", "driver") for r in d[s] if "Free" in r["name"] or "Release" in r["name"] or "Unregister" in r["name"]}
		print(*d["memory"].values(), *(f"{n}={b}" for n, b in sorted(back.items())))
	E
}

# Launches by the runtime, by both, and by the driver alone: each is counted once, whatever the process did before.
case_stat_launches() {
	local name want
	ct stat --json -o "$T/stat.json" -- "$BIN/launches" 3000
	ok_rc
	expect "kinds of launches" "$(wc -l < "$T/out")" 2
	while read -r name want; do
		expect "$name" "$(stat_of "$name" calls)" "$want"
	done < "$T/out"
	expect "launches" "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["summary"]["launches"])' "$T/stat.json")" 15000
}

# Sizes that cannot be are in no sum, which they could make wrap around to nothing, and are counted: by probes, by hooks and of a recording.
case_stat_impossible_sizes() { # undisturbed
	local p from more
	p=$(pythons | head -n 1)
	[ -n "$p" ] || skip "no Python from 3.10 to 3.14 here"
	cat > "$T/odd.py" << 'EOF'
import ctypes, sys
copy = ctypes.CDLL(sys.argv[1]).cudaMemcpyPeer
for size in (1000000, -1000000, 1000000, 1 << 48, (1 << 48) - 1, -1, 1 << 63, 1000000):
    copy(None, 0, None, 0, ctypes.c_size_t(size))
EOF
	ct record -o "$T/odd.ctrace" -- "$p" "$T/odd.py" "$STANDIN/libcudart.so"
	ok_rc
	for from in probes hooks recording; do
		case $from in
			recording) more=("$T/odd.ctrace") ;;
			probes) more=(-- "$p" "$T/odd.py" "$STANDIN/libcudart.so") ;;
			hooks)
				[ "$(uname -m)" = x86_64 ] || continue
				more=(--source=hooks -- "$p" "$T/odd.py" "$STANDIN/libcudart.so")
				;;
		esac
		ct stat --json -o "$T/stat.json" "${more[@]}"
		ok_rc
		expect "$from" "$(python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
print(s["runtime"][0]["calls"], s["runtime"][0]["bytes"], s["traffic"][0]["bytes"], s["summary"]["bytes_moved"], s["summary"]["impossible_sizes"])' "$T/stat.json")" \
			"8 $(((1 << 48) + 2999999)) $(((1 << 48) + 2999999)) $(((1 << 48) + 2999999)) 4"
	done
	ct advise "$T/odd.ctrace"
	ok_rc
	expect "advise" "$(grep -c '^4 calls have sizes that cannot be, of 256 TiB or more: they are in no sum\.$' "$T/out")" 1
	ct export --to folded --weight bytes -o "$T/folded" "$T/odd.ctrace"
	ok_rc
	expect "folded" "$(python3 -c 'import sys; print(sum(int(line.split()[-1]) for line in open(sys.argv[1])))' "$T/folded")" $(((1 << 48) + 2999999))
	says 'calls with a size that cannot be, of 256 TiB or more, are left out: 4'
	ct stat "$T/odd.ctrace"
	ok_rc
	expect "the line" "$(grep -c '^ sizes that cannot be  *4 calls or records: 256 TiB or more, and in no sum$' "$T/out")" 1
}

# A call that frees does not say how much: it is what was taken there, counted in the kernel and of a recording alike.
memory_is() { # MODE WANT...
	local mode=$1
	shift
	ct stat --json -o "$T/live.json" -- "$BIN/memory" "$mode"
	ok_rc
	expect "$mode, live" "$(memory_of "$T/live.json")" "$*"
	ct record -o "$T/$mode.ctrace" -- "$BIN/memory" "$mode"
	ok_rc
	ct stat --json -o "$T/file.json" "$T/$mode.ctrace"
	ok_rc
	expect "$mode, of a recording" "$(memory_of "$T/file.json")" "$*"
}

case_stat_memory() {
	memory_is threads 40960 0 0 0 cudaFree=368640
	memory_is fork 1300 0 0 0
	memory_is faults 0 0 0 0 cudaFree=500 cudaFreeHost=4096
	memory_is reuse 0 0 0 0 cudaFree=10000
}

# A thread is given an address before the free of it has returned to another thread.
case_stat_memory_swap() {
	STANDIN_REUSE=1 memory_is swap 0 0 0 0 cudaFree=1500
	STANDIN_REUSE=2 memory_is swap 0 0 0 0 cudaFree=2000
}

# What a free that failed, or was left by a jump, did not free is freed by the next one.
case_stat_memory_failed_free() {
	STANDIN_FAIL=cudaFree:1 memory_is again 0 0 0 0 cuMemFree_v2=500 cudaFree=0
	ct stat --json -E STANDIN_BLOCK="cudaFree:$T/never" -o "$T/live.json" -- "$BIN/jumps" free 3
	ok_rc
	expect "left, live" "$(memory_of "$T/live.json")" "0 0 0 0 cudaFree=0 cudaFreeAsync=1500"
	ct record -E STANDIN_BLOCK="cudaFree:$T/never" -o "$T/left.ctrace" -- "$BIN/jumps" free 3
	ok_rc
	ct stat --json -o "$T/file.json" "$T/left.ctrace"
	ok_rc
	expect "left, of a recording" "$(memory_of "$T/file.json")" "0 0 0 0 cudaFree=0 cudaFreeAsync=1500"
}

case_stat_memory_families() { # long
	memory_is pool 2500 0 0 0 cudaFreeAsync=1000
	memory_is virtual 0 0 0 0 cuMemRelease=8388608
	memory_is host 0 20000 0 0 cudaFreeHost=10000 cudaHostUnregister=8192
	memory_is driver 2010 0 0 0 cuMemFree_v2=1000
	# without results there is nothing to tell it by, and nothing is said
	ct stat --no-return --json -o "$T/live.json" -- "$BIN/memory" leak
	ok_rc
	expect "without returns" "$(python3 -c 'import json, sys; print("memory" in json.load(open(sys.argv[1])))' "$T/live.json")" False
}

# What was there before is of unknown size, and said to be.
case_stat_memory_attached_late() {
	local fd
	coproc LATE { exec "$BIN/memory" -w leak; }
	fd=${LATE[1]}
	local pid=$LATE_PID
	read -r _ <&"${LATE[0]}"
	"${BACKGROUND[@]}" "$CUDATRACE" stat -v --json -o "$T/stat.json" -p "$pid" 2> "$T/err" &
	wait_for 20 grep -q 'cudatrace: ready' "$T/err"
	echo >&"$fd"
	wait $! || fail "status $?"
	expect "memory" "$(memory_of "$T/stat.json")" "3145828 0 1 0 cudaFree=10000"
}

# A map that is full: what found no room is counted, and said.
case_stat_full() { # long
	ct stat --by stream --json -o "$T/stat.json" -- "$BIN/kinds" 70000
	ok_rc
	expect "counted and left out" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(d["summary"]["total_api_calls"], d["lost"])' "$T/stat.json")" "65546 {'tally_full': 4464}"
	says "4464 calls that found no room among the counts"
	ct stat --by stream --strict -o /dev/null -- "$BIN/kinds" 70000
	ok_rc 3
}

case_stat_golden() {
	local f hist
	for f in table json csv; do
		hist=(--hist)
		[ $f != csv ] || hist=() # it has none
		ct stat "${hist[@]}" --format $f -o "$T/stat.$f" tests/traces/two.ctrace
		ok_rc
		diff -u "tests/golden/stat.$f" "$T/stat.$f" || fail "differs from tests/golden/stat.$f: $(diff "tests/golden/stat.$f" "$T/stat.$f" | head -n 4)"
	done
	LC_ALL=C.UTF-8 ct stat --hist -o "$T/stat.utf8" tests/traces/two.ctrace
	diff -u tests/golden/stat.utf8 "$T/stat.utf8" || fail "differs from tests/golden/stat.utf8"
	ct stat --by process -o "$T/stat.table" tests/traces/two.ctrace
	ok_rc
	diff -u tests/golden/stat_process.table "$T/stat.table" || fail "differs from tests/golden/stat_process.table"
}

# ---- several runs ----

# What CMD may do, and how it is scheduled, is in each run what it is without cudatrace.
case_stat_runs_privileges() {
	local show='echo "run"; sed -n -E "s/^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp|SigBlk|SigIgn):\s*/\1 /p" /proc/self/status; cut -d" " -f18,19,40,41 /proc/self/stat'
	for _ in 1 2 3; do
		sh -c "$show"
	done > "$T/want"
	ct stat --runs 3 -o "$T/sums" -- sh -c "$show"
	ok_rc
	diff "$T/want" "$T/out" > "$T/diff" || fail "$(tr '\n' '|' < "$T/diff")"
	ct stat --runs 4 --json -o "$T/sums" -- "$CALLS" mix 20
	ok_rc
	expect "calls of each run" "$(jq -c '[.runtime[] | select(.name == "cudaMalloc").calls]' "$T/sums" | sort | uniq -c | tr -s ' ')" " 4 [21]"
}

# A signal to it is the program's of that run, whatever that makes of it, and the last thing that is begun.
case_stat_runs_ended() {
	local sig status how ct left
	for how in dies:INT:130 dies:TERM:143 ends:INT:1 ends:TERM:1; do
		IFS=: read -r how sig status <<< "$how"
		rm -f "$T/out"
		if [ "$how" = ends ]; then
			"${BACKGROUND[@]}" "$CUDATRACE" stat --runs 3 -o "$T/sums" -- sh -c 'sleep 300 & trap "kill $!; echo got; exit 0" INT TERM; echo begun $$ $!; wait' > "$T/out" 2> "$T/err" &
		else
			"${BACKGROUND[@]}" "$CUDATRACE" stat --runs 3 -o "$T/sums" -- sh -c 'echo begun $$; exec sleep 300' > "$T/out" 2> "$T/err" &
		fi
		ct=$!
		wait_for 20 grep -qs '^begun' "$T/out"
		left="$(pgrep -P "$ct" | tr '\n' ' ') $(sed -n 's/^begun //p' "$T/out")"
		kill -"$sig" "$ct"
		within 20 ended "$ct" || fail "it runs on after SIG$sig"
		wait "$ct"
		expect "status, $how, $sig" $? "$status"
		expect "begun, $how, $sig" "$(grep -c begun "$T/out")" 1
		[ "$how" = dies ] || expect "the program's signals" "$(grep -c got "$T/out")" 1
		says "run 1 ended .*: the others are left out"
		for pid in $left; do
			within 5 ended "$pid" || fail "process $pid runs on after $how, $sig"
		done
	done
	# one that nobody can catch ends the trace, and not the program
	"${BACKGROUND[@]}" "$CUDATRACE" stat --runs 3 -o "$T/sums" -- sh -c 'echo again $$; exec sleep 300' > "$T/out" 2> "$T/err" &
	ct=$!
	wait_for 20 grep -qs '^again' "$T/out"
	left=$(pgrep -P "$ct")
	kill -KILL "$ct"
	wait "$ct"
	for pid in $left; do
		within 5 ended "$pid" || fail "the trace of a tracer that was killed runs on"
	done
	pid=$(sed -n 's/^again //p' "$T/out")
	ended "$pid" && fail "the program was ended with its tracer"
	kill "$pid"
}

# ---- compare ----

case_compare_runs() { # long
	ct stat --runs 5 --save "$T/a.json" -o "$T/tables" -- "$CALLS" mix 50
	ok_rc
	expect "tables" "$(grep -c '^Runtime API calls' "$T/tables")" 5
	ct stat --runs 5 --save "$T/b.json" -o /dev/null -- "$CALLS" mix 60
	ok_rc
	ct compare --fail-if 'cudaMalloc.calls>+10%' "$T/a.json" "$T/b.json"
	ok_rc 1
	grep -q '^ FAIL     cudaMalloc.calls>+10%: calls of cudaMalloc 51 -> 61 (+19.61 %, p 0.0040)$' "$T/out" || fail "$(grep cudaMalloc.calls "$T/out")"
	ct check --fail-if 'cudaMalloc.calls>+20%' --fail-if 'failed>0' --fail-if 'launches!=+0' "$T/a.json" "$T/b.json"
	ok_rc 0
	ct check --fail-if 'cudaMalloc.calls>+10%' --format junit -o "$T/r.xml" "$T/a.json" "$T/b.json"
	ok_rc 1
	expect "JUnit" "$(python3 -c '
import sys, xml.etree.ElementTree as e
r = e.parse(sys.argv[1]).getroot()
print(r.get("tests"), r.get("failures"), [c.find("failure") is not None for c in r.iter("testcase")])' "$T/r.xml")" "1 1 [True]"
	ct compare --format markdown -o "$T/r.md.gz" "$T/a.json" "$T/b.json"
	zcat "$T/r.md.gz" | grep -q '^| CUDA calls | 102 | 122 | +19.61 % | 0.00 % | 0.0079 | total_api_calls |$' || fail "$(zcat "$T/r.md.gz" | grep total_api_calls)"
	# of one step: ten calls more are none when a step has one
	ct compare --step cudaMalloc.calls --fail-if 'cudaMalloc.calls>+0' --fail-if 'cudaFree.calls!=+0' "$T/a.json" "$T/b.json"
	ok_rc 0
	grep -q '(5 runs), sums of one step$' "$T/out" || fail "$(head -n 1 "$T/out")"
	grep -q '^ ok       cudaMalloc.calls>+0: calls of cudaMalloc 1 -> 1 (same' "$T/out" || fail "$(grep ' ok ' "$T/out")"
	ct compare --step 10 --fail-if 'cudaMalloc.calls>+0' "$T/a.json" "$T/b.json"
	ok_rc 1
	grep -q '^ FAIL     cudaMalloc.calls>+0: calls of cudaMalloc 5.10 -> 6.10 (+19.61 %' "$T/out" || fail "$(grep FAIL "$T/out")"
	for word in 0 -1 nonsense 'cuda*.calls' cudaGraphLaunch.calls "$(printf 'x%.0s' {1..2000})"; do
		ct compare --step="$word" "$T/a.json" "$T/b.json"
		ok_rc 2
		says 'error: --step: '
	done
	ct compare --format json "$T/a.json" "$T/a.json" "$T/b.json"
	expect "JSON" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(len(d["comparisons"]), all(k in d["comparisons"][1]["metrics"] for k in ("total_api_time_ns", "memory_efficiency_gb_per_second", "kernel_utilization")))' "$T/out")" \
		"2 True"
	# one run more to what is there
	ct stat -A --save "$T/a.json" -o /dev/null -- "$CALLS" mix 50
	ct compare --fail-if 'cudaMalloc.calls!=+0' "$T/a.json" "$T/a.json"
	ok_rc
	grep -q '(6 runs)' "$T/out" || fail "not 6 runs: $(head -n 1 "$T/out")"
}

# One run says nothing of how much runs differ: there is no verdict, unless a condition is asked for.
case_compare_one_run() {
	local sentence format
	sentence="One run on each side: what differs may be noise, so there is no verdict. One needs 4 runs or more on each side ('cudatrace stat --runs 4 --save FILE -- CMD'), or --fail-if."
	ct stat --save "$T/a.json" -o /dev/null -- "$CALLS" failing 50 0
	ok_rc
	# ten times as much of everything, and failed calls
	ct record -o "$T/b.ctrace" -- "$CALLS" failing 500 20
	ok_rc
	ct compare "$T/a.json" "$T/b.ctrace"
	ok_rc
	expect "sentence" "$(grep -cxF "$sentence" "$T/out")" 1
	! grep -q 'conditions\|FAIL\|^ ok ' "$T/out" || fail "a verdict: $(grep 'conditions\|FAIL\|^ ok ' "$T/out")"
	grep -q '^ failed calls  *0  *20 ' "$T/out" || fail "the tables are missing"
	for format in markdown json junit; do
		ct compare --format $format "$T/a.json" "$T/b.ctrace"
		ok_rc
		cp "$T/out" "$T/$format"
	done
	expect "markdown" "$(grep -cxF -e '**No verdict.**' -e "$sentence" "$T/markdown")" 2
	expect "JSON" "$(python3 -c '
import json, sys
c = json.load(open(sys.argv[1]))["comparisons"][0]
print(c["no_verdict"], c["regressions"], c["conditions"], c["tested"])' "$T/json")" "True 0 [] False"
	expect "JUnit" "$(grep -c 'tests="0" failures="0" errors="0"' "$T/junit") $(grep -c testcase "$T/junit")" "2 0"
	ct check --fail-if 'failed>+0' "$T/a.json" "$T/b.ctrace"
	ok_rc 1
	grep -q '^1 of 1 conditions failed' "$T/out" || fail "$(tail -n 1 "$T/out")"
	# with a second run on a side the usual conditions are there again
	ct stat -A --save "$T/a.json" -o /dev/null -- "$CALLS" failing 50 0
	ct compare "$T/a.json" "$T/b.ctrace"
	ok_rc 1
	grep -q '^Fewer than 4 runs on a side' "$T/out" || fail "$(tail -n 2 "$T/out")"
}

# A baseline is there until there is another one to put in its place.
# The rows of the sample program: names and numbers of calls, of the runtime's table.
stat_names() {
	"$CUDATRACE" stat "$@" "$T/sample.ctrace" 2> "$T/err" | sed -n '2,/^$/p' | awk '/us|ms|ns| s/ && $NF != "total" { print $NF }'
}

case_stat_sort_and_top() {
	local key
	ct record -o "$T/sample.ctrace" -- "$SAMPLE"
	ok_rc
	stat_names --sort name > "$T/names"
	[ "$(wc -l < "$T/names")" -gt 20 ] || fail "only $(wc -l < "$T/names") rows"
	expect "names" "$(cat "$T/names")" "$(LC_ALL=C sort "$T/names")"
	expect "the most calls" "$(stat_names --sort calls | head -n 1)" "cudaMalloc"
	expect "failures" "$(stat_names --sort failed | head -n 2 | sort | tr '\n' ' ')" "cudaMalloc cudaSetDevice "
	for key in time calls failed avg max bytes; do
		expect "rows by $key" "$(stat_names --sort "$key" | sort)" "$(sort "$T/names")"
	done
	expect "the first rows" "$(stat_names --sort name --top 3)" "$(head -n 3 "$T/names")"
	"$CUDATRACE" stat --top 3 "$T/sample.ctrace" > "$T/top" 2> "$T/err"
	grep -q "\.\.\.  and $(($(wc -l < "$T/names") - 3)) more$" "$T/top" || fail "no line about the others: $(head -n 8 "$T/top")"
	grep -q ' 44 .*total$' "$T/top" || fail "the total is not that of all rows: $(head -n 8 "$T/top")"
}

case_stat_save_keeps_the_old() {
	echo baseline > "$T/a.json"
	ct stat --save "$T/a.json" -o /dev/null -- /no/such/program
	ok_rc 1
	expect "the old file" "$(cat "$T/a.json")" baseline
	"${BACKGROUND[@]}" "$CUDATRACE" stat --save "$T/a.json" -v -o /dev/null -p $$ > /dev/null 2> "$T/err" &
	CT=$!
	wait_for 8 grep -q ready "$T/err"
	kill -KILL "$CT"
	wait "$CT" 2> /dev/null
	expect "the old file" "$(cat "$T/a.json")" baseline
	ct stat --save "$T/a.json" -o /dev/null -- true
	ok_rc
	expect "the new one" "$(head -c 26 "$T/a.json")" '{"schema":"cudatrace-stat"'
}

# Files and recordings need no privileges.
case_compare_recordings() {
	cp tests/traces/two.ctrace tests/traces/calls.ctrace "$T"
	cp "$ROOT/cudatrace" "$T/ct"
	rc=0
	setpriv --reuid 65534 --clear-groups "$T/ct" compare --fail-if 'kernel(*relu*).avg>+1%' --fail-if 'total_api_time<1s' "$T/two.ctrace" \
		"$T/two.ctrace" > "$T/out" 2> "$T/err" || rc=$?
	ok_rc 1
	grep -q '^ ok       kernel(\*relu\*).avg>+1%: mean time of relu(float\*, int) 30.00 us -> 30.00 us (same)$' "$T/out" || fail "$(grep relu "$T/out")"
	grep -q '^ FAIL     total_api_time<1s' "$T/out" || fail "$(grep total "$T/out")"
}

case_compare_misuse() {
	local words
	ct stat --save "$T/a.json" -o /dev/null tests/traces/calls.ctrace
	ok_rc
	echo '{' > "$T/cut.json"
	for words in "$T/a.json" "$T/a.json $T/none.json" "$T/a.json $T/cut.json" "--fail-if x>1 $T/a.json $T/a.json" \
		"--fail-if kernel_time>+1% $T/a.json $T/a.json" "--level 2 $T/a.json $T/a.json" "--format yaml $T/a.json $T/a.json" \
		"--fail-if kernel(x).avg>+1% $T/a.json $T/a.json" "$T/a.json /"; do
		# shellcheck disable=SC2086
		ct compare $words
		ok_rc 2
		expect "messages of compare $words" "$(grep -c error: "$T/err")" 1
	done
	ct stat --runs 3 -p $$
	ok_rc 2
	ct stat --runs 3 --save "$T/b.json" -- "$CALLS" status 4
	ok_rc 4
	says "run 1 ended with an error: the others are left out"
}

# ---- probes that are on for a part of the time ----

# duty_holds FILE MARGIN: against what train printed ($T/out), as lines of function and calls: memory, calls that wait and seldom ones are
# exact; the estimate of others holds the truth, give or take MARGIN times its error, and says that it is one. The error itself is
# estimated from few windows: MARGIN is large enough that chance alone does not fail once in a thousand runs, and the error small enough
# (a third of the calls) that the estimate still says something.
duty_holds() {
	local said
	said=$(python3 - "$1" "$2" "$T/out" <<- 'E'
		import json, sys
		d = json.load(open(sys.argv[1]))
		rows = {r["name"]: r for s in ("runtime", "driver") for r in d[s]}
		often, bad = {"cudaLaunchKernel", "cudaEventRecord", "cudaMemsetAsync"}, 0
		for line in open(sys.argv[3]):
		    name, want = line.split()[0], int(line.split()[1])
		    if not name.startswith("cuda") or not want:
		        continue
		    r = rows.get(name, {"calls": 0})
		    calls, error = r["calls"], r.get("error", 0)
		    print(name, calls, "+-", error, "of", want, r.get("estimated"))
		    if name in often:
		        bad |= abs(calls - want) > int(sys.argv[2]) * error or error > want / 3 or not 0 < r.get("estimated", 0) < calls
		    else:
		        bad |= calls != want or "error" in r
		for name in rows:
		    if name.startswith("cu") and not name.startswith("cuda"):
		        print("the driver's", name, rows[name]["calls"])
		        bad |= rows[name]["calls"] > 0.02 * rows["cudaLaunchKernel"]["calls"]
		sys.exit(bad)
	E
	) || fail "$(tr '\n' ';' <<< "$said")"
}

case_duty_estimates() { # long
	ct stat --duty 1/5 --json -o "$T/stat.json" -- "$BIN/train" 90 400 1500
	ok_rc
	says 'counted in windows: .*cudaLaunchKernel'
	duty_holds "$T/stat.json" 6
	expect "failures of what is exact" "$(stat_of cudaSetDevice failed)" 9
	expect "memory" "$(memory_of "$T/stat.json")" "4096 0 0 0 cudaFree=360000"
	expect "duty" "$(python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))["summary"]
print(s["duty"], s["functions_on_duty"] >= 3, s["launches"] > s["launches_estimated"] > 0, s["launches_error"] > 0, "max_cost" in s)' "$T/stat.json")" \
		"0.2 True True True False"
	# bytes of memsets go with their calls
	expect "bytes" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
t = [t for t in d["traffic"] if t["direction"] == "memset"][0]
print(abs(t["bytes"] / t["count"] - 256) < 1, t["estimated"] > 0)' "$T/stat.json")" "True True"
}

# byte_of PID FUNCTION: the first byte of a function of the runtime in a process: cc where a probe is on it.
byte_of() {
	python3 - "$1" "$2" "$(nm -D "$OUT/standin/libcudart.so.13" | awk -v f="$2" '{ sub("@.*", "", $3) } $3 == f { print $1 }')" <<- 'E'
		import sys
		for line in open(f"/proc/{sys.argv[1]}/maps"):
		    if "libcudart" in line and " 00000000 " in line:
		        base = int(line.split("-")[0], 16)
		        break
		m = open(f"/proc/{sys.argv[1]}/mem", "rb")
		m.seek(base + int(sys.argv[3], 16))
		print(m.read(1).hex())
	E
}

# byte_is PID FUNCTION BYTE
byte_is() {
	[ "$(byte_of "$1" "$2")" = "$3" ]
}
byte_is_not() {
	[ "$(byte_of "$1" "$2")" != "$3" ]
}

# Between windows the function has its own first byte again, those that stay have their probes; both come back to windows.
case_duty_takes_probes_off() { # undisturbed
	local pid
	own_library
	"$BIN/train" 0 400 1500 > "$T/train" &
	pid=$!
	"${BACKGROUND[@]}" "$CUDATRACE" stat -v --duty 1/2 --json -o "$T/stat.json" -p $pid 2> "$T/err" &
	CT=$!
	wait_for 20 grep -q 'cudatrace: ready' "$T/err"
	wait_for 20 byte_is $pid cudaLaunchKernel cc
	wait_for 20 byte_is_not $pid cudaLaunchKernel cc
	expect "allocations keep theirs" "$(byte_of $pid cudaMalloc)" cc
	wait_for 20 byte_is $pid cudaLaunchKernel cc
	wait_for 20 byte_is_not $pid cudaLaunchKernel cc
	kill -INT "$CT"
	wait "$CT" || fail "status $?"
	expect "all are gone" "$(byte_of $pid cudaMalloc)$(byte_of $pid cudaLaunchKernel)" "$(byte_of $pid cudaFree)$(byte_of $pid cudaFree)"
	kill $pid
	wait $pid || fail "the program: $?"
	expect "estimated" "$(stat_of cudaLaunchKernel estimated | awk '{ print ($1 > 0) }')" 1
}

# What costs much is put on duty, and what costs little is not.
case_duty_max_cost() { # long
	ct stat --max-cost 2% --json -o "$T/stat.json" -- "$BIN/train" 20 20000 1
	ok_rc
	expect "busy" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
s = d["summary"]
print(s["max_cost"], 0 < s["duty"] < 0.5, s["functions_on_duty"] > 0, s["probe_cost_ns"] > 0 < s["cpu_ns"])' "$T/stat.json")" "0.02 True True True"
	ct stat --max-cost 50% --json -o "$T/stat.json" -- "$BIN/train" -b 6 200 20000
	ok_rc
	expect "quiet" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
s = d["summary"]
print(s["max_cost"], s["duty"], s["functions_on_duty"], any("estimated" in r for k in ("runtime", "driver") for r in d[k]))' "$T/stat.json")" \
		"0.5 1.0 0 False"
	expect "launches" "$(stat_of cudaLaunchKernel calls)" 1200
}

case_duty_misuse() {
	local words
	for words in "--duty 0" "--duty 1/1" "--duty 3" "--duty 1/0" "--duty x" "--duty 1/20/3" "--duty -5%" "--max-cost 0" "--max-cost 60%" "--max-cost 1/" \
		"--duty 1/20 --keep-chatty" "--duty 1/20 --failed" "--max-cost 1% --min-size 5" "--duty 1/20 --by device"; do
		# shellcheck disable=SC2086
		ct stat $words -- true
		ok_rc 2
		expect "messages of $words" "$(grep -c error: "$T/err")" 1
	done
	ct stat --duty 1/20 tests/traces/calls.ctrace
	ok_rc 2
	ct stat --probe-kind tracefs --duty 1/20 -- true
	ok_rc 1
	says 'probes of this kind cannot be switched on and off quickly'
}
