# SPDX-License-Identifier: BSD-2-Clause
"""rows.py - what a recording contains, as typed records and as tables of them.

The members are those of `cudatrace schema`, and what is also a column of csv, arrow and parquet has that column's name. One that is None is
not known. `raw` is the whole line, also with members that have no field here. Names of before version 3 are in old.py.
"""
import dataclasses
import fnmatch
import html
import json
import warnings
from typing import TYPE_CHECKING, Any, Dict, Generic, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union, overload

from . import old, show

Row = TypeVar('Row', bound='Event')


class Column(NamedTuple):
    """A column of a table: its Python type (None: anything, JSON in Arrow tables), its unit ('' if it has none), what it means."""
    type: Optional[type]
    unit: str
    about: str


def _column(default: Any, about: str, unit: str = '') -> Any:
    """A field with what is said of it."""
    how: Dict[str, Any] = {'default_factory': default} if isinstance(default, type) else {'default': default}
    return dataclasses.field(metadata={'about': about, 'unit': unit}, **how)


def _described(kind: Type[Row]) -> Type[Row]:
    """Adds the columns to the text that help() shows."""
    lines = ['    %s%s: %s' % (name, ' (%s)' % column.unit if column.unit else '', column.about) for name, column in columns_of(kind).items()]
    kind.__doc__ = '%s\n\n    Columns:\n%s' % ((kind.__doc__ or '').rstrip(), '\n'.join('    ' + line for line in lines))
    return kind


def columns_of(kind: 'Type[Event]') -> Dict[str, Column]:
    """The columns of a kind of record, in their order."""
    return {f.name: Column(_column_type(f.type), f.metadata.get('unit', ''), f.metadata.get('about', ''))
            for f in dataclasses.fields(kind) if f.name not in ('raw', 'began_ns')}


@dataclasses.dataclass(frozen=True, repr=False)
class Event:
    """What all records have: when, and of which thread."""
    start_ns: int = _column(0, 'when it began, CLOCK_MONOTONIC', 'ns')
    pid: Optional[int] = _column(None, 'the process, as it sees itself')
    tid: Optional[int] = _column(None, 'the thread')
    process: Optional[str] = _column(None, 'the name of the process')
    rank: Optional[int] = _column(None, 'its place in a job of several processes')
    raw: Dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    #: When the recording began, CLOCK_MONOTONIC; 0: not known. Representations show times since then.
    began_ns: int = dataclasses.field(default=0, repr=False, compare=False)

    @classmethod
    def of(cls: Type[Row], line: Dict[str, Any], began_ns: int = 0) -> Row:
        """Makes a record of one object of `cudatrace replay --format json`."""
        line = old.line(line)
        return cls(raw=line, began_ns=began_ns, **{name: line[name] for name in columns_of(cls) if name in line})

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            """The names of before version 3."""
            new = old.member(type(self), name)
            if new is None:
                raise AttributeError('%s has no member %s, but %s' % (type(self).__name__, name, ', '.join(columns_of(type(self)))))
            warnings.warn('%s is the old name of %s' % (name, new), DeprecationWarning, stacklevel=2)
            return getattr(self, new)

    def __repr__(self) -> str:
        """What is known, on a line of the terminal, with times since the recording's begin."""
        return show.row(self, columns_of(type(self)))

    @property
    def title(self) -> str:
        """What Table.count compares."""
        return self.process or ''


@dataclasses.dataclass(frozen=True, repr=False)
class Call(Event):
    """A call of a function of CUDA."""
    duration_ns: Optional[int] = _column(None, 'from entry to return; None if it did not return', 'ns')
    domain: str = _column('', 'the library: runtime, driver, nccl...')
    name: str = _column('', 'the function')
    args: Dict[str, Any] = _column(dict, 'its arguments by name; sizes in bytes, addresses as hexadecimal text')
    ret: Any = _column(None, 'what it returned')
    result: Optional[str] = _column(None, 'the name of the error that it returned, such as cudaSuccess')
    correlation: Optional[int] = _column(None, 'the number that it shares with what the device did for it')
    kernel: Optional[str] = _column(None, 'the kernel that it launches, demangled')
    device: Optional[int] = _column(None, 'the device, as the process numbers it')
    context: Optional[int] = _column(None, 'the context')
    stream: Optional[int] = _column(None, 'the stream')
    stack: Optional[List[Dict[str, Any]]] = _column(None, 'the frames of a recording with -k, the innermost first')
    unfinished: bool = _column(False, 'it was under way when the recording ended')

    @property
    def title(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, repr=False)
class Work(Event):
    """What a device did. Times are the device's, on the clock of the calls."""
    duration_ns: int = _column(0, 'from start to end on the device', 'ns')
    device: Optional[int] = _column(None, 'the device, as the process numbers it')
    context: Optional[int] = _column(None, 'the context')
    stream: Optional[int] = _column(None, 'the stream')
    gpu_uuid: Optional[str] = _column(None, 'the GPU')
    correlation: Optional[int] = _column(None, 'that of the call which caused it')
    cause: Optional[str] = _column(None, 'the function which caused it')
    cause_start_ns: Optional[int] = _column(None, 'the begin of that call', 'ns')
    delay_ns: Optional[int] = _column(None, 'from the begin of that call to the start on the device', 'ns')


@dataclasses.dataclass(frozen=True, repr=False)
class Kernel(Work):
    """A kernel that ran."""
    name: str = _column('', 'its name, usually without parameters')
    kernel: Optional[str] = _column(None, 'its whole name, demangled')
    grid: Optional[List[int]] = _column(None, 'blocks in x, y, z')
    block: Optional[List[int]] = _column(None, 'threads of a block in x, y, z')
    registers_per_thread: Optional[int] = _column(None, 'registers of each thread')
    static_shared_bytes: Optional[int] = _column(None, 'shared memory of a block that the kernel declares', 'bytes')
    dynamic_shared_bytes: Optional[int] = _column(None, 'shared memory of a block that the launch asks for', 'bytes')

    @property
    def title(self) -> str:
        return self.kernel or self.name


@dataclasses.dataclass(frozen=True, repr=False)
class Copy(Work):
    """A copy that a device made."""
    copy_kind: Union[str, int, None] = _column(None, 'its direction: HtoD, DtoH, DtoD, PtoP...')
    size_bytes: int = _column(0, 'its size', 'bytes')
    bytes_per_second: Optional[int] = _column(None, 'size by time', 'bytes/s')
    src_memory: Union[str, int, None] = _column(None, 'the kind of memory it reads')
    dst_memory: Union[str, int, None] = _column(None, 'the kind of memory it writes')

    @property
    def title(self) -> str:
        return str(self.copy_kind)


@dataclasses.dataclass(frozen=True, repr=False)
class Set(Work):
    """Memory that a device set to a value."""
    set_value: Optional[int] = _column(None, 'the value')
    size_bytes: int = _column(0, 'its size', 'bytes')
    bytes_per_second: Optional[int] = _column(None, 'size by time', 'bytes/s')
    dst_memory: Union[str, int, None] = _column(None, 'the kind of memory')

    @property
    def title(self) -> str:
        return str(self.dst_memory)


@dataclasses.dataclass(frozen=True, repr=False)
class Range(Event):
    """A range or a mark that the program set (--layers nvtx, torch), or that CUPTI reports (--gpu=nvtx)."""
    duration_ns: int = _column(0, 'from begin to end; of a mark 0', 'ns')
    name: Optional[str] = _column(None, 'what the program calls it; None: it could not be read')
    domain: Optional[str] = _column(None, 'the domain of NVTX')
    category: Optional[str] = _column(None, 'the name of its category')
    kind: Union[str, int, None] = _column(None, 'push_pop, start_end (begun and ended by a number) or mark')
    range_id: Optional[int] = _column(None, 'its number in its process')
    parent_id: Optional[int] = _column(None, 'the number of the range around it')
    payload: Union[int, float, None] = _column(None, 'the number that the program gave it')

    @classmethod
    def of(cls: Type[Row], line: Dict[str, Any], began_ns: int = 0) -> Row:
        if line['type'] in ('range', 'mark'):
            line = {'kind': 'mark' if line['type'] == 'mark' else 'start_end' if line.get('any_thread') else 'push_pop', **line}
        made: Row = super().of(line, began_ns)
        return made

    @property
    def title(self) -> str:
        return self.name or ''


@dataclasses.dataclass(frozen=True, repr=False)
class Process(Event):
    """A process, before its first call."""
    host_pid: Optional[int] = _column(None, 'its number on the machine')
    ppid: Optional[int] = _column(None, 'its parent')
    uid: Optional[int] = _column(None, 'its user')
    gid: Optional[int] = _column(None, 'its group')


@dataclasses.dataclass(frozen=True, repr=False)
class Device(Event):
    """A GPU, as the process pid numbers it; without pid, as the machine does."""
    device: int = _column(0, 'its number')
    name: str = _column('', 'its name')
    gpu_uuid: Optional[str] = _column(None, 'its UUID, as device work has it')
    uuid: str = _column('', 'its UUID in hexadecimal digits')
    memory_bytes: Optional[int] = _column(None, 'its memory', 'bytes')
    memory_bytes_per_second: Optional[int] = _column(None, 'the bandwidth of its memory', 'bytes/s')
    multiprocessors: Optional[int] = _column(None, 'its multiprocessors')

    @property
    def title(self) -> str:
        return self.name


class Table(Sequence[Row], Generic[Row]):
    """Records of one kind, in the order of the recording."""

    def __init__(self, kind: Type[Row], rows: Iterable[Row]) -> None:
        self.kind = kind
        self._rows: Tuple[Row, ...] = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> 'Table[Row]': ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Row, 'Table[Row]']:
        if isinstance(index, slice):
            return Table(self.kind, self._rows[index])
        return self._rows[index]

    def __repr__(self) -> str:
        """The first and last rows, no wider than the terminal, without columns that have no value, with times since the recording's begin."""
        return show.table(self.kind.__name__, self._rows, columns_of(self.kind))

    def named(self, glob: str) -> 'Table[Row]':
        """Those whose name matches: of a call the function's, of a kernel the demangled one, of a range its text, of a copy its kind."""
        return Table(self.kind, (row for row in self._rows if fnmatch.fnmatchcase(row.title, glob)))

    def count(self, glob: Any = '*') -> int:
        """How many have a name that matches; a record instead of a name: how many are equal to it."""
        return len(self.named(glob)) if isinstance(glob, str) else self._rows.count(glob)

    @property
    def types(self) -> Dict[str, Column]:
        """The type, the unit and the meaning of each column, by its name."""
        return columns_of(self.kind)

    def column(self, name: str) -> List[Any]:
        """The values of one column. Raises KeyError if there is none of this name."""
        name = old.member(self.kind, name) or name
        if name not in self.types:
            raise KeyError('%s has no column %s, but %s' % (self.kind.__name__, name, ', '.join(self.types)))
        return [getattr(row, name) for row in self._rows]

    def columns(self) -> Dict[str, List[Any]]:
        """The values of each column, by its name."""
        return {name: self.column(name) for name in self.types}

    def _repr_html_(self) -> str:
        """For Jupyter: the first rows, with the units, without columns that have no value."""
        shown = self._rows[:HTML_ROWS]
        columns = show.not_empty(shown, self.types)
        heads = ''.join('<th title="%s">%s%s</th>' % (html.escape(column.about), name, show.unit_of(name, column.unit, shown))
                        for name, column in columns.items())
        rows = ''.join('<tr>%s</tr>' % ''.join('<td>%s</td>' % _cell(show.since(row, name)) for name in columns) for row in shown)
        rest = '' if len(self) <= HTML_ROWS else '<p>%d of %d rows</p>' % (HTML_ROWS, len(self))
        return '<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>%s' % (heads, rows, rest)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a column for each field. Raises ImportError, which says so, if pandas is not installed."""
        try:
            import pandas  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError('to_pandas() needs pandas, which is not installed') from error
        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A polars.DataFrame with a column for each field. Raises ImportError, which says so, if polars or pyarrow is not installed."""
        try:
            import polars  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError('to_polars() needs polars, which is not installed') from error
        return polars.from_arrow(self.to_arrow())

    def to_arrow(self) -> Any:
        """A pyarrow.Table; the metadata of its fields has their units; args, stack and ret are JSON: read_columns() has arguments in
        columns of their own. Raises ImportError, which says so, if pyarrow is not installed."""
        try:
            import pyarrow  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError('to_arrow() needs pyarrow, which is not installed') from error
        types = {int: pyarrow.int64(), str: pyarrow.string(), bool: pyarrow.bool_(), list: pyarrow.list_(pyarrow.int64())}
        fields, arrays = [], []
        for name, column in self.types.items():
            values = self.column(name)
            if column.type is None:
                values = [None if value is None else json.dumps(value) for value in values]
            arrays.append(pyarrow.array(values, types[column.type or str]))
            fields.append(pyarrow.field(name, arrays[-1].type, metadata={'unit': column.unit, 'about': column.about}))
        return pyarrow.table(arrays, schema=pyarrow.schema(fields))


#: Rows that a notebook shows of a table, and characters of a cell.
HTML_ROWS = 20
HTML_CELL = 80


def _cell(value: Any) -> str:
    text = '' if value is None else str(value)
    return html.escape(text if len(text) <= HTML_CELL else text[:HTML_CELL] + '...')


def _column_type(hint: Any) -> Optional[type]:
    """int, str, bool or list (of int); None: anything, which becomes JSON."""
    known: Dict[Any, type] = {int: int, str: str, bool: bool, Optional[int]: int, Optional[str]: str, Optional[List[int]]: list}
    return known.get(hint)


for _kind in (Event, Call, Work, Kernel, Copy, Set, Range, Process, Device):
    _described(_kind)
