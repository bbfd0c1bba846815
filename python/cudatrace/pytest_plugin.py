# SPDX-License-Identifier: BSD-2-Clause
"""pytest_plugin.py - the fixture cuda_calls: the calls that a test makes.

    def test_step(cuda_calls):
        step()
        assert cuda_calls.count("cudaMalloc") == 0

The recording begins before the test and ends with the first question. clear() begins anew, for example after a warm-up.
"""
import os
import warnings
from typing import Iterator, Optional

import pytest

from .recorder import Recorder, record
from .rows import Call, Table
from .trace import Trace


class CudaCalls:
    """What the fixture gives. The first question ends the recording."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._trace: Optional[Trace] = None
        self._recorder: Recorder = record(path).start()

    @property
    def trace(self) -> Trace:
        """The whole recording."""
        if self._trace is None:
            self._trace = self._recorder.trace
            for line in self._recorder.messages.splitlines():    # for example that some functions have no hooks
                if 'warning: ' in line:
                    warnings.warn(line, stacklevel=2)
        return self._trace

    @property
    def calls(self) -> 'Table[Call]':
        """The calls, in the order of their returns."""
        return self.trace.calls

    def count(self, glob: str = '*') -> int:
        """How many calls of the functions with such a name were made."""
        return self.calls.count(glob)

    def clear(self) -> None:
        """Forgets what was recorded, and begins anew."""
        self.close()
        self._trace = None
        self._recorder.start()

    def close(self) -> None:
        """Ends the recording."""
        self._recorder.stop()


@pytest.fixture
def cuda_calls(tmp_path: 'os.PathLike[str]') -> Iterator[CudaCalls]:
    """The calls of CUDA that the test makes (no root; x86-64)."""
    calls = CudaCalls(os.path.join(tmp_path, 'test.ctrace'))
    yield calls
    calls.close()
