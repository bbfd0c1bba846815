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
case_attach_leaves_others_alone() { # undisturbed
	local byte
	own_library
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
case_detach_restores() { # undisturbed
	own_library
	target a queries 10
	attach -p "$PID_a"
	expect "first byte while traced" "$(first_byte "$PID_a" "$ADDR_a")" cc
	finish INT
	expect "first byte after" "$(first_byte "$PID_a" "$ADDR_a")" 55
	go a
	stop a
}

# beside ENV...: runs a case, in whose midst a tracer of the whole machine comes, started by env ENV. It is process OTHER.
beside() {
	rm -f "$T/start" "$T/other.err"
	cat > "$T/beside" <<- END
		#!/bin/bash
		touch "$T/start"
		until grep -qs 'cudatrace: ready' "$T/other.err"; do sleep 0.02; done
		exec "$CUDATRACE" "\$@"
	END
	chmod +x "$T/beside"
	(
		until [ -e "$T/start" ]; do sleep 0.02; done
		exec env "$@" "$CUDATRACE" -v -o /dev/null
	) 2> "$T/other.err" &
	OTHER=$!
	TRIES=1 CUDATRACE=$T/beside tests/cases/run.sh attach_leaves_others_alone > "$T/out"
	end_jobs
}

# A tracer of others is a reason to skip a case; one of these tests, which takes no lock, is a fault.
case_attach_beside_another_tracer() { # machine
	local byte='first byte of cudaMalloc in the other process: cc, not 55'
	local seen="^skip .*process [0-9]* (.*) traces every program of this machine, and with it: $byte"
	own_library
	beside -u CUDATRACE_TESTS
	grep -q "$seen" "$T/out" || fail "$(cat "$T/out")"
	beside CUDATRACE_TESTS=1
	# a tracer of others may have come and gone meanwhile: then that one is named
	grep -q "^not ok .*another case traced the whole machine beside this one, and has no mark: $byte" "$T/out" ||
		{ grep -q "$seen" "$T/out" && ! grep -q "process $OTHER (" "$T/out"; } || fail "$(cat "$T/out")"
}

# A message about another tracer, of which nothing is seen, is a reason to run a case again, but none to skip it.
case_wrong_message_is_a_fault() { # long machine
	own_library
	printf '#!/bin/bash\necho "cudatrace: another tracer has a breakpoint there" >&2\nexit 1\n' > "$T/wrong"
	chmod +x "$T/wrong"
	! TRIES=2 PATIENCE=1 CUDATRACE=$T/wrong tests/cases/run.sh detach_restores > "$T/out" || fail "$(cat "$T/out")"
	expect "lines" "$(sed -E '/^ /d; s/:.*//' "$T/out" | xargs)" "again detach_restores not ok detach_restores 0 passed, 1 failed, 0 skipped"
	grep -q '^not ok detach_restores: cudatrace ended at once' "$T/out" || fail "$(cat "$T/out")"
	# what it said last is set in below
	grep -q '^    cudatrace: another tracer has a breakpoint there$' "$T/out" || fail "$(cat "$T/out")"
}

# Once the other tracer has gone, the case that it disturbed is run again.
case_disturbed_case_runs_again() { # long machine
	own_library
	cat > "$T/beside" <<- END
		#!/bin/bash
		if [ ! -e "$T/start" ]; then
			touch "$T/start"
			until grep -q 'cudatrace: ready' "$T/other.err"; do sleep 0.02; done
		fi
		exec "$CUDATRACE" "\$@"
	END
	chmod +x "$T/beside"
	mkdir "$T/dirs"
	(
		until [ -e "$T/start" ]; do sleep 0.02; done
		"${BACKGROUND[@]}" "$CUDATRACE" -v -o /dev/null &
		until compgen -G "$T/dirs/*/disturbed"; do sleep 0.02; done
		kill -INT $!
	) > /dev/null 2> "$T/other.err" &
	TMPDIR=$T/dirs CUDATRACE=$T/beside tests/cases/run.sh attach_leaves_others_alone > "$T/out" || fail "$(cat "$T/out")"
	grep -q '^again attach_leaves_others_alone: ' "$T/out" || fail "$(cat "$T/out")"
	grep -q '^ok attach_leaves_others_alone' "$T/out" || fail "$(cat "$T/out")"
}

# A case whose job ends before it has a result is no case that nobody asked for.
case_lost_job_is_a_fault() {
	cat > "$T/ends" <<- 'END'
		#!/bin/bash
		job=$PPID
		until [[ $(tr '\0' ' ' < "/proc/$job/cmdline") = *cases/run.sh\ events_unknown* ]]; do
			job=$(sed -n 's/^PPid:\t//p' "/proc/$job/status")
		done
		kill "$job"
	END
	chmod +x "$T/ends"
	! CUDATRACE=$T/ends tests/cases/run.sh events_unknown > "$T/out" || fail "$(cat "$T/out")"
	expect "what is said" "$(cat "$T/out")" "not ok events_unknown: its job ended without a result
0 passed, 1 failed, 0 skipped"
}

case_attach_to_everybody_is_a_fault() { # long machine
	own_library
	cat > "$T/everybody" <<- END
		#!/bin/bash
		while [ "\$1" != -p ]; do args+=("\$1"); shift; done
		exec "$CUDATRACE" "\${args[@]}"
	END
	chmod +x "$T/everybody"
	! CUDATRACE=$T/everybody tests/cases/run.sh attach_leaves_others_alone > "$T/out" || fail "$(cat "$T/out")"
	grep -q '^not ok .*: first byte of cudaMalloc in the other process: cc, not 55' "$T/out" || fail "$(cat "$T/out")"
}

case_whole_machine() { # machine
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

# A way off: the program alone, and the trace ends with it though its child runs on.
case_fork_not_followed_launched() {
	ct_json --no-follow -- "$CALLS" fork 7 9
	ok_rc
	expect_rows cudaStreamQuery 7
	no_loss
	ct_json --no-follow -- sh -c "'$CALLS' queries 5; exec '$CALLS' queries 3"
	ok_rc
	expect_rows cudaStreamQuery 3
	ct_json --no-follow -- sh -c "sleep 30 & echo \$! > '$T/pid'; exec '$CALLS' threads 3 1 2"
	ok_rc
	no_loss
	kill "$(cat "$T/pid")" || fail "the child did not run on"
	ct stat --no-follow --json -o "$T/stat.json" -- "$CALLS" fork 7 9
	ok_rc
	grep -q '"calls":7,' "$T/stat.json" || fail "$(head -c 400 "$T/stat.json")"
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
	not_ready
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
	says '1 unfinished'
}

# Threads that call without a pause, and end, while tracers come and go: what their rows say is what they did.
case_detach_tells_the_truth() {
	local i traces=()
	nice "$BIN/busy" 6 "$T/busy.log" > "$T/busy.out" &
	local busy=$!
	wait_for 5 grep -q ready "$T/busy.out"
	for i in {1..6}; do
		traces+=("$T/rows$i")
		timeout -k 1 150 "$CUDATRACE" --format json -o "$T/rows$i" -e cudaDeviceSetLimit -d 0.05 -p "$busy" 2> "$T/err" ||
			fail "trace $i: $(tail -n 3 "$T/err")"
	done
	kill "$busy"
	wait_for 10 ended "$busy"
	python3 "$ROOT/tests/cases/check_busy.py" "$T/busy.log" "${traces[@]}" > "$T/why.busy" || fail "$(cat "$T/why.busy")"
}

# A call that hangs has its row while it hangs, once, and another one when it returns.
case_unfinished_live() {
	STANDIN_BLOCK=cudaStreamQuery:$T/go "$CUDATRACE" -v --format json --unfinished 0.3 -o "$T/out" -- "$CALLS" queries 2 \
		> "$T/prog.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 8 grep -q '"type":"pending"' "$T/out"
	grep '"type":"pending"' "$T/out" | grep -q '"name":"cudaStreamQuery"' || fail "another call is pending: $(cat "$T/out")"
	sleep 0.5
	touch "$T/go"
	finish
	expect "pending rows" "$(grep -c '"type":"pending"' "$T/out")" 1
	expect_rows cudaStreamQuery 2
	expect "finished rows of it" "$(grep '"type":"call"' "$T/out" | grep -c "$(grep '"type":"pending"' "$T/out" | grep -o '"start_ns":[0-9]*')")" 1
}

# A sandbox that knows no uretprobe(2) kills the program at the return of a probed call, on kernels that ask it.
case_seccomp_no_return() {
	ct_json --no-return -- "$CALLS" seccomp 20
	ok_rc
	expect "the program" "$(cat "$T/prog.out")" survived
	expect "rows" "$(grep -c -F '"name":"cudaStreamQuery"' "$T/out")" 21
}

# A return probe is a system call: where those have become SIGSYS, calls are seen at their entry alone, whether that was so before the trace
# or is so from some call on.
case_dispatched_no_return() { # undisturbed
	with_sessions
	ct_json -- "$CALLS" forbids 20 dispatch
	ok_rc
	expect "the program" "$(cat "$T/prog.out")" survived
	expect "rows" "$(grep -c -F '"name":"cudaStreamQuery"' "$T/out")" 21
	expect "rows with a result" "$(grep -F '"name":"cudaStreamQuery"' "$T/out" | grep -c '"result"')" 1
	target a forbids 20 dispatch-waits
	go a nowait
	wait_for 10 grep -q forbidden "$T/a.out"
	attach -p "$PID_a"
	go a nowait
	wait_for 10 grep -q survived "$T/a.out"
	wait "$CT" || fail "status $?"
	expect "rows by -p" "$(grep -c -F '"name":"cudaStreamQuery"' "$T/out")" 20
	expect "rows with a result by -p" "$(grep -F '"name":"cudaStreamQuery"' "$T/out" | grep -c '"result"')" 0
}

# A trace of the whole machine is in programs that nobody has named: none of them is ended for that its system calls have become SIGSYS.
case_dispatched_whole_machine() { # machine
	with_sessions
	own_library
	target a forbids 20 dispatch
	attach
	go a nowait
	wait_for 10 grep -q survived "$T/a.out"
	finish INT
	expect "rows" "$(rows cudaStreamQuery "\"pid\":$PID_a,")" 21
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

# 30 times, at a moment nobody chose: the tracer ends within a second, and nothing of it stays. A round in which others had to
# wait for a processor says nothing about the second.
case_signals_at_any_moment() { # long
	local i start took sig waited slow=0
	"$SAMPLE" --seconds 600 --rate 50 > "$T/sample.out" &
	local sample=$!
	wait_for 5 test -s "$T/sample.out"
	for ((i = 0; i < 30; i++)); do
		sig=INT
		((i % 2)) && sig=TERM
		"${BACKGROUND[@]}" "$CUDATRACE" -o "$T/rows" -p "$sample" > /dev/null 2> "$T/err" &
		CT=$!
		sleep "0.$(printf %03d $((RANDOM % 400)))"
		start=${EPOCHREALTIME/./} waited=$(cpu_pressure_us)
		kill -s "$sig" "$CT" 2> /dev/null
		until ended "$CT" 2> /dev/null; do
			took=$(((${EPOCHREALTIME/./} - start) / 1000))
			((took < 12000)) || fail "round $i: alive $took ms after SIG$sig"
			sleep 0.01
		done
		took=$(((${EPOCHREALTIME/./} - start) / 1000)) waited=$((($(cpu_pressure_us) - waited) / 1000))
		((took > 1000 && waited < took / 4)) && slow=$((slow + 1))
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

# name, thread and process of each call: "cudaMalloc loader calls"
called_by() {
	python3 -c '
import json, sys
for r in map(json.loads, open(sys.argv[1])):
    if r["type"] == "call":
        print(r["name"], r.get("thread", "-"), r["process"])' "$1" | sort
}

# Threads have their own names, and these and the process's are followed when they change.
case_thread_names() {
	local want
	want=$(printf '%s\n' "cudaFree - trainer" "cudaFree pt_autograd_0 trainer" "cudaFree renamed trainer" \
		"cudaMalloc - calls" "cudaMalloc loader calls" "cudaMalloc pt_autograd_0 calls")
	ct_json -- "$CALLS" names
	expect "JSON" "$(called_by "$T/out")" "$want"
	ct --tid -o "$T/rows" -- "$CALLS" names
	expect "the table" "$(awk 'NR > 1 { print $6, $5, $2 }' "$T/rows" | sort)" \
		"$(sed -e 's/ - calls/ calls calls/' -e 's/ - trainer/ trainer trainer/' <<< "$want" | sort)"
	ct record -o "$T/r.ctrace" -- "$CALLS" names
	ok_rc
	ct_json_of_recording
	expect "a recording" "$(called_by "$T/rows.jsonl")" "$want"
	ct export --to csv -o "$T/rows.csv" "$T/r.ctrace"
	expect "CSV" "$(python3 -c '
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    if r["type"] == "call":
        print(r["name"], r["thread"] or "-", r["process"])' "$T/rows.csv" | sort)" "$want"
}

ct_json_of_recording() {
	ct replay --format json -o "$T/rows.jsonl" "$T/r.ctrace"
	ok_rc
}

# The formats with tracks have the newest names.
case_thread_names_exported() {
	ct record -o "$T/r.ctrace" -- "$CALLS" names
	ok_rc
	ct export --to chrome -o "$T/t.json" "$T/r.ctrace"
	expect "chrome" "$(python3 -c '
import json, re, sys
last = {}
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e["name"] in ("thread_name", "process_name"):
        last[e["name"], e["pid"], e["tid"]] = re.sub("[0-9]{2,}", "N", e["args"]["name"])
print(*sorted(last.values()), sep=",")' "$T/t.json")" "thread N,thread N (pt_autograd_0),thread N (renamed),trainer"
	ct export --to nsys-sqlite -o "$T/t.sqlite" "$T/r.ctrace"
	expect "nsys-sqlite" "$(python3 -c '
import sqlite3, sys
d = sqlite3.connect(sys.argv[1])
threads = "SELECT s.value FROM ThreadNames n JOIN StringIds s ON s.id=n.nameId JOIN (SELECT DISTINCT globalTid g FROM CUPTI_ACTIVITY_KIND_RUNTIME) ON g=n.globalTid"
for q in (threads, "SELECT name FROM PROCESSES"):
    print(*sorted(v for v, in d.execute(q)), sep=",", end=" ")' "$T/t.sqlite")" "pt_autograd_0,renamed,trainer trainer "
	ct export --to speedscope -o "$T/t.speedscope" "$T/r.ctrace"
	expect "speedscope" "$(python3 -c '
import json, re, sys
print(*sorted(re.sub("[0-9]{2,}", "N", p["name"]) for p in json.load(open(sys.argv[1]))["profiles"]), sep="|")' "$T/t.speedscope")" \
		"trainer (N), thread N|trainer (N), thread N (pt_autograd_0)|trainer (N), thread N (renamed)"
	ct export --to perfetto -o "$T/t.pftrace" "$T/r.ctrace"
	for name in pt_autograd_0 loader renamed trainer; do
		grep -a -q "$name" "$T/t.pftrace" || fail "perfetto: no $name"
	done
	ct stat --by thread --json -o "$T/stat.json" "$T/r.ctrace"
	expect "stat of a recording" "$(threads_of_stat)" "trainer N/N,trainer N/N pt_autograd_0,trainer N/N renamed"
	ct stat --by thread --json -o "$T/stat.json" -- "$CALLS" names
	expect "stat" "$(threads_of_stat)" "trainer N/N,trainer N/N pt_autograd_0,trainer N/N renamed"
}

threads_of_stat() {
	python3 -c '
import json, re, sys
print(*sorted({re.sub("[0-9]{2,}", "N", r["name"].split("  ")[0]) for r in json.load(open(sys.argv[1]))["runtime"]}), sep=",")' "$T/stat.json"
}

# --comm goes by the name that the process has at the time of the call.
case_comm_renamed() {
	ct_json --comm trainer -- "$CALLS" names
	expect "calls" "$(grep -c '^{"type":"call"' "$T/out") $(rows cudaFree)" "3 3"
	ct_json --comm calls -- "$CALLS" names
	expect "calls before" "$(grep -c '^{"type":"call"' "$T/out") $(rows cudaMalloc)" "3 3"
}

# How the program ended: a row as strace has it, unless it ended well; in JSON's last line always; else a message. In a recording too.
case_program_end() { # long
	local how row json status words
	while read -r status how row json; do
		row=${row//_/ }
		# shellcheck disable=SC2086
		ABORT_OK=1 ct -o "$T/rows" -- "$CALLS" ${how//_/ }
		ok_rc "$status"
		expect "row of $how" "$(grep '+++' "$T/rows")" "${row/none/}"
		# shellcheck disable=SC2086
		ABORT_OK=1 ct_json -- "$CALLS" ${how//_/ }
		expect "JSON of $how" "$(tail -n 1 "$T/out" | grep -o '"uptime_ns":.*' | cut -d, -f2-)" "$json}"
		# shellcheck disable=SC2086
		ABORT_OK=1 ct record -o "$T/r.ctrace" -- "$CALLS" ${how//_/ }
		ok_rc "$status"
		words=${row#+++ } words=${words% +++}
		[ "$row" = none ] || says "^cudatrace: the program (was )?$words$"
		ct replay "$T/r.ctrace"
		ok_rc
		expect "replayed row of $how" "$(grep '+++' "$T/out")" "${row/none/}"
		ct info "$T/r.ctrace"
		grep -q "^program  *${words/none/exited with 0}$" "$T/out" || fail "info: $(cat "$T/out")"
	done <<- 'END'
		0 status_0 none "exit_status":0
		17 status_17 +++_exited_with_17_+++ "exit_status":17
		143 kill_15 +++_killed_by_SIGTERM_+++ "killed_by":"SIGTERM"
		140 kill_12 +++_killed_by_SIGUSR2_+++ "killed_by":"SIGUSR2"
	END
	timeout -k 1 150 "$CUDATRACE" -- "$CALLS" kill 9 > "$T/out" 2> "$T/err" || rc=$?
	expect status "$rc" 137
	expect "the last row" "$(grep -A 1 'cudaStreamQuery' "$T/err" | tail -n 1)" "+++ killed by SIGKILL +++"
	ct stat -- "$CALLS" status 3
	ok_rc 3
	says '^cudatrace: the program exited with 3$'
	ct_json -d 0.2 -- sleep 5
	! grep -q 'exit_status\|killed_by' "$T/out" || fail "it runs on: $(tail -n 1 "$T/out")"
	ABORT_OK=1 ct --source=cupti -o "$T/rows" -- "$BIN/work" 5 exit
	expect "row by CUPTI" "$(grep '+++' "$T/rows")" "+++ exited with 3 +++"
}

# The main thread leaves, and the last other one ends: so does the program, though threads of ours are in it.
case_process_main_thread_leaves() { # undisturbed
	local how
	with_hooks
	for how in --source=hooks --source=cupti --gpu '--gpu --source=hooks'; do
		# shellcheck disable=SC2086 # words
		ct $how -o "$T/rows" -- "$CALLS" main-leaves 5
		ok_rc
		# by CUPTI the first call is over before the agent is there
		[ "$how" = --source=cupti ] || expect "rows, $how" "$(grep -c cudaStreamQuery "$T/rows")" 6
	done
}
