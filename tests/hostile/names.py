#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""names.py - what a program calls its operators, ranges and payloads, in every output: tests/hostile/names.py [NAME...]

A library that passes for PyTorch's has functions and record_function() texts whose names are meant for a terminal, a spreadsheet, a page, a
database, a server of metrics, or have no end. Needs root, gcc, sqlite3 of Python, `make standin cases-progs`. CUDATRACE: another binary. Prints
`ok` and `not ok` lines.
"""
import json
import base64
import os
import re
import sqlite3
import subprocess
import sys
import zlib

import attack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "export"))
import check_arrow  # pylint: disable=wrong-import-position
from attack import CT, OUT, T, check

ENV = {**os.environ, "LD_LIBRARY_PATH": f"{T}/lib:{OUT}/standin"}
LIMIT_S = 300
MARK = "Qj"  # each name has it, so that a reader sees that names came through
NAMES = [b"=cmd|' /C calc'!A0", b"+1", b"-1", b"@SUM(1)", b"\tx", b"\x1b[2J\x1b]0;owned\x07", b"</script><script>alert(1)</script>", b"<!--", b"-->]]>",
         b"'; DROP TABLE StringIds; --", b"\xff\xfe\x80", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\nb\rc\td", b'"quote\\', b'a"} 1\nup{b="c',
         b"\xe2\x80\xaertl", b"\xc2\x9b31m", b"\x9b31m", b"%s%n%p", b";a;b 7", b"a,b", b"{{7*7}}", b"$(id)`id`", b"\x7f" * 9, b"x" * 255, b"\xe2\x80\xa8"]
OFTEN = 100000

# A function for each name; run_all() calls each of them, and each of them makes a call of CUDA's. Assemblers take no such names: the functions
# get others of the same length, which are replaced in the file.
FUNCTION = '''
	.globl {name}
	.type {name},@function
{name}:
.Lf{i}:	push %rbp
	mov %rsp, %rbp
	xor %edi, %edi
	call cudaStreamQuery@PLT
	pop %rbp
	ret
	.size {name}, .-{name}
'''

RANGE_C = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int cudaStreamQuery(void *), nvtxRangePushA(const char *), nvtxRangePop(void), nvtxDomainRangePop(void *);
void nvtxMarkA(const char *), nvtxDomainMarkEx(void *, const void *), *nvtxDomainCreateA(const char *);
void nvtxNameOsThreadA(uint32_t, const char *), nvtxNameCategoryA(uint32_t, const char *);
int nvtxRangePushEx(const void *);
void run_all(void);
struct text { const char *s; size_t n; char small[16]; };
void enter(void *out, const struct text *, const void *args) __asm__("%(enter)s");
void leave(const void *handle) __asm__("%(leave)s");
static const struct { size_t n; const char *s; } names[] = { %(names)s };

static void range(const struct text *t)
{
	void *handle[4] = { 0 }, *none[8] = { 0 };

	enter(handle, t, none);
	cudaStreamQuery(0);
	leave(handle);
}

int main(int argc, char **argv)
{
	size_t bytes = 1 << 20;
	char *large = mmap(0, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), own[64];
	/* texts that lie: no memory there, lengths that no memory has, the end of all memory */
	struct text lies[] = { { 0, 8, "" }, { (char *)8, 8, "" }, { "abc", ~0ULL, "" }, { "abc", 1ULL << 63, "" }, { (char *)-8, 16, "" }, { large, bytes, "" },
		{ large + bytes, 1 << 20, "" }, { "abc", 0, "" }, { large, 0xffffffff, "" } };

	memset(large, 'x', bytes);
	if (argc > 1) { /* so many different names */
		for (long i = 0; i < atol(argv[1]); i++) {
			snprintf(own, sizeof(own), "n%%ldQj", i);
			range(&(struct text){ own, strlen(own), "" });
		}
		return 0;
	}
	run_all();
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		range(&(struct text){ names[i].s, names[i].n, "" });
		nvtxRangePushA(names[i].s);
		nvtxMarkA(names[i].s);
		cudaStreamQuery(0);
		nvtxRangePop();
	}
	for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		range(&lies[i]);
	return argc < 1 || !argv;
}
"""


def quoted(name):
    return "".join(f"\\{c:03o}" for c in name)


def program():
    """The program, beside its libtorch_cpu.so."""
    os.makedirs(f"{T}/lib", exist_ok=True)
    listed = subprocess.run(["nm", "-D", "--defined-only", f"{OUT}/standin/libtorch_cpu.so"], capture_output=True, text=True, check=True).stdout
    enter = re.search(r"\S*record_function_enter_new\S*", listed)[0]
    leave = "_ZN5torch8autograd8profiler24record_function_exit_newERKSt4pair"
    text = "\t.text\n"
    functions = [b"_ZN2at4_ops%d%s4callERKNS_6TensorE" % (len(n) + 8, n + MARK.encode() + b"%06d" % i) for i, n in enumerate(NAMES)]
    stand_ins = [f"s{i:06}".ljust(len(name), "_") for i, name in enumerate(functions)]
    for i, name in enumerate(stand_ins):
        text += FUNCTION.format(name=name, i=i)
    for what in (enter, leave):
        text += f'\t.globl {what}\n\t.type {what},@function\n{what}:\n\tpush %rbp\n\tmov %rsp, %rbp\n\tmov %rdi, %rax\n\tpop %rbp\n\tret\n\t.size {what}, .-{what}\n'
    text += "\t.globl run_all\n\t.type run_all,@function\nrun_all:\n\tpush %rbp\n"
    text += "".join(f"\tcall .Lf{i}\n" for i in range(len(functions))) + '\tpop %rbp\n\tret\n\t.size run_all, .-run_all\n\t.section .note.GNU-stack,"",@progbits\n'
    with open(f"{T}/torch.s", "w") as f:
        f.write(text)
    with open(f"{T}/p.c", "w") as f:
        f.write(RANGE_C % {"enter": enter, "leave": leave,
                           "names": ", ".join(f'{{ {len(n) + 2}, "{quoted(n)}{MARK}" }}' for n in NAMES)})
    subprocess.run(["gcc", "-shared", "-Wl,-soname,libtorch_cpu.so", "-o", f"{T}/lib/libtorch_cpu.so", f"{T}/torch.s", f"-L{OUT}/standin",
                    "-l:libcudart.so.13"], check=True, timeout=LIMIT_S)
    with open(f"{T}/lib/libtorch_cpu.so", "rb") as f:
        library = f.read()
    for name, instead in zip(functions, stand_ins):
        library = library.replace(instead.encode() + b"\0", name + b"\0")
    with open(f"{T}/lib/libtorch_cpu.so", "wb") as f:
        f.write(library)
    subprocess.run(["gcc", "-w", "-O1", "-o", f"{T}/p", f"{T}/p.c", f"-L{T}/lib", f"-L{OUT}/standin", "-l:libtorch_cpu.so", "-l:libcudart.so.13",
                    "-l:libnvToolsExt.so.1"], check=True, timeout=LIMIT_S)
    return f"{T}/p"


def run(*args):
    p = subprocess.run([CT, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False, env=ENV)
    check(f"{args}: {p.returncode}: {p.stderr[-300:]}", p.returncode == 0 and b"Sanitizer" not in p.stderr)
    plain(f"{args[:3]}: messages", p.stderr)
    return p


def plain(what, out):
    bad = re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]", out)
    check(f"{what}: control bytes at {bad and out[max(0, bad.start() - 40):bad.end() + 10]}", not bad)
    try:
        out.decode()
    except UnicodeDecodeError as e:
        check(f"{what}: no UTF-8 at {out[max(0, e.start - 40):e.end + 10]}", False)


def no_formula(out):
    import csv
    import io
    for row in csv.reader(io.StringIO(out.decode(), newline="")):
        for cell in row:
            check(f"csv: a formula: {cell[:40]}", not re.match(r"[=+\-@\t\r](?!\d*\.?\d*$)", cell))


FORMATS = ("table", "json", "csv", "cupti", "folded", "flame", "speedscope", "html", "chrome", "perfetto", "nsys-sqlite", "arrow", "otlp-json")


def texts(fmt, path):
    """The bytes of a file, but its texts as they were before they were compressed: in base64 the mark may occur by chance."""
    with open(path, "rb") as f:
        got = f.read()
    if fmt == "arrow":
        return str(check_arrow.read(got)).encode()
    packed = rb'(<script type="text/plain"[^>]*>)([A-Za-z0-9+/=]*)</script>'
    return re.sub(packed, lambda m: zlib.decompress(base64.b64decode(m[2])), got)


def sane(fmt, path):
    """A file of this format, whose names were meant to do harm."""
    got = texts(fmt, path)
    check(f"{fmt}: {len(got)} bytes", 0 < len(got) < 64 << 20)
    if fmt not in ("cupti", "folded", "flame", "speedscope"):  # these show calls alone
        check(f"{fmt}: names", MARK.encode() in got)
    if fmt == "html":
        with open(path, "rb") as f:
            got = f.read()
    if fmt == "nsys-sqlite":
        base = sqlite3.connect(path)
        check("nsys-sqlite", base.execute("pragma integrity_check").fetchone()[0] == "ok")
        [t.decode() for (t,) in base.execute("select cast(value as blob) from StringIds")]  # control bytes are data there
    if fmt in ("perfetto", "arrow", "nsys-sqlite"):  # shown.py parses Perfetto's
        return
    if fmt in ("html", "flame"):
        check(f"{fmt}: markup", b"<script>alert" not in got and b"<!--Qj" not in got)
    plain(fmt, got)
    if fmt in ("chrome", "speedscope"):
        json.loads(got)
    if fmt in ("json", "otlp-json"):
        [json.loads(line) for line in got.splitlines()]
    if fmt == "csv":
        no_formula(got)


def test_formats():
    """One recording of all of it, in each format."""
    path = program()
    run("record", "--layers", "torch,nvtx", "-o", f"{T}/r.ctrace", "--", path)
    for fmt in FORMATS:
        run("replay", "--format", fmt, "-o", f"{T}/o.{fmt}", f"{T}/r.ctrace")
        sane(fmt, f"{T}/o.{fmt}")
    return f"{3 * len(NAMES) + 9} names of operators, ranges and marks in {len(FORMATS)} formats"


def test_reports():
    """The same in what people read."""
    path = program()
    run("record", "--layers", "torch,nvtx", "-o", f"{T}/r.ctrace", "--", path)
    ways = [("stat", "--by", by, *how) for by in ("range", "operator", "step") for how in ((), ("--json",))]
    ways += [("mem",), ("mem", "--json"), ("advise",), ("folded", "--stack-of", "range"), ("folded", "--stack-of", "callers")]
    for way in ways:
        run(*way, "-o", f"{T}/out", *(("--", path) if way[0] == "folded" else (f"{T}/r.ctrace",)))
        with open(f"{T}/out", "rb") as f:
            out = f.read()
        plain(" ".join(way), out)
        if "--csv" in way:
            no_formula(out)
        if "--json" in way:
            json.loads(out)
    return f"{2 * len(NAMES)} names in {len(ways)} reports"


def test_many():
    """Ever new names: what is kept is bounded, and what was left out is counted."""
    path = program()
    p = run("stat", "--layers", "torch", "--by", "range", "--json", "-o", f"{T}/many", "--", path, str(OFTEN))
    with open(f"{T}/many") as f:
        out = json.load(f)
    shown = sum(row["calls"] for row in out["rows"])
    check(f"{len(out['rows'])} rows, {shown} calls, {out.get('no_room')} in none", len(out["rows"]) <= 65537 and shown < OFTEN and
          shown + out["no_room"] == OFTEN)
    check(f"said: {p.stderr}", f"{OFTEN - shown} calls and pieces of device work are not in the table".encode() in p.stderr)
    return f"{OFTEN} different names of ranges: {len(out['rows'])} rows, {OFTEN - shown} calls in none, which is said"


NCCL_C = r"""
struct comm { long x[64]; };
static struct comm comms[200];
static int n;
int ncclGetVersion(int *v) { return *v = 22809, 0; }
int ncclCommInitRankConfig(struct comm **out, int nranks, struct { char id[128]; } id, int rank, const void *config) { return *out = &comms[n++ % 200], 0; }
int ncclAllReduce(const void *a, void *b, unsigned long count, int type, int op, struct comm *c, void *stream) { return 0; }
"""

COMMUNICATORS_C = r"""
#include <string.h>
struct id { char id[128]; };
int ncclCommInitRankConfig(void **, int, struct id, int, const void *), ncclAllReduce(const void *, void *, unsigned long, int, int, void *, void *);
static const struct { unsigned long n; const char *s; } names[] = { %(names)s };
int main(void)
{
	/* ncclConfig_t: size, magic, version, then numbers, netName, numbers, commName */
	struct { unsigned long size; unsigned magic, version; int blocking, cga, min, max; const char *net; int split, traffic; const char *name; int rest[16]; } c = { 0 };
	const void *lies[] = { 0, (void *)8, (void *)-8, &c };
	struct id id;
	void *comm;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		memset(&id, 0, sizeof(id));
		memcpy(&id, names[i].s, names[i].n < sizeof(id) ? names[i].n : sizeof(id));
		c.size = i %% 2 ? sizeof(c) : ~0UL;
		c.magic = 0xcafebeef;
		c.version = 22809;
		c.net = c.name = names[i].s;
		ncclCommInitRankConfig(&comm, 2, id, i %% 2, &c);
		ncclAllReduce(0, 0, 1, 7, 0, comm, 0);
	}
	c.net = c.name = (char *)-8;
	for (int i = 0; i < 4; i++) {
		ncclCommInitRankConfig(&comm, -1, id, 1 << 30, lies[i]);
		ncclAllReduce(0, 0, ~0UL, 99, 99, comm, 0);
	}
	return 0;
}
"""


def test_communicators():
    """Names that communicators of NCCL are given, and identities made of them: they are not shown, by number alone."""
    os.makedirs(f"{T}/nccl", exist_ok=True)
    os.makedirs(f"{T}/lib", exist_ok=True)
    for name, text in (("nccl", NCCL_C), ("c", COMMUNICATORS_C % {"names": ", ".join(f'{{ {len(n) + 2}, "{quoted(n)}{MARK}" }}' for n in NAMES)})):
        with open(f"{T}/nccl/{name}.c", "w") as f:
            f.write(text)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-o", f"{T}/lib/libnccl.so.2", f"{T}/nccl/nccl.c"], check=True, timeout=LIMIT_S)
    subprocess.run(["gcc", "-w", "-o", f"{T}/nccl/c", f"{T}/nccl/c.c", f"-L{T}/lib", "-l:libnccl.so.2"], check=True, timeout=LIMIT_S)
    run("record", "--layers", "nccl", "-o", f"{T}/n.ctrace", "--", f"{T}/nccl/c")
    made = len(NAMES) + 4
    for fmt in FORMATS:
        run("replay", "--format", fmt, "-o", f"{T}/n.{fmt}", f"{T}/n.ctrace")
        check(f"{fmt}: a name", MARK.encode() not in texts(fmt, f"{T}/n.{fmt}"))
    with open(f"{T}/n.json", encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    calls = sum("ncclAllReduce" in str(row) for row in rows if row["type"] != "end")
    check(f"{calls} collectives of {made}", calls >= made)
    for way in ((), ("--json",)):
        run("stat", *way, "-o", f"{T}/out", f"{T}/n.ctrace")
        with open(f"{T}/out", "rb") as f:
            check("stat: a name", MARK.encode() not in f.read())
    return f"{made} communicators, with names and identities that mean harm: {made} collectives in {len(FORMATS)} formats, no name in any"


if __name__ == "__main__":
    sys.exit(attack.main(globals()))
