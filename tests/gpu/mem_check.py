#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the book with PyTorch's: mem_check.py BOOK TORCH. Prints the book's sums, those of other owners too; status 1 if they differ.

PyTorch's allocator is libc10_cuda.so: what that file's code took is to be what the allocator says."""
import json
import sys

book = json.load(open(sys.argv[1]))
torch = json.loads([line for line in open(sys.argv[2]) if line.startswith("{")][-1])
libraries = {s["site"]: s["library"] for s in book["sites"]}


def owner(name):
    rows = [r for r in book["by_library"] if r["where"] == "device" and r["library"] == name]
    return {"peak": sum(r["peak_bytes"] for r in rows), "taken": sum(r["taken_bytes"] for r in rows),
            "now": sum(r["bytes"] for r in book["leaks"] if r["where"] == "device" and libraries[r["site"]] == name)}


mine = owner("libc10_cuda.so")
others = {r["library"] or "?": r["peak_bytes"] for r in book["by_library"] if r["where"] == "device" and r["library"] != "libc10_cuda.so"}
kinds = {r["kind"]: r["peak_bytes"] for r in book["by_kind"]}
print("PyTorch", torch, "book", mine, "others' peaks", others, "kinds", kinds, "driver", [p["driver_peak_bytes"] for p in book["processes"]])
lost = book["lost"] + book["not_in_book"] + book["not_in_rows"]
sys.exit(mine != torch or lost != 0)
