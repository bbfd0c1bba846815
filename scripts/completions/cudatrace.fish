# SPDX-License-Identifier: BSD-2-Clause
# Completion of cudatrace in fish: cudatrace itself says what may stand next.

function __cudatrace_complete
	set -l words (commandline -opc) (commandline -ct)
	for line in (command $words[1] --complete $words[2..-1] 2> /dev/null)
		switch $line
			case ':file' ':directory'
				__fish_complete_path (commandline -ct)
			case ':user'
				__fish_complete_users
			case ':pid'
				__fish_complete_pids
			case ':command*'
				__fish_complete_subcommand --fcs-skip=(math (string replace ':command ' '' -- $line) + 1)
			case '*'
				echo $line
		end
	end
end
complete -c cudatrace -f -a '(__cudatrace_complete)'
