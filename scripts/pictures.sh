#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# pictures.sh - makes docs/pictures anew from docs/step.ctrace, a recording of training steps on an H100: scripts/pictures.sh [SCREEN]
#
# Needs `make cudatrace` and chromium, and neither root nor a GPU. top shows what happens now, so its picture is made from SCREEN: a terminal
# of 110 columns on a machine with a GPU, as `tmux capture-pane -e -p` writes it. Without SCREEN that picture stays as it is.
#
# How docs/step.ctrace came about, with PyTorch 2.11:
#   cudatrace record -k --gpu --layers torch,nvtx --start-on cudaProfilerStart --stop-on cudaProfilerStop -- python3 docs/train_gpu.py 2 3
# Its columns were then compressed again by zstd's highest level, and /home/user stands for the folder it was in; all else is as it was.
set -euo pipefail
cd "$(dirname "$0")/.."
step=docs/step.ctrace
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Calls and what they caused on the device.
scripts/terminal_svg.py --columns 146 --lines 2-18 --prompt "cudatrace replay -e copy,set,launch $step" -o docs/pictures/trace.svg -- \
	./cudatrace replay --color always -e copy,set,launch "$step"

# The timeline where the forward pass ends: a kernel of the loss, with the arrow from its launch and its stack.
./cudatrace export --to html -o "$work/step.html" "$step" > "$work/log" 2>&1
scripts/screenshot.py --size 1200x640 --ready 'timeline.ready.then(() => 1)' --do "(() => {
		const kernel = [...start.keys()].find(i => kindOf(i) === KERNEL && start[i] > timeline.steps()[0][0].from && /SoftMaxForward/.test(label(i)));
		timeline.show(start[kernel] - 2.2e6, start[kernel] + 2.2e6);
		return timeline.select(kernel);
	})()" "$work/step.html" docs/pictures/timeline.png

# The flame graph, by the device's time.
./cudatrace export --to flame --weight gpu -o "$work/flame.html" "$step" > "$work/log" 2>&1
scripts/screenshot.py --size 1200x400 "$work/flame.html" docs/pictures/flame.png

if [ $# != 0 ]; then
	scripts/terminal_svg.py --columns 110 --prompt 'sudo cudatrace top --gpu -p python3' -o docs/pictures/top.svg -- cat "$1"
fi
