/* SPDX-License-Identifier: BSD-2-Clause */
/* opts_help.c - --help: of each command a few words, then the rows of its options. Knows no setter. */
#include <stdio.h>
#include <string.h>

#include "opts_rows.h"

#define HELP_COLUMN 28

/* clang-format off */
static const struct {
	enum opts_cmd cmd;
	const char *usage, *after;
} texts[] = {
	{ OPTS_TRACE,
	  "Usage: cudatrace [OPTIONS]                      every process of this machine\n"
	  "       cudatrace [OPTIONS] -p PID[,PID...]      processes that run already\n"
	  "       cudatrace [OPTIONS] -- CMD [ARG...]      start a program and trace it from its first call\n"
	  "       cudatrace folded [OPTIONS] [-- CMD...]   the stacks of the calls, added up: for flame graphs\n"
	  "       cudatrace stuck [-p PID]                 the threads that are inside a CUDA call now, and where\n"
	  "       cudatrace record [OPTIONS] [-- CMD...]   store a trace instead of printing it\n"
	  "       cudatrace replay [OPTIONS] FILE          print a stored one: same options\n"
	  "       cudatrace export --to FORMAT FILE        a stored one as a file for another program\n"
	  "       cudatrace info FILE                      what a stored one holds\n"
	  "       cudatrace merge -o FILE A B...           stored ones of several hosts or ranks as one\n"
	  "       cudatrace stat [OPTIONS] [-- CMD...]     what the calls came to: counts, times, bytes\n"
	  "       cudatrace compare BASE NEW...            two runs, or series of them: what changed\n"
	  "       cudatrace check BASE NEW...              the same\n"
	  "       cudatrace mem [-p PID | -- CMD | FILE]   who holds device memory, the peak, and leaks\n"
	  "       cudatrace advise [OPTIONS] FILE          what the program could do better, and what it costs\n"
	  "       cudatrace counters [-i TIME]             what the GPUs do: a line each interval, like vmstat\n"
	  "       cudatrace top [-p PID]                   who calls what, live\n"
	  "       cudatrace serve [--listen ADDR:PORT]     the same for Prometheus, for good\n"
	  "       cudatrace list [GLOB...]                 the functions known: domain, class, arguments\n"
	  "       cudatrace doctor [-p PID]                what can be traced here, what cannot, and why\n"
	  "       cudatrace schema                         the JSON Schema of --format json\n"
	  "\nPrints the calls that programs make to CUDA's runtime and driver, with arguments, results and durations.\n",
	  "\nExamples:\n"
	  "  cudatrace -p 1234 -e memory,launch            what process 1234 allocates and launches\n"
	  "  cudatrace -p $(pidof python3) -d 10 -c        ten seconds of it, counted by function\n"
	  "  cudatrace --failed                            every failing call of the machine\n"
	  "  cudatrace -e '!query' -o trace.txt -- ./app   a program from its first call, without queries\n"
	  "  cudatrace -e 'cudaMemcpy*' --min-size 1MB     large copies\n"
	  "  cudatrace -k -e sync -p 1234                  where it waits, and who makes it wait\n"
	  "  cudatrace --format json -o '|jq .api' -- ./app  one JSON object a line, for a command\n"
	  "  cudatrace --format flame -o f.html -- ./app   a flame graph to open in a browser\n"
	  "\nWith CMD the rows go to standard error, as strace's do: standard output is CMD's. Formats for programs need -o FILE\n"
	  "then, or -o '|COMMAND'; -o - is standard output all the same. Without CMD standard output is used.\n"
	  "\nExit status: that of CMD (128 + signal if one ended it); without CMD 0; 1 after an error, 2 for a wrong command\n"
	  "line, 3 with --strict when records were lost. SIGINT goes to CMD, and tracing goes on until CMD ends; a second\n"
	  "SIGINT within a second detaches and leaves CMD running, as the end of -d and -n does. SIGTERM and SIGHUP are passed\n"
	  "on to CMD and end the trace when it ends, or after a second.\n" },
	{ OPTS_FOLDED,
	  "Usage: cudatrace folded [OPTIONS]                   every process of this machine\n"
	  "       cudatrace folded [OPTIONS] -p PID[,PID...]   processes that run already\n"
	  "       cudatrace folded [OPTIONS] -- CMD [ARG...]   start a program and trace it from its first call\n"
	  "\nAdds up the calls by the stacks they are made from, and prints at the end a line for each, outermost function first,\n"
	  "with its weight: what flame graph programs read. With --format flame the flame graph itself, as a page for a browser.\n",
	  "\nExamples:\n"
	  "  cudatrace folded -p 1234 -d 10 -o stacks.txt\n"
	  "  cudatrace folded -e sync --weight time --format flame -o waits.html -- ./app\n"
	  "  cudatrace folded -e memory --weight bytes -o '|flamegraph.pl > memory.svg' -- ./app\n"
	  "  cudatrace folded --gpu --weight gpu -o gpu.txt -- ./app    the time on the GPU, by who asked for it\n" },
	{ OPTS_RECORD,
	  "Usage: cudatrace record [OPTIONS]                  every process of this machine\n"
	  "       cudatrace record [OPTIONS] -p PID[,PID...]  processes that run already\n"
	  "       cudatrace record [OPTIONS] -- CMD [ARG...]  start a program and record it from its first call\n"
	  "\nStores a trace in a file, to be printed by 'cudatrace replay' as often and in as many forms as wanted. Whenever and\n"
	  "however it ends, what was written until a second before can be read.\n",
	  "\nExamples:\n"
	  "  cudatrace record -o app.ctrace -- ./app\n"
	  "  cudatrace record --start-on cudaProfilerStart --stop-on cudaProfilerStop -- python3 train.py\n"
	  "  cudatrace record --max-size 1GB --rotate 5 -p 1234\n"
	  "  cudatrace record --last 30s --dump-on failed   what led to the first failing call of the machine\n" },
	{ OPTS_REPLAY,
	  "Usage: cudatrace replay [OPTIONS] FILE\n"
	  "\nPrints a recording as the trace itself would have been printed with the same options. Stacks, calls inside calls and\n"
	  "entries are there when they were recorded: with -k, --nested, --enter-exit.\n",
	  "\nExamples:\n"
	  "  cudatrace replay app.ctrace\n"
	  "  cudatrace replay -e memory --from 10 --until 12.5 app.ctrace\n"
	  "  cudatrace replay -c app.ctrace\n" },
	{ OPTS_EXPORT,
	  "Usage: cudatrace export [OPTIONS] --to FORMAT FILE\n"
	  "\nWrites a recording as a file for another program: a table for data frames, a timeline page for a browser, stacks for\n"
	  "flame graph programs. All that the recording holds, also calls inside others and stacks, unless the options choose.\n",
	  "\nExamples:\n"
	  "  cudatrace export --to html app.ctrace             app.html, to be opened in a browser\n"
	  "  cudatrace export --to csv -o - app.ctrace | head\n"
	  "  cudatrace export --to speedscope --weight gpu --from 10 --until 12.5 app.ctrace\n"
	  "  cudatrace export --to folded --weight gpu --device 0 app.ctrace\n" },
	{ OPTS_INFO,
	  "Usage: cudatrace info FILE\n"
	  "\nSays what a recording holds: host, versions, clocks, processes, counts, losses, and what of it cannot be read.\n"
	  "Exit status: 0, also when its end was cut off; 3 when something in it is damaged; 1 when it cannot be read at all.\n",
	  "" },
	{ OPTS_MERGE,
	  "Usage: cudatrace merge -o FILE A B...\n"
	  "\nMakes one recording of several: of the ranks of a job, or of several hosts, whose times are brought to the clock of the\n"
	  "first by what each says of its own; how well that can be known is printed.\n",
	  "" },
	{ OPTS_STAT,
	  "Usage: cudatrace stat [OPTIONS]                   every process of this machine\n"
	  "       cudatrace stat [OPTIONS] -p PID[,PID...]   processes that run already\n"
	  "       cudatrace stat [OPTIONS] -- CMD [ARG...]   start a program and count from its first call\n"
	  "       cudatrace stat [OPTIONS] FILE              what a recording's calls came to\n"
	  "\nCounts calls in the kernel, where nothing crosses to cudatrace call by call, and prints at the end what they came to:\n"
	  "calls, failures, times, bytes by function; bytes by direction; launches; the time spent waiting.\n",
	  "\nExamples:\n"
	  "  cudatrace stat -p 1234 -d 10\n"
	  "  cudatrace stat --by process -d 5                who calls what, of the whole machine\n"
	  "  cudatrace stat --by kernel -e launch -- ./app\n"
	  "  cudatrace stat --hist -e sync -p 1234\n"
	  "  cudatrace stat --json -o base.json -- ./app     for programs, and to compare with later\n" },
	{ OPTS_TOP,
	  "Usage: cudatrace top [OPTIONS]\n"
	  "\nShows what the processes of this machine, or those chosen, ask of their GPUs, live: calls, launches and bytes a\n"
	  "second, the share of time in the API and in waits, failures. Calls are counted in the kernel, where nothing crosses to\n"
	  "cudatrace call by call. Enter: a process's functions, k: its kernels, t: its threads, ?: all keys, q: end.\n"
	  "Queries (cudaGetDevice and its like) are not counted, unless --queries or -e asks for them.\n",
	  "\nExamples:\n"
	  "  cudatrace top\n"
	  "  cudatrace top --counters -i 2\n"
	  "  cudatrace top --gpu -p 1234                   with the time on the GPU\n"
	  "  cudatrace top --batch -n 60 --format json -o top.jsonl\n" },
	{ OPTS_COMPARE,
	  "Usage: cudatrace compare [OPTIONS] BASE NEW...\n"
	  "       cudatrace check [OPTIONS] BASE NEW...     the same\n"
	  "\nSays what changed from BASE to NEW, files of 'cudatrace stat --save' or recordings, and whether that is more than noise\n"
	  "where the files hold several runs (--runs). Several NEW: each against BASE.\n",
	  "\nExamples:\n"
	  "  cudatrace stat --runs 10 --save base.json -- ./app\n"
	  "  cudatrace compare base.json new.json\n"
	  "  cudatrace check --fail-if 'total_api_time>+3%' --fail-if 'failed>0' --format junit -o report.xml base.json new.json\n"
	  "\nExit status: 0; 1 when a condition is true, a regression; 2 for a wrong command line, a file that cannot be read, or a\n"
	  "condition about a number that the files do not have.\n" },
	{ OPTS_MEM,
	  "Usage: cudatrace mem [OPTIONS]                   every process of this machine\n"
	  "       cudatrace mem [OPTIONS] -p PID[,PID...]   processes that run already\n"
	  "       cudatrace mem [OPTIONS] -- CMD [ARG...]   start a program and book from its first call\n"
	  "       cudatrace mem [OPTIONS] FILE              of a recording\n"
	  "\nKeeps a book of the memory that programs have from CUDA: what is held and what was held at most, by process, device,\n"
	  "kind and call site; what was never freed; frees that went wrong; who held what when memory ran out.\n",
	  "\nExamples:\n"
	  "  cudatrace mem -- ./app\n"
	  "  cudatrace mem --leak-check -- ./tests          status 4 if memory was leaked, 5 if that is not known\n"
	  "  cudatrace mem --watch=5 -p 1234                what grows\n"
	  "  cudatrace mem --by stack --top 50 app.ctrace\n" },
	{ OPTS_ADVISE,
	  "Usage: cudatrace advise [OPTIONS] FILE              of a recording\n"
	  "       cudatrace advise [OPTIONS] -p PID -d SEC     of processes that run already\n"
	  "       cudatrace advise [OPTIONS] -- CMD [ARG...]   start a program and look at all it does\n"
	  "\nPrints what a program could do better, by rules, with the evidence, the cost and what to do, the most costly first.\n"
	  "Recordings tell most when they were made with --gpu and -k.\n",
	  "\nExamples:\n"
	  "  cudatrace record --gpu -k -o app.ctrace -- ./app && cudatrace advise app.ctrace\n"
	  "  cudatrace advise --gpu -k -p 1234 -d 10\n"
	  "  cudatrace advise --fail --min-cost 10ms --format markdown app.ctrace   for CI\n"
	  "\nExit status: 0 whatever was found, or that of CMD; with --fail 1 when there is a warning or worse; 1 after an error,\n"
	  "2 for a wrong command line.\n" },
	{ OPTS_SERVE,
	  "Usage: cudatrace serve [OPTIONS]\n"
	  "\nCounts the calls of all processes of this machine, or of those chosen, in the kernel, and gives the sums to Prometheus:\n"
	  "GET /metrics, in the text format 0.0.4 or as OpenMetrics 1.0.0; GET /healthz and /readyz.\n"
	  "Queries (cudaGetDevice and its like) are not counted, unless --queries or -e asks for them.\n",
	  "\nExamples:\n"
	  "  cudatrace serve\n"
	  "  cudatrace serve --listen :19400 --counters --kernels 20\n" },
	{ OPTS_LIST,
	  "Usage: cudatrace list [OPTIONS] [GLOB...]\n"
	  "\nPrints the functions known: domain, class, name, arguments. Several GLOBs: what any of them matches.\n",
	  "\nExamples:\n"
	  "  cudatrace list 'cuMem*'\n"
	  "  cudatrace list -e launch --domain driver\n" },
	{ OPTS_DOCTOR,
	  "Usage: cudatrace doctor [OPTIONS]\n"
	  "\nSays what this kernel and these privileges allow, and, for a process, which CUDA libraries it has, which functions\n"
	  "can be traced, by what route, and what cannot be seen and why.\n",
	  "" },
	{ OPTS_STUCK,
	  "Usage: cudatrace stuck [OPTIONS]\n"
	  "\nPrints the threads that are inside a CUDA call for longer than a second, or --over: which call, since when, its\n"
	  "arguments and the stack that led to it. A call that began before cudatrace is told from the thread's own stack: FOR is\n"
	  "then the least that it can be, as >1.0s, and the arguments are not known. No thread is stopped for it.\n",
	  "\nExamples:\n"
	  "  cudatrace stuck                               of every process of this machine\n"
	  "  cudatrace stuck -p 1234 --over 10s\n"
	  "  cudatrace stuck -p 1234 --watch               until SIGINT: what hangs, and when it goes on\n"
	  "\nExit status: 4 when there are such threads (with --watch: at the last look), 5 when none is known but of some thread it\n"
	  "cannot be told, 0 when there are none, 1 after an error, 2 for a wrong command line.\n" },
	{ OPTS_COUNTERS,
	  "Usage: cudatrace counters [OPTIONS]\n"
	  "\nPrints what the GPUs of this machine do, whichever programs use them: a line for each GPU and interval. By CUPTI's PM\n"
	  "sampling (12.6 and newer) where that can be had, else by NVML's GPM, else by NVML's utilisation; it says which.\n",
	  "\nExamples:\n"
	  "  cudatrace counters                            ten lines a second, until SIGINT\n"
	  "  cudatrace counters -i 1 -d 60 --format csv -o load.csv\n"
	  "  cudatrace counters -i 1ms --metrics sm,dram,l2_hit\n"
	  "  cudatrace counters --metrics default,sm__inst_executed_realtime.sum.per_second\n"
	  "  cudatrace counters --metrics help --chip GH100\n"
	  "\nA value that cannot be true, as one over 100 %, has a ? behind it. Exit status: 0; 1 after an error, 2 for a wrong\n"
	  "command line.\n" },
	{ OPTS_SCHEMA,
	  "Usage: cudatrace schema\n"
	  "\nPrints the JSON Schema (draft 2020-12) of the lines of --format json.\n",
	  "" },
};
/* clang-format on */

static void help_row(struct out *out, const struct option_row *r)
{
	const char *line = r->help;
	char head[64];
	int n;

	n = snprintf(head, sizeof(head), "  %s%c%s--%s%s%s", r->letter ? "-" : " ",
		     r->letter ? r->letter : ' ', r->letter ? ", " : "  ", r->name,
		     r->arg && *r->arg != '[' ? " " : "", r->arg ? r->arg : "");
	out_str(out, head);
	if (n >= HELP_COLUMN) {
		out_char(out, '\n');
		n = 0;
	}
	for (; n < HELP_COLUMN; n++)
		out_char(out, ' ');
	while (*line) {
		size_t len = strcspn(line, "\n");

		out_mem(out, line, len);
		line += len;
		if (*line) {
			line++;
			out_fmt(out, "\n%*s", HELP_COLUMN, "");
		}
	}
	if (r->def)
		out_fmt(out, " [%s]", r->def);
	out_char(out, '\n');
}

void opts_help(struct out *out, enum opts_cmd cmd)
{
	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		if (texts[t].cmd != cmd)
			continue;
		out_str(out, texts[t].usage);
		if (!(cmd & TRACES))
			out_str(out, "\nOptions:\n");
		for (size_t i = 0; i < (size_t)opts_nrows; i++) {
			if (!(opts_rows[i].cmds & (int)cmd))
				continue;
			if (opts_rows[i].set)
				help_row(out, &opts_rows[i]);
			else if (cmd & TRACES)
				out_fmt(out, "\n%s:\n", opts_rows[i].name);
		}
		out_str(out, texts[t].after);
		if (!(cmd & TRACES) || cmd == OPTS_MEM)
			continue; /* no -e */
		out_str(out, "\nClasses:");
		for (int c = 0; c < API_CLASS_END; c++)
			out_fmt(out, " %s", api_class_name((enum api_class)c));
		out_char(out, '\n');
	}
}
