# SPDX-License-Identifier: BSD-2-Clause
"""rows.py - what a recording contains, as typed records and as tables of them.

The members are those of `cudatrace schema`. One that is None is not known. `raw` is the whole line, also with members that have no
field here.
"""
import dataclasses
import fnmatch
import html
import json
from typing import Any, Dict, Generic, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union, overload

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
            for f in dataclasses.fields(kind) if f.name != 'raw'}


@dataclasses.dataclass(frozen=True)
class Event:
    """What all records have: when, and of which thread."""
    ts_ns: int = _column(0, 'when it began, CLOCK_MONOTONIC', 'ns')
    pid: Optional[int] = _column(None, 'the process, as it sees itself')
    tid: Optional[int] = _column(None, 'the thread')
    comm: Optional[str] = _column(None, 'the name of the process')
    rank: Optional[int] = _column(None, 'its place in a job of several processes')
    raw: Dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls: Type[Row], line: Dict[str, Any]) -> Row:
        """Makes a record of one object of `cudatrace replay --format json`."""
        return cls(raw=line, **{f.name: line[f.name] for f in dataclasses.fields(cls) if f.name in line and f.name != 'raw'})

    @property
    def title(self) -> str:
        """What Table.count compares."""
        return self.comm or ''


@dataclasses.dataclass(frozen=True)
class Call(Event):
    """A call of a function of CUDA."""
    dur_ns: Optional[int] = _column(None, 'from entry to return; None if it did not return', 'ns')
    domain: str = _column('', 'the library: runtime, driver, nccl...')
    api: str = _column('', 'the function')
    args: Dict[str, Any] = _column(dict, 'its arguments by name; sizes in bytes, addresses as hexadecimal text')
    ret: Any = _column(None, 'what it returned')
    ret_name: Optional[str] = _column(None, 'the name of the error that it returned, such as cudaSuccess')
    correlation: Optional[int] = _column(None, 'the number that it shares with what the device did for it')
    kernel: Optional[str] = _column(None, 'the kernel that it launches, demangled')
    device: Optional[int] = _column(None, 'the device, as the process numbers it')
    context: Optional[int] = _column(None, 'the context')
    stream: Optional[int] = _column(None, 'the stream')
    stack: Optional[List[Dict[str, Any]]] = _column(None, 'the frames of a recording with -k, the innermost first')
    unfinished: bool = _column(False, 'it was under way when the recording ended')

    @property
    def title(self) -> str:
        return self.api


@dataclasses.dataclass(frozen=True)
class Work(Event):
    """What a device did. Times are the device's, on the clock of the calls."""
    dur_ns: int = _column(0, 'from start to end on the device', 'ns')
    device: Optional[int] = _column(None, 'the device, as the process numbers it')
    context: Optional[int] = _column(None, 'the context')
    stream: Optional[int] = _column(None, 'the stream')
    gpu_uuid: Optional[str] = _column(None, 'the GPU')
    correlation: Optional[int] = _column(None, 'that of the call which caused it')
    api: Optional[str] = _column(None, 'the function which caused it')
    delay_ns: Optional[int] = _column(None, 'from the begin of that call to the start on the device', 'ns')


@dataclasses.dataclass(frozen=True)
class Kernel(Work):
    """A kernel that ran."""
    kernel: Optional[str] = _column(None, 'its name, demangled')
    grid: Optional[List[int]] = _column(None, 'blocks in x, y, z')
    block: Optional[List[int]] = _column(None, 'threads of a block in x, y, z')
    registers: Optional[int] = _column(None, 'registers of each thread')
    static_shared: Optional[int] = _column(None, 'shared memory of a block that the kernel declares', 'bytes')
    dynamic_shared: Optional[int] = _column(None, 'shared memory of a block that the launch asks for', 'bytes')

    @property
    def title(self) -> str:
        return self.kernel or ''


@dataclasses.dataclass(frozen=True)
class Copy(Work):
    """A copy that a device made."""
    kind: Union[str, int, None] = _column(None, 'its direction: HtoD, DtoH, DtoD, PtoP...')
    bytes: int = _column(0, 'its size', 'bytes')
    bandwidth: Optional[int] = _column(None, 'size by time', 'bytes/s')
    src: Optional[str] = _column(None, 'the kind of memory it reads')
    dst: Optional[str] = _column(None, 'the kind of memory it writes')

    @property
    def title(self) -> str:
        return str(self.kind)


@dataclasses.dataclass(frozen=True)
class Set(Work):
    """Memory that a device set to a value."""
    value: Optional[int] = _column(None, 'the value')
    bytes: int = _column(0, 'its size', 'bytes')
    bandwidth: Optional[int] = _column(None, 'size by time', 'bytes/s')
    memory: Union[str, int, None] = _column(None, 'the kind of memory')

    @property
    def title(self) -> str:
        return str(self.memory)


@dataclasses.dataclass(frozen=True)
class Range(Event):
    """A range or a mark of NVTX."""
    dur_ns: int = _column(0, 'from begin to end; of a mark 0', 'ns')
    text: str = _column('', 'what the program calls it')
    domain: Optional[str] = _column(None, 'the domain of NVTX')
    kind: Union[str, int, None] = _column(None, 'push_pop, start_end or mark')

    @property
    def title(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Process(Event):
    """A process, before its first call."""
    host_pid: Optional[int] = _column(None, 'its number on the machine')
    ppid: Optional[int] = _column(None, 'its parent')
    uid: Optional[int] = _column(None, 'its user')
    gid: Optional[int] = _column(None, 'its group')


@dataclasses.dataclass(frozen=True)
class Device(Event):
    """A GPU, as the process pid numbers it; without pid, as the machine does."""
    device: int = _column(0, 'its number')
    name: str = _column('', 'its name')
    uuid: str = _column('', 'its UUID')
    memory_bytes: Optional[int] = _column(None, 'its memory', 'bytes')
    bandwidth: Optional[int] = _column(None, 'of its memory', 'bytes/s')
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
        return '<Table of %d %s>' % (len(self), self.kind.__name__)

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
        if name not in self.types:
            raise KeyError('%s has no column %s, but %s' % (self.kind.__name__, name, ', '.join(self.types)))
        return [getattr(row, name) for row in self._rows]

    def columns(self) -> Dict[str, List[Any]]:
        """The values of each column, by its name."""
        return {name: self.column(name) for name in self.types}

    def _repr_html_(self) -> str:
        """For Jupyter: the first rows, with the units."""
        heads = ''.join('<th title="%s">%s%s</th>' % (html.escape(column.about), name, ' [%s]' % column.unit if column.unit else '')
                        for name, column in self.types.items())
        rows = ''.join('<tr>%s</tr>' % ''.join('<td>%s</td>' % _cell(getattr(row, name)) for name in self.types)
                       for row in self._rows[:HTML_ROWS])
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
