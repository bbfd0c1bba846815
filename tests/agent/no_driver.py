# SPDX-License-Identifier: BSD-2-Clause
"""no_driver.py AGENT LIBCUPTI - loads the agent with a libcupti where there is no GPU, plays the user side (wire/agent_wire.h),
and prints what the agent says."""
import ctypes
import socket
import struct
import sys

HELLO, NAMES, STARTED, RECORDS, SAY, BYE, START, FUNCS = 1, 2, 3, 4, 5, 6, 16, 17
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
agent = ctypes.CDLL(sys.argv[1])
err = agent.cudatrace_agent_start(b"v1 fd=%d cupti=%s" % (theirs.detach(), sys.argv[2].encode()))
if err:
    sys.exit("did not start: %d" % err)
names = 0
ours.settimeout(20)
while True:
    packet = ours.recv(65536)
    if not packet:
        sys.exit("hung up")
    size, kind = struct.unpack_from("<IH", packet)
    assert size == len(packet)
    if kind == HELLO:
        print("version", struct.unpack_from("<I", packet, 8 + 8 + 32 + 4)[0])
    elif kind == NAMES:
        n, flags = struct.unpack_from("<II", packet, 8)
        names += n
        if flags & 1:
            print("names:", names)
            start = struct.pack("<IHH8IQ", 48, START, 0, 1, 0x27, 0, 0, 1 << 20, 4, 0, 0, 0)
            assert len(start) == 48
            ours.send(start)
            ours.send(struct.pack("<IHHII", 16, FUNCS, 0, 0, 1))
    elif kind == SAY:
        print(packet[12:].decode())
    elif kind == BYE:
        print("bye")
        break
