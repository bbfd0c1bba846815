#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# check_rules.sh - holds the rules of docs/ARCHITECTURE.md: who may include what, who may write where.
cd "$(dirname "$0")/.." || exit 1
failed=0

# rule NAME PATTERN FILES...: no line of the files may match
rule() {
	local name=$1 pattern=$2 hits
	shift 2
	hits=$(grep -nE "$pattern" "$@" 2>/dev/null)
	if [ -z "$hits" ]; then
		echo "ok rule: $name"
	else
		echo "not ok rule: $name: $(echo "$hits" | head -n 5 | tr '\n' ' ')"
		failed=1
	fi
}
mapfile -t api < <(find user/api -name '*.[ch]')
mapfile -t event < <(find user/event -name '*.[ch]')
mapfile -t source < <(find user/source -name '*.[ch]')
mapfile -t sink < <(find user/sink -name '*.[ch]')
mapfile -t resolve < <(find user/resolve -name '*.[ch]')
mapfile -t proc < <(find user/proc -name '*.[ch]')
mapfile -t trace < <(find user/trace -name '*.[ch]')
mapfile -t util < <(find user/util -name '*.[ch]')
mapfile -t sums < <(find user/stat user/compare -name '*.[ch]')
mapfile -t not_compare < <(find user -name '*.[ch]' -not -path 'user/compare/*')
mapfile -t all < <(find user -name '*.[ch]')
mapfile -t not_source < <(find user -name '*.[ch]' -not -path 'user/source/*')
mapfile -t not_proc < <(find user -name '*.[ch]' -not -path 'user/source/*' -not -path 'user/proc/*' -not -path 'user/resolve/*')
mapfile -t not_resolve < <(find user -name '*.[ch]' -not -path 'user/resolve/*')
mapfile -t quiet < <(find user -name '*.[ch]' -not -path 'user/sink/*' -not -path 'user/util/*' -not -name 'cmd_*' -not -name 'opts.c' -not -name main.c)
mapfile -t not_main < <(find user -name '*.[ch]' -not -name main.c -not -name launch_child.c -not -name counters_child.c)

rule "util knows no room" '#include ".*(api|event|source|sink|resolve|proc)/' "${util[@]}"
rule "proc knows no room but util" '#include ".*(api|event|source|sink|resolve)/' "${proc[@]}"
rule "api knows no source, sink or event" '#include ".*(event|source|sink|resolve|proc)/' "${api[@]}"
rule "event knows no source, no sink and no process" '#include ".*(source|sink|resolve|proc)/' "${event[@]}"
rule "resolve knows no source and no sink" '#include ".*(source|sink)/' "${resolve[@]}"
rule "trace knows no source, no sink and no process" '#include ".*(source|sink|resolve|proc)/' "${trace[@]}"
rule "sinks know no source" '#include ".*(source|resolve|proc)/' "${sink[@]}"
rule "sources know no sink" '#include ".*(sink|resolve)/' "${source[@]}"
rule "sums know no source, no session and no command" '#include ".*(source|resolve|proc)/|#include ".*(session(_[a-z]+)?|opts(_[a-z]+)?|cmd)\.h"' "${sums[@]}"
rule "json-c stays in compare" '#include <json-c/' "${not_compare[@]}"
rule "nobody below includes session, opts or a command" '#include ".*(session(_[a-z]+)?|opts(_[a-z]+)?|cmd)\.h"' "${api[@]}" "${event[@]}" "${source[@]}" "${sink[@]}" "${util[@]}" "${resolve[@]}" "${proc[@]}" "${trace[@]}"
rule "libbpf stays in source" '#include <bpf/' "${not_source[@]}"
rule "ELF and /proc stay in source, proc and resolve" '#include <(libelf|gelf|elf)\.h>|"/proc' "${not_proc[@]}"
rule "libdw stays in resolve" '#include <(elfutils/|dwarf)' "${not_resolve[@]}"
rule "vmlinux.h stays in BPF programs" '#include .*vmlinux\.h' "${all[@]}"
rule "only commands and sinks write to stdout" '\b(printf|puts|putchar)\(|fprintf\(stdout' "${quiet[@]}"
rule "only main exits" '\b_?exit\(' "${not_main[@]}"
exit $failed
