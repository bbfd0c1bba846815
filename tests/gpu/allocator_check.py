#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""allocator_check.py - tests/gpu/allocator_check.py BOOK SAID SNAPSHOT: does `mem --layers allocator --json` have what PyTorch's own statistics have, and the snapshot of
`--memory-viz` the segments and blocks of PyTorch's own one?

Prints a line for each number; those that differ begin with `wrong`. The status is 1 if there is one.
"""
import json
import pickle
import sys

book, said = (json.load(open(path, encoding='utf-8')) for path in sys.argv[1:3])
end, then = said['end'], said.get('then')
rows = [b for b in book['blocks'] if b['device'] == 0]
if len(rows) != 1:
    sys.exit(f'wrong: {len(rows)} rows for device 0')
row = rows[0]


def since(name):
    return end[name] - (then[name] if then else 0)


pairs = [
    ('allocated', row['allocated'], end['allocated_bytes.all.current']),
    ('its peak', row['peak_bytes'], end['allocated_bytes.all.peak']),
    ('reserved', row['reserved'], end['reserved_bytes.all.current']),
    ('its peak', row['reserved_peak'], end['reserved_bytes.all.peak']),
    ('given out', row['taken'], since('allocated_bytes.all.allocated')),
    ('blocks given out', row['allocations'], since('allocation.all.allocated')),
    ('blocks taken back', row['frees'] + row['unseen_allocations'], since('allocation.all.freed')),
    ('before', row['before'], then['allocated_bytes.all.current'] if then else 0),
    ('out of memory', row['out_of_memory'], since('num_ooms')),
    ('reports missing', row['reports_missing'], 0),
    ('reports wrong', row['reports_wrong'], 0),
]
if not then:
    pairs += [
        ('in use', row['in_use_bytes'], end['allocated_bytes.all.current']),
        ('longest free stretch', row['segments']['longest_free_bytes'], said['longest_free']),
    ]
snapshot = pickle.load(open(sys.argv[3], 'rb'))
if not then:
    ours = {s['address']: (s['total_size'], s['allocated_size'], [(b['address'], b['size']) for b in s['blocks'] if b['state'] != 'inactive'])
            for s in snapshot['segments']}
    theirs = {a: (size, used, [tuple(b) for b in blocks]) for a, size, used, blocks in said['segments']}
    pairs += [('segments of the snapshot', len(ours), len(theirs)),
              ('segments with other blocks', sum(ours.get(a) != theirs[a] for a in theirs), 0)]
frames = [f['filename'] for e in snapshot['device_traces'][0] if e['action'] == 'alloc' for f in e['frames']]
pairs.append(('a line of the program is among the frames', any(f.endswith('allocator.py') for f in frames), True))
for name, got, want in pairs:
    print('right' if got == want else 'wrong', name, got, want)
for by in ('by_operator', 'by_stack'):
    total = sum(r['taken'] for r in row[by])
    print('right' if total == row['taken'] else 'wrong', by, total, row['taken'])
    for r in sorted(row[by], key=lambda r: -r['at_peak'])[:6]:
        print(' ', r.get('operator', r.get('site')), r['at_peak'], r['allocations'])
sys.exit(any(got != want for _, got, want in pairs))
