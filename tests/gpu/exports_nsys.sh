#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# exports_nsys.sh - nsys-sqlite and OTLP from a real GPU: tests/gpu/exports_nsys.sh [CUDATRACE]
#
# Needs what run.sh needs, and PyTorch. The database's device rows are compared with the rows of the JSON of the same recording,
# each kernel must find its call, and NVIDIA's own `nsys stats` runs on it where that is installed.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"

query() {
	python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' "$tmp/db.sqlite" "$1"
}
same() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "want $2, got $3"; fi
}

if ! has_torch; then
	skip exports "no PyTorch with a GPU"
elif ! "$ct" record --help | grep -q -e '--gpu'; then
	not_ok exports "record has no --gpu: device work cannot be asked for"
else
	"$ct" record --gpu -k -o "$tmp/r.ctrace" -- python3 tests/gpu/torch_step.py > "$tmp/out" 2> "$tmp/err" ||
		not_ok record "$(tail -n 1 "$tmp/err")"
	"$ct" replay -k --format nsys-sqlite -o "$tmp/db.sqlite" "$tmp/r.ctrace" 2> /dev/null
	"$ct" replay --format json -o "$tmp/rows" "$tmp/r.ctrace" 2> /dev/null
	"$ct" replay --format otlp-json --otlp-min 0s -o "$tmp/spans" "$tmp/r.ctrace" 2> /dev/null
	for pair in kernel:KERNEL memcpy:MEMCPY memset:MEMSET; do
		same "rows of ${pair#*:}" "$(grep -c "\"type\":\"${pair%:*}\"" "$tmp/rows")" \
			"$(query "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_${pair#*:}")"
	done
	same "each kernel finds one call" "$(query 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId IS NOT NULL')" \
		"$(query 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
			ON r.correlationId = k.correlationId AND k.globalPid = (r.globalTid & ~0xFFFFFF)')"
	same "no kernel begins before its call" 0 "$(query 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k
		JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND k.globalPid = (r.globalTid & ~0xFFFFFF)
		WHERE k.start < r.start')"
	same "each kernel has a device" 0 "$(query 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId NOT IN
		(SELECT id FROM TARGET_INFO_GPU)')"
	same "a span for each kernel" "$(grep -c '"type":"kernel"' "$tmp/rows")" "$(grep -o '"symbol_name"' "$tmp/spans" | wc -l)"
	echo "# $(query "SELECT count(*) || ' kernels, ' || sum(end - start) / 1000 || ' us, ' || count(correlationId) || ' with their call'
		FROM CUPTI_ACTIVITY_KIND_KERNEL")"
	if command -v nsys > /dev/null; then
		for report in cuda_api_sum cuda_gpu_kern_sum cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum cuda_gpu_trace cuda_kern_exec_sum; do
			if nsys stats -q -r $report -f csv "$tmp/db.sqlite" > "$tmp/report" 2>&1 && [ "$(grep -c , "$tmp/report")" -gt 1 ]; then
				ok "nsys stats $report"
			else
				not_ok "nsys stats $report" "$(tail -n 1 "$tmp/report")"
			fi
		done
	else
		skip "nsys stats" "Nsight Systems is not installed"
	fi
fi
all_done
