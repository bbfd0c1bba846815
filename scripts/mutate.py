#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutate.py - does a test notice when a bounds check is missing?

    scripts/mutate.py user/event/record.c record     every check of a file, by the unit program test_record
    scripts/mutate.py --random 100 7                 100 checks of the parsers below, by the seed 7
    scripts/mutate.py --random 100 7 user/trace cfi  of the same 100, those in files whose path contains one of the words
    scripts/mutate.py user/trace/decode.c:109        the checks that begin in that line; several lines may be named

Takes checks out one by one, each operand of each condition by itself, in a copy of the file: those of an `if` that refuses (returns
an error, 0, false or NULL), those of an `if` that compares sizes and leaves a loop, jumps or returns, and those of `return CONDITION ? -E... : 0`
and its reverse. Each copy is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, linked in the place of the file, and the unit
programs of the file are run, of which one must fail. Prints those that survive with their lines, and how many there were. Some survive by
right: another check refuses the same. A program also fails if it uses far more processor time than without a change. If it only takes
long, because the machine is busy, the check is not judged. Needs `make unit-programs standin`; changes nothing in the tree.
"""
import concurrent.futures
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import typing

OUT = ".output"
LONGEST = 900  # seconds for a run, after which the check is not judged
MORE_CPU = 10  # times the processor time that a program needs without a change, and as many seconds
FLAGS = ["-w", "-std=gnu11", "-D_GNU_SOURCE", '-DCT_VERSION="0"', "-O1", "-g", "-pthread", f"-I{OUT}", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all"]
# Little is kept of what was freed, because test_elf watches how much memory it uses.
ASAN = "detect_leaks=0:quarantine_size_mb=8"
# Who reads what the target, a file or a stranger wrote, and the unit programs that test it.
PARSERS = {
    "user/api/layers/symbol.c": ["elf", "tensors"],
    "user/cli/options/opts_parse.c": ["opts"],
    "user/compare/saved.c": ["compare"],
    "user/event/record.c": ["record"],
    "user/nccl/nccl_comm.c": ["nccl"],
    "user/nccl/nccl_find.c": ["nccl"],
    "user/nccl/nccl_job.c": ["nccl"],
    "user/nccl/nccl_merge.c": ["nccl"],
    "user/proc/dwarf_layout.c": ["nccl"],
    "user/proc/dwarf_strings.c": ["nccl"],
    "user/proc/elf_read.c": ["known", "python", "elf"],
    "user/proc/python.c": ["python"],
    "user/proc/python_walk.c": ["python"],
    "user/resolve/names/fatbin.c": ["fatbin"],
    "user/resolve/names/known_driver.c": ["known"],
    "user/resolve/names/known_elf.c": ["known"],
    "user/resolve/names/stub.c": ["fatbin", "known"],
    "user/resolve/stacks/cfi.c": ["cfi", "unwind"],
    "user/resolve/stacks/packed.c": ["packed", "unwind"],
    "user/resolve/stacks/python_stack.c": ["python"],
    "user/resolve/stacks/symbols.c": ["stacks", "unwind"],
    "user/serve/serve_auth.c": ["web"],
    "user/serve/web_config.c": ["web"],
    "user/source/agent/agent_inbox.c": ["agent"],
    "user/source/agent/agent_peer.c": ["agent"],
    "user/source/counters/counters_inbox.c": ["counters_inbox"],
    "user/source/discover/elf.c": ["elf", "discover"],
    "user/source/discover/library_paths.c": ["discover"],
    "user/source/hooks/hooks_counts.c": ["hooks_counts"],
    "user/source/hooks/hooks_peer.c": ["hooks_peer"],
    "user/source/hooks/hooks_reader.c": ["hooks_reader"],
    "user/source/nvtx/nvtx_find.c": ["nvtx"],
    "user/source/symbols/many.c": ["elf"],
    "user/source/symbols/returns.c": ["returns"],
    "user/source/symbols/tensors.c": ["tensors"],
    "user/trace/align.c": ["merge", "trace"],
    "user/trace/decode.c": ["decode", "hostile", "trace"],
    "user/trace/defs.c": ["hostile", "trace"],
    "user/trace/funcs.c": ["decode", "hostile", "trace"],
    "user/trace/numbers.c": ["numbers", "trace"],
    "user/trace/reader.c": ["reader", "hostile", "trace"],
}


def code_of(source):
    """The same text, with blanks for what comments, strings and characters hold."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', lambda found: re.sub(r"[^\n]", " ", found.group()), source, flags=re.S)


def operands(text, separator):
    """Begin and end of each operand at the top level."""
    depth = begin = i = 0
    while i < len(text):
        depth += (text[i] in "([") - (text[i] in ")]")
        if depth == 0 and text.startswith(separator, i):
            yield begin, i
            begin = i = i + len(separator)
        else:
            i += 1
    yield begin, len(text)


def compares(text):
    return re.search(r"(?<![-<>])[<>](?![<>])", text)


def mutants(source):
    """(begin, end, what comes in its place)"""
    code = code_of(source)
    for found in re.finditer(r"\bif \(", code):
        depth, end = 1, found.end()
        while depth:
            depth += (code[end] == "(") - (code[end] == ")")
            end += 1
        refuses = re.match(r"\s*(\{\s*)?return (-E\w+|0|false|NULL);", code[end:end + 80])
        leaves = re.match(r"\s*(\{\s*)?(return\b|break;|continue;|goto\b)", code[end:end + 80])
        for a, b in operands(code[found.end():end - 1], "||"):
            if refuses or (leaves and compares(code[found.end() + a:found.end() + b])):
                yield found.end() + a, found.end() + b, " 0 "
    for pattern, separator, instead in ((r"return ([^;?]*?)\? -E\w+\s*: 0;", "||", " 0 "), (r"return ([^;?]*?)\? 0\s*: -E\w+;", "&&", " 1 ")):
        for found in re.finditer(pattern, code):
            for a, b in operands(found.group(1), separator):
                yield found.start(1) + a, found.start(1) + b, instead


def link_line(name):
    """What make links test_NAME of: objects, the archive of user/ and libraries."""
    program = f"{OUT}/unit/test_{name}"
    said = subprocess.run(["make", "-n", "-W", f"{OUT}/tests/unit/test_{name}.o", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    line = next(words for words in map(str.split, said.splitlines()) if "-o" in words and program in words)
    return line[line.index(program) + 1:]


class Check(typing.NamedTuple):
    path: str
    begin: int
    end: int
    instead: str
    text: str

    def line(self):
        return self.text.count("\n", 0, self.begin) + 1

    def without(self):
        return self.text[:self.begin] + self.instead + self.text[self.end:]


def checks_of(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for begin, end, instead in mutants(text):
            yield Check(path, begin, end, instead, text)


class NotJudged(Exception):
    """A program took too long, which may be the machine's fault."""


def run(program, env, cpu_s):
    """The exit status, and the seconds of processor time that it took."""
    late = threading.Event()
    with subprocess.Popen([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env) as child:
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (cpu_s, cpu_s))
        clock = threading.Timer(LONGEST, lambda: (late.set(), child.kill()))
        clock.start()
        _, status, used = os.wait4(child.pid, 0)
        clock.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
    if late.is_set():
        raise NotJudged
    return child.returncode, used.ru_utime + used.ru_stime


class Bench:
    """Builds and runs programs with a copy in the place of a file."""

    def __init__(self, texts, programs):
        self.texts, self.programs = texts, programs
        self.parts = {name: link_line(name) for name in {name for path in texts for name in programs[path]}}
        self.locks = {(path, name): threading.Lock() for path in texts for name in programs[path]}
        self.cpu_s = {}  # what a program may use with a copy of a file in its place; 0: it fails without a change

    def limit(self, path, name):
        """What fails without a change notices nothing: limits of memory that AddressSanitizer exceeds, for example."""
        with self.locks[path, name]:
            if (path, name) not in self.cpu_s:
                good, used = self.passes(path, self.texts[path], [name], lambda *_: LONGEST)
                self.cpu_s[path, name] = int(MORE_CPU * (used + 1)) if good else 0
                if not good:
                    print(f"{path}: test_{name} is left out, because it fails without a change", flush=True)
        return self.cpu_s[path, name]

    def survives(self, check):
        """True, False, or None if nothing is known."""
        try:
            good, used = self.passes(check.path, check.without(), self.programs[check.path], self.limit)
            return good if used else None
        except NotJudged:
            return None

    def passes(self, path, text, programs, limit):
        """Do all programs pass with this text in the place of the file, each within limit() seconds of processor time? And what they used."""
        used = 0
        with tempfile.TemporaryDirectory() as folder:
            copy, built = os.path.join(folder, "copy.c"), os.path.join(folder, "copy.o")
            with open(copy, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run(["gcc", *FLAGS, "-iquote", os.path.dirname(path), "-c", "-o", built, copy], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sys.exit(f"a copy of {path} does not compile: {done.stderr[-500:]}")
            for name in programs:
                program, most = os.path.join(folder, f"test_{name}"), limit(path, name)
                if not most:
                    continue
                # before the archive, from which nothing is taken then that it has
                subprocess.run(["gcc", "-pthread", "-fsanitize=address,undefined", "-o", program, built, *self.parts[name]], check=True)
                env = {**os.environ, "ASAN_OPTIONS": ASAN}
                # test_python tries each interpreter in home folders: at first without them, because that is quick.
                for home in ("/nonexistent", os.environ.get("HOME", "/")) if name == "python" else ("/nonexistent",):
                    # What fails only once does so because the machine is busy.
                    for _ in range(2):
                        status, more = run(program, {**env, "HOME": home}, most)
                        used += more
                        if not status:
                            break
                    else:
                        return False, used
        return True, used


def chosen(args):
    """The checks that the arguments ask for, and the programs of each file."""
    checks = list(checks_of(PARSERS))
    if len(args) >= 2 and args[0] == "--random" and all(a.isdigit() for a in args[1:3]):
        checks = sorted(random.Random(int(args[2]) if len(args) > 2 else 1).sample(checks, min(int(args[1]), len(checks))))
        return [check for check in checks if len(args) <= 3 or any(word in check.path for word in args[3:])], PARSERS
    if args and all(re.fullmatch(r".+\.c:\d+", a) for a in args):
        return [check for check in checks if f"{check.path}:{check.line()}" in args], PARSERS
    if len(args) >= 2 and args[0].endswith(".c"):
        return list(checks_of(args[:1])), {args[0]: args[1:]}
    return sys.exit("usage: scripts/mutate.py FILE.c PROGRAM... | FILE.c:LINE... | --random COUNT [SEED [WORD...]]")


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    checks, programs = chosen(sys.argv[1:])
    bench = Bench({check.path: check.text for check in checks}, programs)
    counts = {True: 0, False: 0, None: 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for check, survived in zip(checks, pool.map(bench.survives, checks)):
            counts[survived] += 1
            if survived is not False:
                what = "survives" if survived else "not judged"
                print(f"{check.path}:{check.line()}: {what}: {' '.join(check.text[check.begin:check.end].split())}", flush=True)
    print(f"{len(checks)} checks taken out, {counts[True]} not noticed, {counts[None]} not judged")


if __name__ == "__main__":
    main()
