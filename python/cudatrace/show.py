# SPDX-License-Identifier: BSD-2-Clause
"""show.py - records and tables as text for a terminal: times since the recording's begin, no columns without a value, no line that is
wider than the terminal."""
import shutil
from typing import Any, Dict, List, Sequence, Tuple

#: Rows that are shown of a table, from its begin and from its end.
FIRST, LAST = 10, 5
#: Characters of a cell.
CELL = 40
#: What is shown first, and what after all others: most of it is the same in all rows.
EARLY = ('start_ns', 'duration_ns', 'name', 'copy_kind', 'size_bytes', 'set_value')
LATE = ('process', 'pid', 'tid', 'rank', 'domain', 'correlation', 'device', 'context', 'gpu_uuid', 'uuid', 'cause_start_ns', 'kernel', 'ret')


def width() -> int:
    """Of the terminal, or 100."""
    return max(shutil.get_terminal_size((100, 24)).columns, 40)


def duration(ns: int) -> str:
    """In the unit in which it has one to three digits before the point."""
    for unit, size in (('s', 10**9), ('ms', 10**6), ('us', 10**3)):
        if abs(ns) >= size:
            return '%.4g %s' % (ns / size, unit)
    return '%d ns' % ns


def is_time(name: str) -> bool:
    """Is it a point in time, and no length?"""
    return name.endswith('start_ns')


def since(record: Any, name: str) -> Any:
    """The value of a column; of a point in time how long after the recording's begin it is."""
    value = getattr(record, name)
    return value - record.began_ns if is_time(name) and isinstance(value, int) else value


def unit_of(name: str, unit: str, rows: Sequence[Any]) -> str:
    """What follows a column's name."""
    after = ' since the start' if is_time(name) and rows and rows[0].began_ns else ''
    return ' [%s%s]' % (unit, after) if unit else ''


def is_empty(value: Any) -> bool:
    """Nothing; but the number 0 is a value."""
    return value is None or value is False or not isinstance(value, (int, float)) and not value


def not_empty(rows: Sequence[Any], columns: Dict[str, Any]) -> Dict[str, Any]:
    """The columns in which some row has a value, in the order in which they are shown."""
    def place(name: str) -> int:
        return EARLY.index(name) if name in EARLY else len(EARLY) + (1 + LATE.index(name) if name in LATE else 0)
    return {name: columns[name] for name in sorted(columns, key=place) if any(not is_empty(getattr(row, name)) for row in rows)}


def cut(shown: str, most: int) -> str:
    """At most so many characters. Programs choose names: nothing of them controls the terminal."""
    shown = ''.join(c if c.isprintable() else '?' for c in shown)
    return shown if len(shown) <= most else shown[:most - 3] + '...'


def text(record: Any, name: str) -> str:
    """A cell, on one line."""
    value = since(record, name)
    if value is None:
        return ''
    if is_time(name) and record.began_ns:
        return '+%.3f ms' % (value / 1e6)
    if name.endswith('_ns') and not is_time(name):
        return duration(value)
    if isinstance(value, dict):
        return ', '.join('%s=%s' % pair for pair in value.items())
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return ' < '.join(str(frame.get('function', frame.get('address', '?'))) for frame in value)
    return str(value)


def row(record: Any, columns: Dict[str, Any]) -> str:
    """A record on a line, of which the end may be cut off."""
    parts = ['%s=%s' % (name, cut(text(record, name), CELL)) for name in not_empty([record], columns)]
    whole = '%s(%s)' % (type(record).__name__, ', '.join(parts))
    return whole if len(whole) <= width() else whole[:width() - 4] + '...)'


def _fit(grid: List[List[str]], most: int) -> Tuple[List[str], int]:
    """The lines, and how many columns they have."""
    wide = [max(map(len, cells)) for cells in zip(*grid)]
    fit = 1
    while fit < len(wide) and sum(wide[:fit + 1]) + 2 * fit <= most:
        fit += 1
    return ['  '.join(cell.ljust(n) for cell, n in zip(line[:fit], wide)).rstrip()[:most] for line in grid], fit


def table(kind: str, rows: Sequence[Any], columns: Dict[str, Any]) -> str:
    """The first and the last rows, with as many columns as fit."""
    head = '<Table of %d %s>' % (len(rows), kind)
    shown = list(rows) if len(rows) <= FIRST + LAST else [*rows[:FIRST], *rows[-LAST:]]
    names = list(not_empty(shown, columns))
    if not names:
        return head
    lines, fit = _fit([names] + [[cut(text(one, name), CELL) for name in names] for one in shown], width())
    if len(shown) < len(rows):
        lines.insert(1 + FIRST, '... %d more ...' % (len(rows) - len(shown)))
    if fit < len(names):
        lines.append(cut('columns that do not fit: ' + ', '.join(names[fit:]), width()))
    return '\n'.join([head, *lines])
