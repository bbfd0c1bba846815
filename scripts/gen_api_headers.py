# SPDX-License-Identifier: BSD-2-Clause
"""
gen_api_headers.py - reads CUDA's headers for gen_api.py and check_api.py.

clang parses the headers and dumps its syntax tree as JSON; __CUDA_API_VERSION_INTERNAL makes them declare every
exported version of a function under its symbol's name. Sizes, offsets and values of macros come from a small C
program that is compiled and run. OpenGL, EGL and VDPAU headers are replaced by a few typedefs, because only the
widths of their types matter. Knows nothing of the tables.
"""

import json
import os
import re
import subprocess
import tempfile

FILES = [
    'cuda.h',
    'cudaProfiler.h',
    'cudaGL.h',
    'cudaEGL.h',
    'cudaVDPAU.h',
    'cuda_runtime_api.h',
    'cuda_profiler_api.h',
    'cuda_gl_interop.h',
    'cuda_egl_interop.h',
    'cuda_vdpau_interop.h',
]

# What the interop headers need of other people's headers.
STUBS = {
    'GL/gl.h': 'typedef unsigned int GLenum, GLuint; typedef int GLint, GLsizei;\n',
    'EGL/egl.h': 'typedef void *EGLDisplay; typedef int EGLint; typedef unsigned int EGLBoolean;\n',
    'EGL/eglext.h': 'typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;\n',
    'vdpau/vdpau.h': '#include <stdint.h>\n'
    'typedef uint32_t VdpDevice, VdpVideoSurface, VdpOutputSurface, VdpStatus, VdpFuncId;\n'
    'typedef VdpStatus VdpGetProcAddress(VdpDevice, VdpFuncId, void **);\n',
}

HANDLE_BITS = re.compile(r'^(const )?(struct |union |enum )?')


def base_name(symbol):
    """A symbol without the suffix of its per-thread-stream twin."""
    return re.sub(r'_pt[sd][sz]$', '', symbol)


class Type:
    """A parameter's or member's type, taken apart: base name, pointer levels, constness of what is pointed to."""

    def __init__(self, text, headers):
        self.text = text
        t = text.replace('*const', '*').strip()
        self.is_func = '(' in t
        self.dim = 1
        m = re.match(r'(.*?)\s*\[(\d+)\]$', t)
        if m:
            t, self.dim = m.group(1), int(m.group(2))
        self.ptr = t.count('*')
        self.const = bool(re.search(r'\bconst\b', t))
        b = re.sub(r'\b(const|struct|union|enum|volatile)\b', '', t.replace('*', '')).strip()
        self.name = re.sub(r'\s+', ' ', b)
        self.kind, self.real, self.handle = headers.classify(self.name)
        if self.is_func:
            self.kind, self.handle = 'handle', True


class Headers:
    def __init__(self, include):
        self.include = include
        # its direct mode would give the answer for another version's headers: the source is the same
        os.environ['CCACHE_DISABLE'] = '1'
        self.funcs = {}  # symbol -> (return type text, [(name, type text)])
        self.enums = {}  # tag or typedef -> [(name, value)], in the order of the header
        self.records = {}  # tag -> [(member, type text or None for anonymous, nested record or None)]
        self.typedefs = {}  # name -> type text
        self.ctypes = {}  # tag of a record -> how C writes the type
        self._sizes = None
        self._parse()

    def _args(self, tmp):
        for path, text in STUBS.items():
            full = os.path.join(tmp, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w') as f:
                f.write(text)
        have = [f for f in FILES if os.path.exists(os.path.join(self.include, f))]
        lines = ['#include <%s>' % s for s in STUBS] + ['#include <%s>' % f for f in have]
        with open(os.path.join(tmp, 'all.h'), 'w') as f:
            f.write('\n'.join(lines) + '\n')
        return ['-w', '-D__CUDA_API_VERSION_INTERNAL', '-I', self.include, '-isystem', tmp]

    def _parse(self):
        with tempfile.TemporaryDirectory() as tmp:
            args = self._args(tmp)
            p = subprocess.run(
                ['clang', '-x', 'c', '-fsyntax-only', '-Xclang', '-ast-dump=json']
                + args
                + [os.path.join(tmp, 'all.h')],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            if p.returncode:
                raise SystemExit('clang cannot parse the headers in %s:\n%s' % (self.include, p.stderr[:2000]))
            tree = json.loads(p.stdout)
        last = None
        for node in tree['inner']:
            kind, name = node['kind'], node.get('name')
            if kind == 'TypedefDecl' and last and not last.get('name'):
                # typedef enum { ... } name: the tag is the typedef's name.
                last['name'] = name
                if last['kind'] == 'EnumDecl':
                    self._enum(last)
                else:
                    self.records[name] = self._members(last)
                    self.ctypes[name] = name
            last = node if kind in ('EnumDecl', 'RecordDecl') else None
            if kind == 'FunctionDecl' and name.startswith(('cu', '__cu')):
                params = [
                    (c.get('name', ''), c['type']['qualType'])
                    for c in node.get('inner', [])
                    if c['kind'] == 'ParmVarDecl'
                ]
                self.funcs.setdefault(name, (node['type']['qualType'].split('(')[0].strip(), params))
            elif kind == 'TypedefDecl':
                self.typedefs[name] = node['type']['qualType']
            elif kind == 'EnumDecl':
                self._enum(node)
            elif kind == 'RecordDecl' and node.get('completeDefinition') and name:
                self.records[name] = self._members(node)
                self.ctypes[name] = node['tagUsed'] + ' ' + name

    def _enum(self, node):
        rows, value = [], -1
        for c in node.get('inner', []):
            if c['kind'] != 'EnumConstantDecl':
                continue
            expr = next((i for i in c.get('inner', []) if i['kind'] == 'ConstantExpr'), None)
            value = int(expr['value']) if expr and 'value' in expr else value + 1
            rows.append((c['name'], value))
        if node.get('name'):
            self.enums[node['name']] = rows

    def _members(self, node):
        out, anon = [], None
        for c in node.get('inner', []):
            if c['kind'] == 'RecordDecl' and not c.get('name'):
                anon = self._members(c)
            elif c['kind'] == 'FieldDecl':
                text = c['type']['qualType']
                nested = anon if ('anonymous' in text or 'unnamed' in text) else None
                out.append((c.get('name', ''), None if nested is not None else text, nested))
        return out

    def tag(self, name):
        """Follows typedefs to the name of an enum's or record's tag, or to a plain type's text."""
        seen = 0
        while name in self.typedefs and seen < 20:
            t = re.sub(r'\b(struct|union|enum|const)\b', '', self.typedefs[name]).strip()
            if t == name or '*' in t or '(' in t:
                return name if t == name else t
            name, seen = t, seen + 1
        return name

    def classify(self, name):
        """(kind, tag, is a pointer under a typedef): kind is enum, record, handle, int, float or void."""
        t = self.tag(name)
        if '(' in t or '*' in t:
            return 'handle', t, True
        if t in self.enums:
            return 'enum', t, False
        if t in self.records:
            return 'record', t, False
        if t == 'void':
            return 'void', t, False
        if t in ('float', 'double'):
            return 'float', t, False
        if t in INTS:
            return 'int', t, False
        return 'opaque', t, False

    def size_of(self, tag):
        """sizeof a record."""
        if self._sizes is None:
            tags = list(self.records)
            self._sizes = dict(zip(tags, self.evaluate(['sizeof(%s)' % self.ctypes[t] for t in tags])))
        return self._sizes[tag]

    def evaluate(self, expressions):
        """Values of C integer expressions in these headers: a list with None where one does not compile."""
        with tempfile.TemporaryDirectory() as tmp:
            args = self._args(tmp)
            live = list(range(len(expressions)))
            values = [None] * len(expressions)
            for _ in range(20):
                src = os.path.join(tmp, 'e.c')
                with open(src, 'w') as f:
                    f.write('#include "all.h"\n#include <stdio.h>\n#include <stddef.h>\nint main(void)\n{\n')
                    for i in live:
                        f.write('printf("%d %%lld\\n", (long long)(%s)); // %d\n' % (i, expressions[i], i))
                    f.write('return 0;\n}\n')
                exe = os.path.join(tmp, 'e')
                p = subprocess.run(
                    ['clang', '-x', 'c', '-ferror-limit=0', '-O0', '-I', tmp, '-o', exe] + args + [src],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                if p.returncode == 0:
                    out = subprocess.run([exe], stdout=subprocess.PIPE, text=True).stdout
                    for line in out.splitlines():
                        i, v = line.split()
                        values[int(i)] = int(v)
                    return values
                bad = {int(n) for n in re.findall(r'^\S*e\.c:(\d+):\d+: error', p.stderr, re.M)}
                bad = {live[n - 6] for n in bad if 0 <= n - 6 < len(live)}
                if not bad:
                    raise SystemExit('cannot evaluate expressions:\n' + p.stderr[:1000])
                live = [i for i in live if i not in bad]
            return values


# bytes, signed
INTS = {
    'char': (1, True),
    'signed char': (1, True),
    'unsigned char': (1, False),
    'short': (2, True),
    'unsigned short': (2, False),
    'int': (4, True),
    'unsigned int': (4, False),
    'long': (8, True),
    'unsigned long': (8, False),
    'long long': (8, True),
    'unsigned long long': (8, False),
    'size_t': (8, False),
    'uint8_t': (1, False),
    'uint16_t': (2, False),
    'uint32_t': (4, False),
    'uint64_t': (8, False),
    'int32_t': (4, True),
    'int64_t': (8, True),
    '__uint8_t': (1, False),
    '__uint16_t': (2, False),
    '__uint32_t': (4, False),
    '__uint64_t': (8, False),
    '__int32_t': (4, True),
    '__int64_t': (8, True),
}
