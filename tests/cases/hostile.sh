# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# hostile.sh - cases about memory that is not there when a call is made: what nobody has touched is read from the file, without
# an error; a page that nobody serves holds up neither the tracer nor its end, nor another tracer.

ABSENT=$BIN/absent

# names: what cuModuleGetFunction was asked for, row by row, "-" where it is not known
names_asked() {
	grep '"api":"cuModuleGetFunction"' "$T/out" | sed -E 's/.*"name":"([^"]*)".*/\1/; t; s/.*/-/'
}

case_absent_many() {
	ct_json -- "$ABSENT" many
	ok_rc
	no_loss
	{
		printf '_Z10kernel%dilPfS_iiiiiiii\n' $(seq 0 19999)
		for i in $(seq 0 39); do printf '_Z900long%d%s%s\n' "$i" "$(printf 'a%.0s' {1..900})" end; done
	} > "$T/want"
	grep '"api":"cudaLaunchKernel"' "$T/out" | sed -E 's/.*"kernel_mangled":"([^"]*)".*/\1/; t; s/.*/-/' > "$T/got"
	diff "$T/want" "$T/got" > "$T/diff" || fail "names differ: $(cut -c1-120 "$T/diff" | head -n 4)"
}

case_absent_many_recorded() {
	ct record -o "$T/r.ctr" -- "$ABSENT" many
	ok_rc
	ct replay "$T/r.ctr" --format json
	expect "launches with a name" "$(grep '"api":"cudaLaunchKernel"' "$T/out" | grep -c '"kernel_mangled":"_Z')" 20040
}

# What was there at the call, or nothing: never what came there later.
case_absent_changed() {
	local page
	for page in first second third fourth; do
		printf '%s' "${page}_name"
		head -c $((4096 - ${#page} - 5)) /dev/zero
	done > "$T/names"
	ct_json -e all -- "$ABSENT" file "$T/names"
	ok_rc
	expect "names" "$(names_asked | tr '\n' ' ')" "first_name third_name fourth_name written_to "
}

# hang_absent WHAT [ARGS...]: the program hangs, cudatrace is attached to it and ends while it hangs; so does another one.
hang_absent() {
	local fd began
	mkfifo "$T/in"
	"$ABSENT" "$@" 9000 < "$T/in" > "$T/a.out" 2> "$T/a.err" &
	local pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q '^ready\|^skip' "$T/a.out"
	! grep -q '^skip' "$T/a.out" || skip "$(cat "$T/a.out")"
	attach -e all -p "$pid"
	echo >&"$fd"
	wait_for 10 grep -q '^hanging' "$T/a.out"
	wait_for 5 grep -q cudaMalloc "$T/out"
	mv "$T/err" "$T/err1"
	"$CUDATRACE" -c -- "$CALLS" errors > /dev/null 2> "$T/err2" < /dev/null || true
	grep -q 'calls, 0 lost' "$T/err2" || fail "another cudatrace: $(tail -n 3 "$T/err2")"
	mv "$T/err1" "$T/err"
	finish INT
	ok_rc
	grep -q '^done' "$T/a.out" && fail "cudatrace ended only when the page was served"
	grep -q ' 0 lost' "$T/err" || fail "$(tail -n 3 "$T/err")"
	wait "$pid"
	exec {fd}>&-
}

case_hostile_uffd() {
	hang_absent uffd
}

# A recording asks for each process's arguments and environment, which this one never gives. (Linux 6.18 answers such a reader
# with nothing at once; a kernel that lets it wait holds up a thread that record does not wait for.)
case_hostile_arguments_page() {
	local fd pid
	mkfifo "$T/in"
	"$ABSENT" arguments 9000 < "$T/in" > "$T/a.out" 2> "$T/a.err" &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q '^ready\|^skip' "$T/a.out"
	! grep -q '^skip' "$T/a.out" || skip "$(cat "$T/a.out")"
	"${BACKGROUND[@]}" "$CUDATRACE" record -v -o "$T/r.ctr" -p "$pid" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	echo >&"$fd"
	wait_for 10 grep -q '^hanging' "$T/a.out"
	sleep 1
	finish INT
	ok_rc
	! grep -q '^done' "$T/a.out" || fail "cudatrace ended only when the page was served"
	wait "$pid"
	exec {fd}>&-
	ct replay "$T/r.ctr"
	ok_rc
	grep -q ' absent .* cudaMalloc ' "$T/out" || fail "no call of the program: $(head -n 3 "$T/out")"
}

case_hostile_fuse() {
	mkdir "$T/mnt"
	# the mount goes with the process
	ABSENT="$T/absent"
	printf '#!/bin/sh\nexec unshare -m %q "$@"\n' "$BIN/absent" > "$ABSENT"
	chmod 755 "$ABSENT"
	hang_absent fuse "$T/mnt"
}
