# SPDX-License-Identifier: BSD-2-Clause
"""slow.py - a disk on which each write takes its time: a file system in memory, served by a thread through the kernel's FUSE.

It has one folder, and what it takes to create, write, read, cut and rename files there. A process that writes waits in write().
"""
import ctypes
import os
import stat
import struct
import threading
import time

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT, CREATE, BATCH_FORGET = 1, 2, 3, 4, 14, 15, 16, 18, 20, 25, 26, 35, 42
UNLINK, RENAME, RENAME2 = 10, 12, 45
ENOENT, ENOSYS = 2, 38
ROOT = 1
DIRECT = 1  # a file's reads and writes come to us as they are made
libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """Mounted at a folder from its beginning to close()."""

    def __init__(self, folder, delay):
        """delay(): seconds that the next write takes."""
        self.folder, self.delay = folder, delay
        self.names, self.files, self.writes = {}, {}, 0
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"slow", os.fsencode(folder), b"fuse", 0, options):
            os.close(self.fd)
            raise OSError(ctypes.get_errno(), "FUSE cannot be mounted")
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        libc.umount2(os.fsencode(self.folder), 2)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:  # unmounted
                os.close(self.fd)
                return
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            if opcode in (FORGET, BATCH_FORGET):
                continue
            answer = self.answer(opcode, node, request[40:])
            error, data = (answer, b"") if isinstance(answer, int) else (0, answer)
            try:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
            except OSError:  # nobody waits for it any more
                pass

    def attributes(self, node):
        size = 0 if node == ROOT else len(self.files[node])
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o644
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def answer(self, opcode, node, data):
        """The data of the answer, or an errno."""
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 1 << 5, 0, 0, 65536, 1, 0, 0, 0)
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == SETATTR:
            valid, _, _, size = struct.unpack_from("<IIQQ", data)
            if valid & 8:
                self.files[node][size:] = bytes(max(0, size - len(self.files[node])))
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == LOOKUP:
            name = data.split(b"\0")[0]
            return self.entry(self.names[name]) if name in self.names else ENOENT
        if opcode == CREATE:
            node = ROOT + 1 + len(self.files)
            self.names[data[16:].split(b"\0")[0]] = node
            self.files[node] = bytearray()
            return self.entry(node) + struct.pack("<QII", 0, DIRECT, 0)
        if opcode in (OPEN, RELEASE, FSYNC, FLUSH):
            return struct.pack("<QII", 0, DIRECT, 0) if opcode == OPEN else b""
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", data)
            return bytes(self.files[node][offset:offset + size])
        if opcode == WRITE:
            _, offset, size = struct.unpack_from("<QQI", data)
            time.sleep(self.delay())
            self.writes += 1
            file = self.files[node]
            file.extend(bytes(max(0, offset - len(file))))
            file[offset:offset + size] = data[40:40 + size]
            return struct.pack("<II", size, 0)
        if opcode == UNLINK:
            return b"" if self.names.pop(data.split(b"\0")[0], None) else ENOENT
        if opcode in (RENAME, RENAME2):
            old, new = data[8 if opcode == RENAME else 16:].split(b"\0")[:2]
            self.names[new] = self.names.pop(old)
            return b""
        return ENOSYS
