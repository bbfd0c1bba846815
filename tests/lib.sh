# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# lib.sh - what the real-BPF cases share: how to run cudatrace and its targets, how to wait, how to fail.
#
# A case is a function case_NAME. It runs in a shell of its own, in a directory of its own ($T, removed afterwards), and
# ends by returning, or with `fail WHY` or `skip WHY`. It waits for conditions, never for a time. What it starts is ended
# with it. Sourced by tests/cases/run.sh, which runs the cases.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
OUT=${OUTPUT:-$ROOT/.output}
[[ $OUT = /* ]] || OUT=$ROOT/$OUT
STANDIN=$OUT/standin
BIN=$OUT/cases
CUDATRACE=${CUDATRACE:-$ROOT/cudatrace}
CALLS=$BIN/calls
SAMPLE=${SAMPLE:-$ROOT/cuda_events_test}
# A shell's background jobs ignore SIGINT unless they are told not to.
BACKGROUND=(env --default-signal=INT)
export LC_ALL=C
# What the tests write belongs to root, also for who has started them by sudo.
unset SUDO_UID SUDO_GID

fail() {
	local why=${*//$'\n'/ | }
	[ -z "${UNDISTURBED:-}" ] || disturbed_or_not
	echo "$why" > "$T/why"
	exit 1
}

skip() {
	echo "$*" > "$T/why"
	exit 77
}

# Times how long one waits for what never comes: on a machine whose processors are taken by others, all takes longer.
PATIENCE=${PATIENCE:-6}

# within SECONDS COMMAND...: waits until the command succeeds; its status is 1 when it does not in PATIENCE times that.
within() {
	local until=$((${EPOCHREALTIME/./} + $1 * PATIENCE * 1000000))
	shift
	until "$@" 2> /dev/null; do
		((${EPOCHREALTIME/./} < until)) || return 1
		sleep 0.02
	done
}

# wait_for SECONDS COMMAND...: the same; fails the case when the command does not succeed in time.
wait_for() {
	within "$@" || fail "waited in vain for: ${*:2}; stderr: $(tail -n 3 "$T/err" 2> /dev/null)"
}

# ct ARGS...: cudatrace to its end; stdout in $T/out, stderr in $T/err, status in $rc.
ct() {
	rc=0
	timeout -k 1 $((15 * PATIENCE)) "$CUDATRACE" "$@" > "$T/out" 2> "$T/err" < /dev/null || rc=$?
	check_alive
}

# ct_rows ARGS...: the same with the rows alone in $T/out: of a program that is started they would come between the messages.
ct_rows() {
	ct -o "$T/rows" "$@"
	mv "$T/rows" "$T/out" 2> /dev/null || fail "no output file; status $rc: $(tail -n 2 "$T/err")"
}

# ct_json ARGS...: the same with JSON in $T/out.
ct_json() {
	ct --format json -o "$T/json" "$@"
	cp "$T/out" "$T/prog.out"
	mv "$T/json" "$T/out" 2> /dev/null || fail "no output file; status $rc: $(tail -n 2 "$T/err")"
}

# Remembers that cudatrace says that it has met another tracer's breakpoints; that tracer may be gone when the case fails for that.
# A case that has such a second tracer itself sets BREAKPOINTS_ARE_OURS first.
note_breakpoints() {
	[ -z "${UNDISTURBED:-}" ] || [ -n "${BREAKPOINTS_ARE_OURS:-}" ] ||
		! grep -qsE 'another tracer has (a breakpoint there|put breakpoints on)|for a time, because of another tracer' "$T/err" ||
		touch "$T/disturbed"
}

# ABORT_OK=1 before ct: CMD itself may die of a signal, whose status cudatrace returns.
check_alive() {
	note_breakpoints
	case $rc in
	124 | 137) fail "cudatrace did not end: $(tail -n 2 "$T/err")" ;;
	132 | 134 | 135 | 136 | 139) [ -n "${ABORT_OK:-}" ] || fail "cudatrace crashed with status $rc: $(tail -n 2 "$T/err")" ;;
	esac
}

ok_rc() {
	[ "$rc" = "${1:-0}" ] || fail "status $rc, not ${1:-0}: $(tail -n 3 "$T/err")"
}

# attach ARGS...: cudatrace in the background, JSON in $T/out unless another --format is given; returns once it traces.
attach() {
	local fmt=(--format json)
	[[ " $* " != *" --format "* && " $* " != *" -c "* && " $* " != *" -C "* ]] || fmt=()
	not_ready
	"${BACKGROUND[@]}" "$CUDATRACE" -v "${fmt[@]}" -o "$T/out" "$@" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	grep -q 'cudatrace: ready' "$T/err" || fail "cudatrace ended at once: $(tail -n 3 "$T/err")"
}

# Before a cudatrace is started in the background: what an earlier one said is removed. Its "ready" would be taken for the new one's until
# the new one's shell has emptied the file.
not_ready() {
	rm -f "$T/err"
}

# Only links of kind session decide at a call's entry whether it gets a return probe.
with_sessions() {
	[[ $CUDATRACE != */with-multi ]] || skip "links of kind multi put a return probe on each call"
}

# How long tasks of this machine have waited for a processor, in microseconds; 0 where the kernel does not say.
cpu_pressure_us() {
	local total
	total=$(sed -n 's/^some .*total=//p' /proc/pressure/cpu 2> /dev/null)
	echo "${total:-0}"
}

ready_or_gone() {
	grep -q 'cudatrace: ready' "$T/err" || ! kill -0 "$CT"
}

# finish [SIGNAL]: waits for the cudatrace of attach; its status in $rc.
finish() {
	[ $# = 0 ] || kill -s "$1" "$CT"
	wait_for 10 ended "$CT"
	rc=0
	wait "$CT" || rc=$?
	check_alive
}

ended() {
	! kill -0 "$1"
}

# has_taken PID SIGNAL: none of these waits for it any more.
has_taken() {
	local bits
	bits=$(sed -n 's/^ShdPnd:\s*//p' "/proc/$1/status") && [ -n "$bits" ] && (((0x$bits >> ($(kill -l "$2") - 1) & 1) == 0))
}

# has_done PID SIGNAL: it has taken it, and what followed from it: it waits for something again.
has_done() {
	has_taken "$@" && grep -q '^State:.S' "/proc/$1/status"
}

# target NAME MODE ARGS...: starts `calls --wait MODE ARGS...` of $PROG (default calls); returns once it is initialised.
# PID_NAME is its pid, ADDR_NAME its cudaMalloc. `go NAME` lets it work (and waits until it has), `stop NAME` ends it.
target() {
	local name=$1 fifo=$T/$1.in line fd
	shift
	mkfifo "$fifo"
	rm -f "$T/$name.out" # of an earlier target of this name
	"${PROG:-$CALLS}" --wait "$@" < "$fifo" > "$T/$name.out" 2> "$T/$name.err" &
	exec {fd}> "$fifo"
	declare -g "FD_$name=$fd" "PID_$name=$!"
	wait_for 5 grep -qs '^ready' "$T/$name.out"
	line=$(grep '^ready' "$T/$name.out")
	declare -g "PID_$name=$(cut -d' ' -f2 <<< "$line")" "ADDR_$name=$(cut -d' ' -f3 <<< "$line")"
}

go() {
	local fd=FD_$1
	echo >&"${!fd}"
	[ "${2:-}" = nowait ] || wait_for 10 grep -q '^done' "$T/$1.out"
}

stop() {
	local fd=FD_$1 pid=PID_$1
	# a target that was let go needs one line only, and may be gone before the second
	(trap '' PIPE && printf '\n\n' >&"${!fd}") 2> /dev/null || true
	wait_for 5 ended "${!pid}"
}

# rows NAME [FILTER]: how many completed calls of NAME the JSON in $T/out has.
rows() {
	grep '^{"type":"call"' "$T/out" | grep -F "\"name\":\"$1\"" | grep -c -E -- "${2:-.}" || true
}

# expect WHAT GOT WANT
expect() {
	[ "$2" = "$3" ] || fail "$1: $2, not $3; stderr: $(tail -n 2 "$T/err" 2> /dev/null)"
}

# expect_rows NAME COUNT [FILTER]
expect_rows() {
	expect "calls of $1" "$(rows "$1" "${3:-}")" "$2"
}

# The end record's counts: lost 0 unless said otherwise.
no_loss() {
	grep -q '^{"type":"end"' "$T/out" || fail "no end record: $(tail -n 1 "$T/out")"
	! grep '^{"type":"end"' "$T/out" | grep -q '"lost":{[^}]*:[1-9]' ||
		fail "lost: $(grep -o '"lost":{[^}]*}' "$T/out" | tail -n 1)"
}

# says WORDS: the message on stderr has them (an extended regular expression, any case).
says() {
	grep -q -i -E -- "$1" "$T/err" || fail "stderr does not say '$1': $(tail -n 3 "$T/err")"
}

# first_byte PID ADDRESS: the byte there in the process's memory, in hex.
first_byte() {
	dd if="/proc/$1/mem" bs=1 skip=$(($2)) count=1 status=none | od -An -tx1 | tr -d ' '
}

has_probe() { # PID ADDRESS
	[ "$(first_byte "$1" "$2")" = cc ]
}

has_no_probe() { # PID ADDRESS
	[ "$(first_byte "$1" "$2")" != cc ]
}

# ---- other tracers of this machine -----------------------------------------------------------------------------------
# A tracer of the whole machine puts breakpoints into programs of ours. A case to which they matter is marked `# undisturbed` (run.sh).
# None of these tests traces the whole machine then, but others may. When such a case fails, all of ours is ended, and a copy of the
# library that ours has never seen shows whether there is a tracer. If there is none, and no message of cudatrace spoke of one, the case
# has failed. Otherwise $T/disturbed lets run.sh run it again. How the last attempt ends counts: it is skipped only if a tracer that is none
# of these tests' is seen then. So neither a wrong message of cudatrace nor a case without its mark is hidden.
disturbed_or_not() { # sets why, or skips
	note_breakpoints
	UNDISTURBED=
	end_jobs
	another_tracer || return 0
	touch "$T/disturbed"
	if others=$(tracer_of_others); then
		skip "$others traces every program of this machine, and with it: $why"
	fi
	why="another case traced the whole machine beside this one, and has no mark: $why"
}

# tracer_of_others: a process with probes that no test has started: run.sh and test.sh give theirs an environment with CUDATRACE_TESTS.
tracer_of_others() {
	local pid
	while read -r pid; do
		if [ -r "/proc/$pid/environ" ] && ! grep -qz '^CUDATRACE_TESTS=' "/proc/$pid/environ"; then
			echo "process $pid ($(cat "/proc/$pid/comm"))"
			return 0
		fi
	done < <(find /proc/[0-9]*/fd \( -lname 'anon_inode:*bpf*link*' -o -lname 'anon_inode:*perf_event*' \) 2> /dev/null | cut -d/ -f3 | uniq)
	return 1
}

# marked: this case may count on it that none of these tests disturbs it.
marked() {
	[ -n "${UNDISTURBED+set}" ] || fail "write '# undisturbed' behind the case's name"
}

# copy_library DIR: the stand-in's libraries as files of their own, which nobody probes who does not look for new ones.
copy_library() {
	mkdir "$1"
	cp "$STANDIN"/libcudart.so.13 "$STANDIN"/libcuda.so.1 "$1"
	chmod -R a+rX "$1"
}

# From here on the case's programs have a copy of the libraries. It begins when no tracer has probes on it.
own_library() {
	marked
	UNDISTURBED=1
	unprobed_library || fail "a tracer has probes on a new copy of the library"
	stop probed
}

unprobed_library() {
	copy_library "$T/library"
	export LD_LIBRARY_PATH=$T/library
	target probed queries 1
	within 15 has_no_probe "$PID_probed" "$ADDR_probed"
}

# What run.sh waits for before it runs a case again.
case_without_tracers() {
	unprobed_library
}

another_tracer() {
	copy_library "$T/control"
	LD_LIBRARY_PATH=$T/control target control queries 1
	within 10 has_probe "$PID_control" "$ADDR_control" # another tracer may be slow where the machine is busy
}

# Ends what the case has in the background, and waits until it has gone.
end_jobs() {
	local p
	for p in $(jobs -p); do
		kill -KILL "$p" && wait "$p"
	done 2> /dev/null
	return 0
}

# said_last FOLDER: what a case that failed, and its cudatrace, said last: set in, so that it belongs to the line above (scripts/test.sh).
said_last() {
	local file
	for file in log err; do
		[ ! -s "$1/$file" ] || { echo "$file:" && tail -n 9 "$1/$file" | LC_ALL=C tr -cd '\11\12\40-\176' | cut -c1-400; }
	done | sed 's/^/    /'
}

random() {
	echo $((RANDOM % $2 + $1))
}
