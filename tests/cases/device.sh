# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# device.sh - which device calls work on, their numbers, and the text form of CUPTI's samples. Needs no GPU: what devices did
# has tests of its own (tests/unit/test_device.c).

# The device is known although what sets it is not shown; a replay says the same.
case_places_of_filtered_calls() {
	"$CUDATRACE" --format json -e launch -o "$T/live" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	[ "$(grep -c '"type":"call"' "$T/live")" = 1 ] || fail "shown: $(grep '"type":"call"' "$T/live")"
	grep '"name":"cudaLaunchKernel"' "$T/live" | grep -q '"device":0,"correlation":1' || fail "$(grep cudaLaunchKernel "$T/live")"
	"$CUDATRACE" record -e launch -o "$T/trace" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	"$CUDATRACE" replay --format json -o "$T/again" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	[ "$(grep -c '"type":"call"' "$T/again")" = 1 ] || fail "replayed: $(grep '"type":"call"' "$T/again")"
	grep '"name":"cudaLaunchKernel"' "$T/again" | grep -q '"device":0,"correlation":1' || fail "$(grep cudaLaunchKernel "$T/again")"
}

# A filter that the kernel side applies may drop the call that sets the device: then nothing is claimed.
case_places_not_guessed() {
	"$CUDATRACE" --format json --min-duration 1us -o "$T/live" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	grep -q '"type":"call"' "$T/live" || fail "no calls"
	! grep -q '"device":[0-9]*,"correlation"' "$T/live" || fail "$(grep -m 1 '"device":[0-9]*,"corr' "$T/live")"
}

# A wait names its context alone, and a thread that has chosen no device has the runtime's default: each has its device in every
# format, live and of the recording.
case_devices_known() {
	local kinds=kernel,memcpy,sync,context,device,stream
	"$CUDATRACE" record --gpu=$kinds -o "$T/trace" -- "$BIN/work" 3 return > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	for format in json chrome perfetto nsys-sqlite; do
		"$CUDATRACE" --gpu=$kinds --format $format -o "$T/live.$format" -- "$BIN/work" 3 return > /dev/null 2> "$T/err" ||
			fail "$format: $(tail -n 1 "$T/err")"
		"$CUDATRACE" replay --format $format -o "$T/again.$format" "$T/trace" 2> "$T/err" || fail "$format: $(tail -n 1 "$T/err")"
	done
	for which in live again; do
		grep '"type":"sync"' "$T/$which.json" | grep -q '"device":0,"context":1' || fail "$which: $(grep '"type":"sync"' "$T/$which.json")"
		! grep '"name":"cudaMalloc"' "$T/$which.json" | grep -qv '"device":0,' || fail "$which: $(grep '"name":"cudaMalloc"' "$T/$which.json")"
		! grep -E 'GPU \?|999999|"device":-1' "$T/$which.chrome" || fail "$which: chrome"
		grep -q '"name":"memory in use, GPU 0"' "$T/$which.chrome" || fail "$which: no memory in use"
		! grep -aq 'GPU ?' "$T/$which.perfetto" || fail "$which: perfetto"
		python3 - "$T/$which.nsys-sqlite" > "$T/ids" <<- 'E' || fail "$which: $(cat "$T/ids")"
			import sqlite3, sys
			db = sqlite3.connect(sys.argv[1])
			ids = db.execute("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION").fetchall()
			sys.exit(0 if ids == [(0,)] else f"waits have the devices {ids}")
		E
	done
}

# Numbers are the same whatever is shown of a recording.
case_numbers_replayed() {
	"$CUDATRACE" record -o "$T/trace" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	"$CUDATRACE" replay --format json -o "$T/all" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	"$CUDATRACE" replay --format json -e launch,copy -o "$T/some" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	grep -q cudaLaunchKernel "$T/some" || fail "no launch"
	while read -r line; do
		grep -qxF -- "$line" "$T/all" || fail "not in the whole trace: $line"
	done < <(grep '"type":"call"' "$T/some")
}

case_cupti_text() {
	"$CUDATRACE" --format cupti -o "$T/text" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	grep -qE '^RUNTIME_API cudaLaunchKernel \[ [0-9]+ - [0-9]+ \]$' "$T/text" || fail "no launch: $(head -n 5 "$T/text")"
	# calls inside calls too
	grep -qE '^DRIVER_API cuLaunchKernel[A-Za-z_]* \[ [0-9]+ - [0-9]+ \]$' "$T/text" || fail "nothing inside: $(grep Launch "$T/text")"
	! grep -qvE '^(RUNTIME|DRIVER)_API [A-Za-z_0-9]+ \[ [0-9]+ - [0-9]+ \]$' "$T/text" ||
		fail "other lines: $(grep -vE '^(RUNTIME|DRIVER)_API' "$T/text")"
}

# joined FILE: in this JSON each kernel's correlation is that of a launch of its thread, before it.
joined() {
	python3 - "$1" <<- 'E'
		import json, sys
		rows = [json.loads(line) for line in open(sys.argv[1])]
		calls = {(r["pid"], r["correlation"]): r for r in rows if r["type"] == "call" and "correlation" in r}
		work = [r for r in rows if r["type"] in ("kernel", "copy", "set")]
		for w in work:
		    c = calls[w["pid"], w["correlation"]]
		    assert c["name"] == w["cause"] and c["tid"] == w["tid"] and c["start_ns"] == w["cause_start_ns"] <= w["start_ns"], (c, w)
		    assert c.get("device", w["device"]) == w["device"] and c.get("stream", w["stream"]) == w["stream"], (c, w)
		end = rows[-1]
		assert work and (end["matched"], end["unmatched"]) == (len(work), 0), end
		print(len(work))
	E
}

case_device_joined_and_replayed() {
	ct_json --gpu -- "$BIN/work" -t 4 25 return
	ok_rc
	expect "live" "$(joined "$T/out" 2>&1)" 300
	ct record --gpu -o "$T/trace" -- "$BIN/work" -t 4 25 return
	ok_rc
	says ', 300 on devices, '
	"$CUDATRACE" replay --format json -o "$T/again" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	expect "replayed" "$(joined "$T/again" 2>&1)" 300
}

# ends FILE [TABLE]: how many rows of this JSON end before the end of a row above them. With TABLE, which has --time us of the same
# trace, also checks that both have the same rows in the same order.
ends() {
	python3 - "$@" <<- 'E'
		import json, re, sys
		rows = [json.loads(line) for line in open(sys.argv[1])]
		rows = [r for r in rows if r["type"] in ("call", "kernel", "copy", "set", "sync")]
		late, last = 0, 0
		for r in rows:
		    end = r["start_ns"] + r["duration_ns"]
		    late += end < last
		    last = max(last, end)
		if len(sys.argv) > 2:
		    times = [re.match(r"([0-9]+)\.([0-9]{3}) ", line) for line in open(sys.argv[2])]
		    times = [int(t[1] + t[2]) for t in times if t]
		    first = rows[0]["start_ns"] - times[0]
		    assert [r["start_ns"] - first for r in rows] == times, "the table has another order"
		print(len(rows), "rows,", late, "late")
	E
}

# What a recording has stands in the order of time in the rows, though the records of device work came later than their calls.
case_device_order_replayed() {
	ct record --gpu -o "$T/trace" -- "$BIN/work" -p 3 -t 4 100 return
	ok_rc
	"$CUDATRACE" replay --format json -o "$T/again" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	"$CUDATRACE" replay --time us -o "$T/table" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	expect "rows of a recording" "$(ends "$T/again" "$T/table")" "$(grep -c -E '"type":"(call|kernel|copy|set|sync)"' "$T/again") rows, 0 late"
	[ "$(grep -c -E '"type":"(kernel|copy|set)"' "$T/again")" = 1200 ] || fail "not all of the device's work is there"
	# a part of it too
	"$CUDATRACE" replay --from 0.1s --format json -o "$T/again" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	ends "$T/again" | grep -q 'rows, 0 late$' || fail "a part: $(ends "$T/again")"
	tail -n 1 "$T/again" | grep -q '^{"type":"end"' || fail "the end is not last: $(tail -n 1 "$T/again")"
}

# Live what comes within a quarter of a second is put in its place. A machine that is busy may make a record come later than that: one
# trace of ten that is in order is enough, for without the order none is.
case_device_order_live() {
	local got
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		ct_json --gpu -- "$BIN/work" -p 3 -t 4 40 return
		ok_rc
		expect_rows cudaLaunchKernel 160
		tail -n 1 "$T/out" | grep -q '^{"type":"end"' || fail "the end is not last: $(tail -n 1 "$T/out")"
		got=$(ends "$T/out")
		case $got in *", 0 late") return ;; esac
	done
	fail "live rows: $got"
}

five_kernels() {
	[ "$(grep -c '^{"type":"kernel"' "$T/out")" = 5 ]
}

# Rows do not wait for the end of the program, and none is missing when the trace is ended by a signal or by -n.
case_device_order_shown_in_time() {
	"${BACKGROUND[@]}" "$CUDATRACE" --gpu --format json -o "| cat > $T/out" -- "$BIN/work" 5 idle > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 five_kernels
	expect_rows cudaLaunchKernel 5
	kill -TERM "$CT"
	wait_for 10 ended "$CT"
	tail -n 1 "$T/out" | grep -q '^{"type":"end"' || fail "the end is not last: $(tail -n 1 "$T/out")"
	ct_json --gpu -n 7 -- "$BIN/work" 50 return
	expect "rows with -n 7" "$(grep -c -E '"type":"(call|kernel|copy|set|sync)"' "$T/out")" 7
}

# Calls that are not shown are causes all the same: with their function and time, without a number.
case_device_of_filtered_calls() { # long
	ct_json --gpu -e memory -- "$BIN/work" 5 return
	ok_rc
	expect "launches shown" "$(grep -c '"name":"cudaLaunchKernel","args"' "$T/out")" 0
	expect "kernels with their call" "$(grep '^{"type":"kernel"' "$T/out" | grep -c '"cause":"cudaLaunchKernel","cause_start_ns":[0-9]*,"delay_ns"')" 5
	expect "correlations" "$(grep '^{"type":"kernel"' "$T/out" | grep -c '"correlation"')" 0
	grep '^{"type":"end"' "$T/out" | grep -q '"unmatched":0' || fail "$(tail -n 1 "$T/out")"
}

case_device_cupti_text() { # long
	ct --gpu --format cupti -o "$T/text" -- "$BIN/work" 3 return
	ok_rc
	expect "first line" "$(head -n 1 "$T/text")" \
		"DEVICE Stand-in GPU (0), capability 9.0, global memory (bandwidth 1 GB/s, size 8192 MB), multiprocessors 4, clock 1000 MHz"
	expect "context" "$(sed -n 3p "$T/text")" "CONTEXT 1, device 0, compute API CUDA, NULL stream 7"
	expect "kernels" "$(grep -cE '^KERNEL "vec_mul\(float\*, int\)" \[ [0-9]+ - [0-9]+ \] device 0, context 1, stream 7, correlation [0-9]+$' "$T/text")" 3
	expect "copies" "$(grep -cE '^MEMCPY HtoD \[ [0-9]+ - [0-9]+ \] device 0, context 1, stream 7, correlation ([0-9]+)/\1$' "$T/text")" 3
}
