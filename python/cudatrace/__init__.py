# SPDX-License-Identifier: BSD-2-Clause
"""What programs ask of CUDA, from Python.

    import cudatrace
    t = cudatrace.read("run.ctrace")               # a recording of `cudatrace record`
    t.calls.count("cudaMalloc*")
    with cudatrace.record("run.ctrace") as run:    # this process, without root
        step()
    run.trace.calls

All times are nanoseconds and all sizes are bytes. Nothing but the standard library is needed; pandas and pyarrow are used where they
are installed. The program `cudatrace` does the work: see cudatrace.program.
"""
from .columns import read_columns, to_parquet
from .compare import Comparison, compare
from .page import Page, Text
from .program import CudatraceError, find_program
from .recorder import Recorder, record
from .rows import Call, Column, Copy, Device, Kernel, Process, Range, Set, Table
from .trace import Trace, read

__all__ = ['Call', 'Column', 'Comparison', 'Copy', 'CudatraceError', 'Device', 'Kernel', 'Page', 'Process', 'Range', 'Recorder', 'Set', 'Table',
           'Text', 'Trace', 'compare', 'find_program', 'read', 'read_columns', 'record', 'to_parquet']
