# SPDX-License-Identifier: BSD-2-Clause
# Completion of cudatrace in fish.

set -l commands folded stuck list doctor schema
set -l rows "not __fish_seen_subcommand_from $commands"
set -l folded "__fish_seen_subcommand_from folded"
set -l trace "$rows; or $folded"
set -l stuck "__fish_seen_subcommand_from stuck"
set -l classes memory copy set launch stream event sync graph device context module query peer texture profiler internal default all
complete -c cudatrace -n "$trace" -f
complete -c cudatrace -n "__fish_seen_subcommand_from $commands" -f
complete -c cudatrace -n __fish_use_subcommand -a folded -d 'Stacks added up, for flame graphs'
complete -c cudatrace -n __fish_use_subcommand -a stuck -d 'Threads that hang in a call'
complete -c cudatrace -n __fish_use_subcommand -a list -d 'The functions known'
complete -c cudatrace -n __fish_use_subcommand -a doctor -d 'What can be traced here'
complete -c cudatrace -n __fish_use_subcommand -a schema -d 'The JSON Schema'
complete -c cudatrace -n 'contains -- -- (commandline -opc)' -xa '(__fish_complete_subcommand)' -d Program

complete -c cudatrace -s v -l verbose -d 'Say more'
complete -c cudatrace -s V -l version -d 'Print the version'
complete -c cudatrace -s h -l help -d 'Print the options'

set -l pids "$trace; or __fish_seen_subcommand_from doctor stuck"
set -l shows "$trace; or $stuck"
complete -c cudatrace -n "$stuck" -l over -x -d 'Inside a call for so long'
complete -c cudatrace -n "$stuck" -l watch -d 'Look again every second'
complete -c cudatrace -n "$stuck" -l format -xa 'table json' -d 'Of the output'
set -l names "$trace; or __fish_seen_subcommand_from list"
complete -c cudatrace -n "$pids" -s p -l pid -xa '(__fish_complete_pids)' -d 'Processes that run already'
complete -c cudatrace -n "$pids" -l probe-kind -xa 'session multi tracefs perf' -d 'How to probe'
complete -c cudatrace -n "$names" -s e -l events -xa "(__fish_append , $classes)" -d 'Classes, names and globs'
complete -c cudatrace -n "$names" -l domain -xa 'runtime driver' -d 'One API only'

complete -c cudatrace -n "$trace" -s f -l follow -d 'The children too'
complete -c cudatrace -n "$trace" -s t -l thread -x -d 'One thread only'
complete -c cudatrace -n "$trace" -l cgroup -xa '(__fish_complete_directories)' -d 'Processes of this cgroup'
complete -c cudatrace -n "$trace" -l comm -x -d 'Processes of this name'
complete -c cudatrace -n "$shows" -l library -rF -d 'Functions of this file only'
complete -c cudatrace -n "$trace" -s u -l user -xa '(__fish_complete_users)' -d 'Run the command as this user'
complete -c cudatrace -n "$trace" -s E -l env -x -d 'Set or remove a variable'
complete -c cudatrace -n "$trace" -l failed -d 'Calls that returned an error'
complete -c cudatrace -n "$rows" -l unfinished -x -d 'Show a call that has not returned for so long'
complete -c cudatrace -n "$trace" -l min-duration -x -d 'Calls that took at least this long'
complete -c cudatrace -n "$trace" -l min-size -x -d 'Calls that move at least this much'
complete -c cudatrace -n "$rows" -l nested -d 'Driver calls inside runtime calls too'
complete -c cudatrace -n "$rows" -l enter-exit -d 'Two rows a call'
complete -c cudatrace -n "$trace" -l keep-chatty -d 'Never mute a query'
complete -c cudatrace -n "$shows" -s o -l output -rF -d 'Write to a file'
complete -c cudatrace -n "$trace" -s A -l append -d 'Add to the file'
complete -c cudatrace -n "$trace" -s k -d 'The user stack under each row'
complete -c cudatrace -n "$trace" -l stack -fa 'dwarf fp' -d 'The user stack under each row'
complete -c cudatrace -n "$shows" -l no-python -d 'Stacks of native frames only'
complete -c cudatrace -n "$shows" -l mangled -d 'Names as the compiler made them'
complete -c cudatrace -n "$shows" -l full-names -d 'All template arguments and parameters'
complete -c cudatrace -n "$rows" -l format -xa 'table json folded flame' -d 'Of the output'
complete -c cudatrace -n "$folded" -l format -xa 'folded flame' -d 'Of the output'
complete -c cudatrace -n "$trace" -l weight -xa 'calls time bytes' -d 'What a stack weighs'
complete -c cudatrace -n "$rows" -l time -xa 'ms us iso' -d 'Unit of the first column'
complete -c cudatrace -n "$rows" -l tid -d 'A column with the thread'
complete -c cudatrace -n "$rows" -s c -l count-only -d 'Counts at the end, no rows'
complete -c cudatrace -n "$rows" -s C -l counts -d 'Counts after the rows'
complete -c cudatrace -n "$rows" -l color -xa 'auto always never' -d 'Colours'
complete -c cudatrace -n "$trace" -s d -l duration -x -d 'Stop after so long'
complete -c cudatrace -n "$trace" -s n -l count -x -d 'Stop after so many rows'
complete -c cudatrace -n "$trace" -l no-return -d 'Probe entries only'
complete -c cudatrace -n "$shows" -l ring-size -x -d 'Of the buffer'
complete -c cudatrace -n "$trace" -l strict -d 'Status 3 if anything was lost'
