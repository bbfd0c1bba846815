#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""web.py - `cudatrace serve --web-config`: TLS and passwords, against openssl, curl and Python's ssl.

    tests/serve/web.py [NAME...]

Needs root (to trace), openssl and curl. Waits for conditions, never for a time. Prints `ok`, `not ok` and `skip` lines.
"""
import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys

import run
from run import Serve, Wrong, check, machine, refused, wait_for

T = run.T
# of "secret" (cost 10) and "another" (cost 4)
SECRET = "$2y$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u"
ANOTHER = "$2b$04$bbcdefghijklmnopqrstuuHxuMXRAXG6Lvy.NxFxpQtmBshlwqzfO"
NAME = "web"


def openssl(*args):
    subprocess.run(["openssl", *args], cwd=T, check=True, timeout=240, capture_output=True)


def make(name, ca=None):
    """A key, and a certificate of its own or of ca."""
    more = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key"] if ca else []
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key", "-out",
            f"{name}.pem", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30", *more)


def write(text, name="web.yml"):
    with open(f"{T}/{name}.new", "w") as f:
        f.write(text)
    os.rename(f"{T}/{name}.new", f"{T}/{name}")
    return f"{T}/{name}"


def tls(cert="server", more=""):
    return f"tls_server_config:\n  cert_file: {cert}.pem\n  key_file: {cert}.key\n{more}"


def users(**hashes):
    return "basic_auth_users:\n" + "".join(f"  {name}: {h}\n" for name, h in hashes.items())


def curl(s, *args, path="/metrics", scheme="https"):
    """(exit status, status of the answer, its text)"""
    p = subprocess.run(["curl", "-sS", "-m", "60", "-w", "\n%{http_code}", *args, f"{scheme}://{s.listen}{path}"], cwd=T,
                       capture_output=True, text=True, timeout=240, check=False)
    text, status = p.stdout.rsplit("\n", 1)
    return p.returncode, int(status), text


def serves(s, *args, scheme="https"):
    code, status, text = curl(s, *args, scheme=scheme)
    return (code, status, "cudatrace_build_info" in text)


YES = (0, 200, True)
CA = ("--cacert", "server.pem")


def metric(text, name):
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def test_tls():
    """With TLS no other word is answered; clients verify the certificate; old versions are refused."""
    with Serve("--web-config", write(tls())) as s:
        check("said", f"metrics at https://{s.listen}/metrics" in s.said(), True)
        check("the right authority", serves(s, *CA), YES)
        check("twice on a connection", curl(s, *CA, f"https://{s.listen}/healthz", path="/healthz")[0], 0)
        check("another authority", curl(s, "--cacert", "other.pem")[0], 60)
        check("without TLS", curl(s, scheme="http")[0] != 0, True)
        check("TLS 1.3", serves(s, *CA, "--tlsv1.3"), YES)
        check("TLS 1.2", serves(s, *CA, "--tls-max", "1.2"), YES)
        check("TLS 1.1", curl(s, *CA, "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")[0] != 0, True)
        p = subprocess.run(["openssl", "s_client", "-connect", s.listen, "-CAfile", f"{T}/server.pem", "-verify_return_error", "-quiet"],
                           input=b"GET /metrics HTTP/1.0\r\n\r\n", capture_output=True, timeout=60, check=False)
        check("s_client", b"cudatrace_build_info" in p.stdout, True)
        check("then", serves(s, *CA), YES)
    with Serve("--web-config", write(tls(more="  min_version: TLS13\n"))) as s:
        check("TLS 1.3", serves(s, *CA, "--tlsv1.3"), YES)
        check("TLS 1.2", curl(s, *CA, "--tls-max", "1.2")[0] != 0, True)


def test_clients():
    """Certificates of clients: none, one of the right authority, one of another."""
    none, good, bad = (), ("--cert", "client.pem", "--key", "client.key"), ("--cert", "other.pem", "--key", "other.key")
    for kind, ca, want in (("RequireAndVerifyClientCert", True, (False, True, False)),
                           ("VerifyClientCertIfGiven", True, (True, True, False)),
                           ("RequireAnyClientCert", False, (False, True, True)),
                           ("RequestClientCert", False, (True, True, True))):
        more = f"  client_auth_type: {kind}\n" + ("  client_ca_file: ca.pem\n" if ca else "")
        with Serve("--web-config", write(tls(more=more))) as s:
            for version in ("1.2", "1.3"):
                got = tuple(serves(s, *CA, *c, "--tls-max", version) == YES for c in (none, good, bad))
                check(f"{kind}, TLS {version}", got, want)


def test_passwords():
    """Names and passwords, without TLS too."""
    with Serve("--web-config", write(users(prom=SECRET, other=ANOTHER))) as s:
        code, status, text = curl(s, "-D", "-", scheme="http")
        check("no password", (code, status, 'WWW-Authenticate: Basic realm="cudatrace"' in text, "build_info" in text),
              (0, 401, True, False))
        for path in ("/", "/healthz", "/readyz", "/nothing"):
            check(f"{path} without a password", curl(s, path=path, scheme="http")[1], 401)
        for who, want in (("prom:secret", 200), ("other:another", 200), ("prom:another", 401), ("prom:", 401), ("nobody:secret", 401),
                          ("other:secret", 401), ("prom:secret", 200), ("prom:secre", 401)):
            check(who, curl(s, "-u", who, scheme="http")[1], want)
        check("a page that is not there", curl(s, "-u", "prom:secret", path="/nothing", scheme="http")[1], 404)
        check("denied", metric(curl(s, "-u", "prom:secret", scheme="http")[2], "cudatrace_requests_denied_total"), 10)
        check("the password is nowhere said", "secret" in s.said(), False)
        # the next requests wait in the socket until the first one's password has been checked
        with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:
            one = b"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n"
            for who in (b"prom:wrong", b"prom:secret", b"prom:wronger"):
                c.sendall(one % base64.b64encode(who) + (b"Connection: close\r\n" if who == b"prom:wronger" else b"") + b"\r\n")
            got = b""
            while more := c.recv(65536):
                got += more
        check("one after the other", re.findall(rb"HTTP/1.1 (\d+)", got), [b"401", b"200", b"401"])


def test_gone():
    """Clients that go while their password is checked, and a crowd of wrong passwords: who has the right one is answered."""
    with Serve("--web-config", write(users(prom=SECRET))) as s:
        check("the right one", serves(s, "-u", "prom:secret", scheme="http"), YES)
        for n in range(100):
            with socket.socket() as c:
                c.bind((f"127.0.0.{2 + n % 5}", 0))
                c.connect(("127.0.0.1", s.port))
                c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n\r\n" % base64.b64encode(b"prom:%d" % n))
        check("the right one, among them", serves(s, "-u", "prom:secret", scheme="http"), YES)
        wait_for("them to be gone", 30, lambda: len(os.listdir(f"/proc/{s.p.pid}/fd")) < 150)
        # at the end there are some that wait
        held = []
        for n in range(20):
            c = socket.create_connection(("127.0.0.1", s.port))
            c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n\r\n" % base64.b64encode(b"prom:x%d" % n))
            held.append(c)
        check("status", s.end(), 0)


def test_slow():
    """Clients that never finish their handshake do not keep others waiting, and are shut."""
    with Serve("--web-config", write(tls())) as s:
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(100)]
        for n, c in enumerate(held):
            # nothing; half of a first message; a first message, and nothing more
            if n % 3 == 1:
                c.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            elif n % 3 == 2:
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                try:
                    context.wrap_bio(incoming, outgoing, server_hostname="x").do_handshake()
                except ssl.SSLWantReadError:
                    pass
                c.sendall(outgoing.read())
        for _ in range(3):
            check("a scrape", serves(s, *CA), YES)
        for c in held:
            c.settimeout(120)
            try:
                while c.recv(65536):
                    pass
            except ConnectionResetError:
                pass
            c.close()
        # one that sends a byte now and then, and never a whole message
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.settimeout(0.2)
            sent = [0]

            def drips():
                try:
                    c.sendall(b"\x16\x03\x01\x40\x00"[sent[0]:sent[0] + 1] or b"\x01")
                    sent[0] += 1
                    return c.recv(100) == b""
                except TimeoutError:
                    return False
                except OSError:
                    return True
            wait_for("it to be shut", 60, drips)
        check("a scrape", serves(s, *CA), YES)
        check("garbage", run.raw(s.port, os.urandom(2000)), "")
        check("a scrape", serves(s, *CA), YES)


def test_handshakes():
    """Who begins handshakes without end is refused, and counted; another address is served meanwhile, and who waited is served again."""
    context = ssl.create_default_context(cafile=f"{T}/server.pem")
    with Serve("--web-config", write(tls())) as s:
        def shakes(source):
            with socket.create_connection(("127.0.0.1", s.port), timeout=60, source_address=(source, 0)) as c:
                try:
                    with context.wrap_socket(c, server_hostname="127.0.0.1"):
                        return True
                except ssl.SSLError as e:
                    check("the alert", "internal error" in str(e).lower().replace("_", " "), True)
                    return False

        def refused_now():
            return metric(curl(s, *CA, "--interface", "127.0.0.3")[2], "cudatrace_handshakes_refused_total")
        check("before", refused_now(), 0)
        # handshakes that are cut off after the first message cost this client little, and so come fast
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = outgoing.read()

        def flood():
            # all of them first, so that cudatrace finds them at the same time
            held = [socket.create_connection(("127.0.0.1", s.port), timeout=60, source_address=("127.0.0.2", 0)) for _ in range(120)]
            for c in held:
                try:
                    c.sendall(hello)
                except OSError:
                    pass
            for c in held:
                try:
                    c.recv(1)
                except OSError:
                    pass
                c.close()
            return refused_now() > 0
        wait_for("a refusal", 120, flood)
        check("another address", shakes("127.0.0.4"), True)
        wait_for("the client to be served again", 60, lambda: shakes("127.0.0.2"))


def test_reload():
    """Certificates and users are read again when their files change; what is wrong changes nothing."""
    both = tls("one") + users(prom=SECRET)
    for name in ("one.pem", "one.key"):
        shutil.copy(f"{T}/server{name[3:]}", f"{T}/{name}")
    with Serve("--web-config", write(both)) as s:
        check("before", serves(s, *CA, "-u", "prom:secret"), YES)
        # a certificate without its key is refused; with it it is taken
        for kind in (".pem", ".key"):
            shutil.copy(f"{T}/other{kind}", f"{T}/one{kind}.new")
            os.rename(f"{T}/one{kind}.new", f"{T}/one{kind}")
            if kind == ".pem":
                wait_for("a word", 20, lambda: "is not the key of the certificate" in s.said())
                check("meanwhile", serves(s, *CA, "-u", "prom:secret"), YES)
        wait_for("the new certificate", 20, lambda: serves(s, "--cacert", "other.pem", "-u", "prom:secret") == YES)
        write(tls("one") + users(prom=ANOTHER))
        wait_for("the new password", 20, lambda: serves(s, "--cacert", "other.pem", "-u", "prom:another") == YES)
        check("the old one", curl(s, "--cacert", "other.pem", "-u", "prom:secret")[1], 401)
        for text, word in ((tls("one"), "has no basic_auth_users any more"), (users(prom=ANOTHER), "has no tls_server_config any more"),
                           ("", "is empty"), (both + "x: y\n", "'x' is not known")):
            write(text)
            wait_for(f"'{word}'", 20, lambda: word in s.said())  # pylint: disable=cell-var-from-loop
            check("as before", serves(s, "--cacert", "other.pem", "-u", "prom:another"), YES)
            check("as before, without", curl(s, "--cacert", "other.pem")[1], 401)
        s.p.send_signal(1)
        check("after SIGHUP", serves(s, "--cacert", "other.pem", "-u", "prom:another"), YES)


def test_refused():
    """What cannot be used is said, and nothing is served."""
    os.chmod(f"{T}/client.key", 0o644)
    shutil.copy(f"{T}/server.key", f"{T}/strangers.key")
    shutil.copy(f"{T}/server.pem", f"{T}/strangers.pem")
    os.chown(f"{T}/strangers.key", 12345, 0)
    openssl("rsa", "-aes128", "-passout", "pass:x", "-in", "rsa.key", "-out", "locked.key")
    os.chmod(f"{T}/locked.key", 0o600)
    shutil.copy(f"{T}/server.pem", f"{T}/locked.pem")
    for text, why in ((tls("client"), "client.key has mode 0644, so that others may read it; chmod 0640 it"),
                      (tls("strangers"), "belongs to user 12345"),
                      (tls("locked"), "no private key in PEM form without a password"),
                      (tls("nothing"), "No such file"),
                      (tls(more="  max_version: TLS12\n"), "'max_version' is not known in tls_server_config"),
                      (users(prom="secret"), "no bcrypt hash"),
                      ("", "is empty")):
        code, errors, lines = refused("--listen", "127.0.0.1:0", "--web-config", write(text, "bad.yml"))
        check(why, (code, len(errors), lines, why in str(errors)), (1, 1, 1, True))
    os.chmod(f"{T}/client.key", 0o600)
    path = write(tls(), "bad.yml")
    os.chmod(path, 0o666)
    check("a file that everybody may change", "may change it" in str(refused("--web-config", path)[1]), True)


def main():
    for program in ("openssl", "curl"):
        if not shutil.which(program):
            print(f"skip serve {NAME}: no {program} here: scripts/deps.sh installs it")
            return 0
    for name, ca in (("ca", None), ("client", "ca"), ("server", None), ("other", None)):
        make(name, ca)
    openssl("genrsa", "-out", "rsa.key", "2048")
    failed = 0
    tests = {name.removeprefix("test_"): f for name, f in globals().items() if name.startswith("test_")}
    for name in sys.argv[1:] or tests:
        try:
            with machine.taken("alone"):
                tests[name]()
            print(f"ok serve {NAME} {name}", flush=True)
        except (Wrong, OSError, StopIteration, subprocess.SubprocessError) as e:
            failed = 1
            print(f"not ok serve {NAME} {name}: {type(e).__name__}: {str(e)[:600]}".replace("\n", " | "), flush=True)
            run.said_last(e)
    shutil.rmtree(T, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
