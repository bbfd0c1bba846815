/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_frames.h - the frames of a thread that is to call dlopen, for inject_what.frames: by
 * the unwinder, which sources do not know.
 */
#ifndef CT_INJECT_FRAMES_H
#define CT_INJECT_FRAMES_H

#include "../source/inject/inject.h"

struct inject_frames;

struct inject_frames *inject_frames_open(void);	  /* NULL: no memory */
void inject_frames_close(struct inject_frames *); /* takes NULL */

/* As inject_what.frames; ctx is a struct inject_frames. Files that were read once are kept for
 * other processes. */
int inject_frames_get(void *ctx, struct target *, const struct inject_thread *, uint64_t *ips,
		      int max, uint64_t *lost_sp);

#endif
