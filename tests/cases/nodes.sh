# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# nodes.sh - several busy processes at once, as the ranks of a node are: each has its device work, all have one begin and one end, and what
# is missing is said.
NODE_WORK=$BIN/work

# node N ARGS...: N processes that work (prog/work.c); their pids in PIDS, with commas in ALL.
node() {
	local n=$1 i
	shift
	PIDS=()
	for ((i = 0; i < n; i++)); do
		"$NODE_WORK" "$@" > "$T/work.$i" 2>&1 < /dev/null &
		PIDS+=($!)
	done
	for i in "${PIDS[@]}"; do
		wait_for 5 grep -q libcuda.so "/proc/$i/maps"
	done
	ALL=$(IFS=,; echo "${PIDS[*]}")
}

end_node() {
	kill -KILL "${PIDS[@]}" 2> /dev/null
	wait "${PIDS[@]}" 2> /dev/null
}

# node_sums: of the JSON in $T/out a line for each process: its pid, launches that returned, others, kernels, and device work without a call.
node_sums() {
	python3 - "$T/out" << 'EOF'
import collections, json, sys
sums = collections.defaultdict(lambda: [0, 0, 0, 0])
for line in open(sys.argv[1], encoding='utf-8'):
    r = json.loads(line)
    if r['type'] == 'call' and r['name'] in ('cudaLaunchKernel', 'cuLaunchKernel'):
        sums[r['pid']][1 if r.get('unfinished') else 0] += 1
    elif r['type'] in ('kernel', 'copy', 'set'):
        sums[r['pid']][2] += r['type'] == 'kernel'
        sums[r['pid']][3] += 'cause' not in r
for pid, n in sorted(sums.items()):
    print(pid, *n)
EOF
}

# one_window WHAT PID...: each of these processes has launches and as many kernels, and its work has its call. A launch that had not returned
# at the end may have its kernel. Where other work has the processors, a call may be under way at the begin, and the last records of the
# device may need more than the second for which they are waited: at most 2 % of a process's launches, and the last line says how many.
one_window() {
	local what=$1 pid launches open kernels alone seen=0 gone=0 strays=0
	shift
	node_sums > "$T/sums"
	while read -r pid launches open kernels alone; do
		[[ " $* " == *" $pid "* ]] || continue
		seen=$((seen + 1))
		[ "$launches" -gt 0 ] || fail "$what: process $pid has no launches: $(tail -n 1 "$T/err")"
		((kernels + launches / 50 >= launches && kernels <= launches + open + alone)) ||
			fail "$what: process $pid has $launches launches, $open that had not returned, and $kernels kernels: $(tail -n 1 "$T/err")"
		[ "$alone" -le 1 ] || fail "$what: $alone kernels of process $pid have no call: $(tail -n 1 "$T/err")"
		gone=$((gone + (launches > kernels ? launches - kernels : 0))) strays=$((strays + alone))
	done < "$T/sums"
	expect "$what: processes" "$seen" $#
	expect "$what: launches without a record, said" "$([ "$(last_number 'at least ([0-9]+) launch(es)? ha(s|ve) no record of')" -ge $gone ] && echo enough)" enough
	expect "$what: work without a call, said" "$(last_number '([0-9]+) without their call')" $strays
}

# last_number PATTERN: the number in the last line that the pattern has in its first brackets; 0: it is not there.
last_number() {
	local line
	line=$(tail -n 1 "$T/err")
	if [[ $line =~ $1 ]]; then echo "${BASH_REMATCH[1]}"; else echo 0; fi
}

# However busy the processes are, and however much the tracer has to read of their calls: it reads of each of their agents, too.
case_nodes_fair() { # long undisturbed
	local n source pid launches open kernels alone
	for n in 4 8; do
		for source in probes hooks; do
			node $n -- -1 loop
			ct_json --source=$source --gpu -d 1 -p "$ALL"
			ok_rc
			end_node
			node_sums > "$T/sums"
			expect "$n by $source: processes" "$(wc -l < "$T/sums")" $n
			while read -r pid launches open kernels alone; do
				((launches > 0 && kernels > 0)) ||
					fail "$n by $source: process $pid has $launches launches and $kernels kernels: $(tail -n 1 "$T/err")"
			done < "$T/sums"
			! grep -q 'had no agent' "$T/err" || fail "$n by $source: $(tail -n 1 "$T/err")"
		done
	done
}

# Calls and device work begin and end at the same moment.
case_nodes_window() { # long undisturbed
	local source i
	for source in probes hooks; do
		node 3 -p 1 -t 2 -- -1 loop
		for i in 1 2 3 4 5; do
			ct_json --source=$source --gpu -d 0.3 -p "$ALL"
			ok_rc
			one_window "$source $i" "${PIDS[@]}"
			says ', 0 lost(;.*)?$'
		done
		end_node
	done
}

# A kernel at the end of the trace is in a scope that is known, as any other.
case_nodes_window_scopes() { # undisturbed
	local source pid i
	"$BIN/operators" train 100000000 > "$T/work.out" 2>&1 < /dev/null &
	pid=$!
	wait_for 5 grep -q libtorch_cpu "/proc/$pid/maps"
	for source in probes hooks hooks; do
		ct_json --source=$source --gpu --layers torch -d 0.3 -p "$pid"
		ok_rc
		grep -q '"type":"copy"' "$T/out" || fail "$source: no device work: $(tail -n 1 "$T/err")"
		! grep -q 'unknown scope' "$T/err" || fail "$source: $(tail -n 1 "$T/err")"
		says ', 0 lost(;.*)?$'
	done
	kill -KILL $pid
}

# One of the processes is killed: it is named, and the others are whole.
case_nodes_killed() { # undisturbed
	local source
	for source in probes hooks; do
		node 3 -p 1 -- -1 loop
		attach --source=$source --gpu -p "$ALL"
		node_worked=0
		wait_for 5 node_works
		kill -KILL "${PIDS[0]}"
		wait_for 5 grep -q "process ${PIDS[0]} ended without its exit handlers" "$T/err"
		wait_for 5 node_works
		finish INT
		ok_rc
		one_window $source "${PIDS[1]}" "${PIDS[2]}"
		end_node
	done
}

# There is more device work than at the last look.
node_works() {
	local n
	n=$(grep -c '^{"type":"kernel"' "$T/out")
	((n > ${node_worked:-0} + 100)) && node_worked=$n
}

# Processes that start late and end early have all of their work.
case_nodes_late_and_early() { # undisturbed
	local source
	for source in probes hooks; do
		# shellcheck disable=SC2016 # it is the inner shell's
		ct_json --source=$source --gpu -- sh -c '"$0" 200 return & "$0" -p 1 400 return & sleep 0.3; "$0" 100 return & "$0" 7 return; wait' "$NODE_WORK"
		ok_rc
		expect "$source: kernels" "$(grep -c '^{"type":"kernel"' "$T/out")" 707
		expect "$source: sums" "$(node_sums | awk '{ print $2, $3, $4, $5 }' | sort -n | tr '\n' ,)" "7 0 7 0,100 0 100 0,200 0 200 0,400 0 400 0,"
		no_loss
	done
}

# The tracer itself is stopped for a second: what waits is read later, and nothing is lost without a word.
case_nodes_stopped_reader() { # undisturbed
	local source
	for source in probes hooks; do
		node 2 -p 1 -- -1 loop
		attach --source=$source --gpu -p "$ALL"
		node_worked=0
		wait_for 5 node_works
		kill -STOP "$CT"
		sleep 1
		kill -CONT "$CT"
		wait_for 5 node_works
		finish INT
		ok_rc
		one_window $source "${PIDS[@]}"
		says ', 0 lost(;.*)?$'
		end_node
	done
}

# A process in which no thread can be stopped, as it waits in a call that would not go on as before, takes the tracer as long as it is
# willing to wait; the hooks of another one are answered meanwhile.
case_nodes_one_waits() { # long undisturbed
	local holder
	node 1 -p 1 -- -1 loop
	python3 -c '
import socket, subprocess, sys
ends = [socket.socketpair() for _ in range(2)]
works = [subprocess.Popen([sys.argv[1], "1", "wait"], stdin=end, stdout=subprocess.DEVNULL) for end, _ in ends]
print(*(w.pid for w in works), flush=True)
sys.stdin.read()
' "$NODE_WORK" > "$T/waiting" < <(sleep 60) &
	holder=$!
	wait_for 5 test -s "$T/waiting"
	read -ra PIDS <<< "${PIDS[0]} $(cat "$T/waiting")"
	wait_for 5 grep -q libcuda.so "/proc/${PIDS[2]}/maps"
	ct_json --source=hooks --gpu -d 1 -p "${PIDS[0]},${PIDS[1]},${PIDS[2]}"
	ok_rc
	kill -KILL $holder "${PIDS[@]}"
	one_window 'one of three' "${PIDS[0]}"
	says "no thread of process ${PIDS[1]} was found at a safe point"
}

# A call that is under way while the agent leaves: CUPTI has told of its work already, and its begin and end say that it is not of this trace.
case_nodes_ends_in_call() {
	local i
	PIDS=()
	STANDIN_CUPTI=lasts:30000 "$NODE_WORK" -- -1 loop > "$T/work" 2>&1 < /dev/null &
	PIDS+=($!)
	wait_for 5 grep -q libcuda.so "/proc/${PIDS[0]}/maps"
	for i in 1 2 3 4 5; do
		ct_json --gpu -d 0.2 -p "${PIDS[0]}"
		ok_rc
		! grep -q 'without their call' "$T/err" || fail "$i: $(tail -n 1 "$T/err")"
		says ', 0 lost(;.*)?$'
	done
	end_node
}

# The links of many processes are not one set for each: it would take the kernel long to take them off, and each call would go through all.
case_nodes_links() {
	local n links=()
	for n in 3 4; do
		node $n -p 1 -- -1 loop
		ct_json -v -d 0.2 -p "$ALL"
		ok_rc
		end_node
		[[ $(grep ' links$' "$T/err") =~ by\ ([0-9]+)\  ]] || skip "no links here: another kind of probe"
		links+=("${BASH_REMATCH[1]}")
		expect "$n: processes" "$(sed -nE 's/^\{"type":"call".*"pid":([0-9]+),.*/\1/p' "$T/out" | sort -u | wc -l)" "$n"
	done
	expect "links" "${links[0]}" "${links[1]}"
}
