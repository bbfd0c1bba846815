#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_rooms.py - holds the folders to who may include whom: scripts/check_rooms.py

Borders and levels say what no folder may include, whatever its row says. Each row is a folder and the folders whose headers it
includes: one that is not listed is an error, and so is a listed one that nothing uses, so that a new edge is seen when it is made.
Folders must not include each other in a circle, hold more files than MOST_FILES, or have two headers of one name. Prints ok or
not ok for each rule, and ends with 1 if one does not hold.
"""
import collections
import os
import re
import sys

MOST_FILES = 30

# What each side of a border may include of the others: what crosses a border is in wire/.
BORDERS = {
    'wire': '',
    'capture': 'wire',
    'bpf': 'capture wire',
    'counters': 'wire',
    'target/common': 'wire',
    'target/cupti': 'target/common wire',
    'target/engine': 'target/common',
    'target/hooks': 'capture target/common target/engine wire',
    'target/life': 'target/common target/engine target/hooks wire',
    'target/nvtx': 'target/common wire',
    'user': 'user wire',
}
# The rooms of user/ from the bottom to the top: one may include what stands above its line here, and of its own line only itself.
LEVELS = """
    util
    api
    event
    proc trace
    nccl flow
    metrics render sums
    gaps
    resolve
    source stages
    request
    export
    findings
    advise compare mem stat top why
    serve
    session
    stuck
    cli
""".strip().split('\n')
COMMANDS = 'advise compare mem stat top why serve stuck'.split()
SHARED_BY_EXPORTS = ('user/export', 'user/export/slice')

MAY_INCLUDE = {
    'bpf': 'capture wire',
    'capture': '',
    'counters': 'wire',
    'target/common': 'wire',
    'target/cupti': 'target/common wire',
    'target/engine': 'target/common',
    'target/hooks': 'capture target/common target/engine wire',
    'target/life': 'target/common target/engine target/hooks wire',
    'target/nvtx': 'target/common wire',
    'user/advise': 'user/api user/event user/event/holes user/findings user/flow user/gaps user/sums user/util user/util/option user/util/table',
    'user/advise/rules': 'user/advise user/event user/event/memory user/event/scopes user/gaps user/sums user/util user/util/table',
    'user/api': 'user/api/layers user/util wire',
    'user/api/layers': 'user/util wire',
    'user/cli': 'user/cli/options user/compare user/event user/event/holes user/flow user/nccl user/proc user/render '
                'user/request user/resolve/names user/session user/source user/source/agent user/source/both '
                'user/source/counters user/source/discover user/source/hooks user/source/inject user/source/probe user/stat '
                'user/stuck user/sums user/top user/trace user/util user/util/io user/util/option user/util/self '
                'user/util/table user/util/whole wire',
    'user/cli/options': 'user/api user/export/otlp user/flow user/proc user/request user/stages user/util user/util/io user/util/option wire',
    'user/compare': 'user/api user/render user/util user/util/io user/util/table',
    'user/event': 'user/api user/util user/util/table wire',
    'user/event/holes': 'user/event user/util user/util/table',
    'user/event/join': 'user/event user/event/holes user/util',
    'user/event/memory': 'user/api user/event user/util user/util/table',
    'user/event/scopes': 'user/api/layers user/event user/event/scopes/products user/util/table',
    'user/event/scopes/products': 'user/event user/util/table',
    'user/event/stacks': 'user/event user/util user/util/table',
    'user/event/world': 'user/event user/event/scopes',
    'user/export': 'user/flow user/trace user/util user/util/io user/util/table',
    'user/export/chrome': 'user/event user/event/memory user/event/scopes user/export/slice user/flow user/render user/sums user/util '
                          'user/util/table',
    'user/export/columns': 'user/flow user/render user/util user/util/io',
    'user/export/html': 'user/event user/event/memory user/export/slice user/flow user/util user/util/io',
    'user/export/nsys': 'user/event user/export/slice user/flow user/util user/util/io user/util/option user/util/table user/util/whole',
    'user/export/otlp': 'user/event user/export/slice user/flow user/metrics user/util',
    'user/export/perfetto': 'user/event user/event/memory user/export/slice user/flow user/util user/util/io user/util/option',
    'user/export/rows': 'user/api user/event user/event/scopes user/flow user/render user/util user/util/io user/util/table',
    'user/export/slice': 'user/event user/flow user/util user/util/table',
    'user/export/stacks': 'user/event/scopes user/export/slice user/flow user/util user/util/io user/util/table',
    'user/findings': 'user/render user/util user/util/io',
    'user/flow': 'user/event user/event/holes user/event/scopes user/util user/util/io user/util/table wire',
    'user/gaps': 'user/api user/event user/event/holes user/sums user/util user/util/table',
    'user/mem': 'user/event user/event/holes user/event/memory user/event/scopes user/flow user/mem/viz user/render user/util '
                'user/util/io user/util/option user/util/table',
    'user/mem/viz': 'user/event/memory user/util user/util/io user/util/table',
    'user/metrics': 'user/api user/event user/event/holes user/util/io user/util/table',
    'user/nccl': 'user/proc user/util user/util/io user/util/table',
    'user/proc': 'user/util user/util/io user/util/table wire',
    'user/render': 'user/event user/event/scopes user/flow user/util user/util/io',
    'user/request': 'user/event user/flow user/stages',
    'user/resolve': 'user/event user/event/scopes user/nccl user/proc user/resolve/names user/resolve/stacks user/util wire',
    'user/resolve/names': 'user/event user/proc user/util user/util/table wire',
    'user/resolve/stacks': 'user/event user/proc user/util user/util/io user/util/table wire',
    'user/serve': 'user/event/holes user/export/otlp user/flow user/metrics user/sums user/util user/util/option',
    'user/session': 'user/event user/flow user/request user/resolve/stacks user/source user/source/inject user/stages user/sums '
                    'user/trace user/util user/util/io user/util/self user/util/whole wire',
    'user/source': 'user/event user/flow user/proc user/trace user/util user/util/table wire',
    'user/source/agent': 'user/api user/event user/event/holes user/flow user/proc user/source user/source/inject user/source/launch '
                         'user/util user/util/io user/util/self user/util/table wire',
    'user/source/both': 'user/api user/event user/event/holes user/flow user/source user/source/bpf user/source/hooks user/source/probe '
                        'user/util user/util/table',
    'user/source/bpf': 'user/event user/event/holes user/flow user/proc user/source user/source/discover user/source/launch '
                       'user/source/muted user/source/probe user/util user/util/table wire',
    'user/source/counters': 'user/source user/util user/util/io user/util/self wire',
    'user/source/discover': 'user/api user/flow user/proc user/source user/source/symbols user/util user/util/io user/util/table wire',
    'user/source/hooks': 'user/api user/event user/event/holes user/flow user/source user/source/agent user/source/bpf '
                         'user/source/discover user/source/inject user/source/muted user/util user/util/io user/util/table wire',
    'user/source/inject': 'user/proc user/source user/util user/util/io user/util/table',
    'user/source/launch': 'user/util user/util/io user/util/table',
    'user/source/muted': 'user/api user/event user/flow user/source user/util user/util/table wire',
    'user/source/nvtx': 'user/proc user/source user/source/agent user/util user/util/io user/util/table wire',
    'user/source/probe': 'user/api user/flow user/source user/source/discover user/util user/util/io user/util/self user/util/table wire',
    'user/source/states': 'user/event user/proc user/source user/source/bpf user/util user/util/table wire',
    'user/source/symbols': 'user/api user/api/layers user/proc user/util user/util/table',
    'user/stages': 'user/event user/event/holes user/event/join user/event/scopes user/event/world user/flow user/resolve '
                   'user/trace user/util user/util/table',
    'user/stat': 'user/event/holes user/event/memory user/flow user/render user/sums user/util user/util/io user/util/option user/util/table',
    'user/stuck': 'user/api user/event user/flow user/nccl user/proc user/request user/resolve/stacks user/session user/source '
                  'user/source/bpf user/stages user/util user/util/io user/util/option user/util/table wire',
    'user/stuck/hang': 'user/findings user/flow user/nccl user/proc user/resolve/stacks user/source user/source/bpf user/stuck '
                       'user/trace user/util user/util/io user/util/option user/util/table wire',
    'user/sums': 'user/api user/event user/event/holes user/event/scopes user/util user/util/table wire',
    'user/top': 'user/api user/event user/flow user/sums user/util user/util/io user/util/option user/util/table',
    'user/trace': 'user/event user/util user/util/io user/util/table user/util/whole wire',
    'user/util': '',
    'user/util/io': 'user/util user/util/self',
    'user/util/option': 'user/util',
    'user/util/self': 'user/util',
    'user/util/table': 'user/util',
    'user/util/whole': 'user/util user/util/io',
    'user/why': 'user/event/holes user/findings user/flow user/gaps user/util user/util/option',
    'wire': '',
}


def edges():
    """What includes what: {folder: {folder: [file]}}, and the files and headers that there are."""
    found, files, headers = collections.defaultdict(lambda: collections.defaultdict(list)), {}, collections.defaultdict(list)
    for folder, _, names in (entry for top in sorted({border.split('/')[0] for border in BORDERS}) for entry in os.walk(top)):
        if not names:
            continue
        files[folder] = len(names)
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith('.h'):
                headers[name].append(path)
            if not name.endswith(('.c', '.h', '.def', '.S')):
                continue
            with open(path, encoding='utf-8') as f:
                text = f.read()
            for to in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
                target = os.path.normpath(os.path.join(folder, to))
                if os.path.exists(target) and os.path.dirname(target) != folder:
                    found[folder][os.path.dirname(target)].append(path)
                elif to.endswith('.skel.h'):
                    found[folder]['skeleton'].append(path)
    return found, files, headers


def border(room):
    """The side of a border that a folder is on."""
    return room if room in BORDERS else room.split('/')[0]


def level(room):
    """(line of LEVELS, room of that line) of a folder of user/."""
    name = room.split('/')[1] if '/' in room else ''
    return next((n for n, line in enumerate(LEVELS) if name in line.split()), None), name


def forbidden(room, other):
    """Which rule says that no file of one folder includes one of the other, or None."""
    here, there = border(room), border(other)
    if other == 'skeleton':
        return None if room.startswith('user/source') else 'what is built of bpf/ is known to user/source alone'
    if here != there and there not in BORDERS[here].split():
        return 'a side of a border knows the others by wire/'
    if here != 'user':
        return None
    (at, name), (to, other_name) = level(room), level(other) if there == 'user' else (-1, other)
    if name == 'util' and other_name != 'util':
        return 'util knows no word of the domain'
    if there != 'user':
        return None
    if other_name in COMMANDS and name not in (other_name, 'cli') or other_name == 'session' and name not in ('session', 'stuck', 'cli'):
        return 'nothing includes the session or a command'
    if name == 'export' and other_name == 'export' and other not in SHARED_BY_EXPORTS:
        return 'two sinks do not know each other'
    if other_name == 'source' and (name == 'export' or name in COMMANDS and name != 'stuck'):
        return 'sinks know no source'
    if name == 'source' and other_name == 'request':
        return 'a source sees the options only as the capture plan'
    if to > at or to == at and name != other_name:
        return 'no room includes one above it'
    return None


FORBIDDEN = ('a side of a border knows the others by wire/', 'what is built of bpf/ is known to user/source alone',
             'util knows no word of the domain', 'nothing includes the session or a command', 'two sinks do not know each other',
             'sinks know no source', 'a source sees the options only as the capture plan', 'no room includes one above it')


def circle(graph):
    """A way from a folder back to itself, or None."""
    done, way = set(), []

    def walk(room):
        if room in way:
            return way[way.index(room):] + [room]
        if room in done:
            return None
        way.append(room)
        for other in graph.get(room, ()):
            ring = walk(other)
            if ring:
                return ring
        way.pop()
        done.add(room)
        return None

    for room in list(graph):
        ring = walk(room)
        if ring:
            return ring
    return None


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    found, files, headers = edges()
    failed = False

    def rule(name, wrong):
        nonlocal failed
        print('not ok rule: %s: %s' % (name, ' '.join(wrong[:5])) if wrong else 'ok rule: ' + name)
        failed |= bool(wrong)

    unknown = [room for room in files if border(room) not in BORDERS or room.startswith('user/') and level(room)[0] is None]
    rule('every folder has a side and a level', unknown)
    if unknown:
        return True
    for name in FORBIDDEN:
        rule(name, ['%s(%s)' % (path, other) for room in found for other in found[room] if forbidden(room, other) == name
                    for path in found[room][other]])
    allowed = {room: set(to.split()) for room, to in MAY_INCLUDE.items()}
    rule('folders include what their rows allow',
         ['%s(%s)' % (path, other) for room in found for other in found[room]
          if other != 'skeleton' and other not in allowed.get(room, ()) for path in found[room][other]])
    rule('what a row allows is used', ['%s:%s' % (room, other) for room in allowed for other in sorted(allowed[room])
                                       if not found[room][other]])
    ring = circle({room: [o for o in found[room] if found[room][o]] for room in list(found)})
    rule('no circle of folders', [' -> '.join(ring)] if ring else [])
    rule('no folder of more than %d files' % MOST_FILES, ['%s:%d' % (r, n) for r, n in files.items() if n > MOST_FILES])
    rule('no header name twice', [' '.join(paths) for paths in headers.values() if len(paths) > 1])
    return failed


sys.exit(main())
