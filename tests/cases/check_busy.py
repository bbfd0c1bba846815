#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_busy.py LOG TRACE..., or check_busy.py PID:LOG PID:LOG TRACE...: are the rows of each trace (JSON) what the program `busy` did, by
its log? With several of them, each with its process.

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


def check(path, logs):
    seen, unfinished, end = {}, 0, None
    for line in open(path):
        r = json.loads(line)
        if r['type'] == 'end':
            end = r
        if r['type'] != 'call' or r['name'] != 'cudaDeviceSetLimit':
            continue
        value = int(str(r['args']['value']), 0)
        thread, i, pid = value >> 32, value & 0xffffffff, r['pid'] if None not in logs else None
        what = f'{path}: process {r["pid"]}, thread {thread}, call {i}'
        if (pid, value) in seen:
            fault(f'{what} has two rows')
        seen[pid, value] = r
        data, threads = logs[pid]
        unfinished += 'unfinished' in r
        at, n = threads[thread]
        if i >= n:
            fault(f'{what}: the program made {n}')
            continue
        begin, over = struct.unpack_from('QQ', data, at + 16 * i)
        if r['start_ns'] < begin or r['start_ns'] + r['duration_ns'] > over:
            fault(f'{what} lasted {over - begin} ns, its row says {r["duration_ns"]}'
                  f'{", unfinished" if "unfinished" in r else ""}')
    for pid, (_, threads) in logs.items():
        for thread in range(len(threads)):
            calls = sorted(v & 0xffffffff for p, v in seen if p == pid and v >> 32 == thread)
            if calls and calls[-1] - calls[0] + 1 != len(calls):
                fault(f'{path}: process {pid}, thread {thread}: {calls[-1] - calls[0] + 1 - len(calls)} calls are missing')
        if pid and not any(p == pid for p, _ in seen):
            print(f'{path}: no call of process {pid}')
    if end is None:
        fault(f'{path}: no end record')
    elif end['unfinished'] != unfinished or any(end['lost'].values()):
        fault(f'{path}: {unfinished} unfinished rows; the end record: {end}')
    return len(seen)


def main():
    args, logs = sys.argv[1:], {}
    while args[0].split(':')[0].isdigit():
        pid, path = args.pop(0).split(':', 1)
        logs[int(pid)] = read_log(path)
    if not logs:
        logs[None] = read_log(args.pop(0))
    rows = [check(path, logs) for path in args]
    print('rows', sum(rows), 'faults', faults)
    # where other work has all processors a short trace may see no call at all
    return faults != 0 or not any(rows)


sys.exit(main())
