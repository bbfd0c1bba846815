/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_holes.h - what is not seen of a process that has hooks: functions without a hook, partly hooked, or
 * for a time without; calls of children in its memory; and that its hooks are gone. Makes the records of
 * it, when something has changed. What the process says of itself is believed, up to the number of functions
 * that it was asked to hook.
 */
#ifndef CT_HOOKS_HOLES_H
#define CT_HOOKS_HOLES_H

#include "../../event/event.h"
#include "../../../wire/hooks_wire.h"

struct hooks_batch;
struct hooks_holes;

/* NULL: no memory. from_ns: since when the process has hooks. owners: takes functions without a hook, or partly hooked, that are
 * not of a layer, if it takes functions at all; NULL: nobody does. */
struct owners;
struct hooks_holes *hooks_holes_open(uint32_t pid, uint64_t from_ns, struct owners *owners);
void hooks_holes_close(struct hooks_holes *); /* takes NULL, as the others */

/* A message to it: if it is a list of functions, the results of these come in the same order. */
void hooks_holes_sent(struct hooks_holes *, const void *msg, size_t n);
/* The next result (enum hook_result): 0: it is hooked. Returns whether the function's calls are seen here, or were given to
 * probes. */
bool hooks_holes_result(struct hooks_holes *, int result);
/* In all, so many of those without a hook were partly hooked later. */
void hooks_holes_late(struct hooks_holes *, uint32_t late);
/* Functions, PLAN_WORDS words, that cannot have hooks (CT_HOLE_INDIRECT, CT_HOLE_SHARED_CODE). */
void hooks_holes_silent(struct hooks_holes *, enum ct_hole_reason, const uint64_t *funcs);
/* Files with a runtime without symbols, whose functions were not found. They stay until the next call, or hooks_holes_close(). */
struct strings;
void hooks_holes_stripped(struct hooks_holes *, const struct strings *files);
/* Functions that were without hooks for a time. */
void hooks_holes_interrupted(struct hooks_holes *, uint64_t functions);
/* It ran in this time before the hooks of what it had mapped were on. comm: its name. */
void hooks_holes_alone(struct hooks_holes *, uint64_t from_ns, uint64_t to_ns, const char *comm);
/* A child of vfork(2) has made calls. */
void hooks_holes_shared(struct hooks_holes *);
/* Its calls are not known from then on: CT_HOLE_NO_HOOKS, CT_HOLE_HOOKS_GONE. The first one counts. */
void hooks_holes_gone(struct hooks_holes *, enum ct_hole_reason, uint64_t from_ns);

uint64_t hooks_holes_unhooked(const struct hooks_holes *);
/* How many functions of the runtime and of the driver (HOOKS_F_FIRST) have no hook because there was no room. */
unsigned int hooks_holes_no_room(const struct hooks_holes *);
/* Are there functions without a hook, or partly hooked, that are not of a layer? */
bool hooks_holes_lacks(const struct hooks_holes *);
uint64_t hooks_holes_partly(const struct hooks_holes *);

/* Adds what has changed. 0 or -ENOMEM. */
int hooks_holes_tell(struct hooks_holes *, struct hooks_batch *);

#endif
