#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# names.sh - kernels' names, stacks and hangs on a real GPU: tests/gpu/names.sh [CUDATRACE]
#
# Needs what run.sh needs. The share of launches that have a name is measured for programs that were started under cudatrace
# and for programs that it was attached to; where torch.profiler says what ran, the names are compared with its.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
here=tests/gpu
has() { python3 -c "import $1" 2>/dev/null; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# judge NAME PERCENT JSON [KERNELS]: at least that share is named, and no name is wrong
judge() {
	local name=$1 goal=$2 share
	shift 2
	if ! python3 $here/names_check.py "$@" >"$tmp/said" 2>&1; then
		sed 's/^/# /' "$tmp/said"
		not_ok "$name" "a wrong name"
		return
	fi
	sed "s/^/# $name: /" "$tmp/said"
	share=$(sed -n 's/.*named (\([0-9.]*\) %).*/\1/p' "$tmp/said")
	if at_least "${share:-0}" "$goal"; then ok "$name"; else not_ok "$name" "${share:-nothing} % are named"; fi
}
launched() { # NAME GOAL SCRIPT...
	local name=$1 goal=$2 kernels=""
	shift 2
	rm -f "$tmp/kernels"
	case $1 in *torch_names*) set -- "$@" --kernels "$tmp/kernels" && kernels=$tmp/kernels ;; esac
	"$ct" -e launch,profiler --format json -o "$tmp/rows" -- python3 "$@" >"$tmp/out" 2>"$tmp/err" ||
		sed 's/^/# /' "$tmp/err" | tail -n 3
	judge "$name" "$goal" "$tmp/rows" ${kernels:+"$kernels"}
}
attached() { # NAME GOAL SCRIPT...
	local name=$1 goal=$2 kernels="" i pid
	shift 2
	rm -f "$tmp/kernels" "$tmp/go" "$tmp/out" "$tmp/err" # what an earlier one said
	case $1 in *torch_names*) set -- "$@" --kernels "$tmp/kernels" && kernels=$tmp/kernels ;; esac
	python3 "$@" --go-file "$tmp/go" >"$tmp/out" 2>"$tmp/pyerr" &
	pid=$!
	for ((i = 0; i < 1200; i++)); do
		grep -qs warmed "$tmp/out" && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	"$ct" -v -p $pid -e launch,profiler --format json -o "$tmp/rows" 2>"$tmp/err" &
	for ((i = 0; i < 200; i++)); do
		grep -qs ready "$tmp/err" && break
		sleep 0.05
	done
	touch "$tmp/go"
	wait
	judge "$name" "$goal" "$tmp/rows" ${kernels:+"$kernels"}
}

if has torch; then
	launched torch-launched 100 $here/torch_names.py
	attached torch-attached 99 $here/torch_names.py
	# the same without the profiler, which asks the driver for names while the trace listens
	attached torch-attached-alone 99 $here/torch_step.py
	# the 21 504 kernels of libtorch: what registering them costs under the tracer
	for i in 1 2 3 4 5; do
		a=$(date +%s%N)
		python3 -c 'import torch'
		b=$(date +%s%N)
		"$ct" -e launch -o /dev/null -- python3 -c 'import torch' 2>"$tmp/err"
		c=$(date +%s%N)
		echo "$(((b - a) / 1000000)) $(((c - b) / 1000000)) $(tail -n 1 "$tmp/err")"
	done | sed 's/^/# import torch: ms untraced, traced: /'
	# stacks: of how many launches is the step's Python function known?
	rm -f "$tmp/go" "$tmp/out" "$tmp/err"
	python3 $here/torch_step.py --go-file "$tmp/go" >"$tmp/out" 2>"$tmp/pyerr" &
	for ((i = 0; i < 1200; i++)); do grep -qs warmed "$tmp/out" && break; sleep 0.1; done
	"$ct" -v -k -p $! -e launch --format json -o "$tmp/rows" 2>"$tmp/err" &
	for ((i = 0; i < 200; i++)); do grep -qs ready "$tmp/err" && break; sleep 0.05; done
	touch "$tmp/go"
	wait
	python3 - "$tmp/rows" <<'PY' | sed 's/^/# stacks: /'
import collections, json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
rows = [r for r in rows if r.get("type") == "call"]
stacks = [r["stack"] for r in rows if r.get("stack")]
flags = collections.Counter(f for r in rows for f in r.get("stack_flags", []))
step = sum(any(f.get("kind") == "python" and f.get("function") == "step" for f in s) for s in stacks)
backward = sum(any("autograd" in (f.get("function") or "") for f in s) for s in stacks)
print(f"{len(rows)} launches, {len(stacks)} with a stack, {step} from step(), {backward} through autograd, flags {dict(flags)}")
print("frames on average", sum(map(len, stacks)) // max(len(stacks), 1))
for f in next((s for s in stacks if any(f.get("kind") == "python" for f in s)), [])[:40]:
    print("   ", f.get("kind"), f.get("function") or f.get("address"), f.get("file"), f.get("line"))
PY
	tail -n 1 "$tmp/err" | sed 's/^/# /'
	if grep -q '"function":"step"' "$tmp/rows"; then ok torch-stacks; else not_ok torch-stacks "no frame of step()"; fi
else
	skip torch "python3 has no torch"
fi
for module in cupy jax; do
	script=$here/$([ $module = cupy ] && echo cupy_launch || echo jax_step).py
	if has $module; then
		launched $module-launched 100 "$script"
		attached $module-attached 99 "$script"
	else
		skip $module "python3 has no $module"
	fi
done

# ---- hangs ------------------------------------------------------------------------------------------------------
if has cupy; then
	python3 $here/spin.py >"$tmp/out" 2>"$tmp/pyerr" &
	pid=$!
	for ((i = 0; i < 600; i++)); do grep -q spinning "$tmp/out" && break; sleep 0.1; done
	sleep 1
	"$ct" stuck -p $pid --over 1s >"$tmp/stuck" 2>"$tmp/err"
	status=$?
	sed 's/^/# stuck: /' "$tmp/stuck" "$tmp/err" | cut -c1-150
	if [ $status = 4 ] && grep -qE 'cu[A-Za-z]*Synchronize' "$tmp/stuck"; then
		ok stuck-before-the-attach
	else
		not_ok stuck-before-the-attach "status $status"
	fi
	kill -USR1 $pid
	wait $pid
	if grep -q '^result 1$' "$tmp/out"; then
		ok stuck-target-goes-on
	else
		not_ok stuck-target-goes-on "$(tail -n 2 "$tmp/out" "$tmp/pyerr")"
	fi
fi
all_done
