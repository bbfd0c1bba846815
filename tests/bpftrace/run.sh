#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016
# run.sh - tests scripts/cuda_events.sh and cuda_events.bt: tests/bpftrace/run.sh [NAME-GLOB...]
#
# Needs root and the stand-in (`make standin`). Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`, and at last
# `N passed, N failed, N skipped`. How the library is found is looked at through --print, in pid and mount namespaces
# that hold nothing else. The rows_* cases run bpftrace on real probes: the rows must be those that the target names.
#
# A kernel that has crashed while it registered an event lets every later registration hang, and nothing can end a
# process that hangs so. Whether this is such a machine is found out first, and no process that attaches is ever waited
# for without a limit: it runs in the background with its output in files.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/machine.sh disable=SC1091
. tests/machine.sh
ROOT=$PWD
OUT=${OUTPUT:-$ROOT/.output}
[[ $OUT = /* ]] || OUT=$ROOT/$OUT
EVENTS=$ROOT/scripts/cuda_events.sh
STANDIN=$OUT/standin/libcudart.so.13
export LC_ALL=C
unset CUDA_HOME CONDA_PREFIX
cases=(syntax error_names find_pid find_pid_deleted find_pid_namespace find_process find_cuda_home find_ld_cache
	find_conda find_python find_usual_place option_library odd_paths errors no_root no_bpftrace
	rows_standin rows_real rows_pid)

fail() {
	echo "${*//$'\n'/ | }" > "$T/why"
	exit 1
}

skip() {
	echo "${*//$'\n'/ | }" > "$T/why"
	exit 77
}

# until_true SECONDS COMMAND...: whether the command succeeds in that time.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2> /dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

ended() {
	! kill -0 "$1"
}

# target LIBRARY [COMMAND...]: starts it (by COMMAND); it waits for a line. Its number in $pid, its output in $T/target.out.
target() {
	local lib=$1
	shift
	rm -f "$T/in" "$T/target.out"
	mkfifo "$T/in"
	"$@" "$TARGET" "$lib" < "$T/in" > "$T/target.out" 2>&1 &
	pid=$!
	exec 9> "$T/in"
	until_true 20 grep -q '^ready' "$T/target.out" || fail "the target did not start: $(cat "$T/target.out")"
}

# bpftrace counts processes as the whole machine does: -p is refused elsewhere.
needs_first_namespace() {
	[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] || skip "this is inside a pid namespace"
}

# prints WORDS...: what --print prints has each of them on a line, and a probe of each kind for each of the functions.
prints() {
	local words
	for words; do
		grep -q -F -- "$words" "$T/out" || fail "--print has no '$words': $(grep -m 2 -E '^(//|uprobe)' "$T/out") $(cat "$T/err")"
	done
	[ "$(grep -c '^uprobe:' "$T/out") $(grep -c '^uretprobe:' "$T/out")" = "11 11" ] || fail "not 11 and 11 probes"
	! grep -q 'LIBCUDART:' "$T/out" || fail "--print still has the placeholder"
}

events() {
	"$EVENTS" "$@" > "$T/out" 2> "$T/err" < /dev/null
}

# says STATUS-OF-COMMAND WORDS: it failed, and said so in one line that has the words.
says() {
	[ "$1" = 1 ] || fail "status $1, not 1: $(cat "$T/err")"
	grep -q -E -- "$2" "$T/err" || fail "stderr does not say '$2': $(cat "$T/err")"
	[ "$(wc -l < "$T/err")" = 1 ] || fail "more than one line: $(cat "$T/err")"
}

# alone COMMANDS: in namespaces where no other process is seen and nothing is in the places where libraries are looked
# for; $T/bin stands first in the PATH. CASE_T is $T there.
alone() {
	mkdir -p "$T/bin"
	for tool in ldconfig python3; do
		[ -e "$T/bin/$tool" ] || printf '#!/bin/sh\nexit 1\n' > "$T/bin/$tool"
		chmod +x "$T/bin/$tool"
	done
	unshare -m -p -f --mount-proc true 2> /dev/null || skip "no namespaces can be made here"
	export T TARGET EVENTS
	PATH=$T/bin:$PATH unshare -m -p -f --mount-proc bash -c \
		'[ ! -d /usr/local/cuda ] || mount -t tmpfs none "$(readlink -f /usr/local/cuda)" || exit 99
		'"$1" > "$T/out" 2> "$T/err" < /dev/null
}

stuck_now() {
	local task state
	for task in /proc/[0-9]*/task/[0-9]*; do
		state=$(sed 's/.*) //' "$task/stat" 2> /dev/null)
		[ "${state:0:1}" = D ] || continue
		grep -q -s -E 'dyn_event|trace_uprobe|trace_kprobe|perf_trace|perf_uprobe|perf_kprobe|uprobe_register' \
			"$task/stack" "$task/wchan" && echo "${task##*/}"
	done
}

# The reason why nothing can be probed here, or nothing. A registration takes milliseconds: one that is there after two
# seconds hangs.
unprobeable() {
	local before after probe rc=$T/probe.rc
	[ "$(id -u)" = 0 ] || { echo "needs root"; return; }
	command -v bpftrace > /dev/null || { echo "bpftrace is not installed"; return; }
	before=$(stuck_now)
	if [ -n "$before" ]; then
		sleep 2
		after=$(comm -12 <(sort <<< "$before") <(stuck_now | sort) | head -n 1)
		[ -z "$after" ] || { echo "registering an event hangs in this kernel (see task $after)"; return; }
	fi
	# BEGIN alone registers a probe, on bpftrace itself.
	rm -f "$rc"
	(
		exec > /dev/null 2>&1 < /dev/null
		bpftrace -q -e 'BEGIN { exit(); }'
		echo $? > "$rc"
	) &
	probe=$!
	disown "$probe"
	if ! until_true 60 test -s "$rc"; then
		kill -KILL "$probe" 2> /dev/null
		echo "bpftrace does not end: registering an event hangs in this kernel"
	elif [ "$(cat "$rc")" != 0 ]; then
		echo "bpftrace cannot attach a probe here (status $(cat "$rc") of bpftrace -e 'BEGIN { exit(); }')"
	fi
}

# The newest real libcudart, or nothing.
real() {
	{
		ldconfig -p 2> /dev/null | sed -nE 's|^\tlibcudart\.so\.1[2-9].* => (/.*)$|\1|p'
		ls /usr/local/cuda/lib64/libcudart.so.1[2-9] "$OUT"/wheels/*/libcudart.so.1[2-9] 2> /dev/null
	} | head -n 1
}

perf_events() {
	local fd count=0
	for fd in "/proc/$1/fd/"*; do
		[[ $(readlink "$fd") != *perf_event* ]] || count=$((count + 1))
	done
	echo "$count"
}

# bpftrace has said nothing when it is ready: it is when the file descriptors of its probes are all there, one for each
# of the 22, and for each CPU one for the rows, and no more come.
attached() {
	local tracer count
	ended "$EVENTS_PID" && return 0
	tracer=$(cut -d ' ' -f 1 "/proc/$EVENTS_PID/task/$EVENTS_PID/children")
	[ -n "$tracer" ] || return 1
	count=$(perf_events "$tracer")
	[ "$count" -ge $((22 + $(grep -c '^processor' /proc/cpuinfo))) ] || return 1
	sleep 1
	[ "$count" = "$(perf_events "$tracer")" ]
}

# start ARGS...: the launcher in the background, as EVENTS_PID; returns once it traces.
start() {
	mkdir -p "$T/tmp"
	TMPDIR=$T/tmp "$EVENTS" "$@" > "$T/out" 2> "$T/err" < /dev/null &
	EVENTS_PID=$!
	disown "$EVENTS_PID"
	until_true 120 attached || fail "bpftrace did not attach its probes in 120 s: $(cat "$T/err")"
	! ended "$EVENTS_PID" 2> /dev/null || fail "it ended at once: $(cat "$T/err" "$T/out")"
}

has_rows() {
	[ "$(grep -c -E "^ *[0-9]+\.[0-9]{3} [^ ]+ +$pid " "$T/out")" -ge "$1" ]
}

# The target's calls, and the rows that they gave.
calls() {
	echo >&9
	until_true 20 grep -q '^done' "$T/target.out" || fail "the target did not make its calls"
	grep '^cuda' "$T/target.out" > "$T/want"
	until_true 30 has_rows "$(wc -l < "$T/want")" || true
}

# finish: it must have ended, or end soon, and leave nothing behind.
finish() {
	until_true 60 ended "$EVENTS_PID" || fail "it did not end"
	[ -z "$(ls "$T/tmp")" ] || fail "it left $(ls "$T/tmp") behind"
	grep -q -x 'TIME(ms)   PROCESS         PID        EVENT                DETAILS' "$T/out" ||
		fail "no header: $(head -n 2 "$T/out")"
	sed -nE "s/^ *[0-9]+\.[0-9]{3} target          $pid {1,10}//p" "$T/out" > "$T/got"
	diff "$T/want" "$T/got" > "$T/diff" || fail "rows (< due, > seen): $(head -n 8 "$T/diff"); $(cat "$T/err")"
}

rows() {
	local why
	why=$(unprobeable)
	[ -z "$why" ] || skip "$why"
	target "$1"
	start --library "$1"
	calls
	kill -TERM "$EVENTS_PID"
	finish
}

case_rows_standin() {
	rows "$STANDIN"
}

case_rows_real() {
	local lib
	lib=$(real)
	[ -n "$lib" ] || skip "no real libcudart is here"
	mkdir "$T/a b"
	# By a path that bpftrace cannot say.
	cp -L "$lib" "$T/a b/libcudart\"*.so"
	rows "$T/a b/libcudart\"*.so"
}

# Another process is not shown, and it ends when the process does.
case_rows_pid() {
	needs_first_namespace
	local why other
	why=$(unprobeable)
	[ -z "$why" ] || skip "$why"
	target "$STANDIN"
	start -p "$pid"
	printf '\n\n' | "$TARGET" "$STANDIN" > "$T/other" &
	other=$!
	until_true 20 grep -q '^done' "$T/other" || fail "the other target did not make its calls"
	calls
	echo >&9
	finish
	! grep -q -E "^ *[0-9.]+ target +$other " "$T/out" || fail "it showed process $other too"
}

# bpftrace parses and compiles what --print prints; -d attaches nothing.
case_syntax() {
	needs_first_namespace
	command -v bpftrace > /dev/null || skip "bpftrace is not installed"
	[ "$(id -u)" = 0 ] || skip "bpftrace needs root"
	local compiler
	events --print -p $$ --library "$STANDIN" || fail "--print: $(cat "$T/err")"
	(
		exec > "$T/debug" 2>&1 < /dev/null
		bpftrace -d "$T/out"
		echo $? > "$T/rc"
	) &
	compiler=$!
	disown "$compiler"
	until_true 60 test -s "$T/rc" || fail "bpftrace -d did not end"
	[ "$(cat "$T/rc")" = 0 ] || fail "bpftrace -d: $(grep -m 3 -E 'ERROR|error' "$T/debug" | grep -v RLIMIT)"
	# The last stage is LLVM's; it has a function for each probe.
	[ "$(grep -c -E '^define i64 .*(uprobe|uretprobe)' "$T/debug")" -ge 22 ] || fail "not 22 programs were compiled"
}

# The names in the script are the library's own.
case_error_names() {
	local lib
	lib=$(real)
	[ -n "$lib" ] || skip "no real libcudart is here"
	sed -nE 's/^\t@error\[([1-9][0-9]*)\] = " \((.*)\)";/\1 \2/p' scripts/cuda_events.bt > "$T/names"
	[ "$(wc -l < "$T/names")" -ge 30 ] || fail "fewer than 30 names"
	cut -d ' ' -f 2 "$T/names" > "$T/want"
	# shellcheck disable=SC2046
	"$TARGET" "$lib" $(cut -d ' ' -f 1 "$T/names") > "$T/got" 2>&1
	diff "$T/got" "$T/want" > "$T/diff" || fail "names (< the library's, > the script's): $(cat "$T/diff")"
}

case_find_pid() {
	needs_first_namespace
	target "$STANDIN"
	events --print -p "$pid" || fail "$(cat "$T/err")"
	prints "// library: $STANDIN (mapped by process $pid)" "uprobe:$STANDIN:cudaFree /pid == $pid/" \
		"uretprobe:$STANDIN:cudaMemcpy /pid == $pid/"
	[ "$(grep -c "/pid == $pid/\$" "$T/out")" = 22 ] || fail "not every probe is for the process alone"
}

# Gone from the disk while the process runs: the mapping still leads to it.
case_find_pid_deleted() {
	needs_first_namespace
	local range
	cp -L "$STANDIN" "$T/libcudart.so.12.1"
	cp -L "${STANDIN%/*}/libcuda.so.1" "$T/"
	target "$T/libcudart.so.12.1"
	cp "$T/libcudart.so.12.1" "$T/new"
	mv "$T/new" "$T/libcudart.so.12.1"
	range=$(grep -m 1 'libcudart.*(deleted)' "/proc/$pid/maps" | cut -d ' ' -f 1)
	[ -r "/proc/$pid/map_files/$range" ] || skip "map_files cannot be read here"
	events --print -p "$pid" || fail "$(cat "$T/err")"
	prints "uprobe:/proc/$pid/map_files/$range:cudaMalloc /pid == $pid/"
}

# A path that exists only in the mount namespace of the process.
case_find_pid_namespace() {
	needs_first_namespace
	unshare -m true 2> /dev/null || skip "no mount namespace can be made here"
	mkdir "$T/hidden"
	target "$T/hidden/libcudart.so.13" unshare -m bash -c "mount -t tmpfs none '$T/hidden' &&
		cp -L '${STANDIN%/*}/libcuda.so.1' '$STANDIN' '$T/hidden' && exec \"\$@\"" bash
	events --print -p "$pid" || fail "$(cat "$T/err")"
	prints "uprobe:/proc/$pid/root$T/hidden/libcudart.so.13:cudaMalloc /pid == $pid/"
}

# The name that PyTorch's wheels have given to it, in a process that was not named.
case_find_process() {
	cp -L "$STANDIN" "$T/libcudart-d0da41ae.so.11.0"
	cp -L "${STANDIN%/*}/libcuda.so.1" "$T/"
	mkdir -p "$T/home/lib64"
	cp -L "$STANDIN" "$T/home/lib64/libcudart.so.13"
	alone 'mkfifo "$T/in"; "$TARGET" "$T/libcudart-d0da41ae.so.11.0" < "$T/in" > "$T/target.out" & exec 9> "$T/in"
		for i in {1..200}; do grep -q ready "$T/target.out" && break; sleep 0.1; done
		CUDA_HOME=$T/home "$EVENTS" --print' || fail "status $?: $(cat "$T/err")"
	prints "uprobe:$T/libcudart-d0da41ae.so.11.0:cudaMalloc" "(mapped by process "
}

case_find_cuda_home() {
	mkdir -p "$T/home/lib64"
	cp -L "$STANDIN" "$T/home/lib64/libcudart.so.9"
	cp -L "$STANDIN" "$T/home/lib64/libcudart.so.13"
	printf '#!/bin/sh\nprintf "\\tlibcudart.so.13 (libc6,x86-64) => %s\\n"\n' "$STANDIN" > "$T/ldconfig"
	mkdir "$T/bin"
	mv "$T/ldconfig" "$T/bin/"
	alone 'CUDA_HOME=$T/home "$EVENTS" --print' || fail "status $?: $(cat "$T/err")"
	prints "uprobe:$T/home/lib64/libcudart.so.13:cudaMalloc"
}

case_find_ld_cache() {
	mkdir "$T/bin"
	{
		echo '#!/bin/sh'
		echo 'echo "2 libs found in cache \`/etc/ld.so.cache'"'"'"'
		printf '%s\n' 'printf "\tlibcudart.so.12 (libc6,x86-64) => /nowhere/libcudart.so.12\n"'
		printf 'printf "\\tlibcudart.so.13 (libc6,x86-64) => %%s\\n" "%s"\n' "$STANDIN"
	} > "$T/bin/ldconfig"
	alone 'CUDA_HOME=/nowhere "$EVENTS" --print' || fail "status $?: $(cat "$T/err")"
	prints "uprobe:$STANDIN:cudaMalloc" "ld cache"
}

case_find_conda() {
	mkdir -p "$T/env/lib"
	cp -L "$STANDIN" "$T/env/lib/libcudart.so.12.4.99"
	alone 'CONDA_PREFIX=$T/env "$EVENTS" --print' || fail "status $?: $(cat "$T/err")"
	prints "uprobe:$T/env/lib/libcudart.so.12.4.99:cudaMalloc"
}

# The folders of the wheels: of CUDA 12 and older, and of 13.
case_find_python() {
	local folder
	mkdir "$T/bin"
	printf '#!/bin/sh\necho /nowhere\necho %s/site\n' "$T" > "$T/bin/python3"
	for folder in nvidia/cuda_runtime/lib nvidia/cu13/lib; do
		rm -rf "$T/site"
		mkdir -p "$T/site/$folder"
		cp -L "$STANDIN" "$T/site/$folder/libcudart.so.13"
		alone '"$EVENTS" --print' || fail "status $?: $(cat "$T/err")"
		prints "uprobe:$T/site/$folder/libcudart.so.13:cudaMalloc"
	done
	# And the real python3 must understand the question.
	rm -rf "${T:?}/bin"
	! command -v python3 > /dev/null || {
		mkdir "$T/bin"
		printf '#!/bin/sh\nunset PATH\nexec %s "$@" 2> %s/python.err\n' "$(command -v python3)" "$T" > "$T/bin/python3"
		alone '"$EVENTS" --print'
		[ ! -s "$T/python.err" ] || fail "python3: $(cat "$T/python.err")"
	}
}

case_find_usual_place() {
	local place=/usr/local/cuda
	[ -d $place ] || skip "there is no $place to mount on"
	alone 'mkdir /usr/local/cuda/lib64 && cp -L '"$STANDIN"' /usr/local/cuda/lib64/libcudart.so.13 && "$EVENTS" --print' ||
		fail "status $?: $(cat "$T/err")"
	prints "uprobe:$place/lib64/libcudart.so.13:cudaMalloc"
}

case_option_library() {
	cp -L "$STANDIN" "$T/mine.so"
	cd "$T" || exit 1
	events --print --library mine.so || fail "$(cat "$T/err")"
	prints "uprobe:$T/mine.so:cudaMalloc" "given by --library"
	! grep -q '^u.*/pid' "$T/out" || fail "it filters by process without -p"
}

# No path ends or changes the text around it.
case_odd_paths() {
	needs_first_namespace
	local name
	for name in 'a b' 'a|b&c\1' "it's" '$(touch x)' 'a;b*[c]?'; do
		mkdir "$T/$name"
		cp -L "$STANDIN" "$T/$name/libcudart.so.13"
		events --print --library "$T/$name/libcudart.so.13" || fail "$name: $(cat "$T/err")"
		prints "uprobe:\"$T/$name/libcudart.so.13\":cudaMalloc"
	done
	target "$T/a b/libcudart.so.13"
	events --print -p "$pid" || fail "$(cat "$T/err")"
	prints "uprobe:\"$T/a b/libcudart.so.13\":cudaMalloc /pid == $pid/"
}

case_errors() {
	needs_first_namespace
	events --print --library /nowhere/libcudart.so
	says $? '/nowhere/libcudart.so is not a file: give --library'
	events --print --library /bin/true
	says $? '/bin/true has no cudaLaunchKernel'
	events --print -p 4194999
	says $? 'there is no process 4194999'
	events --print -p '1; rm'
	says $? "'1; rm' is not the number of a process"
	events --print -p
	says $? '-p needs a value'
	events --what
	says $? "'--what' is not an option"
	events --print -p $$
	says $? "process $$ has no libcudart mapped"
	events --help || fail "--help: $(cat "$T/err")"
	grep -q '^Usage: ' "$T/out" || fail "--help prints no usage"
	alone '"$EVENTS" --print'
	says $? 'no libcudart was found: start the CUDA program first, set CUDA_HOME, or give --library PATH'
	alone '"$EVENTS" --print -p 1 --library '"$STANDIN"
	says $? 'inside a pid namespace'
}

case_no_root() {
	command -v setpriv > /dev/null || skip "setpriv is not installed"
	cp "$EVENTS" "$ROOT/scripts/cuda_events.bt" "$T/"
	cp -L "$STANDIN" "$T/libcudart.so.13"
	chmod -R go+rX "$T"
	# Not in $T itself: an ordinary user cannot write there.
	setpriv --reuid 65534 --regid 65534 --clear-groups "$T/cuda_events.sh" --library "$T/libcudart.so.13" \
		> "$T/out" 2> "$T/err" < /dev/null
	says $? 'probes need root: type sudo'
}

case_no_bpftrace() {
	local tool
	mkdir "$T/tools"
	for tool in bash id readlink dirname grep sed cat; do
		ln -s "$(command -v $tool)" "$T/tools/$tool"
	done
	PATH=$T/tools "$BASH" -c 'PATH=$PATH:/usr/sbin:/sbin; command -v bpftrace' > /dev/null && skip "bpftrace is in /usr/sbin"
	PATH=$T/tools "$BASH" "$EVENTS" --library "$STANDIN" > "$T/out" 2> "$T/err" < /dev/null
	says $? 'bpftrace is not installed: type apt install bpftrace'
}

wanted() {
	local glob
	[ $# -gt 1 ] || return 0
	for glob in "${@:2}"; do
		# shellcheck disable=SC2053
		[[ $1 = $glob ]] && return 0
	done
	return 1
}

if [ "$(id -u)" != 0 ]; then
	echo "run.sh: probes and namespaces need root: run this as root" >&2
	exit 2
fi
if [ ! -e "$STANDIN" ]; then
	echo "run.sh: $STANDIN is missing: run make standin first" >&2
	exit 2
fi
WORK=$(mktemp -d)
chmod 755 "$WORK"
trap 'rm -rf "$WORK"' EXIT
# A target that was built before is for machines without a compiler.
if [ -z "${TARGET:-}" ]; then
	TARGET=$WORK/target
	"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -o "$TARGET" tests/bpftrace/target.c -ldl || exit 2
fi

passed=0 failed=0 skipped=0
for name in "${cases[@]}"; do
	wanted "$name" "$@" || continue
	T=$WORK/$name
	mkdir "$T"
	chmod 755 "$T"
	machine_take alone # its probes are in every program that has the library
	(
		exec 9>&-
		trap 'exec 9>&-; [ -z "${EVENTS_PID:-}" ] || kill -TERM "$EVENTS_PID" 2> /dev/null' EXIT
		"case_$name"
	) > "$T/log" 2>&1
	status=$?
	machine_leave
	why=$(cat "$T/why" 2> /dev/null || tail -n 1 "$T/log")
	case $status in
	0) echo "ok $name" && passed=$((passed + 1)) ;;
	77) echo "skip $name: $why" && skipped=$((skipped + 1)) ;;
	*)
		echo "not ok $name: $why"
		tail -q -n 9 "$T"/{log,err} 2> /dev/null | sed "s/^/    /"
		failed=$((failed + 1))
		;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
