# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# machine.sh - the lock that keeps tests apart that trace the whole machine, and those that such a tracer would disturb, in whatever
# lane or copy of this repository they run: the first take it alone, the second (undisturbed) share it. tests/machine.py is the same for Python.

MACHINE=/run/cudatrace-tests
export CUDATRACE_TESTS=1 # tells the tracers of the tests from others (lib.sh)

# machine_take alone|undisturbed|any: waits until it may be had; not for `any`, nor inside of what has it.
# Who waits to have it alone is not overtaken by those that share it.
machine_take() {
	if [ "$1" = any ] || [ -n "${MACHINE_TAKEN:-}" ]; then
		return
	fi
	exec 8> "$MACHINE.next" 9> "$MACHINE.lock"
	flock 8
	flock "$([ "$1" = alone ] && echo -x || echo -s)" 9
	exec 8>&-
	export MACHINE_TAKEN=1
	MACHINE_OURS=1
}

# Children are started with 9>&-, so that none that is left keeps the lock.
machine_leave() {
	if [ -n "${MACHINE_OURS:-}" ]; then
		exec 9>&-
		unset MACHINE_TAKEN MACHINE_OURS
	fi
}
