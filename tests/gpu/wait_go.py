# SPDX-License-Identifier: BSD-2-Clause
"""Says that the program has warmed up, waits until it is traced, and prints what it launched."""
import os
import sys
import time


def wait_go():
    if "--go-file" not in sys.argv:
        return
    path = sys.argv[sys.argv.index("--go-file") + 1]
    print("warmed", flush=True)
    while not os.path.exists(path):
        time.sleep(0.01)


def launches(n):
    print("launches", n, flush=True)
