/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inside.h - functions of capture.c for the other parts that make records. All of them are for use
 * at a hook.
 */
#ifndef CT_HOOKS_INSIDE_H
#define CT_HOOKS_INSIDE_H

#include <stdbool.h>
#include <sys/uio.h>

#include "../engine/engine.h"
#include "../../wire/hooks_wire.h"

extern struct ct_spec capture_specs[CT_MAX_FUNCS];

__u64 capture_now(void);     /* in the unit of the area's clock */
__u32 capture_process(void); /* the number of this process */
/* Copies blocks of the program's memory, one behind the other. Returns how many bytes of them, up to a place that
 * is not mapped. */
__u64 capture_gather(void *to, __u64 bytes, const struct iovec *from, __u32 n);
/* Copies a call's first n words. */
void capture_words(const struct hook_regs *, __u64 *to, __u32 n);
/* Does the reads of a row (capture/reads.h); when: CT_AT_ENTRY or CT_AT_RETURN. */
void capture_reads(struct hooks_call *, __u32 func, __u32 when);
/* Writes a record of so many bytes into the thread's ring; a record that finds no room is counted
 * as lost. */
bool capture_put(struct hooks_thread *, const struct ct_hdr *, __u64 size);

#endif
