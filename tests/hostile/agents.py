#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""agents.py - a program that talks for its agent and its hooks: tests/hostile/agents.py [NAME...]

The program takes the socket and the key out of its environment, greets as the agent does, or not, and sends messages at random: cut off, too
long, with false lengths, numbers and sums, and pieces of right ones. An honest program runs beside it. Needs root, `make standin cases-progs`.
CUDATRACE: another binary. SEED: a number; a random one is taken and printed. Prints `ok` and `not ok` lines.
"""
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys

import attack
from attack import CT, OUT, T, check

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{OUT}/standin"}
LIMIT_S = 300
CALLS = 20
CROWD = 1100
PLACES = 1024  # of one user, if there is no other
ODD = (0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff)


def number(rng, size):
    n = rng.choice(ODD) if rng.randrange(2) else rng.randrange(1 << (8 * size))
    return (n & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def body(rng):
    return b"".join(rng.choice((number(rng, rng.choice((1, 2, 4, 8))), b"\x1b[2J\xc2\x9b31m", b"100 calls, 0 lost\n", rng.randbytes(rng.randrange(40))))
                    for _ in range(rng.choice((0, 1, 3, 10, 60))))


def record(rng):
    """The head of a record: size, kind, and what follows, or nearly so."""
    rest = body(rng) + bytes(rng.choice((0, 16, 64, 200)))
    rest += bytes(-len(rest) % 8)
    size = rng.choice((len(rest) + 4, len(rest) + 4, 0, 3, 0xffff, len(rest) * 2)) & 0xffff
    return size.to_bytes(2, "little") + rng.randrange(64).to_bytes(2, "little") + rest


def message(rng, types):
    rest = b"".join(record(rng) for _ in range(rng.randrange(6))) if rng.randrange(3) == 0 else body(rng)
    size = rng.choice((8 + len(rest),) * 6 + (0, 7, len(rest), 1 << 31, (1 << 32) - 1))
    text = struct.pack("<IHH", size, rng.choice(types), 0) + rest
    return text[:rng.randrange(1, len(text) + 1)] if rng.randrange(8) == 0 else text + bytes(rng.choice((0, 0, 0, 0, 65536)))


def hostile(way, seed):
    """What the program does; no return value: whatever becomes of its socket is right."""
    rng = random.Random(seed)
    words = dict(word.split("=", 1) for word in os.environ["CUDATRACE_AGENT" if way == "agent" else "CUDATRACE_HOOKS"].split() if "=" in word)
    path = re.sub("%([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), words["path"])
    key = words["key"].encode()
    hello = {"agent": struct.pack("<IHHII32sIIII", 64, 1, 0, 0x61746463, 1, key, os.getpid(), 130001, 13000, 0),
             "hooks": struct.pack("<IHHII32sII", 56, 1, 0, 0x6b686463, HOOKS_VERSION, key, os.getpid(), 0)}[way]
    types = (2, 3, 4, 5, 6, 7, 1, 16, 0, 0xffff)
    names = struct.pack("<IHHII", 16, 2, 0, 0, 1)
    started = struct.pack("<IHHiIII", 24, 3, 0, 0, 0, 0xffff, 0)
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(5)
        try:
            s.connect(("\0" + path[1:]) if path.startswith("@") else path)
            if rng.randrange(8):
                s.send(hello)
            if way == "agent" and rng.randrange(4):
                s.send(names)
                s.send(started)
            for _ in range(rng.choice((1, 5, 50))):
                if way == "hooks" and rng.randrange(16) == 0:
                    r, w = os.pipe()
                    socket.send_fds(s, [struct.pack("<IHHIIQ", 24, 6, 0, 1, 0, 1)], [r] * rng.choice((1, 2)))
                    os.close(r)
                    os.close(w)
                s.send(message(rng, types))
        except OSError:
            pass
        s.close()


with open("wire/hooks_wire.h") as wire:
    HOOKS_VERSION = int(re.search(r"#define HOOKS_VERSION (\d+)", wire.read())[1])


def beside(way, options, seed):
    """One hostile program, then an honest one, in one trace."""
    out = f"{T}/out"
    honest = f"{T}/honest"
    if not os.path.exists(honest):
        os.symlink(f"{OUT}/cases/work", honest)
    mine = f"env -u LD_PRELOAD -u CUDA_INJECTION64_PATH {sys.executable} {os.path.abspath(__file__)} --hostile {way} {seed}"
    p = subprocess.run([CT, *options, "--format", "json", "-o", out, "--", "sh", "-c", f"{mine} & {honest} {CALLS} return; wait; {honest} {CALLS} return"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False,
                       env={**ENV, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))})
    check(f"status {p.returncode}: {p.stderr[-400:]}", p.returncode == 0 and b"Sanitizer" not in p.stderr)
    bad = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", p.stderr)
    check(f"control bytes in messages: {bad and p.stderr[max(0, bad.start() - 60):bad.end() + 20]}", not bad)
    check(f"spoke for cudatrace: {p.stderr[-400:]}", not re.search(rb"^(cudatrace: |)(warning: |error: )?100 calls, 0 lost", p.stderr, re.M))
    with open(out, "rb") as f:
        rows = [json.loads(line) for line in f]
    calls = sum(row["type"] == "call" and row.get("process") == "honest" and row.get("name") == "cudaLaunchKernel" for row in rows)
    check(f"{calls} launches of the honest program: {p.stderr[-600:]}", calls == 2 * CALLS)
    if way == "agent":
        kernels = sum(row["type"] == "kernel" and row.get("process") == "honest" for row in rows)
        check(f"{kernels} kernels of the honest program: {p.stderr[-600:]}", kernels == 2 * CALLS)
    check("an end", rows[-1]["type"] == "end")
    return len(re.findall(rb"invalid data|did not receive what to record|does not accept", p.stderr))


def rounds(way, options, n):
    refused = 0
    for i in range(n):
        try:
            refused += beside(way, options, SEED + i)
        except attack.Held as e:
            raise attack.Held(f"SEED={SEED + i}: {e}") from e
    check(f"SEED={SEED}: nothing was said of {n} of them", refused)
    return f"{n} programs that talk for {way}, SEED={SEED}: all rows of the honest one, {refused} refusals that are said"


# As many connections that greet as its argument says, which stay until nobody reads what this prints.
CROWD_PY = r"""
import os, re, resource, select, socket, struct, sys
words = dict(w.split("=", 1) for w in os.environ["CUDATRACE_AGENT"].split() if "=" in w)
path = re.sub("%([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), words["path"])
greeting = struct.pack("<IHHII32sIIII", 64, 1, 0, 0x61746463, 1, words["key"].encode(), os.getpid(), 130001, 13000, 0)
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
made = []
for _ in range(int(sys.argv[1])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path.replace("@", "\0", 1) if path.startswith("@") else path)
    try:
        s.send(greeting)
        s.send(struct.pack("<IHHII", 16, 2, 0, 0, 1))
        s.recv(65536)  # it has a place, or none
    except OSError:
        pass
    made.append(s)
print(len(made), flush=True)
stays = select.poll()
stays.register(1, select.POLLERR)
stays.poll()
"""


def test_places():
    """A user's program takes as many places for agents as it can get; root's program, which comes then, has one."""
    with open(f"{T}/crowd.py", "w", encoding="utf-8") as f:
        f.write(CROWD_PY)
    mine = f"env -u LD_PRELOAD -u CUDA_INJECTION64_PATH setpriv --reuid=65534 --regid=65534 --clear-groups {sys.executable} {T}/crowd.py {CROWD}"
    p = subprocess.run([CT, "--gpu", "--strict", "--format", "json", "-o", f"{T}/out", "--", "sh", "-c",
                        f"{mine} | (read n; echo $n >&2; {OUT}/cases/work {CALLS} return > /dev/null)"],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False, env=ENV)
    check(f"status {p.returncode}: {p.stderr[-600:]}", p.returncode == 3 and b"Sanitizer" not in p.stderr)
    check(f"connections: {p.stderr[-600:]}", re.search(rb"^%d$" % CROWD, p.stderr, re.M))
    with open(f"{T}/out", encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    kernels = sum(row["type"] == "kernel" and row.get("process") == "work" for row in rows)
    check(f"{kernels} kernels of the honest program: {p.stderr[-600:]}", kernels == CALLS)
    said = re.search(rb"; (\d+) processes found no place for their hooks or agents: if they used CUDA, that is not seen, from [\d.]+ s on", p.stderr)
    check(f"what found no place: {p.stderr[-600:]}", said and CROWD - PLACES <= int(said[1]) < CROWD)
    row = [row for row in rows[-1]["not_seen"] if row["reason"] == "no_place"]
    check(f"rows {row}", len(row) == 1 and row[0]["text"] == "user 65534" and row[0]["count"] == int(said[1]))
    return f"{CROWD} connections of one user, {int(said[1])} of which found no place: all {CALLS} kernels of another user's program"


# Sends texts with one and more descriptors of many sorts; prints how many descriptors cudatrace (argv 3) has before and behind that.
DESCRIPTORS_PY = r"""
import os, re, socket, struct, sys, time
way, version, tracer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
words = dict(w.split("=", 1) for w in os.environ["CUDATRACE_AGENT" if way == "agent" else "CUDATRACE_HOOKS"].split() if "=" in w)
path = re.sub("%([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), words["path"])
key = words["key"].encode()
greetings = {"agent": [struct.pack("<IHHII32sIIII", 64, 1, 0, 0x61746463, 1, key, os.getpid(), 130001, 13000, 0), struct.pack("<IHHII", 16, 2, 0, 0, 1)],
             "hooks": [struct.pack("<IHHII32sII", 56, 1, 0, 0x6b686463, version, key, os.getpid(), 0)]}
count = lambda: len(os.listdir(f"/proc/{tracer}/fd"))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(path.replace("@", "\0", 1) if path.startswith("@") else path)
for text in greetings[way]:
    s.send(text)
s.settimeout(20)
s.recv(65536)  # it has a place
odd = [os.open("/dev/zero", os.O_RDWR), os.open("/", os.O_RDONLY), os.memfd_create("x"), *os.pipe(), os.open("/proc/self/mem", os.O_RDWR), s.fileno()]
before = count()
for n in (1, 2, 3, 5, 100, 253):
    for i in range(40):
        socket.send_fds(s, [struct.pack("<IHHHH", 16, 3 if way == "hooks" else 5, 0, 1, 4) + b"text"], [odd[(n + i) % len(odd)]] * n)
until = time.monotonic() + 60
while count() > before + 20 and time.monotonic() < until:  # some are of messages that have not been read
    time.sleep(0.1)
print("descriptors", before, count(), file=sys.stderr)
"""


def test_descriptors():
    """Messages with more descriptors than any has: none of them stays open in cudatrace."""
    with open(f"{T}/descriptors.py", "w", encoding="utf-8") as f:
        f.write(DESCRIPTORS_PY)
    said = []
    for way, option in (("hooks", "--source=hooks"), ("agent", "--gpu")):
        mine = f"env -u LD_PRELOAD -u CUDA_INJECTION64_PATH {sys.executable} {T}/descriptors.py {way} {HOOKS_VERSION} $PPID"
        p = subprocess.run([CT, option, "-o", f"{T}/out", "--", "sh", "-c", f"{mine}; true"], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=LIMIT_S, check=False, env=ENV)
        found = re.search(rb"descriptors (\d+) (\d+)", p.stderr)
        check(f"{way}: status {p.returncode}: {p.stderr[-400:]}", p.returncode == 0 and found)
        check(f"{way}: {found[0]}", int(found[2]) <= int(found[1]) + 20)
        said.append(f"{way}: {int(found[1])} before, {int(found[2])} then")
    return "240 messages with 14 560 descriptors each way; descriptors of cudatrace, " + ", ".join(said)


def test_agent():
    return rounds("agent", ["--gpu"], attack.times(10))


def test_hooks():
    return rounds("hooks", ["--source=hooks"], attack.times(4))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--hostile":
        hostile(sys.argv[2], int(sys.argv[3]))
        sys.exit(0)
    sys.exit(attack.main(globals()))
