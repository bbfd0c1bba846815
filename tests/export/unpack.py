# SPDX-License-Identifier: BSD-2-Clause
"""unpack.py - what zstd has compressed, by the library that cudatrace is linked with: Python has it only from 3.14 on."""
import ctypes

_zstd = ctypes.CDLL('libzstd.so.1')
_zstd.ZSTD_decompress.restype = ctypes.c_size_t


def unpack(data, size):
    """The `size` bytes that data was made of."""
    room = ctypes.create_string_buffer(size + 1)
    got = _zstd.ZSTD_decompress(room, ctypes.c_size_t(size), bytes(data), ctypes.c_size_t(len(data)))
    assert got == size, 'the length in full is wrong'
    return room.raw[:size]
