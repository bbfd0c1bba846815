# SPDX-License-Identifier: BSD-2-Clause
"""columns.py - a recording as columns, for data frames and databases: the rows of `cudatrace export --to arrow`, a table for each kind.

All tables have the columns that docs/exports.md describes. No row becomes a Python object, so this is the way for large recordings. It
needs pyarrow.
"""
import contextlib
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Union

from . import program

Path = Union[str, 'os.PathLike[str]']

#: The tables, and the types of their rows. Rows of any other type are in the table "others".
TABLES = {'calls': ('call',), 'kernels': ('kernel',), 'copies': ('copy',), 'sets': ('set',), 'ranges': ('range', 'mark', 'marker'),
          'collectives': ('collective',), 'operators': ('operator',), 'processes': ('process', 'exit'), 'others': ()}

GROUP_ROWS = 1 << 17    # of a row group in Parquet


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow.compute  # pylint: disable=import-outside-toplevel
        import pyarrow.ipc  # pylint: disable=import-outside-toplevel
        import pyarrow.parquet  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ImportError('%s needs pyarrow, which is not installed' % what) from error
    return pyarrow


@contextlib.contextmanager
def _stream(pyarrow: Any, path: Path) -> Iterator[Any]:
    """The rows of a recording, as a reader of batches. Raises CudatraceError, with the program's message, if it cannot be read."""
    with tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as said:
        # a path that begins with - is no option
        command = [program.find_program(), 'export', '--to', 'arrow', '-o', '-', os.path.abspath(os.fspath(path))]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said) as child:
            try:
                with pyarrow.ipc.open_stream(child.stdout) as reader:
                    yield reader
            except pyarrow.ArrowInvalid:
                # perhaps the program has failed, and says why; the pipe must not keep it
                assert child.stdout is not None
                child.stdout.close()
                if not child.wait():
                    raise
            except BaseException:
                child.kill()
                raise
        said.seek(0)
        if child.returncode:
            raise program.CudatraceError(program.message(said.read()))


def _split(pyarrow: Any, batch: Any) -> Iterator[Any]:
    """(name, rows) of each table that has rows in the batch."""
    compute = pyarrow.compute
    rest = None
    for name, types in TABLES.items():
        if types:
            mine = compute.is_in(batch.column('type'), pyarrow.array(types))
            rest = mine if rest is None else compute.or_(rest, mine)
        else:
            mine = compute.invert(rest)
        rows = batch.filter(mine)
        if rows.num_rows:
            yield name, rows


def read_columns(path: Path) -> Dict[str, Any]:
    """Reads a recording into a pyarrow.Table for each name of TABLES; one without rows is empty. Raises ImportError, which says so, if
    pyarrow is not installed."""
    pyarrow = _pyarrow('read_columns()')
    batches: Dict[str, List[Any]] = {name: [] for name in TABLES}
    with _stream(pyarrow, path) as reader:
        schema = reader.schema
        for batch in reader:
            for name, rows in _split(pyarrow, batch):
                batches[name].append(rows)
    return {name: pyarrow.Table.from_batches(some, schema) for name, some in batches.items()}


class _Folder:
    """Parquet files, one a table, whose rows come in batches."""

    def __init__(self, pyarrow: Any, folder: str, schema: Any) -> None:
        self._pyarrow = pyarrow
        self._schema = schema
        self._waiting: Dict[str, List[Any]] = {name: [] for name in TABLES}
        self._files = {name: pyarrow.parquet.ParquetWriter(os.path.join(folder, name + '.parquet'), schema, compression='zstd')
                       for name in TABLES}

    def add(self, name: str, rows: Any) -> None:
        waiting = self._waiting[name]
        waiting.append(rows)
        if sum(some.num_rows for some in waiting) >= GROUP_ROWS:
            self._write(name)

    def _write(self, name: str) -> None:
        waiting, self._waiting[name] = self._waiting[name], []
        self._files[name].write_table(self._pyarrow.Table.from_batches(waiting, self._schema))

    def close(self) -> None:
        for name, file in self._files.items():
            if self._waiting[name]:
                self._write(name)
            file.close()


def to_parquet(path: Path, folder: Path) -> None:
    """Writes a recording as Parquet: a new folder with a file for each name of TABLES, compressed by zstd. Memory does not grow with the
    recording. The folder appears when it is complete. Raises FileExistsError if it is there, and ImportError, which says so, if pyarrow
    is not installed."""
    pyarrow = _pyarrow('to_parquet()')
    target = os.path.abspath(os.fspath(folder))
    if os.path.lexists(target):
        raise FileExistsError('%s is there already' % target)
    part = tempfile.mkdtemp(prefix='.' + os.path.basename(target) + '.', dir=os.path.dirname(target))
    try:
        with _stream(pyarrow, path) as reader:
            files = _Folder(pyarrow, part, reader.schema)
            for batch in reader:
                for name, rows in _split(pyarrow, batch):
                    files.add(name, rows)
            files.close()
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o777 & ~mask)    # mkdtemp() keeps others out
        os.rename(part, target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
