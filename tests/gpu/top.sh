#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# top.sh - `cudatrace top` on a machine with a GPU: tests/gpu/top.sh PROGRAM [ARGS...], a program that works for ten seconds or
# more. Prints what top says of it with --gpu and --counters, for eight seconds, and what it takes itself without them.
set -uo pipefail
ct=${CUDATRACE:-.output/static/cudatrace}
"$@" > /dev/null 2>&1 &
pid=$!
trap 'kill "$pid" 2> /dev/null' EXIT
sleep 2
echo "== counted alone"
timeout 20 "$ct" top --batch -n 4 -i 1 --format json -p "$pid" | grep -o '"own_percent":[0-9.]*'
echo "== with --gpu and --counters"
timeout 30 "$ct" top --batch -n 4 -i 1 --gpu --counters -p "$pid"
echo "== the same as JSON"
timeout 30 "$ct" top --batch -n 2 -i 1 --gpu --counters --format json -p "$pid"
