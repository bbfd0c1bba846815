#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""book.py - the book of benchmarks: what each way of tracing costs, beside its peers.

    tests/bench/book.py [--rounds N] [--seconds S] [--only WAY,WAY...] [--out FOLDER] [--compare FILE] [--peer NAME=COMMAND]...
                        [--ready NAME=TEXT]... [--gpu WORK,WORK... [--fake LIBCUDART]]
    tests/bench/book.py --from BOOK.json [--out FOLDER] [--compare FILE]

A program runs the same work again and again: calls of a function of libcudart, or with --gpu steps of tests/gpu/bench_step.py. In each round
every way of tracing is attached to it in turn, in another order each time, and taken off after one sample, so that a machine that
gets slower or faster meanwhile does so for all of them. A figure is the ratio to the floor of the same round: an empty uprobe and uretprobe
on that function, or (--gpu) the work that nobody traces. Written into FOLDER (.output/bench), after each round:

    book.json   the machine, and each sample of each way: for programs (tests/bench/book_files.py describes it)
    book.html   a page with plots: the samples, their median, and the quartiles
    book.stat   the ratios as `cudatrace stat --save` writes times, a round a run, a ratio of 1 as 1 ms: for `cudatrace compare`

--seconds: whatever does not become ready or end within 25 seconds is left out. No round begins that would not end in time. The first round goes by worth, the ways as they are listed here, and ends when its share,
S / N, is over; what it has not reached is left out, and said. So there are N rounds of what is worth most.

--peer: another tracer, as its users start it. In COMMAND, PID is replaced by the process and LIBRARY by the libcudart that it uses. It counts as
ready when TEXT is in its output, or without --ready when it has run for 2 seconds; it is ended by SIGINT. How many lines it printed is kept.

--compare: an earlier book.stat; cudatrace's own compare says which ways cost more than 5 % more and whether that is more than noise; the
exit status is then compare's. --from: makes the files again from a book.json, and measures nothing. --fake: the steps are made of calls
of the stand-in's libcudart, to try this without a GPU; such figures say nothing.

Needs root and ./cudatrace (or CUDATRACE), without --gpu also `make bench-programs standin`. bpftrace is measured where it is
installed. Without a real libcudart the stand-in serves, and the page says so.
"""
import argparse
import json
import os
import platform
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import book_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CT = os.path.abspath(os.environ.get("CUDATRACE", os.path.join(ROOT, "cudatrace")))
READY_S = 120  # for anything that is waited for, whatever else the machine does
HURRY_S = 25  # the same with --seconds
START_S = 240  # until a work has begun: PyTorch is loaded and compiled
SETTLE_S = 0.3
PEER_S = 2.0
FUNCTIONS = ["cudaMemcpy", "cudaLaunchKernel"]
CALLS = 100_000

# By worth. Arguments before -p PID; OUT is where the output goes, SOCKET a socket.
WAYS = {
    "table": ["-o", "OUT", "--keep-chatty"],
    "hooks": ["--source=hooks", "-o", "OUT", "--keep-chatty"],
    "stat": ["stat", "-o", "OUT"],
    "hooks_stat": ["stat", "--source=hooks", "-o", "OUT"],
    "record": ["record", "-o", "OUT", "--keep-chatty"],
    "json": ["--format", "json", "-o", "OUT", "--keep-chatty"],
    "serve": ["serve", "--listen", "unix:SOCKET"],
    "stat_no_return": ["stat", "--no-return", "-o", "OUT"],
    "top": ["top", "--batch", "-o", "OUT"],
    "mem": ["mem", "-o", "OUT"],
    "stacks": ["record", "-k", "-o", "OUT", "--keep-chatty"],
}
# On a GPU, likewise by worth: as users start them. Functions that are called often are throttled, which takes some seconds
# (THROTTLED_S); "_all" has each call.
GPU_WAYS = {
    "hooks": ["--source=hooks", "-o", "OUT"],
    "gpu": ["--gpu", "-o", "OUT"],
    "profiler": None,
    "launches": ["-e", "launch", "-o", "OUT"],
    "hooks_stat": ["stat", "--source=hooks", "-o", "OUT"],
    "cupti": ["--source=cupti", "-o", "OUT"],
    "table": ["-o", "OUT"],
    "stat": ["stat", "-o", "OUT"],
    "hooks_serve": ["serve", "--source=hooks", "--listen", "unix:SOCKET"],
    "hooks_all": ["--source=hooks", "-o", "OUT", "--keep-chatty"],
    "serve": ["serve", "--max-cost", "off", "--listen", "unix:SOCKET"],
    "record": ["record", "-o", "OUT"],
    "table_all": ["-o", "OUT", "--keep-chatty"],
    "top": ["top", "--batch", "-o", "OUT"],
    "mem": ["mem", "-o", "OUT"],
    "stacks": ["record", "-k", "-o", "OUT"],
}
# Where the agent comes into the program, it is ready when the agent has started.
READY = {"gpu": ["cudatrace: ready", "the agent has started"], "cupti": ["the agent has started"]}
THROTTLED = ("gpu", "table", "stat", "record", "stacks")
WARM_S, THROTTLED_S = 0.5, 2.5


class Gone(Exception):
    """The work ended, or does not answer: it has no more samples."""


def read(path):
    try:
        with open(path, errors="replace", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def last_line(path):
    """The last line of a program's output, without colours."""
    said = [line for line in read(path).splitlines() if line.strip()]
    return re.sub(r"\x1b\[[0-9;]*m", "", said[-1]).strip()[:200] if said else ""


class Work:
    """A program that makes a sample for each line that it is given, and prints its nanoseconds. After start() it is given time until
    begun() to print "pid N" and some words about it."""

    def __init__(self, name, command, ways, floor, env=None, about=""):
        self.name, self.command, self.ways, self.floor, self.env, self.about = name, command, ways, floor, env, about
        self.program = self.errors = self.pid = None
        self.samples = {way: [] for way in ways}
        self.said = {}

    def start(self, folder):
        self.errors = f"{folder}/{self.name}.err"
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.program = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=self.env)

    def begun(self, limit_s):
        words = self.line(limit_s).split(maxsplit=2)
        self.pid = int(words[1])
        self.about = words[2].strip() if len(words) > 2 else self.about
        self.sample(0)

    def line(self, limit_s=READY_S):
        # the program prints a line for each one that it is given: nothing is left in the buffer
        if not select.select([self.program.stdout], [], [], limit_s)[0]:
            raise Gone(f"it did not answer within {limit_s} s")
        said = self.program.stdout.readline()
        if not said:
            raise Gone(f"it ended with status {self.program.wait()}: {last_line(self.errors)}")
        return said

    def sample(self, warm_s, how=""):
        try:
            self.program.stdin.write(f"{warm_s} {how}\n")
            self.program.stdin.flush()
        except BrokenPipeError:
            pass  # line() says how it ended
        said = self.line()
        try:
            return float(said)
        except ValueError:
            raise OSError(said.strip()) from None

    def library(self):
        """The libcudart that the program has mapped."""
        found = re.search(r"/\S*/libcudart[^\s/]*$", read(f"/proc/{self.pid}/maps"), re.MULTILINE)
        return found.group() if found else "libcudart"

    def drop(self, way):
        self.ways = [w for w in self.ways if w != way]
        self.samples.pop(way, None)

    def end(self):
        if self.program:
            self.program.kill()
            self.program.wait()


class Tracer:
    """What is attached while a sample is made. words: it is ready when all of them are in its output; none: after PEER_S."""

    def __init__(self, command, words, folder, limit_s, end=signal.SIGINT):
        self.end_by, self.limit_s = end, limit_s
        self.output = os.path.join(folder, "said")
        with open(self.output, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out,
                                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        try:
            self.wait_until_ready(words)
        except BaseException:
            self.kill()
            raise

    def wait_until_ready(self, words):
        until = time.monotonic() + (self.limit_s if words else PEER_S)
        while time.monotonic() < until:
            said = read(self.output)
            if words and all(word in said for word in words):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        if words or self.process.poll() is not None:
            raise OSError(f"it did not become ready; its output: {read(self.output)[-300:] or 'nothing'}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.kill()
            return
        if self.process.poll() is not None:
            raise OSError(f"it ended by itself; its output: {read(self.output)[-300:] or 'nothing'}")
        if self.end_by:
            self.process.send_signal(self.end_by)
        else:
            self.process.stdin.close()
        try:
            self.process.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise OSError(f"it did not end within {self.limit_s} s") from None


class Bench:
    """How the ways of tracing are attached."""

    def __init__(self, options, library, folder):
        self.folder, self.library, self.gpu = folder, library, bool(options.gpu)
        self.ways = GPU_WAYS if options.gpu else WAYS
        self.peers = dict(pair.split("=", 1) for pair in options.peer)
        self.ready = dict(pair.split("=", 1) for pair in options.ready)
        self.limit_s = HURRY_S if options.seconds else READY_S

    def attach(self, work, way):
        if way == "empty":
            return Tracer([f"{ROOT}/.output/bench/empty", self.library, work.name], ["ready"], self.folder, self.limit_s, None)
        if way == "bpftrace":
            return Tracer([f"{ROOT}/scripts/cuda_events.sh", "-p", str(work.pid), "--library", work.library()], ["TIME(ms)"], self.folder, self.limit_s)
        if way in self.peers:
            command = shlex.split(self.peers[way].replace("PID", str(work.pid)).replace("LIBRARY", work.library()))
            return Tracer(command, [self.ready[way]] if way in self.ready else [], self.folder, self.limit_s)
        args = [a.replace("OUT", f"{self.folder}/out").replace("SOCKET", f"{self.folder}/socket") for a in self.ways[way]]
        return Tracer([CT, *args, "-v", "-p", str(work.pid)], READY.get(way, ["cudatrace: ready"]), self.folder, self.limit_s)

    def warm_s(self, way):
        return THROTTLED_S if way in THROTTLED else WARM_S if way != "bare" else 0

    def sample(self, work, way):
        if way in ("bare", "profiler"):
            work.samples[way].append(work.sample(self.warm_s(way), "profiler" if way == "profiler" else ""))
            return
        with self.attach(work, way) as tracer:
            if not self.gpu:
                time.sleep(SETTLE_S)  # these programs do nothing until they make a sample
            value = work.sample(self.warm_s(way))
        last = last_line(tracer.output)
        if re.match("cudatrace: 0 calls", last) and way != "mem":
            raise OSError(f"it saw no call: {last}")
        work.samples[way].append(value)
        if way == "bpftrace" or way in self.peers:
            work.said[way] = f"{read(tracer.output).count(chr(10))} lines"
        elif way != "empty":
            work.said[way] = last


class Clock:
    """The time that the rounds may take. seconds None: any."""

    def __init__(self, began, seconds, rounds):
        self.until = began + seconds if seconds else None
        self.share = max(self.until - time.monotonic(), 0) / rounds if seconds else None
        self.began = time.monotonic()
        self.longest = 0

    def round_begins(self):
        self.began = time.monotonic()

    def share_is_over(self, done):
        """Would another sample, which takes as long as these, be too much for the first round? A later one may take some more."""
        return self.share is not None and (time.monotonic() - self.began) * (1 + 1 / max(done, 1)) > self.share * 0.95

    def another_fits(self):
        self.longest = max(self.longest, time.monotonic() - self.began)
        return self.until is None or time.monotonic() + self.longest <= self.until


def by_worth(works):
    """(work, way): the first way of each work, then the second of each, ... . The floor is always first."""
    ways = list(dict.fromkeys(way for work in works for way in work.ways))
    return [(work, way) for way in ways for work in works if way in work.ways]


def one_round(bench, works, number, clock, left_out):
    pairs = by_worth(works)
    if number:
        random.Random(number).shuffle(pairs)
    done, over = 0, False
    for work, way in pairs:
        if way not in work.ways or work not in works:
            continue
        over = over or (not number and way != work.floor and clock.share_is_over(done))
        if over:
            work.drop(way)
            left_out.setdefault("there was no time", []).append((way, work.name))
            continue
        done += 1
        try:
            bench.sample(work, way)
        except Gone as error:
            works.remove(work)
            work.end()
            left_out.setdefault(f"at {way} {error}", []).append(("every way", work.name))
        except OSError as error:
            # what cannot be measured is said, and is not asked for again
            work.drop(way)
            left_out.setdefault(str(error), []).append((way, work.name))


def begin(works, folder, left_out):
    """Starts all of them beside each other, because most of them load and compile for a minute. Those that do not begin are removed."""
    until = time.monotonic() + START_S
    for work in works:
        work.start(folder)
    for work in list(works):
        try:
            work.begun(max(until - time.monotonic(), 1))
        except (Gone, OSError, IndexError, ValueError) as error:
            works.remove(work)
            work.end()
            left_out.setdefault(f"it did not begin: {error}", []).append(("every way", work.name))


def sentences(left_out):
    """{why: [(way, work)]} for people: what is left out of the same works is named together."""
    for why, pairs in left_out.items():
        works = {}
        for way, work in dict.fromkeys(pairs):
            works.setdefault(way, []).append(work)
        ways = {}
        for way, names in works.items():
            ways.setdefault(", ".join(names), []).append(way)
        for names, some in ways.items():
            yield f"Left out of {names}: {', '.join(some)}: {' '.join(why.split())}."


def fill(book, works, rounds, left_out):
    """The book after so many rounds. A work whose floor could not be measured has no figures."""
    book["rounds"] = rounds
    book["works"] = []
    for work in works:
        samples = {way: values for way, values in work.samples.items() if len(values) == rounds}
        if work.floor in samples:
            book["works"].append({"name": work.name, "about": work.about, "floor": work.floor, "samples_ns": samples,
                                  "ratios": book_files.ratios(samples, work.floor), "said": {way: work.said.get(way, "") for way in samples}})
        else:
            left_out.setdefault("its floor could not be measured", []).append(("every way", work.name))
    book["left_out"] = list(sentences(left_out))


def measure(options, book, library, began):
    left_out = {}
    with tempfile.TemporaryDirectory() as folder:
        works = list(works_of(options, library))
        every = list(works)
        try:
            begin(works, folder, left_out)
            bench, clock = Bench(options, library, folder), Clock(began, options.seconds, options.rounds)
            for number in range(options.rounds):
                clock.round_begins()
                one_round(bench, works, number, clock, left_out)
                if not works:
                    break
                fill(book, works, number + 1, left_out)
                book_files.write(book, options.out)
                print(f"round {number + 1} of {options.rounds}: {time.monotonic() - clock.began:.0f} s", file=sys.stderr)
                if number + 1 < options.rounds and not clock.another_fits():
                    print(f"{number + 1} of {options.rounds} rounds: there was no time for another one within {options.seconds:g} s", flush=True)
                    break
        finally:
            for work in every:
                work.end()
    fill(book, works, book["rounds"], left_out)


def machine(library):
    models = re.findall(r"^model name\s*: (.*)$", read("/proc/cpuinfo"), re.MULTILINE)
    about = {"processor": models[0] if models else platform.machine(), "processors": os.cpu_count(), "kernel": platform.release(),
             "load_before": round(os.getloadavg()[0], 2),
             "cudatrace": subprocess.run([CT, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()[0]}
    if library:
        about["libcudart"] = library
    if shutil.which("nvidia-smi"):
        smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True, check=False)
        about["gpus"] = smi.stdout.strip().splitlines()
    return about


def compare(before, after):
    """cudatrace's judgement of the ways that both books have."""
    old, new = book_files.names_of_stat(before), book_files.names_of_stat(after)
    if old ^ new:
        print(f"only one of the books has these, which are not compared: {', '.join(sorted(old ^ new))}", flush=True)
    words = [word for name in sorted(old & new) for word in ("--fail-if", f"kernel({name}).avg>+5%")]
    if not words:
        sys.exit("book.py: the two books have no way of tracing in common")
    return subprocess.run([CT, "compare", *words, before, after], check=False).returncode


def real_library():
    """A real libcudart, which answers without a driver too, or the stand-in."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for version in (13, 12):
        path = f"{home}/lib64/libcudart.so.{version}"
        if os.path.exists(path):
            return os.path.realpath(path)
    return f"{ROOT}/.output/standin/libcudart.so.13"


def works_of(options, library):
    only = options.only.split(",") if options.only else None
    peers = [pair.split("=", 1)[0] for pair in options.peer]
    more = [*(["bpftrace"] if shutil.which("bpftrace") else []), *peers]

    def wanted(floor, ways):
        return [floor, *(way for way in ways if way != floor and (not only or way in only or way in peers))]

    if options.gpu:
        fake = ["--fake", options.fake] if options.fake else []
        env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # of JAX: others want memory too
        if fake:
            env["LD_LIBRARY_PATH"] = os.path.dirname(os.path.abspath(options.fake))
        for name in options.gpu.split(","):
            yield Work(name, [sys.executable, f"{ROOT}/tests/gpu/bench_step.py", name, *fake], wanted("bare", [*GPU_WAYS, *more]), "bare", env)
        return
    # a real libcudart that finds the stand-in's driver would try to begin with it at each call
    standin = f"{ROOT}/.output/standin"
    env = {**os.environ, "LD_LIBRARY_PATH": standin} if library.startswith(standin) else None
    for name in FUNCTIONS:
        yield Work(name, [f"{ROOT}/.output/bench/target", library, name, str(options.calls), "1000000"],
                   wanted("empty", ["bare", *WAYS, *more]), "empty", env, f"A sample is {options.calls:,} calls.")


def options_of(words):
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--only")
    parser.add_argument("--out", default=f"{ROOT}/.output/bench")
    parser.add_argument("--compare")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--ready", action="append", default=[])
    parser.add_argument("--gpu")
    parser.add_argument("--fake")
    parser.add_argument("--from", dest="stored")
    options = parser.parse_args(words)
    for pair in options.peer:
        if not re.match(r"[A-Za-z0-9_-]+=.", pair) or pair.split("=", 1)[0] in {**WAYS, **GPU_WAYS, "bare": 0, "empty": 0, "bpftrace": 0}:
            parser.error(f"--peer {pair}: give NAME=COMMAND, with a name of its own of letters, digits, _ and -")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


def main():
    began = time.monotonic()
    options = options_of(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("book.py: ended by SIGTERM; the files have the rounds until then"))
    if options.stored:
        book = json.loads(read(options.stored))
    else:
        library = None if options.gpu else real_library()
        book = {"machine": machine(library), "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rounds": 0, "left_out": [], "works": []}
        measure(options, book, library, began)
    for line in book_files.lines(book):
        print(line)
    if not book["works"]:
        sys.exit("book.py: nothing could be measured")
    book_files.write(book, options.out)
    print(f"written: {options.out}/book.json, book.html, book.stat; rounds: {book['rounds']}", flush=True)
    if options.compare:
        sys.exit(compare(options.compare, f"{options.out}/book.stat"))


if __name__ == "__main__":
    main()
