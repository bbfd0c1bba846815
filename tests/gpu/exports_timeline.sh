#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# exports_timeline.sh - timelines of a PyTorch program on a real GPU: tests/gpu/exports_timeline.sh [CUDATRACE] [DIR]
#
# Needs what run.sh needs. Records a program with device work, live as perfetto and chrome too, and leaves the files in DIR
# (default .output/gpu-exports). What PyPI is needed for is done where there is one: CHECK=DIR of an earlier run looks at
# the files by tests/export/check_perfetto.py and tests/export/hta.py, with the Pythons of tests/export/run.sh.
set -u
cd "$(dirname "$0")/../.." || exit
ct=$(readlink -f "${1:-.output/static/cudatrace}")
dir=${CHECK:-${2:-.output/gpu-exports}}
ok() { echo "ok $1"; }
not_ok() { echo "not ok $1: $2"; }

check() {
	local name said
	for name in live replay; do
		if said=$(.output/export/perfetto/bin/python tests/export/check_perfetto.py "$dir/$name.pftrace" 2>&1); then
			echo "# $name: $said"
			ok "timeline-perfetto-$name"
		else
			not_ok "timeline-perfetto-$name" "$(head -n 1 <<< "$said")"
		fi
	done
	.output/export/hta/bin/python tests/export/hta.py "$dir/rows.jsonl" 0="$(echo "$dir"/rank.*.json)"
}

if [ -n "${CHECK:-}" ]; then
	check
	exit
fi
if ! python3 -c 'import torch' 2> /dev/null; then
	echo "skip timeline: there is no torch"
	exit 0
fi
mkdir -p "$dir"
program=(python3 -c '
import torch
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).cuda()
opt = torch.optim.SGD(layer.parameters(), lr=1e-3)
side = torch.cuda.Stream()
x = torch.randn(8, 64, 256, device="cuda")
for i in range(200):
    opt.zero_grad(set_to_none=True)
    layer(x).square().mean().backward()
    opt.step()
    with torch.cuda.stream(side):
        (x @ x.transpose(1, 2)).sum()
    if i % 20 == 0:
        x = x.cpu().cuda()
torch.cuda.synchronize()')
export RANK=0 WORLD_SIZE=1
"$ct" --gpu --format perfetto -o "$dir/live.pftrace" -- "${program[@]}" || not_ok timeline-live "status $?"
"$ct" record --gpu -o "$dir/step.ctrace" -- "${program[@]}" || not_ok timeline-record "status $?"
for to in perfetto:replay.pftrace chrome:rank.%p.json json:rows.jsonl; do
	if "$ct" replay --format "${to%%:*}" -o "$dir/${to#*:}" "$dir/step.ctrace"; then
		ok "timeline-${to%%:*}"
	else
		not_ok "timeline-${to%%:*}" "status $?"
	fi
done
python3 - "$dir"/rank.*.json << 'E2'
import json, sys
from collections import Counter
trace = json.load(open(sys.argv[1]))["traceEvents"]
cats = Counter(e.get("cat") for e in trace)
print("#", dict(cats))
starts, ends = [Counter(e["id"] for e in trace if e["ph"] == p) for p in "sf"]
work = cats["kernel"] + cats["gpu_memcpy"] + cats["gpu_memset"]
share = 100 * sum(ends.values()) / max(work, 1)
print(f"# {share:.1f} % of {work} pieces of device work have an arrow")
print("ok timeline-arrows" if starts == ends and share > 99 else f"not ok timeline-arrows: {share:.1f} % have one")
E2
