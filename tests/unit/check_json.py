#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that every line of the given files is an object of docs/schema.json: check_json.py FILE...

Uses the python module jsonschema where it is installed; else what this schema uses of the standard is checked here,
with an error for any keyword that is not understood. Strict JSON: no NaN, valid UTF-8, no key twice.
"""
import json
import re
import sys

SCHEMA = json.load(open("docs/schema.json", encoding="utf-8"))
IGNORED = {"$schema", "title", "description", "$defs"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}[name])


def fits(value, schema):
    """None, or why the value does not fit."""
    for key, arg in schema.items():
        why = None
        if key in IGNORED:
            continue
        if key == "$ref":
            why = fits(value, SCHEMA["$defs"][arg.removeprefix("#/$defs/")])
        elif key == "type":
            if not any(is_type(value, t) for t in ([arg] if isinstance(arg, str) else arg)):
                why = f"{value!r} is no {arg}"
        elif key == "const":
            why = None if value == arg else f"{value!r} is not {arg!r}"
        elif key == "enum":
            why = None if value in arg else f"{value!r} is not one of {arg}"
        elif key == "minimum":
            why = None if value >= arg else f"{value!r} is less than {arg}"
        elif key == "pattern":
            why = None if re.search(arg, value) else f"{value!r} does not match {arg}"
        elif key == "required":
            missing = [name for name in arg if name not in value]
            why = f"without {missing}" if missing else None
        elif key == "properties":
            for name, sub in arg.items():
                if name in value and (why := fits(value[name], sub)):
                    why = f"{name}: {why}"
                    break
        elif key == "additionalProperties":
            known = schema.get("properties", {})
            why = next((f"{n}: {w}" for n, v in value.items() if n not in known and (w := fits(v, arg))), None)
        elif key == "propertyNames":
            why = next((w for n in value if (w := fits(n, arg))), None)
        elif key == "items":
            why = next((w for v in value if (w := fits(v, arg))), None)
        elif key == "allOf":
            why = next((w for sub in arg if (w := fits(value, sub))), None)
        elif key == "oneOf":
            reasons = [fits(value, sub) for sub in arg]
            good = reasons.count(None)
            why = None if good == 1 else f"{good} alternatives fit {value!r}: {[r for r in reasons if r]}"
        else:
            sys.exit(f"docs/schema.json: this checker does not know {key}")
        if why:
            return why
    return None


def once(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key twice: {keys}")
    return dict(pairs)


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def main():
    try:
        import jsonschema
        validator = jsonschema.Draft202012Validator(SCHEMA)
        validator.check_schema(SCHEMA)
    except (ImportError, AttributeError):
        validator = None
    lines = failed = 0
    for path in sys.argv[1:]:
        for number, raw in enumerate(open(path, "rb"), 1):
            lines += 1
            try:
                obj = json.loads(raw.decode("utf-8"), object_pairs_hook=once, parse_constant=no_constant)
                why = fits(obj, SCHEMA)
                if not why and validator and lines <= 1000:
                    why = next((e.message for e in validator.iter_errors(obj)), None)
            except ValueError as error:
                why = str(error)
            if why:
                failed += 1
                print(f"{path}:{number}: {why[:600]}")
    print(f"{lines - failed} passed, {failed} failed")
    sys.exit(1 if failed or not lines else 0)


main()
