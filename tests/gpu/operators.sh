#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# operators.sh - the layer `torch` on a real GPU: tests/gpu/operators.sh [CUDATRACE] [ROUNDS]
#
# Attached to PyTorch's training steps, the trace has the operators that torch.profiler counts for the same steps, and under each the
# kernels that torch.profiler has there. The same of a model by torch.compile; shapes and
# types are torch.profiler's too. Then what `--layers torch` costs a step: ROUNDS (5) rounds of steps that nothing traces, that
# are traced without it, and with it, in turns. SOURCE=hooks does all of it by hooks, and starts the
# programs; with ATTACH=1 it attaches to them: most operators are then hooked by the loader's slots, and record_function() is not seen:
# all operators after the attach are compared. ONLY=shapes leaves out the first part. Needs root, a GPU and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
rounds=${2:-5}
source=() rare=(--keep-chatty)
[ "${SOURCE:-}" != hooks ] || source=(--source=hooks) rare=()

# traced PROGRAM'S ARGS -- CUDATRACE'S ARGS: the program is attached to once it has warmed up; without arguments nothing traces it
traced() {
	local ct_pid='' args=() begun
	while [ "$1" != -- ]; do args+=("$1") && shift; done
	shift
	if [ ${#source[@]} -gt 0 ] && [ $# -gt 0 ] && [ -z "${ATTACH:-}" ]; then
		touch "$tmp/go"
		"$ct" -v "${source[@]}" "$@" -- "$python" tests/gpu/operators.py --go-file "$tmp/go" "${args[@]}" > "$tmp/out" 2> "$tmp/err"
		return
	fi
	rm -f "$tmp/go" "$tmp/out" "$tmp/err" # what an earlier one said
	"$python" tests/gpu/operators.py --go-file "$tmp/go" "${args[@]}" > "$tmp/out" 2> "$tmp/prog.err" &
	pid=$!
	until grep -qs warmed "$tmp/out"; do kill -0 $pid || return; sleep 0.1; done
	if [ $# -gt 0 ]; then
		"$ct" -v "${source[@]}" "$@" -p $pid > "$tmp/ct.out" 2> "$tmp/err" &
		ct_pid=$!
		# the calls are seen a moment before the device's work is
		[[ " $* " = *" --gpu "* ]] && begun='the agent has started' || begun=ready
		until grep -qs "$begun" "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || return; sleep 0.05; done
	fi
	touch "$tmp/go"
	wait $pid
	[ -z "$ct_pid" ] || wait "$ct_pid"
}

if [ "${ONLY:-}" != shapes ]; then
"$python" tests/gpu/operators.py --want "$tmp/want" > "$tmp/profile.out" 2>&1 || echo "# $(tail -n 1 "$tmp/profile.out")"
traced --steps 5 -- --layers torch --gpu "${rare[@]}" --format json -o "$tmp/json"
tail -n 3 "$tmp/err" | sed 's/^/# /'
python3 - "$tmp/json" "$tmp/want" << 'EOF' > "$tmp/got"
import bisect, collections, json, sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
want = json.load(open(sys.argv[2], encoding='utf-8'))
scopes = [r for r in rows if r['type'] in ('operator', 'range') and r.get('layer') == 'torch']
step = [r for r in scopes if r['name'] == 'measured']
begin, end = (step[0]['start_ns'], step[0]['start_ns'] + step[0]['duration_ns']) if step else (0, 1 << 63)
if not step:  # attached by hooks: nothing else runs after the attach, and there are no ranges of record_function()
    for name in [n for n in want['operators'] if n == 'measured' or n.startswith('Optimizer.')]:
        want['operators'].pop(name)


def inside(r):
    return begin <= r['start_ns'] <= end


def name(r):
    return r['name'].split('.')[0] if r['type'] == 'operator' else r['name']


# torch.profiler leaves out an operator that is the only one inside another of its name
chosen = [r for r in scopes if inside(r)]
by_id = {(r['pid'], r['range_id']): r for r in chosen}
children = collections.Counter((r['pid'], r.get('parent_id')) for r in chosen)


def twice(r):
    parent = by_id.get((r['pid'], r.get('parent_id')))
    return parent and name(parent) == name(r) and children[(r['pid'], r.get('parent_id'))] == 1


operators = collections.Counter(name(r) for r in chosen if not twice(r))
kernels = collections.Counter()
for k in rows:
    if k['type'] == 'kernel' and begin <= k['start_ns'] <= end:
        around = by_id.get((k['pid'], k.get('scope')))
        kernels['?' if 'scope_unknown' in k else name(around) if around else '-'] += 1


def compare(title, got, expected):
    differ = {k: (got.get(k, 0), expected.get(k, 0)) for k in {*got, *expected} if got.get(k, 0) != expected.get(k, 0)}
    total = sum(expected.values())
    print(f'not ok {title}: (trace, profiler) {differ}' if differ or not total else f'ok {title} ({total} of {len(expected)} names)')


compare('operators-as-profiled', operators, want['operators'])
# what is not known is under no operator; the range around the steps is none
unknown = kernels.pop('?', 0)
kernels.pop('measured', None)
kernels.pop('-', None)
fewer = sum(want['kernels'].values()) - sum(kernels.values())
print(f'# {unknown} kernels are inside a scope that is not known, {fewer} are missing')
more = {k: (n, want['kernels'].get(k, 0)) for k, n in kernels.items() if n > want['kernels'].get(k, 0)}
print(f'not ok kernels-under-each-operator: (trace, profiler) {more}' if more or fewer != unknown or unknown > 50
      else f'ok kernels-under-each-operator ({sum(kernels.values())} of {sum(want["kernels"].values())})')
unfinished = sum('unfinished' in r for r in scopes if inside(r))
print(f'ok every-operator-ends' if not unfinished else f'not ok every-operator-ends: {unfinished} are unfinished')
EOF
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" "see above" ;;
	"# "*) echo "$line" ;;
	esac
done < "$tmp/got"
[ -s "$tmp/got" ] || not_ok operators "no comparison: $(tail -n 3 "$tmp/err" "$tmp/prog.err" | tr '\n' ' ')"
fi

# ---- shapes and types: each one that is known is torch.profiler's ----------------------------------------------------------------
"$python" tests/gpu/operators.py --want "$tmp/want2" --trace "$tmp/profiled.json" > "$tmp/profile.out" 2>&1 || echo "# $(tail -n 1 "$tmp/profile.out")"
traced --steps 5 -- --layers torch --shapes -e operator,range "${rare[@]}" --format chrome -o "$tmp/ours.json"
if python3 tests/cases/check_shapes.py "$tmp/ours.json" "$tmp/profiled.json" > "$tmp/shapes"; then
	ok "shapes ($(tail -n 1 "$tmp/shapes"))"
else
	not_ok shapes "$(head -n 3 "$tmp/shapes" | tr '\n' ' ')"
fi

# ---- torch.compile: the operators that are left, and the kernels under each ------------------------------------------------------
"$python" tests/gpu/operators.py --compiled --want "$tmp/want" > "$tmp/profile.out" 2>&1 || echo "# $(tail -n 1 "$tmp/profile.out")"
traced --compiled --steps 5 -- --layers torch --gpu "${rare[@]}" --format json -o "$tmp/json"
python3 - "$tmp/json" "$tmp/want" << 'EOF' > "$tmp/got"
import collections, json, sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
want = json.load(open(sys.argv[2], encoding='utf-8'))
step = [r for r in rows if r['type'] == 'range' and r['name'] == 'measured']
# attached by hooks: nothing else runs after the attach, and there are no ranges of record_function()
begin, end = (step[0]['start_ns'], step[0]['start_ns'] + step[0]['duration_ns']) if step else (0, 1 << 63)
scopes = [r for r in rows if r['type'] == 'operator' and begin <= r['start_ns'] <= end]
by_id = {(r['pid'], r['range_id']): r for r in scopes}
name = lambda r: r['name'].split('.')[0]
children = collections.Counter((r['pid'], r.get('parent_id')) for r in scopes)
twice = lambda r: (p := by_id.get((r['pid'], r.get('parent_id')))) and name(p) == name(r) and children[(r['pid'], r.get('parent_id'))] == 1
got = collections.Counter(name(r) for r in scopes if not twice(r) and name(r).startswith('aten::'))
kernels = collections.Counter(name(by_id[(r['pid'], r['scope'])]) for r in rows if r['type'] == 'kernel' and (r['pid'], r.get('scope')) in by_id)
for title, have, of in ('compiled-operators', got, want['operators']), ('compiled-kernels', kernels, want['kernels']):
    of = {k: v for k, v in of.items() if k.startswith('aten::')}
    have = {k: v for k, v in have.items() if k.startswith('aten::')}
    # what compiled code calls through the dispatcher, and not by its function, is in no row
    missing = {k: n for k, n in of.items() if k not in have}
    print(f'# {title}: not in the trace: {missing}')
    differ = {k: (n, of.get(k, 0)) for k, n in have.items() if n != of.get(k, 0)}
    print(f'not ok {title}: (trace, profiler) {differ}' if differ or not of else f'ok {title} ({sum(of.values())} of {len(of)} names)')
EOF
while read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" "see above" ;;
	"# "*) echo "$line" ;;
	esac
done < "$tmp/got"
[ -s "$tmp/got" ] || not_ok compiled "no comparison: $(tail -n 3 "$tmp/err" "$tmp/prog.err" | tr '\n' ' ')"

# ---- what it costs: the median step of each way, in turns --------------------------------------------------------------------
for ((i = 0; i < rounds; i++)); do
	for way in none calls torch shapes; do
		case $way in
		none) traced --time 100 -- ;;
		calls) traced --time 100 -- --format json -o "$tmp/rows" ;;
		torch) traced --time 100 -- --layers torch --format json -o "$tmp/rows" ;;
		shapes) traced --time 100 -- --layers torch --shapes --format json -o "$tmp/rows" ;;
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
all_done
