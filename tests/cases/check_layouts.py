# SPDX-License-Identifier: BSD-2-Clause
"""check_layouts.py: the words in which cuBLASLt keeps a matrix's layout and a product's description are where cudatrace reads them
(user/event/scopes/products/gemms.c), as the library's own functions write them. Takes the library that PyTorch's package brings, or LIBRARY.
Needs no GPU. Prints what differs, or the library's version; the status is 2 where there is no library."""
import ctypes
import glob
import struct
import sys

try:
    import nvidia
    found = [f for p in nvidia.__path__ for f in glob.glob(p + "/**/libcublasLt.so.1[0-9]", recursive=True)]
except ImportError:
    found = []
path = sys.argv[1] if len(sys.argv) > 1 else found[0] if found else sys.exit(2)
lt = ctypes.CDLL(path)
lt.cublasLtGetVersion.restype = ctypes.c_size_t
layout, desc = ctypes.create_string_buffer(64), ctypes.create_string_buffer(256)
one, two, rows, cols, ld, batch = 14, 77, 0x1234567, 0x89abc, 0x2345678, 0x777
wrong = []
if lt.cublasLtMatrixLayoutInit_internal(layout, ctypes.c_size_t(64), one, ctypes.c_uint64(rows), ctypes.c_uint64(cols), ctypes.c_int64(ld)):
    sys.exit("cublasLtMatrixLayoutInit failed")
number = ctypes.c_int32(batch)
if lt.cublasLtMatrixLayoutSetAttribute(layout, 5, ctypes.byref(number), ctypes.c_size_t(4)):
    sys.exit("cublasLtMatrixLayoutSetAttribute failed")
for name, at, form, want in (("type", 0, "<I", one), ("order", 4, "<I", 0), ("rows", 8, "<Q", rows), ("columns", 16, "<Q", cols),
                             ("leading dimension", 24, "<Q", ld), ("batch", 32, "<I", batch)):
    got, = struct.unpack_from(form, layout.raw, at)
    if got != want and name != "order":
        wrong.append(f"{name}: {got:#x}, not {want:#x}")
if lt.cublasLtMatmulDescInit_internal(desc, ctypes.c_size_t(256), two, 0):
    sys.exit("cublasLtMatmulDescInit failed")
for attribute, value in (3, 1), (4, 2):  # the operation on A, on B
    number = ctypes.c_int32(value)
    if lt.cublasLtMatmulDescSetAttribute(desc, attribute, ctypes.byref(number), ctypes.c_size_t(4)):
        sys.exit("cublasLtMatmulDescSetAttribute failed")
for name, at, want in ("how it computes", 8, two), ("operation on A", 20, 1), ("operation on B", 24, 2):
    got, = struct.unpack_from("<I", desc.raw, at)
    if got != want:
        wrong.append(f"{name}: {got:#x}, not {want:#x}")
print("; ".join(wrong) or f"cuBLASLt {lt.cublasLtGetVersion()}")
sys.exit(bool(wrong))
