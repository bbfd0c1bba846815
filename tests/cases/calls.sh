# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# calls.sh - cases about calls: that each is seen once, with its arguments, however it nests and however it ends.

# A trace as the sample prints it: EVENT DETAILS, without times, processes and durations.
normalise() {
	sed -n -E 's/^[0-9.]+ +[^ ]+ +[0-9]+ +([A-Za-z_0-9]+) +(.*)$/\1 \2/; t dur; d; :dur; s/[0-9.]+(ns|us|ms|s)$/DUR/; p' "$1"
}

case_golden_sample() {
	ct -o "$T/rows" -- "$SAMPLE" --expect "$T/want"
	ok_rc
	normalise "$T/rows" > "$T/got"
	[ -s "$T/want" ] || fail "the sample expects nothing"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

case_golden_sample_loop() {
	ct -o "$T/rows" -- "$SAMPLE" --expect "$T/want" --loop 20
	ok_rc
	normalise "$T/rows" > "$T/got"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

# Two rows a call, which together have all that its one row has: arguments at the entry, outputs, result and duration at the return.
case_enter_exit_wording() {
	ct_rows --enter-exit -e cudaMalloc,cudaMemcpy -- "$CALLS" mix 1 1 0
	ok_rc
	grep -q -E ' cudaMalloc +size=256 bytes$' "$T/out" || fail "no entry row: $(grep cudaMalloc "$T/out" | head -n 2)"
	grep -q -E ' cudaMalloc +devPtr=0x[0-9a-f]+, returned=0 \(success\), [0-9.]+(ns|us|ms)$' "$T/out" ||
		fail "no exit row: $(grep cudaMalloc "$T/out" | head -n 2)"
	grep -q -E ' cudaMemcpy +dst=0x[0-9a-f]+, src=0x[0-9a-f]+, size=64 bytes, kind=1 \(HostToDevice\)$' "$T/out" ||
		fail "no entry row: $(grep cudaMemcpy "$T/out" | head -n 2)"
	grep -q -E ' cudaMemcpy +returned=0 \(success\), [0-9.]+(ns|us|ms)$' "$T/out" || fail "no exit row: $(grep cudaMemcpy "$T/out" | head -n 2)"
}

case_exact_counts() {
	local a b c
	a=$(random 500 3000) b=$(random 500 3000) c=$(random 500 3000)
	ct_json -- "$CALLS" mix "$a" "$b" "$c"
	ok_rc
	expect_rows cudaMalloc $((a + 1))
	expect_rows cudaFree $((a + 1))
	expect_rows cudaMemcpy "$b"
	expect_rows cudaMemset "$c"
	no_loss
}

# The driver's call inside the runtime's is part of it...
case_nested_folded() {
	ct_json -- "$CALLS" mix 5 7 0
	ok_rc
	expect_rows cuMemAlloc_v2 0
	expect_rows cuMemcpyHtoD_v2 0
	expect_rows cudaMemcpy 7
	no_loss
}

# ...and shown with --nested, below it and indented.
case_nested_shown() {
	ct_rows --nested -e cudaMalloc,cuMemAlloc_v2 -- "$CALLS" mix 2 0 0
	ok_rc
	expect "rows of both" "$(grep -c -E 'cudaMalloc |cuMemAlloc_v2 ' "$T/out")" 6
	expect "indented rows" "$(grep -c -E '[0-9] +  cuMemAlloc_v2 ' "$T/out")" 3
	expect "the parent first" "$(grep -o -E 'cudaMalloc |cuMemAlloc_v2 ' "$T/out" | tr -d '\n')" \
		"cudaMalloc cuMemAlloc_v2 cudaMalloc cuMemAlloc_v2 cudaMalloc cuMemAlloc_v2 "
}

case_driver_direct() {
	ct_json -- "$CALLS" driver 9
	ok_rc
	expect_rows cuMemAlloc_v2 9 '"bytesize":512'
	expect_rows cuMemFree_v2 9
}

case_domain() {
	ct_json --domain driver -- "$CALLS" mix 3 0 0
	ok_rc
	expect_rows cudaMalloc 0
	expect_rows cuMemAlloc_v2 4
}

# A library that wraps CUDA's functions, by a call and by a jump: one call of the program is one row.
case_wrapper_and_tail_call() {
	ct_json -E LD_PRELOAD="$BIN/libwrap.so" -- "$CALLS" mix 6 0 0
	ok_rc
	expect_rows cudaMalloc 7 '"ret":0'
	expect_rows cudaFree 7 '"ret":0'
	no_loss
}

case_tail_call_loop() {
	local n
	n=$(random 1000 3000)
	ct_json -E LD_PRELOAD="$BIN/libwrap.so" -- "$CALLS" queries "$n"
	ok_rc
	expect_rows cudaStreamQuery "$n" '"ret":0'
	no_loss
}

# The program, called back inside a call, calls CUDA again: its calls belong to the call that it is in.
case_callback_folded() {
	ct_json -- "$CALLS" callback 4
	ok_rc
	expect_rows cudaStreamAddCallback 4
}

# A function that calls back by contract has an entry probe only: it must not break, nor hide what it calls.
case_callback_entry_only() {
	ct_json -- "$CALLS" occupancy 3
	ok_rc
	grep -F '"name":"cuOccupancyMaxPotentialBlockSize"' "$T/out" > "$T/occ" || fail "no row of it"
	expect "rows of it" "$(wc -l < "$T/occ")" 3
	expect "calls of the callback" "$(rows cudaStreamQuery)" 9
}

case_longjmp() {
	ct_json -- "$CALLS" longjmp 5
	ok_rc
	expect_rows cudaStreamQuery 5 '"ret":0'
	expect_rows cudaStreamAddCallback 5 '"unfinished":true'
}

# By hooks, calls whose recording a signal handler leaves by siglongjmp at all places of it: what is lost has its own cause, and the calls that
# follow have their rows.
case_siglongjmp_out_of_hooks() { # undisturbed
	local left lost unfinished
	[ "$(uname -m)" = x86_64 ] || skip "the trap flag is x86's"
	own_library
	ct_json --source=hooks -e memory -- "$BIN/jumps" leave 30 cudatrace/hooks-
	ok_rc
	left=$(sed -nE 's/^left ([0-9]+) of 30$/\1/p' "$T/prog.out")
	[ "${left:-0}" -ge 20 ] || fail "the program said $(cat "$T/prog.out")"
	expect_rows cudaFree 30 '"ret":0'
	expect_rows cudaMalloc $((30 - left)) '"ret":0'
	lost=$(sed -nE 's/^\{"type":"end".*"left_by_signal":([0-9]+).*/\1/p' "$T/out")
	unfinished=$(sed -nE 's/^\{"type":"end".*"unfinished":([0-9]+).*/\1/p' "$T/out")
	[ "$lost" -ge 2 ] || fail "$lost calls are counted as left"
	[ $((lost + unfinished)) -le "$left" ] || fail "$lost lost and $unfinished unfinished of $left that were left"
	grep '^{"type":"end"' "$T/out" | grep -q -F '"too_deep":0,' || fail "too deep: $(tail -n 1 "$T/out")"
	says "lost: $lost calls that a signal handler left by siglongjmp\\(\\) while they were recorded"
}

# Ways to leave a call by siglongjmp, and what is called next: every call has a row of its own, whatever kind of links there is.
left_by_signals() { # MODE ROUNDS SYNCS STREAMS ARGS...
	local mode=$1 rounds=$2 syncs=$3 streams=$4
	shift 4
	ct_json "$@" -E STANDIN_BLOCK="cudaDeviceSynchronize:$T/never" -- "$BIN/jumps" "$mode" "$rounds"
	ok_rc
	expect_rows cudaDeviceSynchronize "$syncs" '"unfinished":true'
	expect_rows cudaDeviceSynchronize "$syncs"
	expect_rows cudaMalloc "$(sed -nE 's/.* malloc ([0-9]+).*/\1/p' "$T/prog.out")" '"ret":0'
	expect_rows cudaFree "$(sed -nE 's/.* malloc ([0-9]+).*/\1/p' "$T/prog.out")" '"ret":0'
	expect_rows cudaStreamSynchronize "$streams" '"ret":0'
	expect "the end record" "$(grep -o '"unfinished":[0-9]*' "$T/out" | tail -n 1)" "\"unfinished\":$syncs"
	no_loss
}

case_siglongjmp() {
	left_by_signals out 3 21 3
	expect "what the program did" "$(cat "$T/prog.out")" "sync 21 malloc 12 stream 3"
}

case_siglongjmp_multi() {
	left_by_signals out 3 21 3 --probe-kind multi
}

case_siglongjmp_tracefs() { # long
	left_by_signals out 3 21 3 --probe-kind tracefs
}

# Code that lies in no file is no trampoline of the kernel's.
case_siglongjmp_jit() {
	[ "$(uname -m)" = x86_64 ] || skip "the program's code is for x86-64"
	left_by_signals jit 5 5 0
	expect "what the program did" "$(cat "$T/prog.out")" "sync 5 malloc 5"
	left_by_signals jit 5 5 0 --probe-kind multi
}

# A signal after each instruction of a call, those of the kernel's trampoline too, to which the function returns. The handler makes a call
# that has a row of its own, and the interrupted one is not taken for one that was left.
stepped() { # ARGS...
	local handled rows folded
	ct_json "$@" -e cudaStreamQuery --keep-chatty -- "$BIN/jumps" step 20
	ok_rc
	handled=$(sed -nE 's/^called 20 handled ([0-9]+)$/\1/p' "$T/prog.out")
	[ "${handled:-0}" -gt 200 ] || fail "the program said $(cat "$T/prog.out")"
	expect_rows cudaStreamQuery 20 '"stream":"0x1".*"ret":0'
	rows=$(rows cudaStreamQuery '"stream":"0x0".*"ret":0')
	folded=$(sed -nE 's/^\{"type":"end".*"folded":([0-9]+).*/\1/p' "$T/out")
	expect "$rows rows and $folded folded calls of the handler" $((rows + folded)) "$handled"
	# beside other tracers of the function some are counted as a part of the interrupted one
	[ $((folded * 50)) -le "$handled" ] || fail "$folded of $handled calls of the handler are folded"
	expect_rows cudaStreamQuery 0 '"unfinished":true'
	expect "the end record" "$(grep -oE '"(unfinished|orphan_return)":[0-9]+' "$T/out" | xargs)" "unfinished:0 orphan_return:0"
	no_loss
}

case_signal_at_each_instruction() { # long
	[ "$(uname -m)" = x86_64 ] || skip "the trap flag is x86's"
	stepped
	stepped --probe-kind multi
	stepped --probe-kind tracefs
}

# The same by hooks, where a handler's calls inside the interrupted one are folded: each call of the program has its row.
case_signal_at_each_instruction_hooks() { # undisturbed
	local handled rows folded
	[ "$(uname -m)" = x86_64 ] || skip "the trap flag is x86's"
	own_library
	ct_json --source=hooks -e cudaStreamQuery -- "$BIN/jumps" step 20
	ok_rc
	handled=$(sed -nE 's/^called 20 handled ([0-9]+)$/\1/p' "$T/prog.out")
	[ "${handled:-0}" -gt 200 ] || fail "the program said $(cat "$T/prog.out")"
	expect_rows cudaStreamQuery 20 '"stream":"0x1".*"ret":0'
	rows=$(rows cudaStreamQuery '"stream":"0x0".*"ret":0')
	folded=$(sed -nE 's/^\{"type":"end".*"folded":([0-9]+).*/\1/p' "$T/out")
	expect "rows and folded calls of the handler" $((rows + folded)) "$handled"
	expect_rows cudaStreamQuery 0 '"unfinished":true'
	no_loss
}

# Calls of a signal's handler on an alternate stack, while another call waits: above it the kernel would forget that one's return
# probe, and end the program. They have no return probe, and rows of their own. Another tracer's return probes end these programs
# whatever ours do.
on_alternate_stack() { # WHERE ARGS...
	local where=$1
	shift
	rm -f "$T/go"
	ct_json "$@" -E STANDIN_BLOCK="cudaDeviceSynchronize:$T/go" -- "$BIN/jumps" alt "$where" 5 "$T/go"
	ok_rc
	expect "$where: the program" "$(xargs < "$T/prog.out")" "ready handled 5 devices 1"
	handlers_rows "\"args\""
	no_loss
}

handlers_rows() { # FILTER
	expect_rows cudaDeviceSynchronize 1 "$1.*\"ret\":0"
	expect_rows cudaMalloc 5 "$1"
	expect_rows cudaFree 5 "$1"
	expect_rows cudaMalloc 0 "$1.*(\"duration_ns\"|\"ret\")"
}

case_alternate_stack() { # undisturbed
	with_sessions
	own_library
	on_alternate_stack above
	expect_rows cuMemAlloc_v2 0
	on_alternate_stack below
	expect_rows cuMemAlloc_v2 0
	on_alternate_stack above --nested
	expect_rows cuMemAlloc_v2 5
}

# with_stack WHERE ARGS...: the same program, which waits, and cudatrace beside it.
with_stack() {
	local where=$1 program
	shift
	mkfifo "$T/in"
	STANDIN_BLOCK="cudaDeviceSynchronize:$T/go" "$BIN/jumps" alt "$where" 5 "$T/go" < "$T/in" > "$T/prog.out" &
	program=$!
	exec {IN}> "$T/in"
	wait_for 5 grep -q ready "$T/prog.out"
	attach "$@" ${PID_WANTED:+-p "$program"}
	PROGRAM=$program
}

# What one process is traced by: plain pairs of probes, but not where a thread has an alternate stack.
case_alternate_stack_attached() { # undisturbed
	with_sessions
	own_library
	PID_WANTED=1 with_stack above
	printf '\n\n' >&"$IN"
	exec {IN}>&-
	finish
	ok_rc
	wait "$PROGRAM" || fail "the program ended with status $?"
	handlers_rows "\"pid\":$PROGRAM,"
	no_loss
}

# The whole machine has sessions alone, which no alternate stack disturbs: nothing is replaced, and no call is missed.
case_alternate_stack_everywhere() {
	with_sessions
	with_stack below
	printf '\n' >&"$IN"
	printf '\n' >&"$IN"
	exec {IN}>&-
	wait "$PROGRAM" || fail "the program ended with status $?"
	finish INT
	! grep -q 'alternate signal stack' "$T/err" || fail "$(grep 'alternate signal stack' "$T/err")"
	expect_rows cudaSetDevice "$(sed -nE 's/.*devices ([0-9]+)/\1/p' "$T/prog.out")" "\"pid\":$PROGRAM,.*\"ret\":0"
	handlers_rows "\"pid\":$PROGRAM,"
}

case_longjmp_no_return() {
	ct_json --no-return -- "$CALLS" longjmp 5
	ok_rc
	expect "rows" "$(grep -c -F '"name":"cudaStreamAddCallback"' "$T/out")" 5
}

# An exception that unwinds through a call needs the true return address: --no-return leaves it alone.
case_exception_no_return() {
	ct_json --no-return -- "$BIN/throw" 4 6
	ok_rc
	expect "the program's own count" "$(cat "$T/prog.out")" "destroyed 4 caught 4"
	expect "rows" "$(grep -c -F '"name":"cudaStreamQuery"' "$T/out")" 6
}

case_thread_exit_no_return() {
	ct_json --no-return -- "$CALLS" thread-exit 3 5
	ok_rc
	expect "clean-up handlers run" "$(cat "$T/prog.out")" "cleaned 3"
	expect "rows" "$(grep -c -F '"name":"cudaStreamQuery"' "$T/out")" 5
}

# With return probes the program may die of such an unwinding; the tracer reports its end and is well.
case_exception_with_return() {
	rc=0
	timeout -k 1 150 "$CUDATRACE" --format json -o "$T/out" -- "$BIN/throw" 1 1 > /dev/null 2> "$T/err" < /dev/null || rc=$?
	[ "$rc" = 0 ] || [ "$rc" = 134 ] || fail "status $rc"
	grep -q '^{"type":"end"' "$T/out" || fail "no end record"
}

case_threads() {
	local bad
	ct_json -- "$CALLS" threads 32 400
	ok_rc
	expect "threads" "$(grep -c '^thread' "$T/prog.out")" 32
	grep -F '"name":"cudaStreamQuery"' "$T/out" | grep -o '"tid":[0-9]*' | sort | uniq -c |
		sed -E 's/ *([0-9]+) "tid":([0-9]+)/thread \2 \1/' | sort > "$T/seen"
	bad=$(sort "$T/prog.out" | diff - "$T/seen" | head -n 3)
	[ -z "$bad" ] || fail "calls by thread differ: $bad"
	no_loss
}

case_main_thread_gone() {
	ct_json -- "$CALLS" main-gone 12
	ok_rc
	expect_rows cudaStreamQuery 12
	no_loss
}

case_main_thread_gone_attached() {
	target a main-gone 300
	attach -p "$PID_a"
	go a nowait
	finish
	expect_rows cudaStreamQuery 300
}

# Arguments beyond the registers.
case_stack_arguments() {
	local stream
	ct -o "$T/rows" -- "$CALLS" stack
	ok_rc
	read -r _ stream _ < "$T/out" || fail "the program said nothing"
	grep -q -E "cudaLaunchKernel .*grid=\(11,12,13\), block=\(14,15,16\), .*sharedMem=768 bytes, stream=$stream" "$T/rows" ||
		fail "$(grep cudaLaunchKernel "$T/rows")"
	grep -q -E "cudaMemcpy2DAsync .*dpitch=128.*spitch=64.*width=32.*height=16.*stream=$stream" "$T/rows" ||
		fail "$(grep cudaMemcpy2DAsync "$T/rows")"
	grep 'cuLaunchKernel ' "$T/rows" | grep -E '21.*22.*23.*24.*25.*26.*4096' | grep -q "tream=$stream" ||
		fail "$(grep 'cuLaunchKernel ' "$T/rows")"
}

# More calls in flight in a thread than are kept: counted, and what comes after is right.
case_depth_overflow() {
	ct_json --nested -- "$CALLS" depth 12 3 50
	ok_rc
	expect_rows cudaStreamQuery 50 '"ret":0'
	expect_rows cudaStreamAddCallback 24
	grep '^{"type":"end"' "$T/out" | grep -q -F '"too_deep":12,' ||
		fail "the overflow is not counted: $(tail -n 1 "$T/out")"
}

case_strict() {
	ct --strict --nested -o "$T/rows" -- "$CALLS" depth 12 1 1
	ok_rc 3
	ct --strict -o "$T/rows" -- "$CALLS" queries 5
	ok_rc 0
}

# A ring of the smallest size: what is lost is counted, to the last call. What a thread's first call does to have a context is
# in the ring before the flood: it is captured, and counted when it is lost, though not shown.
case_tiny_ring_exact() {
	local got lost
	ct_json --ring-size 64K --keep-chatty -e cudaStreamQuery -- "$CALLS" threads 2 60000 0 1
	ok_rc
	want=$(awk '/^thread/ { n += $3 } END { print n }' "$T/prog.out")
	got=$(rows cudaStreamQuery)
	lost=$(grep '^{"type":"end"' "$T/out" | grep -o '"ring_full":[0-9]*' | cut -d: -f2)
	expect "received + lost" $((got + ${lost:-0})) "$want"
}

# The end of a process that finds no room is no call: it is told apart from them.
case_tiny_ring_untold_end() {
	target prog queries 5000
	attach --ring-size 64K --keep-chatty -p "$PID_prog"
	kill -STOP "$CT"
	go prog
	stop prog
	kill -CONT "$CT"
	wait_for 10 ended "$CT"
	says "; 1 fork, exec or end of a process was lost: rows may show a process.s old name \(raise --ring-size\)"
}

case_hostile_arguments() {
	ct_json -- "$CALLS" hostile
	ok_rc
	expect "the program" "$(cat "$T/prog.out")" "survived"
	grep -q '^{"type":"end"' "$T/out" || fail "no end record"
	command -v python3 > /dev/null || return 0
	python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8"): json.loads(line)' "$T/out" || fail "not JSON"
	ct -o "$T/rows" -- "$CALLS" hostile
	ok_rc
	! grep -q -P '[\x00-\x08\x0b-\x1f\x7f]' "$T/rows" || fail "control characters in the table"
}

case_per_thread_build() {
	ct_json -- "$BIN/calls-ptsz" mix 2 5 3
	ok_rc
	expect_rows cudaMemcpy 5 '"per_thread":true'
	expect_rows cudaMemset 3 '"per_thread":true'
	no_loss
}

# Why there is no call, in the last line: by probes, by hooks, one by one and counted.
# The text that a returned address points to is shown, and an error is named in the same way as an argument and as a result.
case_calls_error_texts() { # undisturbed
	local source
	for source in probes hooks; do
		[ "$source$(uname -m)" != hooksaarch64 ] || continue
		ct --source=$source -o "$T/out" -- "$CALLS" words
		ok_rc
		expect "rows by $source" "$(sed -nE 's/^.* (cu[A-Za-z]*GetError[A-Za-z]*) +(.*), [0-9.]+[mun]?s$/\1 \2/p' "$T/out")" \
			'cudaGetErrorString error=2 (cudaErrorMemoryAllocation), returned="out of memory"
cudaGetErrorName error=2 (cudaErrorMemoryAllocation), returned="cudaErrorMemoryAllocation"
cudaGetErrorName error=123456, returned="cudaErrorUnknown"
cuGetErrorName error=1 (CUDA_ERROR_INVALID_VALUE), pStr="CUDA_ERROR_INVALID_VALUE", returned=0 (success)'
	done
	ct record -o "$T/r.ctrace" -- "$CALLS" words
	ok_rc
	ct replay --format json -o "$T/json" "$T/r.ctrace"
	expect "JSON" "$(python3 -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
for r in rows:
    if r["type"] == "call":
        print(r["name"], r["args"]["error"], r["ret"] if r["ret"] == 0 else r["ret"][:2], r["result"])' "$T/json")" \
		'cudaGetErrorString cudaErrorMemoryAllocation 0x out of memory
cudaGetErrorName cudaErrorMemoryAllocation 0x cudaErrorMemoryAllocation
cudaGetErrorName 123456 0x cudaErrorUnknown
cuGetErrorName CUDA_ERROR_INVALID_VALUE 0 CUDA_SUCCESS'
	ct replay --format csv -o "$T/csv" "$T/r.ctrace"
	expect "csv" "$(python3 -c '
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    if r["type"] == "call":
        print(r["name"], r["result"], r["details"])' "$T/csv")" \
		'cudaGetErrorString out of memory error=cudaErrorMemoryAllocation
cudaGetErrorName cudaErrorMemoryAllocation error=cudaErrorMemoryAllocation
cudaGetErrorName cudaErrorUnknown error=123456
cuGetErrorName CUDA_SUCCESS error=CUDA_ERROR_INVALID_VALUE, pStr="CUDA_ERROR_INVALID_VALUE"'
}

case_why_no_calls() { # undisturbed
	local source command load="import ctypes, sys; ctypes.CDLL(sys.argv[1])"
	one_line() { grep '^cudatrace: 0 calls' "$T/err"; }
	for source in probes hooks; do
		for command in "" stat "record -o $T/r.ctrace" "mem -o /dev/null" "-c"; do
			# shellcheck disable=SC2086
			ct $command --source=$source -- true
			ok_rc
			expect "$command of what loads nothing" "$(one_line)" "cudatrace: 0 calls, 0 lost: the program loaded no CUDA library"
		done
		ct --source=$source -- python3 -c "$load" "$STANDIN/libcudart.so.13"
		ok_rc
		expect "what only loads it, by $source" "$(one_line)" "cudatrace: 0 calls, 0 lost: a CUDA library was loaded, and none of its functions was called"
		ct --source=$source -e memory -- python3 -c "$load" "$STANDIN/libcudart.so.13"
		expect "chosen functions, by $source" "$(one_line)" \
			"cudatrace: 0 calls, 0 lost: a library with the chosen functions was loaded, and none of them was called"
		ct --source=$source --domain driver -- true
		expect "none has them, by $source" "$(one_line)" "cudatrace: 0 calls, 0 lost: the program loaded no library that has the chosen functions"
		ct --source=$source --min-duration 1h -- "$CALLS" queries 3
		expect "filtered, by $source" "$(one_line)" "cudatrace: 0 calls, 0 lost: calls were made, and the options show none of them"
		ct --source=$source -- "$CALLS" queries 3
		says '^cudatrace: 3 calls, 0 lost$'
	done
	sleep 60 &
	ct -d 0.2 -p $!
	expect "a process" "$(one_line)" "cudatrace: 0 calls, 0 lost: no CUDA library is loaded there"
	ct -d 0.2 -L $!
	expect "a thread" "$(one_line)" "cudatrace: 0 calls, 0 lost: no CUDA library is loaded there"
	ct -d 0.2 -e memory -L $!
	expect "chosen functions, of a thread" "$(one_line)" \
		"cudatrace: 0 calls, 0 lost: no library that has the chosen functions is loaded there"
	# nothing is said of what is not known: an old recording, and calls that were not asked for
	ct replay "$T/r.ctrace"
	expect "a recording" "$(one_line)" "cudatrace: 0 calls, 0 lost"
}
