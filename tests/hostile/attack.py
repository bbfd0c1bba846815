#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attack.py - what an ordinary user can do to a cudatrace of root's: tests/hostile/attack.py [NAME...]

Attacks as user 65534 where it takes a user, and says how many tries there were; docs/security.md has the table. Needs root, `make standin
cases-progs`. CUDATRACE: another binary, as one with AddressSanitizer. TRIES multiplies the numbers. Prints `ok` and `not ok` lines.
"""
import ctypes
import glob
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import machine  # noqa: E402

CT = os.environ.get("CUDATRACE", "./cudatrace")
OUT = os.path.abspath(".output")
LONGEST = 240  # seconds that one thing may take on a machine that is busy with other tests
TRIES = float(os.environ.get("TRIES", "1"))
T = tempfile.mkdtemp(prefix="cudatrace-attack-")
os.chmod(T, 0o755)
rng = random.Random(7)


class Held(Exception):
    """It did not hold."""


def times(n):
    return max(1, int(n * TRIES))


def check(what, good):
    if not good:
        raise Held(what)


class Serve:
    def __init__(self, *args):
        self.args = ("--max-cost", "off", *args)  # each call is counted, however many programs others launch

    def __enter__(self):
        self.port = machine.free_port()
        self.err = open(f"{T}/serve.err", "w+")
        self.p = subprocess.Popen([CT, "serve", "-v", "--kernels", "20", "--listen", f"127.0.0.1:{self.port}", *self.args], stderr=self.err,
                                  stdout=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while "cudatrace: ready" not in self.said():
            check("serve begins", self.p.poll() is None and time.monotonic() < until)
            time.sleep(0.05)
        return self

    def said(self):
        with open(f"{T}/serve.err", errors="replace") as f:
            return f.read()

    def scrape(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=LONGEST) as answer:
            return answer.read()

    def __exit__(self, *_):
        alive = self.p.poll() is None
        if alive:
            self.p.send_signal(signal.SIGINT)
        self.p.wait(LONGEST)
        check(f"serve lives ({self.p.returncode})", alive and self.p.returncode == 0)
        check("a sanitizer's word", "Sanitizer" not in self.said())


def mutated(data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 2, 4, 16, 64))):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            data[at:at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\0\0\0\0\0\0\0\x80", os.urandom(8)))
        elif how == 2:
            del data[at:at + rng.randrange(64)]
            data += b"\0"
        else:
            data[at:at] = data[:rng.randrange(64)]
    return bytes(data)


def run(*args):
    """A command over a file that was made to harm: it ends by itself, by no signal, and without a sanitizer's word."""
    # what a command that refuses its file leaves at its end is no harm
    p = subprocess.run([CT, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                       env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    check(f"{args}: status {p.returncode}: {p.stderr[-300:]}", 0 <= p.returncode < 10 and b"Sanitizer" not in p.stderr)
    return p


def test_http():
    pieces = [b"GET ", b"HEAD ", b"POST ", b"/metrics", b"/", b"\0", b" HTTP/1.1\r\n", b" HTTP/9.9\r\n", b"Host: x\r\n", b"\r\n", b"\r\n\r\n",
              b"Content-Length: 18446744073709551615\r\n", b"Transfer-Encoding: chunked\r\n", b"Authorization: Basic " + b"A" * 9000 + b"\r\n",
              b"Accept: " + b"a/b;q=0.1," * 500 + b"\r\n", b"%00%ff", b"?" * 3000, b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n",
              b"\xff\xfe", b"ffffffffffffffff\r\n", b" \t", b"Upgrade: h2c\r\n", b"http://[::", b"//" * 100]
    n = times(4000)
    with Serve() as s:
        for i in range(n):
            with socket.create_connection(("127.0.0.1", s.port), timeout=20) as c:
                try:
                    c.sendall(b"".join(rng.choices(pieces, k=rng.randrange(1, 40))))
                    if i % 7 == 0:
                        c.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
                    if i % 3 == 0:
                        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                except OSError:
                    pass
            if i % 500 == 0:
                check("a scrape", b"cudatrace_build_info" in s.scrape())
        check("a scrape", b"cudatrace_build_info" in s.scrape())
        check("descriptors", len(os.listdir(f"/proc/{s.p.pid}/fd")) < 400)
    return f"{n} connections with requests that are none, pipelined ones, resets"


def test_tls():
    """First messages of a handshake that are damaged, and what is said after one that is whole."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{T}/k",
                    "-out", f"{T}/c", "-subj", "/CN=x"], check=True, capture_output=True, timeout=240)
    with open(f"{T}/tls.yml", "w") as f:
        f.write("tls_server_config:\n  cert_file: c\n  key_file: k\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="x").do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello, n = outgoing.read(), times(1500)
    with Serve("--web-config", f"{T}/tls.yml") as s:
        for i in range(n):
            with socket.create_connection(("127.0.0.1", s.port), timeout=20, source_address=("127.0.0.2", 0)) as c:
                try:
                    if i % 10:
                        c.sendall(mutated(hello) if i % 3 else hello + os.urandom(300))
                    else:
                        with context.wrap_socket(c) as w:
                            w.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * (i % 90))
                            os.write(w.fileno(), os.urandom(100))
                except OSError:
                    pass
            if i % 300 == 0:
                with urllib.request.urlopen(f"https://127.0.0.1:{s.port}/metrics", timeout=240, context=context) as answer:
                    check("a scrape", b"cudatrace_build_info" in answer.read())
    return f"{n} damaged handshakes"


def test_web_config():
    good = b"tls_server_config:\n  cert_file: c\n  key_file: k\nbasic_auth_users:\n  a: $2y$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"
    n = times(30)
    for _ in range(n):
        with open(f"{T}/web.yml", "wb") as f:
            f.write(rng.choice((b"", b"[" * 5000, b"&a [*a]\n", b"a: &a [1]\nb: *a\n")) + mutated(good))
        check("refused", run("serve", "--listen", "192.0.2.1:1", "--web-config", f"{T}/web.yml").returncode == 1)
    return f"{n} files for --web-config"


def test_recordings():
    seeds = [open(p, "rb").read() for p in glob.glob("tests/traces/*.ctrace")]
    commands = (("replay",), ("info",), ("stat",), ("mem",), ("advise",), ("export", "--to", "chrome", "-o", "-"), ("export", "--to", "json", "-o", "-"),
                *(("replay", "--format", fmt, "-o", f"{T}/as.{fmt}") for fmt in
                  ("arrow", "perfetto", "nsys-sqlite", "html", "speedscope", "csv", "otlp-json", "flame")),
                ("replay", "--format", "folded"), ("merge", "-o", f"{T}/merged", "tests/traces/calls.ctrace"))
    n = times(270)
    for i in range(n):
        with open(f"{T}/r.ctrace", "wb") as f:
            f.write(mutated(rng.choice(seeds)))
        run(*commands[i % len(commands)], f"{T}/r.ctrace")
        if os.path.exists(f"{T}/merged"):
            os.unlink(f"{T}/merged")
    return f"{n} damaged recordings to replay in 11 formats, info, stat, mem, advise, merge"


def test_baselines():
    run("stat", "--save", f"{T}/saved", "tests/traces/calls.ctrace")
    good = open(f"{T}/saved", "rb").read()
    n = times(150)
    for _ in range(n):
        with open(f"{T}/bad", "wb") as f:
            f.write(rng.choice((b"", b"[" * 100000, b'{"a":' * 10000, b"1e999999,")) + mutated(good))
        run("compare", f"{T}/saved", f"{T}/bad")
    return f"{n} damaged baselines to compare"


def as_nobody(what):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        what()
    except Exception as e:  # pylint: disable=broad-except
        print(f"as a user: {type(e).__name__}: {e}", flush=True)
    finally:
        os._exit(0)


def test_libraries():
    """Damaged copies of a library of CUDA's, mapped by a user; an honest program is counted."""
    good = open(f"{OUT}/standin/libcudart.so.13", "rb").read()
    os.mkdir(f"{T}/libs")
    n = times(600)
    for i in range(n):
        with open(f"{T}/libs/libcudart.so.{i}", "wb") as f:
            f.write(mutated(good))
        os.chmod(f"{T}/libs/libcudart.so.{i}", 0o755)

    def maps():
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        for i in range(n):
            fd = os.open(f"{T}/libs/libcudart.so.{i}", os.O_RDONLY)
            libc.mmap(None, 4096, 5, 2, fd, 0)
            os.close(fd)
            time.sleep(0.001)
        time.sleep(2)
    with Serve() as s:
        pid = as_nobody(maps)
        for _ in range(20):
            check("a scrape", b"cudatrace_build_info" in s.scrape())
            time.sleep(0.1)
        os.waitpid(pid, 0)
        honest = f"{T}/honest{os.getpid()}"
        os.symlink(f"{OUT}/cases/work", honest)
        until = time.monotonic() + LONGEST
        while not re.search(rb'launch_calls_total\{process="honest\d+"\} [1-9]', s.scrape()):
            check("the honest program is counted", time.monotonic() < until)
            subprocess.run([honest, "5", "return"], stdout=subprocess.DEVNULL, check=True, timeout=240)
    return f"{n} damaged copies of a libcudart, mapped by a user"


def test_processes():
    """Short processes of ever new names, and kernels of ever new names: what is kept is bounded."""
    n = times(500)
    with Serve("--processes", "100") as s:
        def rss():
            with open(f"/proc/{s.p.pid}/statm") as f:
                return int(f.read().split()[1]) * 4096
        os.mkdir(f"{T}/many")
        for i in range(n):
            os.symlink(f"{OUT}/cases/work", f"{T}/many/{i}a{os.getpid()}")
        before = rss()

        def begins():
            for i in range(n):
                subprocess.run([f"{T}/many/{i}a{os.getppid()}", "1", "return"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               timeout=240, check=False)
        pid = as_nobody(begins)
        while not os.waitpid(pid, os.WNOHANG)[0]:
            check("a scrape", b"cudatrace_build_info" in s.scrape())
            time.sleep(0.2)
        names = set(re.findall(rb'process="([^"]*)"', s.scrape()))
        check(f"{len(names)} names", len(names) <= 257)
        check(f"memory grew by {rss() - before}", rss() - before < 64 << 20)
    return f"{n} short processes, each of another name"


NAMES = [b"\x1b]0;owned\x07", b"\x1b[2J\x1b[H", b"a\nb", b"a\rb", b"\xff\xfe\x80", b"=cmd|' /C calc'!A0", b'"}],"x":[{"', b"</script><script>",
         b"\xe2\x80\xaegnp", b"%s%n%s", b"\\x00", b"a\tb", b"\x9b31m", b"\x7f" * 10]


def test_names():
    """Names of programs and their arguments that are meant for a terminal, a spreadsheet, a page."""
    formats = (("table",), ("json",), ("csv",), ("chrome",), ("html",), ("folded",), ("speedscope",))
    n = 0
    for name in NAMES:
        path = os.path.join(os.fsencode(T), name.replace(b"/", b"_")[:60] + b"x")
        os.symlink(f"{OUT}/cases/calls", path)
        for fmt, in formats:
            p = subprocess.run([CT, "--format", fmt, "-o", f"{T}/out", "--", path, b"mix", b"2", b"2", b"2"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, timeout=120, check=False)
            check(f"{name} {fmt}: {p.returncode}", p.returncode in (0, 1, 2))
            with open(f"{T}/out", "rb") as f:
                out = f.read()
            n += 1
            if fmt != "html":
                check(f"{fmt}: control bytes of {name}", not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", out.replace(b"\r\n", b"\n")))
            check(f"stderr: control bytes of {name}", not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", p.stderr))
        os.unlink(path)
    return f"{len(NAMES)} names of programs in {len(formats)} formats ({n} traces)"


def test_symlinks():
    """A user swaps the output's folder for a link while root writes into it."""
    secret = f"{T}/secret"
    with open(secret, "w") as f:
        f.write("root's\n")
    os.mkdir(f"{T}/sticky")
    os.chmod(f"{T}/sticky", 0o1777)

    def swaps():
        os.chdir(f"{T}/sticky")
        until = time.monotonic() + 100
        while time.monotonic() < until and not os.path.exists(f"{T}/over"):
            for make in (lambda: os.symlink(secret, "out"), lambda: os.link("mine", "out"), lambda: os.mkfifo("out"), lambda: open("out", "w").close(),
                         lambda: os.mkdir("out")):
                try:
                    open("mine", "a").close()
                    make()
                    time.sleep(0.002)
                except OSError:
                    pass
                for remove in (os.unlink, os.rmdir):
                    try:
                        remove("out")
                    except OSError:
                        pass
    pid = as_nobody(swaps)
    n = times(150)
    for i in range(n):
        p = subprocess.run([CT, "replay", *(("--format", "chrome") if i % 2 else ()), "-o", f"{T}/sticky/out", "tests/traces/calls.ctrace"],
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240, check=False)
        check(f"status {p.returncode}", p.returncode in (0, 1))
    open(f"{T}/over", "w").close()
    os.waitpid(pid, 0)
    with open(secret) as f:
        check("root's file is as it was", f.read() == "root's\n")
    return f"{n} outputs to a path that a user swaps for links, pipes, folders"


def main(names):
    failed = 0
    tests = {name.removeprefix("test_"): f for name, f in names.items() if name.startswith("test_")}
    for name in sys.argv[1:] or tests:
        began = time.monotonic()
        try:
            with machine.taken("alone"):
                what = tests[name]()
            print(f"ok hostile {name}: {what} ({time.monotonic() - began:.0f} s)", flush=True)
        except (Held, OSError, subprocess.SubprocessError) as e:
            failed = 1
            print(f"not ok hostile {name}: {type(e).__name__}: {str(e)[:500]}".replace("\n", " | "), flush=True)
    shutil.rmtree(T, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(globals()))
