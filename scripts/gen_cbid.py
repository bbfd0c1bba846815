#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gen_cbid.py - writes user/export/nsys/nsys_cbid.def: the suffixes that CUPTI's callback ids give to the runtime's functions
(cudaLaunchKernel_v7000). nsys has API names with these, and its readers strip them.

    scripts/gen_cbid.py [INCLUDE] > user/export/nsys/nsys_cbid.def     INCLUDE: the folder with cupti_runtime_cbid.h

Only names and numbers are taken. A function that has several ids of one spelling got a new signature under the same name: a
row `name_v2` of runtime.def without an id of its own is the second of them. The driver's ids are the symbols themselves.
"""
import collections
import re
import sys

include = sys.argv[1] if len(sys.argv) > 1 else "/usr/local/cuda/include"
rows = []
for line in open("user/api/runtime.def", encoding="utf-8"):
    m = re.match(r"API\w*\((\w+),", line)
    if m and m.group(1) not in rows:
        rows.append(m.group(1))

plain = collections.defaultdict(set)
twin = collections.defaultdict(set)
for name in re.findall(r"\bCUPTI_RUNTIME_TRACE_CBID_(\w+)\s*=", open(include + "/cupti_runtime_cbid.h", encoding="utf-8").read()):
    m = re.fullmatch(r"(\w+?)(_ptsz|_ptds)?_v(\d{4,5})", name)
    if m:
        (twin if m.group(2) else plain)[m.group(1)].add((int(m.group(3)), name))


def ids(table, row):
    """All ids of a row in order; several: the row has had several signatures under one name."""
    found = sorted(table.get(row, ()))
    m = re.fullmatch(r"(\w+)_v(\d)", row)
    if not found and m:
        found = sorted(table.get(m.group(1), ()))[-1:]
    elif any(re.fullmatch(re.escape(row) + r"_v\d", other) and other not in table for other in rows):
        found = found[:1]
    return found


print("/* SPDX-License-Identifier: BSD-2-Clause */")
print("/* nsys_cbid.def - made by scripts/gen_cbid.py: CBID(row, version, name, name of its per-thread twin) */")
for row in sorted(rows):
    a, b = ids(plain, row), ids(twin, row)
    for i, (version, name) in enumerate(a):
        other = f'"{b[min(i, len(b) - 1)][1]}"' if b else "NULL"
        print(f'CBID({row}, {version}, "{name}", {other})')
