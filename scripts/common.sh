# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# common.sh - what scripts share that anybody may start: root's rights where they are needed, and a word while something takes minutes.
# Sourced by demo.sh, deps.sh and test.sh. Knows nothing of what is built.

# An ordinary user of Debian does not have these.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# need_root: becomes true when `sudo` can be used without a question, or this is root. Otherwise one sentence says what to do.
need_root() {
	[ "$(id -u)" != 0 ] || return 0
	if ! command -v sudo > /dev/null; then
		echo "${0##*/}: this needs root, and sudo is not installed: run it as root" >&2
		return 1
	fi
	! sudo -n true 2> /dev/null || return 0
	if ! { : < /dev/tty; } 2> /dev/null; then
		echo "${0##*/}: this needs root, and there is no terminal where sudo could ask for a password: run it as root, or by a user of whom sudo asks for none" >&2
		return 1
	fi
	echo "# this needs root: sudo may ask for your password"
	if ! sudo -v; then
		echo "${0##*/}: this needs root, and sudo refuses it: run it as root" >&2
		return 1
	fi
}

# as_root COMMAND...
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		need_root && sudo -- "$@"
	fi
}

# hand_back: what root has made in this folder belongs to the folder's owner, who may want to build there too.
hand_back() {
	local owner give=(find . -xdev -uid 0 -exec chown -h)
	owner=$(stat -c %u:%g .)
	if [ "$(id -u)" = 0 ]; then
		[ "${owner%%:*}" = 0 ] || "${give[@]}" "$owner" {} + 2> /dev/null
	elif [ -n "$(find . -xdev -uid 0 -print -quit 2> /dev/null)" ]; then
		echo "# some files here belong to root: they are given to you"
		as_root "${give[@]}" "$owner" {} +
	fi
}

# patiently WHAT LOG COMMAND...: the command with its output in LOG, and every 15 seconds a line: WHAT, how long, how many lines it has printed.
patiently() {
	local what=$1 log=$2 began=$SECONDS said=$SECONDS pid
	shift 2
	"$@" > "$log" 2>&1 < /dev/null &
	pid=$!
	while kill -0 "$pid" 2> /dev/null; do
		if ((SECONDS - said >= 15)); then
			said=$SECONDS
			echo "# $what: for $((SECONDS - began)) s, $(wc -l < "$log") ${LINES_ARE:-lines}"
		fi
		sleep 0.2
	done
	wait "$pid"
}
