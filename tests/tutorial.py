#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tutorial.py - runs the commands of README, the tutorial and the guides, and compares their output with what the pages show.

tests/tutorial.py [-v] [PAGE...]     needs root, sudo, ./cudatrace, the sample program and the stand-in

The commands are run as their reader would: by an ordinary user who may use sudo. The test makes the user and the rule for sudo, and
removes both. `cudatrace` is installed, and the stand-in's libraries are found, as CUDA's are on a machine that has them. The tutorial's
commands are typed in the shell that `sudo -s` gives this user. All files that a page has made must belong to the user in the end.

A block of a page that begins with ```console is run: a line after `$ ` is a command (a `\\` at its end continues it), the lines up to
the next one are its output. The blocks of a page run one after the other, in a folder of their own that has the files of the
repository. A comment before a block says more:

  <!-- not run: WHY -->         it is not run; WHY is for the reader of the page's source
  <!-- any order -->            the lines of the output may come in any order
  <!-- status N -->             the last command ends with this status, and not with 0
  <!-- wait for: COMMAND -->    COMMAND is run again and again until it succeeds, and the block's last command after that
  <!-- PID hangs -->            PID in this block is a program that waits in a call of CUDA for ever
  <!-- output left out: WHY --> `...` may be all that the page shows of an output

`PID` in a command is the pid of a training loop that runs. `./app` is the sample program, train.py is docs/train.py.

What two runs have in common is compared: words, and whole numbers of less than four digits. Times, shares, addresses, dates, numbers with a
fraction, and whole numbers of four digits and more stand for any other one of their kind. `...` alone stands for any lines, `...` inside
a line for any text. `...` alone may not be the first line of an output: the page would promise something that nobody compares. No time is
asserted. Prints `ok` and `not ok` lines.
"""
import atexit
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ["README.md", "docs/tutorial.md", "docs/guides.md"]
ROOTS_SHELL = {"docs/tutorial.md"}  # typed in a shell of root's, which sudo has started
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
# What of the repository the user gets a copy of: the repository itself may lie where only root may go.
COPIED = ["cudatrace", "cuda_events_test", "docs", "scripts", "deploy", ".output/standin"]
SUDOERS = "/etc/sudoers.d/"
USER = "cudatrace-test-"  # and the pid of the test
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # root's own may lead to where only root may go

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
# On a busy machine the probes may come later than a program's first instructions, which the last line says.
LATE = r"(?: of those seen; \d+ process(?:es)? ran up to .*)?"
TOKEN = re.compile("|".join(f"({p})" for p, _ in PATTERNS))
COMMENT = re.compile(r"<!-- (not run: .+|any order|PID hangs|output left out: .+|status (\d+)|wait for: (.+)) -->$")


class Block:
    def __init__(self, page, line):
        self.page, self.line = page, line
        self.why_not, self.any_order, self.status, self.wait_for = None, False, 0, None
        self.hangs = self.left_out = False
        self.steps = []  # [command, lines of output]


def pattern(line):
    """A line of a page as a regular expression."""
    out, at = "", 0
    for m in TOKEN.finditer(line.rstrip()):
        out += re.escape(line[at : m.start()]) + PATTERNS[m.lastindex - 1][1]
        at = m.end()
    out += re.escape(line.rstrip()[at:])
    if line.rstrip().endswith(" 0 lost"):
        out += LATE
    return re.compile(out + r"\s*$")


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
            said[re.sub(r"[: ].*", "", comment[1])] = comment
        elif inside is None and fence:
            inside, block = line[3:], Block(page, number)
            if "not" in said:
                block.why_not = said["not"][1][9:]
            block.any_order, block.hangs, block.left_out = "any" in said, "PID" in said, "output" in said
            block.wait_for = said["wait"][3] if "wait" in said else None
            block.status = int(said["status"][2]) if "status" in said else 0
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


def run(*command, **more):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


class Reader:
    """An ordinary user who may use sudo, with a home that has a copy of what the pages use, and `cudatrace` where root finds it."""

    def __init__(self):
        for path in glob.glob(SUDOERS + USER + "*"):  # of a test that was killed
            if not os.path.exists("/proc/" + path.rpartition("-")[2]):
                Reader.remove(os.path.basename(path))
        self.name = f"{USER}{os.getpid()}"
        self.base = tempfile.mkdtemp(prefix="cudatrace-pages-")
        os.chmod(self.base, 0o755)
        atexit.register(self.close)
        self.home, self.tree, programs = (os.path.join(self.base, name) for name in ("home", "tree", "bin"))
        for path in COPIED:
            target = os.path.join(self.tree, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            (shutil.copytree if os.path.isdir(os.path.join(ROOT, path)) else shutil.copy2)(os.path.join(ROOT, path), target)
        run("chmod", "-R", "a+rX", self.tree)
        os.mkdir(programs)
        os.symlink(os.path.join(self.tree, "cudatrace"), os.path.join(programs, "cudatrace"))
        run("useradd", "--create-home", "--home-dir", self.home, "--shell", "/bin/bash", self.name)
        self.env = {"PATH": f"{programs}:{PATH}", "HOME": self.home, "USER": self.name, "LOGNAME": self.name,
                    "LC_ALL": "C", "PYTHONUNBUFFERED": "1", "CUDATRACE_TESTS": "1", "LD_LIBRARY_PATH": os.path.join(self.tree, ".output/standin")}
        with open(os.path.join(self.base, "env"), "w", encoding="ascii") as f:
            f.writelines(f"{name}={self.env[name]}\n" for name in ("LC_ALL", "PYTHONUNBUFFERED", "CUDATRACE_TESTS", "LD_LIBRARY_PATH"))
        rule = os.path.join(self.base, "rule")
        with open(rule, "w", encoding="ascii") as f:
            f.write(f'Defaults:{self.name} secure_path="{self.env["PATH"]}", env_file={self.base}/env, !requiretty\n'
                    f"{self.name} ALL=(ALL) NOPASSWD: ALL\n")
        run("visudo", "-cf", rule)
        run("install", "-m", "440", rule, SUDOERS + self.name)

    @staticmethod
    def remove(name):
        if os.path.exists(SUDOERS + name):
            os.remove(SUDOERS + name)
        subprocess.run(["userdel", "--force", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def close(self):
        Reader.remove(self.name)
        shutil.rmtree(self.base, ignore_errors=True)

    def start(self, command, folder, **more):
        return subprocess.Popen(command, cwd=folder, user=self.name, group=self.name, extra_groups=[], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, start_new_session=True, env={**self.env, **more.pop("env", {})}, **more)


def end_session(process):
    """Ends it and what it has left in the background, also what runs as root."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sig)
            process.wait(timeout=LIMIT_S if sig == signal.SIGTERM else None)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


class Page:
    """A folder of the reader's, and a shell for each block: variables last for one block."""

    def __init__(self, page, reader, verbose):
        self.reader, self.verbose, self.loops = reader, verbose, {}
        self.shell = ["sudo", "bash", "-c"] if page in ROOTS_SHELL else ["bash", "-c"]
        self.folder = tempfile.mkdtemp(dir=reader.home)
        for name, target in PRESENT.items():
            os.symlink(os.path.join(reader.tree, target), os.path.join(self.folder, name))
        os.remove(os.path.join(self.folder, "train.py"))
        shutil.copy(os.path.join(ROOT, PRESENT["train.py"]), os.path.join(self.folder, "train.py"))
        run("chown", "-hR", reader.name + ":", self.folder)

    def close(self):
        for loop in self.loops.values():
            end_session(loop)
            loop.stdout.close()

    def of_others(self):
        """A file that does not belong to the reader, or None."""
        uid = os.stat(self.reader.home).st_uid
        for folder, _, files in os.walk(self.folder):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                if os.lstat(path).st_uid != uid:
                    return path
        return None

    def pid(self, hangs):
        """Of a training loop that runs until the page is done, or of one that hangs in a call."""
        if hangs not in self.loops:
            program = "import time, train\ntrain.train(1)\nprint('ready')\nwhile True:\n    train.train(1)\n    time.sleep(0.01)\n"
            env = {}
            if hangs:
                program = "import train\nprint('ready')\ntrain.train(1)\n"
                env = {"STANDIN_BLOCK": "cudaDeviceSynchronize:/nowhere"}
            loop = self.reader.start(["python3", "-u", "-B", "-c", program], self.folder, env=env)
            loop.stdout.readline()
            self.loops[hangs] = loop
        return str(self.loops[hangs].pid)

    def run(self, block):
        """What is wrong with the block, or None."""
        script = ""
        for i, (command, want) in enumerate(block.steps):
            if want and want[0].strip() == "..." and not block.left_out:
                return f"'{command}' has `...` in the place of its output: show the lines that carry the page's promise"
            if block.wait_for and i == len(block.steps) - 1:
                command = f"until {block.wait_for}; do sleep 0.5; done > /dev/null 2>&1\n{command}"
            if re.search(r"\bPID\b", command):
                command = re.sub(r"\bPID\b", self.pid(block.hangs), command)
            script += f"{command}\n_status=$?; echo; echo '=== {i}' $_status\n"
        with tempfile.TemporaryFile() as out:
            shell = self.reader.start([*self.shell, script], self.folder, stderr=subprocess.STDOUT)
            # what is in the background may keep the output open
            reader = threading.Thread(target=shutil.copyfileobj, args=(shell.stdout, out), daemon=True)
            reader.start()
            late = False
            try:
                shell.wait(LIMIT_S * len(block.steps))
            except subprocess.TimeoutExpired:
                late = True
            end_session(shell)
            reader.join(LIMIT_S)
            shell.stdout.close()
            out.seek(0)
            text = out.read().decode(errors="replace")
        return f"not done in time: {text[-300:]}" if late else self.judge(block, text)

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
            if int(m[1]) != status:
                return f"'{command}' ended with status {m[1]}, not {status}: {' | '.join(got[-3:])}"
            want = [line for line in want if line.strip()]
            missing = want and (in_any_order if block.any_order else in_order)(want, got)
            if missing:
                return f"'{command}': no such line in its place: {missing.strip()} || got: {' | '.join(got)[:1500]}"
        return None


def main():
    verbose = "-v" in sys.argv[1:]
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the user is removed then, too
    reader = Reader()
    for page in [a for a in sys.argv[1:] if a != "-v"] or PAGES:
        there = Page(page, reader, verbose)
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
            others = there.of_others()
            failed |= bool(others)
            print(f"not ok {page} owner: {others} does not belong to the user who called sudo" if others else f"ok {page} owner")
        finally:
            there.close()
        if not ran:
            print(f"not ok {page}: no block was run")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
