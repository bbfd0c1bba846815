# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# commandline.sh - wrong command lines, of all commands: status 2, and one line that names what is wrong and says what to
# give. tests/unit/test_opts.c goes through every option of every command; here is what needs the whole program.

# Each line: words | what the message names | how it goes on (fixed text).
# Words are split at blanks; R is a recording that is there.
wrong_lines() {
	cat << 'END'
nonsense                                  | 'nonsense'      | write -- before it
stt                                       | 'stt'           | did you mean stat
-p 1 stat                                 | 'stat'          | a command, which comes first: cudatrace stat
-f check                                  | 'check'         | a command, which comes first: cudatrace check
--                                        | --              | write one
stat --                                   | --              | write one
--cou                                     | --cou           | can mean several options, --counters
record -o                                 | -o              | needs a value (FILE)
-j                                        | -j              | see 'cudatrace --help'
list --nonsense                           | --nonsense      | see 'cudatrace list --help'
schema word                               | 'word'          | see 'cudatrace schema --help'
doctor word                               | 'word'          | see 'cudatrace doctor --help'
counters word                             | 'word'          | see 'cudatrace counters --help'
serve word                                | 'word'          | see 'cudatrace serve --help'
serve -- true                             | 'true'          | see 'cudatrace serve --help'
top -- true                               | 'true'          | see 'cudatrace top --help'
list -e nonsense                          | 'nonsense'      | see 'cudatrace list'
list --domain gpu                         | --domain        | is not one of runtime, driver, nvtx, nccl, torch, cublas, allocator or cudnn
info                                      | recording       | name a file that 'cudatrace record' wrote
watch --comm python3 -p 1                 | --comm          | see 'cudatrace watch --help'
watch --no-return -p 1                    | --no-return     | see 'cudatrace watch --help'
watch --no-python -p 1                    | --no-python     | see 'cudatrace watch --help'
watch --complete-calls -p 1               | --complete-calls | see 'cudatrace watch --help'
why --no-python -p 1                      | --no-python     | see 'cudatrace why --help'
watch --source=hooks -p 1                 | --source        | leave out
watch --max-dumps 3 -p 1                  | --max-dumps     | give --dump
watch --last 3 -p 1                       | --last          | give --dump
watch --dump d --max-dumps 0 -p 1         | --max-dumps     | folders
watch --dump d --last x -p 1              | --last          | give seconds
watch --hang 0.1 -p 1                     | --hang          | 200
watch --hang 2h -p 1                      | --hang          | give seconds
watch --format csv -p 1                   | --format        | text or json
watch R                                   | 'R'             | write -- before it
info R R                                  | 'R'             | give one recording
replay                                    | recording       | name a file that 'cudatrace record' wrote
replay R R                                | 'R'             | give one recording
stat R R                                  | 'R'             | give one recording
stat R -d 1                               | '-d'            | write options before it
export R                                  | --to            | one of json
export --to table R                       | --to            | is not one of json
export --to csv                           | recording       | name a file that 'cudatrace record' wrote
merge                                     | recordings      | give two or more recordings, and -o FILE
merge R R                                 | -o              | give two or more recordings
merge -o x R                              | -o              | give two or more recordings
merge -o - R R                            | -o              | give a name
merge -o R R R                            | R               | give another name
export --to csv -o R R                    | R               | give another name
export --to nsys-sqlite -o - R            | -o              | give a name
replay --compact --format json R          | --compact       | is for the table: leave it out
replay -c --compact R                     | -c              | leave out --compact
replay -o R R                             | R               | give another name
stat --save R R                           | R               | give another name
mem --html R R                            | R               | give another name
mem --memory-viz R R                      | R               | give another name
mem --no-stack --memory-viz x R           | --memory-viz    | leave out --no-stack
record -o - -- true                       | -o              | give a name
record -o flame.svg ./app                 | flame.svg       | give 'cudatrace --format flame -o flame.html -- CMD', or -o flame.ctrace and then 'cudatrace export --to flame'
record -o d/x.pftrace ./app               | d/x.pftrace     | give 'cudatrace --format perfetto -o d/x.pftrace -- CMD', or -o d/x.ctrace
record -o trace.json ./app                | trace.json      | give 'cudatrace --format chrome -o trace.json -- CMD', or -o trace.ctrace
record -o x.html.gz ./app                 | x.html.gz       | give 'cudatrace --format html -o x.html.gz -- CMD'
record -o report.nsys-rep ./app           | report.nsys-rep | give 'cudatrace --format nsys-sqlite -o report.sqlite -- CMD'
merge -o x.csv R R                        | x.csv           | give -o x.ctrace and then 'cudatrace export --to csv'
-o trace.json ./app                       | trace.json      | give --format chrome -o trace.json
folded -o flame.svg ./app                 | flame.svg       | give --format flame -o flame.html
folded -o x.csv ./app                     | --format        | leave out 'folded'
export -o x.json R                        | x.json          | give --to chrome -o x.json
export -o x.png R                         | x.png           | give --to html -o x.html
export -o x R                             | --to            | one of json
-A -o x.html ./app                        | -A              | leave out -A
compare R                                 | BASE            | give two files or more
check R                                   | BASE            | give two files or more
compare --fail-if nonsense R R            | --fail-if       | 'nonsense'
check --level 2 R R                       | --level         | give one such as 0.05
compare -o R R R                          | R               | give another name
folded --format json -- true              | --format        | leave out 'folded'
stuck --merge                             | --merge       | needs files
stuck --merge -p 1 a.json                 | --merge       | leave the other options out
stuck --format csv                        | --format        | give --format table or json
-p x                                      | -p              | give numbers
-L x                                      | -L              | give a number
--start-on cudaMaloc -- true              | --start-on      | 'cudatrace list'
record --stop-on cudaMalloc:x -- true     | --stop-on       | give GLOB:N
advise --start-on cudaMalloc:0 -- true    | --start-on      | give GLOB:N
record --last 5s --dump-on cudaMaloc -- x | --dump-on       | see 'cudatrace list'
record --last 5s --dump-on , -- x         | --dump-on       | give failed
--otlp nonsense -- true                   | --otlp          | give http://
record --otlp https://x -- true           | --otlp          | by http
serve --otlp ftp://x                      | --otlp          | give http://
serve --listen nonsense                   | --listen        | as 127.0.0.1:19400
serve --listen 127.0.0.1:x                | --listen        | give ADDR:PORT
serve --listen ::1:19400                  | --listen        | in brackets
serve --listen=                           | --listen        | as 127.0.0.1:19400
counters --metrics ,                      | --metrics       | 'cudatrace counters --metrics help'
stat --counters= -- true                  | --counters      | 'cudatrace counters --metrics help'
--counters=help -- true                   | --counters      | give 'cudatrace counters --metrics help'
--gpu=, -- true                           | --gpu           | give kernel, memcpy
--gpu= -- true                            | --gpu           | or kinds as kernel,memcpy
--gpu=nonsense -- true                    | --gpu           | give kernel, memcpy
-k fp                                     | 'fp'            | write --stack=fp
folded --stack fp                         | 'fp'            | write --stack=fp
record --gpu kernel -- true               | 'kernel'        | write --gpu=kernel
-f --counters sm                          | 'sm'            | write --counters=sm
--failed=yes -- true                      | --failed        | leave out
top -i 10ms --batch                       | -i              | give 100ms or more
END
}

# Options that belong to another one, which is not given: refused, since they would do nothing.
alone_lines() {
	cat << 'END'
-f                                        | -f              | give one of them
stat --follow -d 1                        | -f              | give one of them
mem -f                                    | -f              | give one of them
serve -f                                  | -f              | give -p PID
top -f --batch                            | -f              | give -p PID
-f --cgroup /x                            | -f              | give one of them
-f -L 1                                   | -L              | leave out -f
--no-follow                               | --no-follow     | give a CMD
stat --no-follow -p 1                     | --no-follow     | give a CMD
-f --no-follow -- true                    | --no-follow     | give one of the two
--gpu --no-follow -- true                 | --no-follow     | leave it out
-u nobody                                 | -u              | give a CMD
stat -u nobody -p 1                       | -u              | give a CMD
-E A=1                                    | -E              | give a CMD
mem -E A=1 -p 1                           | -E              | give a CMD
stat --runs 3 -p 1                        | --runs          | give a CMD
-A -- true                                | -A              | give -o FILE
mem -A -- true                            | -A              | give -o FILE
--gpu                                     | --gpu           | give a CMD
record --gpu                              | --gpu           | give a CMD
folded --gpu                              | --gpu           | give a CMD
stat --gpu -d 1                           | --gpu           | give a CMD
advise --gpu -d 1                         | --gpu           | give a CMD
top --gpu --batch                         | --gpu           | give -p PID
--source cupti                            | --source        | give a CMD
--graph node -- true                      | --graph         | give --gpu
--graph graph --source cupti -- true      | --graph         | give --gpu
stat --graph graph -- true                | --graph         | give --gpu
top --graph graph -p 1                    | --graph         | give --gpu
--gpu-clock auto -- true                  | --gpu-clock     | give --gpu
advise --gpu-clock offset -- true         | --gpu-clock     | give --gpu
top --gpu-clock offset                    | --gpu-clock     | give --gpu
--gpu-buffer 1MiB -- true                 | --gpu-buffer    | give --gpu
folded --gpu-buffer 1MiB -- true          | --gpu-buffer    | give --gpu
record --gpu-buffer 1MiB -- true          | --gpu-buffer    | give --gpu
top --gpu-buffer 1MiB                     | --gpu-buffer    | give --gpu
--cupti /x -- true                        | --cupti         | give --gpu
stat --cupti /x -- true                   | --cupti         | give --gpu
top --cupti /x                            | --cupti         | give --gpu
serve --cupti /x                          | --cupti         | give --counters
-i 1s -- true                             | -i              | give --counters
record --interval 1s -- true              | -i              | give --counters
record --host                             | --host          | give -p PID
why                                       | waiting         | give -p PID, -- CMD, or a recording
why --fail-if gil -- true                 | --fail-if       | as any>5% or gpu-gaps>10%
why --fail-if gill>2% -- true             | --fail-if       | there is no finding 'gill'
advise --fail-if gpu-gap>2% R             | --fail-if       | there is no finding 'gpu-gap'
advise --fail-if any>200% R               | --fail-if       | as any>5% or gpu-gaps>10%
stat -i 1s -- true                        | -i              | give --counters
serve -i 1s                               | -i              | give --counters
serve --otlp-interval 10s                 | --otlp-interval | give --otlp URL
--otlp-min 1ms -- true                    | --otlp-min      | give --otlp URL
--otlp-wait 5 -- true                     | --otlp-wait     | give --otlp URL
replay --otlp-wait 5 R                    | --otlp-wait     | give --otlp URL
replay --otlp http://x --otlp-wait 5x R   | --otlp-wait     | give seconds
record --otlp-min 1ms -- true             | --otlp-min      | give --otlp URL
replay --otlp-min 1ms R                   | --otlp-min      | give --otlp URL
counters --chip GH100                     | --chip          | give --metrics help
counters --metrics sm --chip GH100        | --chip          | give --metrics help
counters --metrics help -i 1s             | -i              | leave out
counters --metrics help -d 1              | -d              | leave out
counters --metrics help -n 1              | -n              | leave out
counters --metrics help --format json     | --format        | leave out
--no-python -- true                       | --no-python     | give -k
record --no-python -- true                | --no-python     | give -k
advise --no-python -- true                | --no-python     | give -k
mem --no-stack --no-python -- true        | --no-python     | leave out
mem --no-stack -k -- true                 | --no-stack      | leave out
mem --no-stack --stack=fp -- true         | --no-stack      | leave out
--weight calls -- true                    | --weight        | give folded
replay --weight time R                    | --weight        | give folded
export --to csv --weight time R           | --weight        | give folded
folded --weight gpu -- true               | --weight gpu    | give --gpu
--format flame --weight gpu -- true       | --weight gpu    | give --gpu
record --rotate 3 -- true                 | --rotate        | give --max-size
record --dump-on end -- true              | --dump-on       | give --last
top -n 3                                  | -n              | give --batch
top --sort gpu                            | --sort          | give --gpu
top --batch --sort busy -p 1              | --sort          | give --gpu
--format perfetto -o x --mangled -- true  | --mangled       | give -k
replay --format perfetto -o x --mangled R | --mangled       | give -k
top -o x                                  | -o              | give --batch
top --format table                        | --format        | give --batch
--format nsys-sqlite -- true              | nsys-sqlite     | give -o FILE
--format json -- true                     | -o              | give -o FILE
folded -- true                            | -o              | give -o FILE
stat --json -- true                       | -o              | give -o FILE
mem --json -- true                        | -o              | give -o FILE
mem --format json -- true                 | -o              | give -o FILE
advise --format markdown -- true          | -o              | give -o FILE
END
	habit_lines
}

# What fingers type because strace, perf and nsys have it, and what does not fit here: the sentence names ours.
habit_lines() {
	cat << 'END'
-t 77                                     | -t              | give -L 77
-t77                                      | -t              | give -L 77
-ff ./app                                 | -ff             | give -o FILE
-c -o x.%p ./app                          | -c              | leave them out
--counters -o x.%p ./app                  | --counters      | leave out --counters
-r --gpu ./app                            | -r              | leave out -r
-c -s 9 ./app                             | -s              | leave it out
--format json -s 9 -o x ./app             | -s              | JSON has strings whole
-S calls ./app                            | -S              | give one of them
record -r ./app                           | -r              | 'cudatrace replay'
record -T ./app                           | -T              | leave out -T
record -y ./app                           | -y              | leave out -y
stat -s 9 ./app                           | -s              | 'cudatrace replay'
record -S calls ./app                     | -S              | 'cudatrace stat'
-z -Z ./app                               | -z              | give one of the two
-z --no-return ./app                      | --succeeded     | leave out --succeeded
-a ./app                                  | -a              | leave it out
-a -p 1                                   | -a              | leave it out
--trace=osrt ./app                        | 'osrt'          | give cuda, nvtx
--trace=, ./app                           | --trace         | give cuda, nvtx
stat --trace=cuda -- true                 | --trace         | --layers nvtx
--stats=maybe ./app                       | 'maybe'         | true or false
record --stats=true ./app                 | --stats         | 'cudatrace stat'
--capture-range=nvtx ./app                | --capture-range | --start-on nvtx:NAME
--capture-range=hotkey ./app              | 'hotkey'        | cudaProfilerApi or none
--capture-range=cudaProfilerApi --delay 1s ./app | --capture-range | leave out
-p no_such_name                           | 'no_such_name'  | --comm for processes of a name
-p 12abc                                  | '12abc'         | not a process id
replay -p app R                           | 'app'           | not a process id
-e status=detached ./app                  | status=detached | status=successful
-t cuda,nvtx ./app                        | --trace         | --layers nvtx
-e inject=cudaMalloc:error=2 ./app        | -e inject       | leave it out
-e fault=cudaMalloc ./app                 | -e fault        | leave it out
-e signal=none ./app                      | -e signal       | leave it out
-e raw=all ./app                          | -e raw          | give --format json
-e %memry ./app                           | 'memry'         | did you mean memory
--inject=cudaMalloc:error=2 ./app         | --inject        | leave it out
--status=detached ./app                   | --status=detached | give --status=failed
top --status=successful                   | --status=successful | leave it out
--attach=no_such_name                     | --attach        | --comm for processes of a name
--stack-trace=symbol ./app                | --stack-trace   | is not one of dwarf, fp
--summary --summary-only ./app            | -C              | give one of the two
--detach-on=execve ./app                  | --detach-on     | give --stop-on
-a 80 ./app                               | -a              | leave out -a 80
-a80 ./app                                | -a              | leave out -a 80
record -f true ./app                      | -f              | give --force-overwrite=true
record --force-overwrite=maybe ./app      | --force-overwrite | true or false
export --force-overwrite=false --to csv R | --force-overwrite | give -o another name
export --type hdf R                       | --type          | is not one of json
stat --report cuda_gpu_trace R            | --report        | 'cudatrace replay FILE'
stat --report osrt_sum R                  | --report        | leave it out
stat --report cuda_sum R                  | 'cuda_sum'      | leave out --report
stat --report nvtx_sum --by device R      | --report        | give one of the two
replay --report cuda_api_sum R            | --report        | 'cudatrace stat FILE'
-w -- true                                | -w              | leave out -w
-P /x -- true                             | -P              | --library PATH
record -g -- true                         | -g              | taken with -k
record --call-graph dwarf -- true         | --call-graph    | --stack=dwarf
replay --sort time R                      | -S              | give one of them
record --cuda-memory-usage=true ./app     | --cuda-memory-usage | 'cudatrace mem'
serve -e status=failed                    | status=failed   | leave it out
stat --top 3 --json -o x -- true           | --top           | leave it out
stat --sort size -- true                  | --sort          | is not one of time
-q -v -- true                             | -q              | give one of the two
profile ./app                             | 'profile'       | cudatrace record
report R                                  | 'report'        | cudatrace stat FILE
attach 1                                  | 'attach'        | cudatrace -p PID
dump --pid 1                              | 'dump'          | cudatrace stuck -p PID
script -c true                            | 'script'        | cudatrace replay FILE
start                                     | 'start'         | --start-on WHAT
sort                                      | 'sort'          | did you mean stat
record top                                | 'top'           | write -- before it
no_such_program x                         | 'no_such_program' | write -- before it
help nonsense                             | 'nonsense'      | write -- before it
help stt                                  | 'stt'           | did you mean stat
END
}

# What contradicts, or leaves nothing of what another option asks for.
against_lines() {
	cat << 'END'
-p 1 -- true                              | -p              | give one of the two
stat -p 1 -- true                         | -p              | give one of the two
-L 1 -- true                              | -L              | give one of the two
-c -C -- true                             | -C              | give one of the two
-c --format json -- true                  | -c              | leave out
-c --enter-exit -- true                   | -c              | leave out
-c -k -- true                             | -c              | leave out
-c --tid -- true                          | --tid           | leave out
-c --time us -- true                      | --time          | leave out
-c --mangled -- true                      | --mangled       | leave out
replay -c --full-names R                  | --full-names    | leave out
-c --color always -- true                 | --color         | leave out
-c --unfinished 1s -- true                | -c              | leave out
-c --counters -- true                     | --counters      | leave out
--format folded --counters -- true        | --counters      | leave out
--format otlp-json --counters -- true     | --counters      | leave out
--format json --tid -- true               | --tid           | leave it out
replay --format json --tid R              | --tid           | leave it out
--format json --time us -- true           | --time          | JSON has
--format csv --tid -- true                | --tid           | leave it out
--format flame -A -o x -- true            | -A              | leave out
--mangled --full-names -- true            | --mangled       | give one of the two
export --to csv --mangled --full-names R  | --mangled       | give one of the two
--stack-args -- true                      | --stack-args    | perfetto
export --to csv --stack-args R            | --stack-args    | perfetto
--format perfetto -o x --stack-args -- true | --stack-args  | give -k
--all-tables -- true                      | --all-tables    | nsys-sqlite
export --to csv --all-tables R            | --all-tables    | nsys-sqlite
--no-return --failed -- true              | --no-return     | leave out
--no-return --min-duration 1ms -- true    | --no-return     | leave out
--no-return -c -- true                    | --no-return     | leave out
--no-return --nested -- true              | --no-return     | leave out
--no-return --start-on cudaMalloc -- true | --no-return     | leave out
--no-return --start-on nvtx:step -- true  | --no-return     | leave out
--start-on nvtx: -- true                  | --start-on      | give nvtx:NAME
--stop-on nvtxRangePushA -- true          | --stop-on       | nvtx:NAME waits
folded --start-on nvtx:step -- true       | --start-on      | cudatrace record
advise --stop-on nvtx:step -- true        | --stop-on       | cudatrace record
--source cupti --stop-on nvtx:step -- true | --stop-on      | leave out --source=cupti
--source cupti --layers nvtx -- true      | --layers        | leave out --source=cupti
--no-return --otlp env -- true            | --no-return     | leave out
--no-return --probe-kind session -- true  | --probe-kind    | use multi
stat --no-return --hist -- true           | --hist          | leave out
stat --no-return --by device -- true      | --by device     | leave out
stat --failed --by device -- true         | --by device     | leave out
stat --min-duration 1s --by device -d 1   | --by device     | leave out
stat --source cupti --by cgroup -- true   | --by cgroup     | leave out
stat --hist --csv -- true                 | --hist          | leave it out
stat --json --csv -- true                 | --json          | give one of the two
stat --json --format table -- true        | --json          | give one of them
--enter-exit --failed -- true             | --enter-exit    | leave out
--gpu --failed -- true                    | --failed        | leave out --gpu
folded --failed --weight bytes -- true    | --failed        | leave out
export --to flame --failed --weight gpu R | --failed        | leave out
--source cupti -k -- true                 | -k              | leave out
--source cupti --format flame -- true     | --source        | leave out
--source cupti --library /x -- true       | --library       | leave them out
--source cupti --cgroup /x -- true        | --cgroup        | leave it out
--source cupti --keep-chatty -- true      | --keep-chatty   | leave out
top --queries -e memory -p 1              | -e              | leave out --queries
serve -e !query --queries               | -e              | leave out --queries
--source cupti --ring-size 1M -- true     | --ring-size     | leave it out
--source cupti --probe-kind multi -- true | --probe-kind    | leave it out
--source cupti -f -- true                 | -f              | leave out
--gpu --graph graph -p 1                  | --graph         | leave it out
top --gpu --graph graph -p 1              | --graph         | leave it out
top --batch --color always                | --color         | leave out
record --last 5s --rotate 3 --max-size 1M | --last          | give one of the two
--start-on signal --delay 1s -- true      | --delay         | give one of the two
serve --hist --comm x                     | --hist          | leave out
mem --json --by kind R                    | --json          | leave out
mem --json --top 5 R                      | --json          | leave out
mem --format json --by kind R             | --format json   | leave out
mem --format json --top 5 R               | --format json   | leave out
mem --json --format table R               | --json          | give one of them
info --format csv R                       | --format        | table or json
replay --from 2 --until 1 R               | --until         | give a later time
replay --from 2 --to 1 R                  | --to            | give a later time
export --from 2 --until 1 --to csv R      | --until         | give a later time
stat --from 1 --until 1 R                 | --until         | give a later time
stat --from 1 -- true                     | --from          | give the FILE
mem --until 1 -p 1                        | --until         | give the FILE
advise --to 1 -- true                     | --to            | give the FILE
stat -f R                                 | -f              | is a recording
stat --gpu R                              | --gpu           | is a recording, whose device work is always shown: leave --gpu out
stat --counters R                         | --counters      | is a recording
stat --source probes R                    | --source        | is a recording
stat --no-return R                        | --no-return     | is a recording
stat --runs 2 R                           | --runs          | is a recording
stat -d 1 R                               | -d              | is a recording
stat --cgroup /x R                        | --cgroup        | is a recording
mem --library /x R                        | --library       | is a recording
mem --driver R                            | --driver        | is a recording
mem --stack=fp R                          | --stack         | is a recording
mem --no-python R                         | --no-python     | is a recording
mem -u nobody R                           | -u              | is a recording
mem -E A=1 R                              | -E              | is a recording
mem --ring-size 1M R                      | --ring-size     | is a recording
advise -k R                               | -k              | is a recording
advise --gpu R                            | --gpu           | is a recording
advise --graph node R                     | --graph         | is a recording
advise --delay 1s R                       | --delay         | is a recording
advise --start-on signal R                | --start-on      | is a recording
advise --probe-kind multi R               | --probe-kind    | is a recording
END
}

# refused: each line of stdin, as above. By cudatrace itself: with-multi would add an option.
refused() {
	local words names text n=0
	cp "$ROOT/tests/traces/calls.ctrace" "$T/R"
	cd "$T" || exit 1
	while IFS='|' read -r words names text; do
		read -r names <<< "$names"
		read -r text <<< "$text"
		rc=0
		# shellcheck disable=SC2086
		timeout -k 1 100 "$ROOT/cudatrace" $words > out 2> err < /dev/null || rc=$?
		n=$((n + 1))
		if [ "$rc" = 2 ] && [ "$(grep -c '' err)" = 1 ] && [ ! -s out ] && grep -q '^cudatrace: error: ' err &&
			grep -qF -e "$names" err && grep -qF -e "$text" err; then
			continue
		fi
		echo "cudatrace $words: status $rc, not 2 and one line with '$names' and '$text': $(head -n 3 err)"
	done > wrong
	[ $n -gt 50 ] || fail "only $n lines"
	cmp -s R "$ROOT/tests/traces/calls.ctrace" || fail "a wrong command line has changed a file"
	[ -s wrong ] && fail "$(wc -l < wrong) lines: $(head -n 8 wrong)"
	return 0
}

case_wrong_command_lines() {
	refused < <(wrong_lines)
}

case_options_that_do_nothing() { # long
	refused < <(alone_lines)
}

case_options_against_each_other() { # long
	refused < <(against_lines)
}

# ---- which process ----

# not_a_process PID TEXT: every command that takes -p refuses it with this one sentence.
not_a_process() {
	local command
	for command in "" stat mem advise record folded why watch stuck doctor "top --batch" serve "--source=cupti" "stat --gpu"; do
		# shellcheck disable=SC2086
		(cd "$T" && ct $command -p "$1" && ok_rc 1 && expect "sentence of $command" "$(cat "$T/err")" "cudatrace: error: $2") || exit 1
	done
}

case_pid_kernel_thread() {
	[ "$(cat /proc/2/comm 2> /dev/null)" = kthreadd ] || skip "no kernel threads are visible here"
	not_a_process 2 "process 2 is a kernel thread, which calls no CUDA; see 'ps' for programs"
}

case_pid_zombie() {
	local parent zombie
	python3 -c '
import os, sys, time
pid = os.fork()
if not pid:
    os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(pid, flush=True)
time.sleep(60)' > "$T/zombie" &
	parent=$!
	wait_for 10 test -s "$T/zombie"
	zombie=$(cat "$T/zombie")
	not_a_process "$zombie" "process $zombie has ended, and is a zombie until its parent, process $parent, collects its status; see 'ps' for those that run"
}

case_pid_nobody() {
	not_a_process 4194303 "there is no process 4194303; see 'ps' for those that are"
}

# What fingers type because strace, perf and nsys have it, and what does the same here: each line is such a command line and ours.
same_lines() {
	cat << 'END'
./app                                     | -- ./app
-e trace=memory ./app                     | -e memory -- ./app
-e trace=!query -- ./app                  | -e !query -- ./app
-e status=failed ./app                    | --failed -- ./app
-e memory -e status=failed ./app          | -e memory --failed -- ./app
-Z ./app                                  | --failed -- ./app
-z ./app                                  | --succeeded -- ./app
-e status=successful ./app                | --succeeded -- ./app
-e trace=launch -e status=successful ./app | -e launch --succeeded -- ./app
-T ./app                                  | -- ./app
-y ./app                                  | -- ./app
-yy ./app                                 | -- ./app
-f ./app                                  | -- ./app
-q -n 2 ./app                             | -q -n 2 -- ./app
-cT ./app                                 | -c -- ./app
-c -S name ./app                          | -c --sort=name -- ./app
-S calls -C ./app                         | -C --sort calls -- ./app
stat -e cudaGetDevice -S calls ./app      | stat -e cudaGetDevice --sort calls -- ./app
-s 8 ./app                                | --string-size 8 -- ./app
-e trace=%memory ./app                    | -e memory -- ./app
-e %memory,!%query ./app                  | -e memory,!query -- ./app
--trace=%memory ./app                     | -e memory -- ./app
--status=failed ./app                     | --failed -- ./app
--failed-only ./app                       | --failed -- ./app
--successful-only ./app                   | --succeeded -- ./app
--stack-trace -e cudaSetDevice ./app      | -k -e cudaSetDevice -- ./app
--stack-traces -e cudaSetDevice ./app     | -k -e cudaSetDevice -- ./app
--summary ./app                           | -C -- ./app
--summary-only ./app                      | -c -- ./app
-c --summary-sort-by=name ./app           | -c --sort name -- ./app
--follow-forks ./app                      | -- ./app
--relative-timestamps -n 1 ./app          | --time delta -n 1 -- ./app
--absolute-timestamps -n 1 ./app          | --time day -n 1 -- ./app
--string-limit=8 ./app                    | --string-size 8 -- ./app
--attach=4194303                          | -p 4194303
--attach 4194303                          | -p 4194303
env ./app                                 | -- env ./app
-n 2 env ./app                            | -n 2 -- env ./app
stat -e cudaGetDevice env ./app           | stat -e cudaGetDevice -- env ./app
--layers all ./app                        | --layers nvtx,nccl,torch,cublas,allocator,cudnn -- ./app
record --force-overwrite true -o x ./app  | record -o x -- ./app
record --force-overwrite=true -o x ./app  | record -o x -- ./app
--trace=cuda ./app                        | -- ./app
--trace cuda,nvtx ./app                   | --layers nvtx -- ./app
--stats=true ./app                        | -C -- ./app
--stats=false ./app                       | -- ./app
--capture-range=none ./app                | -- ./app
--capture-range=cudaProfilerApi ./app     | --start-on cudaProfilerStart --stop-on cudaProfilerStop -- ./app
-t -n 1 ./app                             | --time day -n 1 -- ./app
-tt -n 1 ./app                            | --time day-us -n 1 -- ./app
-ttt -n 1 ./app                           | --time unix -n 1 -- ./app
-r -n 1 ./app                             | --time delta -n 1 -- ./app
-k -e cudaSetDevice ./app                 | -k -e cudaSetDevice -- ./app
folded -o - ./app                         | folded -o - -- ./app
replay                                    | replay cudatrace.ctrace
replay -e memory                          | replay -e memory cudatrace.ctrace
info                                      | info cudatrace.ctrace
export --to csv -o -                      | export --to csv -o - cudatrace.ctrace
export --type jsonlines -o -              | export --to json -o - cudatrace.ctrace
export --type sqlite -o x.sqlite          | export --to nsys-sqlite -o x.sqlite
export --to nsys -o x.sqlite              | export --to nsys-sqlite -o x.sqlite
export --to sqlite --force-overwrite true -o x.sqlite | export --to nsys-sqlite -o x.sqlite
stat --report cuda_api_sum cudatrace.ctrace | stat cudatrace.ctrace
stat --report cuda_gpu_kern_sum,cuda_gpu_mem_time_sum cudatrace.ctrace | stat cudatrace.ctrace
stat --report=nvtx_pushpop_sum cudatrace.ctrace | stat --by range cudatrace.ctrace
help                                      | --help
help stat                                 | stat --help
help check                                | compare --help
END
}

# What a command line prints, without what differs from run to run.
printed() {
	(cd "$T/here" && timeout 120 "$CUDATRACE" "$@" 2>&1 < /dev/null) |
		sed -E 's/^[0-9TZ:.-]+ +app/TIME app/; s/\b(pid |app +)[0-9]+/\1PID/; s/0x[0-9a-f]{6,}/ADDR/g; s/^ *[0-9.]+ +[0-9]+\.[0-9]{6} +[0-9]+ /TIMES /; s/ms=[0-9.]+/ms=N/; s/[0-9.]+ ?(ns|us|ms|s)\b/DUR/g; s/ +/ /g; s/^ [0-9.]+ DUR/ N DUR/; s/[0-9.]+ %/N %/; s/[0-9]+ hits/N hits/; s/[0-9]+ bytes in/N bytes in/'
}

# same FIRST LAST: these of the lines.
same() {
	local theirs ours line cached # many of ours are the same
	mkdir "$T/here"
	cp "$SAMPLE" "$T/here/app"
	export LD_LIBRARY_PATH=$STANDIN
	(cd "$T/here" && "$CUDATRACE" record -q ./app > /dev/null) || fail "record -q ./app failed"
	[ -s "$T/here/cudatrace.ctrace" ] || fail "record wrote nothing"
	set -f
	while read -r line; do
		theirs=${line%%|*} ours=${line##*|}
		# shellcheck disable=SC2086
		printed $theirs | sort > "$T/theirs"
		cached=$T/ours.${ours//[^a-z]/_}
		# shellcheck disable=SC2086
		[ -s "$cached" ] || printed $ours | sort > "$cached"
		[ -s "$cached" ] || fail "$ours printed nothing"
		expect "what $theirs prints" "$(cat "$T/theirs")" "$(cat "$cached")"
	done < <(same_lines | sed -n "$1,$2p")
}

case_habits_same() { # long
	same 1 18
}

case_habits_same_names() { # long
	same 19 36
}

case_habits_same_sums() { # long
	same 37 48
}

case_habits_same_shown() { # long
	same 49 '$'
}

# A word is a program only where it is nothing else: a file of its name is a recording, and comes first.
case_habits_program() {
	cp "$ROOT/tests/traces/calls.ctrace" "$T/env"
	(cd "$T" && ct stat env && ok_rc && grep -q '^Runtime API calls' out) || fail "a recording named env: $(cat "$T/out" "$T/err")"
	(cd "$T" && PATH=$T:$PATH ct stat -q env && ok_rc && grep -q '^Runtime API calls' out) || fail "a recording in PATH: $(cat "$T/out" "$T/err")"
	printf '#!/bin/sh\nexit 7\n' > "$T/ct_own_program"
	chmod 755 "$T/ct_own_program"
	PATH=$T:$PATH ct ct_own_program x
	ok_rc 7
	chmod 644 "$T/ct_own_program"
	PATH=$T:$PATH ct ct_own_program x
	ok_rc 2
	says "there is no command 'ct_own_program'"
	mkdir "$T/ct_own_folder"
	PATH=$T:$PATH ct ct_own_folder x
	ok_rc 2
}

# strace -ff -o FILE: each process has a file, which has its rows alone; and so has a recording of them.
case_habits_ff() {
	local pid file name
	cat > "$T/both" << END
"$CALLS" mix 2 3 0 && "$CALLS" mix 5 7 0
END
	ct -ff -o "$T/x" -- sh "$T/both"
	ok_rc
	expect "files of -ff" "$(find "$T" -name 'x.*' | wc -l)" 2
	[ ! -e "$T/x" ] || fail "-ff writes to FILE itself"
	for file in "$T"/x.*; do
		pid=${file##*.}
		expect "rows of others in $file" "$(sed 1d "$file" | awk -v pid="$pid" '$3 != pid' | wc -l)" 0
	done
	expect "copies" "$(grep -h -c 'cudaMemcpy .*returned=' "$T"/x.* | sort -n | paste -sd' ')" "3 7"
	ct record -o "$T/r.ctrace" -- sh "$T/both"
	ok_rc
	for name in jsonl.gz csv; do
		ct replay --format "${name%l.gz}" -o "$T/y.%p.$name" "$T/r.ctrace"
		ok_rc
	done
	expect "copies in JSON" "$(for file in "$T"/y.*.gz; do gzip -dc "$file" | grep -c '"name":"cudaMemcpy"'; done | sort -n | paste -sd' ')" "3 7"
	expect "copies in csv" "$(grep -h -c cudaMemcpy "$T"/y.*.csv | sort -n | paste -sd' ')" "3 7"
	ct -o "$T/nosuch/%p" -- "$CALLS" queries 1
	ok_rc 1
	says "cannot write to $T/nosuch/[0-9]+: No such file"
}

# -p NAME: the processes that have the name now.
case_habits_p_name() {
	export LD_LIBRARY_PATH=$STANDIN
	cp "$CALLS" "$T/ct_named_prog"
	PROG=$T/ct_named_prog target one mix 2 1 0
	PROG=$T/ct_named_prog target two mix 3 1 0
	attach -p ct_named_prog
	go one
	go two
	finish INT
	ok_rc
	expect_rows cudaMalloc 7 # one of the two first calls is the program's own
}

# -q leaves the rows and the program's own words, and -h fits a terminal of 24 lines.
case_habits_brief() {
	local command
	ct -q -o "$T/rows" -- "$CALLS" queries 1
	ok_rc
	expect "messages" "$(cat "$T/err")" ""
	"$CUDATRACE" -h > "$T/h"
	[ "$(wc -l < "$T/h")" -le 23 ] || fail "-h has $(wc -l < "$T/h") lines"
	# shellcheck disable=SC2013 # words
	for command in $("$CUDATRACE" --help | sed -nE 's/^       cudatrace ([a-z]+) .*/\1/p' | grep -v check); do
		"$CUDATRACE" "$command" -h > "$T/hc"
		[ "$(wc -l < "$T/hc")" -le 23 ] || fail "$command -h has $(wc -l < "$T/hc") lines"
		grep -q -- "All options: cudatrace $command --help" "$T/hc" || fail "$command -h: no last line"
		grep -q "^  cudatrace $command  *[a-z]" "$T/h" || fail "-h does not have $command"
		cat "$T/hc" >> "$T/all"
	done
	expect "lines wider than a terminal" "$(cat "$T/h" "$T/all" | grep -E '.{81}')" ""
	expect "commands" "$(grep -c 'All options' "$T/all")" 19
}

# The id of a thread: -L where there is one.
case_pid_of_a_thread() {
	local tid pid command
	python3 -c '
import threading, time
t = threading.Thread(target=time.sleep, args=(60,))
t.start()
print(t.native_id, flush=True)' > "$T/tid" &
	pid=$!
	wait_for 10 test -s "$T/tid"
	tid=$(cat "$T/tid")
	for command in "" record folded advise; do
		# shellcheck disable=SC2086
		ct $command -p "$tid"
		ok_rc 1
		expect "sentence of $command" "$(cat "$T/err")" "cudatrace: error: $tid is a thread of process $pid: give -p $pid -L $tid"
	done
	for command in stat mem stuck doctor serve "top --batch"; do
		# shellcheck disable=SC2086
		ct $command -p "$tid"
		ok_rc 1
		expect "sentence of $command" "$(cat "$T/err")" "cudatrace: error: $tid is a thread of process $pid: give -p $pid"
	done
}

# Process 1 runs: what is said of it may not be that it has ended.
case_pid_one() {
	local command words
	for command in "" stat stuck; do
		words=(-v -p 1)
		[ "$command" = stuck ] || words+=(-d 0.2)
		# shellcheck disable=SC2086
		ct $command "${words[@]}"
		! grep -q 'has ended\|there is no process' "$T/err" || fail "$(cat "$T/err")"
		[ "$rc" = 0 ] || says 'process 1 cannot be traced: .*; trace another one'
		[ "$rc" = 0 ] || expect "sentences of $command" "$(grep -c error: "$T/err")" 1
	done
}

# Of another user, without any privilege.
case_pid_of_another() {
	local command
	command -v setpriv > /dev/null || skip "no setpriv"
	cp "$ROOT/cudatrace" "$T/cudatrace" && chmod 755 "$T/cudatrace"
	sleep 60 &
	for command in "" stat stuck "top --batch" serve doctor "--source=cupti"; do
		rc=0
		# shellcheck disable=SC2086
		setpriv --reuid 65534 --clear-groups --bounding-set=-all --inh-caps=-all timeout 100 "$T/cudatrace" $command -p $! \
			> "$T/out" 2> "$T/err" || rc=$?
		ok_rc 1
		expect "sentences of $command" "$(grep -c '' "$T/err")" 1
		case $command in
		doctor | --source*) says "error: process $! belongs to another user: run cudatrace as that user or as root" ;;
		*) says 'error: tracing needs CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, which this user does not have; type: sudo ' ;;
		esac
		! grep -q 'has not loaded' "$T/out" || fail "what nobody may look at is told: $(cat "$T/out")"
	done
}

# ---- what options do ----

# Of a recording without entries each call has its one row; of one with them two, where they are asked for.
case_replay_enter_exit() {
	ct record -o "$T/one.ctrace" -- "$CALLS" queries 3
	ok_rc
	ct record --enter-exit -o "$T/two.ctrace" -- "$CALLS" queries 3
	ok_rc
	ct replay --enter-exit "$T/one.ctrace"
	expect "rows without entries" "$(grep -c 'cudaStreamQuery *stream=.*returned=' "$T/out")" 3
	ct replay --enter-exit "$T/two.ctrace"
	expect "entries" "$(grep -c 'cudaStreamQuery *stream=[^,]*$' "$T/out")" 3
	expect "returns" "$(grep -c 'cudaStreamQuery *returned=' "$T/out")" 3
	ct replay "$T/two.ctrace"
	expect "rows" "$(grep -c cudaStreamQuery "$T/out")" 3
	expect "whole rows" "$(grep -c 'cudaStreamQuery *stream=.*returned=' "$T/out")" 3
	ct replay --format json -n 3 "$T/two.ctrace"
	expect "objects" "$(grep -c '"type":"call"' "$T/out")" 3
}

# The stacks of folded are weighed by the GPU's time, which needs what the GPU did.
case_folded_gpu() {
	ct folded --gpu --weight gpu -o "$T/folded" -- "$BIN/work" 5 return
	ok_rc
	grep -q ';cudaLaunchKernel;\[GPU\] vec_mul(float\*, int) [1-9][0-9]*$' "$T/folded" || fail "$(tail -n 2 "$T/folded")"
}

# In one file only: the calls of the other are not looked for.
case_stuck_library() { # long
	hang
	ct stuck -p "$PID_h" --library "$STANDIN/libcuda.so.1" --format json -o "$T/json.gz"
	ok_rc 4
	zcat "$T/json.gz" > "$T/rows" || fail "what ends in .gz is not compressed"
	grep -q "^$TID_driver cuEventRecord$" <(stuck_rows "$T/rows") || fail "$(cat "$T/rows")"
	! stuck_rows "$T/rows" | grep ' cuda' || fail "functions of another file: $(stuck_rows "$T/rows")"
	unhang
}

case_counters_gzip() {
	LD_LIBRARY_PATH=$STANDIN/gpu ct counters --cupti "$STANDIN/gpu" -n 2 --format csv -o "$T/load.csv.gz"
	ok_rc
	expect "lines" "$(zcat "$T/load.csv.gz" | wc -l)" 3
	LD_LIBRARY_PATH=$STANDIN/gpu ct counters --cupti "$STANDIN/gpu" --metrics help -o "$T/help.gz"
	ok_rc
	zcat "$T/help.gz" | grep -q '^dram_read ' || fail "the list is not there"
}

# What it says of the list is what the list has.
case_list_nothing() {
	local words
	for words in "" "-e memory" "--domain driver" "-e all"; do
		# shellcheck disable=SC2086
		ct list $words
		expect "list $words" "$rc" 0
		cp "$T/out" "$T/all"
		# shellcheck disable=SC2086
		ct list $words nope
		ok_rc 1
		expect "sentence" "$(cat "$T/err")" "cudatrace: error: no function matches; without a GLOB 'cudatrace list' prints all $(wc -l < "$T/all")"
	done
}

# What info prints for people, as one object: the numbers are those of the text.
case_info_json() {
	local trace
	for trace in calls two kinds killed muted newer other; do
		ct info --format json "$ROOT/tests/traces/$trace.ctrace"
		ok_rc
		cp "$T/out" "$T/json"
		ct info "$ROOT/tests/traces/$trace.ctrace"
		ok_rc
		python3 - "$T/json" "$T/out" "$trace" << 'END' || fail "$trace: $(cat "$T/json")"
import json, re, sys
j = json.load(open(sys.argv[1]))
text = open(sys.argv[2]).read()
number = lambda word: int((re.search(r'^%s +(\d+)' % word, text, re.M) or [0, 0])[1])
assert j['version'] == 1 and j['file'].endswith(sys.argv[3] + '.ctrace')
assert re.search(r'^host +%s$' % j['host'], text, re.M), 'host'
assert j['calls'] == number('calls') and j['process_count'] == number('processes')
assert sum(p['calls'] for p in j['processes']) == j['calls']
for word in 'kernels copies sets waits graphs memory managed overheads ranges samples events stacks names'.split():
    assert j[word] == number(word), word
assert j['file_bytes'] == number('file')
assert j['ended'] == (sys.argv[3] != 'killed') and ('whoever wrote this was killed' in text) != j['ended']
assert len(j['gpus']) == len(re.findall(r'GPU-[0-9a-f]{32}', text))
assert bool(j['calls_without_records'] or j['functions_without_records']) == bool(re.search('^muted', text, re.M))
assert ' '.join(j['options']) in text and bool(j['unknown_functions']) == ('not known' in text)
END
	done
	ct info --format json /dev/null
	ok_rc 1
	expect "output of what is no recording" "$(cat "$T/out")" ""
}

# What the name of -o says is what is written.
case_output_names() {
	local name
	cp "$ROOT/tests/traces/calls.ctrace" "$T/R"
	for name in a.html b.csv c.pftrace d.jsonl.gz e.flame.html f.sqlite; do
		ct export -o "$T/$name" "$T/R"
		ok_rc
		says "^cudatrace: written: .*$name"
	done
	for name in html b:csv flame:flame nsys-sqlite perfetto; do
		ct export --to "${name#*:}" -o "$T/want" "$T/R"
		ok_rc
		case $name in
		html) cmp "$T/want" "$T/a.html" ;;
		b:csv) cmp "$T/want" "$T/b.csv" ;;
		flame:*) cmp "$T/want" "$T/e.flame.html" ;;
		perfetto) cmp "$T/want" "$T/c.pftrace" ;;
		*) [ "$(head -c 15 "$T/f.sqlite")" = "SQLite format 3" ] ;;
		esac || fail "$name is not what its name says"
	done
	zcat "$T/d.jsonl.gz" | head -n 1 | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "d.jsonl.gz is not JSON"
	ct -o "$T/live.csv" -- "$CALLS" queries 1
	ok_rc
	grep -q '^type,' "$T/live.csv" || fail "live.csv: $(head -n 1 "$T/live.csv")"
	ct stat -o "$T/sums.json" "$T/R"
	ok_rc
	python3 -m json.tool "$T/sums.json" > /dev/null || fail "sums.json is not JSON"
}

# A recording that another program hands over, and a file as standard input.
case_from_standard_input() {
	local command want
	cp "$ROOT/tests/traces/calls.ctrace" "$T/r.ctrace"
	for command in "replay --format json" "stat --json" "info" "mem --json --no-stack" "advise" "export --to csv -o -"; do
		# shellcheck disable=SC2086
		want=$("$CUDATRACE" $command "$T/r.ctrace" 2> /dev/null | sed 's/r\.ctrace/standard input/') || fail "$command FILE"
		# shellcheck disable=SC2002,SC2086
		expect "$command - of a pipe" "$(cat "$T/r.ctrace" | "$CUDATRACE" $command - 2> /dev/null)" "$want"
		# shellcheck disable=SC2002,SC2086
		expect "$command - without a disk" "$(cat "$T/r.ctrace" | TMPDIR=/nonexistent "$CUDATRACE" $command - 2> /dev/null)" "$want"
		# shellcheck disable=SC2086
		expect "$command - of a file" "$("$CUDATRACE" $command - < "$T/r.ctrace" 2> /dev/null)" "$want"
	done
	rc=0
	# shellcheck disable=SC2094
	"$CUDATRACE" replay -o "$T/r.ctrace" - < "$T/r.ctrace" 2> "$T/err" || rc=$?
	ok_rc 2
	says 'would be both read and written'
	cmp "$T/r.ctrace" "$ROOT/tests/traces/calls.ctrace" || fail "the recording was written to"
	rc=0
	"$CUDATRACE" export --to csv - < "$T/r.ctrace" 2> "$T/err" || rc=$?
	ok_rc 2
	says 'standard input has no name .*: give -o FILE'
	rc=0
	head -c 20 "$T/r.ctrace" | "$CUDATRACE" replay - 2> "$T/err" || rc=$?
	ok_rc 1
	says '^cudatrace: error: cannot read standard input: '
	rc=0
	timeout 100 script -qec "$CUDATRACE replay -" /dev/null > "$T/err" < /dev/null || rc=$?
	ok_rc 1
	says 'standard input is a terminal and no recording: name a FILE'
}

# ---- until ----

# One name for the end of a stretch, whatever reads the recording.
case_until() {
	local command want
	cp "$ROOT/tests/traces/calls.ctrace" "$T/r.ctrace"
	for command in "replay --format json" "stat --json" "mem --json --no-stack" "advise --format json"; do
		# shellcheck disable=SC2086
		ct $command --to 300us "$T/r.ctrace"
		ok_rc
		want=$(cat "$T/out")
		# shellcheck disable=SC2086
		ct $command --until 300us "$T/r.ctrace"
		ok_rc
		expect "$command --until" "$(cat "$T/out")" "$want"
		# shellcheck disable=SC2086
		ct $command "$T/r.ctrace"
		[ "$(cat "$T/out")" != "$want" ] || [ "${command%% *}" = advise ] || fail "$command: --until changes nothing"
	done
	ct replay --format csv --nested -k --until 300us -o "$T/a.csv" "$T/r.ctrace"
	ct export --to csv --until 300us -o "$T/b.csv" "$T/r.ctrace"
	ok_rc
	cmp "$T/a.csv" "$T/b.csv" || fail "export ends elsewhere"
}

# Without a word it says what it does, and what ends it; and so it ends.
case_bare_command_everywhere() { # machine
	[[ $CUDATRACE != */with-multi ]] || skip "with-multi gives it an option"
	# shellcheck disable=SC2317 # called by wait_for
	catches_int() {
		local caught
		caught=$(sed -n 's/^SigCgt:[^0-9a-f]*//p' "/proc/$CT/status")
		((16#${caught:-0} >> 1 & 1))
	}
	"${BACKGROUND[@]}" "$CUDATRACE" > "$T/out" 2> "$T/err" < /dev/null &
	CT=$!
	wait_for 10 grep -q '^cudatrace: ' "$T/err"
	expect "its first sentence" "$(head -n 1 "$T/err")" \
		"cudatrace: tracing every process of this machine until Ctrl-C; 'cudatrace -h' lists what else it does"
	expect "standard output has no sentence" "$(grep -c '^cudatrace' "$T/out")" 0
	wait_for 10 catches_int
	finish INT
	ok_rc
	says '^cudatrace: [0-9]+ calls?, '
	# what chooses something is no bare command
	ct -d 0.01 -p $$
	ok_rc
	! grep -q 'every process' "$T/err" || fail "it says of one process that it traces every one"
}
