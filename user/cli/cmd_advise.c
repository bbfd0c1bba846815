/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_advise.c - `cudatrace advise`: a trace, or a recording, that ends in what its program
 * could do better. */
#include "cmd.h"

static int cmd_advise(const struct request *o)
{
	struct request all = *o;

	/* stacks of a recording are used. Live, stacks cost time: native ones are taken only if the user asks for
	 * them */
	if (o->replay)
		all.stack = REQUEST_STACK_DWARF;
	else if (!o->stack && !o->no_stack && !o->no_python && o->source != REQUEST_SOURCE_CUPTI)
		all.stack = REQUEST_STACK_PYTHON;
	return o->replay ? cmd_replay(&all) : cmd_trace(&all);
}

/* clang-format off */
const struct command command_advise = {
	.run = cmd_advise,
	.sink = &sink_advise,
	.usage = "Usage: cudatrace advise [OPTIONS] FILE             of a recording\n"
		 "       cudatrace advise [OPTIONS] -p PID -d SEC    of processes that run already\n"
		 "       cudatrace advise [OPTIONS] -- CMD [ARG...]  a program from its first call\n",
	.about = "\nChecks rules, and prints what a program could do better: the evidence, the cost and what to do; the most costly first.\n"
		 "Recordings made with --gpu and -k give the most findings.\n",
	.after = "\nExamples:\n"
		 "  cudatrace record --gpu -k -o app.ctrace -- ./app && cudatrace advise app.ctrace\n"
		 "  cudatrace advise --gpu -k -p 1234 -d 10\n"
		 "  cudatrace advise --fail --min-cost 10ms --format markdown app.ctrace   for CI\n"
		 "\nExit status: 0 whatever was found, or that of CMD; with --fail 1 if there is a warning or something worse; 1 after an\n"
		 "error, 2 for a wrong command line.\n",
};
/* clang-format on */
