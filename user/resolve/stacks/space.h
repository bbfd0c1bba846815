/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * space.h - a process's address space as it was last read: which object is mapped where.
 *
 * It is a snapshot that keeps the files open, so that a stack can be resolved after its process has
 * ended. The mappings are read again on request, and when an address is in no known mapping; in the
 * second case only so often that reading takes at most a twentieth of the time.
 */
#ifndef CT_SPACE_H
#define CT_SPACE_H

#include "../../proc/target.h"
#include "object.h"

struct space;

enum space_kind {
	SPACE_NONE,    /* in no mapping */
	SPACE_DATA,    /* mapped, no code */
	SPACE_CODE,    /* code that is in no file: made at run time */
	SPACE_OBJECT,  /* code of an object */
	SPACE_UPROBES, /* the kernel's return probes put their trampoline here */
};

struct space_place {
	enum space_kind kind;
	struct object *object; /* SPACE_OBJECT */
	uint64_t address;      /* in the object */
};

struct space *space_open(struct objects *);
struct space *space_copy(const struct space *); /* of a forked child */
void space_close(struct space *);		/* takes NULL */

/* Reads the mappings now. Returns 0, or -errno: what was known stays. */
int space_refresh(struct space *, struct target *);
/* Call this when something was mapped. Reads the mappings, or, if that was done just now, leaves it
 * to space_settle(). */
void space_changed(struct space *, struct target *);
/* Call this before a stack is resolved: does what space_changed() left. */
void space_settle(struct space *, struct target *);
/* Finds where an address is. target may be NULL: then only what is known is used. */
struct space_place space_find(struct space *, struct target *, uint64_t addr);
/* Returns the end of the mapping that contains an address; 0: none. */
uint64_t space_end(const struct space *, uint64_t addr);
/* Changes whenever a snapshot differs from the one before; the same number never means another
 * process's. */
uint64_t space_generation(const struct space *);

#endif
