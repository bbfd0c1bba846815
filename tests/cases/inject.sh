# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2153,SC2034
# inject.sh - cases about adding a shared object to a process that has probes on it: their return addresses are replaced,
# and some of its threads are inside of calls. What else injection has to bear is in tests/unit/test_inject.c.

# inject PID WANT: adds prog/inject_so.c to a process. WANT is `loaded` or `reused`.
inject() {
	[ -x "$OUT/unit/test_inject" ] || fail "$OUT/unit/test_inject is missing: run make unit-programs first"
	[ -f "$T/added.so" ] ||
		gcc -O2 -D_GNU_SOURCE -pthread -fPIC -shared -o "$T/added.so" "$ROOT/tests/unit/prog/inject_so.c" || fail "no object"
	timeout 200 "$OUT/unit/test_inject" "$1" "$T/added.so" > "$T/inject.out" 2>&1 || fail "inject: $(tail -n 2 "$T/inject.out")"
	grep -q "^0, answer 0, $2, thread " "$T/inject.out" || fail "not $2: $(tail -n 1 "$T/inject.out")"
}

case_inject_under_return_probes() {
	hang
	attach -p "$PID_h"
	inject "$PID_h" loaded
	for _ in 1 2 3 4 5; do
		inject "$PID_h" reused
	done
	finish INT
	ok_rc
	# the call that it hangs in began before the trace: with links that cannot call a return off, its end is an orphan
	sed -i 's/"orphan_return":1,/"orphan_return":0,/' "$T/out"
	no_loss
	inject "$PID_h" reused
	unhang
}

# What is brought into a program makes no system call but those about which its filter was asked: this program is killed at any other.
case_inject_needs() { # undisturbed
	marked
	local opts
	for opts in '--source=hooks --keep-chatty' '--source=hooks -k --keep-chatty' 'stat --source=hooks' '--gpu --keep-chatty' '--source=cupti --gpu'; do
		"$CALLS" allows 2500 > "$T/prog.out" 2> "$T/prog.err" &
		pid=$!
		wait_for 5 grep -q allowed "$T/prog.out"
		# shellcheck disable=SC2086 # they are options
		ct $opts -o "$T/rows" -d 1.3 -p $pid
		expect "$opts: status" "$rc" 0
		grep -q cudaStreamQuery "$T/rows" || fail "$opts: no rows; $(cat "$T/err")"
		rc=0
		wait $pid || rc=$?
		expect "$opts: the program ended" "$rc $(tail -n 1 "$T/prog.out")" "0 survived"
	done
}
