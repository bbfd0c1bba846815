#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# imports.sh - how long Python packages take to load under the hooks, beside the same without cudatrace: tests/gpu/imports.sh [CUDATRACE]
# [TURNS]
#
# Each turn runs both, one after the other; TURNS: how many (7). Prints the medians of each package that is there, and the median of the
# turns' ratios with its quartiles. Needs root.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
turns=${2:-7}

# one WHAT COMMAND...: runs it, and adds the milliseconds to the file WHAT
one() {
	local what=$1 from to
	shift
	from=$(date +%s%N)
	"$@" > "$tmp/out" 2>&1 || { tail -n 3 "$tmp/out"; return 1; }
	to=$(date +%s%N)
	echo $(((to - from) / 1000000)) >> "$tmp/$what"
}

for package in torch jax cupy numba tensorflow transformers; do
	python3 -c "import $package" > "$tmp/out" 2>&1 || continue
	rm -f "$tmp/plain" "$tmp/hooks"
	for ((i = 0; i < turns; i++)); do
		if ! one plain python3 -c "import $package" ||
			! one hooks "$ct" --source=hooks -o "$tmp/rows" -- python3 -c "import $package"; then
			not_ok "import $package" "$(tail -n 1 "$tmp/out")"
			continue 2
		fi
	done
	python3 - "$package" "$tmp/plain" "$tmp/hooks" << 'END'
import statistics, sys
plain, hooks = ([int(line) for line in open(path)] for path in sys.argv[2:])
low, ratio, high = statistics.quantiles([b / a for a, b in zip(plain, hooks)], n=4)
print(f"ok import {sys.argv[1]}: {statistics.median(plain):.0f} ms, under the hooks {statistics.median(hooks):.0f} ms: "
      f"x{ratio:.2f} ({low:.2f} to {high:.2f})")
END
	passed=$((passed + 1))
done
all_done
