#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""screenshot.py - a page of `cudatrace export` as a picture, taken by headless Chromium.

scripts/screenshot.py [OPTIONS] PAGE.html FILE.png

  --size WxH     of the window, in pixels (default 1200x540)
  --ready CODE   JavaScript that has to have a value, a promise's too, before anything else is done
  --do CODE      JavaScript, run then; may be given more than once
  --drag X0,X1,Y drags with the left button

Nothing of the page is waited for but what --ready says and two frames.
"""
import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import chrome

FRAMES = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


def numbers(text, mark, count):
    found = [int(n) for n in text.split(mark)]
    if len(found) != count:
        raise argparse.ArgumentTypeError(f"'{text}' is not {count} numbers with {mark} between them")
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--size", type=lambda t: numbers(t, "x", 2), default=[1200, 540])
    p.add_argument("--ready", default="1")
    p.add_argument("--do", action="append", default=[])
    p.add_argument("--drag", type=lambda t: numbers(t, ",", 3))
    p.add_argument("page")
    p.add_argument("picture")
    o = p.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        sys.exit("screenshot.py: there is no chromium here")
    profile = tempfile.mkdtemp(prefix="ct_screenshot.")
    b = chrome.Browser(program, profile)
    try:
        b.open_page()
        b.size(*o.size)
        b.load(o.page)
        b.js(o.ready)
        for code in o.do:
            b.js(code)
            b.js(FRAMES)
        if o.drag:
            x0, x1, y = o.drag
            for kind, x in (("mousePressed", x0), ("mouseMoved", (x0 + x1) // 2), ("mouseMoved", x1), ("mouseReleased", x1)):
                b.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        b.js(FRAMES)
        b.picture(o.picture)
    finally:
        b.close()
        shutil.rmtree(profile, ignore_errors=True)


main()
