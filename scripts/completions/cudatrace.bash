# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Completion of cudatrace in bash. Needs nothing but bash; what follows -- is completed as a command.

_cudatrace() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd=trace eq="" i head words opts
	local folded="-p --pid -f --follow -t --thread --cgroup --comm --library --domain -u --user -E --env
		-e --events --failed --min-duration --min-size --keep-chatty
		-k --stack --no-python --mangled --full-names -o --output -A --append --format --weight
		-d --duration -n --count --no-return --ring-size --probe-kind --strict
		-v --verbose -V --version -h --help"
	local trace="$folded --unfinished --nested --enter-exit --time --tid -c --count-only -C --counts --color"
	local stuck="-p --pid --library --over --watch --no-python --mangled --full-names -o --output --format --ring-size
		--probe-kind -v --verbose -V --version -h --help"
	local classes="memory copy set launch stream event sync graph device context module query peer texture profiler
		internal default all"
	COMPREPLY=()

	# --name=value is three words to bash.
	if [[ $cur == = ]]; then
		cur=
		eq=1
	elif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then
		eq=1
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi

	# The first word that is neither an option nor its value is a command of cudatrace; what follows -- is CMD.
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			if declare -F _command_offset > /dev/null; then
				_command_offset $((i + 1))
			elif [[ $COMP_CWORD == $((i + 1)) ]]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur" && compgen -d -- "$cur" | sort -u)
			else
				compopt -o filenames 2> /dev/null
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			fi
			return
			;;
		-[ptueEodn] | --pid | --thread | --cgroup | --comm | --library | --domain | --user | --env | --events | \
			--min-duration | --min-size | --unfinished | --over | --output | --format | --weight | --time | --color | --duration | --count | \
			--ring-size | --probe-kind)
			i=$((i + 1))
			if [[ ${COMP_WORDS[i]} == = ]]; then
				i=$((i + 1))
			fi
			;;
		folded | stuck | list | doctor | schema)
			cmd=${COMP_WORDS[i]}
			break
			;;
		esac
	done

	case $prev in
	-p | --pid | -t | --thread)
		words=$(cd /proc && echo [0-9]*)
		;;
	-e | --events)
		words=$classes
		# Names of functions from the third letter on.
		head=${cur##*[,!]}
		if [[ $head == cu?* ]]; then
			words=$("${COMP_WORDS[0]}" list "$head*" 2> /dev/null | sed 's/^[^(]* \([A-Za-z0-9_]*\)(.*/\1/')
		fi
		;;
	--domain) words="runtime driver" ;;
	--format)
		words="table json folded flame"
		[[ $cmd != folded ]] || words="folded flame"
		[[ $cmd != stuck ]] || words="table json"
		;;
	--weight) words="calls time bytes" ;;
	--time) words="ms us iso" ;;
	--color) words="auto always never" ;;
	--probe-kind) words="session multi tracefs perf" ;;
	-u | --user) words=$(compgen -u) ;;
	-E | --env) words=$(compgen -e) ;;
	--comm) words=$(cat /proc/[0-9]*/comm 2> /dev/null | sort -u) ;;
	-o | --output | --library)
		compopt -o filenames 2> /dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--cgroup)
		compopt -o filenames 2> /dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--min-duration | --min-size | --unfinished | --over | -d | --duration | -n | --count | --ring-size) return ;;
	*)
		if [[ $prev == --stack && $eq ]]; then
			mapfile -t COMPREPLY < <(compgen -W "dwarf fp" -- "$cur")
			return
		fi
		case $cmd in
		folded) opts="$folded" ;;
		stuck) opts="$stuck" ;;
		list) opts="-e --events --domain -v --verbose -V --version -h --help" ;;
		doctor) opts="-p --pid --probe-kind -v --verbose -V --version -h --help" ;;
		schema) opts="-v --verbose -V --version -h --help" ;;
		*) opts="$trace" ;;
		esac
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$opts --" -- "$cur")
		elif [[ $cmd == trace && $COMP_CWORD == 1 ]]; then
			mapfile -t COMPREPLY < <(compgen -W "folded stuck list doctor schema" -- "$cur")
		fi
		return
		;;
	esac

	# A list: its last word is completed, what stands before it is kept.
	head=
	case $prev in
	-p | --pid | -e | --events)
		head=${cur%"${cur##*[,!]}"}
		compopt -o nospace 2> /dev/null
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -P "$head" -- "${cur#"$head"}")
}
complete -F _cudatrace cudatrace
