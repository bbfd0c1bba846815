#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hta.py - Meta's Holistic Trace Analysis reads Chrome JSON, and adds up what was recorded: hta.py ROWS.jsonl RANK=TRACE.json...

ROWS.jsonl is the same recording as `--format json` prints it; each trace is the file of one process (-o with %p). For each rank:
HTA's sums by kernel, and its temporal breakdown, equal those of the rows within 0.1 %; each launch is joined to its kernel.
Prints `ok NAME` or `not ok NAME: why`.
"""
import json
import logging
import os
import sys
from collections import defaultdict

# HTA cuts times to whole microseconds unless it is told not to
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
logging.disable(logging.WARNING)
del sys.path[0]  # where this file lies, whose name is the package's
from hta.trace_analysis import TraceAnalysis  # noqa: E402

TYPES = {"kernel": None, "copy": "Memcpy", "set": "Memset"}


def name_of(row):
    if row["type"] == "kernel":
        return row["kernel"]
    return TYPES[row["type"]]


def recorded(path, pid):
    """Sums of nanoseconds by name, first begin and last end, busy time, number of work with a cause."""
    sums, spans, joined = defaultdict(int), [], 0
    for line in open(path):
        row = json.loads(line)
        if row["type"] in TYPES and row["pid"] == pid:
            sums[name_of(row)] += row["duration_ns"]
            spans.append((row["start_ns"], row["start_ns"] + row["duration_ns"]))
            joined += bool(row.get("correlation"))
    spans.sort()
    busy, end = 0, 0
    for a, b in spans:
        busy += max(0, b - max(a, end))
        end = max(end, b)
    return sums, spans[0][0], end, busy, joined


def check(name, pairs):
    bad = [f"{what}: {got:.3f} us, recorded {want:.3f} us" for what, got, want in pairs if abs(got - want) > max(want, 1) * 1e-3]
    print(f"not ok {name}: {'; '.join(bad)}" if bad else f"ok {name}")


def main(rows, *files):
    traces = {int(f.split("=", 1)[0]): f.split("=", 1)[1] for f in files}
    analysis = TraceAnalysis(trace_files=traces, trace_dir="")
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=1000, include_memory_kernels=True)
    temporal = analysis.get_temporal_breakdown(visualize=False)
    for rank, path in traces.items():
        head = json.load(open(path))
        info = head["distributedInfo"]
        if (info["rank"], info["world_size"]) != (rank, len(traces)):
            print(f"not ok hta-rank-{rank}: the file says {info}")
        else:
            print(f"ok hta-rank-{rank}")
        pid = next(e["pid"] for e in head["traceEvents"] if e.get("cat") == "cuda_runtime")
        sums, begin, end, busy, joined = recorded(rows, pid)
        mine = kernels[kernels["rank"] == rank]
        got = defaultdict(float)
        for _, k in mine.iterrows():
            got[k["name"].split(" ")[0] if k["name"].startswith("Mem") else k["name"]] += k["sum (us)"]
        check(f"hta-kernels-{rank}", [(n, got[n], ns / 1e3) for n, ns in sums.items()])
        t = temporal[temporal["rank"] == rank].iloc[0]
        check(f"hta-time-{rank}", [("whole", t["kernel_time(us)"], (end - begin) / 1e3),
                                   ("idle", t["idle_time(us)"], (end - begin - busy) / 1e3)])
        df = analysis.t.get_trace(rank)
        linked = int(((df["stream"] >= 0) & (df["index_correlation"] > 0)).sum())
        print(f"ok hta-joined-{rank}" if linked == joined else f"not ok hta-joined-{rank}: {linked} of {joined} are joined")


if __name__ == "__main__":
    main(*sys.argv[1:])
