# SPDX-License-Identifier: BSD-2-Clause
"""program.py - the program that does the work: where it is, and how it is run."""
import errno
import os
import shutil
import subprocess
import sysconfig
from typing import Sequence, Union


class CudatraceError(Exception):
    """The program could not do what was asked; the text is its own message."""


def find_program() -> str:
    """The path of the program: the environment variable CUDATRACE, the one that was installed with this package, the one that was
    built in this source tree, or the first one in PATH. Raises CudatraceError if there is none."""
    named = os.environ.get('CUDATRACE')
    if named:
        return named
    tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
    for folder in (sysconfig.get_path('scripts'), os.path.normpath(tree)):
        path = os.path.join(folder, 'cudatrace')
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which('cudatrace')
    if not found:
        raise CudatraceError('there is no program cudatrace: install it, or name it in the environment variable CUDATRACE')
    return found


def existing(path: 'Union[str, os.PathLike[str]]') -> str:
    """The absolute path of a file that is there; so it is no option, even if it begins with -. Raises FileNotFoundError."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return os.path.abspath(name)


def message(stderr: str) -> str:
    """The error of what the program printed, or all of it."""
    lines = stderr.strip().splitlines()
    errors = [line for line in lines if 'error: ' in line]
    return '\n'.join(errors or lines) or 'cudatrace failed without a message'


def run(*args: str, good: Sequence[int] = (0,)) -> 'subprocess.CompletedProcess[str]':
    """Runs the program to its end. Raises CudatraceError if its exit status is none of `good`."""
    done = subprocess.run([find_program(), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding='utf-8', errors='surrogateescape', check=False)
    if done.returncode not in good:
        raise CudatraceError(message(done.stderr))
    return done
