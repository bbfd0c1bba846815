#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py - a fault at a random moment, while cudatrace does each of the things that it does.

    tests/faults/run.py [--seeds A..B | --fixed | --random N] [--fault F,F...] [--way W,W...] [-l] [--keep]

Each seed chooses a fault, a way and the step of the program (target.cc) at which the fault happens. Afterwards

    - the program has ended with the right result, unless the fault was to kill it, and so has cudatrace;
    - each call of the program has its row, or is counted as lost, or cudatrace has said what it does not see any more;
    - nothing is left: no byte of the libraries differs from their file, the program has no thread that is not its own, and no
      process that cudatrace started lives.

--fixed are the seeds that CI runs: each fault once. -l lists the pairs that cannot be, with the reason. Needs root, ./cudatrace and `make
cases-progs`. Prints `ok`, `not ok` and `skip` lines, with the command for a pair that fails.
"""
import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import machine  # noqa: E402
import slow  # noqa: E402

CT = os.environ.get("CUDATRACE", os.path.join(ROOT, "cudatrace"))
STANDIN = os.path.join(ROOT, ".output", "standin")
TARGET = os.path.join(ROOT, ".output", "cases", "faults")
AUDITOR = os.path.join(ROOT, ".output", "cases", "auditor.so")  # what looks at each call that the target makes of a library
LIBRARIES = ["libcudart.so.13", "libcuda.so.1", "libcupti.so.13"]
STEPS = 1500
CALLED = {"cudaMalloc", "cudaMemcpy", "cudaFree"}
LONGEST = 120  # seconds for anything that is waited for, whatever else the machine does

OWN = ["exec", "fork", "thread", "cancel", "exception", "longjmp", "signals", "socket", "clock", "filter", "raw-filter", "dispatch", "addresses", "closefrom", "dup2",
       "setuid", "chroot", "strict", "clone-vm", "ptrace", "auditor"]  # what the program does itself
FAULTS = ["tracer-killed", "tracer-ended", "target-killed", *OWN, "memory", "target-memory", "descriptors", "disk-full", "slow-reader", "slow-disk",
          "tracer-stopped", "target-stopped", "two-tracers", "bpftrace"]
CUPTI = ["--cupti", "CUPTI"]
# The arguments before -p PID; OUT is where output goes.
WAYS = {
    "table": ["-o", "OUT"],
    "json": ["--format", "json", "-o", "OUT"],
    "record": ["record", "-o", "OUT"],
    "stat": ["stat", "--format", "json", "-o", "OUT"],
    "mem": ["mem", "--json", "-o", "OUT"],
    "top": ["top", "--batch", "-i", "0.2", "--format", "json", "-o", "OUT"],
    "serve": ["serve", "--listen", "unix:SOCKET"],
    "gpu": ["--gpu", *CUPTI, "--format", "json", "-o", "OUT"],
    "hooks": ["--source=hooks", "--format", "json", "-o", "OUT"],
    "hooks-stat": ["stat", "--source=hooks", "--format", "json", "-o", "OUT"],
    "cupti": ["--source=cupti", *CUPTI, "--format", "json", "-o", "OUT"],
}
LOSES = {way: ["strict", "clone-vm"] for way in ("hooks", "hooks-stat")}  # what hooks leave alone, and say so: docs/limits.md
INSIDE = ["gpu", "hooks", "hooks-stat", "cupti"]  # with code of ours in the program


def reason(fault, way):
    """Why a pair cannot be; None: it can."""
    if fault == "socket" and way not in INSIDE:
        return "the program has no connection to cudatrace"
    if fault == "exception" and way in ("mem", "top", "serve"):
        return "return probes, which end a program that unwinds through a call, cannot be left out (docs/limits.md)"
    if fault == "exception" and way in ("gpu", "cupti"):
        return "a program that throws through a call ends while the stand-in's CUPTI is in it (docs/limits.md)"
    if fault in ("clock", "filter", "raw-filter", "dispatch", "strict") and way in ("gpu", "cupti"):
        return "CUPTI takes times and makes system calls in the program's threads (docs/limits.md)"
    if fault == "auditor" and way in INSIDE:
        return "its threads wait inside the dynamic loader, so that nothing comes in by -p (docs/limits.md)"
    if fault == "dispatch" and way not in INSIDE:
        return "a program that runs already may be ended by its first call after that (docs/limits.md)"
    if fault == "slow-reader" and way == "record":
        return "a recording is a file"
    if fault in ("disk-full", "slow-reader", "slow-disk") and way in ("serve", "stat", "hooks-stat", "mem"):
        return "it writes nothing, or its few lines in the end alone"
    return None


class Wrong(Exception):
    """What must not be."""


class Disturbed(Exception):
    """Another tracer of this machine changes what is judged here."""


def wait_for(what, condition, seconds=LONGEST):
    until = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise Wrong(f"waited in vain for {what}")
        time.sleep(0.02)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def changed(pid):
    """The libraries of which a byte of code differs from the file."""
    found = []
    for line in read(f"/proc/{pid}/maps").splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "r-xp" or os.path.basename(words[5]) not in LIBRARIES:
            continue
        begin, end = (int(n, 16) for n in words[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as memory, open(words[5], "rb") as file:
            memory.seek(begin)
            file.seek(int(words[2], 16))
            code = file.read(end - begin)
            if memory.read(len(code)) != code:
                found.append(os.path.basename(words[5]))
    return found


def of_session(session):
    """Processes of a session that have not ended."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        fields = read(f"/proc/{name}/stat").rpartition(")")[2].split()
        if len(fields) > 3 and fields[3] == str(session) and fields[0] != "Z":
            found.append(int(name))
    return found


class MemoryGroup:
    """A cgroup for the target, of version 1 or 2, in which it may have so much more memory: what is in it before is not counted."""
    ROOM = 8 << 20  # hooks take some 4 MiB of it, the agent some 2

    def __init__(self, pid):
        root, self.names = next(self.places())
        self.folder = os.path.join(root, f"cudatrace-faults.{pid}")
        os.mkdir(self.folder)
        try:
            self.limit(self.ROOM)
            self.write("cgroup.procs", pid)
        except OSError:
            self.close()
            raise

    @staticmethod
    def places():
        """Where a cgroup with a limit of memory can be made: the folder, and its files' names."""
        if "memory" in read("/sys/fs/cgroup/cgroup.subtree_control").split():
            yield "/sys/fs/cgroup", ("memory.max", "memory.current")
        if os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
            yield "/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")

    def write(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def limit(self, size):
        self.write(self.names[0], size)

    def used(self):
        return int(read(os.path.join(self.folder, self.names[1])))

    def close(self):
        wait_for("the cgroup to be empty", lambda: not read(os.path.join(self.folder, "cgroup.procs")))
        os.rmdir(self.folder)


class Pair:
    """One fault in one way."""

    def __init__(self, seed, fault, way, folder):
        self.fault, self.way, self.folder = fault, way, folder
        self.at = random.Random(seed).randrange(50, STEPS - 50)
        self.out, self.err = os.path.join(folder, "out"), os.path.join(folder, "err")
        self.said = os.path.join(folder, "target.out")
        self.target = self.tracer = self.disk = self.slow = self.group = None
        self.beside = []

    def start_target(self, name, fault):
        libraries = os.path.join(self.folder, name)
        os.mkdir(libraries)
        for library in LIBRARIES:
            shutil.copy(os.path.join(STANDIN, library), libraries)
        said = self.said if name == "library" else os.path.join(self.folder, name + ".out")
        with open(said, "wb") as out:
            target = subprocess.Popen([TARGET, str(STEPS), fault, str(self.at)], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT,
                                      env={**os.environ, "LD_LIBRARY_PATH": libraries, **({"LD_AUDIT": AUDITOR} if fault == "auditor" else {})})
        wait_for("the program", lambda: "ready" in read(said))
        return target

    def start_tracer(self):
        if self.fault == "slow-disk":
            os.mkdir(os.path.join(self.folder, "slow"))
            self.slow = slow.Disk(os.path.join(self.folder, "slow"), lambda: 0 if self.done() else 0.05)
            self.out = os.path.join(self.folder, "slow", "out")
        if self.fault == "disk-full":
            self.disk = os.path.join(self.folder, "disk")
            os.mkdir(self.disk)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.disk], check=True)
            self.out = os.path.join(self.disk, "out")
        places = {"OUT": self.out, "CUPTI": os.path.join(self.folder, "library", "libcupti.so.13"), "unix:SOCKET": f"unix:{self.folder}/socket"}
        args = [places.get(a, a) for a in WAYS[self.way]]
        # docs/limits.md: what unwinds through a call with a return probe ends the program
        if self.fault == "exception" and self.way in ("table", "json", "record", "stat"):
            args.append("--no-return")
        out = subprocess.DEVNULL
        if self.fault == "slow-reader" and self.out in args:
            at = args.index(self.out)
            del args[at - 1:at + 1]
            out = subprocess.PIPE
        with open(self.err, "wb") as err:
            self.tracer = subprocess.Popen([CT, *args, "-v", "-p", str(self.target.pid)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                           start_new_session=True)
        if out == subprocess.PIPE:
            threading.Thread(target=self.read_slowly, daemon=True).start()
        wait_for("cudatrace", lambda: re.search(r"cudatrace: ready|serving|listening|the agent has started", read(self.err)) or self.tracer.poll() is not None)
        if self.tracer.poll() is not None:
            raise Wrong(f"cudatrace ended at once: {self.last()}")

    def read_slowly(self):
        with open(self.out, "wb") as file:
            while True:
                some = self.tracer.stdout.read1(16384)
                if not some:
                    return
                file.write(some)
                file.flush()
                if not self.done():
                    time.sleep(0.05)

    def done(self):
        return "done" in read(self.said)

    def last(self):
        return " | ".join(read(self.err).strip().splitlines()[-3:])

    def happen(self):
        """What is done from outside, once the program has said that it is at the step."""
        pid = self.tracer.pid
        if self.fault == "tracer-killed":
            self.tracer.kill()
        elif self.fault == "tracer-ended":
            self.tracer.send_signal(signal.SIGINT)
        elif self.fault == "target-killed":
            self.target.kill()
        elif self.fault in ("tracer-stopped", "target-stopped"):
            stopped = self.tracer if self.fault == "tracer-stopped" else self.target
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            stopped.send_signal(signal.SIGCONT)
        elif self.fault == "memory":
            kib = int(re.search(r"VmSize:\s+(\d+)", read(f"/proc/{pid}/status")).group(1))
            resource.prlimit(pid, resource.RLIMIT_AS, (kib * 1024, kib * 1024))
        elif self.fault == "target-memory":
            self.group.limit(self.group.used() + (1 << 20))
        elif self.fault == "descriptors":
            n = len(os.listdir(f"/proc/{pid}/fd"))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (n, n))
        elif self.fault == "two-tracers":
            self.beside.append(subprocess.Popen([CT, "stat", "-d", "0.2", "-p", str(self.target.pid)], stdin=subprocess.DEVNULL,
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        elif self.fault == "bpftrace":
            library = os.path.join(self.folder, "library", "libcudart.so.13")
            self.beside.append(subprocess.Popen(["bpftrace", "-e", f"uprobe:{library}:cudaMalloc {{ @ = count(); }} interval:ms:200 {{ exit(); }}"],
                                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def run(self):
        self.target = self.start_target("library", self.fault if self.fault in OWN else "none")
        if self.fault == "target-memory":
            self.group = MemoryGroup(self.target.pid)
        self.start_tracer()
        self.target.stdin.write(b"\n")
        self.target.stdin.flush()
        wait_for("the step", lambda: "at\n" in read(self.said) or self.target.poll() is not None)
        self.happen()
        done = self.judge_target()
        for other in self.beside:
            if other.wait(LONGEST) and self.fault == "two-tracers":
                raise Wrong(f"the second tracer ended with {other.returncode}")
        self.judge_tracer(done)
        if self.fault != "target-killed":
            self.judge_rest()
            self.target.stdin.close()
            if self.target.wait(LONGEST):
                raise Wrong(f"the program ended with {self.target.returncode}")

    def judge_target(self):
        """How many calls the program made; None: it was killed."""
        if self.fault == "target-killed":
            self.target.wait(LONGEST)
            return None
        wait_for("the program's end", lambda: self.done() or self.target.poll() is not None)
        found = re.search(r"done (\d+) (\d+)", read(self.said))
        if not found or found.group(2) != "0":
            raise Wrong(f"the program was harmed: {read(self.said)[-200:]!r}, status {self.target.poll()}")
        return int(found.group(1))

    def judge_tracer(self, done):
        if self.tracer.poll() is None and done is not None or self.way == "serve":
            self.tracer.send_signal(signal.SIGINT)
        try:
            status = self.tracer.wait(LONGEST)
        except subprocess.TimeoutExpired:
            raise Wrong(f"cudatrace does not end: {self.last()}") from None
        if self.fault == "tracer-killed":
            return
        if status < 0 or status > 128 and self.fault != "target-killed":
            raise Wrong(f"cudatrace crashed: status {status}: {self.last()}")
        if done is not None and self.fault != "tracer-ended":
            self.judge_calls(done)

    def counted(self):
        """Calls that have rows, or are in sums, and those that are said to be lost. None: this way does not say."""
        text = read(self.out)
        if self.way == "record":
            text = subprocess.run([CT, "replay", "--format", "json", self.out], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        if self.way in ("json", "record", "gpu", "hooks", "cupti"):
            rows = lost = 0
            for line in text.splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                rows += row["type"] == "call" and row["name"] in CALLED and row["pid"] == self.target.pid
                lost += sum(v for v in row["lost"].values()) if row["type"] == "end" else 0
            return rows, lost
        if self.way == "table":
            return sum(bool(re.search(rf"\b{self.target.pid} +(cudaMalloc|cudaMemcpy|cudaFree) ", line)) for line in text.splitlines()), 0
        if self.way in ("stat", "hooks-stat"):
            try:
                return sum(c["calls"] for c in json.loads(text)["runtime"] if c["name"] in CALLED), 0
            except (ValueError, KeyError):
                return 0, 0
        return None

    def judge_calls(self, done):
        if self.slow and self.slow.writes < 2:
            raise Wrong(f"{self.slow.writes} writes to the slow disk")
        found = self.counted()
        if found is None:
            return
        rows, lost = found
        if rows > done:
            raise Wrong(f"{rows} rows of {done} calls")
        # what is said on the way, apart from how it began
        said = re.search(r"lost|not seen|missing|no more|left|ended|become|cannot|full|No space|memory|open files|closed|gone", self.last())
        if rows + lost < done and not said:
            raise Wrong(f"{rows} rows and {lost} lost of {done} calls, and nothing is said: {self.last()}")
        # the agent's connection is in the program's table of descriptors: the last line must have its row
        if self.fault in ("dup2", "closefrom") and "closed the connection of its agent: its further calls are not known" in self.last():
            return
        if rows + lost < done and self.fault not in ("exec", "socket", "clock", "memory", "descriptors", "disk-full", *LOSES.get(self.way, [])):
            raise Wrong(f"{rows} rows and {lost} lost of {done} calls: {self.last()}")

    def judge_rest(self):
        pid = self.target.pid
        # docs/limits.md: who may not open its own memory any more cannot be mended from within
        if self.fault in ("setuid", "chroot") and self.way in ("gpu", "cupti"):
            if changed(pid) and "its hooks on CUPTI cannot be removed" not in read(self.err):
                raise Wrong("code is not as it was, and nothing is said")
            wait_for("the agent's threads to end", lambda: len(os.listdir(f"/proc/{pid}/task")) == 1)
            return
        try:
            wait_for("the code as it was", lambda: not changed(pid), 30)
        except Wrong:
            other = self.start_target("control", "none")
            try:
                wait_for("another tracer", lambda: changed(other.pid), 3)
            except Wrong:
                raise Wrong(f"code of {' '.join(changed(pid))} is not as it was") from None
            finally:
                other.kill()
                other.wait()
            raise Disturbed("another tracer of this machine has probes on every library") from None
        wait_for("the agent's threads to end", lambda: len(os.listdir(f"/proc/{pid}/task")) == 1)
        wait_for("cudatrace's processes to end", lambda: not of_session(self.tracer.pid))

    def close(self):
        for process in [*self.beside, self.tracer, self.target]:
            if process and process.poll() is None:
                process.kill()
                process.wait()
        if self.disk:
            subprocess.run(["umount", "-l", self.disk], check=False)
        if self.slow:
            self.slow.close()
        if self.group:
            self.group.close()


def one(seed, fault, way, keep):
    name = f"{fault}-{way}"
    why = (reason(fault, way) or (fault == "bpftrace" and not shutil.which("bpftrace") and "bpftrace is not installed")
           or (fault == "slow-disk" and not os.path.exists("/dev/fuse") and "no FUSE here")
           or (fault == "target-memory" and not any(MemoryGroup.places()) and "no cgroup with a limit of memory can be made here"))
    if why:
        print(f"skip {name}: {why}", flush=True)
        return True
    folder = tempfile.mkdtemp(prefix="cudatrace-faults.")
    pair, good, began = Pair(seed, fault, way, folder), True, time.monotonic()
    try:
        with machine.taken("undisturbed"):
            pair.run()
        print(f"ok {name} (step {pair.at}, {time.monotonic() - began:.1f} s)", flush=True)
    except Disturbed as why:
        print(f"skip {name}: {why}", flush=True)
    except (Wrong, subprocess.TimeoutExpired, OSError) as why:
        good = False
        print(f"not ok {name}: {why}; again: tests/faults/run.py --seeds {seed}..{seed} --fault {fault} --way {way}".replace("\n", " "), flush=True)
    finally:
        pair.close()
        if keep and not good:
            print(f"   kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return good


def main():
    parser = argparse.ArgumentParser(description="a fault at a random moment, while cudatrace does each of the things that it does")
    parser.add_argument("--seeds")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--random", type=int)
    parser.add_argument("--fault")
    parser.add_argument("--way")
    parser.add_argument("-l", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    faults = options.fault.split(",") if options.fault else FAULTS
    ways = options.way.split(",") if options.way else list(WAYS)
    if options.l:
        for fault in faults:
            for way in ways:
                print(f"{fault} {way}: {reason(fault, way) or 'tested'}")
        return 0
    if options.random:
        first = int(time.time())
        seeds = range(first, first + options.random)
    else:
        a, b = (options.seeds or f"0..{len(FAULTS) - 1}").split("..")
        seeds = range(int(a), int(b) + 1)
    good = True
    for seed in seeds:
        fault = faults[seed % len(faults)]
        choice = [w for w in ways if not reason(fault, w)] or ways
        good &= one(seed, fault, choice[random.Random(seed * 7919 + 1).randrange(len(choice))], options.keep)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
