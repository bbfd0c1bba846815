#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""readers.py - recordings with hostile names and numbers (tests/unit/test_hostile.c), exported, and opened by DuckDB, pandas and pyarrow, as
people do: readers.py [SEEDS]. Each reads all rows, and the same cells as Python's own readers. Prints `ok` and `not ok` lines."""
import csv
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

import duckdb
import pandas
import pyarrow.ipc
import pyarrow.parquet

PROGRAM = os.environ.get("CUDATRACE", "./cudatrace")
MAKER = ".output/unit/test_hostile"
csv.field_size_limit(1 << 24)


def same(what, want, got):
    """Compares rows cell by cell."""
    assert len(want) == len(got), f"{what}: {len(got)} rows of {len(want)}"
    for number, (a, b) in enumerate(zip(want, got)):
        for one, other in zip(a, b):
            assert one == (other or ""), f"{what}: row {number}: {other!r:.100} for {one!r:.100}"


def read_json(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    rows = [json.loads(line) for line in text.split("\n") if line]
    assert len(text.splitlines()) == len(rows), "something in a text ends a line"
    assert len(pandas.read_json(path, lines=True)) == len(rows), "pandas reads other rows"
    (found,), = duckdb.sql(f"select count(*) from read_json('{path}', format='newline_delimited', maximum_object_size=100000000)").fetchall()
    assert found == len(rows), f"DuckDB reads {found} rows of {len(rows)}"


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as f:
        _, *rows = csv.reader(f, strict=True)
    read = pandas.read_csv(path, dtype=str, keep_default_na=False, low_memory=False)
    same("pandas", rows, list(read.itertuples(index=False)))
    same("DuckDB", rows, duckdb.sql(f"select * from read_csv('{path}', all_varchar=true, header=true)").fetchall())


def read_arrow(path):
    table = pyarrow.ipc.open_stream(path).read_all()
    table.validate(full=True)
    assert len(table.to_pandas()) == len(duckdb.from_arrow(table).fetchall()) == table.num_rows, "not the same rows"


def read_parquet(path):
    for name in glob.glob(f"{path}/*.parquet"):
        table = pyarrow.parquet.read_table(name)
        table.validate(full=True)
        assert len(table.to_pandas()) == len(duckdb.sql(f"select * from '{name}'").fetchall()) == table.num_rows, f"not the same rows of {name}"


def read_sqlite(path):
    db = sqlite3.connect(path)
    names = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
    for name in names:
        pandas.read_sql(f'select * from "{name}"', db)
    (texts,), = db.execute("select count(*) from StringIds").fetchall()
    assert texts, "no texts"


FORMATS = {"json": read_json, "csv": read_csv, "arrow": read_arrow, "parquet": read_parquet, "nsys-sqlite": read_sqlite}


def main():
    seeds, failed = int(sys.argv[1]) if len(sys.argv) > 1 else 5, False
    for name, read in FORMATS.items():
        try:
            for seed in range(seeds):
                with tempfile.TemporaryDirectory() as folder:
                    subprocess.run([MAKER, "write", str(seed), f"{folder}/r"], check=True)
                    subprocess.run([PROGRAM, "export", "--to", name, "-o", f"{folder}/out", f"{folder}/r"], check=True, capture_output=True)
                    read(f"{folder}/out")
            print(f"ok readers-{name}")
        except Exception as e:  # pylint: disable=broad-except
            print(f"not ok readers-{name}: seed {seed}: {type(e).__name__}: {str(e)[:300]}")
            failed = True
    sys.exit(failed)


main()
