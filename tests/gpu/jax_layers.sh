#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# jax_layers.sh - what XLA says in ranges of NVTX, on a real GPU: tests/gpu/jax_layers.sh [CUDATRACE]
#
# A step of JAX is traced from its start. Its kernels name the module jit_step and an operation that the compiled program has, by JAX's own text of it; prints what
# XLA's ranges look like. Needs root, a GPU and a python3 with JAX.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
python=${JAX_PYTHON:-python3}

cat > "$tmp/step.py" << 'EOF'
import os
import sys
os.environ['XLA_FLAGS'] = '--xla_gpu_enable_command_buffer='
os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
import jax
import jax.numpy as jnp


def step(w, x):
    return jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)


w, x = jnp.ones((512, 512)), jnp.ones((256, 512))
f = jax.jit(step)
open(sys.argv[1], 'w').write(f.lower(w, x).compile().as_text())
for _ in range(20):
    w = w - 0.01 * f(w, x)
w.block_until_ready()
EOF
"$ct" --gpu --layers nvtx --format json -o "$tmp/json" -- "$python" "$tmp/step.py" "$tmp/hlo" > "$tmp/out" 2> "$tmp/err"
tail -n 2 "$tmp/err" | sed 's/^/# /'
python3 - "$tmp/json" "$tmp/hlo" << 'EOF'
import collections, json, re, sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
known = set(re.findall(r'%?([\w.-]+) = ', open(sys.argv[2], encoding='utf-8').read()))
for text, n in collections.Counter(r['name'] for r in rows if r['type'] == 'range').most_common(8):
    print('# range', n, text)
kernels = [r for r in rows if r['type'] == 'kernel']
ours = [r for r in kernels if r.get('hlo_module') == 'jit_step']
wrong = {r['hlo_op'] for r in ours if 'hlo_op' in r} - known
without = sum('hlo_op' not in r for r in ours)
print('#', len(kernels), 'kernels, of jit_step', len(ours), collections.Counter(r.get('hlo_op') for r in ours))
print('ok jax-module' if len(ours) >= 20 else f'not ok jax-module: {len(ours)} kernels')
print('ok jax-operations' if ours and not wrong and not without else f'not ok jax-operations: {wrong}, {without} kernels without one')
sys.exit(not ours or bool(wrong) or bool(without))
EOF
