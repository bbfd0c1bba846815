/* SPDX-License-Identifier: BSD-2-Clause */
/* test_opts.c - the command line: values, exact error texts, and what -e selects. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/advise/advise.h"
#include "../../user/cli/options/habits.h"
#include "../../user/cli/options/opts_rows.h"
#include "../../user/export/nsys/nsys.h"
#include "../../user/export/perfetto/perfetto.h"
#include "../../user/mem/ledger.h"
#include "../../user/mem/mem_options.h"
#include "../../user/util/msg.h"
#include "../../user/util/parse.h"
#include "unit.h"

#define MAX_WORDS 24

/* Options of an output's own. */
#define OWN(type, sink) ((const struct type *)request_own(&o.ask, (sink).options))
#define MEM OWN(mem_options, sink_mem)
#define ADVISE OWN(advise_options, sink_advise)
#define PERFETTO OWN(perfetto_options, sink_perfetto)
#define NSYS OWN(nsys_options, sink_nsys)

static struct opts o;
static char said[4096]; /* what went to stderr */

/* Parses a command line of words separated by spaces ("+" in a word stands for a space). */
static int parse(enum opts_cmd cmd, const char *line)
{
	static char text[512], *argv[MAX_WORDS]; /* struct opts points into them */
	char path[] = "/tmp/ct_test_opts.XXXXXX", *got;
	int argc = 1, saved = dup(STDERR_FILENO), fd = mkstemp(path), err;

	memset(argv, 0, sizeof(argv));
	argv[0] = (char *)"cudatrace";
	snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok(text, " "); w && argc < MAX_WORDS - 1; w = strtok(NULL, " ")) {
		for (char *p = w; *p; p++)
			*p = *p == '+' ? ' ' : *p;
		argv[argc++] = w;
	}
	opts_free(&o);
	dup2(fd, STDERR_FILENO);
	err = opts_parse(&o, cmd, argc, argv);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	got = unit_read(path);
	snprintf(said, sizeof(said), "%s", got ? got : "");
	free(got);
	unlink(path);
	return err;
}

static int good(const char *line)
{
	int err = parse(OPTS_TRACE, line);

	if (err)
		printf("  '%s': %s", line, said);
	return !err;
}

static void bad(const char *line, const char *want)
{
	char text[512];

	CHECK(parse(OPTS_TRACE, line) != 0);
	snprintf(text, sizeof(text), "cudatrace: error: %s\n", want);
	if (strcmp(text, said))
		printf("  of '%s':\n", line);
	CHECK_TEXT(text, said);
}

/* ---- -e ---- */

static bool shows(const char *name)
{
	int func = api_next(name, -1);

	return func >= 0 && o.ask.select.shown[func / 64] >> (func % 64) & 1;
}

static bool named(const char *name)
{
	int func = api_next(name, -1);

	return func >= 0 && o.ask.select.named[func / 64] >> (func % 64) & 1;
}

static void test_select(void)
{
	CHECK(good(""));
	CHECK(shows("cudaMalloc") && shows("cuMemAlloc_v2") && shows("cudaGetDevice") &&
	      !shows("__cudaLaunchKernel"));
	CHECK(!named("cudaMalloc"));
	CHECK(good("-e all"));
	CHECK(shows("cudaMalloc") && shows("__cudaLaunchKernel"));
	CHECK(good("-e memory"));
	CHECK(shows("cudaMalloc") && shows("cuMemAlloc_v2") && !shows("cudaMemcpy") &&
	      !named("cudaMalloc"));
	CHECK(good("-e MEMORY,launch"));
	CHECK(shows("cudaMalloc") && shows("cudaLaunchKernel") && !shows("cudaMemcpy"));
	CHECK(good("-e memory -e launch"));
	CHECK(shows("cudaMalloc") && shows("cudaLaunchKernel") && !shows("cudaMemcpy"));
	CHECK(good("-e memory,!cudaFree"));
	CHECK(shows("cudaMalloc") && !shows("cudaFree"));
	CHECK(good("-e !query"));
	CHECK(shows("cudaMalloc") && !shows("cudaGetDevice") && !shows("__cudaLaunchKernel"));
	CHECK(good("-e !query -e !memory"));
	CHECK(!shows("cudaMalloc") && !shows("cudaGetDevice") && shows("cudaMemcpy"));
	CHECK(good("-e default,internal"));
	CHECK(shows("cudaMalloc") && shows("__cudaLaunchKernel"));
	CHECK(good("-e cuMemAlloc"));
	CHECK(shows("cuMemAlloc_v2") && shows("cuMemAlloc") && named("cuMemAlloc_v2") &&
	      !shows("cudaMalloc"));
	CHECK(good("-e cuMemAlloc_v2"));
	CHECK(shows("cuMemAlloc_v2") && !shows("cuMemAlloc"));
	CHECK(good("-e cudaMem*"));
	CHECK(shows("cudaMemcpy") && !named("cudaMemcpy") && !shows("cudaMalloc"));
	CHECK(good("-e cudaM*,!cudaMemcpy"));
	CHECK(shows("cudaMalloc") && !shows("cudaMemcpy"));
	CHECK(good("-e cudaGetDevice"));
	CHECK(named("cudaGetDevice"));
	CHECK(good("--domain driver"));
	CHECK(!shows("cudaMalloc") && shows("cuMemAlloc_v2"));
	CHECK(good("-e memory --domain runtime"));
	CHECK(shows("cudaMalloc") && !shows("cuMemAlloc_v2"));

	/* what runs for long leaves queries out, unless it is told otherwise */
	CHECK(!parse(OPTS_TOP, "") && shows("cudaMalloc") && !shows("cudaGetDevice") &&
	      !shows("cuCtxGetDevice"));
	CHECK(!parse(OPTS_SERVE, "") && shows("cuMemAlloc_v2") && !shows("cudaGetLastError"));
	CHECK(!parse(OPTS_TOP, "--queries") && shows("cudaMalloc") && shows("cudaGetDevice") &&
	      !shows("__cudaLaunchKernel"));
	CHECK(!parse(OPTS_SERVE, "--queries") && shows("cudaGetDevice"));
	CHECK(!parse(OPTS_TOP, "-e memory,query") && shows("cudaMalloc") && shows("cudaGetDevice"));
	CHECK(!parse(OPTS_STAT, "") && shows("cudaGetDevice"));
	CHECK(parse(OPTS_TOP, "-e memory --queries") &&
	      strstr(said, "-e says which functions are counted: add 'query' to its list, and "
			   "leave out --queries"));

	CHECK(parse(OPTS_TRACE, "-e cudaMaloc") &&
	      strstr(said, "no function or class is named 'cudaMaloc'; did you mean cudaMalloc"));
	CHECK(parse(OPTS_TRACE, "-e memry") && strstr(said, "did you mean memory"));
	CHECK(parse(OPTS_TRACE, "-e cuMemAloc") && strstr(said, "did you mean cuMemAlloc"));
	bad("-e xyzzyplugh",
	    "-e: no function or class is named 'xyzzyplugh'; see 'cudatrace list'");
	bad("-e xyzzy*", "-e: no function matches 'xyzzy*'; see 'cudatrace list'");
	bad("-e memory,", "-e: an empty word; give classes, names and globs, separated by commas");
	bad("-e memory,!memory", "-e leaves no function to trace; see 'cudatrace list'");
	bad("-e cudaMalloc --domain driver",
	    "-e together with --domain leaves no function to trace; see 'cudatrace list'");
}

/* ---- values ---- */

static void test_values(void)
{
	CHECK(good(""));
	CHECK(!o.ask.ring_bytes && o.ask.format->ops == &sink_table &&
	      o.ask.look.time == SINK_TIME_MS && !o.ask.npids && !o.ask.cmd);
	CHECK(good("-p 1,2 -p 3 -p 2"));
	CHECK(o.ask.npids == 3 && o.ask.pids[0] == 1 && o.ask.pids[1] == 2 && o.ask.pids[2] == 3);
	CHECK(good("-p 1+2,3+")); /* as pidof and pgrep print them */
	CHECK(o.ask.npids == 3);
	CHECK(good("-d 1.5") && o.ask.duration_ns == 1500000000);
	CHECK(good("-d 500ms") && o.ask.duration_ns == 500000000);
	CHECK(good("--min-duration 1ms") && o.ask.filter.min_duration_ns == 1000000);
	CHECK(good("--min-duration=2.5us") && o.ask.filter.min_duration_ns == 2500);
	CHECK(good("--min-size 1MB") && o.ask.filter.min_size_bytes == 1000000);
	CHECK(good("--min-size 1MiB") && o.ask.filter.min_size_bytes == 1048576);
	CHECK(good("--min-size 1.5K") && o.ask.filter.min_size_bytes == 1536);
	CHECK(good("--min-size 4096") && o.ask.filter.min_size_bytes == 4096);
	CHECK(good("--ring-size 3MiB") && o.ask.ring_bytes == 4u << 20);
	CHECK(good("-p 1 -n 5 -fcv --strict") && o.ask.count == 5 && o.ask.follow &&
	      o.ask.look.counts_only && o.ask.verbose == 1 && o.ask.strict);
	CHECK(good("--time iso --tid --color never -o out.txt -A") &&
	      o.ask.look.time == SINK_TIME_ISO && o.ask.look.tid && o.ask.append);
	CHECK(good("--format json") && o.ask.format->ops == &sink_json);
	CHECK(good("-E A=1 -E B -u nobody -- ./app -p 7 --strict"));
	CHECK(o.ask.cmd && !strcmp(o.ask.cmd[0], "./app") && !strcmp(o.ask.cmd[3], "--strict") &&
	      !o.ask.strict && !o.ask.npids);
	CHECK(o.ask.env && !strcmp(o.ask.env[0], "A=1") && !strcmp(o.ask.env[1], "B") &&
	      !o.ask.env[2]);
	CHECK(good("-L 7") && o.ask.tid == 7);
	CHECK(good("--probe-kind tracefs") && !strcmp(o.ask.probe_kind, "tracefs"));
	CHECK(good("--enter-exit --nested --keep-chatty --comm py* --cgroup /x --library /y -C"));
	CHECK(good("-h") && o.help && o.brief);
	CHECK(good("--help") && o.help && !o.brief);
	/* the help is given, even if the rest of the line would be refused */
	CHECK(!parse(OPTS_SCHEMA, "--help x") && o.help);
	CHECK(!parse(OPTS_EXPORT, "-h") && o.help);
	CHECK(good("-V") && o.version);
	CHECK(!parse(OPTS_LIST, "cuda*") && o.ask.nargs == 1);
	CHECK(parse(OPTS_SCHEMA, "-p 1"));
	CHECK(!parse(OPTS_DOCTOR, "-p 1") && o.ask.npids == 1);
}

static void test_errors(void)
{
	char text[512], names[256];

	bad("-p x", "-p: no process named 'x' runs; give numbers, or --comm for processes of a "
		    "name that begin later");
	bad("--pid=0", "--pid: '0' is not a process id; give numbers, separated by commas");
	bad("-p 1;2", "-p: '1;2' is not a process id; give numbers, separated by commas");
	bad("-L -1", "-L: '-1' is no thread id; give a number, as 'ps -T' shows it");
	bad("-p", "-p needs a value (PID); see 'cudatrace --help'");
	bad("--pid", "--pid needs a value (PID); see 'cudatrace --help'");
	bad("--graph graph", "--graph is about what the GPU does: give --gpu");
	bad("--gpu-clock offset", "--gpu-clock is about what the GPU does: give --gpu");
	bad("--cupti /x",
	    "--cupti says which libcupti is used, and nothing here uses one: give --gpu");
	bad("-x", "there is no option -x; see 'cudatrace --help'");
	bad("--formt json", "there is no option --formt; did you mean --format or --sort?");
	bad("--failed=yes", "--failed takes no value: leave out what follows the =");
	snprintf(text, sizeof(text), "--format: 'xml' is not one of %s",
		 sinks_names(0, names, sizeof(names)));
	bad("--format xml", text);
	bad("--time s", "--time: 's' is not one of ms, us, iso, unix, delta, day or day-us");
	bad("--min-duration 5",
	    "--min-duration: '5' is no duration; give a number and its unit, as 1ms, 50us, 2s");
	bad("--min-size 5XB",
	    "--min-size: '5XB' is no size; give bytes, or 1MB (10^6), 1MiB (2^20)");
	bad("--min-size 99999999TB",
	    "--min-size: '99999999TB' is no size; give bytes, or 1MB (10^6), 1MiB (2^20)");
	bad("-d 0", "-d: '0' is no time to trace for; give seconds, or 500ms, 2m");
	bad("-n 0", "-n: '0' is no number of rows; give 1 or more");
	bad("--ring-size 1K", "--ring-size: '1K' is no size; give one from 64KiB to 1GiB");
	bad("-E =x -- a", "-E: '=x' names no variable; give VAR=VAL to set it, VAR to remove it");
	CHECK(good("-k ./app -p 7") && o.ask.cmd && !strcmp(o.ask.cmd[2], "7") && !o.ask.npids);
	CHECK(!parse(OPTS_STAT, "./app") && o.ask.replay && !o.ask.cmd);
	/* also where the form is given by --format */
	CHECK(parse(OPTS_STAT, "--top 3 --format json ./app") &&
	      strstr(said, "--top is only for tables"));
	CHECK(parse(OPTS_STAT, "--top 3 --format csv ./app") &&
	      strstr(said, "--top is only for tables"));
	CHECK(parse(OPTS_STAT, "--watch --format json -p 1") &&
	      strstr(said, "--watch prints tables for people"));
	CHECK(!parse(OPTS_STAT, "--top 3 --format table ./app"));
	bad("app",
	    "what is 'app'? To start a program, write -- before it: cudatrace [OPTIONS] -- app");
	bad("--", "-- without a command to start after it: write one, or leave out --");

	bad("-p 1 -- a",
	    "-p traces processes that run already and CMD starts one: give one of the two");
	bad("-L 1 -- a",
	    "-L traces a thread that runs already and CMD starts a program: give one of the two");
	bad("-u x", "-u says as whom CMD runs: give a CMD after --");
	bad("-E x", "-E changes CMD's environment: give a CMD after --");
	bad("-A", "-A adds to the FILE of -o: give -o FILE");
	bad("-c -C", "-C prints counts after the rows and -c instead of them: give one of the two");
	bad("-c --format json", "-c and -C print a table: leave out --format json, or count the "
				"rows of a JSON file afterwards");
	bad("-c --enter-exit", "-c prints no rows: leave out --enter-exit");
	bad("--no-return --failed", "--no-return knows no results: leave out --failed");
	bad("--no-return --min-duration 1ms",
	    "--no-return knows no durations: leave out --min-duration");
	bad("--no-return -c", "--no-return knows no durations: leave out -c and -C");
	bad("--no-return --enter-exit", "--no-return sees no returns: leave out --enter-exit");
	bad("--no-return --nested",
	    "--no-return cannot tell which call is inside which: leave out --nested");
	bad("--enter-exit --failed",
	    "--enter-exit prints calls before their results are known: leave out --failed");
	bad("--format json --time us",
	    "--time is for the table: JSON has start_ns and duration_ns");
}

/* -e none: no calls, only what devices do. */
static void test_no_calls(void)
{
	static const char alone[] =
		"-e: 'none' means no function at all: give it alone, or leave it out";
	static const char of_calls[] = "cudatrace: error: -e none leaves no call, and this command "
				       "is about calls: leave it out\n";

	CHECK(good("-e none --gpu -- x") && o.ask.select.none && !shows("cudaMalloc") &&
	      !shows("__cudaLaunchKernel"));
	CHECK(good("-e none --counters") && o.ask.select.none);
	CHECK(good("--gpu -c -e none -p 1") &&
	      good("--gpu -e none --min-duration 1ms --start-on cudaMalloc -p 1"));
	CHECK(!parse(OPTS_REPLAY, "-e None x") && o.ask.select.none && !shows("cudaMalloc"));
	CHECK(!parse(OPTS_RECORD, "-e none --gpu -o x -p 1") &&
	      !parse(OPTS_EXPORT, "--to csv -e none x"));
	CHECK(!parse(OPTS_STAT, "-e none x") && !parse(OPTS_STAT, "-e none --gpu -p 1") &&
	      !parse(OPTS_SERVE, "--counters -e none"));
	CHECK(good("") && !o.ask.select.none);

	bad("-e none", "-e none leaves only what devices do: give --gpu or --counters");
	bad("--gpu -e none,memory -p 1", alone);
	bad("--gpu -e memory -e none -p 1", alone);
	bad("--gpu -e none,!memory -p 1", alone);
	bad("--gpu -e !none -p 1", alone);
	bad("-e nome", "-e: no function or class is named 'nome'; did you mean none?");
	bad("--gpu -e none -k -p 1",
	    "-k concerns calls, and -e none shows none: leave out one of the two");
	bad("--gpu -e none --domain driver -p 1",
	    "--domain concerns calls, and -e none shows none: leave out one of the two");
	bad("--gpu -e none --source=cupti -p 1",
	    "--source concerns calls, and -e none shows none: leave out one of the two");
	bad("--gpu -e none --format folded -p 1",
	    "-e none leaves no call, and --format folded adds up the stacks of calls: leave one of "
	    "the two out");
	CHECK(parse(OPTS_TOP, "--counters -e none"));
	CHECK_TEXT(of_calls, said);
	CHECK(parse(OPTS_ADVISE, "-e none x"));
	CHECK_TEXT(of_calls, said);
	CHECK(parse(OPTS_LIST, "-e none"));
	CHECK_TEXT(of_calls, said);
}

static int folded(const char *line)
{
	return !parse(OPTS_FOLDED, line);
}

static void test_stacks(void)
{
	char title[64];

	CHECK(good("") && o.ask.stack == REQUEST_STACK_NONE && !o.ask.look.mangled &&
	      !o.ask.look.full_names && !o.ask.no_python && !o.ask.look.weight);
	CHECK(good("-k") && o.ask.stack == REQUEST_STACK_DWARF);
	CHECK(good("--stack") && o.ask.stack == REQUEST_STACK_DWARF);
	CHECK(good("--stack=dwarf") && o.ask.stack == REQUEST_STACK_DWARF);
	CHECK(good("--stack=fp --no-python") && o.ask.stack == REQUEST_STACK_FP && o.ask.no_python);
	/* -k takes no value: what is behind it are letters, or the next option */
	CHECK(good("-kf -k -p 5") && o.ask.stack == REQUEST_STACK_DWARF && o.ask.follow &&
	      o.ask.npids == 1);
	CHECK(good("-k -e sync") && shows("cudaStreamSynchronize") && !shows("cudaMalloc"));
	CHECK(good("--mangled") && o.ask.look.mangled && !o.ask.look.full_names);
	CHECK(good("--full-names") && o.ask.look.full_names && !o.ask.look.mangled);
	bad("--stack=lbr", "--stack: 'lbr' is not one of dwarf, fp, python or auto");
	bad("-k fp",
	    "'fp' belongs to no option: write --stack=fp, or to start a program -- before it");
	bad("--mangled --full-names", "--mangled prints names as the compiler made them and "
				      "--full-names what they mean: give one of the two");
	bad("-k -c", "-c prints no rows: leave out -k");
	bad("--no-python", "--no-python is about stacks: give -k");
	CHECK(good("-k -C"));

	CHECK(good("--format folded") && o.ask.format->ops == &sink_folded &&
	      o.ask.stack == REQUEST_STACK_AUTO);
	CHECK(o.ask.look.weight == SINK_WEIGHT_CALLS);
	CHECK(good("--format flame --stack=fp --weight bytes --no-python") &&
	      o.ask.format->ops == &sink_flame);
	CHECK(o.ask.stack == REQUEST_STACK_FP && o.ask.look.weight == SINK_WEIGHT_BYTES &&
	      o.ask.no_python);
	CHECK(good("--format folded --weight time") && o.ask.look.weight == SINK_WEIGHT_TIME);
	CHECK(good("--format folded -o x -A") && o.ask.append);
	CHECK(folded("") && o.ask.format->ops == &sink_folded && o.ask.stack == REQUEST_STACK_AUTO);
	CHECK(folded("--format flame -p 1 --weight time") && o.ask.format->ops == &sink_flame &&
	      o.ask.npids == 1);
	CHECK(folded("--stack=fp -o f -- ./app --format json") && o.ask.stack == REQUEST_STACK_FP &&
	      o.ask.cmd);
	CHECK_TEXT("./app --format json", request_title(&o.ask, title, sizeof(title)));
	CHECK_TEXT("./ap", request_title(&o.ask, title, 5));
	CHECK(folded("-p 7") && !strcmp("process 7", request_title(&o.ask, title, sizeof(title))));
	CHECK(folded("-p 7,8") &&
	      !strcmp("processes 7, 8", request_title(&o.ask, title, sizeof(title))));
	CHECK(folded("") && !strcmp("all processes", request_title(&o.ask, title, sizeof(title))));

	bad("--weight time", "--weight is what a stack weighs, and table adds none up: give "
			     "folded, flame or speedscope");
	bad("--weight cycles --format folded",
	    "--weight: 'cycles' is not one of calls, time, bytes or gpu");
	bad("--format folded -c", "-c and -C print a table: leave out --format folded");
	bad("--format flame -C", "-c and -C print a table: leave out --format flame");
	bad("--format folded --enter-exit",
	    "--format folded has each call once: leave out --enter-exit");
	bad("--format folded --unfinished 5",
	    "--format folded has each call once: leave out --unfinished");
	bad("--format folded --nested",
	    "--format folded would count a call and the calls inside it: leave out --nested");
	bad("--format folded --time ms",
	    "--time is for the table: --format folded has its own times, or none");
	bad("--format csv --tid",
	    "--tid is for the table, folded, flame and speedscope: leave it out");
	CHECK(good("--format folded --tid") && o.ask.look.tid);
	bad("--format folded --color always", "--color is for the table: leave it out");
	bad("--format folded --weight time --no-return",
	    "--no-return knows no durations: leave out --weight time");
	CHECK(good("--format nsys-sqlite -o x") && o.ask.spans.min_ns == 100000 &&
	      !o.ask.spans.url);
	CHECK(good("--otlp http://127.0.0.1:4318 --otlp-min 0s") &&
	      !strcmp(o.ask.spans.url, "http://127.0.0.1:4318") && !o.ask.spans.min_ns);
	CHECK(good("--format otlp-json --otlp-min 2ms -o x -A") && o.ask.spans.min_ns == 2000000);
	bad("--format nsys-sqlite", "--format nsys-sqlite writes a file: give -o FILE");
	bad("--format nsys-sqlite -o x -A",
	    "--format nsys-sqlite writes a whole file: leave out -A");
	bad("--format otlp-json -c", "-c and -C print a table: leave out --format otlp-json");
	CHECK(good("--format perfetto -o x -k --stack-args") && PERFETTO->stack_args);
	bad("--stack-args",
	    "--stack-args is about stacks of perfetto: give that format, or leave it out");
	bad("--format perfetto -o x --stack-args",
	    "--stack-args is about stacks with --format perfetto: give -k, or leave it out");
	CHECK(good("--format nsys-sqlite -o x --all-tables") && NSYS->all_tables);
	bad("--all-tables",
	    "--all-tables is about the database of nsys-sqlite: give that format, or leave it out");
	bad("--otlp-min 1ms",
	    "--otlp-min says which calls become spans: give --otlp URL or --format otlp-json");
	bad("--otlp-min 5 --otlp env",
	    "--otlp-min: '5' is no duration; give a number and its unit, as 1ms, 50us, 0s");
	bad("--otlp env --no-return",
	    "--no-return knows no durations, which spans have: leave out --otlp and otlp-json");
	bad("--otlp=", "--otlp: '' is not an address; give http://HOST[:PORT][/PATH], or env for "
		       "that of OTEL_EXPORTER_OTLP_ENDPOINT");
	bad("--format flame -o x -A", "--format flame writes a whole file: leave out -A");
	CHECK(!folded("--format json"));
	CHECK(strstr(said, "cudatrace: error: 'cudatrace folded' adds up stacks: give --format "
			   "folded, flame"));
	CHECK(!folded("-c") && strstr(said, "there is no option -c"));
	CHECK(!folded("app") && strstr(said, "cudatrace folded [OPTIONS] -- app"));
	CHECK(folded("-o x ./app") && o.ask.cmd && !strcmp(o.ask.cmd[0], "./app"));
}

/* Where it goes: what is for programs never onto the standard output that a program started by
 * us has for itself. */
static void test_output(void)
{
	static const char programs[] =
		"cudatrace: error: standard output is CMD's own, with which a form for programs "
		"must not mix: give -o FILE, or a command that reads it, as -o '|jq .' (-o - is "
		"standard output all the same)\n";
	static const struct {
		enum opts_cmd cmd;
		const char *line;
	} forms[] = {
		{ OPTS_TRACE, "--format json" },
		{ OPTS_TRACE, "--format csv" },
		{ OPTS_TRACE, "--format html" },
		{ OPTS_TRACE, "--format perfetto" },
		{ OPTS_TRACE, "--format cupti" },
		{ OPTS_TRACE, "--format folded" },
		{ OPTS_TRACE, "--format otlp-json" },
		{ OPTS_FOLDED, "" },
		{ OPTS_FOLDED, "--format flame" },
		{ OPTS_STAT, "--json" },
		{ OPTS_STAT, "--csv" },
		{ OPTS_STAT, "--format json" },
		{ OPTS_MEM, "--json" },
		{ OPTS_ADVISE, "--format json" },
		{ OPTS_ADVISE, "--format markdown" },
	};
	static const struct {
		enum opts_cmd cmd;
		const char *line;
	} texts[] = {
		{ OPTS_TRACE, "" },   { OPTS_TRACE, "-c" },
		{ OPTS_TRACE, "-C" }, { OPTS_TRACE, "--otlp env" },
		{ OPTS_STAT, "" },    { OPTS_STAT, "--save x" },
		{ OPTS_MEM, "" },     { OPTS_MEM, "--watch" },
		{ OPTS_ADVISE, "" },  { OPTS_RECORD, "" },
	};
	static const char *const places[] = { "-o x", "-o -", "-o |cat" };
	char line[128];

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		snprintf(line, sizeof(line), "%s -- a", forms[i].line);
		CHECK(parse(forms[i].cmd, line));
		CHECK_TEXT(programs, said);
		for (size_t k = 0; k < ARRAY_LEN(places); k++) {
			snprintf(line, sizeof(line), "%s %s -- a", forms[i].line, places[k]);
			CHECK(!parse(forms[i].cmd, line));
		}
		snprintf(line, sizeof(line), "%s -p 1", forms[i].line);
		CHECK(!parse(forms[i].cmd, line));
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		snprintf(line, sizeof(line), "%s -- a", texts[i].line);
		CHECK(!parse(texts[i].cmd, line));
	}
	bad("-o |", "-o: there is no command after the '|'; give one, as -o '|jq .'");
	bad("-A -o |cat", "-A adds to a file, and -o names a command: leave out -A");
	bad("--format nsys-sqlite -o |cat", "-o: what nsys-sqlite writes is a file, which no "
					    "command and no standard output can be: give a name");
	bad("--format chrome -o |cat>%p",
	    "-o: %p is for a file for each process, and a command reads them all: leave it out");
	CHECK(good("--format chrome -o |cat>p"));
	CHECK(parse(OPTS_RECORD, "-o |cat") &&
	      strstr(said, "-o: a recording is a file, which no command and no standard output can "
			   "be: give a name"));
	CHECK(parse(OPTS_MERGE, "-o |cat a b") && strstr(said, "-o: a recording is a file"));
	CHECK(parse(OPTS_EXPORT, "--to nsys-sqlite -o - a") &&
	      strstr(said, "-o: what nsys-sqlite writes is a file"));
}

/* The name of -o says the format, where no option does. */
static void test_names(void)
{
	static const struct {
		enum opts_cmd cmd;
		const char *line, *format;
	} rows[] = {
		{ OPTS_TRACE, "-o x.html ./a", "html" },
		{ OPTS_TRACE, "-o d.csv/x ./a", "table" },
		{ OPTS_TRACE, "-o d.csv/x.txt ./a", "table" },
		{ OPTS_TRACE, "-o x.log ./a", "table" },
		{ OPTS_TRACE, "-o x ./a", "table" },
		{ OPTS_TRACE, "-o .csv ./a", "table" }, /* a hidden file has no ending */
		{ OPTS_TRACE, "-o x.cupti.txt ./a", "cupti" },
		{ OPTS_TRACE, "-o x.jsonl.gz ./a", "json" },
		{ OPTS_TRACE, "-o x.pt.trace.json ./a", "chrome" },
		{ OPTS_TRACE, "-o x.trace.json ./a", "chrome" },
		{ OPTS_TRACE, "-o x.speedscope.json ./a", "speedscope" },
		{ OPTS_TRACE, "-o x.otlp.jsonl ./a", "otlp-json" },
		{ OPTS_TRACE, "-o x.pftrace ./a", "perfetto" },
		{ OPTS_TRACE, "-o x.%p.csv ./a", "csv" },
		{ OPTS_TRACE, "-o |cat>x.csv ./a", "table" },
		{ OPTS_TRACE, "-o x.html --format csv ./a", "csv" },
		{ OPTS_TRACE, "-o x.json --format table ./a", "table" },
		{ OPTS_TRACE, "-c -o x.csv ./a", "table" },
		{ OPTS_TRACE, "-C -o x.json ./a", "table" },
		{ OPTS_REPLAY, "-o x.parquet R", "parquet" },
		{ OPTS_REPLAY, "-o x.arrow R", "arrow" },
		{ OPTS_REPLAY, "-o x.sqlite R", "nsys-sqlite" },
		{ OPTS_FOLDED, "-o x.folded ./a", "folded" },
		{ OPTS_FOLDED, "-o x.txt ./a", "folded" },
		{ OPTS_FOLDED, "-o x.html ./a", "flame" },
		{ OPTS_FOLDED, "-o x.flame.html ./a", "flame" },
		{ OPTS_EXPORT, "-o x.html R", "html" },
		{ OPTS_EXPORT, "-o x.pickle R", "memory-viz" },
		{ OPTS_EXPORT, "--to csv -o x.html R", "csv" },
		{ OPTS_STUCK, "-o x.json", "json" },
		{ OPTS_STUCK, "-o x.txt", "table" },
		{ OPTS_RECORD, "-o x ./a", "table" },
		{ OPTS_RECORD, "-o x.txt ./a", "table" },
		{ OPTS_RECORD, "-o x.html.ctrace ./a", "table" },
	};
	static const char *const forms[] = { "-o x.json", "-o x.json.gz", "-o x.csv",
					     "-o x.txt",  "-o x",	  "--format csv -o x.json",
					     "-o x.md" };
	static const bool programs[] = { true, true, true, false, false, true, false };
	char line[128];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%s", rows[i].line);
		if (parse(rows[i].cmd, rows[i].line))
			printf("  %s", said);
		CHECK_TEXT(rows[i].format, o.ask.format->ops->name);
	}
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		CASE_ROW("%s", forms[i]);
		snprintf(line, sizeof(line), "%s -p 1", forms[i]);
		CHECK(!parse(OPTS_STAT, line));
		CHECK_EQ(programs[i], request_wants(&o.ask).for_programs);
	}
	CHECK(!parse(OPTS_STAT, "--to 5 -o x.json R") && request_wants(&o.ask).for_programs);
	CHECK(!parse(OPTS_MEM, "-o x.json -p 1") && MEM->json);
	CHECK(!parse(OPTS_ADVISE, "-o x.md R") && ADVISE->format == ADVISE_MARKDOWN);
}

/* Habits of other tools, and words at places where they cannot stand: what to write instead. */
static void test_words(void)
{
	static const char thread[] = "-t prints the time of day; give -L 1234 for one thread";
	static const char trace[] =
		"--trace: leave out --trace; calls of CUDA are traced anyway, -e selects some, "
		"--layers nvtx adds ranges, --gpu what the GPU does";
	static const struct {
		enum opts_cmd cmd;
		const char *line, *want;
	} rows[] = {
		{ OPTS_TRACE, "-t 1234", thread },
		{ OPTS_TRACE, "-t1234", thread },
		{ OPTS_TRACE, "-t cuda,nvtx", trace },
		{ OPTS_TRACE, "-t cuda", trace },
		{ OPTS_TRACE, "-t word",
		  "what is 'word'? To start a program, write -- before it: cudatrace [OPTIONS] -- "
		  "word" },
		{ OPTS_RECORD, "-t 1234",
		  "there is no option -t here; give -L TID for one thread" },
		{ OPTS_TRACE, "--cou",
		  "--cou can mean several options, --counters, --count-only, --counts, --count: "
		  "write the whole name" },
		{ OPTS_TRACE, "-p 1 stat",
		  "'stat' is a command, which comes first: cudatrace stat [OPTIONS]" },
		{ OPTS_SCHEMA, "x", "'x' is one word too many; see 'cudatrace schema --help'" },
		{ OPTS_MERGE, "-o x a",
		  "give two or more recordings, and -o FILE for the merged one" },
		{ OPTS_MERGE, "a b",
		  "give two or more recordings, and -o FILE for the merged one" },
		{ OPTS_REPLAY, "",
		  "no recording is given: name a file that 'cudatrace record' wrote" },
		{ OPTS_TRACE, "-e status=x",
		  "-e status=x: give status=failed or status=successful" },
		{ OPTS_MEM, "-e status=failed",
		  "there is no option -e; see 'cudatrace mem --help'" },
		{ OPTS_TOP, "-e status=successful",
		  "-e status=successful: 'cudatrace top' has no --succeeded: leave it out" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[512];

		CASE_ROW("%s", rows[i].line);
		CHECK(parse(rows[i].cmd, rows[i].line) == -EINVAL);
		snprintf(text, sizeof(text), "cudatrace: error: %s\n", rows[i].want);
		CHECK_TEXT(text, said);
	}
	CHECK(parse(OPTS_EXPORT, "x") &&
	      strstr(said, "cudatrace: error: --to is missing: the format to write, one of ") ==
		      said);
	CHECK(good("-e status=failed") && o.ask.filter.failed_only && !o.ask.filter.succeeded_only);
	CHECK(good("-e status=unsuccessful") && o.ask.filter.failed_only);
	CHECK(good("-e status=successful") && o.ask.filter.succeeded_only &&
	      !o.ask.filter.failed_only);
	CHECK(good("-t") && o.ask.look.time == SINK_TIME_DAY && good("-tt") && !o.ask.cmd &&
	      o.ask.look.time == SINK_TIME_DAY_US && good("-ttt") &&
	      o.ask.look.time == SINK_TIME_UNIX);
}

static const struct option_row *row_of(enum opts_cmd cmd, const char *name)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(cmd, &i));)
		if (!strcmp(r->name, name))
			return r;
	return NULL;
}

/* What others call our options: the same value, in every command that has ours. */
static void test_same(void)
{
	const struct habit_same *same;
	char line[64];

	for (int i = 0; (same = habits_same(i)); i++) {
		CHECK(!row_of((enum opts_cmd)ALL, same->theirs));
		for (unsigned int c = 0; command_at(c); c++) {
			const struct option_row *r = row_of(command_at(c)->bit, same->ours);

			CASE_ROW("%s %s", command_at(c)->name, same->theirs);
			snprintf(line, sizeof(line), "--%s", same->theirs);
			parse(command_at(c)->bit, line);
			/* getopt takes the beginning of --summary-sort-by for it */
			if (r || strcmp(same->theirs, "summary"))
				CHECK_EQ(!r, strstr(said, "there is no option --") != NULL);
			if (r && r->arg && *r->arg != '[')
				CHECK(strstr(said, line) && strstr(said, "needs a value ("));
		}
	}
	CHECK(good("--layers all") &&
	      o.ask.layers == (1u << (API_DOMAIN_END - API_FIRST_LAYER)) - 1);
	CHECK(good("--layers nvtx,all") &&
	      o.ask.layers == (1u << (API_DOMAIN_END - API_FIRST_LAYER)) - 1);
}

/* A word with a slash begins a program; where a recording may stand, too, only if the file can be executed and begins as
 * one. */
static void test_program_or_recording(void)
{
	static const struct {
		const char *bytes;
		int mode;
		bool program;
	} rows[] = {
		{ "#!/bin/sh", 0755, true },	{ "\177ELF", 0755, true },    { "#!", 0755, true },
		{ "\177EL", 0755, false },	{ "#", 0755, false },	      { "", 0755, false },
		{ "cudatrace\n", 0755, false }, { "#!/bin/sh", 0644, false },
	};
	char path[] = "/tmp/ct_test_opts.XXXXXX";
	int fd = mkstemp(path);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%zu", i);
		CHECK(!ftruncate(fd, 0) &&
		      pwrite(fd, rows[i].bytes, strlen(rows[i].bytes), 0) ==
			      (ssize_t)strlen(rows[i].bytes) &&
		      !fchmod(fd, (mode_t)rows[i].mode));
		CHECK(!parse(OPTS_STAT, path));
		CHECK_EQ(!rows[i].program, o.ask.replay);
		CHECK_EQ(rows[i].program, o.ask.cmd != NULL);
	}
	close(fd);
	unlink(path);
	CHECK(!parse(OPTS_STAT, path) &&
	      o.ask.replay); /* gone: a recording, of which its reader says so */
	CHECK(!parse(OPTS_STAT, "/dev") && o.ask.replay);
}

/* What follows from others. */
static void test_conclusions(void)
{
	char title[64];

	CHECK(good("-ff -o rows -p 1"));
	CHECK_TEXT("rows.%p", o.ask.output);
	CHECK(good("-ff -o rows.%p -p 1"));
	CHECK_TEXT("rows.%p", o.ask.output);
	CHECK(good("-ff -o - -p 1"));
	CHECK_TEXT("-", o.ask.output);
	CHECK(good("-f -o rows -p 1"));
	CHECK_TEXT("rows", o.ask.output);
	CHECK(good("--layers nvtx --gpu=nvtx,kernel -p 1") && o.ask.gpu);
	CHECK_TEXT("cudatrace: --layers nvtx records the ranges: --gpu=nvtx is left out, so that "
		   "none is shown twice\n",
		   said);
	CHECK(!parse(OPTS_STAT, "/tmp/x.ctrace"));
	CHECK_TEXT("x.ctrace", request_title(&o.ask, title, sizeof(title)));
	CHECK_TEXT("x.c", request_title(&o.ask, title, 4));
	CHECK(!parse(OPTS_STAT, "x.ctrace"));
	CHECK_TEXT("x.ctrace", request_title(&o.ask, title, sizeof(title)));
	CHECK(!parse(OPTS_STAT, "x/"));
	CHECK_TEXT("x/", request_title(&o.ask, title, sizeof(title)));
}

static void test_advise(void)
{
	CHECK(!parse(OPTS_ADVISE, "app.ctrace") && o.ask.replay &&
	      !strcmp(o.ask.file, "app.ctrace") && o.ask.format->ops == &sink_advise);
	CHECK(!ADVISE->rules && !ADVISE->min_cost_ns && ADVISE->format == ADVISE_TEXT &&
	      !ADVISE->fail);
	CHECK(!parse(OPTS_ADVISE,
		     "--rule leak,sync-copy --min-cost 5ms --format markdown --fail app.ctrace"));
	CHECK_TEXT("leak,sync-copy", ADVISE->rules);
	CHECK(ADVISE->min_cost_ns == 5000000 && ADVISE->format == ADVISE_MARKDOWN && ADVISE->fail);
	CHECK(!parse(OPTS_ADVISE, "--gpu -k -p 12 -d 5") && !o.ask.replay && o.ask.gpu &&
	      o.ask.stack && o.ask.npids == 1);
	CHECK(!parse(OPTS_ADVISE, "--from 1 --to 2 app.ctrace") && o.ask.from_ns == 1000000000 &&
	      o.ask.to_ns == 2000000000);
	CHECK(!parse(OPTS_ADVISE, "-- ./app --rule x") && o.ask.cmd &&
	      !strcmp(o.ask.cmd[1], "--rule"));
	CHECK(parse(OPTS_ADVISE, "--rule lek app.ctrace"));
	CHECK_TEXT("cudatrace: error: --rule: there is no rule 'lek'; did you mean leak?\n", said);
	CHECK(parse(OPTS_ADVISE, "--rule leak, app.ctrace"));
	CHECK(strstr(said, "there is no rule ''"));
	CHECK(parse(OPTS_ADVISE, "--min-cost 5 app.ctrace") &&
	      strstr(said, "--min-cost: '5' is no duration; give a number and its unit"));
	CHECK(parse(OPTS_ADVISE, "--format html app.ctrace") &&
	      strstr(said, "--format: 'html' is not one of text, json or markdown"));
	CHECK(parse(OPTS_ADVISE, "--no-return app.ctrace") &&
	      strstr(said, "there is no option --no-return"));
	CHECK(parse(OPTS_ADVISE, "--min-duration 1ms app.ctrace"));
	CHECK(parse(OPTS_ADVISE, "a.ctrace b.ctrace") &&
	      strstr(said, "'b.ctrace' is one word too many"));
}

/* Every option of the help text is accepted. */
static void test_help(enum opts_cmd cmd, int least)
{
	char path[] = "/tmp/ct_test_help.XXXXXX", *text, *line, *rest;
	int fd = mkstemp(path), n = 0;
	struct out out;

	close(fd);
	CHECK(!out_open(&out, path, false));
	opts_help(&out, cmd);
	CHECK(!out_close(&out));
	text = unit_read(path);
	unlink(path);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *at = strstr(line, "--"), word[64] = "";

		CHECK(strlen(line) <= 120);
		if (strncmp(line, "  -", 3) && strncmp(line, "      --", 8))
			continue;
		sscanf(at, "%63[a-z-]", word);
		/* a wrong or missing value is another error than an unknown option */
		parse(cmd, word);
		if (strstr(said, "there is no option"))
			printf("  %s", said);
		CHECK(!strstr(said, "there is no option"));
		n++;
	}
	CHECK(n >= least);
	free(text);
}

static void test_nearest(void)
{
	struct parse_nearest near = { .n = 0 };
	char text[128];

	parse_nearest_add(&near, "lst", "list");
	parse_nearest_add(&near, "lst", "schema");
	CHECK_TEXT("; did you mean list?", parse_nearest_text(&near, text, sizeof(text)));
	near.n = 0;
	parse_nearest_add(&near, "cudaMalc", "cudaMallocX");
	parse_nearest_add(&near, "cudaMalc", "cudaMalloc");
	parse_nearest_add(&near, "cudaMalc", "cudaMalloc");
	CHECK_TEXT("; did you mean cudaMalloc or cudaMallocX?",
		   parse_nearest_text(&near, text, sizeof(text)));
}

static void test_mem(void)
{
	CHECK(!parse(OPTS_MEM, "-- ./app") && o.ask.format->ops == &sink_mem &&
	      o.ask.stack == REQUEST_STACK_AUTO && o.ask.cmd && !o.ask.replay);
	CHECK(MEM->by == LEDGER_BY_ALL && MEM->top == 10 && !MEM->json && !MEM->watch_ns &&
	      !MEM->html && !MEM->leak_check && !o.ask.counters);
	CHECK(!parse(OPTS_MEM, "x.ctrace") && o.ask.replay && !strcmp(o.ask.file, "x.ctrace") &&
	      o.ask.stack == REQUEST_STACK_AUTO);
	CHECK(!parse(OPTS_MEM, "--no-stack -p 7") && o.ask.stack == REQUEST_STACK_NONE &&
	      o.ask.npids == 1);
	CHECK(!parse(OPTS_MEM, "--stack=fp --by stack --top 3 --html p.html") &&
	      o.ask.stack == REQUEST_STACK_FP && MEM->by == 4 && MEM->top == 3 &&
	      !strcmp(MEM->html, "p.html"));
	CHECK(!parse(OPTS_MEM, "--watch --json") && MEM->watch_ns == 1000000000 && MEM->json);
	CHECK(!parse(OPTS_MEM, "--watch=250ms --leak-check") && MEM->watch_ns == 250000000 &&
	      MEM->leak_check);
	CHECK(!parse(OPTS_MEM, "--driver") && o.ask.counters &&
	      !strcmp(o.ask.metrics, "mem_process") && o.ask.interval_ns == 100000000);
	CHECK(parse(OPTS_MEM, "--by owner") &&
	      strstr(said, "--by: 'owner' is not one of process, device, kind, stack or library"));
	CHECK(parse(OPTS_MEM, "--top 0") && strstr(said, "'0' is no number of rows"));
	CHECK(parse(OPTS_MEM, "--watch=1ms") && strstr(said, "'1ms' is no interval from 10ms on"));
	CHECK(parse(OPTS_MEM, "--json --by kind") &&
	      strstr(said, "--json has all tables: leave out --by"));
	CHECK(parse(OPTS_MEM, "-e memory") && parse(OPTS_MEM, "--failed") &&
	      parse(OPTS_MEM, "--no-return") && parse(OPTS_MEM, "-n 5"));
	CHECK(parse(OPTS_MEM, "a b") && strstr(said, "one word too many"));
	CHECK(parse(OPTS_MEM, "a -p 1"));
	CHECK_TEXT("cudatrace: error: '-p' comes after the recording: write options before it\n",
		   said);
	CHECK(parse(OPTS_MEM, "--bogus"));
	CHECK_TEXT("cudatrace: error: there is no option --bogus; see 'cudatrace mem --help'\n",
		   said);
	CHECK(parse(OPTS_STUCK, "7"));
	CHECK_TEXT("cudatrace: error: the FILE is no recording, and 'cudatrace stuck' starts no "
		   "program: give a file that 'cudatrace record' wrote, or -p PID\n",
		   said);
}

/* ---- every option of every command ---- */

/* Whether it is refused by one line that has the word and says what to do. */
static bool refused(enum opts_cmd cmd, const char *line, const char *word)
{
	static const char *const advice[] = { "; give ",
					      ": give ",
					      "; see ",
					      "did you mean",
					      "is not one of ",
					      ": leave out ",
					      "; 'cudatrace ",
					      "write the whole name",
					      "manual page have them" };
	int err = parse(cmd, line);
	const char *end = strchr(said, '\n');
	bool says = false;

	for (size_t i = 0; i < ARRAY_LEN(advice); i++)
		says = says || strstr(said, advice[i]);
	if (err && !strncmp(said, "cudatrace: error: ", 18) && end && !end[1] &&
	    strstr(said, word) && says)
		return true;
	printf("  command %x, '%s': %s\n", (unsigned int)cmd, line, err ? said : "taken");
	return false;
}

static bool has_letter(enum opts_cmd cmd, int letter)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(cmd, &i));)
		if (r->letter == letter)
			return true;
	return false;
}

/* Getopt takes the beginning of a name for the name. */
static bool begins_one(enum opts_cmd cmd, const char *name)
{
	const struct option_row *r;

	for (int i = -1; (r = opts_next(cmd, &i));)
		if (!strncmp(r->name, name, strlen(name)))
			return true;
	return false;
}

/* Options whose value may be any text: names of files, of users, of what is not known here. */
static bool is_free(const char *name)
{
	static const char *const names[] = { "output",	 "comm",       "cgroup",     "library",
					     "user",	 "env",	       "metrics",    "chip",
					     "cupti",	 "save",       "html",	     "fail-if",
					     "counters", "web-config", "memory-viz", "dump" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Options that a command does not have, values that are missing, too many, or wrong. */
static void test_every_option(enum opts_cmd cmd)
{
	char line[128], word[64];
	const struct option_row *any, *r;

	CHECK(refused(cmd, "--nonsense-option", "--nonsense-option"));
	CHECK(refused(cmd, "-j", "-j"));
	for (int i = -1; (any = opts_next((enum opts_cmd)ALL, &i));) {
		snprintf(word, sizeof(word), "--%s", any->name);
		r = row_of(cmd, any->name);
		if (!r && !begins_one(cmd, any->name)) {
			snprintf(line, sizeof(line), "%s%s", word, any->arg ? "=1" : "");
			CHECK(refused(cmd, line, word));
		}
		if (any->letter && !has_letter(cmd, any->letter)) {
			snprintf(line, sizeof(line), "-%c 1", any->letter);
			snprintf(word, sizeof(word), "-%c", any->letter);
			CHECK(refused(cmd, line, word));
		}
		if (r != any)
			continue;
		snprintf(word, sizeof(word), "--%s", r->name);
		if (r->arg && *r->arg != '[') {
			CHECK(parse(cmd, word) && strstr(said, "needs a value (") &&
			      strstr(said, r->arg) && strstr(said, word));
			snprintf(line, sizeof(line), "-%c", r->letter);
			CHECK(!r->letter || (parse(cmd, line) && strstr(said, "needs a value (")));
		}
		snprintf(line, sizeof(line), "%s=?!", word);
		if (!r->arg)
			CHECK(refused(cmd, line, word));
		else if (!is_free(r->name))
			CHECK(refused(cmd, line, strcmp(r->name, "events") ? word : "-e"));
		snprintf(line, sizeof(line), "%s=", word);
		if (strcmp(r->name, "fail-if"))
			CHECK(refused(cmd, line, strcmp(r->name, "events") ? word : "-e"));
	}
}

/* Whether these are names of options, or what rules say beside. */
static bool are_options(const char *names)
{
	char text[128], *rest, *name;

	snprintf(text, sizeof(text), "%s", names);
	for (name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		bool known = !strcmp(name, "CMD") || !strcmp(name, "FILE") ||
			     (!strncmp(name, "format:", 7) && sinks_find(name + 7)) ||
			     row_of((enum opts_cmd)ALL, name);

		if (!known) {
			printf("  a rule names %s\n", name);
			return false;
		}
	}
	return *names != '\0';
}

/* What a row promises: a default that its type takes, no option twice in a command, rules about
 * options that there are. */
static void test_rows(void)
{
	const struct opts_row *r;
	const struct option_row *a, *b;
	int unshown = 0;

	for (int i = 0; (r = opts_row_at(i)); i++) {
		CHECK(i < OPTS_ROWS_MAX - 1 && r->cmds && r->row->name);
		unshown += r->row->type.kind != OPTION_HEADING && !r->row->help;
		CHECK(!r->row->type.alone || *r->row->arg == '[');
	}
	/* -T, -y, -a, --trace, --status, --force-overwrite, --stats, --capture-range, --report */
	CHECK_EQ(9, unshown);
	for (unsigned int c = 0; command_at(c); c++)
		for (int i = -1; (a = opts_next(command_at(c)->bit, &i));)
			for (int k = i; (b = opts_next(command_at(c)->bit, &k));)
				CHECK(strcmp(a->name, b->name) &&
				      (!a->letter || a->letter != b->letter));
	for (int i = 0; (r = opts_row_at(i)); i++)
		for (const struct option_rule *rule = r->row->rules;
		     rule && (rule->needs || rule->excludes); rule++)
			CHECK(are_options(rule->needs ? rule->needs : rule->excludes));
	/* the first row begins what `cudatrace` alone has, and each has its own bit and name */
	CHECK(command_at(0)->bit == OPTS_TRACE && !command_named("trace"));
	for (unsigned int c = 1; command_at(c); c++)
		CHECK(command_named(command_at(c)->name) == command_at(c) &&
		      command_of(command_at(c)->bit) == command_at(c));
	CHECK(command_named("check")->bit == OPTS_COMPARE && !command_named("chek"));
	CHECK_TEXT(" stat", command_typed(OPTS_STAT));
	CHECK_TEXT("", command_typed(OPTS_TRACE));
}

/* ---- types ---- */

struct tried {
	bool flag;
	int times;
	uint8_t small;
	uint32_t bits;
	uint64_t ns, bytes, n, many;
	const char *text, *word, **texts;
};
#define OPTION_STRUCT struct tried
static const struct option_row tried_rows[] = {
	{ 0, "flag", NULL, FLAG(flag), 0, NULL, "" },
	{ 0, "times", NULL, TIMES(times), 0, NULL, "" },
	{ 0, "const", NULL, CONST(small, 7), 0, NULL, "" },
	{ 0, "enum", "WORD", ENUM_FROM(small, 3, "beta", "alpha", "beta", "gamma"), 0, "gamma",
	  "" },
	{ 0, "list", "[=LIST]", LIST(bits, "fruit", NULL, "apple", "pear", "fig"), 0, NULL, "" },
	{ 0, "word", "WORD", WORD(word, "one", "two"), 0, NULL, "" },
	{ 0, "ns", "TIME", DURATION(ns, 1000, 3600000000000, 0, "time", "give 1ms"), 0, "1ms", "" },
	{ 0, "bytes", "SIZE", SIZE(bytes, 1 << 14, 1 << 26, NULL), 0, "20KiB", "" },
	{ 0, "n", "N", COUNT(n, 2, 9, "dwarfs", NULL), 0, NULL, "" },
	{ 0, "many", "N", COUNT(many, 1, OPTION_MAX, "stars", NULL), 0, NULL, "" },
	{ 0, "text", "TEXT", TEXT(text), 0, NULL, "" },
	{ 0, "texts", "TEXT", TEXTS(texts, NULL), 0, "x", "" },
};
static const struct option_set tried_set = OPTION_SET(tried_rows);

static struct tried tried;

/* Sets one; NULL of `want`: it is taken; else the message. */
static void try_set(const char *name, const char *val, const char *want)
{
	char path[] = "/tmp/ct_test_opts.XXXXXX", *got, text[512], shown[64];
	int saved = dup(STDERR_FILENO), fd = mkstemp(path), err = -1;

	snprintf(shown, sizeof(shown), "--%s", name);
	dup2(fd, STDERR_FILENO);
	for (size_t i = 0; i < ARRAY_LEN(tried_rows); i++)
		if (!strcmp(tried_rows[i].name, name))
			err = option_set(&tried_rows[i], &tried, shown, val);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	got = unit_read(path);
	unlink(path);
	text[0] = '\0';
	if (want)
		snprintf(text, sizeof(text), "cudatrace: error: --%s%s\n", name, want);
	CHECK_TEXT(text, got);
	CHECK(!err == !want);
	free(got);
}

static void test_types(void)
{
	option_defaults(&tried_set, &tried);
	CHECK(tried.small == 5 && tried.ns == 1000000 && tried.bytes == 20480 && !tried.flag &&
	      !tried.n && !strcmp(tried.texts[0], "x") && !tried.texts[1]);
	try_set("flag", NULL, NULL);
	try_set("times", NULL, NULL);
	try_set("times", NULL, NULL);
	CHECK(tried.flag && tried.times == 2);
	try_set("const", NULL, NULL);
	CHECK(tried.small == 7);
	try_set("enum", NULL, NULL); /* the word that is meant without one */
	CHECK(tried.small == 4);
	try_set("enum", "alpha", NULL);
	CHECK(tried.small == 3);
	try_set("enum", "gamme",
		": 'gamme' is not one of alpha, beta or gamma; did you mean gamma?");
	try_set("enum", "x", ": 'x' is not one of alpha, beta or gamma");
	try_set("list", "fig,apple", NULL);
	CHECK(tried.bits == 5);
	try_set("list", "fig,plum", ": 'plum' is no kind of fruit; give apple, pear or fig");
	try_set("list", ",", ": '' is no kind of fruit; give apple, pear or fig");
	try_set("list", "", ": an empty list of kinds; give kinds as apple,pear");
	try_set("word", "two", NULL);
	CHECK_TEXT("two", tried.word);
	try_set("word", "twoo", ": 'twoo' is not one of one or two; did you mean two?");
	try_set("ns", "1us", NULL);
	CHECK(tried.ns == 1000);
	try_set("ns", "1h", NULL);
	CHECK(tried.ns == 3600000000000);
	try_set("ns", "999ns", ": '999ns' is no time from 1us to 1h; give 1ms");
	try_set("ns", "61m", ": '61m' is no time from 1us to 1h; give 1ms");
	try_set("ns", "5", ": '5' is no time from 1us to 1h; give 1ms");
	try_set("bytes", "16KiB", NULL);
	CHECK(tried.bytes == 16384);
	try_set("bytes", "16383", ": '16383' is no size; give one from 16KiB to 64MiB");
	try_set("bytes", "65MiB", ": '65MiB' is no size; give one from 16KiB to 64MiB");
	try_set("n", "9", NULL);
	CHECK(tried.n == 9);
	try_set("n", "10", ": '10' is no number of dwarfs; give 2 to 9");
	try_set("n", "1", ": '1' is no number of dwarfs; give 2 to 9");
	try_set("many", "0", ": '0' is no number of stars; give 1 or more");
	try_set("many", "99999999999999999999",
		": '99999999999999999999' is no number of stars; give 1 or more");
	try_set("text", "", ": an empty value; give one, or leave --text out");
	try_set("text", "t", NULL);
	CHECK_TEXT("t", tried.text);
	try_set("texts", "y", NULL);
	CHECK(!strcmp(tried.texts[1], "y") && !tried.texts[2]);
	option_free(&tried_set, &tried);
}

/* Without a recording and without programs: some lines mean another thing where there are such. */
static const char *empty_folder(void)
{
	static char folder[] = "/tmp/cudatrace-opts-XXXXXX";

	CHECK(mkdtemp(folder) && !chdir(folder));
	return folder;
}

int main(void)
{
	const char *folder = empty_folder();

	msg_unlimited = true;
	RUN(test_select);
	RUN(test_values);
	RUN(test_errors);
	RUN(test_no_calls);
	RUN(test_stacks);
	RUN(test_help, OPTS_TRACE, 38);
	RUN(test_help, OPTS_FOLDED, 30);
	RUN(test_output);
	RUN(test_names);
	RUN(test_words);
	RUN(test_same);
	RUN(test_program_or_recording);
	RUN(test_conclusions);
	RUN(test_advise);
	RUN(test_help, OPTS_ADVISE, 30);
	RUN(test_nearest);
	RUN(test_mem);
	RUN(test_rows);
	RUN(test_types);
	for (unsigned int i = 0; command_at(i); i++)
		RUN(test_every_option, command_at(i)->bit);
	opts_free(&o);
	CHECK(!rmdir(folder));
	return unit_end();
}
