# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# operators.sh - cases about the layer torch: PyTorch's operators beside CUDA's calls.

OPERATORS=$BIN/operators

# operated: a line for each scope in $T/out: type, name, and the name of its parent.
operated() {
	python3 - "$T/out" << 'EOF'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
scopes = [r for r in rows if r['type'] in ('range', 'operator')]
names = {r['range_id']: r['name'] for r in scopes}
for r in scopes:
    parent = '?' if r.get('parent_unknown') else names.get(r.get('parent_id'), '-')
    print(r['type'], r['name'], 'in', parent, *(k for k in ('unfinished',) if k in r))
EOF
}

expect_operators() {
	operated > "$T/got"
	diff - "$T/got" > "$T/diff" || fail "operators differ: $(head -n 6 "$T/diff")"
}

# Forward, backward in a thread of its own, an optimizer's step. The names have their overloads, which come from the schemas.
case_operators_nested() {
	ct_json --layers torch -- "$OPERATORS" train 1
	ok_rc
	no_loss
	expect_operators <<- 'EOF'
	operator aten::empty.memory_format in aten::addmm
	operator aten::mm in aten::addmm
	operator aten::addmm in -
	operator aten::log_softmax.int in -
	operator aten::mm in AddmmBackward0
	operator AddmmBackward0 in -
	operator aten::add_.Tensor in torch::autograd::AccumulateGrad
	operator torch::autograd::AccumulateGrad in -
	operator aten::add_.Tensor in Optimizer.step#SGD.step
	range Optimizer.step#SGD.step in -
	EOF
	expect "threads" "$(grep '"type":"operator"' "$T/out" | grep -o '"tid":[0-9]*' | sort -u | wc -l)" 2
}

# What torch.compile made calls no operators: its kernels are in the range of its graph.
case_operators_compiled() {
	ct_json --gpu --layers torch -- "$OPERATORS" compiled
	ok_rc
	no_loss
	grep '"type":"kernel"' "$T/out" | grep -o '"scope_name":"[^"]*"' > "$T/got"
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "kernels differ: $(head -n 6 "$T/diff")"
	"scope_name":"Torch-Compiled Region: 0/0"
	"scope_name":"Torch-Compiled Region: 1/0"
	"scope_name":"aten::mm"
	EOF
}

case_operators_table() {
	ct_rows --layers torch -e operator -- "$OPERATORS" throws
	ok_rc
	sed -E 's/^[0-9.]+ +operators +[0-9]+ +//; s/[0-9.]+(ns|us|ms)$/DUR/' "$T/out" > "$T/got"
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "rows differ: $(head -n 6 "$T/diff")"
	TIME(ms)   PROCESS         PID        EVENT                DETAILS
	operator             aten::orphan_op, <unfinished ...>
	operator             aten::nest, <unfinished ...>
	operator             aten::nest, <unfinished ...>
	operator             aten::orphan_op, DUR
	EOF
	says '0 calls, 4 scopes, 0 lost'
}

# The calls are the same with operators and without.
case_operators_leave_calls() {
	ct_json -- "$OPERATORS" train 3
	grep '"type":"call"' "$T/out" | grep -o '"name":"[^"]*"' > "$T/without"
	ct_json --layers torch -- "$OPERATORS" train 3
	grep '"type":"call"' "$T/out" | grep -o '"name":"[^"]*"' > "$T/with"
	expect "calls" "$(wc -l < "$T/with")" 23
	diff "$T/without" "$T/with" > "$T/diff" || fail "calls differ: $(head -n 4 "$T/diff")"
}

# 64 in each other are followed; those beyond are counted.
case_operators_deep() {
	ct_json --layers torch -- "$OPERATORS" deep 70
	ok_rc
	expect "operators" "$(grep -c '"type":"operator"' "$T/out")" 64
	expect "dropped" "$(grep -o '"scopes_dropped":[0-9]*' "$T/out")" '"scopes_dropped":6'
	! grep -q scopes_unbegun "$T/out" || fail "ends have no begins"
}

# The operator that had begun before is in no row; its end is counted, but hooks do not see it.
case_operators_attached() {
	local pid fd
	mkfifo "$T/in"
	"$OPERATORS" wait < "$T/in" > "$T/prog.out" 2> /dev/null &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach --layers torch -p "$pid"
	printf 'xxq' >&"$fd"
	wait "$pid"
	wait "$CT" || fail "status $?"
	expect "steps" "$(operated | grep -c '^range Optimizer.step#SGD.step in -$')" 2
	expect "operators" "$(grep -c '"type":"operator"' "$T/out")" 18
	expect "ends" "$(grep -o '"scopes_unbegun":[0-9]*' "$T/out")" "$([ "${SOURCE:-}" = hooks ] || echo '"scopes_unbegun":1')"
}

# A kernel without links for many functions: operators are left out, and that is said.
case_operators_no_multi() { # long
	ct_json --probe-kind tracefs --layers torch -- "$OPERATORS" train 1
	ok_rc
	expect "operators" "$(grep -c '"type":"operator"' "$T/out")" 0
	expect "ranges" "$(grep -c '"type":"range"' "$T/out")" 1
	says 'its operators are not recorded'
}

case_operators_kineto() {
	ct record --layers torch -o "$T/r.ctrace" -- "$OPERATORS" train 1
	ok_rc
	ct export --to chrome -o "$T/trace.json" "$T/r.ctrace"
	ok_rc
	python3 - "$T/trace.json" << 'EOF' > "$T/got" || fail "no trace"
import json, sys
events = json.load(open(sys.argv[1], encoding='utf-8'))['traceEvents']
for e in sorted((e for e in events if e.get('cat') in ('cpu_op', 'user_annotation')), key=lambda e: float(e['ts'])):
    print(e['ph'], e['cat'], e['name'], e['args'].get('overload', '-'), e['cat'] != 'cpu_op' or e['args']['External id'] > 0)
EOF
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "events differ: $(head -n 6 "$T/diff")"
	X user_annotation ProfilerStep#0 - True
	X cpu_op aten::addmm - True
	X cpu_op aten::empty memory_format True
	X cpu_op aten::mm - True
	X cpu_op aten::log_softmax int True
	X cpu_op AddmmBackward0 - True
	X cpu_op aten::mm - True
	X cpu_op torch::autograd::AccumulateGrad - True
	X cpu_op aten::add_ Tensor True
	X user_annotation Optimizer.step#SGD.step - True
	X cpu_op aten::add_ Tensor True
	EOF
}

# PyTorch's own, where it is installed: operators of the same steps are as many as torch.profiler counts, and an operator that throws
# still throws.
case_operators_pytorch() {
	local python=${TORCH_PYTHON:-python3}
	"$python" -c 'import torch' 2> /dev/null || skip "no PyTorch here (TORCH_PYTHON=... names a Python that has it)"
	ct_json --layers torch -- "$python" tests/cases/prog/pytorch_ops.py "$T/want"
	ok_rc
	no_loss
	python3 - "$T/out" "$T/want" << 'EOF' > "$T/diff" || fail "$(head -n 4 "$T/diff")"
import collections, json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding='utf-8')]
scopes = [r for r in rows if r['type'] in ('range', 'operator')]
step, = [r for r in scopes if r['name'] == 'measured']
got = collections.Counter(r['name'].split('.')[0] if r['type'] == 'operator' else r['name'] for r in scopes
                          if step['start_ns'] <= r['start_ns'] <= step['start_ns'] + step['duration_ns'])
# what PyTorch records without an operator: its engine's own work
want = {k: v for k, v in json.load(open(sys.argv[2])).items() if k != 'detach' and not k.startswith('autograd::engine')}
if got != want:
    print('operators differ:', {k: (got.get(k), want.get(k)) for k in {*got, *want} if got.get(k) != want.get(k)})
    sys.exit(1)
EOF
}

# Shapes and types are read where the library says that they are, and what does not agree is not known.
SHAPES='aten::shapes.all|float32[4, 3], none, tensors[2] (float32[4, 3], float32[4, 3]), scalar, scalar, ?
aten::shapes.all|int64[], bfloat16[2, 0, 5, 1, 1000000], tensors[0], scalar, scalar, ?
aten::shapes_.all|float32[4, 3], none
aten::shapes_.all|float32[4, 3], ?
aten::shapes_.all|float32[4, 3], ?
aten::shapes_.all|float32[4, 3], ?
aten::shapes_.all|float32[4, 3], ?[7]
aten::shapes_.all|float32[4, 3], ?
aten::shapes.cat|tensors[5] (float32[4, 3], int64[], ?, none, ...), scalar
aten::shapes.cat|?, scalar
aten::shapes.cat|tensors[2] (?, ?), scalar
aten::is_it|float32[4, 3]
aten::orphan_op|-'

case_operators_shapes() {
	ct record --layers torch --shapes -o "$T/r.ctrace" -- "$OPERATORS" shapes
	ok_rc
	says '13 scopes, 0 lost'
	ct export --to json -o "$T/json" "$T/r.ctrace"
	python3 -c 'import json, sys
for r in map(json.loads, open(sys.argv[1])):
    if r["type"] == "operator": print(r["name"] + "|" + r.get("inputs", "-"))' "$T/json" > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$SHAPES" || fail "shapes differ: $(head -n 6 "$T/diff")"
	ct export --to csv -o "$T/csv" "$T/r.ctrace"
	python3 -c 'import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    if r["type"] == "operator": print(r["name"] + "|" + (r["inputs"] or "-"))' "$T/csv" > "$T/got"
	diff - "$T/got" > "$T/diff" <<< "$SHAPES" || fail "csv differs: $(head -n 6 "$T/diff")"
	ct export --to chrome -o "$T/kineto" "$T/r.ctrace"
	python3 -c 'import json, sys
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e.get("cat") == "cpu_op" and e["name"] != "aten::shapes_": print(e["name"], e["args"].get("Input Dims"), e["args"].get("Input type"))' "$T/kineto" > "$T/got"
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "Kineto's format differs: $(head -n 6 "$T/diff")"
	aten::shapes [[4, 3], [], [[4, 3], [4, 3]], [], [], []] ['float', '', 'TensorList', 'Scalar', 'Scalar', '']
	aten::shapes [[], [2, 0, 5, 1, 1000000], [], [], [], []] ['long int', 'c10::BFloat16', 'TensorList', 'Scalar', 'Scalar', '']
	aten::shapes [[], []] ['TensorList', 'Scalar']
	aten::shapes [[], []] ['', 'Scalar']
	aten::shapes [[[], []], []] ['TensorList', 'Scalar']
	aten::is_it [[4, 3]] ['float']
	aten::orphan_op None None
	EOF
	ct export --to otlp-json -o "$T/otlp" "$T/r.ctrace"
	expect "OTLP" "$(grep -o '"scope.inputs","value":{"stringValue":"int64\[\], bfloat16[^"]*"' "$T/otlp" | cut -d'"' -f8)" 'int64[], bfloat16[2, 0, 5, 1, 1000000], tensors[0], scalar, scalar, ?'
	# nothing is read that was not asked for
	ct_json --layers torch -- "$OPERATORS" shapes
	expect "operators" "$(grep -c '"type":"operator"' "$T/out")" 13
	! grep -q '"inputs"' "$T/out" || fail "shapes are read"
	ct --shapes -- "$OPERATORS" shapes
	says "--shapes is about PyTorch's operators: give --layers torch"
}

# PyTorch's own, where it is installed: each shape and type that is known is torch.profiler's.
case_operators_pytorch_shapes() {
	local python=${TORCH_PYTHON:-python3}
	"$python" -c 'import torch' 2> /dev/null || skip "no PyTorch here (TORCH_PYTHON=... names a Python that has it)"
	ct --layers torch --shapes --format chrome -o "$T/ours" -- "$python" tests/cases/prog/pytorch_shapes.py "$T/profiled"
	ok_rc
	python3 tests/cases/check_shapes.py "$T/ours" "$T/profiled" > "$T/got" || fail "$(head -n 3 "$T/got")"
}

# Calls and what the device did by the operator that they are inside of: the rows are all there is.
case_operators_stat() {
	ct stat --by operator --json -o "$T/sums" -- "$OPERATORS" train 3
	ok_rc
	python3 - "$T/sums" > "$T/got" << 'EOF' || fail "the sums are not right: $(cat "$T/sums")"
import json, sys
t = json.load(open(sys.argv[1], encoding='utf-8'))
assert t['by'] == 'operator' and sum(r['calls'] for r in t['rows']) == t['calls'], t
for r in sorted(t['rows'], key=lambda r: r.get('name', '~')):
    print(r.get('name', 'none'), r['count'], r['calls'])
EOF
	diff - "$T/got" > "$T/diff" <<- 'EOF' || fail "sums differ: $(head -n 12 "$T/diff")"
	AddmmBackward0 3 0
	aten::add_.Tensor 6 6
	aten::addmm 3 0
	aten::empty.memory_format 3 0
	aten::log_softmax.int 3 3
	aten::mm 6 6
	torch::autograd::AccumulateGrad 3 0
	none 0 8
	EOF
}

# steps_of FILE: how the steps of the program were told, their numbers, and whether the parts of each add up to its length.
steps_of() {
	python3 - "$1" << 'EOF'
import json, sys
p, = json.load(open(sys.argv[1], encoding='utf-8'))['processes']
parts = [[s[k] for k in ('compute_ns', 'exposed_ns', 'copy_ns', 'idle_ns')] for s in p['steps'] if 'idle_ns' in s]
whole = all(sum(n) == s['duration_ns'] for n, s in zip(parts, p['steps']))
print(p['found_by'], p.get('period', '-'), *[s['step'] for s in p['steps']],
      'no split' if not parts else 'whole' if whole else parts, 'copies' if sum(n[2] for n in parts) else 'no copies')
EOF
}

# The steps of a program that names them, of one that does not but whose optimizer does, and of one that only repeats.
case_operators_steps() { # long
	local what want marked
	for what in steps train plain; do
		ct stat --gpu --by step --json -o "$T/live" -- "$OPERATORS" $what 5
		ok_rc
		ct record --gpu --layers torch -o "$T/r.ctrace" -- "$OPERATORS" $what 5
		ok_rc
		ct stat --by step --json -o "$T/stored" "$T/r.ctrace"
		ok_rc
		case $what in
		steps) want="profiler - 1 2 3 4 5 whole copies" ;;
		train) want="optimizer - 1 2 3 4 whole copies" ;;
		plain) want="operators 2 1 2 3 4 5 whole copies" ;;
		esac
		ct export --to chrome -o "$T/kineto" "$T/r.ctrace"
		case $what in
		steps) marked="ProfilerStep#1 ProfilerStep#2 ProfilerStep#3 ProfilerStep#4 ProfilerStep#5" ;;
		train) marked="ProfilerStep#1:optimizer ProfilerStep#2:optimizer ProfilerStep#3:optimizer ProfilerStep#4:optimizer" ;;
		plain) marked="ProfilerStep#1:operators ProfilerStep#2:operators ProfilerStep#3:operators ProfilerStep#4:operators ProfilerStep#5:operators" ;;
		esac
		expect "$what, in Kineto's format" "$(python3 -c 'import json, sys
print(*(e["name"] + (":" + e["args"]["found_by"] if "found_by" in e["args"] else "") for e in json.load(open(sys.argv[1]))["traceEvents"]
        if e.get("ph") == "X" and e["name"].startswith("ProfilerStep")))' "$T/kineto")" "$marked"
		expect "$what, live" "$(steps_of "$T/live")" "$want"
		expect "$what, stored" "$(steps_of "$T/stored")" "$want"
	done
	ct stat --by step --step 'Optimizer*' --json -o "$T/named" -- "$OPERATORS" train 4
	expect "named" "$(steps_of "$T/named")" "range - 1 2 3 4 no split no copies"
	ct stat --by step -o "$T/none" -- "$OPERATORS" throws
	grep -q 'none found' "$T/none" || fail "not said: $(cat "$T/none")"
	ct stat --step x -- "$OPERATORS" train 1
	says "give --by step"
}
