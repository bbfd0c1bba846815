#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - runs the real-BPF cases: tests/cases/run.sh [--short] [--jobs N] [--links] [-l] [NAME-GLOB...]
#
# Needs root, ./cudatrace and the programs of `make cases-progs`. Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`
# for each case, with the seconds that it took, and those of processors that it and all that it waited for took, and at last `N passed, N failed, N skipped`; the status is 1 when one failed. -l lists
# the cases. --short leaves out those that take long: `# long` stands behind their names. --links runs the files of cases that depend on
# how a function is probed; for the others a record is a record, whatever probe it comes from.
# --jobs N: N cases beside each other (1; CASE_JOBS in the environment is stronger). Each job has copies of the programs and libraries that its cases trace.
# SOURCE=hooks runs them by hooks in the place of probes, SOURCE=auto by both, but for those that unsuited-hooks names.
#
# Behind the name of a case that traces the whole machine stands `# machine`, behind one that such a tracer would disturb `# undisturbed`. A
# lock, which all that run on this machine take, keeps the two apart: the first has it alone, the second share it. These cases come first,
# so that they do not wait for the tests of serve, which have the lock alone and come last in scripts/test.sh. A job takes none of them that
# would have to wait for another job's, while there are others. Tracers of others take no
# lock: a case that they disturb is run again when they have gone, TRIES times in all (3), for which a line `again NAME: why` is printed.
# lib.sh says how it is judged.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib.sh disable=SC1091
. "$here/../lib.sh"
# shellcheck source=tests/machine.sh disable=SC1091
. "$here/../machine.sh"
[ -z "${SOURCE:-}" ] || export CUDATRACE=$here/with-hooks SOURCE
for file in "$here"/[a-z]*.sh; do
	[ "$file" = "$here/run.sh" ] && continue
	# shellcheck disable=SC1090
	. "$file"
done

one() {
	# shellcheck disable=SC2034
	T=$2
	cd "$ROOT" || exit 1
	# shellcheck disable=SC2154
	trap 'for p in $(jobs -p); do kill -KILL "$p"; done 2> /dev/null' EXIT
	"case_$1"
}

if [ "${1:-}" = --one ]; then
	one "$2" "$3"
	exit 0
fi

# In the order in which they stand in the files; those that take the lock come first.
long='^$'
if [ "${1:-}" = --short ]; then
	long='# long'
	shift
fi
jobs=1
if [ "${1:-}" = --jobs ]; then
	jobs=${CASE_JOBS:-$2}
	shift 2
fi
files=("$here"/[a-z]*.sh)
if [ "${1:-}" = --links ]; then
	files=("$here"/{badday,calls,hostile,library,options,output,privileges,process,stacks,stat,stuck,unprobed}.sh)
	shift
fi
mapfile -t names < <(cat "${files[@]}" | grep -v "$long" | sed -n 's/^case_\([a-z0-9_]*\)() {.*/\1/p')
declare -A marks # the words behind a case's name
while read -r name words; do
	marks[$name]=$words
done < <(cat "${files[@]}" | sed -n 's/^case_\([a-z0-9_]*\)() {[ #]*/\1 /p')
alone=() undisturbed=() others=()
for name in "${names[@]}"; do
	case " ${marks[$name]} " in
	*" machine "*) alone+=("$name") ;;
	*" undisturbed "*) undisturbed+=("$name") ;;
	*) others+=("$name") ;;
	esac
done
names=("${alone[@]}" "${undisturbed[@]}" "${others[@]}")
if [ "${1:-}" = -l ]; then
	printf '%s\n' "${names[@]}"
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	echo "run.sh: the cases load BPF programs: run them as root" >&2
	exit 2
fi
for need in "$CUDATRACE" "$CALLS" "$SAMPLE"; do
	if [ ! -x "$need" ]; then
		echo "run.sh: $need is missing: run make first" >&2
		exit 2
	fi
done

# A tracer that follows a program's children puts breakpoints into every process that has the same library. So the programs and libraries of
# this run are copies of its own: only tracers of the whole machine reach them from elsewhere. What we find through OUT otherwise is where it was.
own_copies() {
	local of
	COPIES=$(mktemp -d "$OUT/own.XXXXXX") || exit 1
	trap 'rm -rf "$COPIES"' EXIT
	chmod 755 "$COPIES"
	mkdir "$COPIES/.output"
	# the sample looks for .output/standin beside it
	cp -a "$STANDIN" "$BIN" "$COPIES/.output" || exit 1
	cp -a "$SAMPLE" "$COPIES" || exit 1
	for of in "$OUT"/*; do
		[ -e "$COPIES/.output/${of##*/}" ] || [[ $of = */own.* ]] || ln -s "$of" "$COPIES/.output"
	done
	export OUTPUT=$COPIES/.output SAMPLE=$COPIES/${SAMPLE##*/}
}

for program in "$BIN"/*; do
	[ "$here/prog/${program##*/}.c" -nt "$program" ] && echo "run.sh: $program is older than its source: run make cases-progs" >&2
done

wanted() {
	local glob
	[ $# -gt 1 ] || return 0
	for glob in "${@:2}"; do
		# shellcheck disable=SC2053
		[[ $1 = $glob ]] && return 0
	done
	return 1
}

# Why a case cannot be run by the source that is asked for; false: it can.
unsuited() {
	local glob why
	[ -n "${SOURCE:-}" ] || return 1
	while read -r glob why; do
		# shellcheck disable=SC2053
		[[ $glob != '#' && $1 = $glob ]] && echo "$why" && return 0
	done < "$here/unsuited-hooks"
	return 1
}

# how_of NAME: how a case is run: alone on the machine, undisturbed, or as it comes. Where a tracer of the whole machine has breakpoints there are no hooks.
how_of() {
	case " ${marks[$1]} " in
	*" machine "*) echo alone ;;
	*" undisturbed "*) echo undisturbed ;;
	*) [ -n "${SOURCE:-}" ] && echo undisturbed || echo any ;;
	esac
}

# run NAME HOW: sets dir, status, why, took.
run() {
	local began marked=(env "--default-signal=INT,QUIT") # which a job in the background ignores
	dir=$(mktemp -d "${TMPDIR:-/tmp}/cudatrace-case.XXXXXX")
	chmod 755 "$dir"
	case $2 in
	alone) marked+=(UNDISTURBED=) ;;
	undisturbed) marked+=(UNDISTURBED=1) ;;
	esac
	machine_take "$2"
	began=${EPOCHREALTIME/./}
	{
		TIMEFORMAT='%U %S'
		time "${marked[@]}" timeout -k 2 "${CASE_TIMEOUT:-300}" "$BASH" "$0" --one "$1" "$dir" > "$dir/log" 2>&1 9>&-
	} 2> "$dir/cpu"
	status=$?
	took=$(((${EPOCHREALTIME/./} - began) / 100000))
	machine_leave
	why=$(cat "$dir/why" 2> /dev/null || tail -n 1 "$dir/log")
}

# Waits until no tracer of the whole machine is there; false: one stays.
without_tracers() {
	local dir status
	dir=$(mktemp -d "${TMPDIR:-/tmp}/cudatrace-case.XXXXXX")
	timeout -k 2 100 "$BASH" "$0" --one without_tracers "$dir" > /dev/null 2>&1
	status=$?
	rm -rf "$dir"
	[ "$status" = 0 ]
}

# tell NAME LINES: prints a case's result, and counts it.
tell() {
	echo "$2"
	echo "${2%% *} $1" >> "$QUEUE/told"
}

# judge_one NAME: runs a case, as often as it is disturbed, and prints what came of it.
judge_one() {
	local name=$1 left
	for ((left = ${TRIES:-3} - 1; ; left--)); do
		run "$name" "$(how_of "$name")"
		if [ "$status" = 0 ] || [ ! -e "$dir/disturbed" ] || [ "$left" = 0 ] || [ "$stays$status" = 177 ]; then
			break
		fi
		echo "again $name: $why"
		[ -n "$stays" ] || without_tracers || stays=1
		rm -rf "$dir"
	done
	case $status in
	0) tell "$name" "ok $name ($((took / 10)).$((took % 10)) s; processors $(awk '{ printf "%.1f", $1 + $2 }' "$dir/cpu") s)" ;;
	77) tell "$name" "skip $name: $why" ;;
	124 | 137) tell "$name" "not ok $name: took too long; $why"$'\n'"$(said_last "$dir")" ;;
	*) tell "$name" "not ok $name: $why"$'\n'"$(said_last "$dir")" ;;
	esac
	if [ -n "${KEEP:-}" ] && [ "$status" != 0 ]; then
		echo "   kept $dir"
	else
		rm -rf "$dir"
	fi
}

# ---- jobs ----
# $QUEUE/left has the names of the cases that nobody has begun, each with how it is run; $QUEUE/run.N the one of job N.

# take N: the next case for job N in `name`; false: there is none. It is the first that need not wait for what other jobs run, if there is one.
take() {
	local running first='' line how
	exec 7> "$QUEUE/lock"
	flock 7
	rm -f "$QUEUE/run.$1"
	running=$(cat "$QUEUE"/run.* 2> /dev/null)
	name=
	while read -r line how; do
		first=${first:-$line $how}
		case $how in
		alone) [[ $running = *alone* || $running = *undisturbed* ]] && continue ;;
		undisturbed) [[ $running = *alone* ]] && continue ;;
		esac
		name="$line $how"
		break
	done < "$QUEUE/left"
	name=${name:-$first}
	if [ -n "$name" ]; then
		echo "$name" > "$QUEUE/run.$1"
		grep -vxF "$name" "$QUEUE/left" > "$QUEUE/rest"
		mv "$QUEUE/rest" "$QUEUE/left"
	fi
	exec 7>&-
	name=${name% *}
	[ -n "$name" ]
}

# job N: cases, until there are none.
job() {
	local stays='' # another tracer, which did not go while we waited
	trap 'exit 1' INT TERM HUP
	own_copies
	while take "$1"; do
		judge_one "$name"
	done
}

# shellcheck disable=SC2317 # called at the end
at_end() {
	local pid
	for pid in $(jobs -p); do
		kill "$pid" 2> /dev/null
		wait "$pid"
	done
	rm -rf "$QUEUE"
}

trap 'exit 1' INT TERM HUP
QUEUE=$(mktemp -d "${TMPDIR:-/tmp}/cudatrace-cases.XXXXXX") || exit 1
trap at_end EXIT
touch "$QUEUE/left" "$QUEUE/told"
chosen=()
for name in "${names[@]}"; do
	wanted "$name" "$@" || continue
	chosen+=("$name")
	if why=$(unsuited "$name"); then
		tell "$name" "skip $name: not by hooks: $why"
	else
		echo "$name $(how_of "$name")" >> "$QUEUE/left"
	fi
done
for ((n = 1; n <= jobs; n++)); do
	job "$n" &
done
wait
[ "$long" = '^$' ] || echo "$(cat "$here"/[a-z]*.sh | grep -c '^case_[a-z0-9_]*() { # long') cases that take long are left out: --all runs them"
failed=$(grep -c '^not ' "$QUEUE/told")
# a job may have been ended, or had no room for what it had to remember
for name in "${chosen[@]}"; do
	grep -q " $name\$" "$QUEUE/told" || {
		echo "not ok $name: its job ended without a result"
		failed=$((failed + 1))
	}
done
echo "$(grep -c '^ok ' "$QUEUE/told") passed, $failed failed, $(grep -c '^skip ' "$QUEUE/told") skipped"
[ "$failed" = 0 ]
