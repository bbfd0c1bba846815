#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_busy.py LOG TRACE...: are the rows of each trace (JSON) what the program `busy` did, by its log?

No call has two rows, no row begins before or ends after its call did, no call is missing between two others of its thread, and
the end record's counts are those of the rows. Prints one line for each fault, at most ten, and the number of rows."""
import json
import struct
import sys

faults = 0


def fault(text):
    global faults
    faults += 1
    if faults <= 10:
        print(text)


def read_log(path):
    data = open(path, 'rb').read()
    at, threads = 0, []
    while at < len(data):
        (n,) = struct.unpack_from('Q', data, at)
        threads.append((at + 8, n))
        at += 8 + 16 * n
    return data, threads


def check(path, data, threads):
    seen, unfinished, end = {}, 0, None
    for line in open(path):
        r = json.loads(line)
        if r['type'] == 'end':
            end = r
        if r['type'] != 'call' or r['name'] != 'cudaDeviceSetLimit':
            continue
        value = int(str(r['args']['value']), 0)
        thread, i = value >> 32, value & 0xffffffff
        what = f'{path}: thread {thread}, call {i}'
        if value in seen:
            fault(f'{what} has two rows')
        seen[value] = r
        unfinished += 'unfinished' in r
        at, n = threads[thread]
        if i >= n:
            fault(f'{what}: the program made {n}')
            continue
        begin, over = struct.unpack_from('QQ', data, at + 16 * i)
        if r['start_ns'] < begin or r['start_ns'] + r['duration_ns'] > over:
            fault(f'{what} lasted {over - begin} ns, its row says {r["duration_ns"]}'
                  f'{", unfinished" if "unfinished" in r else ""}')
    for thread in range(len(threads)):
        calls = sorted(v & 0xffffffff for v in seen if v >> 32 == thread)
        if calls and calls[-1] - calls[0] + 1 != len(calls):
            fault(f'{path}: thread {thread}: {calls[-1] - calls[0] + 1 - len(calls)} calls are missing')
    if end is None:
        fault(f'{path}: no end record')
    elif end['unfinished'] != unfinished or any(end['lost'].values()):
        fault(f'{path}: {unfinished} unfinished rows; the end record: {end}')
    return len(seen)


def main():
    data, threads = read_log(sys.argv[1])
    rows = [check(path, data, threads) for path in sys.argv[2:]]
    print('rows', sum(rows), 'faults', faults)
    # where other work has all processors a short trace may see no call at all
    return faults != 0 or not any(rows)


sys.exit(main())
