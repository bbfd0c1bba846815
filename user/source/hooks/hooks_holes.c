/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_holes.c - see hooks_holes.h. The first functions of a reason have rows of their own, with their
 * names; the others are a number. Which functions were hooked late is not known: then they are a
 * number, too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/api.h"
#include "../../event/holes/holes.h"
#include "../../util/table/array.h"
#include "../../flow/plan.h"
#include "../owners.h"
#include "hooks_holes.h"
#include "hooks_ring.h"
#include "../../util/strings.h"

#define NAMED 16 /* functions of a process and reason that have rows of their own */

/* Functions of one reason. */
struct group {
	enum ct_hole_reason reason;
	uint16_t rows[NAMED]; /* of api_funcs[] */
	int named, told;
	bool unnamed; /* their names are taken back */
	uint64_t all, stated_rest;
};

struct hooks_holes {
	uint32_t pid;
	uint64_t from_ns;
	struct asked {
		uint16_t row;
		bool first;
	} * asked; /* the functions that it was asked to hook */
	unsigned int no_room;
	struct owners *owners; /* NULL: takes no functions */
	size_t n, room, answered;
	struct group unhooked, partly, indirect, shared_code;
	uint64_t silent[2][PLAN_WORDS]; /* functions of the last two */
	const struct strings *stripped; /* NULL: none yet */
	uint32_t stated_stripped;
	uint32_t late;
	bool lacks; /* a function that is not of a layer has no hook, or is hooked partly */
	uint64_t interrupted, stated_interrupted;
	bool shared, stated_shared;
	struct ct_unprobed alone; /* h.size 0: it did not run alone, or that has been told */
	bool stated_alone;
	uint16_t gone; /* 0: they are there */
	bool stated_gone;
	uint64_t gone_ns;
};

struct hooks_holes *hooks_holes_open(uint32_t pid, uint64_t from_ns, struct owners *owners)
{
	struct hooks_holes *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->pid = pid;
	h->from_ns = from_ns;
	owners_again(owners, (pid_t)pid);
	h->owners = owners && owners_opts(owners)->functions ? owners : NULL;
	h->unhooked.reason = CT_HOLE_UNHOOKED;
	h->partly.reason = CT_HOLE_PARTLY_HOOKED;
	h->indirect.reason = CT_HOLE_INDIRECT;
	h->shared_code.reason = CT_HOLE_SHARED_CODE;
	return h;
}

void hooks_holes_close(struct hooks_holes *h)
{
	if (h)
		free(h->asked);
	free(h);
}

/* ---- what is learnt ---- */

void hooks_holes_sent(struct hooks_holes *h, const void *msg, size_t n)
{
	struct hooks_list l;

	if (!h || n < sizeof(l))
		return;
	memcpy(&l, msg, sizeof(l));
	for (uint32_t i = 0; l.h.type == HOOKS_FUNCS && i < l.n; i++) {
		struct hooks_func f;

		memcpy(&f, (const char *)msg + sizeof(l) + i * sizeof(f), sizeof(f));
		if (!array_fit(h->asked, h->room, h->n + 1))
			return; /* its name is not known */
		h->asked[h->n++] = (struct asked){ (uint16_t)CT_COOKIE_FUNC(f.cookie),
						   f.flags & HOOKS_F_FIRST };
	}
}

static void add(struct group *g, int row)
{
	g->all++;
	if (row < 0 || g->named == NAMED || g->unnamed)
		return;
	for (int i = 0; i < g->named; i++)
		if (g->rows[i] == row) /* in another library: counted with the rest */
			return;
	g->rows[g->named++] = (uint16_t)row;
}

bool hooks_holes_result(struct hooks_holes *h, int result)
{
	int row = -1;
	bool first = false;

	if (!h)
		return !result;
	if (h->answered < h->n) {
		const struct asked *a = &h->asked[h->answered++];

		row = a->row;
		first = a->first;
	}
	if (row >= api_nfuncs)
		row = -1;
	if (result && h->owners && row >= 0 && !api_funcs[row].layer &&
	    !owners_give_function(h->owners, (pid_t)h->pid, row))
		return true;
	h->no_room += first && result == HOOKS_NO_ROOM;
	h->lacks |= result && (row < 0 || !api_funcs[row].layer);
	if (result)
		add(result == HOOKS_PARTLY ? &h->partly : &h->unhooked, row);
	return !result;
}

void hooks_holes_silent(struct hooks_holes *h, enum ct_hole_reason reason, const uint64_t *funcs)
{
	bool indirect = reason == CT_HOLE_INDIRECT;

	for (int i = 0; h && i < api_nfuncs; i++) {
		if (!plan_has(funcs, i) || plan_has(h->silent[indirect], i))
			continue;
		plan_add(h->silent[indirect], i);
		add(indirect ? &h->indirect : &h->shared_code, i);
	}
}

void hooks_holes_stripped(struct hooks_holes *h, const struct strings *files)
{
	if (h)
		h->stripped = files;
}

void hooks_holes_late(struct hooks_holes *h, uint32_t late)
{
	uint32_t more;

	/* the process says so: not more than were refused */
	if (!h || late <= h->late || late - h->late > h->unhooked.all)
		return;
	more = late - h->late;
	h->late = late;
	h->unhooked.all -= more;
	h->unhooked.unnamed = true;
	h->partly.all += more;
}

void hooks_holes_interrupted(struct hooks_holes *h, uint64_t functions)
{
	if (h)
		h->interrupted = functions;
}

void hooks_holes_alone(struct hooks_holes *h, uint64_t from_ns, uint64_t to_ns, const char *comm)
{
	if (!h)
		return;
	if (h->alone.h.size && h->alone.h.start_ns < from_ns)
		from_ns = h->alone.h.start_ns;
	h->alone = (struct ct_unprobed){
		.h = { .size = sizeof(h->alone),
		       .kind = CT_UNPROBED,
		       .start_ns = from_ns,
		       .end_ns = to_ns },
		.ns_pid = h->pid,
	};
	snprintf(h->alone.comm, sizeof(h->alone.comm), "%s", comm);
}

void hooks_holes_shared(struct hooks_holes *h)
{
	if (h)
		h->shared = true;
}

void hooks_holes_gone(struct hooks_holes *h, enum ct_hole_reason reason, uint64_t from_ns)
{
	if (!h || h->gone)
		return;
	h->gone = (uint16_t)reason;
	h->gone_ns = from_ns;
}

uint64_t hooks_holes_unhooked(const struct hooks_holes *h)
{
	return h ? h->unhooked.all : 0;
}

unsigned int hooks_holes_no_room(const struct hooks_holes *h)
{
	return h ? h->no_room : 0;
}

bool hooks_holes_lacks(const struct hooks_holes *h)
{
	return h && h->lacks;
}

uint64_t hooks_holes_partly(const struct hooks_holes *h)
{
	return h ? h->partly.all : 0;
}

/* ---- records ---- */

static int put(const struct hooks_holes *h, enum ct_hole_reason reason, enum ct_hole_state state,
	       uint64_t from_ns, uint64_t count, const char *text, struct hooks_batch *b)
{
	struct hole_text t = { .hole = hole_of(h->pid, CT_HOLE_CALLS, state, reason) };

	hole_when(&t.hole, from_ns, CT_HOLE_OPEN);
	t.hole.count = count;
	hole_say(&t, text);
	return hooks_batch_add(b, &t.hole.h);
}

static int put_group(const struct hooks_holes *h, struct group *g, struct hooks_batch *b)
{
	uint64_t rest;
	int err = 0;

	/* taken back: no function */
	if (g->unnamed)
		for (int i = 0; i < g->told && !err; i++)
			err = put(h, g->reason, CT_HOLE_REFUSED, h->from_ns, 0,
				  api_funcs[g->rows[i]].name, b);
	if (g->unnamed)
		g->named = g->told = 0;
	for (; g->told < g->named && !err; g->told++)
		err = put(h, g->reason, CT_HOLE_REFUSED, h->from_ns, 1,
			  api_funcs[g->rows[g->told]].name, b);
	rest = g->all - (uint64_t)g->named;
	if (err || rest == g->stated_rest)
		return err;
	g->stated_rest = rest;
	return put(h, g->reason, CT_HOLE_REFUSED, h->from_ns, rest, "", b);
}

int hooks_holes_tell(struct hooks_holes *h, struct hooks_batch *b)
{
	int err;

	if (!h)
		return 0;
	err = put_group(h, &h->unhooked, b);
	if (!err)
		err = put_group(h, &h->partly, b);
	if (!err)
		err = put_group(h, &h->indirect, b);
	if (!err)
		err = put_group(h, &h->shared_code, b);
	for (; !err && h->stripped && h->stated_stripped < h->stripped->n; h->stated_stripped++)
		err = put(h, CT_HOLE_STRIPPED, CT_HOLE_REFUSED, h->from_ns, 1,
			  strings_get(h->stripped, h->stated_stripped), b);
	if (!err && h->interrupted != h->stated_interrupted) {
		h->stated_interrupted = h->interrupted;
		err = put(h, CT_HOLE_INTERRUPTED, CT_HOLE_REFUSED, h->from_ns, h->interrupted, "",
			  b);
	}
	if (!err && h->alone.h.size) {
		/* a process counts once */
		h->alone.processes = !h->stated_alone;
		h->stated_alone = true;
		err = hooks_batch_add(b, &h->alone.h);
		h->alone.h.size = 0;
	}
	if (!err && h->shared && !h->stated_shared) {
		h->stated_shared = true;
		err = put(h, CT_HOLE_SHARED_MEMORY, CT_HOLE_UNSEEN, h->from_ns, 0, "", b);
	}
	if (!err && h->gone && !h->stated_gone) {
		h->stated_gone = true;
		err = put(h, (enum ct_hole_reason)h->gone, CT_HOLE_UNSEEN, h->gone_ns, 0, "", b);
	}
	return err;
}
