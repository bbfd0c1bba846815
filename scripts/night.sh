#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# night.sh - what takes too long for every change: scripts/night.sh [HOURS]. Needs root, and what `scripts/deps.sh all` installs.
#
# In HOURS (8; a fraction may be given, as 0.5) it runs programs at random with a diary, each time with seeds that nobody has run, for a
# third; each fuzz target for a third together; the soak for a third; and once the other kernels and aarch64 in their virtual machines, version
# 0.1.0 on recordings of today, a hundred faults at random moments, the attacks that CI leaves out, a hundred checks of the parsers that are
# taken out, and the packages and names of packages in root file systems of Debian and Ubuntu, which are fetched (debootstrap, and dnf and
# createrepo-c, have to be installed for that). Seeds that fail are made smaller, and their commands printed. All that a suite prints is in
# .output/night. Prints `ok` and `not ok` lines, at last `N passed, N failed, N skipped`; the status is 1 when anything failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

LOGS=.output/night
budget=$(awk -v h="${1:-8}" 'BEGIN { printf "%d", h * 3600 }')
if [ "$budget" -lt 60 ] || [ $# -gt 1 ]; then
	echo "usage: scripts/night.sh [HOURS]: a minute at least" >&2
	exit 2
fi
if [ "$(id -u)" != 0 ]; then
	echo "not ok night: the tests load BPF programs: run them as root"
	exit 1
fi
third=$((budget / 3))
mkdir -p "$LOGS"
rm -f "$LOGS"/*.log

if ! make -j "$(nproc)" cudatrace static standin cases-progs unit-programs fuzz-programs fuzz-seeds > "$LOGS/build.log" 2>&1; then
	echo "not ok night: the build failed; the end of $LOGS/build.log:"
	tail -n 5 "$LOGS/build.log"
	exit 1
fi

# Seeds that follow from the time, so that each night has others; by every way, with as many threads and calls as they say.
diary() {
	local first until=$((SECONDS + third))
	first=$(($(date +%s) * 1000))
	while [ $SECONDS -lt $until ]; do
		tests/diary/run.py --seeds "$first..$((first + 4))" --threads $((first / 5 % 12 + 1)) --calls $((first / 60 % 400 + 20))
		first=$((first + 5))
	done
	return 0
}

diary > "$LOGS/diary.log" 2>&1
tests/fuzz/run.sh $((third / $(tests/fuzz/run.sh -l | wc -l) + 1)) > "$LOGS/fuzz.log" 2>&1
scripts/soak.sh "$third" "$LOGS/soak" > "$LOGS/soak.log" 2>&1
tests/vm/run.sh > "$LOGS/vm.log" 2>&1
tests/vm/arm64.sh > "$LOGS/arm64.log" 2>&1
tests/faults/run.py --random 100 > "$LOGS/faults.log" 2>&1
tests/hostile/again.py > "$LOGS/again.log" 2>&1
tests/hostile/deeper.py > "$LOGS/deeper.log" 2>&1
# Which survive is for people to judge: it fails only when it cannot run.
if scripts/mutate.py --random 100 "$(date +%s)" > "$LOGS/mutate.log" 2>&1; then
	echo "ok mutate: $(tail -n 1 "$LOGS/mutate.log")" >> "$LOGS/mutate.log"
else
	echo "not ok mutate: $(tail -n 1 "$LOGS/mutate.log")" >> "$LOGS/mutate.log"
fi
tests/first_version.sh > "$LOGS/first-version.log" 2>&1
tests/dist/roots.sh > "$LOGS/roots.log" 2>&1
for name in diary fuzz soak vm arm64 faults again deeper mutate first-version roots; do
	if ! grep -qE '^(ok|not ok|skip) ' "$LOGS/$name.log"; then
		echo "not ok $name: no result" >> "$LOGS/$name.log"
	fi
	echo "$name: $(grep -c '^ok ' "$LOGS/$name.log") passed, $(grep -c '^not ok ' "$LOGS/$name.log") failed"
	grep -E '^(not ok|skip) ' "$LOGS/$name.log" | sed 's/^/    /'
done
passed=$(cat "$LOGS"/*.log | grep -c '^ok ')
failed=$(cat "$LOGS"/*.log | grep -c '^not ok ')
echo "$passed passed, $failed failed, $(cat "$LOGS"/*.log | grep -c '^skip ') skipped"
[ "$failed" = 0 ]
