#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_perfetto.py - holds a Perfetto trace to the rules that its readers go by: check_perfetto.py [--text] FILE

Parsed by Perfetto's own definitions (PyPI `perfetto`); a name that ends in .gz is unpacked. The rules, per track and in file
order: times rise, an end comes before a begin at the same time, every slice is ended and lies within the one that it began in.
The incremental state is cleared first and needed afterwards, every number of a string was told before, a clock snapshot comes
before the first event, every track before its first event and its parent before it, every flow is on two slices or more and
begins once. --text prints the trace, one line for each packet, for comparison. Exit: 0, or 1 after one line for each fault.
"""
import gzip
import sys
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

CLEARED, NEEDED = 1, 2
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
DICTS = {
    "event_categories": "category",
    "event_names": "name",
    "debug_annotation_names": "argument",
    "debug_annotation_string_values": "value",
    "function_names": "function",
    "mapping_paths": "path",
    "source_paths": "file",
    "mappings": "mapping",
    "frames": "frame",
    "callstacks": "stack",
}


class Checker:
    def __init__(self):
        self.faults = []
        self.told = defaultdict(dict)  # what: {iid: text}
        self.tracks = {}
        self.open = defaultdict(list)  # track: [(begin time, name)]
        self.last = {}  # track: (time, type)
        self.flows = Counter()
        self.begun = Counter()
        self.clock = self.cleared = self.events = 0
        self.counts = Counter()

    def fault(self, at, text):
        self.faults.append(f"packet {at}: {text}")

    def interned(self, at, data):
        for field, what in DICTS.items():
            for item in getattr(data, field):
                if not item.iid:
                    self.fault(at, f"a {what} has the number 0")
                if item.iid in self.told[what]:
                    self.fault(at, f"{what} {item.iid} is told twice")
                self.told[what][item.iid] = self.text_of(at, what, item)

    def text_of(self, at, what, item):
        if what in ("category", "name", "argument"):
            return item.name
        if what in ("value", "function", "path", "file"):
            return item.str.decode()
        if what == "mapping":
            return "/".join(self.look(at, "path", i) for i in item.path_string_ids)
        if what == "frame":
            text = self.look(at, "function", item.function_name_id) if item.function_name_id else hex(item.rel_pc)
            if item.mapping_id:
                text += " in " + self.look(at, "mapping", item.mapping_id)
            if item.source_path_iid:
                text += f" at {self.look(at, 'file', item.source_path_iid)}:{item.line_number}"
            return text
        return ", ".join(self.look(at, "frame", i) for i in item.frame_ids)

    def look(self, at, what, iid):
        if iid not in self.told[what]:
            self.fault(at, f"{what} {iid} was not told")
            return "?"
        return self.told[what][iid]

    def value(self, at, a):
        if a.dict_entries:
            return "{" + ", ".join(self.annotation(at, d) for d in a.dict_entries) + "}"
        if a.array_values:
            return "[" + ", ".join(self.value(at, d) for d in a.array_values) + "]"
        which = a.WhichOneof("value")
        if which == "string_value_iid":
            return repr(self.look(at, "value", a.string_value_iid))
        if which == "pointer_value":
            return hex(a.pointer_value)
        return str(getattr(a, which)) if which else "{}"

    def annotation(self, at, a):
        return f"{self.look(at, 'argument', a.name_iid)}={self.value(at, a)}"

    def descriptor(self, at, t):
        if t.parent_uuid and t.parent_uuid not in self.tracks:
            self.fault(at, f"the parent of track {t.uuid} was not told before it")
        if not t.uuid:
            self.fault(at, "a track has no uuid")
        if t.HasField("process"):
            kind = f"process {t.process.pid} {t.process.process_name!r}"
        elif t.HasField("thread"):
            kind = f"thread {t.thread.pid}/{t.thread.tid} {t.thread.thread_name!r}"
        elif t.HasField("counter"):
            kind = f"counter {t.name!r} unit={t.counter.unit}{t.counter.unit_name}"
        else:
            kind = f"track {t.name!r}"
        parent = self.tracks.get(t.parent_uuid)
        self.tracks[t.uuid] = kind
        return f"{kind}" + (f" ({t.description})" if t.description else "") + (f" below {parent}" if parent else "")

    def order(self, at, ts, e, name):
        track, kind = e.track_uuid, e.type
        if track not in self.tracks:
            self.fault(at, f"track {track} was not told before its event")
        last, last_kind = self.last.get(track, (0, END))
        if ts < last:
            self.fault(at, f"time falls from {last} to {ts} on {self.tracks.get(track)}")
        stack = self.open[track]
        if kind == END:
            if not stack:
                self.fault(at, f"an end without a begin on {self.tracks.get(track)}")
            else:
                stack.pop()
                # nothing takes no time: such a call is an instant
                if ts == last and last_kind != END:
                    self.fault(at, f"a begin comes before an end at {ts} on {self.tracks.get(track)}")
        elif kind == BEGIN:
            stack.append((ts, name))
        self.last[track] = (ts, kind)

    def event(self, at, ts, e):
        self.events += 1
        self.counts[e.type] += 1
        if not self.clock:
            self.fault(at, "an event comes before the first clock snapshot")
            self.clock = 1
        name = self.look(at, "name", e.name_iid) if e.name_iid else ""
        self.order(at, ts, e, name)
        for flow in list(e.flow_ids) + list(e.terminating_flow_ids):
            self.flows[flow] += 1
            if e.type not in (BEGIN, INSTANT):
                self.fault(at, f"flow {flow} is on no slice")
        for flow in e.flow_ids:
            self.begun[flow] += 1
        words = [{BEGIN: "begin", END: "end", INSTANT: "instant", COUNTER: "count"}.get(e.type, "?")]
        words.append(f"on {self.tracks.get(e.track_uuid)}:")
        words += [self.look(at, "category", c) for c in e.category_iids]
        words += [name] if name else []
        if e.type == COUNTER:
            words.append(str(e.counter_value if e.HasField("counter_value") else e.double_counter_value))
        words += ["starts an arrow"] * len(e.flow_ids) + ["ends an arrow"] * len(e.terminating_flow_ids)
        words += [self.annotation(at, a) for a in e.debug_annotations]
        if e.callstack_iid:
            words.append("stack: " + self.look(at, "stack", e.callstack_iid))
        return " ".join(words)

    def packet(self, at, p):
        if not at and not p.sequence_flags & CLEARED:
            self.fault(at, "the first packet does not clear the incremental state")
        if at and not p.sequence_flags & (NEEDED | CLEARED):
            self.fault(at, "the packet does not say that it needs the incremental state")
        if p.sequence_flags & CLEARED:
            self.told.clear()
            self.clock_id = p.trace_packet_defaults.timestamp_clock_id
            if self.clock_id != 3:
                self.fault(at, f"times are on clock {self.clock_id}, not on CLOCK_MONOTONIC")
            return "state cleared"
        if not p.trusted_packet_sequence_id:
            self.fault(at, "the packet belongs to no sequence")
        lines = []
        if p.HasField("clock_snapshot"):
            self.clock = 1
            ids = sorted(c.clock_id for c in p.clock_snapshot.clocks)
            if ids != [1, 3, 6]:
                self.fault(at, f"the clock snapshot has the clocks {ids}")
            lines.append("clocks " + " ".join(f"{c.clock_id}={c.timestamp}" for c in p.clock_snapshot.clocks))
        if p.HasField("interned_data"):
            self.interned(at, p.interned_data)
        if p.HasField("track_descriptor"):
            lines.append(self.descriptor(at, p.track_descriptor))
        if p.HasField("track_event"):
            lines.append(f"{p.timestamp} " + self.event(at, p.timestamp, p.track_event))
        return "\n".join(lines)

    def end(self):
        for track, stack in self.open.items():
            for ts, name in stack:
                self.faults.append(f"{name} at {ts} on {self.tracks.get(track)} is never ended")
        for flow, n in self.flows.items():
            if n < 2:
                self.faults.append(f"flow {flow} is on {n} slice")
            if self.begun[flow] != 1:
                self.faults.append(f"flow {flow} begins {self.begun[flow]} times")
        if not self.events:
            self.faults.append("there is no event")


def packets(path):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    trace = pb.Trace()
    trace.ParseFromString(data)
    return trace.packet


def main(argv):
    text = "--text" in argv
    checker = Checker()
    for at, p in enumerate(packets([a for a in argv if a != "--text"][0])):
        line = checker.packet(at, p)
        if text and line:
            print(line)
    checker.end()
    for fault in checker.faults[:20]:
        print(f"check_perfetto: {fault}", file=sys.stderr)
    c = checker.counts
    if not text:
        print(f"{c[BEGIN]} slices, {c[INSTANT]} instants, {c[COUNTER]} counter values, {len(checker.flows)} arrows, "
              f"{len(checker.tracks)} tracks, {len(checker.faults)} faults")
    return 1 if checker.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
