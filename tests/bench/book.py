#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""book.py - the book of benchmarks: what each way of tracing costs, beside its peers.

    tests/bench/book.py [--rounds N] [--only NAME,NAME...] [--out FOLDER] [--compare FILE] [--gpu WORK,WORK...]

A program runs the same work again and again: calls of a function of libcudart, or with --gpu steps of tests/gpu/bench_step.py. In each round
every way of tracing is attached to it in turn, in another order each time, and taken off after one sample, so that a machine that
gets slower or faster meanwhile does so for all of them. A figure is the ratio to the floor of the same round: an empty uprobe and uretprobe
on that function, or (--gpu) the work that nobody traces. Written into FOLDER (.output/bench):

    book.json   the machine, and each sample of each way: for programs
    book.html   a page with plots: the samples, their median, and the quartiles
    book.stat   the ratios as `cudatrace stat --save` writes times, a round a run, a ratio of 1 as 1 ms: for `cudatrace compare`

--compare FILE: an earlier book.stat; cudatrace's own compare says which ways cost more than 5 % more and whether that is more than noise; the
exit status is then compare's. Needs root, ./cudatrace (or CUDATRACE) and `make bench-programs standin`. bpftrace is measured where it is
installed. Without a real libcudart the stand-in serves, and the page says so.
"""
import argparse
import html
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CT = os.path.abspath(os.environ.get("CUDATRACE", os.path.join(ROOT, "cudatrace")))
READY_S = 120  # for anything that is waited for, whatever else the machine does
SETTLE_S = 0.3
FUNCTIONS = ["cudaMemcpy", "cudaLaunchKernel"]
CALLS = 100_000

# Arguments before -p PID; OUT is where the output goes, SOCKET a socket.
WAYS = {
    "table": ["-o", "OUT", "--keep-chatty"],
    "json": ["--format", "json", "-o", "OUT", "--keep-chatty"],
    "record": ["record", "-o", "OUT", "--keep-chatty"],
    "stacks": ["record", "-k", "-o", "OUT", "--keep-chatty"],
    "stat": ["stat", "-o", "OUT"],
    "stat_no_return": ["stat", "--no-return", "-o", "OUT"],
    "mem": ["mem", "-o", "OUT"],
    "top": ["top", "--batch", "-o", "OUT"],
    "serve": ["serve", "--listen", "unix:SOCKET"],
    "hooks": ["--source=hooks", "-o", "OUT", "--keep-chatty"],
    "hooks_stat": ["stat", "--source=hooks", "-o", "OUT"],
}
GPU_WAYS = {"launches": ["-e", "launch", "-o", "OUT"], "gpu": ["--gpu", "-o", "OUT"], "cupti": ["--source=cupti", "-o", "OUT"]}


def wait_for(path, words, process, name):
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        with open(path, errors="replace", encoding="utf-8") as file:
            said = file.read()
        if any(word in said for word in words):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    process.kill()
    raise OSError(f"{name} did not become ready: {said[-300:]}")


class Work:
    """A program that makes a sample for each line that it is given, and prints its nanoseconds."""

    def __init__(self, name, command, env=None, floor="empty"):
        self.name, self.floor = name, floor
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.pid = int(self.line().split()[1])

    def line(self):
        said = self.program.stdout.readline()
        if not said:
            raise OSError(f"{self.name} ended: {self.program.wait()}")
        return said

    def sample(self, how=""):
        self.program.stdin.write(how + "\n")
        self.program.stdin.flush()
        return float(self.line())

    def end(self):
        self.program.kill()
        self.program.wait()


class Tracer:
    """What is attached while a sample is made."""

    def __init__(self, name, command, words, folder, end=signal.SIGINT):
        self.name, self.end_by = name, end
        self.said = os.path.join(folder, "said")
        with open(self.said, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out,
                                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        wait_for(self.said, words, self.process, name)
        time.sleep(SETTLE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.end_by:
            self.process.send_signal(self.end_by)
        else:
            self.process.stdin.close()
        try:
            self.process.wait(READY_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def attach(way, work, library, folder):
    if way == "empty":
        return Tracer(way, [f"{ROOT}/.output/bench/empty", library, work.name], ["ready"], folder, None)
    if way == "bpftrace":
        return Tracer(way, [f"{ROOT}/scripts/cuda_events.sh", "-p", str(work.pid), "--library", library], ["TIME(ms)"], folder)
    args = [a.replace("OUT", f"{folder}/out").replace("SOCKET", f"{folder}/socket") for a in {**WAYS, **GPU_WAYS}[way]]
    return Tracer(way, [CT, *args, "-v", "-p", str(work.pid)], ["cudatrace: ready"], folder)


def measure(work, ways, rounds, library, folder):
    """{way: samples in ns}, each round in another order."""
    samples = {way: [] for way in ways}
    work.sample()
    for number in range(rounds):
        for way in random.Random(number).sample(ways, len(ways)):
            try:
                if way in ("bare", "profiler"):
                    samples[way].append(work.sample("profiler" if way == "profiler" else ""))
                    continue
                with attach(way, work, library, folder):
                    samples[way].append(work.sample())
            except OSError as error:
                # what cannot be measured is said, and is not asked for again
                print(f"{work.name}, {way}: {error}", file=sys.stderr)
                samples.pop(way)
                ways = [w for w in ways if w != way]
        print(f"{work.name}: round {number + 1} of {rounds}", file=sys.stderr)
    return {way: values for way, values in samples.items() if len(values) == rounds}


def ratios(samples, floor):
    return {way: [value / base for value, base in zip(values, samples[floor])] for way, values in samples.items()}


def quartiles(values):
    if len(values) < 2:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def machine(library):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    about = {"processor": models[0] if models else platform.machine(), "processors": os.cpu_count(), "kernel": platform.release(),
             "load_before": os.getloadavg()[0], "libcudart": library,
             "cudatrace": subprocess.run([CT, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()[0]}
    if shutil.which("nvidia-smi"):
        smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True, check=False)
        about["gpus"] = smi.stdout.strip().splitlines()
    return about


# ---- what is written -------------------------------------------------------------------------------------------------

WIDTH, LEFT, RIGHT, ROW = 900, 170, 130, 26


def plot(of_ways):
    """A row for each way: its samples, a box from quartile to quartile, its median."""
    values = [v for samples in of_ways.values() for v in samples]
    low, high = min([1, *values]), max([1, *values])
    span = (high - low) or 1

    def x(value):
        return LEFT + (value - low) / span * (WIDTH - LEFT - RIGHT)

    height = ROW * len(of_ways) + 24
    out = [f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="ratios to the floor">',
           f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="0" y2="{height - 20}" class="one"/>',
           f'<text x="{x(1):.1f}" y="{height - 5}" text-anchor="middle">1</text>']
    for i, (way, samples) in enumerate(of_ways.items()):
        first, median, third = quartiles(samples)
        y = i * ROW + ROW / 2
        out.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{html.escape(way)}</text>')
        out.append(f'<rect x="{x(first):.1f}" y="{y - 7}" width="{max(x(third) - x(first), 1):.1f}" height="14" class="box"/>')
        out.extend(f'<circle cx="{x(v):.1f}" cy="{y}" r="2.5"/>' for v in samples)
        out.append(f'<line x1="{x(median):.1f}" x2="{x(median):.1f}" y1="{y - 9}" y2="{y + 9}" class="median"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{y + 4}">{median:.2f} ({first:.2f} to {third:.2f})</text>')
    return "\n".join(out) + "\n</svg>"


def page(book):
    parts = ["<!doctype html><meta charset=utf-8><title>What tracing costs</title>",
             "<style>body{font:14px sans-serif;max-width:960px;margin:2em auto;padding:0 1em}svg{max-width:100%;height:auto}",
             "text{font-size:12px}.box{fill:#9ecae1}.median{stroke:#08519c;stroke-width:2}.one{stroke:#999;stroke-dasharray:3}circle{fill:#0003}",
             "td{padding:2px 12px 2px 0}</style><h1>What tracing costs</h1><table>"]
    parts += [f"<tr><td>{html.escape(key)}<td>{html.escape(str(value))}" for key, value in book["machine"].items()]
    parts.append(f"</table><p>{book['rounds']} rounds; in each every way was attached in turn. A figure is the ratio to the floor of the same round.")
    for work in book["works"]:
        parts.append(f"<h2>{html.escape(work['name'])}</h2><p>The floor, {html.escape(work['floor'])}, takes "
                     f"{statistics.median(work['samples_ns'][work['floor']]):.0f} ns.")
        parts.append(plot(work["ratios"]))
    return "\n".join(parts) + "\n"


def saved_runs(book):
    """A run of `stat --save` for each round: a way is a kernel, as their names are free, and its ratio is its time."""
    for number in range(book["rounds"]):
        rows = []
        for work in book["works"]:
            for way, values in work["ratios"].items():
                took = round(values[number] * 1e6)
                rows.append({"name": f"{work['name']}_{way}", "calls": 1, "failed": 0, "total_ns": took, "avg_ns": float(took), "min_ns": took, "max_ns": took,
                             "stddev_ns": 0.0, "bytes": 0, "share": 0, "median_ns": took, "p90_ns": took, "p99_ns": took})
        total = sum(row["total_ns"] for row in rows)
        yield {"schema": "cudatrace-stat", "version": 1, "cudatrace": "", "title": "book", "summary": {"kernel_time": total, "launches": len(rows)},
               "runtime": [], "driver": [], "kernels": rows, "copies": [], "sync": [], "traffic": []}


def compare(before, after, names):
    words = [word for name in names for word in ("--fail-if", f"kernel({name}).avg>+5%")]
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
    if options.gpu:
        for name in options.gpu.split(","):
            yield Work(name, [sys.executable, f"{ROOT}/tests/gpu/bench_step.py", name], floor="bare"), ["bare", "profiler", *GPU_WAYS, *WAYS]
    else:
        # a real libcudart that finds the stand-in's driver would try to begin with it at each call
        standin = f"{ROOT}/.output/standin"
        env = {**os.environ, "LD_LIBRARY_PATH": standin} if library.startswith(standin) else None
        more = ["bpftrace"] if shutil.which("bpftrace") else []
        for name in FUNCTIONS:
            yield Work(name, [f"{ROOT}/.output/bench/target", library, name, str(options.calls), "1000000"], env), ["bare", "empty", *WAYS, *more]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--only")
    parser.add_argument("--out", default=f"{ROOT}/.output/bench")
    parser.add_argument("--compare")
    parser.add_argument("--gpu")
    options = parser.parse_args()
    library = real_library()
    book = {"machine": machine(library), "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rounds": options.rounds, "works": []}
    only = options.only.split(",") if options.only else None
    for work, ways in works_of(options, library):
        with tempfile.TemporaryDirectory() as folder:
            samples = measure(work, [w for w in ways if not only or w in only or w == work.floor], options.rounds, library, folder)
            work.end()
        if work.floor not in samples:
            sys.exit(f"book.py: {work.name}: the floor could not be measured")
        book["works"].append({"name": work.name, "floor": work.floor, "samples_ns": samples, "ratios": ratios(samples, work.floor)})
    os.makedirs(options.out, exist_ok=True)
    with open(f"{options.out}/book.json", "w", encoding="utf-8") as file:
        json.dump(book, file, indent=1)
    with open(f"{options.out}/book.html", "w", encoding="utf-8") as file:
        file.write(page(book))
    with open(f"{options.out}/book.stat", "w", encoding="utf-8") as file:
        for run in saved_runs(book):
            print(json.dumps(run), file=file)
    for work in book["works"]:
        for way, values in work["ratios"].items():
            first, median, third = quartiles(values)
            print(f"{work['name']:<18} {way:<16} {statistics.median(work['samples_ns'][way]):10.0f} ns, ratio {median:.2f} ({first:.2f} to {third:.2f})")
    print(f"written: {options.out}/book.json, book.html, book.stat")
    if options.compare:
        names = [f"{work['name']}_{way}" for work in book["works"] for way in work["ratios"]]
        sys.exit(compare(options.compare, f"{options.out}/book.stat", names))


if __name__ == "__main__":
    main()
