#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""files.py - what a traced program's own files, texts and shared memory can do to the tracer: tests/hostile/files.py [NAME...]

Debug information that refers to itself or is huge, call frame information likewise, links to debug files that lead elsewhere, static programs
with such sections, and texts of NVTX that are meant for a terminal, a spreadsheet, a page. Each program that would do harm runs beside an honest
one, whose calls must all be there with their names; cudatrace's memory is bounded. Needs root, gcc, `make standin cases-progs`. CUDATRACE:
another binary; one with AddressSanitizer takes more memory than is allowed here. Prints `ok` and `not ok` lines.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import attack
import machine
from attack import CT, OUT, T, check
from again import ENV

CALLS = 5
MEMORY = 600 << 20  # of cudatrace, in bytes, while it reads some 100 MB of such tables
LIMIT_S = 120

PROGRAM = """
int cudaStreamQuery(void *);
__attribute__((noinline)) int %(name)s(void) { return cudaStreamQuery(0) + 1; }
int main(void) { for (int i = 0; i < %(calls)d; i++) %(name)s(); return 0; }
"""

UNIT = """
	.section .debug_abbrev,"",@progbits
begin_abbrev:
	.byte 1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 2, 0x2e, 1, 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0x47, 0x13, 0x01, 0x13, 0, 0
	.byte 3, 0x1d, 1, 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0
	{more}
	.byte 0
	.section .debug_info,"",@progbits
begin_unit:
	.long 2f - 1f
1:	.short 4
	.long 0
	.byte 8
	.byte 1
	.quad bad
	.quad 0x1000
sub:	.byte 2
	.quad bad
	.quad 0x1000
	.long {origin}
	.long {specification}
	.long {sibling}
inl:	.byte 3
	.quad bad
	.quad 0x1000
	.long inl - begin_unit
	.byte 0, 0, 0
	{info}
2:
"""

# entries of frames: their lengths and what they refer to
FRAMES = {
    "refers to itself": ".long 20\n1: .long 0\n.quad bad\n.quad 16\n",
    "a first entry that never ends": ".long 0xffffffff\n.quad 0x7fffffffffffffff\n.long 0\n",
    "lengths of nothing": ".fill 1000000, 4, 0\n",
    "a length beyond the file": ".long 0x7ffffff0\n.long 0\n.byte 1, 0\n",
    "advances without end": ".long 1f - 2f\n2: .long 0\n.byte 1\n.asciz \"zR\"\n.uleb128 1\n.sleb128 -8\n.byte 16, 1, 0x1b\n.fill 20000000, 1, 0x0a\n.balign 8\n1:\n",
    "a hundred megabytes of entries": ".long 20\n.long 0\n.byte 1\n.asciz \"\"\n.byte 1, 0x78, 16\n.fill 11, 1, 0\n"
                                      ".rept 5000000\n.long 16\n.long 28\n.quad 0\n.long 0\n.endr\n",
}


def compiled(name, assembly="", *flags, folder=None):
    """A program whose function has this name, with what assembly adds."""
    folder = folder or T
    with open(f"{folder}/{name}.c", "w") as f:
        f.write(PROGRAM % {"name": name, "calls": CALLS})
    with open(f"{folder}/{name}.s", "w") as f:
        f.write(assembly + '\n\t.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-no-pie", "-O1", "-o", f"{folder}/{name}", f"{folder}/{name}.c", f"{folder}/{name}.s", *flags, f"-L{OUT}/standin",
                    "-l:libcudart.so.13"], check=True, timeout=LIMIT_S)
    return f"{folder}/{name}"


def beside(*programs, names=("bad", "good"), most=MEMORY):
    """Traces the programs one after the other, with stacks: each of these functions made all its calls, and cudatrace stays small."""
    p = subprocess.Popen([CT, "--stack", "--format", "json", "-e", "cudaStreamQuery", "-o", f"{T}/out", "--", "sh", "-c",
                          "; ".join(programs)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=ENV)
    try:
        said = p.stderr.read()  # to its end
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    finally:
        p.stderr.close()
    check(f"status {p.returncode}: {said[-300:]}", p.returncode == 0)
    check(f"{used.ru_maxrss} KiB of memory", used.ru_maxrss << 10 < most)
    check(f"said: {said[-300:]}", b"Sanitizer" not in said and b"crashed" not in said)
    with open(f"{T}/out") as f:
        rows = [row for row in map(json.loads, f) if row["type"] == "call"]
    check(f"{len(rows)} calls", len(rows) == CALLS * len(programs))
    good = sum(any(frame.get("function") == "good" for frame in row.get("stack", [])) for row in rows)
    check(f"{good} stacks of the honest program", "good" not in names or good == CALLS)
    return used.ru_maxrss >> 10


def test_debug():
    """Entries of debug information that refer to themselves, to each other, outside; and tables of a hundred megabytes."""
    good, most = compiled("good", "", "-g"), 0
    at = "sub - begin_unit"
    whole = {"origin": at, "specification": at, "sibling": at, "more": "", "info": ""}
    ways = [whole, {**whole, "origin": "inl - begin_unit"}, {**whole, "origin": "0xfffffff0", "specification": "0x7fffffff"},
            {**whole, "sibling": "0"}, {**whole, "sibling": "0xffffffff"},
            {**whole, "more": ".fill 100000000, 1, 0x81"}, {**whole, "more": ".rept 3000000\n.uleb128 77\n.byte 0x2e, 0, 0, 0\n.endr"},
            {**whole, "info": ".fill 100000000, 1, 3"}, {**whole, "info": ".fill 100000000, 1, 2"}]
    for way in ways:
        most = max(most, beside(compiled("bad", UNIT.format(**way)), good))
    return f"{len(ways)} kinds of debug information that refers to itself or is huge: all calls are there, at most {most} MiB"


def test_frames():
    """Call frame information: in its own section, and as what is searched without an index."""
    good, n, most = compiled("good", "", "-g"), 0, 0
    for text in FRAMES.values():
        for section, flags in ((".debug_frame", ""), (".eh_frame", "a")):
            try:
                bad = compiled("bad", f'\t.section {section},"{flags}",@progbits\n{text}', "-Wl,--no-eh-frame-hdr")
            except subprocess.CalledProcessError:
                # the linker refuses some; it takes them as a section of another name, which is given its own after that
                bad = compiled("bad", f'\t.section .later,"{flags}",@progbits\n{text}', "-Wl,--no-eh-frame-hdr")
                subprocess.run(["objcopy", "--remove-section", section, "--rename-section", f".later={section}", bad], check=True, timeout=LIMIT_S)
            most = max(most, beside(bad, good))
            n += 1
    return f"{n} tables of call frames that are cyclic, endless or huge: all calls are there, at most {most} MiB"


def test_links():
    """Where a program names its debug file there is a pipe, a device, a link out of the folder, a folder, a file of root's that is none."""
    good, n = compiled("good", "", "-g"), 0
    bad = compiled("bad", "", "-g")
    subprocess.run(["objcopy", "--only-keep-debug", bad, f"{T}/bad.debug"], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={T}/bad.debug", bad], check=True)
    link = f"{T}/bad.debug"
    for make in (lambda: os.mkfifo(link), lambda: os.symlink("/dev/zero", link), lambda: os.symlink("/etc/shadow", link),
                 lambda: os.symlink("../../../../proc/kmsg", link), lambda: os.symlink(link, link), lambda: os.mkdir(link),
                 lambda: os.link(f"{T}/bad", link), lambda: os.truncate(os.open(link, os.O_CREAT | os.O_WRONLY), 4 << 30)):
        (shutil.rmtree if os.path.isdir(link) and not os.path.islink(link) else os.unlink)(link)
        make()
        beside(bad, good)
        n += 1
    os.unlink(link)
    return f"{n} debug files that are none: all calls are there"


def test_maps():
    """What the program leaves where profilers look for names: a pipe, a device, 4 GB of nothing."""
    good, bad, n = compiled("good", "", "-g"), compiled("bad"), 0
    for make in ("mkfifo $m", "ln -s /dev/zero $m", "truncate -s 4G $m", "mkdir $m"):
        try:
            beside(f"sh -c 'm=/tmp/perf-$$.map; echo $m > {T}/map; {make}; exec {bad}'", good)
        finally:
            with open(f"{T}/map") as f:
                left = f.read().strip()
            (os.rmdir if os.path.isdir(left) and not os.path.islink(left) else os.unlink)(left)
        n += 1
    return f"{n} files /tmp/perf-PID.map that are none: all calls are there"


JIT_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int cudaStreamQuery(void *);
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x31, 0xff, 0xff, 0xd0, 0x5d, 0xc3 };
	void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *f;

	memcpy(at, code, sizeof(code));
	sprintf(path, "/tmp/perf-%d.map", getpid());
	f = fopen(path, "wx");
	fprintf(f, "%lx 1000 Qjstolen\n", (unsigned long)at);
	fclose(f);
	if (chown(path, atoi(argv[1]), 0))
		return 1;
	for (int i = 0; i < 5; i++)
		((int (*)(int (*)(void *)))at)(cudaStreamQuery);
	unlink(path);
	return 0;
}
"""


def test_perf_maps():
    """Names for code that was made at run time, in a file that anybody may write: the frame is there, without a name."""
    from again import build
    path, users = build("jit", JIT_C, "libcudart.so.13"), ("65534", "0")
    for user in users:
        subprocess.run([CT, "--stack", "--format", "json", "-e", "cudaStreamQuery", "-o", f"{T}/out", "--", path, user], check=True, env=ENV,
                       timeout=LIMIT_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{T}/out") as f:
            out = f.read()
        check("a name of the file", "Qjstolen" not in out)
        rows = [row for row in map(json.loads, out.splitlines()) if row["type"] == "call"]
        check(f"{len(rows)} calls", len(rows) == CALLS)
        check("the frame", all(row["stack"][0]["kind"] == "unknown" and "function" not in row["stack"][0] for row in rows))
    return f"{len(users)} files /tmp/perf-PID.map, of another user and of root, are not read"


LINES = """
	.section .debug_abbrev,"",@progbits
	.byte 1, 0x11, 0, 0x11, 1, 0x12, 7, 0x10, 0x17, 0, 0, 0
	.section .debug_info,"",@progbits
	.long 2f - 1f
1:	.short 4
	.long 0
	.byte 8, 1
	.quad bad, 0x1000
	.long 0
2:	.section .debug_aranges,"",@progbits
	.long 2f - 1f
1:	.short 2
	.long 0
	.byte 8, 0
	.long 0
	.quad bad, 0x1000, 0, 0
2:	.section .debug_line,"",@progbits
	.long 2f - 1f
1:	.short 4
	.long 4f - 3f
3:	.byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 97, 0, 0, 0, 0, 0
4:	.byte 0, 9, 2
	.quad bad
	.fill {n}, 1, 0x14
	.byte 0, 1, 1
2:
"""
GROWN = 1800 << 20


def test_lines():
    """A table of lines of which libdw makes a hundred times as much: what the file may take is bounded."""
    good, bad = compiled("good", "", "-g"), compiled("bad", LINES.format(n=60 << 20))
    most = beside(bad, good, most=GROWN)
    return f"a table of lines of 60 MiB: all calls are there, {most} MiB"


def test_static():
    """Programs with libcudart linked statically whose tables of sections are damaged: they run all the same."""
    with open(f"{OUT}/cases/calls-static", "rb") as f:
        whole = f.read()
    n = ran = 0
    for i in range(attack.times(40)):
        data = bytearray(whole)
        tail = int.from_bytes(data[40:48], "little")  # the table of sections: the loader does not read it
        for _ in range(4):
            at = tail + attack.rng.randrange(len(data) - tail)
            data[at] = attack.rng.randrange(256)
        with open(f"{T}/calls-static", "wb") as f:
            f.write(data)
        os.chmod(f"{T}/calls-static", 0o755)
        p = subprocess.run([CT, "--stack", "-o", f"{T}/out", "--", f"{T}/calls-static", "mix", "2", "2", "2"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=LIMIT_S, check=False, env=ENV)
        check(f"static {i}: {p.returncode}: {p.stderr[-300:]}", p.returncode in (0, 1) and b"Sanitizer" not in p.stderr)
        ran += p.returncode == 0
        n += 1
    return f"{n} static programs with damaged tables of sections, {ran} of them traced"


# What hooks share with cudatrace: the program fills it with bytes while it makes calls, in five ways.
SHARED_C = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int cudaStreamQuery(void *);
int main(int argc, char **argv)
{
	unsigned seed = (unsigned)atoi(argv[1]), found = 0;
	int how = atoi(argv[2]);
	for (int i = 0; i < 5; i++)
		cudaStreamQuery(0);
	for (int round = 0; round < 50; round++) {
		char line[512];
		FILE *f = fopen("/proc/self/maps", "r");
		while (f && fgets(line, sizeof(line), f)) {
			unsigned long from, to;
			char mode[8];
			if (!strstr(line, "memfd:") || sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[1] != 'w' || mode[3] != 's')
				continue;
			found++;
			to = to - from > 1 << 20 ? from + (1 << 20) : to;
			for (int k = 0; k < (how == 0 ? 1 : 4000); k++) {
				unsigned long at = from + (seed = seed * 1103515245 + 12345) % (to - from) / 8 * 8;
				switch (how) {
				case 0: memset((void *)from, 0xff, to - from); break;
				case 1: *(unsigned long *)at = 0; break;
				case 2: *(unsigned long *)at = (unsigned long)seed << 20 ^ seed; break;
				case 3: *(unsigned long *)(from + at % 512 / 8 * 8) -= 64; break; /* cursors run backwards */
				default: *(unsigned long *)(from + at % 512 / 8 * 8) = ~0UL >> seed % 64; break;
				}
			}
		}
		if (f)
			fclose(f);
		for (int i = 0; i < 5; i++)
			cudaStreamQuery(0);
	}
	printf("%u\n", found);
	return argc != 3;
}
"""


def test_shared():
    """A program that writes into the memory which its hooks share with cudatrace; an honest one follows it."""
    from again import build
    bad, good, n, found, shown = build("shared", SHARED_C, "libcudart.so.13"), compiled("good", "", "-g"), 0, 0, 0
    for how in range(5):
        for seed in range(attack.times(6)):
            for _ in range(5):
                p = subprocess.run([CT, "--source=hooks", "--format", "json", "-e", "cudaStreamQuery", "-o", f"{T}/out", "--", "sh", "-c",
                                    f"{bad} {seed + 1} {how}; {good}"], capture_output=True, timeout=LIMIT_S, check=False, env=ENV)
                # where a tracer of the whole machine has breakpoints there are no hooks
                if b"another tracer" not in p.stderr:
                    break
                time.sleep(2)
            else:
                check(f"{how}, {seed}: hooks met breakpoints, and nobody traces the machine: {p.stderr[-300:]}", machine.tracer_of_others())
                continue
            check(f"{how}, {seed}: status {p.returncode}: {p.stderr[-300:]}", p.returncode == 0 and b"Sanitizer" not in p.stderr)
            check(f"control bytes in messages: {p.stderr[-300:]}", not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", p.stderr))
            with open(f"{T}/out", "rb") as f:
                rows = [json.loads(line) for line in f]
            calls = [row for row in rows if row["type"] == "call"]
            honest = sum(row.get("process") == "good" for row in calls)
            check(f"{how}, {seed}: {honest} calls of the honest program: {p.stderr[-300:]}", honest == CALLS)
            lost = sum(rows[-1]["lost"].values())
            check(f"{how}, {seed}: {len(calls) - honest} of 255 calls, and 0 lost", rows[-1]["type"] == "end" and (lost or len(calls) - honest == 255))
            found += int(p.stdout or b"0") > 0
            shown += len(calls) - honest
            n += 1
    check("shared memory was found", found or not n)
    return f"{n} programs that write over what their hooks share, {found} of them to their end: the honest one's calls are there, and {shown} rows of theirs"


RANGES_C = r"""
#include <stdlib.h>
#include <string.h>
int nvtxRangePushA(const char *), nvtxRangePop(void), cudaStreamQuery(void *);
void nvtxMarkA(const char *);
static const char *const names[] = { "=cmd|' /C calc'!A0", "\x1b[2J\x07" "bell", "</script><script>alert(1)</script>", "'; DROP TABLE StringIds; --",
	"\xff\xfe\x80", "a\nb\rc\td", "\"quote\\", "{{7*7}}", "\xe2\x80\xae" "rtl", "\xc2\x9b" "31m", "%s%n%p", "", ";a;b 7", "@SUM(1)" };
int main(void)
{
	char *large = malloc(1 << 20);
	memset(large, 'x', (1 << 20) - 1);
	large[(1 << 20) - 1] = 0;
	for (unsigned i = 0; i <= sizeof(names) / sizeof(*names); i++) {
		const char *name = i < sizeof(names) / sizeof(*names) ? names[i] : large;
		nvtxRangePushA(name);
		nvtxMarkA(name);
		cudaStreamQuery(0);
		nvtxRangePop();
	}
	return 0;
}
"""


def test_ranges():
    """Names of ranges and marks, in each format and each report."""
    from again import build
    path = build("ranges", RANGES_C, "libcudart.so.13", "libnvToolsExt.so.1")
    formats = ("table", "json", "csv", "chrome", "html", "folded", "speedscope", "perfetto", "nsys-sqlite")
    ways = [(fmt, [CT, "--layers", "nvtx", "--format", fmt]) for fmt in formats]
    ways += [("by range", [CT, "stat", "--layers", "nvtx", "--by", "range"]),
             ("by range, JSON", [CT, "stat", "--layers", "nvtx", "--by", "range", "--json"]),
             ("folded by range", [CT, "folded", "--stack-of", "range"])]
    for what, command in ways:
        p = subprocess.run([*command, "-o", f"{T}/r.out", "--", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False,
                           env=ENV)
        check(f"{what}: {p.returncode}: {p.stderr[-200:]}", p.returncode == 0)
        check(f"{what}: control bytes in messages", not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", p.stderr))
        with open(f"{T}/r.out", "rb") as f:
            out = f.read()
        check(f"{what}: {len(out)} bytes", 0 < len(out) < 16 << 20)
        if what in ("perfetto", "nsys-sqlite"):
            continue
        bad = re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]", out)
        check(f"{what}: control bytes at {bad and out[max(0, bad.start() - 40):bad.end() + 10]}", not bad)
        check(f"{what}: no UTF-8", out.decode(errors="replace").count("\ufffd") == out.count("\ufffd".encode()))
        if what == "html":
            check("html: markup", b"<script>alert" not in out)
        if what in ("chrome", "speedscope", "by range, JSON"):
            json.loads(out)
        if what == "json":
            rows = [json.loads(line) for line in out.splitlines()]
            check(f"{len(rows)} rows", sum(row["type"] == "call" for row in rows) == 15)
        if what == "csv":
            check("csv: a formula", not re.search(rb'(^|,)"?[=@]', out, re.M))
    return f"15 names of ranges and marks in {len(ways)} outputs"


if __name__ == "__main__":
    sys.exit(attack.main(globals()))
