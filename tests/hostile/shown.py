#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""shown.py - what a program calls itself, its threads, functions, categories and payloads, where people and other programs read it live:
tests/hostile/shown.py [NAME...]

The screen of `top`, `stuck`, the exposition of `serve` and the number of its labels, and the bytes of Protocol Buffers, which are parsed
field by field. Needs root, gcc, `make standin cases-progs`. CUDATRACE: another binary. Prints `ok` and `not ok` lines.
"""
import fcntl
import glob
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import attack
import names
from again import build
from attack import CT, OUT, T, Serve, check
from names import LIMIT_S, NAMES, plain, program, quoted

ENV = names.ENV
# what ncurses sends to such a terminal: no titles, no questions, no C1 codes, no bells
SCREEN = re.compile(rb"\x1b\[[?>]?[\d;]*[A-Za-z@`]|\x1b[()][0AB]|\x1b[=>78M]|[\n\r\b\x0e\x0f]")
QUESTIONS = re.compile(rb"\x1b\[[\d;]*[ncqpy]")
KERNELS = 3000

WORDS = "{ " + ", ".join(f'"{quoted(n)}Qj"' for n in NAMES) + " }"

# Threads of these names, each in a function of such a name, which wait in a call for good, or make calls.
PEOPLE_C = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int cudaStreamQuery(void *), cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned, int), cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *), cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, void *, void **, void **);
static const char *const words[] = %(words)s;
enum { N = sizeof(words) / sizeof(*words) };
static int loops;
static void *kernels[N];
%(functions)s
static int (*const functions[N])(void) = { %(list)s };
static void *one(void *x)
{
	long i = (long)x;
	prctl(PR_SET_NAME, words[i]);
	do {
		functions[i]();
		if (kernels[i])
			cuLaunchKernel(kernels[i], 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
		usleep(20000);
	} while (loops);
	return x;
}
int main(int argc, char **argv)
{
	pthread_t t[N];
	void *c, *m;
	int d;

	loops = argc > 1;
	cuInit(0); cuDeviceGet(&d, 0); cuCtxCreate_v2(&c, 0, d);
	if (cuModuleLoadData(&m, ".version 6.3\n.target sm_52\n.address_size 64\n.visible .entry vec_add(.param .u64 pa)\n{ret;}\n"))
		return 2;
	for (long i = 0; i < N; i++)
		cuModuleGetFunction(&kernels[i], m, words[i]);
	for (long i = 0; i < N; i++)
		pthread_create(&t[i], 0, one, (void *)i);
	puts("ready");
	fflush(stdout);
	for (long i = 0; i < N; i++)
		pthread_join(t[i], 0);
	return 0;
}
"""


def people():
    """The program, under each of the names as a link; their paths."""
    stand_ins = [f"s{i:06}".ljust(len(n) + 8, "_") for i, n in enumerate(NAMES)]
    text = PEOPLE_C % {"words": WORDS, "list": ", ".join(stand_ins),
                       "functions": "\n".join(f"__attribute__((noinline)) int {n}(void) {{ return cudaStreamQuery(0) + {i}; }}"
                                              for i, n in enumerate(stand_ins))}
    path = build("people", text, "libcudart.so.13", "libcuda.so.1")
    with open(path, "rb") as f:
        image = f.read()
    for i, (instead, name) in enumerate(zip(stand_ins, NAMES)):
        image = image.replace(instead.encode() + b"\0", name + b"Qj%06d" % i + b"\0")
    with open(path, "wb") as f:
        f.write(image)
    links = []
    for name in NAMES:
        if b"/" not in name:
            links.append(os.path.join(os.fsencode(T), name[:60] + b"Qj"))
            if not os.path.lexists(links[-1]):
                os.symlink(path, links[-1])
    return path, links


def on_screen(args, keys, seconds):
    """What a command writes to a terminal while these keys are pressed one after the other."""
    pid, fd = pty.fork()
    if not pid:
        os.execve(CT, [CT, *args], {**ENV, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    out, keys, until, nextkey = b"", list(keys), time.monotonic() + LIMIT_S, 0
    while time.monotonic() < until:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
        # the next key when a screen has been drawn and shown for a while
        if b"Qj" in out and time.monotonic() > nextkey:
            if nextkey and keys:
                os.write(fd, keys.pop(0))
            nextkey = time.monotonic() + seconds
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    check(f"top's status {os.waitstatus_to_exitcode(status)}: {out[-300:]}", os.waitstatus_to_exitcode(status) == 0)
    return out


def test_top():
    """Processes, threads and kernels of such names on the screen of `top`, in all its views, and in its blocks of text."""
    _, links = people()
    running = [subprocess.Popen([link, b"loop"], stdout=subprocess.PIPE, env=ENV) for link in links[:20]]
    try:
        for p in running:
            check("the program begins", p.stdout.readline() == b"ready\n")
        pids = ",".join(str(p.pid) for p in running)
        # its functions, its kernels, its threads, back, the next process
        seen = on_screen(["top", "-i", "0.2", "-p", pids], [b"\r", b"k", b"t", b"\x1b", b"j", b"\r", b"k", b"t", b"?", b"\x1b", b"q", b"q", b"q"], 0.6)
        left = SCREEN.sub(b"", seen)
        for what in (b"Qj",):
            check("names on the screen", what in left)
        plain("top's screen", left)
        check("questions to the terminal", not QUESTIONS.search(seen))
        for more in ([], ["--format", "json"]):
            p = names.run("top", "--batch", "-n", "3", "-i", "0.3", "-p", pids, *more)
            plain("top --batch", p.stdout)
            check(f"names in top --batch {more}: {p.stdout[-300:]}", b"Qj" in p.stdout)
            if more:
                [json.loads(line) for line in p.stdout.splitlines()]
    finally:
        for p in running:
            p.kill()
            p.wait()
    return f"{len(running)} processes with {len(NAMES)} threads and kernels each: {len(seen)} bytes to the screen"


def test_stuck():
    """Threads that hang in calls, in functions of such names."""
    _, links = people()
    os.mkfifo(f"{T}/wait")
    for link in links[5], links[10]:
        p = subprocess.Popen([link], stdout=subprocess.PIPE, env={**ENV, "STANDIN_WAIT": f"cudaStreamQuery:{T}/wait"})
        try:
            check("the program begins", p.stdout.readline() == b"ready\n")
            time.sleep(0.5)
            for how in ((), ("--format", "json"), ("--format", "folded")):
                said = subprocess.run([CT, "stuck", "-p", str(p.pid), "--over", "0.3", *how], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
                                      check=False)
                if b"format" in said.stderr and said.returncode == 2:
                    continue
                check(f"stuck {how}: {said.returncode}: {said.stderr[-300:]}", said.returncode == 4 and b"Sanitizer" not in said.stderr)
                plain(f"stuck {how}", said.stdout)
                plain(f"stuck {how}: messages", said.stderr)
                check(f"stuck {how}: names {said.stdout[:300]}", said.stdout.count(b"Qj") >= len(NAMES))
                if "json" in how:
                    rows = [json.loads(line) for line in said.stdout.splitlines()]
                    check("stuck: rows", sum(row["type"] == "pending" for row in rows) == len(NAMES))
        finally:
            p.kill()
            p.wait()
    return f"{len(NAMES)} threads that hang in functions of such names, two processes"


LINE = re.compile(r'\w+(\{(\w+="(\\["\\n]|[^"\\\n])*",?)*\})? [-+\w.]+')
MANY_C = r"""
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned, int), cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *), cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, void *, void **, void **);
int main(int argc, char **argv)
{
	void *c, *m, *f;
	char name[600];
	int d;
	cuInit(0); cuDeviceGet(&d, 0); cuCtxCreate_v2(&c, 0, d);
	if (cuModuleLoadData(&m, ".version 6.3\n.target sm_52\n.address_size 64\n.visible .entry vec_add(.param .u64 pa)\n{ret;}\n"))
		return 2;
	for (int i = 0; i < atoi(argv[1]); i++) {
		snprintf(name, sizeof(name), "Qj%%d\"} 1\nup{b=\"c\\%%0400d", i, i);
		cuModuleGetFunction(&f, m, name);
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	}
	return 0;
}
"""


def test_labels():
    """Processes and kernels of such names, and ever new ones, as labels for Prometheus."""
    path, links = people()
    many = build("manyQj", MANY_C.replace("%%", "%"), "libcuda.so.1")
    with Serve("--processes", "50", "--kernels", "20") as s:
        def scraped(*wanted):
            until, text = time.monotonic() + LIMIT_S, b""
            while not all(re.search(what, text) for what in wanted):
                check(f"labels {wanted}", time.monotonic() < until)
                if not running:  # the first one runs before the library has probes
                    subprocess.run([many, str(KERNELS)], check=True, timeout=LIMIT_S, env=ENV)
                time.sleep(0.3)
                text = s.scrape()
            return text
        running = []
        text = scraped(rb'process="manyQj",kernel="Qj')
        running = [subprocess.Popen([link, b"loop"], stdout=subprocess.PIPE, env=ENV) for link in links]
        try:
            for p in running:
                check("the program begins", p.stdout.readline() == b"ready\n")
            text += scraped(rb'process="manyQj"', rb'process="@SUM\(1\)Qj"', rb'process="-1Qj"')
        finally:
            for p in running:
                p.kill()
                p.wait()
    plain("exposition", text)
    for line in text.decode().splitlines():
        check(f"exposition: {line[:100]}", line.startswith("#") or LINE.fullmatch(line))
        check(f"a label of theirs: {line[:100]}", 'up{b=' not in line or line.index('up{b=') > line.index('{'))
        check(f"a long label: {line[:60]}", len(line) < 2000)
    series = sum(not line.startswith("#") for line in text.decode().splitlines()) // 2
    kernels = len(set(re.findall(r'kernel="((?:\\.|[^"\\])*)"', text.decode())))
    check(f"{kernels} names of kernels", kernels <= 2 * 21)
    check(f"{len(text)} bytes", len(text) < 4 << 20)
    return f"{len(links)} names of processes, {len(NAMES) + KERNELS} of kernels: {series} series, {kernels} kernels, {len(text)} bytes"


PAYLOAD_C = r"""
#include <string.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
int cudaStreamQuery(void *);
static const char *const words[] = %(words)s;
static nvtxEventAttributes_t attributes(const char *message)
{
	nvtxEventAttributes_t a = { 0 };

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = message;
	return a;
}
static void range(nvtxDomainHandle_t d, nvtxEventAttributes_t *a)
{
	nvtxDomainRangePushEx(d, a);
	cudaStreamQuery(0);
	nvtxDomainRangePop(d);
	nvtxDomainMarkEx(d, a);
}
int main(void)
{
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		nvtxDomainHandle_t d = nvtxDomainCreateA(words[i]);
		const struct { const char *text; int n; char fixed[8]; } said = { words[i], -1, "\x1b[2J\x9b\xff" };
		nvtxPayloadSchemaEntry_t entries[] = {
			{ .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = words[i] },
			{ .type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = words[i], .offset = 8 },
			{ .flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, .type = NVTX_PAYLOAD_ENTRY_TYPE_CHAR, .name = "fixed", .arrayOrUnionDetail = 8,
			  .offset = 12 },
			{ .type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, .name = (const char *)8, .offset = 1ULL << 63 },
			{ .flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "huge",
			  .arrayOrUnionDetail = ~0ULL },
		};
		nvtxPayloadSchemaAttr_t schema = {
			.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
				     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
			.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, .entries = entries, .numEntries = 3, .payloadStaticSize = sizeof(said),
		};
		nvtxPayloadData_t data = { 0, sizeof(said), &said };
		nvtxEventAttributes_t a = attributes(words[i]);

		nvtxDomainNameCategoryA(d, 7, words[i]);
		nvtxNameCategoryA(i, words[i]);
		nvtxNameOsThreadA(i, words[i]);
		a.category = 7;
		range(d, &a);
		a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
		a.reserved0 = 1;
		a.payload.ullValue = (uint64_t)(uintptr_t)&data;
		data.schemaId = nvtxPayloadSchemaRegister(d, &schema);
		range(d, &a);
		/* schemas that lie: entries outside, none, more than there can be, at no address */
		schema.numEntries = 5;
		data.schemaId = nvtxPayloadSchemaRegister(d, &schema);
		range(d, &a);
		schema.numEntries = (size_t)-1;
		data.schemaId = nvtxPayloadSchemaRegister(d, &schema);
		range(d, &a);
		schema.entries = (void *)16;
		data.schemaId = nvtxPayloadSchemaRegister(d, &schema);
		range(d, &a);
		data.size = ~0ULL;
		range(d, &a);
		data.payload = (void *)-8;
		data.size = 64;
		range(d, &a);
		a.reserved0 = 0xffffffff;
		range(d, &a);
		a.payload.ullValue = 24;
		a.reserved0 = 1;
		range(d, &a);
	}
	return 0;
}
"""


def payloads():
    include = sorted(glob.glob("/usr/local/cuda*/include/nvtx3/nvToolsExtPayload.h"))
    check("no header of NVTX 3", include)
    with open(f"{T}/payload.c", "w") as f:
        f.write(PAYLOAD_C % {"words": WORDS})
    subprocess.run(["gcc", "-w", "-O0", f"-I{os.path.dirname(os.path.dirname(include[-1]))}", "-o", f"{T}/payload", f"{T}/payload.c",
                    f"-L{OUT}/standin", "-l:libcudart.so.13", "-ldl"], check=True, timeout=LIMIT_S)
    return f"{T}/payload"


def test_payloads():
    """Categories, domains, schemas of payloads and what they hold."""
    path = payloads()
    names.run("record", "--layers", "nvtx", "-o", f"{T}/r.ctrace", "--", path)
    for fmt in names.FORMATS:
        names.run("replay", "--format", fmt, "-o", f"{T}/o.{fmt}", f"{T}/r.ctrace")
        names.sane(fmt, f"{T}/o.{fmt}")
    with open(f"{T}/o.json") as f:
        rows = [json.loads(line) for line in f]
    fields = sum("payload_fields" in row for row in rows)
    categories = sum("Qj" in str(row.get("category")) for row in rows)
    check(f"{fields} rows with payloads, {categories} with categories", fields >= len(NAMES) and categories >= len(NAMES))
    calls = sum(row["type"] == "call" for row in rows)
    check(f"{calls} calls", calls == 9 * len(NAMES))
    for way in ("hooks",):
        names.run("--source", way, "--layers", "nvtx", "--format", "json", "-o", f"{T}/o.{way}", "--", path)
        names.sane("json", f"{T}/o.{way}")
    return f"{len(NAMES)} domains, categories and schemas, {fields} payloads, in {len(names.FORMATS)} formats"


# ---- Protocol Buffers ----

S, V, F, B = "text", "number", "eight bytes", "bytes"
INTERNED = {1: V, 2: S}
PERFETTO = {1: {
    6: {1: {1: V, 2: V}, 2: V}, 8: V, 10: V, 13: V, 58: V, 87: V, 59: {58: V, 11: {11: V}},
    11: {3: V, 9: V, 10: V, 11: V, 22: S, 23: S, 30: V, 44: F, 47: F, 48: F, 52: V, 55: V, 56: V, 31: V,
         4: {}},
    12: {1: INTERNED, 2: INTERNED, 3: INTERNED, 5: {1: V, 2: S}, 6: {1: V, 2: V, 3: V, 4: V, 5: V, 6: V}, 7: {1: V, 2: V}, 17: {1: V, 2: S},
         18: {1: V, 2: S}, 19: {1: V, 2: V, 3: V, 4: V, 5: V, 6: V, 7: V}, 29: {1: V, 2: S}},
    60: {1: V, 2: S, 3: {1: V, 2: S, 3: V, 6: S}, 4: {1: V, 2: V, 5: S}, 5: V, 8: {1: V, 2: S, 3: V, 4: V, 5: V, 6: S}, 9: V, 10: V, 11: V, 12: V,
         13: S, 14: S}}}
ARGUMENT = PERFETTO[1][11][4]
ARGUMENT.update({1: V, 2: V, 3: V, 4: V, 5: F, 6: S, 7: V, 10: S, 11: ARGUMENT, 12: ARGUMENT, 17: V})
ANY = {1: S, 2: V, 3: V, 4: F}
KEY = {1: S, 2: ANY}
OTLP = {1: {1: {1: KEY}, 2: {1: {1: S, 2: S}, 2: {1: B, 2: B, 4: B, 5: S, 6: V, 7: F, 8: F, 9: KEY, 13: {1: B, 2: B, 4: KEY}, 15: {2: S, 3: V}, 16: V}, 3: S},
            3: S}}
ANY[5] = {1: ANY}


def parsed(what, data, rows, texts):
    """Holds each byte to the table: which numbers there are, and what they hold. The texts go into a list."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            check(f"{what}: a number that does not end", at < len(data) and shift < 70)
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value
    while at < len(data):
        key = varint()
        number, wire = key >> 3, key & 7
        check(f"{what}: no field {number} of kind {wire}", number in rows and wire in (0, 1, 2, 5))
        kind = rows[number]
        if wire == 0:
            check(f"{what}.{number} is a number", kind == V)
            varint()
            continue
        size = varint() if wire == 2 else 8 if wire == 1 else 4
        check(f"{what}.{number} ends beyond its message", size <= len(data) - at)
        piece = data[at:at + size]
        at += size
        if isinstance(kind, dict):
            parsed(f"{what}.{number}", piece, kind, texts)
        elif kind == S:
            texts.append(piece)
        else:
            check(f"{what}.{number}: kind {wire}", kind == {1: F, 2: B, 5: F}[wire] or (kind == V and wire == 2))  # packed numbers


class Collector(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):
        self.bodies.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_protobuf():
    """Perfetto's file and what is sent to a collector, field by field."""
    recordings = []
    for layers, path in (("torch,nvtx", program()), ("nvtx", payloads()), ("nvtx", people()[0])):
        recordings.append(f"{T}/p{len(recordings)}.ctrace")
        names.run("record", "--layers", layers, "-o", recordings[-1], *(["--stack"] if path.endswith("people") else []), "--", path)
    texts = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for recording in recordings:
        names.run("replay", "--format", "perfetto", "-o", f"{T}/o.pftrace", recording)
        with open(f"{T}/o.pftrace", "rb") as f:
            parsed("perfetto", f.read(), PERFETTO, texts)
        names.run("replay", "--otlp", f"http://127.0.0.1:{server.server_port}", "--otlp-min", "0s", recording)
    server.shutdown()
    of_perfetto = len(texts)
    for kind, body in Collector.bodies:
        check(f"otlp: {kind}", kind == "application/x-protobuf")
        parsed("otlp", body, OTLP, texts)
    for text in texts:  # control bytes are data there, as in JSON, where they are escaped
        text.decode()
    check("names", sum(b"Qj" in t for t in texts[:of_perfetto]) > 2 * len(NAMES) and sum(b"Qj" in t for t in texts[of_perfetto:]) > 2 * len(NAMES))
    return f"{of_perfetto} texts in Perfetto's files, {len(texts) - of_perfetto} in {len(Collector.bodies)} requests to a collector"


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.exit(attack.main(globals()))
