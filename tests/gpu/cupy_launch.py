# SPDX-License-Identifier: BSD-2-Clause
"""CuPy compiles a kernel and launches it by the driver API, a random number of times."""
import random

import cupy

from wait_go import launches, wait_go

kernel = cupy.RawKernel('extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }', "twice")
x = cupy.zeros(32, dtype=cupy.float32)
kernel((1,), (32,), (x,))
cupy.cuda.Device().synchronize()
n = random.randint(1000, 5000)
wait_go()
for _ in range(n):
    kernel((1,), (32,), (x,))
cupy.cuda.Device().synchronize()
launches(n)
