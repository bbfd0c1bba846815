#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_arrow.py FILE.arrows FILE.csv - reads an Arrow stream by the format's own text, with the bounds of each part, and compares each
cell with the column of the same name of the csv file. pyarrow reads it as well where it is installed. Prints the number of rows."""
import csv
import json
import struct
import sys


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


def column(kind, rows, nulls, parts):
    """The cells of a column. parts: what is left of the batch's buffers."""
    valid = parts.pop(0)
    there = [valid[i // 8] >> i % 8 & 1 for i in range(rows)]
    assert there.count(0) == nulls, 'the number of empty cells is wrong'
    if kind == 's':
        ends, text = struct.unpack('<%di' % (rows + 1), parts.pop(0)), parts.pop(0)
        assert ends[0] == 0 and ends[-1] == len(text)
        values = [text[ends[i]:ends[i + 1]].decode() for i in range(rows)]
    else:
        values = struct.unpack('<%d%s' % (rows, kind), parts.pop(0))
    return [v if ok else None for v, ok in zip(values, there)]


def read(data):
    """The columns of the stream by name."""
    at, fields, cells = 0, [], {}
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
                kind = {5: 's', 3: 'd', 2: 'qQ'[not f.table(3).num(1, 'B')]}[f.num(2, 'B')]
                fields.append((f.text(0), kind))
                cells[f.text(0)] = []
            assert [(m.text(0), m.text(1)) for m in head.tables(2)] == [('cudatrace.schema', '1')]
            continue
        buffers = head.pairs(2)
        assert all(off % 8 == 0 and 0 <= n <= body - off for off, n in buffers)
        parts = [data[at + off:at + off + n] for off, n in buffers]
        for (name, kind), (rows, nulls) in zip(fields, head.pairs(1)):
            assert rows == head.num(0, 'q')
            cells[name] += column(kind, rows, nulls, parts)
        assert not parts
        at += body


def main():
    with open(sys.argv[1], 'rb') as file:
        got = read(file.read())
    with open(sys.argv[2], newline='', encoding='utf-8') as file:
        want = list(csv.DictReader(file))
    shared = [name for name in got if name in want[0]]
    assert sorted(set(got) - set(shared)) == ['args', 'time_unix_ns'], sorted(set(got) - set(shared))
    for name in shared:
        assert len(got[name]) == len(want), (name, len(got[name]), len(want))
        for i, (cell, row) in enumerate(zip(got[name], want)):
            text = row[name][1:] if row[name][:1] == "'" and row[name][1:2] in tuple('=+-@\t\r') else row[name]
            if name == 'unit' and row['type'] == 'lost':
                text = 'records'
            equal = cell is None and text == '' or cell is not None and text != '' and \
                (float(text) == cell if isinstance(cell, float) else text == str(cell))
            assert equal, 'row %d, %s: %r in Arrow, %r in csv' % (i, name, cell, row[name])
    assert len({(unix - start) % 2**64 for unix, start in zip(got['time_unix_ns'], got['start_ns'])}) == 1
    for text in got['args']:
        assert text is None or isinstance(json.loads(text), dict)
    try:
        import pyarrow.ipc  # pylint: disable=import-outside-toplevel
    except ImportError:
        pass
    else:
        table = pyarrow.ipc.open_stream(sys.argv[1]).read_all()
        table.validate(full=True)
        assert table.to_pydict() == got, 'pyarrow reads something else'
    print(len(want))


main()
