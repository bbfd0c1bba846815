#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the exports in the eyes of programs that others wrote: Perfetto's own definitions and trace processor's rules
# (check_perfetto.py), Meta's Holistic Trace Analysis (hta.py; steps.py, with the plugin for TensorBoard); DuckDB, pandas and pyarrow (readers.py). The files are those of tests/unit/test_perfetto.c. The programs come
# from PyPI into .output/export; without it they are skipped. Prints `ok`, `not ok` and `skip` lines.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

dir=$PWD/.output/export
program=.output/unit/test_perfetto
golden=tests/golden/perfetto.txt

if [ ! -x "$program" ]; then
	echo "not ok export: $program is not built: make unit-programs"
	exit 1
fi

# have NAME PACKAGE...: the packages in a folder of their own, installed once
have() {
	local venv=$dir/$1
	[ -e "$venv/done" ] && return 0
	python3 -m venv "$venv" > "$dir/$1.log" 2>&1 &&
		timeout 300 "$venv/bin/pip" -q --disable-pip-version-check install --retries 1 "${@:2}" >> "$dir/$1.log" 2>&1 &&
		touch "$venv/done" && return 0
	echo "skip $1: NOT TESTED: PyPI gave no ${*:2} ($(tail -n 1 "$dir/$1.log" | cut -c1-200))"
	return 1
}

rm -rf "$dir/files"
mkdir -p "$dir/files" || exit 1
if ! EXPORT_DIR=$dir/files "$program" > "$dir/files.log" 2>&1; then
	echo "not ok export: $(grep -m 1 FAILED "$dir/files.log")"
	exit 1
fi

if have perfetto perfetto==0.59.1; then
	python=$dir/perfetto/bin/python
	if "$python" tests/export/check_perfetto.py --text "$dir/files/story.pftrace" > "$dir/perfetto.txt" 2> "$dir/check.log"; then
		echo "ok perfetto-story"
	else
		echo "not ok perfetto-story: $(head -n 1 "$dir/check.log")"
	fi
	[ -z "${UPDATE_GOLDEN:-}" ] || cp "$dir/perfetto.txt" "$golden"
	if diff -u "$golden" "$dir/perfetto.txt" > "$dir/perfetto.diff"; then
		echo "ok perfetto-golden"
	else
		echo "not ok perfetto-golden: $(sed -n '3,$p' "$dir/perfetto.diff" | grep -m 1 '^[-+]')"
	fi
	if "$python" tests/export/check_perfetto.py "$dir/files/busy.pftrace" > "$dir/busy.txt" 2> "$dir/check.log" &&
		grep -q '^8000 slices, 0 instants, 0 counter values, 4000 arrows, ' "$dir/busy.txt"; then
		echo "ok perfetto-busy"
	else
		echo "not ok perfetto-busy: $(cat "$dir/busy.txt" "$dir/check.log" | head -n 1)"
	fi
	"$python" tests/export/check_perfetto.py --text "$dir/files/scopes.pftrace" > "$dir/scopes.txt" 2> "$dir/check.log" ||
		echo "not ok perfetto-scopes-rules: $(head -n 1 "$dir/check.log")"
	[ -z "${UPDATE_GOLDEN:-}" ] || cp "$dir/scopes.txt" tests/golden/perfetto_scopes.txt
	if diff -u tests/golden/perfetto_scopes.txt "$dir/scopes.txt" > "$dir/scopes.diff"; then
		echo "ok perfetto-scopes"
	else
		echo "not ok perfetto-scopes: $(sed -n '3,$p' "$dir/scopes.diff" | grep -m 1 '^[-+]')"
	fi
	for trace in tests/traces/*.ctrace; do
		name=perfetto-replay-$(basename "$trace" .ctrace)
		if timeout 60 ./cudatrace replay --format perfetto -o "$dir/replay.pftrace" "$trace" 2> "$dir/check.log" &&
			"$python" tests/export/check_perfetto.py "$dir/replay.pftrace" > "$dir/replay.txt" 2> "$dir/check.log"; then
			echo "ok $name"
		else
			echo "not ok $name: $(head -n 1 "$dir/check.log")"
		fi
	done
	"$python" tests/export/break_perfetto.py "$dir/files/story.pftrace"
fi
if have hta HolisticTraceAnalysis==0.5.0; then
	timeout 300 "$dir/hta/bin/python" tests/export/hta.py "$dir/files/busy.jsonl" 0="$dir/files/busy.1000.json" \
		1="$dir/files/busy.2000.json" 2> "$dir/hta.err" ||
		echo "not ok hta: $(tail -n 1 "$dir/hta.err")"
fi
if have readers HolisticTraceAnalysis==0.5.0 torch-tb-profiler==0.4.3 'pandas<3'; then
	./cudatrace export --to chrome -o "$dir/steps.pt.trace.json" tests/export/steps.ctrace 2> "$dir/check.log" &&
		timeout 300 "$dir/readers/bin/python" tests/export/steps.py "$dir/steps.pt.trace.json" 2> "$dir/readers.err" ||
		echo "not ok readers: $(tail -n 1 "$dir/check.log" "$dir/readers.err" | tr '\n' ' ')"
fi
if [ ! -x .output/unit/test_hostile ]; then
	echo "not ok readers: .output/unit/test_hostile is not built: make unit-programs"
elif have tables duckdb pandas pyarrow; then
	timeout 300 "$dir/tables/bin/python" tests/export/readers.py 2> "$dir/tables.err" || tail -n 1 "$dir/tables.err"
fi
