#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py - what cudatrace says of programs that call CUDA at random, compared with what these programs wrote down.

    tests/diary/run.py [--seed N | --seeds A..B | --fixed] [--ways W,W...] [--calls N] [--threads N] [--without KIND,KIND...] [--keep]

For each seed tests/diary/diary.c runs once in each way:

    record        recorded; then every output of the recording: json, csv, chrome, nsys-sqlite, html, perfetto, otlp-json, cupti,
                  folded, counts, stat, mem, info
    json          rows as they come
    stat          sums, added up in the kernel
    mem           the book of memory
    attach        as json, of a program that runs already; without children and libraries that are loaded later
    hooks         as json, by --source=hooks; hooks-record, hooks-stat: the others so
    auto          as json, by --source=auto; auto-record, auto-stat, auto-mem, auto-attach, auto-gpu: the others so
    gpu           recorded with --gpu, without new processes: each kernel, copy and set of the device has the thread, the function and
                  the size of its call, and each successful call has one; sums of stat. On the stand-in by its libcupti

The thread, the function and the result of each call must be those of the diary, in the order of each thread, and so must its
arguments in json and chrome, and its size in csv and otlp-json; all sums must be its sums: calls, failures and bytes in stat,
allocations and bytes in mem. --fixed runs the seeds and ways that CI runs. A seed that fails is made smaller, as long as it fails: fewer
calls, fewer threads, fewer kinds of calls; the command for the smallest is printed. Needs root, ./cudatrace and `make
cases-progs`. Prints `ok`, `not ok` lines. DIARY=PROGRAM runs this one, which was built for a real GPU (tests/gpu/diary.sh).
"""
import argparse
import collections
import contextlib
import csv
import functools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "timeline"))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import machine  # noqa: E402
import page  # noqa: E402
from protobuf import fields  # noqa: E402

CT = os.environ.get("CUDATRACE", os.path.join(ROOT, "cudatrace"))
OUT = os.path.join(ROOT, ".output")
REAL = os.environ.get("DIARY")  # on a real GPU
# A real runtime calls it when a program ends.
EVENTS = ["-e", "!cuDevicePrimaryCtxRelease"] if REAL else []
WAYS = ["record", "json", "stat", "mem", "attach", "hooks", "hooks-record", "hooks-stat", "gpu",
        "auto", "auto-record", "auto-stat", "auto-mem", "auto-attach", "auto-gpu"]
KINDS = "memory copy stream event launch graph driver failure query hostfunc callback shared fork exec dlopen become".split()
# What CI runs: each seed by each of its ways, without what depends on how soon cudatrace finds a library that is loaded later, and by
# hooks without new processes.
FIXED = [(range(1, 9), ["record"], ["dlopen"]), (range(1, 5), ["json", "stat", "mem", "attach"], ["dlopen"]),
         (range(9, 13), ["hooks", "hooks-record"], ["fork", "exec", "become", "dlopen"]), (range(13, 17), ["gpu"], ["dlopen"])]
LONGEST = 240  # seconds for one command, whatever else the machine does

ALLOCATES = {"cudaMalloc": ("size", "devPtr", "device"), "cudaMallocManaged": ("size", "devPtr", "managed"),
             "cudaMallocHost": ("size", "ptr", "host"), "cudaHostAlloc": ("size", "pHost", "host"),
             "cudaMallocAsync": ("size", "devPtr", "pool"), "cudaMallocPitch": (None, "devPtr", "device"),
             "cuMemAlloc_v2": ("bytesize", "dptr", "device")}
FREES = {"cudaFree": "devPtr", "cudaFreeHost": "ptr", "cudaFreeAsync": "devPtr", "cuMemFree_v2": "dptr"}
MOVES = {"cudaMemcpy": "count", "cudaMemcpyAsync": "count", "cudaMemset": "count", "cudaMemsetAsync": "count",
         "cuMemcpyHtoD_v2": "ByteCount"}
SIZES = {**MOVES, **{api: size for api, (size, _, _) in ALLOCATES.items() if size}}  # what outputs say as a number of bytes
# What a device does for a successful call, and how many bytes; no bytes are no work.
WORK = {**{api: ("set" if "set" in api else "copy", lambda args, size=size: args[size]) for api, size in MOVES.items()},
        "cuMemsetD32_v2": ("set", lambda args: args["N"] * 4), "cudaLaunchKernel": ("kernel", lambda args: None)}
REPORTS_ERROR = {"cudaGetLastError"}  # its result is an answer
NOT_READY = 600  # and so is this result of a query

# process: (pid, how many programs it has become); gives: what a free gives back, (bytes, kind)
Call = collections.namedtuple("Call", "pid tid api ret args process gives")


class Wrong(Exception):
    """What cudatrace says differs from the diary."""


class Unsuited(Exception):
    """It cannot be compared on this machine at this time."""


def number(text):
    try:
        return int(text, 0)
    except ValueError:
        return text if text != "(nil)" else 0


def read_diary(path):
    calls, programs = [], collections.Counter()
    for line in open(path, encoding="ascii"):
        pid, tid, api, ret, *args = line.split()
        pid, args = int(pid), dict(a.split("=", 1) for a in args)
        if api == "begins":
            programs[pid] += 1
            continue
        gives = (int(args.pop("~taken")), args.pop("~kind")) if "~kind" in args else None
        calls.append(Call(pid, int(tid), api, int(ret), {n: number(v) for n, v in args.items()}, (pid, programs[pid]), gives))
    return calls


def threads(calls):
    """The calls of each thread, in its order. A number of a thread that comes again in another process is another thread."""
    by = collections.defaultdict(list)
    for call in calls:
        by[call[0], call[1]].append(call)
    return by


def same(what, want, got):
    if isinstance(want, dict) and isinstance(got, dict):
        differ = [k for k in {**want, **got} if want.get(k) != got.get(k)]
        want, got = {k: want.get(k) for k in differ}, {k: got.get(k) for k in differ}
    if want != got:
        raise Wrong(f"{what}: the diary has {want}, cudatrace says {got}")


def same_calls(what, diary, said, form):
    """Each thread's calls in order. form(call) is what an output knows of a call, as said has it: (pid, tid, ...)."""
    want, got = threads(map(form, diary)), threads(said)
    for thread in sorted(set(want) | set(got)):
        a, b = want.get(thread, []), got.get(thread, [])
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                raise Wrong(f"{what}: call {i + 1} of thread {thread}: the diary has {x}, cudatrace says {y}")
        if len(a) != len(b):
            raise Wrong(f"{what}: thread {thread}: the diary has {len(a)} calls, cudatrace says {len(b)}")


def short(call):
    return call.pid, call.tid, call.api, call.ret == 0


def long(call):
    return call.pid, call.tid, call.api, call.ret, tuple(sorted(call.args.items()))


def value(v):
    return number(v) if isinstance(v, str) else v


def asked(diary):
    """The names of the arguments that the diary has, by function and by whether it succeeded."""
    names = collections.defaultdict(set)
    for call in diary:
        names[call.api, call.ret == 0].update(call.args)
    return names


def arguments_of(said, names):
    return tuple(sorted((n, value(v)) for n, v in said.items() if n in names))


def sized(call):
    """What an output with a number of bytes for each call knows of it; None: this call has none, or it is not compared."""
    return (*short(call), call.args[SIZES[call.api]] if call.ret == 0 and call.api in SIZES else None)


def bytes_of(api, good, text):
    """The same of what the output says: text is that number."""
    return int(text) if good and api in SIZES else None


def check_json(what, diary, path):
    """Rows of JSON, with results and those arguments that the diary has."""
    names = asked(diary)
    rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    said, numbers = [], collections.defaultdict(set)
    for row in rows:
        if row["type"] != "call":
            continue
        said.append((row["pid"], row["tid"], row["name"], row["ret"], arguments_of(row["args"], names[row["name"], row["ret"] == 0])))
        numbers[row["pid"]].add(row["correlation"])
    same_calls(what, diary, said, long)
    for pid, calls in collections.Counter(c.pid for c in diary).items():
        same(f"{what}: numbers of the calls of {pid}", set(range(1, calls + 1)), numbers[pid])
    end = [row for row in rows if row["type"] == "end"]
    for row in end:
        same(f"{what}: lost", {}, {k: v for k, v in row["lost"].items() if v})


def check_csv(what, diary, text):
    said = []
    for r in csv.DictReader(text.splitlines()):
        if r["type"] == "call":
            good = r["result"] in ("cudaSuccess", "CUDA_SUCCESS")
            said.append((int(r["pid"]), int(r["tid"]), r["name"], good, bytes_of(r["name"], good, r["size_bytes"])))
    same_calls(what, diary, said, sized)


def check_chrome(what, diary, path):
    events = [e for e in json.load(open(path, encoding="utf-8"))["traceEvents"] if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    events.sort(key=lambda e: e["ts"])
    names, said = asked(diary), []
    for e in events:
        args = e["args"]["arguments"]
        good = args["returned"] in ("cudaSuccess", "CUDA_SUCCESS")
        said.append((e["pid"], e["tid"], e["name"], good, arguments_of(args, names[e["name"], good])))
    same_calls(what, diary, said, lambda c: (*short(c), tuple(sorted(c.args.items()))))


def check_nsys(what, diary, path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = db.execute("""SELECT p.pid, globalTid & 0xFFFFFF, s.value, returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN StringIds s ON s.id = r.nameId JOIN PROCESSES p ON p.globalPid = (r.globalTid & 0xFFFFFFFFFF000000)
        ORDER BY r.start""").fetchall()
    db.close()
    # nsys' names have the version of CUDA since which the function is as it is.
    said = [(pid, tid, re.sub(r"_v\d{4,5}$", "", name), ret) for pid, tid, name, ret in rows]
    same_calls(what, diary, said, lambda c: (c.pid, c.tid, c.api, c.ret))


def check_html(what, diary, path):
    meta, records = page.read(path)
    said = []
    for record in sorted((r for r in records if r["kind"] == "call"), key=lambda r: r["start"]):
        track = meta["tracks"][record["track"]]
        said.append((track[1], track[2], record["name"],
                     re.search(r"^returned\t(cudaSuccess|CUDA_SUCCESS)$", record["details"], re.M) is not None))
    same_calls(what, diary, said, short)


def check_perfetto(what, diary, path):
    """Slices that begin on the tracks of threads; TracePacket: timestamp 8, track_event 11, interned_data 12, track_descriptor 60."""
    whose, begun, names = {}, [], {}
    for _, packet in fields(open(path, "rb").read()):
        parts = dict(fields(packet))
        if 60 in parts:
            track = dict(fields(parts[60]))
            if 4 in track:
                thread = dict(fields(track[4]))
                whose[track[1]] = (thread[1], thread[2])
        if 12 in parts:
            for kind, entry in fields(parts[12]):
                if kind == 2:
                    entry = dict(fields(entry))
                    names[entry[1]] = entry[2].decode()
        if 11 in parts:
            event = dict(fields(parts[11]))
            if event.get(9) == 1:
                begun.append((parts[8], event[11], names[event[10]] if 10 in event else event[23].decode()))
    said = [(*whose[track], name) for _, track, name in sorted(begun, key=lambda b: b[0]) if track in whose]
    same_calls(what, diary, said, lambda c: (c.pid, c.tid, c.api))


def check_otlp(what, diary, path):
    spans = []
    for line in open(path, encoding="utf-8"):
        for resource in json.loads(line)["resourceSpans"]:
            about = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    has = {a["key"]: list(a["value"].values())[0] for a in span.get("attributes", [])}
                    if has.get("cupti_type") == "callback":
                        good = has["result"] in ("cudaSuccess", "CUDA_SUCCESS")
                        spans.append((int(span["startTimeUnixNano"]), int(about["process.pid"]["intValue"]), int(has["thread.id"]),
                                      span["name"], good, bytes_of(span["name"], good, has.get("byte_count", -1))))
    same_calls(what, diary, [s[1:] for s in sorted(spans, key=lambda s: s[0])], sized)


def check_folded(what, diary, text):
    got = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        got[[f for f in stack.split(";") if not f.startswith("[kernel] ")][-1]] += int(count)
    same(what, dict(collections.Counter(c.api for c in diary)), dict(got))


def check_cupti(what, diary, text):
    got = collections.Counter(line.split()[1] for line in text.splitlines() if re.match(r"(RUNTIME|DRIVER)_API ", line))
    same(what, dict(collections.Counter(c.api for c in diary)), dict(got))


def check_mem(what, diary, text, ends=True):
    """The order of two threads' calls is not in a diary: no sum depends on it but the peak, which is not compared. ends: it is known
    which processes ended, and so what was leaked; a recording by hooks does not say it."""
    report = json.loads(text)
    same(f"{what}: missing", (0, 0, 0, True), (report["lost"], report["not_in_book"], report["not_in_rows"], report["leaks_known"]))
    want, live = collections.defaultdict(lambda: [0, 0, 0]), collections.Counter()
    for c in diary:
        if c.ret == 0 and c.api in ALLOCATES:
            size, _, kind = ALLOCATES[c.api]
            row = want[c.pid, kind]
            row[0] += 1
            row[1] += c.args[size] if size else c.args["pitch"] * c.args["height"]
            live[c.process] += 1
        elif c.ret == 0 and c.gives:
            want[c.pid, c.gives[1]][2] += 1
            live[c.process] -= 1
    got = collections.defaultdict(lambda: [0, 0, 0])
    for r in report["by_kind"]:
        for i, member in enumerate(("allocations", "taken_bytes", "frees")):
            got[r["pid"], r["kind"]][i] += r[member]
    same(f"{what}: allocations, bytes, frees", dict(want), dict(got))
    if ends:
        same(f"{what}: leaked", sorted((process[0], n) for process, n in live.items() if n),
             sorted((p["pid"], p["leaked_allocations"]) for p in report["processes"] if p["leaked_allocations"]))
    for member, of in (("invalid_frees", FREES), ("out_of_memory", ALLOCATES)):
        failed = collections.Counter(c.pid for c in diary if c.ret and c.api in of)
        said = collections.Counter()
        for p in report["processes"]:
            said[p["pid"]] += p[member]
        same(f"{what}: {member}", dict(failed), {pid: n for pid, n in said.items() if n})
    for member in ("double_frees", "wrong_frees", "unseen_frees", "unseen_allocations", "failed_allocations", "failed_frees"):
        same(f"{what}: {member}", 0, sum(p[member] for p in report["processes"]))


def check_stat(what, diary, text):
    report = json.loads(text)
    got = {r["name"]: (r["calls"], r["failed"]) for r in report["runtime"] + report["driver"]}
    calls = collections.Counter(c.api for c in diary)
    failed = collections.Counter(c.api for c in diary if c.ret not in (0, NOT_READY) and c.api not in REPORTS_ERROR)
    same(f"{what}: calls, failed", {api: (n, failed[api]) for api, n in calls.items()}, got)
    sizes = collections.Counter()
    for c in diary:
        if c.ret == 0 and c.api in SIZES:
            sizes[c.api] += c.args[SIZES[c.api]]
    moved = {r["name"]: r["bytes"] for r in report["runtime"] + report["driver"] if r["name"] in SIZES and r["bytes"]}
    same(f"{what}: bytes", dict(sizes), moved)
    same(f"{what}: lost", {}, report["lost"])


def worked(call):
    """The device work of a call: (kind, bytes); None: it has none."""
    kind, size = WORK[call.api] if call.ret == 0 and call.api in WORK else (None, None)
    return (kind, size(call.args)) if kind and size(call.args) != 0 else None


def check_device(diary, path, text):
    """Rows of JSON, and the sums of stat. A graph's launch may be any number of kernels."""
    rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    said = [row for row in rows if row["type"] in ("kernel", "copy", "set")]
    end = rows[-1]
    same("gpu: lost", {}, {k: v for k, v in end["lost"].items() if v})
    same("gpu: without a call", (0, 0), (end["unmatched"], end["inferred"]))
    graphs = [r for r in said if r.get("cause") == "cudaGraphLaunch"]
    said = sorted((r for r in said if r.get("cause") != "cudaGraphLaunch" and r.get("size_bytes") != 0), key=lambda r: r["cause_start_ns"])
    same_calls("gpu", [c for c in diary if worked(c)],
               [(r["pid"], r["tid"], r["cause"], r["type"], r.get("size_bytes")) for r in said], lambda c: (c.pid, c.tid, c.api, *worked(c)))
    same("gpu: names of kernels", {"_Z7vec_mulPfS_i"} if any(r["type"] == "kernel" for r in said) else set(),
         {r.get("kernel_mangled") for r in said if r["type"] == "kernel"})
    report = json.loads(text)
    same("gpu: kernels of stat", sum(r["type"] == "kernel" for r in said + graphs), sum(r["calls"] for r in report["kernels"]))
    moved = collections.Counter()
    for r in said:
        if r["type"] != "kernel":
            moved["memset" if r["type"] == "set" else r["copy_kind"]] += r["size_bytes"]
    same("gpu: bytes of stat", dict(moved), {r["direction"]: r["bytes"] for r in report["traffic"]})


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=LONGEST)
    if machine.disturbed(done.stderr.decode(errors="replace")):
        raise Unsuited("another tracer of this machine has breakpoints where hooks would be")
    if done.returncode:
        raise Wrong(f"{' '.join(command[:6])}...: status {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
    return done


@functools.lru_cache(None)
def program():
    return REAL or machine.own_copy(OUT, "diary")


class Attempt:
    """One seed, one way, in a folder of its own."""

    def __init__(self, folder, seed, calls, count, without):
        self.folder, self.path = folder, os.path.join(folder, "diary.txt")
        self.program = [program(), self.path, str(seed), str(calls), str(count), ",".join(without) or "-"]

    def file(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        return open(self.file(name), encoding="utf-8").read()

    def diary(self):
        return read_diary(self.path)

    def rows(self, source):
        run([CT, *source, *EVENTS, "--format", "json", "-o", self.file("rows.json"), "--", *self.program])
        check_json("json", self.diary(), self.file("rows.json"))

    def stat(self, source):
        run([CT, "stat", *source, *EVENTS, "--json", "-o", self.file("stat.json"), "--", *self.program])
        check_stat("stat", self.diary(), self.read("stat.json"))

    def mem(self, source):
        run([CT, "mem", *source, "--json", "-o", self.file("mem.json"), "--", *self.program])
        check_mem("mem", self.diary(), self.read("mem.json"), ends=not source)

    def attach(self, source):
        program = subprocess.Popen([*self.program[:-1], f"{self.program[-1]},fork,exec,become,dlopen", "wait"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        tracer = None
        try:
            program.stdout.readline()
            tracer = subprocess.Popen([CT, "-v", *source, *EVENTS, "--format", "json", "-o", self.file("rows.json"), "-p", str(program.pid)],
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for line in tracer.stderr:
                if b"cudatrace: ready" in line:
                    break
            program.communicate(b"\n", timeout=LONGEST)
            tracer.communicate(timeout=LONGEST)
        finally:
            for p in (program, tracer):
                if p and p.poll() is None:
                    p.kill()
        same("attach: status", (0, 0), (program.returncode, tracer.returncode))
        check_json("attach", self.diary(), self.file("rows.json"))

    def record(self, source):
        file = self.file("r.ctrace")
        run([CT, "record", *source, *EVENTS, "-o", file, "--", *self.program])
        diary = self.diary()
        info = run([CT, "info", file]).stdout.decode()
        same("info: calls", [str(len(diary))], re.findall(r"^calls +(\d+)", info, re.M))
        same("info: lost", ["nothing"], re.findall(r"^lost +(.*)", info, re.M))
        for form, check in (("json", check_json), ("chrome", check_chrome), ("nsys-sqlite", check_nsys), ("html", check_html),
                            ("perfetto", check_perfetto), ("otlp-json", check_otlp)):
            out = self.file(f"out.{form}")
            run([CT, "replay", "--format", form, *(["--otlp-min", "0s"] if form == "otlp-json" else []), "-o", out, file])
            check(form, diary, out)
        for form, check in (("csv", check_csv), ("folded", check_folded), ("cupti", check_cupti)):
            check(form, diary, run([CT, "replay", "--format", form, file]).stdout.decode())
        check_stat("stat of a recording", diary, run([CT, "stat", "--json", file]).stdout.decode())
        check_mem("mem of a recording", diary, run([CT, "mem", "--json", file]).stdout.decode(), ends=not source)

    def gpu(self, source):
        file = self.file("r.ctrace")
        run([CT, "record", "--gpu", *source, *EVENTS, "-o", file, "--", *self.program[:-1], f"{self.program[-1]},fork,exec,become"])
        run([CT, "replay", "--format", "json", "-o", self.file("gpu.json"), file])
        diary = self.diary()
        check_json("gpu: calls", diary, self.file("gpu.json"))
        check_device(diary, self.file("gpu.json"), run([CT, "stat", "--json", file]).stdout.decode())

    def go(self, way):
        by, _, rest = way.partition("-")
        source = [f"--source={by}"] if by in ("hooks", "auto") else []
        {"json": self.rows, "record": self.record, "stat": self.stat, "mem": self.mem, "attach": self.attach,
         "gpu": self.gpu}[(rest or "json") if source else way](source)


def attempt(seed, way, calls, count, without, keep=False):
    """None, or why not. Raises Unsuited."""
    folder = tempfile.mkdtemp(prefix="cudatrace-diary.")
    try:
        with machine.taken("undisturbed") if way.startswith(("hooks", "auto")) else contextlib.nullcontext():
            Attempt(folder, seed, calls, count, without).go(way)
        return None
    except (Wrong, subprocess.TimeoutExpired, KeyError, IndexError, OSError, ValueError) as why:
        if keep:
            print(f"# kept {folder}")
        return f"{type(why).__name__}: {why}" if not isinstance(why, Wrong) else str(why)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def smaller(calls, count, without):
    for n in (calls // 2, calls - calls // 4, calls - 1):
        if 0 <= n < calls:
            yield n, count, without
    if count > 1:
        yield calls, count // 2, without
        yield calls, count - 1, without
    for kind in KINDS:
        if kind not in without:
            yield calls, count, [*without, kind]


def still(*args):
    """Why a smaller one fails, too. One that cannot be compared at this time does not make the failure that is there one that cannot."""
    try:
        return attempt(*args)
    except Unsuited:
        return None


def shrink(seed, way, calls, count, without, why):
    """The smallest that still fails, each tried twice, in a bounded number of runs."""
    left = 150
    progress = True
    while progress:
        progress = False
        for tried in smaller(calls, count, without):
            left -= 1
            found = left > 0 and (still(seed, way, *tried) or still(seed, way, *tried))
            if found:
                (calls, count, without), why, progress = tried, found, True
                break
    but = f" --without {','.join(without)}" if without else ""
    return f"tests/diary/run.py --seed {seed} --ways {way} --calls {calls} --threads {count}{but}: {why}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", metavar="A..B")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--without", default="")
    parser.add_argument("--keep", action="store_true", help="keep the files of what fails, and do not shrink it")
    given = parser.parse_args()
    wrong = [w for w in given.ways.split(",") if w not in WAYS] + [k for k in given.without.split(",") if k and k not in KINDS]
    if wrong:
        parser.error(f"no such way or kind: {' '.join(wrong)}; ways: {' '.join(WAYS)}; kinds: {' '.join(KINDS)}")
    return given


def main():
    given = arguments()
    without = [k for k in given.without.split(",") if k]
    if given.fixed:
        plan = [(seed, way, leave) for seeds, ways, leave in FIXED for way in ways for seed in seeds]
    else:
        first, last = (given.seed, given.seed) if given.seed is not None else map(int, (given.seeds or "1..8").split(".."))
        plan = [(seed, way, without) for seed in range(first, last + 1) for way in given.ways.split(",")]
    passed = failed = skipped = 0
    for seed, way, leave in plan:
        try:
            why = attempt(seed, way, given.calls, given.threads, leave, given.keep)
            if why and not (given.keep or given.fixed):
                why = shrink(seed, way, given.calls, given.threads, leave, why)
        except Unsuited as unsuited:
            print(f"skip diary {way} {seed}: {unsuited}", flush=True)
            skipped += 1
            continue
        print(f"not ok diary {way} {seed}: {why}" if why else f"ok diary {way} {seed}", flush=True)
        failed += bool(why)
        passed += not why
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
