#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tree.sh - builds a copy of the tree, without what git ignores, with clang: the files in git are enough to build, clang gives
# no warnings, and a build leaves no files that git would show. Then the copy is a user's, who may use sudo: scripts/demo.sh works for this
# user, and for root, and leaves no files of root's there. Prints `ok`, `not ok` and `skip` lines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
user=cudatrace-tree-$$
# shellcheck disable=SC2317 # called at the end
remove_user() {
	rm -f "/etc/sudoers.d/$user"
	userdel --force "$user" 2> /dev/null
}
trap 'remove_user; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
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

# ---- a user with sudo, and no terminal ---------------------------------------------------------------------------------
# demo AS COMMAND...: demo.sh shows the trace, and the files are the user's.
demo() {
	local as=$1 roots
	shift
	if ! "$@" setsid scripts/demo.sh > "$tmp/demo" 2>&1 < /dev/null; then
		echo "not ok tree-demo-$as: $(tail -n 2 "$tmp/demo")"
	elif ! grep -q 'cudaMalloc .*returned=0 (success)' "$tmp/demo" || [ "$(tail -n 1 "$tmp/demo")" != 'cudatrace: 44 calls, 0 lost' ]; then
		echo "not ok tree-demo-$as: no trace: $(tail -n 2 "$tmp/demo")"
	elif roots=$(find . -user 0 -print -quit) && [ -n "$roots" ]; then
		echo "not ok tree-demo-$as: $roots belongs to root"
	else
		echo "ok tree-demo-$as"
		return
	fi
	failed=1
}
chmod 755 "$tmp"
useradd --no-create-home --home-dir "$tmp/tree" --shell /bin/bash "$user" || exit 1
chown -hR "$user:" .
mine=(setpriv --reuid "$user" --regid "$user" --init-groups env "HOME=$tmp/tree" "USER=$user" PATH=/usr/local/bin:/usr/bin:/bin)
rm cuda_events_test # root builds it, and gives it away
demo root env
mkdir .output/of-root
said=$("${mine[@]}" setsid scripts/demo.sh 2>&1 < /dev/null)
check tree-demo-refused "who may not use sudo is not told what to do: $said" \
	test "$said" = 'demo.sh: this needs root, and there is no terminal where sudo could ask for a password: run it as root, or by a user of whom sudo asks for none'
echo "$user ALL=(ALL) NOPASSWD: ALL" > "$tmp/rule"
install -m 440 "$tmp/rule" "/etc/sudoers.d/$user"
demo user "${mine[@]}"
make install DESTDIR="$tmp/installed" > "$tmp/log" 2>&1
check tree-install-owner "make install leaves files of root's" test -z "$(find . -user 0 -print -quit)"
check tree-user-builds "make fails after that" "${mine[@]}" make -j "$(nproc)" CC=clang CFLAGS=-O1 cudatrace standin
exit $failed
