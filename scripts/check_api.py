#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
check_api.py - compares the tables of user/api with CUDA's headers, and fails when they disagree.

Every function that the headers declare must have a row, every row of that version a declaration: the same number of
arguments, their names in the same order, what is passed in a register, in memory or as a float, the width and sign of
each value and of what each pointer leads to, outputs that are not const. Every struct layout: its size and each
member's offset and width. Every enum, flag and error name: its value, and that none is missing.

  scripts/check_api.py                                      the installed headers, /usr/local/cuda/include, 13.0
  scripts/check_api.py --include DIR --version 11080        those of another version; rows for other versions are skipped

The names of arguments are those of 13.0, and of the newest version where 13.0 lacks the function. Structs of a later
version may be longer than the layout: members that were added behind those of 13.0 are not shown.

Exit status: 0 all agree, 1 they do not, 77 no headers or no clang to read them with.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from gen_api import is_value  # noqa: E402
from gen_api_headers import INTS, Headers, Type, base_name  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
DIR_IN = 0
NAMES = 13000  # names of arguments are those of this version
NEWEST = 13050  # the newest version that has rows
ABI_WORD, ABI_PAIR, ABI_MEMORY, ABI_FLOAT = range(4)
RET = {'cudaError_t': 0, 'CUresult': 0, 'const char *': 1, 'struct cudaChannelFormatDesc': 4}


class Checker:
    def __init__(self, include, version):
        self.errors = []
        self.version = version
        self.include = include
        self.h = Headers(include)
        self.funcs, self.structs, self.xlats = {}, {}, {}
        self.rows = 0
        self.skipped = 0
        self.load()

    def error(self, text):
        self.errors.append(text)

    def load(self):
        with tempfile.TemporaryDirectory() as tmp:
            exe = os.path.join(tmp, 'dump')
            src = [os.path.join(TOP, 'scripts/check_api_dump.c')] + [
                os.path.join(TOP, 'user/api', f) for f in ('table.c', 'struct.c', 'xlat.c')
            ]
            subprocess.run([os.environ.get('CC', 'cc'), '-std=gnu11', '-O0', '-o', exe] + src, check=True)
            lines = subprocess.run([exe], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        for line in lines:
            o = json.loads(line)
            if 'func' in o:
                self.funcs.setdefault(o['func'], []).append(o)
            elif 'struct' in o:
                self.structs[o['struct']] = o
            elif 'xlat' in o:
                self.xlats[o['xlat']] = o
            else:
                self.T = o['fields']

    def in_range(self, row):
        v = self.version // 10
        return v >= row['since'] and (not row['until'] or v < row['until'])

    # ---- functions --------------------------------------------------------------------------------------

    def check_functions(self):
        declared = {}
        for f in self.h.funcs:
            b = base_name(f)
            if b == f or b not in self.h.funcs:
                declared[b] = f
        for name, f in sorted(declared.items()):
            rows = [r for r in self.funcs.get(name, []) if self.in_range(r)]
            if not rows:
                self.error('%s: declared by the headers, but has no row for this version' % name)
            elif len(rows) > 1:
                self.error('%s: %d rows for this version' % (name, len(rows)))
            else:
                self.rows += 1
                self.check_row(rows[0], *self.h.funcs[f])
        for name, rows in self.funcs.items():
            for r in rows:
                if name not in declared:
                    # Below the newest version a row may be a later one's.
                    if self.in_range(r) and r['flags'] & 4 == 0 and self.version >= NEWEST and self.has_header(name):
                        self.error('%s: has a row, but the headers do not declare it' % name)
                    self.skipped += 1

    def has_header(self, name):
        """NVIDIA's wheels lack the profiler's headers."""
        return 'Profiler' not in name or os.path.exists(os.path.join(self.include, 'cudaProfiler.h'))

    def check_row(self, r, ret, params):
        name = r['func']
        if RET.get(ret) != r['ret']:
            self.error('%s: returns %s' % (name, ret))
        if len(params) != len(r['args']):
            self.error('%s: the headers have %d arguments, the row %d' % (name, len(params), len(r['args'])))
            return
        for (pname, text), a in zip(params, r['args']):
            where = '%s(%s)' % (name, pname)
            # Names of arguments change between versions: the table has the newest. Names that differ in case only
            # are spelled in one way in all rows: see test_api's test_spelling().
            if pname.lower() != a['name'].lower() and (self.version == NAMES or r['until']):
                self.error('%s: the row calls it %s' % (where, a['name']))
            problem = self.check_arg(a, Type(text, self.h), r)
            if problem:
                self.error('%s: %s; the header has `%s`' % (where, problem, text))

    def check_arg(self, a, t, row):
        T, ty = self.T, a['type']
        if a.get('count') and a['count'] not in [x['name'] for x in row['args']]:
            return 'no argument %s' % a['count']
        if a.get('by') and a['by'] not in [x['name'] for x in row['args']]:
            return 'no argument %s' % a['by']
        if not t.ptr or t.is_func:
            return self.check_value(a, t)
        if a['dir'] == DIR_IN and not a['deref']:
            if ty not in (T['PTR'], T['FUNC']) or a['width'] != 8 or a['abi'] != ABI_WORD:
                return 'is a pointer'
            return None
        if a['abi'] != ABI_WORD:
            return 'is a pointer'
        if a['dir'] != DIR_IN and t.const and t.ptr == 1 and not t.handle:
            return 'a const pointer cannot be an output'
        if ty == T['STR']:
            want = 2 if a['dir'] != DIR_IN and a['deref'] else 1
            return None if t.name == 'char' and t.ptr == want else 'is no string'
        return self.check_pointee(a, t)

    def check_pointee(self, a, t):
        """What one level of pointer leads to."""
        T, ty = self.T, a['type']
        if t.handle or t.ptr > 1:
            real = t.real if t.ptr == 1 else ''
            want = T['STREAM'] if real.startswith('CUstream_st') else None
            if a['width'] != 8 or ty not in (T['PTR'], T['FUNC'], T['STREAM']):
                return 'leads to a pointer'
            if want and ty != want and not a.get('count'):
                return 'leads to a stream'
            return None
        if t.kind == 'record':
            return self.check_record(a, t)
        if t.kind == 'void':
            # The row knows better than the header what is behind a void pointer.
            return None if a.get('layout') == 'mem_pool_value' or a['width'] == 8 else 'leads to nothing known'
        if t.kind == 'float':
            w = 8 if t.real == 'double' else 4
            return None if ty == T['FLOAT'] and a['width'] == w else 'leads to a float'
        if t.kind == 'enum':
            return self.check_enum(a, t)
        if t.kind == 'int':
            if ty == T['BYTES']:
                return None if INTS[t.real][0] == 1 else 'leads to a number'
            return self.check_int(a, t)
        return 'cannot be told: %s' % t.real

    def check_value(self, a, t):
        T, ty = self.T, a['type']
        if a['deref'] or a['dir'] != DIR_IN:
            return 'is no pointer'
        if t.handle:
            want = T['STREAM'] if t.real.startswith('CUstream_st') else None
            if re.match(r'CU(func|kern)_st', t.real):
                want = T['FUNC']
            if a['width'] != 8 or a['abi'] != ABI_WORD or ty not in (T['PTR'], T['STREAM'], T['FUNC']):
                return 'is a handle'
            return 'is a stream or a function' if want and ty != want else None
        if t.kind == 'float':
            return None if a['abi'] == ABI_FLOAT else 'is a float'
        if t.kind == 'record':
            size = self.h.size_of(t.real)
            abi = ABI_WORD if size <= 8 else ABI_PAIR if size <= 16 else ABI_MEMORY
            if a['abi'] != abi:
                return 'is a struct of %d bytes' % size
            if abi == ABI_MEMORY and a['width'] != size:
                return 'has %d bytes' % size
            return None if t.real == 'dim3' or ty in (T['BYTES'], T['UNKNOWN']) else self.check_record(a, t)
        if a['abi'] != ABI_WORD:
            return 'fits a register'
        if t.kind == 'enum':
            return self.check_enum(a, t)
        return self.check_int(a, t)

    def check_int(self, a, t):
        T, ty = self.T, a['type']
        w, signed = INTS[t.real]
        if a['width'] != w:
            return 'has %d bytes, the row says %d' % (w, a['width'])
        if ty not in (T['INT'], T['UINT'], T['SIZE'], T['PTR'], T['ENUM'], T['FLAGS'], T['BOOL']):
            return 'is an integer'
        if ty == T['INT'] and not signed or ty in (T['UINT'], T['SIZE']) and signed and w > 1:
            return 'is %ssigned' % ('' if signed else 'un')
        return None

    def check_enum(self, a, t):
        T = self.T
        if a['type'] not in (T['ENUM'], T['FLAGS']) or a['width'] != 4:
            return 'is an enum'
        x = self.xlats[a['xlat']]
        values = dict(map(tuple, x['rows']))
        names = set(values.values())
        for n, v in self.h.enums[t.real]:
            if n not in names and (v & 0xFFFFFFFF if x['flags'] else v) not in values and is_value(n, v):
                return '%s lacks %s = %d' % (x['xlat'], n, v)
        if not names & {n for n, _ in self.h.enums[t.real]}:
            return '%s is another enum' % x['xlat']
        return None

    def check_record(self, a, t):
        T, ty = self.T, a['type']
        if t.real in ('dim3', 'uint3'):
            return None if ty == T['DIM3'] and a['width'] == 12 else 'is a dim3'
        size = self.h.size_of(t.real)
        if ty == T['BYTES']:
            return None if a['width'] == size else 'has %d bytes' % size
        if ty != T['OPEN'] or not a.get('layout'):
            return 'is a struct'
        want = self.struct_tag(a['layout'])
        # Older headers have the first version of a struct under its plain name.
        if want != t.real and (self.version >= 13000 or plain(a['layout']) != plain(t.real)):
            return '%s is another struct' % a['layout']
        if (a.get('count') or a['abi'] == ABI_MEMORY) and a['width'] != size:
            return 'has %d bytes' % size
        return None

    # ---- structs ----------------------------------------------------------------------------------------

    def struct_tag(self, name):
        for tag in (name + '_st', name + '_union', name):
            if tag in self.h.records:
                return tag
        return None

    def used_structs(self):
        """Names of the layouts that rows of this version need."""
        todo = {
            a['layout']
            for rows in self.funcs.values()
            for r in rows
            if self.in_range(r)
            for a in r['args']
            if 'layout' in a
        }
        seen = set()
        while todo:
            s = todo.pop()
            seen.add(s)
            todo |= {m['layout'] for m in self.structs[s]['members'] if 'layout' in m} - seen
        return seen

    def leaves(self, ctype, s, path, base):
        """(expression, expected value, what) for every member, those of unnamed structs by their path."""
        out = []
        for m in s['members']:
            p = path + m['name']
            inner = self.structs.get(m.get('layout'))
            out.append(('offsetof(%s, %s)' % (ctype, p), base + m['off'], p))
            width = m['width'] * (m['n'] or 1)
            if inner and inner['nested'] and not m['list']:
                out += self.leaves(ctype, inner, p + '.', base + m['off'])
            else:
                what = 'width of struct ' if inner else 'width of '
                out.append(('sizeof(((%s *)0)->%s)' % (ctype, p), width, what + p))
            if m['list']:
                out.append(
                    (
                        'offsetof(%s, num%s)' % (ctype, m['name'][0].upper() + m['name'][1:]),
                        m['count_off'],
                        'length of ' + p,
                    )
                )
        return out

    def check_structs(self):
        todo, used = [], self.used_structs()
        for s in self.structs.values():
            end = max([m['off'] + m['width'] * (m['n'] or 1) for m in s['members']])
            if s['used'] < end or s['size'] and s['used'] > s['size']:
                self.error('%s: its members end at %d' % (s['struct'], end))
            tag = None if s['nested'] else self.struct_tag(s['struct'])
            if s['nested'] or not tag:
                if not s['nested'] and self.version >= 13000 and s['struct'] in used:
                    self.error('%s: the headers have no such struct' % s['struct'])
                continue
            c = self.h.ctypes[tag]
            if s['size']:
                todo.append(('sizeof(%s)' % c, s['size'], s['struct'], 'size'))
            todo += [(e, v, s['struct'], what) for e, v, what in self.leaves(c, s, '', 0)]
        for (e, want, name, what), got in zip(todo, self.h.evaluate([t[0] for t in todo])):
            # A struct may have grown into its reserved part: an older header lacks the newer members.
            if self.version < 13000 and (got is None or what == 'size' or what.startswith('width') and got < want):
                continue
            grown = got and got > want and (what == 'size' or what.startswith('width of struct'))
            if self.version > NAMES and grown:
                continue
            if got != want:
                self.error('%s: %s is %s, not %d' % (name, what, got, want))
        return len(todo)

    # ---- names ------------------------------------------------------------------------------------------

    def check_names(self):
        known = {n: v for rows in self.h.enums.values() for n, v in rows}
        todo = []
        for x in self.xlats.values():
            rows = x['rows']
            if any(a[0] >= b[0] for a, b in zip(rows, rows[1:])):
                self.error('%s is not sorted by value' % x['xlat'])
            for v, n in rows:
                if n in known:
                    got = known[n] & 0xFFFFFFFF if x['flags'] else known[n]
                    # 12.0 gave two device attributes new values and added _V1 to the old ones' names.
                    if got != v and [got, n + '_V1'] not in rows:
                        self.error('%s: %s is %d, not %d' % (x['xlat'], n, known[n], v))
                else:
                    todo.append((x['xlat'], n, v))
        for (xid, n, v), got in zip(todo, self.h.evaluate([n for _, n, _ in todo])):
            if got is not None and got & 0xFFFFFFFF != v:
                self.error('%s: %s is %d, not %d' % (xid, n, got, v))
        self.check_complete()
        return len(self.xlats)

    def check_complete(self):
        """No value of an enum is missing in the table that names most of it."""
        for x in self.xlats.values():
            names = {n for _, n in x['rows']}
            values = {v for v, _ in x['rows']}
            tag = max(self.h.enums, key=lambda t: len(names & {n for n, _ in self.h.enums[t]}))
            if not names & {n for n, _ in self.h.enums[tag]}:
                continue
            for n, v in self.h.enums[tag]:
                if n not in names and (v & 0xFFFFFFFF if x['flags'] else v) not in values and is_value(n, v):
                    self.error('%s lacks %s = %d' % (x['xlat'], n, v))
                elif n in names and not is_value(n, v):
                    self.error('%s: %s is no value' % (x['xlat'], n))


def plain(name):
    return re.sub(r'(_v\d)?(_st|_union)?$', '', name)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--include', default='/usr/local/cuda/include', help='the directory with cuda.h')
    p.add_argument('--version', type=int, default=13000, help='its CUDA version as CUDART_VERSION has it')
    o = p.parse_args()
    if not os.path.exists(os.path.join(o.include, 'cuda.h')) or not shutil.which('clang'):
        print('check_api: skipped: %s has no cuda.h, or clang is not installed' % o.include)
        return 77
    c = Checker(o.include, o.version)
    c.check_functions()
    offsets = c.check_structs()
    names = c.check_names()
    for e in c.errors:
        print('check_api: ' + e)
    print(
        'check_api: CUDA %d: %d functions, %d offsets and widths, %d enums compared, %d rows of other versions: %s'
        % (o.version, c.rows, offsets, names, c.skipped, '%d errors' % len(c.errors) if c.errors else 'all agree')
    )
    return 1 if c.errors else 0


if __name__ == '__main__':
    sys.exit(main())
