# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# names.sh - cases about the names of kernels: of programs that start under the tracer and of ones that run already, in every
# form that compilers give them. The stand-in's driver writes down which kernels it really launched; the trace must say the
# same, row by row, or that it does not know.

PROGRAMS=$OUT/programs

# kernel_program NAME: its path in $prog; a skip where there is no nvcc to build it.
kernel_program() {
	prog=$PROGRAMS/$1
	[ -x "$prog" ] || skip "$1 is not built: it needs nvcc"
	export STANDIN_LAUNCHES=$T/launched
}

# With driver 580: its descriptions of kernels are known to be readable.
measured_driver() {
	export LD_LIBRARY_PATH=$PROGRAMS/580
}

# The kernel of each launch in the trace, "-" where it is not known.
kernels_seen() {
	grep '^{"type":"call"' "$T/out" | grep -E '"name":"cu(da)?LaunchKernel"' |
		sed -E 's/.*"kernel_mangled":"([^"]*)".*/\1/; t; s/.*/-/'
}

# The same as the driver has it, from line $1 on.
kernels_launched() {
	tail -n "+${1:-1}" "$T/launched" | cut -d' ' -f3
}

# A kernel over an extended lambda has another name on the host, where nothing else is known.
host_names() {
	sed -E 's/^(_ZN5spaceL?5apply).*/\1/; s/^_ZN5spaceL/_ZN5space/'
}

# same_kernels [FIRST-LINE [FILTER]]: every launch has the right name.
same_kernels() {
	kernels_launched "${1:-1}" | "${2:-cat}" > "$T/want"
	kernels_seen | "${2:-cat}" > "$T/got"
	[ -s "$T/want" ] || fail "nothing was launched"
	diff "$T/want" "$T/got" > "$T/diff" || fail "kernels differ: $(cut -c1-120 "$T/diff" | head -n 6)"
}

# right_or_unknown FIRST-LINE: no launch has a wrong name. Sets $unknown.
right_or_unknown() {
	kernels_launched "$1" > "$T/want"
	kernels_seen > "$T/got"
	expect "launches" "$(wc -l < "$T/got")" "$(wc -l < "$T/want")"
	paste -d' ' "$T/got" "$T/want" | awk '$1 != "-" && $1 != $2' > "$T/wrong"
	[ ! -s "$T/wrong" ] || fail "wrong names: $(cut -c1-200 "$T/wrong" | head -n 3)"
	unknown=$(grep -c '^-$' "$T/got")
}

# sources: how the names are known, each once
sources() {
	grep -o '"kernel_source":"[a-z]*"' "$T/out" | cut -d'"' -f4 | sort -u | tr '\n' ' '
}

# started PROGRAM [ARGS...]: every name is right when the program starts under the tracer
started() {
	kernel_program "$1"
	ct_json -- "$prog" "${@:2}"
	ok_rc
	same_kernels
	expect "sources of $1" "$(sources)" "registered "
	no_loss
	rm -f "$T/launched"
}

case_names_started_handle() {
	started kernels
	grep -F '"kernel_mangled":"_Z8internalPi"' "$T/out" | grep -q -F '"kernel":"internal(int*)"' || fail "not demangled"
	grep -F '"kernel_mangled":"unmangled"' "$T/out" | grep -q -F '"kernel":"unmangled"' || fail "a C name is changed"
	expect "the longest name" "$(kernels_seen | awk '{ if (length > n) n = length } END { print (n > 2000) }')" 1
}
case_names_started_legacy() { started kernels-legacy; }
case_names_started_static() { started kernels-static; }
case_names_started_rdc() { started kernels-rdc; }
case_names_started_stripped() { started kernels-stripped; }
case_names_started_legacy_stripped() { started kernels-legacy-stripped; }
# Nothing of the runtime is left to probe: the driver's look-ups and launches tell.
case_names_started_static_stripped() { started kernels-static-stripped; }

case_names_started_many() {
	kernel_program many
	ct_json -- "$prog" 20000
	ok_rc
	same_kernels
	expect "launches" "$(kernels_seen | wc -l)" 400
	no_loss
}

# Another library's kernel at the same address, its handle at the same address too.
case_names_started_reload() {
	local p=$PROGRAMS
	kernel_program libalpha.so
	started reload "$p/libalpha.so" "$p/libbeta.so" "$p/libalpha.so"
	expect "different addresses" "$(grep '^base' "$T/prog.out" | sort -u | wc -l)" 1
	started reload "$p/libalpha-legacy.so" "$p/libbeta-legacy.so" "$p/libalpha-legacy.so"
	started reload "$p/libalpha-stripped.so" "$p/libbeta-stripped.so"
}

case_names_started_module() {
	started module
	expect "different addresses" "$(awk '{ print $2 }' "$T/prog.out" | sort -u | wc -l)" 1
}

# seen N: that many launches are in the trace. A name is looked for when the record comes, which the program must live to see.
seen() {
	[ "$(kernels_seen | wc -l)" -ge "$1" ]
}

# attached PROGRAM [ARGS...]: attaches to the program, which has launched everything once, and lets it do so again.
# $first is the first line of what it launches then. With TWO_STEPS=1 the program waits after its first launch. ATTACH holds
# more options.
attached() {
	kernel_program "$1"
	rm -f "$T/launched" "$T/a.in" "$T/err" "$T/out"
	PROG=$prog target a "${@:2}"
	first=$(($(wc -l < "$T/launched") + 1))
	attach "${ATTACH[@]}" -p "$PID_a"
	if [ -n "${TWO_STEPS:-}" ]; then
		go a nowait
		wait_for 10 seen 1
	fi
	go a
	wait_for 10 seen $(($(wc -l < "$T/launched") + 1 - first))
	stop a
	finish
	ok_rc
	no_loss
}

case_names_attached_handle() {
	attached kernels
	same_kernels "$first"
	[[ $(sources) = *symbol* ]] || fail "sources: $(sources)"
}
case_names_attached_static() {
	attached kernels-static
	same_kernels "$first"
}
case_names_attached_rdc() {
	attached kernels-rdc
	same_kernels "$first"
}
case_names_attached_legacy() {
	attached kernels-legacy
	same_kernels "$first" host_names
	expect "sources" "$(sources)" "symbol "
}
case_names_attached_legacy_static() {
	attached kernels-legacy-static
	same_kernels "$first" host_names
}

# Nothing but the driver's memory knows the names.
case_names_attached_stripped() {
	measured_driver
	attached kernels-stripped
	same_kernels "$first"
	expect "sources" "$(sources)" "driver "
}
case_names_attached_static_stripped() {
	measured_driver
	attached kernels-static-stripped
	same_kernels "$first"
	expect "sources" "$(sources)" "driver "
}
# The driver's launch inside names the host stub, once it has been looked for.
case_names_attached_legacy_stripped() {
	measured_driver
	attached kernels-legacy-stripped
	right_or_unknown "$first"
}
case_names_attached_many() {
	measured_driver
	attached many 20000
	right_or_unknown "$first"
}

# A driver of which nothing is known: rather no name than one that might be wrong.
case_names_attached_unknown() { # long
	attached kernels-stripped
	right_or_unknown "$first"
	expect "named" "$unknown" 14
	! grep -q '"kernel"' "$T/out" || fail "a name from nowhere"
	PROG=$prog target b
	rm -f "$T/err"
	attach --format table -p "$PID_b"
	go b
	stop b
	finish
	expect "rows with an address" "$(grep -c -E 'cudaLaunchKernel +func(tion)?=0x[0-9a-f]+, grid' "$T/out")" 14
}

# The only kernel of the program, and the program has no symbols at all.
case_names_attached_fatbin() { # long
	local name
	for name in one-legacy-stripped one-legacy-nosections; do
		attached "$name"
		same_kernels "$first"
		expect "source" "$(sources)" "fatbin "
	done
}

# A library is closed and another one takes its addresses, handles and variables while the tracer looks.
case_names_attached_reload() { # long
	local form TWO_STEPS=1
	kernel_program libalpha.so
	for form in '' -legacy; do
		attached reload "$PROGRAMS/libalpha$form.so" "$PROGRAMS/libbeta$form.so"
		expect "different addresses" "$(grep '^base' "$T/a.out" | sort -u | wc -l)" 1
		same_kernels "$first"
	done
}
case_names_attached_reload_stripped() { # long
	local TWO_STEPS=1
	kernel_program libalpha.so
	measured_driver
	attached reload "$PROGRAMS/libalpha-stripped.so" "$PROGRAMS/libbeta-stripped.so"
	same_kernels "$first"
}

case_names_attached_module() { # long
	local TWO_STEPS=1
	measured_driver
	attached module
	same_kernels "$first"
}
case_names_attached_module_unknown() { # long
	local TWO_STEPS=1
	attached module
	right_or_unknown "$first"
	# only the one that was looked up before the trace began is not known
	[ "$unknown" -le 1 ] || fail "$unknown launches have no name"
}

# The same without a pause: what is unloaded while its name is looked for has none, rather than another one's.
case_names_attached_reload_at_once() { # long
	local fd
	kernel_program libalpha.so
	measured_driver
	for prog in "$PROGRAMS/reload $PROGRAMS/libalpha.so $PROGRAMS/libbeta.so" "$PROGRAMS/module"; do
		rm -f "$T/launched" "$T/a.in" "$T/err" "$T/out"
		read -ra words <<< "$prog"
		PROG=${words[0]} target a "${words[@]:1}"
		first=$(($(wc -l < "$T/launched") + 1))
		attach -p "$PID_a"
		fd=FD_a
		printf '\n\n' >&"${!fd}"
		wait_for 10 grep -q '^done' "$T/a.out"
		stop a
		finish
		ok_rc
		right_or_unknown "$first"
	done
}

# An exception goes through the frames above the launches, and one launch is made while it does. Without results of calls
# handles have names only as in a program that runs already.
case_names_exception_no_return() {
	local ATTACH=(--no-return -e cudaLaunchKernel)
	kernel_program throws
	ct_json "${ATTACH[@]}" -- "$prog" 4
	ok_rc
	expect "the program's own count" "$(cat "$T/prog.out")" "destroyed 16 caught 4"
	right_or_unknown 1
	attached throws 4
	expect "the program's own count" "$(tail -n 2 "$T/a.out" | head -n 1)" "destroyed 32 caught 8"
	same_kernels "$first"
}

# What doctor promises is what happens.
case_names_doctor() {
	kernel_program kernels
	PROG=$prog target a
	ct doctor -p "$PID_a"
	grep -A 1 -F "$(readlink -f "$prog")" "$T/out" | grep -q -E 'names +from its symbols: 13 host stubs, 14 variables' ||
		fail "doctor: $(grep -A 2 'names of kernels' "$T/out")"
	stop a
	kernel_program kernels-stripped
	PROG=$prog target b
	ct doctor -p "$PID_b"
	grep -A 1 -F "$(readlink -f "$prog")" "$T/out" | grep -q 'function=0x' || fail "doctor: $(grep -A 2 'names of kernels' "$T/out")"
	stop b
}
