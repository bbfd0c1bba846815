/* SPDX-License-Identifier: BSD-2-Clause */
/* collectives.c - see collectives.h. */
#include <stdlib.h>
#include <string.h>

#include "../../util/table/owned.h"
#include "collectives.h"
#include "sequence.h"

#define COMMUNICATORS_MAX 65536
#define SHARE 16 /* one process has this part of them */

struct communicator {
	uint32_t pid, pad;
	uint64_t handle;
	uint32_t rank, ranks; /* or CT_UNKNOWN */
	uint32_t tries;	      /* to ask the process for it */
	uint64_t hash;	      /* 0: not known */
	struct sequence sequence;
};

struct collectives {
	struct owned communicators; /* of struct communicator */
	communicator_fn ask;
	void *ctx;
};

struct collectives *collectives_open(communicator_fn ask, void *ctx)
{
	struct collectives *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	owned_open_of(&c->communicators, struct communicator, handle, COMMUNICATORS_MAX, SHARE);
	c->ask = ask;
	c->ctx = ctx;
	return c;
}

void collectives_close(struct collectives *c)
{
	if (!c)
		return;
	owned_close(&c->communicators);
	free(c);
}

bool collectives_has(const struct api_func *f)
{
	return f->layer >= API_LAYER_WHOLE;
}

static struct communicator *collectives_find(const struct collectives *c, uint32_t pid,
					     uint64_t handle)
{
	const struct communicator key = { .pid = pid, .handle = handle };

	return handle ? owned_find(&c->communicators, &key) : NULL;
}

/* The communicator, made if it is not there. NULL: its process, or all together, have too many. */
static struct communicator *get(struct collectives *c, uint32_t pid, uint64_t handle)
{
	const struct communicator key = { .pid = pid, .handle = handle };
	struct communicator *m;
	bool made;

	if (!handle)
		return NULL;
	m = owned_get(&c->communicators, &key, &made);
	if (made)
		m->rank = m->ranks = CT_UNKNOWN;
	return m;
}

void collectives_forget(struct collectives *c, uint32_t pid)
{
	owned_forget(&c->communicators, pid);
}

/* ---- what the process's memory says ---- */

/* Asks the process, unless it has answered. Not at each call: there may be no answer. What does not
 * agree with what calls said is not believed. */
static void ask(const struct collectives *c, struct communicator *m)
{
	struct communicator_is is;
	uint32_t tries = m->tries;

	if (!c->ask || m->hash)
		return;
	m->tries++;
	if ((tries & (tries - 1)) || !c->ask(c->ctx, m->pid, m->handle, &is))
		return;
	if ((m->rank != CT_UNKNOWN && m->rank != is.rank) ||
	    (m->ranks != CT_UNKNOWN && m->ranks != is.ranks))
		return;
	m->hash = is.hash;
	m->rank = is.rank;
	m->ranks = is.ranks;
}

/* Reads how many collectives it has begun. */
static void count(const struct collectives *c, struct communicator *m)
{
	struct communicator_is is;

	if (!c->ask || !m->hash)
		return;
	if (!c->ask(c->ctx, m->pid, m->handle, &is) || is.hash != m->hash || !is.counted)
		m->sequence.never = true;
	else
		sequence_read(&m->sequence, is.begun, is.from_ns, is.until_ns);
}

static void say(const struct communicator *m, struct ct_collective *out)
{
	out->rank = m->rank;
	out->ranks = m->ranks;
	out->hash = m->hash;
}

/* ---- what a call says ---- */

/* Bytes of an element, by NCCL's number of its type; 0: a type that is not known. */
static uint64_t element_bytes(uint32_t datatype)
{
	static const uint8_t bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return datatype < ARRAY_LEN(bytes) ? bytes[datatype] : 0;
}

static void hear_input(const struct field *arg, struct ct_collective *out)
{
	static const struct {
		const char *name;
		size_t at;
	} numbers[] = {
		{ "datatype", offsetof(struct ct_collective, datatype) },
		{ "op", offsetof(struct ct_collective, op) },
		{ "root", offsetof(struct ct_collective, root) },
		{ "peer", offsetof(struct ct_collective, peer) },
		{ "nranks", offsetof(struct ct_collective, ranks) },
		{ "ndev", offsetof(struct ct_collective, ranks) },
		{ "rank", offsetof(struct ct_collective, rank) },
		{ "myrank", offsetof(struct ct_collective, rank) },
	};
	uint32_t low = arg->i < 0 ? CT_UNKNOWN : (uint32_t)arg->u;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (!strcmp(arg->name, numbers[i].name))
			memcpy((char *)out + numbers[i].at, &low, sizeof(low));
	if (!strcmp(arg->name, "comm"))
		out->comm = arg->u;
	else if (!strcmp(arg->name, "stream"))
		out->stream = arg->u;
	if (!arg->label || strcmp(arg->label, "count"))
		return;
	out->count = arg->u;
	out->flags |= CT_COLLECTIVE_COUNT;
}

static void hear_inputs(const struct ct_call *call, struct ct_collective *out)
{
	struct field args[EVENT_MAX_FIELDS];
	int n = api_decode(call, API_ARCH_HERE, args, EVENT_MAX_FIELDS);

	for (int i = 0; i < n; i++)
		if (args[i].name && !args[i].out && !args[i].absent &&
		    args[i].type != FIELD_UNKNOWN && args[i].type != FIELD_OPEN &&
		    args[i].type != FIELD_CLOSE)
			hear_input(&args[i], out);
	if (out->flags & CT_COLLECTIVE_COUNT &&
	    (__builtin_mul_overflow(out->count, element_bytes(out->datatype), &out->bytes) ||
	     out->bytes >= CT_SIZE_MOST))
		out->bytes = 0; /* there is no such size */
}

static enum ct_collective_how how(const struct api_func *f)
{
	switch (f->layer) {
	case API_LAYER_WHOLE: return CT_COLLECTIVE_WHOLE;
	case API_LAYER_PARTS:
	case API_LAYER_SPREAD: return CT_COLLECTIVE_PARTS;
	case API_LAYER_ROOTED: return CT_COLLECTIVE_ROOTED;
	case API_LAYER_SEND:
	case API_LAYER_RECEIVE: return CT_COLLECTIVE_PEER;
	default: return CT_COLLECTIVE_OTHER;
	}
}

/* All ranks do the same collectives, and not the same sends. NCCL does not count those that it makes
 * of sends. */
static bool is_numbered(const struct api_func *f, const struct ct_collective *r)
{
	return r->how != CT_COLLECTIVE_OTHER && r->how != CT_COLLECTIVE_PEER &&
	       f->layer != API_LAYER_SPREAD && !(r->flags & CT_COLLECTIVE_INNER);
}

void collectives_begin(struct collectives *c, const struct ct_call *call, bool inner,
		       struct ct_collective *out)
{
	const struct api_func *f = &api_funcs[call->func];
	struct communicator *m;

	*out = (struct ct_collective){ .rank = CT_UNKNOWN,
				       .ranks = CT_UNKNOWN,
				       .datatype = CT_UNKNOWN,
				       .op = CT_UNKNOWN,
				       .root = CT_UNKNOWN,
				       .peer = CT_UNKNOWN,
				       .how = (uint8_t)how(f),
				       .flags = inner ? CT_COLLECTIVE_INNER : 0 };
	hear_inputs(call, out);
	if (f->layer == API_LAYER_CREATE) {
		out->comm = 0; /* of a split it is the old one */
		return;
	}
	m = c->ask && f->layer != API_LAYER_DESTROY ? get(c, call->h.pid, out->comm)
						    : collectives_find(c, call->h.pid, out->comm);
	if (!m)
		return;
	if (f->layer != API_LAYER_DESTROY)
		ask(c, m);
	say(m, out);
	if (is_numbered(f, out))
		out->sequence = sequence_begin(&m->sequence, call->h.start_ns);
	if (f->layer == API_LAYER_DESTROY)
		owned_remove(&c->communicators, m);
}

/* ---- what it did ---- */

static const struct communicator *made(struct collectives *c, uint32_t pid, uint64_t handle,
				       uint32_t rank, uint32_t ranks)
{
	struct communicator *m = get(c, pid, handle);

	if (!m)
		return NULL;
	m->rank = rank;
	m->ranks = ranks;
	m->sequence = (struct sequence){ .known = true };
	m->hash = 0;
	m->tries = 0;
	ask(c, m);
	return m;
}

static void asked(struct collectives *c, uint32_t pid, const struct field *arg,
		  struct ct_collective *out)
{
	struct communicator *m;

	if (arg->u > INT32_MAX || (strcmp(arg->name, "rank") && strcmp(arg->name, "count")))
		return;
	m = get(c, pid, out->comm);
	if (!m)
		return;
	if (!strcmp(arg->name, "rank"))
		out->rank = m->rank = (uint32_t)arg->u;
	else
		out->ranks = m->ranks = (uint32_t)arg->u;
}

/* The communicators that a call made: one, or a list of one for each rank. */
static void hear_outputs(struct collectives *c, const struct ct_call *call,
			 const struct api_func *func, struct ct_collective *out)
{
	struct field args[EVENT_MAX_FIELDS];
	int n = api_decode(call, API_ARCH_HERE, args, EVENT_MAX_FIELDS);
	uint32_t listed = 0;
	bool in_list = false;

	for (int i = 0; i < n; i++) {
		const struct field *arg = &args[i];

		if (arg->type == FIELD_OPEN || arg->type == FIELD_CLOSE) {
			in_list = arg->type == FIELD_OPEN && arg->out && !arg->absent;
		} else if (in_list) {
			made(c, call->h.pid, arg->u, listed++, out->ranks);
		} else if (!arg->out || arg->absent || !arg->name) {
			continue;
		} else if (func->layer == API_LAYER_ASK) {
			asked(c, call->h.pid, arg, out);
		} else if (arg->type == FIELD_PTR) {
			const struct communicator *m =
				made(c, call->h.pid, arg->u, out->rank, out->ranks);

			out->comm = arg->u;
			if (m)
				say(m, out);
		}
	}
}

/* How many collectives a call has launched; UINT32_MAX: all that were begun. */
static uint32_t launched(const struct api_func *f, const struct ct_collective *out)
{
	if (f->layer == API_LAYER_GROUP_END)
		return out->members ? UINT32_MAX : 0;
	return is_numbered(f, out) && !(out->flags & CT_COLLECTIVE_GROUPED);
}

/* The call returned: what that says of the communicator's numbers. */
static void number(const struct collectives *c, const struct ct_call *call,
		   const struct api_func *f, struct communicator *m, struct ct_collective *out)
{
	uint32_t n = launched(f, out);

	if (out->ret == api_domains[f->domain].not_ready) {
		m->sequence.never = true; /* nothing tells when it is launched */
	} else if (out->ret) {
		/* the library has not counted it either */
		if (is_numbered(f, out))
			sequence_undo(&m->sequence, out->sequence);
		out->sequence = 0;
	} else if (n && sequence_launched(&m->sequence, n, call->h.end_ns)) {
		count(c, m);
	}
}

void collectives_end(struct collectives *c, const struct ct_call *call, struct ct_collective *out)
{
	const struct api_func *f = &api_funcs[call->func];
	struct communicator *m = collectives_find(c, call->h.pid, out->comm);

	out->ret = (int32_t)call->ret;
	out->flags |= CT_COLLECTIVE_RETURNED;
	if (m)
		number(c, call, f, m, out);
	if ((!out->ret || out->ret == api_domains[f->domain].not_ready) &&
	    (f->layer == API_LAYER_CREATE || f->layer == API_LAYER_ASK))
		hear_outputs(c, call, f, out);
}
