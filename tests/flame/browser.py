#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens flame graph pages in headless Chromium and uses them: browser.py CHROMIUM FOLDER

The expected numbers come from the page's data, added up here a second time, and from what tests/unit/test_fold.c puts in.
"""
import json
import os
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chrome
from chrome import Browser, Gone, check


def data_of(path):
    text = open(path, encoding="utf-8").read()
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S).group(1))


def label_of(data, name):
    """`main (train.py:100)`"""
    file, line = data["places"][2 * name:2 * name + 2]
    path = os.path.basename(data["files"][file])
    return data["names"][name] + (f" ({path}:{line})" if path and line else f" ({path})" if path else "")


def lines_of(data, second=False):
    """The folded lines: (frames, weight), by what the page shows first or by what it can switch to."""
    way, out, nodes = [], [], data["nodes"]
    for i in range(0, len(nodes), 4):
        depth, name = nodes[i:i + 2]
        way[depth - 1:] = [label_of(data, name)]
        if nodes[i + 2 + second]:
            out.append((tuple(way), nodes[i + 2 + second]))
    return out


SHOWN = """[...document.querySelectorAll("#graph div")].map(d => {
	const r = d.getBoundingClientRect();
	return { text: d.title.split("\\n")[0], title: d.title, label: d.textContent, x: r.x, y: r.y, w: r.width, h: r.height,
		hit: d.classList.contains("hit"), role: d.getAttribute("role"), aria: d.getAttribute("aria-label") };
})"""


def frame(b, text):
    return next((f for f in b.js(SHOWN) if f["text"] == text), None)


def click(b, text):
    f = frame(b, text)
    b.mouse(f["x"] + f["w"] / 2, f["y"] + f["h"] / 2)


def test_load(b, folder, kind, unit):
    path = f"{folder}/{kind}.html"
    b.load(path)
    lines = lines_of(data_of(path))
    total = sum(w for _, w in lines)
    wrong = b.complaints()
    check(f"flame-{kind}-no-errors", not wrong, wrong[:3])
    root = b.js(SHOWN)[0]
    want = {"calls": f"{total:,} calls", "us": f"{total / 1000:#.4g} ms", "bytes": f"{total / 1024:.3f} KiB ({total:,} bytes)"}[unit]
    check(f"flame-{kind}-total", root["title"] == f"all\n{want}, 100.00% of all", f"{root['title']!r}, not {want!r}")
    return lines


def test_program(b, folder):
    lines = test_load(b, folder, "program", "calls")
    total = sum(w for _, w in lines)
    shown = b.js(SHOWN)
    names = {n for way, _ in lines for n in way} | {"all"}
    check("flame-all-shown", {f["text"] for f in shown} == names, names ^ {f["text"] for f in shown})
    check("flame-accessible", all(f["role"] == "treeitem" and f["aria"].startswith(f["text"] + ", ") for f in shown), shown[:2])
    check("flame-title", b.js("document.title") == "cudatrace: calls of python3 train.py --epochs 3", b.js("document.title"))
    check("flame-legend", b.js('document.getElementById("legend").textContent') == "nativepythonCUDA callkernel", "another legend")

    # widths are shares: the layer's of the whole
    mlp = sum(w for way, w in lines if "MLP.forward (model.py:20)" in way)
    width = b.js('document.getElementById("graph").clientWidth')
    f = frame(b, "MLP.forward (model.py:20)")
    check("flame-width", abs(f["w"] - width * mlp / total) < 1.5, f"{f['w']} of {width}, not {mlp}/{total}")
    check("flame-wide-enough", max(s["x"] + s["w"] for s in shown) <= 1280 and b.js("document.documentElement.scrollWidth") <= 1280,
          "the page scrolls sideways")

    # hover
    b.mouse(f["x"] + 5, f["y"] + 5, click=False)
    said = b.js('document.getElementById("details").innerText')
    check("flame-details", said.split("\n")[0] == "MLP.forward (/src/model.py:20) [python]" and
          f"{mlp} calls, {100 * mlp / total:.2f}% of all" in said, said)

    # zoom: the frame takes the whole width, others go, what is above stays
    click(b, "MLP.forward (model.py:20)")
    f = frame(b, "MLP.forward (model.py:20)")
    shown = {s["text"] for s in b.js(SHOWN)}
    check("flame-zoom-width", abs(f["w"] - width) < 1.5, f"{f['w']} of {width}")
    check("flame-zoom-others", "Attention.forward (model.py:20)" not in shown and "train_step (train.py:61)" in shown and
          "softmax_warp_forward" in shown, shown)
    check("flame-zoom-share", f"of MLP.forward (model.py:20)" in frame(b, "softmax_warp_forward")["title"], "no share of the zoomed")
    check("flame-reset-enabled", b.js('document.getElementById("reset").disabled') is False, "the button is off")
    click(b, "train_step (train.py:61)")
    check("flame-zoom-up", frame(b, "Attention.forward (model.py:20)") is not None, "a frame above does not zoom out")
    click(b, "MLP.forward (model.py:20)")
    b.key("Escape")
    check("flame-escape-zoom", frame(b, "Attention.forward (model.py:20)") is not None and
          b.js('document.getElementById("reset").disabled'), "Esc does not show everything")
    click(b, "MLP.forward (model.py:20)")
    b.js('document.getElementById("reset").click()')
    check("flame-reset", frame(b, "Attention.forward (model.py:20)") is not None, "the button does not show everything")

    # lines off: one frame for a function, and off again
    b.js('document.getElementById("lines").click()')
    whole = sum(w for way, w in lines if any(n.startswith("MLP.forward (") for n in way))
    f = frame(b, "MLP.forward (model.py)")
    check("flame-lines-off", f is not None and abs(f["w"] - width * whole / total) < 1.5 and whole > mlp and
          frame(b, "MLP.forward (model.py:20)") is None and frame(b, "all")["title"] == f"all\n{total} calls, 100.00% of all", f)
    click(b, "MLP.forward (model.py)")
    b.js('document.activeElement.blur()')
    b.key("l", "l")
    f = frame(b, "MLP.forward (model.py:20)")
    check("flame-lines-zoomed", abs(f["w"] - width) < 1.5 and frame(b, "MLP.forward (model.py)") is None, f)
    b.key("Escape")

    # the other unit: the same frames, as wide as their time; the zoom stays
    click(b, "MLP.forward (model.py:20)")
    times = lines_of(data_of(f"{folder}/program.html"), True)
    spent, in_waits = sum(w for _, w in times), sum(w for way, w in times if "MLP.forward (model.py:23)" in way)
    check("flame-unit-button", b.js('document.getElementById("unit").textContent') == "Show time in calls", "another word")
    b.js('document.getElementById("unit").click()')
    f = frame(b, "MLP.forward (model.py:20)")
    check("flame-unit-zoomed", abs(f["w"] - width) < 1.5, f)
    b.key("Escape")
    f = frame(b, "MLP.forward (model.py:23)")
    check("flame-unit-width", in_waits / spent > 0.1 > 25 / total and abs(f["w"] - width * in_waits / spent) < 1.5, f"{f['w']} of {width}")
    check("flame-unit-details", f["title"].split("\n")[1] == f"{in_waits / 1000:#.4g} ms, {100 * in_waits / spent:.2f}% of all", f["title"])
    check("flame-unit-title", b.js("document.title") == "cudatrace: time in calls of python3 train.py --epochs 3" and
          b.js('document.getElementById("unit").textContent') == "Show calls", b.js("document.title"))
    b.picture(f"{folder}/time.png")
    b.key("c", "c")
    check("flame-unit-back", frame(b, "all")["title"] == f"all\n{total} calls, 100.00% of all", frame(b, "all")["title"])

    # search: what matches inside a match is not counted twice
    b.key("/", "/")
    check("flame-slash", b.js('document.activeElement.id') == "search" and not b.js('document.getElementById("search").value'),
          "/ does not go to the search")
    b.type("AT::native")
    hit = sum(w for way, w in lines if any("at::native" in n for n in way))
    check("flame-search-sample", 0 < hit < total and any(sum("at::native" in n for n in way) > 1 for way, _ in lines), hit)
    found = b.js('document.getElementById("found").textContent')
    check("flame-search-share", found.startswith(f"{100 * hit / total:.2f}% matched: {hit} calls in "), f"{found}, not {hit} of {total}")
    shown = b.js(SHOWN)
    check("flame-search-highlights", all(f["hit"] == ("at::native" in f["text"]) for f in shown) and any(f["hit"] for f in shown),
          [f["text"] for f in shown if f["hit"]])
    b.picture(f"{folder}/search.png")
    b.type("xyz")
    check("flame-search-none", b.js('document.getElementById("found").textContent') == "no match" and
          not any(f["hit"] for f in b.js(SHOWN)), "something matches")
    b.key("Escape")
    check("flame-escape-search", b.js('document.getElementById("found").textContent') == "" and
          not b.js('document.getElementById("search").value'), "Esc does not end the search")
    b.key("f", None, 2)
    check("flame-ctrl-f", b.js('document.activeElement.id') == "search", "Ctrl-F does not go to the search")
    b.key("Escape")

    # the keyboard alone
    b.js('document.querySelector("#graph [tabindex=\\"0\\"]").focus()')
    layer = "LayerNorm.forward (model.py:20)"
    for _ in range(1 + next(way.index(layer) for way, _ in lines if layer in way)):
        b.key("ArrowDown")
    at = b.js('document.activeElement.title.split("\\n")[0]')
    check("flame-arrows-down", at == layer, at)
    for _ in range(2): # LayerNorm.forward has two lines
        b.key("ArrowRight")
    at = b.js('document.activeElement.title.split("\\n")[0]')
    check("flame-arrows-right", at == "MLP.forward (model.py:20)", at)
    b.key("Enter")
    check("flame-enter", abs(frame(b, "MLP.forward (model.py:20)")["w"] - width) < 1.5 and
          b.js('document.activeElement.title').startswith("MLP.forward"), "Enter does not zoom, or the focus is lost")
    b.key("Escape")

    # another size, upside down, dark
    b.size(700, 500)
    width = b.js('document.getElementById("graph").clientWidth')
    check("flame-resize", 650 < width < 700 and abs(frame(b, "all")["w"] - width) < 1.5, frame(b, "all"))
    b.size(1280, 720)
    y = frame(b, "all")["y"]
    b.js('document.getElementById("flip").click()')
    check("flame-flip", frame(b, "all")["y"] > y + 100 and frame(b, "softmax_warp_forward")["y"] < frame(b, "all")["y"], "not upside down")
    b.js('document.getElementById("flip").click()')
    light = b.js('getComputedStyle(document.body).backgroundColor')
    b.picture(f"{folder}/light.png")
    b.size(1280, 720, dark=True)
    dark = b.js('getComputedStyle(document.body).backgroundColor')
    b.picture(f"{folder}/dark.png")
    check("flame-dark", light == "rgb(255, 255, 255)" and dark != light, f"{light} and {dark}")
    b.size(1280, 720)


def test_hostile(b, folder):
    lines = test_load(b, folder, "hostile", "calls")
    names = {n for way, _ in lines for n in way}
    bad = "</script><img src=x onerror=alert(1)>: ?[31m?\"'&amp:?..."
    check("flame-hostile-data", bad in names, names)
    f = frame(b, bad)
    check("flame-hostile-text", f is not None and f["label"] == bad, f)
    check("flame-hostile-elements", b.js('document.querySelectorAll("img, #graph b, bdi *").length') == 0 and
          b.js("document.scripts.length") == 2, "a name became an element")
    check("flame-hostile-title", b.js('document.getElementById("title").textContent') == "./app </script>?;x", "another title")
    b.key("/", "/")
    b.type("<img")
    found = b.js('document.getElementById("found").textContent')
    check("flame-hostile-search", found == f"{100 / sum(w for _, w in lines):.2f}% matched: 1 call in 1 frame", found)
    b.key("Escape")
    b.picture(f"{folder}/hostile.png")


def test_many(b, folder):
    began = time.monotonic()
    lines = test_load(b, folder, "many", "calls")
    took = time.monotonic() - began
    check("flame-many-stacks", len(lines) == 100000, len(lines))
    check("flame-many-loads", took < 120, f"{took:.1f} s")
    shown = b.js("document.querySelectorAll('#graph div').length")
    check("flame-many-drawn", 100 < shown < 20000, f"{shown} frames are drawn")
    began = time.monotonic()
    b.key("/", "/")
    b.type("function_number_7")
    hit = sum(w for way, w in lines if any("function_number_7" in n for n in way))
    found = b.js('document.getElementById("found").textContent')
    check("flame-many-search", found.startswith(f"{hit / 1000:.2f}% matched: {hit:,} calls in "), found)
    b.key("Escape")
    for text in ("some::function_number_42", "some::function_number_33", "some::function_number_21"):
        click(b, text)
    check("flame-many-zoom", {"some::function_number_3"} <= {f["text"] for f in b.js(SHOWN)}, "deep frames stay hidden")
    took = time.monotonic() - began
    check("flame-many-fast", took < 60, f"{took:.1f} s")
    b.picture(f"{folder}/many.png")


def test_rest(b, folder):
    test_load(b, folder, "time", "us")
    test_load(b, folder, "bytes", "bytes")
    b.load(f"{folder}/empty.html")
    wrong = b.complaints()
    check("flame-empty-no-errors", not wrong, wrong[:3])
    said = b.js('document.getElementById("details").innerText')
    check("flame-empty-says-so", "Nothing was recorded." in said, said)


def main():
    program, folder = sys.argv[1:]
    profile = tempfile.mkdtemp(prefix="ct_flame.")
    b = Browser(program, profile)
    try:
        b.open_page()
        b.size(1280, 720)
        for test in (test_program, test_hostile, test_many, test_rest):
            test(b, folder)
    except (Gone, OSError, TypeError) as error:
        check("flame-browser", False, error)
    finally:
        b.close()
        shutil.rmtree(profile, ignore_errors=True)
    sys.exit(1 if chrome.failed else 0)


main()
