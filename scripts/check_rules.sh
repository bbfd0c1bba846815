#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# check_rules.sh - holds the rules of docs/ARCHITECTURE.md: who may include what (with check_rooms.py), who may write where; and that
# document to what there is: what it names exists, and no room goes without a word.
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
mapfile -t all < <(find user -name '*.[ch]')
mapfile -t not_source < <(find user -name '*.[ch]' -not -path 'user/source/*')
mapfile -t not_proc < <(find user -name '*.[ch]' -not -path 'user/source/*' -not -path 'user/proc/*' -not -path 'user/resolve/*')
mapfile -t not_debug < <(find user -name '*.[ch]' -not -path 'user/resolve/*' -not -path 'user/proc/*')
mapfile -t not_json < <(find user -name '*.[ch]' -not -path 'user/compare/*' -not -path 'user/export/otlp/*' -not -path 'user/nccl/*')
mapfile -t not_serve < <(find user -name '*.[ch]' -not -path 'user/serve/*')
mapfile -t outputs < <(find user/export user/render user/mem user/advise user/top user/serve user/compare user/util -name '*.[ch]')
# Commands and what they print with, and outputs.
mapfile -t quiet < <(find user -name '*.[ch]' -not -path 'user/export/*' -not -path 'user/flow/*' -not -path 'user/render/*' -not -path 'user/util/*' -not -name '*_sink.c' -not -path 'user/serve/*' -not -path 'user/cli/*')
mapfile -t not_main < <(find user -name '*.[ch]' -not -name main.c -not -name launch_child.c -not -name counters_child.c -not -name out_command.c -not -name unfinished.c -not -name apart.c)

scripts/check_rooms.py || failed=1
rule "json-c stays in compare, otlp and nccl" '#include <json-c/' "${not_json[@]}"
rule "OpenSSL and libyaml stay in serve" '#include <(openssl/|yaml\.h|crypt\.h)' "${not_serve[@]}"
rule "libbpf stays in source" '#include <bpf/' "${not_source[@]}"
rule "ELF and the /proc of other processes stay in source, proc and resolve" '#include <(libelf|gelf|elf)\.h>|"/proc"|"/proc/[^s]|"/proc/s[^e]' "${not_proc[@]}"
rule "libdw stays in resolve and proc" '#include <(elfutils/|dwarf)' "${not_debug[@]}"
rule "outputs know records, and nothing of the kernel side" '#include .*/control\.h"' "${outputs[@]}"
rule "vmlinux.h stays in BPF programs" '#include .*vmlinux\.h' "${all[@]}"
rule "only commands and sinks write to stdout" '\b(printf|puts|putchar)\(|fprintf\(stdout' "${quiet[@]}"
rule "only main exits" '\b_?exit\(' "${not_main[@]}"
rule "no BPF program calls what may sleep: a page that is never served would stop every tracer of the machine" \
	'\bbpf_(copy_from_user|copy_from_user_task|probe_read_user_dynptr|copy_from_user_str|ima_[a-z_]*hash)' {bpf,wire,capture}/*.h bpf/*.c
mapfile -t in_targets < <(find target -name '*.[chS]' -not -path target/common/alone.h)
rule "no thread of ours in a program asks the loader for its objects: dl_iterate_phdr() crashes beside dlopen() (target/common/alone.h)" \
	'(^|[^*] .*)\<dl_iterate_phdr\(.' "${in_targets[@]}"
mapfile -t not_api < <(find user -name '*.[ch]' -not -path 'user/api/*')
rule "only rows name functions: the others ask for what they do (api/traits.h)" \
	'(^|[^:])"[*]?(cu|cuda|__cuda)[A-Z][A-Za-z0-9_*]*"|(strstr|strn?cmp|fnmatch)\(.*(\<f|func|api_funcs\[[^]]*\]\.?)(->|\.)?name, *"' "${not_api[@]}"
rule "only rows name libraries (api/domains.def)" '\bAPI_(RUNTIME|DRIVER)\b' "${not_api[@]}"

# ---- the document is true ----------------------------------------------------------------------------------------

page=docs/ARCHITECTURE.md
MOST_LINES=200
rooms=$(grep '^| `' docs/internals/rooms.md)

# words: what stands in backticks, one a line
# shellcheck disable=SC2016 # backticks of the document
words() { grep -o '`[^`]*`' | tr -d '`'; }

# there PATTERN: it names a file, which may be given without its suffix
there() {
	local suffix
	for suffix in '' .c .h .def .bpf.h; do
		compgen -G "$1$suffix" > /dev/null && return
	done
	return 1
}

# all NAME MISSING: there is none
all() {
	if [ -z "$2" ]; then
		echo "ok rule: $1"
	else
		echo "not ok rule: $1: $(tr '\n' ' ' <<< "$2")"
		failed=1
	fi
}

# The paths that it names, from here or from user/; those of a running system, and commands, are others.
named() {
	local word
	cat "$page" docs/internals/*.md | words | grep -v '^/' | grep / | grep -v ' ' | sort -u | while read -r word; do
		there "$word" || there "user/$word" || echo "$word"
	done
}
# What is said to live in a room is there.
lives() {
	local what in_rooms word room
	while IFS='|' read -r _ in_rooms what _; do
		words <<< "$what" | grep -vE '^-|[ /]' | while read -r word; do
			while read -r room; do
				[ -d "$room" ] || room=$(dirname "$room")
				there "${room%/}/$word" && continue 2
			done < <(words <<< "$in_rooms")
			echo "$word"
		done
	done <<< "$rooms"
}
# Every folder has a row.
described() {
	local path room
	local -a all_rooms
	mapfile -t all_rooms < <(cut -d'|' -f2 <<< "$rooms" | words)
	{
		find bpf capture counters deploy docs python scripts tests vmlinux wire -maxdepth 0 -type d
		find target user -mindepth 1 -type d
	} | while read -r path; do
		for room in "${all_rooms[@]}"; do
			# shellcheck disable=SC2053 # a pattern
			[[ $path == ${room%/} || $path/ == ${room%/*}/ ]] && continue 2
		done
		echo "$path"
	done
}
# headed FILE ANCHOR: it has a heading of this name
headed() {
	sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g' | grep -qxF "$2"
}
# The page is short; in print a line of 110 columns and more takes several.
short() {
	local lines
	lines=$(awk '{ n += length($0) > 110 && /^\|/ ? int((length($0) + 109) / 110) : 1 } END { print n }' "$page")
	[ "$lines" -le "$MOST_LINES" ] || echo "$lines printed lines, $MOST_LINES are allowed: move details to docs/internals/"
}
# Each page of details is named in it.
indexed() {
	local file
	for file in docs/internals/*.md; do
		grep -qF "(internals/${file##*/})" "$page" || echo "$file"
	done
}
# A link to a file of ours leads to one, and to a heading that it has.
linked() {
	local file link
	grep -oE '\]\([^):]+\)' ./*.md docs/*.md docs/internals/*.md | sed -E 's/\]\(([^)]*).*/\1/' | while IFS=: read -r file link; do
		[[ $link == \#* ]] || [ -e "$(dirname "$file")/${link%%#*}" ] || echo "$file: $link"
		[[ $link != *\#* ]] || headed "$(dirname "$file")/${link%%#*}" "${link#*#}" || echo "$file: $link"
	done
}
# The index by need leads to each page beside it.
by_need() {
	local page
	for page in docs/*.md; do
		[ "$page" = docs/README.md ] || grep -qE "\]\(${page#docs/}[)#]" docs/README.md || echo "$page"
	done
}
# Every file opens with what it is for.
opened() {
	local file
	while read -r file; do
		head -n 4 "$file" | grep -qE '^(/\*| \*) .* - ' || echo "$file"
	done < <(find user bpf wire capture target counters -name '*.[ch]')
}
# The top level has these and no others; what git ignores does not count.
TOP='CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md SECURITY.md bpf cuda_events_test.c counters deploy docs target wire capture python scripts tests user vmlinux'
top_level() {
	local name
	for name in *; do
		[[ " $TOP " == *" $name "* ]] || grep -qxE "/$name/?" .gitignore || echo "$name"
	done
	for name in $TOP; do
		[ -e "$name" ] || echo "$name (missing)"
	done
}
# A name that stands in many files says nothing in a profile, and a search for it finds too much: a static function's name has its
# subject (ledger_find). The number may only be lowered.
MOST_ALIKE=13
alike() {
	find user target counters bpf -name '*.c' -print0 |
		xargs -0 grep -ohE '^static ([a-z_0-9]+ )+\**[a-z_0-9]+\(' | sed -E 's/.*[ *]([a-z_0-9]+)\($/\1/' | sort | uniq -c |
		awk -v most="$MOST_ALIKE" '$1 > most && $2 != "__attribute__" { print $2 " (" $1 " files)" }'
}
# A case that records by hooks says that a tracer of the whole machine would disturb it: hooks cannot be where breakpoints are.
unmarked() {
	awk '/^case_[a-z0-9_]*\(\) \{/ { name = $0 ~ /undisturbed|machine/ ? "" : FILENAME ": " $1 }
		/^}/ { name = "" }
		name != "" && !/^[\t ]*#/ && /--source=(hooks|auto)|for source in .*hooks|by_each_source/ { print name; name = "" }' tests/cases/*.sh
}
all "the top level has what it should" "$(top_level)"
all "cases by hooks are marked" "$(unmarked)"
all "no name of a static function stands in more than $MOST_ALIKE files" "$(alike)"
all "no file that an editor or a merge left" "$(find . -name .git -prune -o -path ./.output -prune -o \( -name '*.orig' -o -name '*.rej' -o -name '*~' -o -name '.*.sw?' \) -print)"
all "what the document names exists" "$(named)"
all "what is said to live in a room is there" "$(lives)"
all "every room is described" "$(described)"
all "the document is short" "$(short)"
all "the document names each page of details" "$(indexed)"
all "the index by need has each page" "$(by_need)"
all "links in the documents lead to files" "$(linked)"
all "every file opens with what it is for" "$(opened)"
exit $failed
