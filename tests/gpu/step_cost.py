# SPDX-License-Identifier: BSD-2-Clause
"""What each way of tracing costs a PyTorch training step, beside torch.profiler.

    step_cost.py CUDATRACE [--seconds S] [--rounds N] [--only NAME,NAME...] [--hooks] [--table | --readme] [--fake LIBCUDART]

One process trains a small transformer. In each round every way of tracing is attached to it in turn by -p and taken off again, with
steps that nothing traces at the begin, in the middle and at the end of the round. Each time three samples are taken, each of 20 steps:
the median of these steps, and their mean. The ratios are those to the untraced samples of the same round, so that a machine that gets
slower or faster does not count. A median says what a usual step takes; a mean has the steps in it that fell into a window of --duty or
--max-cost too, and is what these are judged by. Prints for each way the median of the steps, the median ratio of the medians with its
quartiles and ends, and the ratio of the means over all rounds with the quartiles over rounds. Rounds go on until there are 21 samples
of each, or until S (540) seconds have passed; a line says how many there were.

--hooks: with --source=hooks too, and the probes of bpftrace on the launches, where it is installed. --table prints rows for
docs/benchmarks.md, --readme the table of README.md (a step's mean, as a ratio, and its quartiles over rounds). --fake: the steps are
made of calls of the stand-in's library, to try this script without a GPU; its figures say nothing. A goal that is missed is said, and
the exit status is then 1.
"""
import argparse
import ctypes
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SETTLE_S = 3.0    # what is called too often is noticed, counted for a second, and its probes are taken off
ADJUST_S = 8.0    # --max-cost finds its duty
ROUNDS, SAMPLES, STEPS = 7, 3, 20
READY_S, END_S = 30, 20

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("cudatrace")
parser.add_argument("--seconds", type=float, default=540)
parser.add_argument("--only")
parser.add_argument("--hooks", action="store_true")
parser.add_argument("--table", action="store_true")
parser.add_argument("--readme", action="store_true")
parser.add_argument("--fake")
parser.add_argument("--rounds", type=int, default=ROUNDS)
opts = parser.parse_args()
ct = os.path.abspath(opts.cudatrace)
tmp = tempfile.mkdtemp(prefix="step_cost.")
began = time.monotonic()


def torch_step():
    """A training step of PyTorch, the name of the machine, and a profiler."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(8)]).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(16, 64, 256, device="cuda")

    # ranges as a program has them that wants to know its parts: 12 in a step
    def step():
        with torch.cuda.nvtx.range("step"):
            opt.zero_grad(set_to_none=True)
            y = x
            for i, layer in enumerate(model):
                with torch.cuda.nvtx.range(f"layer {i}"):
                    y = layer(y)
            with torch.cuda.nvtx.range("backward"):
                y.square().mean().backward()
            with torch.cuda.nvtx.range("optimizer"):
                opt.step()
            torch.cuda.synchronize()

    def profiler():
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])

    return step, f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", profiler


def fake_step():
    """Calls of the stand-in, as many as in a small step."""
    class Dim3(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]

    cudart = ctypes.CDLL(opts.fake)
    one = Dim3(1, 1, 1)
    cudart.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    kernel = ctypes.cast(cudart.cudaFree, ctypes.c_void_p)
    device = ctypes.c_int()

    def step():
        for _ in range(500):
            cudart.cudaGetDevice(ctypes.byref(device))
            cudart.cudaLaunchKernel(kernel, one, one, None, 0, None)
        cudart.cudaDeviceSynchronize()

    return step, "the stand-in", None


step, machine, profiler = fake_step() if opts.fake else torch_step()


def sample(out):
    """Appends SAMPLES pairs: median and mean of the steps, in ms."""
    for _ in range(SAMPLES):
        took = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            step()
            took.append((time.perf_counter() - begin) * 1e3)
        out.append((statistics.median(took), statistics.fmean(took)))


def train(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()


def said(path):
    with open(path, errors="replace") as f:
        return f.read()


def end(p, name):
    p.send_signal(signal.SIGINT)
    try:
        p.wait(END_S)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        sys.exit(f"{name}: cudatrace did not end within {END_S} s of SIGINT")


def traced(name, args, settle_s, out):
    """Attaches, takes the samples, detaches. Returns the last line of what cudatrace said."""
    err = os.path.join(tmp, "err")
    with open(err, "w") as f, open(os.path.join(tmp, "out"), "w") as o:
        p = subprocess.Popen([ct] + args + ["-v", "-p", str(os.getpid())], stdin=subprocess.DEVNULL, stdout=o, stderr=f)
    try:
        deadline = time.monotonic() + READY_S
        while "cudatrace: ready" not in said(err):
            if p.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{name}: cudatrace did not become ready:\n{said(err)}")
            train(0.02)
        train(settle_s)
        sample(out)
        if p.poll() is not None:
            sys.exit(f"{name}: cudatrace ended by itself:\n{said(err)}")
        end(p, name)
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
    lines = said(err).strip().splitlines()
    return lines[-1] if lines else ""


def profiled(out):
    with profiler():
        train(0.5)
        sample(out)
    return "torch.profiler, CUDA activity alone"


def cudart():
    """The file of the runtime library that this process has mapped."""
    for line in said("/proc/self/maps").splitlines():
        if "/libcudart.so" in line and " r-xp " in line:
            return line.split(maxsplit=5)[5]
    return None


def by_bpftrace(out):
    """A histogram of the launches' durations, as a script of two lines makes it. Returns what it says."""
    err = os.path.join(tmp, "bpftrace")
    at = f"{cudart()}:cudaLaunchKernel"
    script = (f"BEGIN {{ printf(\"ready\\n\") }} uprobe:{at} {{ @at[tid] = nsecs }} "
              f"uretprobe:{at} /@at[tid]/ {{ @took = hist(nsecs - @at[tid]); delete(@at[tid]) }} END {{ clear(@at) }}")
    with open(err, "w") as f:
        p = subprocess.Popen(["bpftrace", "-p", str(os.getpid()), "-e", script], stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    try:
        deadline = time.monotonic() + READY_S
        while "ready" not in said(err):
            if p.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"bpftrace did not become ready:\n{said(err)}")
            train(0.02)
        train(0.5)
        sample(out)
        end(p, "bpftrace")
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
    return "a histogram of launches" if "@took" in said(err) else f"bpftrace saw no launch: {said(err)[-200:]}"


rows = os.path.join(tmp, "rows")
serve = ["serve", "--listen", f"unix:{tmp}/metrics.sock"]
# name, arguments, how long it settles, goal of the mean ratio (None: none is set)
WAYS = [
    ("trace of everything", ["-o", rows], SETTLE_S, None),
    ("-e launch", ["-e", "launch", "-o", rows], 1.0, None),
    ("-e launch and ranges", ["--layers", "nvtx", "-e", "launch,range", "-o", rows], 1.0, None),
    ("stat --by range", ["stat", "--by", "range", "-o", rows], 1.0, None),
    ("stat", ["stat", "-o", rows], SETTLE_S, None),
    ("top", ["top", "--batch", "-i", "1", "-o", rows], 1.0, None),
    ("serve --max-cost off", serve + ["--max-cost", "off"], 1.0, None),
    ("serve --duty 1/20", serve + ["--duty", "1/20"], SETTLE_S, None),
    ("serve --max-cost 1%", serve + ["--max-cost", "1%"], ADJUST_S, 1.01),
    ("device (--gpu)", ["--gpu", "-o", rows], 1.0, None),
    ("torch.profiler", None, 0, None),
    ("bpftrace: launches", None, 0, None),
    ("hooks", ["--source=hooks", "-o", rows], 1.0, 1.015),
    ("hooks: each call", ["--source=hooks", "--keep-chatty", "-o", rows], 1.0, 1.05),
    ("hooks: -e launch", ["--source=hooks", "-e", "launch", "-o", rows], 1.0, 1.005),
    ("hooks: stat", ["stat", "--source=hooks", "-o", rows], 1.0, 1.02),
    ("hooks: top", ["top", "--source=hooks", "--batch", "-i", "1", "-o", rows], 1.0, None),
    ("hooks: serve", serve + ["--source=hooks"], 1.0, 1.005),
]
BARE, AFTER = "no tracer", "after detach"


def wanted(way):
    name, args = way[0], way[1]
    if opts.only and name not in opts.only.split(","):
        return False
    if name.startswith("bpftrace"):
        return opts.hooks and shutil.which("bpftrace") is not None and cudart() is not None
    if args is None:
        return profiler is not None
    return opts.hooks or "--source=hooks" not in args


ways = [w for w in WAYS if wanted(w)]
if not ways:
    sys.exit("no way of tracing is left")
train(1 if opts.fake else 5)
samples = {name: [] for name in [BARE] + [w[0] for w in ways] + [AFTER]}
median_ratios = {name: [] for name in samples}
mean_ratios = {name: [] for name in samples}
last = {}
rounds = 0
while rounds < opts.rounds:
    round_began = time.monotonic()
    now = {name: [] for name in samples}
    sample(now[BARE])
    for i, (name, args, settle_s, _) in enumerate(ways):
        if args:
            last[name] = traced(name, args, settle_s, now[name])
        else:
            last[name] = by_bpftrace(now[name]) if name.startswith("bpftrace") else profiled(now[name])
        if i == len(ways) // 2:
            train(0.3)
            sample(now[BARE])
    train(0.3)
    sample(now[AFTER])
    bare_median = statistics.median(m for m, _ in now[BARE])
    bare_mean = statistics.fmean(m for _, m in now[BARE])
    for name, took in now.items():
        samples[name] += took
        median_ratios[name] += [m / bare_median for m, _ in took]
        mean_ratios[name].append(statistics.fmean(m for _, m in took) / bare_mean)
    rounds += 1
    if time.monotonic() - began + (time.monotonic() - round_began) > opts.seconds:
        break


def quartiles(values):
    return statistics.quantiles(values, n=4) if len(values) > 1 else values * 3


print(f"{machine}: {rounds} rounds, {rounds * SAMPLES} samples of {STEPS} steps of each way, {time.monotonic() - began:.0f} s")
if opts.readme:
    print("| way | a step takes | quartiles |\n|---|---|---|")
elif opts.table:
    print("| | step, median | ratio of medians | quartiles; ends | ratio of means | quartiles over rounds |\n|---|---|---|---|---|---|")
else:
    print(f"{'':24}{'step':>10}   {'medians':8}quartiles   ends          means    quartiles")
missed = 0
goals = {w[0]: w[3] for w in ways}
for name, took in samples.items():
    r = sorted(median_ratios[name])
    low, mid, high = quartiles(r)
    mean_low, _, mean_high = quartiles(mean_ratios[name])
    mean = statistics.fmean(mean_ratios[name])
    ms = statistics.median(m for m, _ in took)
    goal = goals.get(name)
    verdict = "" if not goal else f"   goal x{goal}: {'reached' if mean <= goal else 'MISSED'}"
    missed += bool(goal) and mean > goal
    if opts.readme:
        print(f"| {name} | x{mean:.3f} | {mean_low:.3f} to {mean_high:.3f} |{verdict}")
    elif opts.table:
        print(f"| {name} | {ms:.2f} ms | x{mid:.3f} | {low:.3f} to {high:.3f}; {r[0]:.3f} to {r[-1]:.3f} | x{mean:.3f} | "
              f"{mean_low:.3f} to {mean_high:.3f} |")
    else:
        print(f"{name:24}{ms:7.2f} ms   x{mid:.3f}  {low:.3f}-{high:.3f}  {r[0]:.3f}-{r[-1]:.3f}   x{mean:.3f}  "
              f"{mean_low:.3f}-{mean_high:.3f}{verdict}")
if rounds * SAMPLES < 20:
    print(f"fewer than 20 samples of each: the time of {opts.seconds:.0f} s was over")
for name, line in last.items():
    print(f"{name}: {line}")
sys.exit(1 if missed and not opts.fake else 0)
