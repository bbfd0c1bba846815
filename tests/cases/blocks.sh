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

BLOCKS_SUMS='[b[k] for k in ("allocated_bytes", "reserved_bytes", "peak_bytes", "reserved_peak_bytes", "before_bytes", "in_use_bytes", "live", "taken_bytes", "allocations", "frees", "reports_missing", "reports_wrong", "out_of_memory")]'

# What the program has done is booked by operator and by line; the peak is made up of what was held then; the parts add up.
case_blocks_booked() {
	ct mem --layers allocator,torch --json -o "$T/book" -- "$BLOCKS" train
	ok_rc
	expect "sums" "$(of_blocks "$BLOCKS_SUMS")" "[1048576, 5242880, 4194304, 5242880, 0, 1048576, 1, 6553600, 8, 7, 0, 0, 0]"
	expect "by operator" "$(of_blocks '[(r["operator"], r["at_peak_bytes"], r["taken_bytes"], r["allocations"], r["frees"]) for r in b["by_operator"]]')" \
		"[(None, 4194304, 5767168, 5, 4), ('aten::nest', 0, 786432, 3, 3)]"
	expect "by line" "$(of_blocks '[(r["at_peak_bytes"], r["taken_bytes"], r["allocations"]) for r in b["by_stack"]]')" \
		"[(3145728, 3145728, 1), (1048576, 1048576, 1), (0, 1572864, 3), (0, 786432, 3)]"
	expect "segments" "$(of_blocks '[b["segments"][k] for k in ("with_blocks", "bytes", "in_blocks_bytes", "free_bytes", "without_blocks", "longest_free_bytes")]')" \
		"[1, 2097152, 1048576, 1048576, 1, 3145728]"
	expect "memory of CUDA's" "$(of_blocks 'd["all"][0]["taken_bytes"], d["all"][0]["allocations"]')" "(5242880, 2)"
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
	expect "segments that were given back" "$(of_blocks '(b["segments"]["with_blocks"], b["segments"]["without_blocks"], b["reserved_bytes"], d["all"][0]["frees"])')" \
		"(1, 0, 2097152, 1)"
}

# Inside the process the same is recorded.
case_blocks_by_hooks() { # long undisturbed
	[ "$(uname -m)" = x86_64 ] || skip "hooks are for x86-64 yet"
	for what in train hole hostile; do
		ct mem --layers allocator --json -o "$T/book" -- "$BLOCKS" "$what"
		ok_rc
		of_blocks 'sorted((b["device"],) + tuple((k, b[k]) for k in ("allocated_bytes", "reserved_bytes", "peak_bytes", "in_use_bytes", "taken_bytes", "frees", "reports_wrong")) for b in d["blocks"])' > "$T/probes"
		ct mem --source=hooks --layers allocator --json -o "$T/book" -- "$BLOCKS" "$what"
		ok_rc
		of_blocks 'sorted((b["device"],) + tuple((k, b[k]) for k in ("allocated_bytes", "reserved_bytes", "peak_bytes", "in_use_bytes", "taken_bytes", "frees", "reports_wrong")) for b in d["blocks"])' > "$T/hooks"
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
case_blocks_attached() { # long
	local pid
	mkfifo "$T/in"
	"$BLOCKS" wait < "$T/in" > "$T/said" &
	pid=$!
	exec 6> "$T/in"
	wait_for 10 grep -q ready "$T/said"
	"$CUDATRACE" mem -v --layers allocator --json --memory-viz "$T/snapshot" -o "$T/book" -p "$pid" 2> "$T/err" < /dev/null 6>&- &
	wait_for 20 grep -q '^cudatrace: ready' "$T/err"
	printf x >&6
	wait_for 10 grep -q 'done' "$T/said"
	exec 6>&-
	wait "$pid"
	wait $!
	check_viz "$T/snapshot" --attached
	expect "snapshot" "$(cat "$T/viz")" "0 alloc 1 512
0 free_completed 11 5632
0 free_requested 11 5632
segments (0, 'small', False, 5632, 0, 1)
held"
	expect "sums" "$(of_blocks "$BLOCKS_SUMS")" "[0, 2097152, 5632, 2097152, 5120, 0, 0, 512, 1, 1, 0, 0, 0]"
	expect "of before" "$(of_blocks 'b["unseen_allocations"]')" 10
}

# What cannot be true is counted and left out, for each device.
case_blocks_hostile() { # long
	ct mem --layers allocator --json -o "$T/book" -- "$BLOCKS" hostile
	ok_rc
	expect "devices" "$(of_blocks 'sorted((r["device"], r["reports_wrong"], r["reports_missing"], r["taken_bytes"]) for r in d["blocks"])')" \
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

# PyTorch's own reader of snapshots, where there is one: TORCH_PYTHON, or python3 if it has PyTorch.
viewer() {
	"${TORCH_PYTHON:-python3}" -c '
import importlib.util, os
spec = importlib.util.find_spec("torch")
path = spec and os.path.join(os.path.dirname(spec.origin), "cuda", "_memory_viz.py")
print(path if path and os.path.exists(path) else "")' 2> /dev/null
}

# check_viz FILE [--attached]: is it a snapshot as PyTorch's viewer reads it? What is in it in $T/viz.
check_viz() {
	local viewer
	viewer=$(viewer)
	python3 tests/cases/check_viz.py "$1" ${viewer:+"$viewer"} "${@:2}" > "$T/viz" 2> "$T/viz.err" || fail "$(tail -n 2 "$T/viz.err")"
}

TRAIN_VIZ="0 alloc 8 6553600
0 free_completed 7 5505024
0 free_requested 7 5505024
0 segment_alloc 2 5242880
segments (0, 'small', False, 2097152, 1048576, 2) (0, 'large', False, 3145728, 0, 1)
held (1048576, 'weights()')"

# The snapshot of PyTorch's viewer, live and of a recording, by all the ways to ask for it.
case_blocks_viz() { # long
	ct mem --memory-viz "$T/live" -- "$BLOCKS" train
	ok_rc
	check_viz "$T/live"
	expect "live" "$(cat "$T/viz")" "$TRAIN_VIZ"
	ct --format memory-viz -o "$T/format" -- "$BLOCKS" train
	ok_rc
	check_viz "$T/format"
	expect "--format" "$(cat "$T/viz")" "$TRAIN_VIZ"
	ct record -k --layers allocator -o "$T/r.ctrace" -- "$BLOCKS" train
	ok_rc
	ct mem --memory-viz "$T/mem" "$T/r.ctrace"
	ok_rc
	check_viz "$T/mem"
	expect "of a recording" "$(cat "$T/viz")" "$TRAIN_VIZ"
	ct export --to memory-viz "$T/r.ctrace"
	ok_rc
	cmp "$T/r.pickle" "$T/mem" || fail "export writes another file than mem"
	# without the layer nothing is reported, which is said
	ct record -k -o "$T/none.ctrace" -- "$BLOCKS" train
	ct export --to memory-viz -o "$T/none" "$T/none.ctrace"
	ok_rc
	says 'memory-viz: no program reported blocks'
	check_viz "$T/none"
	expect "empty" "$(cat "$T/viz")" "segments
held"
}

case_blocks_viz_out_of_memory() { # long
	ct mem --memory-viz "$T/hole" -- "$BLOCKS" hole
	ok_rc
	check_viz "$T/hole"
	grep -qx '0 oom 1 1125899906842624' "$T/viz" || fail "$(cat "$T/viz")"
	ct mem --memory-viz "$T/cache" -- "$BLOCKS" cache
	ok_rc
	check_viz "$T/cache"
	grep -qx '0 segment_free 1 3145728' "$T/viz" || fail "$(cat "$T/viz")"
}

# A segment that grows by mappings; and what is mapped for an allocation that fails all the same is given back, without a report.
case_blocks_that_grow() { # long
	ct mem --layers allocator --json --memory-viz "$T/grow" -o "$T/book" -- "$BLOCKS" grow
	ok_rc
	expect "sums" "$(of_blocks "$BLOCKS_SUMS")" "[2097152, 4194304, 3145728, 4194304, 0, 2097152, 3, 3145728, 4, 1, 0, 0, 1]"
	expect "segments" "$(of_blocks '[b["segments"][k] for k in ("with_blocks", "bytes", "in_blocks_bytes", "longest_free_bytes")]')" \
		"[1, 4194304, 2097152, 1048576]"
	check_viz "$T/grow"
	expect "snapshot" "$(cat "$T/viz")" "0 alloc 4 3145728
0 free_completed 1 1048576
0 free_requested 1 1048576
0 oom 1 1125899906842624
0 segment_map 4 8388608
0 segment_unmap 2 4194304
segments (0, 'large', True, 4194304, 2097152, 5)
held (524288, 'buffer(unsigned long)') (524288, 'buffer(unsigned long)') (1048576, 'weights()')"
}

# What cannot be true does no harm to the snapshot, and neither do many blocks; the other processes are counted.
case_blocks_viz_hostile() { # long
	ct mem --memory-viz "$T/hostile" -- "$BLOCKS" hostile
	ok_rc
	says 'memory-viz: 1 event at addresses that do not exist is not in the file'
	check_viz "$T/hostile" --attached
	ct mem --no-stack --memory-viz "$T/many" -- "$BLOCKS" many 3000
	expect "without stacks" "$rc" 2
	ct --stack=fp --format memory-viz -o "$T/many" -- "$BLOCKS" many 3000
	ok_rc
	check_viz "$T/many" --attached
	expect "many" "$(sed '$d' "$T/viz")" "0 alloc 3000 1536000
segments (0, 'small', False, 1536000, 1536000, 3000)"
	ct mem --memory-viz "$T/two" -f -- sh -c "$BLOCKS cache; $BLOCKS train; $BLOCKS hole"
	ok_rc
	says 'memory-viz: only process [0-9]* \(blocks\) is in the file; 2 others have blocks too: choose one with -p$'
	check_viz "$T/two"
}

# The rule of advise, live and of a recording; reports are no calls of the program, and cost it no finding else.
case_blocks_advised() {
	ct advise -k --layers allocator --format json -o "$T/advice" -- "$BLOCKS" pieces
	ok_rc
	expect "found" "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print([(f["rule"], f["count"], f["bytes"], f["places"][0]["count"]) for f in d["findings"] if f["rule"] == "fragmentation"], d["calls"])' "$T/advice")" \
		"[('fragmentation', 60, 83886080, 60)] 110"
	ct record --layers allocator -o "$T/r.ctrace" -- "$BLOCKS" pieces
	ct advise "$T/r.ctrace"
	ok_rc
	grep -q 'had up to 220\.0 MiB from CUDA on device 0, and gave out at most 140\.0 MiB' "$T/out" || fail "$(grep -A3 fragm "$T/out")"
	ct advise --layers allocator -- "$BLOCKS" train
	ok_rc
	! grep -q fragmentation "$T/out" || fail "found where there is none"
}
