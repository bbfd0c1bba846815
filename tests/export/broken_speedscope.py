#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Breaks good speedscope files in every way that check_speedscope.py is to find: broken_speedscope.py SAMPLED EVENTED"""
import copy
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_speedscope


def put(*way):
    """Sets the last word at the place that the others lead to."""
    def change(data):
        for key in way[:-2]:
            data = data[key]
        data[way[-2]] = way[-1]
    return change


def drop(*way):
    def change(data):
        for key in way[:-1]:
            data = data[key]
        del data[way[-1]]
    return change


def swap(data):
    events = data["profiles"][0]["events"]
    events[0], events[1] = events[1], events[0]


PROFILE = ("profiles", 0)
BOTH = {
    "schema": put("$schema", "x"), "no-frames": drop("shared", "frames"), "frame-name": put("shared", "frames", 0, "name", 7),
    "frame-empty": put("shared", "frames", 0, "name", ""), "frame-member": put("shared", "frames", 0, "color", "red"),
    "line-text": put("shared", "frames", 0, {"name": "a", "file": "b", "line": "7"}), "no-profile": put("profiles", []),
    "lonely-line": put("shared", "frames", 0, {"name": "a", "line": 7}), "active": put("activeProfileIndex", 99),
    "type": put(*PROFILE, "type", "other"), "unit": put(*PROFILE, "unit", "ms"), "no-unit": drop(*PROFILE, "unit"),
    "backwards": put(*PROFILE, "startValue", 1 << 60), "true": put(*PROFILE, "startValue", True), "more": put("extra", 1),
}
SAMPLED = {
    "weights": drop(*PROFILE, "weights", 0), "index": put(*PROFILE, "samples", 0, 0, 10000), "negative": put(*PROFILE, "weights", 0, -1),
    "minus-frame": put(*PROFILE, "samples", 0, 0, -1), "sum": put(*PROFILE, "weights", 0, 12345678), "flat": put(*PROFILE, "samples", 0, 1),
}
EVENTED = {
    "order": put(*PROFILE, "events", 0, "at", 1 << 50), "other-frame": put(*PROFILE, "events", 1, "frame", 5),
    "unclosed": drop(*PROFILE, "events", -1), "swapped": swap, "letter": put(*PROFILE, "events", 0, "type", "B"),
    "late": put(*PROFILE, "endValue", 1), "no-at": drop(*PROFILE, "events", 0, "at"),
}


def main():
    failed = 0
    for path, breaks in ((sys.argv[1], {**BOTH, **SAMPLED}), (sys.argv[2], {**BOTH, **EVENTED})):
        with open(path, encoding="utf-8") as f:
            good = json.load(f)
        check_speedscope.check(good)
        for name, change in breaks.items():
            data = copy.deepcopy(good)
            change(data)
            try:
                check_speedscope.check(data)
                print(f"not ok broken-{data['profiles'][0]['type'] if data['profiles'] else ''}-{name}: it passes for a good one")
                failed = 1
            except check_speedscope.Bad:
                pass
    if not failed:
        print("ok export-speedscope-broken-ones-are-found")
    sys.exit(failed)


main()
