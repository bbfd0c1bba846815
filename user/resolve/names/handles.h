/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handles.h - inside the resolve room: which kernel each handle of a process is, and until when.
 *
 * A handle is gone when what it belongs to was unloaded. That is not looked for: an entry has
 * the time of the call that it was learned from, and it is gone when that is before the
 * unloading. So entries that a recycled module address owns now are told from those that it
 * owned before, and a library's thousands of unloadings at exit cost nothing. Knows no function
 * and no process beyond its table.
 */
#ifndef CT_HANDLES_H
#define CT_HANDLES_H

#include "../../util/types.h"

/* ---- names, one copy of each ---- */
struct pool_name {
	struct pool_name *next;
	uint32_t hash, refs, len;
	bool cut;
	char text[]; /* NUL-terminated, without NUL inside */
};
struct pool;
struct pool *pool_open(size_t max_bytes); /* NULL: no memory */
void pool_close(struct pool *);
/* The name, with a reference for the caller. NULL: no memory, or there are max_bytes of names. */
struct pool_name *pool_get(struct pool *, const char *text, uint32_t len, bool cut);
struct pool_name *pool_ref(struct pool_name *);	  /* takes NULL */
void pool_put(struct pool *, struct pool_name *); /* takes NULL */

/* ---- handles ---- */
#define HANDLE_USED 0x1
#define HANDLE_IN_CONTEXT 0x2 /* lives no longer than a context */
/* learned of the runtime: unloadings of the driver's modules do not concern it */
#define HANDLE_RUNTIME 0x4
#define HANDLE_PART 0x8 /* no kernel: a module, which belongs to the library `owner` */

struct handle {
	uint64_t handle;
	struct pool_name *name; /* NULL: not known */
	uint64_t owner;		/* 0: not known */
	uint64_t learned_ns;	/* start of the call that it was learned from */
	uint8_t source;		/* enum ct_name_source */
	uint8_t flags;
};

struct handles;
struct handles *handles_open(struct pool *); /* NULL: no memory */
void handles_close(struct handles *);
/* A forked child's. Shared until one of the two learns something. NULL: no memory. */
struct handles *handles_fork(struct handles *);

/* What is known of a handle that is not gone; NULL: nothing. Valid until the next call that
 * changes the table. */
const struct handle *handles_find(struct handles *, uint64_t handle);
/* Learns; the new knowledge takes the place of the old. A reference to its name goes to the
 * table. Returns 0, -ENOMEM or -ENOSPC (too many: nothing is known of any handle then). */
int handles_put(struct handles *, const struct handle *);

/* At from_ns what belongs to `owner` began to be unloaded, by the runtime or by the driver. */
int handles_unloaded(struct handles *, uint64_t owner, uint64_t from_ns, bool runtime);
/* At from_ns a context began to be ended. */
void handles_context_ended(struct handles *, uint64_t from_ns);
/* Before at_ns anything of the driver's may have been unloaded, unnoticed. */
void handles_doubt(struct handles *, uint64_t at_ns);

#endif
