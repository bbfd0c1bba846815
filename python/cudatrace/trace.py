# SPDX-License-Identifier: BSD-2-Clause
"""trace.py - reads a recording, by the program's JSON."""
import html
import json
import os
import subprocess
import tempfile
from typing import Any, Dict, List, Type, Union

from . import columns, old, program
from .page import Page, Text
from .rows import Call, Copy, Device, Event, Kernel, Process, Range, Row, Set, Table


class Trace:
    """A recording in memory. Each table is a Table of records; times are nanoseconds, sizes are bytes."""

    def __init__(self, path: str, lines: List[Dict[str, Any]], messages: str, kept: Any = None) -> None:
        self.path = path
        #: What the program said of its output: the version of the names (`version`), and when the recording began (`start_ns`).
        self.head: Dict[str, Any] = next((line for line in lines if line['type'] == 'schema'), {})
        self._kept = kept    # a folder that is removed when nobody needs its file any more
        #: What the program said about the recording, for example that it has no end.
        self.messages = messages
        #: The last line: how the recording ended (`reason`), and what was lost.
        self.end: Dict[str, Any] = next((line for line in lines if line['type'] == 'end'), {})
        self._lines = lines

    def _table(self, kind: Type[Row], *words: str) -> 'Table[Row]':
        began = self.head.get('start_ns', 0)
        return Table(kind, (kind.of(line, began) for line in self._lines if line['type'] in words))

    @property
    def calls(self) -> 'Table[Call]':
        """Calls of CUDA's functions."""
        return self._table(Call, 'call')

    @property
    def kernels(self) -> 'Table[Kernel]':
        """Kernels that ran (of a recording that was made with --gpu)."""
        return self._table(Kernel, 'kernel')

    @property
    def copies(self) -> 'Table[Copy]':
        """Copies that devices made (--gpu)."""
        return self._table(Copy, 'copy', 'memcpy')

    @property
    def sets(self) -> 'Table[Set]':
        """Memory that devices set (--gpu)."""
        return self._table(Set, 'set', 'memset')

    @property
    def ranges(self) -> 'Table[Range]':
        """Ranges and marks that the program set: of NVTX and of PyTorch (--layers), and those that CUPTI reports (--gpu=nvtx)."""
        return self._table(Range, 'range', 'mark', 'marker')

    @property
    def processes(self) -> 'Table[Process]':
        """Processes that made calls."""
        return self._table(Process, 'process')

    @property
    def devices(self) -> 'Table[Device]':
        """GPUs."""
        return self._table(Device, 'device')

    @property
    def lost(self) -> int:
        """How many records are missing."""
        return sum(line['count'] for line in self._lines if line['type'] == 'lost')

    def events(self, word: str) -> 'Table[Event]':
        """Records of any type that `cudatrace schema` has, with what it has in `raw`."""
        return self._table(Event, word, *(new for was, new in old.TYPES.items() if was == word))

    def _export(self, *options: str) -> Page:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'page.html')
            program.run('export', *options, '-o', path, self.path)
            with open(path, encoding='utf-8') as f:
                return Page(f.read())

    def timeline(self) -> Page:
        """The timeline page; a notebook shows it inline."""
        return self._export('--to', 'html')

    def flame(self, weight: str = 'calls') -> Page:
        """The flame graph of a recording with stacks (-k). weight: calls, time, bytes or gpu."""
        return self._export('--to', 'flame', '--weight', weight)

    def stat(self) -> Text:
        """The table of `cudatrace stat`: sums by function, kernel and copy. A text, which a notebook shows line by line."""
        return Text(program.run('stat', self.path).stdout)

    def tables(self) -> Dict[str, Any]:
        """The recording's file as a pyarrow.Table for each kind of row, with typed arguments: see cudatrace.read_columns."""
        return columns.read_columns(self.path)

    def to_parquet(self, folder: 'Union[str, os.PathLike[str]]') -> None:
        """Writes the recording's file as Parquet: see cudatrace.to_parquet."""
        columns.to_parquet(self.path, folder)

    def _repr_html_(self) -> str:
        """For Jupyter: what the recording has, by function and kernel."""
        return '<p>%s</p>%s' % (html.escape(repr(self)), self.stat()._repr_html_())

    def __repr__(self) -> str:
        return '<Trace %s: %d calls, %d kernels, %d lost>' % (self.path, len(self.calls), len(self.kernels), self.lost)


def read(path: 'Union[str, os.PathLike[str]]', kept: Any = None) -> Trace:
    """Reads a recording into memory. Raises FileNotFoundError if there is none, and CudatraceError, with the program's message, if it
    cannot be read. kept: an object that lives as long as the Trace."""
    name = program.existing(path)
    with tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as said:
        command = [program.find_program(), 'replay', '--format', 'json', '-o', '-', name]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, encoding='utf-8',
                              errors='surrogateescape') as child:
            assert child.stdout is not None
            lines = [json.loads(line) for line in child.stdout]
        said.seek(0)
        messages = said.read()
    if child.returncode:
        raise program.CudatraceError(program.message(messages))
    return Trace(name, lines, messages, kept)
