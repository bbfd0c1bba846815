#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# docs.sh - checks that several places say the same: --help (the rows of options) is compared with the manual page
# and with the completions of bash, zsh and fish, in both directions. Each of these must be free of syntax errors; a check is
# skipped if its program is not installed. Prints `ok`, `not ok` and `skip` lines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C

ct=${CUDATRACE:-./cudatrace}
page=docs/cudatrace.1
bash=scripts/completions/cudatrace.bash
zsh=scripts/completions/_cudatrace
fish=scripts/completions/cudatrace.fish
failed=0
not_ok() {
	echo "not ok $1: $2"
	failed=1
}

# same NAME WHAT: two lists of words, one a line, are the same set.
same() { # NAME WANT GOT
	local missing extra
	missing=$(comm -23 <(sort -u <<< "$2") <(sort -u <<< "$3") | tr '\n' ' ')
	extra=$(comm -13 <(sort -u <<< "$2") <(sort -u <<< "$3") | tr '\n' ' ')
	if [ -z "$2" ]; then
		not_ok "$1" "--help has nothing to compare with"
	elif [ -n "$missing$extra" ]; then
		not_ok "$1" "missing: ${missing:-none}; not in --help: ${extra:-none}"
	else
		echo "ok $1"
	fi
}

# Checks by a program that may not be installed.
syntax() { # NAME PROGRAM ARGS...
	local out
	if ! command -v "$2" > /dev/null; then
		echo "skip $1: $2 is not installed"
	elif out=$("${@:2}" 2>&1); then
		echo "ok $1"
	else
		not_ok "$1" "$(head -n 3 <<< "$out" | tr '\n' ' ')"
	fi
}

# The options of a --help, one a line: -x and --name.
options() {
	"$ct" "$@" --help | sed -nE 's/^  (    |(-[A-Za-z]), )(--[a-z-]+).*/\2 \3/p' | tr ' ' '\n' | grep .
}
help=$("$ct" --help) || not_ok help "$ct --help fails"
want=$(options)
commands=$(sed -nE 's/^       cudatrace ([a-z]+) .*/\1/p' <<< "$help")
any=$(options && for c in $commands; do options "$c"; done) # of all commands
classes=$(sed -nE 's/^(Classes|Libraries|Of what --layers records): //p' <<< "$help" | tr ' ' '\n')

# the words of -e that are no class, as --help quotes them: 'default'
lists=$(sed -n '/^  -e, --events /,/^  *--/p' <<< "$help" | grep -oE "'[a-z]+'" | tr -d "'")

syntax man-lint mandoc -T lint -W warning "$page"
# What is shown literally must not be taken for macros: ".Dl In use" printed "<use>".
if command -v mandoc > /dev/null; then
	literal=$(sed -nE 's/^\.Dl //p' "$page" | sed -e 's/\\&//g' -e 's/\\(dq/"/g')
	same man-literal "$literal" "$(grep -xF "$literal" <<< "$(mandoc -T ascii -O width=300 "$page" 2> /dev/null | col -b | sed -E 's/^[ \t]+//')")"
else
	echo "skip man-literal: mandoc is not installed"
fi
# .It Fl p , Fl -pid Ar pid
same man-options "$any" "$(grep '^\.It Fl' "$page" | grep -oE 'Fl -?[A-Za-z][a-z-]*' | sed 's/^Fl /-/')"
same man-classes "$classes" "$(sed -n '/^The classes:/,/^\.It /p' "$page" | sed -nE 's/^\.Cm ([a-z]+).*/\1/p')"
same man-lists "$lists" "$(sed -n '/^\.It Fl e ,/,/^The classes:/p' "$page" | sed -nE 's/^\.Cm ([a-z]+)$/\1/p')"
same man-commands "$commands" "$(sed -nE 's/^\.It Cm ([a-z]+).*/\1/p' "$page")"

# formats NAME OPTION ARGS...: the formats that the message about a wrong one lists are those that --help names.
formats() { # NAME OPTION ARGS...
	local listed text word named=
	listed=$("$ct" "${@:3}" "$2" nosuch nothing.ctrace 2>&1 | sed -n 's/.* is not one of //p' | sed 's/ or /, /' | tr -d ' ' | tr ',' '\n')
	text=$("$ct" "${@:3}" --help | sed -n "/^ *$2 /,/^  *\(-[A-Za-z], \)\?--/{/^ *$2 /p;/^  *-/!p}" | tr -cs 'a-z-' '\n')
	for word in $listed; do
		grep -qxFe "$word" <<< "$text" && named+=$word$'\n'
	done
	same "$1" "$listed" "${named%$'\n'}"
}
formats help-format --format
formats help-export-to --to export

# The pages of the commands are made of --help: each has its options, and all of its words.
pages=$(mktemp -d) || exit 1
trap 'rm -rf "$pages"' EXIT
scripts/gen_man.sh "$ct" "$pages" || not_ok man-pages "scripts/gen_man.sh fails"
made=$(grep -vx check <<< "$commands")
same man-pages "$made" "$(cd "$pages" && printf '%s\n' * | sed -E 's/^cudatrace-(.*)\.1$/\1/')"
for command in $made; do
	syntax "man-lint-$command" mandoc -T lint -W warning "$pages/cudatrace-$command.1"
	same "man-options-$command" "$(options "$command")" "$(grep '^\.It ' "$pages/cudatrace-$command.1" | grep -oE 'Fl -?[A-Za-z][a-z-]*' | sed 's/^Fl /-/')"
	command -v mandoc > /dev/null || continue
	lost=$(comm -23 <("$ct" "$command" --help | sed -E 's/^(Usage|Options|Examples)://' | tr -s ' \t' '\n' | sed -E 's/:$//' | sort -u) \
		<(mandoc -T ascii -O width=300 "$pages/cudatrace-$command.1" | col -bx | tr -s ' \t' '\n' | sed -E 's/:$//' | sort -u))
	if [ -z "$lost" ]; then
		echo "ok man-words-$command"
	else
		not_ok "man-words-$command" "words of --help that the page has not: $(tr '\n' ' ' <<< "$lost")"
	fi
done

syntax bash-syntax bash -n "$bash"
# complete WORDS...: what bash offers for the last of them.
complete_words() {
	# shellcheck disable=SC2016
	bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cudatrace; printf "%s\n" "${COMPREPLY[@]}"' \
		complete "$bash" "$ct" "$@" 2> /dev/null
}
same bash-options "$want" "$(complete_words - | grep -vx -e --)"
for command in $commands; do
	same "bash-options-$command" "$(options "$command")" "$(complete_words "$command" - | grep -vx -e --)"
done
same bash-commands "$commands" "$(complete_words '')"
same bash-classes "$classes"$'\n'"$lists" "$(complete_words -e '')"
same bash-list-head "memory,!copy memory,!context memory,!collective memory,!communicator" "$(complete_words -e 'memory,!co' | tr '\n' ' ' | sed 's/ $//')"
same bash-functions "cudaMallocHost" "$(complete_words -e 'cudaMallocHos')"
same bash-value "json" "$(complete_words --format = j)"

# What the shells ask.
completes() { # NAME WANT WORDS...
	same "complete-$1" "$2" "$("$ct" --complete "${@:3}")"
}
completes words $'table\njson' stuck --format ''
completes value-after-equals "json" --format = j
completes file ":file" -o ''
completes commands "$commands" ''
# A picture without a size of its own has none in a table, where its column is as narrow as it can be.
pictures=$(grep -L -E '^<svg [^>]*width="[0-9]+" height="[0-9]+"' docs/pictures/*.svg | tr '\n' ' ')
if [ -z "$pictures" ]; then
	echo "ok pictures-have-a-size"
else
	not_ok pictures-have-a-size "no width and height: $pictures"
fi
# The recording that the pictures are made from is small, and readable as it is.
said=$("$ct" info docs/step.ctrace 2>&1 | grep -E '^(lost|kernels|file) ' | tr -s ' ' | tr '\n' ';')
if [[ $(stat -c %s docs/step.ctrace) -le 307200 && $said == 'kernels 258;lost nothing;file '*'with an index;' ]]; then
	echo "ok pictures-recording"
else
	not_ok pictures-recording "$(stat -c %s docs/step.ctrace) bytes: $said"
fi
# --help on a terminal: by the pager; elsewhere, and if there is no such pager, as it is.
on_terminal() { # PAGER TERM WORDS...
	local command="env PAGER='$1' TERM=$2 '$ct' ${*:3}; echo \"status \$?\""
	SHELL=/bin/sh script -qec "$command" /dev/null < /dev/null | tr -d '\r'
}
pages() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		not_ok "$1" "$(diff <(echo "$2") <(echo "$3") | head -n 3 | tr '\n' ' ')"
	fi
}
if command -v script > /dev/null; then
	plain=$help$'\n''status 0'
	paged=P:${help//$'\n'/$'\n'P:}$'\n''status 0'
	pages pager "$paged" "$(on_terminal 'sed s/^/P:/' xterm --help)"
	pages pager-command "$paged" "$(on_terminal 'sed s/^/P:/' xterm help)"
	# shellcheck disable=SC2016 # the pager's own variable
	pages pager-interrupted "$plain" "$(on_terminal 'kill -INT $PPID; cat' xterm --help)"
	pages pager-ends-early "$(head -n 1 <<< "$help")"$'\n''status 0' "$(on_terminal 'head -n 1' xterm --help)"
	pages pager-cat "$plain" "$(on_terminal cat xterm --help)"
	pages pager-empty "$plain" "$(on_terminal '' xterm --help)"
	pages pager-dumb "$plain" "$(on_terminal 'sed s/^/P:/' dumb --help)"
	pages pager-missing "$plain" "$(on_terminal /nonexistent/pager xterm --help | grep -v 'not found$')"
	pages pager-brief "$("$ct" -h)"$'\n''status 0' "$(on_terminal 'sed s/^/P:/' xterm -h)"
else
	echo "skip pager: script is not installed"
fi
pages pager-not-in-a-pipe "$help" "$(PAGER='sed s/^/P:/' TERM=xterm "$ct" --help)"

syntax zsh-syntax zsh -n "$zsh"
syntax fish-syntax fish -n "$fish"
exit $failed
