#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# arm64.sh - the cases of tests/vm/guest.sh on aarch64: tests/vm/arm64.sh [plain|protected]... With VM_ONLY='hooks|stacks': the tests whose
# names match this extended regular expression (without spaces), alone.
#
# Debian's arm64 packages (libraries to link with, busybox, the kernel) are fetched by apt and unpacked into .output/vm-arm64; nothing is
# installed, and this machine's apt knows of no other architecture. The static cudatrace, the stand-in and the programs are built by
# gcc-aarch64-linux-gnu, once more with signed return addresses and landing pads (-mbranch-protection=standard: `protected`), and run in qemu-system-aarch64
# (packages gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu, qemu-system-arm). It takes some minutes, and belongs to the night. Prints `ok`,
# `not ok` and `skip` lines, and at last `N passed, N failed, N skipped`; the table is in .output/vm-arm64/table.md.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/vm/lib.sh disable=SC1091
. tests/vm/lib.sh
VM=$PWD/.output/vm-arm64
BUILT=.output/arm64
# The limit is long, because all tests take far longer in this emulation when other work keeps the processors busy.
# shellcheck disable=SC2034 # lib.sh has them
MACHINE=(qemu-system-aarch64 -M virt) PORT=ttyAMA0 LIMIT=${VM_TIMEOUT:-5400} CHOSEN=${VM_ONLY:-}
# Signatures by a function of qemu's own: those of Arm's take most of the time, and Debian's kernel signs, too.
CPU=max,pauth-impdef=on
SYSROOT=$VM/sysroot
TRIPLE=aarch64-linux-gnu
PACKAGES=(libc6-dev libbpf-dev libdw-dev libelf-dev zlib1g-dev liblzma-dev libiberty-dev libzstd-dev liblz4-dev libsqlite3-dev libjson-c-dev
	libncurses-dev libevent-dev libssl-dev libyaml-dev libcrypt-dev libbz2-dev libstdc++-12-dev busybox-static util-linux
	linux-image-cloud-arm64)

# What Debian has for arm64, with an apt that knows nothing of this machine.
fetch() {
	local apt=(apt-get -q -y -oAPT::Architecture=arm64 -oAPT::Architectures::=arm64 -oAPT::Sandbox::User=root "-oDir::State::status=$VM/apt/status"
		"-oDir::Etc::sourcelist=$VM/apt/sources.list" -oDir::Etc::sourceparts=- "-oDir::State::lists=$VM/apt/lists" "-oDir::Cache=$VM/apt/cache")
	local key=/usr/share/keyrings/debian-archive-keyring.gpg package
	mkdir -p "$VM"/apt/{lists,cache/archives}/partial
	: > "$VM/apt/status"
	# the same server that this machine's apt asks
	printf 'deb [signed-by=%s] %s bookworm main\n' $key "$(apt-get indextargets --format "\$(SITE)" 2> /dev/null | head -n 1)" > "$VM/apt/sources.list"
	timeout 300 "${apt[@]}" update && timeout 600 "${apt[@]}" --no-install-recommends --download-only install "${PACKAGES[@]}" || return 1
	rm -rf "$SYSROOT" "$SYSROOT.part"
	mkdir "$SYSROOT.part"
	for package in "$VM"/apt/cache/archives/*.deb; do
		dpkg -x "$package" "$SYSROOT.part" || return 1
	done
	mv "$SYSROOT.part" "$SYSROOT"
}

# build FOLDER CFLAGS TARGET...
build() {
	local folder=$1 flags=$2
	shift 2
	make -j "$(nproc)" ARCH=aarch64 OUTPUT="$folder" CC="$TRIPLE-gcc --sysroot=$SYSROOT $flags" CXX="$TRIPLE-g++ --sysroot=$SYSROOT $flags" \
		STRIP="$TRIPLE-strip" OBJCOPY="$TRIPLE-objcopy" AR="$TRIPLE-ar" "${@/#/$folder/}" > "$VM/make.log" 2>&1 ||
		broken "make: $(grep -m 1 -E 'error|\*\*\*' "$VM/make.log")"
}

for need in $TRIPLE-gcc $TRIPLE-g++ qemu-system-aarch64 busybox apt-get; do
	command -v "$need" > /dev/null || skip_all "$need is not installed"
done
mkdir -p "$VM"
[ -e "$SYSROOT/usr/bin/setpriv" ] || fetch > "$VM/fetch.log" 2>&1 || skip_all "Debian's arm64 packages cannot be fetched: $(tail -n 1 "$VM/fetch.log")"

engine=(hooks-tests/{test_{engine,calls,counting}-gcc-O{0,2},test_slots,test_text,test_unwind})
programs=(cases/work cases/calls cases/calls-static cases/stuck cases/ranges cases/chain cases/chain-fp)
build $BUILT "" static/cudatrace "${programs[@]}" "${engine[@]}"
build $BUILT-bti "-mbranch-protection=standard" "${programs[@]}" "${engine[@]}"
$TRIPLE-gcc --sysroot="$SYSROOT" -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -static -o "$VM/test_links" tests/vm/test_links.c \
	user/source/tracefs.c user/source/probe/links_tracefs.c user/source/probe/links_perf.c user/util/msg.c user/util/text.c user/util/put.c user/util/utf8.c -lbpf -lelf -lz > "$VM/make.log" 2>&1 ||
	broken "test_links does not build: $(grep -m 1 error "$VM/make.log")"

# root NAME BUILT: what the guest has, with the programs of this build
root() {
	local root=$VM/root-$1 file
	rm -rf "$root"
	mkdir -p "$root/lib/$TRIPLE" "$root/.output" "$root/tests/vm"
	init > "$root/init"
	chmod 755 "$root/init"
	install -D "$SYSROOT/bin/busybox" "$root/bin/busybox"
	install -D "$SYSROOT/usr/bin/setpriv" "$root/usr/bin/setpriv"
	install "$BUILT/static/cudatrace" "$VM/test_links" "$root"
	cp tests/vm/guest.sh "$root/tests/vm"
	for file in "${programs[@]}" standin/libcudart.so.13 standin/libcuda.so.1 standin/libcupti.so.13 standin/libnvToolsExt.so.1; do
		install -D "$2/$file" "$root/.output/$file"
	done
	mkdir "$root/.output/hooks-tests"
	cp "$2"/hooks-tests/{test_{engine,calls,counting}-*,test_slots,test_text,test_unwind,lib*.so} "$root/.output/hooks-tests"
	# shellcheck disable=SC2016 # it is the loader's
	$TRIPLE-gcc --sysroot="$SYSROOT" -std=gnu11 -D_GNU_SOURCE -O2 -g -Itests/standin/include -o "$root/cuda_events_test" cuda_events_test.c \
		-L"$2/standin" -lcudart -ldl -Wl,-rpath,'$ORIGIN/.output/standin' || broken "the sample does not build"
	for file in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 libgcc_s.so.1 libstdc++.so.6 libcap-ng.so.0; do
		cp -L "$(find "$SYSROOT/lib/$TRIPLE" "$SYSROOT/usr/lib/$TRIPLE" -name "$file" | head -n 1)" "$root/lib/$TRIPLE/" || broken "$file is missing"
	done
	cp -L "$SYSROOT"/lib/ld-linux-aarch64.so.1 "$root/lib/"
	pack "$root"
}

kernel=$(find "$SYSROOT/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)
: > "$VM/lines"
[ $# != 0 ] || set -- plain protected
names=()
for build; do
	case $build in
	plain) root plain $BUILT && names+=(arm64) ;;
	protected) root protected $BUILT-bti && names+=(arm64-bti) ;;
	*) broken "$build is neither plain nor protected" ;;
	esac
	boot "${names[-1]}" "$kernel"
done
summary "${names[@]}"
