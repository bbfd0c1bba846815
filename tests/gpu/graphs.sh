#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# graphs.sh - what was captured, of a CUDA graph that is replayed: tests/gpu/graphs.sh [CUDATRACE]
#
# Needs root, a GPU, and a python3 with PyTorch. A model is captured once and replayed 200 times. Each replayed kernel must
# name a captured launch, of a kernel of the same name; its operators and its lines of Python must be those of the capture. The second program is
# attached to after the capture: its kernels must say that it was before the trace. Prints `ok NAME`, `not ok NAME: why`,
# `# what was seen`, and the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
here=tests/gpu
if ! nvidia-smi -L > /dev/null 2>&1 || ! python3 -c 'import torch' 2> /dev/null; then
	skip graphs "a GPU and PyTorch are needed"
	leave
fi
python3 $here/graphs_torch.py 200 > "$tmp/plain" 2> /dev/null
"$ct" record --gpu --stack=python --layers torch,nvtx -o "$tmp/run.ctrace" -- python3 $here/graphs_torch.py 200 > "$tmp/traced" 2> "$tmp/err"
echo "# $(tail -n 1 "$tmp/err")"
"$ct" replay -k --format json "$tmp/run.ctrace" > "$tmp/rows" 2> /dev/null
"$ct" stat --by range --json "$tmp/run.ctrace" > "$tmp/ranges" 2> /dev/null
"$ct" stat --by operator --json "$tmp/run.ctrace" > "$tmp/operators" 2> /dev/null
"$ct" stat --by operator "$tmp/run.ctrace" 2> /dev/null | head -n 14 | cut -c1-120 | sed 's/^/# /'

mkfifo "$tmp/in"
python3 $here/graphs_torch.py 200 wait < "$tmp/in" > "$tmp/out" 2> /dev/null &
pids+=($!)
program=$!
exec 9> "$tmp/in"
until_says "$tmp/out" ready
"$ct" -v --gpu --format json -o "$tmp/late" -p "$program" 2> "$tmp/late.err" &
pids+=($!)
tracer=$!
until_says "$tmp/late.err" 'agent has started'
sleep 1
echo >&9
wait "$program"
wait "$tracer"

python3 - "$tmp" << 'PY'
import collections, json, sys
tmp = sys.argv[1]
passed = failed = 0


def check(name, good, what=''):
    global passed, failed
    passed += bool(good)
    failed += not good
    print(f'ok {name}' if good else f'not ok {name}: {what}', flush=True)


def rows(name):
    return [json.loads(line) for line in open(f'{tmp}/{name}', encoding='utf-8')]


check('the result', open(f'{tmp}/plain').read() == open(f'{tmp}/traced').read(), open(f'{tmp}/traced').read())
all_rows = rows('rows')
calls = {r['correlation']: r for r in all_rows if r['type'] == 'call' and 'correlation' in r}
work = [r for r in all_rows if r['type'] in ('kernel', 'copy', 'set') and r.get('graph_node')]
kernels = [r for r in work if r['type'] == 'kernel']
nodes = {r['graph_node'] for r in kernels}
print(f'# {len(kernels)} replayed kernels of {len(nodes)} nodes')
check('each node ran 200 times', kernels and len(kernels) == 200 * len(nodes), f'{len(kernels)} of {len(nodes)}')
check('each names a call', all('captured_by' in r for r in work), collections.Counter(r['type'] for r in work if 'captured_by' not in r))
wrong = [(r['kernel'], calls.get(r.get('captured_by'), {}).get('kernel')) for r in kernels if calls.get(r.get('captured_by'), {}).get('kernel') != r.get('kernel')]
check("a captured launch's kernel is the replayed one", not wrong, wrong[:3])
inside = collections.Counter(r.get('captured_in') for r in kernels)
print('# captured in', dict(inside))
# the innermost frame of Python
places = {'aten::addmm': 'linear.py', 'aten::gelu': 'activation.py', 'aten::native_layer_norm': 'functional.py',
          'aten::_softmax': 'graphs_torch.py', 'aten::sum.dim_IntList': 'graphs_torch.py'}
print('# captured at', dict(collections.Counter((r.get('captured_in'), r.get('captured_at')) for r in kernels)))
other = [(r.get('captured_in'), r.get('captured_at')) for r in kernels
         if places.get(r.get('captured_in'), '?') not in (r.get('captured_at') or '')]
check('the lines of the captures', kernels and not other, other[:3])
check('operators', all(k and k.startswith('aten::') for k in inside), inside)
ranges = {r.get('name'): r for r in json.load(open(f'{tmp}/ranges', encoding='utf-8'))['rows']}
check('ranges are those of the replay', ranges['step']['kernels'] == len(kernels), ranges['step'])
operators = json.load(open(f'{tmp}/operators', encoding='utf-8'))['rows']
named = sum(r['kernels'] for r in operators if 'name' in r)
total = sum(r['kernels'] for r in operators)
print(f'# {named} of {total} kernels have an operator')
check('operators have the kernels', named >= len(kernels), f'{named} of {len(kernels)}')
late = [r for r in rows('late') if r['type'] == 'kernel' and r.get('graph_node')]
check('attached late', late and all(r.get('captured') == 'before the trace' for r in late), f'{len(late)} kernels, ' + str(collections.Counter(r.get('captured') for r in late)))
print(f'{passed} passed, {failed} failed')
sys.exit(failed != 0)
PY
