# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2153,SC2034
# nccl.sh - cases about communicators of NCCL: which rank the others wait for.

# job NAME MODE RANKS [FIRST LAST]: starts prog/ranks.c, whose waits hang; RANK_0 and so on are its processes. LIBRARY=no-list:
# with that build of the stand-in's libnccl.
job() {
	local name=$1 rank pid fd
	shift
	mkfifo "$T/$name.in" "$T/$name.wait"
	LD_LIBRARY_PATH=$STANDIN${LIBRARY:+/$LIBRARY} STANDIN_WAIT="cuStreamSynchronize:$T/$name.wait" \
		"$BIN/ranks" "$1" "$2" "${3:-0}" "${4:-$(($2 - 1))}" "$T" < "$T/$name.in" > "$T/$name.out" &
	declare -g "PID_$name=$!"
	exec {fd}> "$T/$name.in"
	declare -g "FD_$name=$fd"
	wait_for 10 grep -q '^ready' "$T/$name.out"
	while read -r rank pid; do
		[ "$rank" = ready ] || declare -g "RANK_$rank=$pid"
		[ "$rank" = ready ] || [[ $1 == turn || $1 == after-* ]] || [ "$1-$rank" = "absent-$(($2 - 1))" ] || wait_for 10 in_wait "$pid"
	done < "$T/$name.out"
}

# job_ends NAME
job_ends() {
	local fd=FD_$1 pid=PID_$1
	eval "exec ${!fd}>&-"
	wait_for 10 ended "${!pid}"
}

# What is said of communicators, before the first row, and the last line, with what differs from run to run left out.
communicators() {
	sed -e '/^PROCESS /,$ { $ !d; }' "$T/out" | sed "s/0x[0-9a-f]*/HASH/; s/$RANK_0/PID_0/g; s/$RANK_1/PID_1/g; s/${RANK_2:-none}/PID_2/g; s/${RANK_3:-none}/PID_3/g; s/ sleeps.*/ SLEEPS/"
}

NOT_ARRIVED="communicator HASH of 4 ranks: rank 3 has not arrived
  AllReduce #4: rank 3 has not begun it (the last was #3), ranks 0-2 have
  rank 0: ranks, PID PID_0
    thread PID_0 (ranks) is inside cudaStreamSynchronize
  rank 1: ranks, PID PID_1
    thread PID_1 (ranks) is inside cudaStreamSynchronize
  rank 2: ranks, PID PID_2
    thread PID_2 (ranks) is inside cudaStreamSynchronize
  rank 3, absent: ranks, PID PID_3
    thread PID_3 (ranks) SLEEPS
3 threads of 3 processes inside CUDA calls for more than 300ms"

four() { echo "-p $RANK_0 -p $RANK_1 -p $RANK_2 -p $RANK_3"; }

# Four ranks that were there before: one sleeps.
case_nccl_absent() {
	job a absent 4
	# shellcheck disable=SC2046
	ct stuck $(four) --over 0.3
	ok_rc 4
	expect "communicators" "$(communicators)" "$NOT_ARRIVED"
	# what the ranks have in common is one row, behind the answer
	expect "rows" "$(sed -n '/^PROCESS /,$p' "$T/out" | grep -c 'began before the trace')" 1
	expect "processes of the row" "$(sed -n 's/^ *3 processes: //p' "$T/out")" "$(printf '%s\n' "$RANK_0" "$RANK_1" "$RANK_2" | sort -n | xargs)"
	# shellcheck disable=SC2046
	ct stuck $(four) --over 0.3 --format json
	ok_rc 4
	expect "the order in JSON" "$(sed -n 's/^{"type":"\(communicator\|pending\)".*/\1/p' "$T/out" | uniq | xargs)" "communicator pending"
	expect "rows in JSON" "$(grep -c '^{"type":"pending"' "$T/out")" 3
	job_ends a
}

# A library without a list of communicators: the memory is searched.
case_nccl_search() {
	LIBRARY=no-list job a absent 4
	# shellcheck disable=SC2046
	ct stuck -v $(four) --over 0.3
	ok_rc 4
	says 'found by a search of its memory'
	expect "communicators" "$(communicators)" "$NOT_ARRIVED"
	job_ends a
}

# The layout is read once and kept, by build id; what is kept and damaged, or another user's, is not used, and made anew.
case_nccl_kept() {
	local id kept i own=$STANDIN/own-id/libnccl.so.2
	# a library that no other case has, as the folder is one for the whole machine
	mkdir -p "${own%/*}"
	python3 - "$STANDIN/libnccl.so.2" "$own" <<- 'END'
		import os, re, subprocess, sys
		data = open(sys.argv[1], "rb").read()
		notes = subprocess.run(["readelf", "-n", sys.argv[1]], stdout=subprocess.PIPE, text=True).stdout
		was = bytes.fromhex(re.search("Build ID: ([0-9a-f]+)", notes)[1])
		open(sys.argv[2], "wb").write(data.replace(was, os.urandom(len(was))))
	END
	LIBRARY=own-id job a absent 4
	id=$(readelf -n "$own" | sed -n 's/.*Build ID: //p')
	for i in new kept damaged kept foreign; do
		if [ $i = damaged ]; then
			printf x | dd of="$kept" bs=1 seek=100 conv=notrunc 2> "$T/dd"
		elif [ $i = foreign ]; then
			chown nobody "$kept"
		fi
		# shellcheck disable=SC2046
		ct stuck -v $(four) --over 0.3
		ok_rc 4
		expect "communicators, $i" "$(communicators)" "$NOT_ARRIVED"
		expect "was kept, $i" "$(grep -c 'the layout of NCCL.* was kept' "$T/err")" "$([ $i = kept ] && echo 1 || echo 0)"
		kept=$(ls /run/cudatrace/nccl-"$id"-*)
		expect "owner and mode, $i" "$(stat -c '%u %a' "$kept")" "0 644"
	done
	rm -f "$kept"
	job_ends a
}

# -p names the rank that is absent: the others are found on the machine.
case_nccl_of_one() {
	job a absent 4
	ct stuck -p "$RANK_3" --over 0.3
	ok_rc 4
	expect "what is absent" "$(communicators | head -n 2)" "$(head -n 2 <<< "$NOT_ARRIVED")"
	expect "last line" "$(tail -n 1 "$T/out")" "no thread inside a CUDA call for more than 300ms"
	job_ends a
}

# Without debug information nothing is guessed.
case_nccl_unknown() { # long
	LIBRARY=no-debug job a absent 2
	ct stuck -p "$RANK_0" -p "$RANK_1" --over 0.3
	ok_rc 4
	! grep -q '^communicator' "$T/out" || fail "a guess: $(cat "$T/out")"
	grep -q "^ranks, PID $RANK_1, rank ?: .*/no-debug/libnccl.so.2: the library has no debug information" "$T/out" ||
		fail "no reason: $(cat "$T/out")"
	ct stuck -p "$RANK_1" --over 0.3 --format json
	ok_rc 0
	expect "its line" "$(grep '"type":"communicator"' "$T/out" | grep -c "\"pid\":$RANK_1,.*\"unknown\":\"the library has no debug")" 1
	! grep -q '"rank":' "$T/out" || fail "a rank: $(cat "$T/out")"
	python3 tests/unit/check_json.py "$T/out" > "$T/check" || fail "JSON: $(cat "$T/check")"
	job_ends a
}

# All ranks have arrived: nobody is absent, and the last collective is named.
case_nccl_same() {
	job a same 2
	ct stuck -p "$RANK_0" -p "$RANK_1" --over 0.3
	ok_rc 4
	expect "the communicator" "$(communicators | head -n 2)" \
		"communicator HASH of 2 ranks: all ranks have begun as many collectives of each kind, the last: Broadcast #1, AllReduce #4
  whether their sizes, types, operations and roots are the same is not known here; 'cudatrace stuck FILE' compares them in a recording of the job that was made with --layers nccl"
	job_ends a
}

# Ranks that call different collectives.
case_nccl_differ() {
	job a differ 2
	ct stuck -p "$RANK_0" -p "$RANK_1" --over 0.3
	ok_rc 4
	expect "what is said" "$(communicators | sed -n 1,4p)" "communicator HASH of 2 ranks: ranks 0-1 have not arrived
  Broadcast #2: rank 0 has not begun it (the last was #1), rank 1 has
  AllReduce #4: rank 1 has not begun it (the last was #3), rank 0 has
  the ranks do not call the same collectives: each of some ranks has begun one that another has not"
	job_ends a
}

# Ranks that go on are not compared, though one look sees them at different collectives.
case_nccl_goes_on() { # long
	job a turn 4
	# shellcheck disable=SC2046
	ct stuck $(four) --over 1
	ok_rc 0
	! grep -q '^communicator' "$T/out" || fail "a job that goes on is reported: $(cat "$T/out")"
	# shellcheck disable=SC2046
	ct stuck $(four) --over 1 --format json
	ok_rc 0
	expect "ranks that went on" "$(grep -c '"type":"communicator".*"still_ns":0,' "$T/out")" 4
	job_ends a
}

# Two answers put together, each of one half of the ranks; then one alone.
case_nccl_merge() {
	job a absent 4 0 1
	job b absent 4 2 3
	ct stuck -p "$RANK_0" -p "$RANK_1" --over 0.3 --format json
	ok_rc 4
	python3 tests/unit/check_json.py "$T/out" > "$T/check" || fail "JSON: $(cat "$T/check")"
	grep -v "\"type\":\"communicator\".*\"rank\":[23]," "$T/out" > "$T/a.json"
	sed -n "s/\"host\":\"[^\"]*\"/\"host\":\"other\"/; /\"type\":\"communicator\".*\"rank\":[23],/p" "$T/out" > "$T/b.json"
	expect "ranks" "$(grep -c '"type":"communicator"' "$T/a.json") $(grep -c '' "$T/b.json")" "2 2"
	ct stuck --merge "$T/a.json" "$T/b.json"
	ok_rc 4
	expect "what is absent" "$(communicators | head -n 2)" "$(head -n 2 <<< "$NOT_ARRIVED")"
	expect "where" "$(grep -c 'rank 3, absent: ranks, PID [0-9]*, on other' "$T/out")" 1
	expect "last line" "$(tail -n 1 "$T/out")" "1 rank absent"
	ct stuck --merge "$T/a.json"
	ok_rc 4
	grep -q '^  ranks 2-3 have not been seen: in none of the files' "$T/out" || fail "ranks that no file has: $(cat "$T/out")"
	ct stuck --merge --format json "$T/b.json" "$T/a.json" "$T/b.json"
	ok_rc 4
	expect "each rank once" "$(grep -c '' "$T/out")" 4
	ct stuck --merge --format json "$T/a.json"
	ok_rc 4
	python3 tests/unit/check_json.py "$T/out" > "$T/check" || fail "JSON: $(cat "$T/check")"
	expect "ranks that no file has" "$(sed -n 's/.*"communicator_ranks":4,"unseen":2,"ranks":\(.*\)}$/\1/p' "$T/out")" "[2,3]"
	mv "$T/out" "$T/c.json"
	ct stuck --merge "$T/c.json" "$T/b.json"
	ok_rc 4
	expect "put together again" "$(communicators | head -n 2)" "$(head -n 2 <<< "$NOT_ARRIVED")"
	# ranks that went on, and some that no file has; a process whose rank is not known
	sed 's/"still_ns":[0-9]*/"still_ns":0/' "$T/a.json" > "$T/d.json"
	echo '{"type":"communicator","start_ns":1,"pid":77,"process":"ranks","host":"third","boot":"b","library":"/l/libnccl.so.2","unknown":"it could not be read"}' >> "$T/d.json"
	ct stuck --merge "$T/d.json"
	ok_rc 0
	expect "what is said of them" "$(communicators)" "communicator HASH: its ranks cannot be compared: they went on between the looks, or do not agree how many they are
  ranks 2-3 have not been seen: in none of the files
ranks, PID 77, on third, rank ?: /l/libnccl.so.2: it could not be read
1 process whose rank could not be told
0 ranks absent"
	ct stuck --merge --format json "$T/d.json"
	ok_rc 0
	python3 tests/unit/check_json.py "$T/out" > "$T/check" || fail "JSON: $(cat "$T/check")"
	expect "its line" "$(grep -c '"pid":77,"process":"ranks","host":"third",.*"unknown":"it could not be read"' "$T/out")" 1
	job_ends b # it has the other one's standard input open too
	job_ends a
}

case_nccl_merge_refuses() {
	local name
	echo '{"type":"communicator","pid":1}' > "$T/no-hash"
	echo 'no JSON' > "$T/text"
	: > "$T/empty"
	for name in no-hash text; do
		ct stuck --merge "$T/$name"
		ok_rc 1
		says "$T/$name: line 1 is damaged, or not what 'cudatrace stuck --format json' writes"
	done
	ct stuck --merge "$T/empty"
	ok_rc 1
	says "$T/empty: nothing in it is of 'cudatrace stuck --format json'"
	ct stuck --merge "$T/missing"
	ok_rc 1
	says "$T/missing cannot be opened"
}

# The Python stacks of the rank that is absent.
case_nccl_python() {
	local rank pid
	python3 -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2> /dev/null ||
		skip "no Python from 3.10 to 3.14"
	cat > "$T/rank.py" <<- 'END'
		import ctypes, sys, time
		rank, nccl = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
		class Id(ctypes.Structure):
		    _fields_ = [("internal", ctypes.c_char * 128)]
		comm = ctypes.c_void_p()
		nccl.ncclCommInitRank(ctypes.byref(comm), 2, Id(sys.argv[3].encode()), rank)
		def load_batch():
		    print("ready", flush=True)
		    time.sleep(1000)
		if not rank:
		    nccl.ncclAllReduce(None, None, ctypes.c_size_t(1), 7, 0, comm, None)
		load_batch()
	END
	for rank in 0 1; do
		python3 "$T/rank.py" $rank "$STANDIN/libnccl.so.2" "$T" > "$T/$rank.out" &
		declare "PID_$rank=$!"
	done
	for rank in 0 1; do
		pid=PID_$rank
		wait_for 10 grep -q ready "$T/$rank.out"
		wait_for 10 grep -q nanosleep "/proc/${!pid}/wchan"
	done
	ct stuck -p "$PID_0" --over 0.3
	ok_rc 4
	expect "the absent rank's stack" "$(sed -n '/^  rank 1, absent/,$p' "$T/out" | sed -n 's/^ *\([^ ]*\) (.*rank.py:\([0-9]*\)) \[python\]$/\1:\2/p' | tr '\n' ' ')" \
		"load_batch:9 <module>:12 "
	kill "$PID_0" "$PID_1"
	wait_for 5 ended "$PID_0"
	wait_for 5 ended "$PID_1"
}

# asked MODE: what `stuck` says of a recording of a job of three ranks, without what differs from run to run.
asked() {
	mkfifo "$T/$1.in"
	# shellcheck disable=SC2261
	"$CUDATRACE" record -o "$T/$1.ctr" --layers nccl -- "$BIN/ranks" "$1" 3 < "$T/$1.in" > "$T/$1.out" 2> "$T/$1.err" &
	local pid=$! fd
	exec {fd}> "$T/$1.in"
	wait_for 20 grep -q '^ready' "$T/$1.out"
	sleep 0.3 # nothing begins for this long
	exec {fd}>&-
	wait_for 10 ended "$pid"
	grep -q ' 0 lost' "$T/$1.err" || fail "$1: $(cat "$T/$1.err")"
	ct stuck --over 0.2 "$T/$1.ctr"
	sed 's/0x[0-9a-f]*/HASH/g; s/PID [0-9]*/PID/g' "$T/out" > "$T/said"
}

# asked_all RESULT TEXT of the mode that was asked
asked_says() {
	ok_rc "$1"
	diff - "$T/said" > "$T/diff" || fail "what is said differs: $(cat "$T/diff")"
}

# What ranks ask for is compared, and all that differs is said with its values.
case_nccl_asked_values() {
	asked count
	asked_says 4 <<- 'END'
		communicator HASH of 3 ranks:
		  collective #5: the ranks do not ask for the same
		    rank 0 (ranks, PID): ncclAllReduce count=512 float32 sum
		    ranks 1-2: ncclAllReduce count=256 float32 sum
		1 communicator compared, 1 with ranks that do not ask for the same or wait for each other
	END
	ct stuck --over 0.2 --format json "$T/count.ctr"
	ok_rc 4
	python3 tests/unit/check_json.py "$T/out" > "$T/check" || fail "JSON: $(cat "$T/check")"
	expect "JSON" "$(python3 -c '
import json, sys
row = json.loads(open(sys.argv[1]).read())
print(row["type"], row["fault"], row["communicator_ranks"])
for r in row["ranks"]:
    print(r["communicator_rank"], r["process"], r["state"], r["name"], r["sequence"], r["count"], r["datatype"], r["op"])' "$T/out")" \
		"collective_fault arguments 3
0 ranks asks ncclAllReduce 5 512 float32 sum
1 ranks asks ncclAllReduce 5 256 float32 sum
2 ranks asks ncclAllReduce 5 256 float32 sum"
	asked type
	expect "types" "$(sed -n 3,4p "$T/said")" "    rank 0 (ranks, PID): ncclAllReduce count=256 bfloat16 sum
    ranks 1-2: ncclAllReduce count=256 float32 sum"
	asked root
	expect "roots" "$(sed -n 3,4p "$T/said")" "    rank 0 (ranks, PID): ncclBroadcast count=256 float32 root 1
    ranks 1-2: ncclBroadcast count=256 float32 root 0"
	asked differ
	expect "functions" "$(sed -n 3,4p "$T/said")" "    ranks 0-1: ncclAllReduce count=256 float32 sum
    rank 2 (ranks, PID): ncclBroadcast count=256 float32 root 0"
}

# Who waits in a recording, and that nobody does who does not.
case_nccl_asked_waits() {
	asked absent
	asked_says 4 <<- 'END'
		communicator HASH of 3 ranks:
		  ncclAllReduce #5 (count=256 float32 sum): ranks 0-1 wait in it, rank 2 (ranks, PID) has not come to it
		1 communicator compared, 1 with ranks that do not ask for the same or wait for each other
	END
	asked crossed
	asked_says 4 <<- 'END'
		communicator HASH of 3 ranks:
		  ncclAllReduce #5 (count=1 float32 sum): ranks 0-1 wait in it, rank 2 (ranks, PID) has not come to it
		  a hang, a circle of waiting calls: rank 0 waits in ncclAllReduce #5 for rank 2, rank 2 waits in ncclAllReduce #1 of communicator HASH for rank 0
		communicator HASH of 3 ranks:
		  ncclAllReduce #1 (count=1 float32 sum): rank 2 (ranks, PID) waits in it, ranks 0-1 have not come to it
		2 communicators compared, 2 with ranks that do not ask for the same or wait for each other
	END
	asked same
	asked_says 0 <<- 'END'
		1 communicator compared, 0 with ranks that do not ask for the same or wait for each other
	END
}

case_nccl_asked_peers() {
	asked circle
	asked_says 4 <<- 'END'
		communicator HASH of 3 ranks:
		  rank 0 waits in receive #1 from rank 1 (count=8 float32): rank 1 has called the send that matches it, but it waits behind ncclRecv #1
		  rank 1 waits in receive #1 from rank 2 (count=8 float32): rank 2 has called the send that matches it, but it waits behind ncclRecv #1
		  rank 2 waits in receive #1 from rank 0 (count=8 float32): rank 0 has called the send that matches it, but it waits behind ncclRecv #1
		  a hang, a circle of receives: rank 0 waits in ncclRecv #1 for rank 1, rank 1 waits in ncclRecv #1 for rank 2, rank 2 waits in ncclRecv #1 for rank 0
		1 communicator compared, 1 with ranks that do not ask for the same or wait for each other
	END
	# sends and receives of a group begin together
	asked grouped
	asked_says 0 <<- 'END'
		1 communicator compared, 0 with ranks that do not ask for the same or wait for each other
	END
	asked unsent
	asked_says 4 <<- 'END'
		communicator HASH of 3 ranks:
		  rank 2 waits in receive #1 from rank 0 (count=8 float32): rank 0 has begun no send that matches it
		  rank 0 has called 1 send to rank 1, which has called 0 receives from it
		1 communicator compared, 1 with ranks that do not ask for the same or wait for each other
	END
	asked sizes
	asked_says 4 <<- 'END'
		communicator HASH of 3 ranks:
		  send #1 from rank 0 to rank 1: rank 0 sends count=8 float32, rank 1 receives count=4 float32
		1 communicator compared, 1 with ranks that do not ask for the same or wait for each other
	END
}

looks() { grep -c 'processes with CUDA' "$T/err"; }
has_looked() { [ "$(looks)" -ge "$1" ]; }

# Ranks that are looked at when they ask.
case_nccl_asked_live() {
	job a after-count 3
	"${BACKGROUND[@]}" "$CUDATRACE" stuck -v -p "$RANK_0" -p "$RANK_1" -p "$RANK_2" --over 0.3 --watch -o "$T/out" 2> "$T/err" &
	CT=$!
	wait_for 20 grep -q 'processes with CUDA' "$T/err"
	touch "$T/go"
	wait_for 20 has_looked $(($(looks) + 4))
	finish INT
	ok_rc 4
	expect "what is said" "$(grep -A 2 'do not ask' "$T/out" | sed 's/PID [0-9]*/PID/')" \
		"  collective #11: the ranks do not ask for the same
    rank 0 (ranks, PID): ncclAllReduce count=512 float32 sum
    ranks 1-2: ncclAllReduce count=256 float32 sum"
	job_ends a
}

case_nccl_asked_refuses() {
	ct stuck "$T/nothing"
	ok_rc 1
	says "cannot read $T/nothing"
	ct stuck -p 1 "$T/nothing"
	ok_rc 2
	says 'is read as a recording, and no process is looked at'
	ct stuck "$BIN/ranks"
	ok_rc 2
	says "the FILE is no recording, and 'cudatrace stuck' starts no program"
}
