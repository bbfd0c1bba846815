/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_stuck.c - `cudatrace stuck`: which CUDA call each thread sits in, and since when. */
#include "cmd.h"
#include "../source/probe/priv.h"
#include "../stuck/stuck.h"

static int cmd_stuck(const struct opts *o)
{
	if (priv_check(true))
		return 1;
	return stuck_run(o, &source_bpf);
}

/* clang-format off */
const struct command command_stuck = {
	.run = cmd_stuck,
	.usage = "Usage: cudatrace stuck [OPTIONS]\n",
	.about = "\nPrints the threads that are inside a CUDA call for longer than a second, or --over: which call, since when, its\n"
		 "arguments and the stack that led to it. A call that began before cudatrace is found on the thread's stack: FOR is\n"
		 "then a lower bound, as >1.0s, and the arguments are not known. No thread is stopped for it.\n",
	.after = "\nExamples:\n"
		 "  cudatrace stuck                               of every process of this machine\n"
		 "  cudatrace stuck -p 1234 --over 10s\n"
		 "  cudatrace stuck -p 1234 --watch               until SIGINT: what hangs, and when it goes on\n"
		 "\nExit status: 4 when there are such threads (with --watch: at the last look), 5 when none is known but some thread could\n"
		 "not be examined, 0 when there are none, 1 after an error, 2 for a wrong command line.\n",
};
/* clang-format on */
