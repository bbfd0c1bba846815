#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""uprobes.py - hooks and the kernel's uprobes on one function: tests/hooks/uprobes.py PROGRAM LIBRARY. Needs root and tracefs.

PROGRAM is beside.c, LIBRARY the file that has victim_add(). Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`.
"""
import os
import re
import subprocess
import sys
import tempfile

program, library = sys.argv[1], os.path.realpath(sys.argv[2])
group = 'cudatrace_hooks_%d' % os.getpid()
failed = False
# A mount of our own, which is gone with us.
TRACEFS = tempfile.mkdtemp()
mounted = subprocess.run(['mount', '-t', 'tracefs', 'none', TRACEFS], stderr=subprocess.DEVNULL, check=False).returncode == 0


def leave(status):
    if mounted:
        subprocess.run(['umount', TRACEFS], check=False)
    os.rmdir(TRACEFS)
    sys.exit(status)


def write(name, text):
    fd = os.open(os.path.join(TRACEFS, name), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def file_offset(symbol):
    """Where in the file the function begins."""
    def output(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    at = [int(line.split()[0], 16) for line in output('nm', '-D', library).splitlines() if line.split()[-1] == symbol][0]
    for offset, address, size in re.findall(r'^ *LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)', output('readelf', '-lW', library), re.M):
        if int(address, 16) <= at < int(address, 16) + int(size, 16):
            return at - int(address, 16) + int(offset, 16)
    raise ValueError(symbol)


def uprobe(on):
    if on:
        write('uprobe_events', 'p:%s/add %s:%#x\n' % (group, library, file_offset('victim_add')))
        write('events/%s/add/enable' % group, '1')
    elif os.path.exists('%s/events/%s' % (TRACEFS, group)):
        write('events/%s/add/enable' % group, '0')
        write('uprobe_events', '-:%s/add\n' % group)


def hits():
    with open(TRACEFS + '/uprobe_profile', encoding='ascii', errors='replace') as f:
        for line in f:
            if line.split()[0].endswith(library) and line.split()[-2] == 'add':
                return int(line.split()[-1])
    return -1


def test(name, steps):
    """Each step: what is done, and what is then expected: first byte (None: the file's), calls seen, what the engine says."""
    global failed
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    why, of_file = None, None

    def ask(what):
        child.stdin.write(what + '\n')
        child.stdin.flush()
        return child.stdout.readline().split()
    try:
        of_file = ask('call')[0]
        for number, (what, *want) in enumerate(steps):
            if what in ('+uprobe', '-uprobe'):
                uprobe(what[0] == '+')
                continue
            if what == 'hits':
                got, want = [hits()], want
            else:
                answer = ask(what)
                got = [answer[0], int(answer[1]), int(answer[2])] if answer else ['it died', child.wait(), 0]
                want = [of_file if want[0] is None else want[0]] + want[1:]
            if got != want:
                why = 'step %d, %s: %s, not %s' % (number, what, got, want)
                break
    except (OSError, IndexError) as e:
        why = str(e)
    finally:
        uprobe(False)
        child.kill()
        child.wait()
    print('not ok %s: %s' % (name, why) if why else 'ok ' + name)
    failed |= bool(why)


if not mounted or not os.access(TRACEFS + '/uprobe_events', os.W_OK):
    print('skip uprobes: tracefs cannot be mounted here')
    leave(0)
BREAKPOINT = 4  # enum hook_result
test('a uprobe that comes and goes', [
    ('on', 'e9', 0, 0), ('call', 'e9', 10, 0), ('check', 'e9', 10, 1),
    ('+uprobe',), ('call', 'cc', 10, 0), ('hits', 10), ('check', 'cc', 10, 10),
    ('-uprobe',), ('call', None, 10, 0), ('check', 'e9', 10, 101), ('call', 'e9', 20, 0),
    ('off', None, 20, 0), ('call', None, 20, 0)])
test('a uprobe that is there at the end', [
    ('on', 'e9', 0, 0), ('+uprobe',), ('off', 'cc', 0, 1), ('call', 'cc', 0, 0), ('hits', 10),
    ('-uprobe',), ('call', None, 0, 0)])
test('a uprobe that was there before', [
    ('+uprobe',), ('on', 'cc', 0, BREAKPOINT), ('call', 'cc', 0, 0), ('hits', 10),
    ('-uprobe',), ('on', 'e9', 0, 0), ('call', 'e9', 10, 0), ('off', None, 10, 0)])
leave(failed)
