#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens timeline pages in headless Chromium and uses them: browser.py CHROMIUM FOLDER

What is expected follows from what tests/unit/test_export.c puts in. Times are printed and never judged.
"""
import os
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chrome
from chrome import Browser, Gone, check

HOSTILE = "</script><img src=x onerror=alert(1)>..."
NAMES = 236  # the width of the rows' names
FRAMES = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


def text(b, element):
    return b.js(f'document.getElementById("{element}").innerText')


def load(b, folder, kind):
    b.load(f"{folder}/{kind}.html")
    b.js("timeline.ready.then(() => 1)")
    b.js(FRAMES)
    wrong = b.complaints()
    check(f"timeline-{kind}-no-errors", not wrong, wrong[:3])


def seen(b):
    return b.js("timeline.seen()")


def one(b, name):
    return next((s for s in seen(b) if s["name"] == name), None)


def pixel(b, x, y):
    """The colour of the canvas at a point of it."""
    return b.js(f'[...document.getElementById("canvas").getContext("2d").getImageData({int(x)}, {int(y)}, 1, 1).data].slice(0, 3)')


def click(b, s):
    """A slice's left end, which arrows and labels do not change."""
    top = b.js('document.getElementById("canvas").getBoundingClientRect().y')
    b.mouse(s["x"] + min(s["w"] / 2, 2), top + s["y"] + 5)
    time.sleep(0.05)
    b.js(FRAMES)


def selected(b, name):
    """Waits for the details, which are unpacked first."""
    for _ in range(1200):
        if text(b, "details").startswith(name):
            return text(b, "details")
        time.sleep(0.05)
    return text(b, "details")


def show(b, start_us, end_us):
    b.js(f"timeline.show({start_us * 1000}, {end_us * 1000})")
    b.js(FRAMES)


def test_rows(b, folder):
    load(b, folder, "stacks")
    rows = b.js("timeline.rows()")
    check("timeline-rows", rows == [
        "train (12345)", "not seen", "GPU 0, stream 7", "GPU 0, stream 8", "GPU 0, waits of stream 7", "GPU 0, memory", "GPU 1, stream 9",
        "GPU 0, memory in use", "thread 12345, ranges", "thread 12345", "thread 12345, overhead", "thread 12346",
        'o,th"er (200 on node-b, rank 3)', "GPU 0, stream 7", "thread 20001 (worker)", "this machine", "not seen", "GPU 0, events",
        "GPU 0, sm_active"], rows)
    list_ = seen(b)
    check("timeline-all-seen", sum(s["count"] for s in list_ if s["row"] != "not seen") == 18, [(s["name"], s["count"]) for s in list_])
    check("timeline-title", b.js("document.title") == "cudatrace: timeline of ./train </script>", b.js("document.title"))
    check("timeline-sum", text(b, "sum") == "18 slices in 9.001 ms", text(b, "sum"))
    check("timeline-lost", text(b, "lost") == "17 lost" and b.js("timeline.gaps()") == [
        {"count": 17, "name": "records lost: ring buffer full (raise --ring-size)"}, {"count": 245000, "name": "counted only: cudaGetDevice"},
        {"count": 7, "name": "counted only: cudaGetDevice"}], (text(b, "lost"), b.js("timeline.gaps()")))
    check("timeline-elements", b.js("document.querySelectorAll('img, #details b').length") == 0, "a name became an element")
    # the gap is hatched where it is: 6 ms after the first record, through the rows of every process
    t0, t1 = b.js("timeline.range().slice(0, 2)")
    width = b.js('document.getElementById("view").clientWidth')
    at = lambda ns: NAMES + (ns - t0) / (t1 - t0) * (width - NAMES)
    row = b.js("timeline.top('GPU 0, stream 8')")
    red_at = lambda ns, y, spread: sum(r > g + spread and r > bl + spread for r, g, bl in (pixel(b, at(ns), y + d) for d in range(12)))
    check("timeline-gap-drawn", red_at(6050000, row + 4, 10) == 12 and red_at(6300000, row + 4, 10) == 0,
          (red_at(6050000, row + 4, 10), red_at(6300000, row + 4, 10)))
    mark = pixel(b, at(6050000), 24)
    check("timeline-gap-mark", mark[0] > 150 and mark[1] < 80 and mark[2] < 80, mark)
    # calls that were only counted are hatched in a row of their own, and nowhere else
    muted = b.js("timeline.top('not seen')")
    check("timeline-muted-drawn", 0 < red_at(4000000, muted + 1, 40) < 12 and red_at(4000000, row + 4, 10) == 0,
          (red_at(4000000, muted + 1, 40), red_at(4000000, row + 4, 10)))
    # a counter's line: 87.5 from 6 ms on, 12.25 from 7 ms on, between 0 and 87.5; filled below it
    b.js("document.getElementById('view').scrollTop = 1e6")
    b.js(FRAMES)
    top, high = b.js("[timeline.top('GPU 0, sm_active'), timeline.chart()]")
    is_line = lambda ns, y: any(blue > 150 and red < 120 for red, green, blue in (pixel(b, at(ns), y + d) for d in (-1, 0, 1)))
    bottom, first = top + high - 6, top + 4
    check("timeline-counter", is_line(6500000, first) and not is_line(7500000, first) and is_line(7500000, bottom - (bottom - first) * 12.25 / 87.5)
          and not is_line(6500000, bottom - 5), "another line")
    filled, empty = pixel(b, at(7500000), bottom - 2), pixel(b, at(7500000), first + 3)
    check("timeline-counter-filled", filled[2] > filled[0] + 20 and empty[2] < empty[0] + 8, (filled, empty))
    check("timeline-counter-begins", not is_line(5500000, first) and not is_line(5500000, bottom), "a line before the first value")
    b.js("document.getElementById('view').scrollTop = 0")
    b.js(FRAMES)
    memory = b.js("timeline.top('GPU 0, memory in use')")
    check("timeline-memory", is_line(1500000, memory + 4) and not is_line(-500000, memory + 4), "another line")
    # nothing is written over the line: its highest value stands beside the row's name
    line = [pixel(b, NAMES + 140 + d, memory + 4) for d in range(0, 60)]
    check("timeline-memory-not-struck", len({tuple(p) for p in line}) == 1, line)
    b.picture(f"{folder}/stacks.png")


def test_overlap(b):
    """Kernels that run at the same time on a stream lie below each other."""
    show(b, 1010, 1050)
    first, second = one(b, "vecAdd"), one(b, "gemm")
    check("timeline-lanes", first["row"] == second["row"] and first["lane"] == 0 and second["lane"] == 1, (first, second))
    t0, t1 = b.js("timeline.range().slice(0, 2)")
    width = b.js('document.getElementById("view").clientWidth')
    scale = (width - NAMES) / (t1 - t0)
    check("timeline-place", abs(first["x"] - (NAMES + (1020000 - t0) * scale)) < 0.01 and abs(first["w"] - 9000 * scale) < 0.01, first)
    check("timeline-place-second", abs(second["x"] - (NAMES + (1025000 - t0) * scale)) < 0.01, second)
    top = b.js('document.getElementById("canvas").getBoundingClientRect().y')
    b.mouse(first["x"] + 3, top + first["y"] + 5, click=False)
    check("timeline-tip", text(b, "tip") == "vecAdd\nkernel, 9 us" and not b.js("document.getElementById('tip').hidden"), text(b, "tip"))
    b.mouse(first["x"] - 9, top + first["y"] + 5, click=False)
    check("timeline-no-tip", b.js("document.getElementById('tip').hidden"), text(b, "tip"))
    check("timeline-drawn", pixel(b, first["x"] + first["w"] - 4, first["y"] + 3) != pixel(b, first["x"] - 6, first["y"] + 12),
          "nothing where the kernel is")


def test_details(b, folder):
    show(b, 995, 1060)
    click(b, one(b, "cudaLaunchKernel"))
    said = selected(b, "cudaLaunchKernel")
    for part in ("cudaLaunchKernel [call]", "train (12345), thread 12345", "Time\nbegins\n2 ms after the first\ntakes\n8 us (8,000 ns)",
                 "Arguments\nfunc\n0x10\ngridDim\n4 \u00d7 1 \u00d7 1\nblockDim\n256 \u00d7 1 \u00d7 1\n", "Result\nreturned\ncudaSuccess",
                 "vecAdd(float const*, float const*, float*, int)", "What for\ncaused\nkernel vecAdd kernel gemm", "Numbers\ncall number\n2",
                 "Stack\nstep(int)+0x8 (/src/app.c:2)\nmain+0x0 (/src/app.c:7) /bin/app"):
        check(f"timeline-details: {part.splitlines()[0][:40]}", part in said, said)
    # it caused two kernels: an arrow to the begin of each
    call, first, second = one(b, "cudaLaunchKernel"), one(b, "vecAdd"), one(b, "gemm")
    arrows = b.js(f"timeline.arrows({call['id']})")
    want = [{"x0": call["x"], "y0": call["y"] + call["h"] / 2, "x1": k["x"], "y1": k["y"] + k["h"] / 2} for k in (first, second)]
    check("timeline-arrows", len(arrows) == 2 and all(abs(a[k] - w[k]) < 0.01 for a, w in zip(arrows, want) for k in w), (arrows, want))
    check("timeline-arrows-drawn", b.js("timeline.drawnArrows()") == [first["id"], second["id"]], b.js("timeline.drawnArrows()"))
    b.picture(f"{folder}/details.png")
    b.key("g", "g")
    said = selected(b, "vecAdd")
    check("timeline-to-kernel", "vecAdd [kernel]" in said and "GPU 0, stream 7 (NVIDIA <H200>)" in said and "after its call began\n20 us (20,000 ns)" in said and
          "Launch\ngrid, in blocks\n4 \u00d7 1 \u00d7 1\nblock, in threads\n256 \u00d7 1 \u00d7 1\nregisters of a thread\n16\n" in said and
          "caused by\ncall cudaLaunchKernel" in said and "delay_ns" not in said and "static_shared" not in said, said)
    show(b, 1990, 2120)
    click(b, one(b, "memcpy HtoD"))
    said = selected(b, "memcpy HtoD")
    check("timeline-copy", "size\n4 KiB (4,096 bytes)\n" in said and "bandwidth\n81.92 MB/s\nfrom\npageable\nto\ndevice" in said, said)
    show(b, 995, 1060)
    click(b, one(b, "vecAdd"))
    selected(b, "vecAdd")
    check("timeline-arrow-back", b.js(f"timeline.arrows({first['id']})") == arrows[:1], "another arrow")
    b.key(".", ".")
    check("timeline-neighbour", selected(b, "vecAdd").startswith("vecAdd"), "there is none after it in its lane")
    b.key("g", "g")
    check("timeline-to-call", selected(b, "cudaLaunchKernel").startswith("cudaLaunchKernel [call]"), text(b, "details"))
    b.key(".", ".")
    said = selected(b, "cudaFree")
    check("timeline-failed", said.startswith("cudaFree [call, failed]") and "cudaErrorInvalidValue" in said, said)
    b.key("Escape")
    check("timeline-deselect", text(b, "details").startswith("Click something"), text(b, "details"))
    b.js(FRAMES)
    check("timeline-no-arrows", b.js("timeline.drawnArrows()") == [], "arrows of nothing")
    # what was not seen says what and how much; a row of its own, so it is clicked like the others
    b.key("Home")
    b.js(FRAMES)
    click(b, next(s for s in seen(b) if s["name"] == "counted only: cudaGetDevice"))
    said = selected(b, "counted only")
    check("timeline-hole", said.startswith("counted only: cudaGetDevice [counted only]\n\ntrain (12345), not seen") and "in all\n245,000 calls" in said, said)
    b.key("Escape")


def test_search(b):
    b.key("Home")
    b.key("/", "/")
    b.type("MEMCPY")
    check("timeline-search", text(b, "found") == "2 of 18 match", text(b, "found"))
    b.key("Enter")
    check("timeline-search-first", selected(b, "cudaMemcpyAsync").startswith("cudaMemcpyAsync"), text(b, "details"))
    b.key("Enter")
    check("timeline-search-next", selected(b, "memcpy HtoD").startswith("memcpy HtoD [copy]") and text(b, "found") == "2 of 2 matches",
          text(b, "found"))
    b.key("Enter", modifiers=8)
    check("timeline-search-back", selected(b, "cudaMemcpyAsync").startswith("cudaMemcpyAsync"), text(b, "details"))
    b.key("Escape")
    check("timeline-search-dropped", text(b, "found") == "", text(b, "found"))
    b.key("/", "/")
    b.type("<img src=x")
    check("timeline-hostile-search", text(b, "found") == "1 of 18 match", text(b, "found"))
    b.key("Enter")
    said = selected(b, HOSTILE)
    check("timeline-hostile-details", said.startswith(HOSTILE) and "\\012\\033[31m" in said and "</script><b>" in said, said)
    check("timeline-hostile-elements", b.js("document.querySelectorAll('#details img, #details b').length") == 0, "a name became an element")
    b.key("Escape")
    b.key("Escape")
    b.key("/", "/")
    b.type("no such thing")
    check("timeline-search-none", text(b, "found") == "no match", text(b, "found"))
    b.key("Escape")


def test_moves(b):
    b.key("Home")
    b.js(FRAMES)
    t0, t1, begin, end = b.js("timeline.range()")
    check("timeline-whole", t0 < begin < end < t1 and begin == -1000000 and end == 8001000, (t0, t1, begin, end))
    top = b.js('document.getElementById("canvas").getBoundingClientRect().y')
    width = b.js('document.getElementById("view").clientWidth')
    x = NAMES + (width - NAMES) / 4
    b.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=top + 200, deltaX=0, deltaY=-480)
    b.js(FRAMES)
    z0, z1 = b.js("timeline.range().slice(0, 2)")
    check("timeline-wheel", abs((z1 - z0) * 4 / (t1 - t0) - 1) < 0.001, (z0, z1))
    check("timeline-wheel-at-pointer", abs((z0 + (z1 - z0) / 4) - (t0 + (t1 - t0) / 4)) < (t1 - t0) / (width - NAMES), (z0, z1, t0, t1))
    for kind, at in (("mousePressed", 600), ("mouseMoved", 550), ("mouseMoved", 500), ("mouseReleased", 500)):
        b.call("Input.dispatchMouseEvent", type=kind, x=at, y=top + 200, button="left", buttons=1, clickCount=1)
    b.js(FRAMES)
    d0 = b.js("timeline.range()[0]")
    check("timeline-drag", abs((d0 - z0) - 100 * (z1 - z0) / (width - NAMES)) < 10, (d0, z0))
    b.key("a", "a")
    b.js(FRAMES)
    z0, z1 = b.js("timeline.range().slice(0, 2)")
    b.key("w", "w")
    b.js(FRAMES)
    k0, k1 = b.js("timeline.range().slice(0, 2)")
    share = (500 - NAMES) / (width - NAMES)
    check("timeline-keys", abs((k1 - k0) / (z1 - z0) - 0.7) < 0.001, (k0, k1))
    check("timeline-keys-at-pointer", abs((k0 + share * (k1 - k0)) - (z0 + share * (z1 - z0))) < 10, (k0, k1, z0, z1))
    # the strip of the whole: a click goes there, its ends are dragged
    strip = b.js('document.getElementById("strip").getBoundingClientRect().y') + 20
    spot = lambda ns: NAMES + (ns - begin) / (end - begin) * (width - NAMES)
    b.mouse(spot(6e6), strip)
    b.js(FRAMES)
    s0, s1 = b.js("timeline.range().slice(0, 2)")
    check("timeline-strip", abs((s0 + s1) / 2 - 6e6) < 2 * (end - begin) / (width - NAMES) and abs((s1 - s0) - (k1 - k0)) < 1, (s0, s1))
    b.key("Home")
    b.js(FRAMES)
    drag(b, width - 2, spot(4e6), strip)
    s0, s1 = b.js("timeline.range().slice(0, 2)")
    check("timeline-strip-end", abs(s1 - 4e6) < 2 * (end - begin) / (width - NAMES), (s0, s1))
    b.mouse(500, top + 200, click=False)
    for _ in range(60):
        b.key("w", "w")
    k0, k1 = b.js("timeline.range().slice(0, 2)")
    check("timeline-deepest", 9.99 <= k1 - k0 <= 10.01, k1 - k0)
    b.key("?", "?")
    check("timeline-help", b.js('document.getElementById("keys").open') and "zoom" in text(b, "keys"), "no help")
    b.js("document.querySelector('#keys button').click()")
    check("timeline-help-closed", not b.js('document.getElementById("keys").open'), "the help stays")
    # fold up the first process: the click is on its name
    b.key("Home")
    b.js('document.getElementById("view").scrollTop = 0')
    b.js(FRAMES)
    b.mouse(60, top + 26 + 10)
    b.js(FRAMES)
    rows = b.js("timeline.rows()")
    check("timeline-fold", rows[:2] == ["train (12345)", 'o,th"er (200 on node-b, rank 3)'], rows)
    b.mouse(60, top + 26 + 10)
    b.js(FRAMES)
    check("timeline-unfold", len(b.js("timeline.rows()")) == 19, b.js("timeline.rows()"))


def drag(b, x0, x1, y, modifiers=0):
    for kind, at in (("mousePressed", x0), ("mouseMoved", (x0 + x1) / 2), ("mouseMoved", x1), ("mouseReleased", x1)):
        b.call("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=1, clickCount=1, modifiers=modifiers)
    b.js(FRAMES)


def table(b, caption):
    """The cells of a table of the details: a list for each row."""
    return b.js(f"""(() => {{
        const t = [...document.querySelectorAll("#details table")].find(t => t.caption.textContent === {caption!r});
        return t ? [...t.rows].slice(1).map(r => [...r.cells].map(c => c.textContent)) : null;
    }})()""")


def test_stretch(b, folder):
    """Sums of a stretch of time: what lies across its ends counts with the part inside."""
    show(b, 900, 1100)
    top = b.js('document.getElementById("canvas").getBoundingClientRect().y')
    width = b.js('document.getElementById("view").clientWidth')
    t0, t1 = b.js("timeline.range().slice(0, 2)")
    at = lambda us: NAMES + (us * 1000 - t0) / (t1 - t0) * (width - NAMES)
    # on the ruler, backwards: 4 us of the launch of 8, 9 of vecAdd, 5 of the 15 of gemm
    drag(b, at(1030), at(1004), top + 12)
    said = text(b, "details")
    number = lambda cell: float(cell.split()[0])
    device, calls = table(b, "By kernel"), table(b, "Calls")
    check("timeline-stretch", said.startswith("Selected: ") and abs(number(said.split(": ")[1]) - 26) < 0.5, said)
    check("timeline-stretch-kernels", [(r[2], r[3]) for r in device] == [("1", "vecAdd"), ("1", "gemm")] and
          abs(number(device[0][0]) - 9) < 0.01 and abs(number(device[1][0]) - 5) < 0.4, device)
    check("timeline-stretch-threads", len(calls) == 1 and abs(number(calls[0][0]) - 4) < 0.4 and calls[0][2:4] == ["1", "0"] and
          calls[0][4] == "cudaLaunchKernel, train (12345), thread 12345", calls)
    streams, ranges, functions = table(b, "By stream"), table(b, "By range"), table(b, "By function")
    check("timeline-stretch-streams", [(r[2], r[3]) for r in streams] == [("2", "train (12345), GPU 0, stream 7")] and
          abs(number(streams[0][0]) - 14) < 0.5, streams)
    check("timeline-stretch-ranges", [(r[2], r[3]) for r in ranges] == [("2", "step <1>")], ranges)
    check("timeline-stretch-functions", [r[3] for r in functions] == ["cudaLaunchKernel"], functions)
    band = pixel(b, at(1010), 4)
    check("timeline-stretch-drawn", band != pixel(b, at(1060), 4), band)
    b.picture(f"{folder}/stretch.png")
    b.key("Escape")
    b.js(FRAMES)
    check("timeline-stretch-dropped", text(b, "details").startswith("Click something") and pixel(b, at(1010), 4) == pixel(b, at(1060), 4),
          text(b, "details"))
    # Shift and drag where the rows are: the same; without it the page moves
    drag(b, at(1004), at(1030), top + 300, modifiers=8)
    check("timeline-stretch-shift", table(b, "By kernel") == device and b.js("timeline.range().slice(0, 2)") == [t0, t1], table(b, "By kernel"))
    b.key("Escape")
    # all that is shown; of one that is selected
    b.key("Home")
    b.key("m", "m")
    device, calls = table(b, "By kernel"), table(b, "Calls")
    check("timeline-stretch-all", [(r[0], r[2], r[3]) for r in device] == [
        ("50 us", "1", "memcpy HtoD"), ("15 us", "1", "gemm"), ("9 us", "1", "vecAdd"), ("1 us", "1", HOSTILE), ("700 ns", "1", "memset")], device)
    check("timeline-stretch-all-calls", [(r[0], r[2], r[3], r[4]) for r in calls] == [
        ("1.03 ms", "2", "0", "cudaDeviceSynchronize, train (12345), thread 12346"),
        ("16 us", "4", "1", "cudaLaunchKernel, train (12345), thread 12345"),
        ("3 us", "1", "0", 'cudaLaunchKernel, o,th"er (200 on node-b, rank 3), thread 20001 (worker)')], calls)
    check("timeline-stretch-elements", b.js("document.querySelectorAll('#details img, #details b').length") == 0, "a name became an element")
    b.key("Escape")
    show(b, 995, 1060)
    click(b, one(b, "gemm"))
    check("timeline-stretch-click", selected(b, "gemm").startswith("gemm"), text(b, "details"))
    b.key("m", "m")
    check("timeline-stretch-selected", text(b, "details").startswith("Selected: 15 us") and table(b, "Calls") is None, text(b, "details"))
    show(b, 5500, 5600)
    b.key("Escape")
    b.key("m", "m")
    check("timeline-stretch-nothing", "No call and no work of a device in it" in text(b, "details"), text(b, "details"))
    b.key("Escape")


def shown(b, caption):
    """A table of the sums of what is shown, which come when nothing has moved for a while."""
    for _ in range(1200):
        if table(b, caption):
            break
        time.sleep(0.05)
    return table(b, caption)


def test_row(b):
    """A click on a row's name: the sums of this row, of the part that is shown."""
    show(b, 990, 2110)
    check("timeline-shown", [(r[0], r[3]) for r in shown(b, "By kernel") or []] == [("50 us", "memcpy HtoD"), ("15 us", "gemm"), ("9 us", "vecAdd")],
          shown(b, "By kernel"))
    top = b.js('document.getElementById("canvas").getBoundingClientRect().y')
    b.mouse(60, top + b.js("timeline.top('GPU 0, stream 7')") + 8)
    said = selected(b, "train (12345), GPU 0, stream 7")
    check("timeline-row-said", said.startswith("train (12345), GPU 0, stream 7 (NVIDIA <H200>)\n\n2 slices. "), said)
    check("timeline-row-sums", [(r[0], r[3]) for r in shown(b, "By kernel") or []] == [("15 us", "gemm"), ("9 us", "vecAdd")] and table(b, "Calls") is None,
          table(b, "By kernel"))
    check("timeline-row-no-arrows", b.js("timeline.drawnArrows()") == [], "arrows of what is not selected")
    b.key("Escape")
    check("timeline-row-dropped", text(b, "details").startswith("Click something"), text(b, "details"))


def test_steps(b, folder):
    """Operators, collectives and steps have rows; work counts for the operator, the range and the step that it is for."""
    load(b, folder, "steps")
    rows = b.js("timeline.rows()")
    check("timeline-steps-rows", rows == [
        "train (12345)", "steps", "not seen", "GPU 0, stream 7", "memory in use", "thread 12345, ranges", "thread 12345, collectives",
        "thread 12345, operators", "thread 12345", "this machine", "not seen"], rows)
    steps = b.js("timeline.steps()")
    check("timeline-steps", [[(s["label"], s["from"], s["to"]) for s in of] for of in steps] == [
        [(f"ProfilerStep#{7 + i}", (10 + 10 * i) * 1e6, (19 + 10 * i) * 1e6) for i in range(5)]], steps)
    kinds = lambda row: [(s["name"], s["kind"], s["lane"]) for s in seen(b) if s["row"] == row][:2]
    show(b, 11000, 11300)
    check("timeline-operators", kinds("thread 12345, operators") == [("aten::linear", "operator", 0), ("aten::addmm", "operator", 1)],
          kinds("thread 12345, operators"))
    show(b, 15900, 16400)
    check("timeline-collectives", kinds("thread 12345, collectives") == [("ncclAllReduce", "collective", 0)], kinds("thread 12345, collectives"))
    # a device that is not known has no name
    check("timeline-unknown-device", not any("?" in r for r in rows), rows)
    b.key("Home")
    b.js(FRAMES)
    top = b.js('document.getElementById("canvas").getBoundingClientRect().y')
    width = b.js('document.getElementById("view").clientWidth')
    t0, t1 = b.js("timeline.range().slice(0, 2)")
    b.mouse(NAMES + (25e6 - t0) / (t1 - t0) * (width - NAMES), top + b.js("timeline.top('steps')") + 8)
    said = selected(b, "Selected")
    check("timeline-step-sums", said.startswith("Selected: ProfilerStep#8, 9 ms"), said)
    for caption, want in (("By kernel", [("2 ms", "1", "gemm"), ("1.5 ms", "2", "vecAdd")]),
                          ("By operator", [("2 ms", "1", "aten::addmm"), ("1 ms", "1", "aten::relu"), ("500 us", "1", "(none)")]),
                          ("By range", [("3.5 ms", "3", "ProfilerStep#8")]), ("By stream", [("3.5 ms", "3", "GPU 0, stream 7")])):
        got = [(r[0], r[2], r[3]) for r in table(b, caption) or []]
        check(f"timeline-step-sums: {caption}", got == want, got)
    b.picture(f"{folder}/steps.png")
    b.key("Escape")
    # a process that ran before its probes is hatched in its row, and not through the rows of others
    holes = [(s["name"], s["kind"]) for s in seen(b) if s["row"] == "not seen"]
    check("timeline-holes", holes == [("calls not seen: no hooks", "not seen"), ("ran before its probes: early <b>", "ran before its probes")], holes)
    spot = NAMES + (36.5e6 - t0) / (t1 - t0) * (width - NAMES)
    reds = lambda x, y: sum(p[0] > p[2] + 8 for p in (pixel(b, x, y + d) for d in range(10)))
    calls, machine = b.js("[timeline.top('thread 12345'), timeline.top('this machine')]")
    check("timeline-hole-of-a-process", reds(spot, calls + 4) == 10 and reds(spot, machine + 8) == 0, (reds(spot, calls + 4), reds(spot, machine + 8)))
    hole = next(s for s in seen(b) if s["kind"] == "ran before its probes")
    check("timeline-unprobed", hole["name"] == "ran before its probes: early <b>" and hole["row"] == "not seen", hole)
    inside = [pixel(b, hole["x"] + 2 + d, b.js("timeline.top('steps')") + 1) for d in range(4)]
    check("timeline-unprobed-alone", all(abs(p[0] - p[2]) < 24 for p in inside), inside)
    b.size(1280, 1000)
    b.js(FRAMES)
    tall = b.js("timeline.seen()[0].h")
    b.size(1280, 500)
    b.js(FRAMES)
    low = b.js("timeline.seen()[0].h")
    check("timeline-rows-grow", tall > low >= 22, (tall, low))
    b.size(1280, 720)


def test_legend(b, folder):
    check("timeline-legend-hidden", not b.js("document.getElementById('legend').offsetHeight"), "it is there")
    b.key("l", "l")
    shown = text(b, "legend").split()
    entries = b.js("[...document.querySelectorAll('#legend span')].map(e => e.textContent)")
    check("timeline-legend", entries == ["calls: memory", "calls: copy", "calls: launch", "calls: sync", "kernel", "copy", "set", "synchronization",
                                         "overhead", "memory", "range", "event", "failed", "did not return", "not seen", "found"], (shown, entries))
    # its colours are those of the slices, but for the shade
    hue = b.js("""getComputedStyle([...document.querySelectorAll("#legend span")].find(e => e.textContent === "copy").firstChild).backgroundColor""")
    show(b, 2035, 2095)
    slice_ = one(b, "memcpy HtoD")
    wanted = [int(v) for v in re.findall(r"\d+", hue)[:3]]
    for _ in range(1200):  # the page has a new size, and is drawn anew
        drawn = pixel(b, slice_["x"] + slice_["w"] - 4, slice_["y"] + 3)
        alike = all(abs(a - w) < 24 for a, w in zip(drawn, wanted))
        if alike:
            break
        b.js(FRAMES)
    check("timeline-legend-colour", alike, (drawn, hue))
    b.picture(f"{folder}/legend.png")
    b.js("document.getElementById('colors').click()")
    check("timeline-legend-closed", b.js("document.getElementById('legend').hidden"), "it stays")
    b.key("Home")


def test_many(b, folder):
    began = time.monotonic()
    load(b, folder, "many")
    took = time.monotonic() - began
    check("timeline-many-count", text(b, "sum") == "1,000,000 slices in 4 s", text(b, "sum"))
    begun, until = b.js("timeline.range().slice(0, 2)")
    check("timeline-many-opens", 1e6 < until - begun < 30e6, (begun, until))
    b.key("Home")
    b.js(FRAMES)
    whole = b.js("timeline.frame() && timeline.frame()")
    drawn = seen(b)
    check("timeline-many-summed", sum(s["count"] for s in drawn) == 1000000 and len(drawn) < 12000, len(drawn))
    zooms = b.js("""Array.from({ length: 200 }, (_, i) => {
        const half = 2e9 * 0.9 ** (i / 2);
        timeline.show(2e9 - half, 2e9 + half);
        return timeline.frame();
    }).sort((a, b) => a - b)""")
    b.js("timeline.show(2e9, 2.1e9)")
    middle = b.js("timeline.frame() && timeline.frame()")
    b.js("timeline.show(2e9, 2e9 + 1e6)")
    near = b.js("timeline.frame() && timeline.frame()")
    names = [s for s in seen(b) if s["kind"] == "kernel" and s["count"] == 1]
    check("timeline-many-near", 49 <= len(names) <= 52, len(names))
    first = names[10]
    arrows = b.js(f"timeline.arrows({first['id']})")
    check("timeline-many-arrow", len(arrows) == 1 and abs(arrows[0]["x1"] - first["x"]) < 0.01 and
          abs((arrows[0]["x1"] - arrows[0]["x0"]) - 10e3 * (first["w"] / 4000)) < 0.01, arrows)
    from_ = time.monotonic()
    b.key("/", "/")
    b.type("kernel_7")
    check("timeline-many-search", text(b, "found") == "5,000 of 1,000,000 match", text(b, "found"))
    b.key("Enter")
    check("timeline-many-found", selected(b, "kernel_7").startswith("kernel_7 [kernel]"), text(b, "details"))
    searched = time.monotonic() - from_
    b.picture(f"{folder}/many.png")
    b.key("Escape")
    b.key("Escape")
    b.key("Home")
    from_ = time.monotonic()
    b.key("m", "m")
    check("timeline-many-sums", sum(int(r[2].replace(",", "")) for r in table(b, "Calls")) == 800000 and
          table(b, "By kernel")[-1] == ["and 16 more"], table(b, "Calls"))
    summed = time.monotonic() - from_
    b.key("Escape")
    print(f"note: a million records: {os.path.getsize(folder + '/many.html') / 1e6:.1f} MB, loaded in {took:.1f} s; a frame of all "
          f"{whole:.1f} ms, of 200 while it zooms in half within {zooms[100]:.1f} ms, of 100 ms {middle:.1f} ms, of 1 ms {near:.1f} ms; searched and shown in {searched:.1f} s; "
          f"added up in {summed:.1f} s")


def test_rest(b, folder):
    load(b, folder, "bare")
    # records of random content: whatever is drawn, nothing is thrown
    load(b, folder, "rubbish")
    b.key("w", "w")
    b.key("ArrowDown")
    b.key("/", "/")
    b.type("a")
    b.key("Enter")
    b.js(FRAMES)
    b.key("Escape")
    b.key("g", "g")
    b.js("timeline.frame()")
    wrong = b.complaints()
    check("timeline-rubbish", not wrong, wrong[:3])
    load(b, folder, "empty")
    check("timeline-empty", text(b, "details") == "Nothing was recorded.", text(b, "details"))
    b.size(1280, 720, dark=True)
    load(b, folder, "stacks")
    dark = pixel(b, 600, 30)
    b.picture(f"{folder}/dark.png")
    b.size(1280, 720)
    b.js(FRAMES)
    light = pixel(b, 600, 30)
    check("timeline-dark", max(dark) < 100 and min(light) > 150, (dark, light))
    # a page whose data is damaged says so
    page = open(f"{folder}/stacks.html", encoding="utf-8").read()
    at = page.index('class="records" data-first="0">') + 60
    with open(f"{folder}/damaged.html", "w", encoding="utf-8") as f:
        f.write(page[:at] + ("A" if page[at] != "A" else "B") + page[at + 1:])
    b.load(f"{folder}/damaged.html")
    b.js("timeline.ready.catch(() => 1)")
    check("timeline-damaged", text(b, "details").startswith("The page's data cannot be read: "), text(b, "details"))


def main():
    program, folder = sys.argv[1:]
    profile = tempfile.mkdtemp(prefix="ct_timeline.")
    b = Browser(program, profile)
    try:
        b.open_page()
        b.size(1280, 720)
        test_rows(b, folder)
        test_overlap(b)
        test_details(b, folder)
        test_search(b)
        test_moves(b)
        test_stretch(b, folder)
        test_row(b)
        test_legend(b, folder)
        test_steps(b, folder)
        test_many(b, folder)
        test_rest(b, folder)
    except (Gone, OSError, TypeError, StopIteration) as error:
        check("timeline-browser", False, error)
    finally:
        b.close()
        shutil.rmtree(profile, ignore_errors=True)
    sys.exit(1 if chrome.failed else 0)


main()
