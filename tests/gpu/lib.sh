# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # what the scripts use
# lib.sh - what the scripts of this folder begin with: where things are, how a check is told, and how a script ends. Sourced, with the
# script's own arguments: the first is the cudatrace to be tested.
#
#     . "$(dirname "$0")/lib.sh"
#
# A script works in the root of the tree. $tmp is a folder of its own, which is removed at the end; the processes $pid and pids are killed then.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
ct=$(readlink -f "${1:-.output/static/cudatrace}")
cuda=${CUDA_HOME:-/usr/local/cuda}
python=${TORCH_PYTHON:-python3}
tmp=$(mktemp -d)
pid='' pids=()
# shellcheck disable=SC2317 # by the trap
tidy() {
	[ -z "$pid" ] || kill "$pid" 2> /dev/null
	[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2> /dev/null
	rm -rf "$tmp"
}
trap tidy EXIT

passed=0 failed=0 skipped=0
ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: $2"; failed=$((failed + 1)); }
skip() { echo "skip $1: $2"; skipped=$((skipped + 1)); }
# the last lines that cudatrace wrote to $tmp/err, as one
last_words() { tail -n 2 "$tmp/err" 2> /dev/null | tr '\n' ' '; }
check() { # NAME WHY CONDITION...
	local name=$1 why=$2
	shift 2
	if "$@"; then ok "$name"; else not_ok "$name" "$why"; fi
}
same() { # NAME GOT WANT
	if [ "$2" = "$3" ]; then ok "$1 ($2)"; else not_ok "$1" "$2, not $3; $(last_words)"; fi
}
least() { # NAME GOT LEAST
	if [ "${2:-0}" -ge "$3" ]; then ok "$1 ($2)"; else not_ok "$1" "$2, not at least $3; $(last_words)"; fi
}
most() { # NAME GOT MOST
	if [ "${2:-1000000000}" -le "$3" ]; then ok "$1 ($2)"; else not_ok "$1" "$2, not at most $3; $(last_words)"; fi
}
# The counts; false if a check failed. The last command of a script.
all_done() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
}
# leave: ends the script here, with the counts.
leave() {
	all_done
	exit
}
# Rows of a type in $tmp/json, and a number of its last row.
count() { grep -c "^{\"type\":\"$1\"" "$tmp/json"; }
ended() { grep '^{"type":"end"' "$tmp/json" | grep -o "\"$1\":[0-9]*" | cut -d: -f2; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "none" }'; }
# The GPU and its driver, as a remark.
say_gpu() { nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | sed 's/^/# gpu: /'; }
# torch: is there a PyTorch with a GPU?
has_torch() { "$python" -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; }
count_gpus() { nvidia-smi -L 2> /dev/null | grep -c '^GPU'; }
# build PROGRAM SOURCE [LIBRARY...]: with CUDA's headers and libraries; what the compiler says is in $tmp/err
build() {
	local to=$1 from=$2
	shift 2
	gcc -O2 -D_GNU_SOURCE -I"$cuda/include" -o "$to" "$from" -L"$cuda/lib64" "${@:--lcudart}" -ldl -Wl,-rpath,"$cuda/lib64" 2> "$tmp/err"
}
# until_says FILE TEXT: waits for a line in a file, two minutes at most
until_says() {
	for _ in $(seq 1200); do
		grep -q "$2" "$1" 2> /dev/null && return
		sleep 0.1
	done
	return 1
}
