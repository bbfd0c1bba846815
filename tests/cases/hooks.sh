# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# hooks.sh - cases about calls that are recorded inside the program: --source=hooks. What it shows is compared with what probes show of
# the same program; then its ends: of the program, of the tracer, of the right to trace.
# SOURCE=hooks tests/cases/run.sh runs the other files' cases by hooks, but those that tests/cases/unsuited-hooks names.

# Skips where no hook can be put on at all.
with_hooks() {
	[ "$(uname -m)" = x86_64 ] || skip "hooks are for x86-64 yet"
	CUDATRACE=$ROOT/cudatrace
	marked # where a tracer of the whole machine has breakpoints there are no hooks
}

# alike FILE: rows without times and process; addresses by the order in which they come, since each run has others; the functions that
# a tracer on another library of this machine keeps from being hooked are none of ours.
alike() {
	normalise "$1" | sed 's/ ms=[0-9.]*/ ms=N/' | awk '{
		line = ""
		while (match($0, /0x[0-9a-f]+/)) {
			a = substr($0, RSTART, RLENGTH)
			if (RLENGTH < 8) seen[a] = a
			if (!(a in seen)) seen[a] = ++n
			line = line substr($0, 1, RSTART - 1) "@" seen[a]
			$0 = substr($0, RSTART + RLENGTH)
		}
		print line $0
	}'
}

# same_rows LABEL OPTIONS... -- PROGRAM...: by both sources, and compared.
same_rows() {
	local label=$1
	shift
	ABORT_OK=1 ct -o "$T/probes.$label" "$@"
	local status=$rc
	alike "$T/probes.$label" > "$T/want"
	[ -s "$T/want" ] || fail "$label: probes show nothing; status $status: $(tail -n 2 "$T/err")"
	ABORT_OK=1 ct --source="${BY:-hooks}" -o "$T/hooks.$label" "$@"
	expect "status of $label" "$rc" "$status"
	alike "$T/hooks.$label" > "$T/got"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$label: $(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

case_hooks_golden_sample() { # undisturbed
	with_hooks
	ct --source=hooks -o "$T/rows" -- "$SAMPLE" --expect "$T/want"
	ok_rc
	normalise "$T/rows" > "$T/got"
	[ -s "$T/want" ] || fail "the sample expects nothing"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
	says '^cudatrace: 44 calls, 0 lost$'
}

# Every kind of call and of end, with each filter that is applied where the call is made.
case_hooks_same_rows() { # long undisturbed
	with_hooks
	same_rows mix -- "$CALLS" mix 1 20 0
	same_rows nested --nested -- "$CALLS" mix 1 5 0
	same_rows nested_driver --nested -- "$CALLS" driver 3
	same_rows entries --enter-exit -- "$CALLS" mix 1 5 0
	same_rows failing --failed -- "$CALLS" failing 3 4
	same_rows failures -- "$CALLS" failing 3 4
	same_rows sizes --min-size 1000 -- "$CALLS" sizes 10 999 1000 5000
	same_rows all_sizes -- "$CALLS" sizes 10 999 1000 5000
	same_rows no_return --no-return -- "$CALLS" mix 1 5 0
	same_rows driver -- "$CALLS" driver 3
	same_rows by_domain --domain driver -- "$CALLS" driver 3
	same_rows class -e memory,launch -- "$CALLS" mix 1 20 0
	same_rows stack -- "$CALLS" stack
	same_rows callback -- "$CALLS" callback 4
	same_rows depth -- "$CALLS" depth 12 3 50
	same_rows hostile -- "$CALLS" hostile
	same_rows configs -- "$CALLS" configs
	same_rows longjmp -- "$CALLS" longjmp 5
	same_rows dlopen -- "$BIN/late" "$STANDIN/12/libcudart.so.12" 20 "$STANDIN/libcudart.so.13" 7
	same_rows static -- "$CALLS-static" mix 1 5 0
	same_rows ranges --layers nvtx -- "$RANGES" nested 3
	same_rows collectives --layers nccl -- "$COLLECTIVES" all
	same_rows operators --layers torch,cublas -- "$OPERATORS" train 3
	same_rows products --layers cublas --nested -- "$GEMMS" all
	same_rows stripped -- "$CALLS-stripped" mix 1 5 0
	same_rows per_thread -- "$CALLS-ptsz" mix 1 5 0
	same_rows sample -- "$SAMPLE"
}

# same_stacks LABEL OPTIONS... -- PROGRAM...: the frames below each row, with their offsets in the functions, by both sources.
same_stacks() {
	local label=$1
	shift
	same_rows "$label" -k --all-frames "$@"
	for by in probes hooks; do
		sed -E 's/^[0-9.]+ .* (cu[A-Za-z0-9_]+) .*/\1/' "$T/$by.$label" | grep -E "^(cu| +[^ ].*\+0x)" > "$T/stacks.$by"
	done
	grep -q "_start+0x\|start_thread+0x\|/chain-stripped+" "$T/stacks.probes" || fail "$label: probes show no stack: $(head -n 3 "$T/stacks.probes")"
	diff -u "$T/stacks.probes" "$T/stacks.hooks" > "$T/diff" || fail "$label: $(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

# Each way in which a program can stand in a call.
case_hooks_same_stacks() { # long undisturbed
	local chain=$OUT/cases/chain
	with_hooks
	for how in plain deep back thread; do
		same_stacks "$how" -e memory -- "$chain" $how 40
	done
	same_stacks nested --nested -- "$chain" plain
	same_stacks entries --enter-exit -- "$chain" plain
	same_stacks no_return --no-return -- "$chain" plain
	same_stacks static -- "$chain-static" plain
	same_stacks stripped -- "$chain-stripped" plain
	same_stacks mix -- "$CALLS" mix 1 20 0
	same_stacks callback -- "$CALLS" callback 4
	same_stacks longjmp -- "$CALLS" longjmp 5
	same_stacks depth -- "$CALLS" depth 12 3 50
	same_stacks failing --failed -- "$CALLS" failing 3 4
}

# A ring that holds a few stacks: each call is shown or counted as lost, and each that is shown without its stack is counted.
case_hooks_lost_stacks() { # undisturbed
	local rows stacks lost none
	with_hooks
	ct --source=hooks -k --ring-size 64K -o "$T/rows" -- "$OUT/cases/chain" often 20000
	ok_rc
	rows=$(grep -c ' cudaMalloc ' "$T/rows")
	stacks=$(grep -c ' inner+0x' "$T/rows")
	lost=$(grep -o '[0-9]* ring buffer full' "$T/err" | head -n 1 | cut -d' ' -f1)
	none=$(grep -o '[0-9]* stacks\? that found no room' "$T/err" | head -n 1 | cut -d' ' -f1)
	expect "shown and lost: $(tail -n 1 "$T/err")" "$((rows + ${lost:-0}))" 20000
	# a call that is lost is not lost once more with its stack
	expect "rows without a stack: $(tail -n 1 "$T/err")" "${none:-0}" "$((rows - stacks))"
}

# Two GiB of other things lie above each library, where its jumps land: room is kept free for them before it is mapped.
case_hooks_crowded() { # long undisturbed
	local fill="+ 2000"
	with_hooks
	# shellcheck disable=SC2086 # words
	same_rows crowded -- "$BIN/late" $fill "$STANDIN/12/libcudart.so.12" 20 $fill "$STANDIN/libcudart.so.13" 7
	[ "$(grep -c cudaStreamQuery "$T/hooks.crowded")" = 27 ] || fail "rows: $(grep -c cudaStreamQuery "$T/hooks.crowded")"
	! grep -q 'no hooks' "$T/err" || fail "$(grep 'no hooks' "$T/err")"
	# a library that is larger than a hole that is above it
	same_rows large -- "$BIN/late" o 2000 "$BIN/libbig.so" 8
	[ "$(grep -c cudaStreamQuery "$T/hooks.large")" = 8 ] || fail "rows of a large library: $(grep -c cudaStreamQuery "$T/hooks.large")"
	# a program that has a limit of its own keeps it for itself
	ct --source=hooks -o "$T/rows" -- sh -c "ulimit -v 600000 && exec '$BIN/late' '$STANDIN/libcudart.so.13' 9"
	ok_rc
	expect "rows of a limited program" "$(grep -c cudaStreamQuery "$T/rows")" 9
}

# said_made N: the program says that it has made so many calls.
said_made() {
	grep -qx "made $1" "$T/crowded"
}

# A process that runs, in which no jump has a place to land: the calls through the loader's slots are seen from the first one on, those by
# a pointer are not, and the last line, the end record, a recording and the status of --strict say of how many functions that holds.
case_hooks_by_slots() { # long undisturbed
	local pid fd want
	with_hooks
	mkfifo "$T/in"
	"$BIN/crowded" < "$T/in" > "$T/crowded" &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/crowded"
	for round in 0 1; do
		attach --source=hooks -p "$pid"
		echo slot >&"$fd"
		wait_for 5 said_made $((round * 30 + 10))
		echo pointer >&"$fd"
		wait_for 5 said_made $((round * 30 + 20))
		echo slot >&"$fd"
		wait_for 5 said_made $((round * 30 + 30))
		finish INT
		ok_rc
		expect_rows cudaStreamQuery 20
		want=$(grep '"type":"end"' "$T/out" | grep -o '"partly_hooked_functions":[0-9]*' | cut -d: -f2)
		[ "${want:-0}" -ge 1 ] || fail "no function is hooked partly: $(tail -n 2 "$T/err")"
		says "; of $want functions? only calls through the dynamic loader are known, as (it was|they were) partly hooked$"
	done
	ct record --source=hooks -p "$pid" -d 1 --strict -o "$T/trace"
	expect "status of --strict" "$rc" 3
	ct replay --format json "$T/trace"
	ok_rc
	grep -q "\"partly_hooked_functions\":${want}[,}]" "$T/out" || fail "in the recording: $(tail -n 1 "$T/out")"
	echo slot >&"$fd"
	wait_for 5 said_made 70
	exec {fd}>&-
	wait "$pid" || fail "the program's status is $?"
}

# Threads that load libraries at the same time, and one that waits for other answers of cudatrace's meanwhile: each library has its
# hooks before its first call.
case_hooks_libraries_at_once() { # undisturbed
	local libraries=() with
	with_hooks
	for i in $(seq 40); do
		cp "$BIN/libpushed.so" "$T/lib$i.so"
		libraries+=("$T/lib$i.so")
	done
	for with in "1 1" "2 0" "4 1"; do
		# shellcheck disable=SC2086 # words
		ct --source=hooks --layers nccl -o "$T/rows" -- "$BIN/opens" $with "${libraries[@]}"
		ok_rc
		expect "rows of threads and communicators $with" "$(grep -c cudaStreamQuery "$T/rows")" 40
	done
}

# sums_of FILE: what stat has counted, without times. Addresses and thread ids differ between two runs.
sums_of() {
	python3 - "$1" <<- 'E'
		import json, re, sys
		d = json.load(open(sys.argv[1]))
		for s in ("runtime", "driver"):
		    for row in sorted((re.sub("^[^ ]+ [0-9/]+ |0x[0-9a-f]{5,}", "", r["name"]), r["calls"], r["failed"], r["bytes"], r.get("max_bytes"),
		                       "total_ns" in r, "p99_ns" in r) for r in d[s]):
		        print(s, *row)
		t = d["summary"]
		print(d.get("memory"), d["lost"], [t.get(k) for k in ("total_api_calls", "failed_calls", "launches", "launch_threads",
		      "stream_launches", "moves", "async_moves", "bytes_moved")])
	E
}

# same_sums LABEL OPTIONS... -- PROGRAM...: of stat by both sources, exactly.
same_sums() {
	local label=$1
	shift
	ABORT_OK=1 ct stat --json -o "$T/probes.json" "$@"
	local status=$rc
	cp "$T/err" "$T/probes.err"
	ABORT_OK=1 ct stat --source=hooks --json -o "$T/hooks.json" "$@"
	expect "status of $label" "$rc" "$status"
	expect "totals of $label" "$(tail -n 1 "$T/err")" "$(tail -n 1 "$T/probes.err")"
	expect "$label" "$(sums_of "$T/hooks.json")" "$(sums_of "$T/probes.json")"
}

# Calls that are counted inside the program: the sums of both sources are the same.
case_hooks_same_sums() { # long undisturbed
	with_hooks
	same_sums mix -- "$CALLS" mix 200 20 0
	same_sums only_failing --failed -- "$CALLS" failing 20 7
	same_sums sizes -- "$CALLS" sizes 10 999 1000 5000
	same_sums no_return --no-return -- "$CALLS" mix 200 20 0
	same_sums longjmp -- "$CALLS" longjmp 5
	same_sums by_stream --by stream -- "$BIN/kinds" 300
	same_sums by_kernel --by kernel -- "$BIN/launches" 100
	same_sums memory --hist -- "$BIN/memory" threads
	same_sums memory_faults -- "$BIN/memory" faults
	same_sums sample -- "$SAMPLE"
}

# What is called very often is only counted in the program, each call: no number is an estimate. A query that the runtime makes of the driver
# is a part of the runtime's, also where that is only counted; where the runtime is linked in, who asks is not known, and nothing of it is
# muted.
case_hooks_muted() { # long undisturbed
	with_hooks
	ct --source=hooks --ring-size 1G --format json -o "$T/out" -- "$CALLS" devices 3000000
	ok_rc
	says '^cudatrace: process [0-9]+ calls cudaGetDevice [0-9]+ times a second: from here on its calls are counted and not shown '
	says '^cudatrace: [0-9]+ calls, 0 lost; not shown: [0-9]+ calls of cudaGetDevice$'
	exact_calls json "$T/out" cudaGetDevice 3000000
	ct record --source=hooks --ring-size 1G -o "$T/loop.ctrace" -- "$BIN/mute" inside 900000
	ok_rc
	ct replay --format json -o "$T/out" "$T/loop.ctrace"
	exact_calls json "$T/out" cudaDeviceGetAttribute 900000
	exact_calls json "$T/out" cuDeviceGetAttribute 300000
	ct stat --source=hooks --json -o "$T/stat.json" -- "$BIN/mute" inside 1500000
	ok_rc
	says '^cudatrace: 2000000 calls, 0 lost'
	exact_calls stat "$T/stat.json" cudaDeviceGetAttribute 1500000
	exact_calls stat "$T/stat.json" cuDeviceGetAttribute 500000
	ct stat --source=hooks --json -o "$T/stat.json" -- "$BIN/calls-static" devices 3000000
	ok_rc
	says '^cudatrace: 3000000 calls, 0 lost$'
	ct --source=hooks --keep-chatty --ring-size 1G -o "$T/rows" -- "$CALLS" devices 60000
	says '^cudatrace: 60000 calls, 0 lost$'
	ct stat --source=hooks --by thread --json -o "$T/stat.json" -- "$CALLS" devices 100000
	says '^cudatrace: 100000 calls, 0 lost$'
}

# A second trace of the same process has its own counts, whatever its rings are like; what is counted may be shorter than asked for, so
# nothing is muted then.
case_hooks_muted_again() { # long undisturbed
	local size
	with_hooks
	"$BIN/mute" 300000 > "$T/prog.out" &
	PID_prog=$!
	wait_for 5 grep -q libcudart "/proc/$PID_prog/maps"
	sleep 0.5
	for size in 1M 256K 4M; do
		ct --source=hooks --ring-size "$size" -d 1 -o "$T/rows" -p "$PID_prog"
		ok_rc
		says 'not shown: [0-9]{5,} calls of .*cudaGetDevice'
		! grep -q 'no sense' "$T/err" || fail "$(grep 'no sense' "$T/err")"
	done
	ct --source=hooks --min-duration 1s -d 0.5 -o "$T/rows" -p "$PID_prog"
	! grep -q 'times a second' "$T/err" || fail "muted: $(tail -n 2 "$T/err")"
	kill -TERM "$PID_prog"
	wait "$PID_prog" || fail "the program: status $?"
}

# The program has said N lines.
said() {
	[ "$(wc -l < "$T/prog.out")" = "$1" ]
}

# take_turn a|b: the program's thread of this letter makes its calls; how many is added up in made, the turns in n.
take_turn() {
	echo -n "$1" >&"$fd"
	n=$((n + 1)) made=$((made + $([ "$1" = a ] && echo 60000 || echo 1000)))
	wait_for 20 said "$n"
}

# A thread that makes no call while a second trace begins to count has still where it counted in the first one, in memory that is laid
# out in another way by now.
case_hooks_muted_turns() { # undisturbed
	local size fd turn made n=0
	with_hooks
	coproc TURNS { exec "$BIN/mute" turns > "$T/prog.out"; }
	PID_prog=$TURNS_PID fd=${TURNS[1]}
	wait_for 5 grep -q libcudart "/proc/$PID_prog/maps"
	for size in 64M 128M; do
		: > "$T/err" # what the one before has said
		"$CUDATRACE" -v --source=hooks --ring-size "$size" --format json -o "$T/out" -p "$PID_prog" 2> "$T/err" &
		PID_ct=$!
		wait_for 20 grep -q '^cudatrace: ready' "$T/err"
		! grep -q 'have no hooks' "$T/err" || fail "not all functions are hooked"
		made=0
		# where others have the processors, those of one turn may be too few a second
		for turn in {1..20}; do
			take_turn a
			! within 2 grep -q 'times a second' "$T/err" || break
		done
		says 'times a second'
		for turn in b a b a b; do
			take_turn $turn
		done
		kill -INT "$PID_ct"
		wait "$PID_ct" || fail "status $?: $(tail -n 1 "$T/err")"
		says ' 0 lost; not shown: [0-9]+ calls of cudaGetDevice$'
		exact_calls json "$T/out" cudaGetDevice $made
	done
	exec {fd}>&-
	wait "$PID_prog" || fail "the program: status $?"
}

# exact_calls HOW FILE FUNCTION TRUTH: as muted_holds, without an error.
exact_calls() {
	muted_holds "$@"
	! grep '"name":"'"$3"'"' "$2" | grep -q '"error":[1-9]' || fail "$3 is an estimate"
}

# The child of a program that forks does not write into what its parent counts, whether it is traced or not.
case_hooks_sums_after_fork() { # undisturbed
	local child
	with_hooks
	ct stat --source=hooks --no-follow --json -o "$T/stat.json" -- "$CALLS" fork 30 12
	ok_rc
	expect "the parent's calls" "$(stat_of cudaStreamQuery calls)" 30
	ct stat --source=hooks --by process --json -o "$T/stat.json" -- "$CALLS" fork 30 12
	ok_rc
	child=$(sed -n 's/^child //p' "$T/out")
	expect "the child's calls" "$(stat_of "calls $child  cudaStreamQuery" calls)" 12
	says '^cudatrace: 42 calls, 0 lost$'
}

# A program that lets through four system calls, and is killed at others: none comes from the hooks. Where the filter is for all threads,
# the hooks are taken off before.
case_hooks_sandboxed() { # undisturbed
	with_hooks
	for how in '' 0 1; do
		# shellcheck disable=SC2086 # nothing, or a word
		ct --source=hooks -o "$T/rows" -- "$CALLS" seccomp 20 $how
		ok_rc
		expect "the program, seccomp $how" "$(cat "$T/out")" survived
		if [ "$how" = 1 ]; then
			expect "rows, seccomp $how" "$(grep -c cudaStreamQuery "$T/rows")" 1
			says 'restricts the system calls of all its threads'
		else
			expect "rows, seccomp $how" "$(grep -c cudaStreamQuery "$T/rows")" 21
		fi
	done
	# a second filter, where calls are counted: no room is made for more sums
	ct stat --source=hooks --json -o "$T/stat.json" -- "$CALLS" seccomp-twice 20
	ok_rc
	expect "the program, two filters" "$(cat "$T/out")" survived
	expect "calls, two filters" "$(stat_of cudaStreamQuery calls)" 21
}

# A thread that forbids itself to read the processor's clock, in whatever way: the hooks are removed before, and it is said from when on.
case_hooks_no_clock() { # undisturbed
	with_hooks
	for how in tsc tsc-call strict filter-tsc; do
		ct --source=hooks --format json -o "$T/rows" -- "$CALLS" forbids 20 $how
		expect "status, $how" "$rc" 0
		expect "the program, $how" "$(cat "$T/out")" survived
		expect "rows, $how" "$(grep -c '"name":"cudaStreamQuery"' "$T/rows")" "$([ $how = filter-tsc ] && echo 21 || echo 1)"
		says 'warning: process [0-9]+: it forbids a thread to take times \(prctl\(PR_SET_TSC\), or seccomp\): its hooks were removed first'
		says 'calls?, 0 lost of those seen; process [0-9]+ \(calls\) lost its hooks: its further calls are not known, from [0-9.]+ s '
	done
}

# Where the kernel tells of it, a filter that the program sets by an instruction of its own is known before it is there: no hook makes a system
# call from then on, though the next call has a text to be read, or a stack.
case_hooks_filtered_at_once() { # long undisturbed
	with_hooks
	for _ in 1 2 3; do
		for stacks in '' -k; do
			# shellcheck disable=SC2086 # nothing, or a word
			ct --source=hooks $stacks --format json -o "$T/rows" -- "$CALLS" forbids 20 raw-filter
			ok_rc
			expect "the program, $stacks" "$(cat "$T/out")" survived
			expect "rows, $stacks" "$(grep -c '"name":"cudaStreamQuery"' "$T/rows")" 21
		done
		target a forbids 20 raw-filter
		attach --source=hooks --format json -p "$PID_a"
		go a nowait
		wait_for 10 grep -q survived "$T/a.out"
		wait "$CT" || fail "status $?"
		expect "rows by -p" "$(grep -c '"name":"cudaStreamQuery"' "$T/out")" 21
		rm -f "$T/a.in"
	done
}

# The same without that. A filter that the program sets by an instruction of its own is noticed within a second. From then on no hook makes a system call, though calls
# have names to be read and new threads call.
case_hooks_filtered_unseen() { # undisturbed
	with_hooks
	mkfifo "$T/in"
	exec 9<> "$T/in"
	"$CUDATRACE" -v -k --source=hooks --format json -o "$T/rows" -- "$CALLS" forbids 20 raw-filter-waits <&9 > "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q 'a thread restricts its system calls (seccomp): no hook makes one from here on' "$T/err"
	wait_for 10 grep -q forbidden "$T/out"
	echo >&9
	rc=0
	wait "$CT" || rc=$?
	expect "status" "$rc" 0
	expect "the program" "$(tail -n 1 "$T/out")" survived
	expect "rows" "$(grep -c '"name":"cudaStreamQuery"' "$T/rows")" 21
}

# A filter for all threads that the program sets by an instruction of its own: cudatrace's thread makes no system call that the program has
# forbidden. It ends, if the filter lets a thread end, or else sleeps until the process ends.
case_hooks_filtered_all() { # undisturbed
	with_hooks
	for how in raw-all-waits raw-all-stays-waits; do
		rm -f "$T/in"
		mkfifo "$T/in"
		exec 9<> "$T/in"
		"$CUDATRACE" --source=hooks --format json -o "$T/rows" -- "$CALLS" forbids 20 $how <&9 > "$T/out" 2> "$T/err" &
		CT=$!
		wait_for 10 grep -q forbidden "$T/out"
		pid=$(pgrep -P "$CT" -x calls)
		case $how in
		*stays*) sleep 1.5 && expect "$how: threads" "$(awk '$1 == "Threads:" { print $2 }' "/proc/$pid/status")" 2 ;;
		*) wait_for 5 grep -qx "Threads:[[:space:]]1" "/proc/$pid/status" ;;
		esac
		used=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
		sleep 1
		used=$(($(awk '{ print $14 + $15 }' "/proc/$pid/stat") - used))
		[ $used -lt 20 ] || fail "$how: $used ticks of time were used in a second of waiting"
		echo >&9
		rc=0
		wait "$CT" || rc=$?
		expect "$how: status" "$rc" 0
		expect "$how: the program" "$(tail -n 1 "$T/out")" survived
		says 'warning: process [0-9]+ restricts the system calls of all its threads \(seccomp\) by an instruction of its own: its hooks do nothing from now on'
		says '1 call, 0 lost of those seen; process [0-9]+ \(calls\) lost its hooks: its further calls are not known, from [0-9.]+ s on'
	done
}

# A thread that has a filter sets one for all threads, by libc: cudatrace's thread has ended before, and no system call that the first filter forbids
# is made for that.
case_hooks_filtered_then_all() { # undisturbed
	with_hooks
	ct --source=hooks --format json -o "$T/rows" -- "$CALLS" forbids 20 filter-all
	ok_rc
	expect "the program" "$(cat "$T/out")" survived
	expect "rows" "$(grep -c '"name":"cudaStreamQuery"' "$T/rows")" 21
	says 'warning: process [0-9]+: it restricts the system calls of all its threads \(seccomp\): its hooks were removed first'
}

# The strict mode of seccomp, by an instruction of the program's own: where nothing tells of it, it is noticed within a second, and the hooks are
# removed.
case_hooks_strict_unseen() { # undisturbed
	with_hooks
	mkfifo "$T/in"
	exec 9<> "$T/in"
	"$CUDATRACE" --source=hooks --format json -o "$T/rows" -- "$CALLS" forbids 20 raw-strict-waits <&9 > "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q 'a thread of it is in the strict mode of seccomp, which was noticed only afterwards' "$T/err"
	echo >&9
	rc=0
	wait "$CT" || rc=$?
	expect "status" "$rc" 0
	expect "the program" "$(tail -n 1 "$T/out")" survived
	expect "rows" "$(grep -c '"name":"cudaStreamQuery"' "$T/rows")" 1
	says '1 call, 0 lost of those seen; process [0-9]+ \(calls\) lost its hooks: its further calls are not known, from [0-9.]+ s on'
}

# Nothing is put into a program that has no clock: neither hooks nor the agent, whose thread would have none either.
case_no_clock_attached() { # undisturbed
	with_hooks
	for what in hooks gpu; do
		target $what forbids 3 tsc-waits
		go $what nowait
		wait_for 10 grep -q forbidden "$T/$what.out"
		pid=PID_$what
		if [ $what = gpu ]; then
			ct --gpu --cupti "$ROOT/.output/standin/libcupti.so.13" -o "$T/rows" -d 0.2 -p "${!pid}"
		else
			ct --source=hooks -o "$T/rows" -d 0.2 -p "${!pid}"
		fi
		says "error: process ${!pid} forbids its threads to read the processor's clock \(prctl\(PR_SET_TSC\)\): nothing can be put into it; trace it by probes"
		go $what nowait
		wait_for 10 grep -q survived "$T/$what.out"
	done
}

# A program that has made SIGSYS of all system calls that are not libc's: none comes from the hooks, whether stacks are asked for or not.
case_hooks_dispatched() { # undisturbed
	with_hooks
	for stacks in '' -k; do
		# shellcheck disable=SC2086 # nothing, or a word
		ct --source=hooks $stacks --format json -o "$T/rows" -- "$CALLS" forbids 20 dispatch
		expect "status" "$rc" 0
		expect "the program" "$(cat "$T/out")" survived
		expect "rows" "$(grep -c '"name":"cudaStreamQuery"' "$T/rows")" 21
	done
}

# A program that limits its address space, or has such a limit from the start, or limits it after a trace, can use it: of our addresses, what is
# not in use is given back. All its calls are there, also those of threads that come later.
case_hooks_limited() { # undisturbed
	with_hooks
	for how in setrlimit prlimit call; do
		ct --source=hooks -o "$T/rows" -- "$CALLS" limited 20 8192 $how
		expect "the program, $how" "$(cat "$T/out")" survived
		expect "rows, $how" "$(grep -c cudaStreamQuery "$T/rows")" 21
		ct stat --source=hooks --json -o "$T/stat.json" -- "$CALLS" limited 20 4096 $how
		expect "the program, stat, $how" "$(cat "$T/out")" survived
		expect "calls, $how" "$(stat_of cudaStreamQuery calls)" 21
	done
	ct --source=hooks -o "$T/rows" -- sh -c "ulimit -v 1000000 && exec '$CALLS' limited 20 800 setrlimit"
	expect "a limited program" "$(cat "$T/out")" survived
	expect "rows of a limited program" "$(grep -c cudaStreamQuery "$T/rows")" 21
	target a limited 20 4096 setrlimit
	for _ in 1 2 3; do
		ct --source=hooks -o "$T/rows" -d 0.1 -p "$PID_a"
	done
	go a
	expect "after a trace" "$(grep -v ready "$T/a.out" | head -n 1)" survived
}

# After a trace the program may map something where our addresses were: the next trace has its place elsewhere, and leaves that alone.
case_hooks_place_taken() { # undisturbed
	with_hooks
	target a maps 2
	ct --source=hooks -o "$T/rows" -d 0.1 -p "$PID_a"
	go a nowait
	wait_for 10 grep -q '^at 0: mapped' "$T/a.out"
	ct --source=hooks -o "$T/rows" -d 0.1 -p "$PID_a"
	attach --source=hooks -p "$PID_a"
	go a nowait
	wait_for 10 grep -q '^at 1: mapped' "$T/a.out"
	go a
	stop a
	finish
	grep -q '^as it was' "$T/a.out" || fail "$(tail -n 1 "$T/a.out")"
	expect_rows cudaStreamQuery 1
}

# A program that locks its memory does not get all of the shared memory made present, be it for records or for counts; not even where
# that is attached to it later, or after it was attached to another time.
case_hooks_locked() { # undisturbed
	with_hooks
	ct --source=hooks --ring-size 256K -o "$T/rows" -- "$CALLS" locked 12
	ok_rc
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 12
	little_present "$T/out"
	ct stat --source=hooks --hist --json -o "$T/stat.json" -- "$CALLS" locked 12
	ok_rc
	expect "the calls that were counted" "$(stat_of cudaStreamQuery calls)" 12
	little_present "$T/out"
	target a locked 12
	ct stat --source=hooks --hist --json -o "$T/stat.json" -d 0.2 -p "$PID_a"
	attach --source=hooks --ring-size 256K -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	expect_rows cudaStreamQuery 12
	little_present "$T/a.out"
}
# little_present FILE: what the program says of itself
little_present() {
	[ "$(awk '/VmRSS/ { print $2 }' "$1")" -lt 100000 ] || fail "present: $(cat "$1")"
}

# A program that may lock no memory at all, without the right to lock more: a started one, and one that runs.
case_hooks_no_locked_memory() { # undisturbed
	local pid no_lock='ulimit -l 0 && exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@"'
	with_hooks
	ct --source=hooks -o "$T/rows" -- sh -c "$no_lock" sh "$SAMPLE" --expect "$T/want"
	ok_rc
	normalise "$T/rows" > "$T/got"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
	sh -c "$no_lock" sh "$SAMPLE" --seconds 100 --rate 50 > /dev/null &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	expect "memory that the program may lock" "$(awk '/Max locked memory/ { print $4 }' "/proc/$pid/limits")" 0
	attach --source=hooks -p "$pid"
	wait_for 5 grep -q cudaLaunchKernel "$T/out"
	finish INT
	ok_rc
	says ', 0 lost'
	kill -0 "$pid" || fail "the program has ended"
}

# A library that is closed and opened again, with other memory in its old place in between: each of its calls has a row.
case_hooks_reopened() { # undisturbed
	local lib=$STANDIN/libcudart.so.13 again=()
	with_hooks
	for n in 1 2 3 4 5 6 7 8; do
		again+=("$lib" "$n" - 0 + 1)
	done
	ct --source=hooks -o "$T/rows" -- "$BIN/late" "${again[@]}"
	ok_rc
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 36
	says ', 0 lost'
}

# Without root, without BPF, and with a seccomp filter that knows neither.
case_hooks_without_root() { # undisturbed
	with_hooks
	chmod 777 "$T"
	setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$T" "$CUDATRACE" --source=hooks -o "$T/rows" -- "$SAMPLE" \
		--expect "$T/want" > "$T/out" 2> "$T/err" || fail "status $?: $(tail -n 3 "$T/err")"
	normalise "$T/rows" > "$T/got"
	diff -u "$T/want" "$T/got" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

# per_process FILE: "PID CALLS" of each process, from rows or from the log of prog/family.c; children of vfork() by their word.
per_process() {
	awk '/cudaStreamQuery/ { n[$3]++ } /^[0-9]+ [0-9]+$/ { n[$1] += $2 } END { for (p in n) print p, n[p] }' "$1" | sort -n
}

# Children of every kind have their calls, and no process has those of another; what a child of vfork() calls is not recorded.
case_hooks_children() { # long undisturbed
	local seed
	with_hooks
	for seed in 1 2 3 4 5 6 7 8; do
		rm -f "$T/log"
		ct --source=hooks -o "$T/rows" -- "$BIN/family" "$T/log" "$seed" 2
		ok_rc
		per_process "$T/log" > "$T/want"
		per_process "$T/rows" > "$T/got"
		diff -u "$T/want" "$T/got" > "$T/diff" || fail "seed $seed: $(grep '^[-+][^-+]' "$T/diff" | head -n 6); $(tail -n 2 "$T/err")"
		says ', 0 lost'
		cat "$T/log" >> "$T/logs"
	done
	grep -q ' vfork' "$T/logs" || fail "no child of vfork() has made calls"
	[ "$(wc -l < "$T/logs")" -gt 30 ] || fail "only $(wc -l < "$T/logs") lives"
}

# The same for a process that runs: with -f alone.
case_hooks_children_attached() { # undisturbed
	with_hooks
	target a fork 7 9
	attach --source=hooks -f -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	expect_rows cudaStreamQuery 16
	expect_rows cudaStreamQuery 7 "\"pid\":$PID_a,"
	target b fork 7 9
	attach --source=hooks -p "$PID_b"
	go b
	stop b
	finish
	ok_rc
	expect_rows cudaStreamQuery 7
}

# CMD alone, and what it becomes.
case_hooks_no_follow() { # undisturbed
	with_hooks
	ct_json --source=hooks --no-follow -- "$CALLS" fork 7 9
	ok_rc
	expect_rows cudaStreamQuery 7
	ct_json --source=hooks --no-follow -- sh -c "'$CALLS' queries 5; exec '$CALLS' queries 3"
	ok_rc
	expect_rows cudaStreamQuery 3
}

# A program that runs: rows from the attach on, twice; the code is what it was afterwards.
case_hooks_attach() { # undisturbed
	local pid before after
	with_hooks
	"$SAMPLE" --seconds 100 --rate 50 > /dev/null &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	before=$(code_of "$pid" libcudart)
	for _ in 1 2; do
		attach --source=hooks -p "$pid"
		wait_for 5 grep -q cudaLaunchKernel "$T/out"
		[ "$(code_of "$pid" libcudart)" != "$before" ] || fail "no byte of libcudart has changed"
		finish INT
		ok_rc
		says ', 0 lost'
		after=$(code_of "$pid" libcudart)
		expect "the code after the trace" "$after" "$before"
	done
	kill -0 "$pid" || fail "the program has ended"
}

# mapped PID NAME; code_of PID NAME: a sum of the code that a process has mapped of a library.
mapped() {
	grep -q "r-xp .*$2" "/proc/$1/maps"
}
code_of() {
	local range
	range=$(awk -v name="$2" '$2 == "r-xp" && index($6, name) { print $1; exit }' "/proc/$1/maps")
	python3 - "$1" "$range" << 'END'
import hashlib, sys
start, end = (int(x, 16) for x in sys.argv[2].split('-'))
with open('/proc/%s/mem' % sys.argv[1], 'rb') as f:
    f.seek(start)
    print(hashlib.sha1(f.read(end - start)).hexdigest())
END
}

# has_code PID NAME SUM: is it what it was?
has_code() {
	[ "$(code_of "$1" "$2")" = "$3" ]
}

# The tracer is killed: the hooks notice, and take themselves off.
case_hooks_tracer_killed() { # undisturbed
	local pid before
	with_hooks
	"$SAMPLE" --seconds 100 --rate 50 > "$T/program" &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	before=$(code_of "$pid" libcudart)
	attach --source=hooks -p "$pid"
	wait_for 5 grep -q cudaLaunchKernel "$T/out"
	kill -KILL "$CT"
	wait_for 3 has_code "$pid" libcudart "$before"
	kill -0 "$pid" || fail "the program has ended"
	# and somebody else may come
	attach --source=hooks -p "$pid"
	finish INT
	ok_rc
}

# Two at once: the second one is told so.
case_hooks_two_tracers() { # undisturbed
	local pid
	with_hooks
	"$SAMPLE" --seconds 100 --rate 50 > /dev/null &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	attach --source=hooks -p "$pid"
	rc=0
	timeout 60 "$CUDATRACE" --source=hooks -p "$pid" -d 1 > "$T/out2" 2> "$T/err2" || rc=$?
	[ "$rc" != 0 ] || fail "a second tracer came in: $(cat "$T/err2")"
	wait_for 5 grep -q cudaLaunchKernel "$T/out"
	finish INT
	ok_rc
}

# A tracer by probes comes and goes: what is not shown meanwhile is said, and afterwards calls are shown again.
case_hooks_probed_meanwhile() { # long undisturbed
	local pid before
	with_hooks
	"$SAMPLE" --seconds 100 --rate 50 > /dev/null &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	attach --source=hooks -p "$pid"
	wait_for 5 grep -q cudaLaunchKernel "$T/out"
	BREAKPOINTS_ARE_OURS=1
	"$CUDATRACE" -p "$pid" -e launch -o "$T/out2" 2> "$T/err2" < /dev/null &
	OTHER=$!
	wait_for 20 grep -q 'another tracer has put breakpoints on [1-9][0-9]* functions' "$T/err"
	kill -INT "$OTHER"
	wait "$OTHER"
	wait_for 20 grep -q 'another tracer had removed [1-9][0-9]* hooks, which have been put back' "$T/err"
	before=$(grep -c cudaLaunchKernel "$T/out")
	wait_for 10 more_launches "$before"
	finish INT
	ok_rc
	says "calls, 0 lost of those seen; [1-9][0-9]* functions had no hook for a time, because of another tracer"
	[ "$(interrupted_functions "$T/out")" -gt 1 ] || fail "the end record: $(tail -n 1 "$T/out")"
	kill -0 "$pid" || fail "the program has ended"
}

# A program changes its namespaces and capabilities: all its calls have rows. Where cudatrace's thread cannot come back, the hooks go.
case_hooks_namespaces() { # undisturbed
	with_hooks
	unshare -Urm true 2> /dev/null || skip "no user namespaces here"
	"$CALLS" namespaces > "$T/alone"
	ct --source=hooks -o "$T/rows" -- "$CALLS" namespaces
	ok_rc
	expect "what the program did" "$(xargs < "$T/out")" "$(xargs < "$T/alone")"
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 8
	says '^cudatrace: 8 calls, 0 lost$'
	! grep -q namespaces "$T/err" || fail "it says $(grep namespaces "$T/err")"
	ct --source=hooks -o "$T/rows" -- "$CALLS" namespaces 1
	ok_rc
	expect "rows before the third change" "$(grep -c cudaStreamQuery "$T/rows")" 3
	says 'process [0-9]*: it changed its namespaces or capabilities, .* its hooks were removed'
}

# Children of vfork() that are killed in the hook of _exit() have their parent's memory: its hooks can be changed, and come off.
case_hooks_vfork_killed() { # undisturbed
	local pid fd
	with_hooks
	mkfifo "$T/in"
	"$BIN/jumps" vfork memfd:cudatrace-agent < "$T/in" > "$T/prog.out" &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 5 grep -q ready "$T/prog.out"
	attach --source=hooks -p "$pid"
	echo >&"$fd"
	wait_for 20 grep -q "^done" "$T/prog.out"
	expect "the program" "$(tail -n 1 "$T/prog.out")" "done: killed some, 18 of 18"
	finish INT
	ok_rc
	expect_rows cudaStreamQuery 6
	no_loss
	! grep -q 'not removed in time' "$T/err" || fail "the hooks are still on"
	exec {fd}>&-
	wait_for 5 ended "$pid"
	wait "$pid" || fail "the program ended with $?"
}

# A thread of ours in them made unshare(1) fail, and setpriv(1) abort.
case_hooks_of_one_thread() { # undisturbed
	with_hooks
	ct --source=hooks -o "$T/rows" -- setpriv --reuid=65534 --regid=65534 --clear-groups true
	expect "setpriv" "$rc" 0
	unshare -Urm true 2> /dev/null || skip "no user namespaces here"
	chmod 777 "$T"
	ct --source=hooks -o "$T/rows" -- unshare -Urm "$CALLS" queries 3
	ok_rc
	says '^cudatrace: 3 calls, 0 lost$'
}

# interrupted_functions FILE: the number that the end of it has.
interrupted_functions() {
	grep '"type":"end"' "$1" | grep -o '"interrupted_functions":[0-9]*' | cut -d: -f2
}

# The same where the program makes its calls meanwhile and ends, whether its hooks are looked at again before that or not.
case_hooks_probed_at_the_end() { # long undisturbed
	with_hooks
	target a queries 20
	attach --source=hooks -p "$PID_a"
	! grep -q 'breakpoint there' "$T/err" || fail "another tracer was there before: $(grep 'breakpoint there' "$T/err")"
	BREAKPOINTS_ARE_OURS=1
	"$CUDATRACE" -v -p "$PID_a" -o "$T/out2" 2> "$T/err2" < /dev/null &
	OTHER=$!
	wait_for 20 grep -q '^cudatrace: ready' "$T/err2"
	stop a
	finish
	ok_rc
	# a third tracer, of the whole machine, may have come in between
	says "^cudatrace: [0-9]* calls, 0 lost of those seen; .*[1-9][0-9]* functions? had no hook for a time, because of another tracer: calls of (them|it) in that time are not known$"
	wait_for 10 ended "$OTHER"
	grep -q '20 calls, 0 lost$' "$T/err2" || fail "the other tracer: $(tail -n 1 "$T/err2")"
}

# dozens_of N: N libraries that contain a runtime, as files of their own.
dozens_of() {
	mkdir "$T/dozens"
	for i in $(seq "$1"); do
		cp "$BIN/libinner.so" "$T/dozens/lib$i.so"
	done
}

# A program with more functions than there is room for: the runtime's library has all its hooks, although it is loaded last.
case_hooks_room_for_the_runtime() { # long undisturbed
	with_hooks
	dozens_of 50
	ct --source=hooks -v --format json -o "$T/rows" -- "$BIN/dozens" last "$T"/dozens/*
	ok_rc
	mv "$T/rows" "$T/out"
	says 'there is no room for more hooks$'
	! grep -q 'are functions of CUDA' "$T/err" || fail "the runtime has too few hooks: $(cat "$T/err")"
	expect_rows cudaMalloc 10
}

# The same in a program that runs, whose functions are hooked together: the runtime's library is the last one in the order of addresses.
case_hooks_room_attached() { # long undisturbed
	with_hooks
	dozens_of 50
	mkfifo "$T/go"
	"$BIN/dozens" first "$T"/dozens/* < "$T/go" > "$T/loaded" &
	DOZENS=$!
	exec 6> "$T/go"
	wait_for 20 grep -q '^loaded' "$T/loaded"
	attach --source=hooks -p "$DOZENS"
	says 'there is no room for more hooks'
	! grep -q 'are functions of CUDA' "$T/err" || fail "the runtime has too few hooks: $(cat "$T/err")"
	echo >&6
	exec 6>&-
	finish
	ok_rc
	expect_rows cudaMalloc 10
}

# unhooked FILE: the number that the end of it has.
unhooked() {
	grep '"type":"end"' "$1" | grep -o '"unhooked_functions":[0-9]*' | cut -d: -f2
}

# Functions that another tracer has a breakpoint on have no hook: the last line, the end record, a recording of it, stat's object and the
# status of --strict say how many.
case_hooks_functions_without() { # long undisturbed
	local pid want
	with_hooks
	"$SAMPLE" --seconds 100 --rate 50 > /dev/null &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	ct --source=hooks -p "$pid" -d 1 --strict --format json
	ok_rc
	expect "none without a hook" "$(unhooked "$T/out")" ""
	BREAKPOINTS_ARE_OURS=1
	"$CUDATRACE" -v -p "$pid" -e launch -o "$T/out2" 2> "$T/err2" < /dev/null &
	OTHER=$!
	wait_for 20 grep -q '^cudatrace: ready' "$T/err2"
	ct --source=hooks -p "$pid" -d 1 --strict -o "$T/rows"
	expect "status of --strict" "$rc" 3
	want=$(sed -n 's/.*: \([1-9][0-9]*\) functions have no hooks, .*breakpoint there$/\1/p' "$T/err")
	[ "${want:-0}" -gt 1 ] || fail "no function is refused: $(cat "$T/err")"
	says "calls, 0 lost of those seen; $want functions had no hook: calls of them are not known$"
	for file in "$T/trace" "$T/later"; do
		ct record --source=hooks -p "$pid" -d 1 -o "$file"
		ok_rc
		says "0 lost of those seen; $want functions had no hook"
	done
	ct stat --source=hooks -p "$pid" -d 1 --format json
	ok_rc
	# it needs fewer functions: none that only teach names
	says "0 lost of those seen; $(grep -o '"unhooked_functions": *[1-9][0-9]*' "$T/out" | grep -o '[0-9]*$') functions had no hook"
	kill -INT "$OTHER"
	wait "$OTHER"
	ct replay --format json "$T/trace"
	ok_rc
	expect "in the recording" "$(unhooked "$T/out")" "$want"
	ct merge -o "$T/twice" "$T/trace" "$T/later"
	ok_rc
	ct replay --format json "$T/twice"
	expect "in both recordings" "$(unhooked "$T/out")" "$((2 * want))"
	kill -0 "$pid" || fail "the program has ended"
}

# Hooks are recommended where the probes took much of the program's time: 300 000 calls that do nothing, and no call amid as much work.
case_hooks_recommended() { # long undisturbed
	local words='the probes took about [0-9]+ % of the programs. CPU time: with --source=hooks'
	with_hooks
	ct doctor
	grep -qE '^probes +(session|multi)' "$T/out" || skip "what probes cost is not known here: $(grep '^probes' "$T/out")"
	ct stat -- "$CALLS" queries 300000
	ok_rc
	says "$words"
	says '300[ ,]?000 calls, 0 lost$'
	ct stat --source=hooks -- "$CALLS" queries 300000
	ok_rc
	! grep -qE "$words" "$T/err" || fail "hooks are recommended where they are: $(cat "$T/err")"
	ct stat -- sh -c "i=0; while [ \$i -lt 300000 ]; do i=\$((i + 1)); done; exec '$CALLS' queries 20"
	ok_rc
	says '20 calls, 0 lost$'
	! grep -qE "$words" "$T/err" || fail "recommended for 20 calls: $(cat "$T/err")"
	"$CALLS" --wait queries 20 > "$T/started" < <(sleep 100) &
	wait_for 5 mapped $! libcudart
	ct doctor -p $!
	grep -qE 'hooks +yes, by --source=hooks: better where it makes more than [1-9][0-9]+ calls in a second' "$T/out" || fail "$(grep -A 4 'suits' "$T/out")"
}

more_launches() {
	[ "$(grep -c cudaLaunchKernel "$T/out")" -gt "$1" ]
}

# Another user's process is refused, and is none the worse.
case_hooks_other_user() { # undisturbed
	local pid
	with_hooks
	"$SAMPLE" --seconds 100 --rate 50 > /dev/null &
	pid=$!
	wait_for 5 mapped "$pid" libcudart
	rc=0
	HOME=$T setpriv --reuid 65534 --regid 65534 --clear-groups "$CUDATRACE" --source=hooks -p "$pid" -d 1 > "$T/out" 2> "$T/err" || rc=$?
	[ "$rc" != 0 ] || fail "another user's process was entered"
	grep -q 'error' "$T/err" || fail "no message: $(cat "$T/err")"
	kill -0 "$pid" || fail "the program has ended"
}

# What cannot have hooks that way is told, and runs.
case_hooks_no_way_in() { # undisturbed
	with_hooks
	gcc -static -o "$T/static" -x c - <<< 'int main(void) { return 3; }' || skip "no static libc here"
	ct --source=hooks -- "$T/static"
	ok_rc 3
	says 'no hooks could be put into the program: it is linked statically'
}

# Where hooks can never come in, probes record, if they are permitted.
case_hooks_never_in() { # undisturbed
	local pid
	with_hooks
	cat > "$T/static.c" << 'END'
#include <stdio.h>
__attribute__((noinline, noclone)) int cudaStreamQuery(void *stream)
{
	__asm__ volatile("" : : "r"(stream));
	return 0;
}
int main(void)
{
	getchar();
	for (int i = 0; i < 20; i++)
		cudaStreamQuery(0);
	return 0;
}
END
	gcc -O1 -static -o "$T/static" "$T/static.c" || skip "no static libc here"
	chmod 755 "$T"
	mkfifo "$T/in"
	exec 9<> "$T/in"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$T/static" <&9 &
	pid=$!
	wait_for 5 grep -q static "/proc/$pid/maps"
	rc=0
	setpriv --reuid 65534 --regid 65534 --clear-groups "$CUDATRACE" --source=hooks -p $pid > "$T/out" 2> "$T/err" || rc=$?
	expect "status without rights" "$rc" 1
	expect "message without rights" "$(cat "$T/err")" "cudatrace: error: no hooks can be put on: process $pid is a static program, which loads no shared objects: \
only probes see its calls: run as root, with --source=probes"
	"$CUDATRACE" -v --source=hooks -o "$T/rows" -p $pid 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q '^cudatrace: ready' "$T/err"
	echo >&9
	wait "$CT" || fail "status $?"
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 20
	says "no hooks can be put on: process $pid is a static program, .*: calls are recorded by probes, as with --source=probes"
	says '20 calls, 0 lost'
}

# A program that may not write to its own code.
case_hooks_barred() { # undisturbed
	with_hooks
	barring # both.sh
	LD_PRELOAD=$T/bar.so target a queries 20
	rc=0
	"$CUDATRACE" --source=hooks -p "$PID_a" -d 5 -o "$T/rows" 2> "$T/err" || rc=$?
	expect "status" "$rc" 1
	says "process $PID_a: [0-9]+ functions have no hooks, and their calls are shown by --source=probes alone: the process may not write to its code"
	says 'error: no hooks could be put on: run as root, with --source=probes'
	go a
	stop a
}

# Programs with sanitizers start. With ThreadSanitizer hooks are not possible, and that is said; with the others all calls are there.
case_hooks_sanitized() { # undisturbed
	local how
	with_hooks
	for how in address undefined leak thread; do
		gcc -fsanitize=$how -x c -o "$T/$how" - -I"$ROOT/tests/standin/include" -L"$STANDIN" -Wl,-rpath,"$STANDIN" -lcudart << 'END' 2> "$T/gcc" || continue
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 7; i++)
		cudaStreamQuery(0);
	printf("options %s\n", getenv("ASAN_OPTIONS"));
	return 0;
}
END
		ASAN_OPTIONS=exitcode=9 ct --source=hooks -o "$T/rows" -- "$T/$how"
		ok_rc
		expect "the program, $how" "$(cat "$T/out")" 'options verify_asan_link_order=0:exitcode=9'
		if [ $how = thread ]; then
			says 'no hooks could be put into the program: .* has another libc or ThreadSanitizer'
			says 'process [0-9]+ \(thread\) used CUDA and had no hooks: its calls are not known'
		else
			expect "rows, $how" "$(grep -c cudaStreamQuery "$T/rows")" 7
		fi
	done
	[ -x "$T/undefined" ] || fail "gcc makes none: $(cat "$T/gcc")"
}

# With an auditor (LD_AUDIT) that looks at each call and each return, the dynamic loader makes the calls itself: what the hooks' object calls must
# not go that way, as dlsym() would take the loader for its caller. The auditor sees each of the program's calls, and none of ours.
case_hooks_audited() { # undisturbed
	with_hooks
	ct --source=hooks -o "$T/rows" -- env LD_AUDIT="$ROOT/.output/cases/auditor.so" "$CALLS" queries 20
	ok_rc
	expect "the auditor" "$(grep audited "$T/out" | tail -n 1)" 'audited: 20, of ours 0'
	expect "rows" "$(grep -c cudaStreamQuery "$T/rows")" 20
}

# A program that closes all its descriptors goes on being traced. One that becomes another one without hooks: it is said that its further
# calls are not shown.
case_hooks_connection_closed() { # undisturbed
	with_hooks
	target a daemon 3 4
	attach --source=hooks -p "$PID_a"
	go a
	stop a
	wait_for 5 ended "$CT"
	expect_rows cudaStreamQuery 7
	says '7 calls, 0 lost$'
	rm -f "$T/a.in"
	target a exec-lines 3
	attach --source=hooks -p "$PID_a"
	go a nowait
	wait_for 10 grep -q "^cudatrace: warning: process $PID_a: its connection to cudatrace has ended, but the process has not: it has become a \
program that cannot have hooks; its further calls are shown by --source=probes alone\$" "$T/err"
	stop a
	wait_for 5 ended "$CT"
	[ "$(rows cudaStreamQuery)" -ge 3 ] || fail "calls before that have no rows"
	rm -f "$T/a.in"
	# that it ended is no reason to say so
	target a queries 5
	attach --source=hooks -p "$PID_a"
	go a
	stop a
	wait_for 5 ended "$CT"
	expect_rows cudaStreamQuery 5
	if grep -q 'its connection' "$T/err"; then fail "$(cat "$T/err")"; fi
}

# A program that is killed in a call: the call is shown, as one that did not return.
case_hooks_killed_in_call() { # undisturbed
	with_hooks
	STANDIN_BLOCK=cudaStreamQuery:$T/go "$CUDATRACE" --source=hooks -o "$T/rows" -- "$CALLS" queries 2 > /dev/null 2> "$T/err" &
	CT=$!
	wait_for 5 in_call
	pkill -KILL -P "$CT" -x calls
	wait_for 5 ended "$CT"
	expect "unfinished rows" "$(grep -c -E 'cudaStreamQuery .*<unfinished \.\.\.>' "$T/rows")" 1
}
# The program is in the call that waits; cudatrace has other children too.
in_call() {
	local child
	child=$(pgrep -P "$CT" -x calls) && [ -n "$child" ] && grep -q -E '^(230|35) ' "/proc/$child/syscall"
}

# Everything that is not in the table came from the ring, or is counted.
case_hooks_full_ring() { # undisturbed
	local shown lost
	with_hooks
	ct --source=hooks --ring-size 64K -o "$T/rows" -- "$CALLS" queries 200000
	ok_rc
	shown=$(grep -c 'cudaStreamQuery' "$T/rows")
	lost=$(sed -n 's/.* \([0-9]*\) lost.*/\1/p' "$T/err" | tail -n 1)
	expect "shown and lost" "$((shown + lost))" 200000
}

# The book of memory is that of probes.
case_hooks_mem() { # long undisturbed
	with_hooks
	for mode in leak reuse threads; do
		ct mem --json -o "$T/mem.json" -- "$MEMORY" $mode
		ok_rc
		mem_say '[(k, sorted((r["kind"], r["taken"], r["allocations"], r["frees"]) for r in d["by_kind"]), leaks, d["lost"]) for k in [0]]' > "$T/probes"
		ct mem --source=hooks --json -o "$T/mem.json" -- "$MEMORY" $mode
		ok_rc
		mem_say '[(k, sorted((r["kind"], r["taken"], r["allocations"], r["frees"]) for r in d["by_kind"]), leaks, d["lost"]) for k in [0]]' > "$T/hooks"
		diff "$T/probes" "$T/hooks" > "$T/diff" || fail "$mode: $(head -n 4 "$T/diff")"
	done
	ct mem --source=hooks --stack=fp -o /dev/null -- "$MEMORY" leak
	ok_rc 2
	says '--source=hooks copies stacks to unwind them'
}

# A program that loads libraries waits for each answer of cudatrace, which must not wait for its own next look at the clock.
case_hooks_answers_at_once() { # undisturbed
	cat > "$T/loads.py" <<- 'E'
		import ctypes, re, sys, time
		time.sleep(1.2)  # the tracer has nothing to do by now
		slow = 0
		def waited():  # how long tasks have waited for a processor, which others had
		    try:
		        return int(re.search(r"^some .*total=(\d+)", open("/proc/pressure/cpu").read(), re.M)[1]) / 1e6
		    except OSError:
		        return 0
		for path in sys.argv[1:]:
		    others, begin = waited(), time.monotonic()
		    ctypes.CDLL(path)
		    took = time.monotonic() - begin
		    slow += took > 0.08 and waited() - others < took / 4
		print(slow)
	E
	local i
	echo 'int f(void) { return 1; }' > "$T/f.c"
	gcc -shared -fPIC -o "$T/f.so" "$T/f.c"
	for i in $(seq 40); do
		cp "$T/f.so" "$T/f$i.so"
	done
	ct --source=hooks -o /dev/null -- python3 "$T/loads.py" "$T"/f[0-9]*.so
	ok_rc
	[ "$(tail -n 1 "$T/out")" -lt 20 ] || fail "$(tail -n 1 "$T/out") of 40 libraries took longer than 80 ms to load"
}

# stopped_tracer SOURCE start|attach: a program forks, loads libraries and starts others while cudatrace is stopped, which goes on when all
# that has been done. The program makes 3 calls meanwhile, and 4 afterwards; those that it starts make 5 each.
stopped_tracer() {
	local i program
	cat > "$T/goes_on.py" <<- 'E'
		import ctypes, os, subprocess, sys
		calls, folder = sys.argv[1:]
		print("ready", flush=True)
		sys.stdin.readline()
		for i in range(10):
		    child = os.fork()
		    if not child:
		        os._exit(0)
		    os.waitpid(child, 0)
		    ctypes.CDLL(f"{folder}/f{i}.so")
		    subprocess.run([calls, "queries", "5"])
		cuda = ctypes.CDLL(f"{folder}/libcudart.so.13")
		for i in range(3):
		    cuda.cudaStreamQuery(None)
		print("done", flush=True)
		sys.stdin.readline()
		for i in range(4):
		    cuda.cudaStreamQuery(None)
	E
	rm -rf "$T/library" "$T/in" "$T/prog.out"
	copy_library "$T/library"
	echo 'int f(void) { return 1; }' > "$T/f.c"
	gcc -shared -fPIC -o "$T/f.so" "$T/f.c"
	for i in $(seq 0 9); do
		cp "$T/f.so" "$T/library/f$i.so"
	done
	mkfifo "$T/in"
	exec {in}<> "$T/in"
	program=(python3 "$T/goes_on.py" "$CALLS" "$T/library")
	not_ready
	if [ "$2" = attach ]; then
		"${program[@]}" < "$T/in" > "$T/prog.out" 2> "$T/prog.err" {in}>&- &
		program=(-p $!)
		wait_for 10 grep -qs ready "$T/prog.out"
		"${BACKGROUND[@]}" "$CUDATRACE" -v --source="$1" --format json -o "$T/out" "${program[@]}" > "$T/ct.out" 2> "$T/err" < /dev/null {in}>&- &
	else
		"${BACKGROUND[@]}" "$CUDATRACE" -v --source="$1" --format json -o "$T/out" -- "${program[@]}" > "$T/prog.out" 2> "$T/err" < "$T/in" {in}>&- &
	fi
	CT=$!
	wait_for 10 ready_or_gone
	wait_for 10 grep -qs ready "$T/prog.out"
	kill -STOP "$CT"
	echo >&"$in"
	wait_for 5 grep -qs "done" "$T/prog.out"
	kill -CONT "$CT"
}

# A tracer that is stopped holds up nobody. When it goes on it finds what it has missed, and says so. (Whether the children that did nothing
# are said depends on how long the trace goes on.)
case_hooks_tracer_stopped() { # undisturbed
	local how in
	for how in start attach; do
		stopped_tracer hooks $how
		[ $how = attach ] || wait_for 10 says_now 'functions could not be hooked'
		wait_for 10 says_now 'process [0-9]*: hooks are on; [1-9]'
		echo >&"$in"
		finish
		ok_rc
		expect_rows cudaStreamQuery 4
		says '1 process ran up to [0-9.]* ms before its calls were seen'
		[ $how = attach ] || says '; (1[0-9]|20) processes used CUDA and had no hooks: their calls are not known'
		exec {in}>&-
	done
}

# The same for probes. What a program did that began and ended meanwhile is not known.
case_probes_tracer_stopped() {
	local how in
	for how in start attach; do
		stopped_tracer probes $how
		wait_for 10 says_now 'library/libcudart.so.13: [1-9][0-9]* functions probed'
		echo >&"$in"
		finish
		ok_rc
		expect_rows cudaStreamQuery 4
		exec {in}>&-
		says '(at least )?[1-9][0-9]* process(es)? ran up to [0-9.]* ms before (its|their) calls were seen'
	done
}

says_now() {
	grep -q "$1" "$T/err"
}

# Functions that cannot have hooks of their own are said, as with probes.
case_hooks_library_of_odd_functions() { # undisturbed
	with_hooks
	odd_calls hooks
}

# Libraries that dlmopen() loads have their hooks before their first call, each time: of the program, and of a constructor; and so have
# those that code there loads by dlopen().
case_hooks_other_namespace() { # undisturbed
	with_hooks
	gcc -shared -fPIC -O1 -o "$T/there.so" -x c - << 'END'
int cudaFree(void *p) { return !p; }
__attribute__((constructor)) static void begin(void) { cudaFree(&begin); }
END
	gcc -shared -fPIC -O1 -o "$T/loader.so" -x c - << 'END'
#include <dlfcn.h>
void *load(const char *path) { return dlopen(path, RTLD_NOW); }
END
	gcc -O1 -D_GNU_SOURCE -o "$T/loads" -x c - << 'END'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static int calls(void *there)
{
	int (*f)(void *) = there ? (int (*)(void *))dlsym(there, "cudaFree") : 0;

	return f && !f(there) && !f(there) && !dlclose(there);
}
int main(int argc, char **argv)
{
	void *loader, *(*load)(const char *);
	char go;

	for (int i = 0; argc == 2 && i < 5; i++)
		if (!calls(dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)))
			return 1;
	if (argc == 2)
		return 0;
	loader = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
	if (argc > 3) {
		puts("ready");
		fflush(stdout);
		if (read(0, &go, 1) != 1)
			return 1;
	}
	load = loader ? (void *(*)(const char *))dlsym(loader, "load") : 0;
	return !load || !calls(load(argv[1]));
}
END
	ct --strict --source=hooks -- "$T/loads" "$T/there.so"
	ok_rc
	says '^cudatrace: 15 calls, 0 lost$'
	ct --strict --source=hooks -- "$T/loads" "$T/there.so" "$T/loader.so"
	ok_rc
	says '^cudatrace: 3 calls, 0 lost$'
	# by -p, to a program that has called dlmopen() before
	mkfifo "$T/in"
	"$T/loads" "$T/there.so" "$T/loader.so" waits < "$T/in" > "$T/ready" &
	pid=$!
	exec 9> "$T/in"
	wait_for 5 grep -q ready "$T/ready"
	attach --strict --source=hooks -p $pid
	echo >&9
	wait "$CT" || fail "status $?"
	says '^cudatrace: 3 calls, 0 lost$'
}

# The loader maps a library, then what it needs, and fills in their slots only then: calls through these are seen, of the first
# library that the program loads and of a later one.
case_hooks_needed_library() { # undisturbed
	local i
	with_hooks
	# a function that has no room for a jump
	if [ "$(uname -m)" = x86_64 ]; then i='xor %eax, %eax'; else i='mov w0, #0'; fi
	gcc -shared -Wl,-soname,libshort.so -o "$T/libshort.so" -x assembler - << END
.text
.globl cudaFree
.type cudaFree, %function
cudaFree:
 $i
 ret
.size cudaFree, . - cudaFree
.section .note.GNU-stack,"",%progbits
END
	for i in 1 2; do
		echo "int cudaFree(void *); int inner$i(void) { return cudaFree(0); }" |
			gcc -shared -fPIC -O1 -Wl,-z,now,-soname,libinner$i.so,-rpath,"$T" -o "$T/libinner$i.so" -x c - -L"$T" -lshort
		echo "int inner$i(void); int call(void) { return inner$i(); }" |
			gcc -shared -fPIC -O1 -Wl,-z,now,-rpath,"$T" -o "$T/outer$i.so" -x c - -L"$T" -linner$i
	done
	gcc -O1 -o "$T/loads" -x c - -L"$T" -Wl,--no-as-needed,-rpath,"$T" -lshort -ldl << 'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		int (*call)(void) = library ? (int (*)(void))dlsym(library, "call") : 0;

		if (!call || call() || call() || call())
			return 1;
	}
	return 0;
}
END
	ct --source=hooks -o "$T/rows" -- "$T/loads" "$T/outer1.so" "$T/outer2.so"
	ok_rc
	expect "rows of two libraries" "$(grep -c cudaFree "$T/rows")" 6
}

# Where a library was another one is mapped: its code is not taken for the first one's, from which somebody took the hooks.
case_hooks_another_library_in_its_place() { # undisturbed
	with_hooks
	gcc -shared -fPIC -O1 -o "$T/first.so" -x c - <<< 'int cudaFree(void *p) { return !p; }'
	gcc -shared -fPIC -O1 -o "$T/second.so" -x c - <<< 'int cudaOther(void *p) { return !p; }'
	gcc -O1 -o "$T/loads" -x c - << 'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *first = dlopen(argv[1], RTLD_NOW), *was = first ? dlsym(first, "cudaFree") : 0, *second;

	if (!was || ((int (*)(void *))was)(argv) || dlclose(first))
		return 1;
	second = dlopen(argv[2], RTLD_NOW);
	if (second && dlsym(second, "cudaOther") == was)
		puts("in its place");
	first = dlopen(argv[1], RTLD_NOW);
	was = first ? dlsym(first, "cudaFree") : 0;
	return !was || ((int (*)(void *))was)(argv);
}
END
	ct --strict --source=hooks -o "$T/rows" -- "$T/loads" "$T/first.so" "$T/second.so"
	ok_rc
	grep -q 'in its place' "$T/out" || skip "the loader has put them elsewhere"
	says '^cudatrace: 2 calls, 0 lost$'
}
