# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# privileges.sh - cases about what cudatrace may do once it runs, and what it hands on.

# The words of a process's status that say what it may do; the bounding set is nobody's to change.
privileges_of() {
	sed -n -E 's/^(Uid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):\s*/\1 /p' "/proc/$1/status"
}

# all_threads_have PID FIELD VALUE
all_threads_have() {
	[ "$(sed -n "s/^$2:\s*//p" "/proc/$1/task/"*/status | sort -u)" = "$3" ]
}

# kept_caps [BIT...]: the hexadecimal word of what it keeps, of what there is here, with these too.
kept_caps() {
	local have bit keep=0
	have=$((0x$(sed -n 's/^CapEff:\s*//p' /proc/self/status)))
	# BPF PERFMON SYS_PTRACE CHECKPOINT_RESTORE DAC_READ_SEARCH; SYS_RESOURCE IPC_LOCK NET_ADMIN NET_BIND_SERVICE KILL
	for bit in 39 38 19 40 2 24 14 12 10 5 "$@"; do
		keep=$((keep | 1 << bit))
	done
	printf '%016x' $((have & keep))
}

# What CMD may do is what it could without cudatrace, as root and as another user; cudatrace itself gives up the rest.
case_privileges_command() {
	local user ct
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -lt 3 ] || skip "this kernel opens perf events for CAP_SYS_ADMIN alone"
	user=$(id -nu 65534 2> /dev/null) || skip "no user nobody"
	for user in "" "$user"; do
		mkfifo "$T/in"
		"${BACKGROUND[@]}" "$CUDATRACE" -v ${user:+-u "$user"} -o /dev/null -- sh -c "
			sed -n -E 's/^(Uid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):\s*/\1 /p' /proc/self/status
			cat" < "$T/in" > "$T/out" 2> "$T/err" &
		ct=$!
		exec 3> "$T/in"
		wait_for 10 grep -q '^Seccomp' "$T/out"
		wait_for 10 all_threads_have "$ct" CapPrm "$(kept_caps)"
		wait_for 10 all_threads_have "$ct" CapEff "$(kept_caps)"
		expect "no new privileges" "$(sed -n 's/^NoNewPrivs:\s*//p' "/proc/$ct/status")" 1
		exec 3>&-
		wait "$ct" || fail "status $?: $(cat "$T/err")"
		if [ "$user" ]; then
			setpriv --reuid 65534 --regid "$(id -g "$user")" --init-groups sed -n -E \
				's/^(Uid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):\s*/\1 /p' /proc/self/status > "$T/want"
		else
			sh -c "sed -n -E 's/^(Uid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):\s*/\1 /p' /proc/self/status" > "$T/want"
		fi
		diff "$T/want" "$T/out" > "$T/diff" || fail "the program as user '$user': $(tr '\n' '|' < "$T/diff")"
		rm "$T/in"
	done
}

# A user who has no more than some ambient capabilities hands them on.
case_privileges_ambient() {
	local caps=+bpf,+perfmon,+sys_ptrace,+net_raw
	local as=(setpriv --reuid 65534 --regid 65534 --clear-groups "--inh-caps=-all,$caps" "--ambient-caps=-all,$caps" --)
	"${as[@]}" "$CUDATRACE" -- sed -n -E 's/^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):\s*/\1 /p' /proc/self/status > "$T/out" 2> "$T/err" ||
		fail "$(cat "$T/err")"
	"${as[@]}" sed -n -E 's/^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):\s*/\1 /p' /proc/self/status > "$T/want"
	diff "$T/want" "$T/out" > "$T/diff" || fail "$(tr '\n' '|' < "$T/diff")"
	grep -q 'CapAmb 000000c000082000' "$T/want" || fail "not what this case is for: $(cat "$T/want")"
}

# A recording's files are made later, in a folder of another user's too.
case_privileges_recording() {
	local ct
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -lt 3 ] || skip "this kernel opens perf events for CAP_SYS_ADMIN alone"
	install -d -o 65534 -m 755 "$T/theirs"
	"${BACKGROUND[@]}" "$CUDATRACE" record -v -o "$T/theirs/r" > "$T/out" 2> "$T/err" &
	ct=$!
	wait_for 10 grep -q ready "$T/err"
	wait_for 10 all_threads_have "$ct" CapPrm "$(kept_caps 1 3)"
	"$CALLS" mix 1 1 1 > "$T/prog"
	kill -INT "$ct"
	wait "$ct" || fail "status $?: $(cat "$T/err")"
	[ -s "$T/theirs/r" ] || fail "no recording"
}
