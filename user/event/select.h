/* SPDX-License-Identifier: BSD-2-Clause */
/* select.h - which functions -e asks for. */
#ifndef CT_SELECT_H
#define CT_SELECT_H

#include "event.h"

struct selection {
	uint64_t shown[CT_MAX_FUNCS / 64];
	uint64_t named[CT_MAX_FUNCS / 64]; /* by their own name: the governor leaves them alone */
	/* taken out with '!': what is called inside of these goes with them */
	uint64_t removed[CT_MAX_FUNCS / 64];
	bool any; /* something was said; until then nothing is in it */
	/* "none" was said: the selection is empty, and stays so */
	bool none;
};

/*
 * Adds one comma list to the selection. A word is a class ("memory"), a function's name with or
 * without its _vN, a glob, "all", or "default" (all but INTERNAL); '!' before it takes it out
 * instead. If the very first word takes out, the selection begins with "default". "none" is the
 * empty selection; it must be the only word. Returns 0, or -EINVAL with one sentence in msg.
 */
int select_add(struct selection *, const char *list, char *msg, size_t size);

/* Call after the last list: without any, the selection is "default". domain: API_DOMAIN_END for
 * both. Returns 0, or -EINVAL when nothing is left though "none" was not said, with one sentence
 * in msg. */
int select_finish(struct selection *, enum api_domain domain, char *msg, size_t size);

/* True when `glob` (or plain name) means this row: its name, or its name without _vN. */
bool select_glob(const char *glob, const struct api_func *);

#endif
