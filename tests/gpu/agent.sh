#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# agent.sh - device records and calls by CUPTI on a real GPU. Needs root, a GPU, gcc and CUDA's headers and libraries with CUPTI; PyTorch,
# CuPy and JAX are used where python3 has them.
#
#     tests/gpu/agent.sh [CUDATRACE]      default: .output/static/cudatrace
#
# Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, measured figures as `# ...`, and at the end the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
run() { # ARGS...: cudatrace with JSON; the program's output in $tmp/out
	timeout 120 "$ct" -v --format json -o "$tmp/json" "$@" > "$tmp/out" 2> "$tmp/err"
}

say_gpu
lib=$(find -L "$cuda/lib64" "$cuda/lib" -name 'libcudart.so.1?' 2> /dev/null | head -n 1)
libs=$(dirname "${lib:-$cuda/lib64/x}")
for p in cuda_events_test tests/gpu/agent_loop; do
	if ! gcc -O2 -D_GNU_SOURCE -I"$cuda/include" -o "$tmp/${p##*/}" "$p.c" -L"$libs" -l:"$(basename "$lib")" -ldl -Wl,-rpath,"$libs" 2> "$tmp/err"; then
		not_ok "build ${p##*/}" "$(head -n 3 "$tmp/err")"
		exit 1
	fi
done
sample=$tmp/cuda_events_test loop=$tmp/agent_loop

# ---- the sample: its one kernel, copies and sets, each with its call --------------------------------------------
run --gpu -- "$sample"
grep -h -E 'CUPTI version|agent has started' "$tmp/err" | sed 's/^/# /'
same sample-kernels "$(count kernel)" 1
same sample-copies "$(count copy)" "$(grep -c '^{"type":"call".*"name":"cudaMemcpy' "$tmp/json")"
same sample-sets "$(count set)" "$(grep -c '^{"type":"call".*"name":"cudaMemset' "$tmp/json")"
same sample-matched "$(ended unmatched)" 0
same sample-device "$(count device | awk '{ print ($1 > 0) }')" 1

# ---- the clock: both ways ----------------------------------------------------------------------------------------
for way in auto callback offset; do
	run --gpu --gpu-clock $way -- "$loop" launch 2000 20
	python3 tests/gpu/agent_check.py "$tmp/json" > "$tmp/check"
	sed "s/^/# clock $way: /" "$tmp/check"
	same "clock-$way-kernels" "$(count kernel)" 40000
	same "clock-$way-in-place" "$(sed -n 's/^bad //p' "$tmp/check")" 0
	same "clock-$way-times" "$(ended device_time)" 0
	same "clock-$way-nothing-dropped" "$(ended device_dropped) $(ended agent_full)" "0 0"
done

# ---- lateness: how long after a kernel's end its row is there ------------------------------------------------------
timeout 60 "$ct" --gpu --format json -o - -e launch -- "$loop" launch 1 40 2> /dev/null | python3 -c '
import json, sys, time
late = []
for line in sys.stdin:
    if not line.startswith("{"):
        continue # the program prints too
    r = json.loads(line)
    if r["type"] == "kernel":
        late.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - r["start_ns"] - r["duration_ns"])
late.sort()
print("# lateness of an idle device: median %.0f ms, worst %.0f ms of %d" % (late[len(late) // 2] / 1e6, late[-1] / 1e6, len(late)))'

# ---- graphs --------------------------------------------------------------------------------------------------------
run --gpu=kernel -e graph -- "$loop" graph 20000 100
same graph-nodes "$(count kernel)" 2000000
same graph-dropped "$(ended device_dropped) $(ended agent_full)" "0 0"
same graph-unmatched "$(ended unmatched)" 0
echo "# graph of 100 nodes: $(grep nodes "$tmp/out"), invalid times $(ended device_time), dropped $(ended device_dropped), no room $(ended agent_full)"
run --gpu=kernel --graph=graph -e graph -- "$loop" graph 2000 100
same graph-whole "$(count graph)" 2000

# ---- frameworks ----------------------------------------------------------------------------------------------------
if python3 -c 'import torch' 2> /dev/null; then
	python3 tests/gpu/agent_torch.py 10 profile > "$tmp/prof" 2> /dev/null
	want=$(sed -n 's/^device //p' "$tmp/prof")
	run --gpu=kernel,memcpy,memset -e launch -- python3 tests/gpu/agent_torch.py 10
	few=$(($(count kernel) + $(count copy) + $(count set)))
	run --gpu=kernel,memcpy,memset -e launch -- python3 tests/gpu/agent_torch.py 20
	many=$(($(count kernel) + $(count copy) + $(count set)))
	same torch-as-the-profiler-counts "$((many - few))" "$want"
	same torch-kernels-matched "$(grep '^{"type":"kernel"' "$tmp/json" | grep -c -v '"cause_start_ns"')" 0
else
	skip torch "python3 has no torch"
fi
for f in jax:jax_step cupy:cupy_launch; do
	if python3 -c "import ${f%:*}" 2> /dev/null; then
		echo > "$tmp/go"
		run --gpu -- python3 "tests/gpu/${f#*:}.py" --go-file "$tmp/go"
		want=$(grep -o -E 'launches? [0-9]+|[0-9]+ launches' "$tmp/out" | grep -o '[0-9]*' | tail -n 1)
		if [ "$(count kernel)" -ge "${want:-1}" ]; then ok "${f%:*}-kernels"; else not_ok "${f%:*}-kernels" "$(count kernel) of ${want:-?}"; fi
		same "${f%:*}-unmatched" "$(ended unmatched)" 0
	else
		skip "${f%:*}" "python3 has no ${f%:*}"
	fi
done

# ---- without root: the same rows -------------------------------------------------------------------------------------
normal() { sed -E '1d; s/^[0-9.]+ +[^ ]+ +[0-9]+ +//; s/[0-9.]+(ns|us|ms|s)$/DUR/; s/0x[0-9a-f]{6,}/ADDRESS/g; s/(free|total|ms)=[0-9.]+/\1=N/g'; }
"$ct" -o "$tmp/rows" -- "$sample" > /dev/null 2> "$tmp/err"
normal < "$tmp/rows" > "$tmp/probes"
"$ct" --source=cupti -o "$tmp/rows" -- "$sample" > /dev/null 2> "$tmp/err"
normal < "$tmp/rows" > "$tmp/cupti"
diff "$tmp/probes" "$tmp/cupti" > "$tmp/diff"
echo "# rows by probes $(wc -l < "$tmp/probes"), by CUPTI $(wc -l < "$tmp/cupti"); differences:"
head -n 20 "$tmp/diff" | sed 's/^/#    /'
# what probes see and CUPTI does not may only be the beginning and the end of the driver
same cupti-no-other-rows "$(grep '^>' "$tmp/diff" | grep -c -v -E '^> cu(Init|DeviceGet|DeviceTotalMem|CtxGet|CtxSynchronize|KernelGetName|DevicePrimary|GetProcAddress|ModuleGetLoadingMode|GetExportTable|DriverGetVersion|LibraryLoad|LibraryGetModule)')" 0

# ---- what it costs: a launch-bound loop, medians of 15 rounds --------------------------------------------------------
cost() { # WORDS ARGS...
	local words=$1
	shift
	if [ $# = 0 ]; then "$loop" launch 20000 15; else timeout 120 "$ct" -o /dev/null "$@" -- "$loop" launch 20000 15 2> "$tmp/err"; fi |
		sed -n 's/^round [0-9]*: \([0-9]*\) ns/\1/p' | median | sed "s/^/# launch, $words: /; s/\$/ ns/"
}
cost "no tracer"
cost "uprobes" --keep-chatty
cost "uprobes on launches" -e launch
cost "--gpu alone (no calls)" --source=cupti -e cudaProfilerStart --gpu
cost "--gpu and uprobes on launches" --gpu -e launch
cost "--source=cupti" --source=cupti
cost "--source=cupti --gpu" --source=cupti --gpu
cost "no tracer, again"
timeout 60 "$ct" -v -d 1 --gpu -o /dev/null -- "$loop" launch 20000 100 > "$tmp/out" 2> "$tmp/err"
grep -h 'agent has left' "$tmp/err" | sed 's/^/# /'
for _ in $(seq 100); do # the program goes on after cudatrace has left it
	grep -q '^kernels' "$tmp/out" && break
	sleep 0.1
done
sed -n 's/^round [0-9]*: \([0-9]*\) ns/\1/p' "$tmp/out" | head -n 5 | median | sed 's/^/# launch, first rounds with --gpu: /; s/$/ ns/'
sed -n 's/^round [0-9]*: \([0-9]*\) ns/\1/p' "$tmp/out" | tail -n 20 | median | sed 's/^/# launch, after detach: /; s/$/ ns/'
if python3 -c 'import torch' 2> /dev/null; then
	# in turn, twice: the least of the medians
	for _ in 1 2; do for how in none profile --gpu probes cupti; do
		case $how in
		none) python3 tests/gpu/agent_torch.py 200 ;;
		profile) python3 tests/gpu/agent_torch.py 200 profile ;;
		--gpu) "$ct" --source=cupti -e cudaProfilerStart --gpu -o /dev/null -- python3 tests/gpu/agent_torch.py 200 ;;
		probes) "$ct" -o /dev/null -- python3 tests/gpu/agent_torch.py 200 ;;
		cupti) "$ct" --source=cupti -o /dev/null -- python3 tests/gpu/agent_torch.py 200 ;;
		esac 2> "$tmp/err" | sed -n "s/^step /$how /p"
	done; done | sort -k1,1 -k2,2n | awk '!($1 in seen) { seen[$1]; print "# torch step, " $1 ": " $2 " ms" }'
fi
all_done
