# SPDX-License-Identifier: BSD-2-Clause
"""What each command costs a PyTorch training step: stat, top, serve, a trace of launches, a trace of everything.

    step_cost.py CUDATRACE [SECONDS]

One process trains a small transformer. In each round every command is attached to it in turn by -p and taken off again, with
steps that nothing traces at the begin and at the end of the round. Each time three medians are taken, each of 30 steps. The
ratio is that to the untraced median of the same round, so that a machine that gets slower or faster does not count. Prints for
each command the median of all, the median ratio, and the quartiles and ends of the ratios. Rounds go on until there are 24
medians of each, or until SECONDS (420) have passed; a line says how many there were.

A goal that is missed is said, and the exit status is then 1.
"""
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import torch

SETTLE_S = 3.0  # what is called too often is noticed, counted for a second, and its probes are taken off
ROUNDS, MEDIANS, STEPS = 8, 3, 30

ct = os.path.abspath(sys.argv[1])
limit_s = float(sys.argv[2]) if len(sys.argv) > 2 else 420
tmp = tempfile.mkdtemp(prefix="step_cost.")
began = time.monotonic()

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(4)]).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(16, 64, 256, device="cuda")


def step():
    opt.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    opt.step()
    torch.cuda.synchronize()


def medians(out):
    for _ in range(MEDIANS):
        took = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            step()
            took.append((time.perf_counter() - begin) * 1e3)
        out.append(statistics.median(took))


def train(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()


def traced(name, args, out):
    """Attaches `args`, takes the medians, detaches. Returns the last line of what cudatrace said."""
    err = os.path.join(tmp, "err")
    with open(err, "w") as f, open(os.path.join(tmp, "out"), "w") as o:
        p = subprocess.Popen([ct] + args + ["-v", "-p", str(os.getpid())], stdout=o, stderr=f)
    deadline = time.monotonic() + 30
    while "ready" not in open(err).read():
        if p.poll() is not None or time.monotonic() > deadline:
            p.kill()
            sys.exit(f"{name}: cudatrace did not become ready:\n{open(err).read()}")
        train(0.02)
    train(SETTLE_S)
    medians(out)
    p.send_signal(signal.SIGINT)
    try:
        p.wait(20)
    except subprocess.TimeoutExpired:
        p.kill()
        sys.exit(f"{name}: cudatrace did not end within 20 s of SIGINT")
    lines = open(err).read().strip().splitlines()
    return lines[-1] if lines else ""


rows = os.path.join(tmp, "rows")
# name, arguments, the ratio that is to be reached (None: none is set)
ways = [
    ("stat", ["stat", "-o", rows], 1.3),
    ("top", ["top", "--batch", "-i", "1", "-o", rows], 1.15),
    ("serve", ["serve", "--listen", "127.0.0.1:19411"], 1.15),
    ("-e launch", ["-e", "launch", "-o", rows], None),
    ("a trace of everything", ["-o", rows], None),
]

train(5)
times = {name: [] for name in ["no tracer"] + [w[0] for w in ways] + ["after detach"]}
ratios = {name: [] for name in times}
last = {}
rounds = 0
while rounds < ROUNDS:
    round_began = time.monotonic()
    now = {name: [] for name in times}
    medians(now["no tracer"])
    for name, args, _ in ways:
        last[name] = traced(name, args, now[name])
    train(0.3)
    medians(now["after detach"])
    bare = statistics.median(now["no tracer"])
    for name, took in now.items():
        times[name] += took
        ratios[name] += [t / bare for t in took]
    rounds += 1
    if time.monotonic() - began + (time.monotonic() - round_began) > limit_s:
        break

print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: {rounds} rounds, {rounds * MEDIANS} medians of each, "
      f"{time.monotonic() - began:.0f} s")
print(f"{'':24}{'step':>10}{'ratio':>8}   quartiles    ends")
missed = 0
goals = {name: goal for name, _, goal in ways}
for name, took in times.items():
    r = sorted(ratios[name])
    low, mid, high = statistics.quantiles(r, n=4) if len(r) > 1 else (r[0], r[0], r[0])
    goal = goals.get(name)
    verdict = "" if not goal else f"   goal x{goal}: {'reached' if mid <= goal else 'MISSED'}"
    missed += bool(goal) and mid > goal
    print(f"{name:24}{statistics.median(took):7.2f} ms   x{mid:.2f}   {low:.2f}-{high:.2f}   {r[0]:.2f}-{r[-1]:.2f}{verdict}")
for name, line in last.items():
    print(f"{name}: {line}")
sys.exit(1 if missed else 0)
