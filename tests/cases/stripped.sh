# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# stripped.sh - cases about NVIDIA's static runtime in files without symbols: what is shown of them, compared with what is shown of
# their twins that have symbols, and what is said when its functions cannot be found.

# alone NAME: a program or library with the runtime, in $prog.
alone() {
	no_driver
	kernel_program "$1"
}

# same_as_twin LABEL OPTIONS... -- PROGRAM...: the rows of both, where PROGRAM has @ in place of "" and "-stripped".
same_as_twin() {
	local label=$1 as
	shift
	for as in "" -stripped; do
		ct -e all -o "$T/rows$as" "${@//@/$as}"
		ok_rc
		says '^cudatrace: [0-9]+ calls, 0 lost'
		alike "$T/rows$as" > "$T/alike$as"
	done
	grep -q 'cudaMalloc .*size=779' "$T/alike" || fail "$label: the twin shows nothing: $(tail -n 3 "$T/rows")"
	grep -q '__cudaRegisterFunction ' "$T/alike" || fail "$label: the twin registers no kernel"
	grep -q 'cudaLaunchKernel .*second(float\*, int)' "$T/alike" || fail "$label: the twin's kernels have no names"
	diff -u "$T/alike" "$T/alike-stripped" > "$T/diff" || fail "$label: $(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

case_stripped_program() {
	alone alone
	same_as_twin program -- "$PROGRAMS/alone@"
}

# The library stays when it is closed, so that what its calls were told can still be read.
case_stripped_module() {
	alone libalone.so
	same_as_twin module -E "LD_PRELOAD=$PROGRAMS/libalone@.so" -- "$PROGRAMS/reload" "$PROGRAMS/libalone@.so"
}

case_stripped_by_hooks() { # undisturbed
	alone alone
	with_hooks
	same_as_twin program --source=hooks -- "$PROGRAMS/alone@"
	same_as_twin module --source=hooks -E "LD_PRELOAD=$PROGRAMS/libalone@.so" -- "$PROGRAMS/reload" "$PROGRAMS/libalone@.so"
}

# A program that runs already: by probes and by hooks.
stripped_attached() {
	local as
	for as in "" -stripped; do
		rm -f "$T/a.in"
		PROG=$PROGRAMS/alone$as target a
		attach "$@" -p "$PID_a"
		go a
		stop a
		finish
		ok_rc
		no_loss
		expect_rows cudaMalloc 3 '"ret":35'
		expect_rows cudaLaunchKernel 2 '"ret":35'
		expect_rows cudaStreamSynchronize 1 '"ret":35'
		grep -o '"name":"[^"]*"\|"size":[0-9]*' "$T/out" > "$T/names$as"
	done
	diff -u "$T/names" "$T/names-stripped" > "$T/diff" || fail "$(grep '^[-+][^-+]' "$T/diff" | head -n 6)"
}

case_stripped_attached() {
	alone alone
	stripped_attached
}

case_stripped_attached_by_hooks() { # undisturbed
	alone alone
	with_hooks
	stripped_attached --source=hooks
}

# A library whose functions cannot be found, beside one whose functions are: named in the last line and in the ledger, once for each process.
stripped_not_found() {
	local lib said="has a CUDA runtime without symbols, and functions of it were not found: calls of them are not known$"
	lib=$(readlink -f "$PROGRAMS/libalone-tableless.so")
	ct_json "$@" -- "$PROGRAMS/reload" "$lib" "$PROGRAMS/libalone-stripped.so" "$lib"
	ok_rc
	expect_rows cudaMalloc 3
	says "^cudatrace: 9 calls, 0 lost of those seen; $lib $said"
	expect "not seen" "$(ledger)" "stripped $lib 1"
	ct --strict "$@" -o "$T/rows" -- "$PROGRAMS/reload" "$lib"
	ok_rc 3
	# none of its functions is asked for
	ct --strict --domain driver "$@" -o "$T/rows" -- "$PROGRAMS/reload" "$lib"
	ok_rc
}

ledger() {
	tail -n 1 "$T/out" | python3 -c 'import json, sys
print(*(f"{r['"'reason'"']} {r['"'text'"']} {r['"'count'"']}" for r in json.load(sys.stdin)["not_seen"]))'
}

case_stripped_not_found() {
	alone libalone-tableless.so
	stripped_not_found
}

case_stripped_not_found_by_hooks() { # undisturbed
	alone libalone-tableless.so
	with_hooks
	stripped_not_found --source=hooks
}

case_stripped_doctor() {
	local lib
	alone libalone-tableless.so
	lib=$(readlink -f "$prog")
	PROG=$PROGRAMS/reload target a "$lib"
	ct doctor -p "$PID_a"
	ok_rc
	grep -qF "  not seen: runtime calls of $lib: a CUDA runtime is linked into it, its symbols are stripped, and" "$T/out" ||
		fail "it is not named: $(cat "$T/out")"
	! grep -q 'has not loaded CUDA' "$T/out" || fail "it says that there is no CUDA"
	ct doctor --format json -p "$PID_a"
	expect "stripped_files" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["processes"][0]["stripped_files"])' < "$T/out")" \
		"['$lib']"
	kill -KILL "$PID_a"
	# its functions are found
	PROG=$PROGRAMS/alone-stripped target b
	ct doctor -p "$PID_b"
	ok_rc
	grep -q 'static CUDA runtime inside, by what its functions tell profilers: it has no symbols' "$T/out" || fail "it is not found: $(cat "$T/out")"
	! grep -q 'not seen: runtime calls' "$T/out" || fail "$(grep 'not seen' "$T/out")"
	stop b
}
