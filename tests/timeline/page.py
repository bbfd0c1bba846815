#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads a timeline page without a browser, by docs/exports-html.md alone: page.py FILE prints its records, a line each.

    call thread 12345 [train (12345)] 1000000+5000 cudaMalloc #1 {arguments: ...}
"""
import base64
import json
import re
import struct
import sys
import zlib

KINDS = "call kernel copy set sync graph overhead memory managed marker event lost counter muted unprobed hole".split()
COUNTER, WITH_VALUE = 12, (11, 12, 13, 14, 15)


class Numbers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def i(self):
        value = self.u()
        value &= (1 << 64) - 1
        return value >> 1 ^ -(value & 1)

    def take(self, count):
        self.at += count
        if self.at > len(self.data):
            raise ValueError("the data ends too soon")
        return self.data[self.at - count:self.at]


def scripts(text, kind):
    found = re.findall(rf'<script type="text/plain" class="{kind}" data-first="(\d+)">([A-Za-z0-9+/=]*)</script>', text)
    return [(int(first), Numbers(zlib.decompress(base64.b64decode(data)))) for first, data in found]


def read(path):
    """(meta, records): each a dict."""
    text = open(path, encoding="utf-8").read()
    meta = json.loads(re.search(r'<script id="meta" type="application/json">(.*?)</script>', text, re.S).group(1))
    records = []
    for first, block in scripts(text, "records"):
        if first != len(records):
            raise ValueError(f"a block begins with {first}, not {len(records)}")
        count = block.u()
        kind, track, start, duration, name, number, value = (Numbers(block.take(block.u())) for _ in range(7))
        now = num = 0
        for _ in range(count):
            byte = kind.take(1)[0]
            now += start.i()
            num_by = number.i()
            num += num_by
            r = {"kind": KINDS[byte & 15], "flags": byte & 0xf0, "track": track.u(), "start": now, "duration": duration.u(),
                 "name": meta["names"][at] if (at := name.u()) < len(meta["names"]) else "", "number": num}
            if byte & 15 in WITH_VALUE:
                r["value"] = struct.unpack("<d", value.take(8))[0]
            records.append(r)
        for column in (kind, track, start, duration, name, number, value):
            if column.at != len(column.data):
                raise ValueError("a column is too long")
    if len(records) != meta["records"]:
        raise ValueError(f"{len(records)} records, not {meta['records']}")
    for first, block in scripts(text, "details"):
        while block.at < len(block.data):
            records[first]["details"] = block.take(block.u()).decode()
            first += 1
    if records and any("details" not in r for r in records):
        raise ValueError("records without details")
    return meta, records


def main():
    meta, records = read(sys.argv[1])
    for r in records:
        if r["kind"] == "counter":
            pid, device, name, unit = meta["series"][r["track"]]
            print(f"counter {pid} {device} {name} {r['start']} {r['value']:g} {unit}")
            continue
        where = f" {meta['tracks'][r['track']][4]} [{meta['tracks'][r['track']][5]}]"
        details = "; ".join(line.replace("\t", ": ") for line in r["details"].split("\n")) if r["details"] else ""
        flags = f" flags {r['flags']:#x}" if r["flags"] else ""
        value = f" {r['value']:g}" if "value" in r else ""
        print(f"{r['kind']}{where} {r['start']}+{r['duration']} {r['name']}{value} #{r['number']}{flags} {{{details}}}")
    for key in ("title", "base_ns", "reason", "lost", "devices", "stacks", "classes", "left_out"):
        print(f"{key}: {json.dumps(meta[key])}")


if __name__ == "__main__":
    main()
