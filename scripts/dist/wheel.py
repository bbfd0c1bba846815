#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""wheel.py - the Python wheel: scripts/dist/wheel.py PROGRAM VERSION LICENCES FOLDER

Writes FOLDER/cudatrace-VERSION-py3-none-TAG.whl, with the package python/cudatrace, and the program as its script. The tag promises a C library of 2.17 or later;
the program is static and needs none. All times in the file are SOURCE_DATE_EPOCH, so the same input gives the same bytes.
"""
import base64
import hashlib
import os
import sys
import time
import zipfile

TAGS = {'x86_64': 'manylinux_2_17_x86_64', 'aarch64': 'manylinux_2_17_aarch64'}
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')

METADATA = '''Metadata-Version: 2.1
Name: cudatrace
Version: %s
Summary: strace for the GPU: shows what running programs ask of CUDA
License: BSD-2-Clause
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Monitoring
Classifier: Framework :: Pytest
Provides-Extra: pandas
Requires-Dist: pandas; extra == 'pandas'
Provides-Extra: arrow
Requires-Dist: pyarrow; extra == 'arrow'
Description-Content-Type: text/markdown

`cudatrace` prints the calls that programs make to CUDA, from outside, without a change of the program. This package has the program,
linked statically, and the module `cudatrace`, which reads recordings, records the process that it is in, and gives tests the fixture
`cuda_calls` (pytest). The licences of what is linked into it are in the folder `licences` of the package's `.dist-info`.
'''
ENTRY_POINTS = '''[pytest11]
cudatrace = cudatrace.pytest_plugin
'''
WHEEL = '''Wheel-Version: 1.0
Generator: cudatrace make dist
Root-Is-Purelib: false
Tag: py3-none-%s
'''


def contents(program, version, licences, tag):
    """(name in the wheel, bytes, mode) of each file, without RECORD."""
    info = 'cudatrace-%s.dist-info/' % version

    def read(path):
        with open(path, 'rb') as f:
            return f.read()

    package = os.path.join(ROOT, 'python', 'cudatrace')
    for name in sorted(os.listdir(package)):
        if name.endswith('.py') or name == 'py.typed':
            yield 'cudatrace/' + name, read(os.path.join(package, name)), 0o644
    yield 'cudatrace-%s.data/scripts/cudatrace' % version, read(program), 0o755
    for name in sorted(os.listdir(licences)):
        yield info + 'licences/' + name, read(os.path.join(licences, name)), 0o644
    yield info + 'licences/LICENSE', read(os.path.join(ROOT, 'LICENSE')), 0o644
    yield info + 'METADATA', (METADATA % version).encode(), 0o644
    yield info + 'entry_points.txt', ENTRY_POINTS.encode(), 0o644
    yield info + 'WHEEL', (WHEEL % tag).encode(), 0o644


def main(program, version, licences, folder):
    tag = TAGS[os.uname().machine]
    # A zip file knows no time before 1980.
    when = time.gmtime(max(int(os.environ['SOURCE_DATE_EPOCH']), 315532800))[:6]
    record_name = 'cudatrace-%s.dist-info/RECORD' % version
    record = []
    with zipfile.ZipFile(os.path.join(folder, 'cudatrace-%s-py3-none-%s.whl' % (version, tag)), 'w', zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        for name, data, mode in contents(program, version, licences, tag):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            record.append('%s,sha256=%s,%d\n' % (name, digest, len(data)))
            add(name, data, mode)
        add(record_name, (''.join(record) + record_name + ',,\n').encode(), 0o644)


main(*sys.argv[1:])
