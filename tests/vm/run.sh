#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - boots other kernels in qemu and tests there what this machine's never uses: tests/vm/run.sh [KERNEL...]
#
# KERNEL is 6.12, 6.1 or 5.10, which are Debian's, 6.8 or 5.15, which are Ubuntu's (apt, unpacked into .output/vm, not installed), or the
# path of a vmlinuz; without one all five. The machine is emulated in software and has two CPUs and no disk: everything is in its initramfs,
# which is busybox, the static cudatrace, the stand-in, the sample and what they are linked with. tests/vm/guest.sh runs inside and prints
# `ok NAME`, `not ok NAME: why` and `skip NAME: why` on the serial console; those lines, with the kernel before the name, and at last
# `N passed, N failed, N skipped`, are what this prints. The whole console is in .output/vm/console-KERNEL.log, and the table of
# what works where in .output/vm/table.md.
#
# With VM_ONLY='hooks|stacks' only the tests whose names match this extended regular expression (without spaces) are run.
#
# The tracefs and perf kinds of links are tested only here: a mistake there is a crash of the kernel (links_tracefs.c).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

# shellcheck source=tests/vm/lib.sh disable=SC1091
. tests/vm/lib.sh
# shellcheck disable=SC2034 # lib.sh has them
MACHINE=(qemu-system-x86_64) PORT=ttyS0
VM=.output/vm
# shellcheck disable=SC2034
LIMIT=${VM_TIMEOUT:-1200} CHOSEN=${VM_ONLY:-} # seconds for a kernel

# apt_of VERSION: the options by which apt finds this kernel, and the word at the end of its packages' names. Debian 12 has 6.1 and 6.12; 5.10
# is Debian 11's, 5.15 and 6.8 are those of Ubuntu 22.04 and 24.04. Their lists are kept in folders of their own, so that this machine's apt
# never knows of them.
apt_of() {
	local folder release='' key=/usr/share/keyrings/debian-archive-keyring.gpg server
	apt=("-oAPT::Sandbox::User=root")
	flavour=cloud-amd64
	case $1 in
	5.10) release=bullseye ;;
	5.15) release=jammy ;;
	6.8) release=noble ;;
	esac
	[ -n "$release" ] || return 0
	folder=$PWD/$VM/apt/$release
	mkdir -p "$folder"/{lists,cache/archives}/partial
	# the same server that this machine's apt asks
	server=$(apt-get indextargets --format "\$(SITE)" 2> /dev/null | head -n 1)
	if [ "$release" != bullseye ]; then
		flavour=generic server=http://archive.ubuntu.com/ubuntu key=$PWD/$VM/ubuntu.gpg
		tests/dist/ubuntu_keys.sh "$key" > "$VM/fetch.log" 2>&1 || return 1
	fi
	printf 'deb [signed-by=%s] %s %s main\n' "$key" "$server" $release > "$folder/sources.list"
	apt+=("-oDir::Etc::sourcelist=$folder/sources.list" "-oDir::Etc::sourceparts=-" "-oDir::State::lists=$folder/lists"
		"-oDir::Cache=$folder/cache")
}

newest_package() {
	apt-cache "${apt[@]}" search --names-only "^linux-image-${1/./\\.}\\.[0-9]+[-+].*$flavour\$" 2> /dev/null | cut -d' ' -f1 | sort -V | tail -n 1
}

# The newest kernel of this version that apt knows for this machine: of Debian's, the small one for virtual machines.
fetch_kernel() {
	local package dir flavour apt=()
	command -v apt-get > /dev/null && command -v dpkg > /dev/null || return 1
	apt_of "$1" || return 1
	package=$(newest_package "$1")
	if [ -z "$package" ]; then
		[ "$(id -u)" != 0 ] || timeout 120 apt-get "${apt[@]}" update > "$VM/fetch.log" 2>&1
		package=$(newest_package "$1")
	fi
	[ -n "$package" ] || return 1
	dir=$(mktemp -d "$VM/fetch.XXXXXX") || return 1
	if (cd "$dir" && timeout 120 apt-get "${apt[@]}" download "$package" && dpkg -x ./*.deb root) > "$VM/fetch.log" 2>&1; then
		mv "$dir"/root/boot/vmlinuz-* "$VM/vmlinuz-$1"
	fi
	rm -rf "$dir"
	[ -s "$VM/vmlinuz-$1" ]
}

# copy FILE...: into the guest under its own path, with the libraries that it is linked with.
copy() {
	local file lib
	for file; do
		install -D "$file" "$ROOT/$file"
		while read -r lib; do
			case $lib in
			"$PWD"/*) lib=${lib#"$PWD"/} && install -D "$lib" "$ROOT/$lib" ;;
			/*) [ -e "$ROOT$lib" ] || install -D "$lib" "$ROOT$lib" ;;
			esac
		done < <(ldd "$file" 2> /dev/null | sed -nE 's,^.*(=> |\t)(/[^ ]+) \(0x.*,\2,p' | xargs -r realpath -s)
	done
}

# The distribution's Python with the modules that its case needs.
copy_python() {
	local python=/usr/bin/python3 file
	"$python" -c 'import ctypes, sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2> /dev/null || return 0
	copy "$python"
	copy tests/unit/python_stacks.py tests/cases/check_python.py
	for file in $("$python" -I -c '
import asyncio, ctypes, encodings.utf_8, json, sys
for module in list(sys.modules.values()):
    if getattr(module, "__file__", None):
        print(module.__file__)'); do
		copy "$file"
	done
}

[ "$(uname -m)" = x86_64 ] || skip_all "the guest is x86-64, this machine is $(uname -m)"
for need in qemu-system-x86_64 busybox gzip ldd; do
	command -v "$need" > /dev/null || skip_all "$need is not installed"
done
ldd "$(command -v busybox)" > /dev/null 2>&1 && skip_all "busybox is not the static one (package busybox-static)"
mkdir -p "$VM"

make -s static standin cases-progs cuda_events_test > "$VM/make.log" 2>&1 || broken "make: $(tail -n 1 "$VM/make.log")"
# Linked like the static cudatrace, of the files that it needs and no others.
mapfile -t libs < <(printf '%s\n' -lbpf -lelf -lz; [ -e "$(gcc -print-file-name=libzstd.a)" ] && echo -lzstd)
gcc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -static -o "$VM/test_links" tests/vm/test_links.c \
	user/source/tracefs.c user/source/probe/links_tracefs.c user/source/probe/links_perf.c user/util/msg.c user/util/text.c user/util/put.c user/util/utf8.c "${libs[@]}" > "$VM/make.log" 2>&1 ||
	broken "test_links does not build: $(grep -m 1 error "$VM/make.log")"

ROOT=$(mktemp -d "$VM/root.XXXXXX") || exit 1
trap 'rm -rf "$ROOT"' EXIT
init > "$ROOT/init"
chmod 755 "$ROOT/init"
install -D "$(command -v busybox)" "$ROOT/bin/busybox"
install -D .output/static/cudatrace "$ROOT/cudatrace"
install -D "$VM/test_links" "$ROOT/test_links"
copy cuda_events_test .output/cases/calls .output/cases/calls-static .output/cases/stuck .output/cases/chain tests/vm/guest.sh .output/standin/libcuda.so.1 \
	.output/standin/libcudart.so.13 .output/standin/libcupti.so.13 .output/cases/work .output/cases/planted .output/cases/ranges .output/standin/libnvToolsExt.so.1
# what the libraries of hooks and of the agent are linked with, which newer programs are not
copy .output/hooks/libcudatrace-hooks.so .output/agent/libcudatrace-agent.so
copy_python
[ ! -x /usr/bin/setpriv ] || copy /usr/bin/setpriv
pack "$ROOT" || exit 1

[ $# != 0 ] || set -- 6.12 6.8 6.1 5.15 5.10
: > "$VM/lines"
for kernel; do
	case $kernel in
	*/*)
		[ -r "$kernel" ] || broken "there is no kernel $kernel"
		boot "${kernel##*/}" "$kernel"
		;;
	*)
		if [ -s "$VM/vmlinuz-$kernel" ] || fetch_kernel "$kernel"; then
			boot "$kernel" "$VM/vmlinuz-$kernel"
		else
			echo "skip $kernel: the kernel cannot be fetched: $(tail -n 1 "$VM/fetch.log" 2> /dev/null)" | tee -a "$VM/lines"
		fi
		;;
	esac
done

summary "${@##*/}"
