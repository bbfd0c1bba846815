# SPDX-License-Identifier: BSD-2-Clause
"""Which share of the launches in a trace (JSON) has a kernel's name, by how it is known; with a second file of {name: count},
whether the launches between cudaProfilerStart and cudaProfilerStop have exactly those names."""
import collections
import json
import sys

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernelEx",
            "cuLaunchCooperativeKernel")
total = named = 0
how = collections.Counter()
unnamed = collections.Counter()
inside = collections.Counter()
window = False
with open(sys.argv[1]) as f:
    for line in f:
        row = json.loads(line)
        api = row.get("name", "")
        if row.get("type") != "call":
            continue
        if api in ("cudaProfilerStart", "cudaProfilerStop") or api in ("cuProfilerStart", "cuProfilerStop"):
            window = api.endswith("Start")
        if api.removesuffix("_ptsz") not in LAUNCHES:
            continue
        total += 1
        kernel = row.get("kernel")
        if kernel is None:
            unnamed[api, str(row["args"].get("func", row["args"].get("f")))] += 1
        else:
            named += 1
            how[row["kernel_source"]] += 1
        if window:
            inside[kernel] += 1
print(f"{total} launches, {named} named ({100 * named / max(total, 1):.3f} %): " +
      ", ".join(f"{n} {s}" for s, n in how.most_common()))
for (api, handle), n in unnamed.most_common(5):
    print(f"  not named: {n} {api} {handle}")
if len(sys.argv) > 2:
    with open(sys.argv[2]) as f:
        want = collections.Counter(json.load(f))
    missing = want - inside
    wrong = inside - want
    wrong.pop(None, None)
    print(f"  in the window: the profiler has {sum(want.values())} kernels of {len(want)} names, the trace {sum(inside.values())}; "
          f"{sum(wrong.values())} with a name that the profiler does not have")
    for name, n in list(wrong.items())[:3]:
        print(f"  wrong: {n} {name[:300]}")
    for name, n in list(missing.items())[:3]:
        print(f"  missing: {n} {name[:300]}")
    sys.exit(1 if wrong else 0)
