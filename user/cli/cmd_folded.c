/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_folded.c - `cudatrace folded`: a trace that ends in the stacks of its calls, added up. The
 * options say all of it. */
#include "cmd.h"

/* clang-format off */
const struct command command_folded = {
	.run = cmd_trace,
	.usage = "Usage: cudatrace folded [OPTIONS]                  every process of this machine\n"
		 "       cudatrace folded [OPTIONS] -p PID[,PID...]  processes that run already\n"
		 "       cudatrace folded [OPTIONS] -- CMD [ARG...]  a program from its first call\n",
	.about = "\nAdds up the calls by their stacks, and prints at the end a line for each stack, outermost function first, with its\n"
		 "weight. Flame graph programs read such lines. --format flame writes the flame graph itself, as a page for a browser.\n",
	.after = "\nExamples:\n"
		 "  cudatrace folded -p 1234 -d 10 -o stacks.txt\n"
		 "  cudatrace folded -e sync --weight time --format flame -o waits.html -- ./app\n"
		 "  cudatrace folded -e memory --weight bytes -o '|flamegraph.pl > memory.svg' -- ./app\n"
		 "  cudatrace folded --gpu --weight gpu -o gpu.txt -- ./app    the time on the GPU, by the stacks that caused it\n"
		 "  cudatrace folded --gpu --weight gpu --stack-of range -o gpu.txt -- ./app    by the ranges that caused it\n",
};
/* clang-format on */
