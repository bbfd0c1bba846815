#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# gen_man.sh - writes a manual page for each command: scripts/gen_man.sh PROGRAM FOLDER makes FOLDER/cudatrace-COMMAND.1 from what
# PROGRAM COMMAND --help prints, so that the pages and --help have the same rows. `make install` runs it. Fetches nothing.
set -euo pipefail
export LC_ALL=C
umask 022

[ $# = 2 ] || { echo "usage: scripts/gen_man.sh PROGRAM FOLDER" >&2; exit 2; }
program=$1 folder=$2
[[ $program == */* ]] || program=./$program
# a page has the date of the large one, so that two runs give the same bytes
date=$(sed -n 's/^\.Dd //p' "$(dirname "$0")/../docs/cudatrace.1")
mkdir -p "$folder"

# page COMMAND WHAT: the text of --help on standard input, the page on standard output
page() {
	awk -v name="$1" -v what="$2" -v date="$date" '
	# text that roff shows as it is
	function plain(s) {
		gsub(/\\/, "\\e", s)
		return (s ~ /^[.\047]/ ? "\\\046" : "") s
	}
	# text that is filled: a sentence begins a line
	function text(s,   out) {
		while (match(s, /[.!?]\)? +[A-Z]/)) {
			out = out plain(substr(s, 1, RSTART + RLENGTH - 2))
			sub(/ +$/, "", out)
			out = out "\n"
			s = substr(s, RSTART + RLENGTH - 1)
		}
		return out plain(s) "\n"
	}
	function quoted(s) {
		s = plain(s)
		gsub(/"/, "\"\"", s)
		return "\"" s "\""
	}
	function end_list() {
		if (listed)
			options = options ".El\n"
		listed = 0
	}
	# "  -k, --stack[=HOW]": the words of an option
	function option(head,   n, words, i, letter, arg, at) {
		if (!listed)
			options = options ".Bl -tag -width Ds\n"
		listed = 1
		sub(/^ +/, "", head)
		sub(/ +$/, "", head)
		letter = ""
		if (head ~ /^-[A-Za-z], /) {
			letter = "Fl " substr(head, 2, 1) " , "
			head = substr(head, 5)
		}
		match(head, /^--[a-z0-9-]+/)
		arg = substr(head, RLENGTH + 1)
		at = substr(head, 3, RLENGTH - 2)
		sub(/^ /, "", arg)
		if (arg ~ /^\[/)
			arg = " Ns Ar " quoted(arg)
		else if (arg != "")
			arg = " Ar " quoted(arg)
		options = options ".It " letter "Fl -" at arg "\n"
	}
	# a paragraph of one of the two parts that stand behind the options
	BEGIN { part = "usage" }
	part == "usage" && /^(Usage: |       )cudatrace/ { usage = usage plain(substr($0, 8)) "\n"; next }
	part == "usage" { part = "about" }
	/^Options:$/ || (/^[A-Z][A-Za-z -]+:$/ && !/^Examples:$/) {
		part = "options"
		end_list()
		if (!/^Options:$/)
			options = options ".Ss " substr($0, 1, length($0) - 1) "\n"
		next
	}
	/^Examples:$/ { part = "examples"; next }
	part == "about" { if ($0 != "") about = about text($0); next }
	part == "options" && /^  (-[A-Za-z], |    )--[a-z]/ {
		if (length($0) > 28 && substr($0, 28, 1) == " ") {
			option(substr($0, 1, 28))
			options = options text(substr($0, 29))
		} else {
			option($0)
		}
		next
	}
	part == "options" && /^                            [^ ]/ {
		line = substr($0, 29)
		options = options (line ~ /^\047/ ? ".br\n" : "") text(line)
		next
	}
	part == "examples" && /^  / { examples = examples plain(substr($0, 3)) "\n"; next }
	/^$/ { gap = 1; next }
	{
		part = "notes"
		notes = notes ((gap || /^[A-Z][A-Za-z -]+: /) && notes != "" ? ".Pp\n" : "") text($0)
		gap = 0
	}
	END {
		end_list()
		if (usage == "" || about == "" || options == "") {
			print "scripts/gen_man.sh: " name ": --help has another form than this script knows" > "/dev/stderr"
			exit 1
		}
		print ".\\\" SPDX-License-Identifier: BSD-2-Clause"
		print ".\\\" Made by scripts/gen_man.sh from the output of cudatrace " name " --help."
		print ".Dd " date
		print ".Dt " toupper("cudatrace-" name) " 1\n.Os\n.Sh NAME\n.Nm cudatrace-" name "\n.Nd " what
		printf ".Sh SYNOPSIS\n.Bd -literal -compact\n%s.Ed\n", usage
		printf ".Sh DESCRIPTION\n%s", about
		printf ".Sh OPTIONS\n%s", options
		if (notes != "")
			printf ".Sh NOTES\n%s", notes
		if (examples != "")
			printf ".Sh EXAMPLES\n.Bd -literal\n%s.Ed\n", examples
		print ".Sh SEE ALSO\n.Xr cudatrace 1"
	}'
}

"$program" --help | sed -nE 's/^       cudatrace ([a-z]+) (.{24,}[^ ]) *$/\1 \2/p' > "$folder/.commands"
made=0
while read -r name rest; do
	what=$(sed -E 's/^.*  +//' <<< "$rest")
	[ "$what" != "the same" ] || continue
	"$program" "$name" --help | page "$name" "$what" > "$folder/cudatrace-$name.1"
	made=$((made + 1))
done < "$folder/.commands"
rm "$folder/.commands"
[ "$made" -gt 0 ] || { echo "scripts/gen_man.sh: $program --help names no command" >&2; exit 1; }
