#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# night.sh - what takes too long for every change: scripts/night.sh [HOURS]. Needs root, and what `scripts/deps.sh all` installs.
#
# In HOURS (8; a fraction may be given, as 0.5) it runs programs at random with a diary, each time with seeds that nobody has run, for a
# third; each fuzz target for a third together; the soak for a third; and once what CI leaves out of its suites (hooks with many rounds, all
# cases by hooks and with links of kind multi, some attacks), the other kernels and aarch64 in their virtual machines, CUPTI and a stripped static
# runtime of each version of CUDA, version 0.1.0 on recordings of today, a hundred faults at random moments, a hundred checks of the parsers that are taken out, and the
# packages and names of packages in root file systems of Debian and Ubuntu, which are fetched (debootstrap, and dnf and createrepo-c, have to be
# installed for that). Seeds that fail are made smaller, and their commands printed. All that a suite prints is in .output/night.
# ONLY="soak vm" runs these parts alone. Prints `ok` and `not ok` lines, at last `N passed, N failed, N skipped`; the status is 1 when anything
# failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

LOGS=.output/night
budget=$(awk -v h="${1:-8}" 'BEGIN { printf "%d", h * 3600 }')
if [ "$budget" -lt 60 ] || [ $# -gt 1 ]; then
	echo "usage: scripts/night.sh [HOURS]: a minute at least" >&2
	exit 2
fi
mapfile -t parts < <(sed -n 's/^part \([a-z0-9-]*\) .*/\1/p' scripts/night.sh)
for name in ${ONLY:-}; do
	if [[ " ${parts[*]} " != *" $name "* ]]; then
		echo "night.sh: no part is called $name: ${parts[*]}" >&2
		exit 2
	fi
done
if [ "$(id -u)" != 0 ]; then
	echo "not ok night: the tests load BPF programs: run them as root"
	exit 1
fi
third=$((budget / 3))
mkdir -p "$LOGS"
rm -f "$LOGS"/*.log

# A part that needs more builds it itself.
if ! make -j "$(nproc)" cudatrace standin cases-progs unit-programs > "$LOGS/build.log" 2>&1; then
	echo "not ok night: the build failed; the end of $LOGS/build.log:"
	tail -n 5 "$LOGS/build.log"
	exit 1
fi

# Seeds that follow from the time, so that each night has others; by every way, with as many threads and calls as they say.
diary() {
	local first status until=$((SECONDS + third))
	first=$(($(date +%s) * 1000))
	while [ $SECONDS -lt $until ]; do
		tests/diary/run.py --seeds "$first..$((first + 4))" --threads $((first / 5 % 12 + 1)) --calls $((first / 60 % 400 + 20))
		status=$?
		[ $status -le 1 ] || return $status # it does not run at all
		first=$((first + 5))
	done
	return 0
}

# Each target for a share of a third.
fuzz() {
	if ! make -j "$(nproc)" fuzz-programs fuzz-seeds > "$LOGS/fuzz-build.log" 2>&1; then
		echo "not ok fuzz: the build failed: $(tail -n 1 "$LOGS/fuzz-build.log")"
		return 1
	fi
	rm "$LOGS/fuzz-build.log"
	tests/fuzz/run.sh $((third / $(tests/fuzz/run.sh -l | wc -l) + 1))
}

# Which survive is for people to judge: it fails only when it cannot run.
mutated() {
	local result=ok
	scripts/mutate.py --random "$1" "$(date +%s)" > "$LOGS/mutants.log" 2>&1 || result="not ok"
	cat "$LOGS/mutants.log"
	echo "$result mutate: $(tail -n 1 "$LOGS/mutants.log")"
}

stripped() {
	tests/wheels.sh --all
	tests/stripped.sh
}

cupti() {
	tests/wheels.sh --cupti
	tests/agent/versions.sh
}

by_hooks() {
	SOURCE=hooks tests/cases/run.sh 'scopes_*' 'operators_*' 'collectives_*' 'nvtx3_*'
}

multi() {
	CUDATRACE=$PWD/tests/cases/with-multi tests/cases/run.sh --links
}

# left_of GROUP: its processes that have not ended, even a while after its end.
left_of() {
	local left
	for _ in {1..50}; do
		left=$(ps -eo pgid=,stat=,pid=,comm= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ { printf "%s %s ", $3, $4 }')
		[ -n "$left" ] || return 0
		sleep 0.1
	done
	echo "$left"
}

# Whoever ends this script ends the part that runs, too.
group=
# shellcheck disable=SC2317 # called by trap
ended() {
	[ -z "$group" ] || kill -TERM -- "-$group" 2> /dev/null
	exit 1
}
trap ended TERM INT HUP

# part NAME COMMAND...: its lines, and its counts. It has a process group of its own, of which nothing may be left at its end.
part() {
	local name=$1 began=$SECONDS log=$LOGS/$1.log status left
	[[ " ${ONLY:-$name} " = *" $name "* ]] || return 0
	shift
	set -m
	"$@" > "$log" 2>&1 < /dev/null &
	group=$!
	set +m
	wait "$group"
	status=$?
	left=$(left_of "$group")
	if [ -n "$left" ]; then
		echo "not ok $name: left running at its end: $left" >> "$log"
		kill -KILL -- "-$group" 2> /dev/null
	fi
	group=
	if ! grep -qE '^(ok|not ok|skip) ' "$log"; then
		echo "not ok $name: no result: $(tail -n 1 "$log")" >> "$log"
	elif [ "$status" != 0 ] && ! grep -q '^not ok ' "$log"; then
		echo "not ok $name: ended with status $status: $(tail -n 1 "$log")" >> "$log"
	fi
	echo "$name: $(grep -c '^ok ' "$log") passed, $(grep -c '^not ok ' "$log") failed, $(grep -c '^skip ' "$log") skipped ($((SECONDS - began)) s)"
	grep -E '^(not ok|skip) ' "$log" | cut -c1-400 | sed 's/^/    /'
}

part diary diary
part fuzz fuzz
part soak scripts/soak.sh "$third" "$LOGS/soak"
part hooks tests/hooks/run.sh --all
part cases-hooks by_hooks
part cases-multi multi
part vm tests/vm/run.sh
part arm64 tests/vm/arm64.sh
part stripped stripped
part cupti cupti
part faults tests/faults/run.py --random 100
part again tests/hostile/again.py
part deeper tests/hostile/deeper.py
part mutate mutated 100
part first-version tests/first_version.sh
part roots tests/dist/roots.sh
rm -f "$LOGS/build.log" "$LOGS/fuzz-build.log" "$LOGS/mutants.log"
passed=$(cat "$LOGS"/*.log | grep -c '^ok ')
failed=$(cat "$LOGS"/*.log | grep -c '^not ok ')
echo "$passed passed, $failed failed, $(cat "$LOGS"/*.log | grep -c '^skip ') skipped"
[ "$failed" = 0 ]
