/* SPDX-License-Identifier: BSD-2-Clause */
/* evidence_about.h - what processes and the machine are like, and what the kernel said: parts of evidence.h. */
#ifndef CT_EVIDENCE_ABOUT_H
#define CT_EVIDENCE_ABOUT_H

#include "../../util/io/out.h"

/* Memory, times, the libraries that matter with their paths, the names of variables that matter. Of those the values
 * only of some that are numbers. */
void evidence_process(struct out *, pid_t pid);
void evidence_machine(struct out *, const char *version);
/* The last lines of the kernel itself; those that programs have written there are left out. */
void evidence_kernel_log(struct out *);

#endif
