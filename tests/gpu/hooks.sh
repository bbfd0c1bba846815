#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# hooks.sh - the source `hooks` on a real GPU: tests/gpu/hooks.sh [CUDATRACE] [ATTACHES]
#
# Launches that hooks show are as many as torch.profiler counts; calls by function are as many as probes show; a training loop
# that is attached to ATTACHES (100) times has the losses of one that nobody traces, bit by bit, and the code of its libraries is
# what their files have. Needs root, a GPU and PyTorch.
# shellcheck source=tests/gpu/lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
attaches=${2:-100}
export CUBLAS_WORKSPACE_CONFIG=:4096:8

# attached SOURCE PROGRAM ARGS...: the program is attached to once it has warmed up; rows as JSON, what it prints in out
attached() {
	local source=$1 ct_pid keep=(--keep-chatty)
	shift
	rm -f "$tmp/go" "$tmp/out" "$tmp/err" # what an earlier one said
	python3 "tests/gpu/$1" --go-file "$tmp/go" "${@:2}" > "$tmp/out" 2> "$tmp/prog.err" &
	pid=$!
	until grep -qs warmed "$tmp/out"; do kill -0 $pid || return; sleep 0.1; done
	"$ct" -v --source="$source" "${keep[@]}" --format json -o "$tmp/json" -p $pid 2> "$tmp/err" &
	ct_pid=$!
	until grep -qs ready "$tmp/err"; do kill -0 $ct_pid 2> /dev/null || return; sleep 0.05; done
	touch "$tmp/go"
	wait $pid
	wait $ct_pid
}
by_function() { grep '"type":"call"' "$tmp/json" | grep -o '"domain":"[^"]*","name":"[^"]*"' | sort | uniq -c; }

attached hooks torch_step.py
want=$(awk '$1 == "launches" { print $2 }' "$tmp/out")
got=$(grep '"type":"call"' "$tmp/json" | grep -cE '"name":"(cudaLaunchKernel|cudaLaunchKernelExC|cuLaunchKernel|cuLaunchKernelEx|cudaLaunchCooperativeKernel)"')
same launches-as-profiled "$got" "$want"
grep -E 'warning|lost|hooks' "$tmp/err" | tail -n 4 | sed 's/^/# /'

attached hooks hooks_train.py --steps 40
by_function > "$tmp/hooks"
attached probes hooks_train.py --steps 40
by_function > "$tmp/probes"
if diff "$tmp/probes" "$tmp/hooks" > "$tmp/diff"; then
	ok "calls by function as probes show them ($(awk '{ n += $1 } END { print n }' "$tmp/hooks") calls of $(wc -l < "$tmp/hooks") functions)"
else
	not_ok calls-by-function "$(head -n 8 "$tmp/diff" | tr '\n' ';')"
fi

# ---- a training loop under attaches ----------------------------------------------------------------------------------------
python3 tests/gpu/hooks_train.py --steps 400 > "$tmp/want" 2> /dev/null
rm -f "$tmp/stop" "$tmp/go"
python3 tests/gpu/hooks_train.py --steps 400 --go-file "$tmp/go" --until "$tmp/stop" --code > "$tmp/out" 2> "$tmp/prog.err" &
pid=$!
until grep -qs warmed "$tmp/out"; do kill -0 $pid || break; sleep 0.1; done
touch "$tmp/go"
good=0 rows=0
for _ in $(seq "$attaches"); do
	timeout 30 "$ct" --source=hooks -p $pid -d 0.1 -o "$tmp/rows" 2> "$tmp/err" && good=$((good + 1))
	rows=$((rows + $(wc -l < "$tmp/rows")))
done
touch "$tmp/stop"
wait $pid
same "the program after $attaches attaches" $? 0
same attaches-that-worked $good "$attaches"
echo "# $rows rows; $(tail -n 1 "$tmp/prog.err")"
same losses "$(grep '^loss' "$tmp/out" | md5sum)" "$(grep '^loss' "$tmp/want" | md5sum)"
same code-after-detach "$(tail -n 1 "$tmp/out")" "changed bytes of code 0"

# ---- many cores: what a call costs on one thread, on two, and on each processor; and how long hooks take to be put on --------------------
# They are programs of `make bench-programs`, and need no GPU.
lib=$(python3 -c 'import glob, os, torch
print((glob.glob(os.path.dirname(torch.__file__) + "/../nvidia/*/lib/libcudart.so.1[0-9]") or [""])[0])')
if [ -x .output/bench/hooks ] && [ -n "$lib" ]; then
	timeout 120 .output/bench/hooks "$lib" cudaGetDevice 31 | sed 's/^/# /'
	timeout 60 .output/bench/hooks_on 31 "$lib" | sed 's/^/# /'
else
	echo "# make bench-programs first: what a call costs on many cores was not measured"
fi

# ---- started under it, as an ordinary user ---------------------------------------------------------------------------------
timeout 120 "$ct" --source=hooks -o "$tmp/rows" -- python3 tests/gpu/hooks_train.py --steps 400 > "$tmp/out" 2> "$tmp/err"
same started-losses "$(grep '^loss' "$tmp/out" | md5sum)" "$(grep '^loss' "$tmp/want" | md5sum)"
grep -E 'warning|calls' "$tmp/err" | tail -n 3 | sed 's/^/# /'
all_done
