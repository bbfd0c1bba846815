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
