#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""otlp.py - spans as others read them, and their way to a collector that misbehaves. Needs root, for the tracing.

    tests/export/otlp.py

All payloads are parsed by opentelemetry-proto (PyPI; fetched into .output/pypi, else skipped) or as JSON. The collector here
refuses connections, answers late, not at all, with errors, in part; each time the spans that it took and what cudatrace says are
compared exactly. Nothing is asserted about times but that a wait that was asked for was kept. Prints `ok`, `not ok` and `skip`
lines.
"""
import glob
import gzip
import http.server
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from machine import free_port  # noqa: E402

CT = os.environ.get("CUDATRACE", "./cudatrace")
CALLS = ".output/cases/calls"
PYPI = ".output/pypi"
failed = 0


def check(name, want, got):
    global failed
    if want == got:
        print(f"ok otlp {name}")
    else:
        failed = 1
        print(f"not ok otlp {name}: want {want}, got {got}")


def fetch():
    sys.path.insert(0, PYPI)
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2 as service
    except ImportError:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", PYPI, "opentelemetry-proto==1.45.2"],
                       capture_output=True, timeout=120, check=False)
        try:
            import importlib
            importlib.invalidate_caches()
            import opentelemetry.proto.collector.trace.v1.trace_service_pb2 as service
        except ImportError:
            return None
    return service


service = fetch()


# ---- a request as plain data: the resource, and spans ------------------------------------------------------

def of_any(value):
    kind = value.WhichOneof("value")
    return getattr(value, kind)


def known(*messages):
    """All bytes were of fields that the definitions have."""
    from google.protobuf import unknown_fields
    for message in messages:
        assert not len(unknown_fields.UnknownFieldSet(message)), message


def of_protobuf(body):
    request = service.ExportTraceServiceRequest.FromString(body)
    known(request)
    out = []
    for rs in request.resource_spans:
        resource = {a.key: of_any(a.value) for a in rs.resource.attributes}
        for ss in rs.scope_spans:
            for s in ss.spans:
                known(rs, rs.resource, ss, ss.scope, s, s.status, *s.attributes, *s.links)
                assert len(s.trace_id) == 16 and len(s.span_id) == 8 and len(s.parent_span_id) in (0, 8)
                out.append({"resource": resource, "scope": (ss.scope.name, ss.scope.version), "trace": s.trace_id.hex(),
                            "span": s.span_id.hex(), "parent": s.parent_span_id.hex(), "name": s.name, "kind": s.kind,
                            "start": s.start_time_unix_nano, "end": s.end_time_unix_nano,
                            "attributes": {a.key: of_any(a.value) for a in s.attributes},
                            "links": [(k.trace_id.hex(), k.span_id.hex()) for k in s.links],
                            "status": (s.status.code, s.status.message)})
    return out


def of_json_any(value):
    (kind, v), = value.items()
    if kind == "intValue":
        assert isinstance(v, str)
        return int(v)
    return v


def of_json(body):
    out = []
    for rs in json.loads(body)["resourceSpans"]:
        resource = {a["key"]: of_json_any(a["value"]) for a in rs["resource"]["attributes"]}
        for ss in rs["scopeSpans"]:
            for s in ss["spans"]:
                assert re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"])
                assert isinstance(s["startTimeUnixNano"], str) and isinstance(s["kind"], int)
                status = s.get("status", {})
                out.append({"resource": resource, "scope": (ss["scope"]["name"], ss["scope"]["version"]), "trace": s["traceId"],
                            "span": s["spanId"], "parent": s.get("parentSpanId", ""), "name": s["name"], "kind": s["kind"],
                            "start": int(s["startTimeUnixNano"]), "end": int(s["endTimeUnixNano"]),
                            "attributes": {a["key"]: of_json_any(a["value"]) for a in s["attributes"]},
                            "links": [(k["traceId"], k["spanId"]) for k in s.get("links", [])],
                            "status": (status.get("code", 0), status.get("message", ""))})
    return out


def tree_faults(spans):
    """What is wrong with a set of spans that came from one run."""
    faults = []
    by_id = {}
    for s in spans:
        if (s["trace"], s["span"]) in by_id:
            faults.append(f"{s['name']} has the id of another")
        by_id[s["trace"], s["span"]] = s
    for s in spans:
        if s["parent"] and (s["trace"], s["parent"]) not in by_id:
            faults.append(f"the parent of {s['name']} is not in its trace")
        if s["end"] < s["start"]:
            faults.append(f"{s['name']} ends before it begins")
        faults += [f"{s['name']} has a link to nothing" for link in s["links"] if link not in by_id]
    return faults


# ---- a collector -------------------------------------------------------------------------------------------

class Collector:
    """behave(n) says what becomes of the nth request: None: accepted; (status, headers, body); or a callable."""

    def __init__(self, behave=lambda n: None, port=0):
        self.spans, self.requests, self.times, self.sizes, self.lock = [], [], [], [], threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.lock:
                    n = len(outer.requests)
                    outer.requests.append((self.path, dict(self.headers)))
                    outer.times.append(time.monotonic())
                answer = behave(n)
                if callable(answer):
                    answer = answer(self)
                    if answer == "gone":
                        return
                status, headers, reply = answer or (200, {}, b"")
                if status == 200:
                    if self.headers.get("Content-Encoding") == "gzip":
                        body = gzip.decompress(body)
                    is_json = self.headers["Content-Type"] == "application/json"
                    spans = of_json(body) if is_json else of_protobuf(body)
                    with outer.lock:
                        outer.spans += spans
                        outer.sizes.append(len(outer.spans))
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self):
        with self.lock:
            return len(self.spans)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Trace:
    """cudatrace on a program that makes its calls and then waits, so that a test can wait for their spans."""

    def __init__(self, port, calls, env=None, args=()):
        self.err = tempfile.TemporaryFile("w+")
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        self.proc = subprocess.Popen(
            [CT, "--otlp", f"http://127.0.0.1:{port}", "--otlp-min", "0s", "-o", "/dev/null", *args, "--", CALLS, "--wait", "mix",
             *map(str, calls)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err, text=True, env={**clean, **(env or {})})
        self.line("ready")

    def line(self, begin):
        readable, _, _ = select.select([self.proc.stdout], [], [], 60)
        text = self.proc.stdout.readline() if readable else ""
        assert text.startswith(begin), (text, self.text())

    def go(self):
        self.proc.stdin.write("\n")
        self.proc.stdin.flush()

    def text(self):
        self.err.seek(0)
        return self.err.read()

    def end(self):
        """Lets the program end. Returns (calls, what is said of spans, status)."""
        try:
            self.proc.stdin.write("\n")
            self.proc.stdin.close()
        except BrokenPipeError:
            pass
        status = self.proc.wait(60)
        text = self.text()
        calls = int(re.search(r"(\d+) calls?, 0 lost", text).group(1))
        said = re.search(r"cudatrace: otlp: (.*)", text).group(1)
        return calls, said, status


def wait_for(what, condition):
    until = time.monotonic() + 120
    while not condition():
        if time.monotonic() > until:
            check(f"waited for {what}", True, False)
            return
        time.sleep(0.02)


# ---- the tests ---------------------------------------------------------------------------------------------

def both_encodings(folder):
    prefix = os.path.join(folder, "play")
    subprocess.run([".output/unit/test_otlp", prefix], check=True, stdout=subprocess.DEVNULL, timeout=240)
    protobuf, lines = [], []
    for name in sorted(glob.glob(prefix + ".*.pb")):
        protobuf += of_protobuf(open(name, "rb").read())
    for line in open(prefix + ".jsonl", encoding="utf-8"):
        lines += of_json(line)
    check("protobuf and JSON say the same", lines, protobuf)
    check("spans of the play", 23, len(protobuf))
    check("tree of the play", [], tree_faults(protobuf))
    gemm, = [s for s in protobuf if s["name"] == "gemm<4>(float*, int)"]
    check("a kernel's attributes", {
        "trace_source": "cudatrace", "cupti_type": "activity", "correlation_id": 6, "device_id": 0,
        "gpu_uuid": "GPU-01010101-0101-0101-0101-010101010101", "context_id": 7, "stream_id": 13,
        "graph_id": 5, "graph_node_id": 1 << 40, "grid_dim": "[4,1,1]", "block_dim": "[64,1,1]", "shared_mem": 2048,
        "registers_per_thread": 16, "local_memory_per_thread": 0, "name": "void gemm<4>(float*, int)",
        "symbol_name": "_Z4gemmILi4EEvPfi"}, gemm["attributes"])
    check("a process's resource", {
        "service.name": "trainer", "process.pid": 100, "process.executable.name": "train", "host.name": "node1",
        "process.executable.path": "/opt/bin/train", "container.id": "c0ffee"}, gemm["resource"])


def golden():
    """A stored recording: what was recorded says who it is, not this machine."""
    name = "tests/golden/otlp.jsonl"
    run = subprocess.run([CT, "replay", "--format", "otlp-json", "--otlp-min", "20us", "tests/traces/two.ctrace"], check=True,
                         capture_output=True, text=True, timeout=240,
                         env={k: v for k, v in os.environ.items() if not k.startswith("OTEL_")})
    got = re.sub(r'"version":"[^"]*"', '"version":"-"', run.stdout)
    if os.environ.get("UPDATE_GOLDEN"):
        open(name, "w", encoding="utf-8").write(got)
    check("a stored recording", True, got == open(name, encoding="utf-8").read())
    spans = [s for line in got.splitlines() for s in of_json(line)]
    check("tree of a stored recording", [], tree_faults(spans))
    check("its host", {"node-a"}, {s["resource"].get("host.name") for s in spans})


def pushed(name, env, args=()):
    c = Collector()
    t = Trace(c.port, (700, 30, 5), env, args)
    t.go()
    wait_for("the spans of all calls", lambda: c.count() >= 1436 - 1)
    calls, said, status = t.end()
    c.close()
    check(f"{name}: each call and the root", (calls + 1, f"{calls + 1} spans sent", 0), (c.count(), said, status))
    check(f"{name}: tree", [], tree_faults(c.spans))
    check(f"{name}: calls by name", (701, 30), tuple(sum(s["name"] == n for s in c.spans) for n in ("cudaMalloc", "cudaMemcpy")))
    return c


def retried():
    late = Collector(lambda n: (503, {"Retry-After": "2"}, b"") if n == 0 else (429, {}, b"") if n == 1 else None)
    t = Trace(late.port, (20, 0, 0))
    t.go()
    wait_for("the spans after errors", lambda: late.count() >= 40)
    calls, said, status = t.end()
    late.close()
    check("503, then 429: all arrive, once", (calls + 1, f"{calls + 1} spans sent", 0), (late.count(), said, status))
    check("503: Retry-After is kept", True, late.times[1] - late.times[0] >= 2)


def refused_connection():
    port = free_port()
    t = Trace(port, (20, 0, 0))
    t.go()
    wait_for("a failed try", lambda: "no connection" in t.text())
    c = Collector(port=port)
    wait_for("the spans after the collector came", lambda: c.count() >= 40)
    calls, said, status = t.end()
    c.close()
    check("collector started late: all arrive", (calls + 1, f"{calls + 1} spans sent", 0), (c.count(), said, status))


def in_part():
    answer = service.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 3
    answer.partial_success.error_message = "too long"
    c = Collector(lambda n: (200, {}, answer.SerializeToString()))
    t = Trace(c.port, (20, 0, 0))
    t.go()
    wait_for("the spans", lambda: c.count() >= 40)
    calls, said, status = t.end()
    c.close()
    # the root, and what the program does at its end, come in the last request: of one span one is rejected, not three
    sizes = [b - a for a, b in zip([0] + c.sizes, c.sizes)]
    rejected = sum(min(3, n) for n in sizes)
    check("partial success", (f"{calls + 1 - rejected} spans sent, {rejected} rejected by the collector; "
                              "last: 3 spans rejected by the collector: too long", 0), (said, status))


def turned_down():
    c = Collector(lambda n: (400, {}, b"no"))
    t = Trace(c.port, (20, 0, 0))
    t.go()
    wait_for("a request", lambda: c.requests)
    calls, said, status = t.end()
    c.close()
    check("400: dropped, not tried again",
          (f"0 spans sent, {calls + 1} dropped: the collector refused them; last: answered with status 400", 0, 0),
          (said, status, c.count()))


def slow():
    def later(_handler):
        time.sleep(0.3)
        return 200, {}, b""
    c = Collector(lambda n: later)
    t = Trace(c.port, (3000, 0, 0))
    t.go()
    wait_for("the spans of a slow collector", lambda: c.count() >= 6000)
    calls, said, status = t.end()
    c.close()
    check("slow collector: all arrive", (calls + 1, f"{calls + 1} spans sent", 0), (c.count(), said, status))


def closes():
    def hang_up(handler):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        return "gone"
    c = Collector(lambda n: hang_up if n < 2 else None)
    t = Trace(c.port, (20, 0, 0))
    t.go()
    wait_for("the spans after closed connections", lambda: c.count() >= 40)
    calls, said, status = t.end()
    c.close()
    check("closed connections: all arrive", (calls + 1, f"{calls + 1} spans sent", 0), (c.count(), said, status))


def silent():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(16)
        t = Trace(s.getsockname()[1], (20, 0, 0))
        t.go()
        calls, said, status = t.end()  # in a minute, or an exception
    check("a collector that never answers: tracing ends",
          (f"0 spans sent, {calls + 1} dropped: not delivered", 0), (said.split(";")[0], status))


def rubbish_answers():
    noise = bytes(range(256)) * 8
    c = Collector(lambda n: (200, {}, noise))
    t = Trace(c.port, (20, 0, 0))
    t.go()
    wait_for("the spans", lambda: c.count() >= 40)
    calls, said, status = t.end()
    c.close()
    check("an answer of rubbish", (calls + 1, True, 0), (c.count(), said.startswith(f"{calls + 1} spans sent"), status))


def live():
    pushed("protobuf", {})
    c = pushed("JSON, gzip, headers", {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=blue%20team", "OTEL_SERVICE_NAME": "training",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test"})
    path, headers = c.requests[0]
    check("path and headers", ("/v1/traces", "blue team", "gzip", "application/json", True),
          (path, headers.get("x-tenant"), headers.get("Content-Encoding"), headers.get("Content-Type"),
           headers.get("User-Agent", "").startswith("cudatrace/")))
    resource = c.spans[0]["resource"]
    check("resource", ("training", "test", "calls", socket.gethostname()),
          tuple(resource.get(k) for k in ("service.name", "deployment.environment", "process.executable.name", "host.name")))
    for test in (retried, refused_connection, in_part, turned_down, slow, closes, rubbish_answers, silent):
        test()


# ---- a recording, which waits ------------------------------------------------------------------------------

STORED = "tests/traces/calls.ctrace"


class Replay:
    """cudatrace that hands over a recording, in JSON, so that no module is needed to read it."""

    def __init__(self, port, args=(), trace=STORED):
        self.err = tempfile.TemporaryFile("w+")
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        self.proc = subprocess.Popen(
            [CT, "replay", "--otlp", f"http://127.0.0.1:{port}", "--otlp-min", "0s", "-o", "/dev/null", *args, trace],
            stderr=self.err, env={**clean, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})

    def text(self):
        self.err.seek(0)
        return self.err.read()

    def end(self):
        status = self.proc.wait(120)
        return re.search(r"cudatrace: otlp: (.*)", self.text()).group(1), status


def stored():
    c = Collector()
    said, status = Replay(c.port).end()
    c.close()
    n = c.count()
    check("stored: all arrive", (True, f"{n} spans sent", 0), (n > 10, said, status))

    c = Collector(lambda i: (503, {"Retry-After": "1"}, b"") if i < 2 else None)
    said, status = Replay(c.port, ["--strict"]).end()
    c.close()
    check("stored, 503 twice: all arrive, once", (n, f"{n} spans sent", 0), (c.count(), said, status))
    check("stored, 503 twice: Retry-After is kept", True, c.times[1] - c.times[0] >= 1 and c.times[2] - c.times[1] >= 1)

    port = free_port()
    r = Replay(port)
    wait_for("a failed try", lambda: "no connection" in r.text())
    time.sleep(3)  # longer than what is live has at its end
    c = Collector(port=port)
    said, status = r.end()
    c.close()
    check("stored, a collector that starts late: all arrive", (n, f"{n} spans sent", 0), (c.count(), said, status))

    r = Replay(free_port(), ["--otlp-wait", "1"])
    said, status = r.end()
    check("stored, no collector: a status and a sentence", (f"0 spans sent, {n} dropped: not delivered", 1, True),
          (said.split(";")[0], status, f"error: {n} spans of the recording did not reach the collector" in r.text()))

    c = Collector(lambda i: (400, {}, b""))
    said, status = Replay(c.port).end()
    c.close()
    check("stored, refused: a status", (f"0 spans sent, {n} dropped: the collector refused them", 1), (said.split(";")[0], status))

    # a signal ends the waiting
    r = Replay(free_port(), ["--otlp-wait", "1h"])
    wait_for("a failed try", lambda: "no connection" in r.text())
    r.proc.send_signal(2)
    said, status = r.end()
    check("stored, interrupted: not waited for", (f"0 spans sent, {n} dropped: not delivered", 1), (said.split(";")[0], status))


def stored_dies(folder):
    """The collector dies between two requests and comes back."""
    path = os.path.join(folder, "r.ctrace")
    subprocess.run([CT, "record", "-o", path, "--", CALLS, "mix", "4000", "0", "0"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=240)
    whole = Collector()
    said, status = Replay(whole.port, trace=path).end()
    whole.close()
    dead = threading.Event()

    def die(handler):
        if not dead.is_set():
            dead.set()
            threading.Thread(target=first.close, daemon=True).start()
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        return "gone"

    first = Collector(lambda i: die if i >= 3 else None)
    r = Replay(first.port, trace=path)
    dead.wait(60)
    wait_for("a failed try", lambda: "no connection" in r.text())
    time.sleep(3)
    second = Collector(port=first.port)
    said, status = r.end()
    second.close()
    check("stored, a collector that dies: all arrive, once", (whole.count(), f"{whole.count()} spans sent", 0),
          (first.count() + second.count(), said, status))
    check("stored, a collector that dies: in both", True, first.count() > 0 and second.count() > 0)


def live_lost():
    run = subprocess.run([CT, "--strict", "--otlp", f"http://127.0.0.1:{free_port()}", "--otlp-min", "0s", "--otlp-wait", "0", "-o",
                          "/dev/null", "--", CALLS, "mix", "3", "0", "0"], capture_output=True, text=True, timeout=240)
    check("live, no collector: --strict has its status", (3, True), (run.returncode, "dropped: not delivered" in run.stderr))


def main():
    stored()
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as folder:
            stored_dies(folder)
        live_lost()
    if not service:
        print("skip otlp: opentelemetry-proto cannot be fetched from PyPI")
        return
    with tempfile.TemporaryDirectory() as folder:
        both_encodings(folder)
    golden()
    if os.geteuid() != 0:
        print("skip otlp pushed spans: tracing needs root")
        return
    live()


main()
sys.exit(failed)
