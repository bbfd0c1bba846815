#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# collectives.sh - the layer nccl in jobs of PyTorch on several GPUs: tests/gpu/collectives.sh [CUDATRACE]
#
# Needs root, two GPUs or more, and a python3 with PyTorch. DistributedDataParallel is started under `record`; FSDP, and a job of which one
# rank is late in each step, run already when it comes. Each call must be there as NCCL's own log has it, each kernel of NCCL must have its
# collective, ranks must be right, and the late rank must be the one that arrives last. Prints `ok NAME`, `not ok NAME: why`,
# `skip NAME: why`, `# what was seen`, and at the end the counts.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
here=tests/gpu
gpus=$(count_gpus)
if [ "$gpus" -lt 2 ] || ! "$python" -c 'import torch' 2> /dev/null; then
	skip collectives "two GPUs and PyTorch are needed"
	leave
fi
ranks=$((gpus < 4 ? gpus : 4))
port=$((29500 + $$ % 1000))
say_gpu
"$python" -c 'import torch; print("# PyTorch", torch.__version__, "NCCL", torch.cuda.nccl.version())'

# until_true SECONDS COMMAND...
until_true() {
	local i n=$(($1 * 10))
	shift
	for ((i = 0; i < n; i++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}
# shellcheck disable=SC2317 # by until_true
all_warmed() { [ "$(find "$dir" -name 'warmed.?' | wc -l)" = "$ranks" ]; }
# shellcheck disable=SC2317 # by until_true
agents_run() { [ "$(grep -c 'the agent has started' "$dir/ct.err")" -ge "$ranks" ]; }
is_over() { ! kill -0 "$1" 2> /dev/null; }
# shellcheck disable=SC2317 # by until_true
all_over() {
	local p
	for p in "${pids[@]}"; do is_over "$p" || return 1; done
}

# rank_of RANK KIND STEPS [LATE]: fills in the words of a rank's command
rank_of() { words=("$python" "$here/collectives_rank.py" "$1" "$ranks" "$port" "$2" "$dir" "${@:3}"); }

begin() { # TITLE
	dir=$tmp/$1
	mkdir "$dir"
	port=$((port + 1))
	export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL NCCL_DEBUG_FILE="$dir/nccl.%p"
}

# report TITLE KIND WHOLE|LATER [LATE]
report() {
	"$ct" replay --format json "$dir/r.ctrace" > "$dir/rows" 2> "$dir/replay.err"
	"$ct" stat --by collective --json "$dir/r.ctrace" > "$dir/sums" 2>> "$dir/replay.err"
	"$ct" stat --by collective "$dir/r.ctrace" 2> /dev/null | sed 's/^/# /'
	tail -n 2 "$dir/ct.err" | sed 's/^/# /'
	"$python" $here/collectives_check.py "$1" "$dir" "$dir/rows" "$dir/sums" "$2" "$3" "${@:4}" > "$dir/checks" 2> "$dir/check.err" ||
		echo "not ok $1: $(tail -n 1 "$dir/check.err"); $(tail -n 1 "$dir"/rank.*.err "$dir/replay.err" 2> /dev/null | tr '\n' ' ')" >> "$dir/checks"
	cat "$dir/checks" >> "$tmp/all"
	cat "$dir/checks"
}

# started TITLE KIND STEPS: the ranks are children of a shell that is started under it
started() {
	local rank command=''
	begin "$1"
	touch "$dir/go"
	for ((rank = 0; rank < ranks; rank++)); do
		rank_of $rank "$2" "$3"
		command+="${words[*]} 2> $dir/rank.$rank.err & "
	done
	timeout 120 "$ct" record --gpu --layers nccl -o "$dir/r.ctrace" -- bash -c "$command wait" > "$dir/out" 2> "$dir/ct.err"
	report "$1" "$2" WHOLE
}

# attached TITLE KIND STEPS [LATE]: the ranks have warmed up when it comes
attached() {
	local rank which=() tracer
	begin "$1"
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		rank_of $rank "${@:2}"
		"${words[@]}" > /dev/null 2> "$dir/rank.$rank.err" &
		pids+=($!)
		which+=(-p $!)
	done
	until_true 90 all_warmed || echo "# $1: not all ranks have begun: $(tail -n 1 "$dir/rank.0.err")"
	timeout 120 "$ct" record -v --gpu --layers nccl -o "$dir/r.ctrace" "${which[@]}" > "$dir/out" 2> "$dir/ct.err" &
	tracer=$!
	until_true 30 agents_run || echo "# $1: the agent has not started everywhere: $(tail -n 2 "$dir/ct.err" | tr '\n' ' ')"
	touch "$dir/go"
	until_true 60 all_over || kill -KILL "${pids[@]}"
	wait "${pids[@]}" 2> /dev/null
	pids=()
	until_true 30 is_over "$tracer" || kill -INT "$tracer"
	wait "$tracer" 2> /dev/null
	report "$1" "$2" LATER "${@:4}"
}

started ddp-started ddp 10
attached fsdp-attached fsdp 10
attached ddp-late ddp 20 $((ranks - 1))
passed=$(grep -c '^ok' "$tmp/all") failed=$(grep -c '^not ok' "$tmp/all")
all_done
