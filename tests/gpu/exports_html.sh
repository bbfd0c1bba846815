#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# exports_html.sh - on a GPU: a recording with device records as csv, folded, speedscope and a timeline page, which must agree with
# each other.
#
#     tests/gpu/exports_html.sh [CUDATRACE [CMD...]]    default: .output/static/cudatrace, the sample program
#
# Needs root, a GPU and python3; for the sample program also gcc and CUDA's headers. Prints `ok NAME`, `not ok NAME: why`, and
# figures as `# ...`.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
set -o pipefail
shift $(($# > 0))
dir=$tmp
is() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then ok "gpu-export-$1"; else not_ok "gpu-export-$1" "want $2, got $3"; fi
}
if [ $# = 0 ]; then
	if ! build "$dir/sample" cuda_events_test.c; then
		echo "not ok gpu-export: the sample program cannot be built"
		exit 1
	fi
	set -- "$dir/sample"
fi
if ! "$ct" record --gpu -k -o "$dir/run.ctrace" -- "$@" > "$dir/out" 2> "$dir/err"; then
	echo "not ok gpu-export-record: $(tail -n 2 "$dir/err" | tr '\n' ' ')"
	exit 1
fi
for format in csv html speedscope folded; do
	began=$(date +%s%N)
	weight=()
	[[ $format = csv || $format = html ]] || weight=(--weight gpu)
	"$ct" export --to $format "${weight[@]}" "$dir/run.ctrace" 2> "$dir/err" || is "$format" 0 "$(tail -n 1 "$dir/err")"
	echo "# $format: $((($(date +%s%N) - began) / 1000000)) ms, $(stat -c %s "$dir"/run.$format* | tail -n 1) bytes"
done
python3 tests/export/check_csv.py "$dir/run.csv" > "$dir/sums" || is csv good "$(cat "$dir/sums")"
sed 's/^/# /' "$dir/sums"
work=$(python3 - "$dir/run.csv" << 'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
graphs = any(r["graph_node"] for r in rows)
kinds = {"kernel", "copy", "set"} | (set() if graphs else {"graph"})
print(sum(int(r["duration_ns"] or 0) for r in rows if r["type"] in kinds))
END
)
is folded-sum "$work" "$(awk '{ s += $NF } END { printf "%.0f", s }' "$dir/run.folded")"
is speedscope "$dir/run.speedscope.json: good" "$(python3 tests/export/check_speedscope.py "$dir/run.speedscope.json")"
is speedscope-sum "$work" "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["profiles"][0]["endValue"])' "$dir/run.speedscope.json")"
python3 tests/timeline/page.py "$dir/run.html" > "$dir/page" || is page good bad
for kind in call kernel copy set; do
	want=$(tr ' ' '\n' < "$dir/sums" | sed -n "s/^$kind=//p")
	is "page-$kind" "${want:-0}" "$(grep -c "^$kind " "$dir/page")"
done
# device time lies within the recording, and after the call that caused it
is order "" "$(python3 - "$dir/run.csv" << 'END'
import csv, sys
for r in csv.DictReader(open(sys.argv[1], newline="")):
    if r["cause_start_ns"] and r["type"] in ("kernel", "copy", "set") and "no_time" not in r["flags"] and int(r["start_ns"]) < int(r["cause_start_ns"]):
        print(r["type"], r["correlation"], "begins", int(r["cause_start_ns"]) - int(r["start_ns"]), "ns before its call")
        break
END
)"
all_done
