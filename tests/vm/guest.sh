# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash disable=SC3045
# guest.sh - the tests inside the virtual machine, for busybox's sh. Started by its init as root, in the root of what
# tests/vm/run.sh copied. Prints a line a test, and times as lines that begin with #: they are those of an emulated
# machine and judge nothing.
T=/tmp
CT=/cudatrace
CALLS=.output/cases/calls
EVENTS=/mnt/uprobe_events

ONLY=$(sed -n 's/.* only=\([^ ]*\).*/\1/p' /proc/cmdline)

# check NAME WHY-NOT-COMMAND...: the test passes when the command prints nothing.
check() {
	name=$1
	shift
	echo "$name" | grep -qE "$ONLY" || return
	why=$("$@" 2>&1)
	if [ -z "$why" ]; then
		echo "ok $name"
	else
		echo "not ok $name: $(echo "$why" | head -n 5 | tr '\n' '|')"
	fi
}

now() {
	cut -d' ' -f1 /proc/uptime
}

since() {
	awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f s", b - a }'
}

# The rows of a trace as the sample prints them: no times, no process.
normalise() {
	sed -n -E 's/^[0-9.]+ +[^ ]+ +[0-9]+ +([A-Za-z_0-9]+) +(.*)$/\1 \2/; t dur; d; :dur; s/[0-9.]+(ns|us|ms|s)$/DUR/; p' "$1"
}

# How many completed calls of a function the JSON has.
rows() {
	grep -c "\"type\":\"call\".*\"name\":\"$1\"" $T/out
}

# equal WHAT GOT WANT
equal() {
	[ "$2" = "$3" ] || echo "$1: $2, not $3"
}

# Two minutes, because the emulated machine is slow, and slower still while other work keeps the processors busy.
wait_for() {
	i=0
	until "$@" > /dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 2400 ] || return 1
		usleep 50000
	done
}

gone() {
	! kill -0 "$1" 2> /dev/null
}

no_events() {
	grep ':cudatrace/' $EVENTS
}

links() {
	/test_links > $T/links 2>&1 || cat $T/links
	sed -n 's/^  /# links: /p' $T/links > /dev/console
}

# golden KIND OPTIONS...: the sample's trace is what the sample says, and the links were of this kind.
golden() {
	kind=$1
	shift
	$CT -v "$@" -o $T/rows -- ./cuda_events_test --expect $T/want > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	grep -q " probed by [0-9]* $kind links" $T/err || echo "not by $kind: $(grep ' probed by ' $T/err)"
	[ -s $T/want ] || echo "the sample expects nothing"
	normalise $T/rows > $T/got
	diff -u $T/want $T/got | grep '^[-+][^-+]'
	no_events
}

# scopes KIND OPTIONS...: a program's ranges and marks, with the programs for them in the kernel side.
scopes() {
	kind=$1
	shift
	STANDIN_NVTX_TOOL=1 $CT -v "$@" --format json --layers nvtx -o $T/out -- .output/cases/ranges rich > $T/prog 2> $T/err ||
		echo "status $?: $(tail -n 2 $T/err)"
	grep -q " probed by [0-9]* $kind links" $T/err || echo "not by $kind: $(grep ' probed by ' $T/err)"
	equal ranges "$(grep -c '"type":"range"' $T/out)" 5
	equal marks "$(grep -c '"type":"mark"' $T/out)" 1
	equal copies "$(rows cudaMemcpy)" 1
	equal "ranges with a registered name" "$(grep -c '"type":"range".*"name":"registered","domain":"mine"' $T/out)" 1
}

# exact KIND OPTIONS...: each call of the program has its row, and nothing was lost.
exact() {
	kind=$1
	shift
	$CT -v "$@" --format json -o $T/out -- $CALLS mix 700 1100 900 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	grep -q " probed by [0-9]* $kind links" $T/err || echo "not by $kind: $(grep ' probed by ' $T/err)"
	equal cudaMalloc "$(rows cudaMalloc)" 701
	equal cudaFree "$(rows cudaFree)" 701
	equal cudaMemcpy "$(rows cudaMemcpy)" 1100
	equal cudaMemset "$(rows cudaMemset)" 900
	equal "folded driver calls" "$(rows cuMemAlloc_v2)" 0
	tail -n 1 $T/out | grep -q '"type":"end"' || echo "no end: $(tail -n 1 $T/out)"
	no_events
}

# What keeps a program waiting: a child that sleeps, through a pipe. The kernel side for it loads, and the chain is found.
waits() {
	$CT why --format json -o $T/out -- .output/cases/planted pipe 8 > $T/prog 2> $T/err || echo "status $?: $(tail -n 3 $T/err)"
	grep -q '"id":"sleep","claim":"waits for a pipe <- planted: sleeps' $T/out || echo "not found: $(head -c 600 $T/out) $(tail -n 2 $T/err)"
}

# Calls that are counted in the kernel, and what they took and freed.
counted() {
	$CT stat --format csv -o $T/out -- $CALLS mix 700 1100 900 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal cudaMalloc "$(sed -n 's/^runtime,"cudaMalloc",\([0-9]*\),0,.*/\1/p' $T/out)" 701
	equal cudaMemset "$(sed -n 's/^runtime,"cudaMemset",\([0-9]*\),0,.*/\1/p' $T/out)" 900
	equal "bytes taken and not freed" "$(awk -F, '$2 == "\"cudaMalloc\"" { n += $13 } $2 == "\"cudaFree\"" { n -= $13; frees += $13 } END { print n, (frees > 0) }' $T/out)" "0 1"
	no_events
}

# Four threads on two CPUs, entry and return of each call paired by thread.
threads() {
	$CT --keep-chatty -e cudaStreamQuery --format json -o $T/out -- $CALLS threads 4 500 0 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal "rows of 4 threads" "$(grep -c '"type":"call"' $T/out)" "$(awk '/^thread / { n += $3 } END { print n }' $T/prog)"
}

# One row a call too for a libcudart that is linked in.
static() {
	$CT --format json -o $T/out -- .output/cases/calls-static mix 50 60 70 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal cudaMalloc "$(rows cudaMalloc)" 51
	equal cudaMemcpy "$(rows cudaMemcpy)" 60
	no_events
}

# A program, pid, that makes its calls when a line is written to descriptor 3, and ends with the next one.
start_waiting() {
	rm -f $T/in
	mkfifo $T/in
	$CALLS --wait mix 30 40 50 < $T/in > $T/prog &
	exec 3> $T/in
	wait_for grep -q '^ready' $T/prog || echo "the program did not start"
	pid=$(sed -n 's/^ready \([0-9]*\).*/\1/p' $T/prog)
}

# A program that runs already: attach, see its calls, detach while it lives.
running() {
	start_waiting
	began=$(now)
	$CT -v -p "$pid" --format json -o $T/out 2> $T/err &
	ct=$!
	wait_for grep -q ready $T/err || echo "did not attach: $(tail -n 1 $T/err)"
	echo "# attach to a process, all functions: $(since "$began")" > /dev/console
	[ $best != tracefs ] || grep -q ':cudatrace/' $EVENTS || echo "there are no trace events"
	echo >&3
	wait_for grep -q '^done' $T/prog
	began=$(now)
	kill -INT $ct
	wait_for gone $ct || echo "did not end"
	echo "# detach: $(since "$began")" > /dev/console
	equal cudaMemcpy "$(rows cudaMemcpy)" 40
	gone "$pid" && echo "the program is gone"
	no_events
	echo >&3
	exec 3>&-
	wait_for gone "$pid" || echo "the program did not end"
}

# Threads that hang since before: one in a system call, one that spins, one in the driver.
hanging() {
	mkfifo $T/hin $T/wait $T/waitd
	echo 0 > $T/spin
	STANDIN_WAIT=cuStreamSynchronize:$T/wait,cuEventRecord:$T/waitd STANDIN_SPIN=cuCtxSynchronize:$T/spin \
		.output/cases/stuck < $T/hin > $T/hout 2>&1 &
	pid=$!
	exec 4> $T/hin
	wait_for grep -q '^ready' $T/hout || echo "the program did not start"
	sleep 1
	$CT stuck -v -p $pid --over 3 --format json > $T/out 2> $T/err
	equal "status" $? 4
	for row in "blocked cudaStreamSynchronize" "spinning cudaDeviceSynchronize" "driver cuEventRecord"; do
		tid=$(sed -n "s/^${row% *} //p" $T/hout)
		grep "\"tid\":$tid," $T/out | grep -q "\"name\":\"${row#* }\".*\"before\":true" || echo "no row of $row: $(tail -n 4 $T/err)"
	done
	equal rows "$(grep -c '"type":"pending"' $T/out)" 3
	no_events
	exec 4>&-
	wait_for gone $pid || echo "the program did not end"
	equal disturbed "$(sed -n 's/^disturbed //p' $T/hout)" 0
}

# A tracer that is killed leaves events; the program goes on, and the next tracer removes them.
killed() {
	$CT -v -d 60 -o $T/out 2> $T/err -- sleep 50 &
	ct=$!
	$CALLS mix 1 1 1 > /dev/null
	wait_for grep -q ready $T/err || echo "did not attach: $(tail -n 1 $T/err)"
	$CALLS mix 1 1 1 > /dev/null || echo "the traced program failed"
	kill -KILL $ct
	wait $ct 2> /dev/null
	$CALLS mix 1 1 1 > /dev/null || echo "the program failed after the tracer was killed"
	$CT -d 1 -o $T/out 2> $T/err
	no_events
	killall sleep 2> /dev/null
}

# device_work KERNELS COPIES SETS: the JSON has so many of each, and each of them has its call.
device_work() {
	equal kernels "$(grep -c '"type":"kernel"' $T/out)" "$1"
	equal "copies on the device" "$(grep -c '"type":"copy".*"cause":"cudaMemcpy' $T/out)" "$2"
	equal "sets on the device" "$(grep -c '"type":"set".*"cause":"cudaMemset' $T/out)" "$3"
	tail -n 1 $T/out | grep -q '"unmatched":0,"inferred":0,' || echo "not each has its call: $(tail -n 1 $T/out)"
}

# device OPTIONS...: what the device did, by the agent in a program that is started.
device() {
	$CT -v --gpu "$@" --format json -o $T/out -- .output/cases/work 30 return > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	grep -q 'the agent has started' $T/err || echo "no agent: $(tail -n 3 $T/err)"
	device_work 30 30 30
	equal launches "$(rows cudaLaunchKernel)" 30
	equal "what the program printed" "$(cat $T/prog)" "launched 30"
}

# device_running OPTIONS...: the agent is put into a program that runs already.
device_running() {
	start_waiting
	$CT -v --gpu "$@" -p "$pid" -e cudaMemcpy,cudaMemset --format json -o $T/out 2> $T/err &
	ct=$!
	wait_for grep -q 'the agent has started' $T/err || echo "no agent: $(tail -n 3 $T/err)"
	echo >&3
	wait_for grep -q '^done' $T/prog
	kill -INT $ct
	wait_for gone $ct || echo "did not end"
	device_work 0 40 50
	grep -q 'the agent has left: .*CUPTI ended' $T/err || echo "the agent has not left: $(tail -n 3 $T/err)"
	gone "$pid" && echo "the program is gone"
	echo >&3
	exec 3>&-
	wait_for gone "$pid" || echo "the program did not end"
}

# Python's frames: the same walk as on newer kernels, judged by this one's verifier.
python() {
	export PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1
	$CT -f -k -e cudaMalloc --format json -o $T/out -- /usr/bin/python3 tests/unit/python_stacks.py \
		.output/standin/libcudart.so.13 cudaMalloc > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal python "$(/usr/bin/python3 tests/cases/check_python.py $T/prog $T/out 2>&1)" "39 stacks"
}

# by_both NAME OPTIONS... -- PROGRAM...: the rows by hooks are those by probes, but for addresses.
by_both() {
	label=$1
	shift
	for source in probes hooks; do
		$CT -v --source=$source -o $T/$source "$@" > $T/prog 2> $T/err.$source || echo "$label by $source: status $?: $(tail -n 2 $T/err.$source)"
		normalise $T/$source | sed -E 's/0x[0-9a-f]{6,}/ADDRESS/g' > $T/rows.$source
	done
	echo "# $label: $(grep -c '' $T/rows.probes) rows by probes, $(grep -c '' $T/rows.hooks) by hooks; $(tail -n 1 $T/err.hooks)" > /dev/console
	[ -s $T/rows.probes ] || echo "$label: probes show nothing"
	diff -u $T/rows.probes $T/rows.hooks | grep '^[-+][^-+]' | head -n 4
}

# Calls that are recorded inside the program.
hooked() {
	$CT --source=hooks -o $T/rows -- ./cuda_events_test --expect $T/want > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	[ -s $T/want ] || echo "the sample expects nothing"
	normalise $T/rows > $T/got
	diff -u $T/want $T/got | grep '^[-+][^-+]'
}

# The same rows as by probes.
hooked_as_probed() {
	# of few functions: probes on all take long here
	by_both mix -e 'cudaMalloc,cudaFree,cudaMemcpy,cudaMemset' -- $CALLS mix 30 40 50
	by_both failures -e 'cudaMalloc,cudaSetDevice' -- $CALLS failing 3 4
	by_both longjmp -e 'cudaStreamAddCallback,cudaMalloc' -- $CALLS longjmp 5
}

# stacks_by SOURCE SHAPE FRAMES: the frames below each row begin with these.
stacks_by() {
	$CT --source="$1" -k --all-frames -e cudaMalloc,cudaFree -o "$T/$1" -- .output/cases/chain "$2" 40 > $T/prog 2> $T/err ||
		echo "$2 by $1: status $?: $(tail -n 2 $T/err)"
	sed -E 's/^[0-9.]+ .* (cu[A-Za-z0-9_]+) .*/\1/' "$T/$1" | grep -E '^(cu| +[^ ].*\+0x)' > "$T/stacks.$1"
	got=$(sed -E 's/^ +([^+]*)\+0x.*/\1/' "$T/stacks.$1" | tr '\n' ' ')
	case $got in
	"cudaMalloc $3 "*) ;;
	*) echo "$2 by $1: $got: $(tail -n 1 $T/err)" ;;
	esac
}

# stacks_by_each SOURCE...: what is known of the program's stacks, and the same by each source.
stacks_by_each() {
	while read -r shape want; do
		for source; do
			stacks_by "$source" "$shape" "$want"
		done
		[ $# = 1 ] || diff -u $T/stacks.probes $T/stacks.hooks | grep '^[-+][^-+]' | head -n 4
	done << 'END'
plain inner middle outer main
thread inner worker
deep inner down down down
END
}

# Threads, and counting in the program.
hooked_threads() {
	$CT --source=hooks --keep-chatty -e cudaStreamQuery --format json -o $T/out -- $CALLS threads 4 500 0 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal "rows of 4 threads" "$(grep -c '"type":"call"' $T/out)" "$(awk '/^thread / { n += $3 } END { print n }' $T/prog)"
	$CT stat --source=hooks --format csv -o $T/out -- $CALLS mix 70 110 90 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal cudaMalloc "$(sed -n 's/^runtime,"cudaMalloc",\([0-9]*\),0,.*/\1/p' $T/out)" 71
	equal cudaMemset "$(sed -n 's/^runtime,"cudaMemset",\([0-9]*\),0,.*/\1/p' $T/out)" 90
}

# A program that runs already: hooks are put into it, and taken out again.
hooked_running() {
	start_waiting
	$CT -v --source=hooks -p "$pid" --format json -o $T/out 2> $T/err &
	ct=$!
	wait_for grep -q ready $T/err || echo "did not attach: $(tail -n 1 $T/err)"
	echo >&3
	wait_for grep -q '^done' $T/prog
	kill -INT $ct
	wait_for gone $ct || echo "did not end"
	equal cudaMalloc "$(rows cudaMalloc)" 31
	equal cudaMemcpy "$(rows cudaMemcpy)" 40
	equal cudaMemset "$(rows cudaMemset)" 50
	gone "$pid" && echo "the program is gone"
	echo >&3
	exec 3>&-
	wait_for gone "$pid" || echo "the program did not end"
}

# What tries the engine by itself.
engine() {
	for test in "$@"; do
		(cd .output/hooks-tests && "./$test") > $T/engine 2>&1
		grep '^not ok' $T/engine && grep '^tests' $T/engine
		grep -q '^ok' $T/engine || echo "$test printed: $(tail -n 1 $T/engine)"
	done
}

hooks() {
	check "hooks: rows" hooked
	check "hooks: running" hooked_running
	check "hooks: threads and counts" hooked_threads
	check "hooks: device work" device --source=hooks
	check "hooks: device work, running" device_running --source=hooks
	if $probes; then
		check "hooks: rows as by probes" hooked_as_probed
		check "stacks, hooks as probes" stacks_by_each probes hooks
	else
		check "hooks: stacks" stacks_by_each hooks
	fi
	[ -d .output/hooks-tests ] || return
	check "hooks: unwinding" engine test_unwind
	check "hooks: slots" engine test_slots test_text
	check "hooks: engine" engine test_engine-gcc-O2 test_calls-gcc-O2 test_counting-gcc-O2
}

DOCUMENTED="bpf perfmon sys_ptrace checkpoint_restore dac_read_search"
DOCUMENTED_BITS=000001c000080004
WITH_ADMIN_BITS=000001c000280004

# as_nobody "CAPABILITY..." COMMAND...: as a user other than root, in the place of this shell. By its path: busybox has one of its own.
as_nobody() {
	words=
	for word in $1; do
		words="$words${words:+,}+$word"
	done
	shift
	exec /usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,"$words" --ambient-caps=-all,"$words" \
		--bounding-set=-all,"$words" "$@"
}

# has_capabilities PID BITS: each of its threads, and nothing else.
has_capabilities() {
	[ "$(sed -n 's/^CapEff:[^0-9a-f]*//p' "/proc/$1/task/"*/status | sort -u)" = "$2" ]
}

# capabilities KIND BITS: with all that the systemd unit gives each call is seen, and what is not needed is given up.
capabilities() {
	rm -f $T/out $T/err
	mkfifo $T/cin
	$CALLS --wait mix 20 30 40 < $T/cin > $T/prog &
	prog=$!
	exec 3> $T/cin
	wait_for grep -q '^ready' $T/prog || echo "the program did not start"
	as_nobody "$DOCUMENTED sys_admin dac_override" $CT -v -d 60 --probe-kind "$1" -e 'cudaMalloc,cudaMemcpy' --format json -o $T/out 2> $T/err &
	ct=$!
	wait_for grep -q ready $T/err || echo "did not attach: $(tail -n 1 $T/err)"
	# the thread that closes what the kind was tried with has its own for a moment
	wait_for has_capabilities $ct "$2" || echo "a thread has others than $2: $(grep CapEff /proc/$ct/task/*/status)"
	equal "no new privileges" "$(sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/$ct/status)" 1
	# a file that comes later is probed with what is left
	.output/cases/calls-static mix 1 1 1 > $T/later
	wait_for grep -q 'calls-static: .* functions probed' $T/err || echo "not probed later: $(tail -n 1 $T/err)"
	echo >&3
	wait_for grep -q '^done' $T/prog
	kill -INT $ct
	wait $ct || echo "status $?: $(tail -n 2 $T/err)"
	echo >&3
	exec 3>&-
	wait $prog
	rm -f $T/cin
	# those of the program that was there before; of the later one the first calls may be missed
	equal cudaMalloc "$(grep '"process":"calls"' $T/out | grep -c '"name":"cudaMalloc"')" 21
	equal cudaMemcpy "$(grep '"process":"calls"' $T/out | grep -c '"name":"cudaMemcpy"')" 30
	no_events
}

# refused "CAPABILITY..." MISSING OPTIONS...: one sentence names what is missing.
refused() {
	# shellcheck disable=SC2086 # options
	(as_nobody "$1" $CT -d 1 $3) 2> $T/err > $T/out
	equal status $? 1
	equal lines "$(grep -c '' $T/err)" 1
	grep -q " need $2 too on Linux " $T/err || cat $T/err
}

privileges() {
	check "capabilities documented" refused "$DOCUMENTED" "CAP_SYS_ADMIN, CAP_DAC_OVERRIDE" ""
	check "capabilities for tracefs" refused "$DOCUMENTED sys_admin" "CAP_DAC_OVERRIDE" "--probe-kind tracefs"
	check "capabilities for perf" refused "$DOCUMENTED" "CAP_SYS_ADMIN" "--probe-kind perf"
	check "capabilities perf" capabilities perf $WITH_ADMIN_BITS
	# Debian's kernels open no perf event without CAP_SYS_ADMIN, unless told to
	check "capabilities tracefs, paranoid" capabilities tracefs $WITH_ADMIN_BITS
	echo 2 > /proc/sys/kernel/perf_event_paranoid
	check "capabilities tracefs" capabilities tracefs $DOCUMENTED_BITS
	echo 3 > /proc/sys/kernel/perf_event_paranoid
}

# The program is root of a user namespace of its own, in which it has other numbers.
userns() {
	rm -f $T/out $T/err # they are another user's since the tests of capabilities
	$CT -f -e cudaMalloc,cudaFree --format json -o $T/out -- /bin/busybox unshare -U -r $CALLS mix 20 30 40 > $T/prog 2> $T/err ||
		echo "status $?: $(tail -n 2 $T/err)"
	equal cudaMalloc "$(rows cudaMalloc)" 21
	equal cudaFree "$(rows cudaFree)" 21
	no_events
}

# root of a user namespace may not probe: one sentence says so.
userns_inside() {
	/bin/busybox unshare -U -r $CT -d 1 > $T/out 2> $T/err
	equal status $? 1
	equal lines "$(grep -c '' $T/err)" 1
	grep -q 'offers no user-space probes to us (Operation not permitted)' $T/err || cat $T/err
}

# cgroups of version 1 alone: --cgroup says what it wants, and all else is as ever.
cgroup_v1() {
	mkdir -p $T/cg
	mount -t cgroup -o pids cgroup $T/cg || echo "cgroup v1 cannot be mounted"
	mkdir $T/cg/one
	$CT --cgroup $T/cg/one -d 1 > $T/out 2> $T/err
	equal status $? 1
	equal lines "$(grep -c '' $T/err)" 1
	grep -q 'is not a cgroup (v2)' $T/err || cat $T/err
	(sh -c "echo \$\$ > $T/cg/one/cgroup.procs && exec $CT --format json -o $T/out -- $CALLS mix 20 30 40") > $T/prog 2> $T/err ||
		echo "status $?: $(tail -n 2 $T/err)"
	equal cudaMalloc "$(rows cudaMalloc)" 21
	rmdir $T/cg/one
	umount $T/cg
}

# tracefs is not mounted: kinds that need it mount none for others to see.
no_tracefs() {
	umount /mnt
	$CT --format json -o $T/out -- $CALLS mix 20 30 40 > $T/prog 2> $T/err || echo "status $?: $(tail -n 2 $T/err)"
	equal cudaMalloc "$(rows cudaMalloc)" 21
	equal "mounts of tracefs" "$(grep -c ' tracefs ' /proc/mounts)" 0
	mount -t tracefs tracefs /mnt
	no_events
}

# lockdown LEVEL: what the kernel keeps from root from now on; the last tests, because it cannot be taken back.
lockdown() {
	mount -t securityfs securityfs /sys/kernel/security 2> /dev/null
	echo "$1" > /sys/kernel/security/lockdown || echo "no lockdown"
	$CT --format json -o $T/out -- $CALLS mix 20 30 40 > $T/prog 2> $T/err
	status=$?
	echo "# lockdown $1: status $status, $(rows cudaMalloc) rows: $(tail -n 2 $T/err | tr '\n' '|')" > /dev/console
	if [ "$1" = integrity ]; then
		equal status $status 0
		equal cudaMalloc "$(rows cudaMalloc)" 21
	else
		equal status $status 1
		equal "what the program printed" "$(cat $T/prog)" ""
		grep -q "this kernel's lockdown is 'confidentiality'" $T/err || cat $T/err
	fi
}

doctor() {
	timeout 120 $CT doctor > $T/out 2>&1 || echo "status $?: $(tail -n 1 $T/out)"
	grep -q "^probes .*$best" $T/out || cat $T/out
}

# An older kernel: one sentence says what is missing, and nothing was begun.
too_old() {
	said=$1
	shift
	$CT "$@" -o $T/out -- $CALLS mix 1 1 1 > $T/prog 2> $T/err
	equal status $? 1
	equal lines "$(grep -c '' $T/err)" 1
	grep -q "$said" $T/err || cat $T/err
	equal "what the program printed" "$(cat $T/prog)" ""
	no_events
}

doctor_too_old() {
	timeout 120 $CT doctor > $T/out 2>&1
	equal status $? 1
	grep -q '^bpf_loop().*no: Linux 5.17 or newer is needed' $T/out || cat $T/out
	grep -q '^  calls .*no: the kernel is too old: use Linux 6.1 or newer' $T/out || grep '^  calls' $T/out
}

echo
echo "# $(uname -sr)"
mkdir -p /mnt
mount -t tracefs tracefs /mnt 2> /dev/null || echo "not ok tracefs: cannot be mounted"
probes=true
case $(uname -r) in
5.*)
	probes=false
	hooks
	old="Linux 5[.].* is too old: it has no bpf_loop(), which came with Linux 5.17; 6.1 or later is needed, or --source=hooks$"
	check "refused in one sentence" too_old "$old"
	check "stat refused" too_old "$old" stat
	check "record refused" too_old "$old" record
	check "doctor says why" doctor_too_old
	exit 0
	;;
esac
check links links
case $(uname -r) in
6.1.*) best=tracefs ;;
*) best=multi ;;
esac
hooks
check "golden $best" golden $best
check "exact $best" exact $best
check "scopes $best" scopes $best
[ $best = tracefs ] || check "exact tracefs" exact tracefs --probe-kind tracefs
check counted counted
check "what a program waits for" waits
check threads threads
check static static
check running running
check hanging hanging
check killed killed
check "device work" device
check "device work, running" device_running
[ ! -e /usr/bin/python3 ] || check python python
# A few functions only: each of these links takes long to close.
check "exact perf" exact perf --probe-kind perf -e 'cudaMalloc,cudaFree,cudaMemcpy,cudaMemset'
check "scopes perf" scopes perf --probe-kind perf -e cudaMemcpy,range,mark
check doctor doctor
chmod 1777 $T
if [ $best = tracefs ] && [ -e /usr/bin/setpriv ]; then
	privileges
else
	echo "skip capabilities: for Linux 6.1, with setpriv"
fi
check "user namespace" userns
check "inside a user namespace" userns_inside
check "cgroup v1" cgroup_v1
check "no tracefs" no_tracefs
check "lockdown integrity" lockdown integrity
check "lockdown confidentiality" lockdown confidentiality
dmesg | grep -E 'BUG|WARNING|Oops' | sed 's/^/not ok kernel: /'
