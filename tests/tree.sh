#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tree.sh - builds a copy of the tree, without what git ignores, with clang: the files in git are enough to build, clang gives
# no warnings, and a build leaves no files that git would show. Prints `ok`, `not ok` and `skip` lines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
check() { # NAME WHY COMMAND...
	local name=$1 why=$2
	shift 2
	if "$@" > "$tmp/log" 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: $why: $(grep -E 'error|Error|warning' "$tmp/log" | head -n 3 | tr '\n' ' ')"
		failed=1
	fi
}

# The repository may belong to another user than root.
git=(git -c "safe.directory=*" -c user.name=tree -c user.email=tree@localhost)
if ! "${git[@]}" ls-files -z --cached --others --exclude-standard > "$tmp/files" 2> /dev/null; then
	echo "skip tree: this is no git repository, or git is not installed"
	exit 0
fi
mkdir "$tmp/tree"
# shellcheck disable=SC2016
xargs -0 -a "$tmp/files" sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
	tar -c --null -T - | tar -x -C "$tmp/tree"
cd "$tmp/tree" || exit 1
"${git[@]}" init -q . && "${git[@]}" add -A && "${git[@]}" commit -q -m tree || exit 1

check tree-clang-build "make CC=clang fails" make -j "$(nproc)" CC=clang CFLAGS=-O1 cudatrace unit-programs
[ $failed = 0 ] || exit 1
check tree-runs "the program that clang built does not run" ./cudatrace --version
check tree-sample-on-own-headers "the sample does not build without a toolkit" \
	make -j "$(nproc)" CUDA_HOME=/nonexistent cuda_events_test
check tree-up-to-date "a second make has something to do" make -q CC=clang CFLAGS=-O1 cudatrace
dirty=$("${git[@]}" status --porcelain)
check tree-clean "make leaves files that git does not ignore: ${dirty//$'\n'/, }" test -z "$dirty"
exit $failed
