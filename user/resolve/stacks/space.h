/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * space.h - a process's address space as it was seen last: which object is mapped where.
 *
 * A snapshot of its own, with the files open, so that a stack can be resolved after its process
 * has gone. Read anew when told to, and when an address is in no known mapping, then only so
 * often that reading takes a twentieth of the time.
 */
#ifndef CT_SPACE_H
#define CT_SPACE_H

#include "../../proc/target.h"
#include "object.h"

struct space;

enum space_kind {
	SPACE_NONE,    /* in no mapping */
	SPACE_DATA,    /* mapped, no code */
	SPACE_CODE,    /* code of no file: made at run time */
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
/* Something was mapped. Reads the mappings, or, where that was done just now, leaves it to
 * space_settle(). */
void space_changed(struct space *, struct target *);
/* Before a stack: what space_changed() left. */
void space_settle(struct space *, struct target *);
/* Where an address is. target may be NULL: then what is known is all there is. */
struct space_place space_find(struct space *, struct target *, uint64_t addr);
/* The end of the mapping that holds an address; 0: none. */
uint64_t space_end(const struct space *, uint64_t addr);
/* Changes whenever a snapshot differs from the one before; the same number never means another
 * process's. */
uint64_t space_generation(const struct space *);

#endif
