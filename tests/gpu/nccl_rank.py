# SPDX-License-Identifier: BSD-2-Clause
"""nccl_rank.py - a rank of a job that hangs: nccl_rank.py RANK RANKS ABSENT PORT [KIND]

All ranks do ten all-reduces and an all-gather. Then every rank but ABSENT does one more all-reduce and waits for it; ABSENT sleeps in
load_batch() instead. KIND `none`: no rank is absent, and the ranks go on for ever. KIND `late`: ABSENT sleeps until its standard input
ends, and then all ranks end and print "sum N". Prints "ready PID" before it hangs.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

rank, ranks, absent, port = (int(word) for word in sys.argv[1:5])
kind = sys.argv[5] if len(sys.argv) > 5 else "absent"


def load_batch():
    if kind == "late":
        sys.stdin.read()
    else:
        time.sleep(3600)


os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
torch.cuda.set_device(rank)
dist.init_process_group("nccl", rank=rank, world_size=ranks)
data = torch.ones(1 << 20, device="cuda")
parts = [torch.empty_like(data) for _ in range(ranks)]
for _ in range(10):
    dist.all_reduce(data)
dist.all_gather(parts, data)
torch.cuda.synchronize()
print("ready", os.getpid(), flush=True)
while kind == "none":
    dist.all_reduce(data)
    torch.cuda.synchronize()
if rank == absent:
    load_batch()
dist.all_reduce(data)
torch.cuda.synchronize()
if kind == "late":
    print("sum", int(data[0].item()), flush=True)
    dist.destroy_process_group()
