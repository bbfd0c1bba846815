#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# states.sh - what it costs to see what threads wait for, and how far `why` is from the truth: tests/bench/states.sh (as root)
#
# The cost is the kernel's own measure of the programs (kernel.bpf_stats_enabled), which includes the measuring, of some 60 to 80 ns:
# at each switch and each waking of processes that are not watched, and of some that are. The truth is the time that planted.py spent
# in its planted function by its own clock, as a share of the time in which the device was idle; the machine should be quiet.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
out=.output/bench standin=$PWD/.output/standin
tmp=$(mktemp -d) || exit 1
was=$(cat /proc/sys/kernel/bpf_stats_enabled)
trap 'echo "$was" > /proc/sys/kernel/bpf_stats_enabled; kill $(jobs -p) 2> /dev/null; rm -rf "$tmp"' EXIT
echo 1 > /proc/sys/kernel/bpf_stats_enabled

# cost TITLE PID: while `why` watches PID, and pingpong runs.
cost() {
	./cudatrace why -p "$2" -d 3 > "$tmp/why" 2>&1 &
	sleep 2
	bpftool -j prog show > "$tmp/progs"
	python3 - "$1" "$tmp/progs" <<- 'END'
		import json, sys
		for p in json.load(open(sys.argv[2])):
		    if p.get("name") in ("ct_host_switch", "ct_host_waking") and p.get("run_cnt"):
		        print(f"{sys.argv[1]}, {p['name'][8:]:<48} {p['run_time_ns'] / p['run_cnt']:6.0f} ns each, of {p['run_cnt']}")
	END
	wait %%
}

echo "== a switch and a waking, with the measuring itself"
"$out/pingpong" &
pong=$!
LD_LIBRARY_PATH=$standin .output/cases/planted sleep 60 &
other=$!
sleep 0.5
cost "not watched" "$other"
cost "watched" "$pong"
kill "$pong" "$other"

echo "== the share of the idle time that the planted cause is, and its truth"
for cause in ${CAUSES-sleep pipe semaphore queue gil gc faults child}; do
	STANDIN_CUPTI=device:200 LD_LIBRARY_PATH=$standin ./cudatrace why --gpu --format json -o "$tmp/json" -- python3 \
		tests/cases/prog/planted.py "$standin/libcudart.so" "$cause" 4 "$tmp" > "$tmp/truth" 2> /dev/null || continue
	python3 - "$cause" "$tmp/json" "$tmp/truth" <<- 'END'
		import json, sys
		part = max(json.load(open(sys.argv[2]))["parts"], key=lambda p: p["window_ns"])
		truth = json.loads(open(sys.argv[3]).read().splitlines()[-1])
		idle = part["idle_ns"]
		at = "plant_" + sys.argv[1]
		found = sum(f["ns"] for f in part["findings"] if at in f["claim"] or "spin" in f["claim"])
		cpu = sum(f["ns"] for f in part["findings"] if f["id"] in ("displaced", "woken-late") and at not in f["claim"])
		want = truth["planted_s"] / truth["gap_s"]
		print(f"{sys.argv[1]:<12} found {found / idle * 100:5.1f} %, with waits for a CPU {(found + cpu) / idle * 100:5.1f} %; truth {want * 100:5.1f} %")
	END
done
