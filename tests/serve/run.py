#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py - `cudatrace serve` against what scrapes it: Prometheus itself, its parsers, strangers, and a collector.

    tests/serve/run.py [NAME...]

Needs root, `make standin cases-progs`, Debian's prometheus (with promtool), and prometheus_client and opentelemetry-proto of PyPI
(fetched into .output/pypi). Programs that know what they called are counted, and the numbers compared exactly. Waits for
conditions, never for a time. Prints `ok`, `not ok` and `skip` lines.
"""
import glob
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import machine  # noqa: E402
from machine import free_port  # noqa: E402

CT = os.environ.get("CUDATRACE", "./cudatrace")
OUT = os.path.abspath(os.environ.get("OUTPUT", ".output"))
CASES, STANDIN, PYPI = f"{OUT}/cases", f"{OUT}/standin", ".output/pypi"
GPU = f"{STANDIN}/gpu"
OPEN = "application/openmetrics-text"
LONGEST = 120  # seconds that one thing may take on a machine whose processors others have
failed = 0
T = tempfile.mkdtemp(prefix="cudatrace-serve-")
# The programs run under names of their own, as others of theirs may run here too; in what follows these are `work` and `calls`.
NAMES = {name: f"{name}{os.getpid()}" for name in ("work", "calls", "holder", "kernels", "ranks")}
PROGRAMS = {"holder": "memory"}
OURS = ["--comm", f"*{os.getpid()}"]


def named(text, back=False):
    for name, own in NAMES.items():
        if back:
            text = text.replace(f'"{name}"', f'"another {name}"').replace(f'"{own}"', f'"{name}"')
        else:
            text = text.replace(f'process="{name}"', f'process="{own}"')
    return text


class Wrong(Exception):
    pass


def check(what, got, want):
    if got != want:
        raise Wrong(f"{what}: {got}, not {want}")


def wait_for(what, seconds, condition):
    until = time.monotonic() + 4 * seconds  # others may have the processors
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > until:
            raise Wrong(f"waited in vain for {what}")
        time.sleep(0.02)


def fetch(module, package):
    if PYPI not in sys.path:
        sys.path.insert(0, PYPI)
    try:
        return __import__(module, fromlist=["x"])
    except ImportError:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", PYPI, package], capture_output=True,
                       timeout=LONGEST, check=False)
    import importlib
    importlib.invalidate_caches()
    return __import__(module, fromlist=["x"])


# ---- cudatrace serve -----------------------------------------------------------------------------------------------

class Serve:
    last = None

    def __init__(self, *args, listen=None, env=None, before=(), wait=True, limited=False):
        """limited: with the limit of the cost that serve has by default. Where others launch masses of programs, or the processors are busy, it
        takes probes off for a part of the time: then numbers are estimates, and a test that compares them fails."""
        if not limited and "--max-cost" not in args and "--duty" not in args:
            args = ("--max-cost", "off", *args)
        self.port = free_port()
        self.listen = listen or f"127.0.0.1:{self.port}"
        self.err_path = f"{T}/serve-{self.port}.err"
        self.err = open(self.err_path, "w")
        Serve.last = self.err_path
        self.p = subprocess.Popen([*before, CT, "serve", "-v", "--listen", self.listen, *args], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=self.err, env={**os.environ, **(env or {})})
        if wait:
            try:
                wait_for("cudatrace to be ready", 30, lambda: "cudatrace: ready" in self.said() or self.p.poll() is not None)
                if self.p.poll() is not None:
                    raise Wrong(f"cudatrace ended at once: {self.said()[-300:]}")
            except Wrong:
                self.p.kill()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGINT)
            try:
                self.p.wait(LONGEST)
            except subprocess.TimeoutExpired:
                self.p.kill()
                self.p.wait()
                raise Wrong("cudatrace did not end") from None
        self.err.close()
        if self.p.returncode < 0:
            raise Wrong(f"cudatrace was ended by signal {-self.p.returncode}")

    def said(self):
        with open(self.err_path) as f:
            return f.read()

    def end(self, sig=signal.SIGINT):
        self.p.send_signal(sig)
        try:
            return self.p.wait(LONGEST)
        except subprocess.TimeoutExpired:
            raise Wrong("cudatrace did not end") from None

    def get(self, path="/metrics", accept=None, method="GET"):
        request = urllib.request.Request(f"http://{self.listen}{path}", headers={"Accept": accept} if accept else {}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def values(self, accept=None):
        """Samples as {'name{labels}': value}."""
        return samples(self.get(accept=accept)[1])

    def value(self, series, default=0.0):
        return self.values().get(series, default)


def said_last(e):
    """Where a test failed, and what the last cudatrace said: set in, so that it belongs to the line above (scripts/test.sh)."""
    where = [f"line {frame.lineno} in {frame.name}: {frame.line}" for frame in traceback.extract_tb(e.__traceback__)][-4:]
    said = []
    if Serve.last:
        with open(Serve.last, errors="replace") as f:
            said = f.read().splitlines()[-14:]
    print("".join(f"    {line[:400]}\n" for line in where + said), end="", flush=True)


def samples(text):
    out = {}
    for line in named(text, True).splitlines():
        if line and line[0] != "#":
            series, value = line.rsplit(" ", 1)
            check("a second sample", series in out, False)
            out[series] = float(value)
    return out


MALLOCS = 'cudatrace_memory_allocation_calls_total{process="%s"}'
LAUNCHES = 'gpu_cuda_kernel_launch_calls_total{process="%s"}'


def run(program, *args, env=None):
    subprocess.run([f"{T}/{NAMES[program]}", *map(str, args)], stdout=subprocess.DEVNULL, timeout=LONGEST, check=True,
                   env={**os.environ, **(env or {})})


class Work:
    """A program that launches, copies and sets ROUNDS times and waits."""

    def __init__(self, rounds, env=None, program="work"):
        self.p = subprocess.Popen([f"{T}/{NAMES[program]}", str(rounds), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env={**os.environ, **(env or {})})

    def done(self):
        check("work says", self.p.stdout.readline().split()[:1], [b"launched"])
        return self

    def end(self):
        self.p.communicate(b"\n", timeout=LONGEST)


def warm(serve):
    """Until the stand-ins, which lie where nobody looks before they are mapped, have probes."""
    def seen():
        run("work", 1, "return")
        return serve.value(LAUNCHES % "work") and serve.value(MALLOCS % "work")
    wait_for("calls to be seen", 30, seen)
    return serve.values()


def grown(serve, before, series, by):
    wait_for(f"{series} to grow by {by}", 20, lambda: serve.value(series) - before.get(series, 0) >= by)
    check(f"growth of {series}", serve.value(series) - before.get(series, 0), by)


# ---- what is counted ------------------------------------------------------------------------------------------------

def test_counts():
    """The sums are what programs called."""
    with Serve("--hist", "--kernels", "3") as s:
        before = warm(s)
        run("work", 37, "return")
        run("calls", "mix", 100, 20, 3)
        grown(s, before, LAUNCHES % "work", 37)
        after = s.values()
        for series, n in {
                'cudatrace_kernel_launches_total{process="work",kernel="vec_mul(float*, int)"}': 37,
                'gpu_cuda_kernel_grid_size_count{process="work"}': 37,
                'gpu_cuda_kernel_block_size_count{process="work"}': 37,
                'gpu_cuda_kernel_block_size_sum{process="work"}': 37 * 128,
                'gpu_cuda_kernel_block_size_bucket{process="work",le="64.0"}': 0,
                'gpu_cuda_kernel_block_size_bucket{process="work",le="128.0"}': 37,
                'gpu_cuda_memory_copies_bytes_count{process="work",cuda_memcpy_kind="HostToDevice"}': 37,
                'gpu_cuda_memory_copies_bytes_sum{process="work",cuda_memcpy_kind="HostToDevice"}': 37 * 4096,
                'gpu_cuda_memory_copies_bytes_bucket{process="work",cuda_memcpy_kind="HostToDevice",le="4096.0"}': 37,
                'gpu_cuda_memory_copies_bytes_bucket{process="work",cuda_memcpy_kind="HostToDevice",le="1024.0"}': 0,
                MALLOCS % "calls": 101,
                'gpu_cuda_memory_allocations_bytes_total{process="calls"}': 100 * 256 + 64,
                'cudatrace_memory_free_calls_total{process="calls"}': 101,
                'cudatrace_memory_copy_calls_total{process="calls",cuda_memcpy_kind="HostToDevice"}': 20,
                'gpu_cuda_memset_bytes_total{process="calls"}': 3 * 64,
        }.items():
            check(series, after.get(series, 0) - before.get(series, 0), n)
        sets = 'cudatrace_call_duration_seconds_count{class="set"}'
        check("durations of sets, of whoever runs here", after[sets] - before.get(sets, 0) >= 37 + 3, True)
        before = after
        run("calls", "failing", 5, 4)
        grown(s, before, 'cudatrace_call_failures_total{process="calls",domain="runtime",class="device",function="cudaSetDevice"}', 4)


class Ranks:
    """A job of four ranks, of which the last one sleeps where the others do their fifth collective."""

    def __init__(self, mode, job, n=4, name=NAMES["ranks"]):
        self.p = subprocess.Popen([f"{T}/{name}", mode, str(n), "0", str(n - 1), job], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while self.p.stdout.readline().split()[:1] != [b"ready"]:
            check("ranks run", self.p.poll(), None)

    def end(self):
        self.p.communicate(timeout=LONGEST)


def test_collectives():
    """Collectives by communicator and rank; the rank that has not arrived has a lower number."""
    def of(name, serve):
        found = {}
        for series, value in serve.values().items():
            if series.startswith(name + "{"):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
                key = (labels["communicator"], labels.get("function"))
                # of a job that began before its probes this is not known at once: then it is not counted here
                if labels["ranks"] == "?":
                    continue
                check("ranks", labels["ranks"], "4")
                found.setdefault(key, {})[labels["rank"]] = value
        return found

    calls, size, newest = (f"cudatrace_collective_{what}" for what in ("calls_total", "bytes_total", "sequence"))
    with Serve("--layers", "nccl", *OURS) as s:
        os.symlink(f"{T}/{NAMES['ranks']}", f"{T}/others")
        others = Ranks("turn", "third", 2, "others")  # --comm leaves it out
        turn = Ranks("turn", "first")  # until its libraries have probes
        wait_for("collectives", 30, lambda: len(of(newest, s)) == 1)
        (first, _), = of(newest, s)
        job = Ranks("absent", "second")
        wait_for("the other job", 20, lambda: len(of(newest, s)) == 2)
        other, = {comm for comm, _ in of(newest, s)} - {first}
        wait_for("the last calls", 20, lambda: sum(of(calls, s).get((other, "ncclAllReduce"), {}).values()) == 4 + 4 + 4 + 3)
        check("all-reduces", of(calls, s)[other, "ncclAllReduce"], {"0": 4, "1": 4, "2": 4, "3": 3})
        check("bytes", of(size, s)[other, "ncclAllReduce"], {"0": 4096, "1": 4096, "2": 4096, "3": 3072})
        check("broadcasts", of(calls, s)[other, "ncclBroadcast"], {"0": 1, "1": 1, "2": 1, "3": 1})
        check("numbers", of(newest, s)[other, None], {"0": 5, "1": 5, "2": 5, "3": 4})
        others.end()
        turn.end()
        job.end()
        check("status", s.end(), 0)
        check("a note of what is not shown", "not in the output" in s.said(), False)
    for layers, why in (("nvtx", "have only collectives"), ("nccl,nvtx", "have only collectives")):
        p = subprocess.run([CT, "serve", "--layers", layers], capture_output=True, timeout=LONGEST, check=False)
        check(layers, (p.returncode, why in p.stderr.decode()), (2, True))


def test_windows():
    """Returns of calls that began between windows are no calls from before the trace."""
    with Serve(*OURS, limited=True) as s:
        warm(s)
        wait_for("both libraries to be probed", 30, lambda: len(re.findall(r"standin/libcuda[^ ]*: \d+ functions probed", s.said())) >= 2)
        orphans = 'cudatrace_lost_records_total{cause="orphan_return"}'
        before = s.value(orphans)

        def work():
            run("work", "-p", 1, 500, "return")
            return "its probes are on for a part of the time" in s.said()
        wait_for("a word of windows", 60, work)
        run("work", "-p", 1, 1000, "return")
        check("returns without an entry", s.value(orphans) - before, 0)


def test_passing():
    """Of processes that live for less than the time between two windows no more calls are reported than they made."""
    short = f"short{os.getpid()}"
    os.symlink(f"{T}/{NAMES['work']}", f"{T}/{short}")
    with Serve("--duty", "1/5", *OURS) as s:
        warm(s)
        busy = subprocess.Popen([f"{T}/{NAMES['work']}", "2000000000", "return"], stdout=subprocess.DEVNULL)
        try:
            wait_for("launches to be sampled", 30, lambda: s.value("cudatrace_probe_duty_functions", 0) > 2)
            for _ in range(300):
                subprocess.run([f"{T}/{short}", "1", "return"], stdout=subprocess.DEVNULL, timeout=LONGEST, check=True)
        finally:
            busy.kill()
            busy.wait()
        got = s.value(LAUNCHES % short, 0)
        if not 0 < got <= 300:
            raise Wrong(f"{got} launches of 300 processes that made one each")


def test_inner():
    """From inside a pid namespace, too, the cost is known, and the limit is kept."""
    inside = f"'{T}/{NAMES['work']}' 2000000000 return > /dev/null & exec \"$@\""
    with Serve("--max-cost", "1%", *OURS, before=("unshare", "-pf", "--mount-proc", "bash", "-c", inside, "bash")) as s:
        try:
            wait_for("a cost", 30, lambda: s.value("cudatrace_probe_cost_ratio") > 0)
            wait_for("a lower duty", 30, lambda: s.value("cudatrace_probe_duty_ratio", 1) < 0.5)
        finally:
            with open(f"/proc/{s.p.pid}/task/{s.p.pid}/children") as f:
                os.kill(int(f.read()), signal.SIGINT)
            s.p.wait(LONGEST)
        check("status", s.p.returncode, 0)


def test_monotonic():
    """No series goes backwards while processes begin, become others, and end."""
    with Serve("--kernels", "2", *OURS) as s:
        before = last = warm(s)
        for i in range(12):
            run("work", 3, ["return", "exec", "fork-exec", "kill"][i % 4]) if i % 4 != 3 else \
                subprocess.run([f"{T}/{NAMES['work']}", "3", "kill"], stdout=subprocess.DEVNULL, check=False, timeout=LONGEST)
            s.p.send_signal(signal.SIGHUP)
            now = s.values()
            for series, v in last.items():
                name = series.split("{")[0]
                if name.endswith(("_total", "_bucket", "_sum", "_count")) and v > now.get(series, -1):
                    raise Wrong(f"{series} went from {v} to {now.get(series)}")
            last = now
        # exec and fork-exec begin the program once more, for five rounds
        grown(s, before, LAUNCHES % "work", 12 * 3 + 6 * 5)
        wait_for("the ended to be taken off", 20, lambda: s.value("cudatrace_tally_entries", 1) == 0)
        check("processes", s.value("cudatrace_processes"), 0)
        check("status", s.end(), 0)


def test_short():
    """Processes that begin and end between two scrapes are counted under their names."""
    with Serve(*OURS) as s:
        before = warm(s)
        for _ in range(100):
            run("work", 1, "return")
            run("calls", "mix", 1, 1, 1)
        grown(s, before, LAUNCHES % "work", 100)
        grown(s, before, MALLOCS % "calls", 200)
        check("calls without a name", s.value(MALLOCS % "?"), 0)


def test_full():
    """A full map is counted and said, and has room again when processes have ended."""
    with Serve("--processes", "10", *OURS) as s:
        warm(s)
        check("limit", s.value("cudatrace_tally_entries_limit"), 400)
        works = [Work(2) for _ in range(90)]
        for w in works:
            w.done()
        wait_for("losses", 20, lambda: s.value('cudatrace_lost_records_total{cause="tally_full"}') > 0)
        entries = s.value("cudatrace_tally_entries")
        if not 100 <= entries <= 440:
            raise Wrong(f"{entries} entries")
        check("said", len(re.findall("raise --processes", s.said())), 1)
        try:
            s.get("/readyz")
            raise Wrong("/readyz is content")
        except urllib.error.HTTPError as e:
            check("/readyz", (e.code, "records were lost" in e.read().decode()), (503, True))
        check("/healthz", s.get("/healthz")[1].splitlines()[0], "ok")
        for w in works:
            w.end()
        wait_for("room", 20, lambda: s.value("cudatrace_tally_entries", 1) == 0)
        before = s.values()
        run("work", 5, "return")
        grown(s, before, LAUNCHES % "work", 5)


def test_share():
    """A process that makes up kernels has its share of the sums; its launches are counted all the same, and others have theirs."""
    with Serve("--processes", "100", "--kernels", "5", *OURS) as s:
        warm(s)
        each = 4000 // 16 + 100
        check("limit", s.value("cudatrace_tally_entries_limit"), 4000)
        before = s.values()
        w = Work(1000, program="kernels").done()
        grown(s, before, LAUNCHES % "kernels", 1000)
        now = s.values()
        check("beyond", now["cudatrace_calls_beyond_share_total"], 1000 - each)
        check("lost", now['cudatrace_lost_records_total{cause="tally_full"}'], 0)
        if not each < now["cudatrace_tally_entries"] < each + 40:
            raise Wrong(f"{now['cudatrace_tally_entries']} entries")
        launches = sum(v for k, v in now.items() if k.startswith('cudatrace_kernel_launches_total{process="kernels"'))
        check("launches by kernel", launches, 1000)
        before = now
        run("work", 7, "return")
        grown(s, before, LAUNCHES % "work", 7)
        after = s.values()
        check("the other's kernels", after["cudatrace_calls_beyond_share_total"], 1000 - each)
        w.end()
        wait_for("the ended to be taken off", 20, lambda: s.value("cudatrace_tally_entries", 1) == 0)
        # its number's next owner, and all others, begin anew
        before = s.values()
        run("kernels", each)
        grown(s, before, LAUNCHES % "kernels", each)
        check("beyond", s.value("cudatrace_calls_beyond_share_total"), 1000 - each)


def test_held():
    """While a library is read, for however long, scrapes are answered and other libraries are probed; when it is done it is probed too."""
    def readers(s):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            if name == "ct-reader" and int(rest.split()[1]) == s.p.pid:
                found.append(int(pid))
        return found

    def use(folder, n):
        shutil.copytree(STANDIN, f"{T}/{folder}", ignore=lambda _, names: [n for n in names if not n.startswith("libcuda")])
        return subprocess.Popen([f"{T}/{NAMES['work']}", str(n), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env={**os.environ, "LD_LIBRARY_PATH": f"{T}/{folder}"})
    with Serve(*OURS) as s:
        warm(s)
        before = s.values()
        # the workers that wait for work are held up: what they are given next, to list mappings or to search a file, does not end
        stopped = wait_for("a worker", 20, lambda: readers(s))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        slow = use("slow", 3)
        check("slow says", slow.stdout.readline().split()[:1], [b"launched"])
        wait_for("a word", 40, lambda: re.search("to list its mappings took too long", s.said()))
        for _ in range(3):
            check("a scrape", LAUNCHES % "work" in s.values(), True)
        quick = use("quick", 1)
        check("quick says", quick.stdout.readline().split()[:1], [b"launched"])
        wait_for("the other library to be probed", 60, lambda: re.search(r"/quick/libcudart[^ ]*: \d+ functions probed", s.said()))
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        wait_for("the library to be probed", 60, lambda: re.search(r"/slow/libcudart[^ ]*: \d+ functions probed", s.said()))
        check("unprobed", s.value('cudatrace_unprobed_processes_total{ended="false"}') > before['cudatrace_unprobed_processes_total{ended="false"}'], True)
        for p in (slow, quick):
            p.communicate(b"\n", timeout=LONGEST)
        warm(s)


def test_memory():
    """What is given back and what is in use, also when more is taken than can be remembered, and of memory from before."""
    def of(name, **labels):
        return name + "{" + ",".join(f'{k}="{v}"' for k, v in dict(process="holder", **labels).items()) + "}"
    device = of("cudatrace_memory_in_use_bytes", memory="device")
    with Serve("--processes", "10", *OURS) as s:
        warm(s)
        p = subprocess.Popen([f"{T}/{NAMES['holder']}", "many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check("holder says", p.stdout.readline(), b"taken\n")
        now = s.values()
        # there is room for 400, and others that run here may have some of it
        forgotten = now.get(of("cudatrace_memory_allocation_forgotten_calls_total"))
        check("without room", 100 <= forgotten < 500 or forgotten, True)
        check("in use", now.get(device), 5000 - 10 * forgotten)
        check("of the host", now.get(of("cudatrace_memory_in_use_bytes", memory="host")), 0)
        check("taken", now.get(of("gpu_cuda_memory_allocations_bytes_total")), 5000)
        p.stdin.write(b"\n")
        p.stdin.flush()
        check("holder says", p.stdout.readline(), b"freed\n")
        now = s.values()
        check("in use after that", now.get(device), 10)
        check("given back", now.get(of("gpu_cuda_memory_free_bytes_total")), 5000 - 10 * forgotten)
        check("of unknown size", now.get(of("cudatrace_memory_free_unknown_calls_total")), forgotten)
        p.communicate(b"\n", timeout=LONGEST)
        wait_for("its end", 20, lambda: device not in s.values())
        check("given back in all", s.value(of("gpu_cuda_memory_free_bytes_total")), 5000 - 10 * forgotten)
        # what comes before the tracer
        p = subprocess.Popen([f"{T}/{NAMES['holder']}", "-w", "leak"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check("holder says", p.stdout.readline(), b"ready\n")
        with Serve(*OURS) as late:
            p.communicate(b"\n", timeout=LONGEST)
            wait_for("the late one", 20, lambda: late.value(of("gpu_cuda_memory_free_bytes_total")) == 10000)
            check("of unknown size", late.value(of("cudatrace_memory_free_unknown_calls_total")), 1)


def test_container():
    """Container and pod, from the cgroup."""
    mounts = [line.split() for line in open("/proc/mounts")]
    roots = [m[1] for m in mounts if m[2] == "cgroup2"] + [m[1] for m in mounts if m[2] == "cgroup" and "pids" in m[3]]
    container, pod = "0123456789abcdef" * 4, "11111111-2222-3333-4444-555555555555"
    made = []
    for root in roots:
        path = root
        try:
            for part in ("kubepods.slice", f"kubepods-pod{pod.replace('-', '_')}.slice", f"cri-containerd-{container}.scope"):
                path += "/" + part
                if not os.path.exists(path):
                    os.mkdir(path)
                    made.append(path)
            break
        except OSError:
            continue
    else:
        return f"no cgroup can be made under {roots}"
    try:
        with Serve() as s:
            warm(s)
            # what a process is is read of it while it runs
            w = subprocess.Popen(["sh", "-c", f"echo $$ > {path}/cgroup.procs && exec {T}/{NAMES['work']} 9 wait"], stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
            series = f'gpu_cuda_kernel_launch_calls_total{{process="work",container_id="{container}",pod_uid="{pod}"}}'
            try:
                wait_for("the container", 20, lambda: s.value(series) == 9)
            finally:
                w.communicate(b"\n", timeout=LONGEST)
    finally:
        for p in reversed(made):
            os.rmdir(p)
    return None


# ---- the formats ----------------------------------------------------------------------------------------------------

def test_formats():
    """promtool and prometheus_client read both formats, and they say the same."""
    parser = fetch("prometheus_client.parser", "prometheus_client==0.22.1")
    openmetrics = fetch("prometheus_client.openmetrics.parser", "prometheus_client==0.22.1")
    with Serve("--layers", "nccl", "--hist", "--kernels", "2", "--counters", "-i", "100ms", "--cupti", GPU, env={"LD_LIBRARY_PATH": GPU}, limited=True) as s:
        warm(s)
        wait_for("counters", 20, lambda: s.value("cudatrace_counters_up"))
        kind, text = s.get()
        check("type", kind, "text/plain; version=0.0.4; charset=utf-8")
        p = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LONGEST, check=False)
        # dcgm-exporter's label modelName is as it is
        other = [line for line in (p.stdout + p.stderr).splitlines()
                 if not re.fullmatch(r"(hw|cudatrace_gpu)_\w+ label names should be written in 'snake_case' not 'camelCase'", line)]
        check("promtool", (p.returncode in (0, 3), other), (True, []))
        old = {f.name: f for f in parser.text_string_to_metric_families(text)}
        kind, text = s.get(accept=f"{OPEN};version=1.0.0;q=0.9, text/plain;q=0.5")
        check("type", kind, f"{OPEN}; version=1.0.0; charset=utf-8")
        new = {f.name: f for f in openmetrics.text_string_to_metric_families(text)}
        check("families", sorted(new), sorted(old))
        for name, f in new.items():
            check(f"kind of {name}", f.type, old[name].type)
            check(f"help of {name}", f.documentation, old[name].documentation)
            if name.startswith(("gpu_cuda", "cudatrace_call")):
                mine = [[(x.name, x.labels, x.value) for x in which.samples if x.labels.get("process") in NAMES.values()]
                        for which in (f, old[name])]
                check(f"samples of {name}", mine[0], mine[1])
            if f.unit:
                check(f"unit of {name}", name.endswith(f.unit), True)
        check("text", s.get(accept=f"{OPEN};q=0.1, text/plain;q=0.5")[0].split(";")[0], "text/plain")
        # two questions by one connection, as bytes: a body behind the first head would be taken for the second answer
        for path, status in (("/metrics", "200 OK"), ("/nothing", "404 Not Found")):
            host, port = s.listen.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=LONGEST) as c:
                ask = f"HEAD {path} HTTP/1.1\r\nHost: x\r\n"
                c.sendall(f"{ask}\r\n{ask}Connection: close\r\n\r\n".encode())
                got = b"".join(iter(lambda c=c: c.recv(65536), b"")).decode()
            check(f"HEAD of {path}", [answer.splitlines()[0] for answer in got.split("\r\n\r\n") if answer],
                  [f"HTTP/1.1 {status}"] * 2)
            check(f"length of {path}", "Content-Length: 0\r\n" in got, False)
        documented()[1](new)


def documented():
    """What docs/metrics.md lists, and a comparison with what is served."""
    rows = re.findall(r"^\| `([a-zA-Z_]+)` \| (counter|gauge|histogram) \|", open("docs/metrics.md").read(), re.M)

    def compare(families):
        served = sorted((f.name + ("_total" if f.type == "counter" else ""), f.type) for f in families.values())
        check("listed or served alone", sorted(set(rows) ^ set(served)), [])
        check("docs/metrics.md lists", sorted(rows), served)
    return rows, compare


def test_queries():
    """The dashboard, the alerts and the example of deploy/ name metrics that there are."""
    names = set()
    for name, kind in documented()[0]:
        names.update([name] if kind != "histogram" else [name + e for e in ("_bucket", "_sum", "_count")])
    board = json.load(open("deploy/grafana.json"))
    queries = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
    queries += [v["query"]["query"] if isinstance(v["query"], dict) else v["query"] for v in board["templating"]["list"]
                if v["type"] == "query"]
    queries += re.findall(r"expr: (.*)", open("deploy/alerts.yml").read())
    check("queries", len(queries) > 15, True)
    known = 0
    for q in queries:
        for word in re.findall(r"\b(?:gpu_cuda|hw|cudatrace)_[a-z_]+", q):
            if word not in names and word != "cudatrace_":
                raise Wrong(f"{q} names {word}")
            known += 1
    check("names in queries", known >= len(queries) - 3, True)
    for command in (["check", "rules", "deploy/alerts.yml"], ["check", "config", "--syntax-only", "deploy/prometheus.yml"]):
        p = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=LONGEST, check=False)
        check(f"promtool {command[1]}", (p.returncode, p.stderr), (0, ""))


# ---- Prometheus ------------------------------------------------------------------------------------------------------

class Exporter:
    """Serves a text, as an exporter does."""

    def __init__(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Prometheus:
    def __init__(self, jobs):
        self.port = free_port()
        config = "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
        for name, port in jobs.items():
            config += f"- job_name: {name}\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
        with open(f"{T}/prometheus.yml", "w") as f:
            f.write(config)
        self.log = open(f"{T}/prometheus.log", "w")
        self.p = subprocess.Popen(["prometheus", f"--config.file={T}/prometheus.yml", f"--storage.tsdb.path={T}/tsdb",
                                   f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
                                  stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.terminate()
        self.p.wait(LONGEST)
        self.log.close()

    def query(self, q):
        """[(labels, value)], [] where it does not answer yet."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query={urllib.parse.quote(named(q))}"
        try:
            with urllib.request.urlopen(url, timeout=LONGEST) as answer:
                data = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as e:
            if e.code == 422 or e.code == 400:
                raise Wrong(f"{q}: {e.read().decode()[:200]}") from None
            return []
        except (OSError, ValueError):
            return []
        return [(r["metric"], float(r["value"][1])) for r in data]

    def value(self, q):
        got = self.query(q)
        return got[0][1] if len(got) == 1 else None


def dcgm(series, uuids):
    """What dcgm-exporter says of two GPUs; series: name -> (labels beside those of the GPU, value)."""
    text = ""
    for name, (labels, value) in series.items():
        text += f"# HELP {name} x\n# TYPE {name} gauge\n"
        for i, uuid in enumerate(uuids):
            text += (f'{name}{{gpu="{i}",UUID="{uuid}",pci_bus_id="00000000:0{i}:00.0",device="nvidia{i}",'
                     f'modelName="Stand-in GPU",{labels}}} {value}\n')
    return text


def test_prometheus():
    """Prometheus scrapes it, knows the rate of launches, and joins it with dcgm-exporter of before and after 4.9."""
    with Serve("--counters", "-i", "100ms", "--cupti", GPU, env={"LD_LIBRARY_PATH": GPU}) as s:
        warm(s)
        wait_for("counters", 20, lambda: s.value("cudatrace_counters_up"))
        text = s.get()[1]
        uuids = re.findall(r'^hw_gpu_memory_limit_bytes\{.*UUID="([^"]*)"', text, re.M)
        host = re.search(r'Hostname="([^"]*)"', text)[1]
        check("GPUs", len(set(uuids)), 2)
        # labels up to 4.8.2: Hostname; from 4.8.3 on: hostname; 4.9.0: other names and units of metrics, another label for the driver
        old = Exporter(dcgm({"DCGM_FI_DEV_GPU_UTIL": (f'Hostname="{host}",DCGM_FI_DRIVER_VERSION="580.1"', 50)}, uuids))
        new = Exporter(dcgm({"DCGM_FI_DEV_GPU_UTIL_RATIO": (f'hostname="{host}",DCGM_FI_SYSTEM_DRIVER_VERSION="590.1"', 0.5)}, uuids))
        with Prometheus({"cudatrace": s.port, "dcgm": old.port, "dcgm49": new.port}) as prom:
            wait_for("all to be up", 60, lambda: prom.value("sum(up)") == 3)
            series = 'gpu_cuda_kernel_launch_calls_total{process="work"}'
            first = wait_for("launches", 30, lambda: prom.value(series))
            run("work", 40, "return")
            run("work", 25, "return")
            wait_for("65 more", 30, lambda: prom.value(series) == first + 65)
            check("the growth", prom.value(f"max_over_time({series}[5m]) - min_over_time({series}[5m])"), 65)
            check("the rate is known", prom.value(f"rate({series}[5m])") > 0, True)
            check("a histogram", prom.value('histogram_quantile(0.5, rate(gpu_cuda_kernel_block_size_bucket{process="work"}[5m])) <= 128') is not None, True)
            # the stand-in's GPUs are at 87 and 88 % by NVML
            for q, n in {
                    "hw_gpu_utilization_ratio": 2,
                    "hw_gpu_utilization_ratio - on (UUID) DCGM_FI_DEV_GPU_UTIL / 100": 2,
                    "hw_gpu_utilization_ratio - on (UUID) DCGM_FI_DEV_GPU_UTIL_RATIO": 2,
                    "hw_gpu_utilization_ratio - on (UUID, gpu, device, modelName) DCGM_FI_DEV_GPU_UTIL / 100": 2,
                    "hw_gpu_utilization_ratio - on (UUID, gpu, device, modelName) DCGM_FI_DEV_GPU_UTIL_RATIO": 2,
                    "hw_gpu_utilization_ratio * on (UUID, Hostname) group_left (DCGM_FI_DRIVER_VERSION) DCGM_FI_DEV_GPU_UTIL": 2,
                    "label_replace(hw_gpu_utilization_ratio, 'hostname', '$1', 'Hostname', '(.*)') * on (UUID, hostname) "
                    "group_left (DCGM_FI_SYSTEM_DRIVER_VERSION) DCGM_FI_DEV_GPU_UTIL_RATIO": 2}.items():
                # a scrape that was not answered in its second takes them away until the next one
                wait_for(f"{n} results of {q}", 20, lambda q=q, n=n: len(prom.query(q)) == n)
            differ = wait_for("differences", 20, lambda: prom.query("hw_gpu_utilization_ratio - on (UUID) DCGM_FI_DEV_GPU_UTIL / 100"))
            utils = wait_for("shares", 20, lambda: {m["UUID"]: v for m, v in prom.query("hw_gpu_utilization_ratio")})
            for m, v in differ:
                check(f"the difference of {m['UUID']}", round(v, 9), round(utils[m["UUID"]] - 0.5, 9))
            for rule in re.findall(r"expr: (.*)", open("deploy/alerts.yml").read()):
                prom.query(rule)
            for panel in json.load(open("deploy/grafana.json"))["panels"]:
                for t in panel.get("targets", []):
                    prom.query(re.sub(r"\$__rate_interval", "1m", re.sub(r"\$(job|instance|process)\b", ".*", t["expr"])))
        old.server.shutdown()
        new.server.shutdown()


# ---- counters ---------------------------------------------------------------------------------------------------------

def test_counters():
    """Hardware counters: their values, and that all goes on without them."""
    with Serve("--counters", env={"LD_LIBRARY_PATH": "/nonexistent"}) as s:
        if "libnvidia-ml.so.1" in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout:
            return "NVML is installed"
        check("said", s.said().count("NVML"), 1)
        check("as", "warning: no counters" in s.said(), True)
        check("up", s.values()["cudatrace_counters_up"], 0)
        # a line about what was not seen is of programs of others
        health = [line for line in s.get("/healthz")[1].splitlines() if not re.search(r"before (its|their) calls were seen$", line)]
        check("/healthz", health, ["ok"] + ["no file has probes: no process has CUDA's libraries mapped, and none was found installed"] *
              (not s.value("cudatrace_probed_files")) + ["no hardware counters are read"])
        warm(s)
    with Serve() as s:
        check("not asked for", [k for k in s.values() if k.startswith(("hw_", "cudatrace_counters"))], [])
    with Serve("--counters", "-i", "100ms", "--cupti", GPU, env={"LD_LIBRARY_PATH": GPU}) as s:
        wait_for("counters", 20, lambda: s.value("cudatrace_counters_up"))
        values = s.values()
        got = {re.sub(r"\{gpu=\"(\d)\".*", r" \1", k): v for k, v in values.items() if k.startswith("hw_")}
        check("power", (got["hw_power_watts 0"], got["hw_power_watts 1"]), (250.5, 251.5))
        check("temperature", (got["hw_temperature_celsius 0"], got["hw_temperature_celsius 1"]), (45, 46))
        check("memory", got["hw_gpu_memory_usage_bytes 1"], 2 * got["hw_gpu_memory_usage_bytes 0"])
        check("share", got["hw_gpu_memory_utilization_ratio 0"],
              got["hw_gpu_memory_usage_bytes 0"] / got["hw_gpu_memory_limit_bytes 0"])
        helper = subprocess.run(["pgrep", "-P", str(s.p.pid), "cudatrace-count"], capture_output=True, text=True, check=True).stdout
        os.kill(int(helper), signal.SIGKILL)
        wait_for("the counters to be down", 30, lambda: s.value("cudatrace_counters_up", 1) == 0)
        check("stale", [k for k in s.values() if k.startswith("hw_power")], [])
        warm(s)
    return None


# ---- strangers --------------------------------------------------------------------------------------------------------

def raw(port, data, size=65536):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(data)
        got = b""
        try:
            while len(got) < size:
                more = s.recv(65536)
                if not more:
                    break
                got += more
                if b"\r\n\r\n" in got:
                    break
        except ConnectionResetError:
            pass
        return got.split(b"\r\n")[0].decode("latin-1")


def test_strangers():
    """Whoever connects, and whatever he says, Prometheus gets its answer."""
    with Serve() as s:
        for request, status in {
                b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n": {"501", "405"},
                b"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n": {"501", "405"},
                b"BREW /metrics HTTP/1.1\r\nHost: x\r\n\r\n": {"501", "400", "405"},
                b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n": {"404"},
                b"GET /metrics/../healthz HTTP/1.1\r\nHost: x\r\n\r\n": {"404"},
                b"GET /%2e%2e/metrics HTTP/1.1\r\nHost: x\r\n\r\n": {"404"},
                b"GET /metrics?x=y HTTP/1.0\r\n\r\n": {"200"},
                b"GET http://example.com/healthz HTTP/1.1\r\nHost: x\r\n\r\n": {"200", "404"},
                b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70000 + b"\r\n\r\n": {"400", "413", "431", ""},
                b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: x\r\n\r\n": {"400", "413", "414", ""},
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)) + b"\r\n\r\n": {"400", ""},
                b"GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n": {"200", "400", "505", ""},
                b"GET\r\n\r\n": {"400", ""},
                b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n": {"400", "413", "200", ""}}.items():
            answer = (raw(s.port, request) + "  ").split(" ")[1]
            check(f"{request[:30]} gets one of {status}", answer in status or answer, True)
            check("and then", s.get("/healthz")[1].startswith("ok"), True)
        half = []
        for i in range(200):
            c = socket.create_connection(("127.0.0.1", s.port), timeout=20)
            c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: "[:i % 36 + 1])
            half.append(c)
        check("with 200 half requests", "cudatrace_build_info" in s.get()[1], True)
        # more than are let in: whoever comes later is answered when these have gone
        for _ in range(400):
            c = socket.socket()
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", s.port))
            half.append(c)
        fds = len(os.listdir(f"/proc/{s.p.pid}/fd"))
        check("descriptors", fds < 500 or fds, True)
        for c in half:
            c.close()
        wait_for("an answer", 30, lambda: answers(s))
        # who asks and never reads
        slow = []
        for _ in range(20):
            c = socket.create_connection(("127.0.0.1", s.port), timeout=20)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            slow.append(c)
        check("beside those who do not read", "cudatrace_build_info" in s.get()[1], True)
        check("status", s.end(), 0)
        for c in slow:
            c.close()


def test_ended_processes():
    """Processes that were looked at are let go when they have ended, also while no other one comes."""
    def held(s, programs):
        found = set()
        for fd in os.listdir(f"/proc/{s.p.pid}/fd"):
            try:
                found.add(os.readlink(f"/proc/{s.p.pid}/fd/{fd}").split()[0])
            except OSError:
                pass
        return len(found & {f"/proc/{p.pid}" for p in programs})
    with Serve() as s:
        warm(s)
        programs = [subprocess.Popen([f"{T}/{NAMES['work']}", "1", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(60)]
        for p in programs:
            p.stdout.readline()
        wait_for("they are looked at", 30, lambda: held(s, programs) >= 20)
        for p in programs:
            p.communicate(timeout=LONGEST)
        wait_for("processes that have ended", 30, lambda: held(s, programs) == 0)


def test_many_descriptors():
    """Who says nothing is shut out, whatever number his descriptor has: here more than a thousand are taken before."""
    with Serve(before=("bash", "-c", 'ulimit -n 8192; for ((i = 10; i < 1210; i++)); do eval "exec $i< /dev/null"; done; exec "$@"',
                       "bash")) as s:
        def fds():
            return len(os.listdir(f"/proc/{s.p.pid}/fd"))
        before = fds()
        check("descriptors before", before > 1200 or before, True)
        half = []
        for _ in range(900):
            c = socket.socket()
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", s.port))
            half.append(c)
        # at no time more than are accepted before it is looked whose they are, and soon no more than one address may have
        wait_for("connections", 20, lambda: fds() >= before + 100)
        until = time.monotonic() + 5
        most = 0
        while time.monotonic() < until:
            most = max(most, fds())
            time.sleep(0.1)
        check("descriptors", most < before + 340 or most, True)
        wait_for("as many as one address may have", 20, lambda: fds() < before + 140)
        for c in half:
            c.close()
        wait_for("an answer", 40, lambda: answers(s))


def test_crowd():
    """Clients of another address that keep their connections, and say a byte now and then, or whole requests: a scrape gets its answer each
    time, on a connection of its own and on one that is kept. Those of its own address cannot keep it out for good."""
    def crowd(address, requests):
        held = []
        for i in range(400):
            c = socket.socket()
            c.bind((address, 0))
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", s.port))
            held.append(c)
        for c in held:
            try:
                c.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + (b"\r\n" if requests else b"X: "))
            except OSError:
                pass
        return held
    with Serve() as s:
        warm(s)
        kept = http.client.HTTPConnection("127.0.0.1", s.port, timeout=20)

        def keeps():
            kept.request("GET", "/metrics")
            return b"cudatrace_build_info" in kept.getresponse().read()
        check("a connection", keeps(), True)
        own = kept.sock
        crowds = []
        for n in range(6):
            crowds.append(crowd(f"127.0.0.{2 + n % 3}", n % 2))
            for _ in range(5):
                check("a scrape", "cudatrace_build_info" in s.get()[1], True)
                check("the connection that is kept", keeps() and kept.sock is own, True)
        check("shut", s.value("cudatrace_connections_shut_total") > 6 * 100, True)
        check("descriptors", len(os.listdir(f"/proc/{s.p.pid}/fd")) < 500, True)
        crowds.append(crowd("127.0.0.1", False))
        wait_for("an answer", 30, lambda: answers(s))
        for c in (c for held in crowds for c in held):
            c.close()
        kept.close()


def answers(s):
    try:
        return "cudatrace_build_info" in s.get()[1]
    except (OSError, http.client.HTTPException):  # also when it was shut in the midst of an answer
        return False


def test_ends():
    """Signals: SIGHUP changes nothing; others end it, also while it answers."""
    for sig in (signal.SIGINT, signal.SIGTERM):
        with Serve() as s:
            s.p.send_signal(signal.SIGHUP)
            warm(s)
            stop = threading.Event()

            def scrape(s=s, stop=stop):
                while not stop.is_set():
                    try:
                        s.get()
                    except (OSError, http.client.HTTPException):
                        return
            threads = [threading.Thread(target=scrape) for _ in range(4)]
            for t in threads:
                t.start()
            wait_for("scrapes", 20, lambda s=s: s.value("cudatrace_scrapes_total") > 20)
            check("status", s.end(sig), 0)
            stop.set()
            for t in threads:
                t.join(LONGEST)


def refused(*args):
    p = subprocess.run([CT, "serve", *args], capture_output=True, text=True, timeout=LONGEST, check=False)
    return p.returncode, [line for line in p.stderr.splitlines() if "error" in line], len(p.stderr.splitlines())


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def ask_unix(path):
    c = UnixConnection(path)
    c.request("GET", "/metrics")
    answer = c.getresponse().read().decode()
    c.close()
    return answer


CROWD = """
import os, socket, sys, time
held = []
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for _ in range(400):
    c = socket.socket(socket.AF_UNIX)
    c.setblocking(False)
    try:
        c.connect(sys.argv[1])
    except OSError:
        pass
    held.append(c)
print("crowded", flush=True)
time.sleep(600)
"""


def unix():
    """A socket in the file system: its mode, a dead one in its place, its end, and another user's crowd."""
    path = f"{T}/metrics.sock"
    with Serve(listen=f"unix:{path}") as s:
        check("mode", oct(os.stat(path).st_mode & 0o777), "0o660")
        check("an answer", "cudatrace_build_info" in ask_unix(path), True)
        check("taken", refused("--listen", f"unix:{path}")[0], 1)
        check("and then", "cudatrace_build_info" in ask_unix(path), True)
        check("status", s.end(), 0)
    check("the socket afterwards", os.path.exists(path), False)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    os.chmod(T, 0o755)
    with Serve(listen=f"unix:{path},mode=0666"):
        check("mode", oct(os.stat(path).st_mode & 0o777), "0o666")
        for _ in range(3):
            crowd = subprocess.Popen([sys.executable, "-c", CROWD, path], stdout=subprocess.PIPE)
            try:
                check("a crowd", crowd.stdout.readline(), b"crowded\n")
                for _ in range(5):
                    check("a scrape", "cudatrace_build_info" in ask_unix(path), True)
            finally:
                crowd.kill()
                crowd.communicate()
    with open(path, "w"):
        pass
    code, errors, _ = refused("--listen", f"unix:{path}")
    check("a file in its place", (code, len(errors), os.path.exists(path)), (1, 1, True))
    os.remove(path)
    for where in ("unix:", "unix:relative", "unix:/" + 120 * "x", f"unix:{path},mode=", f"unix:{path},mode=8", f"unix:{path},mode=1777"):
        code, errors, _ = refused("--listen", where)
        check(f"--listen '{where}'", (code, len(errors)), (2, 1))


def test_listen():
    """Addresses: a port that is taken, wrong ones, IPv6."""
    with Serve() as s:
        code, errors, _ = refused("--listen", s.listen)
        check("taken", (code, errors), (1, [f"cudatrace: error: cannot listen on {s.listen}: Address already in use; "
                                            "give another --listen ADDR:PORT"]))
    for where in ("nonsense", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:19400", "127.0.0.1:-1", "127.0.0.1: 80"):
        code, errors, _ = refused("--listen", where)
        check(f"--listen '{where}'", (code, len(errors)), (2, 1))
    check("--hist with --comm", refused("--hist", "--comm", "x")[0], 2)
    for args in (["--kernels", "0"], ["--processes", "1"], ["--otlp-interval", "1us"], ["-i", "1us"], ["word"]):
        check(f"{args}", refused(*args)[0], 2)
    unix()
    try:
        port = free_port(socket.AF_INET6)
    except OSError:
        return "no IPv6 here"
    with Serve(listen=f"[::1]:{port}") as s:
        check("IPv6", "cudatrace_build_info" in s.get()[1], True)
    with Serve(listen=f":{port}") as s:
        for s.listen in (f"[::1]:{port}", f"127.0.0.1:{port}"):
            check("both", "cudatrace_build_info" in s.get()[1], True)
    return None


# ---- pushed -----------------------------------------------------------------------------------------------------------

class Collector:
    """behave(n): (status, headers) of the answer to the nth request."""

    def __init__(self, behave=lambda n: (200, {})):
        self.bodies, self.seen = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen.append((self.path, self.headers["Content-Type"]))
                status, headers = behave(len(outer.seen) - 1)
                if status == 200:
                    outer.bodies.append(body)
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k, v)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def points(service, body):
    """{'name{labels}': (value, or (count, sum, counts, bounds)), kind...}"""
    from google.protobuf import unknown_fields
    request = service.ExportMetricsServiceRequest.FromString(body)
    out, info = {}, {}

    def known(*messages):
        for m in messages:
            check("unknown fields", len(unknown_fields.UnknownFieldSet(m)), 0)
    known(request)
    for rm in request.resource_metrics:
        known(rm, rm.resource, *rm.resource.attributes)
        info["resource"] = {a.key: a.value.string_value for a in rm.resource.attributes}
        for sm in rm.scope_metrics:
            known(sm, sm.scope)
            check("scope", sm.scope.name, "cudatrace")
            for m in sm.metrics:
                known(m)
                data = getattr(m, m.WhichOneof("data"))
                known(data, *data.data_points)
                if m.WhichOneof("data") != "gauge":
                    check(f"temporality of {m.name}", data.aggregation_temporality, 2)
                if m.WhichOneof("data") == "sum":
                    check(f"{m.name} is monotonic", data.is_monotonic, True)
                check(f"words about {m.name}", bool(m.description), True)
                info[m.name] = (m.WhichOneof("data"), m.unit)
                for p in data.data_points:
                    known(*p.attributes)
                    check("times", 0 < p.start_time_unix_nano <= p.time_unix_nano, True)
                    key = m.name + str(sorted((a.key, named(f'"{a.value.string_value}"', True)[1:-1]) for a in p.attributes))
                    check("a second point", key in out, False)
                    if m.WhichOneof("data") == "histogram":
                        check(f"buckets of {m.name}", (sum(p.bucket_counts), len(p.bucket_counts)),
                              (p.count, len(p.explicit_bounds) + 1))
                        out[key] = (p.count, p.sum)
                    else:
                        out[key] = p.as_double
    return out, info


def test_push():
    """OTLP: what is pushed is what is scraped; a collector that is not there for a while gets it later."""
    service = fetch("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", "opentelemetry-proto==1.45.2")
    collector = Collector()
    with Serve("--otlp", collector.url, "--otlp-interval", "200ms", "--hist", env={"OTEL_RESOURCE_ATTRIBUTES": "team=a"}) as s:
        warm(s)
        before = s.values()
        run("work", 11, "return")
        grown(s, before, LAUNCHES % "work", 11)
        scraped = s.values()
        n = len(collector.bodies)
        wait_for("two more pushes", 20, lambda: len(collector.bodies) >= n + 2)
        check("status", s.end(), 0)
        said = s.said()
    check("where to", set(collector.seen), {("/v1/metrics", "application/x-protobuf")})
    pushed, info = points(service, collector.bodies[-1])
    resource = info.pop("resource")
    check("resource", {k: resource.get(k) for k in ("service.name", "team")}, {"service.name": "cudatrace", "team": "a"})
    check("host", bool(resource.get("host.name")), True)
    work = "[('process.executable.name', 'work')]"
    check("launches", pushed["gpu.cuda.kernel.launch.calls" + work], scraped[LAUNCHES % "work"])
    check("blocks", pushed["gpu.cuda.kernel.block.size" + work][0], scraped['gpu_cuda_kernel_block_size_count{process="work"}'])
    copies = pushed["gpu.cuda.memory.copies[('cuda.memcpy.kind', 'HostToDevice'), ('process.executable.name', 'work')]"]
    check("copies", copies[1], scraped['gpu_cuda_memory_copies_bytes_sum{process="work",cuda_memcpy_kind="HostToDevice"}'])
    check("kinds", {k: info[k] for k in ("gpu.cuda.memory.copies", "gpu.cuda.memory.allocations", "cudatrace.probed.files")},
          {"gpu.cuda.memory.copies": ("histogram", "By"), "gpu.cuda.memory.allocations": ("sum", "By"),
           "cudatrace.probed.files": ("gauge", "")})
    # sums stay and grow; a gauge, such as the memory in use, goes with its last process
    later = [points(service, body) for body in collector.bodies]
    sums = [{key: v for key, v in values.items() if kinds[key.partition("[")[0]][0] == "sum"} for values, kinds in later]
    check("sums", any("gpu.cuda.kernel.launch.calls" + work in each for each in sums), True)
    for a, b in zip(sums, sums[1:]):
        for key, v in a.items():
            if b.get(key, -1) < v:
                raise Wrong(f"{key} went from {v} to {b.get(key)}")
    total = re.search(r"otlp: (\d+) data points sent\n", said)
    check("the closing message", int(total[1]), sum(len(points(service, b)[0]) for b in collector.bodies))
    # turned away at first, and asked to wait
    collector = Collector(lambda n: (503, {"Retry-After": "1"}) if n < 2 else (200, {}))
    with Serve("--otlp", collector.url, "--otlp-interval", "60s") as s:
        pass
    with Serve("--otlp", collector.url, "--otlp-interval", "200ms") as s:
        wait_for("a push", 30, lambda: len(collector.bodies) > 2)
    # nobody there
    with Serve("--otlp", f"http://127.0.0.1:{free_port()}", "--otlp-interval", "100ms") as s:
        wait_for("a word about it", 30, lambda: "no connection" in s.said())
        check("and goes on", answers(s), True)
    check("wrong address", refused("--otlp", "ftp://x")[0], 2)


# ---- with the least capabilities ---------------------------------------------------------------------------------------

NEEDED = ("bpf", "perfmon", "sys_ptrace", "checkpoint_restore", "dac_read_search")
CAPS = (*NEEDED, "sys_admin", "dac_override")  # what only older kernels need is given up at the start


NEEDED_BITS = 1 << 39 | 1 << 38 | 1 << 19 | 1 << 40 | 1 << 2
if open("/proc/sys/kernel/perf_event_paranoid").read().strip() == "3":
    NEEDED_BITS |= 1 << 21  # Debian's kernels open perf events for CAP_SYS_ADMIN alone then


def as_nobody(caps):
    words = ",".join("+" + c for c in caps)
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", f"--inh-caps=-all,{words}",
            f"--ambient-caps=-all,{words}", f"--bounding-set=-all,{words}"]


def test_capabilities():
    """As nobody, with the capabilities that deploy/ gives: programs of root and of others, libraries that nobody may read, and
    some that were deleted."""
    for name in ("deploy/cudatrace.service", "deploy/daemonset.yaml"):
        text = open(name).read()
        got = re.search(r"^AmbientCapabilities=(.*)$", text, re.M) or re.search(r"^ *add: \[(.*)\]", text, re.M)
        check(f"capabilities in {name}", {c.removeprefix("CAP_").lower() for c in re.findall(r"[A-Z_]+", got[1])}, set(CAPS))
    private = f"{T}/private"
    os.makedirs(private, exist_ok=True)
    for lib in glob.glob(f"{STANDIN}/libcud*.so.*"):
        shutil.copy(lib, private)
    for lib in os.listdir(private):
        os.chmod(f"{private}/{lib}", 0o600)
    os.chmod(private, 0o700)
    env = {"LD_PRELOAD": f"{private}/libcudart.so.13:{private}/libcuda.so.1"}
    with Serve("--kernels", "3", before=as_nobody(CAPS)) as s:
        warm(s)
        status = open(f"/proc/{s.p.pid}/status").read()
        check("user", re.search(r"^Uid:\s+(\d+)", status, re.M)[1], "65534")
        check("capabilities", int(re.search(r"^CapEff:\s+(\w+)", status, re.M)[1], 16), NEEDED_BITS)
        check("permitted", int(re.search(r"^CapPrm:\s+(\w+)", status, re.M)[1], 16), NEEDED_BITS)
        check("no new privileges", re.search(r"^NoNewPrivs:\s+(\d)", status, re.M)[1], "1")
        files = s.value("cudatrace_probed_files")
        deleted = Work(1, env=env).done()
        wait_for("the private libraries", 20, lambda: s.value("cudatrace_probed_files") > files)
        deleted.end()
        before = s.values()
        run("work", 21, "return", env=env)
        grown(s, before, LAUNCHES % "work", 21)
        check("the kernel's name", s.value('cudatrace_kernel_launches_total{process="work",kernel="vec_mul(float*, int)"}') >= 21, True)
        check("status", s.end(), 0)
    # without what older kernels need
    with Serve(before=as_nobody(NEEDED)) as s:
        check("status with the least", s.end(), 0)
    # mapped, and deleted before cudatrace came
    w = Work(1, env=env).done()
    shutil.rmtree(private)
    try:
        with Serve(before=as_nobody(CAPS)) as s:
            found = [line for line in s.said().splitlines() if private in line and "functions probed" in line]
            check("deleted libraries with probes", len(found), 2)
    finally:
        w.end()


def test_unit():
    """systemd understands the unit."""
    if not shutil.which("systemd-analyze"):
        return "no systemd-analyze"
    text = open("deploy/cudatrace.service").read()
    path = f"{T}/cudatrace.service"
    with open(path, "w") as f:
        f.write(re.sub(r"^Documentation=.*\n", "", re.sub(r"/usr/\S*/cudatrace", "/bin/true", text), flags=re.M))
    p = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=LONGEST, check=False)
    ours = [line for line in (p.stdout + p.stderr).splitlines() if "cudatrace.service" in line]
    check("systemd-analyze says", ours, [])
    return None


def test_yaml():
    """The DaemonSet is what Kubernetes takes for one, as far as that can be seen here."""
    yaml = fetch("yaml", "PyYAML==6.0.2")
    docs = list(yaml.safe_load_all(open("deploy/daemonset.yaml")))
    ds, = [d for d in docs if d["kind"] == "DaemonSet"]
    pod = ds["spec"]["template"]["spec"]
    c, = pod["containers"]
    check("labels", ds["spec"]["selector"]["matchLabels"].items() <= ds["spec"]["template"]["metadata"]["labels"].items(), True)
    check("host's processes", pod["hostPID"], True)
    check("privileged", c["securityContext"].get("privileged", False), False)
    check("dropped", c["securityContext"]["capabilities"]["drop"], ["ALL"])
    mounts = {m["name"] for m in c["volumeMounts"]}
    check("volumes", mounts, {v["name"] for v in pod["volumes"]})
    code, errors, _ = refused(*[a for a in c["args"] if a != "serve"], "--bogus")
    check("arguments", (code, "--bogus" in str(errors)), (2, True))


def test_hooks():
    """By hooks in the process: all calls of it, for serve and for top; then it goes on as before."""
    if os.uname().machine != "x86_64":
        return "hooks are for x86-64"
    with subprocess.Popen([f"{CASES}/graphs", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**os.environ, "LD_LIBRARY_PATH": STANDIN}) as p:
        def launches(n):
            p.stdin.write(b"a" * n)
            p.stdin.flush()
        try:
            check("the program", p.stdout.readline(), b"ready\n")
            series = 'cudatrace_calls_total{process="graphs",domain="runtime",class="graph",function="cudaGraphLaunch"}'
            with Serve("--source=hooks", "-p", str(p.pid)) as s:
                launches(7)
                wait_for("seven calls", 20, lambda: s.value(series) >= 7)
                check("calls", s.value(series), 7)
                check("status", s.end(), 0)
            launches(3)
            out = f"{T}/top.jsonl"
            top = subprocess.Popen([CT, "top", "-v", "--source=hooks", "--batch", "-i", "0.1", "--format", "json", "-o", out, "-p", str(p.pid)],
                                   stdout=subprocess.DEVNULL, stderr=open(f"{T}/top.err", "w"))
            wait_for("top to be ready", 30, lambda: "cudatrace: ready" in open(f"{T}/top.err").read())
            launches(5)

            def counted():
                with open(out) as f:
                    return sum(r["calls"] for r in map(json.loads, f) if r["type"] == "top_machine")
            wait_for("five calls", 20, lambda: counted() >= 5)
            top.send_signal(signal.SIGINT)
            check("top's status", top.wait(LONGEST), 0)
            check("calls in top", counted(), 5)
            launches(2)
            p.stdin.write(b"q")
            p.stdin.flush()
            check("the program's status", p.wait(LONGEST), 0)
        finally:
            p.kill()


def main():
    global failed
    tests = {name.removeprefix("test_"): f for name, f in globals().items() if name.startswith("test_")}
    if not shutil.which("promtool"):
        print("skip serve prometheus: no prometheus here: scripts/deps.sh installs it")
    for name, own in NAMES.items():
        os.symlink(f"{CASES}/{PROGRAMS.get(name, name)}", f"{T}/{own}")
    for name in sys.argv[1:] or tests:
        if name in ("formats", "queries", "prometheus") and not shutil.which("promtool"):
            continue
        try:
            with machine.taken("alone"):
                why = tests[name]()
            print(f"skip serve {name}: {why}" if why else f"ok serve {name}", flush=True)
        except ImportError as e:
            print(f"skip serve {name}: {e}", flush=True)
        except (Wrong, OSError, http.client.HTTPException, KeyError, IndexError, subprocess.SubprocessError) as e:
            failed = 1
            print(f"not ok serve {name}: {type(e).__name__}: {str(e)[:600]}".replace("\n", " | "), flush=True)
            said_last(e)
    shutil.rmtree(T, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
