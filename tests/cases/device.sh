# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# device.sh - which device calls work on, their numbers, and the text form of CUPTI's samples. Needs no GPU: what devices did
# has tests of its own (tests/unit/test_device.c).

# The device is known although what sets it is not shown; a replay says the same.
case_places_of_filtered_calls() {
	"$CUDATRACE" --format json -e launch -o "$T/live" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	[ "$(grep -c '"type":"call"' "$T/live")" = 1 ] || fail "shown: $(grep '"type":"call"' "$T/live")"
	grep '"api":"cudaLaunchKernel"' "$T/live" | grep -q '"device":0,"correlation":1' || fail "$(grep cudaLaunchKernel "$T/live")"
	"$CUDATRACE" record -e launch -o "$T/trace" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	"$CUDATRACE" replay --format json -o "$T/again" "$T/trace" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	[ "$(grep -c '"type":"call"' "$T/again")" = 1 ] || fail "replayed: $(grep '"type":"call"' "$T/again")"
	grep '"api":"cudaLaunchKernel"' "$T/again" | grep -q '"device":0,"correlation":1' || fail "$(grep cudaLaunchKernel "$T/again")"
}

# A filter that the kernel side applies may drop the call that sets the device: then nothing is claimed.
case_places_not_guessed() {
	"$CUDATRACE" --format json --min-duration 1us -o "$T/live" -- "$SAMPLE" > /dev/null 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
	grep -q '"type":"call"' "$T/live" || fail "no calls"
	! grep -q '"device":[0-9]*,"correlation"' "$T/live" || fail "$(grep -m 1 '"device":[0-9]*,"corr' "$T/live")"
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
		work = [r for r in rows if r["type"] in ("kernel", "memcpy", "memset")]
		for w in work:
		    c = calls[w["pid"], w["correlation"]]
		    assert c["api"] == w["api"] and c["tid"] == w["tid"] and c["ts_ns"] == w["call_ns"] <= w["ts_ns"], (c, w)
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

# Calls that are not shown are causes all the same: with their function and time, without a number.
case_device_of_filtered_calls() {
	ct_json --gpu -e memory -- "$BIN/work" 5 return
	ok_rc
	expect "launches shown" "$(grep -c '"api":"cudaLaunchKernel","args"' "$T/out")" 0
	expect "kernels with their call" "$(grep '^{"type":"kernel"' "$T/out" | grep -c '"api":"cudaLaunchKernel","call_ns":[0-9]*,"delay_ns"')" 5
	expect "correlations" "$(grep '^{"type":"kernel"' "$T/out" | grep -c '"correlation"')" 0
	grep '^{"type":"end"' "$T/out" | grep -q '"unmatched":0' || fail "$(tail -n 1 "$T/out")"
}

case_device_cupti_text() {
	ct --gpu --format cupti -o "$T/text" -- "$BIN/work" 3 return
	ok_rc
	expect "first line" "$(head -n 1 "$T/text")" \
		"DEVICE Stand-in GPU (0), capability 9.0, global memory (bandwidth 1 GB/s, size 8192 MB), multiprocessors 4, clock 1000 MHz"
	expect "context" "$(sed -n 3p "$T/text")" "CONTEXT 1, device 0, compute API CUDA, NULL stream 7"
	expect "kernels" "$(grep -cE '^KERNEL "vec_mul\(float\*, int\)" \[ [0-9]+ - [0-9]+ \] device 0, context 1, stream 7, correlation [0-9]+$' "$T/text")" 3
	expect "copies" "$(grep -cE '^MEMCPY HtoD \[ [0-9]+ - [0-9]+ \] device 0, context 1, stream 7, correlation ([0-9]+)/\1$' "$T/text")" 3
}
