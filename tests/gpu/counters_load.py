# SPDX-License-Identifier: BSD-2-Clause
"""Loads of known size and known time, for counters to be compared with.

    counters_load.py copy SECONDS       copies on the device: how many bytes in what time
    counters_load.py matmul SECONDS     matrix products: how many, in what time
    counters_load.py launches SECONDS   small kernels, launched one after the other: how many, in what time
    counters_load.py pulses N           N kernels of 60 ms on an idle GPU: when each was launched and seen to end
    counters_load.py long SECONDS       one kernel
    counters_load.py fault              a kernel that writes to a bad address (XID 31)

Prints "ready", waits for a line on stdin, works, and prints one JSON object; times are CLOCK_MONOTONIC in nanoseconds.
"""
import json
import sys
import time

import torch


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def for_seconds(seconds, work, n):
    """Calls work() again and again, n at a time between two waits."""
    count = 0
    begin = now()
    while now() - begin < seconds * 1e9:
        for _ in range(n):
            work()
        torch.cuda.synchronize()
        count += n
    return {"count": count, "begin_ns": begin, "end_ns": now()}


def spin(cycles):
    torch.cuda._sleep(cycles)


def cycles_of(seconds):
    """How long a spinning kernel takes is measured, at the clock that it brings about."""
    cycles = 100_000_000
    for _ in range(3):
        begin = now()
        spin(cycles)
        torch.cuda.synchronize()
        took = now() - begin
    return int(cycles * seconds * 1e9 / took)


def fault():
    import cupy

    kernel = cupy.RawKernel('extern "C" __global__ void bad(int *p) { *p = 1; }', "bad")
    say_ready()
    try:
        kernel((1,), (1,), (cupy.uint64(0x1000),))
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError as e:
        return {"error": str(e)}
    return {"error": None}


def say_ready():
    print("ready", flush=True)
    sys.stdin.readline()


def main():
    mode = sys.argv[1]
    if mode == "fault":
        return fault()
    torch.cuda.init()
    if mode == "copy":
        a = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
        b = torch.empty_like(a)
        for_seconds(0.5, lambda: b.copy_(a), 8)
        time.sleep(1)
        say_ready()
        out = for_seconds(float(sys.argv[2]), lambda: b.copy_(a), 8)
        # read once, written once
        out["bytes"] = 2 * out["count"] * a.numel()
        return out
    if mode == "matmul":
        a = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
        for_seconds(0.5, lambda: a @ a, 8)
        say_ready()
        return for_seconds(float(sys.argv[2]), lambda: a @ a, 8)
    if mode == "launches":
        a = torch.zeros(32, device="cuda")
        for_seconds(0.5, lambda: a.add_(1), 1000)
        say_ready()
        return for_seconds(float(sys.argv[2]), lambda: a.add_(1), 1000)
    cycles = cycles_of(0.06 if mode == "pulses" else float(sys.argv[2]))
    say_ready()
    pulses = []
    for _ in range(int(sys.argv[2]) if mode == "pulses" else 1):
        time.sleep(0.04)
        begin = now()
        spin(cycles)
        launched = now()
        torch.cuda.synchronize()
        pulses.append({"before_ns": begin, "launched_ns": launched, "end_ns": now()})
    time.sleep(0.3)
    return {"pulses": pulses}


print(json.dumps(main()), flush=True)
