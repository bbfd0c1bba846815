#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""steps.py - what reads torch.profiler's traces finds the steps, operators and kernels in Chrome JSON: steps.py TRACE.json

The trace has the steps ProfilerStep#1 to 6. Read by Meta's Holistic Trace Analysis, and by PyTorch's plugin for TensorBoard
(torch-tb-profiler). Prints `ok NAME` or `not ok NAME: why`.
"""
import logging
import os
import sys
import tempfile
import warnings

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
del sys.path[0]  # where this file lies, with one of the package's name
OPERATORS = {"aten::addmm", "aten::mm", "aten::empty", "aten::log_softmax", "aten::add_", "AddmmBackward0", "torch::autograd::AccumulateGrad"}
path = os.path.abspath(sys.argv[1])


def check(name, got, want):
    print(f"ok {name}" if got == want else f"not ok {name}: {got}, not {want}")


def hta():
    from hta.trace_analysis import TraceAnalysis
    trace = TraceAnalysis(trace_files={0: path}, trace_dir="").t
    df, symbols = trace.get_trace(0), trace.symbol_table
    operators = df[df["cat"] == symbols.sym_index["cpu_op"]]
    check("hta-operators", {symbols.sym_table[i] for i in operators["name"]}, OPERATORS)
    # of the last step HTA cannot tell the work that is left
    check("hta-steps", {int(i) for i in df["iteration"].unique()} - {-1, 6}, {1, 2, 3, 4, 5})


def tensorboard():
    from torch_tb_profiler.profiler.data import RunProfileData
    with tempfile.TemporaryDirectory() as cache:
        run = RunProfileData.parse("worker", "span", path, cache)
    check("tensorboard-steps", run.steps_names, ["1", "2", "3", "4", "5", "6"])
    check("tensorboard-operators", {o.name for o in run.op_list_groupby_name}, OPERATORS)
    check("tensorboard-kernels", (run.has_kernel, sum(k.calls for k in run.kernel_list_groupby_name_op) > 0), (True, True))


for reader in (hta, tensorboard):
    try:
        reader()
    except Exception as e:  # a reader that cannot read it says so in its own way
        print(f"not ok {reader.__name__}: {type(e).__name__}: {e}")
