# SPDX-License-Identifier: BSD-2-Clause
"""Compares what counters said with what a load did. Prints one line; the status is 1 when it does not hold.

    counters_check.py copy ROWS LOAD      the bytes of device memory, and that the GPU was idle before
    counters_check.py busy ROWS LOAD METRIC PERCENT   the metric's mean during the load is at least that
    counters_check.py pulses ROWS LOAD US the times of the samples, against kernels of known start: |median| at most US microseconds
    counters_check.py sane ROWS           samples follow one another, and how many values are suspect
"""
import json
import statistics
import sys


def rows_of(path):
    for line in open(path):
        row = json.loads(line)
        if row["type"] == "counter" and row["device"] == 0:
            yield row["start_ns"], row["start_ns"] + row["duration_ns"], row["values"]


def inside(rows, begin, end):
    return [r for r in rows if r[0] >= begin and r[1] <= end]


def mean(rows, name):
    """Over time, of what can be true."""
    have = [(b - a, v[name]) for a, b, v in rows if v.get(name) is not None]
    total = sum(w for w, _ in have)
    return sum(w * v for w, v in have) / total if total else float("nan")


def copy(rows, load):
    want = load["bytes"] / (load["end_ns"] - load["begin_ns"]) * 1e9
    busy = inside(rows, load["begin_ns"] + 50e6, load["end_ns"] - 50e6)
    idle = inside(rows, 0, load["begin_ns"] - 50e6)
    got = mean(busy, "dram_read") + mean(busy, "dram_write")
    print(f"{len(busy)} samples: read + written {got / 1e9:.1f} GB/s, the program copied {want / 1e9:.1f} GB/s (x{got / want:.4f}); "
          f"dram {mean(busy, 'dram'):.1f} %, sm {mean(busy, 'sm'):.1f} %, gpu {mean(busy, 'gpu'):.1f} %; "
          f"idle before ({len(idle)} samples): gpu {mean(idle, 'gpu'):.2f} %, dram {mean(idle, 'dram'):.2f} %")
    return len(busy) >= 5 and 0.95 < got / want < 1.05 and mean(busy, "gpu") > 95 and (not idle or mean(idle, "dram") < 2)


def busy(rows, load, name, percent):
    during = inside(rows, load["begin_ns"] + 50e6, load["end_ns"] - 50e6)
    got = mean(during, name)
    print(f"{len(during)} samples: {name} {got:.1f}")
    return len(during) >= 2 and got >= float(percent)


def edge(rows, at):
    """When the GPU became busy, from the sample in which it did: the share of it that was busy."""
    for i, (begin, end, values) in enumerate(rows):
        if end > at - 20e6 and values.get("gpu") is not None and values["gpu"] > 2:
            # The edge lies in this sample, if the next is busy throughout.
            if i + 1 < len(rows) and (rows[i + 1][2].get("gpu") or 0) > 95 and abs(begin - at) < 20e6:
                return end - min(values["gpu"], 100) / 100 * (end - begin)
            return None
    return None


def pulses(rows, load, limit_us):
    errors = []
    for p in load["pulses"]:
        got = edge(rows, p["before_ns"])
        if got is not None:
            errors.append((got - p["before_ns"]) / 1e3)
    if not errors:
        print("no edge was found")
        return False
    launch = statistics.median((p["launched_ns"] - p["before_ns"]) / 1e3 for p in load["pulses"])
    spread = sorted(errors)
    print(f"{len(errors)} of {len(load['pulses'])} kernels: start by the counters after the launch call's begin: "
          f"median {statistics.median(errors):.0f} us, from {spread[0]:.0f} to {spread[-1]:.0f} us (the call itself {launch:.0f} us)")
    return abs(statistics.median(errors)) <= float(limit_us) and len(errors) * 2 >= len(load["pulses"])


def sane(rows):
    gaps = sum(1 for a, b in zip(rows, rows[1:]) if b[0] - a[1] > (a[1] - a[0]) / 2)
    back = sum(1 for a, b in zip(rows, rows[1:]) if b[0] < a[0])
    suspect = sum(1 for r in rows for v in r[2].values() if v is None)
    lengths = sorted(b - a for a, b, _ in rows)
    print(f"{len(rows)} samples of {lengths[0] / 1e6:.3f} to {lengths[-1] / 1e6:.3f} ms, {gaps} gaps, {back} backwards, "
          f"{suspect} suspect values")
    return not back and gaps <= len(rows) / 100


def main():
    rows = list(rows_of(sys.argv[2]))
    if not rows:
        print("no samples")
        return False
    if sys.argv[1] == "sane":
        return sane(rows)
    load = json.loads(open(sys.argv[3]).read().splitlines()[-1])
    return {"copy": copy, "busy": busy, "pulses": pulses}[sys.argv[1]](rows, load, *sys.argv[4:])


sys.exit(not main())
