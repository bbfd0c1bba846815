# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# signals.sh - cases about signals: a traced program gets none that it would not get without us.

# urgent_rows ROWS ARGS...: `urgent ARGS...`, which counts foreign signals, under cudatrace: all its calls have rows.
urgent_rows() {
	local want=$1
	shift
	copy_library "$T/library"
	ct_json --strict -e cudaMalloc -- "$BIN/urgent" "$1" "$T/library/libcudart.so.13" "${@:2}"
	ok_rc
	expect_rows cudaMalloc "$want"
	! grep -q '"unprobed"' "$T/out" || fail "$(tail -n 1 "$T/out")"
}

# It blocks every signal, and looks whether one waits (signalfd, sigtimedwait).
case_signals_blocked() {
	urgent_rows 20 blocked 1 0 20 0
}

case_signals_blocked_threads() {
	urgent_rows 160 blocked 4 3 10 0
}

# A program that uses the signal itself: its handler runs as often as it has sent it.
case_signals_own() {
	urgent_rows 240 handled 4 2 20 3
}

# Children that are not seized wait as with -p.
case_signals_untraced() {
	copy_library "$T/library"
	ct_json -e cudaMalloc -- "$BIN/urgent" handled "$T/library/libcudart.so.13" 1 -2 20 1
	ok_rc
	expect "what the programs got" "$(grep -c '^foreign 0$' "$T/prog.out")" 3
}

# lines_of FILE WORD N: at least so many of its lines begin with the word.
lines_of() {
	(($(grep -c "^$2" "$1") >= $3))
}

# killed blocked|handled: the tracer is killed while threads and children load libraries. They go on.
killed() {
	local pid rounds
	copy_library "$T/library"
	mkfifo "$T/in"
	"$CUDATRACE" -v -e cudaMalloc -o "$T/rows" -- "$BIN/urgent" "$1" "$T/library/libcudart.so.13" 2 1 0 0 \
		< "$T/in" > "$T/out" 2> "$T/err" &
	pid=$!
	exec 9> "$T/in"
	wait_for 20 grep -q '^round 100$' "$T/out"
	kill -KILL "$pid"
	wait "$pid"
	rounds=$(wc -l < "$T/out")
	wait_for 60 lines_of "$T/out" round $((rounds + 20))
	exec 9>&-
	wait_for 20 lines_of "$T/out" foreign 2
	expect "what the programs got" "$(grep '^foreign' "$T/out" | sort -u)" "foreign 0"
}

case_signals_killed_handled() {
	killed handled
}

case_signals_killed_blocked() {
	killed blocked
}

# flood MODE OPTIONS...: a program that sends, or writes, on and on.
flood() {
	local mode=$1
	shift
	mkfifo "$T/in"
	# shellcheck disable=SC2086
	"${BACKGROUND[@]}" "$CUDATRACE" --strict --format json -o "$T/rows" "$@" -- "$BIN/floods" $mode < "$T/in" > "$T/out" 2> "$T/err" &
	CT=$!
	exec 9> "$T/in"
	wait_for 20 grep -q '^floods' "$T/out"
}

# ended_beside ended|interrupted: the trace ends while the program goes on.
ended_beside() {
	if [ "$1" = interrupted ]; then
		# the first one is passed to the program
		kill -INT "$CT"
		wait_for 20 has_taken "$CT" INT # two at once are one
		kill -INT "$CT"
	fi
	wait_for 20 ended "$CT"
	rc=0
	wait "$CT" || rc=$?
	exec 9>&-
}

# flooded ended|interrupted: and it says what it has not read.
flooded() {
	ended_beside "$1"
	ok_rc 3
	says '; (at least )?[0-9]+ records were not read before the end, from [0-9.]+ s to [0-9.]+ s'
	tail -n 1 "$T/rows" | grep -Eq '"reason":"not_read",[^}]*"from_ns":[0-9]+,"until_ns":[0-9]+,"count":[1-9]' || fail "$(tail -n 1 "$T/rows")"
}

case_signals_flood_agent_duration() {
	flood records --gpu --duration 2
	flooded ended
}

case_signals_flood_agent_int() {
	flood records --gpu
	wait_for 20 test -s "$T/rows"
	flooded interrupted
}

case_signals_flood_cupti() {
	flood records --source=cupti --duration 2
	flooded ended
}

# What it writes may be read as fast as it comes: then nothing is left.
case_signals_flood_hooks_duration() { # undisturbed
	flood 'ring 1048576' --source=hooks --keep-chatty --ring-size 4M -e cudaStreamQuery --duration 2
	ended_beside ended
}

case_signals_flood_hooks_int() { # undisturbed
	flood 'ring 1048576' --source=hooks --keep-chatty --ring-size 4M -e cudaStreamQuery
	ended_beside interrupted
}

# Messages for the user are no records, after which there could be a pause.
case_signals_flood_words() {
	flood words --gpu --duration 2
	ended_beside ended
	ok_rc
	says 'its agent sent invalid data \(messages without an end\): the agent is ignored'
}

# own_ptrace PROGRAM COMMAND...: a program that uses ptrace itself works, is told of, and what it starts is traced as with -p: its calls are there,
# or it is said that it did not wait for its probes.
own_ptrace() {
	local program=$1
	shift
	ct_json -e cudaMalloc -- "$@"
	ok_rc
	says "process [0-9]+ \($program\) uses ptrace itself: it and what it starts are traced as with -p\$"
	grep -q '^child 3, attached 1$' "$T/out" "$T/err" "$T"/*.out 2> /dev/null || fail "$(head -n 3 "$T/out")"
	[ "$(rows cudaMalloc)" = 5 ] || grep -q '"unprobed":{"processes":[1-9]' "$T/out" || fail "$(rows cudaMalloc) calls: $(tail -n 1 "$T/out")"
}

case_signals_own_ptrace() {
	own_ptrace traces sh -c "'$BIN/traces' > '$T/it.out'"
}

# What other programs of the machine map meanwhile concerns only them.
case_signals_own_ptrace_others() {
	local n
	while :; do "$CALLS" queries 1; done > /dev/null 2>&1 &
	PID_a=$!
	ct_json -e cudaMalloc -- sh -c "sleep 0.5; '$BIN/traces' > '$T/it.out'"
	ok_rc
	says "process [0-9]+ \(traces\) uses ptrace itself"
	n=$(grep -o '"not_seen":\[.*\],"muted"' "$T/out" | grep -o '"reason":"unprobed"' | wc -l)
	# the program and its child
	[ "$n" -le 2 ] || fail "$n processes had no probes: $(tail -n 1 "$T/out")"
}

# A leak checker stops the threads of its process by ptrace: the status is the one that the program has without cudatrace.
case_signals_own_ptrace_leaks() {
	local how want
	for how in address leak; do
		gcc -fsanitize=$how -x c -o "$T/$how" - -I"$ROOT/tests/standin/include" -L"$STANDIN" -Wl,-rpath,"$STANDIN" -lcudart << 'END' 2> "$T/gcc" || skip "no leak checker here: $(tail -n 1 "$T/gcc")"
#include <cuda_runtime_api.h>
#include <stdlib.h>
static void loses(int argc)
{
	void *volatile lost[64] = { 0 };

	for (int i = 0; i < 64 && argc > 1; i++)
		lost[i] = malloc(100);
	for (int i = 0; i < 64; i++)
		lost[i] = NULL;
}
int main(int argc, char **argv)
{
	void *p;

	loses(argc);
	cudaMalloc(&p, 100);
	return 3;
}
END
		ct -o "$T/rows" -- "$T/$how"
		expect "status, $how" "$rc" 3
		says "process [0-9]+ \($how\) uses ptrace itself"
		want=0
		"$T/$how" leaks > "$T/alone" 2>&1 || want=$?
		ct -o "$T/rows" -- "$T/$how" leaks
		expect "status with a leak, $how" "$rc" "$want"
		grep -q 'LeakSanitizer: detected memory leaks' "$T/err" || fail "$(tail -n 3 "$T/err")"
	done
}

case_signals_own_ptrace_gdb() {
	command -v gdb > /dev/null || skip "gdb is not here"
	own_ptrace gdb gdb -nx -batch -ex "run > '$T/it.out'" "$BIN/traces"
}
