#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""test_book.py - the book of benchmarks (book.py, book_files.py, goals.sh) without probes: a stored book's page, its plots as a browser
shows them, its comparison with another one, the rounds of a work that no tracer but a pretended one is attached to, and the list of missed
goals. Needs ./cudatrace (or CUDATRACE) and `make standin`. Prints `ok`, `not ok` and `skip` lines. A picture is left in .output/book.
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests")]
import book
import book_files
import chrome
from chrome import Browser, Gone, check

STANDIN = f"{ROOT}/.output/standin/libcudart.so.13"


def a_book():
    """Five rounds; `wide` has a ratio far from the others."""
    at = {"empty": 1000, "bare": 20, "table": 2000, "hooks": 100, "<b>peer</b>": 9000}
    spread = [1, 0.98, 1.02, 0.99, 1.01]
    samples = {way: [ns * (1 if way == "empty" else one) for one in spread] for way, ns in at.items()}
    near = {way: [ns * one for one in spread] for way, ns in {"empty": 1000, "table": 1100, "hooks": 1050}.items()}
    return {"machine": {"processor": "a & b", "gpus": ["one", "two"]}, "when": "2020-01-01T00:00:00Z", "rounds": 5,
            "left_out": ["Left out of wide: top: there was no time."],
            "works": [{"name": "wide", "about": "Some calls.", "floor": "empty", "samples_ns": samples, "ratios": book_files.ratios(samples, "empty"),
                       "said": {"table": "cudatrace: 7 calls, 0 lost"}},
                      {"name": "near", "about": "", "floor": "empty", "samples_ns": near, "ratios": book_files.ratios(near, "empty"), "said": {}}]}


def run(*words, env=None):
    done = subprocess.run([sys.executable, f"{HERE}/book.py", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                          timeout=300, check=False)
    return done.returncode, done.stdout


def store(folder, stored):
    """The files of a book that book.py makes of its book.json. Returns what it printed."""
    os.makedirs(folder)
    with open(f"{folder}/in.json", "w", encoding="utf-8") as file:
        json.dump(stored, file)
    code, said = run("--from", f"{folder}/in.json", "--out", folder)
    check("book-from", code == 0, said)
    return said


def files(folder):
    said = store(f"{folder}/a", a_book())
    check("book-printed", re.search(r"^wide +table +2,000 ns, ratio 2\.00 \(1\.98 to 2\.02\)$", said, re.MULTILINE), said)
    check("book-printed-left-out", "Left out of wide: top: there was no time." in said, said)
    page = book.read(f"{folder}/a/book.html")
    check("book-escaped", "a &amp; b" in page and "<b>" not in page and "&lt;b&gt;peer&lt;/b&gt;" in page)
    check("book-machine", "one, two" in page and "Rounds: 5." in page, page[:600])
    check("book-last-line", "<td>cudatrace: 7 calls, 0 lost" in page)
    with open(f"{folder}/a/book.json", encoding="utf-8") as file:
        check("book-same", json.load(file) == a_book())
    # what nobody traces is in the table, and not in the plot
    svg = page[page.index("<svg"):page.index("</svg>")]
    check("book-drawn", ">bare<" not in svg and svg.count("<circle") == 4 * 5 and "<tr><td>bare<td>20 ns<td>0.02" in page, svg)
    runs = [json.loads(line) for line in book.read(f"{folder}/a/book.stat").splitlines()]
    row = next(row for row in runs[1]["kernels"] if row["name"] == "wide_table")
    check("book-stat", len(runs) == 5 and row["avg_ns"] == 1960000 and row["calls"] == 1, row)


def comparison(folder):
    same = run("--from", f"{folder}/a/in.json", "--out", f"{folder}/again", "--compare", f"{folder}/a/book.stat")
    check("book-compare-equal", same[0] == 0, same)
    worse = a_book()
    worse["works"][0]["ratios"]["table"] = [value * 1.2 for value in worse["works"][0]["ratios"]["table"]]
    store(f"{folder}/worse", worse)
    code, said = run("--from", f"{folder}/worse/in.json", "--out", f"{folder}/again", "--compare", f"{folder}/a/book.stat")
    check("book-compare-worse", code == 1 and "wide_table" in said, said)
    code, said = run("--from", f"{folder}/a/in.json", "--out", f"{folder}/again", "--compare", f"{folder}/worse/book.stat")
    check("book-compare-better", code == 0, said)
    other = copy.deepcopy(a_book())
    for key in ("ratios", "samples_ns"):
        other["works"][0][key]["new"] = other["works"][0][key].pop("hooks")
    store(f"{folder}/other", other)
    code, said = run("--from", f"{folder}/other/in.json", "--out", f"{folder}/again", "--compare", f"{folder}/a/book.stat")
    check("book-compare-other-ways", code == 0 and "not compared: wide_hooks, wide_new" in said, said)


POSITIONS = """[...document.querySelectorAll('svg')].map(svg => ({
    ticks: [...svg.querySelectorAll('text.axis')].map(t => [t.textContent, +t.getAttribute('x')]),
    ways: [...svg.querySelectorAll('text[text-anchor=end]')].map(t => t.textContent),
    medians: [...svg.querySelectorAll('line.median')].map(l => +l.getAttribute('x1')),
    texts: [...svg.querySelectorAll('text')].map(t => (r => [r.left, r.top, r.right, r.bottom, t.textContent])(t.getBoundingClientRect())),
    box: (r => [r.left, r.top, r.right, r.bottom])(svg.getBoundingClientRect())}))"""


def apart(texts):
    """The first pair of texts that overlap."""
    return next(((a[4], b[4]) for i, a in enumerate(texts) for b in texts[i + 1:]
                 if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]), None)


def plots(folder):
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("skip book-browser: there is no chromium")
        return
    browser = Browser(program, f"{folder}/profile")
    try:
        browser.open_page()
        browser.load(f"{folder}/a/book.html")
        browser.size(1000, 1300)
        check("book-no-errors", not browser.complaints(), browser.complaints())
        check("book-width", browser.js("document.documentElement.scrollWidth") <= 1000)
        for plot, (way, ratio) in zip(browser.js(POSITIONS), (("table", "2"), ("table", "1.1"))):
            ticks = dict(plot["ticks"])
            check(f"book-axis-{ratio}", abs(ticks.get(ratio, -1) - plot["medians"][plot["ways"].index(way)]) < 1, plot)
            check(f"book-axis-one-{ratio}", abs(ticks.get("1", -1) - plot["medians"][0]) < 1, plot)
            check(f"book-axis-numbers-{ratio}", 4 <= len(ticks) <= 14, ticks)
            check(f"book-apart-{ratio}", apart(plot["texts"]) is None, apart(plot["texts"]))
            low, _, high, bottom = plot["box"]
            check(f"book-inside-{ratio}", all(low <= t[0] and t[2] <= high and t[3] <= bottom for t in plot["texts"]), plot["texts"])
        os.makedirs(f"{ROOT}/.output/book", exist_ok=True)
        browser.picture(f"{ROOT}/.output/book/page.png")
    except Gone as error:
        check("book-browser", False, error)
    finally:
        browser.close()


def rounds(folder):
    """Two works, a tracer that does nothing, one that fails, and a work that does not exist."""
    ready = "sh -c 'echo PID is ready; exec sleep 300'"
    code, said = run("--gpu", "eager,ddp", "--fake", STANDIN, "--rounds", "2", "--seconds", "240", "--only", "profiler", "--out", f"{folder}/fake",
                     "--peer", f"idle={ready}", "--ready", "idle=is ready", "--peer", "bad=sh -c 'echo no such thing; exit 1'")
    with open(f"{folder}/fake/book.json", encoding="utf-8") as file:
        made = json.load(file)
    check("book-fake", code == 0 and made["rounds"] == 2, said)
    check("book-fake-works", [(work["name"], sorted(work["samples_ns"])) for work in made["works"]] ==
          [("eager", ["bare", "idle", "profiler"]), ("ddp", ["bare", "idle", "profiler"])], made)
    check("book-fake-samples", all(len(values) == 2 and min(values) > 0 for work in made["works"] for values in work["samples_ns"].values()), made)
    check("book-fake-said", made["works"][0]["said"]["idle"] == "1 lines", made)
    check("book-fake-left-out", made["left_out"] == ["Left out of eager, ddp: bad: it did not become ready; its output: no such thing."], made)
    code, said = run("--gpu", "eager", "--fake", "/nowhere.so", "--rounds", "1", "--out", f"{folder}/none")
    check("book-nothing", code == 1 and "Left out of eager: every way: it did not begin" in said and "nowhere.so" in said, said)
    for bad in (("--peer", "table=true"), ("--peer", "nameless"), ("--rounds", "0")):
        check(f"book-option-{bad[1]}", run(*bad)[0] == 2)


class Worth:
    """A work whose samples take no time, and a clock that is over after some of them."""

    def __init__(self, name):
        self.name, self.floor, self.ways, self.samples = name, "bare", ["bare", "a", "b", "c"], {}

    def drop(self, way):
        self.ways = [w for w in self.ways if w != way]


def worth():
    works, taken, left_out = [Worth("one"), Worth("two")], [], {}

    class Bench:
        @staticmethod
        def sample(work, way):
            taken.append((work.name, way))

    class Clock:
        @staticmethod
        def share_is_over(done):
            return done >= 5

    book.one_round(Bench, works, 0, Clock, left_out)
    check("book-worth", taken == [(name, way) for way in ("bare", "a", "b") for name in ("one", "two")][:5], taken)
    check("book-worth-said", list(book.sentences(left_out)) == ["Left out of two: b: there was no time.", "Left out of one, two: c: there was no time."],
          list(book.sentences(left_out)))
    taken.clear()
    book.one_round(Bench, works, 1, Clock, left_out)
    check("book-worth-later", sorted(taken) == [("one", "a"), ("one", "b"), ("one", "bare"), ("two", "a"), ("two", "bare")], taken)
    clock = book.Clock(time.monotonic(), 500, 10)
    clock.began -= 600
    check("book-clock", not clock.another_fits() and clock.share_is_over(1))
    check("book-clock-free", book.Clock(time.monotonic(), None, 10).another_fits())


def goals(folder):
    script = f"""set -o pipefail; tmp={folder}; . {HERE}/goals.sh
shown printf 'one 5.5 ns\\nb: one 7 ns\\n'
at_most reached "$(number 'b: one ([0-9.]+) ns')" 7 ns
at_most above "$(number 'one ([0-9.]+) ns')" 6.5 ns
at_least below 299999.5 300000 rows
at_most unknown "$(number 'two ([0-9]+)')" 5 MiB
shown false
goals_end"""
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check("book-goals", done.returncode == 1 and done.stdout.splitlines()[2:] == [
        "== 4 goals were missed", "above: 7 ns (goal: at most 6.5 ns)", "below: 299999.5 rows (goal: at least 300000 rows)",
        "unknown: not measured (goal: at most 5 MiB)", "false ended with status 1"], done.stdout)
    done = subprocess.run(["bash", "-c", f"""tmp={folder}; . {HERE}/goals.sh; bound x 9 "it is old"; bound y 5 why; bound z 7 "as x"
at_most x 8 6 ns; at_most y 5.5 4; at_least z 7 10; goals_end"""], stdout=subprocess.PIPE, text=True, check=False)
    check("book-goals-bounds", done.returncode == 1 and done.stdout.splitlines() == [
        "== 2 goals were not reached, within what the design can hold", "x: 8 ns (goal: at most 6 ns; bound: 9 ns: it is old)",
        "z: 7 (goal: at least 10; bound: 7: as x)", "== 1 goals were missed", "y: 5.5 (goal: at most 4; bound: 5)"], done.stdout)
    done = subprocess.run(["bash", "-c", f"tmp={folder}; . {HERE}/goals.sh; bound x 9 old; at_most x 8 6; goals_end"], stdout=subprocess.PIPE, text=True, check=False)
    check("book-goals-within", done.returncode == 0 and done.stdout.endswith("== no bound was missed\n"), done.stdout)
    done = subprocess.run(["bash", "-c", f"tmp={folder}; . {HERE}/goals.sh; at_most x 1 1; goals_end"], stdout=subprocess.PIPE, text=True, check=False)
    check("book-goals-reached", done.returncode == 0 and done.stdout == "== every goal was reached\n", done.stdout)


with tempfile.TemporaryDirectory() as scratch:
    files(scratch)
    comparison(scratch)
    worth()
    goals(scratch)
    rounds(scratch)
    plots(scratch)
sys.exit(1 if chrome.failed else 0)
