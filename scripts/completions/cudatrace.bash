# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Completion of cudatrace in bash: cudatrace itself says what may stand next.

_cudatrace() {
	local cur=${COMP_WORDS[COMP_CWORD]} line
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:file)
			compopt -o filenames 2> /dev/null
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${cur#=}")
			;;
		:directory)
			compopt -o filenames 2> /dev/null
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "${cur#=}")
			;;
		:user) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -u -- "${cur#=}") ;;
		:pid) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -P "${cur%"${cur##*,}"}" -- "${cur##*,}") ;;
		:command*)
			line=$((${line#:command } + 1))
			if declare -F _command_offset > /dev/null; then
				_command_offset "$line"
			elif [[ $COMP_CWORD == "$line" ]]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
			else
				compopt -o filenames 2> /dev/null
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			fi
			;;
		*) COMPREPLY+=("$line") ;;
		esac
	done < <("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
	# a list goes on
	[[ $cur != *[,!]* ]] || compopt -o nospace 2> /dev/null
}
complete -F _cudatrace cudatrace
