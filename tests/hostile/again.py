#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""again.py - attacks by other means than attack.py and deeper.py: tests/hostile/again.py [NAME...]

Masses of short threads, process numbers that are used again, overlay file systems in a user's namespace, libraries that come and go under one name,
names of kernels in each format. Needs root, gcc, `make standin cases-progs`. CUDATRACE: another binary. Prints `ok` and `not ok` lines.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import attack
from attack import CT, OUT, T, Serve, check

THREADS = 10000
REUSED = 200
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
ENV = {**os.environ, "LD_LIBRARY_PATH": f"{OUT}/standin"}

THREADS_C = """
#include <pthread.h>
#include <stdlib.h>
int cudaStreamQuery(void *);
static void *one(void *x) { cudaStreamQuery(0); return x; }
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	pthread_t t[50];
	for (int i = 0; i < n; i += 50) {
		for (int k = 0; k < 50; k++)
			if (pthread_create(&t[k], 0, one, 0))
				return 1;
		for (int k = 0; k < 50; k++)
			pthread_join(t[k], 0);
	}
	return argc != 2;
}
"""

KERNELS_C = """
#include <stdio.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned, int), cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *), cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, void *, void **, void **);
static const char *const names[] = { "=cmd|' /C calc'!A0", "\\x1b[2J\\x07bell", "</script><script>alert(1)</script>", "'; DROP TABLE StringIds; --",
	"\\xff\\xfe\\x80", "a\\nb\\rc\\td", "\\"quote\\\\", "{{7*7}}", "\\xe2\\x80\\xae" "rtl", "\\xc2\\x9b" "31m", "%s%n%p", "" };
int main(void)
{
	void *c, *m, *f;
	int d;
	cuInit(0); cuDeviceGet(&d, 0); cuCtxCreate_v2(&c, 0, d);
	if (cuModuleLoadData(&m, ".version 6.3\\n.target sm_52\\n.address_size 64\\n.visible .entry vec_add(.param .u64 pa)\\n{ret;}\\n"))
		return 2;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		cuModuleGetFunction(&f, m, names[i]);
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	}
	return 0;
}
"""


def build(name, text, *libraries):
    with open(f"{T}/{name}.c", "w") as f:
        f.write(text)
    subprocess.run(["gcc", "-w", "-O1", "-pthread", "-o", f"{T}/{name}", f"{T}/{name}.c", f"-L{OUT}/standin",
                    *(f"-l:{one}" for one in libraries)], check=True, timeout=240)
    return f"{T}/{name}"


def end_of(path):
    with open(path) as f:
        return json.loads(f.read().splitlines()[-1])


def test_threads():
    """Threads that live for one call each: each call is there, and no memory stays."""
    path = build("threads", THREADS_C, "libcudart.so.13")
    subprocess.run([CT, "--format", "json", "-e", "cudaStreamQuery", "--keep-chatty", "-o", f"{T}/out", "--", path, str(THREADS)], check=True,
                   timeout=300, env=ENV, stderr=subprocess.DEVNULL)
    end = end_of(f"{T}/out")
    lost = sum(n for cause, n in end["lost"].items() if cause != "orphan_return")
    check(f"calls {end['calls']}, lost {lost}", end["calls"] + lost == THREADS)
    return f"{THREADS} threads that live for one call each: {end['calls']} calls, {lost} lost"


def test_reused():
    """Processes that get one number after each other, of two names: none is counted under the name of another."""
    names = [f"{T}/reuse{kind}" for kind in "ab"]
    for name in names:
        os.symlink(f"{OUT}/cases/work", name)
    with Serve() as s:
        until = time.monotonic() + 120
        while b'process="reusea"' not in s.scrape() and time.monotonic() < until:
            subprocess.run([names[0], "1", "return"], check=True, stdout=subprocess.DEVNULL, env=ENV)

        def launches():
            rows = re.findall(rb'gpu_cuda_kernel_launch_calls_total\{process="(reusea|reuseb)"\} (\d+)', s.scrape())
            return {name.decode(): int(n) for name, n in rows}
        time.sleep(1)
        before, numbers, first = launches(), {}, 0
        for i in range(REUSED):
            if first:
                with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                    f.write(str(first - 1))
            p = subprocess.Popen([names[i % 2], "1", "return"], stdout=subprocess.DEVNULL, env=ENV)
            first = first or p.pid
            numbers[p.pid] = numbers.get(p.pid, 0) + 1
            check("status", p.wait(60) == 0)
        until, got = time.monotonic() + 120, {}
        while sum(got.values()) < REUSED and time.monotonic() < until:
            time.sleep(0.2)
            got = {name: n - before.get(name, 0) for name, n in launches().items()}
    check(f"launches {got}", got == {"reusea": REUSED // 2, "reuseb": REUSED // 2})
    return f"{REUSED} processes of two names, {max(numbers.values())} of them with one number: {got}"


def test_overlay():
    """A library on overlay file systems that a user mounts in namespaces of their own."""
    folder = f"{T}/lower"
    shutil.copytree(f"{OUT}/standin", folder, ignore=lambda _, names: [n for n in names if not n.startswith("libcuda")])
    script = ('set -e; for i in 1 2 3 4 5; do mkdir -p /tmp/o$i; mount -t tmpfs none /tmp/o$i; mkdir /tmp/o$i/u /tmp/o$i/w /tmp/o$i/m; '
              f'mount -t overlay -o lowerdir={folder},upperdir=/tmp/o$i/u,workdir=/tmp/o$i/w,userxattr none /tmp/o$i/m; '
              f'for k in 1 2 3; do LD_LIBRARY_PATH=/tmp/o$i/m {T}/layered 1 return; '
              'cp /tmp/o$i/m/libcudart.so.13 /tmp/o$i/m/new; mv /tmp/o$i/m/new /tmp/o$i/m/libcudart.so.13; done; umount -l /tmp/o$i/m; done')
    os.symlink(f"{OUT}/cases/work", f"{T}/layered")
    os.mkdir(f"{T}/mnt")
    os.chmod(f"{T}/mnt", 0o777)
    with Serve() as s:
        p = subprocess.run([*NOBODY, "unshare", "-Urm", "sh", "-c", script.replace("/tmp/o", f"{T}/mnt/o")],
                           capture_output=True, text=True, timeout=120, check=False)
        subprocess.run([f"{T}/layered", "1", "return"], check=True, stdout=subprocess.DEVNULL, env=ENV)
        s.scrape()
        said = p.stdout.count("launched")
    check(f"overlays: {p.stderr[-200:]}", said)
    return f"a library on 5 overlays, replaced 3 times on each, {said} runs: serve goes on"


def test_kernels():
    """Names of kernels with control bytes, formulas, markup, SQL, in each format."""
    path = build("kernels", KERNELS_C, "libcuda.so.1")
    formats = ("table", "json", "csv", "chrome", "html", "folded", "speedscope", "perfetto", "nsys-sqlite")
    for fmt in formats:
        p = subprocess.run([CT, "--format", fmt, "-o", f"{T}/k.{fmt}", "--", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120,
                           check=False, env=ENV)
        check(f"{fmt}: {p.returncode}: {p.stderr[-200:]}", p.returncode in (0, 1, 2))
        with open(f"{T}/k.{fmt}", "rb") as f:
            out = f.read()
        if fmt not in ("perfetto", "nsys-sqlite"):
            check(f"{fmt}: control bytes", not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", out))
            check(f"{fmt}: no UTF-8", out.decode(errors="replace").count("\ufffd") == out.count("\ufffd".encode()))
        if fmt == "html":
            check("html: markup", b"<script>alert" not in out)
        if fmt in ("chrome", "speedscope"):
            json.loads(out)
        if fmt == "json":
            [json.loads(line) for line in out.splitlines()]
        if fmt == "csv":
            check("csv: a formula", not re.search(rb'(^|,)"?[=@]', out, re.M))
        if fmt == "nsys-sqlite":
            sane = subprocess.run(["python3", "-c", "import sqlite3,sys;print(sqlite3.connect(sys.argv[1]).execute('pragma integrity_check').fetchone()[0])",
                                   f"{T}/k.{fmt}"], capture_output=True, text=True, timeout=240, check=False)
            check(f"nsys-sqlite: {sane.stderr}", sane.stdout == "ok\n")
    return f"12 names of kernels in {len(formats)} formats"


if __name__ == "__main__":
    sys.exit(attack.main(globals()))
