/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_why.c - `cudatrace why`: a trace, or a recording, that ends in what kept the GPU waiting. */
#include "cmd.h"
#include "options/opts_check.h"

static int cmd_why(const struct request *o)
{
	struct request all = *o;

	if (o->replay) {
		all.stack = REQUEST_STACK_DWARF; /* those that were recorded */
		return cmd_replay(&all);
	}
	all.host = true;
	return cmd_trace(&all);
}

static int check(const struct opts_line *l)
{
	const struct request *o = l->o;
	const struct opts_rule rules[] = {
		{ !o->replay, !o->npids && !o->cmd,
		  "what keeps a GPU waiting is told of a program: give -p PID, -- CMD, or a "
		  "recording" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* clang-format off */
const struct command command_why = {
	.run = cmd_why,
	.check = check,
	.sink = &sink_why,
	.usage = "Usage: cudatrace why [OPTIONS] -p PID[,PID...] -d SEC   programs that run now\n"
		 "       cudatrace why [OPTIONS] -- CMD [ARG...]          a program from its start\n"
		 "       cudatrace why [OPTIONS] FILE                     a recording with --host\n",
	.about = "\nSays where the time goes in which the GPU has nothing to do: by the line of code, the file, the lock, the thread or the\n"
		 "process that kept the launching thread from launching. Needs --gpu to know when the GPU was idle; without it the time\n"
		 "between launches is explained instead.\n",
	.after = "\nExamples:\n"
		 "  cudatrace why --gpu -p 1234 -d 10\n"
		 "  cudatrace record --host --gpu -o app.ctrace -- ./app && cudatrace why app.ctrace\n"
		 "  cudatrace why --gpu --fail-if 'gil>2%' --format json -- python3 train.py\n"
		 "\nExit status: 0 whatever was found, or that of CMD; with --fail-if 1 if a condition is true; 1 after an error, 2 for a wrong\n"
		 "command line.\n",
};
/* clang-format on */
