#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""scrape.py - how long scrapes of a running `cudatrace serve` take, and what serving them costs.

    scrape.py ADDR:PORT PID SECONDS

Scrapes once a second; the CPU time is the process's over that time, as a share of one core.
"""
import os
import statistics
import sys
import time
import urllib.request

listen, pid, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])


def cpu_s():
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scrape():
    begin = time.monotonic()
    with urllib.request.urlopen(f"http://{listen}/metrics", timeout=60) as answer:
        text = answer.read()
    return (time.monotonic() - begin) * 1000, text


def first_scrape():
    """serve may be ready before it listens."""
    until = time.monotonic() + 60
    while True:
        try:
            return scrape()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


first_scrape()
took, began, cpu = [], time.monotonic(), cpu_s()
for i in range(seconds):
    time.sleep(max(0, began + i + 1 - time.monotonic()))
    ms, text = scrape()
    took.append(ms)
spent = (cpu_s() - cpu) * 100 / (time.monotonic() - began)
print(f"{sum(1 for line in text.splitlines() if not line.startswith(b'#'))} samples, {len(text) / 1e6:.2f} MB: "
      f"median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms; {spent:.1f} % of a core at one scrape a second")
