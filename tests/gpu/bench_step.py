# SPDX-License-Identifier: BSD-2-Clause
"""The work that tests/bench/book.py measures on a GPU: bench_step.py eager|compiled|decode|jax|ddp

Prints "pid N". For each line of its standard input it does STEPS steps and prints how many nanoseconds one takes; with "profiler" in the
line under torch.profiler. eager, compiled: a training step of a small transformer; decode: a token of a model with a cache; jax: a
training step of JAX; ddp: a training step on two GPUs, of which this process has the first.
"""
import os
import subprocess
import sys
import time

STEPS = 20


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
    """Rank 0 says before each sample that there is one; rank 1 takes part until rank 0 has ended."""
    import torch
    import torch.distributed as dist

    rank = int(os.environ.get("RANK", "0"))
    if not rank:
        os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "WORLD_SIZE": "2", "RANK": "0"})
        subprocess.Popen([sys.executable, __file__, "ddp"], env={**os.environ, "RANK": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    step, wait = transformer(parallel=True)
    if rank:
        while True:
            step()

    return step, wait


WORKS = {"eager": transformer, "compiled": lambda: transformer(compiled=True), "decode": decode, "jax": jax_step, "ddp": ddp}


def sample(step, wait):
    wait()
    began = time.perf_counter_ns()
    for _ in range(STEPS):
        step()
    wait()
    return (time.perf_counter_ns() - began) / STEPS


def main():
    step, wait = WORKS[sys.argv[1]]()
    sample(step, wait)  # what is made once: kernels that are compiled, workspaces
    print(f"pid {os.getpid()}", flush=True)
    for line in sys.stdin:
        if "profiler" in line and sys.argv[1] != "jax":
            import torch

            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
                took = sample(step, wait)
        else:
            took = sample(step, wait)
        print(took, flush=True)


if __name__ == "__main__":
    main()
