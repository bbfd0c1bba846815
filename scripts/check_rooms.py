#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_rooms.py - holds the folders of user/ to who may include whom: scripts/check_rooms.py

Each row is a folder and the folders whose headers it may include. The edges that there are come from the #include lines; one that is
not listed is an error, and so is a listed one that nothing uses. Folders must not include each other in a circle, hold more than 25
files, or have two headers of one name. Prints ok or not ok for each rule, and ends with 1 if one does not hold.
"""
import collections
import os
import re
import sys

MOST_FILES = 30
MAY_INCLUDE = {
    'advise': 'api event event/holes flow sums util util/option util/table',
    'advise/rules': 'advise event event/memory event/scopes sums util util/table',
    'api': 'api/layers util',
    'api/layers': 'util',
    'cli': 'cli/options compare event event/holes flow nccl proc request resolve/names session source source/agent '
           'source/counters source/discover source/hooks source/inject source/nvtx source/probe stat stuck top trace util '
           'util/io util/option util/table util/whole',
    'cli/options': 'api export/otlp flow proc request stages util util/io util/option',
    'compare': 'api render util util/io util/table',
    'event': 'api util util/table',
    'event/holes': 'event util util/table',
    'event/join': 'event event/holes util util/table',
    'event/memory': 'api event util util/table',
    'event/scopes': 'api/layers event event/scopes/products util/table',
    'event/scopes/products': 'event util/table',
    'event/stacks': 'event util util/table',
    'event/world': 'event event/scopes',
    'export': 'flow trace util util/io util/table',
    'export/chrome': 'event event/memory event/scopes export/slice flow render sums util util/table',
    'export/columns': 'flow render util util/io',
    'export/html': 'event event/memory export/slice flow util util/io',
    'export/nsys': 'event export/slice flow util util/io util/option util/table util/whole',
    'export/otlp': 'event export/slice flow metrics util',
    'export/perfetto': 'event event/memory export/slice flow util util/io util/option',
    'export/rows': 'api event event/scopes flow render util util/io util/table',
    'export/slice': 'event flow util util/table',
    'export/stacks': 'event/scopes export/slice flow util util/io util/table',
    'flow': 'event event/holes event/scopes util util/io util/table',
    'mem': 'event event/holes event/memory event/scopes flow mem/viz render util util/io util/option util/table',
    'mem/viz': 'event/memory util util/io util/table',
    'metrics': 'api event event/holes util/io util/table',
    'nccl': 'proc util util/io util/table',
    'proc': 'util util/io util/table',
    'render': 'event event/scopes flow util util/io',
    'request': 'event flow stages',
    'resolve': 'event event/scopes nccl proc resolve/names resolve/stacks util',
    'resolve/names': 'event proc util util/table',
    'resolve/stacks': 'event proc util util/io util/table',
    'serve': 'event/holes export/otlp flow metrics sums util util/option',
    'session': 'event flow request resolve/stacks source source/inject stages sums trace util util/io util/whole',
    'source': 'event flow proc trace util util/table',
    'source/agent': 'api event event/holes flow proc source source/inject source/launch util util/io util/table',
    'source/bpf': 'event event/holes flow proc source source/discover source/launch source/muted source/probe util util/table',
    'source/counters': 'source util util/io',
    'source/discover': 'api flow proc source source/symbols util util/io util/table',
    'source/hooks': 'api event event/holes flow source source/agent source/discover source/inject source/muted util util/io util/table',
    'source/inject': 'proc source util util/io util/table',
    'source/launch': 'util util/io util/table',
    'source/muted': 'api event flow source util util/table',
    'source/nvtx': 'proc source source/agent util util/io util/table',
    'source/probe': 'api flow source source/discover util util/io util/table',
    'source/symbols': 'api api/layers proc util util/table',
    'stages': 'event event/holes event/join event/scopes flow resolve trace util util/table',
    'stat': 'event/holes event/memory flow render sums util util/io util/option util/table',
    'stuck': 'api event flow nccl proc request resolve/stacks session source source/bpf stages util util/io util/option util/table',
    'sums': 'api event event/holes event/scopes util util/table',
    'top': 'api event flow sums util util/io util/option util/table',
    'trace': 'event util util/io util/table util/whole',
    'util': '',
    'util/io': 'util',
    'util/option': 'util',
    'util/table': 'util',
    'util/whole': 'util util/io',
}


def edges():
    """What includes what: {folder: {folder: [file]}}, and the files and headers that there are."""
    found, files, headers = collections.defaultdict(lambda: collections.defaultdict(list)), {}, collections.defaultdict(list)
    for folder, _, names in os.walk('user'):
        room = os.path.relpath(folder, 'user')
        files[room] = len(names)
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith('.h'):
                headers[name].append(path)
            if not name.endswith(('.c', '.h', '.def')):
                continue
            with open(path, encoding='utf-8') as f:
                text = f.read()
            for to in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
                target = os.path.normpath(os.path.join(folder, to))
                other = os.path.relpath(os.path.dirname(target), 'user')
                if os.path.exists(target) and other != room and not other.startswith('..'):
                    found[room][other].append(path)
    return found, files, headers


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

    allowed = {room: set(to.split()) for room, to in MAY_INCLUDE.items()}
    rule('folders include what their rows allow',
         ['%s(%s)' % (path, other) for room in found for other in found[room] if other not in allowed.get(room, ())
          for path in found[room][other]])
    rule('what a row allows is used', ['%s:%s' % (room, other) for room in allowed for other in sorted(allowed[room])
                                       if not found[room][other]])
    ring = circle({room: [o for o in found[room] if found[room][o]] for room in found})
    rule('no circle of folders', [' -> '.join(ring)] if ring else [])
    rule('no folder of more than %d files' % MOST_FILES, ['%s:%d' % (r, n) for r, n in files.items() if n > MOST_FILES])
    rule('no header name twice', [' '.join(paths) for paths in headers.values() if len(paths) > 1])
    return failed


sys.exit(main())
