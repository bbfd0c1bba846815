# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2016
# debug.sh - CUDATRACE_DEBUG: each part prints its decisions, docs/internals/debugging.md names all parts, and a wrong word is an error.

# debug WORDS COMMAND...: what these parts print, in $T/said
debug() {
	CUDATRACE_DEBUG=$1 "$CUDATRACE" "${@:2}" > "$T/out" 2> "$T/said" < /dev/null
	status=$?
}

case_debug_wrong_word() {
	local status known documented
	debug join,nonsense list
	expect "status" "$status" 2
	grep -q "CUDATRACE_DEBUG: 'nonsense' is none of all, " "$T/said" || fail "$(cat "$T/said")"
	known=$(sed 's/.* is none of all, //; s/, /\n/g' "$T/said" | sort)
	documented=$(sed -nE 's/^\| `([a-z]+)` \|.*/\1/p' "$ROOT/docs/internals/debugging.md" | sort)
	expect "the parts that debugging.md has" "$documented" "$known"
}
case_debug_recording() {
	local status
	debug trace,join replay "$ROOT/tests/traces/two.ctrace"
	expect "status" "$status" 0
	expect "blocks" "$(grep -c '^cudatrace: trace: block ' "$T/said")" 3
	grep -qxF 'cudatrace: trace: block 1 read: at byte 480, type 2, 133 records, 2395 bytes' "$T/said" || fail "$(head -n 3 "$T/said")"
	grep -qxF 'cudatrace: join: process 4001: memcpy 2 is of the call of thread 4001 that began at 1000000370500' "$T/said" ||
		fail "$(grep join "$T/said" | head -n 3)"
	# those that were not asked for print nothing
	debug names replay "$ROOT/tests/traces/two.ctrace"
	! grep -E '^cudatrace: (trace|join): ' "$T/said" || fail "other parts print too"
}
# What may still come is known from the heads of the blocks: none is read twice for the order of the rows.
case_debug_once() {
	local status
	debug trace replay "$ROOT/docs/step.ctrace"
	expect "status" "$status" 0
	expect "blocks" "$(grep -c '^cudatrace: trace: block .* type 2,' "$T/said")" 14
	expect "read twice" "$(grep '^cudatrace: trace: block ' "$T/said" | sort | uniq -d)" ""
}

case_debug_live() {
	local status part
	debug all record --gpu -k -o "$T/r.ctrace" -- "$BIN/work" 5 return
	expect "status" "$status" 0
	for part in files join names stacks trace; do
		grep -q "^cudatrace: $part: " "$T/said" || fail "$part prints nothing"
	done
	grep -qE '^cudatrace: files: /.*libcudart\.so\.13: [0-9]+ functions, mapped by process [0-9]+$' "$T/said" || fail "$(grep files: "$T/said" | head -n 2)"
	grep -qE '^cudatrace: names: process [0-9]+: handle 0x[0-9a-f]+ is ' "$T/said" || fail "$(grep names: "$T/said" | head -n 2)"
}
