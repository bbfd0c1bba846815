# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# collectives.sh - cases about the layer nccl: calls of NCCL as scopes, beside CUDA's calls.

COLLECTIVES=$BIN/collectives

# nccl_rows: what $T/out has of them, without times, durations and handles.
nccl_rows() {
	sed -nE '/^[0-9.]+ +collectives /{s/^[0-9.]+ +collectives +[0-9]+ +//; s/[0-9.]+(ns|us|ms)$/DUR/; s/comm 0x[0-9a-f]+/comm C/; s/  +/ /; p}' "$T/out"
}

# nccl_calls_of FILE: its calls without times, durations, addresses and processes.
nccl_calls_of() {
	grep '"type":"call"' "$1" | sed -E 's/,"scope(_name)?":("[^"]*"|[0-9]+)//g; s/"(start_ns|duration_ns|pid|tid)":[0-9]+//g; s/0x[0-9a-f]+/0x/g'
}

NCCL_ALL='ncclCommInitRank rank 2 of 4, comm C, returned=0 (success), DUR
ncclAllReduce count=16777216 float32 sum, 64.0 MiB, rank 2 of 4, comm C, #1, returned=0 (success), DUR
ncclBroadcast count=100 int8, 100 B, root 3, rank 2 of 4, comm C, #2, returned=0 (success), DUR
ncclBroadcast count=100 int8, 100 B, root 1, rank 2 of 4, comm C, returned=0 (success), DUR
ncclBcast count=100 int8, 100 B, root 1, rank 2 of 4, comm C, #3, returned=0 (success), DUR
ncclAllGather count=1024 bfloat16, 2.0 KiB, rank 2 of 4, comm C, #4, returned=0 (success), DUR
ncclReduceScatter count=512 float32 max, 2.0 KiB, rank 2 of 4, comm C, #5, returned=0 (success), DUR
ncclGroupStart returned=0 (success), DUR
ncclSend count=7 int8, 7 B, peer 1, rank 2 of 4, comm C, returned=0 (success), DUR
ncclRecv count=7 int8, 7 B, peer 3, rank 2 of 4, comm C, returned=0 (success), DUR
ncclGroupEnd 2 calls (ncclSend, ncclRecv), 7 B, rank 2 of 4, comm C, returned=0 (success), DUR
ncclAllReduce count=1 type 99 op 77, rank 2 of 4, comm C, #6, returned=0 (success), DUR
ncclCommSplit rank 1 of 2, comm C, returned=0 (success), DUR
ncclAllReduce count=1 float32 sum, 4 B, rank 1 of 2, comm C, #1, returned=0 (success), DUR
ncclCommCount rank 1 of 2, comm C, returned=0 (success), DUR
ncclCommUserRank rank 1 of 2, comm C, returned=0 (success), DUR
ncclAllReduce count=1 float32 sum, 4 B, rank 1 of 2, comm C, #2, returned=0 (success), DUR
ncclCommShrink rank 1 of 2, comm C, returned=0 (success), DUR
ncclAllReduce count=1 float32 sum, 4 B, rank 1 of 2, comm C, #1, returned=0 (success), DUR
ncclCommInitRank rank 0 of 2, comm C, returned=0 (success), DUR
ncclCommInitRank rank 1 of 2, comm C, returned=0 (success), DUR
ncclCommInitAll 2 ranks, returned=0 (success), DUR
ncclAllReduce count=1 float32 sum, 4 B, rank 1 of 2, comm C, #1, returned=0 (success), DUR
ncclCommDestroy rank 2 of 4, comm C, returned=0 (success), DUR'

case_collectives_rows() {
	ct_rows --layers nccl -e nccl -- "$COLLECTIVES" all
	ok_rc
	nccl_rows > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$NCCL_ALL" || fail "rows differ: $(head -n 6 "$T/diff")"
	says '0 calls, 24 scopes, 0 lost'
}

case_collectives_chosen() {
	ct_rows --layers nccl -e collective -- "$COLLECTIVES" all
	ok_rc
	nccl_rows > "$T/got"
	grep -v '^ncclComm' <<< "$NCCL_ALL" | diff - "$T/got" > "$T/diff" || fail "rows differ: $(head -n 6 "$T/diff")"
	ct_rows --layers nccl -e communicator -- "$COLLECTIVES" all
	nccl_rows > "$T/got"
	grep '^ncclComm' <<< "$NCCL_ALL" | diff - "$T/got" > "$T/diff" || fail "rows differ: $(head -n 6 "$T/diff")"
	ct_rows --layers nccl -e collective --min-size 1M -- "$COLLECTIVES" all
	expect "large ones" "$(nccl_rows | grep -c .)" 1
}

# A call of NCCL begins and ends the window, as a range does.
case_collectives_window() {
	ct_rows --start-on nccl:ncclAllGather --stop-on 'nccl:ncclReduce*' -- "$COLLECTIVES" all
	ok_rc
	nccl_rows > "$T/got"
	grep -A 1 '^ncclAllGather' <<< "$NCCL_ALL" | diff - "$T/got" > "$T/diff" || fail "rows differ: $(head -n 6 "$T/diff")"
}

case_collectives_recorded() {
	ct record -o "$T/r.ctr" --layers nccl -- "$COLLECTIVES" all
	ok_rc
	ct replay "$T/r.ctr" -e nccl
	ok_rc
	nccl_rows > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$NCCL_ALL" || fail "rows differ: $(head -n 6 "$T/diff")"
}

case_collectives_json() {
	ct_json --layers nccl -- "$COLLECTIVES" all
	ok_rc
	no_loss
	python3 - "$T/out" > "$T/got" << 'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
for r in rows:
    if r['type'] == 'collective' and r['name'] in ('ncclAllReduce', 'ncclSend'):
        print(*(r.get(k) for k in ('name', 'layer', 'count', 'datatype', 'op', 'size_bytes', 'peer', 'communicator_rank', 'communicator_ranks', 'sequence', 'ret', 'result')))
print(*sorted({r['name'] for r in rows if r['type'] == 'communicator_call'}))
PY
	diff - "$T/got" > "$T/diff" <<- 'EOT' || fail "differs: $(head -n 6 "$T/diff")"
	ncclAllReduce nccl 16777216 float32 sum 67108864 None 2 4 1 0 ncclSuccess
	ncclSend nccl 7 int8 None 7 1 2 4 None 0 ncclSuccess
	ncclAllReduce nccl 1 99 77 None None 2 4 6 0 ncclSuccess
	ncclAllReduce nccl 1 float32 sum 4 None 1 2 1 0 ncclSuccess
	ncclAllReduce nccl 1 float32 sum 4 None 1 2 2 0 ncclSuccess
	ncclAllReduce nccl 1 float32 sum 4 None 1 2 1 0 ncclSuccess
	ncclAllReduce nccl 1 float32 sum 4 None 1 2 1 0 ncclSuccess
	ncclCommCount ncclCommDestroy ncclCommInitAll ncclCommInitRank ncclCommShrink ncclCommSplit ncclCommUserRank
	EOT
}

# CUDA's calls are the same with the layer and without, those inside NCCL's too, and have the same numbers.
case_collectives_leave_calls() {
	local -x STANDIN_NCCL_LAUNCH=1
	ct_json -- "$COLLECTIVES" many 5
	nccl_calls_of "$T/out" > "$T/without"
	ct_json --layers nccl -- "$COLLECTIVES" many 5
	nccl_calls_of "$T/out" > "$T/with"
	expect "calls" "$(wc -l < "$T/with")" 15
	expect "launches" "$(grep -c cudaLaunchKernel "$T/with")" 10
	grep -q '"correlation":15' "$T/with" || fail "calls have no numbers"
	diff "$T/without" "$T/with" > "$T/diff" || fail "calls differ: $(head -n 4 "$T/diff")"
	expect "collectives" "$(grep -c '"name":"ncclAllReduce"' "$T/out")" 10
	expect "the last number" "$(grep -o '"sequence":[0-9]*' "$T/out" | tail -n 1)" '"sequence":10'
}

has_collectives() {
	[ "$(grep -c '"type":"collective"' "$T/out")" -ge "$1" ]
}

# A communicator from before the trace: its rank and its numbers are read from the process. Before the trace are three calls.
case_collectives_attached() {
	local pid fd i
	mkfifo "$T/in"
	"$COLLECTIVES" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	printf 'xxx' >&"$fd"
	wait_for 10 grep -q 'done 3' "$T/prog.out"
	attach --layers nccl -e collective -p "$pid"
	for i in 1 2 3 4; do
		printf 'x' >&"$fd"
		wait_for 10 has_collectives $i # what a process says of itself is read while it lives
	done
	printf 'q' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect "collectives" "$(grep -c '"type":"collective"' "$T/out")" 4
	expect "ranks" "$(grep -c '"communicator_rank":2' "$T/out")" 4
	expect "communicators" "$(grep -o '"communicator_hash":"0x[0-9a-f]*"' "$T/out" | sort -u | wc -l)" 1
	expect "numbers" "$(grep -o '"sequence":[0-9]*' "$T/out" | tr '\n' ' ')" '"sequence":6 "sequence":7 '
}

# The hash of a communicator is the same in all processes that have it, and the same that `stuck` says.
case_collectives_hash() {
	ct_json --layers nccl -e collective -f -- sh -c "'$COLLECTIVES' failing; '$COLLECTIVES' failing"
	ok_rc
	expect "processes" "$(grep '"type":"collective"' "$T/out" | grep -o '"pid":[0-9]*' | sort -u | wc -l)" 2
	expect "communicators" "$(grep -o '"communicator_hash":"0x[0-9a-f]*"' "$T/out" | sort -u | wc -l)" 1
	expect "rows with one" "$(grep -c '"communicator_hash"' "$T/out")" 2
}

# Without the library's debug information nothing is guessed.
case_collectives_stripped() {
	mkdir "$T/lib"
	cp "$STANDIN/libnccl.so.2" "$T/lib/"
	strip --strip-debug "$T/lib/libnccl.so.2"
	ct_rows --layers nccl -e nccl -E "LD_PRELOAD=$T/lib/libnccl.so.2" -- "$COLLECTIVES" all
	ok_rc
	expect "the split" "$(nccl_rows | grep ncclCommSplit)" 'ncclCommSplit rank ?, comm C, returned=0 (success), DUR'
	expect "ranks that calls say" "$(nccl_rows | grep -c 'rank 2 of 4')" 12
}

case_collectives_failed() {
	ct_rows --layers nccl -e collective --failed -- "$COLLECTIVES" failing
	ok_rc
	expect "rows" "$(nccl_rows)" 'ncclAllReduce count=1 float32 sum, 4 B, returned=4 (ncclInvalidArgument), DUR'
	ct_rows --layers nccl -e collective --format csv -- "$COLLECTIVES" failing
	expect "results" "$(grep -c '^collective,.*,ncclAllReduce,,ncclInvalidArgument,4,' "$T/out")" 1
	expect "sizes" "$(grep -c '^collective,.*,ncclAllReduce,,ncclSuccess,8,.*sequence=1' "$T/out")" 1
}

# Calls by the collective that they are inside of. What is launched in a group belongs to its end.
case_collectives_stat() {
	STANDIN_NCCL_LAUNCH=1 ct stat --by collective --json -o "$T/sums" -- "$COLLECTIVES" many 5
	ok_rc
	python3 - "$T/sums" > "$T/got" << 'EOF'
import json, sys
t = json.load(open(sys.argv[1], encoding='utf-8'))
assert sum(r['calls'] for r in t['rows']) == t['calls'], t
for r in sorted(t['rows'], key=lambda r: r.get('name', '~')):
    print(r.get('name', 'none'), r['count'], r['calls'])
EOF
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "sums differ: $(head -n 6 "$T/diff")"
	ncclAllReduce 10 5
	ncclGroupEnd (ncclAllReduce) 5 5
	ncclGroupStart 5 0
	none 0 5
	EOF
}

# A kernel's bus bandwidth is that of the call, or of the group of one call, that launched it. The stand-in's kernels
# take 5 us: 1024 bytes of 4 ranks are 1.5 times 1024 bytes on the bus.
case_collectives_bandwidth() {
	local -x STANDIN_NCCL_LAUNCH=1
	ct_rows --layers nccl --gpu -- "$COLLECTIVES" many 2
	ok_rc
	expect "kernels" "$(grep -c '\[kernel\] .*, busbw=0.3072 GB/s, ' "$T/out")" 4
	ct stat --gpu --by collective --json -o "$T/sums" -- "$COLLECTIVES" many 5
	ok_rc
	python3 - "$T/sums" > "$T/got" <<- 'EOF'
	import json, sys
	for r in json.load(open(sys.argv[1], encoding='utf-8'))['rows']:
	    if 'bytes' in r:
	        print(*(r[k] for k in ('name', 'kernels', 'bytes', 'moved_ns', 'exposed_ns', 'alg_gbps', 'bus_gbps', 'sizes')))
	EOF
	sort "$T/got" | diff - <(cat <<- 'EOF'
	ncclAllReduce 5 5120 25000 25000 0.205 0.307 [{'from_bytes': 1024, 'count': 5}]
	ncclGroupEnd (ncclAllReduce) 5 5120 25000 25000 0.205 0.307 [{'from_bytes': 1024, 'count': 5}]
	EOF
	) > "$T/diff" || fail "sums differ: $(head -n 6 "$T/diff")"
}

# Small collectives with nothing beside them: both rules speak, live and of a recording.
case_collectives_advise() {
	local -x STANDIN_NCCL_LAUNCH=1
	ct advise --gpu --layers nccl --format json -o "$T/live" -- "$COLLECTIVES" many 60
	ok_rc
	ct record --gpu --layers nccl -o "$T/r.ctrace" -- "$COLLECTIVES" many 60
	ok_rc
	ct advise --format json -o "$T/later" "$T/r.ctrace"
	ok_rc
	for found in live later; do
		python3 - "$T/$found" > "$T/got" <<- 'EOF'
		import json, sys
		for f in json.load(open(sys.argv[1], encoding='utf-8'))['findings']:
		    if 'collectives' in f['rule']:
		        print(f['rule'], f['count'], f['cost_ns'])
		EOF
		expect "findings ($found)" "$(sort "$T/got")" 'exposed-collectives 120 600000
tiny-collectives 120 600000'
	done
}
