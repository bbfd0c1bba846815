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
	ct why --gpu --format json -o "$T/json" -- "$BIN/planted" steps 2
	ok_rc
	is_largest steps sleep '^sleeps$'
	is_largest "slow steps" sleep 'waits for a pipe <- planted: sleeps$' slow
	ct why --gpu -o "$T/text" -- "$BIN/planted" steps 2
	ok_rc
	grep -Eq '^[0-9.]+ s of planted [0-9]+ \([0-9]+ steps of [0-9.]+ ms\): GPU 0 busy' "$T/text" || fail "no steps: $(head -1 "$T/text")"
	grep -Eq 'sleeps  [0-9.]+ ms a step$' "$T/text" || fail "no part of a step: $(head -2 "$T/text")"
	grep -Eq '^Step [0-9]+: [0-9.]+ ms more than the median, of it [0-9.]+ ' "$T/text" || fail "no slow step"
	grep -Eq '^What would help most: less of: sleeps \(up to -' "$T/text" || fail "no advice: $(tail -1 "$T/text")"
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
	ct export --to chrome -o "$T/a.json" "$T/a.ctrace"
	ok_rc
	grep -q '"cat":"host"' "$T/a.json" || fail "no host track"
	kill "$PID_a"
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
