/* SPDX-License-Identifier: BSD-2-Clause */
/* dump_on.h - when the flight recorder writes what it holds: what --dump-on says. */
#ifndef CT_DUMP_ON_H
#define CT_DUMP_ON_H

#include "../event/event.h"

struct dump_on {
	bool failed, end; /* at a call that failed, at the end */
	/* bitmap over api_funcs: at calls of these; NULL: none. dump_on_free() frees it */
	uint64_t *rows;
};

/* A list of failed, end, signal and functions as GLOBs, separated by commas. Returns 0, or
 * -errno after one message; *d is to be freed in any case. */
int dump_on_parse(struct dump_on *d, const char *list);
void dump_on_free(struct dump_on *);
/* Is it such a list? 0, or -errno after one message. */
int dump_on_check(const char *list);

#endif
