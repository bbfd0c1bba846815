#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tutorial.py - runs the commands of README, the tutorial and the guides, and compares their output with what the pages show.

tests/tutorial.py [-v] [PAGE...]     needs root, ./cudatrace, the sample program and the stand-in

A block of a page that begins with ```console is run: a line after `$ ` is a command (a `\\` at its end continues it), the lines up to
the next one are its output. The blocks of a page run one after the other, in a folder of their own that has the files of the
repository. A comment before a block says more:

  <!-- not run: WHY -->       it is not run; WHY is for the reader of the page's source
  <!-- any order -->          the lines of the output may come in any order
  <!-- status N -->           the last command ends with this status, and not with 0
  <!-- any status -->         the last command ends with any status: what it finds is not the page's to say
  <!-- wait for: COMMAND -->  COMMAND is run again and again until it succeeds, and the block's last command after that

`PID` in a command is the pid of a training loop that runs. `./app` is the sample program, train.py is docs/train.py.

What two runs have in common is compared: words, and whole numbers of less than four digits. Times, shares, addresses, dates, numbers with a
fraction, and whole numbers of four digits and more stand for any other one of their kind. `...` alone stands for any lines, `...` inside
a line for any text. No time is asserted. Prints `ok` and `not ok` lines.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ["README.md", "docs/tutorial.md", "docs/guides.md"]
LIMIT_S = 240  # for one command: what hangs is ended
# What is in the folder in which a page's commands run.
PRESENT = {
    "cudatrace": "cudatrace",
    "cuda_events_test": "cuda_events_test",
    "app": "cuda_events_test",
    "docs": "docs",
    "scripts": "scripts",
    "deploy": "deploy",
    ".output": ".output",
    "train.py": "docs/train.py",
}

UNIT = r"(?:ns|us|ms|s|min|m)\b"
# In the order in which they are tried.
PATTERNS = [
    (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", r"\d{4}-\d\d-\d\dT[0-9:.]+Z"),
    (r"0x[0-9a-f]+", r"0x[0-9a-f]+"),
    (r"\d+(?:\.\d+)? ?%", r"\d+(?:\.\d+)? ?%"),
    (r"\d+(?:\.\d+)? ?" + UNIT, r"\d+(?:\.\d+)? ?" + UNIT),
    (r"\d+\.\d+", r"\d+\.\d+"),
    (r"\d{4,}", r"\d+"),
    (r"\.\.\.", r".*"),
    (r"\s+", r"\s+"),
]
TOKEN = re.compile("|".join(f"({p})" for p, _ in PATTERNS))
COMMENT = re.compile(r"<!-- (not run: .+|any order|any status|status (\d+)|wait for: (.+)) -->$")


class Block:
    def __init__(self, page, line):
        self.page, self.line = page, line
        self.why_not, self.any_order, self.status, self.wait_for = None, False, 0, None
        self.steps = []  # [command, lines of output]


def pattern(line):
    """A line of a page as a regular expression."""
    out, at = "", 0
    for m in TOKEN.finditer(line.rstrip()):
        out += re.escape(line[at : m.start()]) + PATTERNS[m.lastindex - 1][1]
        at = m.end()
    return re.compile(out + re.escape(line.rstrip()[at:]) + r"\s*$")


def in_order(want, got):
    """None, or the first line that was not found. Lines follow each other unless `...` stands between."""
    states = {0}  # how many lines of `got` may have been used so far
    for line in want:
        if line.strip() == "...":
            states = set(range(min(states), len(got) + 1))
            continue
        expected = pattern(line)
        states = {n + 1 for n in states if n < len(got) and expected.match(got[n])}
        if not states:
            return line
    return None if len(got) in states else "(end of the output)"


def in_any_order(want, got):
    left = list(got)
    for line in want:
        if line.strip() == "...":
            continue
        expected = pattern(line)
        found = next((g for g in left if expected.match(g)), None)
        if found is None:
            return line
        left.remove(found)
    if left and not any(line.strip() == "..." for line in want):
        return f"(the page does not have: {left[0]})"
    return None


def blocks(page):
    """The blocks of a page."""
    found, block, inside, said = [], None, None, {}
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        lines = f.read().split("\n")
    for number, line in enumerate(lines, 1):
        fence = line.startswith("```")
        comment = COMMENT.match(line)
        if inside is None and comment:
            said[re.sub(r"[: ].*", "", comment[1].replace("any ", "any-"))] = comment
        elif inside is None and fence:
            inside, block = line[3:], Block(page, number)
            if "not" in said:
                block.why_not = said["not"][1][9:]
            block.any_order = "any-order" in said
            block.wait_for = said["wait"][3] if "wait" in said else None
            block.status = int(said["status"][2]) if "status" in said else 0
            if "any-status" in said:
                block.status = None
            said = {}
        elif inside is not None and fence:
            if inside == "console":
                found.append(block)
            inside = None
        elif inside == "console" and line.startswith("$ "):
            block.steps.append([line[2:], []])
        elif inside == "console" and block.steps:
            if block.steps[-1][0].endswith("\\") and not block.steps[-1][1]:
                block.steps[-1][0] = block.steps[-1][0][:-1] + line.strip()
            else:
                block.steps[-1][1].append(line)
        elif line.strip():
            said = {}
    return found


class Page:
    """A folder, an environment, and a shell for each command: variables last for one block."""

    def __init__(self, folder, verbose):
        self.folder, self.verbose, self.loop = folder, verbose, None
        for name, target in PRESENT.items():
            os.symlink(os.path.join(ROOT, target), os.path.join(folder, name))
        self.env = dict(os.environ, LC_ALL="C", PYTHONUNBUFFERED="1")
        self.env["PATH"] = folder + ":" + self.env["PATH"]
        self.env["LD_LIBRARY_PATH"] = os.path.join(ROOT, ".output/standin")
        self.env.pop("CUDATRACE_DEBUG", None)

    def close(self):
        if self.loop:
            self.loop.kill()
            self.loop.wait()
            self.loop.stdout.close()
        shutil.rmtree(self.folder)

    def pid(self):
        """Of a training loop that runs until the page is done."""
        if not self.loop:
            program = "import time, train\ntrain.train(1)\nprint('ready')\n"
            program += "while True:\n    train.train(1)\n    time.sleep(0.01)\n"
            self.loop = subprocess.Popen(
                [sys.executable, "-u", "-c", program],
                cwd=self.folder,
                env=self.env,
                stdout=subprocess.PIPE,
            )
            self.loop.stdout.readline()
        return str(self.loop.pid)

    def run(self, block):
        """What is wrong with the block, or None."""
        script = "sudo() { env \"$@\"; }\n"
        for i, (command, _) in enumerate(block.steps):
            if re.search(r"\bPID\b", command):
                command = re.sub(r"\bPID\b", self.pid(), command)
            if block.wait_for and i == len(block.steps) - 1:
                script += f"until {block.wait_for}; do sleep 0.5; done > /dev/null 2>&1\n"
            script += f"{command}\n_status=$?; echo; echo '=== {i}' $_status\n"
        script += "kill -TERM $(jobs -p) 2> /dev/null; wait; true\n"
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            text = shell.communicate(timeout=LIMIT_S * len(block.steps))[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            text = shell.communicate()[0].decode(errors="replace")
            return f"not done in time: {text[-300:]}"
        return self.judge(block, text)

    def judge(self, block, text):
        at = 0
        for i, (command, want) in enumerate(block.steps):
            m = re.compile(rf"^=== {i} (\d+)$", re.M).search(text, at)
            if not m:
                return f"'{command}' did not end: {text[at:][-300:]}"
            got = [line for line in text[at : m.start()].split("\n") if line.strip()]
            at = m.end()
            if self.verbose:
                print(f"$ {command}\n" + "\n".join(got))
            status = block.status if i == len(block.steps) - 1 else 0
            if status is not None and int(m[1]) != status:
                return f"'{command}' ended with status {m[1]}, not {status}: {' | '.join(got[-3:])}"
            want = [line for line in want if line.strip()]
            missing = want and (in_any_order if block.any_order else in_order)(want, got)
            if missing:
                return f"'{command}': no such line in its place: {missing.strip()} || got: {' | '.join(got)[:1500]}"
        return None


def main():
    verbose = "-v" in sys.argv[1:]
    failed = 0
    for page in [a for a in sys.argv[1:] if a != "-v"] or PAGES:
        folder = tempfile.mkdtemp()
        there = Page(folder, verbose)
        ran = 0
        try:
            for block in blocks(page):
                name = f"{page}:{block.line}"
                if block.why_not:
                    continue
                if not block.steps:
                    print(f"not ok {name}: a block without a command")
                    failed = 1
                    continue
                with machine.taken("alone"):
                    wrong = there.run(block)
                ran += 1
                if wrong and machine.disturbed(wrong):  # hooks leave such functions alone: not a fault of the page
                    print(f"skip {name}: another tracer of this machine has probes on every library", flush=True)
                    continue
                if wrong:
                    failed = 1
                print(f"not ok {name}: {wrong}" if wrong else f"ok {name}", flush=True)
        finally:
            there.close()
        if not ran:
            print(f"not ok {page}: no block was run")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
