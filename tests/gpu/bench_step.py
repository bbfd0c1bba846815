# SPDX-License-Identifier: BSD-2-Clause
"""The work that tests/bench/book.py measures on a GPU: bench_step.py eager|compiled|decode|jax|ddp [--fake LIBCUDART]

Prints "pid N WHAT". For each line of its standard input, "SECONDS [profiler]", it does steps for so many seconds, then STEPS steps more,
and prints how many nanoseconds one of these takes; with "profiler" in the line under torch.profiler. eager, compiled: a training step
of a small transformer; decode: a token of a model with a cache; jax: a training step of JAX; ddp: a training step on two GPUs, of which
this process has the first, and a process that it starts the second. --fake: whatever the work is, a step is some calls of this
libcudart (the stand-in's), which needs no GPU and no PyTorch.
"""
import ctypes
import datetime
import os
import subprocess
import sys
import time

STEPS = 20
WARM_STEPS = 5


def transformer(compiled=False, parallel=False):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(8)]).cuda()
    if parallel:
        model = torch.nn.parallel.DistributedDataParallel(model)
    if compiled:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(16, 64, 256, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()

    return step, torch.cuda.synchronize


def decode():
    import torch

    layers, width, heads, length = 12, 1024, 16, 512
    weights = [torch.randn(width, 4 * width, device="cuda", dtype=torch.float16) * 0.02 for _ in range(layers)]
    keys = [torch.randn(heads, length, width // heads, device="cuda", dtype=torch.float16) for _ in range(layers)]

    def step():
        with torch.no_grad():
            x = torch.ones(1, width, device="cuda", dtype=torch.float16)
            for weight, key in zip(weights, keys):
                query, new, value, gate = (x @ weight).chunk(4, dim=1)
                key[:, -1] = new.view(heads, -1)
                scores = torch.softmax(key @ query.view(heads, -1, 1) / 8, dim=1)
                x = torch.nn.functional.rms_norm(x + torch.tanh(gate) * value + scores.mean(), (width,))
            x.argmax().item()

    return step, torch.cuda.synchronize


def jax_step():
    import jax
    import jax.numpy as jnp

    weights = [jax.random.normal(jax.random.PRNGKey(i), (512, 512)) * 0.04 for i in range(8)]
    x = jnp.ones((256, 512))

    def loss(weights):
        y = x
        for weight in weights:
            y = jnp.tanh(y @ weight)
        return (y ** 2).mean()

    update = jax.jit(lambda weights: [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights))])

    def step():
        nonlocal weights
        weights = update(weights)

    return step, lambda: jax.block_until_ready(weights)


def ddp():
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(RANK)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=120))
    return transformer(parallel=True)


def fake_step(path):
    class Dim3(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]

    cudart = ctypes.CDLL(path)
    one = Dim3(1, 1, 1)
    cudart.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    kernel = ctypes.cast(cudart.cudaFree, ctypes.c_void_p)
    device = ctypes.c_int()

    def step():
        for _ in range(100):
            cudart.cudaGetDevice(ctypes.byref(device))
            cudart.cudaLaunchKernel(kernel, one, one, None, 0, None)
        cudart.cudaDeviceSynchronize()

    return step, lambda: None


WORKS = {"eager": (transformer, "A training step of a small transformer, PyTorch."),
         "compiled": (lambda: transformer(compiled=True), "The same step under torch.compile."),
         "decode": (decode, "A token of a model with a cache, PyTorch."),
         "jax": (jax_step, "A training step of JAX."),
         "ddp": (ddp, "The step of eager on two GPUs, DistributedDataParallel.")}
RANK = int(os.environ.get("RANK", "0"))


def second_rank():
    """The process with the second GPU: it is told how many steps it takes part in."""
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "WORLD_SIZE": "2", "RANK": "0"})
    return subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": "1"}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


class Steps:
    def __init__(self, name, fake):
        self.other = second_rank() if name == "ddp" and not RANK else None
        self.step, self.wait = fake_step(fake) if fake else WORKS[name][0]()

    def do(self, count):
        if self.other:
            print(count, file=self.other.stdin, flush=True)
        for _ in range(count):
            self.step()
        self.wait()

    def sample(self, warm_s):
        """Nanoseconds a step, after others for so many seconds."""
        until = time.monotonic() + warm_s
        while time.monotonic() < until:
            self.do(WARM_STEPS)
        began = time.perf_counter_ns()
        self.do(STEPS)
        return (time.perf_counter_ns() - began) / STEPS


def profiled(steps, warm_s):
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        return steps.sample(warm_s)


def main():
    name = sys.argv[1]
    fake = sys.argv[3] if sys.argv[2:3] == ["--fake"] else None
    steps = Steps(name, fake)
    if RANK:
        for line in sys.stdin:
            steps.do(int(line))
        return
    steps.sample(0)  # what is made once: kernels that are compiled, workspaces
    print(f"pid {os.getpid()} {'Calls of the stand-in: these figures say nothing.' if fake else WORKS[name][1]}", flush=True)
    for line in sys.stdin:
        warm_s = float(line.split()[0])
        if "profiler" not in line:
            print(steps.sample(warm_s), flush=True)
        elif name == "jax":
            print("torch.profiler does not see JAX", flush=True)
        else:
            print(steps.sample(warm_s) if fake else profiled(steps, warm_s), flush=True)


if __name__ == "__main__":
    main()
