# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# descriptors.sh - cases of hooks in a program that closes, counts and uses again its descriptors, and that gives up its rights: nothing of
# ours touches a descriptor of the program's, all calls are shown, and the hooks come off.

# make_forbid: makes $T/forbid: `forbid CALL,... PROGRAM ARGS...` runs a program that may not make these system calls.
make_forbid() {
	gcc -o "$T/forbid" -x c - << 'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define FORBID(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FORBID(436 /* close_range */),
		FORBID(strstr(argv[1], "unshare") ? SYS_unshare : 436),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 1;
	execv(argv[2], argv + 2);
	return 1;
}
END
}

# program MODE...: the program in the background, which waits for a line before it goes on ($FD), and for one at its end. FORBID: what runs
# it, if anything does.
FORBID=()
program() {
	local fifo=$T/in.$1
	mkfifo "$fifo"
	rm -f "$T/prog.out"
	"${FORBID[@]}" "$BIN/descriptors" "$@" < "$fifo" > "$T/prog.out" 2>&1 &
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

# The same where the kernel has no close_range(2): our thread's table begins as a copy.
case_hooks_descriptors_reused_copied() { # undisturbed
	local how calls
	with_hooks
	make_forbid
	for how in dlopen caps fork; do
		calls=20
		[ "$how" != fork ] || calls=25
		ct --source=hooks -o "$T/rows" -- "$T/forbid" close_range "$BIN/descriptors" "$how" "$STANDIN/libnvToolsExt.so.1"
		[ "$rc" = 0 ] || fail "$how: status $rc: $(xargs < "$T/out")"
		expect "$how: rows" "$(grep -c cudaStreamQuery "$T/rows")" "$calls"
		says "^cudatrace: $calls calls, 0 lost\$"
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

# code_changed PID: how many bytes of the runtime's code are not those of its file, breakpoints of others (0xcc) left out; is_restored PID.
code_changed() {
	python3 - "$1" "$STANDIN/libcudart.so.13" << 'END'
import os, sys
changed, file = 0, open(sys.argv[2], "rb").read()
for line in open("/proc/%s/maps" % sys.argv[1]):
    field = line.split()
    if field[1] == "r-xp" and len(field) > 5 and os.path.basename(field[5]) == os.path.basename(os.path.realpath(sys.argv[2])):
        start, end = (int(x, 16) for x in field[0].split("-"))
        with open("/proc/%s/mem" % sys.argv[1], "rb") as f:
            f.seek(start)
            at = int(field[2], 16)
            changed += sum(a not in (b, 0xcc) for a, b in zip(f.read(end - start), file[at:at + end - start]))
print(changed)
END
}
is_restored() {
	[ "$(code_changed "$1")" = 0 ]
}

# The program gives up rights after its start: the hooks come off all the same, when the tracer says so, and when it is killed.
case_hooks_rights_given_up() { # undisturbed
	local how signal
	with_hooks
	mkdir "$T/root"
	for how in setuid setuid-0 chroot caps-0; do
		for signal in INT KILL; do
			program "$how" "$T/root"
			attach --source=hooks -p "$PID"
			[ "$(code_changed "$PID")" -gt 100 ] || fail "$how: no byte of the runtime has changed"
			line
			wait_for 5 grep -q '^changed' "$T/prog.out"
			kill -s "$signal" "$CT"
			wait_for 10 ended "$CT"
			[ "$signal" != INT ] || is_restored "$PID" || fail "$how: $(code_changed "$PID") bytes are still changed"
			wait_for 5 is_restored "$PID"
			line
			wait_for 5 grep -q '^0 wrong' "$T/prog.out"
			ended_well
		done
	done
}

# The same for a program that cudatrace started, and what is shown of its calls.
case_hooks_rights_given_up_launched() { # undisturbed
	local how
	with_hooks
	mkdir "$T/root"
	for how in setuid setuid-0 chroot caps-0; do
		rm -f "$T/prog.out"
		mkfifo "$T/in"
		"$CUDATRACE" --source=hooks -o "$T/rows" -- "$BIN/descriptors" "$how" "$T/root" < "$T/in" > "$T/prog.out" 2> "$T/err" &
		CT=$!
		exec {FD}> "$T/in"
		wait_for 5 grep -qs '^ready' "$T/prog.out"
		PID=$(sed -n 's/^ready //p' "$T/prog.out")
		[ "$(code_changed "$PID")" -gt 100 ] || fail "$how: no byte of the runtime has changed"
		printf '\n\n' >&"$FD"
		wait_for 5 grep -q '^0 wrong' "$T/prog.out"
		if [ "$how" = setuid ]; then
			kill -KILL "$CT"
			wait_for 5 is_restored "$PID"
			line
		else
			line
			wait "$CT" || fail "$how: status $?: $(tail -n 3 "$T/err")"
			expect "$how: rows" "$(grep -c cudaStreamQuery "$T/rows")" 20
			says '^cudatrace: 20 calls, 0 lost$'
		fi
		exec {FD}>&-
		wait_for 5 ended "$CT"
		rm "$T/in"
	done
}

# Our thread may not have a descriptor table of its own, and the program changes its user: that the hooks stay is said, and the next trace
# removes them.
case_hooks_not_removed() { # undisturbed
	with_hooks
	make_forbid
	FORBID=("$T/forbid" "close_range,unshare")
	program seteuid
	attach --source=hooks -p "$PID"
	line
	wait_for 5 grep -q '^changed' "$T/prog.out"
	finish INT
	ok_rc
	says "^cudatrace: warning: process $PID: its hooks could not be removed \\(Permission denied\\): its code stays changed, which does nothing but \
take it some nanoseconds a call; a later trace of it with --source=hooks removes them, if the process may write to its code then\$"
	[ "$(code_changed "$PID")" -gt 100 ] || fail "the hooks were removed"
	line
	wait_for 5 grep -q '^0 wrong' "$T/prog.out"
	attach --source=hooks -p "$PID"
	finish INT
	ok_rc
	is_restored "$PID" || fail "$(code_changed "$PID") bytes are still changed"
	ended_well
}

# The main thread ends in a root without /proc: the program ends with its last thread, although ours is there, too.
case_hooks_last_thread_elsewhere() { # undisturbed
	with_hooks
	mkdir "$T/root"
	ct --source=hooks -o "$T/rows" -- "$BIN/descriptors" worker "$T/root"
	ok_rc
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 20
	says '^cudatrace: 20 calls, 0 lost$'
}

# A program that closes all descriptors closes the agent's too: what was made before is there, and what is not known is said, by each use of
# the agent, while its process is not taken for one that has ended.
case_descriptors_agent_closed() {
	local how what
	gcc -o "$T/closes" -I "$STANDIN/../../tests/standin/include" -x c - -L "$STANDIN" -Wl,-rpath,"$STANDIN" -lcudart <<- 'END'
		#include <unistd.h>
		int cudaMemset(void *, int, unsigned long);
		int cudaMalloc(void **, unsigned long);
		int main(void)
		{
			void *p = 0;

			cudaMalloc(&p, 64);
			for (int i = 0; i < 10; i++)
				cudaMemset(p, 0, 64);
			usleep(500000);
			for (int fd = 3; fd < 1024; fd++)
				close(fd);
			for (int i = 0; i < 5; i++)
				cudaMemset(p, 0, 64);
			usleep(500000);
			return 0;
		}
	END
	for how in --source=cupti --gpu; do
		what=calls
		[ $how = --source=cupti ] || what='device work'
		ct_json --strict $how -- "$T/closes"
		ok_rc 3
		says "the program has closed the connection of its agent, or put another file in its place: its further $what"
		says "process [0-9]+ \\(closes\\) closed the connection of its agent: its further $what are not known, from "
		! grep -q 'exit handlers' "$T/err" || fail "the process has not ended: $(cat "$T/err")"
		if [ $how = --gpu ]; then expect_kinds set 10; else expect_rows cudaMemset 10; fi
	done
}
