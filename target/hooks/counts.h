/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counts.h - counts calls in cells of shared memory (hooks_wire.h), in place of recording them: the same
 * sums as those of the kernel side (bpf/count.bpf.h, wire/sums.h). Each thread has cells of its own.
 * The functions are called under the rules of the engine's entry() and leave().
 */
#ifndef CT_HOOKS_COUNTS_H
#define CT_HOOKS_COUNTS_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/* Sets the area in which calls are counted. The caller keeps area and config until the next
 * counts_open(). Returns 0 or -errno. */
int counts_open(struct hooks_area *area, const struct hooks_start *, const struct ct_config *);
/* The thread has taken block i. */
void counts_begin(struct hooks_thread *t, __u32 i);

/* Counts a call that has returned, or (timed false) a call whose return will not be seen. Its times
 * are ticks. */
void counts_call(struct hooks_thread *, struct hooks_call *, const struct ct_spec *, bool failed,
		 bool timed);
/* At the entry of a call that frees: from now on its memory does not count as held, because another
 * thread may get the same address before this call returns. */
void counts_free_begins(struct hooks_call *, const struct ct_spec *);

#endif
