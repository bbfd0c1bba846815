# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2016
# output.sh - where rows go: a file, a command, standard output, or standard error when a program is started, whose own
# standard output is the program's.

# What the program prints is all that is on standard output; what is for people goes to standard error, as strace's rows do.
case_output_with_a_program() { # long
	local how head
	while IFS='|' read -r how head; do
		# shellcheck disable=SC2086
		ct $how -- sh -c "echo mine; exec '$CALLS' mix 2 1 1"
		ok_rc
		expect "standard output of '$how'" "$(cat "$T/out")" mine
		grep -q -E "$head" "$T/err" || fail "'$how' prints no '$head' to standard error: $(head -n 3 "$T/err")"
		# and on purpose where the user says
		# shellcheck disable=SC2086
		ct $how -o - -- sh -c "exec '$CALLS' mix 2 1 1"
		ok_rc
		grep -q -E "$head" "$T/out" || fail "'$how -o -' prints no '$head' to standard output: $(head -n 3 "$T/out")"
		! grep -q -E "$head" "$T/err" || fail "'$how -o -' prints to standard error too"
	done <<- 'END'
		|^TIME\(ms\) +PROCESS +PID +EVENT
		-c|^ *% time
		-C|^TIME\(ms\)
		stat|^ *FUNCTION|cudaMemcpy
		mem|^.*memory
		advise|finding
	END
	ct --format json -o - -- "$CALLS" queries 3
	ok_rc
	expect_rows cudaStreamQuery 3
}

# A process that runs has its own terminal: rows go to standard output.
case_output_of_a_process() {
	target a queries 3
	attach_stdout
	go a
	stop a
	finish
	ok_rc
	expect "rows" "$(grep -c 'cudaStreamQuery' "$T/out")" 3
	! grep -q cudaStreamQuery "$T/err" || fail "rows on standard error"
}

attach_stdout() {
	not_ready
	"${BACKGROUND[@]}" "$CUDATRACE" -v -p "$PID_a" > "$T/out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
}

# -o '|COMMAND': all rows, read to their end before cudatrace ends.
case_output_to_a_command() {
	ct --format json -o "|sleep 0.3; cat > '$T/rows'" -- "$CALLS" queries 5
	ok_rc
	expect "standard output" "$(cat "$T/out")" ""
	mv "$T/rows" "$T/out"
	expect_rows cudaStreamQuery 5
	no_loss
	ct --format csv -o "|grep -c cudaStreamQuery" -- "$CALLS" queries 5
	expect "what the command prints" "$(cat "$T/out")" 5
	# each command that prints
	cp "$ROOT/tests/traces/calls.ctrace" "$T/r.ctrace"
	local how
	for how in replay "replay --format json" stat "stat --json" "mem --no-stack" advise "export --to csv"; do
		# shellcheck disable=SC2086
		ct $how -o - "$T/r.ctrace"
		cp "$T/out" "$T/want"
		# shellcheck disable=SC2086
		ct $how -o "|cat > '$T/got'" "$T/r.ctrace"
		ok_rc
		cmp "$T/want" "$T/got" || fail "$how: what the command got differs"
	done
	# a name that ends in .gz is the command's own matter
	ct replay -o "|cat > $T/rows.gz" "$T/r.ctrace"
	grep -q '^TIME' "$T/rows.gz" || fail "what a command reads is compressed"
}

# How it ended is said, and makes the status; the program's status is kept where it ended well, or has seen enough.
case_output_command_status() {
	ct -o '|cat > /dev/null; exit 7' -- "$CALLS" queries 1
	ok_rc 1
	says "^cudatrace: error: the command of -o, 'cat > /dev/null; exit 7', failed with status 7$"
	expect "sentences" "$(grep -c error: "$T/err")" 1
	ct -o '|cat > /dev/null; kill -TERM $$' -- "$CALLS" queries 1
	ok_rc 1
	says "was killed by signal 15 \(Terminated\)$"
	ct -o '|/nonexistent/reader' -- "$CALLS" queries 100000
	ok_rc 1
	says "^cudatrace: error: the command of -o, '/nonexistent/reader', failed with status 127$"
	ct -o '|cat > /dev/null' -- "$CALLS" status 17
	ok_rc 17
	ct --format json -o '|head -n 1' -p $$ -d 0.1
	ok_rc
	expect "lines" "$(wc -l < "$T/out")" 1
	expect "messages" "$(grep -c error: "$T/err")" 0
	# one that prints into a pipe whose reader has gone
	timeout 150 "$CUDATRACE" replay -o '|cat' "$ROOT/tests/traces/calls.ctrace" 2> "$T/err" | true
	expect status "${PIPESTATUS[0]}" 0
	expect "messages" "$(cat "$T/err")" ""
}

# Beside the helper of the counters and a program, whose ends are waited for too.
case_output_command_beside_others() {
	LD_LIBRARY_PATH=$STANDIN/gpu ct --counters -i 1ms --format json -o "|cat > '$T/rows'; exit 3" -- bash -c "'$CALLS' queries 2 & '$CALLS' queries 3; wait; exit 4"
	ok_rc 1
	says 'failed with status 3$'
	mv "$T/rows" "$T/out"
	expect_rows cudaStreamQuery 5
}

# A SIGINT that is typed reaches the whole group: it ends the trace, and the command reads the rest of it.
case_output_command_interrupted() {
	target a queries 4
	"${BACKGROUND[@]}" setsid "$CUDATRACE" -v --format json -o "|cat > '$T/out'" -p "$PID_a" > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	go a
	kill -INT -- "-$CT"
	finish
	ok_rc
	expect_rows cudaStreamQuery 4
	no_loss
	stop a
}

# The command runs as the user who started cudatrace, whatever privileges the file of cudatrace gave.
case_output_command_user() {
	command -v setpriv > /dev/null || skip "no setpriv"
	setpriv --ruid 65534 --rgid 65534 --clear-groups "$CUDATRACE" replay -o '|id -u; id -g; id -ru; cat > /dev/null' "$ROOT/tests/traces/calls.ctrace" > "$T/out" 2> "$T/err" ||
		fail "$(cat "$T/err")"
	expect "ids" "$(tr '\n' ' ' < "$T/out")" "65534 65534 65534 "
}

# A reader that reads nothing until the program has ended delays nothing of it: no fork, no program that is executed, no library that is
# loaded. When it reads it gets everything.
case_output_reader_waits() {
	local source
	for source in probes 'probes -k' hooks; do
		rm -f "$T/go" "$T/done" "$T/rows"
		not_ready
		# shellcheck disable=SC2086
		"${BACKGROUND[@]}" "$CUDATRACE" --source=$source --keep-chatty --format json -o "|until [ -e '$T/go' ]; do sleep 0.05; done; cat > '$T/rows'" -- \
			sh -c "'$CALLS' queries 30000; '$BIN/late' '$STANDIN/libcudart.so.13' 3; '$CALLS' queries 5; touch '$T/done'" > "$T/prog" 2> "$T/err" < /dev/null &
		CT=$!
		wait_for 10 test -e "$T/done"
		touch "$T/go"
		finish
		ok_rc
		mv "$T/rows" "$T/out"
		expect_rows cudaStreamQuery 30008
		no_loss
		grep -q '^cudatrace: 30008 calls, 0 lost$' "$T/err" || fail "$source: $(cat "$T/err")"
	done
}

# The same where rows and messages go to one pipe.
case_output_reader_of_messages_waits() {
	local source reader
	for source in probes hooks; do
		rm -f "$T/done" "$T/slow"
		mkfifo "$T/slow"
		exec {reader}<> "$T/slow"
		"${BACKGROUND[@]}" "$CUDATRACE" -v --source="$source" --keep-chatty -- \
			sh -c "'$CALLS' queries 30000; '$BIN/late' '$STANDIN/libcudart.so.13' 3; '$CALLS' queries 5; touch '$T/done'" > "$T/prog" 2> "$T/slow" < /dev/null {reader}>&- &
		CT=$!
		wait_for 10 test -e "$T/done"
		cat "$T/slow" > "$T/err" {reader}>&- &
		wait_for 10 test -s "$T/err"
		exec {reader}>&-
		finish
		ok_rc
		wait_for 5 grep -q '^cudatrace: 30008 calls, 0 lost$' "$T/err"
		expect "$source: rows" "$(grep -c cudaStreamQuery "$T/err")" 30008
	done
}

# One that never reads: a SIGINT, which is the program's, ends the trace when the program has ended, and also when it goes on.
case_output_reader_never_reads() {
	local source after reader
	for source in probes hooks; do
		for after in exit 'exec sleep 1000'; do
			rm -f "$T/slow" "$T/went"
			mkfifo "$T/slow"
			exec {reader}<> "$T/slow"
			not_ready
			"${BACKGROUND[@]}" "$CUDATRACE" -q --source="$source" --keep-chatty -o "$T/slow" -- bash -c "trap '' INT; echo \$\$ > '$T/pid'; '$CALLS' queries 30000; touch '$T/went'; $after" \
				> "$T/prog" 2> "$T/err" < /dev/null {reader}>&- &
			CT=$!
			wait_for 10 test -e "$T/went"
			finish INT
			expect "$source, $after" "$(sed 's/ [0-9]* bytes/ N bytes/' "$T/err")" \
				"cudatrace: error: the reader of $T/slow does not read: tracing stopped after N bytes, the rest is dropped"
			exec {reader}>&-
			[ "$after" = exit ] || kill -KILL "$(cat "$T/pid")"
		done
	done
}

# A recording is for its owner alone, other outputs as the umask has it.
case_output_modes() {
	local r=tests/traces/calls.ctrace
	umask 022
	ct record -o "$T/r" -- "$CALLS" mix 1 1 1
	ok_rc
	expect "a recording" "$(stat -c %a "$T/r")" 600
	ct merge -o "$T/m" "$r" "$r"
	expect "merged" "$(stat -c %a "$T/m")" 600
	ct replay -o "$T/table" "$r"
	expect "a table" "$(stat -c %a "$T/table")" 644
}

# What others put in the way in a folder that everybody may write to is neither followed nor written to. (Where the kernel's
# fs.protected_* are set it is the kernel that refuses.)
case_output_links() {
	local r=tests/traces/calls.ctrace out
	mkdir -m 1777 "$T/tmp"
	mkdir "$T/ours" "$T/tmp/ours"
	for out in file dir/file; do
		echo precious > "$T/ours/file"
		ln -s "$T/ours/file" "$T/tmp/file"
		ln -s "$T/ours" "$T/tmp/dir"
		chown -h 65534 "$T/tmp/file" "$T/tmp/dir"
		ct replay -o "$T/tmp/$out" "$r"
		ok_rc 1
		says "cannot write to $T/tmp/$out: Permission denied"
		ct merge -o "$T/tmp/$out" "$r" "$r"
		ok_rc 1
		expect "what the link leads to" "$(cat "$T/ours/"*)" precious
		# of our own, and of the folder's owner, they are followed
		chown -h 0 "$T/tmp/file" "$T/tmp/dir"
		ct replay -o "$T/tmp/$out" "$r"
		ok_rc
		grep -q cudaMalloc "$T/ours/file" || fail "our own link is not followed"
		rm "$T/tmp/file" "$T/tmp/dir"
	done
	# a file of somebody else's, and one more name of a file
	echo theirs > "$T/tmp/file"
	chown 65534 "$T/tmp/file"
	ct replay -o "$T/tmp/file" "$r"
	ok_rc 1
	expect "a file of another user" "$(cat "$T/tmp/file")" theirs
	echo precious > "$T/ours/file"
	ln "$T/ours/file" "$T/tmp/name"
	ct replay -o "$T/tmp/name" "$r"
	ok_rc 1
	expect "a file with two names" "$(cat "$T/ours/file")" precious
	# elsewhere nothing is refused
	ln -s file "$T/ours/link"
	ct replay -o "$T/ours/link" "$r"
	ok_rc
	ct replay -o /dev/stdout "$r"
	ok_rc
	grep -q cudaMalloc "$T/out" || fail "nothing on standard output"
	ct replay -o "$T/nowhere/" "$r"
	ok_rc 1
}

# Databases and folders of files, which take the place of what was there, do not follow such links either.
case_output_links_of_exports() {
	local to
	mkdir -m 1777 "$T/tmp"
	mkdir "$T/ours"
	for to in nsys-sqlite parquet html chrome arrow; do
		echo precious > "$T/ours/file"
		ln -s "$T/ours/file" "$T/tmp/file"
		ln -s "$T/ours" "$T/tmp/dir"
		chown -h 65534 "$T/tmp/file" "$T/tmp/dir"
		ct export --to $to -o "$T/tmp/file" tests/traces/calls.ctrace
		ok_rc 1
		says "$T/tmp/file: Permission denied"
		ct export --to $to -o "$T/tmp/dir/file" tests/traces/calls.ctrace
		ok_rc 1
		says "$T/tmp/dir/file: Permission denied"
		expect "files for $to" "$(cd "$T" && echo ours/* tmp/*)" "ours/file tmp/dir tmp/file"
		expect "what the link leads to" "$(cat "$T/ours/file")" precious
		# of our own it is followed
		chown -h 0 "$T/tmp/file"
		[ $to != parquet ] || rm "$T/ours/file"
		ct export --to $to -o "$T/tmp/file" tests/traces/calls.ctrace
		ok_rc
		[ -L "$T/tmp/file" ] || fail "$to: the link is gone"
		[ "$(head -c 8 "$T/ours/file" 2> /dev/null)" != precious ] || fail "$to: our own link is not followed"
		rm -r "$T/tmp/file" "$T/tmp/dir" "$T/ours/file"
	done
}

# In a race with links that come and go, too, nothing that they lead to is written to, renamed or removed.
case_output_links_race() { # long
	local what out to how r=$ROOT/tests/traces/calls.ctrace wrote refused i flips
	chmod 755 "$T"
	mkdir "$T/ours"
	cp "$BIN/flips" "$T"
	for what in file dir; do
		rm -rf "$T/tmp"
		mkdir -m 1777 "$T/tmp"
		out=$T/tmp/file to=$T/ours/file
		[ $what = file ] || out=$T/tmp/dir/file to=$T/ours
		(cd "$T/tmp" && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$T/flips" $what "$to") &
		flips=$!
		wait_for 10 test -e "$T/tmp/ready"
		wrote=0 refused=0
		for ((i = 0; i < 45 || wrote == 0 || refused == 0; i++)); do
			((i < 3000)) || fail "after $i turns $wrote were written and $refused refused"
			case $((i % 3)) in
			0) how="merge -o $out $r $r" ;;
			1) how="export --to nsys-sqlite -o $out $r" ;;
			2) how="export --to csv -o $out $r" ;;
			esac
			echo precious > "$T/ours/file"
			# shellcheck disable=SC2086
			ct $how
			case $rc in
			0) wrote=$((wrote + 1)) ;;
			1) refused=$((refused + 1)) ;;
			*) fail "status $rc of '$how': $(cat "$T/err")" ;;
			esac
			expect "what is there after turn $i, '$how'" "$(ls -A "$T/ours") $(cat "$T/ours/file")" "file precious"
			rm -f "$T/tmp/file" "$T/tmp/file.old"
		done
		kill -KILL $flips
	done
}

# A file for each process, in a folder as /tmp: one that cannot be made is said and counted, and the others are there.
case_output_one_refused() {
	local format name each
	mkdir -m 1777 "$T/tmp"
	mkdir "$T/ours"
	echo precious > "$T/ours/file"
	cat > "$T/both" <<- END
		sh -c 'setpriv --reuid=65534 --regid=65534 --clear-groups ln -s "$T/ours/file" "$T/tmp/x.\$\$"; exec "$CALLS" mix 2 3 0'
		exec "$CALLS" mix 5 7 0
	END
	chmod 755 "$T"
	ct -ff --format json -o "$T/each" -- sh -c "'$CALLS' mix 2 3 0; exec '$CALLS' mix 5 7 0"
	ok_rc
	each=$(grep -h -c '"type":"call"' "$T"/each.* | sort -n | paste -sd' ')
	for format in table json csv chrome; do
		rm -rf "$T"/tmp/x.*
		ct --strict -ff --format $format -o "$T/tmp/x" -- sh "$T/both"
		ok_rc 3
		expect "messages for $format" "$(grep -c "^cudatrace: error: cannot write to $T/tmp/x.[0-9]*: Permission denied$" "$T/err") of $(grep -c error: "$T/err")" "1 of 1"
		says "^cudatrace: ${each#* } calls, 0 lost of those seen; ${each% *} records were not written, because the files of their processes could not be made$"
		expect "files for $format" "$(find "$T/tmp" -name 'x.*' -type f | wc -l)" 1
		name=$(find "$T/tmp" -name 'x.*' -type f)
		[ $format != json ] || expect "rows" "$(grep -c '"type":"call"' "$name") $(tail -n 1 "$name" | grep -o '"count":[0-9]*,[^}]*"reason":"unwritten"\|"reason":"unwritten"[^}]*"count":[0-9]*' | grep -o '"count":[0-9]*')" \
			"${each#* } \"count\":${each% *}"
		[ $format != csv ] || expect "copies" "$(grep -c 'cudaMemcpy,' "$name")" 7
	done
	# a pipe that nobody reads is not waited for
	for format in table chrome; do
		rm -rf "$T"/tmp/x.*
		ct --strict -ff --format $format -o "$T/tmp/x" -- sh -c "sh -c 'mkfifo $T/tmp/x.\$\$; exec $CALLS mix 2 3 0'; exec '$CALLS' mix 5 7 0"
		ok_rc 3
		says "cannot write to $T/tmp/x.[0-9]+: it is a pipe that nobody reads$"
		says "^cudatrace: ${each#* } calls, 0 lost of those seen; ${each% *} records were not written"
	done
	# the status is the program's where nobody asks for all, and ours where nothing could be written
	rm -rf "$T"/tmp/x.*
	ct -ff -o "$T/tmp/x" -- sh "$T/both"
	ok_rc
	expect "what the link leads to" "$(cat "$T/ours/file")" precious
	ct -ff -o "$T/nosuch/x" -- sh -c "'$CALLS' mix 2 3 0; exec '$CALLS' mix 5 7 0"
	ok_rc 1
	expect "messages" "$(grep -c "cannot write to $T/nosuch/x" "$T/err")" 2
	says '^cudatrace: 0 calls, 0 lost of those seen; [0-9]+ records were not written'
}

# What a newer version has recorded is left out, said and counted; the rest is as it would be without.
case_output_new_kinds() {
	ct replay tests/traces/calls.ctrace
	mv "$T/out" "$T/want"
	ct replay tests/traces/kinds.ctrace
	ok_rc
	cmp "$T/out" "$T/want" || fail "other rows: $(diff "$T/want" "$T/out" | head -n 3)"
	says '^cudatrace: 2 records of a newer version are left out: this version does not know their kinds$'
	ct info tests/traces/kinds.ctrace
	ok_rc
	expect "info" "$(grep -c '^of new kinds  *2$' "$T/out")" 1
}

# --compact: the rows of recordings, and into a pipe and a file nothing is cut or colored.
case_output_compact() {
	local name
	for name in calls newer; do
		ct replay --compact "tests/traces/$name.ctrace"
		ok_rc
		cmp "$T/out" "$ROOT/tests/golden/compact_$name.txt" || fail "$name: other rows than tests/golden/compact_$name.txt"
		ct replay --compact -o "$T/rows" "tests/traces/$name.ctrace"
		cmp "$T/rows" "$ROOT/tests/golden/compact_$name.txt" || fail "$name: a file has other rows"
	done
	# live: the name is that of the command line
	ct --compact -- "$CALLS" queries 2
	ok_rc
	grep -qE "^ *[0-9.]+ ${CALLS##*/} +[0-9]+ +[0-9.]+[nmu]?s. cudaStreamQuery " "$T/err" || fail "no row as it should be: $(head -n 5 "$T/err")"
	! grep -q 'returned=0' "$T/err" || fail "it says that a call succeeded"
}

# On a terminal a row is not wider than it, and what failed is red; not with -o, and no color with NO_COLOR.
case_output_compact_terminal() {
	python3 - "$CUDATRACE" "$ROOT/tests/traces/two.ctrace" << 'END' || fail "see above"
import fcntl, os, re, struct, subprocess, sys, termios
program, trace = sys.argv[1:]
COLUMNS = 70
def rows(*words, **more):
    """What a terminal of COLUMNS gets to see, as lines."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(more.get("WIDTH", COLUMNS)), 0, 0))
    env = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **more}
    p = subprocess.Popen([program, "replay", *words, trace], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL, env=env)
    os.close(slave)
    data = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        data += part
    os.close(master)
    assert p.wait() == 0, p.returncode
    return data.decode().replace("\r\n", "\n").splitlines()
def bare(lines):
    return [re.sub("\033\\[[0-9]*m", "", line) for line in lines]
piped = subprocess.run([program, "replay", "--compact", trace], capture_output=True, check=True, env={**os.environ, "TERM": "xterm"}).stdout.decode()
assert "\033" not in piped
want = [line if len(line) <= COLUMNS else line[:COLUMNS - 1] + ">" for line in piped.splitlines()]
got = rows("--compact")
assert bare(got) == want, [pair for pair in zip(bare(got), want) if pair[0] != pair[1]][:3]
assert any(line.endswith(">") for line in want) and any(len(line) < COLUMNS for line in want)
red = [line for line in got if "\033[31mreturned=" in line]
assert red and all("returned=2 (cuda" in line for line in red), red
assert all(line.count("\033[31m") == line.count("\033[0m") for line in got)
assert rows("--compact", NO_COLOR="1") == want
assert rows("--compact", TERM="dumb") == want
# nothing is cut with -o, and without --compact where the terminal is wide; a narrow one gets compact rows by itself
whole = subprocess.run([program, "replay", trace], capture_output=True, check=True, env={**os.environ, "TERM": "xterm"}).stdout.decode().splitlines()
assert bare(rows("--compact", "-o", "-")) == piped.splitlines()
assert bare(rows("-o", "-")) == whole
assert bare(rows()) == want and bare(rows("--compact=auto")) == want
assert bare(rows("--compact=never")) == whole and any(len(line) > COLUMNS for line in whole)
assert bare(rows(WIDTH="120")) == whole
assert bare(rows(WIDTH="119"))[0] == want[0] != whole[0]
assert bare(rows("--format", "json"))[0].startswith("{")
assert bare(rows("-c"))[0].startswith("% time")
END
}
