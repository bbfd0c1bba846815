# SPDX-License-Identifier: BSD-2-Clause
"""Steps of a small transformer, the same ones each time. With an argument torch.profiler looks on from the first one, and a JSON
file of that name gets [count, nanoseconds on the device] of each kernel, copy and memset."""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

STEPS = 200


def work():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0).cuda()
    opt = torch.optim.SGD(layer.parameters(), lr=1e-3)
    x = torch.randn(8, 64, 256).cuda()
    for _ in range(STEPS):
        opt.zero_grad(set_to_none=True)
        layer(x).square().mean().backward()
        opt.step()
    print(float(x.sum()))
    torch.cuda.synchronize()


if len(sys.argv) < 2:
    work()
else:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        work()
    sums = {}
    for e in prof.key_averages():
        # an optimizer's step is marked on the device's rows too, and is no work of it
        if str(e.device_type).endswith("CUDA") and not e.key.startswith("Optimizer."):
            sums[e.key] = [e.count, round(1000 * getattr(e, "self_device_time_total", getattr(e, "self_cuda_time_total", 0)))]
    json.dump(sums, open(sys.argv[1], "w"))
