# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# library.sh - cases about where the code to probe is: static, late, twice, in another namespace, the real one.

# Probes on the stand-in are only cheap, and only right, if its functions are made as CUDA's are.
case_standin_entries() {
	command -v objdump > /dev/null || skip "no objdump"
	"$ROOT/tests/standin/check.sh" "$STANDIN/libcuda.so.1" "$STANDIN/libcudart.so.13" "$STANDIN/12/libcudart.so.12" \
		> "$T/out" 2> "$T/err" || fail "$(tail -n 1 "$T/err")"
}

case_static() {
	ct_json -- "$BIN/calls-static" mix 6 4 0
	ok_rc
	expect_rows cudaMalloc 7
	expect_rows cudaMemcpy 4
	expect_rows cuMemAlloc_v2 0
	no_loss
}

# The stand-in's functions do not name themselves. Stripped, they cannot be found: the driver's calls show.
case_static_stripped() {
	ct_json -- "$BIN/calls-stripped" mix 6 4 0
	ok_rc
	expect_rows cudaMalloc 0
	expect_rows cuMemAlloc_v2 7
	expect_rows cuMemcpyHtoD_v2 4
}

case_static_in_shared_object() {
	ct_json -- "$CALLS" inner "$BIN/libinner.so" 23
	ok_rc
	expect_rows cudaStreamQuery 23
	no_loss
}

# Loaded late and called at once: not one call may be missed.
case_dlopen_at_once() {
	local i n
	for i in 1 2 3; do
		n=$(random 1 300)
		ct_json -- "$BIN/late" "$STANDIN/12/libcudart.so.12" "$n" "$STANDIN/libcudart.so.13" 7
		n=$((n + 7))
		ok_rc
		expect "round $i: calls" "$(rows cudaStreamQuery)" "$n"
	done
}

case_dlopen_while_attached() {
	target a dlopen "$STANDIN/12/libcudart.so.12" 5000000
	attach -e cudaStreamQuery -p "$PID_a" -n 100
	go a nowait
	finish
	expect_rows cudaStreamQuery 100
	kill -KILL "$PID_a"
}

# once_all CALLS OPTIONS -- MODE...: a program that is attached to makes so many calls at once when something new is mapped. It waits for
# its probes, though not for ever where other work has all processors: of twelve runs one at least shows every call.
once_all() {
	local want=$1 i opts=()
	shift
	while [ "$1" != -- ]; do
		opts+=("$1")
		shift
	done
	shift
	for i in {1..12}; do
		rm -f "$T/a.in" "$T/err" "$T/out"
		target a "$@"
		attach "${opts[@]}" -e cudaStreamQuery -p "$PID_a"
		go a nowait
		stop a
		finish
		ok_rc
		[ "$(rows cudaStreamQuery)" = "$want" ] && return
	done
	fail "the last of $i runs shows $(rows cudaStreamQuery) calls, not $want"
}

case_dlopen_attached_at_once() {
	once_all 23 -- dlopen "$STANDIN/12/libcudart.so.12" 23
}

case_dlopen_attached_and_followed_at_once() {
	once_all 23 -f -- dlopen "$STANDIN/12/libcudart.so.12" 23
}

# Links for a single process are bound to its first thread, which another one replaces when it runs a program.
case_exec_by_another_thread_attached() {
	once_all 13 -- thread-exec 5 8
}

case_two_versions() {
	ct_json -- "$CALLS" dlopen "$STANDIN/12/libcudart.so.12" 31 libcudart.so.13 47
	ok_rc
	expect_rows cudaStreamQuery 78
	no_loss
}

# A program, and a library in which cudaMalloc is an indirect function, cudaFreeHost is another name of cudaFree, and a function that
# has a name for threads' own streams is one function all the same.
odd_library() {
	gcc -shared -fPIC -O1 -o "$T/libodd.so" -x c - << 'END'
static int made(void **p, unsigned long n) { *p = p; return n == 0; }
static void *choose(void) { return made; }
int cudaMalloc(void **, unsigned long) __attribute__((ifunc("choose")));
int cudaFree(void *p) { return !p; }
int cudaFreeHost(void *) __attribute__((alias("cudaFree")));
int cudaStreamSynchronize(void *s) { return s != 0; }
int cudaStreamSynchronize_ptsz(void *) __attribute__((alias("cudaStreamSynchronize")));
END
	gcc -O1 -o "$T/odd" -x c - -x none "$T/libodd.so" -Wl,-rpath,"$T" << 'END'
int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaFreeHost(void *), cudaStreamSynchronize(void *);
int main(void)
{
	void *p;

	for (int i = 0; i < 4; i++)
		if (cudaMalloc(&p, 64) || cudaFree(p))
			return 1;
	return cudaFreeHost(p) || cudaStreamSynchronize(0);
}
END
}

# odd_calls SOURCE: what a trace of it says, and that it says nothing of functions that are not asked for.
odd_calls() {
	odd_library
	ct_json --strict --source="$1" -- "$T/odd"
	ok_rc 3
	expect "calls" "$(grep -o '"name":"cuda[A-Za-z_]*"' "$T/out" | sort | uniq -c | xargs)" "5 name:cudaFree 1 name:cudaStreamSynchronize"
	says "^cudatrace: 6 calls, 0 lost of those seen; 1 function is indirect \(IFUNC\): calls of it are not known; 1 function has the same code as another one: calls of it are shown under the other's name$"
	expect "rows" "$(tail -n 1 "$T/out" | python3 -c '
import json, sys
print(", ".join("%s %s %d" % (h["reason"], h["text"], h["count"]) for h in json.load(sys.stdin)["not_seen"]))')" \
		"indirect cudaMalloc 1, shared_code cudaFreeHost 1"
	ct --strict --source="$1" -e cudaFreeHost -- "$T/odd"
	ok_rc 3
	says "^cudatrace: 5 calls, 0 lost; 1 function has the same code as another one: calls of it are shown under the other's name$"
	ct --strict --source="$1" -e cudaMalloc -- "$T/odd"
	ok_rc 3
	says '; 1 function is indirect \(IFUNC\): calls of it are not known$'
	ct --strict --source="$1" -e cudaStreamSynchronize -- "$T/odd"
	ok_rc
	says '^cudatrace: 1 call, 0 lost$'
}

case_library_of_odd_functions() {
	odd_calls probes
}

case_library_option() {
	ct_json --library "$STANDIN/12/libcudart.so.12" -- "$CALLS" dlopen "$STANDIN/12/libcudart.so.12" 31 libcudart.so.13 47
	ok_rc
	expect_rows cudaStreamQuery 31
}

# A copy of the libraries that only the target's mount namespace has.
case_mount_namespace() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	mkdir "$T/private"
	cat > "$T/inside.sh" <<-END
		mount -t tmpfs none "$T/private" && cp -L "$STANDIN"/libcuda*.so.* "$T/private" || exit 9
		export LD_LIBRARY_PATH=$T/private
		exec "$BIN/calls-dl" --wait queries 40
	END
	mkfifo "$T/in"
	unshare -m bash "$T/inside.sh" < "$T/in" > "$T/prog.out" 2> "$T/prog.err" &
	exec 9> "$T/in"
	wait_for 5 grep -q '^ready' "$T/prog.out"
	local pid
	pid=$(awk '/^ready/ { print $2 }' "$T/prog.out")
	grep -q "$T/private/libcudart" "/proc/$pid/maps" || fail "the target has not loaded its own copy"
	[ ! -e "$T/private/libcudart.so.13" ] || fail "the copy is not private"
	attach -p "$pid"
	echo >&9
	wait_for 5 grep -q '^done' "$T/prog.out"
	echo >&9
	finish
	expect_rows cudaStreamQuery 40
}

case_mount_namespace_started() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	mkdir "$T/private"
	cat > "$T/inside.sh" <<-END
		mount -t tmpfs none "$T/private" && cp -L "$STANDIN"/libcuda*.so.* "$T/private" || exit 9
		LD_LIBRARY_PATH=$T/private "$BIN/calls-dl" queries 41
	END
	ct_json -f -- unshare -m bash "$T/inside.sh"
	ok_rc
	expect_rows cudaStreamQuery 41
}

# One file seen through two overlays is one file: one call, one row.
case_overlay_twice() {
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	mkdir -p "$T/tmp"
	cat > "$T/inside.sh" <<-END
		mount -t tmpfs none "$T/tmp" || exit 8
		cd "$T/tmp" && mkdir low u1 w1 m1 u2 w2 m2 && cp -L "$STANDIN"/libcuda*.so.* low || exit 8
		mount -t overlay -o lowerdir=low,upperdir=u1,workdir=w1 none m1 &&
		mount -t overlay -o lowerdir=low,upperdir=u2,workdir=w2 none m2 || exit 8
		LD_LIBRARY_PATH=$T/tmp/m1 "$BIN/calls-dl" queries 12 &&
		LD_LIBRARY_PATH=$T/tmp/m2 "$BIN/calls-dl" queries 13
	END
	ct_json -f -- unshare -m bash "$T/inside.sh"
	[ "$rc" != 8 ] || skip "no overlayfs here"
	ok_rc
	expect_rows cudaStreamQuery 25
}

# A library that is written anew in place, with other functions in the middle of which the old ones began, and then as it was: each program has
# its own calls, once.
case_library_rewritten() {
	local n
	cp "$BIN/libmany.so" "$BIN/libother.so" "$BIN/late" "$T"
	cp "$T/libmany.so" "$T/lib.so"
	mkfifo "$T/in"
	exec 9<> "$T/in"
	# shellcheck disable=SC2016 # it is the script's shell that expands them
	printf '%s\n' 'cd "$1" || exit 9' './late ./lib.so 5 || exit 1' \
		'cat libother.so > lib.so; echo written 1 > told; read -r line < in; ./late ./lib.so 6 || exit 2' \
		'cat libmany.so > lib.so; echo written 2 > told; read -r line < in; ./late ./lib.so 7 || exit 3' > "$T/script"
	attach -e all -f -- bash "$T/script" "$T"
	for n in 1 2; do
		wait_for 20 grep -q "written $n" "$T/told"
		wait_for 10 warned_of "$n"
		echo go >&9
	done
	wait_for 20 ended "$CT"
	finish
	ok_rc
	expect "results" "$(grep -h result "$T/ct.out" | tr '\n' ' ')" "result 0 result 600 result 0 "
	expect_rows cudaStreamQuery 18
	expect_rows cudaStreamQuery 12 '"ret":0,'
	expect_rows cudaStreamQuery 6 '"ret":600,'
	no_loss
	expect "warnings" "$(grep -c warning "$T/err")" 2
}

warned_of() {
	[ "$(grep -c 'warning: .*/lib.so was rewritten in place while it had probes' "$T/err")" = "$1" ]
}

no_driver() {
	! ldconfig -p | grep -q 'libcuda\.so\.1' || skip "this machine has a driver"
}

# NVIDIA's own library without a driver: every call returns 35, cudaErrorInsufficientDriver.
case_real_libcudart_13() {
	local lib=${CUDA_HOME:-/usr/local/cuda}/lib64/libcudart.so.13 n
	[ -e "$lib" ] || skip "no libcudart.so.13 of NVIDIA's here"
	no_driver
	n=$(random 5 200)
	ct_json -- "$BIN/late" "$(readlink -f "$lib")" "$n"
	ok_rc
	expect_rows cudaStreamQuery "$n" '"ret":35,"result":"cudaErrorInsufficientDriver"'
	no_loss
}

case_real_sample_without_driver() {
	local dir=${CUDA_HOME:-/usr/local/cuda}/lib64
	[ -e "$dir/libcudart.so.13" ] || skip "no libcudart.so.13 of NVIDIA's here"
	no_driver
	ct_json -E LD_LIBRARY_PATH="$dir" -- "$SAMPLE"
	ok_rc 77
	expect_rows cudaGetDeviceCount 1 '"ret":35,"result":"cudaErrorInsufficientDriver"'
}

# Other versions of the runtime, as their Python wheels carry them; fetched by tests/wheels.sh.
case_real_libcudart_wheels() {
	local lib n=0
	no_driver
	for lib in "$OUT"/wheels/*/libcudart.so.1*; do
		[ -f "$lib" ] || continue
		n=$((n + 1))
		ct_json -- "$BIN/late" "$(readlink -f "$lib")" 19
		ok_rc
		expect "calls of $lib" "$(rows cudaStreamQuery '"ret":35')" 19
	done
	[ "$n" != 0 ] || skip "no wheels in $OUT/wheels: tests/wheels.sh fetches them"
}

# The loader is at work in another thread: see prog/crossing.c.
crossing_objects() {
	local i
	mkdir "$T/objects"
	for ((i = 1; i <= 80; i++)); do
		cp "$BIN/libcrossing.so" "$T/objects/$i.so"
	done
}

case_library_crossing_started() {
	crossing_objects
	# shellcheck disable=SC2016 # the shell's own
	ct --gpu -o "$T/rows" -- sh -c 'echo | exec "$0" "$1"' "$BIN/crossing" "$T/objects"
	ok_rc
	expect "the program" "$(tail -n 1 "$T/out")" "crossed 0"
}

# crossing_attached HOW OPTIONS...: HOW is for the program. The objects of ours that these bring into the program do not crash it.
crossing_attached() {
	local fd pid
	crossing_objects
	mkfifo "$T/in"
	# shellcheck disable=SC2086 # it may be none
	"$BIN/crossing" "$T/objects" $1 < "$T/in" > "$T/prog.out" &
	pid=$!
	exec {fd}> "$T/in"
	wait_for 10 grep -q ready "$T/prog.out"
	attach "${@:2}" -p "$pid"
	echo >&"$fd"
	exec {fd}>&-
	wait "$pid" || fail "the program ended with status $?"
	expect "the program" "$(tail -n 1 "$T/prog.out")" "crossed 0"
	wait "$CT" || fail "status $?: $(cat "$T/err")"
}

case_library_crossing_gpu() {
	crossing_attached "" --gpu
}

case_library_crossing_hooks() { # undisturbed
	crossing_attached exits --source=hooks
}

case_library_crossing_nvtx() {
	crossing_attached exits --layers nvtx
}

case_library_crossing_all() { # undisturbed
	crossing_attached "" --source=hooks --gpu --layers nvtx
}
