/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contexts.c - see contexts.h.
 *
 * One hash of small facts: what is current in a thread, and the numbers of a context or stream. A
 * fact that is not in the hash is not known, and nothing is guessed: a thread of which nothing was
 * reported may have any device. The exception is a process all of whose calls since its beginning
 * came: there such a thread has the runtime's default for calls of the runtime, which is device 0
 * and its own context. When there are too many facts, all are forgotten. Knows no function: what a
 * call says follows from its row (api_place).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/hash.h"
#include "contexts.h"

#define FIRST_FACTS 256	     /* a power of two */
#define FACTS_MAX (1u << 17) /* buckets, of which half are used */
#define BELOW 3		     /* pushed contexts remembered below the current one */

enum what { FREE, THREAD, CONTEXT, CONTEXT_ID, STREAM, DEVICE, BEGAN };

struct fact {
	uint64_t key; /* a tid, a handle, a number */
	uint32_t pid;
	uint8_t what; /* enum what */
	bool made;    /* CONTEXT: the program created it; otherwise it may be the device's own */
	bool primary; /* THREAD: the context is the device's own, as after cudaSetDevice */
	uint8_t nbelow;
	/* THREAD: the epoch in which the current context became known; BEGAN: all calls came
	 * since that epoch. In another epoch the fact is not valid */
	uint32_t epoch;
	/* Numbers; CT_UNKNOWN: not known. THREAD: context is set only if neither handle nor
	 * primary gives it. DEVICE: context is its only context; stream is 0 once it had one */
	uint32_t device, context, stream;
	uint64_t handle;  /* THREAD: of the current context; 0: not known */
	uint64_t gone_ns; /* CONTEXT: when a context with this handle was destroyed; 0: none was */
	uint64_t below[BELOW];
};

struct contexts {
	struct fact *facts;
	uint32_t n, buckets;
	uint32_t epoch; /* how often records were lost */
};

struct contexts *contexts_open(void)
{
	struct contexts *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->buckets = FIRST_FACTS;
	w->facts = calloc(w->buckets, sizeof(*w->facts));
	if (w->facts)
		return w;
	free(w);
	return NULL;
}

void contexts_close(struct contexts *w)
{
	if (!w)
		return;
	free(w->facts);
	free(w);
}

size_t contexts_bytes(const struct contexts *w)
{
	return w->buckets * sizeof(*w->facts);
}

/* The bucket of a fact, or the free one where it belongs. The table is never full. */
static struct fact *contexts_bucket_of(struct fact *facts, uint32_t buckets, uint32_t pid,
				       enum what what, uint64_t key)
{
	uint64_t h = hash_word(hash_word(hash_key[0], key), (uint64_t)pid << 32 | what);
	uint32_t i = (uint32_t)h & (buckets - 1);

	while (facts[i].what &&
	       (facts[i].key != key || facts[i].pid != pid || facts[i].what != what))
		i = (i + 1) & (buckets - 1);
	return &facts[i];
}

static struct fact *contexts_look_up(const struct contexts *w, uint32_t pid, enum what what,
				     uint64_t key)
{
	struct fact *f = contexts_bucket_of(w->facts, w->buckets, pid, what, key);

	return f->what ? f : NULL;
}

/* Moves the facts into a table with this many buckets, without the facts of one process (0: moves
 * all). */
static int rebuild(struct contexts *w, uint32_t buckets, uint32_t but)
{
	struct fact *facts = calloc(buckets, sizeof(*facts));

	if (!facts)
		return -ENOMEM;
	w->n = 0;
	for (uint32_t i = 0; i < w->buckets; i++) {
		const struct fact *f = &w->facts[i];

		if (!f->what || (but && f->pid == but))
			continue;
		*contexts_bucket_of(facts, buckets, f->pid, (enum what)f->what, f->key) = *f;
		w->n++;
	}
	free(w->facts);
	w->facts = facts;
	w->buckets = buckets;
	return 0;
}

/* Finds or adds a fact. NULL: no memory. Pointers to other facts are not valid after it. */
static struct fact *contexts_get(struct contexts *w, uint32_t pid, enum what what, uint64_t key)
{
	struct fact *f = contexts_look_up(w, pid, what, key);

	if (f)
		return f;
	if (w->n >= w->buckets / 2) {
		if (w->buckets >= FACTS_MAX) {
			memset(w->facts, 0, w->buckets * sizeof(*w->facts));
			w->n = 0;
		} else if (rebuild(w, w->buckets * 2, 0)) {
			return NULL;
		}
	}
	f = contexts_bucket_of(w->facts, w->buckets, pid, what, key);
	*f = (struct fact){ .key = key,
			    .pid = pid,
			    .what = (uint8_t)what,
			    .epoch = w->epoch,
			    .device = CT_UNKNOWN,
			    .context = CT_UNKNOWN,
			    .stream = CT_UNKNOWN };
	w->n++;
	return f;
}

void contexts_forget(struct contexts *w, uint32_t pid)
{
	bool any = false;

	for (uint32_t i = 0; i < w->buckets && !any; i++)
		any = w->facts[i].what && w->facts[i].pid == pid;
	/* if there is no memory for that, everything is forgotten */
	if (any && rebuild(w, w->buckets, pid)) {
		memset(w->facts, 0, w->buckets * sizeof(*w->facts));
		w->n = 0;
	}
}

/* ---- what calls say ---- */

static void set_current(struct fact *t, uint64_t handle)
{
	t->primary = false;
	t->device = t->context = CT_UNKNOWN;
	t->handle = handle;
}

/* Finds or adds the fact of a thread. If what was known is no longer valid, the fact is empty.
 * NULL: no memory. */
static struct fact *contexts_thread_of(struct contexts *w, uint32_t pid, uint32_t tid)
{
	struct fact *t = contexts_get(w, pid, THREAD, tid);

	if (t && t->epoch != w->epoch) {
		set_current(t, 0);
		t->nbelow = 0;
		t->epoch = w->epoch;
	}
	return t;
}

static const struct fact *known_thread(const struct contexts *w, uint32_t pid, uint32_t tid)
{
	const struct fact *t = contexts_look_up(w, pid, THREAD, tid);

	return t && t->epoch == w->epoch ? t : NULL;
}

int contexts_began(struct contexts *w, uint32_t pid)
{
	struct fact *f = contexts_get(w, pid, BEGAN, 0);

	if (!f)
		return -ENOMEM;
	f->epoch = w->epoch;
	return 0;
}

uint32_t contexts_device_of(const struct contexts *w, uint32_t pid, uint32_t context)
{
	const struct fact *f =
		context == CT_UNKNOWN ? NULL : contexts_look_up(w, pid, CONTEXT_ID, context);

	return f ? f->device : CT_UNKNOWN;
}

void contexts_lost(struct contexts *w)
{
	w->epoch++;
}

static void contexts_pop(struct fact *t)
{
	set_current(t, t->nbelow ? t->below[0] : 0);
	memmove(&t->below[0], &t->below[1], sizeof(t->below) - sizeof(t->below[0]));
	t->nbelow -= t->nbelow > 0;
}

static void contexts_push(struct fact *t, uint64_t handle)
{
	memmove(&t->below[1], &t->below[0], sizeof(t->below) - sizeof(t->below[0]));
	/* after cudaSetDevice the handle is not known: popping back to it leaves nothing known */
	t->below[0] = t->handle;
	t->nbelow = t->nbelow < BELOW ? t->nbelow + 1 : BELOW;
	set_current(t, handle);
}

/* The current device or context is `value`. */
static int reported(struct contexts *w, const struct ct_call *c, const struct api_place *place)
{
	struct fact *t = contexts_thread_of(w, c->h.pid, c->h.tid), *context;

	if (!t)
		return -ENOMEM;
	if (!place->is_device) {
		if (t->handle != place->value)
			set_current(t, place->value);
		return 0;
	}
	if (!t->handle) {
		if (t->device != (uint32_t)place->value) {
			t->primary = false;
			t->context = CT_UNKNOWN;
		}
		t->device = (uint32_t)place->value;
		return 0;
	}
	context = contexts_get(w, c->h.pid, CONTEXT, t->handle);
	if (!context)
		return -ENOMEM;
	context->device = (uint32_t)place->value;
	return 0;
}

/* The thread's device lost its context. If the device has several, it is not known which one; if
 * the device is not known, all may be affected. */
static void contexts_ended(struct contexts *w, const struct ct_call *c)
{
	const struct fact *t = known_thread(w, c->h.pid, c->h.tid);
	bool known = t && t->device != CT_UNKNOWN;

	for (uint32_t i = 0; i < w->buckets; i++) {
		struct fact *f = &w->facts[i];

		if (f->what != DEVICE || f->pid != c->h.pid || f->context == CT_UNKNOWN)
			continue;
		if (!known)
			f->context = CT_UNKNOWN;
		else if (f->key == t->device)
			f->context = f->stream = CT_UNKNOWN;
	}
}

static void destroyed(struct contexts *w, const struct ct_call *c, uint64_t handle)
{
	struct fact *f = contexts_look_up(w, c->h.pid, CONTEXT, handle), *device;

	if (f) {
		device = contexts_look_up(w, c->h.pid, DEVICE, f->device);
		if (device && device->context != CT_UNKNOWN && device->context == f->context)
			device->context = device->stream = CT_UNKNOWN;
		f->device = f->context = CT_UNKNOWN;
		f->gone_ns = c->h.start_ns;
	}
	f = contexts_look_up(w, c->h.pid, THREAD, c->h.tid);
	if (f && f->epoch == w->epoch && f->handle == handle)
		contexts_pop(f);
}

static int learn_call(struct contexts *w, const struct ct_call *c)
{
	struct api_place place;
	struct fact *f;

	switch (api_place(c, API_ARCH_HERE, &place)) {
	case API_PLACE_NONE: return 0;
	case API_PLACE_IS: return reported(w, c, &place);
	case API_PLACE_ENDED: contexts_ended(w, c); return 0;
	case API_PLACE_PUSHED:
	case API_PLACE_CONTEXT:
		if (place.device != CT_UNKNOWN) {
			f = contexts_get(w, c->h.pid, CONTEXT, place.value);
			if (!f)
				return -ENOMEM;
			f->device = place.device;
			f->made = place.kind == API_PLACE_PUSHED;
		}
		if (place.kind == API_PLACE_CONTEXT)
			return 0;
		break;
	case API_PLACE_DESTROYED: destroyed(w, c, place.value); return 0;
	default: break;
	}
	f = contexts_thread_of(w, c->h.pid, c->h.tid);
	if (!f)
		return -ENOMEM;
	if (place.kind == API_PLACE_LOST) {
		set_current(f, 0);
		f->nbelow = 0;
	} else if (place.kind == API_PLACE_PUSHED) {
		contexts_push(f, place.value);
	} else if (place.kind == API_PLACE_POPPED) {
		contexts_pop(f);
	} else {
		set_current(f, place.is_device ? 0 : place.value);
		f->primary = place.is_device;
		f->device = place.is_device ? (uint32_t)place.value : CT_UNKNOWN;
	}
	return 0;
}

/* ---- what the agent says ---- */

static int learn_context(struct contexts *w, const struct ct_context *r)
{
	struct fact *f = contexts_get(w, r->h.pid, CONTEXT_ID, r->id);
	bool known;

	if (!f)
		return -ENOMEM;
	known = f->device == r->device; /* reported again */
	f->device = r->device;
	f->stream = r->null_stream;
	if (r->handle) {
		f = contexts_get(w, r->h.pid, CONTEXT, r->handle);
		if (!f)
			return -ENOMEM;
		/* the record may come late, when the handle already belongs to another context */
		if (r->h.start_ns >= f->gone_ns) {
			f->device = r->device != CT_UNKNOWN ? r->device : f->device;
			f->context = r->id;
		}
	}
	if (known || r->parent != CT_UNKNOWN)
		return 0;
	f = contexts_get(w, r->h.pid, DEVICE, r->device);
	if (!f)
		return -ENOMEM;
	/* if a device has two contexts, it is not known which one is its own */
	f->context = f->context == CT_UNKNOWN && f->stream == CT_UNKNOWN ? r->id : CT_UNKNOWN;
	f->stream = 0;
	return 0;
}

static int learn_stream(struct contexts *w, const struct ct_stream *r)
{
	struct fact *f;

	if (!r->handle)
		return 0;
	f = contexts_get(w, r->h.pid, STREAM, r->handle);
	if (!f)
		return -ENOMEM;
	f->stream = r->id;
	f->context = r->context;
	return 0;
}

int contexts_worked(struct contexts *w, uint32_t pid, uint32_t tid, uint32_t device,
		    uint32_t context)
{
	struct fact *t;

	if (context == CT_UNKNOWN || contexts_look_up(w, pid, THREAD, tid))
		return 0;
	t = contexts_thread_of(w, pid, tid);
	if (!t)
		return -ENOMEM;
	t->device = device;
	t->context = context;
	return 0;
}

int contexts_record(struct contexts *w, const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_CALL: return learn_call(w, (const struct ct_call *)h);
	case CT_CONTEXT: return learn_context(w, (const struct ct_context *)h);
	case CT_STREAM: return learn_stream(w, (const struct ct_stream *)h);
	default: return 0;
	}
}

/* ---- answers ---- */

/* For a thread that has chosen no device: the runtime's default. A nested call of the driver is
 * made by the runtime, so the default holds for it too. A thread that calls only the driver has
 * no device. */
static void find_default(const struct contexts *w, const struct ct_call *c, struct event *ev)
{
	const struct fact *f = contexts_look_up(w, c->h.pid, BEGAN, 0);

	if (!f || f->epoch != w->epoch ||
	    (!api_domains[api_funcs[c->func].domain].first_device && !c->depth))
		return;
	ev->device = 0;
	f = contexts_look_up(w, c->h.pid, DEVICE, 0);
	if (f)
		ev->context = f->context;
}

/* Finds the device and context that are current in a thread. */
static void find_current(const struct contexts *w, const struct ct_call *c, struct event *ev)
{
	const struct fact *t = known_thread(w, c->h.pid, c->h.tid), *f = NULL;
	uint32_t pid = c->h.pid;

	if (!t) {
		find_default(w, c, ev);
		return;
	}
	ev->device = t->device;
	ev->context = t->context;
	if (t->handle)
		f = contexts_look_up(w, pid, CONTEXT, t->handle);
	else if (t->primary)
		f = contexts_look_up(w, pid, DEVICE, t->device);
	if (!f)
		return;
	ev->context_handle = f->made ? t->handle : 0;
	ev->context = f->context;
	if (t->handle)
		ev->device = f->device;
}

void contexts_find(struct contexts *w, struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct fact *f;
	uint64_t handle;

	ev->device = ev->context = ev->stream = CT_UNKNOWN;
	ev->context_handle = 0;
	if (!w->n)
		return;
	find_current(w, c, ev);
	if (!api_stream(c, API_ARCH_HERE, &handle) || handle == 2 ||
	    (!handle && c->h.flags & CT_F_PER_THREAD))
		return;
	if (handle > 2) {
		f = contexts_look_up(w, c->h.pid, STREAM, handle);
		if (!f)
			return;
		ev->stream = f->stream;
		ev->context = f->context;
		f = contexts_look_up(w, c->h.pid, CONTEXT_ID, f->context);
		ev->device = f ? f->device : CT_UNKNOWN;
	} else if (ev->context != CT_UNKNOWN) {
		f = contexts_look_up(w, c->h.pid, CONTEXT_ID, ev->context);
		if (f)
			ev->stream = f->stream;
	}
}
