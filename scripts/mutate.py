#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutate.py - does a test notice when a bounds check is missing? scripts/mutate.py FILE PROGRAM, as user/event/record.c record

Takes the checks of a C file out one by one, each operand of each condition by itself, in a copy of the file: those of an `if` that
refuses (returns an error, 0, false or NULL), and those of `return CONDITION ? -E... : 0` and its reverse. Each copy is compiled, linked
in the place of the file, and the unit program test_PROGRAM is run, which must fail. Prints those that survive with their lines,
and how many there were. Some survive by right: another check refuses the same. Needs `make unit-programs`; changes nothing in the tree.
"""
import os
import re
import subprocess
import sys
import tempfile

OUT = ".output"
LONGEST = 60  # seconds for a run, after which the program counts as failed


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


def mutants(source):
    """(begin, end, what comes in its place)"""
    for found in re.finditer(r"\bif \(", source):
        depth, end = 1, found.end()
        while depth:
            depth += (source[end] == "(") - (source[end] == ")")
            end += 1
        if re.match(r"\s*(\{\s*)?return (-E\w+|0|false|NULL);", source[end:end + 80]):
            for a, b in operands(source[found.end():end - 1], "||"):
                yield found.end() + a, found.end() + b, " 0 "
    for pattern, separator, instead in ((r"return ([^;?]*?)\? -E\w+\s*: 0;", "||", " 0 "), (r"return ([^;?]*?)\? 0\s*: -E\w+;", "&&", " 1 ")):
        for found in re.finditer(pattern, source):
            for a, b in operands(found.group(1), separator):
                yield found.start(1) + a, found.start(1) + b, instead


def main():
    if len(sys.argv) != 3 or not sys.argv[1].endswith(".c"):
        sys.exit("usage: scripts/mutate.py FILE.c PROGRAM")
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path, test = sys.argv[1], f"{OUT}/tests/unit/test_{sys.argv[2]}.o"
    with open(path, encoding="utf-8") as file:
        source = file.read()
    rules = subprocess.run(["make", "-pn"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    libraries = re.search(r"^LDLIBS *:?= *(.*)", rules, re.M).group(1).split()
    objects = re.search(r"^LIB *:?= *(.*)", rules, re.M).group(1)
    objects = subprocess.run(["make", "-s", "-f", "Makefile", "-f", "-", "print-objects"], input="print-objects:\n\t@echo $(LIB)\n",
                             stdout=subprocess.PIPE, text=True, check=True).stdout.split() if "$(" in objects else objects.split()
    objects = [o for o in objects if o != f"{OUT}/{path[:-2]}.o"]
    total = survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy, program = os.path.join(folder, "copy.c"), os.path.join(folder, "program")
        for begin, end, instead in mutants(source):
            with open(copy, "w", encoding="utf-8") as file:
                file.write(source[:begin] + instead + source[end:])
            built = subprocess.run(["gcc", "-w", "-std=gnu11", "-D_GNU_SOURCE", '-DCT_VERSION="0"', "-O1", f"-I{OUT}", "-iquote", os.path.dirname(path),
                                    "-o", program, copy, test, *objects, *libraries], stderr=subprocess.PIPE, text=True, check=False)
            if built.returncode:
                sys.exit(f"a copy does not compile: {built.stderr[-500:]}")
            total += 1
            try:
                status = subprocess.run([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONGEST, check=False).returncode
            except subprocess.TimeoutExpired:
                continue
            if status == 0:
                survived += 1
                print(f"{path}:{source.count(chr(10), 0, begin) + 1}: survives: {' '.join(source[begin:end].split())}", flush=True)
    print(f"{total} checks taken out, {survived} not noticed")


if __name__ == "__main__":
    main()
