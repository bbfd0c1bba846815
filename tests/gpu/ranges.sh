#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# ranges.sh - which range of a PyTorch program device work is for: tests/gpu/ranges.sh [CUDATRACE]
#
# Needs root, a GPU, and a python3 with PyTorch. The same 20 steps run under torch.profiler and, in another process that ran already,
# under `record --gpu --layers nvtx -p`: the numbers of kernels and of copies of each range must be equal, and the sums of
# `stat --by range` must be all there is. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, `# what was seen`, and the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
here=tests/gpu
if ! nvidia-smi -L > /dev/null 2>&1 || ! python3 -c 'import torch' 2> /dev/null; then
	skip ranges "a GPU and PyTorch are needed"
	leave
fi

python3 $here/ranges_step.py profile "$tmp/profiled" > "$tmp/profile.log" 2>&1 || echo "# the profiler: $(tail -n 1 "$tmp/profile.log")"
mkfifo "$tmp/in"
python3 $here/ranges_step.py plain - < "$tmp/in" > "$tmp/out" 2> "$tmp/err" &
pids+=($!)
program=$!
exec 9> "$tmp/in"
until_says "$tmp/out" ready
"$ct" record --gpu --layers nvtx -o "$tmp/run.ctrace" -p "$program" 2> "$tmp/ct.err" &
pids+=($!)
tracer=$!
until_says "$tmp/ct.err" 'tracing\|probes\|agent' || true
sleep 5
echo >&9
until_says "$tmp/out" "done"
sleep 1
kill -INT "$tracer"
wait "$tracer"
echo "# $(tail -n 1 "$tmp/ct.err")"
echo >&9
"$ct" stat --by range --json "$tmp/run.ctrace" > "$tmp/sums" 2> "$tmp/stat.err"
"$ct" stat --by range "$tmp/run.ctrace" 2> /dev/null | sed 's/^/# /'
"$ct" replay --format json "$tmp/run.ctrace" > "$tmp/rows" 2> /dev/null
python3 - "$tmp" << 'PY'
import collections, json, sys
tmp = sys.argv[1]
passed = failed = 0


def check(name, fine, why):
    global passed, failed
    passed, failed = passed + bool(fine), failed + (not fine)
    print(f'ok {name}' if fine else f'not ok {name}: {why}')


profiled = json.load(open(tmp + '/profiled'))
sums = json.load(open(tmp + '/sums'))
seen = collections.defaultdict(lambda: [0, 0, 0])
for line in open(tmp + '/rows', encoding='utf-8'):
    r = json.loads(line)
    if r['type'] in ('kernel', 'copy', 'set'):
        s = seen['unknown' if 'scope_unknown' in r else r.get('scope_name', 'none')]
        s[0] += r['type'] == 'kernel'
        s[1] += r['type'] != 'kernel'
        s[2] += r['duration_ns']
unknown = left = sum(seen['unknown'][:2])
for name in sorted(profiled):
    print(f'# {name}: torch.profiler {profiled[name]}, cudatrace {seen[name]}')
    missing = [a - b for a, b in zip(profiled[name][:2], seen[name][:2])]
    left -= sum(missing)
    check(f'numbers-{name}', min(missing) >= 0, f'{profiled[name]} and {seen[name]}')
# work whose call was not found is unknown, and in no range that it does not belong to
check('the-rest-is-unknown', left == 0, f"{left} more are unknown than are missing")
check('hardly-anything-unknown', unknown <= 10, f'{unknown} of {sum(sum(p[:2]) for p in profiled.values())}')
whole = sum(s[2] for s in seen.values())
check('sums-are-the-whole', sums['gpu_ns'] == whole == sum(r['gpu_ns'] for r in sums['rows']), f"{sums['gpu_ns']} and {whole}")
step = next(r for r in sums['rows'] if r.get('name') == 'step')
inside = sum(s[2] for n, s in seen.items() if n not in ('none', 'unknown'))
check('inclusive', step['inclusive_gpu_ns'] == inside, f"{step['inclusive_gpu_ns']} and {inside}")
check('count', step['count'] == 20, str(step['count']))
print(f'{passed} passed, {failed} failed')
sys.exit(failed != 0)
PY
