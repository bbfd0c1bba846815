# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# goals.sh - goals that are judged without ending the run: sourced by run.sh, which sets tmp, a folder.
missed=${tmp:?}/missed # a line for each
beyond=$tmp/beyond     # the same for those that are beyond the goal, and within what the design can hold
: > "$missed"
: > "$beyond"
declare -A bounds reasons # of such goals, by the name

# bound NAME NUMBER WHY: what the design can hold where the goal was not reached, and why. Further off is missed. It comes before the goal.
bound() {
	bounds[$1]=$2 reasons[$1]=$3
}

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

holds() { awk -v a="$1" -v b="$3" "BEGIN { exit !(a $2 b) }"; }

judge() {
	local name=$1 value=$2 goal=$4 unit=${5:+ $5} bound=${bounds[$1]:-}
	if [ -z "$value" ]; then
		echo "$name: not measured (goal: $6 $goal$unit)" >> "$missed"
	elif holds "$value" "$3" "$goal"; then
		return
	elif [ -n "$bound" ] && holds "$value" "$3" "$bound"; then
		echo "$name: $value$unit (goal: $6 $goal$unit; bound: $bound$unit: ${reasons[$1]})" >> "$beyond"
	else
		echo "$name: $value$unit (goal: $6 $goal$unit${bound:+; bound: $bound$unit})" >> "$missed"
	fi
}

# The lists, and the status.
goals_end() {
	if [ -s "$beyond" ]; then
		echo "== $(wc -l < "$beyond") goals were not reached, within what the design can hold"
		cat "$beyond"
	fi
	if [ ! -s "$missed" ]; then
		echo "== $([ -s "$beyond" ] && echo "no bound was missed" || echo "every goal was reached")"
		return 0
	fi
	echo "== $(wc -l < "$missed") goals were missed"
	cat "$missed"
	return 1
}
