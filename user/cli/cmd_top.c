/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_top.c - `cudatrace top`: a trace that is shown live, by counts. */
#include "cmd.h"

/* clang-format off */
const struct command command_top = {
	.run = cmd_trace,
	.sink = &sink_top,
	.usage = "Usage: cudatrace top [OPTIONS]\n",
	.about = "\nShows live what the processes of this machine, or selected ones, do with their GPUs: calls, launches and bytes a second,\n"
		 "the share of time in the API and in waits, failures. The kernel counts the calls; no event is sent for each call.\n"
		 "Keys: Enter shows a process's functions, k its kernels, t its threads, ? all keys; q ends.\n"
		 "Queries (cudaGetDevice and similar) are not counted, unless --queries or -e selects them.\n",
	.after = "\nExamples:\n"
		 "  cudatrace top\n"
		 "  cudatrace top --counters -i 2\n"
		 "  cudatrace top --gpu -p 1234                   with the time on the GPU\n"
		 "  cudatrace top --batch -n 60 --format json -o top.jsonl\n",
};
/* clang-format on */
