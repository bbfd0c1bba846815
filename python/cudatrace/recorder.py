# SPDX-License-Identifier: BSD-2-Clause
"""recorder.py - records this process: a child that traces its parent."""
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import weakref
from types import TracebackType
from typing import List, Optional, Sequence, Type, Union

from . import program
from .trace import Trace, read

PR_SET_PTRACER = 0x59616d61
#: Seconds after which a recorder that is not ready, or does not end, is given up.
PATIENCE_S = 120
#: Seconds after which a block begins although the agent that reports what the GPU does has not started.
AGENT_S = 30


def _allow_tracing(pid: int) -> None:
    """Where the kernel lets only a parent trace its child (Yama), the child needs leave. Elsewhere this fails, and is not needed."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def _uses_cuda() -> bool:
    """Has this process loaded the driver? Before that there is no device work, and the agent waits for it."""
    with open('/proc/self/maps', encoding='utf-8', errors='replace') as maps:
        return any('/libcuda.so' in line for line in maps)


class Folder:
    """A new folder, which is removed when this object is forgotten."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix='cudatrace-')
        weakref.finalize(self, shutil.rmtree, self.path, True)


class Recorder:
    """`with record() as run:` - while the block runs, the calls of this process are recorded. Afterwards run.trace has them."""

    def __init__(self, path: Optional[str], options: Sequence[str], gpu: bool = False) -> None:
        self._folder = Folder() if path is None else None
        self.path = os.path.join(self._folder.path, 'run.ctrace') if self._folder else str(path)
        self.gpu = gpu
        self.options = list(options)
        self._child: 'Optional[subprocess.Popen[str]]' = None
        self._said: List[str] = []
        self._ready = threading.Event()
        self._agent = threading.Event()
        self._reader: Optional[threading.Thread] = None

    @property
    def messages(self) -> str:
        """What the recorder said until now, warnings included."""
        return ''.join(self._said)

    @property
    def running(self) -> bool:
        """True from start() to stop()."""
        return self._child is not None

    def _read_messages(self) -> None:
        child = self._child
        assert child is not None and child.stderr is not None
        for line in child.stderr:
            self._said.append(line)
            if line.rstrip() == 'cudatrace: ready':
                self._ready.set()
            if 'the agent has started' in line or 'what its devices do is not shown' in line:
                self._agent.set()
        self._ready.set()
        self._agent.set()

    def start(self) -> 'Recorder':
        """Begins to record. On return calls are seen, and with gpu what devices do, unless messages say otherwise. Raises CudatraceError, with the recorder's message, if it cannot."""
        if self._child:
            raise program.CudatraceError('this recorder is running already')
        self._said = []
        self._ready.clear()
        self._agent.clear()
        # The shell waits until it has leave to trace us, and then becomes the recorder.
        command = [program.find_program(), 'record', '-v', *self.options, '-p', str(os.getpid()), '-o', self.path]
        self._child = subprocess.Popen(['/bin/sh', '-c', 'read -r _ && exec "$@"', 'sh', *command], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding='utf-8', errors='replace',
                                       start_new_session=True)
        _allow_tracing(self._child.pid)
        assert self._child.stdin is not None
        self._child.stdin.write('\n')
        self._child.stdin.close()
        self._reader = threading.Thread(target=self._read_messages, daemon=True)
        self._reader.start()
        in_time = self._ready.wait(PATIENCE_S)
        if not in_time or 'cudatrace: ready\n' not in self._said:
            self._end(signal.SIGKILL if not in_time else signal.SIGINT)
            raise program.CudatraceError(program.message(self.messages) if in_time else 'the recorder is not ready in time')
        if self.gpu and _uses_cuda():
            self._agent.wait(AGENT_S)
        return self

    def _end(self, number: signal.Signals) -> int:
        """Ends the child and returns its status."""
        child, self._child = self._child, None
        assert child is not None and self._reader is not None and child.stderr is not None
        child.send_signal(number)
        try:
            status = child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            status = child.wait()
        self._reader.join()
        child.stderr.close()
        return status

    def stop(self) -> None:
        """Ends the recording; the file is complete on return. Raises CudatraceError if the recorder failed."""
        if self._child and self._end(signal.SIGINT):
            raise program.CudatraceError(program.message(self.messages))

    @property
    def trace(self) -> Trace:
        """What was recorded. Before the end of the block, this ends the recording."""
        self.stop()
        return read(self.path, self._folder)

    def __enter__(self) -> 'Recorder':
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]) -> None:
        try:
            self.stop()
        except program.CudatraceError:
            # what went wrong in the block says more
            if error is None:
                raise


def record(path: 'Union[str, os.PathLike[str], None]' = None, *, gpu: bool = False, source: str = 'hooks',
           options: Sequence[str] = ()) -> Recorder:
    """Records the calls of this process, in all its threads, while a block runs.

    path: where the recording is written; without it, into a temporary file, which lives as long as the Recorder and its Trace.
    gpu: kernels, copies and sets too, by CUPTI in this process. source: 'hooks' needs no root and works on x86-64; 'probes' needs root.
    options: more options of `cudatrace record`, for example ['-e', 'memory,launch'] or ['-k']. The tracer is a child of this process,
    which gets leave to trace it (PR_SET_PTRACER); leave that another one had is lost. CudatraceError if it cannot trace."""
    return Recorder(None if path is None else os.path.abspath(os.fspath(path)), ['--source=' + source, *(['--gpu'] if gpu else []), *options], gpu)
