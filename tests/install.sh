#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# install.sh - installs into an empty folder: exactly the files that belong there, readable by everybody, and a program that
# runs from there. Prints `ok` and `not ok` lines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
check() { # NAME WHY COMMAND...
	local name=$1 why=$2
	shift 2
	if "$@" > /dev/null 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: $why"
		failed=1
	fi
}

for prefix in /usr/local /usr; do
	root=$tmp/root$prefix
	args=(DESTDIR="$tmp/root")
	[ $prefix = /usr/local ] || args+=(PREFIX="$prefix")
	rm -rf "$tmp/root"
	# what 0.1.0 left: it would be found before the new one
	install -D cudatrace "$root/sbin/cudatrace"
	if ! (umask 077 && make -s install "${args[@]}") > "$tmp/log" 2>&1; then
		echo "not ok install-$prefix: make install failed: $(tail -n 1 "$tmp/log")"
		failed=1
		continue
	fi
	want="bin/cudatrace
share/bash-completion/completions/cudatrace
share/fish/vendor_completions.d/cudatrace.fish
share/man/man1/cudatrace.1
share/zsh/site-functions/_cudatrace"
	got=$(cd "$root" && find . -type f | sed 's|^\./||' | sort)
	check "install-$prefix-files" "installed: ${got//$'\n'/ }" test "$got" = "$want"
	unreadable=$(find "$tmp/root" -type f ! -perm -a+r)
	check "install-$prefix-readable" "not readable by all: ${unreadable//$'\n'/ }" test -z "$unreadable"
	check "install-$prefix-runs" "the installed program does not print its version" "$root/bin/cudatrace" --version
	check "install-$prefix-same" "another program was installed" cmp cudatrace "$root/bin/cudatrace"
done
outside=$(find "$tmp/root" -type f ! -path "$tmp/root/usr/*")
check install-outside "files outside of PREFIX: ${outside//$'\n'/ }" test -z "$outside"
exit $failed
