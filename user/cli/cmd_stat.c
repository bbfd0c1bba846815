/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_stat.c - `cudatrace stat`: a trace that only counts. The options say all of it but how often. */
#include "cmd.h"
#include "../session/session.h"
#include "../util/msg.h"

/* Each run is one of its own, with sums of its own, one after the other in the files. */
static int run_again(const struct opts *o)
{
	struct opts one = *o;
	int status = 0;

	for (uint64_t i = 0; i < o->runs && !status; i++) {
		msg_note("run %llu of %llu", (unsigned long long)i + 1,
			 (unsigned long long)o->runs);
		one.append = o->append || i;
		status = cmd_trace(&one);
		if ((status || session_interrupted()) && i + 1 < o->runs) {
			msg_warn("run %llu ended %s: the others are left out",
				 (unsigned long long)i + 1,
				 status ? "with an error" : "before its time");
			return status ? status : 1;
		}
	}
	return status;
}

static int cmd_stat(const struct opts *o)
{
	if (o->replay)
		return cmd_replay(o);
	return o->runs > 1 ? run_again(o) : cmd_trace(o);
}

/* clang-format off */
const struct command command_stat = {
	.run = cmd_stat,
	.sink = &sink_stat,
	.usage = "Usage: cudatrace stat [OPTIONS]                   every process of this machine\n"
		 "       cudatrace stat [OPTIONS] -p PID[,PID...]   processes that run already\n"
		 "       cudatrace stat [OPTIONS] -- CMD [ARG...]   start a program and count from its first call\n"
		 "       cudatrace stat [OPTIONS] FILE              the sums of a recording's calls\n",
	.about = "\nLets the kernel count the calls, without an event for each call, and prints the sums at the end:\n"
		 "calls, failures, times and bytes by function; bytes by direction; launches; the time spent waiting.\n",
	.after = "\nExamples:\n"
		 "  cudatrace stat -p 1234 -d 10\n"
		 "  cudatrace stat --by process -d 5                who calls what, of the whole machine\n"
		 "  cudatrace stat --by kernel -e launch -- ./app\n"
		 "  cudatrace stat --hist -e sync -p 1234\n"
		 "  cudatrace stat --json -o base.json -- ./app     for other programs, and for compare\n",
};
/* clang-format on */
