#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens pages of `cudatrace mem --html` in headless Chromium and uses them: browser.py CHROMIUM FOLDER

What is expected follows from the story in tests/unit/test_mem.c.
"""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chrome
from chrome import Browser, Gone, check

FRAMES = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


def text(b, element):
    return b.js(f'document.getElementById("{element}").innerText')


def load(b, folder, kind):
    b.load(f"{folder}/{kind}.html")
    b.js(FRAMES)
    wrong = b.complaints()
    check(f"memory-{kind}-no-errors", not wrong, wrong[:3])


def pixel(b, x, y):
    return b.js(f'[...document.getElementById("canvas").getContext("2d").getImageData({int(x)}, {int(y)}, 1, 1).data]')


def bucket_of(b, ms):
    return b.js(f"Math.floor({ms} * 1e6 / memory.data.width_ns)")


def story(b):
    box = b.js('(r => ({x: r.x, y: r.y, w: r.width, h: r.height}))(document.getElementById("canvas").getBoundingClientRect())')
    bottom = box["y"] + box["h"] - 24

    check("memory-title", b.js("document.title") == "cudatrace: memory of ./app <x>", b.js("document.title"))
    check("memory-peak", text(b, "status").startswith("peak 4.0 MiB at 2"), text(b, "status"))
    rows = b.js('[...document.querySelectorAll("tr.site")].map(r => [r.cells[0].innerText.trim(), r.cells[2].innerText])')
    check("memory-list", rows == [["fill(float*) at app.cu:12, for forward at model.py:7 (cudaMalloc)", "4.0 MiB"]], rows)

    # the axes: round numbers, of time from the begin on, of bytes to the peak or above
    axis = b.js("memory.axis()")
    check("memory-ticks", axis["times"] == [f"{ms} ms" for ms in range(0, 1000, 100)], axis)
    check("memory-axis-reaches-peak", axis["high"] == 4 << 20 and axis["step"] == 1 << 20, axis)

    # hover: what was held at 350 ms, and by whom
    x = b.js(f"memory.place({bucket_of(b, 350)})")
    b.mouse(x, bottom, click=False)
    b.js(FRAMES)
    check("memory-hover", "1.0 MiB held" in text(b, "status") and "by fill(float*)" in text(b, "status"), text(b, "status"))
    check("memory-hover-list", b.js('document.querySelector("tr.site").cells[1].innerText') == "1.0 MiB", "")
    # there is colour below the curve and none above it
    check("memory-area", pixel(b, x - box["x"] - 3, bottom - box["y"])[3] == 255, pixel(b, x - box["x"] - 3, bottom - box["y"]))
    check("memory-above", pixel(b, x - box["x"] - 3, 12)[3] == 0, pixel(b, x - box["x"] - 3, 12))

    # the stack of a call site, as text
    b.js('document.querySelector("tr.site bdi").click()')
    stack = b.js('document.querySelector("tr.stack").innerText')
    check("memory-stack", stack.split("\n")[:2] == ["fill(float*) /src/app.cu:12", "forward /src/model.py:7"], stack)
    check("memory-hostile", "<script>" in stack and not b.js('document.querySelector("tr.stack script")'), stack)

    # zoom by dragging, by keys, and back
    left, right = b.js(f"memory.place({bucket_of(b, 100)})"), b.js(f"memory.place({bucket_of(b, 300)})")
    b.call("Input.dispatchMouseEvent", type="mouseMoved", x=left, y=bottom - 20)
    b.call("Input.dispatchMouseEvent", type="mousePressed", x=left, y=bottom - 20, button="left", clickCount=1)
    b.call("Input.dispatchMouseEvent", type="mouseMoved", x=right, y=bottom - 20, button="left", buttons=1)
    b.call("Input.dispatchMouseEvent", type="mouseReleased", x=right, y=bottom - 20, button="left", clickCount=1)
    view = b.js("memory.view()")
    check("memory-zoom", abs(view["from"] - bucket_of(b, 100)) < 4 and abs(view["to"] - bucket_of(b, 300)) < 4, view)
    b.picture(f"{folder}/zoom.png")
    axis = b.js("memory.axis()")
    check("memory-ticks-zoomed", axis["times"] == [f"{ms} ms" for ms in range(120, 320, 20)], axis)
    b.key("+")
    check("memory-zoom-key", b.js("memory.view().to - memory.view().from") < view["to"] - view["from"], b.js("memory.view()"))
    b.key("Escape")
    view = b.js("memory.view()")
    check("memory-zoom-out", view["from"] == 0 and view["to"] == b.js("memory.data.buckets"), view)

    # hide the only site: nothing is left of it
    b.js('document.querySelector("i.swatch").click()')
    b.js(FRAMES)
    check("memory-hide", pixel(b, x - box["x"] - 3, bottom - box["y"])[3] == 0, pixel(b, x - box["x"] - 3, bottom - box["y"]))
    b.js('document.querySelector("i.swatch").click()')
    b.js('document.getElementById("host").click()')
    rows = b.js('[...document.querySelectorAll("tr.site")].map(r => [r.cells[0].innerText.trim(), r.cells[2].innerText])')
    check("memory-host", rows == [["cudaMallocHost", "4.0 KiB"]], rows)
    b.size(1280, 720, dark=True)
    b.picture(f"{folder}/dark.png")
    b.size(400, 500)
    check("memory-narrow", b.js("document.documentElement.scrollWidth") <= 400, b.js("document.documentElement.scrollWidth"))


browser, folder = sys.argv[1:]
profile = tempfile.mkdtemp(prefix="cudatrace-chromium-")
b = Browser(browser, profile)
try:
    b.open_page()
    load(b, folder, "story")
    b.picture(f"{folder}/story.png")
    story(b)
    load(b, folder, "rubbish")
    load(b, folder, "empty")
    check("memory-empty", text(b, "status") == "nothing was taken", text(b, "status"))
except Gone as e:
    check("memory-browser", False, e)
finally:
    b.close()
    shutil.rmtree(profile, ignore_errors=True)
sys.exit(1 if chrome.failed else 0)
