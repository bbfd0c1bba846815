#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks files against what speedscope reads (https://www.speedscope.app/file-format-schema.json, and what its importer asks
for beyond types): check_speedscope.py FILE... prints `FILE: good`, or what is wrong with it; status 1 when any is bad.
"""
import json
import sys

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
FRAME = {"name": str, "file": str, "line": int, "col": int}
NUMBER = (int, float)


class Bad(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Bad(text)


def is_number(value):
    return isinstance(value, NUMBER) and not isinstance(value, bool) and value == value and abs(value) != float("inf")


def members(thing, required, optional, where):
    need(isinstance(thing, dict), f"{where} is no object")
    for key, kind in required.items():
        need(key in thing, f"{where} has no {key}")
    for key, value in thing.items():
        kind = required.get(key, optional.get(key))
        need(kind is not None, f"{where} has an unknown member {key}")
        need(is_number(value) if kind is NUMBER else isinstance(value, kind) and not isinstance(value, bool),
             f"{where}.{key} is of another type")


def frame_index(value, count, where):
    need(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count, f"{where}: no frame {value}")


def sampled(profile, count, where):
    samples, weights = profile["samples"], profile["weights"]
    need(len(samples) == len(weights), f"{where}: {len(samples)} samples with {len(weights)} weights")
    for i, sample in enumerate(samples):
        need(isinstance(sample, list), f"{where}: sample {i} is no list")
        for frame in sample:
            frame_index(frame, count, f"{where}: sample {i}")
    for i, weight in enumerate(weights):
        need(is_number(weight) and weight >= 0, f"{where}: weight {i} is {weight}")
    need(profile["endValue"] - profile["startValue"] == sum(weights), f"{where}: it is not as long as its weights are together")


def evented(profile, count, where):
    stack, now = [], profile["startValue"]
    for i, event in enumerate(profile["events"]):
        members(event, {"type": str, "frame": int, "at": NUMBER}, {}, f"{where}: event {i}")
        frame_index(event["frame"], count, f"{where}: event {i}")
        need(event["at"] >= now, f"{where}: event {i} is earlier than the one before")
        now = event["at"]
        need(event["type"] in ("O", "C"), f"{where}: event {i} is of the type {event['type']}")
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            need(stack and stack.pop() == event["frame"], f"{where}: event {i} closes another frame than the last opened")
    need(not stack, f"{where}: frames stay open")
    need(now <= profile["endValue"], f"{where}: events after its end")


def check(data):
    members(data, {"$schema": str, "shared": dict, "profiles": list},
            {"name": str, "exporter": str, "activeProfileIndex": int}, "the file")
    need(data["$schema"] == SCHEMA, "another $schema")
    members(data["shared"], {"frames": list}, {}, "shared")
    frames = data["shared"]["frames"]
    for i, frame in enumerate(frames):
        members(frame, {"name": str}, {k: v for k, v in FRAME.items() if k != "name"}, f"frame {i}")
        need(frame["name"], f"frame {i} has an empty name")
        need("line" not in frame or "file" in frame, f"frame {i} has a line of no file")
    need(data["profiles"], "there is no profile")
    need(0 <= data.get("activeProfileIndex", 0) < len(data["profiles"]), "activeProfileIndex names no profile")
    for i, profile in enumerate(data["profiles"]):
        where = f"profile {i}"
        need(isinstance(profile, dict) and profile.get("type") in ("sampled", "evented"), f"{where} is of no known type")
        own = {"samples": list, "weights": list} if profile["type"] == "sampled" else {"events": list}
        members(profile, {"type": str, "name": str, "unit": str, "startValue": NUMBER, "endValue": NUMBER, **own}, {}, where)
        need(profile["unit"] in UNITS, f"{where} has the unit {profile['unit']}")
        need(profile["endValue"] >= profile["startValue"], f"{where} ends before it begins")
        (sampled if profile["type"] == "sampled" else evented)(profile, len(frames), where)


def unique(pairs):
    need(len(dict(pairs)) == len(pairs), "an object has a member twice")
    return dict(pairs)


def main():
    bad = 0
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as f:
                check(json.load(f, object_pairs_hook=unique))
            print(f"{path}: good")
        except (Bad, ValueError) as error:
            print(f"{path}: {error}")
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
