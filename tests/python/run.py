#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py - the Python package, with the system's Python, as an ordinary user on the stand-in: tests/python/run.py

Needs make cudatrace standin; no third-party package. Run as root it copies what it needs to a folder that everybody may read and becomes
another user, as whom everything is recorded by --source=hooks. pytest, pandas, pyarrow and duckdb are used where they are installed; where they are
not, the message about it is tested. Prints `ok`, `not ok` and `skip` lines.
"""
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings

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


def type_of(function, *args):
    """The exception of a call that must fail."""
    try:
        function(*args)
    except Exception as error:  # pylint: disable=broad-except
        return type(error).__name__
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
          (call.name, call.duration_ns, call.args['size'], call.ret, call.result, call.pid))
    kernel = t.kernels[0]
    check('read-kernel', ([132, 4, 1], 13, 49152, call.start_ns < kernel.start_ns), (kernel.grid, kernel.stream, kernel.dynamic_shared_bytes, True))
    check('read-cause', ['cudaLaunchKernel'], [c.name for c in t.calls if (c.pid, c.correlation) == (kernel.pid, kernel.correlation)])
    check('read-count', (2, 2, 36, 0), (t.calls.count('cudaMalloc'), t.calls.count('cudaMallo*'), t.calls.count(), t.calls.count('cudamalloc')))
    check('read-record-count', 1, t.calls.count(call))
    check('read-slice', [c.name for c in t.calls][2:4], [c.name for c in t.calls[2:4]])
    check('read-columns', (20, True), (len(t.kernels.columns()['duration_ns']), 'raw' not in t.kernels.columns()))
    check('read-types', ('ns', 'bytes', int, 'from start to end on the device'),
          (t.kernels.types['duration_ns'].unit, t.copies.types['size_bytes'].unit, t.copies.types['size_bytes'].type, t.sets.types['duration_ns'].about))
    check('read-help', True, 'dynamic_shared_bytes (bytes): shared memory of a block that the launch asks for' in cudatrace.Kernel.__doc__)
    check('read-column', [c.duration_ns for c in t.calls], t.calls.column('duration_ns'))
    has('read-no-column', 'Call has no column size, but start_ns', message(t.calls.column, 'size', kind=KeyError))
    page = t.kernels._repr_html_()
    check('notebook-table', (20, True, True), (page.count('<tr><td>'), '>duration_ns [ns]</th>' in page and '>start_ns [ns since the start]</th>' in page and 'handle' not in page, '&lt;float&gt;' in page or '(' in page))
    check('notebook-cut', True, '<p>20 of 36 rows</p>' in t.calls._repr_html_())
    check('notebook-trace', (True, True), ('36 calls, 20 kernels, 5 lost' in t._repr_html_(), 'cudaMalloc' in t._repr_html_()))
    check('read-events', [3, 2], [line.raw['count'] for line in t.events('lost')])
    killed = cudatrace.read(os.path.join(traces, 'killed.ctrace'))
    check('read-killed', (12, 'cut off', True), (len(killed.calls), killed.end['reason'], 'has no end' in killed.messages))
    missing = '/proc/nonexistent'
    for name, function, *words in (('read', cudatrace.read, missing), ('columns', cudatrace.to_parquet, missing, os.path.join(traces, 'out')),
                                   ('compare', cudatrace.compare, two, missing)):
        check(name + '-missing', "[Errno 2] No such file or directory: '/proc/nonexistent'", message(function, *words, kind=FileNotFoundError))
    has('read-no-recording', 'error', message(cudatrace.read, __file__, kind=cudatrace.CudatraceError))
    page = t.timeline()
    check('timeline', (True, True), ('<html' in page.html, page._repr_html_().startswith('<iframe sandbox')))
    has('flame', '<html', t.flame(weight='gpu').html)
    check('flame-notebook', True, t.flame()._repr_html_().startswith('<iframe sandbox'))
    has('stat', 'cudaMalloc', t.stat())
    check('stat-notebook', (True, True), (t.stat()._repr_html_().startswith('<pre'), isinstance(t.stat(), str)))
    other = cudatrace.compare(os.path.join(traces, 'calls.ctrace'), t, fail_if=['total_api_calls!=+0'])
    check('compare-changed', (True, 36), (other.regressed, other.metrics['total_api_calls']['new']))
    check('compare-old-name', True, other.metrics['kernel_time'] is other.metrics['kernel_time_ns'])
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
                check('pyarrow-units', b'ns', t.calls.to_arrow().schema.field('duration_ns').metadata[b'unit'])


def showing(cudatrace, traces):
    """What a prompt prints."""
    t = cudatrace.read(os.path.join(traces, 'two.ctrace'))
    said = subprocess.run([cudatrace.find_program(), '--version'], capture_output=True, text=True).stdout.split()
    check('version', said[1], cudatrace.__version__)
    check('read-head', (3, 'cudatrace-trace'), (t.head['version'], t.head['schema']))
    for columns_wide in (60, 100, 200):
        os.environ['COLUMNS'] = str(columns_wide)
        lines = [line for shown in (t.calls, t.kernels, t.copies, t.ranges, t.devices, t.calls[0], t.kernels[0], t.calls[:0]) for line in repr(shown).splitlines()]
        check('repr-fits-%d' % columns_wide, [], [line for line in lines if len(line) > columns_wide])
    os.environ['COLUMNS'] = '200'
    check('repr-call', 'Call(start_ns=+0.020 ms, duration_ns=250 us, name=cudaMalloc, args=size=2097152, devPtr=0x7f81dc800000, result=cudaSuccess, '
          'process=python3, pid=101, tid=101, rank=0, domain=runtime, correlation=1...)', repr(t.calls[0]))
    kernels = repr(t.kernels).splitlines()
    check('repr-table', ('<Table of 20 Kernel>', True, 19, '... 5 more ...'), (kernels[0], kernels[1].startswith('start_ns'), len(kernels), kernels[12]))
    check('repr-empty-columns', [], [word for word in ('handle', 'graph_node') if word in kernels[1]])
    check('repr-since-start', True, kernels[2].startswith('+0.'))
    del os.environ['COLUMNS']
    # ranges of --layers
    t = cudatrace.read(os.path.join(traces, 'steps.ctrace'))
    check('ranges-of-layers', (12, 'ProfilerStep#1', 'push_pop'), (len(t.ranges), t.ranges.named('ProfilerStep*')[0].name, t.ranges[0].kind))
    steps = {r.range_id for r in t.ranges.named('ProfilerStep*')}
    check('ranges-parents', True, all(r.parent_id in steps for r in t.ranges.named('Optimizer.step*')))


def old_names(cudatrace, traces):
    """The names of before version 3: of members, and in lines that an older program wrote."""
    t = cudatrace.read(os.path.join(traces, 'two.ctrace'))
    call, copy = t.calls[0], t.copies[0]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        check('old-members', (call.start_ns, call.name, call.result, copy.copy_kind, copy.size_bytes, copy.cause),
              (call.ts_ns, call.api, call.ret_name, copy.kind, copy.bytes, copy.api))
    check('old-members-warn', 'ts_ns is the old name of start_ns', str(seen[0].message))
    check('old-column', t.calls.column('duration_ns'), t.calls.column('dur_ns'))
    check('old-events', 8, len(t.events('memcpy')))
    has('no-member', 'Call has no member nothing, but start_ns', message(getattr, call, 'nothing', kind=AttributeError))
    old = {'type': 'memcpy', 'ts_ns': 5, 'dur_ns': 6, 'pid': 7, 'comm': 'x', 'process': 4194304, 'kind': 'HtoD', 'bytes': 8, 'api': 'cudaMemcpy',
           'call_ns': 3}
    made = cudatrace.Copy.of(old)
    check('old-line', (5, 6, 'x', 'HtoD', 8, 'cudaMemcpy', 3, 4194304),
          (made.start_ns, made.duration_ns, made.process, made.copy_kind, made.size_bytes, made.cause, made.cause_start_ns, made.raw['process_id']))


def columns(cudatrace, folder):
    two = os.path.join(folder, 'traces', 'two.ctrace')
    out = os.path.join(folder, 'home', 'two.parquet')
    t = cudatrace.read(two)
    names = ['calls', 'collectives', 'copies', 'devices', 'host', 'kernels', 'operators', 'others', 'processes', 'ranges', 'sets', 'stacks']
    t.to_parquet(out)
    check('parquet-files', [name + '.parquet' for name in names], sorted(os.listdir(out)))
    has('parquet-there', 'is there already', message(t.to_parquet, out, kind=FileExistsError))
    has('parquet-wrong', 'error: ', message(cudatrace.to_parquet, __file__, out + '2', kind=cudatrace.CudatraceError))
    check('parquet-nothing-left', ['two.parquet'], os.listdir(os.path.dirname(out)))
    try:
        import pyarrow.parquet
    except ImportError:
        has('no-pyarrow-columns', 'read_columns() needs pyarrow', message(cudatrace.read_columns, two, kind=ImportError))
        print('skip columns: pyarrow is not installed')
        return
    tables = t.tables()
    want = {'calls': 36, 'kernels': 20, 'copies': 8, 'sets': 4, 'ranges': 8, 'collectives': 0, 'operators': 0, 'processes': 6, 'devices': 4, 'host': 0,
            'stacks': 5, 'others': 25}
    check('columns-rows', want, {name: table.num_rows for name, table in tables.items()})
    check('columns-calls', [(c.name, c.start_ns, c.duration_ns, c.pid, c.tid) for c in t.calls],
          list(zip(*(tables['calls'][name].to_pylist() for name in ('name', 'start_ns', 'duration_ns', 'pid', 'tid')))))
    check('columns-arguments', [int(c.args['dst'], 16) if 'dst' in c.args else None for c in t.calls], tables['calls']['arg_dst'].to_pylist())
    check('columns-version', b'3', tables['calls'].schema.metadata[b'cudatrace.schema'])

    check('columns-kernels', [(k.name, k.duration_ns, k.stream) for k in t.kernels],
          list(zip(*(tables['kernels'][name].to_pylist() for name in ('name', 'duration_ns', 'stream')))))
    check('columns-processes', [['/usr/bin/python3.11', 'python3 train.py --steps=2']] * 2,
          [[row['executable'], row['command_line']] for row in tables['processes'].to_pylist() if row['type'] == 'info'])
    check('columns-copies', [c.size_bytes for c in t.copies], tables['copies']['size_bytes'].to_pylist())
    has('columns-wrong', 'error: ', message(cudatrace.read_columns, __file__, kind=cudatrace.CudatraceError))
    check('columns-missing', 'FileNotFoundError', type_of(cudatrace.read_columns, '/proc/nonexistent'))
    # one vocabulary: what rows and columns both have, has one name and one value
    for word in ('calls', 'kernels', 'copies', 'sets'):
        rows, table = getattr(t, word), tables[word]
        both = [name for name in rows.types if name in table.column_names and name not in ('args', 'stack', 'bytes_per_second')]
        check('vocabulary-' + word, [], [name for name in both if rows.column(name) != table[name].to_pylist()])
        check('vocabulary-names-' + word, {'start_ns', 'duration_ns', 'pid', 'process', 'correlation'} - set(both), set())
    try:
        import duckdb
    except ImportError:
        print('skip parquet-duckdb: duckdb is not installed')
    else:
        rows = duckdb.sql("select name, count(*), sum(duration_ns) from '%s/kernels.parquet' group by name" % out).fetchall()
        sums = {}
        for k in t.kernels:
            n, ns = sums.get(k.name, (0, 0))
            sums[k.name] = (n + 1, ns + k.duration_ns)
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
    check('record-process', ({os.getpid()}, 2), ({c.pid for c in calls}, len({c.tid for c in calls if c.name == 'cudaMalloc'})))
    check('record-arguments', {(4096, 'cudaSuccess')}, {(c.args['size'], c.result) for c in calls.named('cudaMalloc')})
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
    with cudatrace.record() as run:
        step(1)
    trace, file = run.trace, run.path
    check('record-without-path', (1, True, True), (trace.calls.count('cudaMalloc'), os.path.isfile(file), 'cudaMalloc' in trace.stat()))
    del run, trace
    gc.collect()
    check('record-without-path-leaves', False, os.path.exists(os.path.dirname(file)))
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
          ([(c.copy_kind, c.size_bytes) for c in t.copies], [(s.set_value, s.size_bytes) for s in t.sets], t.calls.count('cudaMemcpy')))
    check('record-gpu-cause', {'cudaMemcpy'}, {c.cause for c in t.copies})


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
    listed = [line.split('(')[0] for line in done.stdout.splitlines() if line.startswith('  Call(start_ns=+')]
    check('pytest-lists-calls', (True, ['  Call']), ('1 of cudaDeviceSynchronize:' in done.stdout and '- CUDA calls -' in done.stdout, listed))
    check('pytest', (1, True, True), (done.returncode, 'FAILED' in done.stdout and 'test_wrong' in done.stdout, '1 failed, 2 passed' in done.stdout))
    if '1 failed, 2 passed' not in done.stdout:
        print(done.stdout)


def inside(folder):
    sys.path.insert(0, os.path.join(folder, 'python'))
    import cudatrace
    check('user', True, os.getuid() != 0)
    reading(cudatrace, os.path.join(folder, 'traces'))
    showing(cudatrace, os.path.join(folder, 'traces'))
    old_names(cudatrace, os.path.join(folder, 'traces'))
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
        shutil.copy(os.path.join(ROOT, 'tests', 'export', 'steps.ctrace'), os.path.join(folder, 'traces'))
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
