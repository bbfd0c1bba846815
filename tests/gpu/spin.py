# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that spins until it is told to stop (SIGUSR1), and a host thread that waits for it in a CUDA call."""
import ctypes
import signal
import threading

import cupy

spin = cupy.RawKernel(r"""
extern "C" __global__ void spin_until_told(volatile int *stop, int *result) {
    while (!*stop) ;
    *result = 1;
}""", "spin_until_told")
flag = cupy.cuda.alloc_pinned_memory(4)
pointer = flag.ptr
stop = ctypes.c_int.from_address(pointer)
stop.value = 0
result = cupy.zeros(1, dtype=cupy.int32)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    spin((1,), (1,), (cupy.uint64(pointer), result))


def wait_for_it():
    stream.synchronize()


waiter = threading.Thread(target=wait_for_it, name="waiter")
waiter.start()
print("spinning", flush=True)


def told(*_):
    stop.value = 1


signal.signal(signal.SIGUSR1, told)
waiter.join()
print("result", int(result.get()[0]), flush=True)
