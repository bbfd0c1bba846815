# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# without.sh - cases about processes that use CUDA and have no hooks, although they are traced: the last line, the recording and the status
# of --strict say so.
OFFSPRING=$OUT/cases/offspring

# offspring HOW STATUS LINE: two children that were made in this way; the program itself makes 5 calls. LINE: what the last line says.
offspring() {
	ct --source=hooks --strict -o "$T/rows" -- "$OFFSPRING" "$1" 2
	expect "status of $1" "$rc" "$2"
	says "^cudatrace: $3\$"
}

# Children that libc does not know of, in each way that the kernel has.
case_hooks_offspring() { # undisturbed
	local how
	with_hooks
	offspring fork 0 '19 calls, 0 lost'
	for how in bare-fork clone clone3 clone-function; do
		offspring $how 3 '5 calls, 0 lost of those seen; 2 processes used CUDA and had no hooks: their calls are not known, from [0-9.]+ s to [0-9.]+ s'
	done
}

# In a child that libc does not know of nobody completes what its parent was changing: its own fork() does not wait for that.
case_hooks_offspring_again() { # undisturbed
	local i
	with_hooks
	# the first one is made while the hooks are put on
	for i in $(seq 10); do
		ct --source=hooks -o "$T/rows" -- "$OFFSPRING" bare-forks-again 2
		ok_rc
		grep -q '^slow 0$' "$T/out" || fail "$(grep slow "$T/out"), not slow 0, in round $i"
	done
}

# What a child of vfork(2) calls is not recorded, and it is said. One that a signal's handler has left by a jump leaves nothing behind: the
# calls after it are recorded.
case_hooks_vfork() { # undisturbed
	with_hooks
	offspring vfork 3 '5 calls, 0 lost of those seen; process [0-9]+ \(offspring\) made a child that shares its memory: calls of this child are not known'
	offspring vfork-left 0 '5 calls, 0 lost'
}

# Two processes in one memory, with the same thread-local storage: the hooks are removed before they could harm each other.
case_hooks_shared_memory() { # undisturbed
	with_hooks
	offspring shared 3 '3 calls, 0 lost of those seen; .*process [0-9]+ \(offspring\) lost its hooks: its further calls are not known, from [0-9.]+ s .*'
	says 'warning: process [0-9]+: it makes a child that shares its memory \(clone\(\) with CLONE_VM\), and hooks cannot tell the two apart: its hooks were removed first'
	says 'process [0-9]+ \(offspring\) made a child that shares its memory: calls of this child are not known'
}

# A program closes all its descriptors: its hooks stay, and nothing is missing, neither in what is said nor in the recording.
case_hooks_closed_descriptors() { # undisturbed
	with_hooks
	ct record --source=hooks --strict -o "$T/trace" -- "$OFFSPRING" closes 1
	ok_rc
	says 'calls, 0 lost$'
	ct info "$T/trace"
	ok_rc
	grep -qE '^lost +nothing$' "$T/out" || fail "$(grep -A 1 '^lost' "$T/out")"
	ct replay -o "$T/rows" "$T/trace"
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 8
}

# The main thread has ended, and a thread of the program has a name like ours: the hooks stay until the program has ended.
case_hooks_thread_like_ours() { # undisturbed
	with_hooks
	ct --source=hooks --strict -o "$T/rows" -- "$OFFSPRING" worker 3
	ok_rc
	says '^cudatrace: 300 calls, 0 lost$'
}

# A program that is not there is spawned in a child that has its parent's memory, and makes no call.
case_hooks_spawned_nothing() { # undisturbed
	with_hooks
	offspring spawn-nothing 0 '5 calls, 0 lost'
}

# The environment does not lead to the hooks: each program is named in the recording.
case_hooks_clean_environment() { # undisturbed
	local pid
	with_hooks
	ct record --source=hooks --strict -o "$T/trace" -- sh -c "'$CALLS' queries 2; env -i '$CALLS' queries 3 & echo \$! > '$T/pid'; wait; env -i true"
	expect "status" "$rc" 3
	pid=$(cat "$T/pid")
	says "^cudatrace: 2 calls, 0 lost of those seen; process $pid \(calls\) used CUDA and had no hooks: its calls are not known, from [0-9.]+ s to [0-9.]+ s\$"
	ct replay --strict -o "$T/rows" "$T/trace"
	expect "status from the recording" "$rc" 3
	says "process $pid \(calls\) used CUDA and had no hooks: its calls are not known, from [0-9.]+ s to [0-9.]+ s\$"
	# 'made no call' would not be true of it
	ct info "$T/trace"
	ok_rc
	expect "others" "$(grep -o ' other process.*' "$T/out")" " other processes made no call that was seen"
}

# A static program, whose own file has CUDA's functions: it is read while the program runs.
case_hooks_without_static() { # undisturbed
	with_hooks
	gcc -O1 -static -o "$T/static" -x c - << 'END' || skip "no static libc here"
#include <unistd.h>
int cudaStreamQuery(void *s) { __asm__ volatile("" : : "r"(s)); return 0; }
int main(void) { return cudaStreamQuery(0) + (int)sleep(2); }
END
	ct --source=hooks --strict -o "$T/rows" -- sh -c "'$T/static'; true"
	expect "status" "$rc" 3
	says '^cudatrace: 0 calls, 0 lost of those seen; process [0-9]+ \(static\) used CUDA and had no hooks: its calls are not known, from [0-9.]+ s to [0-9.]+ s$'
}

# Nothing that the process has mapped is known as CUDA's, but it has opened the driver's device. What only has that name is no device.
case_hooks_without_library() { # undisturbed
	local pid
	with_hooks
	mkdir "$T/file"
	touch "$T/file/nvidia-uvm"
	mknod "$T/nvidia-uvm" c 1 3 2> /dev/null || skip "no devices can be made here"
	head -c 1 "$T/nvidia-uvm" 2> /dev/null || skip "no devices can be opened here"
	ct --source=hooks --strict -o "$T/rows" -- env -i sh -c "exec 9< '$T/nvidia-uvm'; echo \$\$ > '$T/pid'; sleep 3 9<&-; exit 0"
	pid=$(cat "$T/pid")
	expect "status" "$rc" 3
	says "^cudatrace: 0 calls, 0 lost of those seen; process $pid \\(sh\\) used CUDA and had no hooks: its calls are not known, from [0-9.]+ s to [0-9.]+ s\$"
	ct --source=hooks --strict -o "$T/rows" -- env -i sh -c "exec 9< '$T/file/nvidia-uvm'; sleep 3 9<&-; exit 0"
	ok_rc
}

# What a process of -p executes has no hooks, and counts with -f only.
case_hooks_executed_later() { # undisturbed
	local how
	with_hooks
	for how in "" -f; do
		rm -f "$T/in"
		mkfifo "$T/in"
		exec 9<> "$T/in"
		sh -c "read -r x; '$CALLS' queries 3; true" <&9 &
		PID_a=$!
		# shellcheck disable=SC2086
		attach --source=hooks --strict $how -p "$PID_a"
		echo >&9
		wait_for 10 ended "$CT"
		rc=0
		wait "$CT" || rc=$?
		if [ "$how" ]; then
			expect "status of $how" "$rc" 3
			says '0 calls, 0 lost of those seen; process [0-9]+ \(calls\) used CUDA and had no hooks: its calls are not known, from [0-9.]+ s to [0-9.]+ s$'
		else
			expect "status without -f" "$rc" 0
			says '0 calls, 0 lost(:.*)?$'
		fi
	done
}

# More threads than there are places for: each call has a row, or is counted as lost, once.
case_hooks_crowd_of_threads() { # undisturbed
	local shown lost
	with_hooks
	[ "$(ulimit -u)" = unlimited ] || [ "$(ulimit -u)" -gt 8000 ] || skip "no 5 000 threads here"
	for command in "" stat; do
		# shellcheck disable=SC2086
		ct $command --source=hooks --keep-chatty -o "$T/out" -- "$OFFSPRING" crowd 5000
		ok_rc
		shown=$(sed -n 's/^cudatrace: \([0-9]*\) calls, .*/\1/p' "$T/err")
		lost=$(sed -n 's/^cudatrace: .* calls, \([0-9]*\) lost.*/\1/p' "$T/err")
		expect "shown and lost: $(tail -n 1 "$T/err")" "$((shown + lost))" 25000
	done
}
