#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# mem.sh - `cudatrace mem` on a real GPU: tests/gpu/mem.sh [CUDATRACE]
#
# As root, with PyTorch, gcc and CUDA's headers; compute-sanitizer where it is. The book is compared with what PyTorch's allocator
# says of itself, with both ways in which it takes memory, live and from a recording; with the leaks that
# compute-sanitizer finds; and with what NVML counts for the process. Attached late, the rest is said to be from before.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"

compare() { # NAME
	local said
	if said=$(python3 tests/gpu/mem_check.py "$tmp/book" "$tmp/torch" 2>&1); then
		ok "$1"
	else
		not_ok "$1" "$(tail -n 3 "$tmp/err" | tr '\n' ' ')"
	fi
	echo "# $1: $said"
}

torch() { # NAME CONF
	rm -f "$tmp/book" "$tmp/torch" "$tmp/x.ctrace"
	PYTORCH_CUDA_ALLOC_CONF=$2 "$ct" mem -k --driver --json --html "$tmp/$1.html" -o "$tmp/book" -- python3 tests/gpu/mem_torch.py > "$tmp/torch" 2> "$tmp/err"
	compare "$1"
	PYTORCH_CUDA_ALLOC_CONF=$2 "$ct" record -k -e memory,context,device -o "$tmp/x.ctrace" -- python3 tests/gpu/mem_torch.py > "$tmp/torch" 2> "$tmp/err"
	"$ct" mem --json -o "$tmp/book" "$tmp/x.ctrace" 2>> "$tmp/err"
	compare "$1-recorded"
	"$ct" mem --by library "$tmp/x.ctrace" 2> /dev/null | sed -n '1,12p' | sed 's/^/# /'
}

late() {
	local pid i
	rm -f "$tmp/go"
	python3 tests/gpu/mem_torch.py --go-file "$tmp/go" > "$tmp/torch" 2> "$tmp/pyerr" &
	pid=$!
	for ((i = 0; i < 1200; i++)); do
		grep -q warmed "$tmp/torch" && break
		kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	"$ct" mem -v --driver --json -o "$tmp/book" -p $pid > /dev/null 2> "$tmp/err" &
	local tracer=$!
	for ((i = 0; i < 300; i++)); do
		grep -q 'cudatrace: ready' "$tmp/err" && break
		sleep 0.1
	done
	touch "$tmp/go"
	wait $pid
	wait $tracer
	# what it had before: 333 MiB of tensors
	if python3 - "$tmp/book" "$tmp/torch" <<- 'P'
		import json, sys
		book = json.load(open(sys.argv[1]))
		torch = json.loads(open(sys.argv[2]).read().strip().split("\n")[-1])
		p = book["processes"][0]
		held = sum(r["peak_bytes"] for r in book["all"] if r["where"] == "device")
		print("# late:", p, "book's peak", held, "PyTorch's", torch["peak"])
		sys.exit(p["from_start"] or not 0 < held < torch["peak"] or p["driver_peak_bytes"] < held + (333 << 20))
	P
	then ok late; else not_ok late "$(tail -n 3 "$tmp/err" "$tmp/pyerr" | tr '\n' ' ')"; fi
}

leaks() {
	local mine theirs sanitizer
	if ! gcc -O1 -g -I"$cuda/include" -o "$tmp/leak" tests/gpu/mem_leak.c -L"$cuda/lib64" -lcudart -Wl,-rpath,"$cuda/lib64" 2> "$tmp/err"; then
		not_ok leaks "$(head -n 2 "$tmp/err" | tr '\n' ' ')"
		return
	fi
	mine=$("$ct" mem --leak-check -o - -- "$tmp/leak" 2> "$tmp/err" | grep '^LEAK SUMMARY')
	if [ "$mine" = 'LEAK SUMMARY: 30000 bytes leaked in 5 allocations' ]; then ok leaks; else not_ok leaks "$mine"; fi
	sanitizer=$(command -v compute-sanitizer || ls "$cuda/bin/compute-sanitizer" 2> /dev/null)
	if [ -z "$sanitizer" ]; then
		skip leaks-sanitizer "there is no compute-sanitizer"
		return
	fi
	theirs=$("$sanitizer" --leak-check full "$tmp/leak" 2> /dev/null | sed -n 's/.*\(LEAK SUMMARY.*\)/\1/p')
	if [ "$mine" = "$theirs" ]; then ok leaks-sanitizer; else not_ok leaks-sanitizer "$theirs, here $mine"; fi
}

leaks
if has_torch; then
	torch segments ''
	torch expandable expandable_segments:True
	late
else
	skip torch "python3 has no PyTorch that finds a GPU"
fi
all_done
