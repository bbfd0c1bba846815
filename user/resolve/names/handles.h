/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handles.h - inside the resolve room: knows which kernel each handle of a process means, and until
 * when.
 *
 * A handle is gone when its owner was unloaded. An unloading does not search the table. Instead,
 * each entry has the time of the call that it was learned from, and the entry is gone if that time
 * is before the unloading. So if a module's address is reused, its new entries can be distinguished
 * from the old ones, and the thousands of unloadings of a library at exit cost nothing. Knows no
 * function, and no process except its table.
 */
#ifndef CT_HANDLES_H
#define CT_HANDLES_H

#include "../../util/table/chains.h"
#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

/* ---- names, one copy of each ---- */
struct pool_name {
	struct chain_link link;
	uint32_t refs, len;
	bool cut;
	char text[]; /* NUL-terminated, without NUL inside */
};
struct pool;
struct pool *pool_open(size_t max_bytes); /* NULL: no memory */
void pool_close(struct pool *);
/* Returns the name, with a reference for the caller. NULL: no memory, or the names already take
 * max_bytes. */
struct pool_name *pool_get(struct pool *, const char *text, uint32_t len, bool cut);
struct pool_name *pool_ref(struct pool_name *);	  /* takes NULL */
void pool_put(struct pool *, struct pool_name *); /* takes NULL */

/* ---- handles ---- */
#define HANDLE_USED 0x1
#define HANDLE_IN_CONTEXT 0x2 /* ends at the latest with its context */
/* learned from the runtime: it stays when the driver unloads modules */
#define HANDLE_RUNTIME 0x4
#define HANDLE_PART 0x8 /* not a kernel but a module, which belongs to the library `owner` */

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
/* Returns the table for a forked child. It is shared until parent or child learns something. NULL:
 * no memory. */
struct handles *handles_fork(struct handles *);

/* Returns what is known about a handle that is not gone; NULL: nothing. Valid until the next call
 * that changes the table. */
const struct handle *handles_find(struct handles *, uint64_t handle);
/* Learns a handle; this replaces what was known about it. The table takes over the reference to the
 * name. Returns 0, -ENOMEM or -ENOSPC (too many handles: then the table has forgotten all of
 * them). */
int handles_put(struct handles *, const struct handle *);

/* From from_ns on, what belongs to `owner` is unloaded, by the runtime or by the driver. */
int handles_unloaded(struct handles *, uint64_t owner, uint64_t from_ns, bool runtime);
/* From from_ns on, a context is destroyed. */
void handles_context_ended(struct handles *, uint64_t from_ns);
/* Before at_ns, anything that belongs to the driver may have been unloaded without being
 * noticed. */
void handles_doubt(struct handles *, uint64_t at_ns);

#endif
