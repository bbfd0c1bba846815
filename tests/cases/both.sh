# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# both.sh - cases about --source=auto: hooks where they can be put on, probes where they cannot, and each call in one row. What it shows is
# compared with what probes alone show of the same program, and with what programs write down themselves.

# What hooks can enter, and what they cannot, started here.
case_both_same_rows() { # long undisturbed
	with_hooks
	BY=auto
	same_rows mix -- "$CALLS" mix 1 20 0
	same_rows nested --nested -- "$CALLS" driver 3
	same_rows entries --enter-exit -- "$CALLS" mix 1 5 0
	same_rows failures -- "$CALLS" failing 3 4
	same_rows stack -- "$CALLS" stack
	same_rows configs -- "$CALLS" configs
	same_rows longjmp -- "$CALLS" longjmp 5
	same_rows dlopen -- "$BIN/late" "$STANDIN/12/libcudart.so.12" 20 "$STANDIN/libcudart.so.13" 7
	same_rows runtime_inside -- "$CALLS-static" mix 1 5 0
	same_rows collectives --layers nccl -- "$COLLECTIVES" all
	same_rows operators --layers torch,cublas -- "$OPERATORS" train 3
	same_rows fork -- "$CALLS" fork 3
	same_rows exec -- "$CALLS" exec 5
	same_rows by_probes --stack=fp -- "$CALLS" mix 1 5 0
}


# barring: makes $T/bar.so, which as an LD_PRELOAD forbids a program to write to its own code. hooks.sh uses it too.
barring() {
	gcc -shared -fPIC -o "$T/bar.so" -x c - << 'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
__attribute__((constructor)) static void bar(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
END
}

# static_calls N: $T/static, a program without a loader that makes so many calls when it has read a letter.
static_calls() {
	gcc -O1 -static -o "$T/static" -x c - << END || skip "no static libc here"
#include <stdio.h>
__attribute__((noinline, noclone)) int cudaStreamQuery(void *stream)
{
	__asm__ volatile("" : : "r"(stream));
	return 0;
}
int main(void)
{
	getchar();
	for (int i = 0; i < $1; i++)
		cudaStreamQuery(0);
	return 0;
}
END
}

# Three processes beside each other: one with hooks, one that may not write to its code, one without a loader.
case_both_attached() { # undisturbed
	local pid fd
	with_hooks
	barring
	static_calls 17
	mkfifo "$T/static.in"
	"$T/static" < "$T/static.in" &
	pid=$!
	exec {fd}> "$T/static.in"
	target a queries 20
	LD_PRELOAD=$T/bar.so target b queries 30
	attach --source=auto -p "$PID_a,$PID_b,$pid"
	has_no_probe "$PID_a" "$ADDR_a" || fail "a process with hooks has a probe"
	go a
	go b
	echo >&"$fd"
	stop a
	stop b
	finish
	ok_rc
	says "process $PID_b: it may not write to its own code, so no hooks can be put on: its calls are recorded by probes"
	says "process $pid: process $pid is a static program, .*: its calls are recorded by probes"
	says '^cudatrace: 67 calls, 0 lost$'
	expect_rows cudaStreamQuery 20 "\"pid\":$PID_a,"
	expect_rows cudaStreamQuery 30 "\"pid\":$PID_b,"
	expect_rows cudaStreamQuery 17 "\"pid\":$pid,"
}

# The same, counted.
case_both_stat() { # undisturbed
	with_hooks
	barring
	target a queries 20
	LD_PRELOAD=$T/bar.so target b queries 30
	"$CUDATRACE" stat -v --json --source=auto -o "$T/stat.json" -p "$PID_a,$PID_b" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q '^cudatrace: ready' "$T/err"
	go a
	go b
	stop a
	stop b
	finish
	ok_rc
	expect "calls" "$(stat_of cudaStreamQuery calls)" 50
}

# A program without a loader is traced by probes from the begin, and a message says so.
case_both_static() { # undisturbed
	with_hooks
	static_calls 17
	ct --source=auto -o "$T/rows" -- "$T/static" < /dev/null
	ok_rc
	says 'static: no hooks can be put on: it is linked statically: its calls are recorded by probes'
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 17
	says '^cudatrace: 17 calls, 0 lost$'
}

# A child of a started program that hooks cannot enter gets probes a moment after it has begun; what it calls before is said to be missing.
case_both_static_child() { # undisturbed
	local fd
	with_hooks
	static_calls 17
	mkfifo "$T/in"
	"$CUDATRACE" -v --source=auto --format json -o "$T/out" -- sh -c "'$CALLS' queries 3; '$T/static' < '$T/in'; '$CALLS' queries 4" \
		> "$T/prog.out" 2> "$T/err" < /dev/null &
	CT=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q 'functions of 1 files probed' "$T/err"
	sleep 0.5
	echo >&"$fd"
	finish
	ok_rc
	says '^cudatrace: 24 calls, 0 lost of those seen; process [0-9]+ \(static\) used CUDA and had no hooks: its calls are not known, from [0-9.]+ s to [0-9.]+ s$'
}

# Many short programs, some at a time, that hooks enter or do not. Those that end before they have probes are no error.
case_both_many_short() { # undisturbed
	with_hooks
	static_calls 17
	# shellcheck disable=SC2016
	"$CUDATRACE" --source=auto --format json -o "$T/out" -- sh -c '
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
			"$0" queries 3
			(sleep 0.1"$i"; echo) | "$1" &
			"$0" queries 2
		done
		wait' "$CALLS" "$T/static" > "$T/prog.out" 2> "$T/err" < /dev/null && rc=0 || rc=$?
	ok_rc
	! grep -q error "$T/err" || fail "an error: $(grep -m 1 error "$T/err")"
	says '^cudatrace: [0-9]+ calls, 0 lost of those seen; [0-9]+ processes used CUDA and had no hooks: '
	expect "programs with hooks" "$(grep '"name":"cudaStreamQuery"' "$T/out" | grep -vc '"process":"static"')" 60
}

# Another tracer has breakpoints on the functions already: then these are traced by probes here too, and each tracer sees each call once.
case_both_two_tracers() { # undisturbed
	with_hooks
	target a queries 20
	BREAKPOINTS_ARE_OURS=1
	"$CUDATRACE" -v -p "$PID_a" -o "$T/out2" 2> "$T/err2" < /dev/null &
	OTHER=$!
	wait_for 20 grep -q '^cudatrace: ready' "$T/err2"
	attach --source=auto -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	says "process $PID_a: most of its functions cannot have hooks: its calls are recorded by probes"
	says '^cudatrace: 20 calls, 0 lost$'
	expect_rows cudaStreamQuery 20
	wait_for 10 ended "$OTHER"
	expect "the other tracer" "$(tail -n 1 "$T/err2")" "cudatrace: 20 calls, 0 lost"
}

# Processes that fork, with hooks and with probes, and one that loads a library late; children with -f, which probes for single processes do not
# follow: then all of them have probes.
case_both_fork_and_late() { # undisturbed
	with_hooks
	barring
	target a fork 5 7
	target b dlopen "$STANDIN/12/libcudart.so.12" 20
	LD_PRELOAD=$T/bar.so target c fork 6 8
	attach --source=auto -p "$PID_a,$PID_b,$PID_c"
	for name in a b c; do
		go $name
		stop $name
	done
	finish
	ok_rc
	says '^cudatrace: 31 calls, 0 lost$'
	expect_rows cudaStreamQuery 5 "\"pid\":$PID_a,"
	expect_rows cudaStreamQuery 20 "\"pid\":$PID_b,"
	expect_rows cudaStreamQuery 6 "\"pid\":$PID_c,"
	target e fork 5 7
	LD_PRELOAD=$T/bar.so target f fork 6 8
	attach --source=auto -f -p "$PID_e,$PID_f"
	for name in e f; do
		go $name
		stop $name
	done
	finish
	ok_rc
	says 'hooks and probes cannot be beside each other here: all calls are recorded by probes'
	says '^cudatrace: 26 calls, 0 lost$'
	expect_rows cudaStreamQuery 26
}

# depths: the rows of $T/out that are calls: their name, their depth, whether they failed.
depths() {
	grep '"type":"call"' "$T/out" | grep -o '"name":"[A-Za-z0-9_]*"\|"depth":[0-9]*\|"status":"[a-z]*"' | sed 's/"name":/;/' | tr -d '\n' | tr ';' '\n'
}

# with_probes_on LABEL EVENTS OPTIONS -- MODE ...: another tracer has breakpoints on some functions only: hooks take the others, and probes
# these. The rows are those that probes alone show.
with_probes_on() {
	local label=$1 events=$2 options=()
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	target a "$@"
	attach "${options[@]}" -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	depths > "$T/want"
	[ -s "$T/want" ] || fail "$label: probes show nothing"
	rm -f "$T/a.in"
	target a "$@"
	"$CUDATRACE" -v -p "$PID_a" -e "$events" -o "$T/out2" 2> "$T/err2" < /dev/null &
	OTHER=$!
	wait_for 20 grep -q '^cudatrace: ready' "$T/err2"
	attach --source=auto "${options[@]}" -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	says 'hooks are on; [0-9]+ of'
	says '(calls|rows), 0 lost$'
	wait_for 10 ended "$OTHER"
	depths > "$T/got"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$label: $(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
	rm -f "$T/a.in"
}

# Single functions with probes in a process with hooks: alone, inside calls that hooks see, and around them.
case_both_functions() { # long undisturbed
	with_hooks
	BREAKPOINTS_ARE_OURS=1
	with_probes_on alone cudaStreamQuery -- queries 20
	with_probes_on inside cuLaunchKernel -- mix 1 20 0
	with_probes_on around cudaLaunchKernel -- mix 1 20 0
	with_probes_on around_nested cudaLaunchKernel,cudaMalloc --nested -- mix 1 20 0
	with_probes_on inside_nested 'cuLaunchKernel,cuMem*' --nested -- mix 1 20 0
	with_probes_on driver 'cuMem*' -- driver 3
	with_probes_on failing cudaMalloc -- failing 3 4
	with_probes_on entries cudaLaunchKernel --enter-exit -- mix 1 5 0
}

# calls_in_scopes: each call of $T/out and the names of the scopes around it.
calls_in_scopes() {
	python3 - "$T/out" << 'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
for r in sorted((r for r in rows if r["type"] == "call"), key=lambda r: r["start_ns"]):
    print(r["name"], r.get("scope_name"))
END
}

# A call that a probe sees has the scope that hooks see around it.
case_both_scopes() { # undisturbed
	local pid fd way
	with_hooks
	BREAKPOINTS_ARE_OURS=1
	for way in want got; do
		rm -f "$T/in"
		mkfifo "$T/in"
		"$OPERATORS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
		pid=$!
		exec {fd}> "$T/in"
		wait_for 10 grep -q ready "$T/prog.out"
		if [ $way = want ]; then
			attach --layers torch -p "$pid"
		else
			"$CUDATRACE" -v -p "$pid" -e cudaLaunchKernel -o "$T/out2" 2> "$T/err2" < /dev/null &
			OTHER=$!
			wait_for 20 grep -q '^cudatrace: ready' "$T/err2"
			attach --source=auto --layers torch -p "$pid"
			says 'hooks are on; [0-9]+ of'
		fi
		printf 'xxq' >&"$fd"
		wait "$pid"
		finish
		ok_rc
		calls_in_scopes > "$T/$way"
	done
	wait_for 10 ended "$OTHER"
	grep -q '^cudaLaunchKernel aten' "$T/want" || fail "no launch has a scope: $(cat "$T/want")"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

# Operators that hooks reach by slots alone stay with hooks, which is said; with --complete-calls they have probes.
case_both_complete() { # undisturbed
	local pid fd
	with_hooks
	gcc -shared -fPIC -I "$ROOT/tests/standin" -Dmain=crowded -o "$T/fill.so" -x c - << END
#define _GNU_SOURCE
#include "$ROOT/tests/cases/prog/crowded.c"
__attribute__((constructor)) static void crowd(void)
{
	fill((uintptr_t)dlsym(RTLD_DEFAULT, "cudaStreamQuery") + (512UL << 20));
}
END
	mkfifo "$T/in"
	LD_PRELOAD=$T/fill.so "$OPERATORS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	ct --source=auto -e cudaGraphCreate --layers torch -o "$T/rows" -d 0.5 -p "$pid"
	ok_rc
	says 'functions have no hooks, and their calls are shown by --complete-calls alone'
	says 'of [0-9]+ functions only calls through the dynamic loader are known'
	attach --source=auto --complete-calls --layers torch -p "$pid"
	printf 'xxq' >&"$fd"
	wait "$pid"
	finish
	ok_rc
	says "process $pid: .*: its calls are recorded by probes"
	expect "operators" "$(grep -c '"type":"operator"' "$T/out")" 18
	says '0 lost$'
	ct --complete-calls -- true
	expect "status without --source" "$rc" 2
	says 'error: --complete-calls is about hooks and probes beside each other: give --source=auto'
}

# Threads that call without a pause, in a process with hooks and in one with probes, while tracers come and go.
case_both_under_fire() { # long undisturbed
	local i busy barred traces=()
	with_hooks
	barring
	nice "$BIN/busy" 3 "$T/busy.log" > "$T/busy.out" &
	busy=$!
	LD_PRELOAD=$T/bar.so nice "$BIN/busy" 3 "$T/barred.log" > "$T/barred.out" &
	barred=$!
	wait_for 5 grep -q ready "$T/busy.out"
	wait_for 5 grep -q ready "$T/barred.out"
	for i in {1..6}; do
		traces+=("$T/rows$i")
		timeout -k 1 150 "$CUDATRACE" --source=auto --format json -o "$T/rows$i" -e cudaDeviceSetLimit -d 0.05 -p "$busy,$barred" 2> "$T/err" ||
			fail "trace $i: $(tail -n 3 "$T/err")"
	done
	kill "$busy" "$barred"
	wait_for 10 ended "$busy"
	wait_for 10 ended "$barred"
	python3 "$ROOT/tests/cases/check_busy.py" "$busy:$T/busy.log" "$barred:$T/barred.log" "${traces[@]}" > "$T/why.busy" ||
		fail "$(cat "$T/why.busy")"
}
