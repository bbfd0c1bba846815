#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads --format csv by python's csv module: check_csv.py FILE prints the counts by type, and sums that are known of the file."""
import collections
import csv
import sys


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as f:
        rows = list(csv.reader(f, strict=True))
    head, rows = rows[0], rows[1:]
    wrong = [r for r in rows if len(r) != len(head)]
    if wrong or len(set(head)) != len(head):
        print(f"{len(wrong)} rows of another length: {wrong[:1]}")
        sys.exit(1)
    records = [dict(zip(head, r)) for r in rows]
    by_type = collections.Counter(r["type"] for r in records)
    print(" ".join(f"{t}={n}" for t, n in sorted(by_type.items())))
    calls = {(r["pid"], r["correlation"]): r for r in records if r["type"] == "call" and r["correlation"]}
    works = [r for r in records if r["cause"]]
    # what says that a call caused it has that call's number, begin and name
    for w in works:
        call = calls.get((w["pid"], w["correlation"]))
        if call and (call["name"], call["start_ns"]) != (w["cause"], w["cause_start_ns"]):
            print(f"{w['type']} {w['correlation']} has another cause")
            sys.exit(1)
    print(f"caused={sum((w['pid'], w['correlation']) in calls for w in works)}")
    print(f"kernel_ns={sum(int(r['duration_ns']) for r in records if r['type'] == 'kernel' and r['duration_ns'])}")
    print(f"copied_bytes={sum(int(r['size_bytes']) for r in records if r['type'] == 'copy')}")
    print(f"lost={sum(int(r['value']) for r in records if r['type'] == 'lost')}")


main()
