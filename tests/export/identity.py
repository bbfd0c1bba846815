#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""identity.py - recordings of two containers of a host and of another host, whose pids and device numbers are equal, merged: in every
format each process and each GPU is one of its own, and every join finds what it is to find, once.

    tests/export/identity.py [WRITER]

The recordings are those of tests/unit/test_identity.c (WRITER DIRECTORY). Needs no package and no privileges. Prints `ok` and `not
ok` lines.
"""
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "timeline"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import page  # noqa: E402
from protobuf import fields  # noqa: E402

writer = sys.argv[1] if len(sys.argv) > 1 else ".output/unit/test_identity"
ct = os.environ.get("CUDATRACE", "./cudatrace")
failed = 0


def uuid(n):
    return "GPU-" + "-".join(f"{n:02x}" * k for k in (4, 2, 2, 2, 6))


# (host, rank, GPU) of each kernel. Rank 3 has the pid of rank 0, which has ended.
KERNELS = {("node-a-1", 0, uuid(1)): 10, ("node-a-1", 3, uuid(1)): 4, ("node-a-2", 1, uuid(2)): 8, ("node-a-2", 1, uuid(1)): 8,
           ("node-b", 2, uuid(3)): 6}
ALL = sum(KERNELS.values())


def check(name, want, got):
    global failed
    if want == got:
        print(f"ok identity {name}")
    else:
        failed = 1
        print(f"not ok identity {name}: want {want}, got {got}")


def run(*args):
    return subprocess.run([ct, *args], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=240).stdout


def by_pid(rows):
    """Of pairs (number, whom): does a number mean one only, and is it the only one?"""
    pairs = set(rows)
    return len(pairs), len({p for p, _ in pairs}), len({w for _, w in pairs})


def json_rows(merged):
    rows = [json.loads(line) for line in run("replay", "--format", "json", merged).splitlines()]
    kernels = [r for r in rows if r["type"] == "kernel"]
    check("json: host, rank and GPU", KERNELS, dict(Counter((r["host"], r["rank"], r["gpu_uuid"]) for r in kernels)))
    check("json: processes", (4, 4, 4), by_pid((r.get("process_id", r["pid"]), (r["host"], r["rank"])) for r in kernels))
    check("json: pids as they were", {(1, 5001), (1, 5002)}, {(r["pid"], r["host_pid"]) for r in kernels})
    check("json: threads as they were", {5002, 5003}, {r["tid"] for r in rows if r["type"] == "call"})
    check("json: boots", {"node-a-1": "aa", "node-a-2": "aa", "node-b": "bb"}, {r["host"]: r["boot"][-2:] for r in kernels})
    check("json: counters", {(0, uuid(1)), (0, uuid(3))},
          {(r["device"], r["gpu_uuid"]) for r in rows if r["type"] == "counter"})
    calls = Counter((r.get("process_id", r["pid"]), r["correlation"]) for r in rows if r["type"] == "call")
    check("json: joins", ALL, sum(calls[(r.get("process_id", r["pid"]), r["correlation"])] for r in kernels))


def csv_rows(merged):
    rows = list(csv.DictReader(run("replay", "--format", "csv", merged).splitlines()))
    kernels = [r for r in rows if r["type"] == "kernel"]
    check("csv: host, rank and GPU", KERNELS, dict(Counter((r["host"], int(r["rank"]), r["gpu_uuid"]) for r in kernels)))
    check("csv: processes", (4, 4, 4), by_pid((r["process_id"], (r["host"], r["rank"])) for r in kernels))
    check("csv: GPUs", (3, 3, 3), by_pid((r["gpu"], r["gpu_uuid"]) for r in kernels))
    calls = Counter((r["process_id"], r["correlation"]) for r in rows if r["type"] == "call")
    check("csv: joins", ALL, sum(calls[(r["process_id"], r["correlation"])] for r in kernels))


def nsys(merged, folder):
    path = os.path.join(folder, "m.sqlite")
    run("replay", "--format", "nsys-sqlite", "-o", path, merged)
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def ask(sql):
        return db.execute(sql).fetchall()

    # the joins of NVIDIA's reports: kernels with their launches, with their process, with their GPU by its id, and by what the
    # process calls it
    check("nsys: launches", [(ALL,)], ask("""
        SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        ON r.correlationId = k.correlationId AND k.globalPid = (r.globalTid & 0xFFFFFFFFFF000000)"""))
    check("nsys: none begins before its launch", [(0,)], ask("""
        SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        ON r.correlationId = k.correlationId AND k.globalPid = (r.globalTid & 0xFFFFFFFFFF000000) WHERE k.start < r.start"""))
    check("nsys: processes and GPUs", KERNELS, {tuple(row[:3]): row[3] for row in ask("""
        SELECT p.host, p.rank, 'GPU-' || g.uuid, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p USING (globalPid)
        JOIN TARGET_INFO_GPU g ON g.id = k.deviceId GROUP BY 1, 2, 3""")})
    check("nsys: GPUs by process", KERNELS, {tuple(row[:3]): row[3] for row in ask("""
        SELECT p.host, p.rank, 'GPU-' || g.uuid, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p USING (globalPid)
        JOIN TARGET_INFO_CUDA_DEVICE d ON d.pid = (k.globalPid >> 24) & 0xFFFFFF AND d.cudaId = k.deviceId
        JOIN TARGET_INFO_GPU g ON g.id = d.gpuId GROUP BY 1, 2, 3""")})
    check("nsys: names of threads", [("worker", ALL)], ask("""
        SELECT value, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN ThreadNames t USING (globalTid) JOIN StringIds s ON s.id = t.nameId
        GROUP BY 1"""))
    check("nsys: globalPid", (4, 4), (ask("SELECT count(*) FROM PROCESSES")[0][0],
                                      ask("SELECT count(DISTINCT globalPid) FROM PROCESSES")[0][0]))
    check("nsys: the number is the process's in all tables", [], ask("""
        SELECT pid FROM PROCESSES WHERE pid << 24 <> globalPid UNION SELECT pid FROM TARGET_INFO_CUDA_DEVICE
        WHERE pid NOT IN (SELECT pid FROM PROCESSES)"""))
    check("nsys: pids as they were", [(1, 5001, 3), (1, 5002, 1)],
          ask("SELECT shownPid, hostPid, count(*) FROM PROCESSES GROUP BY 1, 2 ORDER BY 2"))
    check("nsys: what a process calls it", [("node-a-2", 0, uuid(2)[4:]), ("node-a-2", 1, uuid(1)[4:])], ask("""
        SELECT host, ordinal, uuid FROM TARGET_INFO_CUDA_DEVICE d JOIN PROCESSES p USING (pid) WHERE rank = 1 ORDER BY ordinal"""))
    check("nsys: contexts", [(5,)], ask("""
        SELECT count(*) FROM TARGET_INFO_CUDA_CONTEXT_INFO c JOIN TARGET_INFO_CUDA_DEVICE d
        ON c.processId = d.pid AND c.deviceId = d.cudaId"""))
    db.close()


def busy(spans):
    """The length of their union."""
    total = end = 0
    for a, b in sorted(spans):
        total += max(0, b - max(a, end))
        end = max(end, b)
    return total


def chrome(merged):
    trace = json.loads(run("replay", "--format", "chrome", merged))
    events, gpus = trace["traceEvents"], {d["id"]: d["uuid"] for d in trace["deviceProperties"]}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    labels = {e["pid"]: e["args"]["labels"] for e in events if e["name"] == "process_labels"}
    check("chrome: a device each", (3, 3), (len(trace["deviceProperties"]), len(gpus)))
    check("chrome: correlations", ALL, len(calls))
    got = Counter((labels[calls[e["args"]["correlation"]]["pid"]], gpus[e["pid"]]) for e in kernels)
    check("chrome: processes and GPUs", {
        ("CPU, 1 on node-a-1", uuid(1)): 10, ("CPU, 1 on node-a-1 #2", uuid(1)): 4, ("CPU, 1 on node-a-2", uuid(2)): 8,
        ("CPU, 1 on node-a-2", uuid(1)): 8, ("CPU, 1 on node-b", uuid(3)): 6}, dict(got))
    check("chrome: args.device", [], [e for e in kernels if e["args"]["device"] != e["pid"]])
    check("chrome: no process has a GPU's pid", set(), {c["pid"] for c in calls.values()} & set(gpus))
    check("chrome: none begins before its launch", [], [e for e in kernels if e["ts"] < calls[e["args"]["correlation"]]["ts"]])
    check("chrome: counters", {(0, 70) if gpus[0] == uuid(3) else (0, 50), (1, 50) if gpus[1] == uuid(1) else (1, 70)},
          {(e["pid"], e["args"]["%"]) for e in events if e["ph"] == "C" and e["name"] == "sm_active"})
    # what analyses add up by GPU: never more than all of the time, and slices of one row do not overlap
    for pid in gpus:
        spans = [(e["ts"], e["ts"] + e["dur"]) for e in kernels if e["pid"] == pid]
        check(f"chrome: GPU {pid} is busy 100 % at most", True, busy(spans) <= max(b for _, b in spans) - min(a for a, _ in spans))
        for tid in {e["tid"] for e in kernels if e["pid"] == pid}:
            row = [(e["ts"], e["ts"] + e["dur"]) for e in kernels if (e["pid"], e["tid"]) == (pid, tid)]
            check(f"chrome: no overlap on {pid}/{tid}", True, round(busy(row) - sum(b - a for a, b in row), 3) == 0)


def html(merged, folder):
    path = os.path.join(folder, "m.html")
    run("replay", "--format", "html", "-o", path, merged)
    meta, records = page.read(path)
    # [kind, pid, first, second, name, process]
    whose = [(meta["tracks"][r["track"]], r) for r in records if r["kind"] in ("call", "kernel")]
    calls = {(t[1], r["number"]): r for t, r in whose if r["kind"] == "call"}
    kernels = [(t, r) for t, r in whose if r["kind"] == "kernel"]
    check("html: calls", ALL, len(calls))
    check("html: arrows back in time", [], [r for t, r in kernels if r["start"] < calls[(t[1], r["number"])]["start"]])
    check("html: processes and GPUs", [4, 6, 8, 8, 10], sorted(Counter((t[1], t[2]) for t, _ in kernels).values()))
    check("html: names", {"train (1 on node-a-1, rank 0)", "train (1 on node-a-1 #2, rank 3)", "train (1 on node-a-2, rank 1)", "train (1 on node-b, rank 2)"},
          {t[5] for t, _ in kernels})
    check("html: counters", 2, len({tuple(s) for s in meta["series"]}))


def perfetto(merged, folder):
    path = os.path.join(folder, "m.pftrace")
    run("replay", "--format", "perfetto", "-o", path, merged)
    tracks, parents, pids, threads = {}, {}, {}, {}
    for _, packet in fields(open(path, "rb").read()):
        for number, value in fields(packet):
            if number != 60:
                continue
            track = dict(fields(value))
            tracks[track[1]] = track.get(2, b"").decode()
            parents[track[1]] = track.get(5, 0)
            if 3 in track:
                pids[track[1]] = (dict(fields(track[3]))[1], track.get(14, b"").decode())
            if 4 in track:
                threads[track[1]] = dict(fields(track[4]))
    check("perfetto: pids", (4, 4), (len(pids), len({pid for pid, _ in pids.values()})))
    check("perfetto: threads are of their process", [], [t for u, t in threads.items() if t[1] != pids[parents[u]][0]])
    check("perfetto: processes", {"node-a-2: rank 1: ", "node-a-1: pid 1: rank 0: ", "node-a-1: pid 1: rank 3: ", "node-b: pid 1: rank 2: "},
          {about for _, about in pids.values()})
    names = sorted(name for u, name in tracks.items() if name.startswith("GPU ") and parents[u])
    check("perfetto: GPUs of processes", 5, len(names))
    check("perfetto: GPUs", 3, len(set(names)))
    check("perfetto: GPUs of machines", 2, len({n for n in tracks.values() if n.endswith("(machine)")}))


def stat(merged):
    lines = run("stat", "--by", "device", merged).split("GPU kernels\n")[1].split("\n\n")[0].splitlines()
    check("stat: by device", [6, 8, 22], sorted(int(line.split()[3]) for line in lines if "device" in line))
    lines = run("stat", "--by", "thread", merged).splitlines()
    check("stat: threads as they were", [], [line for line in lines if "cudaLaunchKernel" in line and "/500" not in line])
    lines = run("stat", "--by", "process", merged).split("GPU kernels\n")[1].split("\n\n")[0].splitlines()
    check("stat: by process", {"train 1 on node-a-1": 10, "train 1 on node-a-1 #2": 4, "train 1 on node-a-2": 16, "train 1 on node-b": 6},
          {line.split("0 ns  ")[1].split("  ")[0]: int(line.split()[3]) for line in lines if "train" in line})


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([writer, folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240)
    merged = os.path.join(folder, "m.ctrace")
    run("merge", "-o", merged, *(os.path.join(folder, f"{name}.ctrace") for name in "abc"))
    json_rows(merged)
    csv_rows(merged)
    nsys(merged, folder)
    chrome(merged)
    html(merged, folder)
    perfetto(merged, folder)
    stat(merged)
sys.exit(failed)
