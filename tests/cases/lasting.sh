# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# lasting.sh - cases about work that takes long: what is shown meanwhile, and what Ctrl-C leaves.

# big N: a recording of N calls.
big() {
	ct record -q --keep-chatty --ring-size 64MiB -o "$T/big.ctrace" -- "$CALLS" queries "$1"
	ok_rc
}

# The sums so far, while the program runs, and the same table at its end; ended children stay in the sums.
case_stat_watch() {
	target one mix 5 2 0
	"$CUDATRACE" stat -v --watch=100ms -e cudaMalloc -o "$T/sums" -p "$PID_one" > "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 10 grep -q 'cudatrace: ready' "$T/err"
	go one
	wait_for 10 grep -qs ' 6 .*cudaMalloc$' "$T/sums"
	finish INT
	ok_rc
	expect "the last table" "$(grep 'cudaMalloc$' "$T/sums" | tail -n 1 | awk '{ print $4 }')" 6
	cat > "$T/both" << END
"$CALLS" mix 5 2 0; "$CALLS" mix 7 2 0; sleep 0.3
END
	ct stat --watch=100ms -e cudaMemcpy -o "$T/sums" -- sh "$T/both"
	ok_rc
	expect "copies of both" "$(grep 'cudaMemcpy$' "$T/sums" | tail -n 1 | awk '{ print $4 }')" 4
	expect "no more than these" "$(awk '$NF == "cudaMemcpy" && $4 > 4' "$T/sums" | wc -l)" 0
}

case_doctor_json() {
	target one mix 1 1 1
	ct doctor --format json -p "$PID_one"
	ok_rc
	python3 - "$T/out" "$PID_one" << 'END' || fail "$(cat "$T/out")"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["version"] == 1 and d["btf"] and d["ring_buffer"] and d["bpf_loop"] and d["missing_privileges"] == "" and d["probes"]
assert [f["works"] for f in d["features"] if f["feature"] == "calls"] == [True]
assert all(f["says"].startswith("no") != f["works"] for f in d["features"])
(p,) = d["processes"]
assert p["pid"] == int(sys.argv[2]) and not p["sandboxed"]
assert {f["library"] for f in p["files"]} >= {"runtime", "driver"}
assert all(0 < f["can_be_probed"] <= f["selected"] <= f["defined"] for f in p["files"] if f["library"] == "runtime")
END
}

# One line on a terminal when the reading takes longer than a second, and nothing of it left behind.
case_progress() {
	command -v script > /dev/null || skip "no script"
	big 20000
	# the reader of the output takes nothing for a while
	script -qec "'$CUDATRACE' export --to json -o '|sleep 2; cat > \"$T/rows\"' '$T/big.ctrace'" /dev/null < /dev/null > "$T/seen"
	expect "rows" "$(grep -c '"type":"call"' "$T/rows")" 20000
	grep -q -E "reading .*big.ctrace: [0-9]+ %, [0-9]+ (s|min) left" "$T/seen" || fail "no progress: $(cat -v "$T/seen")"
	tr '\r' '\n' < "$T/seen" | tail -n 3 | grep -q -v '%' || fail "the line stays: $(cat -v "$T/seen")"
	ct export --to json -o "$T/rows" "$T/big.ctrace"
	! grep -q '%' "$T/err" || fail "progress without a terminal"
}

# interrupted SIGNAL...: what is left when signals come while an export writes its file.
interrupted() {
	local sig
	rm -f "$T/half.json"
	"$CUDATRACE" export --to json -o "$T/half.json" "$T/big.ctrace" > "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 10 test -s "$T/half.json"
	for sig in "$@"; do
		kill -s "$sig" "$CT" 2> /dev/null || true
	done
	rc=0
	wait "$CT" || rc=$?
	# what was faster than the signal is whole
	if [ "$rc" = 0 ]; then
		expect "rows" "$(grep -c '"type":"call"' "$T/half.json")" 300000
	else
		wait_for 10 gone_file "$T/half.json"
	fi
}

gone_file() {
	[ ! -e "$1" ]
}

# Ctrl-C, once and twice, and an end that cannot be caught: what is there is whole, or not there.
case_interrupted_export() { # long
	big 300000
	interrupted INT
	[ "$rc" = 0 ] || says 'interrupted: .*half.json was not written'
	interrupted INT INT
	interrupted KILL
	echo kept > "$T/kept.json"
	ct export --to json -o "$T/kept.json" "$T/nosuch.ctrace"
	ok_rc 1
	expect "what was there" "$(cat "$T/kept.json")" kept
}

# Of a trace Ctrl-C leaves a recording with an end: the first one goes to the program, the second one ends the trace.
case_interrupted_record() {
	local pid
	cat > "$T/cmd" << END
trap 'touch "$T/got"' INT
"$CALLS" queries 10
touch "$T/made"
while :; do sleep 0.1; done
END
	"${BACKGROUND[@]}" "$CUDATRACE" record -o "$T/r.ctrace" -- sh "$T/cmd" > "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 10 test -e "$T/made"
	kill -s INT "$CT"
	wait_for 10 test -e "$T/got" || true
	kill -s INT "$CT" 2> /dev/null || true
	kill -s INT "$CT" 2> /dev/null || true
	finish
	pid=$(pgrep -f "sh $T/cmd" || true)
	[ -z "$pid" ] || kill "$pid"
	ct info "$T/r.ctrace"
	ok_rc
	! grep -q 'cut off\|whoever wrote this was killed' "$T/out" || fail "a half recording: $(cat "$T/out")"
	grep -q '^end ' "$T/out" || fail "no end: $(cat "$T/out")"
}
