#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - `make bench`: what tracing costs, each figure a ratio within this one run.
#
#     tests/bench/run.sh [ROUNDS]        CUDATRACE: the program to measure; CALLS: calls a round; BOOK=no: without tests/bench/book.py
#
# Everything is measured, and then the book is made, whatever goals were missed. The list of these comes last, with their
# numbers; the status is 1 if there is one. Some goals were reached on no machine lately, or not on each: they stay, and a bound beside
# them, with its reason, says what the design holds. What lies between the two is listed and does not make the status 1.
#
# Cost to the target: the same call of real libcudart (no driver needed: it answers at once) with an empty uprobe and
# uretprobe, and under cudatrace; rounds are interleaved and the medians compared. Where no real libcudart is found the
# stand-in serves and the output says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-9}
calls=${CALLS:-300000}
ct=${CUDATRACE:-./cudatrace}
out=.output
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"; kill $(jobs -p) 2>/dev/null || true' EXIT
. tests/bench/goals.sh
# A tracer of the whole machine would disturb tests that run beside this one.
# shellcheck source=tests/machine.sh disable=SC1091
. tests/machine.sh

lib=
for f in "${CUDA_HOME:-/usr/local/cuda}"/lib64/libcudart.so.1[0-9]; do
	[ -e "$f" ] && lib=$(readlink -f "$f")
done
if [ -z "$lib" ]; then
	lib=$(readlink -f $out/standin/libcudart.so.13)
	echo "no real libcudart here: measuring on the stand-in"
fi

# What the design can hold where a goal was not reached on each idle machine: some tenths above the worst that docs/benchmarks.md and docs/hooks.md have.
bound "a recorded call by hooks" 70 "the clock is read twice and 128 bytes are written: 24 ns where a bare call takes 10 ns, 53 ns where it takes 19"
bound "hooks put on again" 8 "the first byte of each function is written by a system call of its own, so that its neighbours stay as they are"
bound "hooks taken off" 8 "as for hooks put on again"
bound "a library that is loaded by hooks" 4000 "each load reads the mappings of the process, of which there are more with each library"
for what in "cudaGetDevice, table to a file" "cudaMemcpy, table to a file" "cudaMemcpy, JSON to a file"; do
	bound "$what: ratio to an empty pair" 1.50 "two reads of the clock and a record in the ring, a quarter of the pair; a trace of the whole machine has links of kind session, a tenth dearer than plain ones"
done
bound "cudaLaunchKernel (stack words), table to a file: ratio to an empty pair" 1.65 "as for cudaMemcpy, and two words of the program's stack are read"
bound "cudaMemcpy, stat: ratio to an empty pair" 1.40 "two reads of the clock and the sums in a map; links of kind session, as for tables"
bound "cudaMemcpy, stat without times (--no-return): ratio to an empty pair" 0.85 "an empty entry probe alone is 0.61 of a pair; links of kind session, as for tables"
bound "attach" 500 "the kernel checks the BPF programs at each start, which is four fifths of its processor time"
bound "stat of a large machine" 320 "the kernel side's maps have their size from the start: 158 MiB for 10 000 processes"
bound "the slowest scrape of serve, 250 names" 40 "it is one text of 1 MB, made by the loop that also reads what has come"
for what in arrow parquet; do
	bound "$what" 400000 "one thread takes each value of each record by its column; only packing and writing has a thread of its own"
done

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

# Before everything else that wants the CPU, where that is allowed: a call that is interrupted says nothing.
fifo=(chrt -f 10)
"${fifo[@]}" true 2> /dev/null || fifo=()

# one FUNCTION: prints ns a call
one() { "${fifo[@]}" "$out/bench/target" "$lib" "$1" "$calls" | tail -n 1; }

with_empty() { # [-e] FUNCTION PROBED...: -e: the entry alone
	local entry=() fn fd
	[ "$1" != -e ] || { entry=(-e); shift; }
	fn=$1
	shift
	coproc EMPTY { exec "$out/bench/empty" "${entry[@]}" "$lib" "$@"; }
	fd=${EMPTY[1]}
	read -r _ <&"${EMPTY[0]}"
	one "$fn"
	exec {fd}>&-
	wait "$EMPTY_PID" 2>/dev/null || true
}

start_tracer() { # [COMMAND] ARGS: in the background, ready when this returns
	local command=()
	[[ " $* " = *" -p "* ]] || machine_take alone
	[[ $1 = -* ]] || { command=("$1"); shift; }
	"$ct" "${command[@]}" -v "$@" 2>"$tmp/err" 9>&- &
	tracer=$!
	until grep -q 'ready' "$tmp/err"; do
		kill -0 "$tracer" 2>/dev/null || { cat "$tmp/err" >&2; exit 1; }
		sleep 0.02
	done
}
stop_tracer() {
	kill -INT "$tracer"
	wait "$tracer" || true
	machine_leave
}

cost() { # TITLE GOAL FUNCTION [COMMAND] OPTIONS...
	local title=$1 goal=$2 fn=$3 i command=()
	shift 3
	[[ ${1:--} = -* ]] || { command=("$1"); shift; }
	: >"$tmp/a"; : >"$tmp/b"; : >"$tmp/c"
	for ((i = 0; i < rounds; i++)); do
		one "$fn" >>"$tmp/c"
		with_empty "$fn" "$fn" >>"$tmp/a"
		start_tracer "${command[@]}" -o "$tmp/rows" "$@"
		one "$fn" >>"$tmp/b"
		stop_tracer
	done
	printf '%-58s bare %6.0f ns, empty pair %6.0f, traced %6.0f: ratio %s (goal %s)\n' "$title" "$(median <"$tmp/c")" \
		"$(median <"$tmp/a")" "$(median <"$tmp/b")" "$(ratio "$(median <"$tmp/b")" "$(median <"$tmp/a")")" "$goal"
	[ "$goal" = - ] || at_most "$title: ratio to an empty pair" "$(ratio "$(median <"$tmp/b")" "$(median <"$tmp/a")")" "$goal"
}

# ways FUNCTION: the same call, of a program that is started, by several ways in turns: ours, and bpftrace's with a line a call to a file,
# and with a histogram. bpftrace ends with the program.
ways() {
	local fn=$1 i way copy=$tmp/ways.so at program names=(bare probes hooks stat-hooks bpftrace-lines bpftrace-histogram)
	cp "$lib" "$copy"
	at="uprobe:$copy:$fn { @begin[tid] = nsecs; } uretprobe:$copy:$fn /@begin[tid]/"
	program=("$out/bench/target" "$copy" "$fn" "$calls")
	for ((i = 0; i < rounds; i++)); do
		for way in "${names[@]}"; do
			case $way in
			bare) "${program[@]}" ;;
			probes) "$ct" --keep-chatty -o "$tmp/rows" -- "${program[@]}" ;;
			hooks) "$ct" --source=hooks --keep-chatty -o "$tmp/rows" -- "${program[@]}" ;;
			stat-hooks) "$ct" stat --source=hooks --keep-chatty -o "$tmp/rows" -- "${program[@]}" ;;
			bpftrace-lines)
				bpftrace -c "${program[*]}" -o "$tmp/rows" \
					-e "$at { printf(\"%d $fn %d %d\\n\", tid, nsecs - @begin[tid], retval); delete(@begin[tid]); }"
				;;
			bpftrace-histogram)
				bpftrace -c "${program[*]}" -o "$tmp/rows" -e "$at { @took = hist(nsecs - @begin[tid]); delete(@begin[tid]); }"
				;;
			esac 2> "$tmp/err" | grep -E '^[0-9.]+$' | tail -n 1 >> "$tmp/way.$way" || true
		done
	done
	for way in "${names[@]}"; do
		if [ -s "$tmp/way.$way" ]; then
			printf '%-58s %6.0f ns a call, %6.0f more than bare\n' "$fn, $way" "$(median <"$tmp/way.$way")" \
				"$(awk -v a="$(median <"$tmp/way.$way")" -v b="$(median <"$tmp/way.bare")" 'BEGIN { print a - b }')"
		else
			echo "$fn, $way: it does not run here"
		fi
	done
}

entry_alone() { # FUNCTION: the floor of --no-return
	local i
	: >"$tmp/a"; : >"$tmp/b"
	for ((i = 0; i < rounds; i++)); do
		with_empty "$1" "$1" >>"$tmp/a"
		with_empty -e "$1" "$1" >>"$tmp/b"
	done
	printf '%-58s %21s empty pair %6.0f, alone  %6.0f: ratio %s\n' "$1, an empty entry probe alone" "" "$(median <"$tmp/a")" \
		"$(median <"$tmp/b")" "$(ratio "$(median <"$tmp/b")" "$(median <"$tmp/a")")"
}

echo "== what a hook adds to a call, without a reader (docs/hooks.md; goals: count 5 ns, record 30 ns)"
shown "$out/bench/hooks" "$lib" cudaGetDevice "$rounds" "$calls"
at_most "a counted call by hooks" "$(number '1 thread +count +\+ +([0-9.]+) ns')" 5 ns
at_most "a recorded call by hooks" "$(number '1 thread +entry, return, record +\+ +([0-9.]+) ns')" 30 ns

echo "== the same for a call whose code, data and predictions have left the caches: other code and data are used between two calls"
shown "${fifo[@]}" "$out/bench/hooks_cold" 31

# Copies under other names, on which no other tracer of this machine has breakpoints; each time new ones, as it may find these.
echo "== hooks put on and taken off, nobody stopped (goals: 1100 functions in 5 ms each, once they were made)"
for ((i = 0; i < 3; i++)); do
	mkdir "$tmp/plain$i"
	cp "$lib" "$tmp/plain$i/one.so"
	cp $out/standin/libcuda.so.1 "$tmp/plain$i/two.so"
	shown "${fifo[@]}" "$out/bench/hooks_on" 31 "$tmp/plain$i/one.so" "$tmp/plain$i/two.so"
	at_most "hooks put on again" "$(number 'put on again +([0-9.]+) ms')" 5 ms
	at_most "hooks taken off" "$(number 'taken off +([0-9.]+) ms')" 5 ms
done

echo "== 300 small libraries that have nothing to do with CUDA, loaded one after the other (goal by hooks: 2 ms each)"
mkdir "$tmp/small"
echo 'int f(void) { return 1; }' | gcc -shared -fPIC -x c -o "$tmp/small/0.so" -
for ((i = 1; i < 300; i++)); do
	cp "$tmp/small/0.so" "$tmp/small/$i.so"
done
for ((i = 0; i < 5; i++)); do
	"$out/bench/loads" "$tmp"/small/*.so >>"$tmp/loads.bare"
	for way in probes hooks; do
		"$ct" -q --source=$way -o "$tmp/rows" -- "$out/bench/loads" "$tmp"/small/*.so >>"$tmp/loads.$way"
	done
done
for way in bare probes hooks; do
	us=$(cut -d ' ' -f 1 "$tmp/loads.$way" | median)
	printf '%-58s %8.1f us each, longest %8.1f: ratio %s\n' "a library, $way" "$us" "$(cut -d ' ' -f 2 "$tmp/loads.$way" | median)" \
		"$(ratio "$us" "$(cut -d ' ' -f 1 "$tmp/loads.bare" | median)")"
done
at_most "a library that is loaded by hooks" "$us" 2000 us

echo "== what a package of Python takes to be imported by hooks, in turns with the same without a tracer (goal 1.15 times)"
python=${PYTHON:-python3}
for package in torch tensorflow jax cupy numba; do
	if ! "$python" -c "import $package" 2> /dev/null; then
		echo "import $package: $python has no such package (PYTHON is another one)"
		continue
	fi
	: > "$tmp/import.ratio"
	for ((i = 0; i < 15; i++)); do
		begin=$(date +%s%N)
		"${fifo[@]}" "$python" -c "import $package" 2> "$tmp/err"
		between=$(date +%s%N)
		"${fifo[@]}" "$ct" record -q --source=hooks -o "$tmp/import" -- "$python" -c "import $package" 2> "$tmp/err"
		ratio $(($(date +%s%N) - between)) $((between - begin)) >> "$tmp/import.ratio"
		echo >> "$tmp/import.ratio"
	done
	printf '%-58s ratio %s (quartiles %s to %s)\n' "import $package, hooks" "$(median < "$tmp/import.ratio")" \
		"$(sort -n "$tmp/import.ratio" | sed -n 4p)" "$(sort -n "$tmp/import.ratio" | sed -n 12p)"
	at_most "import $package by hooks" "$(median < "$tmp/import.ratio")" 1.15
done

echo "== cost to the target, $rounds interleaved rounds of $calls calls, $(basename "$lib")"
cost "cudaGetDevice, table to a file" 1.25 cudaGetDevice --keep-chatty
cost "cudaMemcpy, table to a file" 1.25 cudaMemcpy
cost "cudaMemcpy, JSON to a file" 1.25 cudaMemcpy --format json
cost "cudaLaunchKernel (stack words), table to a file" 1.35 cudaLaunchKernel
cost "cudaMemcpy, stat" 1.20 cudaMemcpy stat
cost "cudaMemcpy, stat without times (--no-return)" 0.65 cudaMemcpy stat --no-return
entry_alone cudaMemcpy
cost "cudaGetDevice, two rows a call" - cudaGetDevice --keep-chatty --enter-exit
calls=$((calls / 10))
cost "cudaMemcpy with its stack (-k)" - cudaMemcpy -k
cost "cudaMemcpy with its stack by frame pointers" - cudaMemcpy --stack=fp
calls=$((calls * 10))

if command -v bpftrace > /dev/null; then
	echo "== the same call by other ways, of a program that is started, in turns"
	ways cudaGetDevice
else
	echo "== bpftrace is not here: it is not compared"
fi

echo "== a launch with the driver call inside it (stand-in), against two empty pairs"
: >"$tmp/a"; : >"$tmp/b"
rt=$(readlink -f $out/standin/libcudart.so.13) drv=$(readlink -f $out/standin/libcuda.so.1)
for ((i = 0; i < rounds; i++)); do
	coproc EMPTY { exec "$out/bench/empty" "$rt" cudaLaunchKernel; }
	fd=${EMPTY[1]}
	read -r _ <&"${EMPTY[0]}"
	: >"$tmp/drv"
	"$out/bench/empty" "$drv" cuLaunchKernel < <(sleep 60) >"$tmp/drv" &
	second=$!
	until grep -q ready "$tmp/drv"; do sleep 0.02; done
	"$out/bench/target" "$rt" cudaLaunchKernel "$calls" | tail -n 1 >>"$tmp/a"
	exec {fd}>&-
	kill $second
	wait "$EMPTY_PID" $second 2>/dev/null || true
	# Attached to while it waits: the stand-in lies where nobody looks before it is mapped.
	coproc WAITING { exec "$out/bench/target" "$rt" cudaLaunchKernel "$calls" 2; }
	target_pid=$WAITING_PID fd=${WAITING[1]} from=${WAITING[0]}
	read -r _ <&"$from"
	echo >&"$fd" # the first round makes the stand-in load its driver
	read -r _ <&"$from"
	start_tracer -o "$tmp/rows" -p "$target_pid"
	echo >&"$fd"
	read -r ns <&"$from"
	echo "$ns" >>"$tmp/b"
	stop_tracer
	exec {fd}>&-
	wait "$target_pid" 2>/dev/null || true
done
printf '%-58s empty pairs %6.0f, traced %6.0f: ratio %s (goal 1.30)\n' "cudaLaunchKernel > cuLaunchKernel" \
	"$(median <"$tmp/a")" "$(median <"$tmp/b")" "$(ratio "$(median <"$tmp/b")" "$(median <"$tmp/a")")"
at_most "cudaLaunchKernel > cuLaunchKernel: ratio to two empty pairs" "$(ratio "$(median <"$tmp/b")" "$(median <"$tmp/a")")" 1.30

echo "== an operator of PyTorch with five tensors (stand-in): by probes and by hooks, without shapes and with them"
: >"$tmp/bare"
for ((i = 0; i < rounds; i++)); do
	"$out/cases/operators" cost "$calls" >>"$tmp/bare"
	for way in probes hooks; do
		for shapes in '' --shapes; do
			source=()
			[ $way = probes ] || source=(--source=hooks)
			"$ct" "${source[@]}" --layers torch ${shapes:+"$shapes"} -e operator -o "$tmp/rows" -- "$out/cases/operators" cost "$((calls / 10))" \
				>>"$tmp/$way$shapes" 2>"$tmp/err"
		done
	done
done
for way in probes probes--shapes hooks hooks--shapes; do
	printf '%-58s bare %6.0f ns, traced %6.0f\n' "an operator, ${way/--/ --}" "$(median <"$tmp/bare")" "$(median <"$tmp/$way")"
done

echo "== a thread in a tight loop, 5 million calls"
for format in table json; do
	start_tracer --keep-chatty --format $format -o "$tmp/rows" --strict
	"$out/bench/target" "$lib" cudaMemcpy 5000000 >"$tmp/ns"
	kill -INT "$tracer"
	status=0
	wait "$tracer" || status=$?
	machine_leave
	rows=$(grep -c cudaMemcpy "$tmp/rows") || true
	printf '%-58s %s ns a call, %s rows, %s (exit %s)\n' "$format" "$(tail -n 1 "$tmp/ns")" "$rows" \
		"$(grep -o '[0-9]* lost' "$tmp/err" | tail -n 1)" $status
	at_most "a tight loop, $format: calls without a row" "$((5000000 - rows))" 0
done

echo "== two threads of calls on two CPUs: what is lost is counted"
start_tracer --keep-chatty -o "$tmp/rows" --ring-size 1M
"$out/bench/target" "$lib" cudaMemcpy 2000000 >/dev/null &
a=$!
"$out/bench/target" "$lib" cudaMemcpy 2000000 >/dev/null
wait $a
stop_tracer
rows=$(grep -c cudaMemcpy "$tmp/rows") || true
tail -n 2 "$tmp/err"
echo "rows $rows of 4000000"
at_most "two threads: calls that have no row and are not counted" \
	"$((4000000 - rows - $(sed -nE 's/.*calls, ([0-9]+) lost.*/\1/p' "$tmp/err" | tail -n 1)))" 0

echo "== attach and detach, all functions of libcudart"
"$out/bench/target" "$lib" cudaGetDevice 1 2 < <(sleep 60) >/dev/null &
target=$!
for ((i = 0; i < 3; i++)); do
	begin=$(date +%s%N)
	start_tracer -p $target -o /dev/null
	ready=$(date +%s%N)
	kill -INT "$tracer"
	wait "$tracer" || true
	end=$(date +%s%N)
	echo "ready after $(((ready - begin) / 1000000)) ms, gone after $(((end - ready) / 1000000)) ms"
	at_most "attach" $(((ready - begin) / 1000000)) 200 ms
	at_most "detach" $(((end - ready) / 1000000)) 300 ms
done
kill $target

echo "== stuck of jobs of 2 and of 48 ranks (stand-in) in turns, one rank absent: until it is said who, and in all (goal: 48 take at most twice as long)"
# job_of RANKS: starts it; sets ${ranks[RANKS]}, its processes as -p has them, and ${job_in[RANKS]}, whose end ends it.
declare -A ranks job_in
job_of() {
	local fd dir=$tmp/job$1
	mkdir "$dir"
	mkfifo "$dir/in" "$dir/wait"
	STANDIN_WAIT="cuStreamSynchronize:$dir/wait" "$out/cases/ranks" absent "$1" 0 $(($1 - 1)) "$dir" < "$dir/in" > "$dir/out" &
	exec {fd}> "$dir/in"
	until grep -q '^ready' "$dir/out"; do sleep 0.02; done
	sleep 0.5 # until all that wait do
	ranks[$1]=$(awk '/^[0-9]/ { printf "%s%s", sep, $2; sep = "," }' "$dir/out")
	job_in[$1]=$fd
}
job_of 2
job_of 48
for ((i = 0; i < rounds; i++)); do
	for n in 2 48; do
		begin=$(date +%s%N)
		exec {answer}< <("$ct" stuck --over 0.1 -p "${ranks[$n]}" 2> "$tmp/stuck.err")
		read -r line <&"$answer"
		echo $((($(date +%s%N) - begin) / 1000000)) >> "$tmp/stuck.first$n"
		cat <&"$answer" > "$tmp/stuck.rest"
		echo $((($(date +%s%N) - begin) / 1000000)) >> "$tmp/stuck.all$n"
		exec {answer}<&-
		[[ $line == *"of $n ranks: rank $((n - 1)) has not arrived" ]] || echo "stuck of $n ranks: it said first: $line" >> "$missed"
	done
done
for n in 2 48; do
	fd=${job_in[$n]}
	exec {fd}>&-
	printf '%-58s %6.0f ms, in all %6.0f ms\n' "stuck, $n ranks: who is absent, after" "$(median < "$tmp/stuck.first$n")" "$(median < "$tmp/stuck.all$n")"
done
for what in first all; do
	at_most "stuck: ratio of 48 ranks to 2, $what" "$(ratio "$(median < "$tmp/stuck.${what}48")" "$(median < "$tmp/stuck.${what}2")")" 2
done

echo "== stat of a large machine: 10 000 processes x 40 functions (goal 256 MiB, kernel and user side)"
start_tracer stat -o /dev/null
kernel_mib=$(cat /proc/"$tracer"/fdinfo/* 2> /dev/null | awk '$1 == "memlock:" { n += $2 } END { printf "%d", n / 1048576 }')
printf '%-58s %s MiB\n' "the kernel side's maps, of the whole machine" "$kernel_mib"
stop_tracer
shown "$out/bench/bench_stat"
at_most "stat of a large machine" "$((kernel_mib + $(number 'user side +[0-9.]+ s, ([0-9]+) MiB')))" 256 MiB

echo "== 1000 processes that call 23 functions each, every second: a scrape of serve (goal 20 ms), and what top takes (goal 2 %)"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for names in 10 250; do
	coproc MANY { exec "$out/bench/many" "$lib" 1000 $names; }
	fd=${MANY[1]} many=$MANY_PID
	read -r _ <&"${MANY[0]}"
	start_tracer serve --listen "127.0.0.1:$port"
	tests/bench/scrape.py "127.0.0.1:$port" "$tracer" 15 > "$tmp/shown" || echo "scrape.py ended with status $?" >> "$missed"
	printf '%-58s %s\n' "serve, processes of $names names" "$(cat "$tmp/shown")"
	at_most "the slowest scrape of serve, $names names" "$(number 'worst ([0-9.]+) ms')" 20 ms
	stop_tracer
	if [ $names = 10 ]; then
		own=$("$ct" top --batch -n 15 -i 1 --format json 2> /dev/null | sed -n 's/.*"own_percent":\([0-9.]*\).*/\1/p' | tail -n +6 | median)
		printf '%-58s %s %% of a core\n' "top" "$own"
		at_most "top, of a core" "$own" 2 %
	fi
	exec {fd}>&-
	wait "$many" 2> /dev/null || true
done

if [ "$(id -u)" = 0 ]; then
	CAUSES='' shown tests/bench/states.sh
	at_most "a switch that is not watched, with the measuring" "$(number '^not watched, switch +([0-9]+) ns')" 150 ns
	at_most "a switch that is watched, with the measuring" "$(number '^watched, switch +([0-9]+) ns')" 1500 ns
fi

echo "== the program's own cost of a record"
# its note about steps comes each time
shown "$out/bench/bench_sinks" 2> /dev/null
for format in perfetto chrome; do
	at_most "a launch and its kernel to $format" "$(number "^$format .*late: +([0-9]+) ns")" 2000 ns
	at_most "a launch and its kernel to $format, memory" "$(number "^$format .*late: .*; ([0-9]+) MiB")" 200 MiB
done
at_most "a row of the table" "$(number 'table +to a file .*: +([0-9]+) mixed')" 500 ns
at_most "a row of JSON" "$(number 'json +to a file .*: +([0-9]+) mixed')" 600 ns
shown "$out/bench/bench_nsys"
at_least "nsys-sqlite" "$(number '^nsys-sqlite +([0-9]+) rows')" 300000 "rows a second"
at_most "nsys-sqlite, memory" "$(number '([0-9]+) MiB')" 200 MiB
shown "$out/bench/bench_advise" 5000000 0 1000000 # its goals are judged here:
for story in "a training" "all new"; do
	at_most "advise, $story, memory" "$(number "$story: .* ([0-9]+) MiB")" 200 MiB
done
at_most "advise, a training" "$(number 'a training: .* in ([0-9.]+) s')" 5 s
echo "== a recording's: ns and bytes a call"
shown "$out/bench/bench_trace" 2> /dev/null
for goal in "tight loop:250:6" "launches:250:14"; do
	IFS=: read -r story ns bytes <<< "$goal"
	at_most "recording, $story" "$(number "recording $story +([0-9]+) ns")" "$ns" ns
	at_most "recording, $story" "$(number "recording $story .*, +([0-9.]+) bytes")" "$bytes" "bytes a call"
done
echo "== a recording of calls and copies (stand-in) as columns: seconds until it is written, best of five"
"$ct" record -q --source=hooks --gpu -o "$tmp/columns.ctrace" -- "$out/bench/target" "$rt" cudaMemcpy 500000 > "$tmp/log" 2>&1 ||
	{ cat "$tmp/log" >&2; echo "the recording for columns was not made" >> "$missed"; }
columns() { # FORMAT: sets $took and $bytes
	local i TIMEFORMAT=%R
	: > "$tmp/c"
	for ((i = 0; i < 5; i++)); do
		rm -rf "$tmp/columns"
		{ time "$ct" export -q --to "$1" -o "$tmp/columns" "$tmp/columns.ctrace" > "$tmp/log" 2>&1; } 2>> "$tmp/c"
	done
	took=$(sort -n "$tmp/c" | head -n 1) bytes=$(du -sb "$tmp/columns" | cut -f 1)
}
columns csv
rows=$(($(wc -l < "$tmp/columns") - 1)) csv=$took csv_bytes=$bytes
printf '%-58s %s s, %.0f rows/s\n' "csv, $rows rows" "$took" "$(ratio "$rows" "$took")"
for format in arrow parquet; do
	columns $format
	printf '%-58s %s s, %.0f rows/s: ratio of time to csv %s, of bytes %s (goals 2000000 rows/s, 0.10 of the bytes)\n' "$format" "$took" \
		"$(ratio "$rows" "$took")" "$(ratio "$took" "$csv")" "$(awk -v a="$bytes" -v b="$csv_bytes" 'BEGIN { printf "%.3f", a / b }')"
	at_least "$format" "$(ratio "$rows" "$took")" 2000000 "rows a second"
	at_most "$format, of the bytes of csv" "$(awk -v a="$bytes" -v b="$csv_bytes" 'BEGIN { printf "%.3f", a / b }')" 0.10
done

[ "${BOOK:-}" = no ] || { echo "== the book" && tests/bench/book.py; } || echo "tests/bench/book.py ended with status $?" >> "$missed"
goals_end
