/* SPDX-License-Identifier: BSD-2-Clause */
/* select.h - what the user asked to see: the functions of -e, and the filter of events. */
#ifndef CT_SELECT_H
#define CT_SELECT_H

#include "event.h"
#include "../../wire/control.h"

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
	uint32_t either_layer; /* the same of words that mean more than one layer */
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

/* Takes the functions of layers whose calls are scopes out of the selection: these are no calls, and --layers says
 * which are recorded. Returns the kinds of scopes that are to be shown: bits 1 << enum
 * ct_scope_kind. */
uint32_t select_scopes(struct selection *);

/* True when `glob` (or plain name) means this row: its name, or its name without _vN. */
bool select_glob(const char *glob, const struct api_func *);

/* ---- the filter (event/filter.c): what the user asked to see ---- */
struct filter {
	const uint64_t *shown; /* bitmap over the rows of api_funcs; NULL: all */
	/* with a minimum size, calls of functions that have no size are not shown */
	struct ct_filter calls;
	const char *comm_glob; /* NULL: off; fnmatch(3) on the process's name */
	uint32_t tid;	       /* 0: off (initial namespace) */
	const pid_t *pids;     /* as users see them; npids 0: all */
	int npids;
	/* show only device work on this device, and hide calls that are known to work on another
	 * one */
	bool one_device;
	uint32_t device;
	bool nested; /* show calls inside calls */
	/* scopes that are shown: bits 1 << enum ct_scope_kind */
	uint32_t scopes;
	/* show stored calls of functions that this version does not know */
	bool foreign;
	bool by_process; /* also show samples of one process's share of a device */
	/* calls come as CT_CALL_COUNT; calls that were sent one by one as well are then not shown */
	bool counted;
	/* for a recording: also keep hidden calls that say on which device later calls work */
	bool stores;
	/* also hand on names, frames and stacks, for a sink that stores all records */
	bool definitions;
};
bool filter_match(const struct filter *, const struct event *);
/* Checks only the device, which becomes known later than the rest: by then the call already has
 * its number, whether it is shown or not. */
bool filter_match_device(const struct filter *, const struct event *);

#endif
