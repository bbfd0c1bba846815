/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - inside the resolve room: the names of kernels, from what calls teach, and CT_NAME
 * records before the calls that need them.
 *
 * Knows rows only by what they teach (api_lesson) and processes only by their numbers: what has
 * to be read of a process is asked of the ops.
 */
#ifndef CT_NAMES_H
#define CT_NAMES_H

#include "../../event/event.h"

struct names_ops {
	/* Every CT_NAME, before the record that needs it. */
	emit_fn out;
	/* The name of a handle that no call has taught; `driver`: the call is one of the
	 * driver's. Valid until the next call. NULL: not known, or not now. The op may be NULL. */
	const char *(*ask)(void *ctx, uint32_t pid, uint64_t handle, bool driver,
			   enum ct_name_source *source, uint32_t *len);
	/* A driver's handle and the name under which it was looked up, whole. May be NULL. */
	void (*teach)(void *ctx, uint32_t pid, uint64_t handle, const char *name, uint32_t len);
	/* Code was unloaded: what was read of the process holds no more. May be NULL. */
	void (*forget)(void *ctx, uint32_t pid);
};

struct names;
/* ctx is handed to the ops. inner: names_wants_inner() is going to be asked. NULL: no memory. */
struct names *names_open(const struct names_ops *, void *ctx, bool inner);
void names_close(struct names *);

/* Learns from a record (CT_CALL, CT_ENTER, CT_MORE, CT_PROCESS, CT_EXEC, CT_FORK, CT_EXIT), and
 * tells the name of the kernel that it is about. The record itself is not handed on. Returns 0,
 * -ENOMEM or out's error. */
int names_record(struct names *, const struct ct_hdr *);
/* Records of calls that unload kernels were lost before at_ns: what may have been unloaded is
 * not believed any more. */
int names_doubt(struct names *, uint64_t at_ns);
bool names_wants_inner(const struct names *);
void names_totals(const struct names *, uint64_t *launches, uint64_t *named);

#endif
