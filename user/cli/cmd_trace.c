/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_trace.c - what cudatrace does without a word: traces. */
#include <errno.h>

#include "cmd.h"
#include "../session/session.h"
#include "../sums/book.h"
#include "../source/agent/agent.h"
#include "../source/both/both.h"
#include "../source/hooks/hooks.h"
#include "../source/hooks/hooks_suits.h"
#include "../source/probe/priv.h"
#include "../util/msg.h"

/* Options that only probes have, and calls of the whole machine. */
static bool wants_probes(const struct request *o)
{
	return (!o->cmd && !o->npids) || o->stack == REQUEST_STACK_FP || o->library || o->cgroup ||
	       o->probe_kind || o->duty > 0 || o->max_cost > 0 ||
	       request_wants(o).by == BOOK_BY_CGROUP;
}

/* Do hooks see whole functions on this architecture? Elsewhere they see all of them in part. */
static bool hooks_see_whole(void)
{
#if defined(__aarch64__)
	return false;
#else
	return true;
#endif
}

/* What --source=auto is: hooks alone where probes are not permitted. */
static int chosen_source(const struct request *o)
{
	char missing[256];
	const char *why;

	if (wants_probes(o) || !hooks_see_whole())
		return REQUEST_SOURCE_PROBES;
	if (*priv_missing(true, missing, sizeof(missing)))
		return REQUEST_SOURCE_HOOKS;
	why = o->cmd ? hooks_suits_program(o->cmd[0], o->user) : NULL;
	if (why)
		msg_note("%s: no hooks can be put on: %s: its calls are recorded by probes",
			 o->cmd[0], why);
	return why ? REQUEST_SOURCE_PROBES : REQUEST_SOURCE_AUTO;
}

/*
 * The source for what was asked for: where hooks can never come into one of the processes, probes, for all
 * of them, so that each call is seen by one source. Returns -1 after one message: these are not permitted.
 */
static int settled_source(const struct request *o)
{
	char missing[256];

	if (o->source == REQUEST_SOURCE_AUTO)
		return chosen_source(o);
	for (int i = 0; i < o->npids && o->source == REQUEST_SOURCE_HOOKS; i++) {
		int err;
		const char *why = cmd_refusal(hooks_suits, o->pids[i], &err);

		if (err != -ENOTSUP)
			continue; /* what else there is against it is said when they are to come in */
		if (*priv_missing(true, missing, sizeof(missing))) {
			msg_error("no hooks can be put on: %s: run as root, with --source=probes",
				  why);
			return -1;
		}
		msg_note("no hooks can be put on: %s: calls are recorded by probes, as with "
			 "--source=probes",
			 why);
		return REQUEST_SOURCE_PROBES;
	}
	return (int)o->source;
}

int cmd_trace(const struct request *given)
{
	struct request settled = *given;
	const struct request *o = &settled;

	static const struct source_ops *const of_calls[] = {
		[REQUEST_SOURCE_PROBES] = &source_bpf,
		[REQUEST_SOURCE_CUPTI] = &source_agent,
		[REQUEST_SOURCE_HOOKS] = &source_hooks,
		[REQUEST_SOURCE_AUTO] = &source_both,
	};
	const struct source_ops *sources[SESSION_SOURCES] = { NULL };
	int n = 0, source = settled_source(given);

	if (source < 0)
		return 1;
	settled.source = (unsigned int)source;
	/* Another user's process, or any, needs one capability more than a program of our own. */
	if (o->source == REQUEST_SOURCE_PROBES && priv_check(!o->cmd || o->user))
		return 1;
	if (o->command == OPTS_TRACE && !o->argv[1])
		msg_note("tracing every process of this machine until Ctrl-C; 'cudatrace -h' lists "
			 "what else it does");
	sources[n++] = of_calls[o->source];
#define A(name, takes_part) \
	if (takes_part)     \
		sources[n++] = &source_##name;
#include "../source/added.def"
#undef A
	return session_run(o, sources, n);
}

/* clang-format off */
const struct command command_trace = {
	.run = cmd_trace,
	.usage = "Usage: cudatrace [OPTIONS]                      every process of this machine\n"
		 "       cudatrace [OPTIONS] -p PID[,PID...]      processes that run already\n"
		 "       cudatrace [OPTIONS] -- CMD [ARG...]      a program from its first call\n",
	.about = "\nPrints the calls that programs make to CUDA's runtime and driver, with arguments, results and durations.\n",
	.after = "\nExamples:\n"
		 "  cudatrace -p 1234 -e memory,launch            what process 1234 allocates and launches\n"
		 "  cudatrace -p $(pidof python3) -d 10 -c        ten seconds of it, counted by function\n"
		 "  cudatrace --failed                            every failing call of the machine\n"
		 "  cudatrace -e '!query' -o trace.txt -- ./app   a program from its first call, without queries\n"
		 "  cudatrace -e 'cudaMemcpy*' --min-size 1MB     large copies\n"
		 "  cudatrace -k -e sync -p 1234                  where it waits, and which code makes it wait\n"
		 "  cudatrace --format json -o '|jq .name' -- ./app  one JSON object a line, piped into a command\n"
		 "  cudatrace --format flame -o f.html -- ./app   a flame graph to open in a browser\n"
		 "\nWith CMD the rows go to standard error, as with strace, because standard output belongs to CMD. Formats for programs\n"
		 "then need -o FILE or -o '|COMMAND'; -o - means standard output in any case. Without CMD rows go to standard output.\n"
		 "\nExit status: that of CMD (128 + the signal, if a signal ended it); without CMD 0; 1 after an error, 2 for a wrong\n"
		 "command line, 3 with --strict if records were lost. SIGINT goes to CMD, and tracing continues until CMD ends; a\n"
		 "second SIGINT within a second detaches and leaves CMD running, as the end of -d and -n does. SIGTERM and SIGHUP are\n"
		 "passed on to CMD; they end the trace when CMD ends, or after a second.\n",
};
/* clang-format on */
