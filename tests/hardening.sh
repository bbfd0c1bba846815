#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# hardening.sh - the program runs as root and reads files that others wrote: both builds of it have the protections that a
# distribution expects of such a program. Needs readelf. Prints `ok` and `not ok` lines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C

failed=0
# has FILE NAME PATTERN READELF-OPTIONS...: readelf prints a line that matches.
has() {
	if readelf -W "${@:4}" "$1" 2> /dev/null | grep -E -- "$3" > /dev/null; then
		echo "ok hardening-${1##*/}-$2"
	else
		echo "not ok hardening-${1##*/}-$2: readelf ${*:4} $1 has no line with $3"
		failed=1
	fi
}

for program in "$@"; do
	has "$program" position-independent 'Type: +DYN ' -h
	has "$program" bound-at-start 'FLAGS_1.*NOW' -d
	has "$program" relocations-read-only 'GNU_RELRO' -l
	has "$program" stack-not-executable 'GNU_STACK +.* RW +' -l
	has "$program" checked-copies '__(memcpy|snprintf|vsnprintf|read)_chk' -s
done

# The libraries that are linked in have a protector of their own, so this is asked of our own objects.
protected=$(find .output/user -name '*.o' -exec nm -u {} + 2> /dev/null | grep -c '__stack_chk_fail')
if [ "$protected" -gt 100 ]; then
	echo "ok hardening-stack-protector"
else
	echo "not ok hardening-stack-protector: $protected of our objects have a protected stack"
	failed=1
fi
exit $failed
