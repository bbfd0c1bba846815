# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# graphs.sh - cases about CUDA graphs: what is replayed says which call was captured.

GRAPHS=$BIN/graphs

# kernels_of FILE: the kernels of JSON, each with its grid and what was captured.
kernels_of() {
	python3 - "$1" <<- 'PY'
	import json, sys
	for line in open(sys.argv[1], encoding='utf-8'):
	    r = json.loads(line)
	    if r['type'] == 'kernel':
	        print(r['grid'][0], *(r.get(k, '-') for k in ('scope_name', 'captured_in', 'captured_name', 'captured_by', 'captured')))
	PY
}

GRAPH_KERNELS='1 step capture cudaLaunchKernel 3 -
2 step inner cudaLaunchKernel 4 -
1 - capture cudaLaunchKernel 3 -
2 - inner cudaLaunchKernel 4 -'

case_graphs_captured() {
	ct_json --gpu --layers nvtx -- "$GRAPHS" 1
	ok_rc
	no_loss
	expect "kernels" "$(kernels_of "$T/out")" "$GRAPH_KERNELS"
	# the calls are those that the rows name
	expect "the calls" "$(grep '"type":"call".*cudaLaunchKernel' "$T/out" | grep -o '"correlation":[0-9]*' | tr '\n' ' ')" '"correlation":3 "correlation":4 '
}

# Without layers there is the call alone.
case_graphs_without_layers() {
	ct_json --gpu -- "$GRAPHS" 1
	ok_rc
	expect "kernels" "$(kernels_of "$T/out")" "$(sed -E 's/^(.) [^ ]+ [^ ]+/\1 - -/' <<< "$GRAPH_KERNELS")"
}

case_graphs_recorded() {
	ct record --gpu --layers nvtx -o "$T/r.ctrace" -- "$GRAPHS" 1
	ok_rc
	ct replay "$T/r.ctrace" --format json -o "$T/json"
	ok_rc
	expect "kernels" "$(kernels_of "$T/json")" "$GRAPH_KERNELS"
}

# With stacks each kernel has the line of its capture, in every format, and folded stacks go on from the launch of the graph to where the
# kernel was captured.
case_graphs_lines() {
	local line format
	line=$(grep -n 'cudaLaunchKernel(' tests/cases/prog/graphs.c | head -n 1 | cut -d: -f1)
	ct record -k --gpu --layers nvtx -o "$T/r.ctrace" -- "$GRAPHS" 2
	ok_rc
	ct replay -k "$T/r.ctrace" --format json -o "$T/json"
	ok_rc
	expect "JSON" "$(grep -c "\"captured_at\":\"launch at graphs.c:$line\"" "$T/json")" 6
	ct replay -k -o "$T/table" "$T/r.ctrace"
	expect "table" "$(grep -c "captured_at=\"launch at graphs.c:$line\"" "$T/table")" 6
	for format in csv chrome otlp-json perfetto; do
		ct export --to $format -o "$T/$format" "$T/r.ctrace"
		ok_rc
		grep -qa "launch at graphs.c:$line" "$T/$format" || fail "$format has no line of the capture"
	done
	# csv and Arrow's files have columns for it
	python3 -c 'import csv, sys
print(*sorted({" ".join((r["captured_in"], r["captured_at"], r["captured_by"])) for r in csv.DictReader(open(sys.argv[1])) if r["type"] == "kernel"}), sep="\n")' "$T/csv" > "$T/got"
	expect "columns" "$(cat "$T/got")" "capture launch at graphs.c:$line 3
inner launch at graphs.c:$line 4"
	ct replay "$T/r.ctrace" --format json -o "$T/json"
	expect "without stacks" "$(grep -c captured_at "$T/json")" 0
	ct export --to folded --weight gpu -o "$T/folded" "$T/r.ctrace"
	ok_rc
	expect "folded" "$(sed 's/^.*;main;/main;/' "$T/folded")" "main;cudaGraphLaunch;launch;[GPU] [kernel] 30000"
	ct folded --gpu --weight gpu --stack-of range -o "$T/ranges" -- "$GRAPHS" 2
	ok_rc
	diff <(sort "$T/ranges") - > "$T/diff" <<- 'EOF' || fail "folded by ranges: $(head -n 6 "$T/diff")"
	graphs;capture;cudaGraphLaunch;[GPU] [kernel] 5000
	graphs;capture;inner;cudaGraphLaunch;[GPU] [kernel] 5000
	graphs;step;cudaGraphLaunch;capture;[GPU] [kernel] 10000
	graphs;step;cudaGraphLaunch;capture;inner;[GPU] [kernel] 10000
	EOF
}

# Time counts for the range around the replay, and where there is none for the one around the capture.
case_graphs_stat() {
	ct stat --gpu --by range --json -o "$T/sums" -- "$GRAPHS" 3
	ok_rc
	python3 - "$T/sums" > "$T/got" <<- 'EOF'
	import json, sys
	for r in json.load(open(sys.argv[1], encoding='utf-8'))['rows']:
	    print(r.get('name', 'none'), r['kernels'], r['gpu_ns'], r.get('inclusive_gpu_ns', '-'))
	EOF
	sort "$T/got" | diff - <(cat <<- 'EOF'
	capture 1 5000 10000
	inner 1 5000 5000
	none 0 0 -
	step 6 30000 30000
	EOF
	) > "$T/diff" || fail "sums differ: $(head -n 6 "$T/diff")"
}

# What was captured before the trace is said to be that.
case_graphs_attached() {
	local pid fd
	mkfifo "$T/in"
	"$GRAPHS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach --gpu -p "$pid"
	wait_for 10 grep -q 'the agent has started' "$T/err"
	printf 'aa' >&"$fd"
	wait_for 10 has_kernels 2
	printf 'q' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect "kernels" "$(kernels_of "$T/out" | sort | uniq -c | tr -s ' ')" ' 2 1 - - - - before the trace'
}

# A second attach, where CUPTI was not ended after the first, as in a program with graphs: kernels come again, from the first call on that the
# program leaves. CUPTI gives none any more if it is told so by a thread that does not launch.
case_graphs_attached_again() {
	local pid fd
	export STANDIN_CUPTI=fragile,stuck
	mkfifo "$T/in"
	"$GRAPHS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach -v --gpu -p "$pid"
	wait_for 10 grep -q 'the agent has started' "$T/err"
	printf 'aa' >&"$fd"
	wait_for 10 has_kernels 2
	kill -INT "$CT"
	wait "$CT" || fail "status $?"
	says 'CUPTI not ended'
	attach -v --gpu -p "$pid"
	wait_for 10 grep -q 'the agent has started' "$T/err"
	printf 'a' >&"$fd"
	wait_for 10 grep -q "cudaGraphLaunch" "$T/out"
	printf 'aaa' >&"$fd"
	wait_for 10 has_kernels 3
	printf 'q' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect_kinds kernel 3
}

has_kernels() {
	[ "$(grep -c '"type":"kernel"' "$T/out")" -ge "$1" ]
}
