#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - what only a real GPU can show. Needs root, a GPU, gcc, CUDA's headers, and the static build; PyTorch, CuPy and JAX
# are used where python3 has them.
#
#     tests/gpu/run.sh [CUDATRACE]      default: .output/static/cudatrace
#
# Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, measured figures as `# ...`, and at the end the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"

say_gpu
echo "# kernel $(uname -r), $("$ct" -V)"
"$ct" doctor 2>&1 | sed 's/^/# /'

# ---- the sample program: the trace is the one that it expects ------------------------------------------------
normalise() { # EVENT DETAILS, without times, processes and durations
	sed -n -E 's/^[0-9.]+ +[^ ]+ +[0-9]+ +([A-Za-z_0-9]+) +(.*)$/\1 \2/; t dur; d; :dur; s/[0-9.]+(ns|us|ms|s)$/DUR/; p' "$1"
}
golden() { # NAME PROGRAM
	"$ct" -v -o "$tmp/rows" -- "$2" --expect "$tmp/expect" >"$tmp/out" 2>"$tmp/err"
	local status=$?
	if [ $status -ne 0 ]; then
		not_ok "$1" "exit $status: $(tail -n 2 "$tmp/err" "$tmp/out" | tr '\n' ' ')"
		return
	fi
	normalise "$tmp/rows" >"$tmp/got"
	# The real runtime lets its context go after main() has ended.
	sed -i -e '${/^cuDevicePrimaryCtxRelease/d}' "$tmp/got"
	if diff -u "$tmp/expect" "$tmp/got" >"$tmp/diff"; then
		ok "$1"
	else
		not_ok "$1" "$(head -n 40 "$tmp/diff")"
	fi
}
if build "$tmp/sample" cuda_events_test.c; then
	golden sample-shared "$tmp/sample"
else
	not_ok sample-shared "$(head -n 3 "$tmp/err")"
fi
if gcc -O2 -D_GNU_SOURCE -I"$cuda/include" -o "$tmp/sample-static" cuda_events_test.c -L"$cuda/lib64" -lcudart_static \
	-ldl -lrt -lpthread 2>"$tmp/err"; then
	golden sample-static "$tmp/sample-static"
	cp "$tmp/sample-static" "$tmp/sample-stripped"
	strip "$tmp/sample-stripped"
	golden sample-stripped "$tmp/sample-stripped"
else
	not_ok sample-static "$(head -n 3 "$tmp/err")"
fi

# ---- every launch exactly once ---------------------------------------------------------------------------------
# The program says how many kernels it launched by the profiler of its own framework, or by construction. Beside the
# default trace runs a second one that probes the driver alone, where nothing is folded: both must count the same.
count_launches() { grep -cE '"name":"(cudaLaunchKernel|cudaLaunchKernelExC|cudaLaunchCooperativeKernel|cuLaunchKernel|cuLaunchKernelEx|cuLaunchCooperativeKernel)[_v0-9]*"' "$1"; }
python_case() { # NAME SCRIPT MODULE
	if ! python3 -c "import $3" 2>/dev/null; then
		skip "$1" "python3 has no $3"
		return
	fi
	python3 "$2" --go-file "$tmp/go" >"$tmp/out" 2>"$tmp/pyerr" &
	local pid=$! i
	for ((i = 0; i < 1200; i++)); do
		grep -q warmed "$tmp/out" && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	"$ct" -v -p $pid -e launch --format json -o "$tmp/all.json" 2>"$tmp/all.err" &
	local a=$!
	"$ct" -v -p $pid -e launch --domain driver --format json -o "$tmp/driver.json" 2>"$tmp/driver.err" &
	local b=$!
	for ((i = 0; i < 200; i++)); do
		grep -q ready "$tmp/all.err" && grep -q ready "$tmp/driver.err" && break
		sleep 0.05
	done
	touch "$tmp/go"
	wait $pid
	wait $a $b
	rm -f "$tmp/go"
	local said all driver
	said=$(sed -n 's/^launches \([0-9]*\)$/\1/p' "$tmp/out")
	all=$(count_launches "$tmp/all.json")
	driver=$(count_launches "$tmp/driver.json")
	echo "# $1: the program says ${said:-nothing}, cudatrace $all, driver alone $driver; $(sed -n 's/^step //p' "$tmp/out")"
	if [ -z "$said" ]; then
		not_ok "$1" "$(tail -n 3 "$tmp/pyerr" | tr '\n' ' ')"
	elif [ "$said" = "$all" ] && [ "$all" = "$driver" ]; then
		ok "$1"
	else
		not_ok "$1" "launches differ: $said said, $all seen, $driver by the driver; $(tail -n 1 "$tmp/all.err")"
	fi
}
python_case torch-step tests/gpu/torch_step.py torch
python_case cupy tests/gpu/cupy_launch.py cupy
python_case jax tests/gpu/jax_step.py jax

# ---- a program traced from its first call, and a call that hangs for two seconds -----------------------------------
if python3 -c 'import torch, cupy' 2>/dev/null; then
	python3 tests/gpu/from_start.py 2>"$tmp/plain"
	"$ct" --format json --unfinished 0.5 -o "$tmp/start.json" -- python3 tests/gpu/from_start.py 2>"$tmp/traced"
	want=$(sed -n 's/^launches \([0-9]*\).*/\1/p' "$tmp/traced")
	got=$(grep -c '"sharedMemBytes":1048,' "$tmp/start.json")
	echo "# from-start: untraced $(cat "$tmp/plain"); traced $(grep launches "$tmp/traced")"
	check from-start-every-launch "$got launches seen of $want" test "$got" = "$want"
	check from-start-result "$(cat "$tmp/traced")" grep -q "sum $((32 * ${want:-0}))" "$tmp/traced"
	check hang-is-shown "$(grep pending "$tmp/start.json" | head -n 3)" \
		grep -qE '"type":"pending".*"name":"cu[a-z]*(Device|Ctx|Stream)Synchronize' "$tmp/start.json"
else
	skip from-start "python3 has no torch or no cupy"
fi

# ---- what it costs ------------------------------------------------------------------------------------------------
if python3 -c 'import torch' 2>/dev/null; then
	python3 tests/gpu/torch_cost.py "$ct" "$tmp" 2>&1 | sed 's/^/# /'
fi

# ---- nothing is left behind -------------------------------------------------------------------------------------------
check no-process-left "cudatrace still runs" test -z "$(pgrep -x cudatrace)"
all_done
