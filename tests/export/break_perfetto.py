#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""break_perfetto.py - breaks a good Perfetto trace in one way after the other, to see that check_perfetto.py finds each:
break_perfetto.py FILE. Prints `ok NAME` or `not ok NAME: why` for each way."""
import copy
import io
import sys
from contextlib import redirect_stderr

import check_perfetto as check

BEGIN, END = 1, 2


def events(packets, kind=None):
    return [i for i, p in enumerate(packets) if p.HasField("track_event") and (kind is None or p.track_event.type == kind)]


def first(packets, field):
    return next(i for i, p in enumerate(packets) if p.HasField(field))


def swap_times(p):
    """the second of two events on one track is earlier than the first"""
    i = events(p, BEGIN)[1]
    before = [k for k in events(p) if k < i and p[k].track_event.track_uuid == p[i].track_event.track_uuid][-1]
    p[i].timestamp = p[before].timestamp - 1


def begin_before_end(p):
    """two slices that touch, the second's begin in front of the first's end"""
    for i in events(p, END):
        after = [k for k in events(p) if k > i and p[k].track_event.track_uuid == p[i].track_event.track_uuid]
        if after and p[after[0]].track_event.type == BEGIN:
            p[after[0]].timestamp = p[i].timestamp
            p[i], p[after[0]] = p[after[0]], p[i]
            return
    raise AssertionError("no two slices")


def no_end(p):
    del p[events(p, END)[-1]]


def no_begin(p):
    del p[events(p, BEGIN)[-1]]


def no_clear(p):
    p[0].sequence_flags = 0


def cleared_late(p):
    p[events(p)[3]].sequence_flags = 1


def not_needed(p):
    p[events(p)[3]].sequence_flags = 0


def no_clock(p):
    del p[first(p, "clock_snapshot")]
    while any(q.HasField("clock_snapshot") for q in p):
        del p[first(p, "clock_snapshot")]


def clock_of_another(p):
    p[0].trace_packet_defaults.timestamp_clock_id = 6


def lonely_flow(p):
    p[[i for i in events(p) if p[i].track_event.terminating_flow_ids][0]].track_event.ClearField("terminating_flow_ids")


def flow_begins_twice(p):
    e = p[[i for i in events(p) if p[i].track_event.terminating_flow_ids][0]].track_event
    e.flow_ids.extend(e.terminating_flow_ids)
    e.ClearField("terminating_flow_ids")


def flow_at_end(p):
    e = p[[i for i in events(p) if p[i].track_event.flow_ids][0]].track_event
    p[events(p, END)[0]].track_event.flow_ids.extend(e.flow_ids)
    e.ClearField("flow_ids")


def track_not_told(p):
    uuid = p[events(p)[0]].track_event.track_uuid
    # a track is told of again when its thread has a new name
    p[:] = [q for q in p if not (q.HasField("track_descriptor") and q.track_descriptor.uuid == uuid)]


def parent_not_told(p):
    p[[i for i, q in enumerate(p) if q.track_descriptor.parent_uuid][0]].track_descriptor.parent_uuid = 12345


def string_not_told(p):
    del p[first(p, "interned_data")]


def name_of_none(p):
    p[events(p, BEGIN)[0]].track_event.name_iid = 999999


def frame_of_none(p):
    d = [q for q in p if q.interned_data.callstacks][0]
    d.interned_data.callstacks[0].frame_ids[0] = 999999


def no_sequence(p):
    p[events(p)[0]].trusted_packet_sequence_id = 0


def nothing(p):
    del p[events(p)[0]:]


WAYS = [swap_times, begin_before_end, no_end, no_begin, no_clear, cleared_late, not_needed, no_clock, clock_of_another, lonely_flow,
        flow_begins_twice, flow_at_end, track_not_told, parent_not_told, string_not_told, name_of_none, frame_of_none, no_sequence,
        nothing]


def faults(packets):
    checker = check.Checker()
    with redirect_stderr(io.StringIO()):
        for at, p in enumerate(packets):
            checker.packet(at, p)
        checker.end()
    return checker.faults


def main(path):
    good = list(check.packets(path))
    found = faults(good)
    print(f"not ok perfetto-unbroken: {found[0]}" if found else "ok perfetto-unbroken")
    for way in WAYS:
        name = "perfetto-" + way.__name__.replace("_", "-")
        broken = copy.deepcopy(good)
        way(broken)
        print(f"ok {name}" if faults(broken) else f"not ok {name}: the checker found nothing")


if __name__ == "__main__":
    main(sys.argv[1])
