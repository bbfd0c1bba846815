# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# scopes.sh - cases about layers: NVTX's ranges and marks of a program, beside its calls.

RANGES=$BIN/ranges

# scoped: a line for each scope in $T/out: type, name, and the name of its parent.
scoped() {
	python3 - "$T/out" << 'EOF'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
scopes = [r for r in rows if r['type'] in ('range', 'mark')]
names = {r['range_id']: r['name'] for r in scopes}
for r in scopes:
    more = [f'{k}={r[k]}' for k in ('domain', 'category', 'category_id', 'payload', 'color', 'any_thread', 'unpaired', 'unfinished') if k in r]
    parent = '?' if r.get('parent_unknown') else names.get(r.get('parent_id'), '-')
    sys.stdout.buffer.write(' '.join(map(str, [r['type'], r['name'], 'in', parent, *more])).encode() + b'\n')
EOF
}

# expect_scopes: they are what is on stdin.
expect_scopes() {
	scoped > "$T/got"
	diff - "$T/got" > "$T/diff" || fail "scopes differ: $(head -n 6 "$T/diff")"
}

# calls_of FILE: its calls without times, durations, addresses and processes.
calls_of() {
	grep '"type":"call"' "$1" | sed -E 's/,"scope(_name)?":("[^"]*"|[0-9]+)//g; s/"(start_ns|duration_ns|pid|tid)":[0-9]+//g; s/0x[0-9a-f]+/0x/g'
}

case_scopes_nested() {
	ct_json --layers nvtx -- "$RANGES" nested 1
	ok_rc
	no_loss
	expect_scopes <<- 'EOF'
	range forward in step
	mark half in backward
	range backward in step
	range step in -
	EOF
}

case_scopes_table() {
	ct_rows --layers nvtx -e range,mark -- "$RANGES" nested 1
	ok_rc
	sed -E 's/^[0-9.]+ +ranges +[0-9]+ +//; s/[0-9.]+(ns|us|ms)$/DUR/' "$T/out" > "$T/got"
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "rows differ: $(head -n 6 "$T/diff")"
	TIME(ms)   PROCESS         PID        EVENT                DETAILS
	range                forward, DUR
	mark                 half
	range                backward, DUR
	range                step, DUR
	EOF
	says '0 calls, 4 scopes, 0 lost'
}

# The calls are the same with layers and without, and have the same numbers.
case_scopes_leave_calls() {
	ct_json -- "$RANGES" nested 3
	calls_of "$T/out" > "$T/without"
	ct_json --layers nvtx -- "$RANGES" nested 3
	calls_of "$T/out" > "$T/with"
	expect "calls" "$(wc -l < "$T/with")" 11
	grep -q '"correlation":11' "$T/with" || fail "calls have no numbers"
	diff "$T/without" "$T/with" > "$T/diff" || fail "calls differ: $(head -n 4 "$T/diff")"
}

# of_what TYPE: a line for each call or each piece of device work in $T/out: its name and the name of the innermost range around it.
of_what() {
	python3 - "$T/out" "$1" << 'EOF'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
names = {r['range_id']: r['name'] for r in rows if r['type'] == 'range'}
for r in rows:
    if r['type'] == sys.argv[2]:
        scope = '?' if 'scope_unknown' in r else r['scope_name'] if 'scope' in r else '-'
        assert names.get(r.get('scope'), scope) == scope, r
        print(r.get('cause', r.get('name')), scope)
EOF
}

# Each call and each copy on the device says which range it is for.
case_scopes_attributed() {
	ct_json --layers nvtx --gpu -- "$RANGES" nested 2
	ok_rc
	no_loss
	of_what call > "$T/calls"
	diff - "$T/calls" > "$T/diff" <<- 'EOF' || fail "calls differ: $(head -n 6 "$T/diff")"
	cudaMalloc -
	cudaMemcpy forward
	cudaMemcpy backward
	cudaMemcpy backward
	cudaMemcpy forward
	cudaMemcpy backward
	cudaMemcpy backward
	cudaFree -
	EOF
	of_what copy | sort | uniq -c | tr -s ' ' > "$T/copies"
	diff - "$T/copies" > "$T/diff" <<- 'EOF' || fail "copies differ: $(head -n 6 "$T/diff")"
	 4 cudaMemcpy backward
	 2 cudaMemcpy forward
	EOF
}

# Beyond 64 ranges in each other it is not known which range a call is for: never the one outside.
case_scopes_attributed_deep() {
	ct_json --layers nvtx -- "$RANGES" deep 64
	expect "inside 64" "$(of_what call | grep cudaMemcpy)" 'cudaMemcpy level 64'
	ct_json --layers nvtx -- "$RANGES" deep 65
	expect "inside 65" "$(of_what call | grep cudaMemcpy)" 'cudaMemcpy ?'
	ct stat --by range --json -o "$T/sums" -- "$RANGES" deep 65
	grep -q '"unknown": *true' "$T/sums" || fail "no row for what is not known: $(cat "$T/sums")"
}

# range_sums FILE: of stat --json: name, count, calls, and ninths of the GPU's time, exclusive and inclusive.
range_sums() {
	python3 - "$1" << 'EOF'
import json, sys
t = json.load(open(sys.argv[1], encoding='utf-8'))
assert sum(r['calls'] for r in t['rows']) == t['calls'], t
assert sum(r['gpu_ns'] for r in t['rows']) == t['gpu_ns'], t
share = lambda ns: round(ns * 9 / t['gpu_ns'])
for r in sorted(t['rows'], key=lambda r: r.get('name', '~')):
    name = r.get('name', 'none' if 'none' in r else 'unknown')
    print(name, r['count'], r['calls'], share(r['gpu_ns']), share(r.get('inclusive_gpu_ns', 0)))
EOF
}

# The rows of --by range add up to the GPU's time, live and from a recording. The stand-in's copies take equally long.
case_scopes_stat_by_range() {
	local file
	ct stat --gpu --by range --json -o "$T/live" -- "$RANGES" nested 3
	ok_rc
	ct record --gpu --layers nvtx -o "$T/r.ctrace" -- "$RANGES" nested 3
	ok_rc
	ct stat --by range --json -o "$T/stored" "$T/r.ctrace"
	ok_rc
	for file in live stored; do
		range_sums "$T/$file" > "$T/got"
		diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "$file: sums differ: $(head -n 6 "$T/diff")"
		backward 3 6 6 6
		forward 3 3 3 3
		step 3 0 0 9
		none 0 2 0 0
		EOF
	done
	ct stat --by range -o "$T/table" "$T/r.ctrace"
	sed -E 's/ [0-9.]+ (ns|us|ms)/ TIME/g; s/ +/ /g' "$T/table" > "$T/got"
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "table differs: $(head -n 9 "$T/diff")"
	Time of device work by range; it counts for the innermost range around the call
	 Time% GPU time Inclusive Kernels Calls Host time Count Name
	 66.67 TIME TIME 0 6 TIME 3 backward
	 33.33 TIME TIME 0 3 TIME 3 forward
	 0.00 TIME TIME 0 0 TIME 3 step
	 0.00 TIME - 0 2 TIME 0 (none)

	EOF
}

# Without --gpu it is the time of the calls, and the table says so.
case_scopes_stat_without_gpu() {
	ct stat --by range -o "$T/table" -- "$RANGES" nested 3
	ok_rc
	grep -q '^Time of calls by range' "$T/table" || fail "$(head -n 1 "$T/table")"
	grep -q 'There is no device work in this' "$T/table" || fail "not said: $(cat "$T/table")"
	ct stat --layers nvtx -- "$RANGES" nested 1
	says 'give --by range, collective, operator, step, gemm or class with --layers'
}

# The ranges are the frames, live and from a recording; what is in no range is said.
case_scopes_folded() {
	ct folded --stack-of range --gpu --weight gpu -o "$T/live" -- "$RANGES" nested 3
	ok_rc
	diff - "$T/live" > "$T/diff" <<- 'EOF' || fail "live differs: $(head -n 6 "$T/diff")"
	ranges;step;backward;cudaMemcpy;[GPU] memcpy HtoD 30000
	ranges;step;forward;cudaMemcpy;[GPU] memcpy HtoD 15000
	EOF
	ct record --layers nvtx -o "$T/r.ctrace" -- "$RANGES" nested 3
	ct export --to folded --stack-of range -o "$T/stored" "$T/r.ctrace"
	ok_rc
	diff - "$T/stored" > "$T/diff" <<- 'EOF' || fail "stored differs: $(head -n 6 "$T/diff")"
	ranges;[no range];cudaFree 1
	ranges;[no range];cudaMalloc 1
	ranges;step;backward;cudaMemcpy 6
	ranges;step;forward;cudaMemcpy 3
	EOF
	ct folded --stack-of range -o "$T/deep" -- "$RANGES" deep 65
	grep -q '^ranges;\[unknown range\];cudaMemcpy 1$' "$T/deep" || fail "not said: $(cat "$T/deep")"
	ct export --to csv --stack-of range -o "$T/csv" "$T/r.ctrace"
	says '--stack-of is about the frames of a stack, and csv has none'
}

# The exports say of each call and each copy which range it is for.
case_scopes_attributed_in_exports() {
	local format
	ct record --gpu --layers nvtx -o "$T/r.ctrace" -- "$RANGES" nested 1
	ok_rc
	for format in chrome perfetto otlp-json csv; do
		ct export --to "$format" -o "$T/r.$format" "$T/r.ctrace"
		ok_rc
	done
	expect "chrome" "$(grep -o '"scope":"[a-z]*"' "$T/r.chrome" | sort | uniq -c | tr -s ' \n' ' ')" ' 4 "scope":"backward" 2 "scope":"forward" '
	expect "otlp" "$(grep -oE '"key":"scope","value":[{]"stringValue":"[a-z]*"' "$T/r.otlp-json" | grep -o '[a-z]*"$' | sort | uniq -c | tr -s ' \n' ' ')" ' 4 backward" 2 forward" '
	expect "csv" "$(grep -cE '^(call|copy),.*,[0-9]+,(forward|backward),{15}$' "$T/r.csv")" 6
	grep -a -q 'backward' "$T/r.perfetto" || fail "perfetto has no ranges"
}

# Each file of a rotation names the ranges that were open when it began.
case_scopes_attributed_in_each_file() {
	local n=0 file
	ct record --max-size 64KiB --rotate 9 --layers nvtx -o "$T/part.ctrace" -- "$RANGES" nested 9000
	ok_rc
	for file in "$T"/part*; do
		n=$((n + 1))
		ct replay --format json -o "$T/out" "$file"
		of_what call | awk '{ print $2 }' | sort | uniq -c > "$T/of"
		! grep -q '[?]' "$T/of" || fail "$file: $(cat "$T/of")"
	done
	[ "$n" -gt 2 ] || fail "$n files"
}

# What is inside the ranges of a name, and nothing else: live, with -e, in a recording; of a range around them nothing is shown.
case_scopes_window() {
	ct_json --start-on nvtx:backward --stop-on nvtx:backward -- "$RANGES" nested 3
	ok_rc
	no_loss
	expect "calls" "$(of_what call | sort | uniq -c | tr -s ' ')" ' 6 cudaMemcpy backward'
	expect "ranges" "$(scoped | sort | uniq -c | tr -s ' ')" ' 3 mark half in backward
 3 range backward in -'
	ct_json -e cudaMemcpy --start-on nvtx:forward -- "$RANGES" nested 3
	expect "from then on" "$(grep -c '"type":"call"' "$T/out")" 9
	expect "ranges that -e leaves out" "$(scoped | wc -l)" 0
	ct_json --stop-on 'nvtx:for*' -- "$RANGES" nested 3
	expect "until then" "$(of_what call)" 'cudaMalloc -
cudaMemcpy forward'
	grep -q '"reason":"stopped"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	ct record --start-on nvtx:step --stop-on nvtx:forward -o "$T/r.ctrace" -- "$RANGES" nested 3
	ok_rc
	says '3 calls, 6 scopes, 0 lost'
	ct replay --format json -o "$T/out" "$T/r.ctrace"
	expect "of a recording" "$(of_what call)" 'cudaMemcpy forward
cudaMemcpy forward
cudaMemcpy forward'
	ct_json --start-on nvtx:nothing -- "$RANGES" nested 1
	expect "nothing" "$(of_what call)" ''
	says 'what --start-on waits for did not happen'
}

# The flight recorder stores what is inside the ranges too, and a program that runs already is waited for likewise.
case_scopes_window_ways() {
	local pid fd
	ct record --last 60s --dump-on end --start-on nvtx:forward --stop-on nvtx:forward -o "$T/r.ctrace" -- "$RANGES" nested 2
	ok_rc
	says '2 calls, 2 scopes, 0 lost'
	ct replay --format json -o "$T/out" "$T/r.ctrace"
	expect "of the flight recorder" "$(of_what call)" 'cudaMemcpy forward
cudaMemcpy forward'
	mkfifo "$T/in"
	"$RANGES" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach --stop-on nvtx:backward -p "$pid"
	printf 'x' >&"$fd"
	finish
	expect "of one that runs" "$(of_what call | cut -d' ' -f1)" 'cudaMemcpy
cudaMemcpy
cudaMemcpy'
	grep -q '"reason":"stopped"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	printf 'q' >&"$fd"
	wait "$pid"
}

# Device work belongs to the time of the call that asked for it.
case_scopes_window_gpu() {
	ct_json --gpu --start-on nvtx:backward --stop-on nvtx:backward -- "$RANGES" nested 3
	ok_rc
	expect "copies" "$(of_what copy | sort | uniq -c | tr -s ' ')" ' 6 cudaMemcpy backward'
}

# Domains, registered texts, categories, payloads, ranges of any thread, wide texts.
case_scopes_rich() {
	STANDIN_NVTX_TOOL=1 ct_json --layers nvtx -- "$RANGES" rich
	ok_rc
	no_loss
	expect_scopes <<- 'EOF'
	range registered in payload domain=mine category=optimizer category_id=7
	range wide é in registered
	range payload in - category=loader category_id=7 payload=12345 color=0xff00ff00
	range first in - any_thread=True
	range second in - domain=mine payload=2.5 any_thread=True
	mark marked in - payload=-3
	EOF
}

# Without a tool libnvToolsExt returns no handles and no ids: what they meant is not known.
case_scopes_without_handles() {
	ct_json --layers nvtx -- "$RANGES" rich
	ok_rc
	expect_scopes <<- 'EOF'
	range wide é in None
	range None in payload category=optimizer category_id=7
	range payload in - category=optimizer category_id=7 payload=12345 color=0xff00ff00
	mark first in - unpaired=True
	mark second in - payload=2.5 unpaired=True
	mark marked in - payload=-3
	EOF
}

# 64 in each other are followed; those beyond are counted, and close nothing.
case_scopes_deep() {
	ct_json --layers nvtx -- "$RANGES" deep 70
	ok_rc
	expect "ranges" "$(grep -c '"type":"range"' "$T/out")" 64
	expect "dropped" "$(grep -o '"scopes_dropped":[0-9]*' "$T/out")" '"scopes_dropped":6'
	expect "the first" "$(scoped | head -n 1)" 'range level 64 in level 63'
	expect "the last" "$(scoped | tail -n 1)" 'range level 1 in -'
	says '6 scopes were not followed'
}

case_scopes_end_without_begin() {
	ct_json --layers nvtx -- "$RANGES" pops
	ok_rc
	expect "ranges" "$(grep -c '"type":"range"' "$T/out")" 3
	expect "ends" "$(grep -o '"scopes_unbegun":[0-9]*' "$T/out")" '"scopes_unbegun":2'
	! scoped | grep -q unfinished || fail "a range is unfinished"
}

case_scopes_open() {
	ct_json --layers nvtx -- "$RANGES" open
	ok_rc
	expect_scopes <<< 'range never in - unfinished=True'
}

# Names that were not in memory at the call come from the file.
case_scopes_absent() {
	STANDIN_NVTX_TOOL=1 ct_json --layers nvtx -- "$RANGES" absent
	ok_rc
	expect_scopes <<- 'EOF'
	mark untouched 2 in untouched 1
	range untouched 1 in untouched 0
	range untouched 0 in -
	range untouched 3 in - any_thread=True
	EOF
}

# A program that runs already: the range that had begun before is not known, and is in no row.
case_scopes_attached() {
	local pid fd
	mkfifo "$T/in"
	"$RANGES" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach --layers nvtx -p "$pid"
	printf 'xxq' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect "steps" "$(scoped | grep -c '^range step in -$')" 2
	expect "ranges" "$(grep -c '"type":"range"' "$T/out")" 6
	expect "ends" "$(grep -o '"scopes_unbegun":[0-9]*' "$T/out")" '"scopes_unbegun":1'
	says '^cudatrace: 1 range ended that had begun before the trace: it is not shown$'
}

# A recording has all scopes; a replay shows those that were asked for.
case_scopes_recorded() {
	STANDIN_NVTX_TOOL=1 ct record -o "$T/r.ctr" -e cudaMalloc --layers nvtx -- "$RANGES" rich
	ok_rc
	ct replay "$T/r.ctr" --format json
	scoped > "$T/got"
	[ ! -s "$T/got" ] || fail "shown, and -e did not name them: $(head -n 1 "$T/got")"
	STANDIN_NVTX_TOOL=1 ct record -o "$T/r.ctr" --layers nvtx -- "$RANGES" rich
	ok_rc
	ct replay "$T/r.ctr" --format json
	ok_rc
	scoped > "$T/got"
	STANDIN_NVTX_TOOL=1 ct_json --layers nvtx -- "$RANGES" rich
	scoped > "$T/want"
	expect "scopes" "$(wc -l < "$T/want")" 6
	diff "$T/want" "$T/got" > "$T/diff" || fail "differs: $(head -n 4 "$T/diff")"
	ct replay "$T/r.ctr" -e mark --format json
	expect_scopes <<< 'mark marked in - payload=-3'
}

# What the formats for other programs show of a recording with ranges.
case_scopes_exported() {
	STANDIN_NVTX_TOOL=1 ct record -o "$T/r.ctr" --layers nvtx -- "$RANGES" rich
	ok_rc
	for format in chrome perfetto nsys-sqlite html otlp-json folded; do
		ct export --to "$format" -o "$T/r.$format" "$T/r.ctr"
		ok_rc
	done
	python3 - "$T" > "$T/got" <<- 'EOF'
		import json, sqlite3, sys
		folder = sys.argv[1]
		events = json.load(open(f"{folder}/r.chrome"))["traceEvents"]
		print("chrome", *(e["ph"] + ":" + e["name"] for e in events
		                  if e.get("cat") == "user_annotation" and e["name"] != "ProfilerStep#0"), sep=" | ")
		rows = sqlite3.connect(f"{folder}/r.nsys-sqlite").execute(
		    "SELECT eventType, value, color, coalesce(uint64Value, doubleValue, int32Value) FROM NVTX_EVENTS "
		    "LEFT JOIN StringIds ON id=textId WHERE eventType!=75 ORDER BY NVTX_EVENTS.rowid")
		print("nsys", *(":".join("-" if v is None else str(v) for v in r) for r in rows), sep=" | ")
	EOF
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "differs: $(head -n 4 "$T/diff")"
	chrome | X:registered | X:wide é | X:payload | b:first | e:first | b:second | e:second | i:marked
	nsys | 59:registered:-:- | 59:wide é:-:- | 59:payload:4278255360:12345 | 60:first:-:- | 60:second:-:2.5 | 34:marked:-:-3
	EOF
	for name in registered 'wide é' payload first second marked 'NVTX ranges' optimizer; do
		grep -a -q "$name" "$T/r.perfetto" || fail "perfetto: there is no $name"
	done
	expect "html" "$(python3 tests/timeline/page.py "$T/r.html" | grep -c '^marker thread .*, ranges ')" 6
}

# What a format does not show, it says, once.
case_scopes_left_out() {
	ct record -o "$T/r.ctr" --layers nvtx -- "$RANGES" nested 1
	ok_rc
	! grep -q 'are not shown' "$T/err" || fail "a recording has them all"
	ct export --to folded -o "$T/folded" "$T/r.ctr"
	ok_rc
	expect "said" "$(grep 'are not shown' "$T/err")" "cudatrace: 4 ranges and marks are not shown: 'folded' has no ranges"
	ct --format otlp-json -o "$T/spans" --otlp-min 1h --layers nvtx -- "$RANGES" nested 1
	ok_rc
	expect "said" "$(grep 'are not shown' "$T/err")" "cudatrace: 4 ranges and marks are not shown: they are shorter than --otlp-min"
	ct --format otlp-json -o "$T/spans" --otlp-min 0s --layers nvtx -- "$RANGES" nested 1
	ok_rc
	expect "spans" "$(grep -o '"cupti_type","value":{"stringValue":"scope"' "$T/spans" | wc -l)" 4
	! grep -q 'are not shown' "$T/err" || fail "otlp-json has them all"
}

case_scopes_wrong_lines() {
	ct --domain nvtx -- "$RANGES" nested 1
	ok_rc 2
	says "names functions that are not calls of CUDA"
	ct -e range -- "$RANGES" nested 1
	ok_rc 2
	says 'recorded only with --layers nvtx'
	ct --layers nothing -- "$RANGES" nested 1
	ok_rc 2
	says 'no kind of layer; give nvtx'
	ct --layers nvtx --no-return -- "$RANGES" nested 1
	ok_rc 2
	says 'give one of the two'
}

# What XLA says in ranges has fields, and so has the work of the device: the module and the operation that it compiled.
case_scopes_xla() {
	ct_json --gpu --layers nvtx --env STANDIN_NVTX_TOOL=1 -- "$RANGES" xla
	ok_rc
	no_loss
	python3 - "$T/out" > "$T/got" <<- 'EOF'
	import json, sys
	for r in map(json.loads, open(sys.argv[1], encoding='utf-8')):
	    if r['type'] in ('range', 'copy'):
	        print(r['type'], *(r.get(k, '-') for k in ('hlo_module', 'hlo_op', 'op_name')))
	EOF
	sort "$T/got" | diff - <(cat <<- 'EOF'
	copy - - -
	copy jit_step gemm_fusion.2 transformer/layer_0/attention/query/dot_general[dimension_numbers=(((2,), (0,)), ((), ())) precision=None]/a/name/that/is/long
	copy jit_step loop_add_fusion -
	range - gemm_fusion.2 transformer/layer_0/attention/query/dot_general[dimension_numbers=(((2,), (0,)), ((), ())) precision=None]/a/name/that/is/long
	range - loop_add_fusion -
	range jit_step - -
	EOF
	) > "$T/diff" || fail "differs: $(head -n 9 "$T/diff")"
}
