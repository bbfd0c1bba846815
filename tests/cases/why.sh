# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# why.sh - cases of what keeps the GPU waiting: programs with a planted cause on the stand-in's device, which must be found as the
# largest one, with its line; and what is said where less is known.

# The stand-in's device takes 200 us for each piece of work.
with_slow_device() {
	export STANDIN_CUPTI=device:200
}

# planted CAUSE ID TEXT [busy]: the Python program with that cause.
planted() {
	with_slow_device
	LD_LIBRARY_PATH=$STANDIN ct why --gpu --format json -o "$T/json" -- "${PYTHON:-python3}" "$ROOT/tests/cases/prog/planted.py" \
		"$STANDIN/libcudart.so" "$1" 2 "$T"
	ok_rc
	is_largest "$1" "${@:2}"
}

# is_largest WHAT ID TEXT [busy]
is_largest() {
	local answer
	answer=$(python3 "$ROOT/tests/cases/check_why.py" "$T/json" "${@:2}" 2>&1) || fail "$1: $answer"
}

case_why_sleep() {
	planted sleep sleep 'sleeps at planted\.py:[0-9]+ plant_sleep$'
}

case_why_compute() {
	planted compute 'running|kernel-code' 'planted\.py:[0-9]+ spin$'
}

case_why_pipe() {
	planted pipe sleep 'waits for a pipe at planted\.py:[0-9]+ plant_pipe <- .*: sleeps at planted\.py:[0-9]+ feed_pipe$'
}

case_why_semaphore() {
	planted semaphore sleep 'waits for a lock at planted\.py:[0-9]+ plant_semaphore .*<- .*: sleeps at planted\.py:[0-9]+ post_semaphore$'
}

# A worker's transform: the queue's feeder thread lies between, and the pipe.
case_why_queue() {
	planted queue 'running|kernel-code' 'planted\.py:[0-9]+ plant_queue .*<- .*planted\.py:[0-9]+ slow_transform$'
}

case_why_gil() {
	planted gil running 'waits for the GIL at planted\.py:[0-9]+ plant_gil <- .*planted\.py:[0-9]+ hog_gil$'
}

case_why_collection() {
	planted gc garbage-collection 'plant_gc$'
}

case_why_file() {
	planted file 'file-sync|kernel-code' 'planted\.py:[0-9]+ plant_file$'
}

case_why_page_faults() {
	planted faults page-faults 'planted\.py:[0-9]+ plant_faults$'
}

case_why_child() {
	planted child child 'planted\.py:[0-9]+ plant_child'
}

# A device that always has work waits for nothing.
case_why_fed() {
	planted fed none none
}

# Another program on the same processor, by its name.
case_why_neighbour() { # long
	local cpu
	cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
	printf '#!/bin/sh\nwhile :; do :; done\n' > "$T/neighbour"
	chmod +x "$T/neighbour"
	for _ in 1 2 3; do
		taskset -c "$cpu" "$T/neighbour" &
	done
	LD_LIBRARY_PATH=$STANDIN ct why --gpu --format json -o "$T/json" -- taskset -c "$cpu" python3 "$ROOT/tests/cases/prog/planted.py" \
		"$STANDIN/libcudart.so" compute 3 "$T"
	ok_rc
	is_largest neighbour displaced 'displaced by ' busy
	grep -q 'displaced by neighbour' "$T/json" || fail "the neighbour has no name"
}

# C: a function by its symbol, a child's sleep through a pipe, a thread's through a mutex, an allocation by its call.
case_why_in_c() {
	with_slow_device
	local cause id text
	while read -r cause id text; do
		STANDIN_DELAY_US=cudaMalloc:4000 ct why --gpu --format json -o "$T/json" -- "$BIN/planted" "$cause" 1.5
		ok_rc
		is_largest "$cause" "$id" "$text"
	done <<- 'END'
		compute running running plant_compute
		pipe sleep waits for a pipe <- planted: sleeps$
		lock sleep waits for a lock <- planted: sleeps$
		sleep sleep ^sleeps$
		alloc cuda-call ^inside cudaMalloc$
	END
}

# Steps, and what the slow ones had more of; each step's part of a cause; the time that the rest leaves.
case_why_steps() {
	with_slow_device
	ct why --gpu --format json -o "$T/json" -- "$BIN/planted" steps 3
	ok_rc
	is_largest steps sleep 'sleeps$'
	is_largest "slow steps" sleep 'waits for a pipe <- planted: sleeps$' slow
	ct why --gpu -o "$T/text" -- "$BIN/planted" steps 2
	ok_rc
	grep -Eq '^[0-9.]+ s of planted [0-9]+ \([0-9]+ steps of [0-9.]+ ms\): GPU 0 busy' "$T/text" || fail "no steps: $(head -1 "$T/text")"
	grep -Eq 'sleeps  [0-9.]+ ms a step$' "$T/text" || fail "no part of a step: $(head -2 "$T/text")"
	grep -Eq '^Step [0-9]+: [0-9.]+ ms more than the median, of it [0-9.]+ ' "$T/text" || fail "no slow step"
	grep -Eq '^What would help most: less of: .*sleeps \(up to -' "$T/text" || fail "no advice: $(tail -1 "$T/text")"
}

# A program that runs already, without anything put into it; the same from a recording, whose numbers are those of the live answer
# of that recording. A program that ended the wait and was not named is watched from then on.
case_why_attached() {
	with_slow_device
	local share
	"$BIN/planted" pipe 300 &
	PID_a=$!
	wait_for 10 grep -q libcudart "/proc/$PID_a/maps"
	ct why -p "$PID_a" -d 2 --format json -o "$T/json"
	ok_rc
	is_largest "attached" sleep 'waits for a pipe <- planted: sleeps$'
	ct why -p "$PID_a" -d 1
	ok_rc
	grep -q 'not the time in which a GPU was idle' "$T/out" || fail "not said: $(tail -n 2 "$T/out")"
	ct record --host -o "$T/a.ctrace" -p "$PID_a" -d 2
	ok_rc
	ct why --format json "$T/a.ctrace"
	ok_rc
	cp "$T/out" "$T/json"
	is_largest "recorded" sleep 'waits for a pipe <- planted: sleeps$'
	# its share is what waits for a CPU leave of it: a little less of it fails, a little more does not
	share=$(python3 -c 'import json, sys
print(max(f["share"] for p in json.load(open(sys.argv[1]))["parts"] for f in p["findings"] if f["id"] == "sleep"))' "$T/json")
	ct why --fail-if "sleep>$(awk "BEGIN { print $share * 99 }")%" "$T/a.ctrace"
	ok_rc 1
	ct why --fail-if "sleep>$(awk "BEGIN { x = $share * 101; print x < 100 ? x : 100 }")%" "$T/a.ctrace"
	ok_rc
	ct why --fail-if 'gil>1%' "$T/a.ctrace"
	ok_rc
	ct why --format folded "$T/a.ctrace"
	ok_rc
	grep -Eq '^planted [0-9]+;thread [0-9]+;waits for a pipe;planted: sleeps [0-9]+$' "$T/out" || fail "not folded: $(head -3 "$T/out")"
	ct export --to chrome -o "$T/a.json" "$T/a.ctrace"
	ok_rc
	grep -q '"cat":"host"' "$T/a.json" || fail "no host track"
	ct export --to parquet -o "$T/tables" "$T/a.ctrace"
	ok_rc
	PYTHONPATH=$ROOT/tests/export python3 -c 'import sys; from check_parquet import read
rows = read(sys.argv[1])
got = set(zip(rows["type"], rows["state"], rows["reason"], rows["other"]))
sys.exit(0 if {("host", "blocked", "pipe", "planted"), ("host", "blocked", "sleep", None)} <= got else str(got))' "$T/tables/host.parquet" > "$T/rows" 2>&1 ||
		fail "host.parquet: $(cat "$T/rows")"
	kill "$PID_a"
}

# A child that has ended, and whose status nobody has collected, waits for nothing any more.
case_why_zombie() {
	python3 -c '
import os, time
child = os.fork()
if not child:
    os._exit(0)
print(child, flush=True)
time.sleep(100)' > "$T/zombie" &
	PID_parent=$!
	wait_for 5 grep -q . "$T/zombie"
	wait_for 5 grep -q '^State:	Z' "/proc/$(cat "$T/zombie")/status"
	ct record --host -o "$T/r.ctrace" -p "$PID_parent" -d 0.5
	ok_rc 0
	"$CUDATRACE" replay --format json "$T/r.ctrace" > "$T/rows" 2> "$T/replayed" || fail "replay: $(cat "$T/replayed")"
	expect "rows of the child" "$(grep -c "\"pid\":$(cat "$T/zombie")," "$T/rows")" 0
	kill -KILL "$PID_parent"
}

# Threads that are made while it looks on are watched from their begin.
case_why_new_threads() {
	"$BIN/planted" thread 300 &
	PID_a=$!
	wait_for 10 grep -q libcudart "/proc/$PID_a/maps"
	ct why -p "$PID_a" -d 2 --format json -o "$T/json"
	ok_rc
	kill "$PID_a"
	is_largest "new threads" running 'waits for a lock <- planted: running (planted|plant_compute)'
	at_most not-traced 2
}

# at_most ID PERCENT: of the time.
at_most() {
	SHARE=$(python3 -c 'import json, sys
print(sum(f["share"] for p in json.load(open(sys.argv[1]))["parts"] for f in p["findings"] if f["id"] == sys.argv[2]) * 100)' "$T/json" "$1")
	awk "BEGIN { exit $SHARE <= $2 }" && fail "$1 has $SHARE %"
	return 0
}

# cpu.max, in a group of processes of its own: version 1 and 2.
case_why_quota() {
	local group=/sys/fs/cgroup/cpu/ct-why-$$ v2=/sys/fs/cgroup/ct-why-$$
	with_slow_device
	[ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ] || group=$v2
	if ! mkdir "$group" 2> /dev/null || ! { echo 5000 > "$group/cpu.cfs_quota_us" || echo "5000 100000" > "$group/cpu.max"; } 2> /dev/null; then
		rmdir "$group" 2> /dev/null
		skip "no group of processes with a quota can be made"
		return
	fi
	"$BIN/planted" compute 300 &
	PID_a=$!
	wait_for 10 grep -q libcudart "/proc/$PID_a/maps"
	echo "$PID_a" > "$group/cgroup.procs"
	ct why -p "$PID_a" -d 3 --format json -o "$T/json"
	kill -9 "$PID_a"
	wait "$PID_a" 2> /dev/null
	wait_for 10 rmdir "$group"
	ok_rc
	is_largest quota throttled '^ready, no CPU: throttled by cpu.max$' busy
}

# at_least ID PERCENT: of the time.
at_least() {
	at_most "$1" 100
	awk "BEGIN { exit $SHARE >= $2 }" && fail "$1 has $SHARE %"
	return 0
}

# Pages of a mapped file that the page cache does not have: the waits for the disk, and what the kernel does for them on the CPU.
case_why_page_reads() {
	planted pages 'page-read|page-faults|kernel-code' 'planted\.py:[0-9]+ plant_pages$'
	at_least page-read 5
	grep -Eq '"id":"page-read","claim":"reads a page of a mapped file at planted\.py:[0-9]+ plant_pages"' "$T/json" || fail "no line"
}

# Another rank that is late, over a socket.
case_why_rank() {
	planted rank sleep 'waits for a socket at planted\.py:[0-9]+ plant_rank <- .*: sleeps at planted\.py:[0-9]+ late_rank$'
}

# Two causes at once have a share each, as long as the other's.
case_why_two() {
	planted two 'sleep|running|kernel-code' 'planted\.py:[0-9]+ (plant_two|spin)$'
	local answer
	answer=$(python3 - "$T/json" <<- 'END'
		import json, sys
		found = max(json.load(open(sys.argv[1]))["parts"], key=lambda p: p["window_ns"])["findings"]
		sleep = sum(f["ns"] for f in found if f["id"] == "sleep" and "plant_two" in f["claim"])
		spin = sum(f["ns"] for f in found if f["id"] in ("running", "kernel-code") and f["claim"].endswith(" spin"))
		print("" if sleep and 0.6 < spin / sleep < 1.7 else f"sleep {sleep}, spin {spin}")
	END
	)
	[ -z "$answer" ] || fail "$answer"
}

# Nobody is blamed for an interrupt that came while he ran: here two programs that have each processor all the time.
case_why_interrupts() {
	printf '#!/bin/sh\nwhile :; do :; done\n' > "$T/neighbour"
	chmod +x "$T/neighbour"
	"$T/neighbour" &
	"$T/neighbour" &
	planted pages 'page-read|page-faults|kernel-code' 'plant_pages$'
	grep -Eq '(<-|ended by|in turn with) neighbour' "$T/json" && fail "a neighbour is blamed: $(grep -Eo '"claim":"[^"]*neighbour[^"]*"' "$T/json" | head -3)"
	return 0
}

# `advise` of a recording that has it says what the gaps were waits for, in place of the calls of the host meanwhile.
case_why_advice() {
	with_slow_device
	ct record --host --gpu -o "$T/a.ctrace" -- "$BIN/planted" pipe 2
	ok_rc
	ct advise --rule gpu-gaps --format json "$T/a.ctrace"
	ok_rc
	grep -Eq 'What it waited for.*% of the idle time waits for a pipe <- planted: sleeps' "$T/out" || fail "no cause: $(head -c 600 "$T/out")"
	grep -q 'Meanwhile the host' "$T/out" && fail "the host's calls are said too"
	return 0
}

# Without --host a recording cannot say.
case_why_without_host() {
	with_slow_device
	ct record --gpu -o "$T/a.ctrace" -- "$BIN/planted" sleep 0.3
	ok_rc
	ct why "$T/a.ctrace"
	ok_rc
	grep -q 'record with --host' "$T/out" || fail "not said: $(tail -n 2 "$T/out")"
}
