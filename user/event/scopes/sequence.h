/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sequence.h - the numbers of a communicator's collectives. They count from its making on, so that
 * all ranks have the same.
 *
 * Of a communicator from before the trace the process knows how many were begun. While the process
 * runs, a reading of that is good only if nothing was under way meanwhile, which the calls show that
 * are seen later. Numbers are given when two such readings agree with the calls between them.
 */
#ifndef CT_SEQUENCE_H
#define CT_SEQUENCE_H

#include "../event.h"

struct sequence {
	uint64_t begun;	  /* so many, if `known` or `supposed` */
	bool known;	  /* calls have numbers */
	bool supposed;	  /* by one reading */
	bool never;	  /* readings cannot tell it */
	uint32_t pending; /* calls that have begun, and that were not seen to be launched */
	uint32_t readings;
	/* the newest reading, between two times; until_ns 0: there is none */
	uint64_t read, from_ns, until_ns;
};

/* A collective begins. Returns its number; 0: it is not known. */
uint64_t sequence_begin(struct sequence *, uint64_t start_ns);
/* A collective has failed, and does not count. number: what it was given, or 0. */
void sequence_undo(struct sequence *, uint64_t number);
/* So many collectives were launched, by a call that ended then. Returns true if a reading could tell
 * more: sequence_read() is to be called with one. */
bool sequence_launched(struct sequence *, uint32_t n, uint64_t end_ns);
void sequence_read(struct sequence *, uint64_t begun, uint64_t from_ns, uint64_t until_ns);

#endif
