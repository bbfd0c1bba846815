#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""nsys.py - what queries in the manner of Nsight Systems' reports and expert rules make of a database of nsys-sqlite.

    tests/export/nsys.py [WRITER]

The database is that of tests/unit/make_play.h, written by the unit test (.output/unit/test_nsys FILE), so each sum is known.
Where Nsight Systems is installed, each of its report scripts about CUDA is run on it too, unchanged: that needs no more than this
command on such a machine. Prints `ok` and `not ok` lines.
"""
import glob
import os
import sqlite3
import subprocess
import sys
import tempfile

writer = sys.argv[1] if len(sys.argv) > 1 else ".output/unit/test_nsys"
ct = os.environ.get("CUDATRACE", "./cudatrace")
failed = 0


def check(name, want, got):
    global failed
    if want == got:
        print(f"ok nsys {name}")
    else:
        failed = 1
        print(f"not ok nsys {name}: want {want}, got {got}")


# The kinds of report, each as a query of its own: name, SQL, rows.
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
OPER = """(SELECT start, end, copyKind AS oper, bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY
           UNION ALL SELECT start, end, -1, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET)"""
LABEL = "coalesce('memcpy ' || (SELECT label FROM ENUM_CUDA_MEMCPY_OPER WHERE id = oper), 'memset')"
LAUNCH = f"""CUPTI_ACTIVITY_KIND_KERNEL k JOIN {API} r
             ON r.correlationId = k.correlationId AND k.globalPid = (r.globalTid & ~0xFFFFFF)"""
reports = [
    ("cuda_api_sum", f"""
        SELECT substr(value, 1, instr(value || '_v', '_v') - 1) AS name, count(*), sum(end - start), min(end - start),
               max(end - start)
        FROM {API} JOIN StringIds ON id = nameId GROUP BY name ORDER BY 3 DESC, name""",
     [("cudaDeviceSynchronize", 1, 4000, 4000, 4000), ("cudaMemcpy", 1, 2000, 2000, 2000),
      ("cudaLaunchKernel", 2, 600, 100, 500), ("cudaLaunchKernel_ptsz", 1, 600, 600, 600), ("cuLaunchKernel", 1, 400, 400, 400),
      ("cudaMalloc", 1, 300, 300, 300), ("cudaMemcpyAsync", 1, 200, 200, 200), ("cudaMemset", 1, 100, 100, 100)]),
    ("cuda_gpu_kern_sum", """
        SELECT value, count(*), sum(end - start), avg(end - start),
               round(100.0 * sum(end - start) / (SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL), 1)
        FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName GROUP BY demangledName ORDER BY value""",
     [("axpy(float*, float const*, int)", 3, 31000, 31000 / 3, 50.8), ("void gemm<4>(float*, int)", 1, 30000, 30000.0, 49.2)]),
    ("cuda_gpu_kern_sum:base", """
        SELECT value, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName GROUP BY shortName ORDER BY 1""",
     [("axpy", 3), ("gemm", 1)]),
    ("cuda_gpu_mem_time_sum", f"""
        SELECT {LABEL} AS name, count(*), sum(end - start) FROM {OPER} GROUP BY oper ORDER BY 3 DESC, name""",
     [("memcpy Host-to-Device", 2, 3000), ("memcpy Peer-to-Peer", 1, 500), ("memcpy Unified Host-to-Device", 1, 300),
      ("memcpy Device-to-Host", 1, 100), ("memset", 1, 100)]),
    ("cuda_gpu_mem_size_sum", f"""
        SELECT {LABEL} AS name, sum(bytes), max(bytes) FROM {OPER} GROUP BY oper ORDER BY 2 DESC""",
     [("memcpy Host-to-Device", 3000000, 2000000), ("memcpy Unified Host-to-Device", 65536, 65536), ("memset", 4096, 4096),
      ("memcpy Peer-to-Peer", 4000, 4000), ("memcpy Device-to-Host", 500, 500)]),
    ("cuda_gpu_trace", """
        SELECT k.start, k.end - k.start, correlationId, gridX, blockX, registersPerThread, dynamicSharedMemory, NULL, NULL, NULL,
               gpu.name, contextId, greenContextId, streamId, value
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = demangledName
        JOIN TARGET_INFO_GPU gpu ON gpu.id = k.deviceId
        UNION ALL
        SELECT m.start, m.end - m.start, correlationId, NULL, NULL, NULL, NULL, bytes, source.label, target.label, gpu.name,
               contextId, greenContextId, streamId, '[' || oper.label || ']'
        FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN ENUM_CUDA_MEMCPY_OPER oper ON oper.id = copyKind
        JOIN ENUM_CUDA_MEM_KIND source ON source.id = srcKind JOIN ENUM_CUDA_MEM_KIND target ON target.id = dstKind
        JOIN TARGET_INFO_GPU gpu ON gpu.id = m.deviceId
        ORDER BY 1 LIMIT 4""",
     # the second process calls the other GPU 0
     [(2000, 1000, 1, 8, 256, 16, 0, None, None, None, "H100", 1, None, 7, "axpy(float*, float const*, int)"),
      (3100, 1000, 3, None, None, None, None, 1000000, "Pinned", "Device", "H200", 7, None, 13, "[Host-to-Device]"),
      (4000, 10000, 1, 8, 256, 16, 0, None, None, None, "H200", 7, None, 13, "axpy(float*, float const*, int)"),
      (5300, 2000, 4, None, None, None, None, 2000000, "Pageable", "Device", "H200", 7, None, 13, "[Host-to-Device]")]),
    # API, queue (only where the kernel began after the call), kernel; of both processes with their own number 1
    ("cuda_kern_exec_sum", f"""
        SELECT k.globalPid >> 24, api.value, kernel.value, count(*), sum(k.start >= r.end), sum(r.end - r.start),
               sum(CASE WHEN k.start >= r.end THEN k.start - r.end END), sum(k.end - k.start)
        FROM {LAUNCH} JOIN StringIds api ON api.id = r.nameId JOIN StringIds kernel ON kernel.id = k.shortName
        GROUP BY 1, 2, 3 ORDER BY 1, 2""",
     [(100, "cuLaunchKernel", "gemm", 1, 1, 400, 28600, 30000), (100, "cudaLaunchKernel_ptsz_v7000", "axpy", 1, 1, 600, 12400, 20000),
      (100, "cudaLaunchKernel_v7000", "axpy", 1, 1, 500, 2500, 10000), (200, "cudaLaunchKernel_v7000", "axpy", 1, 1, 100, 900, 1000)]),
    # an asynchronous copy of pageable memory
    ("rule cuda_memcpy_async", f"""
        SELECT value, m.bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY m
        JOIN {API} r ON r.correlationId = m.correlationId AND m.globalPid = (r.globalTid & ~0xFFFFFF)
        JOIN StringIds s ON s.id = r.nameId
        WHERE value GLOB 'cudaMemcpy*Async*' AND (srcKind = 0 OR dstKind = 0)""",
     [("cudaMemcpyAsync_v3020", 2000000)]),
    # a synchronous one, but for small ones to the device
    ("rule cuda_memcpy_sync", f"""
        SELECT value, m.bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY m
        JOIN {API} r ON r.correlationId = m.correlationId AND m.globalPid = (r.globalTid & ~0xFFFFFF)
        JOIN StringIds s ON s.id = r.nameId
        WHERE value GLOB 'cudaMemcpy*' AND value NOT GLOB '*Async*' AND NOT (copyKind = 1 AND bytes <= 64000)""",
     [("cudaMemcpy_v3020", 1000000)]),
    ("rule cuda_memset_sync", f"""
        SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET m
        JOIN {API} r ON r.correlationId = m.correlationId JOIN StringIds s ON s.id = r.nameId
        WHERE s.value GLOB 'cudaMemset*' AND s.value NOT GLOB '*Async*' AND memKind IN (1, 4)""",
     [(0,)]),
    ("rule cuda_api_sync", f"""
        SELECT value, end - start FROM {API} JOIN StringIds ON id = nameId WHERE value GLOB 'cu*Synchronize*'""",
     [("cudaDeviceSynchronize_v3020", 4000)]),
    # the longest time that a device of a process had nothing to do
    ("rule gpu_gaps", """
        WITH work AS (SELECT start, end, globalPid, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL
                      UNION ALL SELECT start, end, globalPid, deviceId FROM CUPTI_ACTIVITY_KIND_MEMCPY
                      UNION ALL SELECT start, end, globalPid, deviceId FROM CUPTI_ACTIVITY_KIND_MEMSET),
             gaps AS (SELECT start - max(end) OVER (PARTITION BY globalPid, deviceId ORDER BY start
                                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS gap FROM work)
        SELECT max(gap) FROM gaps""",
     [(4000,)]),
    # a range's name is that of its domain and its own
    ("nvtx_pushpop_sum", """
        WITH domains AS (SELECT min(start), domainId AS id, globalTid, text AS name FROM NVTX_EVENTS WHERE eventType = 75
                         GROUP BY 2, 3)
        SELECT coalesce(d.name || ':', '') || value, count(*), sum(n.end - n.start)
        FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId
             LEFT JOIN domains d ON d.id = n.domainId AND d.globalTid >> 24 = n.globalTid >> 24
        WHERE n.eventType = 59 GROUP BY 1""",
     [("training:step", 1, 4400)]),
    ("callchains", f"""
        SELECT r.correlationId, group_concat(value, ' < ') FROM {API} r JOIN CUDA_CALLCHAINS c ON c.id = r.callchainId
        JOIN StringIds s ON s.id = symbol GROUP BY r.rowid""",
     [(1, "launch < main"), (2, "launch < main")]),
    ("thread names", """
        SELECT value, globalTid >> 24, globalTid & 0xFFFFFF FROM ThreadNames JOIN StringIds ON id = nameId ORDER BY 2""",
     [("trainer", 100, 100), ("other", 200, 200)]),
    ("memory in use", """
        SELECT start, sum(CASE memoryOperationType WHEN 0 THEN bytes ELSE -bytes END) OVER (ORDER BY start)
        FROM CUDA_GPU_MEMORY_USAGE_EVENTS""",
     [(500, 1 << 20), (80000, 0)]),
]

# What the least of nsys's readers expect to find.
MINIMUM = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": """start end deviceId contextId greenContextId streamId correlationId globalPid demangledName
        shortName mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory
        dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId
        sharedMemoryLimitConfig""",
    "CUPTI_ACTIVITY_KIND_MEMCPY": """start end deviceId contextId greenContextId streamId correlationId globalPid bytes copyKind
        deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId
        virtualAddress""",
    "CUPTI_ACTIVITY_KIND_MEMSET": """start end deviceId contextId greenContextId streamId correlationId globalPid value bytes
        graphNodeId memKind""",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": """start end deviceId contextId greenContextId streamId correlationId globalPid
        deprecatedSyncType syncType eventId eventSyncId""",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": """start end deviceId contextId greenContextId streamId correlationId globalPid graphId
        graphExecId""",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start end eventClass globalTid correlationId nameId overheadType",
    "StringIds": "id value",
    "ThreadNames": "nameId priority globalTid",
    "ENUM_CUDA_MEMCPY_OPER": "id name label",
    "ENUM_CUDA_MEM_KIND": "id name label",
}


def their_reports(path):
    """NVIDIA's scripts take the file as their first argument, write CSV, and exit with 0 or, without data, another status."""
    places = ["/usr/local/cuda*/nsight-systems*/*/reports", "/opt/nvidia/nsight-systems*/*/*/reports",
              "/usr/local/cuda*/nsight-systems*/*/*/reports", "/usr/lib/nsight-systems/*/reports"]
    scripts = sorted(s for p in places for s in glob.glob(p + "/cuda_*.py"))
    for script in scripts:
        run = subprocess.run([sys.executable, script, path], capture_output=True, text=True, timeout=240)
        check(os.path.basename(script), (0, True), (run.returncode, run.stdout.count("\n") > 1))


def golden(folder):
    """Every row of a stored recording: two processes, two devices, graphs, losses."""
    path, name = os.path.join(folder, "two.sqlite"), "tests/golden/nsys.txt"
    subprocess.run([ct, "replay", "-k", "--format", "nsys-sqlite", "-o", path, "tests/traces/two.ctrace"], check=True,
                   stderr=subprocess.DEVNULL, timeout=240)
    two = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    lines = []
    for (table,) in two.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall():
        columns = [row[1] for row in two.execute(f"PRAGMA table_info({table})")]
        lines.append(f"== {table}")
        for row in two.execute(f"SELECT * FROM {table}"):
            # of a row what is there; not what is this version's or this place's
            if row[0] != "EXPORT_PRODUCT_VERSION":
                lines.append(" ".join(f"{c}={v}" for c, v in zip(columns, row) if v is not None and c != "localTime"))
    two.close()
    got = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        open(name, "w", encoding="utf-8").write(got)
    want = open(name, encoding="utf-8").read()
    differ = [pair for pair in zip(want.splitlines(), got.splitlines()) if pair[0] != pair[1]]
    check("a stored recording", (want.count("\n"), []), (got.count("\n"), differ[:2]))


def live(folder):
    """Traced now: as many rows as calls; and what stands in the file stays until the new one is whole."""
    path = os.path.join(folder, "live.sqlite")
    trace = [ct, "--format", "nsys-sqlite", "-o", path, "--", ".output/cases/calls", "mix"]
    run = subprocess.run(trace + ["300", "20", "7"], capture_output=True, text=True, timeout=240)
    calls = int(run.stderr.split("cudatrace: ")[-1].split(" calls")[0])
    live_db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    check("live: a row for each call", calls, live_db.execute(f"SELECT count(*) FROM {API}").fetchone()[0])
    check("live: by name", [("cudaFree_v3020", 301), ("cudaMalloc_v3020", 301), ("cudaMemcpy_v3020", 20), ("cudaMemset_v3020", 7)],
          live_db.execute(f"""SELECT value, count(*) FROM {API} JOIN StringIds ON id = nameId
                              WHERE value IN ('cudaFree_v3020', 'cudaMalloc_v3020', 'cudaMemcpy_v3020', 'cudaMemset_v3020')
                              GROUP BY value""").fetchall())
    check("live: numbers of calls", (1, calls, calls), live_db.execute(
        f"SELECT min(correlationId), max(correlationId), count(DISTINCT correlationId) FROM {API}").fetchone())
    check("live: the process", [("calls",)], live_db.execute("SELECT name FROM PROCESSES").fetchall())
    live_db.close()
    before = open(path, "rb").read()
    waiting = subprocess.Popen([ct, "--format", "nsys-sqlite", "-o", path, "--", ".output/cases/calls", "--wait", "mix", "1", "0", "0"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    check("killed: it had begun", True, waiting.stdout.readline().startswith("ready"))
    waiting.kill()
    waiting.wait(60)
    waiting.stdin.close()
    check("killed: the file before stays", before, open(path, "rb").read())


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "play.sqlite")
    subprocess.run([writer, path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240)
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for report, sql, want in reports:
        check(report, want, db.execute(sql).fetchall())
    for table, columns in MINIMUM.items():
        got = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        check(f"columns of {table}", columns.split(), got[:len(columns.split())])
    texts = db.execute("SELECT count(*), count(DISTINCT value) FROM StringIds").fetchone()
    check("each text once", texts[0], texts[1])
    db.close()
    their_reports(path)
    golden(folder)
    if os.geteuid() == 0:
        live(folder)
    else:
        print("skip nsys live: tracing needs root")
sys.exit(failed)
