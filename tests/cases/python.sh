# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# python.sh - cases of Python frames: each interpreter that is installed says what its stacks are, and cudatrace shows the same.

STACKS=$ROOT/tests/unit/python_stacks.py

# The interpreters of the versions that are supported, and those that CT_PYTHONS names.
pythons() {
	local p
	for p in /usr/bin/python3 /usr/local/bin/python3 ~/.pyenv/versions/3.1[01234].*/bin/python3 ${CT_PYTHONS-}; do
		[ -x "$p" ] && "$p" -c 'import sys, ctypes; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2> /dev/null &&
			echo "$p"
	done
}

# by_each_source CASE: the case with probes and, where there are any, with hooks; the option is in ${source[@]}.
by_each_source() {
	local source=()
	"$1"
	[ "$(uname -m)" = x86_64 ] || return 0
	source=(--source=hooks)
	"$1"
}

# said_is_seen PYTHON COUNT: the stacks that the script described are those of the trace.
said_is_seen() {
	local answer
	answer=$(python3 "$ROOT/tests/cases/check_python.py" "$T/prog.out" "$T/out" 2>&1) || fail "$1: $answer"
	expect "$1" "$answer" "$2 stacks"
	no_loss
}

stacks_of_python() {
	local p n=0
	mkdir -p "$T/mädchen_日本"
	cp "$STACKS" "$T/mädchen_日本/stäcks.py"
	for p in $(pythons); do
		PYTHONUTF8=1 ct_json "${source[@]}" -f -k -e cudaMalloc -- "$p" "$T/mädchen_日本/stäcks.py" "$STANDIN/libcudart.so" cudaMalloc
		ok_rc
		said_is_seen "$p ${source[*]}" 39
		n=$((n + 1))
	done
	[ "$n" -gt 0 ] || skip "no Python from 3.10 to 3.14 here"
}
case_python_stacks() { # long undisturbed
	by_each_source stacks_of_python
}

# Python's frames alone: the same ones, and no native frame. A program without Python has none.
alone_of_python() {
	local p
	for p in $(pythons); do
		PYTHONUTF8=1 ct_json "${source[@]}" -f --stack=python -e cudaMalloc -- "$p" "$STACKS" "$STANDIN/libcudart.so" cudaMalloc
		ok_rc
		said_is_seen "$p ${source[*]}" 39
		expect "native frames" "$(grep -c '"kind":"native"' "$T/out")" 0
	done
	ct_json "${source[@]}" --stack=python -- "$BIN/calls" mix 1 1 1
	ok_rc
	expect "stacks of C" "$(grep -c '"stack"' "$T/out")" 0
}
case_python_alone() { # long undisturbed
	by_each_source alone_of_python
}

# Threads that end while others are looked for: the state of one that has ended leads nowhere, and each call has its stack.
threads_of_python() {
	local p
	cat > "$T/threads.py" << 'EOF'
import ctypes, sys, threading
call, memory = ctypes.CDLL(sys.argv[1]).cudaMalloc, ctypes.c_void_p()
def work(ready):
    ready.wait()
    call(ctypes.byref(memory), 4096)
for _ in range(50):
    ready = threading.Barrier(24)
    threads = [threading.Thread(target=work, args=(ready,)) for i in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
EOF
	for p in $(pythons); do
		ct_json "${source[@]}" --stack=python -e cudaMalloc -- "$p" "$T/threads.py" "$STANDIN/libcudart.so"
		ok_rc
		no_loss
		expect "$p ${source[*]}: calls" "$(grep -c '"type":"call"' "$T/out")" 1200
		expect "$p ${source[*]}: calls with a stack" "$(grep -c '"function":"work"' "$T/out")" 1200
	done
}
case_python_threads_that_end() { # long undisturbed
	by_each_source threads_of_python
}

# Attached while it runs.
attach_of_python() {
	local p
	for p in $(pythons); do
		rm -f "$T/in" "$T/prog.out" "$T/out" "$T/err"
		mkfifo "$T/in"
		# it waits for a byte, is attached to, and goes on
		PYTHONUTF8=1 "$p" -c '
import ctypes, os, runpy, sys
ctypes.CDLL(sys.argv[2])
os.write(1, b"ready\n")
os.read(0, 1)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
' "$STACKS" "$STANDIN/libcudart.so" cudaMalloc < "$T/in" > "$T/prog.out" 2> "$T/prog.err" &
		PID=$!
		exec {fd}> "$T/in"
		wait_for 10 grep -q ready "$T/prog.out"
		attach "${source[@]}" -f -k -e cudaMalloc -p $PID
		echo >&"$fd"
		exec {fd}>&-
		wait_for 20 grep -q bye "$T/prog.out"
		finish
		ok_rc
		said_is_seen "$p ${source[*]}" 39
	done
}
case_python_attach() { # long undisturbed
	by_each_source attach_of_python
}

# Python's frames stand among the native ones where their evaluation loop is: the lambda is called by sorted(), which is
# called by the module. None of the interpreter's loops is left to be seen.
joined_of_python() {
	local p got want
	cat > "$T/joined.py" << 'EOF'
import ctypes, sys, time
malloc = ctypes.CDLL(sys.argv[1]).cudaMalloc
place = ctypes.c_void_p()
def inner(x):
    return malloc(ctypes.byref(place), 64)
def outer():
    return sorted([1], key=lambda x: inner(x))
outer()
time.sleep(0.3)  # the files of a process that has ended cannot be looked at for the way up its native stack
EOF
	for p in $(pythons); do
		ct_json "${source[@]}" -k -e cudaMalloc -- "$p" "$T/joined.py" "$STANDIN/libcudart.so"
		ok_rc
		got=$(python3 -c '
import json, sys
for row in map(json.loads, open(sys.argv[1])):
    if row["type"] == "call":
        kinds = "".join("p" if f["kind"] == "python" else "n" for f in row["stack"])
        parts = [len(x) for x in kinds.replace("n", " ").split()]
        print(parts, kinds[0], kinds[-1], [f["function"] for f in row["stack"] if f["kind"] == "python"],
              sum("PyEval_EvalFrameDefault" in f.get("function", "") for f in row["stack"]))
' "$T/out")
		want="[2, 2] n n ['inner', 'outer.<locals>.<lambda>', 'outer', '<module>'] 0"
		# 3.10 has no qualified names, and calls each function by a loop of its own
		[[ $("$p" -V) != *' 3.10.'* ]] || want="[1, 1, 1, 1] n n ['inner', '<lambda>', 'outer', '<module>'] 0"
		expect "$p ${source[*]}" "$got" "$want"
	done
}
case_python_joined() { # long undisturbed
	by_each_source joined_of_python
}

# What people see of stacks: mem, folded and advise take Python's frames alone where a thread runs Python. Without --all-frames nothing of the
# interpreter, of libc's start, and of where a package is installed.
case_python_shown() { # undisturbed
	local p lib=$STANDIN/libcudart.so mod=$T/site-packages/pkg/mod.py frames
	p=$(pythons | head -n 1)
	[ -n "$p" ] || skip "no Python from 3.10 to 3.14 here"
	mkdir -p "${mod%/*}"
	cat > "$mod" << 'EOF'
import ctypes, sys, time
malloc, place = ctypes.CDLL(sys.argv[1]).cudaMalloc, ctypes.c_void_p()
def inner():
    return malloc(ctypes.byref(place), 64)
def outer(x):
    return inner()
sorted([1], key=outer)
time.sleep(0.3)
EOF
	frames="<module> (mod.py);outer (mod.py);inner (mod.py);cudaMalloc 1"
	ct folded -e cudaMalloc -o "$T/folded" -- "$p" "$mod" "$lib"
	ok_rc
	expect "folded" "$(cut -d ';' -f 2- "$T/folded")" "$frames"
	ct folded -k -e cudaMalloc -o "$T/folded" -- "$p" "$mod" "$lib"
	ok_rc
	expect "folded with native frames" "$(cut -d ';' -f 2- "$T/folded")" "$frames"
	ct folded -k --all-frames -e cudaMalloc -o "$T/folded" -- "$p" "$mod" "$lib"
	ok_rc
	grep -q '_start;.*;<module> (mod.py);.*;outer (mod.py);inner (mod.py);.*;cudaMalloc 1' "$T/folded" || fail "all frames: $(cat "$T/folded")"
	ct mem --leak-check -o "$T/mem" -- "$p" "$mod" "$lib"
	expect "mem" "$(grep -A 3 '^Leaked' "$T/mem" | tail -n 3 | tr -s ' ')" " inner pkg/mod.py:4
 outer pkg/mod.py:6
 <module> pkg/mod.py:7"
	ct mem --all-frames --leak-check -o "$T/mem" -- "$p" "$mod" "$lib"
	expect "mem, whole paths" "$(grep -A 1 '^Leaked' "$T/mem" | tail -n 1 | tr -s ' ')" " inner $mod:4"
	ct -k -e cudaMalloc -o "$T/rows" -- "$p" "$mod" "$lib"
	expect "rows" "$(grep python "$T/rows" | grep -v cudaMalloc | tr -s ' ')" " inner (pkg/mod.py:4) [python]
 outer (pkg/mod.py:6) [python]
 <module> (pkg/mod.py:7) [python]"
	# a program without Python has its native stacks, from main() on
	ct folded -e cudaMalloc -o "$T/folded" -- "$BIN/calls" mix 1 1 1
	ok_rc
	expect "folded of C" "$(grep -c '^calls;main;mode_mix;cudaMalloc ' "$T/folded")" 1
}

# What cannot be read is said, once, and the rest goes on.
case_python_old() { # long
	local p n=0
	for p in ~/.pyenv/versions/3.{8,9}.*/bin/python3; do
		[ -x "$p" ] || continue
		n=$((n + 1))
		ct_json -k -e cudaMalloc -- "$p" -c 'import ctypes, sys
for i in range(3): ctypes.CDLL(sys.argv[1]).cudaMalloc(ctypes.byref(ctypes.c_void_p()), 64)' "$STANDIN/libcudart.so"
		ok_rc
		expect_rows cudaMalloc 3
		expect_rows cudaMalloc 0 '"kind":"python"'
		expect "warnings" "$(grep -c 'no Python frames: .*older than 3.10' "$T/err")" 1
	done
	[ $n -gt 0 ] || skip "no older Python here"
}

# Without -k nothing is looked at.
case_python_not_asked() { # undisturbed
	local p
	p=$(pythons | head -n 1)
	[ -n "$p" ] || skip "no Python from 3.10 to 3.14 here"
	ct_json -f -e cudaMalloc -- "$p" "$STACKS" "$STANDIN/libcudart.so" cudaMalloc
	ok_rc
	expect_rows cudaMalloc 39
	expect_rows cudaMalloc 0 '"stack"'
}
