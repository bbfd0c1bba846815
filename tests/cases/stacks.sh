# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# stacks.sh - cases about stacks: of programs built at -O2 without frame pointers, launched and attached to.
CHAIN=$OUT/cases/chain

# functions JSON API: the functions of each call's stack, innermost first, one line a call
functions() {
	python3 - "$1" "$2" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    if row.get("type") == "call" and row.get("name") == sys.argv[2]:
        names = [f.get("function") or "?" for f in row.get("stack", [])]
        if "main" in names:
            names = names[:names.index("main") + 1]
        print(" ".join(names), " ".join(row.get("stack_flags", [])), sep="|")
PY
}

# stack_is WANT [API]: every call has this stack, up to main
stack_is() {
	functions "$T/out" "${2:-cudaMalloc}" | sort -u > "$T/stacks"
	expect "stacks" "$(cat "$T/stacks")" "$1"
}

case_stack_plain() {
	ct_json -k -e cudaMalloc -- "$CHAIN" plain
	ok_rc
	stack_is "inner middle outer main|"
	no_loss
}

case_stack_lines() {
	ct_rows -k -e cudaMalloc -- "$CHAIN" plain
	ok_rc
	grep -q -E '^ +main\+0x' <(tail -n 1 "$T/out") || fail "the stack shown does not end at main: $(tail -n 2 "$T/out")"
	ct_rows -k --all-frames -e cudaMalloc -- "$CHAIN" plain
	ok_rc
	grep -q -E "^ +inner\+0x[0-9a-f]+ \(.*chain\.c:$(grep -n 'cudaMalloc(&p' "$ROOT/tests/cases/prog/chain.c" | cut -d: -f1)\) .*/chain$" "$T/out" ||
		fail "no line for inner: $(grep inner "$T/out")"
	grep -q -E '^ +_start\+0x' "$T/out" || fail "the stack does not end at _start: $(tail -n 2 "$T/out")"
}

case_stack_static() {
	ct_json -k -e cudaMalloc -- "$CHAIN-static" plain
	ok_rc
	stack_is "inner middle outer main|"
}

case_stack_no_pie() {
	ct_json -k -e cudaMalloc -- "$CHAIN-no-pie" plain
	ok_rc
	stack_is "inner middle outer main|"
}

# Nothing is left to name them, but every frame is there, with its place in the file.
case_stack_stripped() {
	ct_json -k -e cudaMalloc -- "$CHAIN-stripped" plain
	ok_rc
	functions "$T/out" cudaMalloc > "$T/stacks"
	grep -q -E '^(\? ){4}' "$T/stacks" || fail "$(cat "$T/stacks")"
	grep -q '__libc_start_main' "$T/out" || fail "not unwound to the start"
}

# mini FROM: a stripped program whose other symbols are in .gnu_debugdata, made of the file FROM
mini() {
	xz -0 -c "$1" > "$T/mini.xz" && objcopy --add-section .gnu_debugdata="$T/mini.xz" "$CHAIN-stripped" "$T/chain-mini"
}

case_stack_mini_symbols() {
	{ command -v xz && command -v objcopy; } > "$T/tools" || skip "xz or objcopy is missing"
	objcopy --strip-debug --remove-section=.comment "$CHAIN" "$T/symbols"
	mini "$T/symbols"
	ct_json -k -e cudaMalloc -E LD_LIBRARY_PATH="$OUT/standin" -- "$T/chain-mini" plain
	ok_rc
	stack_is "inner middle outer main|"
}

# 60 kB that would be 400 MB: neither read nor in the way of the stack
case_stack_mini_bomb() { # long
	{ command -v xz && command -v objcopy; } > "$T/tools" || skip "xz or objcopy is missing"
	head -c 400000000 /dev/zero > "$T/zeros"
	mini "$T/zeros"
	ct_json -k -e cudaMalloc -E LD_LIBRARY_PATH="$OUT/standin" -- "$T/chain-mini" plain
	ok_rc
	expect "warnings" "$(grep -c 'mini debug information is damaged, or unpacks to more than 64 MiB' "$T/err")" 1
	grep -q '__libc_start_main' "$T/out" || fail "not unwound to the start"
}

case_stack_deep() {
	local n
	n=$(random 20 120)
	ct_json -k -e cudaMalloc -- "$CHAIN" deep "$n"
	ok_rc
	expect "frames of down()" "$(functions "$T/out" cudaMalloc | tr ' ' '\n' | grep -c '^down$')" "$n"
}

# More than 16 KiB: cut, and said so.
case_stack_cut() {
	ct_json -k -e cudaMalloc -- "$CHAIN" deep 5000
	ok_rc
	functions "$T/out" cudaMalloc > "$T/stacks"
	grep -q -E '^inner down down down .*\|cut$' "$T/stacks" || fail "$(cut -c1-60 "$T/stacks") ... $(tail -c 40 "$T/stacks")"
}

case_stack_beyond_an_array() {
	ct_json -k -e cudaMalloc -- "$CHAIN" big
	ok_rc
	functions "$T/out" cudaMalloc > "$T/stacks"
	grep -q -E '^inner roomy\|cut$' "$T/stacks" || fail "$(cat "$T/stacks")"
}

case_stack_called_back() {
	ct_json -k -e cudaMalloc -- "$CHAIN" back
	ok_rc
	functions "$T/out" cudaMalloc > "$T/stacks"
	grep -q -E '^inner compare .*by_library main\|$' "$T/stacks" || fail "$(cat "$T/stacks")"
}

case_stack_thread() {
	ct_json -k -e cudaMalloc -- "$CHAIN" thread
	ok_rc
	functions "$T/out" cudaMalloc > "$T/stacks"
	grep -q -E '^inner worker start_thread ' "$T/stacks" || fail "$(cat "$T/stacks")"
}

# The driver's call inside the runtime's: the return probe of the outer one has replaced its return address.
case_stack_nested() {
	ct_json -k --nested -e cudaMalloc,cuMemAlloc_v2 -- "$CHAIN" plain
	ok_rc
	stack_is "inner middle outer main|"
	functions "$T/out" cuMemAlloc_v2 > "$T/stacks"
	grep -q -E '^(in_)?cudaMalloc inner middle outer main\|$' "$T/stacks" || fail "$(cat "$T/stacks")"
}

# Probes at the entry alone, and a call that is shown before it returns.
case_stack_no_return() {
	ct_json -k --no-return -e cudaMalloc -- "$CHAIN" plain
	ok_rc
	stack_is "inner middle outer main|"
}

case_stack_enter_exit() {
	ct_json -k --enter-exit -e cudaMalloc -- "$CHAIN" plain
	ok_rc
	stack_is "inner middle outer main|"
}

# 20 000 calls from one place: each has its stack, none is lost.
case_stack_often() {
	ct_json -k -e cudaMalloc -- "$CHAIN" often 20000
	ok_rc
	expect_rows cudaMalloc 20000
	functions "$T/out" cudaMalloc | sort | uniq -c > "$T/stacks"
	grep -q -E '^ +20000 inner middle outer main\|$' "$T/stacks" || fail "$(cat "$T/stacks")"
	no_loss
}

case_stack_attached() {
	local pid
	mkfifo "$T/lines"
	"$CHAIN" lines < "$T/lines" > "$T/prog.out" 2>&1 &
	pid=$!
	exec 9> "$T/lines"
	printf '\n\n' >&9
	wait_for 5 grep -q libcudart "/proc/$pid/maps"
	{
		until grep -q 'cudatrace: ready' "$T/err" 2> /dev/null; do sleep 0.05; done
		printf '\n\n\n' >&9
	} &
	ct_json -v -k -p "$pid" -e cudaMalloc -n 3
	exec 9>&-
	kill "$pid" 2> /dev/null
	expect_rows cudaMalloc 3
	stack_is "inner middle outer main|"
}

# The process shows its memory and its files no more under its own number.
case_stack_main_thread_ended() {
	local pid
	mkfifo "$T/lines"
	"$CHAIN" alone < "$T/lines" > "$T/prog.out" 2>&1 &
	pid=$!
	exec 9> "$T/lines"
	wait_for 5 main_ended "$pid"
	attach -k -p "$pid" -e cudaMalloc -n 2
	printf '\n\n' >&9
	finish
	exec 9>&-
	expect_rows cudaMalloc 2
	functions "$T/out" cudaMalloc | sort -u > "$T/stacks"
	grep -q -E '^inner middle outer alone start_thread .*\|$' "$T/stacks" || fail "$(cat "$T/stacks")"
	expect "stacks" "$(wc -l < "$T/stacks")" 1
}

main_ended() {
	grep -q '^State:.*Z' "/proc/$1/status" && [ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]
}

case_stack_frame_pointers() {
	ct_json --stack=fp -e cudaMalloc -- "$CHAIN-fp" plain
	ok_rc
	stack_is "inner middle outer main|"
}

case_stack_only_of_what_is_shown() {
	ct_json -k -e sync -- "$CHAIN" hang
	ok_rc
	expect_rows cudaMalloc 0
	stack_is "wait_for_gpu main|" cudaDeviceSynchronize
}

case_folded_calls() {
	ct folded -e cudaMalloc -o "$T/folded" -- "$CHAIN" often 250
	ok_rc
	expect "lines" "$(cat "$T/folded")" "chain;main;outer;middle;inner;cudaMalloc 250"
	ct folded --all-frames -e cudaMalloc -o "$T/folded" -- "$CHAIN" often 250
	ok_rc
	expect "lines" "$(sed -E 's|^chain;_start;.*;main;outer|main;outer|' "$T/folded")" "main;outer;middle;inner;cudaMalloc 250"
}

case_folded_bytes() {
	ct --format folded --weight bytes -e cudaMalloc -o "$T/folded" -- "$CHAIN" often 250
	ok_rc
	grep -q ';inner;cudaMalloc 32000$' "$T/folded" || fail "$(cat "$T/folded")"
}

case_folded_threads() {
	ct folded --tid -e cudaMalloc -o "$T/folded" -- "$CHAIN" often 250
	ok_rc
	expect "lines" "$(sed -E 's|^chain;chain \([0-9]+\);main;outer|chain;thread;main;outer|' "$T/folded")" \
		"chain;thread;main;outer;middle;inner;cudaMalloc 250"
}

case_flame_page() {
	ct --format flame -o "$T/flame.html" -- "$CHAIN" often 50
	ok_rc
	grep -q '<!doctype html>' "$T/flame.html" || fail "no page: $(head -c 100 "$T/flame.html")"
	grep -q 'middle' "$T/flame.html" || fail "no frames in the page"
}
