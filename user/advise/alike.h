/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alike.h - findings that several processes of a program share, as the ranks of a job do: one finding, with the processes that it holds for,
 * those that stand out, and those that do not have it. Knows findings; no rule and no event.
 */
#ifndef CT_ADVISE_ALIKE_H
#define CT_ADVISE_ALIKE_H

#include "advise.h"

struct procs;

/* Puts those together that are of the same rule, program and place. The findings are in their order, the first of those
 * that are put together stays; the others move behind those that stay. Returns how many stay; *bad: no memory. */
size_t alike_join(struct advise_finding *, size_t n, const struct procs *, bool *bad);
void alike_free(struct advise_finding *);

/* Sentences about the other processes; empty where there is nothing to say. */
void alike_say(const struct advise_finding *, struct text *);

#endif
