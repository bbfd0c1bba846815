#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# counters.sh - hardware counters on a real GPU: tests/gpu/counters.sh [CUDATRACE]
#
# As root, on a GPU that nobody else uses, with PyTorch; CuPy for the XID. Loads of known size and of known time are run while
# `cudatrace counters` looks on: the bytes of device memory, idle and busy phases, the times of samples, the cost to the
# load, as root and as an ordinary user, by CUPTI and by NVML. Which CUPTI: $CUPTI, else what cudatrace finds.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
chmod 777 "$tmp"
load=$PWD/tests/gpu/counters_load.py
check=$PWD/tests/gpu/counters_check.py
cupti=(${CUPTI:+--cupti "$CUPTI"})

# judge NAME COMMAND...: the command's line, and whether it holds
judge() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "# $name: $said"
		ok "$name"
	else
		sed 's/^/#   /' "$tmp/err" 2> /dev/null | tail -n 4
		not_ok "$name" "$said"
	fi
}

says() { # NAME WORDS
	if grep -q "$2" "$tmp/err"; then ok "$1"; else not_ok "$1" "$(grep 'GPU 0' "$tmp/err")"; fi
}

# during LOAD... -- COUNTERS ARGS...: the load, with counters from a while before it until a while after it; rows in $tmp/rows,
# what the load says in $tmp/load. RUN: as whom counters run.
RUN=()
during() {
	local work=() i pid counters
	while [ "$1" != -- ]; do
		work+=("$1")
		shift
	done
	shift
	rm -f "$tmp"/{rows,err,load,fifo}
	mkfifo "$tmp/fifo"
	python3 "$load" "${work[@]}" < "$tmp/fifo" > "$tmp/load" 2> "$tmp/load.err" &
	pid=$!
	exec 9> "$tmp/fifo"
	for ((i = 0; i < 1200; i++)); do
		grep -q ready "$tmp/load" && break
		kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	"${RUN[@]}" "$ct" counters -v "${cupti[@]}" --format json "$@" > "$tmp/rows" 2> "$tmp/err" &
	counters=$!
	for ((i = 0; i < 600; i++)); do
		grep -q '"counter"' "$tmp/rows" && break
		kill -0 $counters 2> /dev/null || break
		sleep 0.05
	done
	sleep 0.3
	echo >&9
	exec 9>&-
	wait $pid
	sleep 0.3
	kill -INT $counters 2> /dev/null
	wait $counters
}

python3 -c 'import torch; torch.cuda.init()' 2> /dev/null || { echo "skip counters: no PyTorch with a GPU"; exit 0; }

during copy 2 -- -i 1ms
sed 's/^/# /' "$tmp/err" | head -n 6
judge copy-1ms python3 "$check" copy "$tmp/rows" "$tmp/load"
judge sane-1ms python3 "$check" sane "$tmp/rows"
says by-cupti 'CUPTI PM sampling$'
during copy 3 -- -i 100ms
judge copy-100ms python3 "$check" copy "$tmp/rows" "$tmp/load"
judge sane-100ms python3 "$check" sane "$tmp/rows"
during copy 5 -- -i 500ms
judge copy-500ms python3 "$check" copy "$tmp/rows" "$tmp/load"
during copy 2 -- -i 100us --metrics gpu,sm,dram,dram_read,dram_write
judge copy-100us python3 "$check" copy "$tmp/rows" "$tmp/load"
judge sane-100us python3 "$check" sane "$tmp/rows"

during matmul 2 -- -i 10ms
judge matmul-sm python3 "$check" busy "$tmp/rows" "$tmp/load" sm 90
judge matmul-tensor python3 "$check" busy "$tmp/rows" "$tmp/load" tensor 30
judge matmul-power python3 "$check" busy "$tmp/rows" "$tmp/load" power 200

# Times: spinning kernels on an idle GPU, one edge each; clocks by offset, then by a callback in CUPTI.
during pulses 40 -- -i 1ms --metrics gpu
grep -m 1 'sample times' "$tmp/err" | sed 's/^/# /'
judge clock-offset python3 "$check" pulses "$tmp/rows" "$tmp/load" 300
during pulses 40 -- -i 100us --metrics gpu
judge clock-offset-100us python3 "$check" pulses "$tmp/rows" "$tmp/load" 300
CUDATRACE_COUNTERS_CLOCK=callback during pulses 40 -- -i 1ms --metrics gpu
grep -m 1 'sample times' "$tmp/err" | sed 's/^/# /'
judge clock-callback python3 "$check" pulses "$tmp/rows" "$tmp/load" 300

# As an ordinary user.
cp "$ct" "$tmp/ct" && chmod 755 "$tmp/ct"
save=$ct ct=$tmp/ct
RUN=(setpriv --reuid 65534 --regid 65534 --clear-groups)
during copy 2 -- -i 1ms
grep 'GPU 0' "$tmp/err" | sed 's/^/# as uid 65534: /'
judge copy-unprivileged python3 "$check" copy "$tmp/rows" "$tmp/load"
RUN=()
ct=$save

# GPM takes its place where the hardware is held.
"$ct" counters "${cupti[@]}" -i 10ms -o "$tmp/other" 2> /dev/null &
other=$!
for ((i = 0; i < 600; i++)); do
	[ -s "$tmp/other" ] && break
	sleep 0.05
done
during copy 2 -- -i 100ms
says busy-is-said 'NVML GPM; no CUPTI PM sampling: another program'
judge copy-gpm-dram python3 "$check" busy "$tmp/rows" "$tmp/load" dram 50
judge copy-gpm-sm python3 "$check" busy "$tmp/rows" "$tmp/load" sm 80
kill -INT $other
wait $other

# XID
if python3 -c 'import cupy' 2> /dev/null; then
	during fault -- -i 100ms
	if grep -q '"what":"xid"' "$tmp/rows"; then
		grep -m 1 '"what":"xid"' "$tmp/rows" | sed 's/^/# /'
		ok xid
	else
		not_ok xid "no event; the program says $(tail -n 1 "$tmp/load")"
	fi
else
	skip xid "no CuPy"
fi

# In a trace with device work, a long kernel has the device's counters.
if "$ct" --help | grep -q -- '--gpu'; then
	"$ct" --gpu --counters "${cupti[@]}" -i 1ms --format json -o "$tmp/trace" -- python3 "$load" long 0.5 < /dev/null > "$tmp/load" 2> "$tmp/err"
	if grep '"type":"kernel"' "$tmp/trace" | grep -q '"device_sm":'; then
		ok kernel-has-counters
	else
		not_ok kernel-has-counters "$(grep -c '"type":"kernel"' "$tmp/trace") kernels, $(grep -c '"type":"counter"' "$tmp/trace") samples"
	fi
else
	skip kernel-has-counters "this cudatrace has no --gpu"
fi

# What it costs the load: interleaved, medians of seven.
cost() { # MODE INTERVAL
	local i k
	for i in 1 2 3 4 5 6 7; do
		echo | python3 "$load" "$1" 1 2> /dev/null | tail -n 1 > "$tmp/base.$i"
		"$ct" counters "${cupti[@]}" -i "$2" --format json -o "$tmp/rows" 2> /dev/null &
		other=$!
		for ((k = 0; k < 600; k++)); do
			grep -q '"counter"' "$tmp/rows" 2> /dev/null && break
			sleep 0.05
		done
		echo | python3 "$load" "$1" 1 2> /dev/null | tail -n 1 > "$tmp/with.$i"
		kill -INT $other
		wait $other
		rm -f "$tmp/rows"
	done
	python3 - "$tmp" "$1" "$2" <<- 'EOF'
		import glob, json, statistics, sys
		def rate(kind):
		    runs = [json.load(open(p)) for p in glob.glob(f"{sys.argv[1]}/{kind}.*")]
		    return statistics.median(r["count"] / (r["end_ns"] - r["begin_ns"]) * 1e9 for r in runs)
		base, with_ = rate("base"), rate("with")
		print(f"# cost: {sys.argv[2]} at -i {sys.argv[3]}: {base:.0f}/s without, {with_:.0f}/s with counters ({(base / with_ - 1) * 100:+.2f} % time)")
	EOF
}
cost launches 1ms
cost launches 100ms
cost matmul 1ms

sleep 1
if pgrep cudatrace-count > "$tmp/left"; then not_ok nothing-stays "$(tr '\n' ' ' < "$tmp/left")"; else ok nothing-stays; fi
all_done
