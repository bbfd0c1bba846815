# SPDX-License-Identifier: BSD-2-Clause
# check_python.py SAID JSON: compares what tests/unit/python_stacks.py said of its stacks with the Python frames of the
# calls in a JSON trace, thread by thread in order. Prints "N stacks" or the first difference.
import json
import sys

NAME, FILE = 256, 512  # bytes, CT_PY_NAME and CT_PY_FILE: the script has longer ASCII ones

said, frames, tid = {}, None, 0
for line in open(sys.argv[1], encoding="utf-8"):
    line = line.rstrip("\n")
    if line.startswith("tid "):
        tid, frames = int(line[4:]), []
    elif line == "end":
        said.setdefault(tid, []).append(frames)
        frames = None
    elif frames is not None:
        function, file, number = line.split("\t")
        frames.append((function[:NAME], file[:FILE], int(number)))

seen = {}
for line in open(sys.argv[2], encoding="utf-8"):
    row = json.loads(line)
    if row["type"] == "call" and row["name"] == "cudaMalloc":
        seen.setdefault(row["tid"], []).append([(f.get("function"), f.get("file"), f.get("line"))
                                                for f in row.get("stack", []) if f["kind"] == "python"])

count = 0
for tid in said:
    if len(said[tid]) != len(seen.get(tid, [])):
        sys.exit("thread %d: %d calls, not %d" % (tid, len(seen.get(tid, [])), len(said[tid])))
    for want, got in zip(said[tid], seen[tid]):
        for i in range(max(len(want), len(got))):
            if want[i:i + 1] != got[i:i + 1]:
                sys.exit("frame %d is %s, not %s" % (i, got[i:i + 1], want[i:i + 1]))
        count += 1
print("%d stacks" % count)
