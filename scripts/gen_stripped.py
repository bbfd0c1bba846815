#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gen_stripped.py - writes user/source/symbols/stripped.def: what tells the functions of a static CUDA runtime that has no symbols

    scripts/gen_stripped.py FILE... > user/source/symbols/stripped.def

A FILE is a libcudart_static.a, a libcudart.so, or a wheel with one of these. Of each function that names itself the table has
the number under which the runtime reports it to profilers; of the few that do not, a hash of the code without the bytes that the
linker fills in. It has no code. tests/stripped.sh fetches the files of many versions.
"""
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

# The functions that do not name themselves, in the order in which all versions have them. (Without those of a few bytes.)
ORDER = """cudaGetExportTable __cudaRegisterFatBinary __cudaRegisterFatBinaryEnd __cudaUnregisterFatBinary __cudaRegisterVar
	__cudaRegisterManagedVar __cudaRegisterHostVar __cudaRegisterTexture __cudaRegisterSurface __cudaRegisterFunction
	__cudaPushCallConfiguration __cudaPopCallConfiguration __cudaGetKernel __cudaLaunchKernel __cudaLaunchKernel_ptsz
	__cudaRegisterUnifiedTable""".split()
X86, ARM = 62, 183
ARCH = {X86: "X86", ARM: "ARM64"}
# Relocations whose instruction a linker may write anew: the bytes before the field that it changes then.
REWRITTEN = {X86: {9: 3, 41: 2, 42: 3, 22: 3}, ARM: {}}
FNV, PRIME, WORD = 0xcbf29ce484222325, 0x100000001b3, (1 << 64) - 1


def fnv(data, masked):
    h = FNV
    for i, b in enumerate(data):
        if i not in masked:
            h = (h ^ b) * PRIME & WORD
    return h


class Elf:
    def __init__(self, data, path):
        self.data, self.path = data, path
        self.type, self.machine = struct.unpack_from("<HH", data, 16)
        shoff, = struct.unpack_from("<Q", data, 40)
        shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shentsize) for i in range(shnum)]
        self.names = [self.text(shstrndx, s[0]) for s in self.sections]

    def text(self, section, at):
        at += self.sections[section][4]
        return self.data[at:self.data.index(b"\0", at)].decode("latin1")

    def section(self, kind):
        return next((i for i, s in enumerate(self.sections) if s[1] == kind), None)

    def functions(self):
        """name -> (code, masked offsets)"""
        static = self.type == 1
        table = self.section(2 if static else 11)
        _, _, _, _, off, size, link, _, _, _ = self.sections[table]
        symbols = [struct.unpack_from("<IBBHQQ", self.data, off + i) for i in range(0, size, 24)]
        text = self.names.index(".text")
        base = 0 if static else self.sections[text][3]
        code = self.data[self.sections[text][4]:][:self.sections[text][5]]
        masked = {}
        if static:
            rela = next(s for s in self.sections if s[1] == 4 and s[7] == text)
            for i in range(rela[4], rela[4] + rela[5], 24):
                at, info, _ = struct.unpack_from("<QQq", self.data, i)
                masked[at] = info & 0xffffffff
        out = {}
        for name, info, _, shndx, value, n in symbols:
            name = self.text(link, name)
            if info & 15 != 2 or shndx != text or not re.match(r"(__)?cuda(?!rt\d)\w+$", name):
                continue
            value -= base
            out[name] = (code[value:value + n], self.masks(masked, value, n) if static else self.decoded(name, value + base, n))
        return out

    def masks(self, relocations, value, n):
        out = set()
        for at in range(value, value + n):
            if at in relocations:
                before = REWRITTEN[self.machine].get(relocations[at], 0)
                out |= {at - value} | ({at - value - before} if before else set())
        return sorted(out)

    def decoded(self, name, value, n):
        """Of a shared library: what depends on the address, as objdump shows it."""
        if name not in ORDER or self.machine != X86:
            return None
        with tempfile.NamedTemporaryFile(suffix=".so") as f:
            f.write(self.data)
            f.flush()
            lines = subprocess.run(["objdump", "-d", "-w", f"--start-address={value}", f"--stop-address={value + n}", f.name],
                                   check=True, capture_output=True, text=True).stdout.splitlines()
        out = []
        for line in lines:
            m = re.match(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)$", line)
            if not m:
                continue
            at, raw, insn = int(m[1], 16), bytes.fromhex(m[2]), m[3]
            target = re.match(r"(?:call|jmp|j\w+)\s+([0-9a-f]+)", insn)
            if target and not value <= int(target[1], 16) < value + n:
                out.append(at - value + len(raw) - 4)
            m = re.search(r"\(%rip\)\s+# ([0-9a-f]+)", insn)
            if m:
                disp = struct.pack("<i", int(m[1], 16) - at - len(raw))
                out.append(at - value + raw.index(disp))
        return out


def members(path):
    data = open(path, "rb").read()
    if zipfile.is_zipfile(path):
        z = zipfile.ZipFile(path)
        for name in z.namelist():
            if re.search(r"/libcudart(_static\.a|\.so\.[\d.]+)$", name):
                yield from elfs(z.read(name), path + ":" + name)
    else:
        yield from elfs(data, path)


def elfs(data, path):
    if data[:4] == b"\x7fELF":
        yield Elf(data, path)
    at = 8
    while data[:8] == b"!<arch>\n" and at < len(data):
        n = int(data[at + 48:at + 58])
        if data[at + 60:at + 64] == b"\x7fELF":
            yield Elf(data[at + 60:at + 60 + n], path)
        at += 60 + n + (n & 1)


def immediates(machine, code):
    """The numbers that the code may report, and how often it has them."""
    out = {}
    if machine == X86:  # mov $number, %edi
        found = [struct.unpack_from("<I", code, m.start() + 1)[0] for m in re.finditer(rb"\xbf(?=..\0\0)", code, re.S)]
    else:  # mov register, #number
        words = struct.unpack_from(f"<{len(code) // 4}I", code)
        found = [w >> 5 & 0xffff for w in words if w & 0x7fe00000 == 0x52800000]
    for n in found:
        out[n] = out.get(n, 0) + 1
    return out


def own_numbers(functions):
    """name -> number in one x86-64 file: what its code has twice, and no other function's code has as its only one"""
    sets = {name: {n for n, times in immediates(X86, code).items() if times >= 2} for name, code in functions.items()}
    while True:
        sure = {next(iter(s)) for s in sets.values() if len(s) == 1}
        more = {name: s - sure for name, s in sets.items() if len(s) > 1 and s & sure}
        if not more:
            return {name: next(iter(s)) for name, s in sets.items() if len(s) == 1}
        sets.update(more)


def main():
    files = [e for path in sys.argv[1:] for e in members(path)]
    files.sort(key=lambda e: e.type)  # archives first: their relocations say what is to be masked
    numbers, codes = {}, {}
    for e in sorted(files, key=lambda e: e.machine):  # x86-64 first: there the numbers stand alone
        functions = e.functions()
        own = {name: code for name, (code, _) in functions.items() if name not in ORDER}
        if e.machine == X86:
            for name, n in own_numbers(own).items():
                numbers.setdefault(name, set()).add(n)
        for name in ORDER:
            code, masked = functions.get(name, (b"", None))
            known = codes.setdefault((e.machine, name), {})
            if masked is not None and not any(len(code) == size and fnv(code, covered(m)) == h for size, h, m in known):
                known[(len(code), fnv(code, covered(masked)), tuple(masked))] = None
        without = [name for name, code in own.items() if not numbers.get(name, set()) & set(immediates(e.machine, code))]
        print(f"{e.path}: {ARCH[e.machine]}, {len(functions)} functions, without a number: {' '.join(without) or 'none'}", file=sys.stderr)
    print("/* SPDX-License-Identifier: BSD-2-Clause */")
    print("/*\n * stripped.def - made by scripts/gen_stripped.py: how the functions of a static CUDA runtime without symbols are told.\n"
          " * NUMBER(name, number): a function that names itself, and the number under which it reports itself to profilers.\n"
          " * X86, ARM64(order, name, bytes, hash, masked...): another one; the hash is of its code without 4 bytes at each of the places\n"
          " * that follow.\n */")
    for name in sorted(numbers):
        for n in sorted(numbers[name]):
            print(f"NUMBER({name}, {n})")
    for (machine, name), known in sorted(codes.items(), key=lambda c: (c[0][0], ORDER.index(c[0][1]))):
        for size, h, masked in known:
            print(f"{ARCH[machine]}({ORDER.index(name)}, {name}, {size}, 0x{h:016x}, {', '.join(map(str, masked)) or '0'})")


def covered(masked):
    return {at + i for at in masked for i in range(4)}


main()
