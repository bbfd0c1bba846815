#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""terminal_svg.py - runs a command and writes what a terminal would show as an SVG picture.

scripts/terminal_svg.py [OPTIONS] -o FILE.svg -- COMMAND [ARGS...]

  --prompt TEXT    what stands behind the prompt, instead of the command as it was run
  --columns N      the width in characters; longer lines are cut, with a sign (default 120)
  --lines LIST     the lines of the output to show, counted from 1, as 5-12,40-44; the first line is always shown

Colours of the terminal (SGR 0, 1, 2, 30 to 37, 90 to 97) become colours of the picture. The exit status is the command's.
"""
import argparse
import html
import re
import subprocess
import sys

CHARACTER, LINE, MARGIN, BAR = 8.4, 20, 16, 34
COLORS = ["#6e7681", "#ff7b72", "#7ee787", "#d29922", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3"]
SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhl]|\x1b\([A-Z0]|\r")


def style_after(style, codes):
    """The style (a colour or None, bold, dim) after the codes of one escape sequence."""
    color, bold, dim = style
    for code in (int(c or 0) for c in codes.split(";")):
        if code == 0:
            color, bold, dim = None, False, False
        elif code == 1:
            bold = True
        elif code == 2:
            dim = True
        elif code == 22:
            bold = dim = False
        elif code == 39:
            color = None
        elif 30 <= code <= 37 or 90 <= code <= 97:
            color = COLORS[code % 10]
    return color, bold, dim


def spans(line, columns):
    """The line as (text, style) parts, cut to the columns."""
    style, parts, room = (None, False, False), [], columns
    plain_length = len(SGR.sub("", line))
    cut = plain_length > columns
    room -= cut
    for i, piece in enumerate(SGR.split(line)):
        if i % 2:
            style = style_after(style, piece)
        elif piece and room > 0:
            parts.append((piece[:room], style))
            room -= len(piece)
    if cut:
        parts.append(("\u2026", (None, False, True)))
    return parts


def text_row(parts, y):
    """One line of text: each group of words at its own column, so that any font keeps the columns."""
    row, column = [], 0
    for text, (color, bold, dim) in parts:
        attributes = f' fill="{color}"' if color else ""
        attributes += ' font-weight="bold"' if bold else ""
        attributes += ' opacity="0.6"' if dim else ""
        for words in re.finditer(r"\S+(?: \S+)*", text):
            place = f'x="{MARGIN + (column + words.start()) * CHARACTER:.1f}" y="{y}"'
            width = f'textLength="{len(words[0]) * CHARACTER:.1f}"'
            row.append(f"<text {place} {width}{attributes}>{html.escape(words[0])}</text>")
        column += len(text)
    return "".join(row)


def picture(lines, columns, title):
    width, height = columns * CHARACTER + 2 * MARGIN, BAR + len(lines) * LINE + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#0d1117"/>',
    ]
    for i, color in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        out.append(f'<circle cx="{MARGIN + 4 + i * 18}" cy="17" r="5.5" fill="{color}"/>')
    out.append(
        '<g fill="#e6edf3" font-size="14" '
        "font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\">"
    )
    for i, line in enumerate(lines):
        out.append(text_row(spans(line, columns), BAR + (i + 1) * LINE - 4))
    return "\n".join(out + ["</g>", "</svg>", ""])


def chosen(lines, which):
    """The first line, and those of a list as 5-12,40-44."""
    if not which:
        return lines
    shown, at = lines[:1], 2
    for part in which.split(","):
        first, last = (int(n) for n in part.split("-"))
        shown += (["..."] if first > at else []) + lines[max(first, 2) - 1 : last]
        at = last + 1
    return shown


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--prompt")
    p.add_argument("--columns", type=int, default=120)
    p.add_argument("--lines")
    p.add_argument("command", nargs="+")
    o = p.parse_args()
    run = subprocess.run(o.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = OTHER_ESCAPES.sub("", run.stdout.decode(errors="replace")).expandtabs(8)
    prompt = o.prompt or " ".join(o.command)
    lines = ["\x1b[32m$\x1b[0m \x1b[1m" + prompt + "\x1b[0m"]
    lines += chosen(text.rstrip("\n").split("\n"), o.lines)
    with open(o.output, "w", encoding="utf-8") as f:
        f.write(picture(lines, o.columns, prompt))
    return run.returncode


sys.exit(main())
