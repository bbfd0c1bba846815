#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - boots an older kernel in qemu and tests there what newer ones never use: tests/vm/run.sh [KERNEL]
#
# KERNEL is a vmlinuz; without it Debian's 6.1 is fetched (apt, unpacked into .output/vm, not installed). The machine is
# emulated in software and has two CPUs and no disk: everything is in its initramfs, which is busybox, the static
# cudatrace, the stand-in, the sample and what they are linked with. tests/vm/guest.sh runs inside and prints
# `ok NAME`, `not ok NAME: why` and `skip NAME: why` on the serial console; those lines, and at last
# `N passed, N failed, N skipped`, are what this prints. The whole console is in .output/vm/console.log.
#
# The tracefs and perf kinds of links are tested only here: a mistake there is a crash of the kernel (links_tracefs.c).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

VM=.output/vm
LIMIT=${VM_TIMEOUT:-600} # seconds; about 60 are needed

skip_all() {
	echo "skip vm: $*"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

broken() {
	echo "not ok vm: $*"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

newest_package() {
	apt-cache search --names-only '^linux-image-6\.1\.[0-9]+-[0-9]+-cloud-amd64$' 2> /dev/null | cut -d' ' -f1 | sort -V |
		tail -n 1
}

# The newest 6.1 kernel that apt knows for this machine: the small one for virtual machines.
fetch_kernel() {
	local package dir
	command -v apt-get > /dev/null && command -v dpkg > /dev/null || return 1
	package=$(newest_package)
	if [ -z "$package" ]; then
		[ "$(id -u)" != 0 ] || timeout 120 apt-get update > "$VM/fetch.log" 2>&1
		package=$(newest_package)
	fi
	[ -n "$package" ] || return 1
	dir=$(mktemp -d "$VM/fetch.XXXXXX") || return 1
	if (cd "$dir" && timeout 120 apt-get download "$package" && dpkg -x ./*.deb root) > "$VM/fetch.log" 2>&1; then
		mv "$dir"/root/boot/vmlinuz-* "$VM/vmlinuz-6.1"
	fi
	rm -rf "$dir"
	[ -s "$VM/vmlinuz-6.1" ]
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
	"$python" -c 'import ctypes, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null || return 0
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

# What the guest's init does; the rest is guest.sh.
init() {
	cat << 'END'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /bin
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
cd / && sh tests/vm/guest.sh
echo "vm: end"
poweroff -f
END
}

[ "$(uname -m)" = x86_64 ] || skip_all "the guest is x86-64, this machine is $(uname -m)"
for need in qemu-system-x86_64 busybox gzip ldd; do
	command -v "$need" > /dev/null || skip_all "$need is not installed"
done
ldd "$(command -v busybox)" > /dev/null 2>&1 && skip_all "busybox is not the static one (package busybox-static)"
mkdir -p "$VM"
kernel=${1:-$VM/vmlinuz-6.1}
if [ $# = 0 ] && [ ! -s "$kernel" ]; then
	fetch_kernel || skip_all "Debian's 6.1 kernel cannot be fetched: $(tail -n 1 "$VM/fetch.log" 2> /dev/null)"
fi
[ -r "$kernel" ] || broken "there is no kernel $kernel"

make -s static standin cases-progs cuda_events_test > "$VM/make.log" 2>&1 || broken "make: $(tail -n 1 "$VM/make.log")"
# Linked like the static cudatrace, of the files that it needs and no others.
mapfile -t libs < <(printf '%s\n' -lbpf -lelf -lz; [ -e "$(gcc -print-file-name=libzstd.a)" ] && echo -lzstd)
gcc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -static -o "$VM/test_links" tests/vm/test_links.c \
	user/source/probe/links_tracefs.c user/source/probe/links_perf.c user/util/msg.c user/util/utf8.c "${libs[@]}" > "$VM/make.log" 2>&1 ||
	broken "test_links does not build: $(grep -m 1 error "$VM/make.log")"

ROOT=$(mktemp -d "$VM/root.XXXXXX") || exit 1
trap 'rm -rf "$ROOT"' EXIT
init > "$ROOT/init"
chmod 755 "$ROOT/init"
install -D "$(command -v busybox)" "$ROOT/bin/busybox"
install -D .output/static/cudatrace "$ROOT/cudatrace"
install -D "$VM/test_links" "$ROOT/test_links"
copy cuda_events_test .output/cases/calls .output/cases/calls-static .output/cases/stuck tests/vm/guest.sh .output/standin/libcuda.so.1 \
	.output/standin/libcudart.so.13 .output/cases/ranges .output/standin/libnvToolsExt.so.1
copy_python
[ ! -x /usr/bin/setpriv ] || copy /usr/bin/setpriv
# A user other than root runs some of it.
chmod 755 "$ROOT"
(cd "$ROOT" && find . | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$VM/initramfs.gz" || exit 1

timeout -k 5 "$LIMIT" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 768 -nographic -no-reboot -nic none \
	-kernel "$kernel" -initrd "$VM/initramfs.gz" -append "console=ttyS0 quiet panic=-1 oops=panic" < /dev/null 2>&1 |
	tr -d '\r' > "$VM/console.log"

grep -a -E '^(ok|not ok|skip|#) ' "$VM/console.log"
if ! grep -a -q '^vm: end$' "$VM/console.log"; then
	grep -a -m 3 -E 'BUG|Oops|panic|RIP' "$VM/console.log" | sed 's/^/# /'
	echo "not ok vm: the guest did not reach its end (limit: $LIMIT s); see $VM/console.log"
	echo "not ok vm-end" >> "$VM/console.log"
fi
passed=$(grep -a -c '^ok ' "$VM/console.log")
failed=$(grep -a -c '^not ok ' "$VM/console.log")
echo "$passed passed, $failed failed, $(grep -a -c '^skip ' "$VM/console.log") skipped"
[ "$failed" = 0 ]
