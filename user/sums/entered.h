/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entered.h - the time that agents took to come into processes (CT_ENTERED). It passed inside a call of the
 * program and is none of its own: it is left out of the sums of that call's function, if it is known
 * which one that was. Records of calls show it; of calls that are only counted, it is the only
 * function of the process of which a call took so long.
 */
#ifndef CT_ENTERED_FILE_H
#define CT_ENTERED_FILE_H

#include "../event/event.h"

struct entered_sum {
	uint64_t n, ns; /* left out of sums */
	uint64_t in_sums_ns; /* the time that was not left out, since it is not known in which call it passed */
	uint16_t func; /* the function of all that were left out; CT_NO_FUNC: several, or none */
};

struct entered;
struct entered *entered_open(void);   /* NULL: no memory */
void entered_close(struct entered *); /* takes NULL */

/* A call that is being added to the entry `at`: how much of its time is left out. */
uint64_t entered_call(struct entered *, const struct ct_call *, size_t at);

struct entered_in {
	size_t at;	      /* the entry */
	uint64_t took_ns, ns; /* the call's time, and the part of it that is left out */
	uint16_t func;
};
/* Takes the record of an agent that came in. True: the call was added before; *in says which call it is. */
bool entered_record(struct entered *, const struct ct_hdr *, struct entered_in *in);
/* Returns the next agent whose call is not known, at or behind *i, which begins with 0; NULL: there are no more. */
struct ct_hdr *entered_next(struct entered *, size_t *i);
/* Says that what entered_next() returned last happened in a call of this function. */
void entered_found(struct entered *, struct ct_hdr *, uint16_t func);
void entered_sum(const struct entered *, struct entered_sum *);

#endif
