# SPDX-License-Identifier: BSD-2-Clause
"""Traced from its first call: a random number of launches of a kernel of its own, then one that spins for two seconds and
is waited for. Prints what it did and how long the import of the framework took."""
import random
import sys
import time

begin = time.time()
import torch  # noqa: E402

took = time.time() - begin
import cupy  # noqa: E402

torch.zeros(1, device="cuda")
code = r"""
extern "C" __global__ void once(float *x) { x[threadIdx.x] += 1; }
extern "C" __global__ void spin(long long ns) {
	long long begin, now;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}
"""
module = cupy.RawModule(code=code)
once, spin = module.get_function("once"), module.get_function("spin")
x = cupy.zeros(32, dtype=cupy.float32)
n = random.randint(500, 1500)
for _ in range(n):
    once((1,), (32,), (x,), shared_mem=1048)  # a size that tells these launches from others
cupy.cuda.Device().synchronize()
spin((1,), (1,), (2_000_000_000,), shared_mem=1049)
cupy.cuda.Device().synchronize()
print("launches", n, "import", round(took, 2), "sum", float(x.sum()), file=sys.stderr)
