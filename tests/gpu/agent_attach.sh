#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# agent_attach.sh - the agent in programs that run already, on a real GPU: tests/gpu/agent_attach.sh [CUDATRACE] [TIMES]
#
# A launch loop is attached to and left TIMES (40) times in a row, a graph replay a quarter of that, PyTorch once. Each device
# record must have its call; descriptors, threads and memory of the program must not grow; what a launch takes afterwards is
# compared with what it took before, in 20 pairs. Needs root, a GPU, gcc and CUDA's headers and libraries with CUPTI.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
times=${2:-40}

lib=$(find -L "$cuda/lib64" "$cuda/lib" -name 'libcudart.so.1?' 2> /dev/null | head -n 1)
libs=$(dirname "${lib:-$cuda/lib64/x}")
gcc -O2 -D_GNU_SOURCE -I"$cuda/include" -o "$tmp/loop" tests/gpu/agent_loop.c -L"$libs" -l:"$(basename "$lib")" -ldl -Wl,-rpath,"$libs" || exit 1

size() { echo "$(find /proc/$pid/fd -mindepth 1 | wc -l) $(find /proc/$pid/task -mindepth 1 -maxdepth 1 | wc -l) $(awk '/VmRSS/ { print $2 }' /proc/$pid/status)"; }
visit() { # ARGS...
	timeout 60 "$ct" -v -p $pid --format json -o "$tmp/json" "$@" 2> "$tmp/err"
}

# ---- calls and device work of a launch loop --------------------------------------------------------------------------------
stdbuf -oL "$tmp/loop" launch 1000 1000000 > "$tmp/out" 2>&1 &
pid=$!
sleep 2
visit -e launch --gpu -d 1
least launch-kernels "$(count kernel)" 1000
# calls that began before the probes were there have launched kernels too
most launch-unmatched "$(ended unmatched)" 50
grep -h -o 'held for [0-9]* us' "$tmp/err" | sed 's/^/# launch loop: a thread was /'
visit --source=cupti --gpu -d 1 -e launch
least cupti-calls "$(count call)" 1000
least cupti-kernels "$(count kernel)" 1000

# ---- again and again -------------------------------------------------------------------------------------------------------
visit --source=cupti -e cudaProfilerStart --gpu -d 0.1
read -r fds threads rss < <(size)
left=0
for _ in $(seq "$times"); do
	visit --source=cupti -e cudaProfilerStart --gpu -d 0.1 && grep -q 'CUPTI ended' "$tmp/err" && left=$((left + 1))
done
same times-left "$left" "$times"
read -r fds2 threads2 rss2 < <(size)
echo "# $times attaches: descriptors $fds to $fds2, threads $threads to $threads2, RSS $rss to $rss2 KiB"
most no-descriptors "$fds2" "$fds"
most no-threads "$threads2" "$threads"
most no-memory "$rss2" $((rss + 16384))
# a second loop that nobody attaches to: both share the device, so that what changes with time changes for both
stdbuf -oL "$tmp/loop" launch 1000 1000000 > "$tmp/control" 2>&1 &
control=$!
pids=("$control")
sleep 2
last() { sed -n 's/^round [0-9]*: \([0-9]*\) ns/\1/p' "$1" | tail -n 30 | sort -n | sed -n 15p; }
for i in $(seq 20); do
	sleep 0.3
	echo "$(last "$tmp/control") $(last "$tmp/out")"
	[ $((i % 5)) != 0 ] || visit --source=cupti -e cudaProfilerStart --gpu -d 0.1
done | awk '{ r = $2 / $1; s += r; q += r * r; n++ } END {
	m = s / n; d = sqrt((q / n - m * m) / (n - 1)) * 2.09
	printf "# a launch after detach / in the control loop: %.4f, 95 %% interval %.4f to %.4f, of %d\n", m, m - d, m + d, n }'
kill $pid $control
wait $pid $control 2> /dev/null

# ---- a graph that is replayed ----------------------------------------------------------------------------------------------
"$tmp/loop" graph 100000000 20 > "$tmp/out" 2>&1 &
pid=$!
sleep 2
visit -e graph --gpu=kernel -d 1
least graph-kernels "$(count kernel)" 1000
echo "# graph instantiated before the attach: kernels $(count kernel), matched $(ended matched), unmatched $(ended unmatched), inferred $(ended inferred)"
left=0
for _ in $(seq $((times / 4))); do
	visit --source=cupti -e cudaProfilerStart --gpu -d 0.1 && grep -q 'the agent has left' "$tmp/err" && left=$((left + 1))
done
same graph-left "$left" "$((times / 4))"
if kill -0 $pid; then ok graph-lives; else not_ok graph-lives "$(cat "$tmp/out")"; fi
kill $pid
wait $pid 2> /dev/null
pid=
all_done
