#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
gen_api.py - reads CUDA's headers and proposes rows for user/api/*.def.

Without --all it proposes only what the committed files lack: functions without a row, enums and structs without a
table. Which pointer is an output, and which argument is the size, are guesses by name (gen_api_hints.py): read every
proposal against CUDA's manual before it goes in.

  scripts/gen_api.py --include 13000:/usr/local/cuda/include functions
  scripts/gen_api.py --all --include 13000:DIR --include 12090:DIR2 --include 11080:DIR3 xlat

More than one --include gives the union: the newest header's names win, and a function whose signature differs gets a
row for each with SINCE and UNTIL.
"""

import argparse
import os
import re
import sys

sys.dont_write_bytecode = True
import gen_api_hints as hints  # noqa: E402
from gen_api_headers import INTS, Headers, Type, base_name  # noqa: E402

API = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'user', 'api')


def snake(name):
    name = re.sub(r'_(st|enum|union)$', '', name)
    pre = ''
    if name.startswith('cuda'):
        name = name[4:]
    elif name.upper().startswith('CUDA_'):
        name, pre = name[5:], 'cu_'
    elif name.startswith(('CU', 'cu')):
        name, pre = name[2:], 'cu_'
    name = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name)
    name = re.sub(r'([A-Z]+)([A-Z][a-z])', r'\1_\2', name)
    return pre + re.sub(r'__+', '_', name.lower()).strip('_').replace('_flags_flags', '_flags')


def xlat_id(tag):
    fixed = {'cudaError': 'cuda_error', 'cudaError_enum': 'cu_result', 'cudaMemcpyKind': 'memcpy_kind'}
    return fixed.get(tag, snake(tag))


def common_prefix(names):
    p = os.path.commonprefix(names)
    if len(names) == 1:
        p = re.sub(r'[A-Z][a-z0-9]*$', '', p) if '_' not in p else p[: p.rindex('_') + 1]
    while p and not all(ok_cut(n, len(p)) for n in names):
        p = p[:-1]
    return p


def ok_cut(name, n):
    if n >= len(name):
        return False
    if '_' in name:
        return name[n - 1] == '_'
    return name[n].isupper() or name[n].isdigit() and not name[n - 1].isdigit()


# Not values of their own: ends of enums, masks over several bits.
NO_VALUE = {
    'CU_ATOMIC_OPERATION_MAX',
    'CU_COREDUMP_MAX',
    'CU_CTX_FLAGS_MASK',
    'CU_CTX_SCHED_MASK',
    'CU_DEVICE_ATTRIBUTE_MAX',
    'CU_DEV_RESOURCE_TYPE_MAX',
    'CU_EXEC_AFFINITY_TYPE_MAX',
    'CU_FUNCTION_LOADING_STATE_MAX',
    'CU_FUNC_ATTRIBUTE_MAX',
    'CU_JIT_NUM_OPTIONS',
    'CU_LAUNCH_ATTRIBUTE_MAX',
    'CU_LIBRARY_NUM_OPTIONS',
    'CU_LIMIT_MAX',
    'cudaDevAttrMax',
    'cudaFuncAttributeMax',
    'cudaGraphNodeTypeCount',
}


def is_value(name, value):
    return name not in NO_VALUE and value != 0x7FFFFFFF


class Generator:
    def __init__(self, includes):
        self.versions = sorted(includes, reverse=True)
        self.h = {v: Headers(includes[v]) for v in self.versions}
        self.new = self.h[self.versions[0]]
        self.enums, self.structs = {}, {}
        self.sizes = {}

    # ---- enums ------------------------------------------------------------------------------------------

    def want_enum(self, tag):
        self.enums.setdefault(tag, xlat_id(tag))
        return self.enums[tag]

    def enum_rows(self, tag):
        rows = {}
        for v in self.versions:
            for name, value in self.h[v].enums.get(tag, []):
                if is_value(name, value):
                    rows.setdefault(value, name)
        return sorted(rows.items())

    def flag_rows(self, pattern):
        rows = {}
        for v in self.versions:
            names = set()
            for f in os.listdir(self.h[v].include):
                if f in ('cuda.h', 'driver_types.h', 'cuda_runtime_api.h'):
                    with open(os.path.join(self.h[v].include, f), errors='replace') as fd:
                        names |= {
                            n for n in re.findall(r'^\s*#\s*define\s+(\w+)\s', fd.read(), re.M) if re.match(pattern, n)
                        }
            names = sorted(names)
            for n, value in zip(names, self.h[v].evaluate(names)):
                if value is not None:
                    rows.setdefault(value, n)
        return sorted(rows.items())

    def emit_xlat(self, have):
        out = []
        for tag, xid in sorted(self.enums.items(), key=lambda e: e[1]):
            if xid in have:
                continue
            rows = self.enum_rows(tag)
            flags = hints.FLAG_ENUMS.search(tag.replace('_enum', '')) and not hints.NOT_FLAG_ENUMS.search(tag)
            # names of errors are shown in full
            prefix = '' if xid in ('cuda_error', 'cu_result') else common_prefix([n for _, n in rows])
            out.append((xid, 'FLAGS' if flags else 'ENUM', prefix, rows))
        for xid, (prefix, pattern) in hints.FLAG_SETS.items():
            if xid not in have:
                out.append((xid, 'FLAGS', prefix, self.flag_rows(pattern)))
        for xid, kind, prefix, rows in sorted(out):
            print('\n%s(%s, "%s",' % (kind, xid, prefix))
            for value, name in rows:
                if flagsy(kind, value):
                    value &= 0xFFFFFFFF
                print('\tV(%s, %s)' % (hex(value) if flagsy(kind, value) and value > 9 else value, name))
            print(')')

    # ---- structs ----------------------------------------------------------------------------------------

    def owner(self, tag):
        return next(self.h[v] for v in self.versions if tag in self.h[v].records)

    def want_struct(self, name, tag):
        """name: as the argument's type has it; returns the layout's name."""
        lname = re.sub(r'_st$|_union$', '', tag)
        if lname in self.structs:
            return lname
        h = self.owner(tag)
        ctype = h.ctypes[tag]
        self.structs[lname] = None
        size = h.size_of(tag)
        self.sizes[lname] = size
        rows = self.members(h, ctype, lname, h.records[tag], '')
        sel = hints.SELECT.get(tag)
        off = h.evaluate(['offsetof(%s, %s)' % (ctype, sel)])[0] if sel else None
        self.structs[lname] = (size, off, rows)
        return lname

    def members(self, h, ctype, lname, records, path):
        offs = h.evaluate(['offsetof(%s, %s)' % (ctype, path + m[0]) if m[0] else '0' for m in records])
        rows = []
        for (m, text, nested), off in zip(records, offs):
            if off is None or re.match(r'(reserved|unused|pad|_|Reserved)', m):
                continue
            if nested is not None:
                if not m:
                    rows += self.members(h, ctype, lname, nested, path)
                    continue
                sub = lname + '_' + m
                keys = [x[0] for x in nested]
                base = off
                if keys == ['x', 'y', 'z']:
                    rows.append((off, 12, 'M_DIM3(%s, %d)' % (m, off)))
                    continue
                inner = [
                    (o - base, w, re.sub(r'^(\w+\(\w+, )(\d+)', lambda k: k.group(1) + str(int(k.group(2)) - base), r))
                    for o, w, r in self.members(h, ctype, sub, nested, path + m + '.')
                ]
                if not inner:
                    continue
                end = max(o + w for o, w, r in inner)
                self.structs[sub] = ('nested', None, inner)
                rows.append((off, end, 'M_STRUCT(%s, %d, %s, %d)' % (m, off, sub, end)))
                continue
            r = self.member(h, m, off, Type(text, h), lname, ctype, path)
            if r:
                rows.append((off, r[0], r[1]))
        return rows

    def member(self, h, m, off, t, lname, ctype, path):
        if t.handle and not t.ptr and not t.is_func and t.real.startswith('CUstream_st'):
            return 8, 'M_STREAM(%s, %d)' % (m, off)
        if t.handle and not t.ptr and re.match(r'CU(func|kern)_st', t.real):
            return 8, 'M_FUNC(%s, %d)' % (m, off)
        if t.ptr or t.handle:
            if m == 'func':
                return 8, 'M_FUNC(%s, %d)' % (m, off)
            if m == 'attrs' and 'unchConfig' in lname:
                cnt = h.evaluate(['offsetof(%s, numAttrs)' % ctype])[0]
                e = self.want_struct('', t.real if t.kind == 'record' else '')
                return 8, 'M_LIST(%s, %d, %s, %d, 3)' % (m, off, e, cnt)
            return 8 * t.dim, 'M_PTR(%s, %d%s)' % (m, off, ', ARRAY(%d)' % t.dim if t.dim > 1 else '')
        arr = ', ARRAY(%d)' % t.dim if t.dim > 1 else ''
        if t.kind == 'enum':
            x = self.want_enum(t.real)
            macro = (
                'M_FLAGS'
                if hints.FLAG_ENUMS.search(t.real.replace('_enum', '')) and not hints.NOT_FLAG_ENUMS.search(t.real)
                else 'M_ENUM'
            )
            return 4 * t.dim, '%s(%s, %d, %s%s)' % (macro, m, off, x, arr)
        if t.kind == 'record':
            if t.real == 'dim3' or t.real == 'uint3':
                return 12, 'M_DIM3(%s, %d)' % (m, off)
            if t.real == 'CUuuid_st':
                return 16, 'M_BYTES(%s, %d, 16)' % (m, off)
            sub = self.want_struct(t.name, t.real)
            return self.sizes[sub], 'M_STRUCT(%s, %d, %s, %d)' % (m, off, sub, self.sizes[sub])
        if t.kind == 'float':
            return 4 * t.dim, 'M_FLOAT(%s, %d%s)' % (m, off, arr)
        if t.kind == 'int':
            w, s = INTS[t.real]
            if w == 1 and t.dim > 1:
                return t.dim, '%s(%s, %d, %d)' % ('M_STR' if m == 'name' else 'M_BYTES', m, off, t.dim)
            if w == 4 and t.dim == 3:
                return 12, 'M_DIM3(%s, %d)' % (m, off)
            if t.name in ('CUdeviceptr', 'CUdeviceptr_v2', 'CUdeviceptr_v1'):
                return w, '%s(%s, %d)' % ('M_PTR' if w == 8 else 'M_PTR32', m, off)
            if t.name == 'size_t' and not re.match(
                r'(num|count|height|depth|Height|Depth|srcY|srcZ|dstY|dstZ|srcLOD|dstLOD|y|z|x)', m
            ):
                return 8 * t.dim, 'M_SIZE(%s, %d%s)' % (m, off, arr)
            macro = {
                (1, True): 'M_I8',
                (1, False): 'M_U8',
                (2, False): 'M_U16',
                (2, True): 'M_U16',
                (4, True): 'M_INT',
                (4, False): 'M_UINT',
                (8, True): 'M_I64',
                (8, False): 'M_U64',
            }[(w, s)]
            return w * t.dim, '%s(%s, %d%s)' % (macro, m, off, arr)
        return None

    def emit_structs(self, have):
        # A struct after those it contains.
        for name in list(self.structs):
            if name in have:
                continue
            size, sel, rows = self.structs[name]
            rows.sort(key=lambda r: r[0])
            used = max([o + w for o, w, r in rows] or [0])
            body = wrap([r for o, w, r in rows])
            if size == 'nested':
                print('\nNESTED(%s, %d, %d,\n%s)' % (name, used, used, body))
            elif sel is None:
                print('\nSTRUCT(%s, %d, %d, NONE,\n%s)' % (name, size, used, body))
            else:
                print('\nSTRUCT_BY(%s, %d, %d, NONE, %d,\n%s)' % (name, size, used, sel, body))

    # ---- functions --------------------------------------------------------------------------------------

    def klass(self, f):
        n = f if f.startswith('__') else re.sub(r'_v\d$', '', f[4:] if f.startswith('cuda') else f[2:])
        return next(c for p, c in hints.CLASSES if p.search(n))

    def flags_for(self, f, n):
        for p, x in hints.FLAGS:
            if p.match('%s.%s' % (f, n)):
                return x
        return None

    def arg(self, h, f, n, text, params, cls):
        t = Type(text, h)
        key = '%s.%s' % (f, n)
        names = [p[0] for p in params]
        mod = ''
        if cls in ('MEMORY', 'COPY', 'SET', 'GRAPH') and hints.SIZE_ARGS.match(n) and not hints.NO_SIZE.search(f):
            mod = self.unit(f, n)
        if t.is_func or (t.handle and not t.ptr):
            if t.real.startswith('CUstream_st'):
                return 'STREAM(%s)' % n
            if re.match(r'CU(func|kern)_st', t.real):
                return 'FUNC(%s)' % n
            return 'PTR(%s)' % n
        if not t.ptr:
            return self.value(f, n, t, cls, mod)
        return self.pointer(h, f, n, t, params, names, key, mod)

    def unit(self, f, n):
        if n == 'count' and 'Batch' in f:
            return ''
        if n == 'N':
            m = re.search(r'D(8|16|32|2D8|2D16|2D32)', f)
            return ', UNIT(%d)' % {'8': 1, '16': 2, '32': 4}[m.group(1).replace('2D', '')]
        if n == 'Width' and 'Memset' in f:
            m = re.search(r'2D(8|16|32)', f)
            return ', UNIT(%d)' % {'8': 1, '16': 2, '32': 4}[m.group(1)]
        if n in ('height', 'Height') and 'Array' in f and 'Malloc' in f:
            return ', ZERO_IS_ONE'
        return ', UNIT(1)'

    def value(self, f, n, t, cls, mod):
        if t.kind == 'enum':
            if t.real == 'cudaError' or t.real == 'cudaError_enum':
                return 'ENUM(%s, %s)' % (n, self.want_enum(t.real))
            fl = hints.FLAG_ENUMS.search(t.real.replace('_enum', '')) and not hints.NOT_FLAG_ENUMS.search(t.real)
            return '%s(%s, %s)' % ('FLAGS' if fl else 'ENUM', n, self.want_enum(t.real))
        if t.kind == 'float':
            return 'FLOAT(%s)' % n
        if t.kind == 'record':
            if t.real == 'dim3':
                return 'DIM3(%s)' % n
            if 'Ipc' in t.real:
                return 'MEM_BYTES(%s, 64)' % n
            s = self.want_struct(t.name, t.real)
            size = self.sizes[s]
            if size <= 8:
                return 'VALUE(%s, %s)' % (n, s)
            if size > 48:
                return 'MEM_UNSEEN(%s, %d)' % (n, size)
            return 'MEM(%s, %s, %d%s)' % (n, s, size, mod)
        if t.name in (
            'CUdeviceptr',
            'CUdeviceptr_v2',
            'CUdeviceptr_v1',
            'CUmemGenericAllocationHandle',
            'CUtexObject',
            'CUsurfObject',
            'cudaTextureObject_t',
            'cudaSurfaceObject_t',
            'cudaGraphConditionalHandle',
        ):
            return 'PTR32(%s)' % n if t.name == 'CUdeviceptr_v1' else 'PTR(%s)' % n
        w, signed = INTS[t.real]
        x = self.flags_for(f, n)
        if x:
            tag = next((g for g in self.all_enums() if xlat_id(g) == x), None)
            if tag:
                self.want_enum(tag)
            return '%s(%s, %s)' % ('FLAGS' if w == 4 else 'FLAGS64', n, x)
        if w == 8 and t.name == 'size_t':
            if (
                re.match(r'(num|count$|height|depth|hOffset|attrsIdx|reqSz)', n)
                and not (n == 'count' and not re.search(r'Batch|SetAccess', f))
                or n in ('Height', 'N', 'depth', 'paramIndex')
                or n == 'Width'
                and 'Memset' in f
            ):
                return 'COUNT(%s%s)' % (n, mod)
            return 'SIZE(%s%s)' % (n, mod)
        if w == 8:
            return 'U64(%s)' % n
        if w == 4 and not signed and mod and n not in ('Height', 'Width', 'N', 'desc'):
            return (
                'SIZE32(%s%s)' % (n, mod) if n in ('ByteCount', 'bytesize', 'WidthInBytes', 'bytes') else 'UINT(%s)' % n
            )
        if (
            w == 4
            and re.match(r'(bytes|Pitch|dstPitch|ByteCount|srcOffset|dstOffset|sharedMemBytes|dynamicSMem)', n)
            and not signed
        ):
            return 'SIZE32(%s)' % n
        return {(1, False): 'U8', (1, True): 'U8', (2, False): 'U16', (4, True): 'INT', (4, False): 'UINT'}[
            (w, signed)
        ] + '(%s%s)' % (n, mod if w == 4 and not signed and n in ('Height', 'Width', 'N') else '')

    def all_enums(self):
        out = []
        for v in self.versions:
            out += [e for e in self.h[v].enums if e not in out]
        return out

    def pointer(self, h, f, n, t, params, names, key, mod):
        inptr = t.ptr + (1 if t.handle else 0)
        if t.name == 'char' and t.ptr == 1:
            if t.const:
                return '%s(%s)' % ('NAME' if n in ('name', 'deviceName') else 'STR', n)
            if n == 'logBuffer' or n == 'luid':
                return 'PTR(%s)' % n
            return 'OUT_STR(%s)' % n
        if t.name == 'char' and t.ptr == 2:
            return 'OUT_NAME(%s)' % n
        if hints.PLAIN.search(key) and not hints.PLAIN_OVERRIDE.search(key):
            return 'PTR(%s)' % n
        for p, c in hints.OUT_LISTS:
            if p.search(key):
                return self.list(
                    f, n, t, c or next((x for x in names if re.match(r'(p?[nN]um|pNum)', x)), 'count'), True, ''
                )
        if not ('Get' in f and not t.const and re.search(r'ependencies|Edges', n)):
            for p, c in hints.LISTS:
                if p.search(key) and c in names and not n.endswith('_out'):
                    return self.list(f, n, t, c, False, mod)
        d = 'INOUT' if hints.INOUT.search(key) else 'OUT'
        if t.handle or t.ptr == 2:
            real = t.real if t.handle else t.real + ' *'
            if t.const and t.ptr == 1 and t.handle:
                return 'PTR(%s)' % n
            if t.handle and t.ptr >= 2:
                return 'OUT_PTR(%s)' % n
            if real.startswith('CUstream_st'):
                return 'OUT_STREAM(%s)' % n
            if re.match(r'CU(func|kern)_st', real):
                return 'OUT_FUNC(%s)' % n
            return '%s_PTR(%s)' % (d, n)
        if t.kind == 'void':
            return 'FUNC(%s)' % n if hints.FUNC_ARGS.match(n) else 'PTR(%s)' % n
        if t.kind == 'record':
            if t.real == 'dim3':
                return 'OUT_DIM3(%s)' % n
            if t.real == 'CUuuid_st':
                return 'OUT_BYTES(%s, 16)' % n if not t.const else 'BYTES(%s, 16)' % n
            if 'Ipc' in t.real:
                return 'OUT_BYTES(%s, 64)' % n
            if (
                re.match(r'(texture|surface)Reference|CUdevprop|CUeglFrame|cudaEglFrame|CUctxCreateParams', t.real)
                or 'DevResource' in t.real
                or 'devResource' in t.real
            ):
                return 'PTR(%s)' % n
            s = self.want_struct(t.name, t.real)
            by = ''
            if 'AttributeValue' in s or 'AttrValue' in s:
                by = ', BY(%s)' % next(x for x in names if x.startswith('attr'))
            if (
                t.const
                or re.search(r'(NodeSetParams|AddNode\w*|AddMemAllocNode|ExecNodeSetParams)$', f)
                and n == 'nodeParams'
                or n == 'location'
                or re.search(r'MemPoolImportPointer|MemPoolGetAccess|CreateTexture|CreateSurface', f)
            ):
                if 'AddMemAlloc' in f:
                    return 'INOUT_STRUCT(%s, %s%s)' % (n, s, by)
                return 'STRUCT(%s, %s%s%s)' % (n, s, by, mod)
            return '%s_STRUCT(%s, %s%s)' % (d, n, s, by)
        if t.kind == 'enum':
            fl = hints.FLAG_ENUMS.search(t.real.replace('_enum', '')) and not hints.NOT_FLAG_ENUMS.search(t.real)
            return '%s_%s(%s, %s)' % (d, 'FLAGS' if fl else 'ENUM', n, self.want_enum(t.real))
        if t.kind == 'float':
            return '%s_%s(%s)' % (d, 'DOUBLE' if t.real == 'double' else 'FLOAT', n)
        if t.kind != 'int':
            return 'PTR(%s)' % n
        if t.name in (
            'CUdeviceptr',
            'CUdeviceptr_v2',
            'CUmemGenericAllocationHandle',
            'CUtexObject',
            'CUsurfObject',
            'cudaTextureObject_t',
            'cudaSurfaceObject_t',
            'cudaGraphConditionalHandle',
            'CUgraphConditionalHandle',
        ):
            return '%s_PTR(%s)' % (d, n)
        if t.name == 'CUdeviceptr_v1':
            return 'OUT_PTR32(%s)' % n
        w, signed = INTS[t.real]
        if t.const:
            return 'PTR(%s)' % n
        x = self.flags_for(f, n)
        if x:
            tag = next((g for g in self.all_enums() if xlat_id(g) == x), None)
            if tag:
                self.want_enum(tag)
            return '%s_FLAGS%s(%s, %s)' % (d, '64' if w == 8 else '', n, x)
        if n in ('isEnabled', 'canAccessPeer', 'active'):
            return 'OUT_BOOL(%s)' % n
        if t.name == 'size_t':
            return '%s_%s(%s)' % (
                d,
                'COUNT' if re.match(r'(p?[nN]um|failIdx|errorIndex|maxWidthInEl|hOffset)', n) else 'SIZE',
                n,
            )
        if w == 8:
            return '%s_U64(%s)' % (d, n)
        if w == 4 and not signed and n in ('bytes', 'free', 'total', 'psize', 'pSize', 'pPitch', 'ByteOffset'):
            return 'OUT_SIZE32(%s)' % n
        return (
            {(4, True): '%s_INT', (4, False): '%s_UINT'}.get((w, signed), 'PTR') % d + '(%s)' % n
            if w == 4
            else 'PTR(%s)' % n
        )

    def list(self, f, n, t, count, out, mod):
        o = 'OUT_' if out else ''
        if t.handle or t.ptr == 2 or t.name in ('CUdeviceptr', 'CUdeviceptr_v2'):
            kind = 'FUNC' if t.handle and re.match(r'CU(func|kern)_st', t.real) and out else 'PTR'
            return '%sLIST_%s(%s, %s, 4)' % (o, kind, n, count)
        if t.kind == 'enum':
            return '%sLIST_ENUM(%s, %s, %s, 4)' % (o, n, self.want_enum(t.real), count)
        if t.kind == 'record':
            s = self.want_struct(t.name, t.real)
            k = max(1, min(4, 160 // self.sizes[s]))
            return '%sLIST_STRUCT(%s, %s, %d, %s, %d)' % (o, n, s, self.sizes[s], count, k)
        w, signed = INTS[t.real]
        if w == 8:
            return '%sLIST_%s(%s, %s, 8%s)' % (
                o,
                'SIZE' if n.endswith('sizes') else 'COUNT',
                n,
                count,
                mod if n == 'sizes' else '',
            )
        return '%sLIST_%s(%s, %s, 4)' % (o, 'INT' if signed else 'UINT', n, count)

    def rows(self, f):
        """[(since, until, return, [argument macros], class)] of a symbol, newest last."""
        cls = self.klass(f)
        out = []
        for v in self.versions:
            if f not in self.h[v].funcs:
                continue
            ret, params = self.h[v].funcs[f]
            if out and (f.startswith('cu') and not f.startswith('cuda') or same(self.h[out[-1][5]], self.h[v], f)):
                continue
            args = [self.arg(self.h[v], f, n, t, params, cls) for n, t in params]
            out.append([0, 0, ret, args, cls, v])
        for a, b in zip(out, out[1:]):
            # The boundary is the first version that had the newer form.
            first = min(v for v in self.versions if f in self.h[v].funcs and same(self.h[a[5]], self.h[v], f))
            a[0] = b[1] = first // 10
        return out[::-1]

    def emit_functions(self, have, domain):
        names = {base_name(f) for v in self.versions for f in self.h[v].funcs}
        names = [
            f
            for f in names
            if f.startswith('cuda' if domain == 'runtime' else 'cu')
            and (domain == 'runtime') == f.startswith('cuda')
            and f not in have
        ]
        order = [
            'DEVICE',
            'MEMORY',
            'COPY',
            'SET',
            'LAUNCH',
            'STREAM',
            'EVENT',
            'SYNC',
            'GRAPH',
            'CONTEXT',
            'MODULE',
            'QUERY',
            'PEER',
            'TEXTURE',
            'PROFILER',
            'INTERNAL',
        ]
        last = None
        for f in sorted(names, key=lambda n: (order.index(self.klass(n)), n)):
            for since, until, ret, args, cls, _ in self.rows(f):
                if cls != last:
                    print('\n/* ---- %s ---- */\n' % cls.lower())
                    last = cls
                flags = [
                    w
                    for w, p in (('CALLBACK', hints.CALLBACK), ('NOT_READY', hints.NOT_READY))
                    if p.search(f)
                ]
                r = {'cudaError_t': 'STATUS', 'CUresult': 'STATUS', 'const char *': 'STR'}.get(ret, 'VOID')
                if r == 'VOID':
                    flags.append('SRET')
                flags += [w for w, classes, p in hints.TRAITS if cls in classes and p.search(f)]
                head = [
                    (
                        'API_FV'
                        if flags and (since or until)
                        else 'API_F' if flags else 'API_V' if since or until else 'API'
                    ),
                    [f, cls, r] + ([' | '.join(flags)] if flags else []) + ([str(since), str(until)] if since or until else []),
                ]
                text = '%s(%s' % (head[0], ', '.join(head[1]))
                print(row_wrap(text, args))


def flagsy(kind, value):
    return kind == 'FLAGS'


def same(h1, h2, f):
    """True when two headers declare f with the same machine-level signature."""

    def shape(h):
        out = []
        for n, t in h.funcs[f][1]:
            ty = Type(t, h)
            out.append(
                (
                    ty.ptr,
                    ty.handle,
                    ty.kind,
                    re.sub(r'_v1(_st)?$', '_v1', ty.real) if ty.kind in ('record', 'int', 'float') else '',
                )
            )
        return out

    return shape(h1) == shape(h2)


def wrap(items, first='\t', rest='\t', width=112):
    lines, cur = [], first
    for i, it in enumerate(items):
        piece = it + (',' if i + 1 < len(items) else '')
        if cur.strip() and len(cur.expandtabs(8)) + 1 + len(piece) > width:
            lines.append(cur)
            cur = rest
        cur += (' ' if cur.strip() else '') + piece
    lines.append(cur)
    return '\n'.join(lines)


def row_wrap(head, args):
    if not args:
        return head + ')'
    return wrap([head.lstrip()] + args, '', '\t') + ')'


def known(path, pattern):
    try:
        with open(path) as f:
            return set(re.findall(pattern, f.read(), re.M))
    except FileNotFoundError:
        return set()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('what', choices=['runtime', 'driver', 'functions', 'struct', 'xlat'])
    p.add_argument(
        '--include',
        action='append',
        metavar='VERSION:DIR',
        help='CUDA version as CUDART_VERSION has it, and its headers; default 13000:/usr/local/cuda/include',
    )
    p.add_argument('--all', action='store_true', help='propose everything, not only what is missing')
    o = p.parse_args()
    includes = dict(i.split(':', 1) for i in o.include or ['13000:/usr/local/cuda/include'])
    g = Generator({int(v): d for v, d in includes.items()})
    have_f = have_s = have_x = set()
    if not o.all:
        have_f = known(API + '/runtime.def', r'^API\w*\((\w+)') | known(API + '/driver.def', r'^API\w*\((\w+)')
        have_s = known(API + '/struct.def', r'^(?:STRUCT|STRUCT_BY|NESTED)\((\w+)')
        have_x = known(API + '/xlat.def', r'^(?:ENUM|FLAGS)\((\w+)')
    sys.stdout = stdout = sys.stdout
    if o.what in ('struct', 'xlat'):
        sys.stdout = open(os.devnull, 'w')
    for d in ('runtime', 'driver'):
        if o.what in (d, 'functions', 'struct', 'xlat'):
            g.emit_functions(have_f if o.what not in ('struct', 'xlat') else set(), d)
    sys.stdout = stdout
    if o.what == 'struct':
        g.emit_structs(have_s)
    if o.what == 'xlat':
        g.emit_xlat(have_x)


if __name__ == '__main__':
    main()
