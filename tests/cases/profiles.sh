# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# profiles.sh - programs that profile themselves with CUPTI (prog/profiles.c) while the agent is in them, in each order: the program's
# profile has all its kernels, and the last line says from when on the trace has none.
PROFILES=$BIN/profiles
OWN='profiled itself with CUPTI: what its devices did meanwhile is not known, from [0-9.]+ s (to [0-9.]+ s|on)(;.*)?$'

# profile N: the program's own profile, the next one it printed, has all its N kernels.
profile() {
	local got
	nprofile=$((nprofile + 1))
	got=$(grep '^profile' "$T/prog.out" | sed -n "${nprofile}p")
	expect "the program's own profile" "$got" "profile $1 of $1"
}

# holes COUNT: the end of the JSON has so many holes of the program's own profiler.
holes() {
	expect "holes" "$(grep '^{"type":"end"' "$T/out" | grep -o '"reason":"own_profiler"' | wc -l)" "$1"
}

# own_hole COUNT: the same, and the last line says one with its times. The launches of that time are counted nowhere else.
own_hole() {
	holes "$1"
	! grep -q 'no record of' "$T/err" || fail "launches in the hole are counted twice: $(tail -n 1 "$T/err")"
	says "0 lost of those seen; process [0-9]+ (\(profiles\) )?$OWN"
}

# The agent is there first: the kernels before the program's profile are in the trace, and its profile has all its kernels. Functions are
# called by the loader's slots, and by pointers that the program had before the agent came (-d), with and without a subscription (-a), and
# where hooks have no room for jumps (-f).
case_profiles_agent_first() { # undisturbed
	local how source before own
	for source in probes hooks cupti; do
		for how in '' -d -a '-a -d' '-l -d' -f '-a -f'; do
			before=$(random 2 90) own=$(random 2 90) nprofile=0
			# shellcheck disable=SC2086 # they are options
			ct_json -v --gpu --source=$source -- "$PROFILES" $how "$before" start "$own" stop 3
			ok_rc
			profile "$own"
			expect_kinds kernel "$before"
			all_matched
			no_loss
			case $source in cupti) own_hole 2 ;; *) own_hole 1 ;; esac
			says 'the program itself uses CUPTI from now on: its device work is not shown any more, so that its own profiles are complete'
		done
	done
}

# Nothing of the agent's is left in CUPTI when the program begins: no buffer, no clock, no setting; whatever the device and the version.
case_profiles_nothing_left() { # long
	local how own
	for how in busy small slow:2000 contexts version:18 version:23 version:130000 version:130100 version:130200; do
		export STANDIN_CUPTI=$how
		own=$(random 100 900) nprofile=0
		ct_json --gpu --gpu-buffer 16KiB -- "$PROFILES" settings 200 start "$own" stop settings
		ok_rc
		profile "$own"
		expect "$how: settings before, after" "$(grep -h '^settings' "$T/prog.out" | tail -n 1)" "settings 0 1"
		expect_kinds kernel 200
		own_hole 1
	done
}

# A kernel that was in flight when the program began to use CUPTI has its record later: not in a buffer of the agent's that is left in CUPTI,
# into which the program's profile would come.
case_profiles_in_flight() {
	local ms
	for ms in 5 50; do
		export STANDIN_CUPTI=late:$ms
		nprofile=0
		ct_json --gpu -- "$PROFILES" 5 flush pause start 7 stop
		ok_rc
		profile 7
		holes 1
	done
}

# Again and again: the program's later profiles have all their kernels too, whether it keeps its subscription or not. The agent does not come
# back, since CUPTI may then give no kernels to anybody (fragile).
case_profiles_again() { # long
	local how
	export STANDIN_CUPTI=fragile
	for how in '' -a -l '-l -d'; do
		nprofile=0
		# shellcheck disable=SC2086 # they are options
		ct_json --gpu --strict -- "$PROFILES" $how 5 start 7 stop sleep 6 start 8 stop 2 sleep 4 start 9 stop settings
		expect "status of --strict" "$rc" 3
		profile 7
		profile 8
		profile 9
		expect "settings at the end" "$(grep -h '^settings' "$T/prog.out" | tail -n 1)" "settings 0 1"
		expect_kinds kernel 5
		own_hole 1
	done
	for how in unsubscribe finalize; do
		nprofile=0
		ct_json --gpu -- "$PROFILES" 5 start 7 stop $how sleep 6 start 8 stop
		ok_rc
		profile 7
		profile 8
		expect_kinds kernel 5
		own_hole 1
	done
}

# What CUPTI still has of the program's profile comes to the program, whenever it asks for it, before or after it has disabled its kinds.
case_profiles_late_flush() { # long
	local how
	for how in disable 'flush disable' 'flush 3 disable'; do
		nprofile=0
		# shellcheck disable=SC2086 # they are steps
		ct_json --gpu -- "$PROFILES" 5 start 7 $how sleep flush print
		ok_rc
		case $how in *3*) profile 10 ;; *) profile 7 ;; esac
		no_loss
	done
}

# The program is there first: it is left alone, with one sentence, whether it has subscribed or not.
case_profiles_program_first() {
	local how
	for how in '' -a -d '-a -d'; do
		nprofile=0
		# shellcheck disable=SC2086 # they are options
		ct_json --gpu -- "$PROFILES" $how start 7 settings stop 5
		ok_rc
		profile 7
		expect "settings" "$(grep -h '^settings' "$T/prog.out")" "settings 0 1"
		expect_kinds kernel 0
		own_hole 1
		expect "sentences" "$(grep -c 'CUPTI' "$T/err")" 2
		says 'error: process [0-9]+: the program itself uses CUPTI, or has used it: CUPTI is left to it, so that its own profile is complete'
	done
}

# attached_profiles STEPS...: attaches at the step `ready`, lets the program go on to its end, and ends.
attached_profiles() {
	local name=a$((++nattached)) pid
	nprofile=0
	PROG=$PROFILES target "$name" "$@"
	pid=PID_$name
	attach --gpu -e launch -p "${!pid}"
	wait_for 10 grep -qE 'the agent (has|did not) start' "$T/err"
	go "$name"
	stop "$name"
	finish
	ok_rc
	mv "$T/$name.out" "$T/prog.out"
}

case_profiles_attached() { # long
	local how nattached=0
	for how in '' -a -d '-a -d'; do
		# shellcheck disable=SC2086 # they are options
		attached_profiles $how 3 ready 5 start 7 stop 2
		profile 7
		expect_kinds kernel 5
		own_hole 1
		# while it runs, and after it has run
		# shellcheck disable=SC2086 # they are options
		attached_profiles $how 3 start 4 ready 7 stop 2
		profile 11
		expect_kinds kernel 0
		own_hole 1
		# shellcheck disable=SC2086 # they are options
		attached_profiles $how 3 start 4 stop ready start 7 stop 2
		profile 4
		profile 7
		expect_kinds kernel 0
		own_hole 1
	done
	# it has ended CUPTI: nothing of its is there
	attached_profiles 3 start 4 stop finalize ready 5
	expect_kinds kernel 5
	no_loss
}

# A libcupti that nobody has used, and that leads to code of ours: its functions for NVTX, and its slots, on which hooks are.
case_profiles_none_beside_ours() { # undisturbed
	local how first nattached=0 pid
	export STANDIN_CUPTI=nvtx
	for how in '--layers nvtx' '--source=hooks' '--source=hooks --layers nvtx'; do
		rm -f "$T/err"
		PROG=$PROFILES target "b$((++nattached))" 3 ready 5
		pid=PID_b$nattached
		# shellcheck disable=SC2086 # they are options
		"$CUDATRACE" -v $how -o "$T/first" -p "${!pid}" 2> "$T/first.err" &
		first=$!
		wait_for 10 grep -q 'cudatrace: ready' "$T/first.err"
		attach --gpu -p "${!pid}"
		! grep -q 'uses CUPTI' "$T/err" || fail "$how: $(grep 'uses CUPTI' "$T/err")"
		go "b$nattached"
		stop "b$nattached"
		finish
		ok_rc
		expect_kinds kernel 5
		no_loss
		wait "$first" || fail "$how: status $?: $(cat "$T/first.err")"
	done
}

# A program that is killed while it profiles itself: its launches since then miss no device record, as none was to come.
case_profiles_killed() {
	ct_kill --gpu -- "$PROFILES" 5 start 70 kill
	expect_kinds kernel 5
	own_hole 1
	no_loss
}

# Two threads begin at the same moment, and one of them in the middle of another's launches.
case_profiles_threads() { # undisturbed
	nprofile=0
	ct_json --gpu --source=hooks -- "$PROFILES" 20t both 30t stop sleep 2t
	ok_rc
	profile 30
	expect_kinds kernel 20
	own_hole 1
}

# In a forked child nothing waits and nothing is taken: the child's calls find CUPTI as the fork has left it.
case_profiles_fork() { # undisturbed
	ct_json --gpu --source=hooks -- "$PROFILES" 5 fork start 3 stop
	ok_rc
	expect_kinds kernel 5
	! grep -q 'own_profiler' "$T/out" || fail "a hole: $(grep own_profiler "$T/out")"
	no_loss
}
