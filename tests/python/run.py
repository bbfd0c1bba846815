#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py - the Python package, with the system's Python, as an ordinary user on the stand-in: tests/python/run.py

Needs make cudatrace standin; no third-party package. Run as root it copies what it needs to a folder that everybody may read and becomes
another user, as whom everything is recorded by --source=hooks. pytest, pandas, pyarrow and duckdb are used where they are installed; where they are
not, the message about it is tested. Prints `ok`, `not ok` and `skip` lines.
"""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
ANOTHER = 'another tracer has'
OTHERS = os.environ.get('TRACER_OF_OTHERS')  # one that is there; the user as whom we record cannot look for it
failed = 0


def check(name, want, got):
    global failed
    if want == got:
        print('ok ' + name)
    else:
        failed = 1
        print('not ok %s: want %r, got %r' % (name, want, got))
    sys.stdout.flush()


def message(function, *args, kind=Exception, **named):
    """What a call that must fail says."""
    try:
        function(*args, **named)
    except kind as error:
        return str(error)
    return 'nothing was raised'


def has(name, part, text):
    check(name, True, part in text or text)


def reading(cudatrace, traces):
    two = os.path.join(traces, 'two.ctrace')
    t = cudatrace.read(two)
    check('read-tables', {'calls': 36, 'kernels': 20, 'copies': 8, 'sets': 4, 'ranges': 8, 'processes': 2, 'devices': 4},
          {word: len(getattr(t, word)) for word in ('calls', 'kernels', 'copies', 'sets', 'ranges', 'processes', 'devices')})
    check('read-lost', (5, 'finished'), (t.lost, t.end['reason']))
    call = t.calls[0]
    check('read-call', ('cudaMalloc', 250000, 2097152, 0, 'cudaSuccess', 101),
          (call.api, call.dur_ns, call.args['size'], call.ret, call.ret_name, call.pid))
    kernel = t.kernels[0]
    check('read-kernel', ([132, 4, 1], 13, 49152, call.ts_ns < kernel.ts_ns), (kernel.grid, kernel.stream, kernel.dynamic_shared, True))
    check('read-cause', ['cudaLaunchKernel'], [c.api for c in t.calls if (c.pid, c.correlation) == (kernel.pid, kernel.correlation)])
    check('read-count', (2, 2, 36, 0), (t.calls.count('cudaMalloc'), t.calls.count('cudaMallo*'), t.calls.count(), t.calls.count('cudamalloc')))
    check('read-record-count', 1, t.calls.count(call))
    check('read-slice', [c.api for c in t.calls][2:4], [c.api for c in t.calls[2:4]])
    check('read-columns', (20, True), (len(t.kernels.columns()['dur_ns']), 'raw' not in t.kernels.columns()))
    check('read-types', ('ns', 'bytes', int, 'from start to end on the device'),
          (t.kernels.types['dur_ns'].unit, t.copies.types['bytes'].unit, t.copies.types['bytes'].type, t.sets.types['dur_ns'].about))
    check('read-help', True, 'dynamic_shared (bytes): shared memory of a block that the launch asks for' in cudatrace.Kernel.__doc__)
    check('read-column', [c.dur_ns for c in t.calls], t.calls.column('dur_ns'))
    has('read-no-column', 'Call has no column size, but ts_ns', message(t.calls.column, 'size', kind=KeyError))
    page = t.kernels._repr_html_()
    check('notebook-table', (20, True, True), (page.count('<tr><td>'), '>dur_ns [ns]</th>' in page, '&lt;float&gt;' in page or '(' in page))
    check('notebook-cut', True, '<p>20 of 36 rows</p>' in t.calls._repr_html_())
    check('notebook-trace', (True, True), ('36 calls, 20 kernels, 5 lost' in t._repr_html_(), 'cudaMalloc' in t._repr_html_()))
    check('read-events', [3, 2], [line.raw['count'] for line in t.events('lost')])
    killed = cudatrace.read(os.path.join(traces, 'killed.ctrace'))
    check('read-killed', (12, 'cut off', True), (len(killed.calls), killed.end['reason'], 'has no end' in killed.messages))
    has('read-missing', 'No such file', message(cudatrace.read, '/proc/nonexistent', kind=cudatrace.CudatraceError))
    has('read-no-recording', 'error', message(cudatrace.read, __file__, kind=cudatrace.CudatraceError))
    page = t.timeline()
    check('timeline', (True, True), ('<html' in page.html, page._repr_html_().startswith('<iframe sandbox')))
    has('flame', '<html', t.flame(weight='gpu').html)
    check('flame-notebook', True, t.flame()._repr_html_().startswith('<iframe sandbox'))
    has('stat', 'cudaMalloc', t.stat())
    check('stat-notebook', (True, True), (t.stat()._repr_html_().startswith('<pre'), isinstance(t.stat(), str)))
    other = cudatrace.compare(os.path.join(traces, 'calls.ctrace'), t, fail_if=['total_api_calls!=+0'])
    check('compare-changed', (True, 36), (other.regressed, other.metrics['total_api_calls']['new']))
    check('compare-same', False, cudatrace.compare(t, two, fail_if=['total_api_calls!=+0']).regressed)
    has('compare-wrong', 'nonsense', message(cudatrace.compare, t, t, fail_if=['nonsense>1'], kind=cudatrace.CudatraceError))
    for name, method, rows in (('pandas', t.kernels.to_pandas, len), ('pyarrow', t.calls.to_arrow, lambda table: table.num_rows),
                               ('polars', t.calls.to_polars, len)):
        try:
            __import__(name)
        except ImportError:
            has('no-' + name, 'needs %s, which is not installed' % name, message(method, kind=ImportError))
        else:
            check(name, 20 if name == 'pandas' else 36, rows(method()))
            if name == 'pyarrow':
                check('pyarrow-units', b'ns', t.calls.to_arrow().schema.field('dur_ns').metadata[b'unit'])


def columns(cudatrace, folder):
    two = os.path.join(folder, 'traces', 'two.ctrace')
    out = os.path.join(folder, 'home', 'two.parquet')
    t = cudatrace.read(two)
    names = ['calls', 'collectives', 'copies', 'devices', 'kernels', 'operators', 'others', 'processes', 'ranges', 'sets', 'stacks']
    t.to_parquet(out)
    check('parquet-files', [name + '.parquet' for name in names], sorted(os.listdir(out)))
    has('parquet-there', 'is there already', message(t.to_parquet, out, kind=FileExistsError))
    for wrong in ('/proc/nonexistent', __file__):
        has('parquet-wrong', 'error: ', message(cudatrace.to_parquet, wrong, out + '2', kind=cudatrace.CudatraceError))
    check('parquet-nothing-left', ['two.parquet'], os.listdir(os.path.dirname(out)))
    try:
        import pyarrow.parquet
    except ImportError:
        has('no-pyarrow-columns', 'read_columns() needs pyarrow', message(cudatrace.read_columns, two, kind=ImportError))
        print('skip columns: pyarrow is not installed')
        return
    tables = t.tables()
    want = {'calls': 36, 'kernels': 20, 'copies': 8, 'sets': 4, 'ranges': 8, 'collectives': 0, 'operators': 0, 'processes': 6, 'devices': 4,
            'stacks': 5, 'others': 23}
    check('columns-rows', want, {name: table.num_rows for name, table in tables.items()})
    check('columns-calls', [(c.api, c.ts_ns, c.dur_ns, c.pid, c.tid) for c in t.calls],
          list(zip(*(tables['calls'][name].to_pylist() for name in ('name', 'start_ns', 'duration_ns', 'pid', 'tid')))))
    check('columns-arguments', [int(c.args['dst'], 16) if 'dst' in c.args else None for c in t.calls], tables['calls']['arg_dst'].to_pylist())
    check('columns-version', b'3', tables['calls'].schema.metadata[b'cudatrace.schema'])

    def name_of(kernel):    # a column has it without the type that it returns
        return kernel.kernel[5:] if kernel.kernel.startswith('void ') else kernel.kernel
    check('columns-kernels', [(name_of(k), k.dur_ns, k.stream) for k in t.kernels],
          list(zip(*(tables['kernels'][name].to_pylist() for name in ('name', 'duration_ns', 'stream')))))
    check('columns-processes', [['/usr/bin/python3.11', 'python3 train.py --steps=2']] * 2,
          [[row['executable'], row['command_line']] for row in tables['processes'].to_pylist() if row['type'] == 'info'])
    check('columns-copies', [c.bytes for c in t.copies], tables['copies']['size_bytes'].to_pylist())
    for wrong in ('/proc/nonexistent', __file__):
        has('columns-wrong', 'error: ', message(cudatrace.read_columns, wrong, kind=cudatrace.CudatraceError))
    try:
        import duckdb
    except ImportError:
        print('skip parquet-duckdb: duckdb is not installed')
    else:
        rows = duckdb.sql("select name, count(*), sum(duration_ns) from '%s/kernels.parquet' group by name" % out).fetchall()
        sums = {}
        for k in t.kernels:
            n, ns = sums.get(name_of(k), (0, 0))
            sums[name_of(k)] = (n + 1, ns + k.dur_ns)
        check('parquet-duckdb', sums, {name: (n, int(ns)) for name, n, ns in rows})


def recording(cudatrace, folder):
    runtime = ctypes.CDLL(os.path.join(folder, 'libcudart.so.13'))
    path = os.path.join(folder, 'home', 'run.ctrace')

    def step(n):
        for _ in range(n):
            address = ctypes.c_void_p()
            runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096))
            runtime.cudaFree(address)

    step(2)
    with cudatrace.record(path) as run:
        step(3)
        thread = threading.Thread(target=step, args=(4,))
        thread.start()
        thread.join()
    step(5)
    if OTHERS and ANOTHER in run.messages:
        print(f'skip record: {OTHERS} has probes on every library')
        return
    calls = run.trace.calls
    check('record-calls', (7, 7), (calls.count('cudaMalloc'), calls.count('cudaFree')))
    check('record-process', ({os.getpid()}, 2), ({c.pid for c in calls}, len({c.tid for c in calls if c.api == 'cudaMalloc'})))
    check('record-arguments', {(4096, 'cudaSuccess')}, {(c.args['size'], c.ret_name) for c in calls.named('cudaMalloc')})
    check('record-over', False, run.running)

    # again in the same process, and some functions only; a block that raises
    def raises():
        with cudatrace.record(path, options=['-e', 'cudaFree']):
            step(2)
            raise KeyError('the block')
    has('record-raises', 'the block', message(raises, kind=KeyError))
    again = cudatrace.read(path).calls
    check('record-again', (2, 2), (len(again), again.count('cudaFree')))
    has('record-wrong', 'nosuch', message(cudatrace.record(path, source='nosuch').start, kind=cudatrace.CudatraceError))
    has('record-nowhere', 'nosuch', message(cudatrace.record('/nosuch/file').start, kind=cudatrace.CudatraceError))
    with cudatrace.record(path) as run:
        has('record-twice', 'running already', message(run.start, kind=cudatrace.CudatraceError))


def recording_gpu(cudatrace, folder):
    """gpu=True: what the stand-in's CUPTI says, in a process that runs."""
    runtime = ctypes.CDLL(os.path.join(folder, 'libcudart.so.13'))
    path = os.path.join(folder, 'home', 'gpu.ctrace')
    memory, here = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
    runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))
    with cudatrace.record(path, gpu=True, options=['--cupti', os.path.join(folder, 'libcupti.so.13')]) as run:
        for _ in range(5):
            runtime.cudaMemcpy(memory, here, ctypes.c_size_t(4096), 1)
        runtime.cudaMemset(memory, 7, ctypes.c_size_t(1024))
        runtime.cudaDeviceSynchronize()
    if OTHERS and ANOTHER in run.messages:
        print(f'skip record-gpu: {OTHERS} has probes on every library')
        return
    t = run.trace
    check('record-gpu', ([('HtoD', 4096)] * 5, [(7, 1024)], 5),
          ([(c.kind, c.bytes) for c in t.copies], [(s.value, s.bytes) for s in t.sets], t.calls.count('cudaMemcpy')))
    check('record-gpu-cause', {'cudaMemcpy'}, {c.api for c in t.copies})


PLUGIN_TEST = '''
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")

def step():
    runtime.cudaDeviceSynchronize()

def test_step(cuda_calls):
    step()
    assert cuda_calls.count("cudaMalloc") == 0
    assert cuda_calls.count("cudaDeviceSynchronize") == 1

def test_clear(cuda_calls):
    step()
    cuda_calls.clear()
    step()
    step()
    assert cuda_calls.count("cudaDeviceSynchronize") == 2

def test_wrong(cuda_calls):
    step()
    assert cuda_calls.count("cudaDeviceSynchronize") == 0
'''


def plugin(folder):
    try:
        import pytest  # noqa: F401
    except ImportError:
        print('skip pytest: it is not installed')
        return
    tests = os.path.join(folder, 'home', 'test_plugin.py')
    with open(tests, 'w', encoding='utf-8') as f:
        f.write(PLUGIN_TEST)
    done = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'cudatrace.pytest_plugin', '-p', 'no:cacheprovider', tests],
                          capture_output=True, text=True, env={**os.environ, 'LD_LIBRARY_PATH': folder}, cwd=os.path.dirname(tests))
    if OTHERS and ANOTHER in done.stdout:
        print(f'skip pytest: {OTHERS} has probes on every library')
        return
    check('pytest', (1, True, True), (done.returncode, 'FAILED' in done.stdout and 'test_wrong' in done.stdout, '1 failed, 2 passed' in done.stdout))
    if '1 failed, 2 passed' not in done.stdout:
        print(done.stdout)


def inside(folder):
    sys.path.insert(0, os.path.join(folder, 'python'))
    import cudatrace
    check('user', True, os.getuid() != 0)
    reading(cudatrace, os.path.join(folder, 'traces'))
    columns(cudatrace, folder)
    if os.uname().machine == 'x86_64':
        recording(cudatrace, folder)
        recording_gpu(cudatrace, folder)
        plugin(folder)
    else:
        print('skip record: --source=hooks works on x86-64')
    sys.exit(failed)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copy(os.path.join(ROOT, 'cudatrace'), folder)
        shutil.copytree(os.path.join(ROOT, 'python'), os.path.join(folder, 'python'), ignore=shutil.ignore_patterns('__pycache__'))
        shutil.copytree(os.path.join(ROOT, 'tests', 'traces'), os.path.join(folder, 'traces'))
        for name in ('libcuda.so.1', 'libcudart.so.13', 'libcupti.so.13'):
            shutil.copy(os.path.join(ROOT, '.output', 'standin', name), folder)
        script = shutil.copy(__file__, os.path.join(folder, 'run_inside.py'))
        home = os.path.join(folder, 'home')
        os.mkdir(home)
        for path, folders, names in os.walk(folder):
            for name in folders + names:
                os.chmod(os.path.join(path, name), 0o755)
        become = []
        if os.getuid() == 0:
            os.chown(home, 65534, 65534)
            become = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
        env = {'PATH': os.environ['PATH'], 'HOME': home, 'TMPDIR': home, 'CUDATRACE': os.path.join(folder, 'cudatrace'),
               'PYTHONPATH': os.path.join(folder, 'python'), 'PYTHONDONTWRITEBYTECODE': '1', 'LC_ALL': 'C.UTF-8'}
        sys.path.insert(0, os.path.join(ROOT, 'tests'))
        import machine
        with machine.taken('undisturbed'):
            env |= {'CUDATRACE_TESTS': '1', 'TRACER_OF_OTHERS': machine.tracer_of_others() or ''}
            sys.exit(subprocess.run([*become, sys.executable, script, '--inside', folder], env=env, cwd=home).returncode)


if sys.argv[1:2] == ['--inside']:
    inside(sys.argv[2])
main()
