# SPDX-License-Identifier: BSD-2-Clause
"""What tracing costs a PyTorch training step: interleaved rounds in one process, the tracer attached and detached by -p.

    torch_cost.py CUDATRACE TMPDIR
"""
import os
import signal
import statistics
import subprocess
import sys
import time

import torch

ct, tmp = sys.argv[1:3]
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(4)]).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(16, 64, 256, device="cuda")
a = torch.zeros(32, device="cuda")


def step():
    opt.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    opt.step()
    torch.cuda.synchronize()


def steps():
    begin = time.perf_counter()
    for _ in range(20):
        step()
    return (time.perf_counter() - begin) / 20 * 1e3


def launch_bound():
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(20000):
        a.add_(1)
    took = time.perf_counter() - begin
    torch.cuda.synchronize()
    return took / 20000 * 1e6


def traced(args, work):
    if args is None:
        return work()
    err = os.path.join(tmp, "cost.err")
    with open(err, "w") as f:
        p = subprocess.Popen([ct, "-v", "-p", str(os.getpid()), "-o", os.path.join(tmp, "rows")] + args, stderr=f)
    while "ready" not in open(err).read():
        if p.poll() is not None:
            print("cudatrace ended:", open(err).read())
            return float("nan")
        time.sleep(0.01)
    time.sleep(0.7)  # past the governor's first window
    steps()
    took = work()
    p.send_signal(signal.SIGINT)
    p.wait()
    return took


ways = {
    "no tracer": None,
    "everything (queries muted)": [],
    "everything, --keep-chatty": ["--keep-chatty"],
    "-e launch": ["-e", "launch"],
    "-e launch -k": ["-e", "launch", "-k"],
    "after detach": None,
}
for name, work, unit in (("training step", steps, "ms"), ("launch-bound loop, a launch", launch_bound, "us")):
    for _ in range(3):
        work()
    times = {way: [] for way in ways}
    for _ in range(5):
        for way, args in ways.items():
            times[way].append(traced(args, work))
    base = statistics.median(times["no tracer"])
    for way in ways:
        t = statistics.median(times[way])
        print(f"{name:28} {way:28} {t:9.2f} {unit}  x{t / base:.2f}")
