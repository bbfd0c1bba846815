# SPDX-License-Identifier: BSD-2-Clause
"""machine.py - the lock of machine.sh, for tests in Python, who else traces this machine, and its free ports."""
import atexit
import contextlib
import errno
import fcntl
import glob
import os
import random
import shutil
import socket
import tempfile

LOCK = "/run/cudatrace-tests"
os.environ["CUDATRACE_TESTS"] = "1"  # tells the tracers of the tests from others
for sudo in ("SUDO_UID", "SUDO_GID"):  # what the tests write belongs to root, also for who has started them by sudo
    os.environ.pop(sudo, None)


@contextlib.contextmanager
def taken(how):
    """how: "alone" (what is done traces the whole machine), or "undisturbed" (such a tracer would disturb it)."""
    if os.environ.get("MACHINE_TAKEN"):
        yield
        return
    with open(LOCK + ".next", "w", encoding="ascii") as after, open(LOCK + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(after, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if how == "alone" else fcntl.LOCK_SH)
        fcntl.flock(after, fcntl.LOCK_UN)
        os.environ["MACHINE_TAKEN"] = "1"
        try:
            yield
        finally:
            del os.environ["MACHINE_TAKEN"]


def free_port(family=socket.AF_INET):
    """A port that no program has, of those that the kernel gives to no connection by itself: it stays free until it is listened on."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket(family) as s:
            try:
                s.bind(("::1" if family == socket.AF_INET6 else "0.0.0.0", port))
                return port
            except OSError as e:
                if e.errno != errno.EADDRINUSE:
                    raise


def own_copy(out, program):
    """A copy of a program of out/cases that has copies of the stand-in's libraries, until this process ends: a tracer that follows a
    program's children puts breakpoints into every process that has the same library."""
    folder = tempfile.mkdtemp(prefix="own.", dir=out)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    shutil.copytree(os.path.join(out, "standin"), os.path.join(folder, "standin"), symlinks=True)
    os.mkdir(os.path.join(folder, "cases"))
    return shutil.copy2(os.path.join(out, "cases", program), os.path.join(folder, "cases"))


def tracer_of_others():
    """A process with probes that no test has started, in words; None: there is none."""
    for folder in glob.glob("/proc/[0-9]*/fd"):
        pid = folder.split("/")[2]
        try:
            links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
            if not any(link.startswith("anon_inode:") and ("bpf" in link and "link" in link or "perf_event" in link) for link in links):
                continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = any(word.startswith(b"CUDATRACE_TESTS=") for word in file.read().split(b"\0"))
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().strip()
        except OSError:  # it has ended
            continue
        if not ours:
            return f"process {pid} ({name})"
    return None


def disturbed(said):
    """cudatrace says that it has met another tracer's breakpoints, and a tracer is there that is none of the tests'. A wrong message is
    no excuse."""
    return "another tracer" in said and tracer_of_others() is not None
