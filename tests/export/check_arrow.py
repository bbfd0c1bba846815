#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_arrow.py FILE.arrows FILE.csv - reads an Arrow stream by the format's own text, with the bounds of each part, and compares each
cell with the column of the same name of the csv file. pyarrow, polars and duckdb read it as well where they are installed. Prints the
number of rows."""
import csv
import json
import struct
import sys

from unpack import unpack

# Of calls these are arguments, which csv has among others in `details`.
ARGUMENTS = ('grid_x', 'grid_y', 'grid_z', 'block_x', 'block_y', 'block_z', 'dynamic_shared_bytes')


class Flat:
    """A table of a FlatBuffer."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from('<i', data, at)[0]

    def where(self, slot):
        size = struct.unpack_from('<H', self.data, self.vtable)[0]
        off = struct.unpack_from('<H', self.data, self.vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return self.at + off if off else None

    def num(self, slot, form):
        at = self.where(slot)
        if at is None:
            return 0
        assert at % struct.calcsize(form) == 0, 'a number is not aligned'
        return struct.unpack_from('<' + form, self.data, at)[0]

    def ref(self, slot):
        at = self.where(slot)
        return at + struct.unpack_from('<I', self.data, at)[0]

    def table(self, slot):
        return Flat(self.data, self.ref(slot))

    def text(self, slot):
        at = self.ref(slot)
        size = struct.unpack_from('<I', self.data, at)[0]
        assert self.data[at + 4 + size] == 0, 'a text has no end'
        return self.data[at + 4:at + 4 + size].decode()

    def tables(self, slot):
        at = self.ref(slot)
        for i in range(struct.unpack_from('<I', self.data, at)[0]):
            one = at + 4 + 4 * i
            yield Flat(self.data, one + struct.unpack_from('<I', self.data, one)[0])

    def pairs(self, slot):
        at = self.ref(slot)
        assert (at + 4) % 8 == 0, 'structs are not aligned'
        return [struct.unpack_from('<qq', self.data, at + 4 + 16 * i) for i in range(struct.unpack_from('<I', self.data, at)[0])]


def signed_if_amount(name, signed):
    """Readers take differences of times and sizes, which unsigned numbers cannot hold."""
    assert signed or not name.endswith(('_ns', '_bytes')) and name not in ('arg_size', 'grid_x', 'block_z', 'm', 'flop'), name + ' is unsigned'
    assert not signed or name not in ('arg_dst', 'arg_stream', 'arg_flags', 'pid', 'stream', 'correlation', 'stack_id'), name + ' is signed'


def numbers(kind, part):
    return struct.unpack('<%d%s' % (len(part) // struct.calcsize(kind), kind), part)


def texts(rows, parts):
    ends = numbers('i', parts.pop(0))
    text = parts.pop(0)
    assert len(ends) == rows + 1 and ends[0] == 0 and ends[-1] == len(text)
    return [text[ends[i]:ends[i + 1]].decode() for i in range(rows)]


def column(kind, rows, nulls, parts, words):
    """The cells of a column. parts: what is left of the batch's buffers; words: the texts that its numbers mean."""
    valid = parts.pop(0)
    there = [valid[i // 8] >> i % 8 & 1 for i in range(rows)] if valid else [1] * rows
    assert there.count(0) == nulls, 'the number of empty cells is wrong'
    values = texts(rows, parts) if kind == 's' and words is None else numbers(kind if words is None else 'i', parts.pop(0))
    assert len(values) == rows
    if words is not None:
        assert len(set(words)) == len(words), 'a text is there twice'
        values = [words[v] if ok else None for v, ok in zip(values, there)]
    return [v if ok else None for v, ok in zip(values, there)]


def buffers(batch, data, at, body):
    assert batch.table(3).num(0, 'b') == 1, 'the codec is not zstd'
    parts = []
    for off, n in batch.pairs(2):
        assert off % 8 == 0 and 0 <= n <= body - off
        full = struct.unpack_from('<q', data, at + off)[0] if n else 0
        parts.append(unpack(data[at + off + 8:at + off + n], full) if n else b'')
    return parts


def read(data):
    """The columns of the stream by name."""
    at, fields, cells, words = 0, [], {}, {}
    while True:
        mark, size = struct.unpack_from('<II', data, at)
        assert mark == 0xffffffff and size % 8 == 0 and at % 8 == 0
        at += 8
        if not size:
            assert at == len(data), 'there is something after the end'
            return cells
        meta = data[at:at + size]
        at += size
        message = Flat(meta, struct.unpack_from('<I', meta, 0)[0])
        assert message.num(0, 'h') == 4, 'the version is not 5'
        head, body = message.table(2), message.num(3, 'q')
        if message.num(1, 'B') == 1:
            for f in head.tables(1):
                kind = {5: 's', 3: 'd', 2: 'I'}[f.num(2, 'B')]
                if kind == 'I' and f.table(3).num(0, 'i') == 64:
                    kind = 'qQ'[not f.table(3).num(1, 'B')]
                signed_if_amount(f.text(0), kind == 'q')
                fields.append((f.text(0), kind, f.table(4).num(0, 'q') if f.where(4) else None))
                cells[f.text(0)] = []
            assert [(m.text(0), m.text(1)) for m in head.tables(2)] == [('cudatrace.schema', '3')]
            continue
        batch = head.table(1) if message.num(1, 'B') == 2 else head
        parts = buffers(batch, data, at, body)
        rows = batch.num(0, 'q')
        if message.num(1, 'B') == 2:
            assert batch.pairs(1) == [(rows, 0)] and not parts.pop(0)
            words[head.num(0, 'q')] = texts(rows, parts)
        else:
            for (name, kind, number), (some, nulls) in zip(fields, batch.pairs(1)):
                assert some == rows
                cells[name] += column(kind, rows, nulls, parts, None if number is None else words[number])
        assert not parts
        at += body


def others_read_the_same(path, got):
    """The same by each library that is installed."""
    try:
        import pyarrow.ipc  # pylint: disable=import-outside-toplevel
    except ImportError:
        return
    table = pyarrow.ipc.open_stream(path).read_all()
    table.validate(full=True)
    assert table.to_pydict() == got, 'pyarrow reads something else'
    try:
        import polars  # pylint: disable=import-outside-toplevel
    except ImportError:
        pass
    else:
        assert polars.read_ipc_stream(path).to_dict(as_series=False) == got, 'polars reads something else'
    try:
        import duckdb  # pylint: disable=import-outside-toplevel
    except ImportError:
        pass
    else:
        assert duckdb.sql('select count(*), sum(duration_ns) from "table"').fetchall() == \
            [(len(got['type']), sum(v or 0 for v in got['duration_ns']))], 'duckdb reads something else'


def main():
    with open(sys.argv[1], 'rb') as file:
        got = read(file.read())
    with open(sys.argv[2], newline='', encoding='utf-8') as file:
        want = list(csv.DictReader(file))
    told = {}
    for row in want:    # csv has a stack's text once
        assert bool(row['stack']) == (row['stack_id'] not in told and row['stack_id'] != ''), 'stack %s: not once' % row['stack_id']
        row['stack'] = told.setdefault(row['stack_id'], row['stack'])
    shared = [name for name in got if name in want[0]]
    assert [name for name in want[0] if name not in got] == ['details']
    assert 'args' in got and 'time_unix_ns' in got
    for name in shared:
        assert len(got[name]) == len(want), (name, len(got[name]), len(want))
        for i, (cell, row) in enumerate(zip(got[name], want)):
            text = row[name][1:] if row[name][:1] == "'" and row[name][1:2] in tuple('=+-@\t\r') else row[name]
            if name == 'unit' and row['type'] == 'lost':
                text = 'records'
            if name in ARGUMENTS and row['type'] == 'call':
                continue
            if name in ('scope', 'scope_name') and row['scope'] == '?':
                text = '' if name == 'scope' else '?'
            equal = cell is None and text == '' or cell is not None and text != '' and \
                (float(text) == cell if isinstance(cell, float) else text == str(cell))
            assert equal, 'row %d, %s: %r in Arrow, %r in csv' % (i, name, cell, row[name])
    assert len({(unix - start) % 2**64 for unix, start in zip(got['time_unix_ns'], got['start_ns'])}) == 1
    for text in got['args']:
        assert text is None or isinstance(json.loads(text), dict)
    others_read_the_same(sys.argv[1], got)
    print(len(want))


if __name__ == '__main__':
    main()
