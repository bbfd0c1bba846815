/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_serve.c - `cudatrace serve`: a trace that serves its counts to Prometheus, for good. */
#include "cmd.h"

/* clang-format off */
const struct command command_serve = {
	.run = cmd_trace,
	.sink = &sink_serve,
	.usage = "Usage: cudatrace serve [OPTIONS]\n",
	.about = "\nCounts in the kernel the calls of all processes of this machine, or of selected ones, and serves the sums to Prometheus:\n"
		 "GET /metrics, in the text format 0.0.4 or as OpenMetrics 1.0.0; GET /healthz and /readyz.\n"
		 "Queries (cudaGetDevice and similar) are not counted, unless --queries or -e selects them.\n",
	.after = "\nExamples:\n"
		 "  cudatrace serve\n"
		 "  cudatrace serve --listen :19400 --counters --kernels 20\n",
};
/* clang-format on */
