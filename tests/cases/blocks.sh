# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# blocks.sh - cases about the layer allocator: the blocks that PyTorch's allocator gives out of the memory that it has from CUDA.

BLOCKS=$BIN/blocks

# of_blocks EXPRESSION: of b, the only row of "blocks" of the JSON in $T/book, and d, all of it.
of_blocks() {
	python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
b = d["blocks"][0] if len(d["blocks"]) == 1 else None
print(eval(sys.argv[2]))' "$T/book" "$1"
}

BLOCKS_SUMS='[b[k] for k in ("allocated", "reserved", "peak", "reserved_peak", "before", "in_use", "live", "taken", "allocations", "frees", "reports_missing", "reports_wrong", "out_of_memory")]'

# What the program has done is booked by operator and by line; the peak is made up of what was held then; the parts add up.
case_blocks_booked() {
	ct mem --layers allocator,torch --json -o "$T/book" -- "$BLOCKS" train
	ok_rc
	expect "sums" "$(of_blocks "$BLOCKS_SUMS")" "[1048576, 5242880, 4194304, 5242880, 0, 1048576, 1, 6553600, 8, 7, 0, 0, 0]"
	expect "by operator" "$(of_blocks '[(r["operator"], r["at_peak"], r["taken"], r["allocations"], r["frees"]) for r in b["by_operator"]]')" \
		"[(None, 4194304, 5767168, 5, 4), ('aten::nest', 0, 786432, 3, 3)]"
	expect "by line" "$(of_blocks '[(r["at_peak"], r["taken"], r["allocations"]) for r in b["by_stack"]]')" \
		"[(3145728, 3145728, 1), (1048576, 1048576, 1), (0, 1572864, 3), (0, 786432, 3)]"
	expect "segments" "$(of_blocks '[b["segments"][k] for k in ("with_blocks", "bytes", "in_blocks", "free_bytes", "without_blocks", "longest_free")]')" \
		"[1, 2097152, 1048576, 1048576, 1, 3145728]"
	expect "memory of CUDA's" "$(of_blocks 'd["all"][0]["taken"], d["all"][0]["allocations"]')" "(5242880, 2)"
	says '17 calls, 0 lost'
}

# What is shown as text, and that segments which the program gives back to CUDA are not counted any more.
case_blocks_text() {
	ct mem --layers allocator,torch -- "$BLOCKS" train
	ok_rc
	says "^Blocks of PyTorch's allocator in process [0-9]* blocks, on device 0$"
	says '^ allocated 1\.0 MiB, at most 4\.0 MiB at [0-9.]* s; reserved from CUDA 5\.0 MiB, at most 5\.0 MiB$'
	says '^ 1 segment with blocks: 2\.0 MiB, of which 1\.0 MiB free in 1 stretch; 1 without: 3\.0 MiB; the longest free stretch: 3\.0 MiB$'
	says '^ *0 B *0 *0 B *768\.0 KiB *3 *3  aten::nest$'
	says '^ *1\.0 MiB *1 *1\.0 MiB *1\.0 MiB *1 *0  weights\(\) at blocks\.cc:'
	ct mem --layers allocator --json -o "$T/book" -- "$BLOCKS" cache
	ok_rc
	expect "segments that were given back" "$(of_blocks '(b["segments"]["with_blocks"], b["segments"]["without_blocks"], b["reserved"], d["all"][0]["frees"])')" \
		"(1, 0, 2097152, 1)"
}

# Inside the process the same is recorded.
case_blocks_by_hooks() {
	[ "$(uname -m)" = x86_64 ] || skip "hooks are for x86-64 yet"
	# shellcheck disable=SC2034 # run.sh's: where a tracer of the whole machine has breakpoints there are no hooks
	OWN_LIBRARY=1
	for what in train hole hostile; do
		ct mem --layers allocator --json -o "$T/book" -- "$BLOCKS" "$what"
		ok_rc
		of_blocks 'sorted((b["device"],) + tuple((k, b[k]) for k in ("allocated", "reserved", "peak", "in_use", "taken", "frees", "reports_wrong")) for b in d["blocks"])' > "$T/probes"
		ct mem --source=hooks --layers allocator --json -o "$T/book" -- "$BLOCKS" "$what"
		ok_rc
		of_blocks 'sorted((b["device"],) + tuple((k, b[k]) for k in ("allocated", "reserved", "peak", "in_use", "taken", "frees", "reports_wrong")) for b in d["blocks"])' > "$T/hooks"
		cmp -s "$T/probes" "$T/hooks" || fail "$what: $(cat "$T/probes" "$T/hooks")"
	done
}

# The allocator has no block to give although half of its memory is free: the message says how that memory lies, and who has the rest.
case_blocks_out_of_memory() {
	ct mem --layers allocator -- "$BLOCKS" hole
	ok_rc
	says "^PyTorch's allocator is out of memory at [0-9.]* s: buffer"
	says '^  asked for 1125899906842624 bytes \(1\.0 PiB\) of device 0, process [0-9]* blocks$'
	says '^  allocated 2\.0 MiB, reserved from CUDA 4\.0 MiB$'
	says '^  2 segments with blocks: 4\.0 MiB, of which 2\.0 MiB free in 2 stretches; 0 without: 0 B; the longest free stretch: 1\.5 MiB$'
	says '^  before the longest free stretch beside blocks: buffer'
	says '^ *1\.0 MiB in 1: weights\(\) at blocks\.cc:'
	says '^ out of memory 1 time$'
}

# A program that runs already: the totals are the allocator's own, and what was given out before is said.
case_blocks_attached() {
	local pid
	mkfifo "$T/in"
	"$BLOCKS" wait < "$T/in" > "$T/said" &
	pid=$!
	exec 6> "$T/in"
	wait_for 10 grep -q ready "$T/said"
	"$CUDATRACE" mem -v --layers allocator --json -o "$T/book" -p "$pid" 2> "$T/err" < /dev/null 6>&- &
	wait_for 20 grep -q '^cudatrace: ready' "$T/err"
	printf x >&6
	wait_for 10 grep -q 'done' "$T/said"
	exec 6>&-
	wait "$pid"
	wait $!
	expect "sums" "$(of_blocks "$BLOCKS_SUMS")" "[0, 2097152, 5632, 2097152, 5120, 0, 0, 512, 1, 1, 0, 0, 0]"
	expect "of before" "$(of_blocks 'b["unseen_allocations"]')" 10
}

# What cannot be true is counted and left out, for each device.
case_blocks_hostile() {
	ct mem --layers allocator --json -o "$T/book" -- "$BLOCKS" hostile
	ok_rc
	expect "devices" "$(of_blocks 'sorted((r["device"], r["reports_wrong"], r["reports_missing"], r["taken"]) for r in d["blocks"])')" \
		"[(0, 6, 1, 1536), (127, 0, 0, 512), (255, 0, 0, 512)]"
	ct mem --layers allocator --json -o "$T/book" -- "$BLOCKS" host
	ok_rc
	expect "blocks of the CPU's allocator" "$(of_blocks 'd["blocks"]')" "[]"
	ct mem --layers allocator --no-stack --json -o "$T/book" -- "$BLOCKS" many 30000
	ok_rc
	expect "many blocks" "$(of_blocks '(b["live"], b["allocations"])')" "(30000, 30000)"
}

# Single calls: a row for each report, in a trace and in a recording, of which `mem` makes the same tables. Without the layer there are none.
case_blocks_rows() {
	local row="c10::reportMemoryUsageToProfiler ptr=0x[0-9a-f]*, size=-262144, allocated=1572864 bytes, reserved=2097152 bytes, device=1 (cuda:0)"
	ct_rows --layers allocator -- "$BLOCKS" train
	ok_rc
	expect "rows" "$(grep -c 'c10::reportMemoryUsage' "$T/out")" 15
	grep -q "$row" "$T/out" || fail "rows: $(grep -m 3 c10:: "$T/out")"
	ct_rows -- "$BLOCKS" train
	ok_rc
	expect "rows without the layer" "$(grep -c c10:: "$T/out")" 0
	ct record --layers allocator -o "$T/trace" -- "$BLOCKS" train
	ok_rc
	ct replay "$T/trace"
	ok_rc
	expect "rows of a recording" "$(grep -c 'c10::reportMemoryUsage' "$T/out")" 15
	ct mem --json -o "$T/book" "$T/trace"
	ok_rc
	expect "sums of a recording" "$(of_blocks "$BLOCKS_SUMS")" "[1048576, 5242880, 4194304, 5242880, 0, 1048576, 1, 6553600, 8, 7, 0, 0, 0]"
}
