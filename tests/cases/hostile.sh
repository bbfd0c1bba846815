# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034,SC2016
# hostile.sh - cases about memory that is not there when a call is made: what nobody has touched is read from the file, without
# an error; a page that nobody serves holds up neither the tracer nor its end, nor another tracer.

ABSENT=$BIN/absent

# names: what cuModuleGetFunction was asked for, row by row, "-" where it is not known
names_asked() {
	grep '"name":"cuModuleGetFunction"' "$T/out" | sed -E 's/.*"args":\{.*"name":"([^"]*)".*/\1/; t; s/.*/-/'
}

case_absent_many() {
	ct_json -- "$ABSENT" many
	ok_rc
	no_loss
	{
		printf '_Z10kernel%dilPfS_iiiiiiii\n' $(seq 0 19999)
		for i in $(seq 0 39); do printf '_Z900long%d%s%s\n' "$i" "$(printf 'a%.0s' {1..900})" end; done
	} > "$T/want"
	grep '"name":"cudaLaunchKernel"' "$T/out" | sed -E 's/.*"kernel_mangled":"([^"]*)".*/\1/; t; s/.*/-/' > "$T/got"
	diff "$T/want" "$T/got" > "$T/diff" || fail "names differ: $(cut -c1-120 "$T/diff" | head -n 4)"
}

case_absent_many_recorded() {
	ct record -o "$T/r.ctr" -- "$ABSENT" many
	ok_rc
	ct replay "$T/r.ctr" --format json
	expect "launches with a name" "$(grep '"name":"cudaLaunchKernel"' "$T/out" | grep -c '"kernel_mangled":"_Z')" 20040
}

# absent_changed COMMAND...: what was there at the call, or nothing: never what came there later.
absent_changed() {
	local page
	for page in first second third fourth; do
		printf '%s' "${page}_name"
		head -c $((4096 - ${#page} - 5)) /dev/zero
	done > "$T/names"
	ct_json -e all -- "$@" file "$T/names"
	ok_rc
	expect "names" "$(names_asked | tr '\n' ' ')" "first_name third_name fourth_name written_to "
}

case_absent_changed() {
	absent_changed "$ABSENT"
}

# The thread is stopped until its name was read, though it blocks all signals.
case_absent_changed_blocked() {
	absent_changed env --block-signal "$ABSENT"
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

case_hostile_uffd() { # long
	hang_absent uffd
}

# A recording asks for each process's arguments and environment, which this one never gives. (Linux 6.18 answers such a reader
# with nothing at once; a kernel that lets it wait holds up a thread that record does not wait for.)
case_hostile_arguments_page() { # long
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

case_hostile_fuse() { # long
	mkdir "$T/mnt"
	# the mount goes with the process
	ABSENT="$T/absent"
	printf '#!/bin/sh\nexec unshare -m %q "$@"\n' "$BIN/absent" > "$ABSENT"
	chmod 755 "$ABSENT"
	hang_absent fuse "$T/mnt"
}

# A library that a program serves itself gets no probes: to read it, the kernel would hold up every fork of the machine.
case_hostile_fuse_library() {
	local pid
	mkdir "$T/mnt"
	mkfifo "$T/in"
	unshare -m "$BIN/absent" library "$T/mnt" "$STANDIN/libcudart.so.13" < "$T/in" > "$T/a.out" 2> "$T/a.err" &
	pid=$!
	exec 3> "$T/in"
	wait_for 10 grep -q '^ready\|^skip' "$T/a.out"
	! grep -q '^skip' "$T/a.out" || skip "$(cat "$T/a.out")"
	attach -p "$pid"
	says "warning: $T/mnt/libcudart.so.13 is not probed: it lies on FUSE"
	! grep -E "mnt/libcudart.*(functions|searched)" "$T/err" || fail "it was looked at: $(grep mnt/ "$T/err")"
	finish INT
	ok_rc
	exec 3>&-
	wait "$pid"
}

# ---- the agents' socket ----

CROWD='
import os, socket, sys, time
path, ready = sys.argv[1:]
held, made, fd = [], 0, os.open(ready, os.O_WRONLY | os.O_CREAT)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
while True:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.setblocking(False)
    try:
        s.connect(path)
        if made % 2: s.send(os.urandom(50))
        held.append(s)
        made += 1
        if made == 2000: os.write(fd, b"crowded\n")
        if len(held) > 900: held.pop(0).close()
    except OSError:
        s.close()
        time.sleep(.0005)
'

# agent_socket: the socket of the cudatrace in $CT, in SOCKET
agent_socket() {
	SOCKET=$(compgen -G "/run/cudatrace/s-$CT-*")
}

# held_program ARGS...: cudatrace ARGS, with a program that begins once there is a file $T/go.
held_program() {
	# shellcheck disable=SC2016 # it is the inner shell's
	"${BACKGROUND[@]}" "$CUDATRACE" "${@:1:$#-1}" --gpu -- sh -c 'until [ -e "$0/go" ]; do sleep 0.05; done; '"${*: -1}" "$T" "$BIN/work" \
		> "$T/prog.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 agent_socket
}

# Other users connect as often as they can, and keep their connections: the program's agent comes in all the same, and nobody is
# told of each of them.
case_hostile_agent_crowd() {
	local i
	held_program --format json -o "$T/out" 'exec "$1" 300 return'
	for i in 1 2 3; do
		python3 -c "$CROWD" "$SOCKET" "$T/crowd$i" 2> /dev/null &
		wait_for 30 grep -q crowded "$T/crowd$i"
	done
	: > "$T/go"
	wait_for 60 ended "$CT"
	finish
	ok_rc
	expect "kernel records" "$(grep -c '^{"type":"kernel"' "$T/out")" 300
	expect "copies" "$(grep -c '^{"type":"copy"' "$T/out")" 300
	no_loss
	says '^cudatrace: [0-9]{4,} connections to the agents. socket were closed at once: .*of user 65534\)$'
	! grep 'warning' "$T/err" > "$T/why" || fail "$(head -n 3 "$T/why")"
}

# A process of the program that has left its parents and its user has the agent's key in its environment, and is let in.
case_hostile_agent_daemon() {
	command -v setpriv > /dev/null || skip "no setpriv"
	# shellcheck disable=SC2016 # it is the script's shell that expands them
	printf '%s\n' '#!/bin/sh' '[ "$2" ] || { setsid "$0" "$1" $$ & exit; }' 'while grep -q "^PPid:.$2\$" /proc/$$/status; do sleep 0.02; done' \
		'exec "$1" 20 return' > "$T/daemon"
	chmod 755 "$T" "$T/daemon"
	held_program --format json -o "$T/out" \
		'setpriv --reuid 65534 --regid 65534 --clear-groups "$0/daemon" "$1"; until [ -e "$0/seen" ]; do sleep 0.05; done'
	: > "$T/go"
	wait_for 20 grep -q '^{"type":"kernel"' "$T/out"
	: > "$T/seen"
	wait_for 60 ended "$CT"
	finish
	ok_rc
	expect "kernel records" "$(grep -c '^{"type":"kernel"' "$T/out")" 20
	grep -q '^{"type":"process".*"process":"work".*"uid":65534' "$T/out" || fail "no process of user 65534"
	no_loss
}

# A program whose device work is not told of is not passed over: here the socket is gone when it begins, so that no agent can come.
case_hostile_agent_kept_out() {
	held_program --format json -o "$T/out" 'exec "$1" 30 return'
	rm "$SOCKET"
	: > "$T/go"
	wait_for 60 ended "$CT"
	finish
	ok_rc
	expect "kernel records" "$(grep -c '^{"type":"kernel"' "$T/out")" 0
	says '; process [0-9]+ \(.*\) gave work to a device and had no agent: what its devices did is not known$'
	says 'the agent was not loaded: '
}

# ---- many libraries ----

# family ARGS...: a shell that obeys `tell`, started as `ARGS... bash`, and with all its children traced by cudatrace in the background, which may
# open LIMIT files.
family() {
	command -v setpriv > /dev/null || skip "no setpriv"
	cp "$BIN/mapper" "$BIN/libmany.so" "$T"
	mkfifo "$T/tell"
	# shellcheck disable=SC2016 # it is the inner shell's
	"$@" bash -c 'cd "$0" && echo $$ && while read -r line; do eval "$line"; done' "$T" < "$T/tell" > "$T/family" 2> "$T/family.err" &
	exec 8> "$T/tell"
	wait_for 10 grep -q . "$T/family"
	FAMILY=$(cat "$T/family")
	# shellcheck disable=SC3045
	ulimit -n "$LIMIT"
	attach -f -p "$FAMILY"
}

tell() {
	echo "$*" >&8
}

# mapper COUNT MIB [DIR]: as a child of the family and another user; returns when it has mapped its libraries. FD 7 closed, it ends.
mapper() {
	mkfifo "$T/mapper.in"
	tell "setpriv --reuid 65534 --regid 65534 --clear-groups ./mapper libmany.so $* < mapper.in > mapper.out 2> mapper.err 8>&- &"
	exec 7> "$T/mapper.in"
	wait_for 20 grep -q mapped "$T/mapper.out"
}

descriptors() {
	local fds=("/proc/$CT/fd"/*)
	echo "${#fds[@]}"
}

few_descriptors() {
	[ "$(descriptors)" -le "$1" ]
}

times_said() { # COUNT WORDS
	[ "$(grep -c -- "$2" "$T/err")" = "$1" ]
}

# One user's program maps more libraries than there are descriptors: another's is traced completely all the same, what was refused is
# counted, and when the first one has ended all is given back.
case_hostile_many_libraries() { # long
	local before probed refused
	LIMIT=256
	family
	before=$(descriptors)
	mapper 300 0
	wait_for 10 grep -q 'programs of user 65534 map too many' "$T/err"
	copy_library "$T/library"
	mkfifo "$T/a.in"
	tell "LD_LIBRARY_PATH=library '$BIN/calls-dl' --wait queries 40 < a.in > a.out 2> a.err 8>&- &"
	exec 6> "$T/a.in"
	wait_for 10 grep -q '^ready' "$T/a.out"
	# shellcheck disable=SC2046
	wait_for 10 has_probe $(sed -n 's/^ready //p' "$T/a.out")
	echo >&6
	wait_for 10 grep -q '^done' "$T/a.out"
	probed=$(grep -c 'libmany.*functions probed' "$T/err")
	few_descriptors 200 || fail "$(descriptors) descriptors of 256 are taken"
	exec 7>&-
	wait_for 20 times_said "$probed" 'libmany.* is not mapped any more'
	wait_for 20 few_descriptors $((before + 30))
	exec 6>&-
	finish INT
	ok_rc
	expect_rows cudaStreamQuery 40
	no_loss
	refused=$(grep -o '"refused_files":[0-9]*' "$T/out" | cut -d: -f2)
	expect "files probed and refused" $((probed + refused)) 300
	[ "$probed" -ge 10 ] || fail "only $probed files were probed"
	says " 0 lost of those seen;( 1 process ran up to [0-9.]+ ms before its calls were seen;)? $refused libraries were not probed: what was called in them is not known"
	exec 8>&-
}

free_mib() {
	[ "$(stat -f -c '%f * %S / 1048576' "/proc/$FAMILY/root$T/memory" | xargs -I{} sh -c 'echo $(({}))')" -ge "$1" ]
}

# A file that is mapped, and has no name any more, is kept as long as it has probes: not longer than its programs.
case_hostile_dead_memory() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	LIMIT=1024
	family unshare -m
	mkdir -m 777 "$T/memory"
	tell "mount -t tmpfs -o size=64m none memory && echo mounted > mounted"
	wait_for 10 grep -q mounted "$T/mounted"
	mapper 10 4 memory
	wait_for 10 times_said 10 'libmany.*functions probed'
	! free_mib 30 || fail "the files take no room"
	exec 7>&-
	wait_for 20 free_mib 62
	finish INT
	ok_rc
	exec 8>&-
}

# What a program says that it has written into the memory of its hooks, and has not: cudatrace would make that memory by reading it, 1 GB here.
case_hostile_hooks_hole() { # undisturbed
	flood 'hole 1048576' --source=hooks --keep-chatty --ring-size 4M -e cudaStreamQuery
	wait_for 20 grep -q 'records of its hooks are invalid' "$T/err"
	memory=$(sed -En 's/^VmHWM:\s*([0-9]+) kB/\1/p' "/proc/$CT/status")
	((memory < 300000)) || fail "$memory kB of memory"
	ended_beside interrupted
	ok_rc 3
	says 'cudatrace: 5 calls, 1 lost of those seen: 1 record arrived malformed; process [0-9]+ \(floods\) lost its hooks: its further calls are not known, from [0-9.]+ s on'
}
