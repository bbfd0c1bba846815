# SPDX-License-Identifier: BSD-2-Clause
"""stat_check.py SAVED PROFILED: what cudatrace stat says of kernels, copies and memsets against torch.profiler's sums."""
import json
import re
import sys

saved, profiled = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
bad = 0


def say(good, name, text):
    global bad
    bad += not good
    print(f"{'ok' if good else 'not ok'} {name}: {text}")


def plain(name):
    """The two demanglers differ in blanks and in how they write numbers."""
    return re.sub(r"\s+|(?<=\d)[uUlL]+\b|\((int|unsigned int|bool|long|unsigned long)\)(?=-?\d)", "", name)


copies = {k: v for k, v in profiled.items() if k.startswith(("Memcpy", "Memset"))}
kernels = {k: v for k, v in profiled.items() if k not in copies}
have = sum(r["calls"] for r in saved["kernels"])
want = sum(n for n, _ in kernels.values())
say(have == want and have > 1000, "executions of kernels", f"{have}, the profiler {want}")
have_ns, want_ns = saved["summary"]["kernel_time_ns"], sum(ns for _, ns in kernels.values())
say(abs(have_ns - want_ns) <= 0.15 * want_ns, "their time", f"{have_ns / 1e6:.3f} ms, the profiler {want_ns / 1e6:.3f} ms in a run of its own")
have = sum(r["calls"] for r in saved["copies"])
want = sum(n for n, _ in copies.values())
say(have == want, "copies and memsets", f"{have}, the profiler {want}")
ours = {}
for r in saved["kernels"]:
    ours[plain(r["name"])] = ours.get(plain(r["name"]), 0) + r["calls"]
theirs = {}
for k, (n, _) in kernels.items():
    theirs[plain(k)] = theirs.get(plain(k), 0) + n
both = [k for k in ours if k in theirs]
say(len(both) >= 0.8 * len(theirs), "kernels of the same name", f"{len(both)} of {len(theirs)}")
say(all(ours[k] == theirs[k] for k in both), "each with the same number", "; ".join(f"{k[:60]} {ours[k]} {theirs[k]}" for k in both if ours[k] != theirs[k]))
occupancy = [r["occupancy"] for r in saved["kernels"] if "occupancy" in r]
say(len(occupancy) == len(saved["kernels"]) and all(0 < o <= 1 for o in occupancy), "each with an occupancy", f"{len(occupancy)}")
use = saved["summary"].get("kernel_utilization", -1)
say(0 < use <= 1, "share of the run in which a kernel runs", f"{use}")
sys.exit(bad != 0)
