/* SPDX-License-Identifier: BSD-2-Clause */
/* proc_steps.h - the steps of a process, which the rules about steps share. */
#ifndef CT_PROC_STEPS_H
#define CT_PROC_STEPS_H

#include "../sums/steps.h"
#include "rule.h"

/* Pieces of device work that are kept of a process: at first, and at most. All processes share
 * what advise_may_keep_steps() allows. */
#define PROC_STEPS_FIRST 4096
#define PROC_STEPS_MAX 262144

/* rule: whose event it is; the steps see each event once, however many rules hand it on.
 * Returns 0 or -ENOMEM. */
int proc_steps_event(const struct seen *, const void *rule);
/* Call it after the last event. NULL: there are no steps, or no memory. */
const struct steps *proc_steps_finish(struct advise_process *);
/* What steps found no room for. */
uint64_t proc_steps_no_room(const struct advise_process *);
/* Before proc_steps_finish(). */
struct holes;
void proc_steps_holes(const struct advise_process *, const struct holes *);
void proc_steps_close(struct proc_steps *);

#endif
