/* SPDX-License-Identifier: BSD-2-Clause */
/* dump_on.h - parses --dump-on, which says when the flight recorder writes what it holds. */
#ifndef CT_DUMP_ON_H
#define CT_DUMP_ON_H

#include "../event/event.h"

struct dump_on {
	bool failed, end; /* write at a call that failed; write at the end */
	/* bitmap over api_funcs: write at calls of these functions; NULL: none. dump_on_free()
	 * frees it. */
	uint64_t *rows;
};

/* Parses a list of the words failed, end and signal, and of GLOBs of functions, separated by
 * commas. Returns 0, or -errno after one message. The caller frees *d in any case. */
int dump_on_parse(struct dump_on *d, const char *list);
void dump_on_free(struct dump_on *);
/* Checks such a list. Returns 0, or -errno after one message. */
int dump_on_check(const char *list);

#endif
