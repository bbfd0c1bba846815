/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_frames.h - finds the frames of a thread that will be made to call dlopen, for
 * inject_what.frames. It uses the unwinder, which the sources do not know.
 */
#ifndef CT_INJECT_FRAMES_H
#define CT_INJECT_FRAMES_H

#include "../source/inject/inject.h"

struct inject_frames;

struct inject_frames *inject_frames_open(void);	  /* NULL: no memory */
void inject_frames_close(struct inject_frames *); /* takes NULL */

/* Implements inject_what.frames; ctx is a struct inject_frames. A file is read once and then kept
 * for other processes. */
int inject_frames_get(void *ctx, struct target *, const struct inject_thread *, uint64_t *ips,
		      int max, uint64_t *lost_sp);

#endif
