# SPDX-License-Identifier: BSD-2-Clause
"""Training steps of a small transformer. The kernels that the steps launch are counted by torch.profiler on steps of the
same shape before the tracer is attached; the traced steps run without the profiler."""
import torch
from torch.profiler import ProfilerActivity, profile

from wait_go import launches, wait_go

STEPS = 20
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0).cuda()
opt = torch.optim.SGD(layer.parameters(), lr=1e-3)
x = torch.randn(8, 64, 256, device="cuda")


def step():
    opt.zero_grad(set_to_none=True)
    layer(x).square().mean().backward()
    opt.step()


for _ in range(5):
    step()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
names = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchCooperativeKernel")
count = sum(e.count for e in prof.key_averages() if e.key in names)
torch.cuda.synchronize()
wait_go()
for _ in range(STEPS):
    step()
torch.cuda.synchronize()
launches(count)
