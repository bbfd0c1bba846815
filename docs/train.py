# SPDX-License-Identifier: BSD-2-Clause
"""train.py - the program that the tutorial traces: a small training loop.

python3 train.py [STEPS]

It makes the calls of CUDA that a training step makes, computes nothing, and needs no package. Three
of its habits cost time or memory; the tutorial finds them.
"""
import ctypes
import sys

cuda = ctypes.CDLL("libcudart.so")
BATCH_BYTES = 65536
batch = ctypes.create_string_buffer(BATCH_BYTES)
loss = ctypes.create_string_buffer(4)
history = []


def allocate(size):
    pointer = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)):
        sys.exit("train.py: cudaMalloc failed")
    return pointer


def load_batch(inputs):
    cuda.cudaMemcpy(inputs, batch, ctypes.c_size_t(BATCH_BYTES), 1)


def forward(inputs):
    cuda.cudaMemsetAsync(inputs, 0, ctypes.c_size_t(BATCH_BYTES), None)


def loss_item(inputs):
    cuda.cudaMemcpy(loss, inputs, ctypes.c_size_t(4), 2)
    cuda.cudaDeviceSynchronize()


def remember():
    history.append(allocate(4096))


def train(steps):
    for step in range(steps):
        inputs = allocate(BATCH_BYTES)
        load_batch(inputs)
        forward(inputs)
        loss_item(inputs)
        cuda.cudaFree(inputs)
        if step % 10 == 9:
            remember()


if __name__ == "__main__":
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
