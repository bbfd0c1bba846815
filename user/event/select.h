/* SPDX-License-Identifier: BSD-2-Clause */
/* select.h - which functions -e asks for. */
#ifndef CT_SELECT_H
#define CT_SELECT_H

#include "event.h"

struct selection {
	uint64_t shown[CT_MAX_FUNCS / 64];
	/* named one by one: the governor does not throttle them */
	uint64_t named[CT_MAX_FUNCS / 64];
	/* removed with '!': nested calls inside these are removed with them */
	uint64_t removed[CT_MAX_FUNCS / 64];
	bool any; /* the user gave a list; until then the selection is empty */
	/* the user gave "none": the selection is empty and stays empty */
	bool none;
	/* layers that a word is about which means nothing else: bits 1 << (domain -
	 * API_FIRST_LAYER) */
	uint32_t layers;
};

/*
 * Adds one comma list to the selection. A word is a class ("memory"), a function's name with or
 * without its _vN, a glob, "all", or "default" (all but INTERNAL); '!' before it removes it
 * instead. If the very first word removes, the selection begins with "default". "none" is the empty
 * selection; it must be the only word. Returns 0, or -EINVAL with one sentence in msg.
 */
int select_add(struct selection *, const char *list, char *msg, size_t size);

/* Call it after the last list; without any list the selection is "default". domain:
 * API_DOMAIN_END for all. Returns 0, or -EINVAL with one sentence in msg if nothing is left
 * although "none" was not given. */
int select_finish(struct selection *, enum api_domain domain, char *msg, size_t size);

/* Takes the functions of layers out of the selection: their calls are no calls, and --layers says
 * which are recorded. Returns the kinds of scopes that are to be shown: bits 1 << enum
 * ct_scope_kind. */
uint32_t select_scopes(struct selection *);

/* True when `glob` (or plain name) means this row: its name, or its name without _vN. */
bool select_glob(const char *glob, const struct api_func *);

#endif
