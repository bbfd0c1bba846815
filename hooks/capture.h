/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.h - what is done at a hook: the record of a call is made, as the kernel side makes it
 * (bpf/capture.bpf.h), and written into the ring of its thread. Knows no socket and no code.
 */
#ifndef CT_HOOKS_CAPTURE_H
#define CT_HOOKS_CAPTURE_H

#include <stdbool.h>

#include "engine.h"
#include "wire.h"

/*
 * At each call's entry, with the cookie of its function (CT_COOKIE()), and at its return; as the
 * engine's entry() and leave() are called. The first returns whether the return is wanted.
 */
bool capture_enters(struct hook_frame *, const struct hook_regs *, __u64 cookie);
void capture_leaves(struct hook_frame *, __u64 result);

/* From here on records go to this area (of hooks_area_bytes()), which stays mapped until another
 * one, or capture_close(), takes its place. Returns 0 or -errno. */
int capture_open(int area_fd, const struct hooks_start *);
void capture_spec(unsigned int row, const struct ct_spec *);
/* Nothing is recorded from here on. A thread that is inside may still write into memory that nobody
 * reads. */
void capture_close(void);
/* In a forked child: the area is the parent's. */
void capture_forget(void);
/* A thread of the process is about to be given another name; the caller may have been. */
void capture_renames(void);
void capture_renamed(void);
/* Are calls recorded? */
bool capture_is_open(void);

#endif
