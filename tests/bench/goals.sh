# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# goals.sh - goals that are judged without ending the run: sourced by run.sh, which sets tmp, a folder.
missed=${tmp:?}/missed # a line for each
: > "$missed"

# shown COMMAND...: runs it; number() looks into its output. A command that fails is in the list of what was missed.
shown() {
	"$@" | tee "$tmp/shown" || echo "$(basename "$1") ended with status ${PIPESTATUS[0]}" >> "$missed"
}

# number REGEX: its first group, in the last line of that output that has it; nothing if none has.
number() {
	local line found=
	while IFS= read -r line; do
		! [[ $line =~ $1 ]] || found=${BASH_REMATCH[1]}
	done < "$tmp/shown"
	echo "$found"
}

# at_most NAME NUMBER GOAL [UNIT], at_least NAME NUMBER GOAL [UNIT]: a NUMBER that is empty was not measured, and counts as missed.
at_most() { judge "$1" "${2:-}" '<=' "$3" "${4:-}" "at most"; }
at_least() { judge "$1" "${2:-}" '>=' "$3" "${4:-}" "at least"; }

judge() {
	local name=$1 value=$2 goal=$4 unit=${5:+ $5}
	if [ -z "$value" ]; then
		echo "$name: not measured (goal: $6 $goal$unit)" >> "$missed"
	elif ! awk -v a="$value" -v b="$goal" "BEGIN { exit !(a $3 b) }"; then
		echo "$name: $value$unit (goal: $6 $goal$unit)" >> "$missed"
	fi
}

# The list, and the status.
goals_end() {
	if [ ! -s "$missed" ]; then
		echo "== every goal was reached"
		return 0
	fi
	echo "== $(wc -l < "$missed") goals were missed"
	cat "$missed"
	return 1
}
