# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# options.sh - cases about options, outputs, and bad input.

# Names of the functions in a JSON trace.
apis() {
	grep '^{"type":"call"' "$T/out" | grep -o '"domain":"[^"]*","name":"[^"]*"' | cut -d'"' -f8 | sort -u | paste -sd' '
}

case_events() {
	ct_json -e memory -- "$CALLS" mix 1 1 1
	expect "-e memory" "$(apis)" "cudaFree cudaMalloc"
	ct_json -e 'cudaMem*' -- "$CALLS" mix 1 1 1
	expect "-e cudaMem*" "$(apis)" "cudaMemcpy cudaMemset"
	ct_json -e copy,cudaFree -- "$CALLS" mix 1 1 1
	expect "-e copy,cudaFree" "$(apis)" "cudaFree cudaMemcpy"
	ct_json -e '!memory' -- "$CALLS" mix 1 1 1
	expect "-e !memory" "$(apis)" "cudaMemcpy cudaMemset"
	ct_json -e 'memory,!cudaFree' -e set -- "$CALLS" mix 1 1 1
	expect "-e memory,!cudaFree -e set" "$(apis)" "cudaMalloc cudaMemset"
}

case_events_unknown() {
	ct -e cudaMalocc -- "$CALLS" queries 1
	[ "$rc" != 0 ] || fail "an unknown name is accepted"
	says 'cudaMalloc'
}

case_failed() {
	ct_json --failed -- "$CALLS" failing 20 3
	expect "all rows" "$(grep -c '^{"type":"call"' "$T/out")" 3
	expect_rows cudaSetDevice 3 '"ret":101,"result":"cudaErrorInvalidDevice"'
}

# Of those that are not known to have succeeded, none; live, counted in the kernel, and of a recording.
case_succeeded() {
	ct_json -z -- "$CALLS" failing 20 3
	expect_rows cudaStreamQuery 20
	expect_rows cudaSetDevice 0
	ct stat -z --json -o "$T/stat.json" -- "$CALLS" failing 20 3
	ok_rc
	expect "stat" "$(stat_of cudaStreamQuery calls) $(grep -c cudaSetDevice "$T/stat.json")" "20 0"
	ct record -o "$T/r.ctrace" -- "$CALLS" failing 20 3
	ct replay -z "$T/r.ctrace"
	expect "rows of the recording" "$(grep -c cudaStreamQuery "$T/out") $(grep -c cudaSetDevice "$T/out")" "20 0"
	ct stat -z --json -o "$T/stat.json" "$T/r.ctrace"
	expect "stat of the recording" "$(stat_of cudaStreamQuery calls) $(grep -c cudaSetDevice "$T/stat.json")" "20 0"
}

# cudaGetLastError and cudaPeekAtLastError return the error of an earlier call: they did not fail, wherever failures are counted.
case_reported_errors() { # long
	ct_json --failed -- "$CALLS" reports 4
	expect "rows of failed calls" "$(grep -c '^{"type":"call"' "$T/out")" 4
	expect_rows cudaSetDevice 4
	ct_json -- "$CALLS" reports 4
	expect_rows cudaGetLastError 4 '"ret":101,"result":"cudaErrorInvalidDevice"'
	ct -c -o "$T/counts" -- "$CALLS" reports 4
	expect "errors of -c" "$(awk '$NF == "total" { print $(NF - 1) }' "$T/counts")" 4
	ct record -o "$T/r.ctrace" -- "$CALLS" reports 4
	ok_rc
	ct stat --json -o "$T/stat.json" -- "$CALLS" reports 4
	ok_rc
	expect "failed, of stat" "$(stat_of cudaSetDevice failed) $(stat_of cudaGetLastError failed) $(stat_of cudaPeekAtLastError failed)" "4 0 0"
	ct stat --json -o "$T/stat.json" "$T/r.ctrace"
	expect "failed, of a recording" "$(stat_of cudaSetDevice failed) $(stat_of cudaGetLastError failed) $(stat_of cudaPeekAtLastError failed)" "4 0 0"
	ct info "$T/r.ctrace"
	grep -q '4 failed' "$T/out" || fail "info: $(grep -i fail "$T/out")"
	ct compare --fail-if 'cudaGetLastError.failed>0' "$T/r.ctrace" "$T/r.ctrace"
	ok_rc 0
	ct compare --fail-if 'failed>4' "$T/r.ctrace" "$T/r.ctrace"
	ok_rc 0
}

case_failing_knob() {
	STANDIN_FAIL=cudaMalloc:700 ct -o "$T/rows" -e cudaMalloc -- "$CALLS" sizes 64
	grep -q -E 'cudaMalloc +size=64 bytes, returned=700 \(cudaErrorIllegalAddress\), ' "$T/rows" ||
		fail "$(tail -n 1 "$T/rows")"
}

case_min_size() {
	ct_json --min-size 1MB -- "$CALLS" sizes 5 999999 1000000 2000000 70
	expect "all rows" "$(grep -c '^{"type":"call"' "$T/out")" 2
}

case_min_duration() {
	STANDIN_DELAY_US=cudaMalloc:5000 ct_json --min-duration 4ms -- "$CALLS" sizes 8 16
	expect_rows cudaMalloc 2
	ct_json --min-duration 10s -- "$CALLS" sizes 8 16
	expect "all rows" "$(grep -c '^{"type":"call"' "$T/out")" 0
}

case_comm() {
	ct_json -f --comm 'call?' -- sh -c "'$CALLS' queries 5; '$BIN/calls-ptsz' driver 4"
	ok_rc
	expect_rows cudaStreamQuery 5
	expect_rows cuMemAlloc_v2 0
	# what other processes left unfinished is theirs
	ct_json -f --comm 'call?' -- sh -c "'$CALLS' longjmp 5; '$BIN/calls-ptsz' longjmp 3"
	ok_rc
	expect_rows cudaStreamAddCallback 5 '"unfinished":true'
	expect "the end record" "$(grep -o '"unfinished":[0-9]*' "$T/out" | tail -n 1)" '"unfinished":5'
	says ', 5 unfinished, 0 lost$'
	# and so are their calls, where the kernel counts
	ct stat -f --comm 'call?' -- sh -c "'$CALLS' longjmp 5; '$BIN/calls-ptsz' longjmp 3; '$BIN/calls-ptsz' queries 100"
	ok_rc
	says '^cudatrace: 10 calls, 5 unfinished, 0 lost$'
	ct stat -f --comm 'call?' -- sh -c "'$CALLS' queries 7; '$BIN/calls-ptsz' longjmp 3"
	ok_rc
	says '^cudatrace: 7 calls, 0 lost$'
}

# A cgroup2 tree: the machine's, or one mounted for the case alone.
cgroup_root() {
	if [ -e /sys/fs/cgroup/cgroup.procs ]; then
		CGROOT=/sys/fs/cgroup
		return
	fi
	CGROOT=$T/cgroup
	mkdir "$CGROOT"
	mount -t cgroup2 none "$CGROOT" 2> /dev/null || skip "no cgroup v2 here"
	trap 'umount -l "$CGROOT"' EXIT
}

case_cgroup() { # machine
	local cg
	cgroup_root
	cg=$CGROOT/cudatrace-case.$$
	mkdir "$cg" 2> /dev/null || skip "cgroups cannot be made here"
	target a queries 11
	target b queries 12
	if ! echo "$PID_a" > "$cg/cgroup.procs" 2> /dev/null; then
		rmdir "$cg"
		skip "processes cannot be moved between cgroups here"
	fi
	attach --cgroup "$cg"
	go a
	go b
	stop a
	stop b
	finish TERM
	rmdir "$cg"
	expect_rows cudaStreamQuery 11
}

# One that is moved elsewhere is traced no more, and again when it comes back.
case_cgroup_left() { # machine
	local cg root
	cgroup_root
	cg=$CGROOT/cudatrace-case.$$
	mkdir "$cg" 2> /dev/null || skip "cgroups cannot be made here"
	target a lines
	if ! echo "$PID_a" > "$cg/cgroup.procs" 2> /dev/null; then
		rmdir "$cg"
		skip "processes cannot be moved between cgroups here"
	fi
	attach --cgroup "$cg"
	go a nowait
	for root in "" ../ ""; do
		echo "$PID_a" > "$cg/${root}cgroup.procs"
		echo $((${#root} + 4)) >&"$FD_a"
		wait_for 5 grep -q "made $((${#root} + 4))" "$T/a.out"
		: > "$T/a.out"
	done
	echo 0 >&"$FD_a"
	stop a
	finish TERM
	rmdir "$cg"
	expect_rows cudaStreamQuery 8
}

case_thread_option() {
	target a threads 4 50 27
	attach -L "$PID_a"
	go a
	stop a
	finish
	expect "rows of the thread" "$(rows cudaStreamQuery "\"tid\":$PID_a,")" 27
	expect "rows of other threads" "$(grep '^{"type":"call"' "$T/out" | grep -v -c "\"tid\":$PID_a,")" 0
}

case_tid_column() {
	ct --tid -o "$T/rows" -- "$CALLS" queries 1
	head -n 1 "$T/rows" | grep -q -E 'PID +TID +THREAD +EVENT' || fail "$(head -n 1 "$T/rows")"
}

case_duration_option() {
	local start ready took waited
	target a queries 1
	start=${EPOCHREALTIME/./}
	attach -d 0.4 -p "$PID_a"
	ready=${EPOCHREALTIME/./} waited=$(cpu_pressure_us)
	finish
	ok_rc
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	((took >= 400)) || fail "ended after $took ms"
	# what others took of the processors is not its own
	took=$(((${EPOCHREALTIME/./} - ready) / 1000)) waited=$((($(cpu_pressure_us) - waited) / 1000))
	((took - waited < 5000)) || fail "ended after $took ms, for $waited of which tasks waited for a processor"
	stop a
}

case_count_option() {
	ct_json -n 7 -- "$CALLS" queries 500
	expect "rows" "$(grep -c '^{"type":"call"' "$T/out")" 7
}

case_append() {
	echo first > "$T/rows"
	ct -A -o "$T/rows" -- "$CALLS" queries 1
	ok_rc
	expect "the first line" "$(head -n 1 "$T/rows")" first
	ct -o "$T/rows" -- "$CALLS" queries 1
	! grep -q first "$T/rows" || fail "-o without -A keeps what was there"
}

case_time_formats() {
	ct --time iso -o "$T/rows" -- "$CALLS" queries 1
	tail -n 1 "$T/rows" | grep -q -E "^$(date -u +%Y-%m-%d)T[0-9:]{8}\.[0-9]{6}Z " || fail "$(tail -n 1 "$T/rows")"
	ct --time us -o "$T/rows" -- "$CALLS" queries 1
	head -n 1 "$T/rows" | grep -q 'TIME(us)' || fail "$(head -n 1 "$T/rows")"
	ct --time unix -o "$T/rows" -- "$CALLS" queries 1
	awk -v now="$(date +%s)" 'NR == 2 && $1 ~ /^[0-9]+[.][0-9]+$/ && $1 <= now + 1 && $1 > now - 100 { ok = 1 } END { exit !ok }' \
		"$T/rows" || fail "$(tail -n 1 "$T/rows")"
	# what the rows are apart adds up to the time of the last one
	ct record -o "$T/r.ctrace" -- "$CALLS" mix 5 5 5
	ct replay --time us "$T/r.ctrace"
	awk 'NR == 2 { first = $1 } { last = $1 } END { printf "%.0f\n", last - first }' "$T/out" > "$T/apart"
	ct replay -r "$T/r.ctrace"
	head -n 1 "$T/out" | grep -q '^TIME(+ms) ' || fail "$(head -n 1 "$T/out")"
	expect "the first time" "$(awk 'NR == 2 { print $1 }' "$T/out")" 0.000
	awk -v want="$(cat "$T/apart")" 'NR > 1 { us += $1 * 1000; n++ } END { exit !(us <= want && us >= want - n) }' "$T/out" ||
		fail "-r adds up to $(awk 'NR > 1 { us += $1 * 1000 } END { print us }' "$T/out") us, not $(cat "$T/apart")"
	ct -o "$T/rows" -- "$CALLS" queries 1
	head -n 1 "$T/rows" | grep -q -E '^TIME\(ms\) +PROCESS +PID +EVENT +DETAILS$' || fail "$(head -n 1 "$T/rows")"
}

case_counts() {
	local by
	ct -c -o "$T/rows" -- "$CALLS" mix 21 13 0
	ok_rc
	grep -q -E ' 22 .*cudaMalloc$' "$T/rows" || fail "$(head -n 5 "$T/rows")"
	! grep -q 'returned=' "$T/rows" || fail "-c prints rows"
	for by in calls:cudaMalloc name:cudaFree; do
		ct -c -S "${by%:*}" -o "$T/rows" -- "$CALLS" mix 21 13 0
		expect "the first by ${by%:*}" "$(awk 'NR == 3 { print $NF }' "$T/rows")" "${by#*:}"
	done
	ct -C -o "$T/rows" -- "$CALLS" mix 21 13 0
	grep -q -E ' 13 .*cudaMemcpy$' "$T/rows" || fail "$(tail -n 5 "$T/rows")"
	expect "rows" "$(grep -c 'cudaMemcpy .*returned=' "$T/rows")" 13
}

case_contradictions() {
	ct -p 1 -- /bin/true
	[ "$rc" != 0 ] || fail "-p and CMD together are accepted"
	expect "sentences" "$(grep -c . "$T/err")" 1
	ct --format yaml -- /bin/true
	[ "$rc" != 0 ] || fail "an unknown format is accepted"
	ct --no-such-option
	[ "$rc" != 0 ] || fail "an unknown option is accepted"
}

case_no_such_pid() {
	ct -p 4194303
	[ "$rc" != 0 ] || fail "a pid that is not there is accepted"
	says '4194303'
	expect "sentences" "$(grep -c . "$T/err")" 1
}

# A process without CUDA is waited for, and that is said.
case_pid_without_cuda() {
	sleep 30 &
	local pid=$!
	attach -p "$pid"
	says 'not loaded|no CUDA|yet|wait'
	kill "$pid"
	finish
	ok_rc
}

case_no_root() {
	id nobody > /dev/null 2>&1 || skip "no user nobody"
	command -v setpriv > /dev/null || skip "no setpriv"
	# shellcheck disable=SC2153
	cp "$ROOT/cudatrace" "$T/cudatrace" && chmod 755 "$T/cudatrace"
	rc=0
	setpriv --reuid nobody --clear-groups "$T/cudatrace" -d 1 > "$T/out" 2> "$T/err" || rc=$?
	[ "$rc" != 0 ] || fail "status 0 without any privilege"
	says 'sudo|CAP_BPF'
	expect "sentences" "$(grep -c . "$T/err")" 1
}

case_unwritable_output() {
	ct -o /nonexistent/dir/file -- "$CALLS" queries 1
	[ "$rc" != 0 ] || fail "an output that cannot be made is accepted"
	says '/nonexistent/dir/file'
}

case_full_disk() {
	ct -o /dev/full -- "$CALLS" queries 200000
	[ "$rc" != 0 ] || fail "status 0 although nothing could be written"
	says 'no space left'
	says 'bytes'
	unshare -m true 2> /dev/null || return 0
	mkdir "$T/small"
	rc=0
	unshare -m bash -c "mount -t tmpfs -o size=64k none '$T/small' && exec timeout 150 '$CUDATRACE' --keep-chatty \
		-o '$T/small/rows' -- '$CALLS' queries 20000" > "$T/out" 2> "$T/err" || rc=$?
	check_alive
	[ "$rc" != 0 ] || fail "status 0 on a full disk"
	says 'no space left'
	rc=0
	unshare -m bash -c "mount -t tmpfs -o size=64k none '$T/small' && timeout 150 '$CUDATRACE' record --keep-chatty \
		-o '$T/small/r.ctrace' -- '$CALLS' queries 100000; rc=\$?; '$CUDATRACE' info '$T/small/r.ctrace' > '$T/info'; exit \$rc" \
		> "$T/out" 2> "$T/err" || rc=$?
	check_alive
	ok_rc 1
	expect "sentences" "$(grep -c . "$T/err")" 1
	says '^cudatrace: error: writing to .*/r.ctrace failed after [0-9]* bytes: No space left on device; what is in it can be read, '
	grep -q '^calls ' "$T/info" || fail "it cannot be read: $(cat "$T/info")"
}

# An output that takes nothing: one sentence, which is true, and no count of rows that nobody got.
case_full_output_said_once() { # long
	local how
	for how in "" "--format json" "--format csv" "--format chrome" "--format perfetto" "--format html" folded stat mem advise; do
		# shellcheck disable=SC2086
		ct $how -o /dev/full -- "$CALLS" mix 2 2 2
		ok_rc 1
		expect "$how" "$(cat "$T/err")" \
			"cudatrace: error: writing to /dev/full failed after 0 bytes: No space left on device; tracing stopped"
	done
	ct stat --save /dev/full -o "$T/stat" -- "$CALLS" queries 2
	ok_rc 1
	says '^cudatrace: error: writing to /dev/full failed: No space left on device$'
	grep -q cudaStreamQuery "$T/stat" || fail "what is printed depends on the file of --save"
}

red_rows() { # ENVIRONMENT... : how many rows are red on a terminal
	env -u NO_COLOR "$@" script -qec "'$CUDATRACE' -- '$CALLS' failing 0 2" /dev/null < /dev/null | grep -c $'\e\\[31m'
}

# Colours: on a terminal that is known and can, unless NO_COLOR says anything; never in a pipe or a file.
case_colors() { # long
	command -v script > /dev/null || skip "no script(1)"
	expect "a terminal" "$(red_rows TERM=xterm)" 2
	expect "NO_COLOR of nothing" "$(red_rows TERM=xterm NO_COLOR=)" 2
	expect "NO_COLOR" "$(red_rows TERM=xterm NO_COLOR=1)" 0
	expect "dumb" "$(red_rows TERM=dumb)" 0
	expect "TERM of nothing" "$(red_rows TERM=)" 0
	expect "no TERM" "$(red_rows -u TERM)" 0
	TERM=xterm timeout 150 "$CUDATRACE" -- "$CALLS" failing 0 2 2>&1 | grep -c $'\e' > "$T/n"
	expect "a pipe" "$(cat "$T/n")" 0
	ct --color always -o "$T/rows" -- "$CALLS" failing 0 2
	expect "always" "$(grep -c $'\e\\[31m' "$T/rows")" 2
}

# A limit of the size of files (ulimit -f, in KiB) is an error of the output as a full disk is; the program has its signals as ever.
case_file_size_limit_said_once() { # long
	local how name
	for how in "--format json" "--format nsys-sqlite" record; do
		rm -f "$T"/rows*
		# shellcheck disable=SC2086
		(ulimit -f 4 && ct $how --keep-chatty -o "$T/rows" -- "$CALLS" queries 20000 && echo "$rc" > "$T/rc")
		rc=$(cat "$T/rc")
		ok_rc 1
		expect "sentences of $how" "$(grep -c . "$T/err")" 1
		says '^cudatrace: error: writing '
	done
	for name in XFSZ PIPE INT; do
		rc=0
		timeout 150 "$CUDATRACE" -o "$T/rows" -- bash -c "kill -$name \$\$" 2> "$T/err" || rc=$?
		expect "status of a program that SIG$name ends" "$rc" $((128 + $(kill -l "$name")))
	done
}

# Standard descriptors that are closed: nothing is taken for them that is opened later, and the program has them closed too.
case_closed_descriptors() { # machine
	local want how rc=0
	timeout 150 "$CUDATRACE" --format json -o "$T/out" -- "$BIN/calls" queries 3 2>&- || rc=$?
	expect status "$rc" 0
	expect_rows cudaStreamQuery 3
	! grep -q -a '^cudatrace' "$T/out" || fail "messages in the rows: $(grep -a '^cudatrace' "$T/out")"
	timeout 150 "$CUDATRACE" --format json -o "$T/out" -- "$CALLS" queries 3 <&- >&- 2>&- || rc=$?
	expect status "$rc" 0
	expect_rows cudaStreamQuery 3
	# what it finds open is what it would without us: nothing but what ls opens itself
	want=$(bash -c 'ls /proc/self/fd' 3>&2 2> /dev/null <&- | tr '\n' ' ')
	expect descriptors "$(timeout 150 "$CUDATRACE" -o "$T/rows" -- bash -c 'ls /proc/self/fd' 3>&2 2> /dev/null <&- | tr '\n' ' ')" "$want"
	for how in "" stat list doctor; do
		rc=0
		# shellcheck disable=SC2086
		timeout 150 "$CUDATRACE" $how > "$T/out" 2> "$T/err" >&- || rc=$?
		expect "status of '$how' with nowhere to print" "$rc" 1
		expect "sentences of '$how'" "$(grep -c '^cudatrace: error: cannot write to standard output' "$T/err")" 1
	done
	# one that can only be read is none either
	rc=0
	timeout 150 "$CUDATRACE" -o - -- "$CALLS" queries 1 1< /dev/null 2> "$T/err" || rc=$?
	expect status "$rc" 1
	says '^cudatrace: error: cannot write to standard output: Bad file descriptor$'
}

# What a message quotes does not steer the terminal, in whatever encoding it tries to.
case_hostile_words_in_messages() {
	ct -o $'/nonexistent/a\e[31mb\xc2\x9b31mc\x9bd\xe2\x80\xaee\xc3\xa9f\x7f/g'
	ok_rc 1
	expect message "$(cat "$T/err")" \
		'cudatrace: error: cannot write to /nonexistent/a\033[31mb\302\23331mc\233d\342\200\256e'$'\xc3\xa9''f\177/g: No such file or directory'
}

# A name with line ends makes no line of its own, wherever it is quoted: none that could pass for a message of cudatrace.
case_hostile_lines_in_messages() {
	local bad=$'x\ncudatrace: 0 lost\ny' how n=0
	local -a words
	mkdir "$T/$bad"
	cp "$STANDIN/libcudart.so.13" "$T/$bad"
	cp tests/traces/calls.ctrace "$T/$bad/r"
	head -c 300 tests/traces/calls.ctrace > "$T/$bad/cut"
	cp tests/traces/calls.ctrace "$T/r"
	while read -r how; do
		read -ra words <<< "$how"
		words=("${words[@]//@/$T/$bad}")
		words=("${words[@]//=/$bad}")
		words=("${words[@]/#late/$BIN/late}")
		ct "${words[@]}"
		n=$((n + 1))
		[ -s "$T/err" ] || fail "'$how' says nothing"
		! grep -v '^cudatrace: ' "$T/err" || fail "'$how' says a line that does not begin as a message: $(cat "$T/err")"
		! grep -q '^cudatrace: 0 lost' "$T/err" || fail "'$how' says what the name says: $(cat "$T/err")"
		grep -qF 'x\012cudatrace: 0 lost\012y' "$T/err" || fail "'$how' does not quote the name: $(cat "$T/err")"
	done <<- 'END'
		--=
		=
		--format = -p 1
		-e = -- true
		-p 1 -d =
		-o @/none/file -p 1 -d 0.1
		-- @/none
		-- @
		-v -o /dev/null -- late @/libcudart.so.13 1
		replay @/none
		replay @/cut
		replay @
		record -o @ -- true
		record -o @/out -- true
		stat @/none
		stat --by = @/r
		stat --save @ @/r
		mem @/none
		advise --rule = @/r
		compare @/none @/r
		export --to = @/r
		export --to nsys-sqlite -o @ @/r
		export --to parquet -o @ @/r
		merge -o @/none/x @/r @/r
		merge -o /dev/null @/cut @/none
		info @/none
		stuck @/none
		serve --web-config @/none
	END
	expect "ways" "$n" 28
	CUDATRACE_DEBUG=$bad ct replay "$T/r"
	expect "a word of CUDATRACE_DEBUG" "$(grep -vc '^cudatrace: error: CUDATRACE_DEBUG' "$T/err")" 0
}

# A reader that has seen enough, as head has, is no error: the trace ends with status 0, without a word.
case_stdout_closed() { # long
	local how
	target a queries 1000000000
	go a nowait
	for how in "" "--format json" "--format csv" stat "top --batch -i 100ms"; do
		# shellcheck disable=SC2086
		timeout 150 "$CUDATRACE" $how -d 1 -p "$PID_a" 2> "$T/err" | head -n 1 > "$T/out"
		rc=${PIPESTATUS[0]}
		ok_rc
		[ -s "$T/out" ] || fail "nothing is printed by '$how'"
		! grep -q -E 'error:|warning:' "$T/err" || fail "'$how' says $(cat "$T/err")"
	done
	kill -KILL "$PID_a"
}

anon_kb() {
	awk '/^RssAnon/ { print $2 }' "/proc/$CT/status"
}

anon_above() {
	(($(anon_kb) > $1))
}

# A reader that stalls, as a disk may, while three programs, one after the other, send 10 MiB each: what waits goes to memory,
# and nothing is lost. No time is in it: each waits for so much of what the one before it sent to have been moved (all that is
# above a quarter of the ring's 16 MiB will be) that the ring has room for its own.
stalled_reader() {
	local name before reader reader_pid
	for name in a b c; do
		target "$name" queries "$1"
	done
	mkfifo "$T/slow"
	exec {reader}<> "$T/slow"
	"${BACKGROUND[@]}" "$CUDATRACE" -v --keep-chatty --strict "${@:2}" -p "$PID_a,$PID_b,$PID_c" > "$T/slow" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	for name in a b c; do
		before=$(anon_kb)
		go "$name"
		wait_for 15 anon_above $((before + 5500))
	done
	cat "$T/slow" > "$T/out" {reader}>&- &
	reader_pid=$!
	wait_for 10 test -s "$T/out"
	exec {reader}>&-
	for name in a b c; do
		stop "$name"
	done
	finish
	ok_rc
	wait_for 10 ended "$reader_pid"
}

case_stalled_reader() { # long
	stalled_reader 164000 --format json
	expect_rows cudaStreamQuery 492000
	no_loss
	says "492000 calls, 0 lost"
	# in the order in which they were made
	grep -F '"name":"cudaStreamQuery"' "$T/out" | grep -o '"start_ns":[0-9]*' | cut -d: -f2 | sort -n -C || fail "out of order"
}

# The same, and the reader never comes back: an interrupt ends it all the same, whatever waits.
case_stalled_reader_interrupted() { # long
	local name how reader
	for name in a b c; do
		case $name in
		a) how="--format json" ;;
		b) how="--format perfetto" ;;
		c) how=record ;;
		esac
		target "$name" queries 300000
		mkfifo "$T/slow.$name"
		exec {reader}<> "$T/slow.$name"
		not_ready
		# shellcheck disable=SC2086
		"${BACKGROUND[@]}" "$CUDATRACE" $how -v --keep-chatty -o "$T/slow.$name" -p "$(eval "echo \$PID_$name")" \
			> /dev/null 2> "$T/err" < /dev/null {reader}>&- &
		CT=$!
		wait_for 10 ready_or_gone
		go "$name"
		finish INT
		ok_rc 1
		says "^cudatrace: error: the reader of $T/slow.$name does not read: (tracing|recording) stopped after [0-9]* bytes, the rest is dropped$"
		expect "sentences at the end" "$(sed '1,/cudatrace: ready/d' "$T/err" | grep -c .)" 1
		exec {reader}>&-
	done
}

ended_by_int() {
	kill -INT "$CT"
	ended "$CT"
}

# A reader that is slow, and much to be written to it when the first interrupt ends the trace: the second gives it up.
case_slow_reader_interrupted_twice() { # long
	target a queries 400000
	mkfifo "$T/slow"
	(while dd bs=64k count=1 of=/dev/null status=none; do sleep 0.05; done) < "$T/slow" &
	"${BACKGROUND[@]}" "$CUDATRACE" --format json -v --keep-chatty -o "$T/slow" -p "$PID_a" > /dev/null 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	go a
	wait_for 10 ended_by_int
	rc=0
	wait "$CT" || rc=$?
	check_alive
	ok_rc 1
	says '^cudatrace: error: a second signal: writing to .*/slow stopped after [0-9]* bytes, the rest is dropped$'
}

case_list() {
	ct list 'cudaMalloc*'
	ok_rc
	grep -q -w cudaMalloc "$T/out" || fail "no cudaMalloc"
	grep -q -i memory "$T/out" || fail "no class"
	! grep -q -w cudaFree "$T/out" || fail "the glob is not heeded"
}

case_schema() {
	ct schema
	ok_rc
	command -v python3 > /dev/null || skip "no python3"
	python3 -m json.tool < "$T/out" > /dev/null || fail "not JSON"
}

case_doctor() { # undisturbed
	target a queries 1
	ct doctor -p "$PID_a"
	ok_rc
	grep -q libcudart "$T/out" || fail "the library is not named: $(tail -n 3 "$T/out")"
	# functions tell the least version
	expect "version" "$(grep -c '^    CUDA       [0-9]*\.[0-9] or later (from its symbols)$' "$T/out")" "$(grep -c 'from its symbols)$' "$T/out")"
	grep -q 'or later (from its' "$T/out" || fail "no version: $(cat "$T/out")"
	stop a
	# a verdict for each feature, of who asks
	expect "features" "$(sed -n '/^features$/,/^$/s/^  \(.\{14\}\) .*/\1/p' "$T/out" | sed 's/ *$//')" \
		"$(printf '%s\n' calls 'kernel names' 'stacks (-k)' 'Python stacks' --source=hooks --gpu --counters)"
	expect "verdicts" "$(sed -n '/^features$/,/^$/p' "$T/out" | grep -cE '^  .{14} (yes|no|only)(,|;|:|$| with )')" 7
	grep -qx '  calls          yes' "$T/out" || fail "no calls: $(grep -A 8 '^features' "$T/out")"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$CUDATRACE" doctor > "$T/out" 2> "$T/err"
	expect "status of a user who may not" $? 1
	grep -q '^  calls          no: privileges are missing (above): run it as root' "$T/out" || fail "calls of a user: $(grep -A 8 '^features' "$T/out")"
	[ "$(uname -m)" != x86_64 ] || grep -qx '  kernel names   only with --source=hooks' "$T/out" || fail "names of a user: $(grep -A 8 '^features' "$T/out")"
	[ "$(uname -m)" != x86_64 ] || grep -qx '  stacks (-k)    only with --source=hooks' "$T/out" || fail "stacks of a user: $(grep -A 8 '^features' "$T/out")"
	# what is not possible has something that can be done
	expect "verdicts without advice" "$(sed -n '/^features$/,/^$/p' "$T/out" | grep -E '^  .{14} no' | grep -cvE ': (run|use|give|do) |: (use|load)|or load it')" 0
	ct doctor --probe-kind multi
	grep -q -E '^return probes +CUDA called by a coroutine, .*--no-return' "$T/out" || fail "no word about return probes: $(cat "$T/out")"
}

# Which source suits a process, and why the other does not.
case_doctor_sources() { # undisturbed
	[ "$(uname -m)" = x86_64 ] || skip "hooks are for x86-64"
	target a queries 1
	ct doctor -p "$PID_a"
	ok_rc
	grep -q '^  probes       yes' "$T/out" || fail "probes: $(grep '^  probes' "$T/out")"
	grep -q '^  hooks        yes, by --source=hooks' "$T/out" || fail "hooks: $(grep '^  hooks' "$T/out")"
	kill -STOP "$PID_a"
	wait_for 5 grep -q '^State:.T' "/proc/$PID_a/status"
	ct doctor -p "$PID_a"
	ok_rc
	kill -CONT "$PID_a"
	grep -q '^  hooks        no: .*is stopped' "$T/out" || fail "a stopped one: $(grep '^  hooks' "$T/out")"
	expect "messages" "$(cat "$T/err")" ""
	stop a
	# without the rights that probes need
	chmod 755 "$T"
	mkfifo -m 666 "$T/in"
	exec 9<> "$T/in"
	setpriv --reuid 65534 --regid 65534 --clear-groups cat "$T/in" &
	wait_for 5 grep -q '^Name:.cat' "/proc/$!/status"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$CUDATRACE" doctor -p $! > "$T/out" 2> "$T/err" && fail "it says that all is well"
	grep -q '^  probes       no: ' "$T/out" || fail "probes without rights: $(grep '^  probes' "$T/out"); $(cat "$T/err")"
	gcc -static -o "$T/static" -x c - <<< 'int main(void) { return getchar(); }' 2> /dev/null || return 0
	"$T/static" < "$T/in" &
	wait_for 5 grep -q static "/proc/$!/maps"
	ct doctor -p "$!"
	grep -q '^  hooks        no: .*static program' "$T/out" || fail "a static one: $(grep '^  hooks' "$T/out")"
}

# Probes of kind perf leave out two classes, which is said; a trace of others has nothing to say.
case_probe_kind_leaves_out() {
	ct_json --strict --probe-kind perf -e cudaMalloc,query -- "$CALLS" mix 20 0 1
	ok_rc 3
	expect_rows cudaMalloc 21
	says '; [1-9][0-9]+ functions have no probes, because probes of this kind leave out queries and internal functions: calls of them are not known$'
	tail -n 1 "$T/out" | grep -Eq '"not_seen":\[\{"reason":"left_out","layer":"calls","state":"refused","count":[1-9][0-9]+\}\]' || fail "$(tail -n 1 "$T/out")"
	ct_json --strict --probe-kind perf -e cudaMalloc -- "$CALLS" mix 20 0 1
	ok_rc
	no_loss
}

# A query that is called in a tight loop is muted, and that is said; kept on request.
case_throttled_muted() {
	ct_json -- "$CALLS" devices 2000000
	ok_rc
	grep -q '"muted":\["cudaGetDevice' "$T/out" || fail "not muted: $(tail -n 1 "$T/out" | head -c 600)"
	says 'keep-chatty'
}

# Muting re-links only the group of the queries, and loses no call of any other function, not even of one that is in it.
case_throttled_mute_loses_nothing() {
	local name want
	ct_json -E STANDIN_DELAY_US=cudaGetDeviceCount:300 -- "$BIN/mute" 1500
	ok_rc
	grep -q '"muted":\["cudaGetDevice' "$T/out" || fail "not muted: $(tail -n 1 "$T/out" | head -c 600)"
	while read -r name want; do
		expect_rows "$name" "$want" '"ret":0'
	done < "$T/prog.out"
	no_loss
}

# What was not recorded is known in number: a loop of 300 000 is short enough for each call to be counted, live and stored, and
# nowhere is it said that nothing is missing.
case_throttled_counted() { # long
	local how
	ct stat --json -o "$T/stat.json" -- "$CALLS" devices 300000
	ok_rc
	muted_holds stat "$T/stat.json" cudaGetDevice 300000
	ct_json -- "$CALLS" devices 300000
	ok_rc
	muted_holds json "$T/out" cudaGetDevice 300000
	ct record -o "$T/loop.ctrace" -- "$CALLS" devices 300000
	ok_rc
	says 'not shown: (~|>=)?[0-9]+.* calls of cudaGetDevice'
	for how in "stat --json" "replay --format json"; do
		# shellcheck disable=SC2086
		ct $how -o "$T/stored" "$T/loop.ctrace"
		ok_rc
		muted_holds "${how%% *}" "$T/stored" cudaGetDevice 300000
	done
	ct info "$T/loop.ctrace"
	grep -Eq '^muted +(~|>=)?[0-9]+.* calls have no records, of cudaGetDevice$' "$T/out" || fail "info: $(grep -A1 ^calls "$T/out")"
	ct replay -c "$T/loop.ctrace"
	grep -Eq ' ((~|>=)?[0-9]+) +cudaGetDevice' "$T/out" || fail "replay -c: $(cat "$T/out")"
}

# Probes of these kinds cannot be put on again: what is known is a lower bound, and no number is given as if all calls were in it.
case_throttled_without_windows() { # long
	ct record --probe-kind tracefs -o "$T/loop.ctrace" -- "$CALLS" devices 3000000
	ok_rc
	says 'not shown: >=[0-9]+ \(at most [0-9]+\) calls of cudaGetDevice'
	ct replay --format json -o "$T/stored" "$T/loop.ctrace"
	muted_holds json "$T/stored" cudaGetDevice 3000000
	ct stat --probe-kind tracefs --json -o "$T/stat.json" -- "$CALLS" devices 3000000
	grep -q '"at_least":' "$T/stat.json" || fail "no lower bound: $(head -c 600 "$T/stat.json")"
	muted_holds stat "$T/stat.json" cudaGetDevice 3000000
}

# Each export says how many calls it does not show.
case_throttled_exported() {
	local to word
	ct record -o "$T/loop.ctrace" -- "$CALLS" devices 200000
	ok_rc
	while read -r to word; do
		ct export --to "$to" -o "$T/x.$to" "$T/loop.ctrace"
		grep -aq "$word" "$T/x.$to" || fail "$to does not say it"
	done <<- 'E'
		csv ^muted,
		chrome "cat":"muted"
		perfetto calls without slices
		otlp-json "name":"muted cudaGetDevice"
		html "muted":".* calls of cudaGetDevice"
		nsys-sqlite cudaGetDevice: [0-9]* calls were counted in windows
	E
	ct advise "$T/loop.ctrace"
	grep -q '^Counted in short windows and not looked at one by one: .* calls\.' "$T/out" || fail "advise: $(cat "$T/out")"
}

# A training step's queries: the estimate's own interval holds the truth, launches are exact, live and stored.
case_throttled_estimated() { # long
	local want
	ct stat --json -o "$T/stat.json" -- "$BIN/step" 4000
	ok_rc
	while read -r name want; do
		[ "$name" = median ] || muted_holds stat "$T/stat.json" "$name" "$want"
	done < "$T/out"
	ct record -o "$T/step.ctrace" -- "$BIN/step" 4000
	ok_rc
	mv "$T/out" "$T/want"
	ct stat --json -o "$T/stat.json" "$T/step.ctrace"
	while read -r name want; do
		[ "$name" = median ] || muted_holds stat "$T/stat.json" "$name" "$want"
	done < "$T/want"
}

# A thread that was inside of a query when the probes came back: the driver's call in it is not taken for one of the program's own.
# The program's own are estimated.
case_throttled_inside() { # long
	local mode name want
	for mode in slow direct; do
		ct stat --json -o "$T/stat.json" -- "$BIN/nests" $mode 4000
		ok_rc
		says 'counted in windows: cudaGetDevice'
		while read -r name want; do
			estimate_holds "$T/stat.json" "$name" "$want"
		done < "$T/out"
	done
}

# estimate_holds FILE FUNCTION TRUTH: an estimate of a report holds the truth, give or take six times its error (which is estimated from few
# windows itself); one of none says none.
estimate_holds() {
	local said
	said=$(
		python3 - "$@" <<- 'E'
		import json, sys
		path, name, truth = sys.argv[1], sys.argv[2], int(sys.argv[3])
		d = json.load(open(path))
		calls, error = ([(r["calls"], r.get("error", 0)) for s in ("runtime", "driver") for r in d[s] if r["name"] == name] or [(0, 0)])[0]
		print(name, calls, "+-", error, "of", truth)
		sys.exit(abs(calls - truth) > 6 * error if truth else calls + error > 0)
		E
	) || fail "$said"
}

# muted_holds HOW FILE FUNCTION TRUTH: the number of calls in a report (stat) or in JSON lines is the truth, give or take three times
# the error that it says itself; of a launch or a copy it is the truth.
muted_holds() {
	local said
	said=$(
		python3 - "$@" 2>&1 <<- 'E'
		import json, sys
		how, path, name, truth = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
		if how == "stat":
		    d = json.load(open(path))
		    rows = [r for s in ("runtime", "driver") for r in d[s] if r["name"] == name]
		    calls, error = sum(r["calls"] for r in rows), sum(r.get("error", 0) for r in rows)
		else:
		    rows = [json.loads(line) for line in open(path)]
		    muted = [r for r in rows if r["type"] == "muted" and r["name"] == name]
		    calls = sum(r["type"] == "call" and r["name"] == name for r in rows) + sum(r["counted"] + r["estimated"] for r in muted)
		    error = sum(r["error"] for r in muted)
		if error and not name.startswith("cudaGet"):
		    sys.exit(f"{name} is an estimate")
		    if muted and sum(r["estimated"] - r["below"] for r in muted) + calls - sum(r["estimated"] for r in muted) > truth:
		        sys.exit(f"{name}: at least {calls}, where {truth} were made: {muted}")
		if abs(calls - truth) > 6 * error:
		    sys.exit(f"{name}: {calls} +- {error}, where {truth} were made")
		E
	) || fail "$1: $said"
}

case_throttled_kept() {
	local n
	n=$(random 40000 60000)
	ct_json --keep-chatty -- "$CALLS" devices "$n"
	expect_rows cudaGetDevice "$n"
	ct_json -e cudaGetDevice -- "$CALLS" devices "$n"
	expect_rows cudaGetDevice "$n"
}
