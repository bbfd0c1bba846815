#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install.sh - installs a release of cudatrace: sh install.sh --from PLACE [--prefix FOLDER]
#
#   --from PLACE      where the files of the release are: the URL of a folder, or a folder of this machine. By default the folder of
#                     this script, if SHA256SUMS is there
#   --prefix FOLDER   where to install: FOLDER/bin, FOLDER/share. By default /usr/local for root, else $HOME/.local: no root is needed
#   --uninstall       removes what it installed in the prefix
#
# Nothing is installed before the tarball has the sum that SHA256SUMS has for it. The sums come from the same place as the tarball:
# they show a damaged file, and not a wrong place.
set -eu

die() {
	echo "install.sh: $*" >&2
	exit 1
}

# get NAME: a file of the release into the current folder
get() {
	case $from in
	http://* | https://*)
		if command -v curl > /dev/null; then
			curl -fsSL --retry 2 -o "$1" "$from/$1" || die "cannot fetch $from/$1"
		elif command -v wget > /dev/null; then
			wget -q -O "$1" "$from/$1" || die "cannot fetch $from/$1"
		else
			die "neither curl nor wget is installed"
		fi
		;;
	*) cp "$from/$1" "$1" || die "there is no $1 in $from" ;;
	esac
}

# uninstall: the files that the release's list names, the list last
uninstall() {
	list=$prefix/share/doc/cudatrace/FILES
	[ -r "$list" ] || die "nothing of install.sh is installed in $prefix"
	while read -r file; do
		case /$file/ in
		*/../*) die "$list is damaged" ;;
		esac
		rm -f "$prefix/$file"
	done < "$list"
	rm -f "$list"
	for folder in docs/internals docs/pictures docs deploy scripts licences ''; do
		rmdir "$prefix/share/doc/cudatrace/$folder" 2> /dev/null || true
	done
}

install_release() {
	[ "$(uname -s)" = Linux ] || die "cudatrace runs on Linux"
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' INT TERM HUP
	cd "$tmp"
	get SHA256SUMS
	machine=$(uname -m)
	name=$(sed -n "s/^[0-9a-f]\{64\}  \(cudatrace-[0-9A-Za-z.+~-]*-linux-$machine\)\.tar\.gz\$/\1/p" SHA256SUMS)
	[ -n "$name" ] || die "the release in $from has no tarball for $machine"
	[ "$(echo "$name" | wc -l)" = 1 ] || die "SHA256SUMS in $from names more than one tarball for $machine"
	get "$name.tar.gz"
	grep " $name.tar.gz\$" SHA256SUMS > sum
	sha256sum -c sum > /dev/null 2>&1 || die "$name.tar.gz has another sum than SHA256SUMS says: nothing was installed"
	tar -xzf "$name.tar.gz"
	"$name/bin/cudatrace" --version > /dev/null || die "the program does not run on this machine: nothing was installed"
	while read -r file; do
		[ "$file" != bin/cudatrace ] || continue
		mkdir -p "$prefix/$(dirname "$file")"
		cp "$name/$file" "$prefix/$file"
	done < "$name/share/doc/cudatrace/FILES"
	cp "$name/share/doc/cudatrace/FILES" "$prefix/share/doc/cudatrace/FILES"
	# a rename, for the program may be running
	mkdir -p "$prefix/bin"
	cp "$name/bin/cudatrace" "$prefix/bin/.cudatrace.new"
	chmod 0755 "$prefix/bin/.cudatrace.new"
	mv -f "$prefix/bin/.cudatrace.new" "$prefix/bin/cudatrace"
	echo "installed $prefix/bin/cudatrace ($("$prefix/bin/cudatrace" --version | head -n 1))"
	case :$PATH: in
	*:"$prefix/bin":*) ;;
	*) echo "$prefix/bin is not in PATH" ;;
	esac
}

# A function, so that a script of which only a part came does nothing.
main() {
	from='' prefix='' remove=false
	while [ $# -gt 0 ]; do
		case $1 in
		--from | --prefix)
			[ $# -gt 1 ] || die "$1 needs a value"
			if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
			shift 2
			;;
		--uninstall)
			remove=true
			shift
			;;
		*) die "'$1' is not known. Usage: sh install.sh [--from PLACE] [--prefix FOLDER] [--uninstall]" ;;
		esac
	done
	if [ -z "$prefix" ]; then
		if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
	fi
	case $prefix in
	/*) ;;
	*) prefix=$PWD/$prefix ;;
	esac
	umask 022
	if $remove; then
		uninstall
		return
	fi
	if [ -z "$from" ]; then
		from=$(dirname "$0")
		[ -e "$from/SHA256SUMS" ] || die "say with --from where the files of the release are"
	fi
	case $from in
	http://* | https://*) from=${from%/} ;;
	*) from=$(cd "$from" && pwd) || die "there is no folder $from" ;;
	esac
	install_release
}
main "$@"
