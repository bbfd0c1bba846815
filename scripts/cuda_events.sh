#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cuda_events.sh - runs cuda_events.bt on the libcudart of this machine, wherever that is.
#
# It puts the path of the library and the filter by process into a copy of the script, in a directory that only the user
# can read, and gives that to bpftrace. A path with other than plain characters (a quote, a glob) goes through a symbolic
# link in that directory, for bpftrace's grammar cannot say it. bpftrace's own -p is not used: it looks for the path in
# the mount namespace of the process, and the path here leads there already.
set -uo pipefail
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin

usage() {
	cat << 'END'
Usage: sudo cuda_events.sh [-p PID] [--library PATH] [--print]
Shows eleven calls of the CUDA runtime, an entry and a return row each, by bpftrace.

  -p, --pid PID       this process only; ends when it ends
      --library PATH  the libcudart to probe, instead of the one that is found
      --print         print the script that would be run, and end
  -h, --help          this text

The library is, in this order: the one of --library; with -p, the one that the process has mapped; the one that the
youngest process with a libcudart has mapped; that of $CUDA_HOME; of the ld cache; of $CONDA_PREFIX; of python3's
packages; of /usr/local/cuda. Processes that use another libcudart, or have it linked in statically, are not seen.
END
}

die() {
	echo "cuda_events.sh: $*" >&2
	exit 1
}

note() {
	echo "cuda_events.sh: $*" >&2
}

# A libcudart by its name: libcudart.so.13, libcudart.so.11.0, and libcudart-d0da41ae.so.11.0 of repaired wheels.
NAME='/libcudart(-[0-9a-f]+)?\.so(\.[0-9.]+)?'

# mapped PID: the first libcudart of the process, as "ADDRESSES INODE PATH"; a deleted one ends in " (deleted)".
mapped() {
	sed -nE "s|^([0-9a-f]+-[0-9a-f]+) [^ ]+ [^ ]+ [^ ]+ ([0-9]+) +(/.*${NAME#/}( \(deleted\))?)\$|\1 \2 \3|p" \
		"/proc/$1/maps" 2> /dev/null | grep -E -m 1 "$NAME( \(deleted\))?\$"
}

# of_process PID: sets library to a path that opens that file from here, or fails.
of_process() {
	local range inode path
	read -r range inode path < <(mapped "$1") || return 1
	library=/proc/$1/root$path
	# The name may lead to another file by now: then the mapping itself does.
	[ "$(stat -L -c %i -- "$library" 2> /dev/null)" = "$inode" ] || library=/proc/$1/map_files/$range
	# Of a process in this mount namespace the plain path is the same file, and outlives the process.
	[ ! "$path" -ef "$library" ] || library=$path
	where="mapped by process $1"
	[ -r "$library" ]
}

# The newest of the names that exist, or nothing.
newest() {
	local file
	for file in "$@"; do
		[ -f "$file" ] && printf '%s\n' "$file"
	done | grep -E "$NAME\$" | sort -V | tail -n 1
}

of_any_process() {
	local pid
	for pid in $(cd /proc && printf '%s\n' [0-9]* | sort -rn); do
		of_process "$pid" && return 0
	done
	return 1
}

of_folders() {
	local cache purelib
	where="found in \$CUDA_HOME"
	if [ -n "${CUDA_HOME:-}" ]; then
		library=$(newest "$CUDA_HOME"/lib64/libcudart.so* "$CUDA_HOME"/lib/libcudart.so*)
		[ -z "$library" ] || return 0
	fi
	where="found in the ld cache"
	mapfile -t cache < <(ldconfig -p 2> /dev/null | sed -nE 's|^\tlibcudart\.so.* => (/.*)$|\1|p')
	library=$(newest "${cache[@]}")
	[ -z "$library" ] || return 0
	where="found in \$CONDA_PREFIX"
	if [ -n "${CONDA_PREFIX:-}" ]; then
		library=$(newest "$CONDA_PREFIX"/lib/libcudart.so* "$CONDA_PREFIX"/targets/*/lib/libcudart.so*)
		[ -z "$library" ] || return 0
	fi
	where="found among python3's packages"
	# -I: nothing of the current directory or the environment is run as root.
	while read -r purelib; do
		library=$(newest "$purelib"/nvidia/cu[0-9]*/lib/libcudart.so* "$purelib"/nvidia/cuda_runtime/lib/libcudart.so*)
		[ -z "$library" ] || return 0
	done < <(python3 -I -c 'import sysconfig, site
for path in dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")] + site.getsitepackages()):
    print(path)' 2> /dev/null)
	where="found by its usual place"
	library=$(newest /usr/local/cuda/lib64/libcudart.so*)
	[ -n "$library" ]
}

library='' where='' pid='' print=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--print) print=1 ;;
	-p | --pid | --library)
		[ $# -gt 1 ] || die "$1 needs a value; see --help"
		[ -n "$2" ] || die "the value of $1 is empty; see --help"
		if [ "$1" = --library ]; then library=$2; else pid=$2; fi
		shift
		;;
	*) die "'$1' is not an option; see --help" ;;
	esac
	shift
done

if [ -n "$pid" ]; then
	[[ $pid =~ ^[1-9][0-9]{0,9}$ ]] || die "'$pid' is not the number of a process; give -p one number"
	[ -d "/proc/$pid" ] || die "there is no process $pid"
	# bpftrace counts processes as the machine does; 4026531836 is the kernel's number of the first namespace.
	[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] ||
		die "-p cannot be used inside a pid namespace (a container): run this on the host, with the host's number"
fi
if [ -z "$print" ]; then
	[ "$(id -u)" = 0 ] || die "probes need root: type sudo $0"
	command -v bpftrace > /dev/null || die "bpftrace is not installed: type apt install bpftrace (or dnf install bpftrace)"
fi

if [ -n "$library" ]; then
	where="given by --library"
	[ -f "$library" ] || die "$library is not a file: give --library the path of libcudart.so.N"
elif [ -n "$pid" ]; then
	of_process "$pid" || die "process $pid has no libcudart mapped that can be read from here (as root?): it has not" \
		"called CUDA yet, or has libcudart linked in statically; use cudatrace -p $pid, or give --library its executable"
else
	of_any_process || of_folders ||
		die "no libcudart was found: start the CUDA program first, set CUDA_HOME, or give --library PATH"
fi
[[ $library = /* ]] || library=$PWD/$library
grep -q -a -F cudaLaunchKernel -- "$library" || die "$library has no cudaLaunchKernel, so it is not a CUDA runtime: give" \
	"--library the path of libcudart.so.N"

script=$(dirname "$(readlink -f "$0")")/cuda_events.bt
[ -r "$script" ] || die "$script cannot be read: keep cuda_events.bt beside cuda_events.sh"
text=$(sed -E "${pid:+"/^u(ret)?probe:/s|\$| /pid == $pid/|"}" "$script")
target=$library
plain='^[A-Za-z0-9_./-]+$'
if [ -n "$print" ]; then
	[[ $target =~ $plain ]] || target="\"$target\""
	printf '// library: %s (%s)\n' "${library//$'\n'/?}" "$where"
	printf '%s\n' "${text//LIBCUDART:/"$target":}"
	exit
fi
private=$(mktemp -d) || die "no temporary directory could be made: set TMPDIR to one that can be written"
trap 'rm -rf "$private"' EXIT
if [[ ! $target =~ $plain ]]; then
	target=$private/libcudart.so
	[[ $target =~ $plain ]] || die "$private has characters that bpftrace cannot read: set TMPDIR to a plain path"
	ln -s "$library" "$target" || die "$target could not be made: see whether the disk is full"
fi
printf '%s\n' "${text//LIBCUDART:/"$target":}" > "$private/cuda_events.bt" ||
	die "$private/cuda_events.bt could not be written: see whether the disk is full"
note "tracing $library ($where)"

# More room for rows than bpftrace's default: a burst of calls is lost otherwise. A shell's background jobs ignore SIGINT
# unless they are told not to.
BPFTRACE_PERF_RB_PAGES=${BPFTRACE_PERF_RB_PAGES:-512} \
	env --default-signal=INT bpftrace -q "$private/cuda_events.bt" < /dev/null &
child=$!
stopped=
stop() {
	stopped=1
	kill -INT "$child" 2> /dev/null
}
trap stop INT TERM HUP
while kill -0 "$child" 2> /dev/null && [ -n "$pid" ]; do
	if [ ! -d "/proc/$pid" ]; then
		stop
		break
	fi
	sleep 0.3
done
# wait returns early when a signal is handled: again, until it is bpftrace's own status.
while :; do
	wait "$child"
	status=$?
	kill -0 "$child" 2> /dev/null || break
done
# A second SIGINT, while it detached, ends bpftrace by the signal: no failure.
[ -z "$stopped" ] || [ "$status" != 130 ] || status=0
exit "$status"
