# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# stripped.sh - cases about NVIDIA's static runtime in files without symbols: what is shown of them, compared with what is shown of
# their twins that have symbols, and what is said when its functions cannot be found.

# alone NAME: a program or library with the runtime, in $prog.
alone() {
	[ "$(uname -m)" = x86_64 ] || skip "functions of a stripped runtime are found on x86-64"
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

case_stripped_module() {
	alone libalone.so
	same_as_twin module -- "$PROGRAMS/reload" "$PROGRAMS/libalone@.so"
}

case_stripped_by_hooks() { # undisturbed
	alone alone
	with_hooks
	same_as_twin program --source=hooks -- "$PROGRAMS/alone@"
	same_as_twin module --source=hooks -- "$PROGRAMS/reload" "$PROGRAMS/libalone@.so"
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
