# SPDX-License-Identifier: BSD-2-Clause
"""A jitted elementwise function is one kernel a call; JAX launches by the driver API. Command buffers (graphs) are off, so
that each kernel is a launch."""
import os
import random

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer="
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax
import jax.numpy as jnp

from wait_go import launches, wait_go

f = jax.jit(lambda v: v * 2 + 1)
x = jnp.zeros(1024)
f(x).block_until_ready()
n = random.randint(500, 2000)
wait_go()
for _ in range(n):
    x = f(x)
x.block_until_ready()
launches(n)
