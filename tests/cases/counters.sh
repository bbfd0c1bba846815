# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# counters.sh - cases about hardware counters, on stand-ins for NVML and for CUPTI's PM sampling.

G=$STANDIN/gpu
HELPER=$OUT/agent/cudatrace-counters

# gpu ARGS...: `cudatrace counters` on the stand-ins, to its end.
gpu() {
	LD_LIBRARY_PATH=$G ct counters --cupti "$G" "$@"
}

# The first row of each GPU, without times.
first_rows() {
	awk 'NF && $2 ~ /^[01]$/ { if (seen[$2]++) next; $1 = "T" } { print }' "$T/out" | tr -s ' '
}

# golden NAME: compares $T/text with tests/golden/NAME; UPDATE_GOLDEN writes it.
golden() {
	[ -z "${UPDATE_GOLDEN:-}" ] || cp "$T/text" "$ROOT/tests/golden/$1"
	diff -u "$ROOT/tests/golden/$1" "$T/text" > "$T/diff" || fail "differs from $1: $(tail -n +4 "$T/diff" | head -n 8)"
}

case_counters_table() {
	gpu -n 4
	ok_rc
	awk '$2 ~ /^[01]$/ && NF > 3 { if (seen[$2]++) next; sub(/^ *[0-9.]+/, "     T.TTT") } { print }' "$T/out" > "$T/text"
	golden counters.txt
	says 'GPU 0 \(Stand-in GPU\): CUPTI PM sampling'
	says 'GPU 1 \(Stand-in GPU\): CUPTI PM sampling'
}

case_counters_csv() {
	gpu -n 4 --format csv -o "$T/csv"
	ok_rc
	[ ! -s "$T/out" ] || fail "stdout: $(head -n 1 "$T/out")"
	awk -F, 'NR > 1 { if (seen[$2]++) next; sub(/^[0-9.]+/, "T") } { print }' "$T/csv" > "$T/text"
	golden counters.csv
}

case_counters_json() {
	gpu -n 4 --format json
	ok_rc
	python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' < "$T/out" || fail "not JSON"
	awk '/"counter"/ { match($0, /"device":[01]/); if (seen[substr($0, RSTART, RLENGTH)]++) next } { print }' "$T/out" |
		sed -E 's/"(start|duration|uptime)_ns":[0-9]+/"\1_ns":T/g; s/"cudatrace":"[^"]*"/"cudatrace":""/' > "$T/text"
	golden counters.jsonl
}

# The samples' times follow one another on CLOCK_MONOTONIC, of which /proc/uptime tells (no time namespace here).
check_times() {
	gpu -n 6 --format json
	ok_rc
	python3 - "$T/out" <<- 'EOF' > "$T/why" || exit 1
		import json, sys, time
		rows = [json.loads(line) for line in open(sys.argv[1])]
		rows = [r for r in rows if r["type"] == "counter" and r["device"] == 0]
		now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
		for r in rows:
		    if not now - 60e9 < r["start_ns"] < r["start_ns"] + r["duration_ns"] <= now:
		        sys.exit(print("a sample at", r["start_ns"], "of", r["duration_ns"], "ns, now it is", now) or 1)
		for a, b in zip(rows, rows[1:]):
		    if abs(b["start_ns"] - a["start_ns"] - a["duration_ns"]) > 1e6:
		        sys.exit(print("the sample after", a, "is", b) or 1)
	EOF
}

case_counters_clock_realtime() {
	check_times
}

case_counters_clock_callback() {
	CUDATRACE_COUNTERS_CLOCK=callback check_times
}

case_counters_clock_monotonic() {
	STANDIN_PM_CLOCK=monotonic check_times
}

case_counters_clock_unknown() {
	STANDIN_PM_CLOCK=own gpu -n 2
	ok_rc
	says 'no clock of this machine'
}

case_counters_gpm() {
	STANDIN_PM_ERROR=26 gpu -n 4
	ok_rc
	says 'GPU 1 \(Stand-in GPU\): NVML GPM; no CUPTI PM sampling: another program samples its counters'
	expect rows "$(first_rows | sed -n 3,4p)" \
		"T 0 1.0 2.0 3.0 - 110.0? 0.02 0.02 0.06 0.06 250.5 1755 2619 45 1024 none
T 1 1.0 2.0 3.0 - 110.0? 0.02 0.02 0.06 0.06 251.5 1755 2619 46 2048 none"
}

case_counters_nvml() {
	STANDIN_NVML_GPM=off STANDIN_PM_ENABLE=35 gpu -n 4
	ok_rc
	says "GPU 0 .*: NVML's utilisation.*: the driver lets only administrators profile: run as root"
	expect head "$(head -n 1 "$T/out" | tr -s ' ')" " TIME GPU gpu pcie_rx pcie_tx power sm_clock mem_clock temp mem_used throttle"
	expect rows "$(first_rows | sed -n 3,4p)" "T 0 87.0 2.00 1.00 250.5 1755 2619 45 1024 none
T 1 88.0 2.00 1.00 251.5 1755 2619 46 2048 none"
}

case_counters_gpm_denied() {
	STANDIN_NVML_GPM=denied STANDIN_PM_ERROR=27 gpu -v -n 2
	ok_rc
	says "NVML's utilisation.*CUPTI does not sample this GPU"
	says 'no NVML GPM: this user may not read it'
}

case_counters_gpm_ends() {
	STANDIN_NVML_GPM=ends STANDIN_PM_ERROR=27 gpu -i 10ms -n 12 --format json
	ok_rc
	says "NVML GPM gives no samples any more"
}

# One sentence for each that stands in the way, and what to do.
case_counters_modes() {
	STANDIN_NVML_MODE=mig gpu -n 2
	ok_rc
	says "NVML's utilisation.*: it is in MIG mode"
	expect "gpu column" "$(head -n 1 "$T/out" | grep -c ' gpu ')" 0
	STANDIN_NVML_MODE=cc gpu -n 2
	ok_rc
	says 'NVML GPM; no CUPTI PM sampling: confidential computing hides its counters: switch the GPU to devtools mode'
	STANDIN_PM_ERROR=33 gpu -n 2
	ok_rc
	says 'virtual GPU without profiling'
	STANDIN_PM_ERROR=46 gpu -n 2
	ok_rc
	says 'does not know the chip: give a newer one with --cupti'
	STANDIN_PM_ERROR=999 gpu -n 2
	ok_rc
	says 'CUPTI fails \(its counters cannot be listed: error 999\)'
}

case_counters_sysclk() {
	STANDIN_PM_CHIP=TU102 gpu -n 2
	ok_rc
	says 'TU102\): samples are triggered by the system clock'
}

case_counters_suspect() {
	STANDIN_PM_SUSPECT=1 gpu -n 4 --metrics sm,dram
	ok_rc
	expect rows "$(first_rows | sed -n 3,4p)" "T 0 130.0? 25.0
T 1 130.0? 26.0"
	STANDIN_PM_SUSPECT=1 gpu -n 1 --metrics sm,dram --format json
	grep -q '"values":{"sm":null,"dram":25}}' "$T/out" || fail "$(grep counter "$T/out")"
	STANDIN_PM_SUSPECT=1 gpu -n 1 --metrics sm,dram --format csv
	grep -q ',130?,25$' "$T/out" || fail "$(tail -n 1 "$T/out")"
}

case_counters_overflow() {
	STANDIN_PM_MANY=1 STANDIN_PM_OVERFLOW=3 gpu -i 1ms -n 500 --format json
	ok_rc
	expect warnings "$(grep -c 'samples were lost' "$T/err")" 2
	grep -q '{"type":"lost",.*"cause":"device_dropped"}' "$T/out" || fail "nothing is counted as lost"
}

case_counters_decoding_fails() {
	STANDIN_PM_FAIL=3 gpu -n 12
	ok_rc
	says 'GPU 0: no more samples by CUPTI PM sampling: CUPTI fails \(samples cannot be decoded: error 999\)'
	says 'GPU 1 \(Stand-in GPU\): NVML GPM'
}

case_counters_xid() {
	STANDIN_NVML_XID=79 gpu -n 2
	grep -q '^ *[0-9.]* *1 XID 79: the GPU has fallen off the bus$' "$T/out" || fail "$(tail -n 3 "$T/out")"
	STANDIN_NVML_XID=31 gpu -n 2 --format json
	grep -q '{"type":"event","start_ns":[0-9]*,"what":"xid","device":1,"code":31,"text":"memory page fault' "$T/out" ||
		fail "$(grep event "$T/out")"
	STANDIN_NVML_XID=13 gpu -n 2 --format csv
	says 'warning: GPU 1 at [0-9.]* s: XID 13: graphics engine exception'
	expect lines "$(wc -l < "$T/out")" 3
}

case_counters_throttle() {
	STANDIN_NVML_REASONS=45 gpu -n 2 --metrics throttle
	grep -q '^ *[0-9.]* *0 clocks: clocks are held back by power cap, thermal (hardware)$' "$T/out" || fail "$(cat "$T/out")"
	expect rows "$(grep -c -E '^ *[0-9.]+ +[01] +idle\+power\+hw-thermal$' "$T/out")" 2
}

case_counters_metrics() {
	gpu --metrics power,sm,sm__inst_executed.sum.per_second,sm -n 2
	ok_rc
	expect head "$(head -n 2 "$T/out" | tr -s ' ')" " TIME GPU power sm sm__inst_executed.sum.per_second
 s W % inst/s"
	gpu --metrics default,sm__inst_executed.sum -n 2 --format csv
	ok_rc
	expect head "$(head -n 1 "$T/out" | grep -o 'throttle.*')" 'throttle [reasons],sm__inst_executed.sum [inst]'
	gpu --metrics power,temp -n 2
	ok_rc
	! grep -q 'CUPTI' "$T/err" || fail "CUPTI is used for nothing: $(cat "$T/err")"
}

case_counters_metrics_refused() {
	gpu --metrics sm,nonsense -n 2
	ok_rc 1
	says "there is no metric 'nonsense'; 'cudatrace counters --metrics help' lists them"
	gpu --metrics sm,sm__nonsense.sum -n 2
	ok_rc 1
	says "GH100 has no metric 'sm__nonsense.sum'"
	gpu --metrics sm,sm__throughput.avg.pct_of_peak_sustained_elapsed -n 2
	ok_rc 1
	says 'the list needs 19 passes on GH100, and samples have one'
	gpu --metrics sm,tensor -n 2
	ok_rc 1
	says "with 'tensor' the list needs 4 passes"
	expect "standard output" "$(cat "$T/out")" ""
	gpu --metrics , -n 2
	ok_rc 2
	says 'an empty list'
}

case_counters_help() {
	gpu --metrics help
	ok_rc
	grep -q '^dram_read *B/s *cupti *read from device memory$' "$T/out" || fail "no row of cudatrace"
	grep -q '^  dram__bytes_read *byte\|^  dram__bytes_read *B ' "$T/out" || fail "no row of CUPTI"
	! grep -q 'sm__throughput ' "$T/out" || fail "what needs 19 passes is listed"
	grep -q 'GH100' "$T/out" || fail "the chip is not named"
	gpu --metrics help --chip NONSENSE
	ok_rc 1
	says "CUPTI knows no chip 'NONSENSE'"
}

# The real library needs no GPU to tell of a chip's metrics.
case_counters_help_real() { # long
	[ -e /usr/local/cuda/lib64/libcupti.so.13 ] || skip "no CUPTI 13 here"
	ct counters --metrics help --chip GH100
	ok_rc
	grep -q '^  dram__bytes_read  *B  *# of bytes read from DRAM' "$T/out" || fail "no dram__bytes_read"
	! grep -q '^  lts__t_sector_hit_rate ' "$T/out" || fail "what needs two passes is listed"
	[ "$(wc -l < "$T/out")" -gt 500 ] || fail "only $(wc -l < "$T/out") lines"
	# the names that cudatrace uses there, in one pass
	expect "GH100" "$(grep -c -E '^  (gpu|sm|occupancy|tensor|dram|dram_read|dram_write|l2_hit|pcie_rx|pcie_tx|nvlink_rx|nvlink_tx) +[A-Za-z]' "$T/out")" 12
}

case_counters_no_nvml() {
	! ldconfig -p | grep -q libnvidia-ml.so.1 || skip "NVML is installed"
	ct counters -n 1
	ok_rc 1
	expect stderr "$(grep -c '' "$T/err")" 1
	says 'error: no counters: libnvidia-ml.so.1 \(NVML\) was not found; it is part of NVIDIA.s driver'
}

case_counters_no_driver() {
	STANDIN_NVML_INIT=9 gpu -n 1
	ok_rc 1
	says 'NVML does not start \(Driver Not Loaded\): load the kernel module \(modprobe nvidia\)'
	STANDIN_NVML_DEVICES=0 gpu -n 1
	ok_rc 1
	says 'NVML finds no GPU that this user may use'
}

case_counters_no_cupti() {
	LD_LIBRARY_PATH=$G ct counters --cupti "$T" -n 1
	ok_rc 1
	says "no counters: --cupti $T: "
}

case_counters_options() {
	gpu -i 10us
	ok_rc 2
	says "'10us' is no interval from 100us to 1h"
	gpu --chip GH100
	ok_rc 2
	says 'give --metrics help'
	gpu --format folded
	ok_rc 2
	gpu nonsense
	ok_rc 2
}

# ---- the helper's life ----

# counters_bg ARGS...: in the background; HELPER_PID is its helper's, once rows come.
counters_bg() {
	LD_LIBRARY_PATH=$G "${BACKGROUND[@]}" "$CUDATRACE" counters --cupti "$G" "$@" > "$T/out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 test -s "$T/out"
	HELPER_PID=$(pgrep -P "$CT")
	[ -n "$HELPER_PID" ] || fail "no helper"
	expect "its name" "$(cat "/proc/$HELPER_PID/comm")" cudatrace-count
}

case_counters_helper_killed() {
	counters_bg -i 10ms
	kill -KILL "$HELPER_PID"
	finish
	ok_rc 1
	expect errors "$(grep -c error "$T/err")" 1
	says "error: the counters' helper ended \(Killed\)"
}

case_counters_helper_gone() { # long
	local sig
	for sig in INT TERM KILL HUP; do
		: > "$T/out"
		counters_bg -i 10ms
		kill -s "$sig" "$CT"
		wait_for 10 ended "$CT"
		wait_for 10 ended "$HELPER_PID"
	done
}

case_counters_sigint() {
	counters_bg
	finish INT
	ok_rc
	! grep -q error "$T/err" || fail "$(cat "$T/err")"
}

case_counters_stdout_closed() {
	LD_LIBRARY_PATH=$G "$CUDATRACE" counters --cupti "$G" -i 1ms 2> "$T/err" | head -n 1 > "$T/out"
	rc=${PIPESTATUS[0]}
	ok_rc
	! grep -q -E 'error:|warning:' "$T/err" || fail "$(cat "$T/err")"
	grep -q '^ *TIME GPU ' "$T/out" || fail "$(cat "$T/out")"
}

# A library that never answers: cudatrace ends when it is told to, and so does the helper.
case_counters_hang() {
	STANDIN_NVML_HANG=1 LD_LIBRARY_PATH=$G "${BACKGROUND[@]}" "$CUDATRACE" counters --cupti "$G" > "$T/out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 pgrep -P "$CT"
	HELPER_PID=$(pgrep -P "$CT")
	kill -INT "$CT"
	wait_for 10 ended "$CT"
	wait_for 10 ended "$HELPER_PID"
}

case_counters_privileges() {
	local caps
	counters_bg
	caps=$(sed -n 's/^CapPrm:\s*//p' "/proc/$HELPER_PID/status")
	# CAP_SYS_ADMIN, where we have it, and nothing else
	expect capabilities "$((0x$caps & ~(1 << 21)))" 0
	expect "core limit" "$(awk '/^Max core/ { print $5, $6 }' "/proc/$HELPER_PID/limits")" "0 0"
	finish INT
	[ ! -e "/tmp/cudatrace-counters" ] || fail "a file stays"
}

case_counters_unprivileged() {
	rc=0
	LD_LIBRARY_PATH=$G setpriv --reuid 65534 --regid 65534 --clear-groups "$CUDATRACE" counters --cupti "$G" -n 2 \
		> "$T/out" 2> "$T/err" < /dev/null || rc=$?
	ok_rc
	expect rows "$(wc -l < "$T/out")" 4
}

# Where a memfd may not be executed, the helper runs from a file that has no name.
# shellcheck disable=SC2034
case_counters_noexec() {
	[ -e /proc/sys/vm/memfd_noexec ] || skip "this kernel has no vm.memfd_noexec"
	rc=0
	# shellcheck disable=SC2016
	LD_LIBRARY_PATH=$G unshare -pf --mount-proc bash -c 'echo 2 > /proc/sys/vm/memfd_noexec && "$@"' - \
		"$CUDATRACE" counters --cupti "$G" -n 2 > "$T/out" 2> "$T/err" < /dev/null || rc=$?
	ok_rc
	expect rows "$(wc -l < "$T/out")" 4
}

# It has to run wherever a driver does.
case_counters_old_libc() {
	local newest
	newest=$(objdump -T "$HELPER" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -V | tail -n 1)
	[ -n "$newest" ] || fail "no symbols"
	expect "newest symbol" "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" 2.17
	! objdump -p "$HELPER" | grep NEEDED | grep -qE 'cupti|nvidia|cuda|nvperf' || fail "$(objdump -p "$HELPER" | grep NEEDED)"
}

# ---- in a trace ----

case_counters_in_a_trace() {
	LD_LIBRARY_PATH=$G ct_json --counters --cupti "$G" -i 10ms -- "$CALLS" mix 1 1 1
	ok_rc
	expect_rows cudaMalloc 2
	expect devices "$(grep -c '^{"type":"device",' "$T/out")" 2
	grep -q '^{"type":"metric",.*"name":"sm","unit":"%","source":"pm"}' "$T/out" || fail "$(grep -m 3 '"metric"' "$T/out")"
	[ "$(grep -c '^{"type":"counter",' "$T/out")" -ge 2 ] || fail "no samples"
	no_loss
	STANDIN_NVML_XID=79 LD_LIBRARY_PATH=$G ct_json --counters=sm,power --cupti "$G" -- "$CALLS" mix 1 1 1
	ok_rc
	grep -q '^{"type":"event",.*"what":"xid","device":1,"code":79' "$T/out" || fail "no XID"
}

# The helper goes, the trace goes on.
case_counters_trace_goes_on() {
	target one mix 1 1 1
	LD_LIBRARY_PATH=$G attach --counters --cupti "$G" -p "$PID_one"
	HELPER_PID=$(pgrep -P "$CT" cudatrace-count)
	kill -KILL "$HELPER_PID"
	wait_for 10 grep -q 'helper ended' "$T/err"
	go one
	stop one
	finish
	ok_rc
	expect_rows cudaMalloc 2
}
