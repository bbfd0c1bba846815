#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_viz.py - is it a snapshot that PyTorch's viewer of its allocator reads? tests/cases/check_viz.py FILE [VIEWER] [--attached]

Only operations that make values may be in the pickle, and none that the viewer in the browser does not know. The blocks of a segment adjoin and
fill it, each block that an event names lies in a segment of that time, and what the events leave is what the segments hold; with --attached
there may be blocks from before, and in segments that were given back since. VIEWER is PyTorch's torch/cuda/_memory_viz.py, all of whose reports are made then. Prints a line for each
device and action with its number and bytes, and one for the segments.
"""
import collections
import importlib.util
import io
import pickle
import pickletools
import sys

OPERATIONS = set('PROTO STOP MARK EMPTY_DICT SETITEMS EMPTY_LIST APPENDS BININT1 BININT2 BININT LONG1 NEWTRUE NEWFALSE TUPLE2 BINUNICODE '
                 'LONG_BINPUT BINGET LONG_BINGET'.split())


class Values(pickle.Unpickler):
    def find_class(self, module, name):
        sys.exit(f'the pickle names {module}.{name}')


def load(path):
    data = open(path, 'rb').read()
    items = 0
    for op, arg, at in pickletools.genops(data):
        if op.name not in OPERATIONS:
            sys.exit(f'operation {op.name} at {at}')
        if op.name == 'PROTO' and arg != 2:
            sys.exit(f'protocol {arg}')
        items += op.name == 'STOP'
    if items != 1 or at != len(data) - 1:
        sys.exit('something follows the end')
    return Values(io.BytesIO(data)).load()


def check_segment(segment):
    at, used = segment['address'], 0
    for block in segment['blocks']:
        assert block['address'] == at and block['size'] > 0, block
        assert block['state'] in ('active_allocated', 'inactive'), block
        active = block['state'] == 'active_allocated'
        assert block['requested_size'] == (block['size'] if active else 0), block
        used += block['size'] * active
        at += block['size']
    assert at == segment['address'] + segment['total_size'], segment
    assert used == segment['allocated_size'] == segment['active_size'], segment


class Spans:
    """Memory that is a segment: what is taken out must be in it. Mappings may be a part of one, and adjoin others."""

    def __init__(self):
        self.spans = set()

    def add(self, a, b, mapped=False):
        for x, y in [s for s in self.spans if mapped and (a in s or b in s)]:
            self.spans.discard((x, y))
            a, b = min(a, x), max(b, y)
        self.spans.add((a, b))

    def take(self, a, b, mapped=False):
        if not mapped:
            self.spans.remove((a, b))
            return
        (x, y), = [s for s in self.spans if s[0] <= a and b <= s[1]]
        self.spans.remove((x, y))
        self.spans |= {s for s in ((x, a), (b, y)) if s[0] < s[1]}

    def has(self, a, b):
        return any(x <= a and b <= y for x, y in self.spans)


def check_events(snapshot, device, events, attached):
    """What is held in the end follows from the events, from the last one back to the first."""
    held, spans = {}, Spans()
    for segment in snapshot['segments']:
        if segment['device'] == device:
            spans.spans.add((segment['address'], segment['address'] + segment['total_size']))
            held.update({b['address']: b['size'] for b in segment['blocks'] if b['state'] == 'active_allocated'})
    for e in reversed(events):
        what = e['action']
        assert e['time_us'] > 1.5e15, e
        assert all(set(f) == {'filename', 'line', 'name'} for f in e['frames']), e
        if what == 'oom':
            continue
        a, b = e['addr'], e['addr'] + e['size']
        if what == 'alloc':
            assert (attached or spans.has(a, b)) and held.pop(a, None) == e['size'], e
        elif what == 'free_completed':
            assert (attached or spans.has(a, b)) and a not in held, e
            held[a] = e['size']
        elif what in ('segment_alloc', 'segment_map'):
            spans.take(a, b, what == 'segment_map')
        elif what in ('segment_free', 'segment_unmap'):
            spans.add(a, b, what == 'segment_unmap')
    assert attached or not held and not spans.spans, (held, spans.spans)
    times = [e['time_us'] for e in events]
    assert all(b > a - 1e6 for a, b in zip(times, times[1:])), 'the events are not in order'


def view(path, snapshot):
    spec = importlib.util.spec_from_file_location('viewer', path)
    viewer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(viewer)
    lines = viewer.trace(snapshot).count('\n')
    assert lines >= sum(map(len, snapshot['device_traces'])), lines
    assert f"segments: {len(snapshot['segments'])}\n" in viewer.segsum(snapshot)
    for report in (viewer.memory, viewer.segments):
        weights = [int(line.rsplit(' ', 1)[1]) for line in report(snapshot, format_flamegraph=str).splitlines()]
        assert sum(weights) == sum(s['total_size'] for s in snapshot['segments']), weights
    assert len(viewer.trace_plot(snapshot)) > 200 and len(viewer.segment_plot(snapshot)) > 200


def main():
    args = [a for a in sys.argv[1:] if a != '--attached']
    snapshot = load(args[0])
    for segment in snapshot['segments']:
        check_segment(segment)
    for device, events in enumerate(snapshot['device_traces']):
        check_events(snapshot, device, events, len(args) != len(sys.argv) - 1)
        sums = collections.Counter(), collections.Counter()
        for e in events:
            sums[0][e['action']] += 1
            sums[1][e['action']] += e['size']
        for action in sorted(sums[0]):
            print(device, action, sums[0][action], sums[1][action])
    print('segments', *((s['device'], s['segment_type'], s['is_expandable'], s['total_size'], s['allocated_size'],
                         len(s['blocks'])) for s in sorted(snapshot['segments'], key=lambda s: s['total_size'])))
    held = [(b['size'], next((f['name'] for f in b['frames'] if not f['name'].startswith('c10::')), '-'))
            for s in snapshot['segments'] for b in s['blocks'] if b['state'] == 'active_allocated']
    print('held', *sorted(held)[:8])
    if len(args) > 1:
        view(args[1], snapshot)


main()
