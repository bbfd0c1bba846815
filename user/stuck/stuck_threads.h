/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_threads.h - what the threads of a process are at: for the ranks of a communicator. */
#ifndef CT_STUCK_THREADS_H
#define CT_STUCK_THREADS_H

#include "../nccl/nccl_job.h"
#include "stuck_look.h"

/* The threads of a process that tell what it is at, at most NCCL_THREADS_MAX: the main thread, those
 * that run Python (with their frames, if `python`), and those that `rows` say are inside a call.
 * The caller frees *out with nccl_threads_free(). Returns how many; 0 when the process is gone; or
 * -ENOMEM. */
int stuck_threads(pid_t pid, const struct stuck_row *rows, size_t nrows, bool python,
		  struct nccl_thread **out);

#endif
