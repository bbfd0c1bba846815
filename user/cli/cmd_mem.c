/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_mem.c - `cudatrace mem`: a trace of what takes memory and gives it back. The options say
 * all of it. */
#include "cmd.h"
#include "options/opts_check.h"

static int cmd_mem(const struct request *o)
{
	return o->replay ? cmd_replay(o) : cmd_trace(o);
}

static int cmd_mem_check(const struct opts_line *l)
{
	bool json = request_wants(l->o).for_programs;
	const struct opts_rule rules[] = {
		{ json, opts_is_given(l, "by"), "--format json has all tables: leave out --by" },
		{ json, opts_is_given(l, "top"), "--format json has all rows: leave out --top" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* clang-format off */
const struct command command_mem = {
	.run = cmd_mem,
	.check = cmd_mem_check,
	.sink = &sink_mem,
	.usage = "Usage: cudatrace mem [OPTIONS]                   every process of this machine\n"
		 "       cudatrace mem [OPTIONS] -p PID[,PID...]   processes that run already\n"
		 "       cudatrace mem [OPTIONS] -- CMD [ARG...]   a program from its first call\n"
		 "       cudatrace mem [OPTIONS] FILE              of a recording\n",
	.about = "\nShows the memory that programs allocate from CUDA: what is held and the largest amount that was held, by process,\n"
		 "device, kind and call site; what was never freed; frees that went wrong; and who held what when memory ran out.\n",
	.after = "\nExamples:\n"
		 "  cudatrace mem -- ./app\n"
		 "  cudatrace mem --leak-check -- ./tests          status 4 if memory was leaked, 5 if that is not known\n"
		 "  cudatrace mem --watch=5 -p 1234                what has grown, every 5 seconds\n"
		 "  cudatrace mem --by stack --top 50 app.ctrace\n",
};
/* clang-format on */
