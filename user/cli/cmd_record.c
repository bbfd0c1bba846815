/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_record.c - `cudatrace record`: a trace that is stored. */
#include "cmd.h"

/* clang-format off */
const struct command command_record = {
	.run = cmd_trace,
	.usage = "Usage: cudatrace record [OPTIONS]                  every process of this machine\n"
		 "       cudatrace record [OPTIONS] -p PID[,PID...]  processes that run already\n"
		 "       cudatrace record [OPTIONS] -- CMD [ARG...]  a program from its first call\n",
	.about = "\nStores a trace in a file; 'cudatrace replay' prints it, in any format. However the\n"
		 "recording ends, everything until one second before its end can be read.\n",
	.after = "\nExamples:\n"
		 "  cudatrace record -o app.ctrace -- ./app\n"
		 "  cudatrace record --start-on cudaProfilerStart --stop-on cudaProfilerStop -- python3 train.py\n"
		 "  cudatrace record --max-size 1GB --rotate 5 -p 1234\n"
		 "  cudatrace record --last 30s --dump-on failed   what led to the first failing call of the machine\n",
};
/* clang-format on */
