#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# pictures.sh - makes docs/pictures/*.svg anew, each from a real run on the stand-in. Needs root, and `make cudatrace standin cuda_events_test`.
set -euo pipefail
cd "$(dirname "$0")/.."
export LD_LIBRARY_PATH=$PWD/.output/standin

scripts/terminal_svg.py --columns 146 --lines 12-18,22-32,41-44 --prompt 'sudo cudatrace -- ./cuda_events_test' \
	-o docs/pictures/trace.svg -- ./cudatrace --color always -- ./cuda_events_test

work=$(mktemp -d)
program=
ended() {
	[ -z "$program" ] || kill "$program" 2> /dev/null
	tmux -S "$work/tmux" kill-server 2> /dev/null
	rm -rf "$work"
}
trap ended EXIT

# The timeline of the sample program: from its first copy to its last, and the sums of what the stream and the copy back take.
./cudatrace record --gpu -o "$work/vector_add.ctrace" -- ./cuda_events_test > "$work/log" 2>&1
./cudatrace export --to html -o "$work/timeline.html" "$work/vector_add.ctrace" > "$work/log" 2>&1
scripts/screenshot.py --size 1200x560 --ready 'timeline.ready.then(() => 1)' --do "(() => {
		const work = [...start.keys()].filter(i => tracks[track[i]]?.sort === 3), first = work[0], last = work[work.length - 1];
		const wide = start[last] - start[first], kernel = work.find(i => kindOf(i) === KERNEL);
		timeline.show(start[first] - wide / 8, start[last] + wide / 8);
		showStretch(start[kernel] - wide / 16, start[last] + dur[last]);
	})()" "$work/timeline.html" docs/pictures/timeline.png

# The flame graph of the tutorial's training loop, by the time in calls, Python's frames alone.
./cudatrace record --stack=python -o "$work/train.ctrace" -- python3 docs/train.py > "$work/log" 2>&1
./cudatrace export --to flame --weight time -o "$work/flame.html" "$work/train.ctrace" > "$work/log" 2>&1
scripts/screenshot.py --size 1200x290 "$work/flame.html" docs/pictures/flame.png

# top, while that loop runs.
python3 docs/train.py 100000000 > "$work/log" 2>&1 &
program=$!
tmux -S "$work/tmux" -f /dev/null new-session -d -x 110 -y 11 "exec ./cudatrace top -i 0.5 -p $program"
tmux -S "$work/tmux" set-option -g status off > /dev/null
tmux -S "$work/tmux" resize-window -x 110 -y 11
shown() { # REGEX
	until tmux -S "$work/tmux" capture-pane -p | grep -q -E "$1"; do
		sleep 0.2
	done
}
shown 'python3'
tmux -S "$work/tmux" send-keys Enter
shown 'cudaMemsetAsync'
sleep 2 # two more readings, so that the rates are those of a whole interval
tmux -S "$work/tmux" capture-pane -e -p > "$work/screen"
scripts/terminal_svg.py --columns 110 --prompt "sudo cudatrace top -p $program" -o docs/pictures/top.svg -- cat "$work/screen"
