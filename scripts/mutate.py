#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutate.py - does a test notice when a bounds check is missing?

    scripts/mutate.py user/event/record.c record     every check of a file, by the unit program test_record
    scripts/mutate.py --random 100 7                 100 checks of the parsers below, by the seed 7

Takes checks out one by one, each operand of each condition by itself, in a copy of the file: those of an `if` that refuses (returns
an error, 0, false or NULL), those of an `if` that compares sizes and leaves a loop, jumps or returns, and those of `return CONDITION ? -E... : 0`
and its reverse. Each copy is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, linked in the place of the file, and the unit
programs of the file are run, of which one must fail. Prints those that survive with their lines, and how many there were. Some survive by
right: another check refuses the same. Needs `make unit-programs standin`; changes nothing in the tree.
"""
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

OUT = ".output"
LONGEST = 600  # seconds for a run, after which the program counts as failed
FLAGS = ["-w", "-std=gnu11", "-D_GNU_SOURCE", '-DCT_VERSION="0"', "-O1", "-g", "-pthread", f"-I{OUT}", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all"]
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
    "user/resolve/names/fatbin.c": ["known"],
    "user/resolve/names/known_driver.c": ["known"],
    "user/resolve/names/known_elf.c": ["known"],
    "user/resolve/names/stub.c": ["known"],
    "user/resolve/stacks/cfi.c": ["cfi", "unwind"],
    "user/resolve/stacks/packed.c": ["packed", "unwind"],
    "user/resolve/stacks/python_stack.c": ["python"],
    "user/resolve/stacks/symbols.c": ["unwind", "stacks"],
    "user/serve/serve_auth.c": ["web"],
    "user/serve/web_config.c": ["web"],
    "user/source/agent/agent_inbox.c": ["agent"],
    "user/source/agent/agent_peer.c": ["agent"],
    "user/source/discover/elf.c": ["elf", "discover"],
    "user/source/discover/library_paths.c": ["discover"],
    "user/source/hooks/hooks_counts.c": ["hooks_counts"],
    "user/source/hooks/hooks_peer.c": ["hooks_peer"],
    "user/source/hooks/hooks_reader.c": ["hooks_reader"],
    "user/source/nvtx/nvtx_find.c": ["nvtx"],
    "user/source/symbols/many.c": ["elf"],
    "user/source/symbols/returns.c": ["returns"],
    "user/source/symbols/tensors.c": ["tensors"],
    "user/trace/align.c": ["trace", "merge"],
    "user/trace/decode.c": ["trace", "hostile"],
    "user/trace/defs.c": ["trace", "hostile"],
    "user/trace/funcs.c": ["trace", "hostile"],
    "user/trace/numbers.c": ["numbers", "trace"],
    "user/trace/reader.c": ["trace", "hostile"],
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
    """What make links test_NAME of: objects and libraries."""
    program = f"{OUT}/unit/test_{name}"
    said = subprocess.run(["make", "-n", "-W", f"{OUT}/tests/unit/test_{name}.o", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    line = next(words for words in map(str.split, said.splitlines()) if "-o" in words and program in words)
    return line[line.index(program) + 1:]


class Bench:
    """Builds and runs programs with a copy in the place of a file."""

    def __init__(self, names):
        self.parts = {name: link_line(name) for name in names}

    def passes(self, program, every):
        """Does the program pass? Not every: of interpreters in home folders, of which test_python tries each, none."""
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        if not every:
            env["HOME"] = "/nonexistent"
        try:
            return not subprocess.run([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=LONGEST, env=env,
                                      check=False).returncode
        except subprocess.TimeoutExpired:
            return False

    def survives(self, path, text, programs):
        with tempfile.TemporaryDirectory() as folder:
            copy, built = os.path.join(folder, "copy.c"), os.path.join(folder, "copy.o")
            with open(copy, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run(["gcc", *FLAGS, "-iquote", os.path.dirname(path), "-c", "-o", built, copy], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sys.exit(f"a copy of {path} does not compile: {done.stderr[-500:]}")
            for name in programs:
                program = os.path.join(folder, f"test_{name}")
                subprocess.run(["gcc", "-pthread", "-fsanitize=address,undefined", "-o", program,
                                *(built if part == f"{OUT}/{path[:-2]}.o" else part for part in self.parts[name])], check=True)
                if not self.passes(program, False) or (name == "python" and not self.passes(program, True)):
                    return False
        return True


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    args = sys.argv[1:]
    if len(args) in (2, 3) and args[0] == "--random" and all(a.isdigit() for a in args[1:]):
        files = PARSERS
    elif len(args) >= 2 and args[0].endswith(".c"):
        files = {args[0]: args[1:]}
    else:
        sys.exit("usage: scripts/mutate.py FILE.c PROGRAM... | --random COUNT [SEED]")
    texts = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    checks = [(path, *mutant) for path in files for mutant in mutants(texts[path])]
    everything = len(checks)
    if files is PARSERS:
        checks = sorted(random.Random(int(args[2]) if len(args) == 3 else 1).sample(checks, min(int(args[1]), everything)))
    bench = Bench(sorted({name for path in {check[0] for check in checks} for name in files[path]}))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def noticed(check):
            path, begin, end, instead = check
            return not bench.survives(path, texts[path][:begin] + instead + texts[path][end:], files[path])

        survived = 0
        for (path, begin, end, _), good in zip(checks, pool.map(noticed, checks)):
            if not good:
                survived += 1
                print(f"{path}:{texts[path].count(chr(10), 0, begin) + 1}: survives: {' '.join(texts[path][begin:end].split())}", flush=True)
        # What fails without a change has noticed nothing: limits of memory that AddressSanitizer exceeds, a machine that is too busy.
        pairs = sorted({(check[0], name) for check in checks for name in files[check[0]]})
        for (path, name), good in zip(pairs, pool.map(lambda pair: bench.survives(pair[0], texts[pair[0]], [pair[1]]), pairs)):
            if not good:
                print(f"{path}: test_{name} fails without a change: what it noticed shows nothing", flush=True)
    print(f"{len(checks)} of {everything} checks taken out, {survived} not noticed")


if __name__ == "__main__":
    main()
