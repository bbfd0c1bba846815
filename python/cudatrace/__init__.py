# SPDX-License-Identifier: BSD-2-Clause
"""What programs ask of CUDA, from Python.

    import cudatrace
    t = cudatrace.read("run.ctrace")               # a recording of `cudatrace record`
    t.calls.count("cudaMalloc*")
    with cudatrace.record() as run:                # this process, without root
        step()
    run.trace.calls

All times are nanoseconds and all sizes are bytes. Nothing but the standard library is needed; pandas and pyarrow are used where they
are installed. The program `cudatrace` does the work: see cudatrace.program.
"""
__version__ = '0.1.0'    # the program's: tests/python/run.py compares them

from .columns import read_columns, to_parquet
from .compare import Comparison, compare
from .page import Page, Text
from .program import CudatraceError, find_program
from .recorder import Recorder, record
from .rows import Call, Column, Copy, Device, Kernel, Process, Range, Set, Table
from .trace import Trace, read

__all__ = ['Call', 'Column', 'Comparison', 'Copy', 'CudatraceError', 'Device', 'Kernel', 'Page', 'Process', 'Range', 'Recorder', 'Set', 'Table',
           'Text', 'Trace', '__version__', 'compare', 'find_program', 'read', 'read_columns', 'record', 'to_parquet']
