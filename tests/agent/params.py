#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""params.py - compares where the agent looks for a call's arguments with CUDA's own headers.

CUPTI hands its callbacks a struct for each function (generated_cuda_runtime_api_meta.h, generated_cuda_meta.h). For each of
them the row must be found by the callback's name, and each argument must be where the compiler puts the member.

    params.py DUMP-PROGRAM [CUDA-INCLUDE-FOLDER]      prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`
"""
import os
import re
import subprocess
import sys
import tempfile

dump = sys.argv[1]
include = sys.argv[2] if len(sys.argv) > 2 else "/usr/local/cuda/include"
if not os.path.exists(include + "/generated_cuda_runtime_api_meta.h"):
    print("skip params: no CUPTI headers in " + include)
    sys.exit(0)

structs = []  # (domain, name, members)
for domain, header in ((2, "generated_cuda_runtime_api_meta.h"), (1, "generated_cuda_meta.h")):
    text = open(f"{include}/{header}").read()
    for m in re.finditer(r"typedef struct (\w+)_params_st \{(.*?)\} \w+;", text, re.S):
        members = re.findall(r"(\w+)(?:\[\w*\])?;", m.group(2))
        structs.append((domain, m.group(1), members))

# the callbacks that there are, those of removed signatures too
versioned = {}
for m in re.finditer(r"CUPTI_RUNTIME_TRACE_CBID_(\w+)_v(\d{4,6}) ", open(include + "/cupti_runtime_cbid.h").read()):
    versioned.setdefault(m.group(1), []).append(int(m.group(2)))


def which(domain, name):
    """0 the only one, 1 an earlier one, 2 the latest of several: enum agent_funcs_which"""
    m = re.fullmatch(r"(\w+)_v(\d{4,6})", name)
    all_ = versioned.get(m.group(1), []) if domain == 2 and m else []
    return 0 if len(all_) < 2 else 2 if int(m.group(2)) == max(all_) else 1


with tempfile.TemporaryDirectory() as tmp:
    with open(tmp + "/o.c", "w") as f:
        f.write('#include <stdio.h>\n#include <stddef.h>\n#include <cuda.h>\n#include <cuda_runtime_api.h>\n')
        # what cuda.h has for CUDA 3 only
        f.write("typedef unsigned int CUdeviceptr_v1;\n")
        for t in ("MEMCPY2D", "MEMCPY3D", "ARRAY_DESCRIPTOR", "ARRAY3D_DESCRIPTOR"):
            f.write(f"typedef struct v1_{t} CUDA_{t}_v1;\n")
        f.write('#include <generated_cuda_runtime_api_meta.h>\n#include <generated_cuda_meta.h>\n')
        f.write("int main(void) {\n")
        for domain, name, members in structs:
            f.write(f'printf("{domain} {name}");\n')
            for x in members:
                f.write(f'printf(" %zu:%zu", offsetof({name}_params, {x}), sizeof((({name}_params *)0)->{x}));\n')
            f.write('puts("");\n')
        f.write("return 0; }\n")
    subprocess.run(["gcc", "-w", "-I" + include, "-o", tmp + "/o", tmp + "/o.c"], check=True)
    real = subprocess.run([tmp + "/o"], capture_output=True, text=True, check=True).stdout
asked = "".join(f"{d} {n} {which(d, n)}\n" for d, n, _ in structs)
ours = subprocess.run([dump], input=asked, capture_output=True, text=True, check=True).stdout

bad = unknown = same = 0
for a, b in zip(real.splitlines(), ours.splitlines()):
    a, b = a.split(), b.split()
    if b[2] == "-":
        unknown += 1
        if "-v" in sys.argv:
            print("# no row:", a[1])
        continue
    want, got = a[2:], b[3:]
    if len(want) != len(got) or any(g not in ("-", w) for w, g in zip(want, got)):
        bad += 1
        print(f"not ok {a[1]}: row {b[2]} has its arguments at {' '.join(got)}, the header at {' '.join(want)}")
    else:
        same += 1
print(f"# {same} functions agree, {unknown} have no row")
print("ok params" if not bad and same > 900 else "not ok params: %d differ, %d agree" % (bad, same))
sys.exit(bool(bad or same <= 900))
