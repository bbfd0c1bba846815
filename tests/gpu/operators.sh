#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# operators.sh - the layer `torch` on a real GPU: tests/gpu/operators.sh [CUDATRACE] [ROUNDS]
#
# Attached to PyTorch's training steps, the trace has the operators that torch.profiler counts for the same steps, and under each the
# kernels that torch.profiler has there. Then what `--layers torch` costs a step: ROUNDS (5) rounds of steps that nothing traces, that
# are traced without it, and with it, in turns. Needs root, a GPU and PyTorch.
set -u
cd "$(dirname "$0")/../.." || exit
ct=$(readlink -f "${1:-.output/static/cudatrace}")
rounds=${2:-5}
python=${TORCH_PYTHON:-python3}
tmp=$(mktemp -d)
trap 'kill $pid 2> /dev/null; rm -rf "$tmp"' EXIT
pid=''
passed=0 failed=0
ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: $2"; failed=$((failed + 1)); }

# traced PROGRAM'S ARGS -- CUDATRACE'S ARGS: the program is attached to once it has warmed up; without arguments nothing traces it
traced() {
	local ct_pid='' args=()
	while [ "$1" != -- ]; do args+=("$1") && shift; done
	shift
	rm -f "$tmp/go"
	"$python" tests/gpu/operators.py --go-file "$tmp/go" "${args[@]}" > "$tmp/out" 2> "$tmp/prog.err" &
	pid=$!
	until grep -qs warmed "$tmp/out"; do kill -0 $pid || return; sleep 0.1; done
	if [ $# -gt 0 ]; then
		"$ct" -v "$@" -p $pid > "$tmp/ct.out" 2> "$tmp/err" &
		ct_pid=$!
		until grep -q ready "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || return; sleep 0.05; done
	fi
	touch "$tmp/go"
	wait $pid
	[ -z "$ct_pid" ] || wait "$ct_pid"
}

traced --want "$tmp/want" -- --layers torch --gpu --keep-chatty --format json -o "$tmp/json"
tail -n 3 "$tmp/err" | sed 's/^/# /'
python3 - "$tmp/json" "$tmp/want" << 'EOF' > "$tmp/got"
import bisect, collections, json, sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
want = json.load(open(sys.argv[2], encoding='utf-8'))
scopes = [r for r in rows if r['type'] in ('operator', 'range') and r.get('layer') == 'torch']
step, = [r for r in scopes if r['name'] == 'measured']
begin, end = step['ts_ns'], step['ts_ns'] + step['dur_ns']


def inside(r):
    return begin <= r['ts_ns'] <= end


def name(r):
    return r['name'].split('.')[0] if r['type'] == 'operator' else r['name']


operators = collections.Counter(name(r) for r in scopes if inside(r))
threads = collections.defaultdict(list)
for r in sorted((r for r in scopes if inside(r)), key=lambda r: (r['ts_ns'], -r['dur_ns'])):
    threads[r['tid']].append(r)
calls = {r['correlation']: r for r in rows if r['type'] == 'call' and inside(r) and 'correlation' in r}
kernels = collections.Counter()
for k in rows:
    call = calls.get(k.get('correlation')) if k['type'] == 'kernel' else None
    if not call:
        continue
    around = [s for s in threads[call['tid']] if s['ts_ns'] <= call['ts_ns'] <= s['ts_ns'] + s['dur_ns']]
    kernels[name(around[-1]) if around else '-'] += 1


def compare(title, got, expected):
    differ = {k: (got.get(k, 0), expected.get(k, 0)) for k in {*got, *expected} if got.get(k, 0) != expected.get(k, 0)}
    total = sum(expected.values())
    print(f'not ok {title}: (trace, profiler) {differ}' if differ or not total else f'ok {title} ({total} of {len(expected)} names)')


compare('operators-as-profiled', operators, want['operators'])
compare('kernels-under-each-operator', kernels, want['kernels'])
unfinished = sum('unfinished' in r for r in scopes if inside(r))
print(f'ok every-operator-ends' if not unfinished else f'not ok every-operator-ends: {unfinished} are unfinished')
EOF
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" "see above" ;;
	esac
done < "$tmp/got"
[ -s "$tmp/got" ] || not_ok operators "no comparison: $(tail -n 3 "$tmp/err" "$tmp/prog.err" | tr '\n' ' ')"

# ---- what it costs: the median step of each way, in turns --------------------------------------------------------------------
for ((i = 0; i < rounds; i++)); do
	for way in none calls torch; do
		case $way in
		none) traced --time 100 -- ;;
		calls) traced --time 100 -- --format json -o "$tmp/rows" ;;
		torch) traced --time 100 -- --layers torch --format json -o "$tmp/rows" ;;
		esac
		awk -v way=$way '$1 == "median_us" { print way, $2 }' "$tmp/out" >> "$tmp/cost"
	done
done
python3 - "$tmp/cost" << 'EOF'
import collections, statistics, sys

took = collections.defaultdict(list)
for line in open(sys.argv[1]):
    way, us = line.split()
    took[way].append(float(us))
for way, us in took.items():
    ratio = statistics.median(us) / statistics.median(took['none'])
    print(f'# a step, {way}: median of {len(us)} medians {statistics.median(us):.0f} us, x{ratio:.2f}')
EOF
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
