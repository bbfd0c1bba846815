#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh - installs what building and testing need and is not here yet: scripts/deps.sh [build|test|all]
#
#   build   compilers of C and C++ (the stand-in has libraries in C++), clang for the BPF programs, libbpf, libelf, libdw, libiberty, zlib,
#           bzip2, xz, zstd, lz4, libevent, openssl, libyaml, libcrypt, sqlite, json-c
#   test    that, and what scripts/test.sh uses (the default)
#   all     that, and what scripts/test.sh --all uses: a virtual machine, a browser, other shells, makers of packages
#
# What is there is recognised by its command or its header, however it came here: when nothing is missing nothing is
# done, without network and without root; otherwise what installs is run through sudo by who is not root. The tests run with apt on Debian 12; tests/dist/roots.sh looks for the names in Debian 13 and
# Ubuntu too. dnf's names (Fedora, RHEL) are untested.
# It knows packages, and nothing of how anything is built.
set -uo pipefail
# shellcheck source=scripts/common.sh disable=SC1091
. "$(dirname "$0")/common.sh"

die() {
	echo "deps.sh: $*" >&2
	exit 1
}

# What shows that it is there, apt's name, dnf's name. What ends in .h is a header, import:NAME a module of the system's Python, the
# rest is a command. Of several names of apt's, with | between them, the first that there is a package of is taken.
build="
gcc gcc gcc
g++ g++ gcc-c++
clang clang clang
make make make
ld binutils binutils
bpftool bpftool|linux-tools-generic bpftool
stdio.h libc6-dev glibc-devel
bpf/libbpf.h libbpf-dev libbpf-devel
libelf.h libelf-dev elfutils-libelf-devel
zlib.h zlib1g-dev zlib-devel
bzlib.h libbz2-dev bzip2-devel
event2/event.h libevent-dev libevent-devel
openssl/ssl.h libssl-dev openssl-devel
yaml.h libyaml-dev libyaml-devel
crypt.h libcrypt-dev libxcrypt-devel
elfutils/libdwfl.h libdw-dev elfutils-devel
libiberty/demangle.h libiberty-dev binutils-devel
lzma.h liblzma-dev xz-devel
zstd.h libzstd-dev libzstd-devel
lz4.h liblz4-dev lz4-devel
sqlite3.h libsqlite3-dev sqlite-devel
ncurses.h libncurses-dev ncurses-devel
json-c/json.h libjson-c-dev json-c-devel
"
test="
git git git-core
python3 python3 python3
pip3 python3-pip python3-pip
shellcheck shellcheck ShellCheck
clang-format clang-format clang-tools-extra
Zydis/Zydis.h libzydis-dev zydis-devel
mandoc mandoc mandoc
openssl openssl openssl
curl curl curl
pgrep procps procps-ng
mount mount util-linux
setfacl acl acl
promtool prometheus golang-github-prometheus
systemd-analyze systemd systemd
"
all="
bpftrace bpftrace bpftrace
clang-tidy clang-tidy clang-tools-extra
qemu-system-x86_64 qemu-system-x86 qemu-system-x86-core
busybox busybox-static busybox
cpio cpio cpio
chromium chromium|chromium-browser chromium
tmux tmux tmux
zsh zsh zsh
fish fish fish
libclang_rt.fuzzer libclang-rt-dev|libclang-common-14-dev compiler-rt
rpmbuild rpm rpm-build
buildah buildah buildah
import:ensurepip python3-venv python3
import:yaml python3-yaml python3-pyyaml
import:pytest python3-pytest python3-pytest
sudo sudo sudo
"

case ${1:-test} in
build) table=$build ;;
test) table=$build$test ;;
all) table=$build$test$all ;;
*) die "'$1' is none of build, test, all" ;;
esac

found() {
	case $1 in
	stdio.h) echo '#include <stdio.h>' | ${CC:-gcc} -E -x c - > /dev/null 2>&1 ;;
	libclang_rt.*) compgen -G "$(clang -print-resource-dir)/lib/linux/$1*.a" > /dev/null ;;
	# Ubuntu has a script of this name that looks for the running kernel's own
	bpftool) bpftool version > /dev/null 2>&1 || compgen -G '/usr/lib/linux-tools/*/bpftool' > /dev/null ;;
	import:*) /usr/bin/python3 -c "import ${1#*:}" 2> /dev/null ;;
	*.h) [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ] ;;
	*) command -v "$1" > /dev/null ;;
	esac
}

# available NAMES...: one a line; of alternatives, the first that there is a package of, or the last.
available() {
	local names name names_of
	for names in "$@"; do
		IFS='|' read -r -a names_of <<< "$names"
		for name in "${names_of[@]}"; do
			[[ $(apt-cache policy "$name") =~ Candidate:\ [^\(] ]] && break
		done
		echo "$name"
	done
}

apt=() dnf=()
while read -r what apt_name dnf_name; do
	if [ -z "$what" ] || found "$what"; then
		continue
	fi
	apt+=("$apt_name")
	dnf+=("$dnf_name")
done <<< "$table"
[ ${#apt[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
	need_root || die "not installed: ${apt[*]}; run this as root, or install them yourself"
	exec sudo -- "$0" "$@"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if command -v apt-get > /dev/null; then
	echo "deps.sh: installing ${apt[*]}; this can take some minutes"
	export DEBIAN_FRONTEND=noninteractive
	get=(apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2)
	install_apt() {
		"${get[@]}" update && mapfile -t apt <<< "$(available "${apt[@]}")" && "${get[@]}" install --no-install-recommends "${apt[@]}"
	}
	LINES_ARE='lines of apt-get' patiently 'still installing' "$log" install_apt || die "apt-get could not install ${apt[*]}: $(grep '^[EW]:' "$log" | head -n 1)"
elif command -v dnf > /dev/null; then
	echo "deps.sh: installing ${dnf[*]}; this can take some minutes"
	LINES_ARE='lines of dnf' patiently 'still installing' "$log" dnf -q -y install "${dnf[@]}" ||
		die "dnf could not install ${dnf[*]}: $(tail -n 1 "$log")"
else
	die "not installed: ${apt[*]} (Debian's names), and neither apt-get nor dnf is here to install them"
fi
