# SPDX-License-Identifier: BSD-2-Clause
"""compare.py - what changed between two runs."""
import dataclasses
import json
import os
from typing import Any, Dict, Sequence, Union

from . import program
from .trace import Trace

Recording = Union[str, 'os.PathLike[str]', Trace]


class Metrics(Dict[str, Dict[str, Any]]):
    """Numbers by their names, and by these without their unit."""

    def __missing__(self, name: str) -> Dict[str, Any]:
        for unit in ('_ns', '_gb_per_second'):
            if name + unit in self:
                return self[name + unit]
        raise KeyError(name)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `cudatrace compare` found. data is its JSON (docs/stat.md says what each member is); times are nanoseconds."""
    regressed: bool
    data: Dict[str, Any] = dataclasses.field(repr=False)

    @property
    def metrics(self) -> Dict[str, Dict[str, Any]]:
        """base, new and change of each number of the whole run, as total_api_time_ns, failed_calls, kernel_time_ns. Keys without their
        unit, as they were before version 2, are found, too."""
        return Metrics(self.data['comparisons'][0]['metrics'])


def compare(base: Recording, new: Recording, fail_if: Sequence[str] = ()) -> Comparison:
    """Compares two recordings, or files of `cudatrace stat --save`. regressed: one of the conditions is true; without any, the usual
    ones of `cudatrace compare`. Raises FileNotFoundError if a file is not there, CudatraceError
    if one cannot be read or a condition is wrong."""
    paths = [program.existing(file.path if isinstance(file, Trace) else file) for file in (base, new)]
    conditions = [word for condition in fail_if for word in ('--fail-if', condition)]
    done = program.run('compare', '--format', 'json', *conditions, *paths, good=(0, 1))
    return Comparison(done.returncode == 1, json.loads(done.stdout))
