# SPDX-License-Identifier: BSD-2-Clause
"""collectives_rank.py - a rank of a job that trains: collectives_rank.py RANK RANKS PORT KIND DIR STEPS [LATE]

KIND `ddp`: DistributedDataParallel; `fsdp`: fully_shard. After three steps the rank writes DIR/warmed.RANK: its process, and how long
NCCL's own log of this process (NCCL_DEBUG_FILE) is then. It waits for DIR/go, does STEPS steps, and ends. LATE: the rank that sleeps
20 ms before each of these steps. DIR/done.RANK has what it computed, and the bytes of the gradients of a step. BACKEND=gloo runs it
without a GPU.
"""
import glob
import json
import os
import sys
import time

import torch
import torch.distributed as dist

rank, ranks, port = (int(word) for word in sys.argv[1:4])
kind, folder, count = sys.argv[4], sys.argv[5], int(sys.argv[6])
late = int(sys.argv[7]) if len(sys.argv) > 7 else -1
backend = os.environ.get("BACKEND", "nccl")
device = "cuda" if backend == "nccl" else "cpu"


def log_bytes():
    return sum(os.path.getsize(path) for path in glob.glob(f"{folder}/nccl.{os.getpid()}"))


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def write(name, what):
    path = f"{folder}/{name}.{rank}"
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(what, f)
    os.rename(path + ".part", path)


os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
if device == "cuda":
    torch.cuda.set_device(rank)
dist.init_process_group(backend, rank=rank, world_size=ranks)
torch.manual_seed(1)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(8)]).to(device)
gradients = sum(p.numel() * p.element_size() for p in model.parameters())
if kind == "fsdp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device, (ranks,))
    for part in model:
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
else:
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=8)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x = torch.randn(256, 1024, generator=torch.Generator().manual_seed(rank)).to(device)


def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(3):
    step()
wait()
write("warmed", {"rank": rank, "pid": os.getpid(), "log_bytes": log_bytes()})
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.01)
for _ in range(count):
    if rank == late:
        time.sleep(0.02)
    loss = step()
    wait()
write("done", {"rank": rank, "loss": loss.item(), "gradients": gradients, "steps": count})
dist.destroy_process_group()
