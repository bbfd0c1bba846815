# SPDX-License-Identifier: BSD-2-Clause
"""columns.py - a recording as columns, for data frames and databases: the tables of `cudatrace export --to parquet`.

docs/exports.md describes the columns: arguments of calls have columns of their own, times are nanoseconds, sizes are bytes. No row
becomes a Python object, so this is the way for large recordings.
"""
import os
import tempfile
from typing import Any, Dict, Union

from . import program

Path = Union[str, 'os.PathLike[str]']

#: The tables. Records of any other type, such as losses and samples of counters, are in "others".
TABLES = ('calls', 'kernels', 'copies', 'sets', 'ranges', 'collectives', 'operators', 'processes', 'devices', 'stacks', 'host', 'others')


def read_columns(path: Path) -> Dict[str, Any]:
    """Reads a recording into a pyarrow.Table for each name of TABLES; one without rows is empty. pandas and polars take them:
    table.to_pandas(), polars.from_arrow(table). Raises ImportError, which says so, if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ImportError('read_columns() needs pyarrow, which is not installed') from error
    with tempfile.TemporaryDirectory() as folder:
        tables = os.path.join(folder, 'tables')
        to_parquet(path, tables)
        return {name: pyarrow.parquet.read_table(os.path.join(tables, name + '.parquet'), memory_map=False) for name in TABLES}


def to_parquet(path: Path, folder: Path) -> None:
    """Writes a recording as Parquet: a new folder with a file for each name of TABLES, compressed by zstd. Needs no other package.
    Memory does not grow with the recording. The folder appears when it is complete. Raises FileExistsError if it is there, FileNotFoundError if
    the recording is not."""
    target = os.path.abspath(os.fspath(folder))
    if os.path.lexists(target):
        raise FileExistsError('%s is there already' % target)
    program.run('export', '--to', 'parquet', '-o', target, program.existing(path))
