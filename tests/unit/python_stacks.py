# SPDX-License-Identifier: BSD-2-Clause
# Calls a C function, and waits in it, from frames that it describes itself. test_python.c starts it, and the cases for
# the kernel side too.
#
# For each wait it writes to stdout: "tid N", then for each frame, innermost first, "qualname<TAB>file<TAB>line", then
# "end"; after all threads that wait together, "go". Then it calls CALL, which reads a byte of stdin.
import asyncio
import ctypes
import functools
import os
import sys
import threading

if len(sys.argv) > 2:  # a library and a function that is called instead of waiting: the kernel side's cases
    function = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
    place = ctypes.c_void_p()
    CALL = functools.partial(function, ctypes.byref(place), 4096)
else:
    one = ctypes.create_string_buffer(1)
    CALL = functools.partial(ctypes.CDLL(None).read, 0, one, 1)

lock = threading.Lock()


def say(last=True):
    """Describes the stack of whoever calls it, who calls CALL on the same line."""
    lines = ["tid %d" % threading.get_native_id()]
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        lines.append("%s\t%s\t%d" % (getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    lines.append("end")
    if last:
        lines.append("go")
    with lock:
        os.write(1, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))


def plain():
    say(), CALL()


def nested():
    def inner(x):
        class Local:
            def method(self): say(), CALL()

        def onward(a, *, b): return Local().method()

        # the line of a call is that of its beginning, though its arguments' instructions come first
        onward(
            x +
            1,
            b=len(
                "x"))

    inner(
        1)


class Model:
    def forward(self, *args):
        say(), CALL()

    @staticmethod
    def static():
        Model().forward(1, 2)

    @classmethod
    def make(cls):
        cls.static()

    @property
    def weight(self):
        return say(), CALL()

    def __call__(self):
        return self.weight

    def __enter__(self):
        say(), CALL()
        return self

    def __exit__(self, *exc):
        say(), CALL()

    def __getattr__(self, name):
        if name != "missing":
            raise AttributeError(name)
        say(), CALL()


def comprehensions():
    [(say(), CALL()) for _ in range(1)]
    {k: [(say(), CALL()) for _ in "a"] for k in "b"}
    list((say(), CALL()) for _ in range(1))


def generate(n):
    for i in range(n):
        yield i
    say(), CALL()
    yield n


def delegate(n):
    yield from generate(n)


def generators():
    for _ in delegate(3):
        pass
    it = generate(0)
    next(it)
    sum(generate(40))  # long enough for the specialised instructions


async def leaf():
    await asyncio.sleep(0)
    say(), CALL()


async def branch():
    await leaf()


async def agen():
    yield 1
    say(), CALL()


async def root():
    await asyncio.gather(branch())
    async for _ in agen():
        pass


def from_c():
    sorted([2], key=lambda x: (say(), CALL()))
    functools.partial(lambda a, b: (say(), CALL()), 1)(2)
    list(map(lambda x: (say(), CALL()), [1]))
    max([1, 2], key=lambda x: x == 2 and (say(), CALL()) and 1)

    class Compared:
        def __lt__(self, other):
            say(), CALL()
            return True
    sorted([Compared(), Compared()])
    back = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(compare)
    array = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(array, ctypes.c_size_t(2), ctypes.c_size_t(4), back)


def compare(a, b):
    say(), CALL()
    return 0


class Dying:
    def __del__(self):
        say(), CALL()


def holds():
    x = Dying()  # dies when the frame is taken down


def dies():
    holds()
    list(map(lambda _: Dying() and None, [1]))  # the evaluation loop that ran it is at its end


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args, **kw):
        return f(*args, **kw)
    return wrapper


@decorated
@decorated
@functools.lru_cache()
def fancy(a, *, b=1):
    try:
        raise ValueError
    except ValueError:
        with Model() as m:
            m.missing
    finally:
        say(), CALL()


def größe():
    say(), CALL()


def 名前():
    größe()


def 𝐟𝑛():  # the parser makes it "fn"
    exec(compile("def f():\n  say(), CALL()\n\n\nf()", "<generated 𝄞>", "exec"), globals())


def far():
    source = "def f():\n" + "\n" * 5000 + "  x = 1\n" + "  y = (x,\n" * 1 + "   2)\n" + "\n" * 70000 + \
        "  say(), CALL()\n" + "f()\n"
    exec(compile(source, "far.py", "exec"), globals())
    long = "if not say:\n" + "".join("  v%d = v%d + v%d\n" % (i, i, i) for i in range(1000)) + "say(), CALL()\n"
    exec(compile(long, "long.py", "exec"), dict(globals()))
    name = "n" * 400
    exec(compile("def %s():\n  say(), CALL()\n%s()\n" % (name, name), "x" * 600, "exec"), globals())


def deep(n):
    if n == 0:
        say(), CALL()
    else:
        deep(n - 1)


def threads(n):
    ready, done = threading.Barrier(n + 1), []

    def work(i):
        def step():
            say(False), ready.wait(), CALL()
        step()
        done.append(i)

    all = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for t in all:
        t.start()
    ready.wait()
    os.write(1, b"go\n")
    for t in all:
        t.join()


def on_foreign(arg):
    say(), CALL()
    return 0


def foreign():
    """Threads that Python did not make: each gets a state for the time of its calls."""
    libc = ctypes.CDLL(None)
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(on_foreign)
    for _ in range(3):
        thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, call, None)
        libc.pthread_join(thread, None)


def forked():
    pid = os.fork()
    if pid == 0:
        say(), CALL()
        os._exit(0)
    os.waitpid(pid, 0)


SCENARIOS = [plain, nested, Model.make, Model(), comprehensions, generators, lambda: asyncio.run(root()), from_c, dies,
             lambda: fancy(1, b=2), 名前, 𝐟𝑛, far, lambda: deep(900), lambda: threads(5),
             foreign, forked]

if __name__ == "__main__":
    sys.setrecursionlimit(3000)
    for scenario in SCENARIOS:
        scenario()
    os.write(1, b"bye\n")
