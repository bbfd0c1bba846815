# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2153,SC2034
# hangs.sh - cases about `cudatrace watch`: what is a hang, what is none, and what is kept of it.

# hung NAME MODE RANKS: starts prog/ranks.c, whose waits hang, as a job of its own; the processes of its ranks are NAME_0 and so on.
hung() {
	local name=$1 rank pid fd
	mkdir "$T/$name"
	mkfifo "$T/$name/in" "$T/$name/wait" "$T/$name/late"
	LD_LIBRARY_PATH=$STANDIN STANDIN_WAIT="cuStreamSynchronize:$T/$name/wait" \
		"$BIN/ranks" "$2" "$3" 0 $(($3 - 1)) "$T/$name" < "$T/$name/in" > "$T/$name/out" &
	declare -g "PID_$name=$!"
	exec {fd}> "$T/$name/in"
	declare -g "FD_$name=$fd"
	wait_for 10 grep -q '^ready' "$T/$name/out"
	while read -r rank pid; do
		[ "$rank" = ready ] || declare -g "${name}_$rank=$pid"
	done < "$T/$name/out"
}

hung_ends() {
	local fd=FD_$1 pid=PID_$1
	eval "exec ${!fd}>&-"
	wait_for 10 ended "${!pid}"
}

# hung_pids NAME RANKS: as -p wants them
hung_pids() {
	local i pid list=
	for ((i = 0; i < $2; i++)); do
		pid=${1}_$i
		list+=${list:+,}${!pid}
	done
	echo "$list"
}

# watching ARGS...: in the background, until watch_ends; HANG: for how long, in seconds
watching() {
	"${BACKGROUND[@]}" "$CUDATRACE" watch --hang "${HANG:-1}" --dump "$T/dump" "$@" > "$T/out" 2> "$T/err" &
	PID_watch=$!
}

watch_says() {
	wait_for 30 grep -q "$1" "$T/out"
}

# watch_ends STATUS
watch_ends() {
	rc=0
	kill -INT "$PID_watch"
	wait "$PID_watch" || rc=$?
	check_alive
	expect "status of watch, which said: $(cat "$T/out" "$T/err")" "$rc" "$1"
}

# What was said of hangs, without what differs from run to run.
verdicts() {
	sed -E 's/^[0-9:]{8} //; s/0x[0-9a-f]+/HASH/; s/PID [0-9]+/PID/g; s/thread [0-9]+/thread/g; s/CONT [0-9]+/CONT/; s/, for [0-9.]+s$//; s/over after .*/over/; s/which waits in [a-z_0-9]*/which waits/; /^  evidence: /d' "$T/out"
}

hang_folder() {
	ls -d "$T"/dump/hang-*
}

WATCH_ABSENT="HANG 1: 3 ranks wait in AllReduce #4 of communicator HASH for rank 3 (ranks, PID)"

# A rank that sleeps: what is said, and what is in the folder.
case_watch_absent() {
	hung job absent 4
	watching -p "$(hung_pids job 4)"
	watch_says 'evidence: '
	sleep 1.5 # one folder, however long it lasts
	watch_ends 4
	expect "what is said" "$(verdicts)" "$WATCH_ABSENT, which waits
1 hang"
	expect "folders" "$(find "$T/dump" -mindepth 1 -maxdepth 1 | wc -l)" 1
	expect "where it is" "$(sed -n 's/^  evidence: //p' "$T/out")" "$(hang_folder)"
	expect "files" "$(cd "$(hang_folder)" && find . -type f -printf '%f %m\n' | sort | xargs)" \
		"flight.ctrace 600 hang.json 600 kernel.log 600 machine.txt 600 processes.txt 600 stacks.txt 600"
	expect "modes of folders" "$(stat -c %a "$T/dump" "$(hang_folder)" | xargs)" "700 700"
	sed 1d "$(hang_folder)/hang.json" > "$T/rest.json"
	python3 tests/unit/check_json.py "$T/rest.json" > "$T/check" || fail "JSON: $(cat "$T/check")"
	python3 tests/cases/check_hang.py "$(hang_folder)/hang.json" docs/hang.schema.json docs/findings.schema.json > "$T/check" || fail "hang.json: $(cat "$T/check")"
	expect "verdict" "$(python3 -c '
import json, os, sys
h = json.loads(open(sys.argv[1]).readline())
print(h["type"], h["id"], h["subject"]["rank"], h["subject"]["pid"], h["confidence"], len(h["pids"]), [w["state"] for w in h["who"]],
      [os.path.exists(h[c].split()[-1]) for c in ("evidence", "next")])' "$(hang_folder)/hang.json")" \
		"hang rank-absent 3 $job_3 measured 4 ['waits'] [True, True]"
	# the stacks of a rank that waits and of the one that is absent
	grep -q 'cudaStreamSynchronize' <(sed -n "/^process $job_0 /,/^process $job_1 /p" "$(hang_folder)/stacks.txt") || fail "no stack of rank 0: $(cat "$(hang_folder)/stacks.txt")"
	grep -q ' pause' <(sed -n "/^process $job_3 /,\$p" "$(hang_folder)/stacks.txt") || fail "no stack of rank 3: $(cat "$(hang_folder)/stacks.txt")"
	grep -q "^process $job_3 runs .*/ranks" "$(hang_folder)/processes.txt" || fail "no rank 3: $(cat "$(hang_folder)/processes.txt")"
	grep -q "^cudatrace " "$(hang_folder)/machine.txt" || fail "no version"
	! grep -q 'cannot be read' "$(hang_folder)/kernel.log" || fail "no log: $(cat "$(hang_folder)/kernel.log")"
	grep -q '^  Uid 0 0 0 0$' "$(hang_folder)/processes.txt" || fail "no user: $(cat "$(hang_folder)/processes.txt")"
	"$CUDATRACE" info "$(hang_folder)/flight.ctrace" > "$T/info" 2>&1 || fail "the trace cannot be read: $(cat "$T/info")"
	ct stuck --merge "$(hang_folder)/hang.json"
	ok_rc 4
	expect "what stuck makes of it" "$(sed 's/0x[0-9a-f]*/HASH/; s/^a hang on .*: 3 ranks wait in/a hang: 3 ranks wait in/; s/ for rank 3 .*//' "$T/out" | sed -n 1,3p)" "a hang: 3 ranks wait in AllReduce #4 of communicator HASH
communicator HASH of 4 ranks: rank 3 has not arrived
  AllReduce #4: rank 3 has not begun it (the last was #3), ranks 0-2 have"
	hung_ends job
}

# What variables hold is in no file.
case_watch_secrets() {
	export NCCL_SECRET_TEST=hunter2 RANK=7 WORLD_SIZE=hunter2 SOMETHING_ELSE=hunter2
	hung job absent 2
	watching -p "$(hung_pids job 2)"
	watch_says 'evidence: '
	watch_ends 4
	! grep -r hunter2 "$T/dump" || fail "a value is in a file"
	expect "names" "$(sed -n 's/^    //p' "$(hang_folder)/processes.txt" | grep -E '^(NCCL_SECRET|RANK|WORLD_SIZE|SOMETHING)' | sort -u | xargs)" "NCCL_SECRET_TEST RANK=7 WORLD_SIZE"
	hung_ends job
}

# A rank that comes late is no hang, and neither is what follows.
case_watch_late() {
	hung job late 4
	HANG=20 watching -p "$(hung_pids job 4)"
	sleep 1
	# the last rank comes, and from here on nobody waits
	exec {FD_late}<> "$T/job/late" {FD_open}<> "$T/job/wait"
	sleep 1
	watch_ends 0
	expect "what is said" "$(verdicts)" "0 hangs"
	expect "folders" "$(ls -A "$T/dump")" ""
	exec {FD_late}>&- {FD_open}>&-
	hung_ends job
}

# A hang that ends is said to be over.
case_watch_over() {
	hung job late 4
	watching -p "$(hung_pids job 4)"
	watch_says '^.* HANG 1: '
	# the last rank comes, and from here on nobody waits
	exec {FD_late}<> "$T/job/late" {FD_open}<> "$T/job/wait"
	watch_says '^.* HANG 1 is over'
	watch_ends 4
	expect "what is said" "$(verdicts)" "$WATCH_ABSENT, which waits
HANG 1 is over
1 hang"
	exec {FD_late}>&- {FD_open}>&-
	hung_ends job
}

# A rank that was stopped, one that is in a debugger, and one that has ended are named as such.
case_watch_stopped() {
	hung job absent 4
	kill -STOP "$job_3"
	watching -p "$(hung_pids job 4)"
	watch_says 'evidence: '
	watch_ends 4
	kill -CONT "$job_3"
	expect "what is said" "$(verdicts)" "$WATCH_ABSENT, which was stopped by a signal ('kill -CONT' continues it)
1 hang"
	hung_ends job
}

case_watch_debugged() {
	hung job absent 4
	python3 - "$job_3" > "$T/debugger" <<- 'END' &
		import ctypes, os, sys, time
		libc, pid = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
		if libc.ptrace(16, pid, 0, 0): # PTRACE_ATTACH
		    sys.exit("ptrace")
		os.waitpid(pid, 0)
		print("attached", flush=True)
		time.sleep(1000)
	END
	PID_debugger=$!
	wait_for 10 grep -q attached "$T/debugger"
	watching -p "$(hung_pids job 4)"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "$WATCH_ABSENT, which a debugger (PID) has stopped
1 hang"
	kill -KILL "$PID_debugger"
	wait_for 5 ended "$PID_debugger"
	hung_ends job
}

case_watch_died() {
	hung job absent 4
	HANG=8 watching -v -p "$(hung_pids job 4)"
	# it has been seen as a rank
	wait_for 20 grep -q "process $job_3: 1 communicators of NCCL" "$T/err"
	kill -KILL "$job_3"
	watch_says 'HANG 1: '
	watch_ends 4
	grep -q '^HANG 1: 3 ranks wait in .* for rank 3 (ranks, PID), which has ended$' <(verdicts) || fail "what is said: $(verdicts)"
	hung_ends job
}

# A rank that computes is waited for, and is no hang.
case_watch_computes() {
	hung job computes 4
	watching -p "$(hung_pids job 4)"
	watch_says 'no hang 1: '
	sleep 2
	watch_ends 0
	expect "what is said" "$(verdicts)" "no hang 1: 3 ranks wait in AllReduce #4 of communicator HASH for rank 3 (ranks, PID), which computes
0 hangs"
	expect "folders" "$(ls -A "$T/dump")" ""
	hung_ends job
}

# All have begun it, and nothing ends.
case_watch_all_in() {
	hung job same 4
	watching -p "$(hung_pids job 4)"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "HANG 1: all ranks that were seen have begun AllReduce #4 of communicator HASH, and it does not end: a device or the network, not a rank that is absent
1 hang"
	hung_ends job
}

case_watch_differ() {
	hung job differ 2
	watching -p "$(hung_pids job 2)"
	watch_says 'evidence: '
	watch_ends 4
	grep -q '^HANG 1: the ranks of communicator HASH do not call the same: rank 0 (ranks, PID), whose thread is inside cudaStreamSynchronize; rank 1 (ranks, PID), whose thread is inside cudaStreamSynchronize$' <(verdicts) ||
		fail "what is said: $(verdicts)"
	hung_ends job
}

# Two jobs at once are two hangs, with folders of their own; one of eight ranks.
case_watch_two_jobs() {
	hung one absent 2
	hung two absent 8
	watching -p "$(hung_pids one 2),$(hung_pids two 8)"
	watch_says 'HANG 2: '
	watch_ends 4
	expect "what is said" "$(verdicts | sed 's/HANG [12]/HANG/' | sort)" "$(sort <<- 'ALL'
		HANG: 1 rank waits in AllReduce #4 of communicator HASH for rank 1 (ranks, PID), which waits
		HANG: 7 ranks wait in AllReduce #4 of communicator HASH for rank 7 (ranks, PID), which waits
		2 hangs
	ALL
	)"
	expect "folders" "$(find "$T/dump" -name "hang-*" | wc -l)" 2
	expect "ranks in them" "$(grep -c '"type":"communicator"' "$T"/dump/hang-*/hang.json | sed 's/.*://' | sort -n | xargs)" "2 8"
	hung_ends two
	hung_ends one
}

# As JSON; one folder at most, and the trace is not kept.
case_watch_json() {
	hung one absent 2
	hung two absent 2
	watching --format json --max-dumps 1 --last 0 -p "$(hung_pids one 2),$(hung_pids two 2)"
	watch_says '"number":2,'
	watch_ends 4
	expect "what is said" "$(python3 -c '
import json, sys
for line in open(sys.argv[1]):
    o = json.loads(line)
    print(o["type"], o["number"], o["id"], o["subject"]["rank"], len(o["pids"]), o["evidence"], (o["next"] or "").endswith("/hang.json"))' "$T/out")" "hang 1 rank-absent 1 2 None True
hang 2 rank-absent 1 2 None False"
	python3 tests/cases/check_hang.py "$T/out" docs/hang.schema.json docs/findings.schema.json > "$T/check" || fail "JSON: $(cat "$T/check")"
	expect "files" "$(cd "$T/dump" && find . -type f -printf '%f\n' | sort | xargs)" "hang.json kernel.log machine.txt processes.txt stacks.txt"
	expect "messages" "$(grep -c 'further hangs are reported without evidence: --max-dumps is 1$' "$T/err")" 1
	hung_ends two
	hung_ends one
}

# Without room for the evidence the hang is said all the same, and why there is no folder, once.
case_watch_no_room() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	hung job absent 2
	mkdir "$T/dump"
	# shellcheck disable=SC2016 # it is the inner shell's
	"${BACKGROUND[@]}" unshare -m sh -c 'mount -t tmpfs -o size=8k,mode=700 none "$0" && exec "$@"' "$T/dump" \
		"$CUDATRACE" watch --hang 1 --dump "$T/dump" -p "$(hung_pids job 2)" > "$T/out" 2> "$T/err" &
	PID_watch=$!
	watch_says 'HANG 1: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "HANG 1: 1 rank waits in AllReduce #4 of communicator HASH for rank 1 (ranks, PID), which waits
1 hang"
	! grep -q '^  evidence' "$T/out" || fail "a folder that is not there: $(cat "$T/out")"
	expect "what is said of the folder" "$(sed -n 's/hang-[0-9TZ-]*/hang/; /the evidence/p' "$T/err")" \
		"cudatrace: error: the evidence cannot be written to $T/dump/hang: No space left on device"
	hung_ends job
}

# Of the whole machine, whatever else hangs on it.
case_watch_machine() { # machine
	hung job absent 2
	watching --max-dumps 100
	watch_says "HANG [0-9]*: 1 rank waits in .* for rank 1 (ranks, PID $job_1), which waits in "
	watch_ends 4
	hung_ends job
}

# A process that says nonsense of its communicators hides no other job's hang.
case_watch_liar() {
	hung liar liar 4
	hung job absent 4
	watching -p "$(hung_pids liar 4),$(hung_pids job 4)"
	watch_says 'of communicator 0x[0-9a-f]* for rank 3 (ranks, PID [0-9]*), which waits in '
	watch_ends 4
	hung_ends job
	hung_ends liar
}

# A program from its start, and a thread of it that stays inside a call.
case_watch_command() {
	mkfifo "$T/wait"
	STANDIN_WAIT="cuCtxSynchronize:$T/wait" LD_LIBRARY_PATH=$STANDIN "${BACKGROUND[@]}" "$CUDATRACE" watch --hang 1 --dump "$T/dump" -o "$T/out" -- "$BIN/train" 2 5 0 > /dev/null 2> "$T/err" &
	PID_watch=$!
	watch_says 'evidence: '
	exec {FD_open}<> "$T/wait" # from here on nobody waits
	rc=0
	wait "$PID_watch" || rc=$?
	exec {FD_open}>&-
	expect "status" "$rc" 4
	grep -q '^HANG 1: train (PID): thread is inside cudaDeviceSynchronize$' <(verdicts) || fail "what is said: $(verdicts)"
	"$CUDATRACE" replay "$(hang_folder)/flight.ctrace" > "$T/replayed" 2>&1 || fail "the trace: $(cat "$T/replayed")"
}

# With what devices do: the verdict rests on it, too.
case_watch_gpu() {
	hung job absent 2
	HANG=3 watching --gpu -p "$(hung_pids job 2)"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "HANG 1: 1 rank waits in AllReduce #4 of communicator HASH for rank 1 (ranks, PID), which waits
1 hang"
	expect "what is not judged" "$(python3 -c '
import json, sys
print(json.loads(open(sys.argv[1]).readline())["not_judged"])' "$(hang_folder)/hang.json")" None
	hung_ends job
}

# The options that it shares with other commands.
case_watch_options() {
	local i
	for i in 1 2; do
		LD_LIBRARY_PATH=$STANDIN ct watch -d 100 --ring-size 1MiB --probe-kind multi --strict -A -o "$T/log" -E RANKS_WAIT=1 -u root --no-follow \
			--library "$STANDIN/libcudart.so.13" -- "$CALLS" mix 1 1 1
		ok_rc 0
	done
	expect "what is added to the file" "$(cat "$T/log")" "0 hangs
0 hangs"
	LD_LIBRARY_PATH=$STANDIN ct watch --gpu=kernel --graph graph --gpu-clock offset --gpu-buffer 256KiB,16 -o "$T/log" -- "$CALLS" mix 1 1 1
	ok_rc 0
}

# A thread that holds Python's lock inside a call is the one that is named, with its line.
case_watch_lock() {
	python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null || skip "no Python from 3.11 to 3.13"
	mkfifo "$T/wait"
	cat > "$T/rank.py" <<- 'PY'
		import ctypes, sys, threading, time
		cuda = ctypes.PyDLL(sys.argv[1]) # does not give the lock away
		def evaluate():
		    cuda.cudaStreamSynchronize(None)
		threading.Thread(target=lambda: [time.sleep(0.1) for _ in range(100000)], daemon=True).start()
		print("ready", flush=True)
		evaluate()
	PY
	STANDIN_WAIT="cuStreamSynchronize:$T/wait" LD_LIBRARY_PATH=$STANDIN python3 "$T/rank.py" "$STANDIN/libcudart.so.13" > "$T/py.out" &
	PID_py=$!
	wait_for 10 grep -q ready "$T/py.out"
	watching -p "$PID_py"
	watch_says 'evidence: '
	watch_ends 4
	grep -q '^HANG 1: python3.* (PID): thread is inside cudaStreamSynchronize and holds Python.s lock at evaluate (.*rank.py:4)$' <(verdicts) || fail "what is said: $(verdicts)"
	grep -q 'evaluate (.*rank.py:4)' "$(hang_folder)/stacks.txt" || fail "no line in the stacks: $(cat "$(hang_folder)/stacks.txt")"
	kill -KILL "$PID_py"
	wait_for 5 ended "$PID_py"
}

# ---- processes that signals end ----

# ended_job MODE [NAME=VALUE...]: a job of four ranks that `watch` has seen as ranks, and that hangs for it only in a minute.
ended_job() {
	hung job "$1" 4
	HANG=60 watching -v -p "$(hung_pids job 4)"
	wait_for 20 grep -q "process $job_3: 1 communicators of NCCL" "$T/err"
	sleep 1 # the look has ended
}

ended_folder() {
	ls -d "$T"/dump/ended-*
}

# What hang.json says of each process that ended.
ended_who() {
	python3 - "$(ended_folder)/hang.json" <<- 'END'
		import json, sys
		h = json.loads(open(sys.argv[1]).readline())
		print(h["type"], h["id"], h["subject"]["rank"], h["confidence"], len(h["pids"]))
		for w in h["who"]:
		    print(w["rank"], w["state"], w["signal"], w["ended_by_it"], w["by"], w.get("sender"), w.get("address"), w.get("wait_status", -1) & 127, w.get("hang"), w["threads"])
	END
	python3 tests/cases/check_hang.py "$(ended_folder)/hang.json" docs/hang.schema.json docs/findings.schema.json || echo "hang.json is wrong"
}

# The stack of a thread of the process that ended, as far as main's caller.
ended_stack() {
	sed -n "/^process $1 /,/^process /p" "$(ended_folder)/stacks.txt"
}

# A rank that aborts, as watchdogs do it: its own stack, those of the others, and what was recorded.
case_watch_ended_abort() {
	ended_job aborts
	exec {FD_late}<> "$T/job/late"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "ENDED 1: rank 3 (ranks, PID) was ended by SIGABRT, which it sent itself
0 hangs, 1 end by signals"
	expect "verdict" "$(ended_who)" "ended rank-ended 3 measured 4
3 ended SIGABRT True itself None None 6 None 1"
	expect "files" "$(cd "$(ended_folder)" && find . -type f -printf '%f %m\n' | sort | xargs)" \
		"flight.ctrace 600 hang.json 600 kernel.log 600 machine.txt 600 processes.txt 600 stacks.txt 600"
	ended_stack "$job_3" > "$T/stack"
	for frame in end_by_abort main; do
		grep -q "^      $frame" "$T/stack" || fail "no $frame in the stack of rank 3: $(cat "$(ended_folder)/stacks.txt")"
	done
	ended_stack "$job_0" | grep -q cudaStreamSynchronize || fail "no stack of rank 0: $(cat "$(ended_folder)/stacks.txt")"
	"$CUDATRACE" info "$(ended_folder)/flight.ctrace" > "$T/info" 2>&1 || fail "the trace cannot be read: $(cat "$T/info")"
	ct stuck --merge "$(ended_folder)/hang.json"
	grep -q '^ended on .*: rank 3 (ranks, PID [0-9]*) was ended by SIGABRT, which it sent itself$' "$T/out" || fail "merged: $(cat "$T/out")"
	exec {FD_late}>&-
	hung_ends job
}

case_watch_ended_fault() {
	ended_job crashes
	exec {FD_late}<> "$T/job/late"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "ENDED 1: rank 3 (ranks, PID) was ended by SIGSEGV, a fault at address HASH
0 hangs, 1 end by signals"
	expect "verdict" "$(ended_who)" "ended rank-ended 3 measured 4
3 ended SIGSEGV True kernel None 0x8 11 None 1"
	ended_stack "$job_3" | grep -q '^      end_by_fault' || fail "no stack of rank 3: $(cat "$(ended_folder)/stacks.txt")"
	exec {FD_late}>&-
	hung_ends job
}

# Nobody can catch SIGKILL: who sent it, and where the rank was, is known all the same.
case_watch_ended_kill() {
	ended_job absent
	env kill -KILL "$job_1"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "ENDED 1: rank 1 (ranks, PID) was ended by SIGKILL from kill (PID)
0 hangs, 1 end by signals"
	expect "verdict" "$(ended_who)" "ended rank-ended 1 measured 4
1 ended SIGKILL True process kill None 9 None 1"
	ended_stack "$job_1" | grep -q cudaStreamSynchronize || fail "no stack of rank 1: $(cat "$(ended_folder)/stacks.txt")"
	hung_ends job
}

# A launcher that ends all ranks: one incident, and the first is named.
case_watch_ended_all() {
	ended_job absent
	env kill -TERM "$job_2" "$job_0" "$job_1" "$job_3"
	watch_says 'evidence: '
	sleep 2 # no other one
	watch_ends 4
	expect "what is said" "$(verdicts)" "ENDED 1: rank 2 (ranks, PID) was ended by SIGTERM from kill (PID); the same ended 3 others
0 hangs, 1 end by signals"
	expect "verdict" "$(ended_who)" "ended rank-ended 2 measured 4
2 ended SIGTERM True process kill None 15 None 1
0 ended SIGTERM True process kill None 15 None 1
1 ended SIGTERM True process kill None 15 None 1
3 ended SIGTERM True process kill None 15 None 1"
	expect "folders" "$(find "$T/dump" -mindepth 1 -maxdepth 1 | wc -l)" 1
	hung_ends job
}

# A rank that is killed, and a launcher that ends the others seconds later: a further line, and no further folder.
case_watch_ended_later() {
	ended_job absent
	env kill -KILL "$job_3"
	watch_says 'evidence: '
	env kill -TERM "$job_0" "$job_1"
	watch_says 'ENDED 1 goes on: '
	watch_ends 4
	expect "what is said" "$(verdicts)" "ENDED 1: rank 3 (ranks, PID) was ended by SIGKILL from kill (PID)
ENDED 1 goes on: rank 0 (ranks, PID) was ended by SIGTERM from kill (PID); the same ended 1 other
0 hangs, 1 end by signals"
	expect "folders" "$(find "$T/dump" -mindepth 1 -maxdepth 1 | wc -l)" 1
	hung_ends job
}

# A handler after which the ranks go on: nothing has ended.
case_watch_ended_handled() {
	ended_job handles
	env kill -TERM "$job_0" "$job_1" "$job_2" "$job_3"
	sleep 4
	watch_ends 0
	expect "what is said" "$(verdicts)" "0 hangs"
	expect "folders" "$(ls -A "$T/dump")" ""
	hung_ends job
}

# A handler that ends the rank.
case_watch_ended_exits() {
	ended_job exits
	env kill -TERM "$job_0"
	watch_says 'evidence: '
	watch_ends 4
	expect "what is said" "$(verdicts | sed 's/ended 0\.[0-9]s after/ended TIME after/')" "ENDED 1: rank 0 (ranks, PID) ended TIME after it was sent SIGTERM from kill (PID)
0 hangs, 1 end by signals"
	expect "verdict" "$(ended_who)" "ended rank-ended 0 measured 4
0 ended SIGTERM False process kill None 0 None 0"
	hung_ends job
}

# A hang is under way: what ends it names it.
case_watch_ended_hang() {
	hung job aborts 4
	watching -p "$(hung_pids job 4)"
	watch_says 'HANG 1: '
	exec {FD_late}<> "$T/job/late"
	watch_says 'ENDED 1: '
	watch_ends 4
	grep -q '^ENDED 1: rank 3 (ranks, PID) was ended by SIGABRT, which it sent itself; it was a part of hang 1 (rank-absent)$' <(verdicts) || fail "what is said: $(verdicts)"
	expect "verdict" "$(ended_who)" "ended rank-ended 3 measured 4
3 ended SIGABRT True itself None None 6 1 1"
	exec {FD_late}>&-
	hung_ends job
}

# A program from its start, which aborts: the trace ends with it.
case_watch_ended_command() {
	rc=0
	LD_LIBRARY_PATH=$STANDIN "$CUDATRACE" watch --dump "$T/dump" -o "$T/out" -- python3 -c '
import ctypes, os, sys
ctypes.CDLL(sys.argv[1]).cudaFree(None)
os.abort()' "$STANDIN/libcudart.so.13" > /dev/null 2> "$T/err" || rc=$?
	expect "status" "$rc" 4
	grep -q '^ENDED 1: python3.* (PID) was ended by SIGABRT, which it sent itself$' <(verdicts) || fail "what is said: $(verdicts)"
	grep -q '^      abort' "$(ended_folder)/stacks.txt" || fail "no stack: $(cat "$(ended_folder)/stacks.txt")"
}

# refuses_dump DIR WHY: in one sentence.
refuses_dump() {
	ct watch -q --dump "$1" -p $$
	ok_rc 1
	expect "what is said of $1" "$(cat "$T/err")" "cudatrace: error: --dump: $1 cannot be used: $2"
}

# A folder that others can write to is refused, whatever link leads to it, and so is what is no folder.
case_watch_refuses() { # undisturbed
	local others="others could put files into it: give a folder that is yours and that nobody else can write to"
	mkdir -m 777 "$T/open"
	mkdir "$T/theirs"
	chown 1234 "$T/theirs"
	ln -s "$T/open" "$T/link"
	touch "$T/file"
	refuses_dump "$T/open" "$others"
	refuses_dump "$T/link" "$others"
	refuses_dump "$T/theirs" "$others"
	refuses_dump "$T/file" "Not a directory"
	refuses_dump "$T/absent/dump" "No such file or directory"
	expect "what was written" "$(find "$T/open" "$T/theirs" -mindepth 1)" ""
	ct watch -d 0.1 -p $$
	ok_rc 0
	says "process $$ has not loaded CUDA yet: waiting for it"
	ct watch --max-dumps 3 -p $$
	ok_rc 2
	ct watch --source=hooks -p $$
	ok_rc 2
	says 'only probes see where threads are: leave out --source'
}

# Files of several nodes: what is damaged, half written, foreign, or no file at all is named, and the others are put together.
case_watch_merge() {
	local file
	hung job absent 4
	ct stuck -p "$job_3" --over 0.3 --format json
	ok_rc 4
	grep '"type":"communicator"' "$T/out" > "$T/whole"
	{
		echo '{"type":"hang","host":"node1","boot":"b","id":"rank-absent","claim":"3 ranks wait\u001b[2J for rank 3","start_ns":1}'
		grep -E '"rank":[01],' "$T/whole"
	} > "$T/node1.json"
	sed -n 's/"host":"[^"]*"/"host":"node2"/; /"rank":[23],/p' "$T/whole" > "$T/node2.json"
	head -c 300 "$T/node2.json" | tail -c 100 > "$T/torn.json"
	{ cat "$T/node2.json"; printf '{"type":"communicator","hash":"0x'; } > "$T/half.json"
	mkfifo "$T/pipe.json"
	head -c 100000 /dev/zero > "$T/zeros.json"
	: > "$T/empty.json"
	ct stuck --merge "$T"/{torn,node1,half,pipe,zeros,empty,missing}.json
	ok_rc 4
	expect "what is said" "$(sed 's/0x[0-9a-f]*/HASH/' "$T/out" | sed -n '1,3p;$p')" "a hang on node1: 3 ranks wait?[2J for rank 3
communicator HASH of 4 ranks: rank 3 has not arrived
  AllReduce #4: rank 3 has not begun it (the last was #3), ranks 0-2 have
1 rank absent"
	for file in torn zeros; do says "$T/$file.json: line 1 is damaged"; done
	says "$T/half.json: line 3 is damaged"
	says "$T/empty.json: nothing in it is of"
	says "$T/pipe.json is not a file"
	says "$T/missing.json cannot be opened"
	says "6 of 7 files could not be read as a whole"
	hung_ends job
}

# hung_from_start MODE: a job of three ranks, which may begin some seconds one after the other on a busy machine, that `watch` starts, whose ranks wait for their streams; what is said of the hang.
hung_from_start() {
	mkfifo "$T/in" "$T/wait"
	exec {FD_in}<> "$T/in"
	RANKS_WAIT=1 LD_LIBRARY_PATH=$STANDIN STANDIN_WAIT="cuStreamSynchronize:$T/wait" \
		"${BACKGROUND[@]}" "$CUDATRACE" watch --hang 6 --dump "$T/dump" -o "$T/out" -- "$BIN/ranks" "$1" 3 0 2 "$T" < "$T/in" > "$T/job.out" 2> "$T/err" &
	PID_watch=$!
	watch_says 'evidence: '
	kill -TERM "$PID_watch"
	wait_for 20 ended "$PID_watch"
	exec {FD_in}>&-
	python3 tests/cases/check_hang.py "$(hang_folder)/hang.json" docs/hang.schema.json docs/findings.schema.json > "$T/check" || fail "hang.json: $(cat "$T/check")"
}

# What ranks ask for differs: nobody is absent, and the calls that were seen say why it hangs.
case_watch_count() {
	hung_from_start count
	grep -q '^HANG 1: the ranks of communicator HASH do not call the same: rank 0 (ranks, PID), whose thread is inside cudaStreamSynchronize; rank 1 .*; rank 2 ' <(verdicts) ||
		fail "what is said: $(verdicts)"
	expect "the fault" "$(grep -c '"type":"collective_fault".*"fault":"arguments"' "$(hang_folder)/hang.json")" 1
}

case_watch_circle() {
	hung_from_start circle
	grep -q '^HANG 1: ranks wait for each other in a circle, in .*communicator HASH and others: rank 0 (ranks, PID), whose thread is inside cudaStreamSynchronize; ' <(verdicts) ||
		fail "what is said: $(verdicts)"
	expect "the circle" "$(grep -c '"type":"collective_fault".*"fault":"circle"' "$(hang_folder)/hang.json")" 1
	"$CUDATRACE" stuck --over 0.1 "$(hang_folder)/flight.ctrace" > "$T/stuck" 2>&1
	grep -q 'a hang, a circle of receives: rank 0 waits in ncclRecv #1 for rank 1' "$T/stuck" || fail "the trace: $(cat "$T/stuck")"
}

# Two communicators, whose collectives one rank calls in another order.
case_watch_crossed() {
	hung_from_start crossed
	grep -q '^HANG 1: ranks wait for each other in a circle, in ' <(verdicts) || fail "what is said: $(verdicts)"
}
