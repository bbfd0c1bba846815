#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh - every exported cu* function of the stand-in libraries given begins with `push %rbp`, has code of its own
# (two functions at one address would be one probe), and is on the list of symbols. Else its probe is single-stepped,
# or fires for the wrong function.
set -euo pipefail
bad=0
for lib in "$@"; do
	nm -D --defined-only "$lib" | awk '$2 == "T" { sub(/@.*/, "", $3); print $1, $3 }' > "$lib.sym"
	twice=$(cut -d' ' -f1 "$lib.sym" | sort | uniq -d | wc -l)
	if [ "$(uname -m)" = x86_64 ]; then
		wrong=$(objdump -d --no-show-raw-insn "$lib" | awk '
			/^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name); sub(/@.*/, "", name); first = 1; next }
			first && NF { if (name ~ /^(__)?cu/ && $0 !~ /push +%rbp/) print name; first = 0 }')
	else
		wrong=
	fi
	if [ -n "$wrong" ] || [ "$twice" != 0 ]; then
		echo "$lib: not beginning with push %rbp: ${wrong:-none}; addresses used twice: $twice" >&2
		bad=1
	fi
	echo "$lib: $(wc -l < "$lib.sym") functions"
done
exit $bad
