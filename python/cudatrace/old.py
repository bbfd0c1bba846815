# SPDX-License-Identifier: BSD-2-Clause
"""old.py - the names that JSON and this package had before version 3, when they were not those of the columns."""
from typing import Any, Dict, Optional

#: By the class of a record, and of the records that it is derived from.
NAMES: Dict[str, Dict[str, str]] = {
    'Event': {'ts_ns': 'start_ns', 'dur_ns': 'duration_ns', 'comm': 'process'},
    'Call': {'api': 'name', 'ret_name': 'result'},
    'Work': {'api': 'cause', 'call_ns': 'cause_start_ns', 'captured_api': 'captured_name', 'bytes': 'size_bytes',
             'bandwidth': 'bytes_per_second', 'pool_used': 'pool_used_bytes'},
    'Kernel': {'registers': 'registers_per_thread', 'static_shared': 'static_shared_bytes', 'dynamic_shared': 'dynamic_shared_bytes',
               'executed_shared': 'executed_shared_bytes', 'local_per_thread': 'local_per_thread_bytes', 'local_total': 'local_total_bytes',
               'busbw': 'bus_bytes_per_second', 'name': 'handle'},
    'Copy': {'kind': 'copy_kind', 'src': 'src_memory', 'dst': 'dst_memory'},
    'Set': {'value': 'set_value', 'memory': 'dst_memory'},
    'Range': {'text': 'name', 'id': 'range_id', 'parent': 'parent_id', 'category_name': 'category', 'category': 'category_id',
              'ret_name': 'result', 'size': 'size_bytes'},
    'Device': {'bandwidth': 'memory_bytes_per_second', 'max_shared': 'max_shared_bytes'},
}
TYPES = {'memcpy': 'copy', 'memset': 'set'}
#: The classes above that a line's type has; work that has none of its own is Work.
CLASSES = {**dict.fromkeys(('call', 'enter', 'pending', 'foreign', 'muted'), ('Call',)), 'kernel': ('Work', 'Kernel'), 'copy': ('Work', 'Copy'),
           'set': ('Work', 'Set'), **dict.fromkeys(('sync', 'graph', 'memory'), ('Work',)), 'device': ('Device',),
           **dict.fromkeys(('marker', 'range', 'mark', 'collective', 'communicator_call', 'operator', 'gemm'), ('Range',))}


def member(kind: type, name: str) -> Optional[str]:
    """The member of a class that had this name; None: there is none, or one has it still."""
    members = getattr(kind, '__dataclass_fields__', {})
    if name in members:
        return None
    new = (NAMES.get(one.__name__, {}).get(name) for one in kind.__mro__)
    return next((one for one in new if one in members), None)


def line(was: Dict[str, Any]) -> Dict[str, Any]:
    """A line of JSON with the names of today. One that has them is returned as it is."""
    if 'ts_ns' not in was:
        return was
    word = TYPES.get(was['type'], was['type'])
    names = {'process': 'process_id', **NAMES['Event']}
    for kind in CLASSES.get(word, ()):
        names.update(NAMES[kind])
    now = {names.get(key, key): value for key, value in was.items()}
    now['type'] = word
    if word == 'kernel':
        now.setdefault('name', was.get('kernel', ''))
    return now
