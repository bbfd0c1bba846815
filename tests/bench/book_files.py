# SPDX-License-Identifier: BSD-2-Clause
"""book_files.py - the files of the book of benchmarks, made of its samples: knows no tracer and no program that is measured.

book.json is the book itself:

    machine     what was measured where: words for people
    when        the time of the measurement
    rounds      how many there were; each way of each work has so many samples
    left_out    sentences: which works and ways have no samples, and why
    works       name, about (words), floor (the way that the others are compared with), samples_ns {way: [...]}, ratios {way: [...]}
                (each sample divided by the floor's sample of the same round), said {way: what the tracer said last}

book.html is a page with plots, and book.stat has the ratios for `cudatrace compare`.
"""
import html
import json
import math
import os
import statistics

WIDTH, LEFT, RIGHT, ROW = 900, 150, 170, 26
TICK_PX = 55  # two numbers of the axis are at least so far from each other


def ratios(samples, floor):
    return {way: [value / base for value, base in zip(values, samples[floor])] for way, values in samples.items()}


def quartiles(values):
    if len(values) < 2:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def number(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def ticks(low, high):
    """Round numbers between two ratios, for an axis of logarithms: few enough to be read."""
    room = (WIDTH - LEFT - RIGHT) / TICK_PX
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        if (high - low) / step <= room:
            return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    out = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        out += [digit * 10.0**power for digit in (1, 2, 5)]
    return [value for value in out if low <= value <= high]


def plot(of_ways):
    """A row for each way: its samples, a box from quartile to quartile, its median. The axis is one of logarithms: twice as much is as
    far from 1 as half as much."""
    values = [v for samples in of_ways.values() for v in samples]
    low, high = min([0.95, *values]) / 1.02, max([1.05, *values]) * 1.02
    span = math.log(high / low)

    def x(value):
        return LEFT + math.log(value / low) / span * (WIDTH - LEFT - RIGHT)

    bottom = ROW * len(of_ways)
    out = [f'<svg viewBox="0 0 {WIDTH} {bottom + 24}" width="{WIDTH}" role="img" aria-label="ratios to the floor">']
    last = -math.inf
    for tick in ticks(low, high):
        if x(tick) - last < TICK_PX / 2:
            continue
        last = x(tick)
        out.append(f'<line x1="{last:.1f}" x2="{last:.1f}" y1="0" y2="{bottom}" class="tick"/>')
        out.append(f'<text x="{last:.1f}" y="{bottom + 16}" text-anchor="middle" class="axis">{tick:g}</text>')
    out.append(f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="0" y2="{bottom}" class="one"/>')
    for i, (way, samples) in enumerate(of_ways.items()):
        first, median, third = quartiles(samples)
        y = i * ROW + ROW / 2
        out.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{html.escape(way)}</text>')
        out.append(f'<rect x="{x(first):.1f}" y="{y - 7}" width="{max(x(third) - x(first), 1):.1f}" height="14" class="box"/>')
        out.extend(f'<circle cx="{x(v):.1f}" cy="{y}" r="2.5"/>' for v in samples)
        out.append(f'<line x1="{x(median):.1f}" x2="{x(median):.1f}" y1="{y - 9}" y2="{y + 9}" class="median"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 10}" y="{y + 4}">{number(median)} ({number(first)} to {number(third)})</text>')
    return "\n".join(out) + "\n</svg>"


def drawn(work):
    """The ways that are drawn. What nobody traces is far to the left of an empty pair of probes, and would take the room of the others."""
    return {way: values for way, values in work["ratios"].items() if way == work["floor"] or way != "bare"}


def table_of(work):
    parts = ["<table><tr><th>way<th>median<th>ratio<th>quartiles<th>the tracer's last line"]
    for way, values in work["ratios"].items():
        first, median, third = quartiles(values)
        took = statistics.median(work["samples_ns"][way])
        parts.append(f"<tr><td>{html.escape(way)}<td>{took:,.0f} ns<td>{number(median)}<td>{number(first)} to {number(third)}"
                     f"<td>{html.escape(work.get('said', {}).get(way, ''))}")
    return "\n".join(parts) + "\n</table>"


STYLE = """body{font:14px sans-serif;max-width:960px;margin:2em auto;padding:0 1em}svg{max-width:100%;height:auto}
text{font-size:12px}.axis{fill:#555}.tick{stroke:#e4e4e4}.box{fill:#9ecae1}.median{stroke:#08519c;stroke-width:2}
.one{stroke:#666;stroke-dasharray:3}circle{fill:#0005}td,th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}
td:nth-child(n+2):nth-child(-n+4){white-space:nowrap}"""


def page(book):
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>What tracing costs</title><style>{STYLE}</style>",
             "<h1>What tracing costs</h1><table>"]
    about = {**book["machine"], "when": book["when"]}
    parts += [f"<tr><td>{html.escape(key.replace('_', ' '))}<td>{html.escape(', '.join(value) if isinstance(value, list) else str(value))}"
              for key, value in about.items()]
    parts.append(f"</table><p>Rounds: {book['rounds']}. In each round every way was attached in turn. A figure is the ratio to the floor of "
                 "the same round. A point is a sample, a box goes from the first quartile to the third, and a line in it is the median. The axis "
                 "is one of logarithms.")
    parts += [f"<p>{html.escape(sentence)}" for sentence in book["left_out"]]
    for work in book["works"]:
        floor = statistics.median(work["samples_ns"][work["floor"]])
        parts.append(f"<h2>{html.escape(work['name'])}</h2><p>{html.escape(work['about'])} The floor, {html.escape(work['floor'])}, takes {floor:,.0f} ns.")
        parts.append(plot(drawn(work)))
        parts.append(table_of(work))
    return "\n".join(parts) + "\n"


def kernel_of(work, way):
    return f"{work['name']}_{way}"


def saved_runs(book):
    """A run of `stat --save` for each round: a way is a kernel, as their names are free, and its ratio is its time, 1 as 1 ms."""
    for run in range(book["rounds"]):
        rows = []
        for work in book["works"]:
            for way, values in work["ratios"].items():
                took = round(values[run] * 1e6)
                rows.append({"name": kernel_of(work, way), "calls": 1, "failed": 0, "total_ns": took, "avg_ns": float(took), "min_ns": took, "max_ns": took,
                             "stddev_ns": 0.0, "bytes": 0, "share": 0, "median_ns": took, "p90_ns": took, "p99_ns": took})
        total = sum(row["total_ns"] for row in rows)
        yield {"schema": "cudatrace-stat", "version": 2, "cudatrace": "", "title": "book", "summary": {"kernel_time_ns": total, "launches": len(rows)},
               "runtime": [], "driver": [], "kernels": rows, "copies": [], "sync": [], "traffic": []}


def names_of_stat(path):
    """The names of the ways in a book.stat."""
    with open(path, encoding="utf-8") as file:
        return {row["name"] for line in file for row in json.loads(line)["kernels"]}


def written(path, text):
    """At once or not at all: whoever ends this meanwhile leaves the former file."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def write(book, folder):
    os.makedirs(folder, exist_ok=True)
    written(f"{folder}/book.json", json.dumps(book, indent=1) + "\n")
    written(f"{folder}/book.html", page(book))
    written(f"{folder}/book.stat", "".join(json.dumps(run) + "\n" for run in saved_runs(book)))


def lines(book):
    """What is printed at the end."""
    for work in book["works"]:
        for way, values in work["ratios"].items():
            first, median, third = quartiles(values)
            took = statistics.median(work["samples_ns"][way])
            yield f"{work['name']:<18} {way:<18} {took:12,.0f} ns, ratio {number(median)} ({number(first)} to {number(third)})"
    yield from book["left_out"]
