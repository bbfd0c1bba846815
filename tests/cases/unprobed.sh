# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# unprobed.sh - cases about what is said of processes that ran before their calls were seen.

# adds_up CALLS: the rows and what the end says of processes that made 10 calls each account for so many calls.
adds_up() {
	python3 - "$T/out" "$1" <<-'END' || fail "$(tail -n 1 "$T/err"): $(grep -o '"unprobed":{[^}]*}' "$T/out")"
		import json, sys
		lines = [json.loads(l) for l in open(sys.argv[1])]
		end = lines[-1]
		missing = int(sys.argv[2]) - sum(l["type"] == "call" for l in lines)
		said = end.get("unprobed", {"processes": 0, "ended": 0, "at_least": False})
		lost = sum(n for cause, n in end["lost"].items() if cause != "orphan_return")
		sys.exit(end["type"] != "end" or missing < 0 or said["ended"] > said["processes"] or
			 (missing > lost + 10 * said["processes"] and not said["at_least"]))
	END
}

# Short processes of a library that nobody knew: those that came too early are counted.
case_unprobed_storm() { # machine
	local i p
	copy_library "$T/library"
	attach --comm late -e cudaStreamQuery
	for i in {1..20}; do
		p=()
		for _ in 1 2 3 4 5; do
			"$BIN/late" "$T/library/libcudart.so.13" 10 > /dev/null &
			p+=($!)
		done
		wait "${p[@]}" || fail "a process of round $i failed"
	done
	finish INT
	ok_rc
	adds_up 1000
	! grep -q '"unprobed"' "$T/out" || says 'calls.*, 0 lost of those seen; .*process(es)? (ran up to [0-9.]+ ms|ended) before (its|their) calls were seen'
}

# diary_of PROCESSES LIBRARY...: runs short processes of the name $LATE, four at a time, the first part of them with the first library and so on, and
# writes down the number of each and how many calls it makes.
diary_of() {
	python3 - "$T/$LATE" "$T/diary" "$@" <<-'END'
		import subprocess, sys
		late, diary, total, libraries = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
		running = []
		with open(diary, "w") as f:
		    for i in range(total):
		        n = 1 + i % 19
		        p = subprocess.Popen([late, libraries[i * len(libraries) // total], str(n)], stdout=subprocess.DEVNULL)
		        f.write(f"{p.pid} {n}\n")
		        running.append(p)
		        while len(running) >= 4:
		            if running.pop(0).wait():
		                sys.exit("a process failed")
		    sys.exit(any([p.wait() for p in running]))
	END
}

# as_in_diary: no row is of a process that is not in the diary, no process has more rows than calls, and of those with fewer there are
# no more than processes that were said to have run unprobed, and records that were said to be lost.
as_in_diary() {
	python3 - "$T/out" "$T/diary" > "$T/compared" <<-'END' || fail "$(tail -n 1 "$T/compared"); $(tail -n 1 "$T/err")"
		import collections, json, sys
		lines = [json.loads(l) for l in open(sys.argv[1])]
		end, called = lines[-1], collections.Counter()
		for line in open(sys.argv[2]):
		    pid, n = map(int, line.split())
		    called[pid] += n
		rows = collections.Counter(l["pid"] for l in lines if l["type"] == "call")
		said = end.get("unprobed", {"processes": 0, "ended": 0, "at_least": False})
		lost = sum(n for cause, n in end["lost"].items() if cause != "orphan_return")
		fewer = [pid for pid in called if rows[pid] < called[pid]]
		more = [pid for pid in rows if rows[pid] > called[pid]]
		print(f"{sum(called.values())} calls of {len(called)} processes, {sum(rows.values())} rows, {len(fewer)} processes have fewer, "
		      f"{len(more)} more, lost {lost}, said {said}")
		sys.exit(end["type"] != "end" or end["calls"] != sum(rows.values()) or bool(more) or said["ended"] > said["processes"] or
		     said["processes"] > len(called) or (len(fewer) > lost + said["processes"] and not said["at_least"]))
	END
}

# Of thousands of short processes, of three libraries that nobody knew, each one whose calls were not all seen is accounted for.
case_unprobed_thousands() { # long machine
	local i
	for i in 1 2 3; do
		mkdir "$T/$i"
		copy_library "$T/$i/library"
	done
	LATE=late.$BASHPID # others may run `late` meanwhile
	ln -s "$BIN/late" "$T/$LATE"
	attach --comm "$LATE" -e cudaStreamQuery --keep-chatty
	diary_of 3000 "$T"/[123]/library/libcudart.so.13 2> "$T/why" || fail "$(cat "$T/why")"
	finish INT
	ok_rc
	as_in_diary
}

# Of the first process of a library that nobody knew, in a trace of the whole machine, something is missing: every place says so.
case_unprobed_is_said() { # machine
	local command what='1 process (ran up to [0-9.]+ ms|ended) before its calls were seen'
	copy_library "$T/library"
	"${BACKGROUND[@]}" "$CUDATRACE" record -v -o "$T/r.ctrace" --comm late -e cudaStreamQuery > "$T/ct.out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 ready_or_gone
	"$BIN/late" "$T/library/libcudart.so.13" 1 > /dev/null || fail "the process failed"
	wait_for 10 grep -q "library/libcudart.so.13: .* functions probed" "$T/err"
	finish INT
	ok_rc
	says ", 0 lost of those seen; $what"
	ct info "$T/r.ctrace"
	ok_rc
	grep -q -E "^not seen +$what\$" "$T/out" || fail "info: $(tail -n 5 "$T/out")"
	ct replay --strict "$T/r.ctrace"
	ok_rc 3
	says ", 0 lost of those seen; $what"
	ct replay --format json "$T/r.ctrace"
	tail -n 1 "$T/out" | grep -q -E '"unprobed":\{"processes":1,"ended":[01],"max_ns":[0-9]+,"at_least":false\}' || fail "$(tail -n 1 "$T/out")"
	for command in stat mem advise; do
		ct "$command" "$([ "$command" = advise ] && echo --format=json || echo --json)" "$T/r.ctrace"
		grep -q -E '"unprobed":\{"processes":1,"ended":[01],"max_ns":[0-9]+,"at_least":false\}' "$T/out" || fail "$command: $(tail -n 3 "$T/out")"
	done
	# it is the process's own
	ct replay --strict --comm other "$T/r.ctrace"
	ok_rc
	! grep -q "process" "$T/err" || fail "$(tail -n 1 "$T/err")"
}

# A program that is started waits for its probes, and so do its children.
case_unprobed_none() {
	copy_library "$T/library"
	ct_json --strict -e cudaStreamQuery -- sh -c "'$BIN/late' '$T/library/libcudart.so.13' 10; '$BIN/late' '$T/library/libcudart.so.13' 13"
	ok_rc
	expect_rows cudaStreamQuery 23
	! grep -q '"unprobed"' "$T/out" || fail "$(tail -n 1 "$T/out")"
	! grep -q 'before its calls' "$T/err" || fail "$(tail -n 1 "$T/err")"
}

# Threads and children that run something later wait too, though the kernel has put no probe on for a while: it waits for a grace
# period of RCU then. Where other work has all processors a wait may be in vain, which is said.
case_unprobed_after_idle() {
	local i got waited vain=0
	copy_library "$T/library"
	for i in 1 2 3 4 5 6 7; do
		rm -f "$T/in" "$T/err" "$T/out"
		mkfifo "$T/in"
		sh -c "read -r _; '$BIN/late' '$T/library/libcudart.so.13' 10; exec '$BIN/late' '$T/library/libcudart.so.13' 13" \
			< "$T/in" > /dev/null &
		local pid=$!
		exec 9> "$T/in"
		attach -f -e cudaStreamQuery -p "$pid"
		sleep 2 # nothing is waited for: this is the while; one second is not always enough
		waited=$(cpu_pressure_us)
		echo >&9
		exec 9>&-
		wait_for 10 ended "$pid"
		waited=$((($(cpu_pressure_us) - waited) / 1000))
		finish
		ok_rc
		got=$(rows cudaStreamQuery)
		[ "$got" = 23 ] || grep -q '"unprobed":{"processes":[1-9]' "$T/out" || fail "$got calls, and nothing is said: $(tail -n 1 "$T/out")"
		[ "$got" != 23 ] || grep -q '"unprobed"' "$T/out" || return 0
		((waited > 1000)) || vain=$((vain + 1))
	done
	((vain < 4)) || fail "$vain of $i runs waited in vain, though the processors were free"
}
