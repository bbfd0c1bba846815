# SPDX-License-Identifier: BSD-2-Clause
"""pytest_plugin.py - the fixture cuda_calls: the calls that a test makes.

    def test_step(cuda_calls):
        step()
        assert cuda_calls.count("cudaMalloc") == 0

The recording begins before the test and ends with the first question. clear() begins anew, for example after a warm-up. Where the test
fails, its report lists the calls that it asked for.
"""
import collections
import os
import warnings
from typing import Any, Iterator, List, Optional

import pytest

from .recorder import Recorder, record
from .rows import Call, Table
from .trace import Trace


#: Calls that the report of a failed test lists for each name that it asked for.
CALLS_SHOWN = 20


class CudaCalls:
    """What the fixture gives. The first question ends the recording."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._trace: Optional[Trace] = None
        self._asked: List[str] = []
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
        if glob not in self._asked:
            self._asked.append(glob)
        return self.calls.count(glob)

    def report(self) -> str:
        """The calls that count() was asked for, or how many there were of each function if it was not asked. Nothing if the test did not
        end the recording."""
        if self._trace is None:
            return ''
        functions = collections.Counter(call.name for call in self._trace.calls)
        parts = ['%d calls in all: %s' % (len(self._trace.calls), ', '.join('%d %s' % (n, name) for name, n in functions.most_common()) or 'none')]
        for glob in self._asked:
            calls = self._trace.calls.named(glob)
            parts += ['%d of %s%s' % (len(calls), glob, ':' if calls else ''), *('  %r' % call for call in calls[:CALLS_SHOWN])]
            if len(calls) > CALLS_SHOWN:
                parts.append('  ... %d more' % (len(calls) - CALLS_SHOWN))
        return '\n'.join(parts)

    def clear(self) -> None:
        """Forgets what was recorded, and begins anew."""
        self.close()
        self._trace = None
        self._asked = []
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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any) -> Iterator[None]:
    """Adds the calls to the report of a test that failed."""
    outcome: Any = yield
    report = outcome.get_result()
    calls = getattr(item, 'funcargs', {}).get('cuda_calls')
    if report.when == 'call' and report.failed and isinstance(calls, CudaCalls):
        text = calls.report()
        if text:
            report.sections.append(('CUDA calls', text))
