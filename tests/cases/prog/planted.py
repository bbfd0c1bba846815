# SPDX-License-Identifier: BSD-2-Clause
"""planted.py - a loop that gives a device work, with one cause planted that keeps it waiting: planted.py LIBCUDART CAUSE SECONDS FOLDER

The device is the stand-in's (STANDIN_CUPTI=device:200). At the end one line says the truth: {"gap_s": time between launches,
"planted_s": time in the planted function by the program's own clock}.
"""
import ctypes
import gc
import json
import mmap
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time

runtime, cause, seconds, folder = ctypes.CDLL(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4]
memory = ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(memory), 4096)


def launch():
    runtime.cudaMemsetAsync(memory, 0, 4096, None)


def spin(for_s):
    until = time.thread_time() + for_s
    while time.thread_time() < until:
        sum(range(200))


def plant_sleep():
    time.sleep(0.004)


def plant_compute():
    spin(0.004)


pipe_in, pipe_out = os.pipe()


def plant_pipe():
    os.read(pipe_in, 1)


def feed_pipe():
    while True:
        time.sleep(0.004)
        os.write(pipe_out, b"x")


def plant_file():  # a FIFO that is slow stands for a slow file system in nothing: this is a file, written through
    descriptor = os.open(os.path.join(folder, "shard.tar"), os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(descriptor, b"x" * 65536, 0)
    os.fsync(descriptor)
    os.close(descriptor)


def plant_gil():
    sum(range(1000))
    for _ in range(40):  # gives the lock up, and must get it again
        time.sleep(0)


def hog_gil():
    while True:
        sum(range(20000))


objects = []


def plant_gc():
    gc.collect()


def plant_child():
    subprocess.run(["sleep", "0.004"], check=True)


def plant_faults():
    size = 8 << 20
    with mmap.mmap(-1, size) as area:
        for at in range(0, size, 4096):
            area[at] = 1


lock = threading.Semaphore(0)


def plant_semaphore():
    lock.acquire()


def post_semaphore():
    while True:
        time.sleep(0.004)
        lock.release()


def plant_queue():
    items.get()


def slow_transform(items, end):
    while not end.is_set():
        until = time.thread_time() + 0.004
        while time.thread_time() < until:
            sum(range(200))
        items.put(b"x")


def plant_pages():  # each page by itself, and thrown out of the page cache before
    os.posix_fadvise(shard, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(shard, PAGES << 12, prot=mmap.PROT_READ) as area:
        area.madvise(mmap.MADV_RANDOM)
        for page in range(PAGES):
            area[page << 12]


def plant_rank():
    ours.recv(1)


def late_rank(theirs):
    while theirs:
        time.sleep(0.004)
        theirs.send(b"x")


def plant_two():
    time.sleep(0.004)
    spin(0.004)


def plant_fed():
    pass


if cause == "pipe":
    threading.Thread(target=feed_pipe, daemon=True).start()
if cause == "semaphore":
    threading.Thread(target=post_semaphore, daemon=True).start()
if cause == "gil":
    threading.Thread(target=hog_gil, daemon=True).start()
if cause == "gc":
    objects = [[i] for i in range(150000)]
PAGES = 16
if cause == "pages":
    shard = os.open(os.path.join(folder, "shard.tar"), os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(shard, b"x" * (PAGES << 12), 0)
    os.fsync(shard)
if cause == "rank":
    ours, theirs = socket.socketpair()
    multiprocessing.get_context("fork").Process(target=late_rank, args=(theirs,), daemon=True).start()
if cause == "queue":
    items, end = multiprocessing.Queue(2), multiprocessing.Event()
    worker = multiprocessing.Process(target=slow_transform, args=(items, end), daemon=True)
    worker.start()

plant = globals()["plant_" + cause]
until = time.monotonic() + seconds
begin = time.monotonic()
planted = 0
while time.monotonic() < until:
    before = time.monotonic()
    plant()
    planted += time.monotonic() - before
    launch()
print(json.dumps({"gap_s": time.monotonic() - begin, "planted_s": planted}), flush=True)
sys.exit(0)
