#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# bench.sh - the book of benchmarks on a GPU: tests/gpu/bench.sh [CUDATRACE [ROUNDS [OUT [OPTIONS of book.py...]]]]
#
# Measures each way of tracing, and torch.profiler, beside the same work that nobody traces: PyTorch (eager, compiled), a decoding loop,
# two GPUs where there are two (DDP), JAX where it is installed. Writes book.json, book.html and book.stat into OUT (.output/bench-gpu);
# see tests/bench/book.py. Takes at most SECONDS_MAX seconds (480) until it ends with whole rounds: with seven rounds the ways and works that
# are worth least are left out, which is said. WORKS: names of works, separated by commas. FAKE=LIBCUDART: without a GPU, to try this.
#
# Needs root, python3, a GPU and PyTorch; of this tree only tests/bench and tests/gpu, and a static cudatrace.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
CUDATRACE=$(readlink -f "${1:-.output/static/cudatrace}")
export CUDATRACE
rounds=${2:-7} out=${3:-.output/bench-gpu}
works=${WORKS:-}
if [ -z "$works" ]; then
	works=eager,decode,compiled
	[ "$(nvidia-smi -L 2> /dev/null | wc -l)" -lt 2 ] || works+=,ddp
	! python3 -c 'import jax' 2> /dev/null || works+=,jax
	echo "works: $works"
fi
exec tests/bench/book.py --gpu "$works" ${FAKE:+--fake "$FAKE"} --seconds "${SECONDS_MAX:-480}" --rounds "$rounds" --out "$out" "${@:4}"
