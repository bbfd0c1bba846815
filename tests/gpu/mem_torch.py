# SPDX-License-Identifier: BSD-2-Clause
"""Takes and frees tensors, and prints as JSON what PyTorch's own allocator says it has from CUDA: now, at most, and in all.

With --go-file it takes half of it before it waits to be traced."""
import json

import torch

from wait_go import wait_go

torch.manual_seed(0)
kept = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (3, 30, 300)]
wait_go()
for i in range(20):
    big = torch.randn(1 << (20 + i % 5), device="cuda")
    kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
    (big * 2).sum().item()
    del big
a = torch.randn(2048, 2048, device="cuda")
(a @ a).sum().item()
del a
torch.cuda.empty_cache()
more = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
pinned = torch.empty(5 << 20, dtype=torch.uint8, pin_memory=True)
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
print(json.dumps({"now": stats["reserved_bytes.all.current"], "peak": stats["reserved_bytes.all.peak"],
                  "taken": stats["reserved_bytes.all.allocated"]}), flush=True)
