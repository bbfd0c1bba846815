#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# allocator.sh - the layer `allocator` on a real GPU: tests/gpu/allocator.sh [CUDATRACE]
#
# What `mem` says of the blocks of PyTorch's allocator equals torch.cuda.memory_stats() to the byte: in a program that was started (also with
# segments that grow), and in one that runs already. The snapshot of `--memory-viz` is read by PyTorch's own viewer, and has the segments and
# blocks of PyTorch's own one. Needs root, a GPU and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"

viewer=$("$python" -c 'import torch.cuda; print(torch.cuda.__path__[0] + "/_memory_viz.py")')

# compare NAME [--attached]: the book in $tmp/book and what the program says in $tmp/said; PyTorch's viewer reads the snapshot.
compare() {
	if python3 tests/gpu/allocator_check.py "$tmp/book" "$tmp/said" "$tmp/snapshot" > "$tmp/got" 2>&1 \
		&& "$python" tests/cases/check_viz.py "$tmp/snapshot" "$viewer" "${@:2}" >> "$tmp/got" 2>&1; then
		ok "$1"
	else
		not_ok "$1" "$(grep '^wrong' "$tmp/got" | head -n 4 | tr '\n' ' ') $(grep -v '^right\|^wrong' "$tmp/got" | tail -n 1 | cut -c1-200) $(last_words)"
	fi
	sed 's/^/# /' "$tmp/got"
}

# started NAME OPTION...
started() {
	local name=$1
	shift
	rm -f "$tmp/book" "$tmp/said" "$tmp/snapshot"
	"$ct" mem --layers allocator,torch "$@" --memory-viz "$tmp/snapshot" --json -o "$tmp/book" -- "$python" tests/gpu/allocator.py "$tmp/said" > "$tmp/out" 2> "$tmp/err"
	compare "$name"
}

started allocator-started
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True started allocator-expandable

"$python" tests/gpu/allocator.py "$tmp/said" "$tmp/go" > "$tmp/out" 2> "$tmp/prog.err" &
pid=$!
until grep -qs warmed "$tmp/out"; do kill -0 $pid || exit; sleep 0.1; done
rm -f "$tmp/book" "$tmp/snapshot"
"$ct" mem -v --layers allocator --memory-viz "$tmp/snapshot" --json -o "$tmp/book" -p $pid > /dev/null 2> "$tmp/err" &
ct_pid=$!
until grep -q '^cudatrace: ready' "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || break; sleep 0.05; done
touch "$tmp/go"
wait $pid
pid=''
wait $ct_pid
compare allocator-attached --attached
all_done
