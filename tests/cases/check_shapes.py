# SPDX-License-Identifier: BSD-2-Clause
"""check_shapes.py OURS PROFILED: both are traces in Kineto's format, with the same operators within a range `measured`; without one, as
where the function for ranges has no hook, all that is in it. Each shape and type in OURS is that of torch.profiler; prints how many tensors
have one, and what is wrong."""
import json
import sys


def operators(path):
    """(name, dims, types) of each operator within `measured`, by thread and begin."""
    events = json.load(open(path, encoding="utf-8"))["traceEvents"]
    measured = [e for e in events if e.get("name") == "measured" and e.get("cat") == "user_annotation"]
    ops = [e for e in events if e.get("cat") == "cpu_op" and e["name"].startswith("aten::")]
    if measured:
        last = max(measured, key=lambda e: float(e["ts"]))
        begin, end, main = float(last["ts"]), float(last["ts"]) + float(last["dur"]), last["tid"]
        ops = [e for e in ops if begin <= float(e["ts"]) <= end]
    else:
        main = ops[0]["pid"] if ops else 0  # the main thread has the process's number
    ops.sort(key=lambda e: (e["tid"] != main, float(e["ts"])))
    return [(e["name"], e["args"].get("Input Dims"), e["args"].get("Input type"), float(e["ts"]), float(e["dur"])) for e in ops]


def once(ops):
    """Without the only operator that is inside one of its own name, which torch.profiler may leave out: a part of the names' order."""
    return [o for i, o in enumerate(ops) if not (i and ops[i - 1][0] == o[0] and ops[i - 1][3] <= o[3] <= ops[i - 1][3] + ops[i - 1][4])]


ours, theirs = once(operators(sys.argv[1])), once(operators(sys.argv[2]))
theirs = [o for o in theirs if o[0] != "aten::detach" or any(p[0] == "aten::detach" for p in ours)]
if [o[0] for o in ours] != [o[0] for o in theirs]:
    first = next((i for i, (o, t) in enumerate(zip(ours, theirs)) if o[0] != t[0]), min(len(ours), len(theirs)))
    print(f"the operators differ from number {first} on: {[o[0] for o in ours[first:first + 4]]}, profiled {[o[0] for o in theirs[first:first + 4]]}")
    sys.exit(1)
known = tensors = wrong = 0
for (name, dims, types, *_), (_, want_dims, want_types, *_) in zip(ours, theirs):
    # a list of tensors is no tensor
    for i, (d, t) in enumerate(zip(want_dims or [], want_types or [])):
        if t in ("", "Scalar", "ScalarList", "TensorList", "GenericList"):
            if dims and dims[i] and not (t == "TensorList" and dims[i] == d):
                wrong += 1
                print(f"{name}, argument {i}: {types[i]} {dims[i]}, profiled {t}")
            continue
        tensors += 1
        if not dims or not types[i]:
            continue
        known += 1
        if (dims[i], types[i]) != (d, t):
            wrong += 1
            print(f"{name}, argument {i}: {types[i]} {dims[i]}, profiled {t} {d}")
print(f"{known} of {tensors} tensors are known, {wrong} wrong")
sys.exit(wrong != 0 or known < 0.9 * tensors)
