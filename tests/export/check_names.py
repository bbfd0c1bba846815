#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_names.py FILE... - each line of JSON has only members that docs/schema.json has for its type, and all that it requires; what is also a
column has the column's name; times, sizes and rates have their unit in their names. Prints the number of lines and types."""
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
FREE = {'args', 'values', 'lost', 'begun'}    # whose members have names of their own
OLD = {'ts_ns', 'dur_ns', 'comm', 'api', 'ret_name', 'call_ns', 'bytes', 'size', 'bandwidth', 'registers', 'src', 'dst', 'text_name', 'busbw',
       'static_shared', 'dynamic_shared', 'executed_shared', 'local_per_thread', 'local_total', 'pool_used', 'max_shared', 'offset', 'number',
       'captured_api', 'category_name', 'parent'}


class Schema:
    """What docs/schema.json says, as far as it uses the words below."""

    def __init__(self):
        with open(os.path.join(ROOT, 'docs', 'schema.json'), encoding='utf-8') as file:
            self.defs = json.load(file)['$defs']

    def at(self, node):
        """The node itself, and all that it includes."""
        found = [node]
        for part in [*node.get('allOf', []), *([node] if '$ref' in node else [])]:
            found += self.at(self.defs[part['$ref'].rsplit('/', 1)[1]])
        return found

    def members(self, node):
        return {name: about for part in self.at(node) for name, about in part.get('properties', {}).items()}

    def required(self, node):
        return {name for part in self.at(node) for name in part.get('required', [])}

    def of_type(self, word):
        for node in self.defs.values():
            about = self.members(node).get('type', {})
            if about.get('const') == word or word in about.get('enum', []) and 'const' not in about:
                return node
        raise AssertionError('the schema has no type ' + word)

    def check(self, value, node, where):
        members = self.members(node)
        missing, unknown = self.required(node) - set(value), set(value) - set(members)
        assert not missing and not unknown, f'{where}: missing {sorted(missing)}, not in the schema {sorted(unknown)}'
        for name, one in value.items():
            assert where.startswith('context') or name not in OLD, f'{where}: {name} is an old name'
            if name in FREE or not isinstance(one, (dict, list)):
                continue
            about = members[name]
            if isinstance(one, dict):
                self.check(one, about, f'{where}.{name}')
            for part in one if isinstance(one, list) else []:
                if isinstance(part, dict):
                    self.check(part, about['items'], f'{where}.{name}[]')


def columns():
    with open(os.path.join(ROOT, 'user', 'render', 'columns.def'), encoding='utf-8') as file:
        return set(re.findall(r'^C\(\w+, "(\w+)"', file.read(), re.M))


def main():
    schema, titles, types, lines = Schema(), columns(), set(), 0
    assert not titles & OLD, titles & OLD
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8', errors='replace') as file:
            for number, line in enumerate(file):
                row = json.loads(line)
                assert (number == 0) == (row['type'] == 'schema'), f'{path}: the first line does not say the version, or another does'
                schema.check(row, schema.of_type(row['type']), row['type'])
                types.add(row['type'])
                lines += 1
    print(lines, 'lines,', len(types), 'types')


if __name__ == '__main__':
    main()
