/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - inside the resolve room: learns the names of kernels from calls, and emits CT_NAME
 * records before the calls that need them.
 *
 * Knows functions only by what their rows teach (api_name_event), and processes only by their numbers.
 * It uses the ops for what must be read from a process.
 */
#ifndef CT_NAMES_H
#define CT_NAMES_H

#include "../../event/event.h"

struct names_ops {
	/* Gets every CT_NAME, before the record that needs it. */
	emit_fn out;
	/* Finds the name of a handle that no call has taught; `driver`: the call is one of the
	 * driver's. Valid until the next call. NULL: not known, or cannot be found now. The op may
	 * be NULL. */
	const char *(*ask)(void *ctx, uint32_t pid, uint64_t handle, bool driver,
			   enum ct_name_source *source, uint32_t *len);
	/* Gets a driver's handle and the complete name under which it was looked up. The op may be
	 * NULL. */
	void (*teach)(void *ctx, uint32_t pid, uint64_t handle, const char *name, uint32_t len);
	/* Code was unloaded: what was read from the process is not valid any more. The op may be
	 * NULL. */
	void (*forget)(void *ctx, uint32_t pid);
};

struct names;
/* ctx is passed to the ops. inner: the caller will call names_wants_inner(). NULL: no memory. */
struct names *names_open(const struct names_ops *, void *ctx, bool nested);
void names_close(struct names *);

/* Learns from a record (CT_CALL, CT_ENTER, CT_MORE, CT_PROCESS, CT_EXEC, CT_FORK, CT_EXIT), and
 * emits the name of the kernel that the record is about. The record itself is not passed on.
 * Returns 0, -ENOMEM or out's error. */
int names_record(struct names *, const struct ct_hdr *);
/* Call this when records of calls that unload kernels were lost before at_ns: what may have been
 * unloaded is not trusted any more. */
int names_doubt(struct names *, uint64_t at_ns);
bool names_wants_nested(const struct names *);
void names_totals(const struct names *, uint64_t *launches, uint64_t *named);

#endif
