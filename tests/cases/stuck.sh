# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2153,SC2034
# stuck.sh - cases about `cudatrace stuck`: who is inside a call, since when, and who is not.

# hang [PROGRAM]: starts prog/stuck.c with calls that hang; PID_h, and TID_blocked and so on of its threads.
hang() {
	local name tid
	mkfifo "$T/h.in" "$T/wait" "$T/wait-driver" "$T/wait-late"
	echo 0 > "$T/spin"
	STANDIN_WAIT="cuStreamSynchronize:$T/wait,cuEventRecord:$T/wait-driver,cudaEventSynchronize:$T/wait-late" \
		STANDIN_SPIN="cuCtxSynchronize:$T/spin" "${1:-$BIN/stuck}" < "$T/h.in" > "$T/h.out" 2> "$T/h.err" &
	PID_h=$!
	exec {FD_h}> "$T/h.in"
	wait_for 5 grep -q '^ready' "$T/h.out"
	while read -r name tid; do
		[ "$name" = ready ] || declare -g "TID_${name//-/_}=$tid"
	done < "$T/h.out"
	wait_for 5 in_wait "$TID_blocked"
	wait_for 5 in_wait "$TID_driver"
}

# The thread waits for the other end of a FIFO.
in_wait() {
	grep -q wait_for_partner "/proc/$1/wchan" || grep -q '^\(257\|56\) ' "/proc/$1/syscall"
}

# unhang: lets the calls return and ends the program; what it noticed is nothing.
unhang() {
	printf 1 1<> "$T/spin" # not truncated: it is mapped
	: 1<> "$T/wait" 1<> "$T/wait-driver" # opened for both, which waits for nobody
	exec {FD_h}>&-
	wait_for 5 ended "$PID_h"
	expect "waits that ended too soon" "$(sed -n 's/^disturbed //p' "$T/h.out")" 0
	[ "$(sed -n 's/^short-calls //p' "$T/h.out")" -gt 1000 ] || fail "the thread with short calls made few: $(tail -n 2 "$T/h.out")"
}

# The rows of $T/out, sorted: tid, call.
stuck_rows() {
	sed -n 's/^{"type":"pending",.*"tid":\([0-9]*\),.*"domain":"[a-z]*","name":"\([^"]*\)".*/\1 \2/p' "$1" | sort
}

expect_hanging() {
	expect "threads and calls" "$(stuck_rows "$T/out")" "$(sort <<- END
		$TID_blocked cudaStreamSynchronize
		$TID_spinning cudaDeviceSynchronize
		$TID_driver cuEventRecord
	END
	)"
}

# What hung before cudatrace came: in a nested call, spinning, in the driver; and nobody else.
case_stuck_before() {
	hang
	ct stuck -p "$PID_h" --format json
	ok_rc 4
	expect_hanging
	expect "rows with a known beginning" "$(grep '"type":"pending"' "$T/out" | grep -v -c '"before":true')" 0
	expect "guesses" "$(grep -c by_scan "$T/out")" 0
	unhang
}

# A thread that hangs in an older call, in which CUDA's own code makes call after call: each of them begins
# behind the probes, and none of them shows that the older one has ended.
case_stuck_polls() {
	mkfifo "$T/in"
	echo 0 > "$T/poll"
	STANDIN_POLL="cudaStreamSynchronize:$T/poll,cudaEventSynchronize:$T/poll" "$BIN/polls" < "$T/in" > "$T/h.out" &
	PID_h=$!
	exec {FD_h}> "$T/in"
	wait_for 5 grep -q '^ready' "$T/h.out"
	ct stuck -p "$PID_h" --over 0.3 --format json
	ok_rc 4
	expect "threads and calls" "$(stuck_rows "$T/out")" "$(sort <<- END
		$(sed -n 's/^stream //p' "$T/h.out") cudaStreamSynchronize
		$(sed -n 's/^event //p' "$T/h.out") cudaEventSynchronize
	END
	)"
	expect "guesses" "$(grep -c by_scan "$T/out")" 0
	expect "rows with a known beginning" "$(grep '"type":"pending"' "$T/out" | grep -v -c '"before":true')" 0
	ct stuck -p "$PID_h" --over 0.3
	ok_rc 4
	expect "last line" "$(tail -n 1 "$T/out")" "2 threads of 1 process inside CUDA calls for more than 300ms"
	printf 1 1<> "$T/poll" # not truncated: it is mapped
	exec {FD_h}>&-
	wait_for 5 ended "$PID_h"
}

case_stuck_static() {
	hang "$BIN/stuck-static"
	ct stuck -p "$PID_h" --format json --over 0.3
	ok_rc 4
	expect_hanging
	unhang
}

case_stuck_whole_machine() { # long machine
	hang
	# programs that come and go have no row
	while :; do LD_LIBRARY_PATH=$STANDIN "$CALLS" queries 10; done &
	ct stuck --format json --over 300ms
	kill $!
	ok_rc 4
	expect "rows of programs without a call" "$(python3 -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
stuck = {r["pid"] for r in rows if r["type"] == "pending"}
print([r for r in rows if "pid" in r and r["pid"] not in stuck and r["type"] in ("process", "exec", "fork", "exit")])' "$T/out")" "[]"
	expect "what is known of the program" "$(grep -c "^{\"type\":\"process\",.*\"pid\":$PID_h," "$T/out")" 1
	grep "\"pid\":$PID_h," "$T/out" > "$T/mine"
	mv "$T/mine" "$T/out"
	expect_hanging
	unhang
}

case_stuck_table() {
	hang
	ct stuck -v -p "$PID_h" --over 0.5
	ok_rc 4
	# of more than a thousand only those that threads were inside of: three, and for a moment those of short calls
	says 'functions of . files, none probed yet'
	expect "few probes" "$(sed -n 's/.*: \([0-9]*\) functions that threads are inside of probed by.*/\1/p' "$T/err" | awk '$1 < 3 || $1 > 30' | wc -l)" 0
	expect "header" "$(head -n 1 "$T/out")" \
		"PROCESS         PID        TID        THREAD          FOR      EVENT                DETAILS"
	grep -q -E "^stuck +$PID_h +$TID_blocked +stuck +>[0-9.]+m?s +cudaStreamSynchronize began before the trace\$" "$T/out" ||
		fail "no row of the blocked thread: $(cat "$T/out")"
	expect "last line" "$(tail -n 1 "$T/out")" "3 threads of 1 process inside CUDA calls for more than 500ms"
	unhang
}

# Each row's own stack, from the caller on.
case_stuck_stack() {
	hang
	ct stuck -p "$PID_h" --over 0.3
	ok_rc 4
	awk -v tid="$TID_blocked" '$3 == tid { on = 1; next } /^[^ ]/ { on = 0 } on' "$T/out" > "$T/stack"
	grep -q '^ *wait_for_stream+0x[0-9a-f]* (tests/cases/prog/stuck.c:[0-9]*) ' "$T/stack" || fail "no caller: $(cat "$T/out")"
	expect "the caller's place" "$(grep -n 'wait_for_stream' "$T/stack" | cut -d: -f1)" 1
	expect "the second frame" "$(sed -n 2p "$T/stack" | grep -c '^ *blocked+0x')" 1
	expect "stacks with other threads' frames" "$(grep -c -E '^ *(idle|short_calls|in_callback|late|sleeper)\+' "$T/out")" 0
	unhang
}

# Threads at the same place are one row with their ids, and one stack; in JSON each has its own line.
case_stuck_groups() {
	local tids
	mkfifo "$T/wait"
	STANDIN_WAIT="cuStreamSynchronize:$T/wait" "$BIN/work" -t 12 1 return > "$T/h.out" &
	PID_h=$!
	wait_for 5 all_wait 12
	tids=$(cd "/proc/$PID_h/task" && printf '%s\n' * | grep -v "^$PID_h$" | sort -n | tr '\n' ' ')
	ct stuck -p "$PID_h" --over 0.3
	ok_rc 4
	expect "rows" "$(grep -c cudaStreamSynchronize "$T/out")" 1
	expect "threads of the group" "$(sed -n 's/^ *12 threads: //p' "$T/out" | tr ' ' '\n' | sort -n | tr '\n' ' ')" "$tids"
	expect "stacks" "$(grep -c '^ *work+0x' "$T/out")" 1
	expect "last line" "$(tail -n 1 "$T/out")" "12 threads of 1 process inside CUDA calls for more than 300ms"
	ct stuck -p "$PID_h" --over 0.3 --format json
	ok_rc 4
	expect "threads" "$(stuck_rows "$T/out" | cut -d' ' -f1 | sort -n | tr '\n' ' ')" "$tids"
	: 1<> "$T/wait"
	wait_for 5 ended "$PID_h"
	expect "the program's output" "$(cat "$T/h.out")" "launched 12"
}

all_wait() {
	local tid n=0
	for tid in "/proc/$PID_h/task"/*; do
		in_wait "${tid##*/}" && n=$((n + 1))
	done
	[ "$n" = "$1" ]
}

case_stuck_python() {
	python3 -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2> /dev/null ||
		skip "no Python from 3.10 to 3.14"
	mkfifo "$T/wait"
	cat > "$T/hang.py" <<- 'END'
		import ctypes, sys
		rt = ctypes.CDLL(sys.argv[1])
		class Trainer:
		    def step(self, n):
		        if n: return self.step(n - 1)
		        rt.cudaStreamSynchronize(0)
		print("ready", flush=True)
		Trainer().step(2)
	END
	STANDIN_WAIT="cuStreamSynchronize:$T/wait" python3 "$T/hang.py" "$STANDIN/libcudart.so.13" > "$T/h.out" &
	PID_h=$!
	wait_for 10 grep -q ready "$T/h.out"
	wait_for 5 in_wait "$PID_h"
	ct stuck -p "$PID_h" --over 0.3
	ok_rc 4
	expect "Python frames" "$(sed -n 's/^ *\([^ ]*\) (.*hang.py:\([0-9]*\)) \[python\]$/\1:\2/p' "$T/out" | tr '\n' ' ')" \
		"Trainer.step:6 Trainer.step:5 Trainer.step:5 <module>:8 "
	# ctypes calls the runtime's function, which called the driver's
	grep -q ' cudaStreamSynchronize began before the trace$' "$T/out" || fail "the call: $(cat "$T/out")"
	ct stuck -p "$PID_h" --over 0.3 --no-python
	ok_rc 4
	! grep -q '\[python\]' "$T/out" || fail "Python frames in spite of --no-python"
	: 1<> "$T/wait"
	wait_for 5 ended "$PID_h"
}

# libffi calls through a register a function that has jumped on, and calls no other function of the table.
case_stuck_ffi() {
	mkfifo "$T/wait"
	STANDIN_WAIT="cudaDeviceSynchronize:$T/wait" python3 -c '
import ctypes, sys
rt = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
rt.cudaDeviceSynchronize()
' "$STANDIN/libcudart.so.13" > "$T/h.out" &
	PID_h=$!
	wait_for 10 grep -q ready "$T/h.out"
	wait_for 5 in_wait "$PID_h"
	ct stuck -p "$PID_h" --over 0.3 --format json
	ok_rc 4
	expect "threads and calls" "$(stuck_rows "$T/out")" "$PID_h cudaDeviceSynchronize"
	expect "guesses" "$(grep -c by_scan "$T/out")" 0
	ct stuck --all-frames -p "$PID_h" --over 0.3
	ok_rc 4
	grep -q '^ *ffi_call+0x' "$T/out" || fail "no caller of libffi: $(cat "$T/out")"
	expect "the outermost frame" "$(grep '^  ' "$T/out" | tail -n 1 | grep -c '^ *_start+0x')" 1
	: 1<> "$T/wait"
	wait_for 5 ended "$PID_h"
}

# A call that begins after the attach: known beginning and arguments; reported once; then it goes on.
case_stuck_watch() { # long
	hang
	"${BACKGROUND[@]}" "$CUDATRACE" stuck -v -p "$PID_h" --over 0.3 --watch --format json -o "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q "\"tid\":$TID_blocked,.*cudaStreamSynchronize" "$T/out"
	! grep -q "\"tid\":$TID_late," "$T/out" || fail "a thread outside of CUDA is reported"
	echo >&"$FD_h"
	wait_for 10 grep -q "\"tid\":$TID_late,.*cudaEventSynchronize" "$T/out"
	sleep 0.7
	: 1<> "$T/wait-late"
	wait_for 5 grep -q '"type":"call".*cudaEventSynchronize' "$T/out"
	: 1<> "$T/wait"
	wait_for 5 grep -q '"type":"call".*cudaStreamSynchronize' "$T/out"
	finish INT
	ok_rc 4
	expect "rows of the late thread" "$(grep -c "\"tid\":$TID_late," "$T/out")" 2
	grep "\"type\":\"pending\".*\"tid\":$TID_late," "$T/out" > "$T/late"
	! grep -q '"before"' "$T/late" || fail "a call that began under the eyes of the tracer counts as before: $(cat "$T/late")"
	grep -q "\"args\":{\"event\":\"$TID_event\"}" "$T/late" || fail "arguments: $(cat "$T/late"), not $TID_event"
	grep "\"type\":\"call\".*\"tid\":$TID_late," "$T/out" | grep -q '"result":"cudaSuccess"' ||
		fail "its return: $(grep "\"tid\":$TID_late," "$T/out")"
	grep "\"type\":\"call\".*\"tid\":$TID_blocked," "$T/out" | grep -q '"before":true' ||
		fail "the return of an older one: $(grep "\"tid\":$TID_blocked," "$T/out")"
	unhang
}

# What is not in CUDA is not stuck in it.
case_stuck_none() {
	ct stuck -p $$ --over 0.1
	ok_rc 0
	says "process $$ has not loaded CUDA"
	expect "last line" "$(tail -n 1 "$T/out")" "no thread inside a CUDA call for more than 100ms"
	target a queries 100000
	ct stuck -p "$PID_a" --over 0.1
	ok_rc 0
	go a
	stop a
}

# A process that ends while it is looked at, again and again.
case_stuck_vanishing() { # long
	local i
	for i in 1 2 3 4 5; do
		hang
		"$CUDATRACE" stuck -p "$PID_h" --over 0.2 > "$T/out" 2> "$T/err" &
		CT=$!
		sleep "0.$((i * 7))"
		kill -KILL "$PID_h"
		finish
		[ "$rc" = 0 ] || [ "$rc" = 4 ] || { [ "$rc" = 1 ] && says 'process'; } || fail "status $rc: $(cat "$T/err")"
		exec {FD_h}>&-
		rm -f "$T"/h.* "$T"/wait*
	done
	ct stuck -p 4194303
	ok_rc 1
	says 'no process 4194303'
}

case_stuck_options() {
	ct stuck --over 0
	ok_rc 2
	says "over: '0' is no time"
	ct stuck --format folded
	ok_rc 2
	says 'table or json'
	ct stuck -- /bin/true
	ok_rc 2
}

# More processes than descriptors: not all of them are open at a time.
case_stuck_many() { # long machine
	local hold pids=()
	mkfifo "$T/hold"
	exec {hold}<> "$T/hold"
	while ((${#pids[@]} < 400)); do
		"$CALLS" lines <&"$hold" > /dev/null &
		pids+=($!)
	done
	hang
	rc=0
	(ulimit -n 600 && exec timeout -k 1 $((15 * PATIENCE)) "$CUDATRACE" stuck --format json --over 300ms) > "$T/out" 2> "$T/err" < /dev/null || rc=$?
	kill "${pids[@]}"
	exec {hold}>&-
	ok_rc 4
	grep "\"pid\":$PID_h," "$T/out" > "$T/mine"
	mv "$T/mine" "$T/out"
	expect_hanging
	unhang
}

# Inside an operator of PyTorch: the call of CUDA is named, not the operator around it.
case_stuck_operator() {
	local fd
	mkfifo "$T/wait"
	STANDIN_WAIT="cuLaunchKernel:$T/wait" "$BIN/operators" train 1 > "$T/h.out" 2>&1 &
	PID_h=$!
	wait_for 10 in_wait "$PID_h"
	ct stuck -p "$PID_h" --over 0.3 --format json
	ok_rc 4
	expect "threads and calls" "$(stuck_rows "$T/out")" "$PID_h cudaLaunchKernel"
	exec {fd}<> "$T/wait" # opened for both, which waits for nobody; each launch waits for the other end
	wait_for 5 ended "$PID_h"
	exec {fd}>&-
}
