#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# first_version.sh - recordings and the program of version 0.1.0: tests/first_version.sh [CUDATRACE]
#
# Builds 0.1.0 out of the history of this repository (some minutes). Its stored traces must be replayed as it does itself, and it must
# replay what is recorded today: the same rows of CUDA's calls and of the device, without scopes, which it counts as of new kinds.
# Needs root, the history, `make standin cases-progs`. Prints `ok` and `not ok` lines, `skip` where there is no history, and the counts.
set -u
cd "$(dirname "$0")/.." || exit
ct=$(readlink -f "${1:-./cudatrace}")
release=c5ea7f7 # the last commit before the list of changes had "Not released yet"
out=${OUTPUT:-.output}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: $2"; failed=$((failed + 1)); }
end() {
	echo "$passed passed, $failed failed, ${1:-0} skipped"
	[ $failed = 0 ]
	exit
}

if ! git cat-file -e $release 2> /dev/null; then
	echo "skip first-version: the history of this repository is not here"
	end 1
fi
mkdir "$tmp/src"
git archive $release | tar x -C "$tmp/src"
if ! make -C "$tmp/src" -j "$(nproc)" cudatrace > "$tmp/build.log" 2>&1; then
	not_ok first-version-build "$(tail -n 1 "$tmp/build.log")"
	end
fi
old=$tmp/src/cudatrace

# ---- its recordings ----------------------------------------------------------------------------------------------------------
for file in "$tmp"/src/tests/traces/*.ctrace; do
	name=$(basename "$file" .ctrace)
	if ! cmp -s "$file" "tests/traces/$name.ctrace"; then
		not_ok "stored-$name" "it is not the file that 0.1.0 has"
		continue
	fi
	# JSON has other names today
	"$old" replay "$file" 2> /dev/null | sed -E 's/ +/ /g' > "$tmp/old"
	"$ct" replay "$file" 2> /dev/null | sed -E 's/ +/ /g' > "$tmp/new"
	if diff "$tmp/old" "$tmp/new" > "$tmp/diff"; then
		ok "stored-$name ($(wc -l < "$tmp/old") lines)"
	else
		not_ok "stored-$name" "$(head -n 2 "$tmp/diff" | cut -c 1-300 | tr '\n' ' ')"
	fi
done

# ---- its program, and a recording of today --------------------------------------------------------------------------------------
LD_LIBRARY_PATH=$PWD/$out/standin STANDIN_NCCL_LAUNCH=1 "$ct" record --layers nccl,nvtx --gpu -o "$tmp/new.ctrace" -- \
	"$out/cases/collectives" many 5 2> "$tmp/err" || not_ok record "$(tail -n 1 "$tmp/err")"
# what a kernel's row has today beside what it had
rows() { grep -vE '^[0-9.]+ +[^ ]+ +[0-9]+ +nccl' "$1" | sed -E 's/, busbw=[0-9.]+ [GMk]?B\/s//; s/ +/ /g'; }
"$old" replay "$tmp/new.ctrace" > "$tmp/old" 2> "$tmp/old.err"
status=$?
"$ct" replay "$tmp/new.ctrace" > "$tmp/new" 2> /dev/null
if [ $status != 0 ]; then
	not_ok replayed-by-the-first-version "status $status: $(tail -n 1 "$tmp/old.err")"
elif [ "$(rows "$tmp/old" | wc -l)" -gt 25 ] && diff <(rows "$tmp/old") <(rows "$tmp/new") > "$tmp/diff"; then
	ok "replayed-by-the-first-version ($(wc -l < "$tmp/old") lines)"
else
	not_ok replayed-by-the-first-version "$(wc -l < "$tmp/old") lines; $(head -n 4 "$tmp/diff" | tr '\n' ' ')"
fi
if "$old" info "$tmp/new.ctrace" | grep -q '^of new kinds '; then
	ok scopes-are-of-new-kinds
else
	not_ok scopes-are-of-new-kinds "it does not count them"
fi

# One that says what was not seen: it passes over these records, and shows all others.
LD_LIBRARY_PATH=$PWD/$out/standin "$ct" record --probe-kind perf -e cudaMalloc,query -o "$tmp/holes.ctrace" -- "$out/cases/calls" mix 20 0 1 2> "$tmp/err"
"$ct" info "$tmp/holes.ctrace" | grep -q '^not seen .* functions have no probes' || not_ok holes "nothing to say: $(tail -n 1 "$tmp/err")"
"$old" replay "$tmp/holes.ctrace" > "$tmp/old" 2> "$tmp/old.err"
status=$?
if [ $status = 0 ] && [ "$(grep -c cudaMalloc "$tmp/old")" = 21 ] && "$old" info "$tmp/holes.ctrace" | grep -q '^of new kinds '; then
	ok what-was-not-seen-is-passed-over
else
	not_ok what-was-not-seen-is-passed-over "status $status, $(grep -c cudaMalloc "$tmp/old") rows: $(tail -n 1 "$tmp/old.err")"
fi
end
