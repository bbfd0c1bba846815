#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""afresh.py - attacks by what the other scripts leave out: tests/hostile/afresh.py [NAME...]

Limits that cudatrace inherits, a disk that another user fills, signals, a tracer of the traced program, namespaces with another /proc, cgroups that come
and go, the descriptors behind what hooks share, names in `top` beside masses of short processes. Needs root, gcc, `make standin cases-progs`.
CUDATRACE: another binary. Prints `ok` and `not ok` lines.
"""
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

import attack
from again import ENV, NOBODY, build
from attack import CT, OUT, T, Serve, as_nobody, check

LIMIT_S = 120
WORK = f"{OUT}/cases/work"
ROUNDS = 200
CGROUPS = 40
SHORT = 400


def rows_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def launches(rows):
    return sum(row["type"] == "call" and row["name"] == "cudaLaunchKernel" for row in rows)


def test_limits():
    """Limits of whoever starts it, as sudo passes them on: it works, or refuses with a message, and ends by no signal of its own."""
    ways = (["--fsize=4096"], ["--nproc=1"], ["--memlock=0"], ["--sigpending=0"], ["--stack=131072"], ["--data=60000000"], ["--as=400000000"],
            ["--core=0", "--nofile=40"], ["--nofile=12"], ["--cpu=60"], ["--rttime=1"])
    worked = 0
    for way in ways:
        for command in (["--format", "json", "--stack"], ["--source=hooks", "--format", "json"], ["record"]):
            p = subprocess.run(["prlimit", *way, CT, *command, "-o", f"{T}/limited", "--", "prlimit", "--nofile=1024", "--data=unlimited", "--as=unlimited",
                                "--fsize=unlimited", WORK, "20", "return"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False, env=ENV)
            check(f"{way} {command}: status {p.returncode}: {p.stderr[-300:]}", 0 <= p.returncode < 128 and b"Sanitizer" not in p.stderr)
            check(f"{way} {command}: no word", p.returncode == 0 or b"error" in p.stderr or b"cannot" in p.stderr or b"failed" in p.stderr)
            worked += p.returncode == 0
            if os.path.exists(f"{T}/limited"):
                os.unlink(f"{T}/limited")
    return f"{len(ways)} limits, 3 commands each: {worked} traced, the others refused with a message"


def test_full():
    """A recording on a disk that another user fills: the program is undisturbed, the recording ends with a message and can be read."""
    disk = f"{T}/disk"
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=1777", "none", disk], check=True)
    try:
        def fills():
            until = time.monotonic() + 60
            while time.monotonic() < until and not os.path.exists(f"{T}/full"):
                if not glob.glob(f"{disk}/out*"):
                    try:
                        os.unlink(f"{disk}/mine")
                    except OSError:
                        time.sleep(0.001)
                    continue
                try:
                    with open(f"{disk}/mine", "ab") as f:
                        f.write(bytes(65536))
                except OSError:
                    time.sleep(0.01)
        pid, said = as_nobody(fills), 0
        for how in (["record"], ["--format", "json"], ["--format", "arrow"], ["--format", "nsys-sqlite"], ["--format", "html"]):
            p = subprocess.run([CT, *how, "-o", f"{disk}/out", "--", WORK, str(ROUNDS * 20), "return"], stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=LIMIT_S, check=False, env=ENV)
            check(f"{how}: the program: {p.stdout[-100:]}", b"launched" in p.stdout)
            check(f"{how}: status {p.returncode}: {p.stderr[-300:]}", p.returncode in (0, 1, 3) and (p.returncode == 0 or (b"No space left" in p.stderr or b"is full" in p.stderr)))
            said += p.returncode != 0
            if how == ["record"] and os.path.exists(f"{disk}/out") and os.path.getsize(f"{disk}/out"):
                again = subprocess.run([CT, "info", f"{disk}/out"], capture_output=True, timeout=LIMIT_S, check=False)
                check(f"info: {again.returncode}: {again.stderr[-200:]}", again.returncode in (0, 1))
            for left in glob.glob(f"{disk}/out*"):
                os.unlink(left)
            while os.path.exists(f"{disk}/mine"):
                time.sleep(0.01)
        check("the disk was full", said)
        open(f"{T}/full", "w").close()
        os.waitpid(pid, 0)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)
    return f"5 formats on a disk that another user fills: the program is undisturbed, {said} times a message says that the disk was full"


def child_of(pid, name):
    """The number of the process of this name below it."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        found = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout
        for line in found.splitlines():
            if line.split(None, 1)[1:] == [name]:
                return int(line.split()[0])
        time.sleep(0.02)
    raise attack.Held(f"no {name} below {pid}")


SIGNALS_C = r"""
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
int cudaStreamQuery(void *);
static volatile int begun;
static void on(int s) { begun = 1; cudaStreamQuery(0); }
int main(int argc, char **argv)
{
	volatile int *done = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0);
	cudaStreamQuery((void *)1); /* it begins there: a handler must not come in between */
	++*done;
	signal(SIGUSR1, on);
	signal(SIGUSR2, on);
	write(1, "ready\n", 6);
	while (!begun) /* it has been found, and is sent signals */
		usleep(1000);
	while (*done < 20000) {
		cudaStreamQuery((void *)1);
		++*done;
	}
	return 0;
}
"""


def test_signals():
    """The program's user sends it signals without end, stops it and lets it go on: all calls are there. Then it is stopped for good: cudatrace ends."""
    path, shared = build("signals", SIGNALS_C, "libcudart.so.13"), f"{T}/done"
    with open(shared, "wb") as f:
        f.write(bytes(4096))
    os.chmod(shared, 0o666)
    p = subprocess.Popen([CT, "-u", "nobody", "--keep-chatty", "--format", "json", "-o", f"{T}/out", "-e", "cudaStreamQuery", "--", path, shared],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
    check("the program begins", p.stdout.readline() == b"ready\n")
    pid = child_of(p.pid, "signals")

    def sends():
        try:
            send_rounds()
        except ProcessLookupError:
            pass  # it has ended

    def send_rounds():
        # The next ones are not sent before the program has got on: who sends faster than it takes them stops it, with and without a tracer.
        n, seen = 0, -1
        with open(shared, "r+b", buffering=0) as f:
            while os.path.exists(f"/proc/{pid}"):
                for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGSTOP, signal.SIGCONT, signal.SIGWINCH):
                    os.kill(pid, sig)
                    n += 1
                    time.sleep(0.0003 * (n % 7 == 0))
                while os.path.exists(f"/proc/{pid}") and seen == (seen := int.from_bytes(os.pread(f.fileno(), 4, 0), "little")):
                    time.sleep(0.0001)
    sender = as_nobody(sends)
    said = p.stderr.read()
    status = p.wait(LIMIT_S)
    os.kill(sender, 9)
    os.waitpid(sender, 0)
    rows = rows_of(f"{T}/out")
    calls = [row for row in rows if row["type"] == "call"]
    own = sum(row["args"]["stream"] != "0x0" for row in calls)
    check(f"status {status}, {own} calls, {len(calls) - own} of handlers: {said[-300:]}", status == 0 and own == 20000 and len(calls) > own)
    end = rows[-1]
    check(f"the end: {end}", not sum(end["lost"].values()) and not end["unfinished"] and all(row["ret"] == 0 for row in calls))
    # stopped for good
    p = subprocess.Popen([CT, "-u", "nobody", "--format", "json", "-o", f"{T}/out", "--", WORK, "-p", "10", "1000000", "return"], stderr=subprocess.PIPE, env=ENV)
    pid = child_of(p.pid, "work")
    time.sleep(1)
    os.kill(pid, signal.SIGSTOP)
    p.send_signal(signal.SIGINT)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)  # the second one leaves the program alone
    try:
        p.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)
        p.kill()
        raise attack.Held("cudatrace does not end while its program is stopped") from None
    try:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return "20000 calls of a program that gets signals without end: all there; stopped for good: cudatrace ends"


def test_traced():
    """Another process of the program's user traces the program and holds it: cudatrace, attached to it, ends all the same."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    work = subprocess.Popen([*NOBODY, WORK, "-p", "10", "100000", "return"], stdout=subprocess.DEVNULL, env=ENV)
    try:
        def holds():
            if libc.ptrace(0x4206, work.pid, None, None) or libc.ptrace(0x4207, work.pid, None, None):  # SEIZE, INTERRUPT
                os._exit(3)
            os.waitpid(work.pid, 0x40000000)
            open(f"{T}/held", "w").close()
            time.sleep(100)
        for how in (["--format", "json"], ["--gpu", "--format", "json"], ["stuck"], ["stat"]):
            if os.path.exists(f"{T}/held"):
                os.unlink(f"{T}/held")
            time.sleep(0.3)
            os.chmod(T, 0o777)
            tracer = as_nobody(holds)
            until = time.monotonic() + LIMIT_S
            while not os.path.exists(f"{T}/held"):
                check("the program is held", time.monotonic() < until and not os.waitpid(tracer, os.WNOHANG)[0])
                time.sleep(0.02)
            began = time.monotonic()
            p = subprocess.run([CT, *how, "-p", str(work.pid), *(["-d", "1"] if how[0] != "stuck" else []), "-o", f"{T}/out"], capture_output=True,
                               timeout=LIMIT_S, check=False, env=ENV)
            took = time.monotonic() - began
            check(f"{how}: {p.returncode}: {p.stderr[-300:]}", 0 <= p.returncode < 10)
            check(f"{how}: {took:.0f} s", took < 60)
            os.kill(tracer, 9)
            os.waitpid(tracer, 0)
    finally:
        work.kill()
        work.wait()
    os.chmod(T, 0o755)
    return "a program that another process holds by ptrace: 4 commands attach, and end"


def test_namespaces():
    """Programs in namespaces of their own, with another /proc, none, or one where the program's own files are hidden: they are counted."""
    name = f"{T}/spaced"
    os.symlink(WORK, name)
    ways = ("exec $w", "mount -t proc none /proc; exec $w", "mount -t tmpfs none /proc; exec $w", "mount -t tmpfs none /sys; exec $w",
            f"mount --bind {T}/empty /proc/$$/maps 2> /dev/null; exec $w", "mount -t tmpfs none /tmp 2> /dev/null; exec $w")
    open(f"{T}/empty", "w").close()
    done = 0
    with Serve() as s:
        until = time.monotonic() + LIMIT_S
        while not counted(s, "spaced"):  # its libraries have no probes yet
            check("spaced is counted", time.monotonic() < until)
            subprocess.run([name, "1", "return"], check=True, stdout=subprocess.DEVNULL, env=ENV)
        before = counted(s, "spaced")
        for way in ways:
            # the program keeps its files by a descriptor where /tmp is hidden
            script = f"w='{WORK} 20 return'; w=\"bash -c 'exec -a spaced {WORK} 20 return'\"; " + way.replace("exec $w", f"exec {name} 20 return")
            p = subprocess.run([*NOBODY, "unshare", "-Urmpf", "sh", "-c", script], capture_output=True, timeout=LIMIT_S, check=False, env=ENV)
            done += b"launched 20" in p.stdout
        until = time.monotonic() + LIMIT_S
        while counted(s, "spaced") - before < 20 * done and time.monotonic() < until:
            time.sleep(0.2)
        got = counted(s, "spaced") - before
    check(f"{got} launches of {20 * done} in {done} namespaces", done >= 4 and got == 20 * done)
    return f"{done} programs in namespaces with another /proc: {got} of {20 * done} launches are counted"


def counted(serve, name):
    return sum(int(n) for n in re.findall(rb'gpu_cuda_kernel_launch_calls_total\{process="' + name.encode() + rb'"\} (\d+)', serve.scrape()))


def test_cgroups():
    """Cgroups that come and go, with a program in each."""
    root = next((p for p in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if os.path.exists(f"{p}/cgroup.procs")), None)
    own = f"{T}/cgroup2"
    if not root:
        os.mkdir(own)
        subprocess.run(["mount", "-t", "cgroup2", "none", own], check=True)
        root = own
    try:
        script = (f"for i in $(seq {CGROUPS}); do mkdir {root}/ct$i; sh -c 'echo $$ > {root}/ct'$i'/cgroup.procs; exec {WORK} 5 return' > /dev/null; "
                  f"while ! rmdir {root}/ct$i 2> /dev/null; do sleep 0.01; done; done")
        p = subprocess.run([CT, "stat", "--by", "cgroup", "--json", "-o", f"{T}/out", "--", "sh", "-c", script], capture_output=True, timeout=LIMIT_S,
                           check=False, env=ENV)
        check(f"status {p.returncode}: {p.stderr[-300:]}", p.returncode == 0)
        with open(f"{T}/out") as f:
            out = json.load(f)
        rows = [row for row in out["runtime"] if row["name"].endswith(" cudaLaunchKernel")]
        calls = sum(row["calls"] for row in rows)
    finally:
        if root == own:
            subprocess.run(["umount", own], check=False)
    check(f"{len(rows)} rows, {calls} launches", len(rows) == CGROUPS and calls == 5 * CGROUPS)
    return f"{CGROUPS} cgroups that come and go, with a program in each: {len(rows)} rows, {calls} launches"


SHARED_C = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int cudaStreamQuery(void *);
int main(int argc, char **argv)
{
	int refused = 0, found = 0;
	for (int round = 0; round < 5; round++) {
		char line[512], path[128];
		FILE *f = fopen("/proc/self/maps", "r");
		cudaStreamQuery(0);
		while (f && fgets(line, sizeof(line), f)) {
			unsigned long from, to;
			int fd;
			if (!strstr(line, "memfd:") || sscanf(line, "%lx-%lx", &from, &to) != 2)
				continue;
			found++;
			sprintf(path, "/proc/self/map_files/%lx-%lx", from, to);
			fd = open(path, O_RDWR);
			if (fd < 0)
				continue;
			refused += ftruncate(fd, 0) < 0;
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
			fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
			ftruncate(fd, 1UL << 40);
			close(fd);
		}
		if (f)
			fclose(f);
		for (int fd = 3; fd < 200; fd++)
			if (lseek(fd, 0, SEEK_END) > 0)
				ftruncate(fd, 0);
	}
	printf("%d %d\n", found, refused);
	return 0;
}
"""


def test_shrunk():
    """A program that shortens the memory which its hooks share with cudatrace, punches holes into it and seals it."""
    bad = build("shrunk", SHARED_C, "libcudart.so.13")
    good = build("good", "int cudaStreamQuery(void *);\nint main(void) { for (int i = 0; i < 5; i++) cudaStreamQuery(0); return 0; }\n", "libcudart.so.13")
    p = subprocess.run([CT, "--source=hooks", "--format", "json", "-e", "cudaStreamQuery", "-o", f"{T}/out", "--", "sh", "-c", f"{bad}; {good}"],
                       capture_output=True, timeout=LIMIT_S, check=False, env=ENV)
    check(f"status {p.returncode}: {p.stderr[-300:]}", p.returncode == 0 and b"Sanitizer" not in p.stderr)
    rows = rows_of(f"{T}/out")
    honest = sum(row["type"] == "call" and row.get("process") == "good" for row in rows)
    check(f"{honest} calls of the honest program: {p.stderr[-300:]}", honest == 5)
    found, refused = map(int, p.stdout.split()[:2])
    check(f"shared memory: {found} found, {refused} refused", found)
    return f"shared memory is shortened {found} times, {refused} of them refused by its seal: the honest program's calls are there"


def test_top_names():
    """Masses of short processes beside a program that runs on: each row of `top` has a name."""
    honest = f"{T}/honest"
    os.symlink(WORK, honest)
    stays = subprocess.Popen([honest, "-p", "10", "1000000", "return"], stdout=subprocess.DEVNULL, env=ENV)
    try:
        storm = subprocess.Popen([*NOBODY, "sh", "-c", f"for i in $(seq {SHORT}); do {WORK} 1 return & [ $((i % 8)) != 0 ] || wait; done; wait"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV)
        p = subprocess.run([CT, "top", "--batch", "--format", "json", "-n", "12", "-i", "0.3"], capture_output=True, timeout=LIMIT_S, check=False, env=ENV)
        storm.wait(LIMIT_S)
    finally:
        stays.kill()
        stays.wait()
    check(f"status {p.returncode}: {p.stderr[-300:]}", p.returncode == 0)
    text = p.stdout.decode()
    seen = re.findall(r'"(?:comm|process|name)":"([^"]*)"', text)
    unknown = sum(name in ("?", "") for name in seen)
    check(f"{unknown} of {len(seen)} rows have no name", "honest" in seen and not unknown)
    return f"{SHORT} short processes beside `top`: {len(seen)} rows, each with a name"


if __name__ == "__main__":
    sys.exit(attack.main(globals()))
