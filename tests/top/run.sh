#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - `cudatrace top` as a user has it: driven in tmux, its screen compared; and --batch against programs that know their
# calls: tests/top/run.sh [NAME-GLOB...]. Needs root, tmux, ./cudatrace and the programs of `make cases-progs`. Prints `ok`,
# `not ok` and `skip` lines. It waits for screens, never for a time.
# shellcheck disable=SC2317,SC2154,SC2119 # the cases are called by name; names made by target
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib.sh disable=SC1091
. "$here/../lib.sh"
# shellcheck source=tests/machine.sh disable=SC1091
. "$here/../machine.sh"
export LC_ALL=C.UTF-8

# ---- the terminal ------------------------------------------------------------------------------------------------

tm() {
	tmux -S "$T/tmux" -f /dev/null "$@"
}

# terminal [WIDTH HEIGHT]: a terminal with a shell in it.
terminal() {
	echo "PS1='shell> '; unset HISTFILE" > "$T/rc"
	env -u TMUX -u TERM SHELL=/bin/bash tmux -S "$T/tmux" -f /dev/null new-session -d -x "${1:-100}" -y "${2:-24}" \
		"exec bash --rcfile '$T/rc' -i" || fail "tmux does not start"
	tm set-option -g status off > /dev/null
	tm resize-window -x "${1:-100}" -y "${2:-24}"
	wait_for 10 on_screen 'shell>'
}

keys() {
	tm send-keys "$@"
}

screen() {
	tm capture-pane -p
}

# on_screen REGEX: some line of the screen has it.
on_screen() {
	screen | grep -q -E -- "$1"
}

off_screen() {
	! on_screen "$1"
}

# shown REGEX [WHAT]: waits until the screen has it.
shown() {
	local until=$((SECONDS + 60))
	until on_screen "$1"; do
		[ "$SECONDS" -lt "$until" ] || fail "the screen never shows '$1': $(screen | grep . | head -n 12)"
		sleep 0.05
	done
}

gone() {
	local until=$((SECONDS + 60))
	while on_screen "$1"; do
		[ "$SECONDS" -lt "$until" ] || fail "the screen still shows '$1': $(screen | grep . | head -n 12)"
		sleep 0.05
	done
}

# command WORDS: typed into the shell; its status comes after it.
command_line() {
	keys -l "$*; echo \"status=\$?\""
	keys Enter
}

# top ARGS...: starts it in the terminal and waits until it shows itself. TOP_ENV holds variables.
top() {
	keys -l "stty -g > $T/before; clear"
	keys Enter
	command_line "${TOP_ENV:-} $CUDATRACE top -i 0.2 $* 2> $T/err"
	shown '^cudatrace top  '
	tm display-message -p '#{pane_pid}' > "$T/shell"
	TOP=$(pgrep -P "$(cat "$T/shell")" -f 'cudatrace top' | head -n 1)
}

# restored STATUS: the terminal is as it was.
restored() {
	shown "^status=$1"
	keys -l "stty -g > $T/after; echo done"
	keys Enter
	shown '^done'
	cmp -s "$T/before" "$T/after" || fail "stty: $(cat "$T/after"), not $(cat "$T/before")"
	expect "cursor" "$(tm display-message -p '#{cursor_flag}')" 1
	expect "alternate screen" "$(tm display-message -p '#{alternate_on}')" 0
	expect "keypad" "$(tm display-message -p '#{keypad_cursor_flag}')" 0
}

# same_screen: the screen is what stands on stdin, with what differs from run to run replaced and without empty lines.
same_screen() {
	local until=$((SECONDS + 60))
	cat > "$T/want"
	while
		screen | sed -E "s/^(cudatrace top)  .*  ([0-9]{2}:){2}[0-9]{2}  every/\1  HOST  TIME  every/
			s/^(cudatrace itself: )[0-9.]+% of a core, costs the programs [0-9.]+% or more.*/\1N/
			s/\b${PID_a:-none}\b/A/g; s/\b${PID_b:-none}\b/B/g; s/^ +([AB])\b/\1/; s/ +\$//; /^\$/d" > "$T/got"
		! cmp -s "$T/want" "$T/got"
	do
		[ "$SECONDS" -lt "$until" ] || fail "the screen differs: $(diff "$T/want" "$T/got" | head -n 20)"
		sleep 0.05
	done
}

# ---- the screen --------------------------------------------------------------------------------------------------

# Two programs that have made their calls and wait: nothing moves any more.
quiet_pair() {
	target a mix 500 200 10
	target b failing 30 40
	terminal "$@"
	top -p "$PID_a,$PID_b" --sort pid
	shown 'no process has made a call yet'
	go a
	go b
	shown ' calls$'
}

case_top_list() {
	quiet_pair
	same_screen <<- E
		cudatrace top  HOST  TIME  every 200ms
		2 processes  0 calls/s  0 launches/s  HtoD 0/s  DtoH 0/s  API 0.0%  sync 0.0%  0 failed/s
		cudatrace itself: N
		    PID CALLS/s LAUNCH/s   API%  SYNC%   GPU%  BUSY% HtoD/s DtoH/s  MEMORY FAIL/s COMMAND
		A       0        0    0.0    0.0      -      -      0      0      +0      0 calls
		B       0        0    0.0    0.0      -      -      0      0       -      0 calls
		Enter: functions  k: kernels  t: threads  Space: pause  ?: help  q: quit
	E
	keys q
	restored 0
	says '1282 calls'
}

case_top_sort() {
	quiet_pair
	[ "$PID_a" -lt "$PID_b" ] || skip "process numbers began anew"
	keys r
	same_screen <<- E
		cudatrace top  HOST  TIME  every 200ms
		2 processes  0 calls/s  0 launches/s  HtoD 0/s  DtoH 0/s  API 0.0%  sync 0.0%  0 failed/s
		cudatrace itself: N
		    PID CALLS/s LAUNCH/s   API%  SYNC%   GPU%  BUSY% HtoD/s DtoH/s  MEMORY FAIL/s COMMAND
		B       0        0    0.0    0.0      -      -      0      0       -      0 calls
		A       0        0    0.0    0.0      -      -      0      0      +0      0 calls
		Enter: functions  k: kernels  t: threads  Space: pause  ?: help  q: quit
	E
	keys q
	restored 0
}

case_top_functions() {
	quiet_pair
	keys Enter
	same_screen <<- E
		cudatrace top  HOST  TIME  every 200ms
		2 processes  0 calls/s  0 launches/s  HtoD 0/s  DtoH 0/s  API 0.0%  sync 0.0%  0 failed/s
		cudatrace itself: N
		functions of A calls
		 CALLS/s   API%    MEAN HtoD/s DtoH/s FAIL/s   CALLS FUNCTION
		       0    0.0       -      0      0      0     501 cudaFree
		       0    0.0       -      0      0      0     501 cudaMalloc
		       0    0.0       -      0      0      0     200 cudaMemcpy
		       0    0.0       -      0      0      0      10 cudaMemset
		Esc: back  Space: pause  ?: help  q: quit
	E
	keys Escape
	shown 'Enter: functions'
	keys Down Enter
	shown "functions of $PID_b calls"
	shown ' 40 cudaSetDevice$'
	shown ' 30 cudaStreamQuery$'
	keys q
	restored 0
}

# Counted by thread from the key on: what was called before has no thread.
case_top_threads() {
	local fd
	target a lines
	fd=$FD_a
	terminal
	top -p "$PID_a"
	echo >&"$fd"
	echo 4 >&"$fd"
	shown ' calls$'
	keys t
	shown "^threads of $PID_a calls"
	shown 'nothing counted yet'
	echo 7 >&"$fd"
	shown "^ *$PID_a .* 7 calls\$"
	keys Escape
	shown 'Enter: functions'
	keys Enter
	shown ' 11 cudaStreamQuery$'
	keys q
	restored 0
}

case_top_kernels() {
	local prog=$OUT/programs/module
	[ -x "$prog" ] || skip "module is not built: it needs nvcc"
	PROG=$prog target a alpha
	terminal
	top -p "$PID_a"
	go a nowait
	shown ' module$'
	keys k
	shown "^kernels of $PID_a module"
	shown 'nothing counted yet'
	go a
	shown " 2 alpha\$"
	keys q
	restored 0
}

case_top_filter() {
	cp "$CALLS" "$T/other"
	target a mix 5 0 0
	LD_LIBRARY_PATH=$STANDIN PROG=$T/other target b mix 5 0 0
	terminal
	top -p "$PID_a,$PID_b" --sort pid
	go a
	go b
	shown ' other$'
	shown ' calls$'
	keys / O T
	shown '^names with: OT_'
	gone ' calls$'
	shown ' other$'
	keys Enter
	shown "^only names with 'OT'"
	keys Escape
	shown ' calls$'
	keys / z Enter
	gone ' other$'
	gone ' calls$'
	keys q
	restored 0
}

case_top_help() {
	quiet_pair
	keys '?'
	shown '^Keys of cudatrace top'
	shown '^k +its kernels'
	off_screen 'COMMAND' || fail "the rows stand beside the help"
	keys x
	shown ' calls$'
	keys q
	restored 0
}

case_top_resize() {
	quiet_pair
	tm resize-window -x 40 -y 10
	same_screen <<- E
		$(printf '%.40s' "cudatrace top  $(hostname)  $(date +%H:%M:%S)  every 200ms" | sed -E 's/  [^ ]+  ([0-9]{2}:){2}[0-9]{2}  every/  HOST  TIME  every/')
		2 processes  0 calls/s  0 launches/s  Ht
		    PID CALLS/s   API%  SYNC% COMMAND
		A       0    0.0    0.0 calls
		B       0    0.0    0.0 calls
		Enter: functions  k: kernels  t: threads
	E
	# no room for a row, nor for anything
	tm resize-window -x 12 -y 3
	shown '^cudatrace to'
	tm resize-window -x 1 -y 1
	# who runs it, and by which command line, where there is room
	tm resize-window -x 200 -y 40
	shown '^ +PID +USER +CONTAINER CALLS/s .* COMMAND$'
	shown "^ +$PID_a +$(id -un) .* [^ ]*/calls --wait "
	shown 'q: quit'
	keys q
	restored 0
}

case_top_narrow() {
	quiet_pair 40 10
	shown '^ +PID CALLS/s   API%  SYNC% COMMAND$'
	[ "$(screen | wc -L)" -le 40 ] || fail "a line is too long"
	keys q
	restored 0
}

# place COLUMN ROW: the two bytes by which a terminal says where, both counted from 1.
place() {
	python3 -c 'import sys; print("".join(chr(32 + int(n)) for n in sys.argv[1:]))' "$1" "$2"
}

# click COLUMN ROW: a button goes down and up.
click() {
	keys -l $'\e[M '"$(place "$1" "$2")"$'\e[M#'"$(place "$1" "$2")"
}

# wheel up|down COLUMN ROW
wheel() {
	local button='`'
	[ "$1" = up ] || button=a
	keys -l $'\e[M'"$button$(place "$2" "$3")"
}

# row_of REGEX: the line of the screen that has it, from 1.
row_of() {
	screen | grep -n -m 1 -E -- "$1" | cut -d: -f1
}

# A click chooses a row, a second one opens it; the wheel moves; a click beside the rows does nothing.
case_top_mouse() {
	TOP_ENV=TERM=screen quiet_pair
	click 10 1
	click 10 24
	click 10 "$(row_of "^ +$PID_b ")"
	click 10 "$(row_of "^ +$PID_b ")"
	shown "^functions of $PID_b calls"
	shown ' 40 cudaSetDevice$'
	keys Escape
	shown 'Enter: functions'
	wheel up 10 5
	keys Enter
	shown "^functions of $PID_a calls"
	keys Escape
	shown 'Enter: functions'
	wheel down 10 5
	keys Enter
	shown "^functions of $PID_b calls"
	keys q
	restored 0
}

# The keys of htop: F1 help, F3 and F4 a filter, F6 another order, F10 the end.
case_top_function_keys() {
	TOP_ENV=TERM=screen quiet_pair
	keys F1
	shown '^Keys of cudatrace top'
	keys x
	shown ' calls$'
	keys F3
	keys -l 'nothing of this name'
	gone ' calls$'
	keys Escape
	shown ' calls$'
	keys F4
	keys -l 'call'
	keys Enter
	shown ' calls$'
	keys Escape
	keys Enter
	shown "^functions of $PID_a calls"
	keys F6
	keys Escape
	shown 'Enter: functions'
	keys F10
	restored 0
}

# GPUs: a line each, with bars from 120 columns on, and nothing beyond the width of the terminal.
case_top_bars() {
	local columns
	target a mix 5 0 0
	terminal 80 24
	TOP_ENV="LD_LIBRARY_PATH=$STANDIN/gpu" top --counters --cupti "$STANDIN/gpu" -p "$PID_a"
	shown '^GPU 0 +[0-9.]+ %  memory [^ ]+ of [^ ]+ +[0-9.]+ W'
	off_screen '[|]' || fail "bars on 80 columns: $(screen | grep '|')"
	for columns in 119 120 200; do
		tm resize-window -x "$columns" -y 24
		[ "$columns" = 119 ] || shown '^GPU 0 +[0-9.]+ % \[\|* *\]  memory [^ ]+ of [^ ]+ \[\|* *\]  [0-9.]+ W'
		[ "$columns" != 119 ] || gone '^GPU 0 .*\['
		[ "$(screen | wc -L)" -le "$columns" ] || fail "a line is too long: $(screen)"
	done
	# of 20 places as many as the share says
	screen | python3 -c '
import re, sys
found = 0
for line in sys.stdin:
    m = re.match(r"GPU \d+ +([0-9.]+) % \[(\|*)( *)\]", line)
    if m:
        found += 1
        assert len(m[2] + m[3]) == 20 and abs(len(m[2]) - float(m[1]) / 5) <= 0.51, line
assert found' || fail "a bar of another length: $(screen | head -n 6)"
	keys q
	restored 0
}

case_top_pause() {
	target a mix 5 0 0
	terminal
	top -p "$PID_a"
	keys Space
	shown 'PAUSED'
	go a
	# a key makes it draw: still what it was when it was paused
	keys r
	keys -
	shown 'every 100ms'
	shown '^0 processes'
	keys Space
	gone PAUSED
	shown '^1 process '
	keys Enter
	shown ' 6 cudaMalloc$'
	keys q
	restored 0
}

case_top_scroll() {
	local i pids=
	for i in $(seq 14); do
		target "n$i" sizes "$i"
		pids+=,$(eval "echo \$PID_n$i")
	done
	terminal 60 12
	top -p "${pids#,}" --sort pid
	for i in $(seq 14); do
		go "n$i"
	done
	shown '^14 processes'
	keys End
	# shellcheck disable=SC2154
	shown "^ *$PID_n14 "
	gone "^ *$PID_n1 "
	keys Enter
	shown "functions of $PID_n14 "
	keys Escape
	keys Home
	shown "^ *$PID_n1 "
	gone "^ *$PID_n14 "
	keys q
	restored 0
}

# A name may hold anything: nothing of it steers the terminal.
case_top_hostile_name() {
	cp "$CALLS" "$T/"$'b\e[31mad\xc3\xa9\xff'
	LD_LIBRARY_PATH=$STANDIN PROG="$T/"$'b\e[31mad\xc3\xa9\xff' target a mix 5 0 0
	terminal
	top -p "$PID_a"
	go a
	shown '^ *[0-9].* b\\033\[31madé\\377$'
	keys q
	restored 0
	LC_ALL=C terminal_again
}

# The same without UTF-8.
terminal_again() {
	TOP_ENV="LC_ALL=C" top -p "$PID_a"
	stop a
	shown '^status='
}

# ---- the end ------------------------------------------------------------------------------------------------------

case_top_sigint() {
	quiet_pair
	keys C-c
	restored 0
}

case_top_sigterm() {
	quiet_pair
	kill -TERM "$TOP"
	restored 0
}

case_top_hangup() {
	quiet_pair
	kill -HUP "$TOP"
	restored 0
}

case_top_crash() {
	quiet_pair
	kill -SEGV "$TOP"
	restored 139
}

case_top_target_ends() {
	quiet_pair
	stop a
	shown '\(ended\)|^1 process '
	stop b
	restored 0
	says '1282 calls'
}

case_top_stop() {
	quiet_pair
	keys C-z
	shown 'Stopped'
	keys -l "stty -g > $T/stopped; clear; echo here"
	keys Enter
	shown '^here'
	cmp -s "$T/before" "$T/stopped" || fail "stty while it is stopped: $(cat "$T/stopped"), not $(cat "$T/before")"
	expect "cursor" "$(tm display-message -p '#{cursor_flag}')" 1
	expect "alternate screen" "$(tm display-message -p '#{alternate_on}')" 0
	keys -l fg
	keys Enter
	shown '^cudatrace top  '
	shown ' calls$'
	keys q
	shown '^here'
	keys -l 'clear; echo status=$?'
	keys Enter
	restored 0
}

# ---- terminals that are none ---------------------------------------------------------------------------------------

case_top_no_terminal() {
	ct top
	ok_rc 1
	says 'give --batch'
	expect "lines of stderr" "$(wc -l < "$T/err")" 1
	[ ! -s "$T/out" ] || fail "it printed: $(head -c 100 "$T/out")"
}

case_top_dumb() {
	terminal
	command_line "TERM=dumb $CUDATRACE top"
	shown '^status=1'
	shown "cannot draw on a terminal of type 'dumb'"
}

# Descriptions of a terminal that a top has made. Other tests have files with similar names.
descriptions() {
	find /tmp/cudatrace-?????? -name cudatrace-ansi 2> /dev/null
}

# No description of the terminal: it is taken for one that knows ANSI's sequences, and a sentence says so.
case_top_unknown_terminal() {
	target a mix 5 0 0
	terminal
	TOP_ENV="TERM=nobody-knows-this" top -p "$PID_a"
	shown '^TERM names no terminal that is known here'
	go a
	shown ' calls$'
	keys Enter
	shown ' 6 cudaMalloc$'
	keys q
	restored 0
	descriptions > "$T/left"
	TOP_ENV="TERM=" top -p "$PID_a"
	keys q
	restored 0
	[ "$(descriptions)" = "$(cat "$T/left")" ] || fail "its description of the terminal was left behind"
}

case_top_colors() {
	quiet_pair
	keys q
	restored 0
	TOP_ENV="NO_COLOR=1" top -p "$PID_a" --sort pid
	tm capture-pane -p -e > "$T/plain"
	keys q
	! grep -q $'\e\[[0-9;]*3[0-7]m' "$T/plain" || fail "colours with NO_COLOR"
}

# ---- batch ---------------------------------------------------------------------------------------------------------

# summed KEY [FILTER]: of the JSON lines in $T/json.
summed() {
	python3 - "$T/json" "$1" <<- 'E'
		import json, sys
		print(sum(r[sys.argv[2]] for r in map(json.loads, open(sys.argv[1])) if r["type"] == "top_process"))
	E
}

case_top_batch_counts() {
	target a mix 5000 3000 200
	"${BACKGROUND[@]}" "$CUDATRACE" top --batch -v -i 0.1 --format json -o "$T/json" -p "$PID_a" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q '"top_machine"' "$T/json"
	go a
	stop a
	finish
	ok_rc
	expect "calls" "$(summed calls)" 13202
	expect "failed" "$(summed failed)" 0
	expect "bytes HtoD" "$(summed htod_bytes)" 192000
	expect "bytes DtoH" "$(summed dtoh_bytes)" 0
	says '13202 calls, 0 lost'
}

case_top_batch_failed() {
	target a failing 20 70
	"${BACKGROUND[@]}" "$CUDATRACE" top -b -v -i 0.1 --format json -o "$T/json" -p "$PID_a" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q '"top_machine"' "$T/json"
	go a
	stop a
	finish
	ok_rc
	expect "calls" "$(summed calls)" 90
	expect "failed" "$(summed failed)" 70
}

case_top_batch_text() {
	target a mix 5 0 0
	ct top --batch -n 3 -i 100ms -p "$PID_a"
	ok_rc
	expect "blocks" "$(grep -c '^    PID CALLS/s' "$T/out")" 3
	! grep -q $'\e' "$T/out" || fail "it steers the terminal"
}

# The last calls of a program that ends within an interval are in the block at the end.
case_top_batch_end() {
	target a mix 7 0 0
	"${BACKGROUND[@]}" "$CUDATRACE" top -b -v -i 60 --format json -o "$T/json" -p "$PID_a" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q 'cudatrace: ready' "$T/err"
	go a
	stop a
	finish
	ok_rc
	expect "calls" "$(summed calls)" 16
	grep -q '"ended":true' "$T/json" || fail "it does not say that the program ended"
}

# Where -d ends shortly after a block there is none of the rest; where it ends before the first one, there is one.
case_top_batch_duration() {
	local PID_a
	LD_LIBRARY_PATH=$STANDIN "$CALLS" queries 2000000000 &
	PID_a=$!
	ct top --batch --queries -i 2 -d 2.3 --format json -o "$T/json" -p "$PID_a"
	ok_rc
	expect "blocks shorter than half of -i" "$(python3 -c '
import json, sys
print([r["interval_ns"] for r in map(json.loads, open(sys.argv[1])) if r["type"] == "top_machine" and r["interval_ns"] < 1e9])' "$T/json")" "[]"
	ct top --batch --queries -i 60 -d 0.3 --format json -o "$T/json" -p "$PID_a"
	ok_rc
	expect "blocks" "$(grep -c '"top_machine"' "$T/json")" 1
	kill -KILL "$PID_a"
}

case_top_options() {
	ct top -n 3
	ok_rc 2
	says 'give --batch'
	ct top --batch -i 10ms
	ok_rc 2
	ct top --sort nothing
	ok_rc 2
	ct top --batch -- true
	ok_rc 2
}

# ---- running them --------------------------------------------------------------------------------------------------

# shellcheck disable=SC2317
clean() {
	[ ! -S "$T/tmux" ] || tm kill-server 2> /dev/null
	for p in $(jobs -p); do
		kill -KILL "$p" 2> /dev/null
	done
}

if [ "${1:-}" = --one ]; then
	T=$3
	cd "$ROOT" || exit 1
	trap clean EXIT
	"case_$2"
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	echo "run.sh: top loads BPF programs: run this as root" >&2
	exit 2
fi
if ! command -v tmux > /dev/null; then
	echo "skip top: there is no tmux"
	exit 0
fi
failed=0
while read -r name; do
	if [ $# -gt 0 ]; then
		wanted=
		for glob in "$@"; do
			# shellcheck disable=SC2053
			[[ $name = $glob ]] && wanted=1
		done
		[ -n "$wanted" ] || continue
	fi
	dir=$(mktemp -d "${TMPDIR:-/tmp}/cudatrace-top.XXXXXX")
	machine_take alone # most of them trace the whole machine
	timeout -k 5 "${CASE_TIMEOUT:-300}" "$BASH" "$0" --one "$name" "$dir" > "$dir/log" 2>&1 9>&-
	status=$?
	machine_leave
	why=$(cat "$dir/why" 2> /dev/null || tail -n 1 "$dir/log")
	why=$(LC_ALL=C tr -cd '\40-\176' <<< "$why")
	case $status in
	0) echo "ok $name" ;;
	77) echo "skip $name: $why" ;;
	124 | 137) echo "not ok $name: took too long; $why" && said_last "$dir" && failed=1 ;;
	*) echo "not ok $name: $why" && said_last "$dir" && failed=1 ;;
	esac
	rm -rf "$dir"
done < <(sed -n 's/^case_\(top_[a-z0-9_]*\)() {.*/\1/p' "$0")
exit $failed
