#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""anew.py - attacks by namespaces, clocks, memory that moves, masses of stacks and streams, notes: tests/hostile/anew.py [NAME...]

Process numbers that are the same in several namespaces, a clock of a program's own, huge command lines, a library whose mappings are moved and cut while
it is traced, another process that holds the thread of the hooks, ten thousands of stacks and streams, masses of threads that die amid calls, and notes,
links and folders of debug files that make no sense. Needs root, gcc, `make standin cases-progs`. CUDATRACE: another binary. Prints `ok` and `not ok` lines.
"""
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import attack
import machine
from again import ENV, NOBODY, build
from attack import CT, OUT, T, check

LIMIT_S = 120
MEMORY = 600 << 20  # of cudatrace, in bytes
SPACES = 6
RUNTIME = "libcudart.so.13"


def rows_of(path):
    with open(path, encoding="utf-8", errors="strict") as f:
        return [json.loads(line) for line in f]


def calls_of(rows):
    return [row for row in rows if row["type"] == "call"]


def traced(args, program, env=None, limit=LIMIT_S):
    """cudatrace ARGS -- PROGRAM: its rows, what it said, and the memory that it took at most."""
    p = subprocess.Popen([CT, "--format", "json", "-o", f"{T}/out", *args, "--", *program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, env=env or ENV)
    try:
        said = p.communicate(timeout=limit)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        p.kill()
        raise attack.Held(f"{args} {program[0]}: it does not end") from None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    check(f"{args} {program[0]}: status {p.returncode}: {said[-300:]}", 0 <= p.returncode < 128 and "Sanitizer" not in said)
    return rows_of(f"{T}/out"), said, peak


QUERIES_C = """
#include <stdlib.h>
#include <unistd.h>
int cudaStreamQuery(void *);
int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++)
		cudaStreamQuery((void *)(long)atoi(argv[2]));
	return 0;
}
"""


def test_spaces():
    """Programs that have the same number, each in a PID namespace of its own: each has its own calls, under its number here."""
    program = build("queries", QUERIES_C, RUNTIME)
    done = 0
    # each makes another number of calls, with a stream of its own
    script = " ".join(f"unshare -Urpf {program} {10 + i} {i + 1} &" for i in range(SPACES)) + " wait"
    for source in ("--source=probes", "--source=hooks"):
        rows, said, _ = traced([source, "-e", "cudaStreamQuery", "--keep-chatty"], [*NOBODY, "sh", "-c", script])
        if source == "--source=hooks" and machine.disturbed(said):
            continue
        by_pid = {}
        for row in calls_of(rows):
            by_pid.setdefault(row["pid"], []).append(row["args"]["stream"])
        got = sorted((len(streams), *set(streams)) for streams in by_pid.values())
        check(f"{source}: {got}; {said[-200:]}", got == [(10 + i, hex(i + 1)) for i in range(SPACES)] and min(by_pid) > 1)
        done += 1
    return f"{SPACES} programs of one number in {SPACES} PID namespaces, by {done} sources: each call under its own process"


def test_clock():
    """A program whose monotonic clock is another one (a time namespace): its rows have the machine's time."""
    program = build("queries", QUERIES_C, RUNTIME)
    done = 0
    for offset in ("1000000", "-100"):
        for source in ("--source=probes", "--source=hooks", "--gpu"):
            work = [f"{OUT}/cases/work", "10", "return"] if source == "--gpu" else [program, "10", "1"]
            began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            rows, said, _ = traced([source, "--keep-chatty"], [*NOBODY, "unshare", "-UrTf", f"--monotonic={offset}", *work])
            ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            if machine.disturbed(said):
                continue
            if "Invalid argument" in said or "not permitted" in said:
                continue
            calls = calls_of(rows)
            check(f"{source} {offset}: {len(calls)} calls: {said[-200:]}", len(calls) >= 10)
            wrong = [row["start_ns"] - began for row in rows if row["type"] in ("call", "kernel") and not began - 10 ** 9 < row["start_ns"] < ended + 10 ** 9]
            check(f"{source} {offset}: {len(wrong)} rows at other times, as {wrong[:3]} of {ended - began} ns; {said[-200:]}", not wrong)
            done += 1
    check(f"{done} ways", done >= 2)
    return f"programs with a monotonic clock of their own, {done} ways: all rows have the machine's time"


def test_words():
    """A command line of 100 000 words, one of a single word of 128 KiB, and words that are meant for a terminal: cut, and nothing else."""
    program = build("queries", QUERIES_C, RUNTIME)
    lines = ([program, "5", "1", *["w"] * 100000], [program, "5", "1", "x" * 131000], [program, "5", "1", *["\x1b[2J</script>\xff\n=1+1"] * 2000])
    most = 0
    for line in lines:
        for args in ([], ["--source=hooks"]):
            rows, said, peak = traced(args, line, env={**ENV, "BIG": "y" * 100000})
            check(f"{len(line)} words: {said[-200:]}", machine.disturbed(said) or len(calls_of(rows)) == 5)
            check(f"{len(line)} words: a control byte", "\x1b" not in said)
            most = max(most, os.path.getsize(f"{T}/out"))
        p = subprocess.run([CT, "record", "-o", f"{T}/rec", "--", *line], capture_output=True, timeout=LIMIT_S, check=False, env=ENV)
        check(f"recorded: {p.stderr[-200:]}", p.returncode == 0)
        for to in ("chrome", "html", "perfetto"):
            attack.run("export", "--to", to, "-f", "-o", f"{T}/exported", f"{T}/rec")
    check(f"an output of {most} bytes", most < 300000)
    return f"command lines of 100 000 words, of 131 000 bytes, of control bytes: each traced, at most {most} bytes of JSON"


MOVED_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void one(int how)
{
	char line[512], path[400];
	unsigned long from, to, off;
	FILE *f;
	void *h = dlopen("libcudart.so.13", RTLD_NOW);
	int (*query)(void *) = (int (*)(void *))dlsym(h, "cudaStreamQuery");
	for (int i = 0; i < 5; i++)
		query(0);
	f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %399s", &from, &to, &off, path) == 4 && strstr(path, "libcudart"))
			break;
	fclose(f);
	alarm(60);
	for (int i = 0; i < 200; i++) {
		void *there = mmap(0, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		switch (how) {
		case 0: /* away, and back */
			mremap((void *)from, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, there);
			mremap(there, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from);
			break;
		case 1: /* a second copy, page by page */
			for (unsigned long at = 0; at < to - from; at += 4096)
				mremap((void *)(from + at), 0, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)there + at);
			break;
		case 2: mprotect((void *)from, to - from, i % 2 ? PROT_READ | PROT_EXEC : PROT_NONE); break;
		case 3: madvise((void *)from, to - from, MADV_DONTNEED); break;
		case 4: /* in pieces */
			mprotect((void *)(from + 4096UL * (i % ((to - from) / 4096))), 4096, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC);
			break;
		case 5: munmap((void *)from, to - from); break;
		}
		if (how < 3 && i % 2)
			query(0);
	}
	_exit(0);
}
int main(int argc, char **argv)
{
	for (int how = 0; how < 6; how++) {
		int status;
		pid_t pid = fork();
		if (!pid)
			one(how);
		waitpid(pid, &status, 0);
		/* what it did to itself is its own doing; so that both have the same, it is told */
		printf("%d %d\n", how, status);
	}
	return 0;
}
"""


def test_moved():
    """A program moves, copies, cuts, protects and unmaps the mappings of a library that is traced: a program beside it has all its calls, by probes the
    program itself does what it does without a tracer, and cudatrace ends."""
    program, honest = build("moved", MOVED_C, RUNTIME), build("queries", QUERIES_C, RUNTIME)
    alone = subprocess.run([program], capture_output=True, check=True, timeout=LIMIT_S, env=ENV).stdout
    for args in ([], ["--nested"], ["--source=hooks"]):
        rows, said, _ = traced([*args, "-e", "cudaStreamQuery", "--keep-chatty"], ["sh", "-c", f"{program} > {T}/did & {honest} 100 7; wait"])
        own = [row for row in calls_of(rows) if row["args"]["stream"] == "0x7"]
        if machine.disturbed(said):
            continue
        check(f"{args}: {len(own)} calls of the honest program; {said[-300:]}", len(own) == 100)
        with open(f"{T}/did", "rb") as f:
            did = f.read()
        check(f"{args}: {did} is not {alone}", "--source=hooks" in args or did == alone)
    return "six ways to move, copy, cut, protect and unmap a traced library, 200 times each: the program does by probes what it does without"


HELD_C = """
#include <stdio.h>
#include <unistd.h>
int cudaStreamQuery(void *);
int main(void)
{
	printf("%d\\n", getpid());
	fflush(stdout);
	for (int i = 0; i < 1000; i++) {
		cudaStreamQuery(0);
		usleep(1000);
	}
	return 0;
}
"""


def test_thread():
    """Another process of the user traces the thread of the hooks or of the agent in a program, and holds it: cudatrace and the program end."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    program = build("held", HELD_C, RUNTIME)
    held = 0
    for args in (["--source=hooks"], ["--gpu"]):
        p = subprocess.Popen([CT, *args, "--format", "json", "-o", f"{T}/out", "--", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        pid = int(p.stdout.readline())
        told, tell = os.pipe()
        holder = os.fork()
        if not holder:
            n = 0
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/comm") as f:
                    if f.read().startswith("cudatrace") and libc.ptrace(0x4206, int(tid), None, None) == 0:  # SEIZE
                        libc.ptrace(0x4207, int(tid), None, None)  # INTERRUPT
                        n += 1
            os.write(tell, bytes([n]))
            signal.pause()
        held += os.read(told, 1)[0]
        # the program's end is its parent's only when who traces a thread of it lets that go
        state, until = "", time.monotonic() + 100
        while state not in ("Z", "X") and time.monotonic() < until:
            time.sleep(0.05)
            try:
                with open(f"/proc/{pid}/stat") as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                state = "X"
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        check(f"{args}: the program does not end while a thread of ours is held: {state}", state in ("Z", "X"))
        try:
            said = p.communicate(timeout=LIMIT_S)[1]
        except subprocess.TimeoutExpired:
            os.kill(pid, signal.SIGKILL)
            p.kill()
            raise attack.Held(f"{args}: the program or cudatrace does not end") from None
        calls = calls_of(rows_of(f"{T}/out"))
        check(f"{args}: status {p.returncode}, {len(calls)} calls: {said[-300:]}", p.returncode == 0 and (len(calls) == 1000 or machine.disturbed(said.decode())))
    return f"{held} threads of ours held by ptrace in programs that make 1000 calls: all calls are there, and both end"


SITES_C = """
#include <stdlib.h>
int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaStreamQuery(void *);
static volatile int sink;
static __attribute__((noinline)) int down(unsigned path, int depth)
{
	if (!depth) {
		void *p;
		sink += cudaMalloc(&p, 64);
		return cudaFree(p);
	}
	/* two places of call: so many stacks as paths */
	if (path & 1)
		sink += down(path >> 1, depth - 1);
	else
		sink -= down(path >> 1, depth - 1);
	return sink;
}
int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++)
		down((unsigned)i, 16);
	return 0;
}
"""
SITES = 40000


def test_sites():
    """Memory is allocated from ever new stacks: all allocations are in the sums, and memory is bounded."""
    program = build("sites", SITES_C, RUNTIME)
    p = subprocess.Popen([CT, "mem", "--json", "-o", f"{T}/mem", "--", program, str(SITES)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENV)
    peak = 0
    while p.poll() is None:
        with open(f"/proc/{p.pid}/status") as f:
            peak = max([peak, *(int(n) << 10 for n in re.findall(r"VmHWM:\s+(\d+)", f.read()))])
        time.sleep(0.2)
    said = p.stderr.read()
    check(f"status {p.returncode}: {said[-300:]}", p.returncode == 0)
    said = re.sub(r"(?<=\d)[ ,](?=\d)", "", said.decode())
    calls = [int(n) for n in re.findall(r"cudatrace: (\d+) calls", said)]
    check(f"{said[-300:]}", calls == [2 * SITES] and " 0 lost" in said)
    check(f"{peak >> 20} MiB", peak < MEMORY)
    return f"{SITES} allocations from as many stacks: {calls[0]} calls, {peak >> 20} MiB"


STREAMS_C = """
#include <stdlib.h>
int cudaMemcpyAsync(void *, const void *, unsigned long, int, void *);
int main(int argc, char **argv)
{
	char a[8], b[8];
	for (long i = 0; i < atoi(argv[1]); i++)
		cudaMemcpyAsync(a, b, 8, 0, (void *)(i * 64 + 4096));
	return 0;
}
"""
STREAMS = 80000


def test_streams():
    """Copies on ever new streams: a row each as far as there is room, and what there is no room for is counted."""
    program = build("streams", STREAMS_C, RUNTIME)
    total = []
    for args in ([], ["--source=hooks"]):
        p = subprocess.run([CT, "stat", *args, "--by", "stream", "--json", "-o", f"{T}/stat", "--", program, str(STREAMS)], capture_output=True, timeout=LIMIT_S,
                           check=False, env=ENV)
        said = p.stderr.decode(errors="replace")
        check(f"{args}: status {p.returncode}: {said[-300:]}", p.returncode == 0)
        if machine.disturbed(said):
            continue
        with open(f"{T}/stat") as f:
            out = json.load(f)
        calls = sum(row["calls"] for row in out["runtime"])
        lost = sum(out.get("lost", {}).values())
        check(f"{args}: {calls} calls and {lost} lost of {STREAMS}: {said[-200:]}", calls + lost + out.get("no_room", 0) == STREAMS)
        total.append(f"{len(out['runtime'])} rows, {lost} counted as lost")
    return f"{STREAMS} streams: {'; by hooks '.join(total)}; none is missing"


DYING_C = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int cudaStreamQuery(void *);
static struct { _Atomic long begun, ended; } *all;
static void *calls(void *x)
{
	for (;;) {
		all->begun++;
		cudaStreamQuery(x);
		all->ended++;
	}
	return x;
}
int main(int argc, char **argv)
{
	all = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < atoi(argv[1]); i++) {
		pid_t pid = fork();
		if (!pid) {
			pthread_t t;
			for (int k = 0; k < 24; k++)
				pthread_create(&t, 0, calls, (void *)1);
			usleep(3000);
			switch (i % 4) {
			case 0: _exit(0);
			case 1: kill(getpid(), SIGKILL);
			case 2: execl("/bin/true", "true", (char *)0);
			case 3: *(volatile int *)0 = 1;
			}
		}
		waitpid(pid, 0, 0);
	}
	printf("%ld %ld\\n", (long)all->begun, (long)all->ended);
	return 0;
}
"""


def test_dying():
    """Processes end, are killed, crash and execute another program while two dozen threads of each make calls: each call that ended has its row."""
    program = build("dying", DYING_C, RUNTIME)
    p = subprocess.run([CT, "-e", "cudaStreamQuery", "--keep-chatty", "-c", "-f", "--ring-size=64M", "-o", f"{T}/out", "--", program, "8"], capture_output=True,
                       timeout=LIMIT_S, check=False, env=ENV)
    begun, ended = (int(n) for n in p.stdout.split())
    said = re.sub(r"(?<=\d)[ ,](?=\d)", "", p.stderr.decode())
    rows, lost = (int(n) for n in re.search(r"(\d+) calls.*?(\d+) lost", said).groups())
    check(f"{rows} rows and {lost} lost of {ended} to {begun} calls: {said[-200:]}", p.returncode == 0 and ended <= rows + lost <= begun)
    return f"8 processes with 24 threads each that die amid calls: {rows} rows and {lost} lost of {ended} to {begun} calls"


NOTES = {
    "a build id of nothing": "4, 0, 3", "a build id of 2 GB": "4, 0x7fffffff, 3", "a name of 4 GB": "0xffffffff, 20, 3", "lengths that wrap": "0xfffffffc, 0xfffffffc, 3",
    "a build id of 1 MB": "4, 1048576, 3",
}


def test_notes():
    """Notes, names and folders of debug files that make no sense, in a program whose stacks are taken: all calls are there."""
    text = """
int cudaStreamQuery(void *);
__attribute__((noinline)) int named(void) { return cudaStreamQuery(0) + 1; }
int main(void) { for (int i = 0; i < 5; i++) named(); return 0; }
"""
    done = 0
    for what, head in NOTES.items():
        name = f"notes{done}"
        with open(f"{T}/{name}.s", "w") as f:
            f.write(f'.section .note.gnu.build-id,"a",@note\n.long {head}\n.asciz "GNU"\n.fill {1048576 if "1 MB" in what else 20}, 1, 0x2e\n'
                    '.section .note.GNU-stack,"",@progbits\n.section .gnu_debuglink,"",@progbits\n.ascii "../../../../proc/self/mem"\n')
        with open(f"{T}/{name}.c", "w") as f:
            f.write(text)
        subprocess.run(["gcc", "-w", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=none", "-o", f"{T}/{name}", f"{T}/{name}.c", f"{T}/{name}.s", f"-L{OUT}/standin",
                        f"-l:{RUNTIME}"], check=True, timeout=240)
        # a folder of debug files that leads back to where it lies, and to a device
        shutil.rmtree(f"{T}/.debug", ignore_errors=True)
        os.makedirs(f"{T}/.debug", exist_ok=True)
        os.symlink("..", f"{T}/.debug/.debug")
        os.symlink("/dev/zero", f"{T}/.debug/{name}.debug")
        rows, said, peak = traced(["--stack", "-e", "cudaStreamQuery"], [f"{T}/{name}"])
        check(f"{what}: {len(calls_of(rows))} calls: {said[-200:]}", len(calls_of(rows)) == 5)
        check(f"{what}: {peak >> 20} MiB", peak < 4 * MEMORY)
        done += 1
    shutil.rmtree(f"{T}/.debug", ignore_errors=True)
    return f"{done} programs with notes and debug links that make no sense, and a folder .debug that leads to itself: all calls are there"


if __name__ == "__main__":
    sys.exit(attack.main(globals()))
