# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# mem.sh - `cudatrace mem`: what programs took, freed and leaked is what they are known to. Sourced by run.sh.

MEMORY=$BIN/memory

# mem_say EXPRESSION: of the JSON in $T/mem.json, with its sums at hand: p(NAME) of all processes, kind(NAME, FIELD), all(WHERE,
# FIELD), and leaks, a list of (bytes, allocations, kind, until, innermost functions).
mem_say() {
	python3 - "$T/mem.json" "$1" <<- 'E'
		import json, sys
		d = json.load(open(sys.argv[1]))
		p = lambda name: sum(r[name] for r in d["processes"])
		kind = lambda name, field: sum(r[field] for r in d["by_kind"] if r["kind"] == name)
		where = lambda name, field: sum(r[field] for r in d["all"] if r["where"] == name)
		names = lambda site: " < ".join(f["function"] or "?" for f in d["sites"][site]["stack"][:2])
		leaks = sorted((r["bytes"], r["allocations"], r["kind"], r["until"], names(r["site"])) for r in d["leaks"])
		print(eval(sys.argv[2]))
	E
}

# book MODE [OPTIONS]: live, and from a recording of another run of the same: both must say the same. (The peak of threads
# differs from run to run.)
book() {
	local live
	ct mem --json -o "$T/mem.json" "${@:2}" -- "$MEMORY" "$1"
	ok_rc
	expect "not in the book" "$(mem_say 'd["not_in_book"] + d["not_in_rows"] + d["lost"]')" 0
	live=$(mem_say "$SAME")
	cp "$T/mem.json" "$T/live.json"
	ct record -k "${@:2}" -o "$T/x.ctrace" -- "$MEMORY" "$1"
	ok_rc
	ct mem --json -o "$T/mem.json" "$T/x.ctrace"
	ok_rc
	expect "the recording" "$(mem_say "$SAME")" "$live"
}
SAME='[where("device", f) for f in ("taken_bytes", "allocations", "frees", "in_use_bytes")], [where("host", f) for f in ("peak_bytes", "frees")], leaks,
	[p(f) for f in ("out_of_memory", "double_frees", "wrong_frees", "invalid_frees", "unseen_allocations", "unseen_frees")]'
SAME=${SAME//$'\n\t'/ }

case_mem_leaks_with_their_stacks() {
	book leak
	expect "leaks" "$(mem_say leaks)" \
		"[(100, 1, 'device', 'exited', 'take < leak'), (3145728, 2, 'device', 'exited', 'take < lose')]"
	expect "sums" "$(mem_say '[where("device", f) for f in ("in_use_bytes", "peak_bytes", "taken_bytes", "allocations", "frees")]')" \
		"[0, 3145828, 3155828, 13, 10]"
	ct mem -o "$T/mem.txt" -- "$MEMORY" leak
	grep -q '^LEAK SUMMARY: 3145828 bytes leaked in 3 allocations$' "$T/mem.txt" || fail "no summary: $(tail -n 1 "$T/mem.txt")"
	grep -q '^Leaked 3145728 bytes in 2 allocations at 0x' "$T/mem.txt" || fail "no leak"
	grep -q '^      lose .*memory\.c:' "$T/mem.txt" || fail "no stack"
}

# Streams that are made and not destroyed: live, of a recording, and as a finding of advise, with the same numbers.
case_mem_growing_handles() {
	ct mem -o "$T/mem.txt" -- "$MEMORY" streams
	ok_rc
	ct record -k -o "$T/r.ctrace" -- "$MEMORY" streams
	ok_rc
	ct mem -o "$T/of.txt" "$T/r.ctrace"
	ok_rc
	local f
	for f in mem of; do
		expect "$f" "$(sed -n '/^Growing/,/^$/{s/process [0-9]*/process P/; s/memory.c:[0-9]*/memory.c:N/; p}' "$T/$f.txt")" \
			"Growing: 72 streams are left in process P memory: 96 were made throughout the trace, and 24 were given back
  96 made by streams at memory.c:N (cudaStreamCreate)"
	done
	ct advise "$T/r.ctrace"
	tr '\n' ' ' < "$T/out" | tr -s ' ' | grep -q '96 streams were made throughout the trace, and 24 were given back: 72 are left\.' ||
		fail "advise: $(cat "$T/out")"
}

case_mem_exit_status() {
	ct mem --leak-check -o /dev/null -- "$MEMORY" leak
	ok_rc 4
	ct mem --leak-check -o /dev/null -- "$MEMORY" reuse
	ok_rc
	ct mem -o /dev/null -- "$MEMORY" nonsense
	ok_rc 7
}

case_mem_threads_free_for_others() {
	book threads
	expect "sums" "$(mem_say '[where("device", f) for f in ("in_use_bytes", "taken_bytes", "allocations", "frees")] + [p("unseen_allocations"), p("unseen_frees")]')" \
		"[0, 409600, 400, 360, 0, 0]"
	expect "leaks" "$(mem_say '[l[:2] for l in leaks]')" "[(40960, 40)]"
}

case_mem_fork_and_exec() { # long
	book fork -f
	expect "leaks" "$(mem_say '[(l[0], l[3]) for l in leaks]')" "[(300, 'exited'), (1000, 'exited')]"
	book exec -f
	expect "leaks after exec" "$(mem_say '[(l[0], l[3]) for l in leaks]')" \
		"[(100, 'exited'), (300, 'execed'), (1000, 'exited'), (3145728, 'exited')]"
}

case_mem_frees_that_go_wrong() {
	book faults
	expect "faults" "$(mem_say '[p(f) for f in ("double_frees", "invalid_frees", "wrong_frees", "failed_frees", "leaked_bytes")]')" "[2, 1, 1, 0, 0]"
	expect "what" "$(mem_say '[(f["what"], f["count"]) for f in d["faults"]]')" \
		"[('double_free', 2), ('invalid_free', 1), ('wrong_free', 1)]"
}

case_mem_pools_and_managed() {
	book pool
	expect "pool" "$(mem_say '[kind("pool", f) for f in ("peak_bytes", "taken_bytes", "frees")]')" "[3000, 3000, 1]"
	expect "managed" "$(mem_say 'kind("managed", "taken_bytes")')" 500
	expect "leaks" "$(mem_say '[l[:3] for l in leaks]')" "[(500, 1, 'managed'), (2000, 1, 'pool')]"
}

case_mem_virtual_memory() { # long
	book virtual
	expect "physical" "$(mem_say '[kind("physical", f) for f in ("peak_bytes", "taken_bytes", "frees")]')" "[8388608, 8388608, 3]"
	expect "device" "$(mem_say '[(r["device"], r["peak_bytes"]) for r in d["by_device"]]')" "[(1, 8388608)]"
	expect "reserved" "$(mem_say 'kind("reserved", "peak_bytes")')" 67108864
	expect "leaks" "$(mem_say '[l[:3] for l in leaks]')" "[(2097152, 1, 'physical')]"
}

case_mem_out_of_memory() {
	book oom
	expect "asked" "$(mem_say '[(o["asked_bytes"], o["held_bytes"], [h["bytes"] for h in o["holders"]]) for o in d["out_of_memory"]]')" \
		"[(1125899906842624, 4000, [3000, 1000])]"
	ct mem -o "$T/mem.txt" -- "$MEMORY" oom
	head -n 1 "$T/mem.txt" | grep -q '^Out of memory at .* asked for 1125899906842624 bytes' || fail "not told: $(head -n 1 "$T/mem.txt")"
}

case_mem_addresses_come_again() {
	book reuse
	expect "sums" "$(mem_say '[where("device", f) for f in ("peak_bytes", "allocations", "frees")] + [p("leaked_bytes"), p("unseen_frees")]')" "[100, 100, 100, 0, 0]"
}

case_mem_reset_ends_a_context() {
	book reset
	expect "leaks" "$(mem_say '[(l[0], l[3]) for l in leaks]')" "[(100, 'exited'), (1048576, 'context')]"
}

case_mem_host_memory() { # long
	book host
	expect "host" "$(mem_say '[kind("host", f) for f in ("peak_bytes", "frees")] + [kind("registered", f) for f in ("peak_bytes", "frees")]')" "[30000, 1, 8192, 1]"
	expect "device" "$(mem_say 'where("device", "allocations")')" 0
}

case_mem_arrays_pitch_and_graphs() { # long
	book arrays
	expect "arrays" "$(mem_say '[kind("array", f) for f in ("peak_bytes", "frees")]')" "[16784, 1]"
	expect "pitch" "$(mem_say 'kind("device", "taken_bytes")')" 5120
	expect "graph" "$(mem_say 'kind("graph", "taken_bytes")')" 7777
}

# Runtime and driver calls are one allocation each, also when the calls inside others are recorded.
case_mem_books_once() { # long
	book driver
	expect "sums" "$(mem_say '[where("device", f) for f in ("taken_bytes", "allocations", "frees")]')" "[3010, 3, 1]"
	ct record --nested -o "$T/x.ctrace" -- "$MEMORY" driver
	ct mem --json -o "$T/mem.json" "$T/x.ctrace"
	expect "of nested calls" "$(mem_say '[where("device", f) for f in ("taken_bytes", "allocations", "frees")]')" "[3010, 3, 1]"
	ct mem --json -o "$T/mem.json" -- "$BIN/calls-static" mix 20
	expect "static" "$(mem_say 'where("device", "allocations")')" 21
	ct mem --json -o "$T/mem.json" -- "$BIN/calls-stripped" mix 20
	expect "stripped" "$(mem_say 'where("device", "allocations")')" 21
}

case_mem_attached_late() {
	mkfifo "$T/in"
	"$MEMORY" -w leak < "$T/in" > "$T/prog.out" &
	local pid=$!
	exec 9> "$T/in"
	wait_for 5 grep -q ready "$T/prog.out"
	"${BACKGROUND[@]}" "$CUDATRACE" mem -v --json -o "$T/mem.json" -p "$pid" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	echo >&9
	finish
	ok_rc
	expect "before the attach" "$(mem_say '[(r["from_start"], r["unseen_allocations"], r["leaked_bytes"]) for r in d["processes"]]')" "[(False, 1, 3145828)]"
	expect "sums" "$(mem_say '[where("device", f) for f in ("in_use_bytes", "allocations", "frees")]')" "[0, 13, 10]"
}

case_mem_without_stacks() {
	ct mem --no-stack --json -o "$T/mem.json" -- "$MEMORY" leak
	expect "leaks" "$(mem_say '[(l[0], l[4]) for l in leaks]')" "[(3145828, '')]"
	expect "site" "$(mem_say '[s["name"] for s in d["sites"]]')" "[None, 'cudaMalloc', 'cudaFree']"
}

case_mem_watch_and_page() {
	# it holds them until a page has shown it
	ct mem --watch=10ms -f -o "$T/mem.txt" -- bash -c "'$MEMORY' -w leak < <(for i in {1..2500}; do
		! grep -qs '5000 B .*take at memory.c\|4.9 KiB .*memory' '$T/mem.txt' || break; sleep 0.02; done; echo)"
	grep -q '5000 B .*take at memory.c\|4.9 KiB .*memory' "$T/mem.txt" || fail "what is held is not shown: $(head -n 5 "$T/mem.txt")"
	grep -q 'Grew$' "$T/mem.txt" || fail "no growth is shown: $(head -n 3 "$T/mem.txt")"
	ct mem --html "$T/mem.html" -o /dev/null -- "$MEMORY" leak
	ok_rc
	grep -q '"name":"take at memory.c:[0-9]* (cudaMalloc)[^"]*"' "$T/mem.html" || fail "the page has no call site"
	ct mem --html /nowhere/x.html -- true
	ok_rc 1
	says "cannot write /nowhere/x.html"
}

# Beside the book, what the driver counts for the process: 1.25 GiB on two devices.
case_mem_driver() {
	mkfifo "$T/in"
	"$MEMORY" -w leak < "$T/in" > "$T/prog.out" &
	local pid=$!
	exec 9> "$T/in"
	wait_for 5 grep -q ready "$T/prog.out"
	STANDIN_NVML_PID=$pid LD_LIBRARY_PATH=$STANDIN/gpu "${BACKGROUND[@]}" "$CUDATRACE" mem -v --driver --json --watch=50ms -o "$T/watch" \
		-p "$pid" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	wait_for 10 grep -q '"driver":.*"bytes":1342177280' "$T/watch"
	echo >&9
	finish
	ok_rc
	grep -v '^{"type":"watch"' "$T/watch" > "$T/mem.json"
	expect "the driver's" "$(mem_say '[(r["driver_bytes"], r["driver_peak_bytes"], r["leaked_bytes"]) for r in d["processes"]]')" "[(1342177280, 1342177280, 3145828)]"
}

# mem_while_stopped MODE ARGS...: `mem ARGS` of a program that makes all its calls while nobody empties the ring.
mem_while_stopped() {
	local pid
	rm -f "$T/in" "$T/err" "$T/prog.out"
	mkfifo "$T/in"
	"$MEMORY" -w "$1" < "$T/in" > "$T/prog.out" &
	pid=$!
	exec 9> "$T/in"
	wait_for 5 grep -q ready "$T/prog.out"
	"${BACKGROUND[@]}" "$CUDATRACE" "${@:2}" -v -p "$pid" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	kill -STOP "$CT"
	echo >&9
	wait_for 10 ended "$pid"
	kill -CONT "$CT"
	finish
}

# A stack takes the room that it needs, not the most that there may be: 760 of them fit into 4 MiB.
case_mem_small_stacks_take_little_room() {
	mem_while_stopped threads mem --json -o "$T/mem.json" --ring-size 4MiB
	ok_rc
	expect "lost, and the verdict" "$(mem_say '(d["lost"], d["leaks_known"])')" "(0, True)"
	expect "sums" "$(mem_say '[where("device", f) for f in ("allocations", "frees")]')" "[400, 360]"
}

# With calls lost nobody knows what was leaked: not of the live program, and not of its recording.
case_mem_lost_is_not_known() {
	mem_while_stopped threads mem --leak-check -o "$T/mem.txt" --ring-size 64KiB
	ok_rc 5
	grep -q -E '^LEAK SUMMARY: not known, because [0-9]+ records are missing; of what is there, ' "$T/mem.txt" ||
		fail "a verdict: $(tail -n 1 "$T/mem.txt")"
	mem_while_stopped threads record -k -o "$T/x.ctrace" --ring-size 64KiB
	ct mem --leak-check -o "$T/mem.txt" "$T/x.ctrace"
	ok_rc 5
	grep -q -E '^LEAK SUMMARY: not known, because [0-9]+ records are missing; of what is there, ' "$T/mem.txt" ||
		fail "a verdict of the recording: $(tail -n 1 "$T/mem.txt")"
}
