# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2153,SC2016,SC2034
# badday.sh - cases about what goes wrong around cudatrace: limits, missing things, names that are weapons, and what it says then.

# The only word on stderr, but for the counts.
one_error() {
	expect "errors ($(head -c 300 "$T/err"))" "$(grep -c 'cudatrace: error: ' "$T/err")" 1
}

case_no_btf() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	rc=0
	timeout 150 unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh "$CUDATRACE" -- "$SAMPLE" > "$T/out" 2> "$T/err" || rc=$?
	ok_rc 1
	one_error
	says '/sys/kernel/btf/vmlinux is missing'
}

case_few_descriptors() {
	local n
	# 4: the least with which the program itself can be loaded
	for n in 4 5 6 7 8 9 10 11 20; do
		rc=0
		(ulimit -n "$n" && exec timeout 150 "$CUDATRACE" -- "$SAMPLE") > "$T/out" 2> "$T/err" || rc=$?
		ok_rc 1
		one_error
		says 'ulimit -n'
	done
}

# libdw puts arrays on the stack; a small one is no reason to crash.
# in_memory MIB COMMAND...: as ct, in a memory cgroup (of version 1 or 2) with this limit. The program itself leaves it, by $LEAVE.
in_memory() {
	local limit=memory.limit_in_bytes max=$1 name
	CG=/sys/fs/cgroup/memory
	if [ ! -e "$CG/$limit" ]; then
		CG=/sys/fs/cgroup
		limit=memory.max
		grep -qw memory "$CG/cgroup.subtree_control" 2> /dev/null || skip "no cgroup can have a limit of memory here"
	fi
	name=$CG/cudatrace-case.$$
	mkdir "$name" 2> /dev/null || skip "cgroups cannot be made here"
	echo $((max << 20)) > "$name/$limit"
	LEAVE="echo \$\$ > $CG/cudatrace-case-out.$$/cgroup.procs; exec"
	mkdir "$CG/cudatrace-case-out.$$"
	shift
	rc=0
	(echo "$BASHPID" > "$name/cgroup.procs" && exec timeout -k 1 $((15 * PATIENCE)) "$CUDATRACE" "$@" sh -c "$LEAVE '$CALLS' queries 1000") \
		> "$T/out" 2> "$T/err" < /dev/null || rc=$?
	rmdir "$name" "$CG/cudatrace-case-out.$$"
}

# The tables and buffers in the kernel, which take 53 MiB where there is room, fit the limit of cudatrace's cgroup.
case_small_cgroup() { # undisturbed
	local how
	for how in "stat -o $T/sums" "stat --source=hooks -o $T/sums" "record -o $T/rec" "--keep-chatty -o $T/rows" "--keep-chatty --source=hooks -o $T/rows"; do
		# shellcheck disable=SC2086
		in_memory 64 $how --
		ok_rc
		says '^cudatrace: 1000 calls'
		! grep -q 'of memory here' "$T/err" || fail "$how: $(cat "$T/err")"
	done
	in_memory 48 stat -o "$T/sums" --
	ok_rc
	says '^cudatrace: warning: cudatrace may take only 48 MiB of memory here \(the limit of its cgroup\): it needs 64 MiB, and the kernel may kill it; raise the limit$'
	says '^cudatrace: 1000 calls, 0 lost$'
}

case_small_stack() {
	local kb
	for kb in 64 128; do
		rc=0
		(ulimit -s "$kb" && exec timeout 60 "$CUDATRACE" --format json -k -e cudaMalloc -o "$T/out" -- "$BIN/chain" plain) > /dev/null 2> "$T/err" || rc=$?
		check_alive
		ok_rc
		no_loss
		stack_is "inner middle outer main|"
	done
}

# A directory whose name clears the screen, holds a C1 control and turns the line round: doctor and messages show it as text.
case_doctor_hostile_path() {
	local dir=$T/$'\e[2J\xc2\x9b31m\xe2\x80\xae\nx'
	mkdir "$dir"
	cp "$STANDIN/libcudart.so.13" "$dir"/
	LD_PRELOAD=$dir/libcudart.so.13 target a queries 1
	ct -v -d 0.1 -p "$PID_a"
	ok_rc
	cp "$T/err" "$T/said"
	grep -qF '/\033[2J\302\23331m\342\200\256\012x/' "$T/said" || fail "no path in: $(cat -v "$T/said")"
	ct doctor -p "$PID_a"
	ok_rc
	grep -qF '/?[2J?31m??x/libcudart' "$T/out" || fail "no path in: $(cat -v "$T/out")"
	LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]\|\xc2[\x80-\x9f]\|\xe2\x80\xae' "$T/out" "$T/said" &&
		fail "something for the terminal: $(cat -v "$T/out" "$T/said")"
	stop a
}

# Another cudatrace that looks for dead sockets is no agent to one that waits for some. In a /run of their own: others' would meet there.
case_agent_sweep() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	timeout 300 unshare -m bash -c 'mount -t tmpfs none /run || exit 1
		"$0" -v --gpu -- sleep 20 > "$1/first.out" 2> "$1/first.err" < /dev/null &
		until grep -q "cudatrace: ready" "$1/first.err"; do sleep 0.05; done
		ls /run/cudatrace > "$1/sockets"
		"$0" --gpu -- /bin/true && "$0" --gpu -- /bin/true
		rc=$?
		kill -TERM %1
		wait %1
		exit $rc' "$CUDATRACE" "$T" > "$T/out" 2> "$T/err" || fail "status $?: $(tail -n 3 "$T/err")"
	grep -q '^s-' "$T/sockets" || fail "no socket: $(cat "$T/sockets")"
	grep -E 'somebody|gone without a word' "$T/first.err" && fail "strangers: $(cat "$T/first.err")"
	return 0
}

# Whatever the format, the last line counts what devices did.
case_work_counted_in_every_format() {
	local name
	ct record --gpu -o "$T/app.ctrace" -- "$SAMPLE"
	ok_rc
	says '44 calls, 8 on devices, 0 lost'
	for name in json csv html perfetto chrome nsys-sqlite; do
		ct export --to "$name" -o "$T/x" "$T/app.ctrace"
		ok_rc
		says '44 calls, 8 on devices, 0 lost'
	done
}
