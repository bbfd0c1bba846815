# SPDX-License-Identifier: BSD-2-Clause
"""rows.py - what a recording contains, as typed records and as tables of them.

The members are those of `cudatrace schema`. One that is None is not known. `raw` is the whole line, also with members that have no
field here.
"""
import dataclasses
import fnmatch
import json
from typing import Any, Dict, Generic, Iterable, List, Optional, Sequence, Tuple, Type, TypeVar, Union, overload

Row = TypeVar('Row', bound='Event')


@dataclasses.dataclass(frozen=True)
class Event:
    """What all records have: when (nanoseconds of CLOCK_MONOTONIC), and of which thread."""
    ts_ns: int
    pid: Optional[int] = None
    tid: Optional[int] = None
    comm: Optional[str] = None
    rank: Optional[int] = None
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
    """A call of a function of CUDA. dur_ns: from entry to return, in nanoseconds; None if it did not return."""
    dur_ns: Optional[int] = None
    domain: str = ''
    api: str = ''
    args: Dict[str, Any] = dataclasses.field(default_factory=dict)
    ret: Any = None
    ret_name: Optional[str] = None
    correlation: Optional[int] = None
    kernel: Optional[str] = None
    device: Optional[int] = None
    context: Optional[int] = None
    stream: Optional[int] = None
    stack: Optional[List[Dict[str, Any]]] = None
    unfinished: bool = False

    @property
    def title(self) -> str:
        return self.api


@dataclasses.dataclass(frozen=True)
class Work(Event):
    """What a device did, in nanoseconds of the device on the clock of the calls. correlation: that of the call which caused it.
    delay_ns: from the begin of that call to the start on the device."""
    dur_ns: int = 0
    device: Optional[int] = None
    context: Optional[int] = None
    stream: Optional[int] = None
    gpu_uuid: Optional[str] = None
    correlation: Optional[int] = None
    api: Optional[str] = None
    delay_ns: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Kernel(Work):
    """A kernel that ran. Shared memory is in bytes."""
    kernel: Optional[str] = None
    grid: Optional[List[int]] = None
    block: Optional[List[int]] = None
    registers: Optional[int] = None
    static_shared: Optional[int] = None
    dynamic_shared: Optional[int] = None

    @property
    def title(self) -> str:
        return self.kernel or ''


@dataclasses.dataclass(frozen=True)
class Copy(Work):
    """A copy that a device made. bandwidth is in bytes a second."""
    kind: Union[str, int, None] = None
    bytes: int = 0
    bandwidth: Optional[int] = None
    src: Optional[str] = None
    dst: Optional[str] = None

    @property
    def title(self) -> str:
        return str(self.kind)


@dataclasses.dataclass(frozen=True)
class Set(Work):
    """Memory that a device set to a value."""
    value: Optional[int] = None
    bytes: int = 0
    bandwidth: Optional[int] = None
    memory: Union[str, int, None] = None

    @property
    def title(self) -> str:
        return str(self.memory)


@dataclasses.dataclass(frozen=True)
class Range(Event):
    """A range or a mark of NVTX. A mark has dur_ns 0."""
    dur_ns: int = 0
    text: str = ''
    domain: Optional[str] = None
    kind: Union[str, int, None] = None

    @property
    def title(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Process(Event):
    """A process, before its first call."""
    host_pid: Optional[int] = None
    ppid: Optional[int] = None
    uid: Optional[int] = None
    gid: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Device(Event):
    """A GPU, as the process pid numbers it; without pid, as the machine does. bandwidth is in bytes a second."""
    device: int = 0
    name: str = ''
    uuid: str = ''
    memory_bytes: Optional[int] = None
    bandwidth: Optional[int] = None
    multiprocessors: Optional[int] = None

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

    def columns(self) -> Dict[str, List[Any]]:
        """The values of each field, by its name."""
        return {f.name: [getattr(row, f.name) for row in self._rows] for f in dataclasses.fields(self.kind) if f.name != 'raw'}

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
        """A pyarrow.Table; args, stack and ret are JSON: read_columns() has arguments in
        columns of their own. Raises ImportError, which says so, if pyarrow is not installed."""
        try:
            import pyarrow  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError('to_arrow() needs pyarrow, which is not installed') from error
        types = {int: pyarrow.int64(), str: pyarrow.string(), bool: pyarrow.bool_(), list: pyarrow.list_(pyarrow.int64())}
        arrays, names = [], []
        for name, values in self.columns().items():
            kind = _column_type(self.kind, name)
            if kind is None:
                values = [None if value is None else json.dumps(value) for value in values]
            arrays.append(pyarrow.array(values, types[kind or str]))
            names.append(name)
        return pyarrow.table(arrays, names=names)


def _column_type(kind: Type[Event], name: str) -> Optional[type]:
    """int, str, bool or list (of int); None: anything, which becomes JSON."""
    hint = {f.name: f.type for f in dataclasses.fields(kind)}[name]
    known: Dict[Any, type] = {int: int, str: str, bool: bool, Optional[int]: int, Optional[str]: str, Optional[List[int]]: list}
    return known.get(hint)
