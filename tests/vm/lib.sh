# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# lib.sh - what the virtual machines share: their first program, how one is booted, and what is printed of it. Sourced by run.sh and
# arm64.sh, which set VM (their folder), MACHINE (qemu and its machine), PORT (the guest's serial port), LIMIT (seconds), CPU (if not max)
# and CHOSEN (a regular expression: only tests with such names; empty: all).

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

# What the guest's init does; the rest is guest.sh.
init() {
	cat << 'END'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /bin
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

# The folder $1 as the guest's memory
pack() {
	chmod 755 "$1" # a user other than root runs some of it
	(cd "$1" && find . | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$VM/initramfs.gz"
}

# boot NAME VMLINUZ: its lines, with the name
boot() {
	local name=$1 console=$VM/console-$1.log
	timeout -k 5 "$LIMIT" "${MACHINE[@]}" -accel tcg -cpu "${CPU:-max}" -smp 2 -m 768 -nographic -no-reboot -nic none \
		-kernel "$2" -initrd "$VM/initramfs.gz" -append "console=$PORT quiet panic=-1 oops=panic${CHOSEN:+ only=$CHOSEN}" < /dev/null 2>&1 |
		sed -u 's/\r//g' > "$console"
	grep -a -E '^(ok|not ok|skip|#) ' "$console" | sed -E "s/^(ok|not ok|skip) /&$name /" | tee -a "$VM/lines"
	if ! grep -a -q '^vm: end$' "$console"; then
		grep -a -m 3 -E 'BUG|Oops|panic|RIP' "$console" | sed 's/^/# /'
		echo "not ok $name end: the guest did not reach its end (limit: $LIMIT s); see $console" | tee -a "$VM/lines"
	fi
}

# The table of what works where, a column a kernel.
table() {
	awk -v kernels="$*" '
		BEGIN { n = split(kernels, of, " ") }
		/^(ok|not ok|skip) / {
			result = $1; sub(/^(not ok|ok|skip) /, ""); kernel = $1; sub(/^[^ ]+ /, "")
			if (result != "ok") sub(/:.*/, "")
			if (!($0 in seen)) { seen[$0]; names[++rows] = $0 }
			said[$0, kernel] = result == "ok" ? "yes" : result == "skip" ? "-" : "**no**"
		}
		END {
			printf "| |"; for (k = 1; k <= n; k++) printf " %s |", of[k]; printf "\n|---|"
			for (k = 1; k <= n; k++) printf "---|"; print ""
			for (r = 1; r <= rows; r++) { printf "| %s |", names[r]; for (k = 1; k <= n; k++) printf " %s |", said[names[r], of[k]]; print "" }
		}' "$VM/lines"
}
# summary KERNEL...: the table, the counts, and the status
summary() {
	local passed failed
	table "$@" > "$VM/table.md"

	passed=$(grep -a -c '^ok ' "$VM/lines")
	failed=$(grep -a -c '^not ok ' "$VM/lines")
	echo "$passed passed, $failed failed, $(grep -a -c '^skip ' "$VM/lines") skipped"
	[ "$failed" = 0 ]
}
