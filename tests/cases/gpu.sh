# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# gpu.sh - cases about what the device does, on the stand-in's libcupti (its knobs: tests/standin/cupti.c): --gpu, --source=cupti,
# and that the program with the agent in it is none the worse for it.
WORK=$BIN/work

# kinds TYPE [FILTER]: how many records of the type the JSON in $T/out has.
kinds() {
	grep "^{\"type\":\"$1\"" "$T/out" | grep -c -E -- "${2:-.}" || true
}

expect_kinds() {
	expect "$1 records" "$(kinds "$1" "${3:-}")" "$2"
}

# Every record of device work has its call.
all_matched() {
	grep '^{"type":"end"' "$T/out" | grep -q '"unmatched":0,"inferred":0' || fail "not all matched: $(grep '^{"type":"end"' "$T/out" | cut -c1-120)"
}

case_gpu_counts() {
	local n
	n=$(random 20 400)
	ct_json --gpu -- "$WORK" -s "$n" return
	ok_rc
	expect_kinds kernel "$n" '"kernel":"vec_mul\(float\*, int\)".*"grid":\[4,2,1\],"block":\[128,1,1\],"registers_per_thread":16,.*"dynamic_shared_bytes":64,.*"cause":"cudaLaunchKernel"'
	expect_kinds copy "$n" '"copy_kind":"HtoD","size_bytes":4096,.*"cause":"cudaMemcpyAsync"'
	expect_kinds set "$n" '"set_value":7,"size_bytes":2048,.*"cause":"cudaMemsetAsync"'
	expect_kinds device 2 '"name":"Stand-in GPU"'
	expect_kinds context 1
	expect_rows cudaLaunchKernel "$n"
	all_matched
	no_loss
}

# In the table each row says when it began on the device, on the clock of the calls: after its call, by less than a second.
case_gpu_table() {
	ct_rows --gpu -- "$WORK" 3 return
	ok_rc
	expect "kernel rows" "$(grep -c -E '^[0-9.]+ +work +[0-9]+ +\[kernel\] +vec_mul\(float\*, int\), grid=\(4,2,1\), block=\(128,1,1\), registers=16, static_shared=0 bytes, dynamic_shared=64 bytes, device=0, context=1, stream=7, correlation=[0-9]+, delay=[0-9.]+us, 5us$' "$T/out")" 3
	expect "copy rows" "$(grep -c -E '\[memcpy HtoD\] +size=4096 bytes, .*delay=[0-9.]+us, 5us$' "$T/out")" 3
}

# No calls: the device rows alone, each of them with the call that caused it, though no function is probed.
case_gpu_without_calls() {
	local want="kernel=20 copy=20 set=20 call=0"
	ct_json -v --gpu -e none -- "$WORK" 20 return
	ok_rc
	says '^cudatrace: 0 functions of 0 files probed'
	says '^cudatrace: 0 calls, 60 on devices, 0 lost$'
	expect "live" "$(kinds_of kernel copy set call)" "$want"
	expect_kinds kernel 20 '"kernel":"vec_mul\(float\*, int\)".*"cause":"cudaLaunchKernel"'
	all_matched
	no_loss
	ct -c --gpu -e none -o "$T/table" -- "$WORK" 20 return
	expect "calls in the table of counts" "$(awk '$NF == "total" { print $(NF - 1) }' "$T/table" | xargs)" "0 60"
	ct record --gpu -e none -o "$T/alone.ctrace" -- "$WORK" 20 return
	ok_rc
	ct record --gpu -o "$T/all.ctrace" -- "$WORK" 20 return
	ok_rc
	ct replay --format json "$T/alone.ctrace"
	expect "recorded without calls" "$(kinds_of kernel copy set call)" "$want"
	all_matched
	ct replay --format json "$T/all.ctrace"
	[ "$(kinds call)" -ge 60 ] || fail "the recording has $(kinds call) calls"
	ct replay -e none --format json "$T/all.ctrace"
	ok_rc
	expect "replayed without calls" "$(kinds_of kernel copy set call)" "$want"
	all_matched
}

# kinds_of TYPE...: TYPE=COUNT of each.
kinds_of() {
	local type text=
	for type; do
		text+="$type=$(kinds "$type") "
	done
	echo "${text% }"
}

# A process that runs has loaded CUDA, though no function of it is probed.
case_gpu_without_calls_attached() {
	target a queries 5
	attach --gpu -e none -p "$PID_a"
	go a
	stop a
	finish
	ok_rc
	! grep -q "has not loaded CUDA" "$T/err" || fail "$(cat "$T/err")"
	expect_kinds call 0
	no_loss
}

case_gpu_threads() {
	ct_json --gpu -- "$WORK" -s -t 16 50 return
	ok_rc
	expect_kinds kernel 800
	expect_kinds set 800
	expect "streams" "$(kinds stream '"handle"')" 16
	all_matched
	no_loss
}

# What CUPTI refuses is said, wherever that is: callbacks, buffers, the rest of a buffer, and kernels that a thread of the program begins again.
case_gpu_refused() {
	local how says
	for how in "deaf:warning: process [0-9]+: CUPTI does not tell of all calls: calls, or the calls that device work belongs to, are missing" \
		"cut:warning: process [0-9]+: CUPTI gives not all records of a buffer: device work is missing" \
		"bufferless:error: process [0-9]+: CUPTI takes no buffers for its records"; do
		export STANDIN_CUPTI=${how%%:*}
		ct_json --gpu -- "$WORK" 5 return
		says "${how#*:} \("
	done
	export STANDIN_CUPTI=once,version:18
	running -p 1 -- -1 loop
	attach --gpu -p "$PID"
	wait_for 20 more_than 5 kernel
	finish INT
	grep 'gives no records' "$T/err" && fail "the first time"
	attach --gpu -p "$PID"
	wait_for 20 grep -qE 'warning: process [0-9]+: CUPTI gives no records of kernels \(' "$T/err"
	finish INT
	kill -KILL "$PID"
}

# What CUPTI's version can, and the clock that it calls for.
case_gpu_versions() { # long
	local v clock
	for v in 18 20 22 23 25 27 130000 130001 130100 130200; do
		export STANDIN_CUPTI=version:$v
		ct_json -v --gpu -- "$WORK" 30 return
		ok_rc
		clock='CLOCK_MONOTONIC'
		((v < 24 || v >= 130100)) || clock='distance measured'
		says "CUPTI version $v,"
		says "clock: .*$clock"
		expect_kinds kernel 30
		all_matched
		no_loss
	done
}

# kernel_names: "CALL KERNEL COUNT": how often a launch of what its call says has which name in its device record.
kernel_names() {
	join -a 1 -a 2 -e none -o 1.2,2.2 \
		<(grep '^{"type":"call".*"name":"cudaLaunchKernel"' "$T/out" | sed -nE 's/.*"kernel_mangled":"([^"]*)".*"correlation":([0-9]+).*/\2 \1/p' | sort) \
		<(grep '^{"type":"kernel"' "$T/out" | sed -nE 's/.*"kernel_mangled":"([^"]*)".*"correlation":([0-9]+).*/\2 \1/p' | sort) |
		sort | uniq -c | awk '{ print $2, $3, $1 }'
}

# A kernel's row has its name when its code was unloaded, and its name overwritten, before CUPTI gave its buffer back.
case_gpu_names_of_unloaded() { # long
	local how opts
	for how in '' small version:18; do
		for opts in --gpu '--source=cupti --gpu'; do
			export STANDIN_CUPTI=$how
			# shellcheck disable=SC2086 # they are options
			ct_json $opts -- "$WORK" 2 unload
			ok_rc
			expect "$how $opts: names in calls and in device records" "$(kernel_names | sort)" \
				"$({ for i in {000..299}; do echo "_Z7one_${i}Pfi _Z7one_${i}Pfi 1"; done; echo "_Z7vec_mulPfi _Z7vec_mulPfi 2"; } | sort)"
			all_matched
			no_loss
		done
	done
	# where CUPTI gives nothing out while the device is busy, a name that may be gone is not read: the record has none
	STANDIN_CUPTI=busy
	ct_json --gpu -- "$WORK" 2 unload
	ok_rc
	expect_kinds kernel 302
	expect "wrong names" "$(kernel_names | awk '$1 != $2 && $2 != "none"')" ""
}

# As README says: no --cupti, no GPU; a program that has libcudart by its plain name, as Python's ctypes does.
case_gpu_python() {
	cat > "$T/one.py" <<- 'END'
		import ctypes
		rt = ctypes.CDLL("libcudart.so")
		p = ctypes.c_void_p()
		print(rt.cudaMalloc(ctypes.byref(p), 4096), rt.cudaMemset(p, 1, 4096), rt.cudaFree(p))
	END
	LD_LIBRARY_PATH=$STANDIN ct_json -v --gpu -- python3 "$T/one.py"
	ok_rc
	expect "the program's output" "$(cat "$T/prog.out")" "0 0 0"
	says "CUPTI version 130001, $STANDIN/libcupti.so.13"
	expect_kinds set 1
}

# A libcupti that came with another driver would call tables that this one does not have: the program would die of that.
case_gpu_foreign_library() {
	local lib
	mkdir "$T/elsewhere"
	cp "$STANDIN/libcupti.so.13" "$T/elsewhere"
	for lib in "$T/elsewhere/libcupti.so.13" "${CUDA_HOME:-/usr/local/cuda}"/lib64/libcupti.so.1?; do
		[ -e "$lib" ] || continue
		ct_json --gpu --cupti "$lib" -- "$WORK" 5 return
		ok_rc
		says 'does not belong to the driver in use, .*/libcuda.so.1'
		expect "the program's output" "$(cat "$T/prog.out")" "launched 5"
		expect_rows cudaLaunchKernel 5
		# the same when the program has it already
		LD_PRELOAD=$lib ct_json --gpu -- "$WORK" 5 return
		ok_rc
		says 'does not belong to the driver in use, .*/libcuda.so.1'
		expect_rows cudaLaunchKernel 5
	done
}

case_gpu_clocks() {
	local way
	for way in callback offset; do
		ct_json -v --gpu --gpu-clock "$way" -- "$WORK" 40 return
		expect_kinds kernel 40
		# the start is on the clock of the calls: not before the call, not seconds after it
		expect "$way: delays from 0 to 1 s" "$(grep '^{"type":"kernel"' "$T/out" | grep -c -E '"delay_ns":[0-9]{1,9}[,}]')" 40
	done
	says 'distance measured'
}

case_gpu_kinds() {
	ct_json --gpu=kernel -- "$WORK" 9 return
	expect_kinds kernel 9
	expect_kinds copy 0
	ct_json --gpu=memset,sync -- "$WORK" 9 return
	expect_kinds kernel 0
	expect_kinds set 9
	expect_kinds sync 1
	ct --gpu=kernels -- "$WORK" 1 return
	ok_rc 2
	says "'kernels' is no kind of record"
}

# NVTX gives its functions to one library: to the agent, which finds CUPTI for it, before the driver is there.
case_gpu_nvtx() {
	ct_json --gpu=kernel,nvtx -- "$WORK" -n 4 return
	ok_rc
	expect_kinds kernel 4
	expect_kinds marker 1 '"all rounds"'
	NVTX_INJECTION64_PATH=/opt/theirs.so ct_json --gpu=kernel,nvtx -- "$WORK" -n 4 return
	says 'NVTX_INJECTION64_PATH is set already'
	expect_kinds kernel 4
	# without it nothing of NVTX is touched
	# shellcheck disable=SC2016 # the program's shell is to expand it
	ct --gpu -- sh -c 'echo "nvtx=$NVTX_INJECTION64_PATH"'
	grep -q '^nvtx=$' "$T/out" || fail "the variable is set: $(grep nvtx "$T/out")"
}

# Swapped, small, late: each record is there once.
case_gpu_buffers() { # long
	local how
	for how in swap small slow:200 small,swap; do
		export STANDIN_CUPTI=$how
		ct_json --gpu -- "$WORK" -t 4 60 return
		ok_rc
		expect_kinds kernel 240
		expect "$how: kernels once each" "$(grep '^{"type":"kernel"' "$T/out" | grep -o '"grid_id":[0-9]*' | sort -u | wc -l)" 240
		all_matched
		no_loss
	done
}

# A kernel that does not end keeps all buffers in CUPTI. When none is left, the agent takes them all; what went into no buffer until then is
# counted, by its bytes, since CUPTI writes over it.
case_gpu_unended() {
	local all
	export STANDIN_CUPTI=unended
	ct_json --gpu --gpu-buffer 16KiB,8 -- "$WORK" -p 1 1500 return
	ok_rc
	all=$(($(grep -cE '^\{"type":"(kernel|copy|set)"' "$T/out") + $(sed -nE 's/^\{"type":"end".*"device_dropped":([0-9]+).*/\1/p' "$T/out")))
	[ "$all" -ge 4500 ] || fail "device work, in the trace or lost: $all of 4500"
	[ "$(grep -c '^{"type":"kernel"' "$T/out")" -ge 1400 ] || fail "$(grep -c '^{"type":"kernel"' "$T/out") of 1500 kernels"
}

case_gpu_dropped() {
	export STANDIN_CUPTI=drop:5
	ct_json --gpu --strict -- "$WORK" 10 return
	ok_rc 3
	grep '^{"type":"end"' "$T/out" | grep -q -E '"device_dropped":[1-9]' || fail "not counted: $(tail -n 1 "$T/out")"
	says 'device records that CUPTI had no buffer for'
}

case_gpu_no_time() {
	export STANDIN_CUPTI=zero:4,backwards:6
	ct_json --gpu -- "$WORK" 24 return
	ok_rc
	expect_kinds kernel 24
	# every 4th and every 6th of 24, of which two are the same
	grep '^{"type":"end"' "$T/out" | grep -q '"device_time":8' || fail "not counted: $(tail -n 1 "$T/out" | grep -o '"lost".*')"
}

case_gpu_held() {
	export STANDIN_CUPTI=held
	ct_json --gpu -- "$WORK" 6 return
	ok_rc
	says 'another profiler named standin-profiler holds CUPTI'
	expect_rows cudaLaunchKernel 6
	expect_kinds kernel 0
}

# A profiler that lets others in, from 13.3 on: both have CUPTI, and it is not ended when we leave.
case_gpu_shared() { # long
	local v
	export STANDIN_CUPTI
	for v in 130000 130200; do
		STANDIN_CUPTI=shared,version:$v
		ct_json --gpu -- "$WORK" 6 return
		ok_rc
		says 'another profiler named standin-profiler holds CUPTI'
		expect_kinds kernel 0
	done
	for v in 130300 130401; do
		STANDIN_CUPTI=shared,version:$v
		ct_json -v --gpu --graph graph -- "$WORK" -t 2 60 return
		ok_rc
		says 'CUPTI is shared with another profiler, standin-profiler'
		says "whole graphs can be traced in a program that is not another profiler's too"
		says 'clock: .*distance measured'
		says 'CUPTI not ended'
		expect_kinds kernel 120
		expect "delays from 0 to 1 s" "$(grep '^{"type":"kernel"' "$T/out" | grep -c -E '"delay_ns":[0-9]{1,9}[,}]')" 120
		all_matched
		no_loss
		ct_json --source=cupti --gpu -- "$WORK" 30 return
		ok_rc
		expect_kinds kernel 30
		expect_rows cudaLaunchKernel 30
		all_matched
		rm "$T/out" "$T/err"
		gpu_started -d 0.5
		wait_for 10 ended "$CT"
		says 'the agent has left: .*CUPTI not ended'
		wait_for 5 no_agent
		alive || fail "the program ended too"
		kill -KILL "$PID"
	done
}

case_gpu_no_driver() {
	export STANDIN_CUPTI=none
	ct_json --gpu -- "$WORK" 6 return
	ok_rc
	says 'CUPTI finds no CUDA driver \(CUPTI_ERROR_UNKNOWN\)'
	expect_rows cudaLaunchKernel 6
}

case_gpu_gives_up() {
	export STANDIN_CUPTI=fatal:5
	ct_json --gpu -- "$WORK" 40 return
	ok_rc
	says 'CUPTI gave up'
	expect_kinds event 1 '"truncated"'
	expect_rows cudaLaunchKernel 40
}

# A libcupti that is none, one that is not there, one that is newer than the driver.
case_gpu_wrong_library() {
	# a runtime that is linked in has no folder to look in
	ct --gpu --cupti "$STANDIN/libcuda.so.1" -- "$BIN/work-static" 3 return
	ok_rc
	says 'libcuda.so.1 has no function cupti'
	ct --gpu --cupti "$T/nowhere.so" -- "$BIN/work-static" 3 return
	ok_rc 1
	says '--cupti: .*nowhere.so: No such file'
	export STANDIN_CUPTI=version:140000
	ct --gpu --cupti "$STANDIN/libcupti.so.13" -- "$BIN/work-static" 3 return
	ok_rc
	says "is of CUDA 14, newer than the driver's 13"
}

case_gpu_static() {
	ct_json --gpu --cupti "$STANDIN/libcupti.so.13" -- "$BIN/work-static" 12 return
	ok_rc
	expect_kinds kernel 12
	all_matched
}

# ct_kill ARGS...: ct_json for a CMD that is killed: status 137 is its, not that of a cudatrace that did not end.
ct_kill() {
	rc=0
	timeout -k 1 150 "$CUDATRACE" --format json -o "$T/out" "$@" > "$T/prog.out" 2> "$T/err" < /dev/null || rc=$?
	ok_rc 137
	grep -q '^{"type":"end"' "$T/out" || fail "no end: $(tail -n 2 "$T/err")"
}

# The program ends in every way; its status is its own, and nothing of what CUPTI had given is missing.
case_gpu_ends() { # long
	local how status
	while read -r how status; do
		ABORT_OK=1 ct_json --gpu -- "$WORK" 25 "$how"
		ok_rc "$status"
		[ "$(cat "$T/prog.out")" = 'launched 25' ] || fail "$how: the program printed: $(head -n 3 "$T/prog.out")"
		grep -q '^{"type":"end"' "$T/out" || fail "$how: no end"
		expect "$how: launches" "$(rows cudaLaunchKernel)" 25
		case $how in
		return | exit | reset | fork) expect_kinds kernel 25 ;;
		esac
	done <<- END
		return 0
		exit 3
		reset 0
		fork 0
		_exit 4
		abort 134
	END
	ct_kill --gpu -- "$WORK" 25 kill
	expect "kill: launches" "$(rows cudaLaunchKernel)" 25
}

# tail: how many calls have no device record, as the end of the JSON in $T/out says.
tail_lost() {
	grep '^{"type":"end"' "$T/out" | grep -o '"device_tail":[0-9]*' | cut -d: -f2
}

# expect_tail CALLS: each of so many calls has its record, or is counted; what was counted stands in a row, in its place.
expect_tail() {
	local work=$(($(kinds kernel) + $(kinds copy) + $(kinds set)))
	expect "records and what did not come" "$((work + $(tail_lost)))" "$1"
	expect "of those, in rows" "$(grep '"cause":"device_tail"' "$T/out" | grep -o '"count":[0-9]*' | cut -d: -f2 | paste -sd+ | bc)" "$(tail_lost | grep -v '^0$')"
}

# What was there for a while is told before a sudden end, the rest is counted.
case_gpu_sudden_end() {
	ct_kill --gpu -- "$WORK" -p 50 40 kill
	[ "$(kinds kernel)" -ge 30 ] || fail "only $(kinds kernel) of 40 kernels, which took 2 s"
	expect_tail 120
}

# However it ends, and whatever CUPTI did with its buffers before.
case_gpu_tail() { # long
	local how knobs
	for knobs in '' small version:18 version:130000 small,swap; do
		for how in kill _exit abort; do
			export STANDIN_CUPTI=$knobs
			rc=0
			timeout -k 1 150 "$CUDATRACE" --strict --gpu --format json -o "$T/out" -- "$WORK" -t 3 50 $how > "$T/prog.out" 2> "$T/err" < /dev/null || rc=$?
			expect_tail 450
			if [ "$(tail_lost)" = 0 ]; then continue; fi
			ok_rc 3
			says "$(tail_lost) launches, copies and sets whose device record had not come by the end"
		done
	done
	# of what was not asked for nothing is missing
	unset STANDIN_CUPTI
	ct_kill --gpu=memset -- "$WORK" 30 kill
	expect_tail 30
	# without root what the callbacks told of in time is known
	ct_kill --source=cupti --gpu -- "$WORK" -p 20 10 kill
	expect_tail "$(($(rows cudaLaunchKernel) + $(rows cudaMemcpyAsync) + $(rows cudaMemsetAsync)))"
}

# A recording has it, and says so again.
case_gpu_tail_recorded() {
	local lost i
	# on a busy machine the records may all have come before the program is killed
	for ((i = 0; i < 10 && ${lost:-0} == 0; i++)); do
		rc=0
		timeout -k 1 150 "$CUDATRACE" record --gpu -f -o "$T/r.ctrace" -- "$WORK" 20 kill > "$T/prog.out" 2> "$T/err" < /dev/null || rc=$?
		ok_rc 137
		lost=$(grep -o '[0-9]* launches, copies and sets whose' "$T/err" | cut -d' ' -f1)
	done
	[ "${lost:-0}" -gt 0 ] || fail "nothing counted: $(cat "$T/err")"
	"$CUDATRACE" info "$T/r.ctrace" > "$T/info" 2>&1
	grep -q "$lost launches, copies and sets whose device record had not come by the end" "$T/info" || fail "info: $(grep lost "$T/info")"
	"$CUDATRACE" replay "$T/r.ctrace" --format json -o "$T/out" 2> "$T/err"
	expect "lost in the replay" "$(tail_lost)" "$lost"
	expect_tail 60
}

# The agent comes along into what is exec'd, by the environment; in a child that only forks it does nothing.
case_gpu_exec() {
	ct_json --gpu -- "$WORK" 8 exec
	ok_rc
	[ "$(kinds kernel)" -ge 5 ] || fail "kernels: $(kinds kernel)"
	expect_rows cudaLaunchKernel 13
	expect_tail 39
	ct_json --gpu -- "$WORK" 8 fork-exec
	ok_rc
	expect_kinds kernel 13
	expect "processes with kernels" "$(grep '^{"type":"kernel"' "$T/out" | grep -o '"pid":[0-9]*' | sort -u | wc -l)" 2
}

# A descendant that outlives cudatrace finds the agent's file, nobody behind the socket, and goes on.
case_gpu_outlived() {
	"${BACKGROUND[@]}" "$CUDATRACE" --gpu -- bash -c "(sleep 1; exec $WORK 7 return > $T/late.out 2>&1) & echo started" \
		> "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q started "$T/ct.out"
	kill -KILL "$CT"
	wait_for 10 grep -q . "$T/late.out"
	expect "the program's output" "$(cat "$T/late.out")" 'launched 7'
}

# The program PID runs: one that has ended, and that nobody waits for, has no memory any more.
alive() {
	grep -q . "/proc/$PID/maps" 2> /dev/null
}

# Until the agent is in the program and has said so: records come.
gpu_started() {
	"${BACKGROUND[@]}" "$CUDATRACE" -v --gpu "$@" --format json -o "$T/out" -- "$WORK" -p 1 -- -1 loop > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q '"type":"kernel"' "$T/out"
	PID=$(grep -m 1 '"type":"kernel"' "$T/out" | grep -o '"pid":[0-9]*' | cut -d: -f2)
}

agent_threads() {
	grep -l cudatrace-agent /proc/"$PID"/task/*/comm 2> /dev/null | wc -l
}

nobody_listens() {
	! grep -qF "$(cat "$T/socket")" /proc/net/unix
}
no_agent() {
	[ "$(agent_threads)" = 0 ]
}

# The tracer is killed: the program goes on, and the agent leaves it.
case_gpu_tracer_dies() {
	gpu_started
	expect "agent's threads" "$(agent_threads)" 1
	kill -KILL "$CT"
	wait "$CT" 2> /dev/null # its reader, which has its descriptors too, ends next; its probes go first, which takes a while, then its socket
	wait_for 10 no_agent
	alive || fail "the program ended too"
	# the socket that it left is taken away by the next one
	compgen -G "/run/cudatrace/s-$CT-*" > "$T/socket" || fail "no socket in /run/cudatrace"
	wait_for 10 nobody_listens
	ct --gpu -- /bin/true
	[ ! -e "$(cat "$T/socket")" ] || fail "a dead socket is left"
	! compgen -G "/proc/$PID/fd/*" | xargs -n 1 readlink | grep -q 'socket:' || fail "a socket is left"
	kill -KILL "$PID"
}

# -d ends the trace: CUPTI is ended inside the program, which goes on without the agent.
case_gpu_detach() {
	gpu_started -d 1
	wait_for 10 ended "$CT"
	says 'the agent has left: .*CUPTI ended'
	wait_for 5 no_agent
	alive || fail "the program ended too"
	kill -KILL "$PID"
}

# cuptiFinalize that fails, and a version in which it must not be called (the stand-in aborts then).
case_gpu_detach_versions() { # long
	local how
	for how in stuck version:18 version:22 version:27; do
		export STANDIN_CUPTI=$how
		gpu_started -d 0.5
		wait_for 12 ended "$CT"
		wait_for 5 no_agent
		alive || fail "$how: the program ended too"
		kill -KILL "$PID"
		rm "$T/out" "$T/err"
	done
}

# ticks PID: for how much of the processors' time it ran, in hundredths of a second.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

ticked() {
	[ "$(ticks "$1")" -ge "$2" ]
}

is_stopped() {
	grep -q '^State:.T' "/proc/$1/status"
}

# cudatrace that reads nothing: the program is not held up, what finds no room is counted.
case_gpu_reader_stopped() {
	gpu_started
	kill -STOP "$CT"
	wait_for 5 is_stopped "$CT"
	local before
	# it makes calls all the while, also when what it tells has no room any more
	before=$(ticks "$PID")
	wait_for 20 ticked "$PID" $((before + 10))
	kill -CONT "$CT"
	kill -KILL "$PID"
	wait_for 10 ended "$CT"
}

case_gpu_injection_variable_taken() {
	CUDA_INJECTION64_PATH=/opt/other.so ct --gpu -- "$WORK" 1 return
	ok_rc 1
	says 'CUDA_INJECTION64_PATH is set already, to /opt/other.so'
	ct --gpu -E CUDA_INJECTION64_PATH=/opt/mine.so -- "$WORK" 1 return
	ok_rc 1
	says 'is set already, to /opt/mine.so'
	CUDA_INJECTION64_PATH=/opt/other.so ct_json --gpu -E CUDA_INJECTION64_PATH -- "$WORK" 2 return
	ok_rc
	expect_kinds kernel 2
}

case_gpu_no_cuda() {
	ct --gpu -- /bin/true
	ok_rc
	says 'the agent was not loaded: '
}

# ---- a program that runs already ----

# running ARGS...: the work program as one whose driver has a device open, which is what is asked before anything is brought into it: a
# file of that name, which only its mount namespace has. Its pid in PID.
running() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	# shellcheck disable=SC2016 # it is the inner shell's
	unshare -m sh -c 'mount -t tmpfs none /dev && : > /dev/nvidia0 && exec 9< /dev/nvidia0 && echo $$ && exec "$0" "$@"' \
		"$WORK" "$@" > "$T/work.out" 2> "$T/work.err" < /dev/null &
	wait_for 5 grep -q . "$T/work.out"
	PID=$(head -n 1 "$T/work.out")
	wait_for 5 grep -q libcuda.so "/proc/$PID/maps"
}

# more_than N KIND [FILTER]: rows so far.
more_than() {
	[ "$(kinds "${@:2}")" -gt "$1" ]
}

case_gpu_attach() {
	local fds i
	running -p 1 -- -1 loop
	sleep 0.2
	fds=$(find "/proc/$PID/fd" -mindepth 1 | wc -l)
	for i in 1 2 3; do
		attach --gpu -p "$PID"
		wait_for 20 more_than 50 kernel
		finish INT
		ok_rc
		says 'the agent has left: .*CUPTI ended'
		# no call in the trace is the agent's own
		expect_rows cuDriverGetVersion 0
		wait_for 5 no_agent
		alive || fail "the program ended"
	done
	# what is left is the wake-up descriptor and the object's own, once
	[ "$(find "/proc/$PID/fd" -mindepth 1 | wc -l)" -le $((fds + 2)) ] || fail "descriptors are left: $(ls -l "/proc/$PID/fd")"
	kill -KILL "$PID"
}

# As README says: without a GPU there is no device to have open. With one, a program that has not opened it is left alone.
case_gpu_attach_without_device() {
	compgen -G '/dev/nvidia*' > "$T/devices" && skip "there are GPUs here"
	"$WORK" -p 1 -- -1 loop > "$T/work.out" 2>&1 < /dev/null &
	PID=$!
	wait_for 5 grep -q libcuda.so "/proc/$PID/maps"
	attach --gpu -p "$PID"
	wait_for 20 more_than 20 kernel
	finish INT
	ok_rc
	kill -KILL "$PID"
	unshare -m true 2> /dev/null || return 0
	# shellcheck disable=SC2016 # it is the inner shell's
	unshare -m sh -c 'mount -t tmpfs none /dev && : > /dev/nvidia0 && exec "$0" -p 1 -- -1 loop' "$WORK" > "$T/work.out" 2>&1 < /dev/null &
	PID=$!
	wait_for 5 grep -q libcuda.so "/proc/$PID/maps"
	attach --gpu -p "$PID"
	wait_for 20 grep -q '"name":"cudaLaunchKernel"' "$T/out"
	finish INT
	says "process $PID has not opened a GPU yet"
	expect_kinds kernel 0
	kill -KILL "$PID"
}

# A program that sleeps for hours has the same words on its stack all the time, those of earlier calls to malloc too.
case_gpu_attach_asleep() {
	running 3 idle
	wait_for 5 grep -q launched "$T/work.out"
	ct_json -v --gpu -d 1 -p "$PID"
	ok_rc
	says 'the agent has left: .*CUPTI ended'
	! grep -q 'safe point' "$T/err" || fail "$(cat "$T/err")"
	alive || fail "the program ended"
	kill -KILL "$PID"
}

case_cupti_attach() {
	running -p 1 -- -1 loop
	"${BACKGROUND[@]}" "$CUDATRACE" -v --source=cupti --gpu --format json -o "$T/out" -p "$PID" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 20 more_than 50 kernel '"cause":"cudaLaunchKernel"'
	wait_for 20 more_than 50 call '"name":"cudaLaunchKernel"'
	finish INT
	ok_rc
	alive || fail "the program ended"
	kill -KILL "$PID"
}

# Contexts have numbers by CUPTI and handles by the program: a call and what it caused name the same one, and the same device.
# contexts_agree WHAT LEAST
contexts_agree() {
	local call kernel n=0
	while read -r call kernel; do
		[ "$call" = "$kernel" ] || fail "$1: a launch on $call, its kernel on $kernel"
		n=$((n + 1))
	done < <(join <(grep '"name":"cuLaunchKernel","args"' "$T/out" |
		sed -nE 's/.*"device":([0-9]+),"context":([0-9]+),.*"correlation":([0-9]+).*/\3 \1-\2/p' | sort) \
		<(grep '^{"type":"kernel"' "$T/out" |
			sed -nE 's/.*"device":([0-9]+),"context":([0-9]+),.*"correlation":([0-9]+).*/\3 \1-\2/p' | sort) | cut -d' ' -f2,3)
	[ "$n" -ge "$2" ] || fail "$1: only $n launches with device and context: $(grep -m 1 '"name":"cuLaunchKernel","args"' "$T/out")"
	expect "$1: contexts of kernels" "$(grep '^{"type":"kernel"' "$T/out" | grep -oE '"device":[0-9],"context":[0-9]+' | sort -u | tr '\n' ' ')" \
		'"device":0,"context":41 "device":1,"context":42 '
	expect "$1: contexts told" "$(kinds context)" 2
}

case_gpu_contexts() {
	export STANDIN_CUPTI=contexts
	# they are made before the first buffer comes back
	ct_json --gpu --cupti "$STANDIN/libcupti.so.13" -- "$BIN/contexts" 20 20
	ok_rc
	expect_kinds kernel 40
	contexts_agree "from the start" 20
	no_loss
	"$CUDATRACE" record --gpu --cupti "$STANDIN/libcupti.so.13" -o "$T/r.ctrace" -- "$BIN/contexts" 20 20 > "$T/prog.out" 2> "$T/err"
	"$CUDATRACE" replay "$T/r.ctrace" --format json -o "$T/out" 2> "$T/err"
	contexts_agree "replayed" 20
}

case_gpu_contexts_attach() { # long
	local how
	# a call tells the handle before the context's record comes, and after
	for how in contexts contexts:2; do
		export STANDIN_CUPTI=$how
		WORK=$BIN/contexts running -1 5
		ct_json -v --gpu --cupti "$STANDIN/libcupti.so.13" -d 1 -p "$PID"
		ok_rc
		contexts_agree "$how" 20
		"$CUDATRACE" record --gpu --cupti "$STANDIN/libcupti.so.13" -d 1 -p "$PID" -o "$T/r.ctrace" > "$T/prog.out" 2> "$T/err"
		"$CUDATRACE" replay "$T/r.ctrace" --format json -o "$T/out" 2> "$T/err"
		contexts_agree "$how, replayed" 20
		kill -KILL "$PID"
		rm "$T/work.out"
	done
}

# ---- without root ----

normal() {
	sed -E 's/^[0-9.]+ +[^ ]+ +[0-9]+ +//; s/[0-9.]+(ns|us|ms|s)$/DUR/; s/0x[0-9a-f]{6,}/ADDRESS/g; s/(free|total|ms)=[0-9.]+/\1=N/g'
}

# The same rows as by probes, from the first call that CUPTI sees on: the runtime's own start comes before.
case_cupti_same_rows() {
	ct_rows -- "$SAMPLE"
	ok_rc
	sed 1d "$T/out" | normal | grep -v '^cuda_events_test' > "$T/probes"
	ct_rows --source=cupti -- "$SAMPLE"
	ok_rc
	sed 1d "$T/out" | normal | grep -v -E '^cuda_events_test|^cuDevicePrimaryCtx|^cuCtxSetCurrent|^cuDeviceGetCount' > "$T/cupti"
	[ "$(wc -l < "$T/cupti")" -ge 40 ] || fail "only $(wc -l < "$T/cupti") rows"
	# the rows of probes that are made before: at the beginning
	tail -n "$(wc -l < "$T/cupti")" "$T/probes" > "$T/same"
	diff "$T/same" "$T/cupti" > "$T/diff" || fail "rows differ: $(head -n 4 "$T/diff")"
	[ "$(($(wc -l < "$T/probes") - $(wc -l < "$T/cupti")))" -le 3 ] || fail "rows are missing"
}

case_cupti_not_root() {
	local user
	user=$(id -nu 65534 2> /dev/null) || skip "no user nobody"
	command -v setpriv > /dev/null || skip "no setpriv"
	chmod 777 "$T"
	rc=0
	timeout 150 setpriv --reuid="$user" --clear-groups --bounding-set=-all --inh-caps=-all env HOME="$T" "$CUDATRACE" --source=cupti --gpu \
		--format json -o "$T/out" -- "$WORK" 15 return > "$T/prog.out" 2> "$T/err" < /dev/null || rc=$?
	ok_rc
	expect_rows cudaLaunchKernel 15 '"kernel":"vec_mul\(float\*, int\)"'
	expect_kinds kernel 15
	expect_kinds process 1 '"process":"work"'
	all_matched
	no_loss
}

# -d: what was on the way is shown, and the program goes on without the agent.
case_cupti_detach() {
	"${BACKGROUND[@]}" "$CUDATRACE" -v --source=cupti --gpu -d 0.7 --format json -o "$T/out" -- "$WORK" -p 1 -- -1 loop > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 15 ended "$CT"
	says 'the agent has left: .*CUPTI ended'
	PID=$(grep -m 1 '"type":"kernel"' "$T/out" | grep -o '"pid":[0-9]*' | cut -d: -f2)
	wait_for 5 no_agent
	alive || fail "the program ended too"
	kill -KILL "$PID"
	expect "kernels without a call" "$(grep '^{"type":"end"' "$T/out" | grep -o '"unmatched":[0-9]*')" '"unmatched":0'
}

case_cupti_selects() {
	ct_json --source=cupti -e launch -- "$WORK" 5 return
	ok_rc
	expect_rows cudaLaunchKernel 5
	expect "other calls" "$(grep -c '^{"type":"call"' "$T/out")" 5
	ct_json --source=cupti -e copy --min-size 4KiB -- "$WORK" 5 return
	expect_rows cudaMemcpyAsync 5
	expect "other calls" "$(grep -c '^{"type":"call"' "$T/out")" 5
}

case_cupti_nested() {
	ct_json --source=cupti --nested -e launch -- "$WORK" 5 return
	expect_rows cudaLaunchKernel 5
	expect_rows cuLaunchKernel 5 '"depth":1'
}

# Calls that are left by longjmp: what is called next is not a part of them. CUPTI comes in within the first one.
case_cupti_longjmp() {
	ct_json --source=cupti -- "$CALLS" longjmp 20
	ok_rc
	expect_rows cudaStreamQuery 20
	expect_rows cudaStreamAddCallback 19 '"unfinished":true'
	no_loss
}

# A child in its parent's memory, and with its parent's thread-local storage: its calls are not its parent's, and that they are not known
# is said. CUPTI comes in within the first call of the parent's five.
case_cupti_shared_memory() {
	local how
	for how in shared vfork; do
		ct_json --source=cupti --strict -- "$OUT/cases/offspring" $how 2
		ok_rc 3
		expect_rows cudaStreamQuery 4
		says '^cudatrace: 7 calls, 0 lost of those seen; process [0-9]+ \(offspring\) made a child that shares its memory: calls of this child are not known$'
	done
}

case_cupti_failures() {
	ct_rows --source=cupti --failed -- "$SAMPLE"
	ok_rc
	expect "failing rows" "$(grep -c 'cudaError' "$T/out")" "$(ct_rows --failed -- "$SAMPLE"; grep -c 'cudaError' "$T/out")"
}

case_cupti_status() {
	local how status
	while read -r how status; do
		ABORT_OK=1 ct --source=cupti -- "$WORK" 5 "$how"
		ok_rc "$status"
	done <<- END
		exit 3
		_exit 4
	END
	ct_kill --source=cupti -- "$WORK" 5 kill
	ct --source=cupti -- "$T/nothing"
	ok_rc 1
	says 'cannot run'
}

# What the agent's coming in took is in no sum, live and of a recording, and is said.
case_gpu_coming_in() {
	local all entered
	ct stat --gpu --json -o "$T/live" -- "$BIN/work" 3 return
	ok_rc
	entered=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["summary"].get("agent_entered_ns", 0))' "$T/live")
	[ "$entered" -gt 0 ] || fail "live: nothing is said of it"
	ct record --gpu -o "$T/r.ctrace" -- "$BIN/work" 3 return
	ok_rc
	ct replay --format json -o "$T/rows" "$T/r.ctrace"
	ok_rc
	all=$(python3 -c '
import json, sys
print(sum(r["duration_ns"] for r in map(json.loads, open(sys.argv[1])) if r["type"] == "call"))' "$T/rows")
	ct stat --json -o "$T/stat" "$T/r.ctrace"
	ok_rc
	expect "calls, and what is left out" "$(python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))["summary"]
print(s["total_api_time_ns"] + s["agent_entered_ns"], s["agent_entered_ns"] > 0, s.get("agent_entered_in_sums_ns"))' "$T/stat")" "$all True None"
	ct stat "$T/r.ctrace"
	grep -qE "^ the agent's coming in  +[0-9.]+ [mu]s inside cu[A-Za-z]+, and in no sum\$" "$T/out" || fail "text: $(grep coming "$T/out")"
}
