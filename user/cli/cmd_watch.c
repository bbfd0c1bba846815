/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_watch.c - `cudatrace watch`: a trace that says what hangs, when it hangs, and keeps evidence of it. */
#include "cmd.h"
#include "options/opts_check.h"

static int check(const struct opts_line *l)
{
	const struct request *o = l->o;
	const struct opts_rule rules[] = {
		{ o->source != REQUEST_SOURCE_PROBES, true,
		  "only probes see where threads are: leave out --source" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* clang-format off */
const struct command command_watch = {
	.run = cmd_trace,
	.check = check,
	.sink = &sink_watch,
	.usage = "Usage: cudatrace watch [OPTIONS]                  every process of this machine\n"
		 "       cudatrace watch [OPTIONS] -p PID[,PID...]  processes that run now\n"
		 "       cudatrace watch [OPTIONS] -- CMD [ARG...]  a program from its start\n",
	.about = "\nWaits until something hangs, and says what: a rank that has not come to a collective and where it is, collectives that\n"
		 "all ranks have begun and that do not end, ranks that do not call the same, a thread inside a call that does not\n"
		 "return. A rank that others wait for while it computes, reads or writes is named and is no hang. With --dump there\n"
		 "is a folder of evidence for each hang: stacks, processes, the kernel's log, and the trace of the last seconds.\n"
		 "A rank that a signal ends (SIGABRT, SIGSEGV, SIGTERM, SIGKILL...) is reported with who sent it, and has a folder, too.\n",
	.after = "\nExamples:\n"
		 "  cudatrace watch --dump /var/cudatrace\n"
		 "  cudatrace watch --hang 30s --gpu --dump /var/cudatrace -p python3 -f\n"
		 "  cudatrace watch --hang 15s --dump hangs -- torchrun --nproc-per-node 8 train.py\n"
		 "  cudatrace stuck --merge /shared/*/hang.json   one verdict of several nodes\n"
		 "\nExit status: 4 if something hung or a signal ended a rank, else that of CMD, or 0; 1 after an error, 2 for a wrong command line.\n",
};
/* clang-format on */
