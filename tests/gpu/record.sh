#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# record.sh - recordings of a real GPU's work. Needs root, a GPU, python3 with PyTorch, and the static build.
#
#     tests/gpu/record.sh [CUDATRACE]      default: .output/static/cudatrace
#
# Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, measured figures as `# ...`, and at the end the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
count() { # TYPE FILE
	grep -c "^{\"type\":\"$1\"" "$2"
}

cat > "$tmp/steps.py" <<'PY'
import sys
import torch
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0).cuda()
opt = torch.optim.SGD(layer.parameters(), lr=1e-3)
x = torch.randn(8, 64, 256, device="cuda")
def step():
    opt.zero_grad(set_to_none=True)
    layer(x).square().mean().backward()
    opt.step()
for _ in range(5):
    step()
torch.cuda.synchronize()
torch.cuda.profiler.start()
for _ in range(int(sys.argv[1])):
    step()
torch.cuda.synchronize()
torch.cuda.profiler.stop()
PY

# bytes NAME FILE LIMIT: of a file by its calls
bytes() {
	local size calls
	size=$(stat -c %s "$2")
	"$ct" replay --format json -o "$tmp/json" "$2" 2> "$tmp/err" || not_ok "$1-replay" "$(tail -n 2 "$tmp/err")"
	calls=$(count call "$tmp/json")
	echo "# $1: $size bytes, $calls calls, $(count kernel "$tmp/json") kernels, $((size * 100 / (calls ? calls : 1))) bytes for 100 calls"
	check "$1" "more than $3 bytes a call" test "$((size))" -le "$((calls * $3))"
}

if ! has_torch; then
	skip record "no PyTorch with a GPU"
else
	for steps in 20 200; do
		"$ct" record --strict -o "$tmp/steps.ctrace" --start-on cudaProfilerStart --stop-on cudaProfilerStop -- \
			python3 "$tmp/steps.py" $steps > "$tmp/out" 2> "$tmp/err" || not_ok "record-$steps" "$(tail -n 3 "$tmp/err")"
		bytes "step-$steps" "$tmp/steps.ctrace" 14
		"$ct" record --strict --gpu -o "$tmp/gpu.ctrace" --start-on cudaProfilerStart --stop-on cudaProfilerStop -- \
			python3 "$tmp/steps.py" $steps > "$tmp/out" 2> "$tmp/err" || not_ok "record-gpu-$steps" "$(tail -n 3 "$tmp/err")"
		bytes "step-with-device-$steps" "$tmp/gpu.ctrace" 40
	done
	# the window is the same with and without the device, and twenty steps are ten times two
	check device-in-window "no kernels in the window" test "$(count kernel "$tmp/json")" -gt 1000
	"$ct" info "$tmp/gpu.ctrace" | sed 's/^/# /'
	check info-gpu "info names no GPU" sh -c "'$ct' info '$tmp/gpu.ctrace' | grep -q '^GPUs .*GPU-'"
	# a live trace and a replayed one have the same kernels
	"$ct" --gpu --format json -o "$tmp/live" -- python3 "$tmp/steps.py" 3 > /dev/null 2> "$tmp/err"
	"$ct" record --gpu -o "$tmp/r.ctrace" -- python3 "$tmp/steps.py" 3 > /dev/null 2> "$tmp/err"
	"$ct" replay --format json -o "$tmp/replayed" "$tmp/r.ctrace" 2> "$tmp/err"
	for f in live replayed; do
		grep '^{"type":"kernel"' "$tmp/$f" | sed -E 's/.*"kernel":"(([^"\\]|\\.)*)".*/\1/' | sort | uniq -c > "$tmp/$f.kernels"
	done
	check same-kernels "$(diff "$tmp/live.kernels" "$tmp/replayed.kernels" | head -n 5)" cmp -s "$tmp/live.kernels" "$tmp/replayed.kernels"
	# with stacks
	"$ct" record -k --gpu -o "$tmp/k.ctrace" --start-on cudaProfilerStart --stop-on cudaProfilerStop -- \
		python3 "$tmp/steps.py" 100 > "$tmp/out" 2> "$tmp/err"
	bytes step-with-stacks "$tmp/k.ctrace" 60
fi
all_done
