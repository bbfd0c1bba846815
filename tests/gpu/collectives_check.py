# SPDX-License-Identifier: BSD-2-Clause
"""collectives_check.py - compares a trace with NCCL's own log: collectives_check.py TITLE DIR ROWS SUMS KIND WHOLE|LATER [LATE]

DIR has what collectives_rank.py wrote, and NCCL's logs, nccl.PID. ROWS is `replay --format json`, SUMS is `stat --by collective --json`
of the recording. LATER: the trace came after the ranks had warmed up, so that what the logs had before does not count. LATE: the rank that
came late to each step. Prints `ok NAME` and `not ok NAME: why`.
"""
import collections
import glob
import json
import re
import sys

title, folder, rows_path, sums_path, kind, part = sys.argv[1:7]
late = int(sys.argv[7]) if len(sys.argv) > 7 else None
LINE = re.compile(r"NCCL INFO (\w+): opCount \w+ sendbuff \S+ recvbuff \S+ count (\d+) datatype (\d+) op \d+ root -?\d+ "
                  r"comm (?:0x)?(\w+) \[nranks=(\d+)\]")
TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"]
BYTES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1]


def check(name, fine, why=""):
    print(f"ok {title}-{name}" if fine else f"not ok {title}-{name}: {why}")


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"the {i + 1}th: NCCL {x}, trace {y}"
    return f"NCCL {len(a)}, trace {len(b)}"


rows = [json.loads(line) for line in open(rows_path, encoding="utf-8")]
sums = json.load(open(sums_path, encoding="utf-8"))
warmed = [json.load(open(path, encoding="utf-8")) for path in sorted(glob.glob(folder + "/warmed.?"))]
done = [json.load(open(path, encoding="utf-8")) for path in sorted(glob.glob(folder + "/done.?"))]
rank_of = {w["pid"]: w["rank"] for w in warmed}
ranks = len(rank_of)
check("ranks-ended", len(done) == ranks > 1, f"{len(done)} of {ranks} have ended")

# what NCCL itself says of each call, by process and communicator, in order
said = collections.defaultdict(list)
for w in warmed:
    with open(f"{folder}/nccl.{w['pid']}", encoding="utf-8", errors="replace") as f:
        f.seek(w["log_bytes"] if part == "LATER" else 0)
        for m in LINE.finditer(f.read()):
            name, count, datatype, comm, nranks = m[1], int(m[2]), int(m[3]), int(m[4], 16), int(m[5])
            said[w["pid"], comm].append((name, count, TYPES[datatype], count * BYTES[datatype], nranks))

moves = [r for r in rows if r["type"] == "collective" and "count" in r and "inner" not in r]
seen = collections.defaultdict(list)
for r in moves:
    name = r["name"].removeprefix("nccl").replace("Bcast", "Broadcast")
    seen[r["pid"], int(r["communicator"], 16)].append((name, r["count"], r["datatype"], r.get("size_bytes"), r.get("communicator_ranks")))
total = sum(map(len, said.values()))
check("as-nccl-says", total and seen == said, f"{[first_difference(said[k], seen[k]) for k in {*said, *seen} if said[k] != seen[k]][:2]} of {total}")
print(f"# {title}: NCCL's log has {total} calls of {len(said)} communicators, {sum(c[3] for s in said.values() for c in s)} bytes; the trace has "
      f"{len(moves)} calls, {sum(r.get('size_bytes', 0) for r in moves)} bytes")
if kind == "ddp":
    large = sum(r.get("size_bytes", 0) for r in moves if r["name"] == "ncclAllReduce" and r.get("size_bytes", 0) > 4096)
    steps = sum(d["steps"] + (3 if part == "WHOLE" else 0) for d in done)
    check("bytes-of-gradients", done and large == steps * done[0]["gradients"], f"{large} of {steps} steps")

check("ranks", moves and all(r.get("communicator_rank") == rank_of.get(r["pid"]) and r.get("communicator_ranks") == ranks for r in moves),
      f"{collections.Counter((rank_of.get(r['pid']), r.get('communicator_rank'), r.get('communicator_ranks')) for r in moves)}")
hashes = {p: {r.get("communicator_hash") for r in moves if r["pid"] == p} for p in rank_of}
check("communicators-by-hash", None not in set().union(*hashes.values()) and len({frozenset(h) for h in hashes.values()}) == 1, str(hashes))

# every kernel of NCCL is for a collective, and other kernels are for none
kernels = [{"name": r.get("kernel", "?"), **r} for r in rows if r["type"] == "kernel"]
ours = [k for k in kernels if k["name"].startswith("nccl")]
orphans = [k for k in ours if "scope_unknown" in k or not k.get("scope_name", "").startswith("nccl")]
others = [k for k in kernels if not k["name"].startswith("nccl") and k.get("scope_name", "").startswith("nccl")]
check("kernels-have-collectives", len(ours) >= total / 2 > 0 and not orphans,
      f"{len(orphans)} of {len(ours)} have none: {collections.Counter(k.get('scope_name', 'unknown' if 'scope_unknown' in k else 'none') for k in orphans)}")
check("other-kernels-have-none", kernels and not others, f"{len(others)}: {collections.Counter(k['name'][:60] for k in others).most_common(3)}")
print(f"# {title}: {len(ours)} kernels of NCCL, {len(kernels) - len(ours)} others; {sum('bus_bytes_per_second' in k for k in ours)} with bus bandwidth")
check("bus-bandwidth", ours and sum("bus_bytes_per_second" in k for k in ours) >= len(ours) / 2, "hardly any kernel has one")
whole = sum(r["duration_ns"] for r in rows if r["type"] in ("kernel", "copy", "set", "graph"))
check("sums-are-the-whole", sums.get("gpu_ns") == whole == sum(r["gpu_ns"] for r in sums["rows"]), f"{sums.get('gpu_ns')}, {whole}")

# the same number is the same collective at all ranks
numbered = collections.defaultdict(dict)
for r in moves:
    if "sequence" in r:
        numbered[r["communicator_hash"], r["sequence"]][rank_of[r["pid"]]] = r
full = {k: v for k, v in numbered.items() if len(v) == ranks}
wrong = [k for k, v in full.items() if len({(r["name"], r["count"]) for r in v.values()}) != 1]
check("numbers-agree", len(full) >= total / ranks / 4 and not wrong, f"{len(full)} numbers at all ranks, {len(wrong)} name different collectives")
if late is not None and full:
    last = collections.Counter(max(v, key=lambda rank: v[rank]["start_ns"]) for v in full.values())
    by_rank = {rank: sum(k["duration_ns"] for k in ours if rank_of[k["pid"]] == rank) / 1e6 for rank in range(ranks)}
    print(f"# {title}: arrives last, by rank: {dict(last)}; ms in NCCL's kernels, by rank: { {r: round(ms, 1) for r, ms in by_rank.items()} }")
    check("straggler", last.most_common(1)[0][0] == late and min(by_rank, key=by_rank.get) == late, f"{last}, {by_rank}")
