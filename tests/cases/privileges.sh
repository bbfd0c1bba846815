# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# privileges.sh - cases about what cudatrace may do once it runs, and what it hands on.

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
case_privileges_recording() { # machine
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

# confined COMMAND...: it writes to a pipe that is full, and shows meanwhile that it has no privileges and a filter.
confined() {
	local pid
	rm -f "$T/pipe"
	mkfifo "$T/pipe"
	exec 5<> "$T/pipe"
	dd if=/dev/zero of="$T/pipe" bs=4096 count=1024 oflag=nonblock 2> "$T/dd"
	"$CUDATRACE" "$@" > "$T/pipe" 2> "$T/err" &
	pid=$!
	wait_for 10 all_threads_have "$pid" Seccomp 2
	wait_for 10 all_threads_have "$pid" CapPrm 0000000000000000
	expect "$*: CapEff" "$(sed -n 's/^CapEff:\s*//p' "/proc/$pid/status")" 0000000000000000
	expect "$*: NoNewPrivs" "$(sed -n 's/^NoNewPrivs:\s*//p' "/proc/$pid/status")" 1
	cat <&5 > "$T/drained" &
	wait "$pid" || fail "$*: status $?: $(cat "$T/err")"
	kill $!
	exec 5>&-
}

case_privileges_reading() {
	local r=tests/traces/calls.ctrace
	"$CUDATRACE" stat --save "$T/saved" "$r" > "$T/out"
	confined replay "$r"
	confined export --to json -o - "$r"
	confined info "$r"
	confined stat "$r"
	confined mem "$r"
	confined mem --html "$T/page" "$r"
	confined advise "$r"
	confined replay --format folded "$r"
	confined compare "$T/saved" "$r"
	confined check "$T/saved" "$T/saved"
	# what makes its files until its end keeps what it takes root to do that in another user's folder, and no more
	"$CUDATRACE" replay --format nsys-sqlite -o "$T/db" "$r" 2> "$T/err" || fail "$(cat "$T/err")"
}

# The counters' helper has what it needs; what reads and prints what it says has nothing.
case_privileges_counters() {
	local G=$STANDIN/gpu
	LD_LIBRARY_PATH=$G confined counters --cupti "$G" -n 4
	LD_LIBRARY_PATH=$G confined counters --cupti "$G" -n 4 --format csv
}

# Without probes there is less to keep: SYS_PTRACE, DAC_READ_SEARCH, KILL.
case_privileges_cupti() {
	local have ct
	have=$((0x$(sed -n 's/^CapEff:\s*//p' /proc/self/status)))
	mkfifo "$T/in"
	"${BACKGROUND[@]}" "$CUDATRACE" --source=cupti -o /dev/null -- sh -c "sed -n -E 's/^(CapEff|NoNewPrivs):\s*/\1 /p' /proc/self/status; cat" \
		< "$T/in" > "$T/out" 2> "$T/err" &
	ct=$!
	exec 3> "$T/in"
	wait_for 10 grep -q '^NoNewPrivs' "$T/out"
	wait_for 10 all_threads_have "$ct" CapPrm "$(printf '%016x' $((have & (1 << 19 | 1 << 2 | 1 << 5))))"
	expect "no new privileges" "$(sed -n 's/^NoNewPrivs:\s*//p' "/proc/$ct/status")" 1
	exec 3>&-
	wait "$ct" || true
	expect "the program's own" "$(tr '\n' ' ' < "$T/out")" "CapEff $(printf '%016x' "$have") NoNewPrivs 0 "
}

# The file may be one that only its owner may read, in a folder that only its owner may enter; and so may be the output's.
case_privileges_reading_of_others() {
	local r=$T/theirs/r format
	install -d -o 65534 -m 700 "$T/theirs"
	install -o 65534 -m 600 tests/traces/calls.ctrace "$r"
	"$CUDATRACE" stat --save "$T/theirs/saved" "$r" > "$T/out" || fail stat
	for format in table html chrome nsys-sqlite; do
		"$CUDATRACE" replay --format $format -o "$T/theirs/$format" "$r" 2> "$T/err" || fail "$format: $(cat "$T/err")"
		[ -s "$T/theirs/$format" ] || fail "no $format"
	done
	"$CUDATRACE" replay --format chrome -o "$T/theirs/%p.json" "$r" 2> "$T/err" || fail "a file for each process: $(cat "$T/err")"
	"$CUDATRACE" mem --html "$T/theirs/page" "$r" > "$T/out" || fail mem
	"$CUDATRACE" merge -o "$T/theirs/m" "$r" "$r" 2> "$T/err" || fail "merge: $(cat "$T/err")"
	"$CUDATRACE" info "$r" > "$T/out" || fail info
	"$CUDATRACE" compare -o "$T/theirs/c" "$r" "$T/theirs/saved" 2> "$T/err" || fail "compare: $(cat "$T/err")"
	[ -s "$T/theirs/c" ] || fail "nothing compared"
	# and nobody else may: it is read by what the kernel lets this user
	! setpriv --reuid 65533 --clear-groups "$CUDATRACE" info "$r" > "$T/out" 2>&1 || fail "read by another user"
}

# The command of -o has the privileges that it had.
case_privileges_output_command() {
	local command format
	for command in "replay" "stat" "mem" "advise" "compare $ROOT/tests/traces/calls.ctrace"; do
		# shellcheck disable=SC2086
		"$CUDATRACE" $command -o "|cat > '$T/got'; grep -E '^(CapEff|Seccomp|NoNewPrivs):' /proc/self/status > '$T/caps'" \
			tests/traces/calls.ctrace 2> "$T/err" || fail "$command: $(cat "$T/err")"
		[ -s "$T/got" ] || fail "$command: nothing was written"
		grep -E '^(CapEff|Seccomp|NoNewPrivs):' /proc/self/status | diff - "$T/caps" > "$T/diff" || fail "$command: $(tr '\n' '|' < "$T/diff")"
	done
	for format in json csv html folded flame speedscope perfetto chrome otlp-json cupti; do
		"$CUDATRACE" export --to "$format" -o "|cat > '$T/got'" tests/traces/calls.ctrace 2> "$T/err" || fail "$format: $(cat "$T/err")"
		[ -s "$T/got" ] || fail "$format: nothing was written"
	done
}
