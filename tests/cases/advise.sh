# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# advise.sh - `cudatrace advise` on a program with known sins and on one without: live, of a recording, and with what the
# stand-in's device did. Rules that depend on times have their tests in tests/unit/test_advise.c. Sourced by run.sh.
SINS=$BIN/sins

# found RULE FIELD: of the only finding of the rule in $T/out (JSON); "none".
found() {
	python3 - "$T/out" "$1" "$2" <<- 'E'
		import json, sys
		f = [f for f in json.load(open(sys.argv[1]))["findings"] if f["rule"] == sys.argv[2]]
		print(f[0][sys.argv[3]] if len(f) == 1 else "none" if not f else "several")
	E
}

# The sins that do not depend on times, each with its number.
sins_are_found() {
	expect "alloc-in-loop" "$(found alloc-in-loop count)" 200
	expect "create-in-loop" "$(found create-in-loop count)" 78
	expect "sync-copy" "$(found sync-copy count)" 40
	expect "sync-copy bytes" "$(found sync-copy bytes)" $((40 << 20))
	# the wait of the last step of its kind is followed by a launch too
	expect "small-readback" "$(found small-readback count)" 40
	expect "sync-after-launch" "$(found sync-after-launch count)" 120
	expect "failed-calls" "$(found failed-calls count)" 1
	expect "polling" "$(found polling count)" none
}

case_advise_live() { # long
	export STANDIN_FAIL=cudaMemsetAsync:1
	ct_advise -- "$SINS" bad
	ok_rc
	sins_are_found
}

ct_advise() {
	ct advise --format json -o "$T/json" "$@"
	mv "$T/json" "$T/out" 2> /dev/null || fail "no output file; status $rc: $(tail -n 2 "$T/err")"
}

case_advise_recording() { # long
	export STANDIN_FAIL=cudaMemsetAsync:1
	ct record -k -o "$T/sins.ctrace" -- "$SINS" bad
	ok_rc
	ct_advise "$T/sins.ctrace"
	ok_rc
	sins_are_found
	# memory that is allocated on and on, at one place
	expect "leak" "$(found leak count)" 120
	grep -q '"name":"cudaMalloc".*"stack":\["forgetful_step (' "$T/out" || fail "no stack of the leak: $(grep '"leak"' "$T/out")"
	ct advise --rule sync-copy,leak "$T/sins.ctrace"
	ok_rc
	grep -qE '^[0-9]+\. Copies that block the host' "$T/out" || fail "no text: $(head -n 3 "$T/out")"
	expect "findings" "$(grep -cE '^[0-9]+\. ' "$T/out")" 2
	ct advise --fail "$T/sins.ctrace"
	ok_rc 1
	ct advise --fail --min-cost 1000s --rule sync-copy "$T/sins.ctrace"
	ok_rc
	ct advise --rule sync-cpoy "$T/sins.ctrace"
	ok_rc 2
	grep -q "there is no rule 'sync-cpoy'" "$T/err" || fail "$(tail -n 1 "$T/err")"
}

# Which of a recording's records are in no sum of stat is said, with their number.
case_stat_leaves_out() {
	ct record --gpu=kernel,memcpy,memset,sync -o "$T/sins.ctrace" -- "$SINS" bad
	ok_rc
	local all out
	all=$(sed -nE 's/.* calls, ([0-9]+) on devices.*/\1/p' "$T/err")
	ct stat "$T/sins.ctrace"
	ok_rc
	out=$(sed -nE 's/^cudatrace: ([0-9]+) records of devices are in no sum: sums are of kernels, copies and sets of memory$/\1/p' "$T/err")
	[ "${out:-0}" -gt 0 ] || fail "nothing is said of waits: $(cat "$T/err")"
	expect "records" "$(sed -nE 's/.* calls, ([0-9]+) on devices.*/\1/p' "$T/err")" $((all - out))
	# calls that other calls made
	ct record --nested -o "$T/nested.ctrace" -- "$BIN/work" 20 return
	ok_rc
	all=$(sed -nE 's/^cudatrace: ([0-9]+) calls.*/\1/p' "$T/err")
	ct stat "$T/nested.ctrace"
	ok_rc
	out=$(sed -nE 's/^cudatrace: ([0-9]+) calls of the recording are in no sum: other calls made them, and their time is a part of those$/\1/p' "$T/err")
	[ "${out:-0}" -gt 0 ] || fail "nothing is said of nested calls: $(cat "$T/err")"
	expect "calls" "$(sed -nE 's/^cudatrace: ([0-9]+) calls, .*/\1/p' "$T/err")" $((all - out))
	ct replay "$T/nested.ctrace"
	says "$out calls of the recording are not shown: .* \\(--nested shows them\\)"
	ct replay --nested "$T/nested.ctrace"
	! grep -q 'of the recording' "$T/err" || fail "with --nested: $(cat "$T/err")"
}

# Each habit of the tutorial's program is found at its line of Python, in a recording and live; nothing of the interpreter or of what calls C
# for it is shown. What has no stacks says so.
case_advise_python() {
	local p frames
	p=$(pythons | head -n 1)
	[ -n "$p" ] || skip "no Python from 3.10 to 3.14 here"
	export LD_LIBRARY_PATH=$STANDIN
	ct record -k -o "$T/py.ctrace" -- "$p" "$ROOT/docs/train.py" 50
	ok_rc
	ct advise "$T/py.ctrace"
	ok_rc
	frames=$(grep -A 4 '^   - 49 x cudaMemcpy' "$T/out" | grep '^       ' | tr -s ' ')
	expect "the line that reads a value back" "$frames" " loss_item ($ROOT/docs/train.py:35)
 train ($ROOT/docs/train.py:48)
 <module> ($ROOT/docs/train.py:55)"
	expect "glue" "$(grep -cE 'libffi|ctypes|PyEval|PyObject|libpython' "$T/out")" 0
	expect "the sentence about stacks" "$(grep -c 'No line of code' "$T/out")" 0
	ct advise --all-frames --rule small-readback "$T/py.ctrace"
	ok_rc
	grep -q '^       .*(libffi' "$T/out" || fail "--all-frames: $(cat "$T/out")"
	ct advise --rule small-readback -o "$T/live" -- "$p" "$ROOT/docs/train.py" 50
	ok_rc
	expect "live" "$(grep -A 1 '^   - 49 x cudaMemcpy' "$T/live" | tail -n 1 | tr -s ' ')" " loss_item ($ROOT/docs/train.py:35)"
	ct record -o "$T/py.ctrace" -- "$p" "$ROOT/docs/train.py" 50
	ok_rc
	ct advise --rule small-readback "$T/py.ctrace"
	ok_rc
	expect "without stacks" "$(grep -c '^No line of code is named, because no call has a stack: record with -k, or with --stack=python,' "$T/out")" 1
}

case_advise_clean() {
	ct_advise --fail -- "$SINS" good
	ok_rc
	grep -q '"findings":\[\]' "$T/out" || fail "a program without sins: $(cat "$T/out")"
	grep -q '"calls":39,' "$T/out" || fail "calls: $(head -n 1 "$T/out")"
	ct record --gpu -o "$T/good.ctrace" -- "$SINS" good
	ok_rc
	# what depends on when the stand-in's device does its work is left out
	ct_advise --fail --rule sync-copy,sync-memset,default-stream,leak,failed-calls,low-occupancy "$T/good.ctrace"
	ok_rc
	grep -q '"findings":\[\],"not_checked":\[\]' "$T/out" || fail "with device records: $(cat "$T/out")"
}

# A process that runs already, for a while; it does nothing then.
case_advise_attached() {
	target prog mix 5
	ct advise --format json -d 0.3 -o "$T/json" -p "$PID_prog"
	ok_rc
	grep -q '^{"type":"advice",.*"calls":0,.*"findings":\[' "$T/json" || fail "$(cat "$T/json")"
	stop prog
}

case_advise_device() {
	export STANDIN_FAIL=cudaMemsetAsync:1
	ct_advise --gpu --rule pageable-async-copy -- "$SINS" bad
	ok_rc
	expect "pageable-async-copy" "$(found pageable-async-copy count)" 10
	expect "its bytes" "$(found pageable-async-copy bytes)" $((10 << 20))
}
