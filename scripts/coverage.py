#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""coverage.py - which lines of the user side do tests run? scripts/coverage.py [--cases NAME-GLOB... | --report] [--parsers | --files FOLDER]

Builds with gcc's --coverage in a folder of its own (.output/cov), runs the unit programs and the inputs of the fuzz targets (their corpora,
seeds, and what fuzzing has found before), with --cases those short cases with real BPF too (as root; '*' is all of them), and prints a table
in Markdown: lines, and those that were run, by folder. --report builds and runs nothing: it counts what earlier runs have left. --parsers
prints the table of the files that read foreign bytes (those of scripts/mutate.py). --files prints each file of a folder, with the lines that
were not run.

What it cannot see: a process that is killed, or leaves by _exit() or exec, writes nothing down. So what the readers of foreign bytes do in
children of their own counts only where a unit program or a fuzz target runs it in its own process.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

import mutate

OUT = ".output/cov"


def make(*words):
    done = subprocess.run(["make", "-j", str(os.cpu_count()), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"coverage.py: make {words[-1]} failed: {done.stdout[-2000:]}")


def build_and_run(cases):
    make(f"OUTPUT={OUT}", "CFLAGS=-O1 -g --coverage -fprofile-update=atomic -fprofile-filter-files=user/.*", "HARDENING=", "fuzz-replay", "unit-programs",
         f"{OUT}/cudatrace")
    # what unit programs and cases start, as the suites build it
    make("cudatrace", "standin", "cases-progs", "fuzz-seeds")
    for left in glob.glob(f"{OUT}/**/*.gcda", recursive=True):
        os.remove(left)
    results = [subprocess.run(["tests/unit/run.sh", *sorted(glob.glob(f"{OUT}/unit/test_*"))], stdout=sys.stderr, check=False).returncode]
    for target in subprocess.run(["tests/fuzz/run.sh", "-l"], stdout=subprocess.PIPE, text=True, check=True).stdout.split():
        folders = [f"tests/fuzz/corpus/{target}", f".output/fuzz/seeds/{target}", f".output/fuzz/{target}"]
        results.append(subprocess.run([f"{OUT}/replay_{target}", *folders], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode)
        if results[-1]:
            print(f"coverage.py: {target} ended with {results[-1]}", file=sys.stderr)
    if cases:
        results.append(subprocess.run(["tests/cases/run.sh", "--short", *cases], env={**os.environ, "CUDATRACE": os.path.abspath(f"{OUT}/cudatrace")},
                                      stdout=sys.stderr, check=False).returncode)
    if any(results):
        print("coverage.py: some tests failed: the table counts what they ran all the same", file=sys.stderr)


def count():
    """{file: {line: was it run}} of the C files of user/. A header's lines count by the header."""
    lines = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        notes = [os.path.abspath(p) for p in glob.glob(f"{OUT}/user/**/*.gcno", recursive=True)]
        for at in range(0, len(notes), 50):
            subprocess.run(["gcov", "--json-format", "--preserve-paths", *notes[at:at + 50]], cwd=folder, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True)
        for name in glob.glob(f"{folder}/*.gcov.json.gz"):
            with gzip.open(name, "rt", encoding="utf-8") as stream:
                report = json.load(stream)
            for one in report["files"]:
                path = os.path.relpath(os.path.join(report["current_working_directory"], one["file"]))
                if path.startswith("user/"):
                    for line in one["lines"]:
                        was = lines[path].get(line["line_number"], False)
                        lines[path][line["line_number"]] = was or line["count"] > 0
    return lines


def ranges(numbers):
    out = []
    for n in numbers:
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def main():
    parser = argparse.ArgumentParser(description="which lines of the user side do tests run?")
    parser.add_argument("--cases", nargs="+", default=[])
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--parsers", action="store_true")
    parser.add_argument("--files")
    options = parser.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if not options.report:
        build_and_run(options.cases)
    lines = count()
    if not lines:
        sys.exit("coverage.py: nothing was counted: run it without --report first")
    if options.files:
        for path in sorted(lines):
            if path.startswith(options.files):
                missed = sorted(n for n, run in lines[path].items() if not run)
                print(f"{path}: {100 * (len(lines[path]) - len(missed)) / len(lines[path]):.1f} %; not run: {ranges(missed)}")
        return
    if options.parsers:
        print("| file | lines | run |\n|---|--:|--:|")
        for path in sorted(mutate.PARSERS):
            print(f"| `{path}` | {len(lines[path])} | {100 * sum(lines[path].values()) / max(len(lines[path]), 1):.1f} % |")
        return
    folders = collections.defaultdict(lambda: [0, 0])
    for path, of_file in lines.items():
        for key in (os.path.dirname(path), "all"):
            folders[key][0] += len(of_file)
            folders[key][1] += sum(of_file.values())
    print("| folder | lines | run |\n|---|--:|--:|")
    for key in sorted(folders, key=lambda k: (k == "all", k)):
        total, run = folders[key]
        print(f"| {key if key == 'all' else f'`{key}`'} | {total} | {100 * run / total:.1f} % |")


if __name__ == "__main__":
    main()
