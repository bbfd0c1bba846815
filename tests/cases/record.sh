# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# shellcheck source=tests/lib.sh
# record.sh - recordings: what was stored is printed as it would have been, whatever ended the recorder; files of a size, the
# last seconds, and the stretches of a trace that are shown at all.

# What two runs of one program cannot have in common: numbers of processes, times, and what follows from addresses of the
# kernel's choosing. Everything else is left as it is.
# (A call's row has the context and the stream of its work if that is known when the row is shown.)
same_in_all_runs() {
	sed -E 's/"(start_ns|duration_ns|pid|tid|ppid|start_boottime_ns|uptime_ns|realtime_ns|boottime_ns|error_ns|child_pid|cause_start_ns|delay_ns)":[0-9]+/"\1":0/g
		/^\{"type":"call"/s/,"(context|stream)":[0-9]+|,"gpu_uuid":"[^"]*"//g' "$1"
}

# replay ARGS...: JSON of $T/r.ctrace in $T/out, as ct_json leaves it of a live run.
replay() {
	rc=0
	timeout -k 1 150 "$CUDATRACE" replay --format json -o "$T/out" "$@" "$T/r.ctrace" 2> "$T/err" || rc=$?
	check_alive
}

# record ARGS...: to $T/r.ctrace, to its end.
record() {
	ct record -o "$T/r.ctrace" "$@"
}

# record_bg ARGS...: the same in the background.
record_bg() {
	not_ready
	"${BACKGROUND[@]}" "$CUDATRACE" record -v -o "$T/r.ctrace" "$@" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	grep -q 'cudatrace: ready' "$T/err" || fail "cudatrace ended at once: $(tail -n 3 "$T/err")"
}

# make NAME N: a target in mode `lines` makes N calls.
make_calls() {
	local fd=FD_$1 before
	before=$(grep -c '^made' "$T/$1.out")
	echo "$2" >&"${!fd}"
	wait_for 10 more_made "$1" "$before"
}

more_made() {
	[ "$(grep -c '^made' "$T/$1.out")" -gt "$2" ]
}

# lines NAME: such a target, at its first line.
lines() {
	target "$1" lines
	local fd=FD_$1
	echo >&"${!fd}"
}

lines_end() {
	local fd=FD_$1 pid=PID_$1
	printf '0\n\n' >&"${!fd}"
	wait_for 5 ended "${!pid}"
}

# like_live OPTIONS -- CMD...: a live trace and a replayed one of the same program are the same.
like_live() {
	local opts=()
	while [ "$1" != -- ]; do
		opts+=("$1")
		shift
	done
	shift
	ct_json "${opts[@]}" -- setarch -R "$@"
	local live_rc=$rc
	same_in_all_runs "$T/out" > "$T/live"
	record "${opts[@]}" -- setarch -R "$@"
	expect "status" "$rc" "$live_rc"
	[ "${opts[*]}" != --no-return ] || opts=()
	replay "${opts[@]}"
	ok_rc
	same_in_all_runs "$T/out" > "$T/replayed"
	diff "$T/live" "$T/replayed" > "$T/diff" || fail "${opts[*]} $*: $(head -n 5 "$T/diff")"
	[ "$(grep -c '^{"type":"call"' "$T/live")" -ge "${LEAST:-3}" ] || fail "$*: nothing was compared"
}

case_replay_is_live() { # long
	like_live -- "$CALLS" mix 20 5 5
	like_live -- "$CALLS" failing 3 4
	LEAST=1
	like_live -- "$CALLS" driver 3
	like_live -- "$CALLS" hostile
	like_live -- "$CALLS" longjmp 3
	like_live -- "$CALLS" exec 3 2
	like_live -- "$CALLS" fork
	like_live -- "$CALLS" status 3
}

case_replay_is_live_options() { # long
	like_live --nested -- "$CALLS" mix 5 2 2
	like_live --enter-exit -- "$CALLS" mix 5 2 2
	like_live --no-return -- "$CALLS" mix 5 2 2
	like_live -e memory -- "$CALLS" mix 5 2 2
	like_live --failed -- "$CALLS" failing 3 4
}

case_replay_is_live_stacks() {
	LEAST=1
	like_live -k -- "$BIN/chain" plain
	grep -q '"stack":' "$T/replayed" || fail "no stacks"
	# without -k they are there and not shown
	replay
	! grep -q '"stack":' "$T/out" || fail "a stack without -k"
}

# With the device's records. They come in batches, so that only their order among the calls may be another one.
case_replay_is_live_gpu() {
	ct_json --gpu -- setarch -R "$BIN/work" 40 return
	ok_rc
	same_in_all_runs "$T/out" | sort > "$T/live"
	record --gpu -- setarch -R "$BIN/work" 40 return
	ok_rc
	replay
	ok_rc
	same_in_all_runs "$T/out" | sort > "$T/replayed"
	diff "$T/live" "$T/replayed" > "$T/diff" || fail "$(head -n 5 "$T/diff")"
	expect "kernels" "$(grep -c '^{"type":"kernel".*"cause":"cudaLaunchKernel"' "$T/replayed")" 40
	# and within one trace the order is the same whenever it is printed
	"$CUDATRACE" replay --format json "$T/r.ctrace" 2> /dev/null | cmp -s - "$T/out" || fail "another order"
}

# What a live trace would have left out can be left out later.
case_replay_options() {
	record -- "$CALLS" mix 20 5 4
	ok_rc
	replay -e memory
	expect_rows cudaMalloc 21
	expect_rows cudaMemcpy 0
	replay -e cudaMemset
	expect "rows" "$(grep -c '^{"type":"call"' "$T/out")" 4
	replay -n 3
	expect "rows" "$(grep -c '^{"type":"call"' "$T/out")" 3
	replay -p 1
	expect "rows" "$(grep -c '^{"type":"call"' "$T/out")" 0
	replay --from 1h
	expect "rows" "$(grep -c '^{"type":"call"' "$T/out")" 0
	replay --to 1h
	expect "rows" "$(grep -c '^{"type":"call"' "$T/out")" 51
	ct replay -c "$T/r.ctrace"
	grep -q -E ' 21 +cudaMalloc$' "$T/out" || fail "$(cat "$T/out")"
	ct replay "$T/r.ctrace"
	expect "lines of the table" "$(wc -l < "$T/out")" 52
}

# Neither root nor /proc is needed to read.
case_replay_unprivileged() {
	record -- "$CALLS" queries 9
	chmod 644 "$T/r.ctrace"
	cp "$ROOT/cudatrace" "$T/ct"
	rc=0
	timeout 100 unshare --mount --fork sh -c "mount -t tmpfs none /proc && exec setpriv --reuid=65534 --clear-groups '$T/ct' replay \
		--format json '$T/r.ctrace'" > "$T/out" 2> "$T/err" || rc=$?
	ok_rc
	expect_rows cudaStreamQuery 9
}

case_record_killed() {
	lines a
	record_bg -p "$PID_a"
	make_calls a 500
	# a block is written once a second
	wait_for 5 has_calls 500
	make_calls a 7
	kill -KILL "$CT"
	wait "$CT" 2> /dev/null
	replay
	ok_rc
	[ "$(rows cudaStreamQuery)" -ge 500 ] || fail "$(rows cudaStreamQuery) calls"
	grep -q '"reason":"cut off"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	ct info "$T/r.ctrace"
	ok_rc
	grep -q -E '^end +none: ' "$T/out" || fail "$(cat "$T/out")"
	lines_end a
}

has_calls() {
	[ "$("$CUDATRACE" replay --format json "$T/r.ctrace" 2> /dev/null | grep -c '^{"type":"call"')" -ge "$1" ]
}

case_record_disk_full() {
	mkdir "$T/small"
	mount -t tmpfs -o size=96k none "$T/small" || skip "no tmpfs can be mounted"
	trap 'umount -l "$T/small"' EXIT
	ct record -o "$T/small/r.ctrace" -- "$CALLS" mix 200000 0 0
	ok_rc 1
	says 'No space left'
	mv "$T/small/r.ctrace" "$T/r.ctrace"
	replay
	ok_rc
	[ "$(rows cudaMalloc)" -ge 100 ] || fail "$(rows cudaMalloc) calls"
	ct info "$T/r.ctrace"
	ok_rc
	! grep -q -E '^(cut off|damaged)' "$T/out" || fail "a part of a block was left: $(cat "$T/out")"
}

# The disk is full when the next file begins, and when memory is written.
case_record_disk_full_later() { # long
	mkdir "$T/small"
	mount -t tmpfs -o size=200k none "$T/small" || skip "no tmpfs can be mounted"
	trap 'umount -l "$T/small"' EXIT
	# more than fits in all files together, but not in the first one
	ct record -o "$T/small/r.ctrace" --max-size 64KiB --rotate 9 -- "$CALLS" mix 200000 0 0
	ok_rc 1
	[ "$(grep -c '^cudatrace: error: .*r.ctrace.*No space left' "$T/err")" = 1 ] || fail "$(cat "$T/err")"
	mv "$T/small/r.ctrace.1" "$T/r.ctrace"
	rm -f "$T"/small/*
	replay
	ok_rc
	[ "$(rows cudaMalloc)" -ge 100 ] || fail "$(rows cudaMalloc) calls"
	ct record -o "$T/small/r.ctrace" --last 60s --dump-on end -- "$CALLS" mix 200000 0 0
	ok_rc 1
	says 'failed after [1-9][0-9]* bytes: No space left on device; what is in it can be read, the last [1-9][0-9]* records are not in it'
	mv "$T/small/r.ctrace" "$T/r.ctrace"
	replay
	ok_rc
	[ "$(rows cudaMalloc)" -ge 100 ] || fail "$(rows cudaMalloc) calls"
}

case_record_pipe() {
	mkfifo "$T/pipe"
	ct record -o "$T/pipe" -- "$CALLS" mix 3 0 0
	ok_rc 1
	says "cannot write to $T/pipe: it is a pipe that nobody reads"
	exec 9<> "$T/pipe"
	ct record -o "$T/pipe" -- "$CALLS" mix 3 0 0
	ok_rc
	head -c "$(sed -n "s|^cudatrace: \\([0-9]*\\) bytes in $T/pipe$|\\1|p" "$T/err")" <&9 > "$T/r.ctrace"
	exec 9>&-
	replay
	ok_rc
	expect_rows cudaFree 4
}

# Who writes to a file has it alone: it would go on under another name, and nobody would be told.
case_record_twice() {
	lines a
	record_bg -p "$PID_a"
	make_calls a 3
	"$CUDATRACE" record -o "$T/r.ctrace" -- "$CALLS" mix 3 0 0 > "$T/second" 2>&1 && fail "it begins"
	grep -q "^cudatrace: error: cannot write to $T/r.ctrace: another recorder writes to it$" "$T/second" || fail "$(cat "$T/second")"
	make_calls a 4
	lines_end a
	finish
	[ ! -e "$T/r.ctrace.old" ] || fail "it was moved away"
	replay
	expect_rows cudaStreamQuery 7
}

case_record_link() {
	ln -s there "$T/r.ctrace"
	record -- "$CALLS" mix 3 0 0
	ok_rc
	cp "$T/there" "$T/first"
	record -- "$CALLS" mix 2 0 0
	ok_rc
	[ -L "$T/r.ctrace" ] || fail "the link is gone"
	cmp "$T/first" "$T/there.old" || fail "what it led to is gone"
	replay
	ok_rc
}

case_record_rotate() { # long
	local n
	record --max-size 64KiB --rotate 2 -- "$CALLS" mix 300000 0 0
	ok_rc
	for n in '' .1 .2; do
		[ -s "$T/r.ctrace$n" ] || fail "no r.ctrace$n"
	done
	[ ! -e "$T/r.ctrace.3" ] || fail "more files than asked for"
	# each can be read without the others, and knows whose calls it has
	for n in '' .1 .2; do
		"$CUDATRACE" replay --format json -o "$T/out$n" "$T/r.ctrace$n" 2> /dev/null || fail "r.ctrace$n cannot be read"
		grep -q '^{"type":"call".*"process":"calls"' "$T/out$n" || fail "$(head -n 5 "$T/out$n")"
		! grep -q '"process":"?"' "$T/out$n" || fail "a process without a name"
	done
	for n in '' .1 .2; do
		[ "$(stat -c %s "$T/r.ctrace$n")" -le 65536 ] || fail "more than --max-size: $(ls -l "$T")"
	done
	[ "$(stat -c %s "$T/r.ctrace.1")" -ge 45000 ] || fail "a file that is not full: $(ls -l "$T")"
}

# A device, a pipe or a link in /dev gets no other name: the recording would take its place for everybody.
case_record_rotate_no_file() {
	local what
	mknod "$T/null" c 1 3 || skip "no device can be made here"
	mkfifo "$T/pipe"
	exec 9<> "$T/pipe"
	for what in null pipe; do
		ct record -o "$T/$what" --max-size 64KiB --rotate 2 -- "$CALLS" mix 30000 0 0
		ok_rc 1
		says "--rotate gives the file other names, and $T/$what is not a regular file"
		[ ! -e "$T/$what.1" ] || fail "$what was renamed"
	done
	exec 9>&-
	[ -c "$T/null" ] || fail "something else is there: $(ls -l "$T")"
	[ -p "$T/pipe" ] || fail "something else is there: $(ls -l "$T")"
}

# numbers FILE [OPTIONS]: of all calls that it shows, in order, with their names.
numbers() {
	"$CUDATRACE" export --to csv -o "$T/csv" "$@" 2> "$T/err" || fail "$(cat "$T/err")"
	awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		$1 == "call" { print $at["correlation"], $at["name"] }' "$T/csv"
}

# Calls keep their numbers whatever file they are in, alone or merged: those of a recording that was not rotated.
case_record_rotate_numbers() { # long
	local n files=()
	record --max-size 64KiB --rotate 99 -- "$CALLS" mix 100000 0 0
	ok_rc
	files=("$T"/r.ctrace*)
	[ "${#files[@]}" -ge 3 ] || fail "only ${#files[@]} files"
	for n in $(seq $((${#files[@]} - 1)) -1 1); do
		numbers "$T/r.ctrace.$n"
	done > "$T/each"
	numbers "$T/r.ctrace" >> "$T/each"
	"$CUDATRACE" merge -o "$T/all" "$T"/r.ctrace* 2> "$T/err" || fail "$(cat "$T/err")"
	numbers "$T/all" > "$T/merged"
	rm "$T"/r.ctrace*
	record -- "$CALLS" mix 100000 0 0
	numbers "$T/r.ctrace" > "$T/whole"
	[ "$(wc -l < "$T/whole")" -ge 200000 ] || fail "$(wc -l < "$T/whole") calls"
	cmp "$T/whole" "$T/each" > "$T/diff" || fail "files by themselves: $(cat "$T/diff")"
	cmp "$T/whole" "$T/merged" > "$T/diff" || fail "merged: $(cat "$T/diff")"
	# a stretch of it has the same numbers, though what is before it is not read
	n=$(grep -a -o '^uptime_ns [0-9]*' "$T/r.ctrace" | tail -n 1)
	numbers "$T/r.ctrace" --from "$((${n#* } / 2000))us" > "$T/part"
	n=$(wc -l < "$T/part")
	if [ "$n" = 0 ] || [ "$n" -ge "$(wc -l < "$T/whole")" ]; then
		fail "$n calls in the second half"
	fi
	tail -n "$n" "$T/whole" | cmp - "$T/part" > "$T/diff" || fail "a stretch: $(cat "$T/diff")"
}

case_record_max_size() { # long
	record --max-size 64KiB -- "$CALLS" mix 300000 0 0
	replay
	ok_rc
	grep -q '"reason":"size"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	[ "$(stat -c %s "$T/r.ctrace")" -le 65536 ] || fail "more than --max-size: $(ls -l "$T")"
	record --max-size 100kB -k --gpu -- "$BIN/work" -t 8 20000 return
	[ "$(stat -c %s "$T/r.ctrace")" -le 100000 ] || fail "more than --max-size: $(ls -l "$T")"
	[ "$(stat -c %s "$T/r.ctrace")" -ge 75000 ] || fail "a file that is not full: $(ls -l "$T")"
}

case_record_last_signal() {
	lines a
	record_bg --last 60s -p "$PID_a"
	make_calls a 40
	[ ! -e "$T/r.ctrace" ] || fail "written without a reason"
	kill -USR2 "$CT"
	wait_for 5 test -s "$T/r.ctrace"
	wait_for 5 grep -q 'wrote .*r.ctrace (signal)' "$T/err"
	replay
	expect_rows cudaStreamQuery 40
	# it goes on, and the next one is another file
	make_calls a 5
	kill -USR2 "$CT"
	wait_for 5 grep -q 'wrote .*r.ctrace.2 (signal)' "$T/err"
	mv "$T/r.ctrace.2" "$T/r.ctrace"
	replay
	expect_rows cudaStreamQuery 45
	lines_end a
	finish
}

# Ranks that wait for each other: a file that is written while they do shows that nothing came any more.
case_record_last_stuck() {
	mkfifo "$T/in"
	exec {FD_in}<> "$T/in"
	LD_LIBRARY_PATH=$STANDIN "${BACKGROUND[@]}" "$CUDATRACE" record --layers nccl --last 60s -o "$T/r.ctrace" -- "$BIN/ranks" circle 3 0 2 "$T" < "$T/in" > "$T/job.out" 2> "$T/err" &
	PID_record=$!
	wait_for 20 grep -q '^ready' "$T/job.out"
	sleep 1
	kill -USR2 "$PID_record"
	wait_for 10 grep -q 'wrote .*r.ctrace (signal)' "$T/err"
	ct stuck --over 0.5 "$T/r.ctrace"
	ok_rc 4
	grep -q 'a hang, a circle of receives: rank 0 waits in ncclRecv #1 for rank 1' "$T/out" || fail "what is said: $(cat "$T/out" "$T/err")"
	kill -TERM "$PID_record"
	wait_for 20 ended "$PID_record"
	exec {FD_in}>&-
}

case_record_last_failed() {
	lines a
	record_bg --last 60s --dump-on failed -p "$PID_a"
	make_calls a 40
	make_calls a -1
	wait_for 5 grep -q 'wrote .*(failed call)' "$T/err"
	replay
	expect_rows cudaStreamQuery 40
	expect_rows cudaSetDevice 1
	lines_end a
	finish
}

case_record_last_end() {
	record --last 60s --dump-on end,cudaMemset -- "$CALLS" mix 3 0 1
	ok_rc
	replay
	expect_rows cudaMemset 1
	"$CUDATRACE" replay --format json "$T/r.ctrace.2" > "$T/out" 2> "$T/err"
	expect_rows cudaFree 4
	rm "$T"/r.ctrace*
	record --last 60s --dump-on failed -- "$CALLS" mix 3 0 1
	ok_rc
	says 'nothing was written'
	[ ! -e "$T/r.ctrace" ] || fail "written without a reason"
}

case_window_profiler() {
	ct_json --start-on cudaProfilerStart --stop-on cudaProfilerStop -- "$CALLS" profiler 50 7
	ok_rc
	expect_rows cudaStreamQuery 14
	expect_rows cudaProfilerStart 2
	# its calls begin it also when they are not shown
	ct_json -e cudaStreamQuery --start-on cudaProfilerStart --stop-on cudaProfilerStop -- "$CALLS" profiler 50 7
	expect_rows cudaStreamQuery 14
	expect_rows cudaProfilerStart 0
	record --start-on cudaProfilerStart --stop-on cudaProfilerStop -- "$CALLS" profiler 50 7
	replay
	expect_rows cudaStreamQuery 14
}

case_window_nth_call() {
	ct_json --start-on cudaMalloc:3 --stop-on cudaMemcpy:2 -- "$CALLS" mix 5 4 4
	expect_rows cudaMalloc 4
	expect_rows cudaMemcpy 2
	expect_rows cudaMemset 0
	grep -q '"reason":"stopped"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	# filters of the kernel side do not hide what is waited for
	ct_json --failed --start-on cudaStreamQuery:3 -- "$CALLS" failing 3 4
	expect_rows cudaSetDevice 4
	ct_json --failed --start-on cudaStreamQuery:4 -- "$CALLS" failing 3 4
	expect_rows cudaSetDevice 0
}

case_window_signal() {
	lines a
	attach --start-on signal --stop-on signal -p "$PID_a"
	make_calls a 100
	kill -USR1 "$CT"
	wait_for 10 has_done "$CT" USR1
	make_calls a 10
	kill -USR2 "$CT"
	wait_for 10 has_done "$CT" USR2
	make_calls a 100
	kill -USR1 "$CT"
	wait_for 10 has_done "$CT" USR1
	make_calls a 1
	lines_end a
	finish
	ok_rc
	expect_rows cudaStreamQuery 11
}

case_window_delay() {
	lines a
	attach --delay 1h -p "$PID_a"
	make_calls a 100
	lines_end a
	finish
	expect_rows cudaStreamQuery 0
	# -d counts from the end of --delay on
	ct_json --delay 1 -d 0.1 -p $$
	ok_rc
	grep -q '"reason":"duration"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	grep -q -E '"uptime_ns":(9[0-9]{8}|[0-9]{10,})' "$T/out" || fail "$(tail -n 1 "$T/out")"
}

case_window_wrong() {
	local args
	for args in "--start-on cudaMaloc" "--stop-on cudaMalloc:x" "--stop-on cudaMalloc:0" "--start-on cudaMalloc --delay 1" "--delay x"; do
		# shellcheck disable=SC2086
		ct $args -- "$CALLS" queries 1
		ok_rc 2
		[ -s "$T/err" ] || fail "$args: not a word"
	done
}

case_record_names() {
	HERE=there ct record -o "$T/%p-%h-%q{HERE}-%%.ctrace" -- "$CALLS" queries 1
	ok_rc
	set -- "$T"/*-"$(hostname)"-there-%.ctrace
	[ -s "$1" ] || fail "$(ls "$T")"
	# what is there is kept once
	record -- "$CALLS" queries 1
	record -- "$CALLS" queries 2
	replay
	expect_rows cudaStreamQuery 2
	mv "$T/r.ctrace.old" "$T/r.ctrace"
	replay
	expect_rows cudaStreamQuery 1
	# by itself it has a name
	(cd "$T" && timeout 150 "$CUDATRACE" record -- "$CALLS" queries 1 > "$T/out" 2> "$T/err" && test -s cudatrace.ctrace) ||
		fail "$(cat "$T/err")"
}

case_record_cannot() {
	ct record -o "$T/no/such/r.ctrace" -- "$CALLS" queries 1
	ok_rc 1
	says 'No such file'
	ct record -o /dev/full -- "$CALLS" queries 1
	ok_rc 1
	says 'No space left'
	echo "no recording at all, though it is long enough to have the head of a block in it" > "$T/text"
	for word in "$T/text" "$T/nothing" "$T" /dev/null; do
		ct replay "$word"
		ok_rc 1
		[ "$(grep -c '^cudatrace: error: cannot read' "$T/err")" = 1 ] || fail "$(cat "$T/err")"
		ct info "$word"
		ok_rc 1
	done
	ct replay
	ok_rc 2
	ct record --rotate 3 -- "$CALLS" queries 1
	ok_rc 2
	ct merge "$T/text" "$T/text"
	ok_rc 2
}

case_info() {
	RANK=3 WORLD_SIZE=8 lines a
	record_bg -p "$PID_a"
	make_calls a 3
	make_calls a -1
	make_calls a -1
	# what a process is can be read as long as it is there
	wait_for 5 has_calls 5
	lines_end a
	finish
	ct info "$T/r.ctrace"
	ok_rc
	grep -q -E "^host +$(hostname)$" "$T/out" || fail "$(cat "$T/out")"
	grep -q -E "^kernel +$(uname -r) $(uname -m)$" "$T/out" || fail "$(cat "$T/out")"
	grep -q -E "^options +record (--probe-kind multi )?-v -o .* -p $PID_a\$" "$T/out" || fail "$(cat "$T/out")"
	grep -q -E '^  [0-9]+ +calls, rank 3 of 8: 5 calls$' "$T/out" || fail "$(cat "$T/out")"
	grep -q -E '^calls +5, 2 failed$' "$T/out" || fail "$(cat "$T/out")"
	grep -q -E '^lost +nothing$' "$T/out" || fail "$(cat "$T/out")"
	grep -q -E '^end +finished$' "$T/out" || fail "$(cat "$T/out")"
	# a byte of a block: what it says is gone is all that is gone
	printf '\377\377\377\377' | dd of="$T/r.ctrace" bs=1 seek=$(($(stat -c %s "$T/r.ctrace") - 700)) conv=notrunc status=none
	ct info "$T/r.ctrace"
	ok_rc 3
	grep -q '^damaged ' "$T/out" || fail "$(cat "$T/out")"
	replay --strict
	ok_rc 3
}

# A shell that starts other programs too: who made calls is listed, the others are counted.
case_info_idle() {
	# shellcheck disable=SC2016
	ct record -o "$T/r.ctrace" -- bash -c 'ls / > /dev/null; "$0" queries 5; ls / > /dev/null; exit 0' "$CALLS"
	ok_rc
	ct info "$T/r.ctrace"
	ok_rc
	expect "processes" "$(sed -n 's/^processes *//p' "$T/out")" 4
	expect "listed" "$(grep -A 2 '^processes' "$T/out" | tail -n 2 | sed 's/^  [0-9]*  *calls/PID calls/')" \
		"$(printf 'PID calls: 5 calls\n  3 other processes made no call')"
	ct info -v "$T/r.ctrace"
	ok_rc
	expect "listed with -v" "$(grep -c -E '^  [0-9]+ +(bash|ls|calls): [05] calls$' "$T/out")" 4
	! grep -q 'made no call' "$T/out" || fail "they are counted too: $(cat "$T/out")"
}

# The time of day that all formats print comes from one reading of the clocks: the head of the recording and its first record of
# the clocks say the same to the nanosecond, and a row's ISO time is the one that follows from both.
case_clock() {
	record -- "$CALLS" queries 2
	ok_rc
	replay
	python3 - "$T/out" "$CUDATRACE" "$T/r.ctrace" > "$T/why.clock" << 'END' || fail "$(cat "$T/why.clock")"
import datetime, json, subprocess, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
clock = next(r for r in rows if r["type"] == "clock")
call = next(r for r in rows if r["type"] == "call")
want = (call["start_ns"] - clock["start_ns"] + clock["realtime_ns"]) // 1000
table = subprocess.run([sys.argv[2], "replay", "--time", "iso", sys.argv[3]], stdout=subprocess.PIPE, text=True).stdout
at = datetime.datetime.strptime(table.split("\n")[1].split()[0], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
got = (at - epoch) // datetime.timedelta(microseconds=1)
if got != want:
    sys.exit(print(f"the table's ISO time differs by {got - want} us from what the record of the clocks says") or 1)
END
}

# Two recorders of one machine: one clock, the same processes.
case_merge() {
	record -- "$CALLS" queries 5
	mv "$T/r.ctrace" "$T/a.ctrace"
	record -- "$CALLS" queries 6
	ct merge -o "$T/m.ctrace" "$T/a.ctrace" "$T/r.ctrace"
	ok_rc
	says 'of the same host as the first one'
	mv "$T/m.ctrace" "$T/r.ctrace"
	replay
	ok_rc
	expect_rows cudaStreamQuery 11
	expect "processes" "$(grep '^{"type":"call"' "$T/out" | grep -o '"pid":[0-9]*' | sort -u | wc -l)" 2
	# and of another: its processes are kept apart, and what is known of the clocks is said
	ct merge -o "$T/r.ctrace" tests/traces/two.ctrace tests/traces/other.ctrace
	ok_rc
	says 'times moved by 0.002000 s, correct to within 0.000500 s'
	replay
	expect "calls" "$(grep -c '^{"type":"call"' "$T/out")" 52
	ct info "$T/r.ctrace"
	grep -q -E 'rank 2 of 2, on node-b: 16 calls' "$T/out" || fail "$(cat "$T/out")"
	ct merge -o "$T/r.ctrace" "$T/r.ctrace" tests/traces/two.ctrace
	ok_rc 2
}

# is_muted FILE: it says which function's calls it does not have, and its numbers do not claim to be all.
is_muted() {
	ct info "$1"
	grep -Eq '^muted +((~|>=).*|some|an unknown number of) calls have no records, of cudaGetDevice$' "$T/out" || fail "$2: info: $(grep -E '^(calls|muted|lost|end)' "$T/out")"
	ct replay --format json -o "$T/json" "$1"
	tail -n 1 "$T/json" | grep -q '"muted":\["cudaGetDevice"' || fail "$2: $(tail -n 1 "$T/json" | grep -o '"muted":[^]]*')"
	tail -n 1 "$T/json" | grep -q '"reason":"throttled","layer":"calls","state":"muted"' || fail "$2: $(tail -n 1 "$T/json" | grep -o '"not_seen":.*')"
	ct stat "$1"
	grep -Eq ' (~|>=)[0-9]+ .*cudaGetDevice( |\$)' "$T/out" || fail "$2: stat: $(grep cudaGetDevice "$T/out")"
}

# What is muted is known in each file at each moment: in one that is written still, in that of a flight recorder, in each one of a
# rotation, and in one whose recorder was killed.
case_record_muted_anywhere() { # long
	target a devices 2000000
	record_bg --last 60s -p "$PID_a"
	go a
	wait_for 10 grep -q 'calls cudaGetDevice .* times a second' "$T/err"
	sleep 0.2 # the row comes with the next look at the process
	kill -USR2 "$CT"
	wait_for 5 grep -q 'wrote .*r.ctrace (signal)' "$T/err"
	is_muted "$T/r.ctrace" "flight recorder"
	finish INT
	stop a
	rm -f "$T"/r.ctrace*
	target b devices 2000000
	target c mix 60000 0 1
	record_bg --max-size 64KiB --rotate 3 -p "$PID_b" -p "$PID_c"
	go b
	wait_for 10 grep -q 'calls cudaGetDevice .* times a second' "$T/err"
	sleep 0.2
	# the newest file was begun after the function was muted
	rm -f "$T"/r.ctrace.*
	go c
	wait_for 10 test -e "$T/r.ctrace.1"
	cp "$T/r.ctrace" "$T/now.ctrace"
	is_muted "$T/now.ctrace" "written still"
	kill -KILL "$CT"
	wait_for 5 ended "$CT"
	is_muted "$T/r.ctrace" "recorder killed"
	stop b
	stop c
	wait "$CT" 2> /dev/null || true
}

# What a small language model calls for a token takes at most 20 KB, if very frequent queries are counted; and all of it is there.
case_record_token() { # undisturbed
	local n bytes=()
	for n in 20 40; do
		ct record --source=hooks --gpu --layers torch -o "$T/$n.ctrace" -- "$BIN/operators" tokens $n
		ok_rc
		says ', 0 lost(;.*)?$'
		bytes+=("$(stat -c %s "$T/$n.ctrace")")
		ct replay --format json "$T/$n.ctrace"
		expect "$n: operators" "$(grep -c '^{"type":"operator"' "$T/out")" $((814 * n))
		expect "$n: kernels" "$(grep -c '^{"type":"kernel"' "$T/out")" $((618 * n))
		expect "$n: launches" "$(grep -c '^{"type":"call".*"name":"cudaLaunchKernel"' "$T/out")" $((618 * n))
	done
	(((bytes[1] - bytes[0]) / 20 <= 20480)) || fail "a token takes $(((bytes[1] - bytes[0]) / 20)) bytes"
}
