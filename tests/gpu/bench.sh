#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# bench.sh - the book of benchmarks on a GPU: tests/gpu/bench.sh [CUDATRACE [ROUNDS [OUT]]]
#
# Measures each way of tracing, and torch.profiler, beside the same work that nobody traces: PyTorch (eager, compiled), a decoding loop,
# JAX where it is installed, two GPUs where there are two (DDP). Writes book.json, book.html and book.stat into OUT (.output/bench-gpu); see
# tests/bench/book.py. Needs root, a GPU and PyTorch. A work that cannot begin is left out, and said.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
CUDATRACE=$(readlink -f "${1:-.output/static/cudatrace}")
export CUDATRACE
rounds=${2:-7} out=${3:-.output/bench-gpu}
works=()
for work in eager compiled decode jax ddp; do
	[ "$work" != ddp ] || [ "$(nvidia-smi -L | wc -l)" -ge 2 ] || { echo "skip ddp: there is one GPU" && continue; }
	if echo | timeout 300 python3 tests/gpu/bench_step.py "$work" > "/tmp/bench-step.$$" 2>&1; then
		works+=("$work")
	else
		echo "skip $work: $(tail -n 1 "/tmp/bench-step.$$")"
	fi
done
rm -f "/tmp/bench-step.$$"
[ ${#works[@]} != 0 ] || { echo "not ok bench: no work can begin" && exit 1; }
exec tests/bench/book.py --gpu "$(IFS=, && echo "${works[*]}")" --rounds "$rounds" --out "$out"
