#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# files.sh - `cudatrace export` and what it writes of the stored traces: names of files, choices, csv by python's csv module,
# speedscope by a checker that was tried on broken files, the timeline page by its description. Needs no privileges. Prints
# `ok`, `not ok` lines.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C

ct=${CUDATRACE:-$PWD/cudatrace}
program=.output/unit/test_export
traces=$PWD/tests/traces
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
not_ok() {
	echo "not ok export-$1: $(tr '\n' ' ' <<< "$2" | cut -c1-400)"
	failed=1
}
# is NAME WANT GOT
is() {
	if [ "$2" = "$3" ]; then
		echo "ok export-$1"
	else
		not_ok "$1" "want: $2; got: $3"
	fi
}
# says NAME WANT COMMAND...: it fails with this message.
says() {
	local name=$1 want=$2 got
	shift 2
	if got=$("$@" 2>&1 > /dev/null); then
		not_ok "$name" "it succeeds"
	else
		is "$name" "$want" "$got"
	fi
}
quiet() {
	"$ct" export "$@" 2> "$dir/err" || cat "$dir/err" >&2
}

# ---- names of files
cp "$traces/two.ctrace" "$dir/run.ctrace"
cp "$traces/calls.ctrace" "$dir/noend"
before=$(cksum < "$dir/run.ctrace")
for name in csv:run.csv arrow:run.arrows html:run.html speedscope:run.speedscope.json folded:run.folded flame:run.flame.html json:run.jsonl; do
	(cd "$dir" && "$ct" export run.ctrace --to "${name%%:*}" 2> err)
	is "named-${name%%:*}" "cudatrace: written: ${name#*:}" "$(tail -n 1 "$dir/err")"
	[ -s "$dir/${name#*:}" ] || not_ok "file-${name%%:*}" "there is no ${name#*:}"
done
quiet "$dir/noend" --to csv
is named-without-suffix yes "$([ -s "$dir/noend.csv" ] && echo yes)"
quiet --to=csv -o "$dir/other name.csv" "$dir/run.ctrace"
is named-by-o same "$(cmp "$dir/other name.csv" "$dir/run.csv" && echo same)"
quiet --to csv "$dir/run.ctrace" -o - > "$dir/out.csv"
is to-stdout same "$(cmp "$dir/out.csv" "$dir/run.csv" && echo same)"
is quiet-on-stdout "" "$(grep written "$dir/err")"

# ---- recordings without an end
head -c $(($(wc -c < "$dir/run.ctrace") / 2)) "$dir/run.ctrace" > "$dir/cut.ctrace"
"$ct" replay "$dir/cut.ctrace" > /dev/null 2> "$dir/err"
is breaks-off 1 "$(grep -c '^cudatrace: warning: the recording is cut off: its last [1-9][0-9]* bytes are an incomplete block' "$dir/err")"
"$ct" replay "$traces/killed.ctrace" > /dev/null 2> "$dir/err"
is no-end 1 "$(grep -c '^cudatrace: the recording has no end: its writer was killed, or is still writing$' "$dir/err")"
"$ct" replay "$dir/run.ctrace" > /dev/null 2> "$dir/err"
is has-end 0 "$(grep -cE 'is cut off|has no end' "$dir/err")"

# ---- calls that were counted and not recorded: tests/golden/muted.txt has what each command says of them
for args in "info" "replay" "replay -c" "replay --format json" "stat" "stat --json" "stat --csv" "advise" "export --to csv -o -"; do
	echo "== $args"
	# shellcheck disable=SC2086
	(cd "$traces" && "$ct" $args muted.ctrace 2>&1)
done > "$dir/muted.txt"
sed -i -e 's/"version":"[^"]*"/"version":""/; s/"cudatrace":"[^"]*"/"cudatrace":""/' "$dir/muted.txt"
[ -z "${UPDATE_GOLDEN:-}" ] || cp "$dir/muted.txt" tests/golden/muted.txt
is muted-golden "" "$(diff tests/golden/muted.txt "$dir/muted.txt" | head -n 4)"

# ---- refusals
says itself "cudatrace: error: $dir/run.ctrace would be both read and written: give another name for the output" \
	"$ct" export --to csv -o "$dir/run.ctrace" "$dir/run.ctrace"
ln -s run.ctrace "$dir/link.csv"
says itself-by-link "cudatrace: error: $dir/run.ctrace would be both read and written: give another name for the output" \
	"$ct" export --to csv -o "$dir/link.csv" "$dir/run.ctrace"
# no command writes over the recording that it reads
for args in "replay -o" "stat -o" "stat --save" "mem -o" "mem --html" "advise -o"; do
	read -ra words <<< "$args"
	says "over-${words[0]}${words[1]}" "cudatrace: error: $dir/run.ctrace would be both read and written: give another name for the output" \
		"$ct" "${words[@]}" "$dir/run.ctrace" "$dir/run.ctrace"
done
says over-compare "cudatrace: error: $dir/run.ctrace would be both read and written: give another name for the output" \
	"$ct" compare -o "$dir/run.ctrace" "$traces/two.ctrace" "$dir/run.ctrace"
says over-merge "cudatrace: error: $dir/run.ctrace would be both read and written: give another name for the output" \
	"$ct" merge -o "$dir/run.ctrace" "$traces/two.ctrace" "$dir/run.ctrace"
is over-nothing "$before" "$(cksum < "$dir/run.ctrace")"
says path "cudatrace: error: -o: what nsys-sqlite writes is a file, which no command and no standard output can be: give a name" \
	"$ct" export --to nsys-sqlite -o - "$dir/run.ctrace"
says two "cudatrace: error: 'b' is one word too many; give one recording" "$ct" export --to csv a b
says none "cudatrace: error: no recording is given: name a file that 'cudatrace record' wrote" "$ct" export --to csv
says backwards "cudatrace: error: --until lies before --from: give a later time" "$ct" export --to csv --from 2 --until 1 x
says device "cudatrace: error: --device: 'x' is no number of a device; 'cudatrace info' lists them" "$ct" export --device x --to csv a
got=$("$ct" export --to table "$dir/run.ctrace" 2>&1)
is unknown "2 yes" "$? $(grep -q "^cudatrace: error: --to: 'table' is not one of .*csv" <<< "$got" && echo yes)"
got=$("$ct" export "$dir/run.ctrace" 2>&1)
is without-to "2 yes" "$? $(grep -q "^cudatrace: error: --to is missing: the format to write, one of " <<< "$got" && echo yes)"
got=$("$ct" export --to html -o "$dir/no/such" "$dir/run.ctrace" 2>&1)
is no-folder "1 cudatrace: error: cannot write to $dir/no/such: No such file or directory" "$? $got"
"$ct" export --to html -o /dev/full "$dir/run.ctrace" > /dev/null 2> "$dir/err"
is full "1 yes" "$? $(grep -q '^cudatrace: error: writing to /dev/full failed after .*No space left' "$dir/err" && ! grep -q written "$dir/err" && echo yes)"
is untouched "$before" "$(cksum < "$dir/run.ctrace")"

# ---- what is in them: the counts that tests/traces/README.md tells
is csv "call=36 copy=8 counter=8 event=1 exit=2 graph=4 hole=2 kernel=20 lost=2 managed=1 marker=8 memory=2 overhead=1 process=2 set=4 sync=4
caused=38
kernel_ns=1220002
copied_bytes=4210688
lost=5" "$(python3 tests/export/check_csv.py "$dir/run.csv" 2>&1)"
is csv-golden "call=7 copy=1 counter=3 event=1 kernel=3 lost=1 marker=1 memory=2 muted=2 overhead=1 set=1 sync=1
caused=5
kernel_ns=25000
copied_bytes=4096
lost=17" "$(python3 tests/export/check_csv.py tests/golden/export.csv 2>&1)"
for trace in run noend; do
	quiet --to csv -o "$dir/arrow.csv" "$([ $trace = run ] && echo "$dir/run.ctrace" || echo "$dir/noend")"
	quiet --to arrow -o "$dir/arrow.arrows" "$([ $trace = run ] && echo "$dir/run.ctrace" || echo "$dir/noend")"
	is "arrow-as-csv-$trace" "$(python3 -c 'import csv, sys; print(len(list(csv.DictReader(sys.stdin))))' < "$dir/arrow.csv")" \
		"$(python3 tests/export/check_arrow.py "$dir/arrow.arrows" "$dir/arrow.csv" 2>&1)"
done

# ---- parquet: a folder
quiet --to arrow -o "$dir/run.arrows" "$dir/run.ctrace"
(cd "$dir" && "$ct" export run.ctrace --to parquet 2> err)
is named-parquet "cudatrace: written: run.parquet" "$(tail -n 1 "$dir/err")"
is parquet-as-arrow "calls=36 collectives=0 copies=8 devices=4 host=0 kernels=20 operators=0 others=25 processes=6 ranges=8 sets=4 stacks=5" \
	"$(python3 tests/export/check_parquet.py "$dir/run.parquet" "$dir/run.arrows" 2>&1)"
got=$("$ct" export --to parquet -o "$dir/run.parquet/" "$dir/run.ctrace" 2>&1)
is parquet-there "1 cudatrace: error: $dir/run.parquet is there already: remove it, or name another folder with -o" "$? $got"
got=$("$ct" export --to parquet -o "$dir/no/such" "$dir/run.ctrace" 2>&1)
is parquet-no-folder "1 cudatrace: error: cannot make a folder beside $dir/no/such: No such file or directory" "$? $got"
is parquet-nothing-left run.parquet "$(cd "$dir" && echo *.parquet*)"
"$ct" replay --format csv -k --nested "$dir/run.ctrace" > "$dir/replay.csv" 2> /dev/null
is as-replay same "$(cmp "$dir/replay.csv" "$dir/run.csv" && echo same)"
# ---- names: JSON has what the schema says, and the names of the columns
quiet --to json -o "$dir/steps.jsonl" tests/export/steps.ctrace
for file in "$dir/run.jsonl" "$dir/steps.jsonl" tests/golden/device.jsonl tests/golden/rows.jsonl tests/golden/rows_enter.jsonl tests/golden/rows_names.jsonl; do
	is "names-$(basename "$file" .jsonl)" "$(wc -l < "$file") lines" "$(python3 tests/export/check_names.py "$file" 2>&1 | tail -n 1 | cut -d , -f 1)"
done
sed 's/"start_ns"/"ts_ns"/' "$dir/run.jsonl" > "$dir/old.jsonl"
is names-old "AssertionError: schema: missing ['start_ns'], not in the schema ['ts_ns']" "$(python3 tests/export/check_names.py "$dir/old.jsonl" 2>&1 | tail -n 1)"
page=$(python3 tests/timeline/page.py "$dir/run.html" 2>&1)
is page "call=36 copy=8 counter=9 event=1 graph=4 kernel=20 lost=2 managed=1 marker=8 memory=2 overhead=1 set=4 sync=4" \
	"$(grep -v '^[a-z_]*: ' <<< "$page" | cut -d ' ' -f 1 | sort | uniq -c | awk '{ printf "%s%s=%s", (NR > 1 ? " " : ""), $2, $1 }')"
is page-title 'title: "run.ctrace"' "$(grep '^title' <<< "$page")"
is page-lost 'lost: [[3, "ring buffer full (raise --ring-size)"], [2, "device records that CUPTI had no buffer for (raise --gpu-buffer)"]]' \
	"$(grep '^lost: ' <<< "$page")"

# ---- choices
rows() { # FILE TYPE
	grep -c "^$2," "$1"
}
quiet --to csv -p 102 -o "$dir/pid.csv" "$dir/run.ctrace"
is by-pid "17 yes" "$(rows "$dir/pid.csv" call) $(cut -d , -f 1,4 "$dir/pid.csv" | grep -qE '^(call|kernel),101' || echo yes)"
quiet --to csv --device 1 -o "$dir/device.csv" "$dir/run.ctrace"
is by-device "0" "$(rows "$dir/device.csv" kernel)"
quiet --to csv --device 0 -o "$dir/device.csv" "$dir/run.ctrace"
is by-own-device "20 36" "$(rows "$dir/device.csv" kernel) $(rows "$dir/device.csv" call)"
quiet --to csv -e launch -o "$dir/events.csv" "$dir/run.ctrace"
is by-class "cudaLaunchKernel" "$(grep ^call "$dir/events.csv" | cut -d , -f 7 | sort -u | grep -v Graph | tr -d '\n')"
quiet --to csv --from 600us --until 1ms -o "$dir/time.csv" "$dir/run.ctrace"
is by-time "" "$(grep -E '^(call|kernel|copy),' "$dir/time.csv" | awk -F , '$2 < 1000000600000 || $2 >= 1000001000000')"
is by-time-some yes "$([ "$(rows "$dir/time.csv" call)" -gt 0 ] && echo yes)"
quiet --to folded --weight gpu -o "$dir/gpu.folded" "$dir/run.ctrace"
is gpu-weight "python3;train_step (train.py);model::launch(int);cudaLaunchKernel;[GPU] relu(float*, int) 240000" \
	"$(grep relu "$dir/gpu.folded")"
is gpu-sum "$(awk -F , '/^kernel,|^copy,|^set,/ { s += $3 } END { print s }' "$dir/run.csv")" \
	"$(awk '{ s += $NF } END { print s }' "$dir/gpu.folded")"

# ---- speedscope
quiet --to speedscope --weight gpu -o "$dir/gpu.speedscope.json" "$dir/run.ctrace"
quiet --to speedscope -o "$dir/evented.speedscope.json" "$traces/calls.ctrace"
for file in tests/golden/speedscope_*.json "$dir"/*.speedscope.json; do
	is "speedscope-$(basename "$file" .json)" "$file: good" "$(python3 tests/export/check_speedscope.py "$file" 2>&1)"
done
is speedscope-kind '{"type":"evented"' "$(grep -o '{"type":"[a-z]*ed"' "$dir/evented.speedscope.json" | sort -u)"
python3 tests/export/broken_speedscope.py tests/golden/speedscope_calls.json tests/golden/speedscope_evented.json || failed=1

# ---- damaged recordings, and memory for a million records
"$ct" export --to html -o "$dir/killed.html" "$traces/killed.ctrace" 2> "$dir/err"
is killed "yes" "$(python3 tests/timeline/page.py "$dir/killed.html" > /dev/null && echo yes)"
for format in csv html; do
	kib=$(python3 - "$program" "$format" "$dir/many" << 'END'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "write", sys.argv[2], "many", sys.argv[3]], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
	)
	is "memory-$format" yes "$([ "${kib:-999999}" -lt 65536 ] && echo yes || echo "$kib KiB")"
done
exit $failed
