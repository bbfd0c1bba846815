#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# agent_memory.sh - by how much the agent makes a program larger: the peak of its resident memory (VmHWM) with and without the
# agent, where 1 and 64 threads launch, copy and set without a pause. On the stand-in's libcupti: CUPTI's own memory is not in it.
#
#     tests/bench/agent_memory.sh [SECONDS]        CUDATRACE: the program to measure with
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-4}
ct=${CUDATRACE:-./cudatrace}
work=.output/cases/work
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"; kill -KILL $(jobs -p) 2> /dev/null || true' EXIT

peak() { # PID
	awk '/^VmHWM/ { print $2 }' "/proc/$1/status"
}

without() { # THREADS
	"$work" -t "$1" -- -1 loop > /dev/null &
	local pid=$!
	sleep "$seconds"
	peak "$pid"
	kill -KILL "$pid"
	wait "$pid" 2> /dev/null || true
}

with() { # THREADS ARGS...
	local n=$1 pid ct_pid
	shift
	"$ct" "$@" --format json -o /dev/null -- "$work" -t "$n" -- -1 loop > /dev/null 2> "$tmp/err" &
	ct_pid=$!
	# until all its threads, main's and the agent's are there
	until pid=$(pgrep -P "$ct_pid" -x work) && [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)" -ge $((n + 2)) ]; do
		sleep 0.1
	done
	sleep "$seconds"
	# cudatrace takes nothing for a while: what waits in the program is at its most
	kill -STOP "$ct_pid"
	sleep "$seconds"
	peak "$pid"
	kill -CONT "$ct_pid"
	kill -KILL "$pid"
	wait "$ct_pid" || true
}

for n in 1 64; do
	before=$(without "$n")
	for how in '--gpu' '--source=cupti --gpu'; do
		# shellcheck disable=SC2086 # two words
		after=$(with "$n" $how)
		awk -v n="$n" -v how="$how" -v a="$before" -v b="$after" \
			'BEGIN { printf "%2d threads, %-20s  %5.1f MiB more (%.1f to %.1f MiB)\n", n, how ":", (b - a) / 1024, a / 1024, b / 1024 }'
	done
done
