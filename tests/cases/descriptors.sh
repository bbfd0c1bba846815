# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# descriptors.sh - cases of hooks in a program that closes, counts and uses again its descriptors, and that gives up its rights: nothing of
# ours touches a descriptor of the program's, all calls are shown, and the hooks come off.

# program MODE...: the program in the background, which waits for a line before it goes on ($FD), and for one at its end.
program() {
	local fifo=$T/in.$1
	mkfifo "$fifo"
	rm -f "$T/prog.out"
	"$BIN/descriptors" "$@" < "$fifo" > "$T/prog.out" 2>&1 &
	PID=$!
	exec {FD}> "$fifo"
	wait_for 5 grep -qs '^ready' "$T/prog.out"
}

line() {
	echo >&"$FD"
}

ended_well() {
	line
	exec {FD}>&-
	wait_for 5 ended "$PID"
	wait "$PID" || fail "the program's status is $?: $(xargs < "$T/prog.out")"
	rm -f "$T"/in.*
}

# Under their numbers are now sockets of the program's: no byte comes in by them that the program did not send, none is closed. All calls
# have rows, of children too; but for a filter of all threads, before which the hooks go off.
case_hooks_descriptors_reused() { # undisturbed
	local how calls
	with_hooks
	for how in dlopen caps fork net filter; do
		calls=20
		[[ $how != fork && $how != net ]] || calls=25
		[ "$how" != filter ] || calls=10
		ct --source=hooks -o "$T/rows" -- "$BIN/descriptors" "$how" "$STANDIN/libnvToolsExt.so.1"
		[ "$rc" = 0 ] || fail "$how: status $rc: $(xargs < "$T/out")"
		expect "$how: rows" "$(grep -c cudaStreamQuery "$T/rows")" "$calls"
		if [ "$how" = filter ]; then
			says 'restricts the system calls of all its threads \(seccomp\): its hooks were removed first'
		else
			says "^cudatrace: $calls calls, 0 lost\$"
			! grep -q warning "$T/err" || fail "$how: $(cat "$T/err")"
		fi
	done
}

case_hooks_descriptors_reused_attached() { # undisturbed
	local how calls
	with_hooks
	for how in dlopen caps fork net filter; do
		calls=10
		[[ $how != fork && $how != net ]] || calls=15
		[ "$how" != filter ] || calls=0
		program "$how" "$STANDIN/libnvToolsExt.so.1"
		attach --source=hooks -f -p "$PID"
		line
		wait_for 10 grep -q '^[0-9]* wrong' "$T/prog.out"
		expect "$how" "$(tail -n 1 "$T/prog.out")" "0 wrong"
		ended_well
		finish
		ok_rc
		expect_rows cudaStreamQuery "$calls"
	done
}

# While one thread does so again and again, another forks: nothing is held by its number in between either.
case_hooks_descriptors_race() { # undisturbed
	with_hooks
	ct --source=hooks -o "$T/rows" -- "$BIN/descriptors" race 100
	expect "the program" "$(tail -n 1 "$T/out")" "0 wrong"
	ok_rc
	says ', 0 lost'
}

# The program, and its child, have the descriptors that they have without hooks.
case_hooks_descriptors_counted() { # undisturbed
	with_hooks
	"$BIN/descriptors" count < /dev/null | grep descriptors > "$T/alone"
	expect "lines" "$(wc -l < "$T/alone")" 3
	ct --source=hooks -o "$T/rows" -- "$BIN/descriptors" count
	ok_rc
	grep descriptors "$T/out" > "$T/traced"
	expect "launched" "$(xargs < "$T/traced")" "$(xargs < "$T/alone")"
	program count
	attach --source=hooks -f -p "$PID"
	line
	wait_for 10 grep -q '^0 wrong' "$T/prog.out"
	expect "attached" "$(grep descriptors "$T/prog.out" | xargs)" "$(xargs < "$T/alone")"
	ended_well
	finish
	ok_rc
}
