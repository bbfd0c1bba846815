#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# roots.sh - packages and names of packages in root file systems of other systems: tests/dist/roots.sh [NAME...]
#
#   debian-12 debian-13 ubuntu-22.04 ubuntu-24.04   made by debootstrap from the system's own server: the .deb is installed by apt, runs, and is
#                                       removed without a rest; each name of scripts/deps.sh is that of a package
#   build-ubuntu-24.04                  scripts/deps.sh build and make, in such a root: what a newcomer there does (ten minutes)
#   dnf                                 the .rpm is installed and removed by dnf, out of a repository made here
#
# Needs root, debootstrap (createrepo_c and dnf for the last) and the network, so that it runs at night and not for each change; a system
# whose server cannot be reached is skipped. Prints `ok`, `not ok` and `skip` lines. It writes to nothing outside of its own folder.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

# what mounts leave is gone with the namespace
if [ -z "${ROOTS_INSIDE:-}" ]; then
	ROOTS_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi
tmp=$(mktemp -d /var/tmp/ct_roots.XXXXXX) || exit 1
chmod 0755 "$tmp"
# shellcheck disable=SC2317 # called by trap
unmounted() {
	umount -R "$tmp"/*/proc "$tmp"/*/dev 2> /dev/null
	rm -rf --one-file-system "$tmp"
}
trap unmounted EXIT
failed=0
not_ok() {
	echo "not ok $1: $(tr '\n' ' ' <<< "$2" | cut -c1-400)"
	failed=1
}
check() { # NAME COMMAND...
	local out
	if out=$("${@:2}" 2>&1 < /dev/null); then
		echo "ok $1"
	else
		not_ok "$1" "$(tail -n 5 <<< "$out")"
		return 1
	fi
}
same() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		not_ok "$1" "$(diff <(echo "$2") <(echo "$3") | grep '^[<>]' | head -n 5)"
	fi
}

DEBIAN=http://deb.debian.org/debian
UBUNTU=http://archive.ubuntu.com/ubuntu

release() {
	make -s static > "$tmp/log" 2>&1 &&
		scripts/dist/dist.sh "$(sed -n 's/^VERSION := //p' Makefile)" .output/static/cudatrace "$tmp/dist" >> "$tmp/log" 2>&1
}

# bootstrap NAME: $root, a root file system of it with the lists of its packages. 77: its server cannot be reached.
bootstrap() { # NAME
	local server=$DEBIAN suite components=main keys=()
	case $1 in
	debian-12) suite=bookworm ;;
	debian-13) suite=trixie ;;
	ubuntu-22.04) suite=jammy ;;
	ubuntu-24.04) suite=noble ;;
	esac
	root=$tmp/$1
	[ ! -d "$root" ] || return 0
	[[ $1 != ubuntu-* ]] || server=$UBUNTU components=main,universe
	curl -sf -m 30 -o /dev/null "$server/dists/$suite/Release" || return 77
	if [[ $1 = ubuntu-* ]]; then
		tests/dist/ubuntu_keys.sh "$tmp/keys.gpg" || return
		keys=(--keyring="$tmp/keys.gpg")
	fi
	local script=/usr/share/debootstrap/scripts/$suite
	[ -e "$script" ] || script=/usr/share/debootstrap/scripts/gutsy # what all of Ubuntu's are
	debootstrap --variant=minbase --components="$components" "${keys[@]}" "$suite" "$root" "$server" "$script" > "$tmp/log" 2>&1 || return
	mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
	[[ $1 != ubuntu-* ]] || echo "deb $server $suite-updates main universe" >> "$root/etc/apt/sources.list"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	chroot "$root" apt-get -q -y update > "$tmp/log" 2>&1
}

# bootstrapped NAME SYSTEM: false after a line about NAME
bootstrapped() {
	bootstrap "$2"
	case $? in
	0) return 0 ;;
	77) echo "skip $1: its server cannot be reached" ;;
	*) not_ok "$1" "debootstrap: $(tail -n 3 "$tmp/log")" ;;
	esac
	return 1
}

files() { # ROOT: what is in it, but what apt and the loader write
	(cd "$1" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./var/lib -o -path ./var/cache -o -path ./var/log -o -path ./tmp \) -prune -o -print | sort)
}

# The names of deps.sh, by the tables in it.
names() { # COLUMN
	sed -n '/^[a-z]*="$/,/^"$/p' scripts/deps.sh | awk -v column="$1" 'NF == 3 { print $column }' | sort -u
}

apt_system() { # NAME
	local before list lost='' name one names_of
	bootstrapped "$1" "$1" || return
	before=$(files "$root")
	cp "$tmp"/dist/*.deb "$root/tmp/cudatrace.deb"
	check "$1-installs" chroot "$root" apt-get -q -y install --no-install-recommends /tmp/cudatrace.deb || return
	check "$1-runs" chroot "$root" cudatrace --version
	cp tests/traces/two.ctrace "$root/tmp/"
	check "$1-replays" chroot "$root" cudatrace replay -o /tmp/rows /tmp/two.ctrace
	same "$1-whole" "" "$(chroot "$root" dpkg --verify cudatrace 2>&1)"
	check "$1-removes" chroot "$root" apt-get -q -y purge cudatrace
	same "$1-leaves" "$before" "$(files "$root")"
	# all at once, and one by one only if that fails: alternatives cannot be asked for together
	# shellcheck disable=SC2046 # words
	chroot "$root" apt-get -q -s install --no-install-recommends $(names 2 | grep -v '|') > /dev/null 2>&1 && list=$(names 2 | grep '|') || list=$(names 2)
	for name in $list; do
		IFS='|' read -r -a names_of <<< "$name"
		for one in "${names_of[@]}"; do
			chroot "$root" apt-get -q -s install --no-install-recommends "$one" > /dev/null 2>&1 && continue 2
		done
		lost+=" $name"
	done
	same "$1-names" "" "$lost"
}

build_system() { # NAME: as apt_system has made it
	local system=${1#build-}
	bootstrapped "$1" "$system" || return
	mkdir "$root/src"
	git ls-files -z | xargs -0 cp --parents -P -t "$root/src"
	check "$1-packages" chroot "$root" /src/scripts/deps.sh build || return
	check "$1-again" chroot "$root" /src/scripts/deps.sh build # nothing is missing any more
	check "$1" chroot "$root" make -s -C /src -j "$(nproc)" cudatrace static standin cuda_events_test || return
	check "$1-runs" chroot "$root" sh -c 'cd /src && .output/static/cudatrace replay -o /tmp/rows tests/traces/two.ctrace'
	check "$1-units" chroot "$root" make -s -C /src unit T='compare sinks'
}

by_dnf() {
	local root=$tmp/dnf before
	if ! command -v dnf > /dev/null || ! command -v createrepo_c > /dev/null; then
		echo "skip dnf: dnf or createrepo_c is not installed"
		return
	fi
	mkdir -p "$root" "$tmp/repo"
	cp "$tmp"/dist/*.rpm "$tmp/repo/"
	check dnf-repository createrepo_c -q "$tmp/repo" || return
	local dnf=(dnf -q -y --installroot="$root" --releasever=1 --setopt=reposdir=/nonexistent --setopt=cachedir="$tmp/cache" --setopt=persistdir="$tmp/state"
		--setopt=logdir="$tmp" --repofrompath="here,file://$tmp/repo" --repo=here --nogpgcheck)
	check dnf-installs "${dnf[@]}" install cudatrace || return
	check dnf-runs chroot "$root" /usr/bin/cudatrace --version
	check dnf-removes "${dnf[@]}" remove cudatrace
	same dnf-leaves "" "$(cd "$root" && find . -name '*cudatrace*' ! -path './var/*')"
}

command -v debootstrap > /dev/null || {
	echo "skip roots: debootstrap is not installed"
	exit 0
}
[ "$(id -u)" = 0 ] || {
	echo "not ok roots: run this as root"
	exit 1
}
[ $# -gt 0 ] || set -- debian-12 debian-13 ubuntu-22.04 ubuntu-24.04 build-ubuntu-24.04 dnf
if ! release; then
	not_ok roots-release "$(tail -n 3 "$tmp/log")"
	exit 1
fi
for system in "$@"; do
	case $system in
	debian-12 | debian-13 | ubuntu-22.04 | ubuntu-24.04) apt_system "$system" ;;
	build-ubuntu-*) build_system "$system" ;;
	dnf) by_dnf ;;
	*) not_ok "$system" "not one of those in the head of this file" ;;
	esac
done
exit $failed
