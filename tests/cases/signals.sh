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
