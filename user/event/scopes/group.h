/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group.h - a group of calls of a library for collectives (ncclGroupStart to ncclGroupEnd): what
 * its end launches. Knows no thread.
 */
#ifndef CT_GROUP_H
#define CT_GROUP_H

#include "../event.h"

#define GROUP_FUNCS 8

struct group {
	uint32_t depth;	  /* groups inside each other; the outermost end launches */
	uint16_t members; /* calls; UINT16_MAX: so many or more */
	uint16_t funcs[GROUP_FUNCS];
	uint8_t nfuncs;	 /* different functions; in the order of their rows */
	bool more_funcs; /* there are others */
	bool no_bytes;	 /* those of a call are not known */
	/* of the first call, with what differs at another call replaced by "not known" */
	struct ct_collective all;
	__u64 received; /* bytes; all.bytes are the others */
};

/* Adds a call that was made within the group. */
void group_add(struct group *, uint16_t func, const struct ct_collective *);
/* Fills in what the group's end is for: the communicator if all calls have the same, bytes, how
 * they move. Of sends and receives it is the direction that has more bytes, since both directions
 * of a link are used at one time. */
void group_says(const struct group *, struct ct_collective *);
/* The functions: "ncclSend, ncclRecv". Always NUL-terminated; cut at whole names. */
void group_names(const struct group *, char *text, size_t room);

#endif
