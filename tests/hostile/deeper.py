#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""deeper.py - more of what an ordinary user can do to a cudatrace of root's (attack.py): tests/hostile/deeper.py [NAME...]

Debug information that is nested without end, processes with masses of mappings or threads, and names in the formats that attack.py leaves out.
Needs root, gcc, `make standin cases-progs`. CUDATRACE: another binary. Prints `ok` and `not ok` lines.
"""
import ctypes
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

import attack
from attack import CT, LONGEST, OUT, NAMES, T, Serve, as_nobody, check

"x".encode("idna")  # loaded while it may be read
DEPTH = 1000000
MAPPINGS = 60000
THREADS = 4000

NESTED = """
	.section .debug_abbrev,"",@progbits
	.byte 1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 2, 0x2e, 1, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 3, 0x0b, 1, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long 2f - 1f
1:	.short 4
	.long 0
	.byte 8
	.byte 1
	.quad deep
	.quad 0x100000
	.byte 2
	.quad deep
	.quad 0x100000
	.rept {n}
	.byte 3
	.quad deep
	.quad 0x100000
	.endr
	.zero {n} + 2
2:
"""


def test_nested():
    """A function in the stack of a call whose debug information has blocks in blocks, deeper than any stack."""
    with open(f"{T}/deep.s", "w") as f:
        f.write(NESTED.format(n=DEPTH))
    with open(f"{T}/deep.c", "w") as f:
        f.write("int cudaStreamQuery(void *);\n__attribute__((noinline)) int deep(void) { return cudaStreamQuery(0) + 1; }\n"
                "int main(void) { for (int i = 0; i < 5; i++) deep(); return 0; }\n")
    subprocess.run(["gcc", "-no-pie", "-O1", "-o", f"{T}/deep", f"{T}/deep.c", f"{T}/deep.s", f"-L{OUT}/standin", "-l:libcudart.so.13"], check=True)
    p = subprocess.run([CT, "--stack", "--format", "json", "-e", "cudaStreamQuery", "-o", f"{T}/out", "--", f"{T}/deep"], stderr=subprocess.PIPE,
                       timeout=120, check=False, env={**os.environ, "LD_LIBRARY_PATH": f"{OUT}/standin"})
    check(f"status {p.returncode}: {p.stderr[-300:]}", p.returncode in (0, 1))
    with open(f"{T}/out", "rb") as f:
        rows = f.read().count(b'"cudaStreamQuery"')
    check(f"{rows} rows: {p.stderr[-300:]}", rows >= 5)
    return f"debug information nested {DEPTH} deep: 5 of 5 calls are shown"


def slowest_while(what, seconds=12):
    """The slowest scrape while an ordinary user does this, for so long, and until an honest program of root's was counted: on a busy machine
    serve may not know its library sooner."""
    honest = f"{T}/honest{os.getpid()}n{what.__name__}"[:60]
    os.symlink(f"{OUT}/cases/work", honest)
    with Serve() as s:
        pid = as_nobody(what)
        try:
            time.sleep(2)
            worst, first, counted = 0, time.monotonic(), None
            while not counted or time.monotonic() < first + seconds:
                check("the honest program is counted", time.monotonic() < first + LONGEST)
                subprocess.run([honest, "2", "return"], stdout=subprocess.DEVNULL, check=True, timeout=LONGEST)
                began = time.monotonic()
                counted = re.search(rb'launch_calls_total\{process="honest[^"]*"\} [1-9]', s.scrape())
                worst = max(worst, time.monotonic() - began)
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return worst


def mapper():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc


def many_mappings():
    libc, fd = mapper(), os.open(f"{T}/some.so", os.O_RDONLY)
    # every second page of the file: neighbours would become one mapping
    for i in range(MAPPINGS):
        libc.mmap(None, 4096, 5, 2, fd, (i % 2) * 4096 * 3)
    while True:
        at = libc.mmap(None, 4096, 5, 2, fd, 4096)
        libc.munmap(at, 4096)
        time.sleep(0.002)


def many_threads():
    libc, fd = mapper(), os.open(f"{T}/some.so", os.O_RDONLY)
    threading.stack_size(65536)

    def own_files():
        libc.unshare(0x400)  # CLONE_FILES: the kernel's iterator visits such a thread
        time.sleep(1000)
    for _ in range(THREADS):
        threading.Thread(target=own_files, daemon=True).start()
    while True:
        at = libc.mmap(None, 4096, 5, 2, fd, 4096)
        libc.munmap(at, 4096)
        time.sleep(0.002)


def test_mappings():
    """A process with masses of mappings that goes on to map: each time it is listed."""
    with open(f"{T}/some.so", "wb") as f:
        f.write(b"\x7fELF" + bytes(65536))
    os.chmod(f"{T}/some.so", 0o755)
    return f"{MAPPINGS} mappings of one process that goes on to map: slowest scrape {slowest_while(many_mappings):.2f} s"


def test_threads():
    """The same with masses of threads that have descriptors of their own."""
    with open(f"{T}/some.so", "wb") as f:
        f.write(b"\x7fELF" + bytes(65536))
    os.chmod(f"{T}/some.so", 0o755)
    return f"{THREADS} threads of one process that goes on to map: slowest scrape {slowest_while(many_threads):.2f} s"


def test_formats():
    """Names of programs in the formats that attack.py leaves out, and in the exposition."""
    n = 0
    with Serve("--processes", "50") as s:
        for name in NAMES:
            path = os.path.join(os.fsencode(T), name.replace(b"/", b"_")[:60] + b"x")
            os.symlink(f"{OUT}/cases/calls", path)
            for fmt in ("html", "perfetto", "nsys-sqlite"):
                p = subprocess.run([CT, "--format", fmt, "-o", f"{T}/out.{fmt}", "--", path, b"mix", b"2", b"2", b"2"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, timeout=120, check=False)
                check(f"{name} {fmt}: {p.returncode}: {p.stderr[-200:]}", p.returncode in (0, 1, 2))
                n += 1
                with open(f"{T}/out.{fmt}", "rb") as f:
                    out = f.read()
                if fmt == "html":
                    check(f"html: {name}", b"</script><script>" not in out and not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", out))
                if fmt == "nsys-sqlite":
                    sane = subprocess.run(["python3", "-c", "import sqlite3,sys;c=sqlite3.connect(sys.argv[1]);"
                                           "[r for (t,) in c.execute(\"select name from sqlite_master where type='table'\").fetchall() "
                                           "for r in c.execute('select * from '+t)]", f"{T}/out.{fmt}"], check=False)
                    check(f"nsys-sqlite: {name}", sane.returncode == 0)
            os.unlink(path)
        text = s.scrape()
        check("exposition: control bytes", not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text))
        text.decode()
        for line in text.decode().splitlines():
            check(f"exposition: {line}", line.startswith("#") or re.fullmatch(r'\w+(\{(\w+="(\\["\\n]|[^"\\])*",?)*\})? [-+\w.]+', line))
    return f"{len(NAMES)} names of programs in html, perfetto, nsys-sqlite ({n} traces) and in the exposition"


def test_handshakes():
    """Whole TLS handshakes from three clients of one address that do nothing else; another address is answered."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{T}/k",
                    "-out", f"{T}/c", "-subj", "/CN=x"], check=True, capture_output=True, timeout=240)
    with open(f"{T}/tls.yml", "w") as f:
        f.write("tls_server_config:\n  cert_file: c\n  key_file: k\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Serve("--web-config", f"{T}/tls.yml") as s:
        def busy():
            with open(f"/proc/{s.p.pid}/stat") as f:
                return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

        def client():
            until, n, refused = time.monotonic() + 8, 0, 0
            while time.monotonic() < until:
                try:
                    with socket.create_connection(("127.0.0.1", s.port), timeout=20, source_address=("127.0.0.2", 0)) as c, \
                            context.wrap_socket(c):
                        n += 1
                except OSError:
                    refused += 1
            with open(f"{T}/handshakes", "a") as f:
                f.write(f"{n} {refused}\n")
        open(f"{T}/handshakes", "w").close()
        os.chmod(f"{T}/handshakes", 0o666)
        before, worst, first = busy(), 0, time.monotonic()
        pids = [as_nobody(client) for _ in range(3)]
        until = time.monotonic() + 7
        while time.monotonic() < until:
            began = time.monotonic()
            with urllib.request.urlopen(f"https://127.0.0.1:{s.port}/metrics", timeout=LONGEST, context=context) as answer:
                check("a scrape", b"cudatrace_build_info" in answer.read())
            worst = max(worst, time.monotonic() - began)
            time.sleep(0.2)
        for pid in pids:
            os.waitpid(pid, 0)
        with open(f"{T}/handshakes") as f:
            rows = [tuple(map(int, line.split())) for line in f]
        n, refused = (sum(column) for column in zip(*rows))
        # 100 at once and 50 a second for one address (serve_peer.h). On a busy machine there may be fewer, of which none is refused.
        check(f"handshakes: {rows}", 0 < n <= 100 + 50 * (time.monotonic() - first))
        return f"{n} whole handshakes in 8 s, {refused} refused: {(busy() - before) / 8 * 100:.0f} % of a core, slowest scrape {worst:.2f} s"


if __name__ == "__main__":
    sys.exit(attack.main(globals()))
