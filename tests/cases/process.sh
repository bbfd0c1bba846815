# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2153,SC2016
# process.sh - cases about processes: running ones, started ones, children, ends of all kinds.

case_attach_running() {
	target a queries 250
	attach -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	expect_rows cudaStreamQuery 250 "\"pid\":$PID_a,"
	no_loss
}

# -p ends when its target does, and not before.
case_attach_ends_with_target() {
	target a queries 3
	target b queries 4
	attach -p "$PID_a,$PID_b"
	go a
	go b
	stop a
	kill -0 "$CT" || fail "ended with the first of two targets"
	stop b
	finish
	ok_rc
	expect_rows cudaStreamQuery 3 "\"pid\":$PID_a,"
	expect_rows cudaStreamQuery 4 "\"pid\":$PID_b,"
}

# Nobody else pays: in another process with the same library no breakpoint stands.
case_attach_leaves_others_alone() {
	local byte
	target a queries 10
	target b queries 10
	attach -p "$PID_a"
	byte=$(first_byte "$PID_b" "$ADDR_b")
	expect "first byte of cudaMalloc in the traced process" "$(first_byte "$PID_a" "$ADDR_a")" cc
	expect "first byte of cudaMalloc in the other process" "$byte" 55
	go b
	go a
	stop a
	finish
	expect_rows cudaStreamQuery 10
	expect "rows of the other" "$(rows cudaStreamQuery "\"pid\":$PID_b,")" 0
	stop b
}

# After the end nothing is left in the process.
case_detach_restores() {
	target a queries 10
	attach -p "$PID_a"
	expect "first byte while traced" "$(first_byte "$PID_a" "$ADDR_a")" cc
	finish INT
	expect "first byte after" "$(first_byte "$PID_a" "$ADDR_a")" 55
	go a
	stop a
}

case_whole_machine() {
	local n
	n=$(random 20 200)
	target a queries "$n"
	attach
	go a
	stop a
	"$CALLS" queries 33 || fail "the second program"
	finish INT
	expect_rows cudaStreamQuery "$n" "\"pid\":$PID_a,"
	[ "$(rows cudaStreamQuery)" -ge $((n + 33)) ] || fail "a program that started later was not seen"
}

case_fork_followed() {
	local child
	ct_json -f -- "$CALLS" fork 7 9
	ok_rc
	child=$(awk '/^child/ { print $2 }' "$T/prog.out")
	expect_rows cudaStreamQuery 9 "\"pid\":$child,"
	expect_rows cudaStreamQuery 16
}

case_fork_not_followed() {
	target a fork 7 9
	attach -p "$PID_a"
	go a
	stop a
	finish
	expect_rows cudaStreamQuery 7
}

case_fork_followed_attached() {
	target a fork 7 9
	attach -f -p "$PID_a"
	go a
	stop a
	finish
	expect_rows cudaStreamQuery 16
}

case_exec() {
	ct_json -- "$CALLS" exec 5 8
	ok_rc
	expect_rows cudaStreamQuery 13
	no_loss
}

case_exec_attached() {
	target a exec 5 8
	attach -p "$PID_a"
	go a nowait
	finish
	ok_rc
	expect_rows cudaStreamQuery 13
}

case_status_returned() {
	ct -o "$T/rows" -- "$CALLS" status 17
	ok_rc 17
	ct -o "$T/rows" -- "$CALLS" kill 15
	ok_rc 143
	ct -o "$T/rows" -- /bin/true
	ok_rc 0
	ct -o "$T/rows" -- /nonexistent/program
	[ "$rc" != 0 ] || fail "a command that is not there gives status 0"
	says 'nonexistent'
}

# The output of CMD is CMD's, and its input too.
case_stdio_is_the_commands() {
	rc=0
	echo hello | "$CUDATRACE" -o "$T/rows" -- cat > "$T/out" 2> "$T/err" || rc=$?
	ok_rc
	expect "what cat printed" "$(cat "$T/out")" hello
}

# A signal to cudatrace goes to CMD; what CMD still does is traced; its status is returned.
signal_passes() {
	"${BACKGROUND[@]}" "$CUDATRACE" -v --format json -o "$T/out" -- "$CALLS" signal > "$T/prog.out" 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q waiting "$T/prog.out"
	kill -s "$1" "$CT"
	wait_for 5 ended "$CT"
	rc=0
	wait "$CT" || rc=$?
	expect "what the program got" "$(tail -n 1 "$T/prog.out")" "signal $2"
	ok_rc $((40 + $2))
	expect_rows cudaStreamQuery 3
}

case_sigint_passes() {
	signal_passes INT 2
}

case_sigterm_passes() {
	signal_passes TERM 15
}

# Killed inside a call: the row says that it never returned.
case_killed_in_call() {
	STANDIN_BLOCK=cudaStreamQuery:$T/never "$CALLS" queries 1 &
	local pid=$!
	wait_for 5 in_library "$pid"
	attach -p "$pid"
	kill -KILL "$pid"
	finish
	"$CUDATRACE" -v --format json -o "$T/out" -E STANDIN_BLOCK="cudaStreamQuery:$T/never" -- "$CALLS" queries 1 \
		> "$T/prog.out" 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q 'cudatrace: ready' "$T/err"
	wait_for 5 has_child "$CT"
	pid=$(pgrep -P "$CT" -x calls)
	wait_for 5 in_nanosleep "$pid"
	kill -KILL "$pid"
	wait_for 5 ended "$CT"
	rc=0
	wait "$CT" || rc=$?
	ok_rc 137
	expect_rows cudaStreamQuery 1 '"unfinished":true'
}

has_child() {
	pgrep -P "$1" -x calls > /dev/null
}

in_library() {
	grep -q libcudart "/proc/$1/maps" && in_nanosleep "$1"
}

# Blocked: the stand-in waits in short sleeps (230 clock_nanosleep, 35 nanosleep on x86-64; 115, 101 on aarch64).
in_nanosleep() {
	local nr
	read -r nr _ < "/proc/$1/syscall" || return 1
	[ "$nr" = 230 ] || [ "$nr" = 35 ] || [ "$nr" = 115 ] || [ "$nr" = 101 ]
}

# A call that has not returned when the tracer leaves.
case_unfinished_at_end() {
	STANDIN_BLOCK=cudaStreamQuery:$T/go "$CUDATRACE" -v -o "$T/rows" -d 0.7 -- "$CALLS" queries 2 > /dev/null 2> "$T/err" &
	CT=$!
	wait_for 8 grep -q 'unfinished' "$T/rows"
	touch "$T/go"
	wait_for 5 ended "$CT"
	expect "unfinished rows" "$(grep -c -E 'cudaStreamQuery .*<unfinished \.\.\.>' "$T/rows")" 1
}

# A call that hangs has its row while it hangs, once, and another one when it returns.
case_unfinished_live() {
	STANDIN_BLOCK=cudaStreamQuery:$T/go "$CUDATRACE" -v --format json --unfinished 0.3 -o "$T/out" -- "$CALLS" queries 2 \
		> "$T/prog.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 8 grep -q '"type":"pending"' "$T/out"
	grep '"type":"pending"' "$T/out" | grep -q '"api":"cudaStreamQuery"' || fail "another call is pending: $(cat "$T/out")"
	sleep 0.5
	touch "$T/go"
	finish
	expect "pending rows" "$(grep -c '"type":"pending"' "$T/out")" 1
	expect_rows cudaStreamQuery 2
	expect "finished rows of it" "$(grep '"type":"call"' "$T/out" | grep -c "$(grep '"type":"pending"' "$T/out" | grep -o '"ts_ns":[0-9]*')")" 1
}

# A sandbox that knows no uretprobe(2) kills the program at the return of a probed call, on kernels that ask it.
case_seccomp_no_return() {
	ct_json --no-return -- "$CALLS" seccomp 20
	ok_rc
	expect "the program" "$(cat "$T/prog.out")" survived
	expect "rows" "$(grep -c -F '"api":"cudaStreamQuery"' "$T/out")" 21
}

case_user() {
	id nobody > /dev/null 2>&1 || skip "no user nobody"
	chmod 777 "$T"
	ct -o "$T/rows" -u nobody -- id -un
	ok_rc
	expect "who CMD runs as" "$(cat "$T/out")" nobody
	ct -u no-such-user-here -- id -un
	[ "$rc" != 0 ] || fail "an unknown user is accepted"
	says 'no-such-user-here'
}

# The program gets the limits, the signal mask and the descriptors that it would have had without the tracer.
case_program_as_without() {
	local show='ulimit -S -a; grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status; ls /proc/self/fd | wc -l'
	(ulimit -S -n 512; exec bash -c "$show") > "$T/want" < /dev/null
	(ulimit -S -n 512; exec "$CUDATRACE" -o "$T/rows" -- bash -c "$show") > "$T/got" 2> "$T/err" < /dev/null
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

case_environment() {
	FOO=1 ct -o "$T/rows" -E BAR=2 -E FOO -- sh -c 'echo "${FOO-unset} $BAR"'
	ok_rc
	expect "the environment" "$(cat "$T/out")" "unset 2"
}

# 30 times, at a moment nobody chose: the tracer ends within a second, and nothing of it stays.
case_signals_at_any_moment() {
	local i start took sig slow=0
	"$SAMPLE" --seconds 60 --rate 50 > "$T/sample.out" &
	local sample=$!
	wait_for 5 test -s "$T/sample.out"
	for ((i = 0; i < 30; i++)); do
		sig=INT
		((i % 2)) && sig=TERM
		"${BACKGROUND[@]}" "$CUDATRACE" -o "$T/rows" -p "$sample" > /dev/null 2> "$T/err" &
		CT=$!
		sleep "0.$(printf %03d $((RANDOM % 400)))"
		start=${EPOCHREALTIME/./}
		kill -s "$sig" "$CT" 2> /dev/null
		until ended "$CT" 2> /dev/null; do
			took=$(((${EPOCHREALTIME/./} - start) / 1000))
			((took < 3000)) || fail "round $i: alive $took ms after SIG$sig"
			sleep 0.01
		done
		took=$(((${EPOCHREALTIME/./} - start) / 1000))
		((took > 1000)) && slow=$((slow + 1))
		wait "$CT" 2> /dev/null
	done
	((slow <= 1)) || fail "$slow of 30 took more than a second"
	kill -0 "$sample" || fail "the traced program died"
	kill "$sample"
}

case_no_link_left() {
	local ids id
	PATH=$PATH:/usr/sbin
	command -v bpftool > /dev/null || skip "no bpftool"
	target a queries 5
	attach -p "$PID_a"
	ids=$(sed -n 's/^link_id:[[:space:]]*//p' "/proc/$CT"/fdinfo/* 2> /dev/null)
	[ -n "$ids" ] || skip "no BPF links here: another kind of probe"
	finish TERM
	for id in $ids; do
		! bpftool link show id "$id" > /dev/null 2>&1 || fail "link $id is left"
	done
	stop a
}
