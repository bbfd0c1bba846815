#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh - do the tracers grow while processes come and go: scripts/soak.sh [SECONDS [FOLDER]]
#
# cudatrace serve, record (with --last) and stat trace a cgroup for SECONDS (300) while programs in it that make a few calls are
# started one after the other on each processor, with copies of the library that change now and then; a page of serve's metrics
# is read every second. Of each tracer the resident memory, descriptors, maps, links and threads are read every second, and
# written to FOLDER/NAME.samples (.output/soak). After the first third, in which tables and caches fill, the line of least
# squares through each may rise or fall by no more than this until the end:
#
#     resident memory                      the larger of 1 MiB and 5 %, and 1 KiB for each process that came, up to 32 768: so many are
#                                          remembered after their end
#     links, maps                          80, because the last 64 files of a user that were probed are kept, those of others too
#     descriptors                          160
#     threads                              2
# (of links, maps and descriptors twice as many in less than 300 s: those 64 files have not come in the first third)
#     a page of serve, a program's calls   as much as it takes in the middle: it may not double (from 600 s on: others use the machine)
#
# How many processes there were is printed too, but not judged. Needs root, ./cudatrace (or CUDATRACE) and `make cases-progs`. Prints `ok`
# and `not ok` lines. CI runs it for a minute, the night for hours: scripts/night.sh.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

SECONDS_WANTED=${1:-300}
FOLDER=${2:-.output/soak}
ADDRESS=unix:$PWD/$FOLDER/serve.socket
[[ $FOLDER != /* ]] || ADDRESS=unix:$FOLDER/serve.socket
GROUP=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)/cudatrace-soak.$$
CT=${CUDATRACE:-./cudatrace}
declare -A PID
others=()
failed=0

# shellcheck disable=SC2317 # by the trap
end() {
	# a wait for nobody in particular would be one for the tracers
	[ ${#others[@]} = 0 ] || { kill -KILL "${others[@]}" && wait "${others[@]}"; } 2> /dev/null
	[ ${#PID[@]} = 0 ] || kill -INT "${PID[@]}" 2> /dev/null
	wait
	rmdir "$GROUP" 2> /dev/null
}

broken() {
	echo "not ok soak: $*"
	exit 1
}

# tracer NAME ARGS...: in the background; returns once it traces.
tracer() {
	local name=$1 until=$((SECONDS + 600))
	shift
	env --default-signal=INT "$CT" "$@" > "$FOLDER/$name.out" 2> "$FOLDER/$name.err" < /dev/null &
	PID[$name]=$!
	until grep -qsE 'ready|serving|listening|http|unix:' "$FOLDER/$name.err" "$FOLDER/$name.out"; do
		kill -0 "${PID[$name]}" 2> /dev/null || broken "$name ended: $(tail -n 1 "$FOLDER/$name.err")"
		[ $SECONDS -lt $until ] || broken "$name is not ready: $(tail -n 1 "$FOLDER/$name.err")"
		sleep 0.1
	done
}

# keep_failure STATUS N NUMBER: what the program printed, and what the tracers and the kernel said about that time.
keep_failure() {
	echo "status $1: $(tail -n 1 "$FOLDER/program.$2")" >> "$FOLDER/failures"
	{
		echo "status $1, program $3 of loop $2, after $SECONDS s, load $(cut -d' ' -f1 /proc/loadavg)"
		cat "$FOLDER/program.$2"
		tail -n 3 "$FOLDER"/*.err
		dmesg 2> /dev/null | tail -n 5
	} > "$FOLDER/failure.$2.$3"
}

# churn N: short programs one after the other, every hundredth with a fresh copy of the library. Counts them in a file.
churn() {
	local n=0 copy=$FOLDER/library.$1
	mkdir -p "$copy"
	echo "$BASHPID" > "$GROUP/cgroup.procs"
	while :; do
		if [ $((n % 100)) = 0 ]; then
			install .output/standin/libcudart.so.13 .output/standin/libcuda.so.1 "$copy"
		fi
		LD_LIBRARY_PATH=$copy .output/cases/calls-dl mix 2 2 2 > "$FOLDER/program.$1" 2>&1 || keep_failure $? "$1" $n
		n=$((n + 1))
		echo $n > "$FOLDER/count.$1"
	done
}

# sample NAME: a line of time, KiB, descriptors, maps, links, threads
sample() {
	local p=/proc/${PID[$1]} kib threads
	read -r kib threads < <(awk '/^VmRSS/ { k = $2 } /^Threads/ { t = $2 } END { print k, t }' "$p/status")
	echo "$SECONDS $kib $(find "$p/fd" -mindepth 1 2> /dev/null | wc -l) $(wc -l < "$p/maps")" \
		"$(cat "$p"/fdinfo/* 2> /dev/null | grep -c '^link_type')" "$threads" >> "$FOLDER/$1.samples"
}

# latencies: a line of time, microseconds of a page of serve, microseconds of a program that makes calls and is traced
latencies() {
	local page=x began program=0
	page=$(curl -s --max-time 300 -o "$FOLDER/metrics" -w '%{time_total}' --unix-socket "${ADDRESS#unix:}" http://localhost/metrics) ||
		{ echo "not ok soak: serve does not answer" && failed=1; }
	began=${EPOCHREALTIME/./}
	(echo "$BASHPID" > "$GROUP/cgroup.procs" && LD_LIBRARY_PATH=.output/standin exec .output/cases/calls-dl mix 2 2 2 > /dev/null 2>&1)
	program=$((${EPOCHREALTIME/./} - began))
	echo "$SECONDS ${page/./} $program" >> "$FOLDER/latency.samples"
}

# judge_latency: as judge, of both columns; they are printed, and judged only in a long run.
judge_latency() {
	awk -v judged="$((SECONDS_WANTED >= 600))" '
		{ t[NR] = $1; v[1, NR] = $2 + 0; v[2, NR] = $3 + 0 }
		END {
			split("page program", what, " ")
			from = int(NR / 3) + 1
			n = NR - from + 1
			for (c = 1; c <= 2; c++) {
				st = sv = stt = stv = 0
				for (i = from; i <= NR; i++) { st += t[i]; sv += v[c, i]; stt += t[i] * t[i]; stv += t[i] * v[c, i] }
				below = n * stt - st * st
				rise = below ? (n * stv - st * sv) / below * (t[NR] - t[from]) : 0
				good = !judged || rise <= sv / n
				bad += !good
				printf "%s soak-latency-%s: %.1f ms at the middle, a rise of %.1f\n", !judged ? "#" : good ? "ok" : "not ok", what[c], sv / n / 1000, rise / 1000
			}
			exit bad > 0
		}' "$FOLDER/latency.samples"
}

# judge NAME: the rise of each column from the first third on, of the line through it
judge() {
	awk -v name="$1" -v processes="$((total < 32768 ? total : 32768))" -v factor="$((SECONDS_WANTED < 300 ? 2 : 1))" '
		function larger(a, b) { return a > b ? a : b }
		{ t[NR] = $1; for (c = 2; c <= NF; c++) v[c, NR] = $c }
		END {
			split(". resident_KiB descriptors maps links threads", what, " ")
			from = int(NR / 3) + 1
			n = NR - from + 1
			if (n < 10) { print "not ok soak-" name ": only " n " samples"; exit 1 }
			for (c = 2; c <= 6; c++) {
				st = sv = stt = stv = 0
				for (i = from; i <= NR; i++) { st += t[i]; sv += v[c, i]; stt += t[i] * t[i]; stv += t[i] * v[c, i] }
				below = n * stt - st * st
				rise = below ? (n * stv - st * sv) / below * (t[NR] - t[from]) : 0
				mean = sv / n
				bound = c == 2 ? larger(1024, mean * 0.05) + processes : c == 3 ? 160 * factor : c == 6 ? 2 : 80 * factor
				good = rise <= bound && rise >= -bound
				bad += !good
				printf "%s soak-%s-%s: %.0f at the middle, a rise of %.1f, %.0f allowed\n", good ? "ok" : "not ok", name, what[c], mean, rise, bound
			}
			exit bad > 0
		}' "$FOLDER/$1.samples"
}

[ "$(id -u)" = 0 ] || broken "it needs root"
rm -rf "$FOLDER"
mkdir -p "$FOLDER"
mkdir "$GROUP" || broken "there is no cgroup v2 to make a group in"
trap end EXIT
tracer serve serve -v --cgroup "$GROUP" --listen "$ADDRESS"
tracer record record -v --cgroup "$GROUP" --last 10s --dump-on signal -o "$FOLDER/soak.ctrace"
tracer stat stat -v --cgroup "$GROUP" -o "$FOLDER/stat.txt"
for i in $(seq "$(nproc)"); do
	churn "$i" &
	others+=($!)
done
until=$((SECONDS + SECONDS_WANTED))
while [ $SECONDS -lt $until ]; do
	for name in serve record stat; do
		kill -0 "${PID[$name]}" 2> /dev/null || broken "$name ended: $(tail -n 1 "$FOLDER/$name.err")"
		sample "$name"
	done
	latencies
	sleep 1
done
kill -KILL "${others[@]}" 2> /dev/null
wait "${others[@]}" 2> /dev/null
others=()
total=$(cat "$FOLDER"/count.* | awk '{ n += $1 } END { print n }')
echo "# $total processes in $SECONDS_WANTED s; the metrics have $(wc -l < "$FOLDER/metrics") lines"
[ ! -e "$FOLDER/failures" ] || { echo "not ok soak: $(wc -l < "$FOLDER/failures") programs failed: $(sort "$FOLDER/failures" | uniq -c | head -n 3 | tr '\n' ';')" && failed=1; }
for name in serve record stat; do
	judge "$name" || failed=1
done
judge_latency || failed=1
exit $failed
