#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# install.sh - installs into an empty folder: exactly the files that belong there, readable by everybody, and a program that
# runs from there; and uninstalls exactly these again. Prints `ok` and `not ok` lines.
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
	pages=$(printf 'share/doc/cudatrace/%s\n' README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE \
		scripts/cuda_events.sh scripts/cuda_events.bt docs/*.md docs/*.py docs/*.ctrace docs/*.json docs/internals/*.md docs/pictures/* deploy/*)
	commands=$(./cudatrace --help | sed -nE 's|^       cudatrace ([a-z]+) .*|\1|p' | grep -vx check)
	want="bin/cudatrace
share/bash-completion/completions/cudatrace
$(sort <<< "$pages")
share/fish/vendor_completions.d/cudatrace.fish
$({
		echo share/man/man1/cudatrace.1
		# shellcheck disable=SC2086 # words
		printf 'share/man/man1/cudatrace-%s.1\n' $commands
	} | sort)
share/zsh/site-functions/_cudatrace"
	got=$(cd "$root" && find . -type f | sed 's|^\./||' | sort)
	check "install-$prefix-files" "installed: ${got//$'\n'/ }" test "$got" = "$want"
	unreadable=$(find "$tmp/root" -type f ! -perm -a+r)
	check "install-$prefix-readable" "not readable by all: ${unreadable//$'\n'/ }" test -z "$unreadable"
	check "install-$prefix-runs" "the installed program does not print its version" "$root/bin/cudatrace" --version
	check "install-$prefix-same" "another program was installed" cmp cudatrace "$root/bin/cudatrace"
	# what --help, messages and the manual page refer to
	missing=$({ ./cudatrace --help; strings cudatrace; cat docs/cudatrace.1; } | grep -oE '\b(docs|deploy)/[a-z/-]+\.(md|yml|yaml|service)\b' |
		sort -u | while read -r page; do [ -e "$root/share/doc/cudatrace/$page" ] || echo "$page"; done)
	check "install-$prefix-cited" "pages that are referred to are not installed: $missing" test -z "$missing"
	# links between pages; those to the tests and the scripts lead to the repository
	missing=$(cd "$root/share/doc/cudatrace" && grep -oE '\]\([^):#]+' ./*.md docs/*.md docs/internals/*.md | sed 's/:](/ /' |
		while read -r page link; do [ -e "$(dirname "$page")/$link" ] || echo "$page: $link"; done)
	check "install-$prefix-links" "links that lead to no installed file: ${missing//$'\n'/ }" test -z "$missing"
	# files of others in the same folders stay
	others="bin/other
share/doc/other/README
share/man/man1/other.1"
	for file in $others; do
		install -D cudatrace "$root/$file"
	done
	if ! make -s uninstall "${args[@]}" > "$tmp/log" 2>&1; then
		echo "not ok uninstall-$prefix: make uninstall failed: $(tail -n 1 "$tmp/log")"
		failed=1
	fi
	left=$(cd "$root" && find . -type f | sed 's|^\./||' | sort)
	check "uninstall-$prefix-files" "left, or wrongly removed: ${left//$'\n'/ }" test "$left" = "$others"
	check "uninstall-$prefix-folder" "the folder of the pages is still there" test ! -e "$root/share/doc/cudatrace"
	check "uninstall-$prefix-twice" "it fails when nothing is installed" make -s uninstall "${args[@]}"
done
outside=$(find "$tmp/root" -type f ! -path "$tmp/root/usr/*")
check install-outside "files outside of PREFIX: ${outside//$'\n'/ }" test -z "$outside"
exit $failed
