#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_parquet.py FOLDER FILE.arrows - reads each Parquet file of the folder by the format's own text and compares each cell with the row
of the Arrow stream (by check_arrow.py's reader). pyarrow, polars, duckdb and pandas read them as well where they are installed. Prints the
number of rows of each file."""
import os
import struct
import sys

from check_arrow import read as read_arrow, signed_if_amount
from unpack import unpack

FORMS = {1: 'i', 2: 'q', 5: 'd', 6: 's'}
TABLES = {'calls': ('call',), 'kernels': ('kernel',), 'copies': ('copy',), 'sets': ('set',), 'ranges': ('range', 'mark', 'marker'),
          'collectives': ('collective',), 'operators': ('operator',), 'processes': ('process', 'exec', 'fork', 'exit')}


class Compact:
    """Values in Thrift's compact protocol."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        v = shift = 0
        while True:
            b = self.byte()
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def value(self, kind):
        if kind in (5, 6):
            v = self.varint()
            return v >> 1 ^ -(v & 1)
        if kind == 8:
            n = self.varint()
            self.at += n
            assert self.at <= len(self.data)
            return bytes(self.data[self.at - n:self.at])
        if kind == 9:
            head = self.byte()
            n = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15) for _ in range(n)]
        assert kind == 12, kind
        return self.struct()

    def struct(self):
        fields, last = {}, 0
        while True:
            head = self.byte()
            if not head:
                return fields
            last += head >> 4
            fields[last] = self.value(head & 15)


def hybrid(data, width, n):
    """n numbers of so many bits: runs of equal ones, or groups of eight."""
    c, out = Compact(data), []
    while len(out) < n:
        head = c.varint()
        if head & 1:
            size = (head >> 1) * width
            bits = int.from_bytes(data[c.at:c.at + size], 'little')
            assert c.at + size <= len(data)
            out += [bits >> i * width & (1 << width) - 1 for i in range(8 * (head >> 1))]
            c.at += size
        else:
            value = int.from_bytes(data[c.at:c.at + (width + 7) // 8], 'little')
            c.at += (width + 7) // 8
            out += [value] * (head >> 1)
    assert c.at == len(data), 'something is left'
    return out[:n]


def plain(form, data, n):
    if form != 's':
        return list(struct.unpack('<%d%s' % (n, form), data))
    out, at = [], 0
    for _ in range(n):
        size = struct.unpack_from('<I', data, at)[0]
        out.append(data[at + 4:at + 4 + size].decode())
        at += 4 + size
    assert at == len(data)
    return out


def page(data, at):
    c = Compact(data, at)
    head = c.struct()
    return head, unpack(data[c.at:c.at + head[3]], head[2]), c.at + head[3]


def column(data, about, form, unsigned):
    """The cells of a column of a group of rows, against what is said of them."""
    words, at = None, about.get(11, about[9])
    assert about[4] == 6, 'the codec is not zstd'
    if 11 in about:
        head, body, at = page(data, at)
        assert head[1] == 2 and at == about[9]
        words = plain(form, body, head[7][1])
    head, body, at = page(data, at)
    assert head[1] == 0 and at - about.get(11, about[9]) == about[7]
    n = head[5][1]
    size = struct.unpack_from('<I', body, 0)[0]
    there = hybrid(body[4:4 + size], 1, n)
    rest, have = body[4 + size:], sum(there)
    if words is not None:
        assert head[5][2] == 8
        values = [words[i] for i in hybrid(rest[1:], rest[0], have)]
    else:
        values = plain(form.upper() if unsigned else form, rest, have)
    assert about[5] == n and about[12][3] == n - have
    for slot, function in ((5, max), (6, min)):
        if slot in about[12]:
            bound = about[12][slot].decode() if form == 's' else plain(form.upper() if unsigned else form, about[12][slot], 1)[0]
            best = function(v.encode() for v in values).decode() if form == 's' else function(values)
            assert bound == best, (about[3], bound, best)
        else:
            assert not have or form == 'd' or about[3] == [b'args'] or max(map(len, values)) > 64, about[3]
    values = iter(values)
    return [next(values) if ok else None for ok in there]


def read(path):
    """The columns of a file by name."""
    with open(path, 'rb') as file:
        data = file.read()
    assert data[:4] == data[-4:] == b'PAR1'
    size = struct.unpack_from('<I', data, len(data) - 8)[0]
    foot = Compact(data[:len(data) - 8], len(data) - 8 - size)
    said = foot.struct()
    assert foot.at == len(foot.data)
    assert {k[1]: k[2] for k in said[5]} == {b'cudatrace.schema': b'3'}
    fields = said[2][1:]
    assert said[2][0][5] == len(fields) == len(said[7])
    cells = {f[4].decode(): [] for f in fields}
    for f in fields:
        signed_if_amount(f[4].decode(), f[1] == 2 and 6 not in f)
    for group in said[4]:
        for f, chunk in zip(fields, group[1]):
            got = column(data, chunk[3], FORMS[f[1]], f.get(6) in (13, 14))
            assert len(got) == group[3] and chunk[3][3] == [f[4]]
            cells[f[4].decode()] += got
    assert all(len(some) == said[3] for some in cells.values())
    return cells


def by_duckdb(duckdb, path):
    names = [row[0] for row in duckdb.sql("describe select * from '%s'" % path).fetchall()]
    rows = duckdb.sql("select * from '%s'" % path).fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def others_read_the_same(path, got):
    """The same by each library that is installed."""
    readers = {'pyarrow.parquet': lambda m: m.read_table(path).to_pydict(), 'polars': lambda m: m.read_parquet(path).to_dict(as_series=False),
               'duckdb': lambda m: by_duckdb(m, path)}
    for name, function in readers.items():
        try:
            module = __import__(name, fromlist=['x'])
        except ImportError:
            continue
        assert function(module) == got, '%s reads something else' % name
    try:
        import pandas  # pylint: disable=import-outside-toplevel
        import pyarrow  # noqa: F401  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return
    assert len(pandas.read_parquet(path)) == got_rows(got)


def got_rows(got):
    return len(next(iter(got.values())))


def without_info(got):
    """The rows that Arrow has too. What a process is comes once, in a row of its own, and again at its end."""
    infos = [i for i, word in enumerate(got['type']) if word == 'info']
    ends = {got['process_id'][i]: got['executable'][i] for i, word in enumerate(got['type']) if word == 'exit'}
    assert len({got['process_id'][i] for i in infos}) == len(infos), 'a process is told twice'
    assert all(got['executable'][i] and got['command_line'][i] and ends.get(got['process_id'][i], got['executable'][i]) == got['executable'][i]
               for i in infos), 'a process without its executable'
    return {title: [cell for i, cell in enumerate(cells) if i not in infos] for title, cells in got.items()}


def main():
    with open(sys.argv[2], 'rb') as file:
        arrow = read_arrow(file.read())
    known = {word for words in TABLES.values() for word in words}
    counts = []
    for name in sorted(os.listdir(sys.argv[1])):
        table, path = name.removesuffix('.parquet'), os.path.join(sys.argv[1], name)
        got = read(path)
        others_read_the_same(path, got)
        counts.append('%s=%d' % (table, got_rows(got)))
        if table in ('devices', 'stacks', 'host'):
            continue
        if table == 'processes':
            got = without_info(got)
        rows = [i for i, word in enumerate(arrow['type']) if (word in TABLES[table] if table in TABLES else word not in known)]
        for title, cells in got.items():
            assert cells == [arrow[title][i] for i in rows], (table, title)
        for title in set(arrow) - set(got) - {'stack'}:
            assert not any(arrow[title][i] is not None for i in rows), 'table %s has no %s' % (table, title)
    print(*counts)


if __name__ == '__main__':
    main()
