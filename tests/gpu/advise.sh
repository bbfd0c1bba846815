#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# advise.sh - what `cudatrace advise` says of a training with sins and of one without, on a real GPU. Needs root, a GPU, python3 with
# PyTorch, and the static build.
#
#     tests/gpu/advise.sh [CUDATRACE]      default: .output/static/cudatrace
#
# Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, the findings as `# ...`, and at the end the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"

# field FILE RULE FIELD: of the findings of the rule, summed (numbers) or the first (words); 0 without any
field() {
	python3 - "$@" <<- 'E'
		import json, sys
		v = [f[sys.argv[3]] for f in json.load(open(sys.argv[1]))["findings"] if f["rule"] == sys.argv[2]]
		print(0 if not v else v[0] if isinstance(v[0], str) else sum(v))
	E
}

steps=300
if ! has_torch; then
	skip advise "no PyTorch with a GPU"
else
	for kind in bad good; do
		if ! "$ct" record --gpu -k -o "$tmp/$kind.ctrace" --start-on cudaProfilerStart --stop-on cudaProfilerStop -- \
			python3 tests/gpu/advise_sins.py "$kind" $steps > "$tmp/$kind.out" 2> "$tmp/$kind.err"; then
			not_ok "advise-$kind-record" "$(tail -n 2 "$tmp/$kind.err")"
			continue
		fi
		"$ct" advise --format json -o "$tmp/$kind.json" "$tmp/$kind.ctrace" 2> "$tmp/err" ||
			not_ok "advise-$kind" "$(tail -n 2 "$tmp/err")"
		echo "# $kind:"
		"$ct" advise "$tmp/$kind.ctrace" 2> /dev/null | sed 's/^/# /'
	done
	# each step reads one value back; the last is followed by no work that is recorded
	n=$(field "$tmp/bad.json" small-readback count)
	check advise-readback "$n values read back, not $((steps - 1)) or $steps" test "$n" -ge $((steps - 1)) -a "$n" -le $steps
	check advise-readback-place "no Python frame of advise_sins.py" grep -q '"rule":"small-readback".*advise_sins.py' "$tmp/bad.json"
	n=$(field "$tmp/bad.json" pageable-async-copy count)
	check advise-pageable "$n copies of pageable memory, not $steps" test "$n" = $steps
	check advise-pageable-bytes "not 256 KiB each" test "$(field "$tmp/bad.json" pageable-async-copy bytes)" = $((steps * 1024 * 64 * 4))
	n=$(field "$tmp/bad.json" launch-bound count)
	check advise-launch-bound "$n kernels shorter than their launches, not $((steps * 50)) or more" test "$n" -ge $((steps * 50))
	for rule in small-readback pageable-async-copy launch-bound sync-copy sync-after-launch alloc-in-loop create-in-loop small-copies \
		polling host-roundtrip default-stream failed-calls leak; do
		n=$(field "$tmp/good.json" "$rule" count)
		check "advise-good-$rule" "$n in a program without" test "$n" = 0
	done
	check advise-all-checked "rules were not checked: $(grep -o '"not_checked":.*' "$tmp/bad.json")" \
		grep -q '"not_checked":\[\]' "$tmp/bad.json"
fi
all_done
