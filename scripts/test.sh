#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# test.sh - installs what is missing, builds, runs the suites and adds up: scripts/test.sh [--all] [--again]
#
# The tests need root: an ordinary user becomes root by sudo, once, and owns afterwards what was made in the user's copy of the repository.
# Every 30 seconds a line that begins with `#` says what is running.
#
# Without an option it runs what checks the program itself, but for the cases and unit programs that take long. --all, which CI uses, adds these,
# faults, the checks of the source (rules, layout, shell scripts, tables), the same unit tests under the sanitizers, the commands of README and the guides, the cases with the second kind of probes, pushes to an OpenTelemetry collector, another kernel in a virtual machine, browsers and
# other programs that read our files, programs at random with a diary, hostile recordings, the files of a release, the Python package, clang-tidy, and two copies of the tree: the recipes of docs/HOWTO.md followed in one, a build
# by clang of the other.
#
# --again, which CI uses too: a suite in which something failed is run once more at the end, when nothing else of this run is left on
# the machine (of the cases, only those that failed). What passes then is counted as passed, and printed as `unstable`:
# it is a fault of the test or of cudatrace that shows now and then, to be found and mended, but no reason to refuse a change.
#
# A suite is a command that prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` for each test; one without such lines
# may end with `N passed, N failed`. For each suite one line is printed with its counts, and every failed or skipped test;
# all that a suite prints is in .output/test/SUITE.log. A suite that ends with an error, or without a result, or not in
# time, is a failure. The last line is `N passed, N failed, N skipped`; the status is 1 when anything failed. Above it stand once more the last
# lines of each test that failed or was unstable, and at last a line for each that failed: the end of the output is enough to see the cause. The same is
# printed when SIGTERM ends this.
#
# Suites run in a process group of their own with their output in files, and are never waited for beyond their limit:
# a process that the kernel cannot kill does not hold this up.
#
# There are two lanes, because most suites wait for something most of the time. In the first one are the cases, two at a time, and others
# that trace; in the second one those that compile or calculate, and others that take their time; they are judged in the end. When the first
# lane has nothing left, it takes suites from the end of the second: so both end at about the same time, however quick the machine is. A lock
# (tests/machine.sh) keeps a test
# that traces the whole machine from running while the other lane, or another copy of this repository, runs one that it would disturb.
# A line `again NAME` is of a test that a tracer of others has disturbed, and that was run once more.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

# Whoever started this in the background left SIGINT ignored, which a shell cannot undo and the tests of signals would see.
if [ -z "${TEST_SIGNALS_RESET:-}" ]; then
	TEST_SIGNALS_RESET=1 exec env --default-signal scripts/test.sh "$@"
fi
unset TEST_SIGNALS_RESET
export CUDATRACE_TESTS=1 # tells the tracers of the tests from others (tests/lib.sh)
# shellcheck source=scripts/common.sh disable=SC1091
. scripts/common.sh

# Limits are there to end what hangs: each is at least four times what the suite takes on two idle processors, so that other work that has
# all of them does not make a test fail. TOTAL_LIMIT: seconds for everything; what would begin later is not run and counts as failed.
all=false again=false TOTAL_LIMIT=3600
for option in "$@"; do
	case $option in
	--all) all=true TOTAL_LIMIT=5000 ;;
	--again) again=true ;;
	*)
		echo "usage: scripts/test.sh [--all] [--again]" >&2
		exit 2
		;;
	esac
done
LOGS=.output/test
passed=0 failed=0 skipped=0
# The suites in which something failed: how many failures, name, limit, command, as words for the shell.
to_repeat=()
failing=() unstable=() # suites whose failures count, and those that passed when run again
declare -A reasons     # why a suite did not end well by itself
outside=()             # failures outside of suites
took=() # "SECONDS NAME" of each suite
finish() {
	local one
	if [ ${#took[@]} -gt 0 ]; then
		echo "seconds: $(printf '%s\n' "${took[@]}" | sort -rn | head -n 12 | awk '{ printf "%s%s %d", NR == 1 ? "" : ", ", $2, $1 } END { print "" }'); all $SECONDS"
	fi
	if $again; then
		failing=()
		for one in "${to_repeat[@]}"; do
			eval "repeat $one"
		done
	fi
	tell_failures
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}

# told SUITE: each failed test of it, with the last lines that it printed: those before its result, and those that are set in behind it.
# Of a suite that did not end well by itself, the last lines of all.
told() {
	awk -v lines=20 -v most=12 '
		/^(ok|skip|again) / { of = n = 0; next }
		/^not ok / {
			of = ++found <= most ? lines : 0
			if (of) {
				print "    " substr($0, 1, 400)
				for (i = n > lines ? n - lines : 0; i < n; i++)
					print "        " substr(kept[i], 1, 400)
			} else if (found == most + 1)
				print "    and more, which are in the log"
			n = 0
			next
		}
		of > 0 && /^[ \t]/ { print "        " substr($0, 1, 400); of--; next }
		{ of = 0; kept[n++] = $0 }' "$LOGS/$1.log"
	if [ -n "${reasons[$1]:-}" ]; then
		echo "    not ok $1: ${reasons[$1]}; the end of its log:"
		tail -n 20 "$LOGS/$1.log" | cut -c1-400 | sed 's/^/        /'
	fi
}

# What was unstable or failed, where who has only the end of the output finds it.
tell_failures() {
	local one
	for one in "${unstable[@]}"; do
		echo "# $one was unstable:"
		told "$one"
	done
	for one in "${failing[@]}"; do
		echo "# $one failed:"
		told "$one"
	done
	for one in "${failing[@]}"; do
		grep -h '^not ok ' "$LOGS/$one.log" | cut -c1-200 | head -n 20
		[ -z "${reasons[$one]:-}" ] || echo "not ok $one: ${reasons[$one]}"
	done
	[ ${#outside[@]} = 0 ] || printf '%s\n' "${outside[@]}"
}

# A failure outside a suite.
broken() {
	echo "not ok $1: $2"
	outside+=("not ok $1: $2")
	failed=$((failed + 1))
}

if [ "$(id -u)" != 0 ]; then
	# sudo drops what says where compilers and packages are
	kept=("PATH=$PATH")
	for name in CC CLANG CUDA_HOME CCACHE_DIR http_proxy https_proxy no_proxy PIP_INDEX_URL; do
		[ -z "${!name:-}" ] || kept+=("$name=${!name}")
	done
	if ! need_root; then
		broken root "the tests load BPF programs, which needs root"
		finish
	fi
	exec sudo -- env "${kept[@]}" scripts/test.sh "$@"
fi
# What the tests write belongs to root, whoever has become root.
unset SUDO_UID SUDO_GID SUDO_USER SUDO_COMMAND
# shellcheck disable=SC2317 # called at the end
at_exit() {
	[ -z "$lane_pid" ] || kill "$lane_pid" 2> /dev/null
	hand_back
}
# shellcheck disable=SC2317 # called by a signal
# What is told to end says what has failed so far, and what it was doing.
at_term() {
	local log
	trap - TERM
	[ -z "${now_pid:-}" ] || kill -TERM -- "-$now_pid" 2> /dev/null
	echo "# told to end (SIGTERM) after $SECONDS s, in: ${now_in:-} $(cat "$LOGS/lane.now" 2> /dev/null)"
	for log in "$LOGS"/*.log; do
		log=${log##*/}
		! grep -q '^not ok ' "$LOGS/$log" || failing+=("${log%.log}")
	done
	mapfile -t failing < <(printf '%s\n' "${failing[@]}" | sort -u | sed '/^$/d')
	tell_failures
	echo "not ok test.sh: ended by SIGTERM after $SECONDS s"
	exit 143
}
lane_pid=
trap at_exit EXIT
trap at_term TERM
mkdir -p "$LOGS"
rm -rf "${LOGS:?}"/*

# done_in NAME: how far a suite or a build is.
done_in() {
	local tests
	tests=$(grep -cE '^(ok|not ok|skip) ' "$LOGS/$1.log" 2> /dev/null)
	if [ "${tests:-0}" -gt 0 ]; then
		echo "$1 ($tests tests done)"
	else
		echo "$1 ($(wc -l 2> /dev/null < "$LOGS/$1.log" || echo 0) lines)"
	fi
}

# beat NAME: says every 30 seconds what runs, and what runs beside it in the second lane.
beaten=0
beat() {
	local beside='' failures
	((SECONDS - beaten >= 30)) || return 0
	beaten=$SECONDS
	[ -z "$lane_pid" ] || beside=$(cat "$LOGS/lane.now" 2> /dev/null)
	[ -z "$beside" ] || beside=$(done_in "$beside")
	failures=$(grep -hs '^not ok ' "$LOGS"/*.log | sed -E 's/^not ok ([^:]*).*/\1/' | sort -u | paste -sd, | cut -c1-300)
	echo "# $SECONDS s:${1:+ $(done_in "$1")}${1:+${beside:+, beside it}}${beside:+ $beside}${failures:+; failed so far: $failures}"
}

# bounded NAME SECONDS COMMAND...: its output in NAME.log. Sets status; 124 when the time was up. What it, and all that it waited for, took
# of processors is in NAME.cpu, as bash's times prints it.
bounded() {
	local name=$1 log=$LOGS/$1.log rc=$LOGS/$1.rc left=$(($2 < TOTAL_LIMIT - SECONDS ? $2 : TOTAL_LIMIT - SECONDS)) pid until
	shift 2
	until=$((SECONDS + left))
	set -m
	{
		"$@"
		code=$?
		times > "$LOGS/$name.cpu"
		echo $code > "$rc"
	} > "$log" 2>&1 < /dev/null &
	pid=$!
	disown "$pid"
	set +m
	now_in=$name now_pid=$pid
	while [ ! -s "$rc" ] && kill -0 "$pid" 2> /dev/null && [ $SECONDS -lt $until ]; do
		sleep 0.1
		[ -n "${in_lane:-}" ] || beat "$name"
	done
	if [ -s "$rc" ]; then
		status=$(cat "$rc")
	elif kill -0 "$pid" 2> /dev/null; then
		status=124
		kill -TERM -- "-$pid" 2> /dev/null
		sleep 2
		kill -KILL -- "-$pid" 2> /dev/null
		echo "test.sh: not done after $left s" >> "$log"
	else
		status=$(cat "$rc" 2> /dev/null || echo 137)
	fi
	rm -f "$rc"
}

# result NAME: what its log and `status` say: sets p, f, s (passed, failed, skipped) and why, if it did not end well by itself.
result() {
	local log=$LOGS/$1.log
	why=
	p=$(grep -c '^ok ' "$log") f=$(grep -c '^not ok ' "$log") s=$(grep -c '^skip ' "$log")
	if [ $((p + f + s)) = 0 ]; then
		read -r p f s < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 0\4/p' "$log" | tail -n 1)
		p=${p:-0} f=${f:-0} s=$((10#${s:-0}))
	fi
	case $status in
	0) [ $((p + f + s)) != 0 ] || why="no result" ;;
	124) why="not done in time" ;;
	*) [ "$f" != 0 ] || why="ended with status $status" ;;
	esac
	[ -z "$why" ] || f=$((f + 1))
}

# suite NAME SECONDS COMMAND...
suite() {
	local began=$SECONDS
	bounded "$@"
	judge $((SECONDS - began)) "$@"
}

# processors NAME: the seconds of processors that a suite took.
processors() {
	{ tr -s 'ms \n' ' ' < "$LOGS/$1.cpu"; } 2> /dev/null | awk '{ for (i = 1; i < NF; i += 2) s += $i * 60 + $(i + 1) } END { printf "%.0f", s }'
}

# judge TOOK NAME SECONDS COMMAND...: what came of a suite that ran for TOOK seconds and ended with `status`.
judge() {
	local seconds=$1 name=$2 log=$LOGS/$2.log p f s why
	shift
	result "$name"
	took+=("$seconds $name")
	echo "$name: $p passed, $f failed, $s skipped ($seconds s; processors $(processors "$name") s)"
	grep -E '^(not ok|skip|again) ' "$log" | cut -c1-400 | sed 's/^/    /'
	grep -A 2 'FAILED: ' "$log" | cut -c1-400 | head -n 60 | sed 's/^/    /'
	if [ -n "$why" ]; then
		echo "    not ok $name: $why; the end of $log:"
		tail -n 12 "$log" | cut -c1-400 | sed 's/^/        /'
		reasons[$name]=$why
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	if [ "$f" != 0 ]; then
		to_repeat+=("$(printf '%q ' "$f" "$@")")
		failing+=("$name")
	fi
}

# ---- the second lane -----------------------------------------------------------------------------------------------
lane=() # suites, as words for the shell

# behind NAME SECONDS COMMAND...: a suite of the second lane.
behind() {
	lane+=("$(printf '%q ' "$@")")
}

# shellcheck disable=SC2317 # called by eval
# behind_one NAME SECONDS COMMAND...: runs a suite of the second lane, unless the other lane has taken it.
behind_one() {
	local began=$SECONDS
	mkdir "$LOGS/$1.taken" 2> /dev/null || return 0
	[ -z "${in_lane:-}" ] || echo "$1" > "$LOGS/lane.now"
	bounded "$@"
	echo "$status $((SECONDS - began))" > "$LOGS/$1.lane"
}

start_lane() {
	local one
	{
		# shellcheck disable=SC2154 # pid is that of bounded
		trap 'kill -KILL -- "-$pid" 2> /dev/null; exit 1' TERM
		in_lane=1
		for one in "${lane[@]}"; do
			eval "behind_one $one"
		done
	} < /dev/null &
	lane_pid=$!
}

# shellcheck disable=SC2317 # called by eval
judge_behind() {
	local seconds
	if read -r status seconds 2> /dev/null < "$LOGS/$1.lane"; then
		judge "$seconds" "$@"
	else
		broken "$1" "it did not run"
	fi
}

# Takes what the lane has not begun, from its end. Each suite ends within its limit, and so does the lane. It is not waited for by `wait`:
# job control, which bounded turns on and off, lets bash forget a job that has ended.
end_lane() {
	local i one
	for ((i = ${#lane[@]} - 1; i >= 0; i--)); do
		eval "behind_one ${lane[i]}"
	done
	while kill -0 "$lane_pid" 2> /dev/null; do
		sleep 0.1
		beat ''
	done
	lane_pid=
	for one in "${lane[@]}"; do
		eval "judge_behind $one"
	done
}

# shellcheck disable=SC2317 # called by eval
# repeat FAILURES NAME SECONDS COMMAND...: a suite once more. The cases are told which of them failed, and run one at a time.
repeat() {
	local failures=$1 name=$2 began=$SECONDS p f s why
	local names=()
	shift
	[[ $name != cases* ]] || mapfile -t names < <(sed -nE 's/^not ok ([a-z0-9_]+):.*/\1/p' "$LOGS/$name.log")
	CASE_JOBS=1 bounded "$name-again" "${@:2}" "${names[@]}"
	result "$name-again"
	if [ "$f" = 0 ]; then
		echo "unstable: $name: $failures failed, and passed when run again ($((SECONDS - began)) s)"
		passed=$((passed + failures)) failed=$((failed - failures))
		unstable+=("$name")
	else
		failing+=("$name-again")
		[ -z "$why" ] || reasons[$name-again]=$why
		echo "$name: $f failed when run again too ($((SECONDS - began)) s)"
		grep -E '^not ok ' "$LOGS/$name-again.log" | cut -c1-400 | sed 's/^/    /'
	fi
}

# shellcheck disable=SC2317 # called by suite
# as_test NAME COMMAND...: one test out of a command's status; 77 is a skip.
as_test() {
	local name=$1 out code
	shift
	out=$("$@" 2>&1)
	code=$?
	[ -z "$out" ] || echo "$out"
	out=$(tr '\n' ' ' <<< "$out" | tail -c 300)
	case $code in
	0) echo "ok $name" ;;
	77) echo "skip $name: $out" ;;
	*) echo "not ok $name: $out" ;;
	esac
}

# build NAME SECONDS TARGET...: make, counted only when it fails.
build() {
	local name=$1 began=$SECONDS
	bounded "$name" "$2" make -j "$(nproc)" "${@:3}"
	if [ "$status" != 0 ]; then
		broken "$name" "make ${*:3} failed with status $status:"
		grep -E 'error|Error|warning' "$LOGS/$name.log" | head -n 10 | sed 's/^/    /'
		return 1
	fi
	echo "$name: built ($((SECONDS - began)) s)"
}

# shellcheck disable=SC2317
# made TARGET...: a build in the second lane; it fails like a test.
made() {
	as_test "make $*" make -j "$(nproc)" "$@" | grep -E '^(not )?ok |error|Error|warning'
}

# Unit programs that calculate or wait for long: `make unit` and --all run them too.
LONG_UNITS=' compare estimator python resolve scope_sums unwind '

# shellcheck disable=SC2317
# unit_programs PREFIX FOLDER: those that have a source, a test for each, two at a time: many wait most of the time.
unit_programs() {
	local program
	for program in "$2"/test_*; do
		[ -e "tests/unit/${program##*/}.c" ] || continue
		! $all && [[ $LONG_UNITS = *" ${program##*/test_} "* ]] && continue
		while [ "$(jobs -rp | wc -l)" -ge 2 ]; do
			wait -n
		done
		unit_program "$1-${program##*/test_}" "$program" &
	done
	wait
}

# shellcheck disable=SC2317
# unit_program NAME PROGRAM: its lines come together, whatever runs beside it: of one that fails, the last ones of all that it printed.
unit_program() {
	local out
	out=$(as_test "$1" timeout -k 5 600 "$2")
	if [[ $'\n'$out = *$'\n'"not ok $1"* ]]; then
		out=$(tail -n 60 <<< "$out")
	else
		out=$(grep -E "^ok $1( |:|\$)|^skip " <<< "$out")
	fi
	echo "$out"
}

# shellcheck disable=SC2317
# The same under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitized_units() {
	made sanitized
	unit_programs san .output/san/unit
}

# shellcheck disable=SC2317
fuzzed() {
	made fuzz-programs fuzz-seeds
	tests/fuzz/run.sh "$@"
}

# shellcheck disable=SC2317
shell_scripts() {
	local file
	while read -r file; do
		as_test "shellcheck $file" shellcheck -x "$file"
	done < <(find . -path ./.output -prune -o -path ./.git -prune -o -name '*.sh' -print | sort; echo .ci/run)
}

# shellcheck disable=SC2317
standin_checks() {
	local lib
	for lib in .output/standin/libcuda.so.1 .output/standin/libcudart.so.13 .output/standin/12/libcudart.so.12; do
		as_test "standin ${lib##*/}" tests/standin/check.sh "$lib"
	done
}

# A function, so that all of this file is read before the first suite runs.
main() {
	local other stuck
	echo "# $($all && echo 'All suites: this takes about 45 minutes' || echo 'The shorter suites: this takes about ten minutes') on two processors. What each prints is in $LOGS."
	echo "# installing what is missing"
	bounded deps 900 scripts/deps.sh "$($all && echo all || echo test)"
	if [ "$status" != 0 ]; then
		broken deps "$(tail -n 1 "$LOGS/deps.log")"
		finish
	fi
	# A kernel that oopsed while it registered a probe event hangs everybody who registers another one.
	stuck=$(ps -eo stat=,wchan:32=,pid=,comm= | awk '$1 ~ /^D/ && $2 ~ /event|uprobe|perf/ { print $3 " (" $4 ")"; exit }')
	[ -z "$stuck" ] || echo "note: process $stuck is stuck in the kernel while it registers a probe: tests that do the same will hang"
	echo "# building"
	targets=(cudatrace standin programs cases-progs unit-programs)
	build build 3000 "${targets[@]}" || finish
	# Older runtimes for the cases that probe them; what cannot be fetched is skipped there.
	local every=()
	! $all || every=(--all)
	PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=10 bounded wheels 300 tests/wheels.sh "${every[@]}"

	build build-static 1800 static || finish
	# First those whose end others wait for, or that take longest: what is left for the other lane is short.
	behind unit 2400 unit_programs unit .output/unit
	if $all; then
		behind san 4800 sanitized_units
		behind fuzz 4800 fuzzed 15
		behind tree 3600 tests/tree.sh
		behind vm 3600 tests/vm/run.sh 6.1 5.10
		behind tidy 3600 scripts/check_tidy.sh
		behind rules 600 scripts/check_rules.sh
		behind format 900 scripts/check_format.sh
		behind shellcheck 1800 shell_scripts
		behind api 900 as_test "tables agree with CUDA's headers" scripts/check_api.py
		behind arm64 900 as_test "the BPF object compiles for arm64" make bpf-arm64
		behind versions 3600 tests/versions.sh
		behind dist 3600 tests/dist.sh
		behind recipes 2400 tests/recipes.sh
		for other in export flame timeline memory; do
			behind $other 1800 tests/$other/run.sh
		done
		behind attack-files 2400 tests/hostile/files.py
		behind attack-names 1800 tests/hostile/names.py
		behind hostile 1800 tests/export/hostile.py --seeds 2 --seconds 8
		behind tutorial 2400 tests/tutorial.py
		behind python 900 tests/python/run.py
		behind book 900 tests/bench/test_book.py
	else
		behind hooks 900 tests/hooks/run.sh
		behind serve 1800 tests/serve/run.py
	fi
	behind agent 600 tests/agent/run.sh
	behind standin 600 standin_checks
	behind docs 600 tests/docs.sh
	behind install 600 tests/install.sh
	behind hardening 300 tests/hardening.sh cudatrace .output/static/cudatrace
	behind export-files 1800 tests/export/files.sh
	behind nsys 600 tests/export/nsys.py
	behind identity 600 tests/export/identity.py
	start_lane
	if $all; then
		suite hooks 3600 tests/hooks/run.sh --builds
		suite cases 6000 tests/cases/run.sh --jobs 2
		suite cases-multi 3600 env CUDATRACE="$PWD/tests/cases/with-multi" tests/cases/run.sh --short --jobs 2 --links
		suite cases-hooks 1800 env SOURCE=hooks tests/cases/run.sh --short --jobs 2 'scopes_*' 'operators_*' 'collectives_*' 'nvtx3_*'
		suite serve 1800 tests/serve/run.py
		suite faults 1200 tests/faults/run.py --fixed
		suite serve-web 1200 tests/serve/web.py
		suite otlp 1800 tests/export/otlp.py
		suite top 1800 tests/top/run.sh
		suite bpftrace 1800 tests/bpftrace/run.sh
		suite diary 1800 tests/diary/run.py --fixed
		suite attack 1800 tests/hostile/attack.py
		suite attack-agents 1800 env SEED=7 tests/hostile/agents.py
		suite attack-shown 1800 tests/hostile/shown.py
		suite attack-afresh 1800 tests/hostile/afresh.py
		suite attack-anew 1800 tests/hostile/anew.py
		suite soak 900 scripts/soak.sh 60 .output/soak
	else
		suite cases 2400 tests/cases/run.sh --short --jobs 2
		grep 'are left out' "$LOGS/cases.log" | sed 's/^/    /'
	fi
	end_lane
	finish
}
main
