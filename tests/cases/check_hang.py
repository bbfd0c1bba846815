# SPDX-License-Identifier: BSD-2-Clause
"""check_hang.py - HANG.JSON, HANG.SCHEMA and FINDINGS.SCHEMA: has the first line what the schemas demand, with their types, and
is every line an object with a type? Knows as much of JSON Schema as these two files use."""
import json
import sys

TYPES = {'string': str, 'integer': int, 'number': (int, float), 'array': list, 'object': dict, 'null': type(None), 'boolean': bool}


def check(value, schema, where):
    names = schema.get('type', [])
    names = [names] if isinstance(names, str) else names
    if names and not isinstance(value, tuple(t for n in names for t in (TYPES[n] if isinstance(TYPES[n], tuple) else (TYPES[n],)))):
        sys.exit(f'{where}: {value!r} is no {" or ".join(names)}')
    if 'enum' in schema and value not in schema['enum']:
        sys.exit(f'{where}: {value!r} is not one of {schema["enum"]}')
    if isinstance(value, dict):
        for name in schema.get('required', []):
            if name not in value:
                sys.exit(f'{where}: {name} is missing')
        for name, part in schema.get('properties', {}).items():
            if name in value:
                check(value[name], part, f'{where}.{name}')
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema.get('items', {}), f'{where}[{i}]')


lines = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
for n, line in enumerate(lines):
    if not isinstance(line, dict) or not isinstance(line.get('type'), str):
        sys.exit(f'line {n + 1} has no type')
for path in sys.argv[2:]:
    check(lines[0], json.load(open(path, encoding='utf-8')), 'line 1')
