#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hostile.py - every command that reads a recording, given recordings that mean harm (tests/unit/test_hostile.c): each ends with a
status and sentences of its own, in time, and what it writes is still what its format says: JSON parses, text is UTF-8 without bytes
that move a terminal, SQLite's own check finds nothing, pages and profiles pass their checkers.

hostile.py [--seeds N] [--first SEED] [--seconds S] [--keep DIR]: N seeds from SEED on [0], then random ones until S seconds are over.
Before that, recordings with so many different things that no table may keep them all: memory stays within a bound, and what is left out
is said once. Prints `ok` and `not ok` lines, one for each command; a failure names its seed. HOSTILE_CUDATRACE: the program [the
sanitized one].
"""
import argparse
import csv
import importlib.util
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

csv.field_size_limit(1 << 24)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("HOSTILE_CUDATRACE", f"{ROOT}/.output/san/cudatrace")
MAKER = os.environ.get("HOSTILE_MAKER", f"{ROOT}/.output/unit/test_hostile")
PERFETTO = f"{ROOT}/.output/export/perfetto/bin/python"
PLAIN = f"{ROOT}/cudatrace"  # for memory, of which sanitizers take their own
LIMIT_S = 120
# What changes the terminal, or the order in which text is read.
BAD_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Bad(Exception):
    pass


def text_of(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Bad(f"no UTF-8: {e} in {data[max(0, e.start - 20):e.end + 10]!r}") from e


def plain(data):
    text = text_of(data)
    found = BAD_TEXT.search(text)
    if found:
        raise Bad(f"{found.group()!r} in {text[max(0, found.start() - 60):found.end() + 20]!r}")


def no_constant(name):
    raise Bad(f"{name} is no JSON")


def whole(digits):
    """pandas refuses a file with a number that needs more than 64 bits."""
    if int(digits) >= 1 << 64:
        raise Bad(f"{digits} has more than 64 bits")
    return int(digits)


def parse(text):
    try:
        return json.loads(text, parse_constant=no_constant, parse_int=whole)
    except ValueError as e:
        raise Bad(f"no JSON: {e}: {text[:100]!r}") from e


def one_json(data):
    return parse(text_of(data))


def json_lines(data):
    for line in text_of(data).split("\n"):
        if line:
            parse(line)


def rows_of(data):
    text = text_of(data)
    rows = list(csv.reader(text.splitlines(keepends=True), strict=True))
    if rows and any(len(r) != len(rows[0]) for r in rows):
        raise Bad("rows of several lengths")


def folded(data):
    plain(data)
    for line in text_of(data).split("\n"):
        if line and not re.fullmatch(r".*\S.* \d+", line):
            raise Bad(f"no folded line: {line[:200]!r}")


def sqlite(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = [r[0] for r in db.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise Bad(f"integrity: {found[:2]}")
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
            for _ in db.execute(f'SELECT * FROM "{table}"'):  # text that is no UTF-8 raises
                pass
    except sqlite3.Error as e:
        raise Bad(f"sqlite: {e}") from e
    finally:
        db.close()


def checker(name, *args):
    done = subprocess.run([*args], capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise Bad(f"{name}: {(done.stdout + done.stderr).decode(errors='replace').strip().splitlines()[-1][:300]}")


def speedscope(data, path):
    one_json(data)
    checker("check_speedscope", sys.executable, f"{ROOT}/tests/export/check_speedscope.py", path)


def page(data, path):
    text_of(data)
    checker("page", sys.executable, f"{ROOT}/tests/timeline/page.py", path)


def perfetto(_data, path):
    if os.access(PERFETTO, os.X_OK):
        checker("check_perfetto", PERFETTO, f"{ROOT}/tests/export/check_perfetto.py", path)


def exported(kind):
    return lambda a, out: ["export", "--to", kind, "-o", out, a]


# name: (words of the command, what its output must be; "file" when that looks at the file)
COMMANDS = {
    "replay": (lambda a, out: ["replay", "-k", "--nested", "--full-names", "-o", out, a], plain),
    "replay-enter": (lambda a, out: ["replay", "--enter-exit", "--mangled", "-o", out, a], plain),
    "replay-window": (lambda a, out: ["replay", "--from", "1ms", "--to", "20ms", "-o", out, a], plain),
    "replay-count": (lambda a, out: ["replay", "-c", "-o", out, a], plain),
    "replay-json": (lambda a, out: ["replay", "--format", "json", "-k", "--nested", "-o", out, a], json_lines),
    "json": (exported("json"), json_lines),
    "folded": (exported("folded"), folded),
    "folded-gpu": (lambda a, out: ["export", "--to", "folded", "--weight", "gpu", "-o", out, a], folded),
    "flame": (exported("flame"), text_of),
    "speedscope": (exported("speedscope"), speedscope),
    "html": (exported("html"), page),
    "csv": (exported("csv"), rows_of),
    "cupti": (exported("cupti"), plain),
    "perfetto": (exported("perfetto"), perfetto),
    "chrome": (exported("chrome"), one_json),
    "nsys": (exported("nsys-sqlite"), "sqlite"),
    "otlp": (exported("otlp-json"), json_lines),
    "stat": (lambda a, out: ["stat", "--hist", "-o", out, a], plain),
    "stat-kernel": (lambda a, out: ["stat", "--by", "kernel", "--json", "-o", out, a], one_json),
    "stat-stream": (lambda a, out: ["stat", "--by", "stream", "--csv", "-o", out, a], rows_of),
    "stat-process": (lambda a, out: ["stat", "--by", "process", "--json", "-o", out, a], one_json),
    "stat-thread": (lambda a, out: ["stat", "--by", "thread", "-o", out, a], plain),
    "mem": (lambda a, out: ["mem", "--by", "stack", "-o", out, a], plain),
    "mem-json": (lambda a, out: ["mem", "--json", "-o", out, a], one_json),
    "mem-html": (lambda a, out: ["mem", "--html", out, a], text_of),
    "advise": (lambda a, out: ["advise", "-o", out, a], plain),
    "advise-json": (lambda a, out: ["advise", "--format", "json", "-o", out, a], one_json),
    "info": (lambda a, out: ["info", a], None),
    "compare": (lambda a, out: ["compare", "-o", out, a, f"{a}.2"], plain),
    "compare-json": (lambda a, out: ["compare", "--format", "json", "-o", out, a, f"{a}.2"], one_json),
    "merge": (lambda a, out: ["merge", "-o", out, a, f"{a}.2"], "merged"),
}


def look(check, out, run):
    """What a command wrote: OUT, or where a format makes several files, OUT.N too."""
    folder, name = os.path.split(out)
    files = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith(name)]
    for path in files:
        if check == "sqlite":
            sqlite(path)
        elif check == "merged":
            run(["replay", "-o", "/dev/null", path])
            run(["export", "--to", "json", "-o", "/dev/null", path])
        elif check:
            with open(path, "rb") as f:
                data = f.read()
            check(data, path) if check in (speedscope, page, perfetto) else check(data)
    for path in files:
        os.remove(path)


def run(words):
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1", LC_ALL="C.UTF-8")
    try:
        done = subprocess.run([PROGRAM, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, env=env, check=False)
    except subprocess.TimeoutExpired as e:
        raise Bad(f"not done after {LIMIT_S} s") from e
    said = done.stdout + done.stderr
    report = re.search(rb"(ERROR: \w+Sanitizer.*|.*runtime error:.*)", said)
    if report:
        frames = re.findall(rb"#\d+ 0x\w+ in (\w+) ([^ \n]*user/[^ \n]*)", said)[:3]
        raise Bad(f"{report.group(1).decode(errors='replace')[:300]} {frames}")
    # 2: nothing can be compared, 3: info found damage, 4: mem found leaks; each of them says so
    if done.returncode not in (0, 1) and (words[0], done.returncode) not in (("compare", 2), ("info", 3), ("mem", 4)):
        raise Bad(f"status {done.returncode}: {said[-300:].decode(errors='replace')}")
    plain(said)
    if done.returncode in (1, 2) and (words[0], done.returncode) != ("compare", 1) and b"error: " not in said:
        raise Bad("status 1 without a word")
    return said


# what there is no end of; how many; the words of a command; what it says; MiB that it takes at most
TABLES = [
    ("processes", 200000, ["replay"], "more than 65536 processes at a time: further ones are shown only by their numbers", 64),
    ("forks", 200000, ["info"], "more than 65536 processes at a time: further ones are shown only by their numbers", 64),
    ("infos", 20000, ["replay"], "more than 32 MiB of processes' paths and command lines: further ones are not kept", 96),
    ("callers", 300000, ["stat", "--by", "process"], "calls are not in the tables: there are too many different ones", 640),
    ("handles-long", 20000, ["replay"], "names of kernels take more than 64 MiB: the least recently used are forgotten", 128),
    ("kernels-long", 8000, ["stat"], "there are too many names of kernels: some launches and kernels are counted without a name", 128),
    ("stacks-long", 30000, ["replay", "-k"], "stacks take more than 256 MiB: the oldest are forgotten, and later calls that refer to them are"
     " shown without", 320),
    ("metrics", 20000, ["stat"], "metrics with numbers from 4096 on are not known: their values are left out", 64),
]


def one_table(what, count, words, says, mib, folder):
    path = os.path.join(folder, "fill.ctrace")
    with open(os.path.join(folder, "said"), "w+b") as said:
        subprocess.run([MAKER, "fill", what, str(count), path], check=True)
        child = subprocess.Popen([PLAIN, *words, "-o", "/dev/null", path] if words != ["info"] else [PLAIN, *words, path],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode()
    os.remove(path)
    if child.returncode:
        raise Bad(f"status {child.returncode}: {text}")
    if text.count(says) != 1:
        raise Bad(f"said {text.count(says)} times: '{says}' in {text}")
    if used.ru_maxrss > mib * 1024:
        raise Bad(f"{used.ru_maxrss // 1024} MiB, {mib} at most")


def tables(folder):
    good = True
    for what, *rest in TABLES:
        try:
            one_table(what, *rest, folder)
            print(f"ok hostile-fill-{what}")
        except Bad as e:
            print(f"not ok hostile-fill-{what}: {e}")
            good = False
    return good


def one_seed(seed, folder, failed):
    a = os.path.join(folder, "a.ctrace")
    subprocess.run([MAKER, "write", str(seed), a], check=True)
    subprocess.run([MAKER, "write", str(seed + 1), f"{a}.2"], check=True)
    for name, (words, check) in COMMANDS.items():
        out = os.path.join(folder, "out")
        try:
            run(words(a, out))
            look(check, out, run)
        except (Bad, csv.Error) as e:
            failed.setdefault(name, []).append((seed, str(e)))
            for f in os.listdir(folder):
                if f.startswith("out"):
                    os.remove(os.path.join(folder, f))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seeds", type=int, default=4)
    args.add_argument("--first", type=int, default=0)
    args.add_argument("--seconds", type=float, default=0)
    args.add_argument("--keep")
    args = args.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix="ct-hostile-")
    os.makedirs(folder, exist_ok=True)
    good = tables(folder)
    until, failed, seeds = time.monotonic() + args.seconds, {}, 0
    for seed in range(args.first, args.first + args.seeds):
        one_seed(seed, folder, failed)
        seeds += 1
    while time.monotonic() < until:
        one_seed(random.getrandbits(40), folder, failed)
        seeds += 1
    if not args.keep:
        shutil.rmtree(folder)
    if not os.access(PERFETTO, os.X_OK):
        print("skip hostile-perfetto-rules: NOT TESTED: tests/export/run.sh found no package perfetto")
    for name in COMMANDS:
        if name in failed:
            seed, why = failed[name][0]
            more = f" (and {len(failed[name]) - 1} more: {[s for s, _ in failed[name][1:6]]})" if len(failed[name]) > 1 else ""
            print(f"not ok hostile-{name}: seed {seed}: {why}{more}")
        else:
            print(f"ok hostile-{name}")
    print(f"note: {seeds} seeds", file=sys.stderr)
    sys.exit(1 if failed or not good else 0)


main()
