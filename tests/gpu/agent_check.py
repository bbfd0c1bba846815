# SPDX-License-Identifier: BSD-2-Clause
"""agent_check.py JSON - a trace of the sample program or of agent_loop: is every kernel between its launch's entry and the end of
the next synchronising call of its thread? Prints the worst cases in microseconds, and "bad N"."""
import bisect
import json
import sys

syncs, kernels, bad, zero = {}, [], 0, 0
early = late = 0
for line in open(sys.argv[1]):
    r = json.loads(line)
    if r["type"] == "call" and "Synchronize" in r["name"]:
        syncs.setdefault(r["tid"], []).append(r["start_ns"] + r["duration_ns"])
    elif r["type"] == "kernel":
        kernels.append(r)
for k in kernels:
    if "cause_start_ns" not in k or k.get("no_time"):
        zero += 1
        continue
    ends = syncs.get(k["tid"], [])
    at = bisect.bisect_right(ends, k["cause_start_ns"])
    before = k["cause_start_ns"] - k["start_ns"]
    after = k["start_ns"] + k["duration_ns"] - ends[at] if at < len(ends) else 0
    early, late = max(early, before), max(late, after)
    bad += before > 0 or after > 0
print("kernels %d, without a time or a call %d, begun before their call by %.1f us at most, ended after the synchronize by %.1f us" %
      (len(kernels), zero, early / 1e3, late / 1e3))
print("bad", bad)
