# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# nvtx3.sh - cases about header-only NVTX 3, with NVIDIA's own headers: programs that are started, and programs that run.

RANGES3=$BIN/ranges3

with_nvtx3() {
	[ -x "$RANGES3" ] || skip "the headers of NVTX 3, which CUDA's toolkit has, are not installed"
}

# scope_lines: a line for each scope in $T/out, in the order of their names: name, and the name of its parent.
scope_lines() {
	scoped | cut -d ' ' -f 2-4 | sort | uniq -c | sed 's/^ *//'
}

# attach3 ARGS...: as attach, also where there was a trace before, whose messages say that it was ready.
attach3() {
	rm -f "$T/err"
	attach --layers nvtx "$@"
}

# begin3 PROGRAM: it runs and waits for orders; $pid, $fd.
begin3() {
	mkfifo "$T/in"
	cp "$BIN/libranges3.so" "$T/later.so" # another file than the one that the program is linked to
	"$1" wait "$T/later.so" < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
}

# order LETTERS: has the program do it, and waits until it has.
order() {
	local i n
	for ((i = 0; i < ${#1}; i++)); do
		n=$(grep -c '^done' "$T/prog.out")
		printf '%s' "${1:i:1}" >&"$fd"
		wait_for 10 lines_above "$n"
	done
}

lines_above() {
	[ "$(grep -c '^done' "$T/prog.out")" -gt "$1" ]
}

# end3: the program ends well, and so does the trace.
end3() {
	printf q >&"$fd"
	wait "$pid" || fail "the program ended with status $?"
	wait "$CT" || fail "status $?"
	no_loss
}

# The library that the program is linked to has an NVTX of its own. NVTX's functions that the compiler has left in the program
# (it is built without optimisation) are not probed: no range is seen twice.
case_nvtx3_started() {
	with_nvtx3
	for program in ranges3 ranges3-stripped; do
		ct_json --layers nvtx -- "$BIN/$program" nested 2
		ok_rc
		no_loss
		expect_scopes <<- 'EOF'
		range forward in step
		mark half in backward
		range backward in step
		range step in -
		range forward in step
		mark half in backward
		range backward in step
		range step in -
		EOF
	done
}

# As libnvToolsExt with a tool shows the same.
case_nvtx3_rich() {
	with_nvtx3
	ct_json --layers nvtx -- "$RANGES3" rich
	ok_rc
	no_loss
	expect_scopes <<- 'EOF'
	range registered in payload domain=mine category=optimizer category_id=7
	range wide é in registered
	range payload in - category=loader category_id=7 payload=12345 color=0xff00ff00
	range first in - any_thread=True
	range second in - domain=mine payload=2.5 any_thread=True
	mark marked in - payload=-3
	EOF
}

# Payloads whose layout the program has described. What cannot be read is left out, and nobody crashes.
case_nvtx3_payload() {
	with_nvtx3
	ct_json --layers nvtx -- "$RANGES3" payload
	ok_rc
	python3 - "$T/out" > "$T/got" <<- 'EOF'
	import json, sys
	for r in map(json.loads, open(sys.argv[1], encoding='utf-8')):
	    if r['type'] in ('range', 'mark'):
	        print(r['name'], '|', r.get('payload_fields'), '|', r.get('payload'))
	EOF
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "payloads differ: $(head -n 6 "$T/diff")"
	send | bytes=1048576, rank=-3, share=0.25, peer=node7, tail=-2 | None
	default domain | None | None
	broken | None | None
	short | bytes=1048576, rank=-3 | None
	plain | None | 5
	parts | shape=[2 -1 64 64], stage=decode, op=max, inner.head=7, inner.rate=0.5... | None
	parts | shape=[2 -1 64 64], stage=decode, op=1, inner.head=7, inner.rate=0.5 | None
	EOF
	ct record -o "$T/r.ctr" --layers nvtx -- "$RANGES3" payload
	ct replay "$T/r.ctr" -e range
	grep -q 'payload="bytes=1048576, rank=-3, share=0.25, peer=node7, tail=-2"' "$T/out" || fail "no payload in the recording"
}

# libnvToolsExt has functions of the same names, which must not take the place of the object's.
case_nvtx3_preloaded_v2() {
	with_nvtx3
	ct_json --layers nvtx -E "LD_PRELOAD=$STANDIN/libnvToolsExt.so.1" -- "$RANGES3" rich
	ok_rc
	expect "domains" "$(grep -c '"domain":"mine"' "$T/out")" 2
	expect "scopes" "$(scoped | wc -l)" 6
}

case_nvtx3_cplusplus() {
	with_nvtx3
	ct_json --layers nvtx -- "$BIN/ranges3-cc"
	ok_rc
	no_loss
	expect_scopes <<- 'EOF'
	range registered in whole domain=library category=loader category_id=3 payload=42 color=0xff00ff00
	mark reached in whole domain=library
	range started in - any_thread=True
	range whole in -
	EOF
}

# The calls are those without layers, and the program's environment is as it was where no layer is asked for.
case_nvtx3_calls() {
	with_nvtx3
	ct_json -- "$RANGES3" nested 3
	calls_of "$T/out" > "$T/without"
	ct_json --layers nvtx -- "$RANGES3" nested 3
	calls_of "$T/out" > "$T/with"
	diff "$T/without" "$T/with" > "$T/diff" || fail "calls differ: $(head -n 4 "$T/diff")"
	# shellcheck disable=SC2016 # the program's variable
	ct -o "$T/rows" -- sh -c 'echo "${NVTX_INJECTION64_PATH-none}"'
	expect "the environment" "$(head -n 1 "$T/out")" none
}

# A variable of the user's is never replaced.
case_nvtx3_other_tool() {
	with_nvtx3
	NVTX_INJECTION64_PATH=/nonexistent/tool.so ct_json --layers nvtx -- "$RANGES3" nested 1
	ok_rc
	! grep -q '"type":"range"' "$T/out" || fail "ranges of another tool"
	says 'NVTX_INJECTION64_PATH is set already'
}

# A process that runs: its tables are found without symbols too, and are as they were when the trace has ended.
case_nvtx3_attached() {
	with_nvtx3
	local program
	for program in ranges3 ranges3-stripped; do
		begin3 "$BIN/$program"
		attach3 -p "$pid"
		order sxx
		end3
		expect "the slot" "$(grep -c '^slot set$' "$T/prog.out")" 1
		says "an object was put into it that shows its NVTX ranges"
		expect "scopes of $program" "$(scope_lines | tr '\n' ';')" '2 backward in step;2 forward in step;2 half in backward;2 step in -;'
		rm -f "$T/in"
		exec {fd}>&-
	done
}

# After the trace the slots are empty, as they were; a second trace of the process sees the same.
case_nvtx3_detached() {
	with_nvtx3
	begin3 "$RANGES3"
	order s
	for round in 1 2; do
		attach3 -p "$pid"
		order sx
		kill -INT "$CT"
		wait "$CT" || fail "status $?"
		expect "ranges of round $round" "$(grep -c '"type":"range"' "$T/out")" 3
		wait_for 10 slot_is_empty
	done
	order x
	printf q >&"$fd"
	wait "$pid" || fail "the program ended with status $?"
	expect "slots" "$(grep '^slot' "$T/prog.out" | uniq | tr '\n' ' ')" 'slot empty slot set slot empty slot set slot empty '
}

slot_is_empty() {
	order s
	[ "$(grep '^slot' "$T/prog.out" | tail -n 1)" = 'slot empty' ]
}

# Nobody says goodbye: the object notices it.
case_nvtx3_tracer_killed() {
	with_nvtx3
	begin3 "$RANGES3"
	attach3 -p "$pid"
	order sx
	kill -KILL "$CT"
	wait "$CT" 2> /dev/null
	wait_for 10 slot_is_empty
	order xfx
	printf q >&"$fd"
	wait "$pid" || fail "the program ended with status $?"
}

# What is loaded later is found; it is unloaded and loaded again, also while its tables are changed.
case_nvtx3_loaded_later() { # long
	with_nvtx3
	begin3 "$RANGES3"
	attach3 -p "$pid"
	for round in 1 2; do
		forwards=$(grep -c '"name":"forward"' "$T/out")
		order l
		wait_for 20 sees_forward
		order u
	done
	order lululululululuxlulululululululululuxlulululululu
	end3
	expect "steps" "$(scoped | grep -c '^range step in -$')" 2
}

# The library's range is in the output.
sees_forward() {
	order c
	[ "$(grep -c '"name":"forward"' "$T/out")" -gt "$forwards" ]
}

# A child has the parent's slots; a program that the process becomes has none, and is not harmed.
case_nvtx3_fork_and_exec() {
	with_nvtx3
	begin3 "$RANGES3"
	attach3 -f -p "$pid"
	order fx
	printf e >&"$fd"
	wait "$pid" || fail "the program ended with status $?"
	wait "$CT" || fail "status $?"
	# a child that has not touched the page of a name, and is gone when its file is read, leaves it unknown
	expect "ranges by process" "$(grep '"type":"range"' "$T/out" | grep -o '"pid":[0-9]*' | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" '3 3 '
}

# Slots are written while threads call through them.
case_nvtx3_busy_threads() { # long
	with_nvtx3
	mkfifo "$T/in"
	"$RANGES3" threads 8 < "$T/in" > "$T/prog.out" &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	for _ in 1 2 3; do
		attach3 -e range -p "$pid" -o /dev/null
		kill -INT "$CT"
		wait "$CT"
		[ $? -le 3 ] || fail "status $?"
	done
	exec {fd}>&-
	wait "$pid" || fail "the program ended with status $?"
	expect "the threads" "$(tail -n 1 "$T/prog.out")" alive
}

# libnvToolsExt beside it: each has its own ranges, and none is there twice.
case_nvtx3_beside_v2() {
	with_nvtx3
	ct_json --layers nvtx -- "$RANGES3" both
	ok_rc
	expect_scopes <<- 'EOF'
	range third in second
	range second in first
	range first in -
	EOF
}

# Without a process or a program nothing is put into anybody.
case_nvtx3_whole_machine() { # machine
	ct_json --layers nvtx -d 0.2
	says 'only in a program that cudatrace starts, and in processes of -p'
}

# --gpu=nvtx would show the same ranges again.
case_nvtx3_with_gpu() {
	with_nvtx3
	ct_json --layers nvtx --gpu=nvtx -- "$RANGES3" nested 1
	ok_rc
	says '--gpu=nvtx is left out'
	expect "ranges" "$(grep -c '"name":"step"' "$T/out")" 1
}
