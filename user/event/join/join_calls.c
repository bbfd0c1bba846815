/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_calls.c - see join_calls.h.
 *
 * There is a ring for each thread, sorted by the calls' ends, which is nearly the order in which
 * they come. Rings grow with the number of calls, up to a bound for all rings together. Beyond it
 * the thread whose latest call is the oldest is forgotten; if there is only one thread, its own
 * oldest calls are forgotten. Knows no record.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "join_calls.h"

#define CHAINS 4096    /* a power of two */
#define FIRST_CALLS 16 /* a power of two, as all sizes of rings are */
/* a late call is moved before at most this many calls; a call that would need more moves is
 * garbage, and its place does not matter */
#define MOVES_MAX 4096

struct thread {
	struct thread *next;	      /* in its chain */
	struct thread *older, *newer; /* in the order of the threads' latest calls */
	uint32_t process, tid;
	uint32_t cap, first, n;
	uint64_t caused_ns; /* when the first call began that CUPTI saw in the window; 0: none */
	struct join_call *ring;
};

struct join_calls {
	struct thread *chains[CHAINS];
	struct thread *oldest, *newest;
	struct thread *last;	 /* the thread that was asked for last */
	uint32_t nthreads, room; /* room: of all rings together, in calls */
};

struct join_calls *join_calls_open(void)
{
	return calloc(1, sizeof(struct join_calls));
}

static struct thread **chain_of(struct join_calls *j, uint32_t process, uint32_t tid)
{
	return &j->chains[(tid ^ process * 40503u) * 2654435761u >> 20 & (CHAINS - 1)];
}

static void unlink_age(struct join_calls *j, struct thread *t)
{
	*(t->older ? &t->older->newer : &j->oldest) = t->newer;
	*(t->newer ? &t->newer->older : &j->newest) = t->older;
}

static void link_newest(struct join_calls *j, struct thread *t)
{
	t->newer = NULL;
	t->older = j->newest;
	*(j->newest ? &j->newest->newer : &j->oldest) = t;
	j->newest = t;
}

static void forget(struct join_calls *j, struct thread *t)
{
	struct thread **at = chain_of(j, t->process, t->tid);

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	unlink_age(j, t);
	if (j->last == t)
		j->last = NULL;
	j->nthreads--;
	j->room -= t->cap;
	free(t->ring);
	free(t);
}

void join_calls_close(struct join_calls *j)
{
	while (j && j->oldest)
		forget(j, j->oldest);
	free(j);
}

static struct thread *join_calls_find(struct join_calls *j, uint32_t process, uint32_t tid)
{
	struct thread *t = j->last;

	if (t && t->tid == tid && t->process == process)
		return t;
	t = *chain_of(j, process, tid);
	while (t && (t->tid != tid || t->process != process))
		t = t->next;
	if (t)
		j->last = t;
	return t;
}

static struct thread *make(struct join_calls *j, uint32_t process, uint32_t tid)
{
	struct thread **chain = chain_of(j, process, tid), *t;

	if (j->nthreads >= JOIN_THREADS_MAX)
		forget(j, j->oldest);
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->process = process;
	t->tid = tid;
	t->next = *chain;
	*chain = t;
	j->nthreads++;
	link_newest(j, t);
	return t;
}

static struct join_call *call_at(const struct thread *t, uint32_t i)
{
	return &t->ring[(t->first + i) & (t->cap - 1)];
}

/* Makes room for one more call: in a larger ring, or in the place of the oldest call. */
static int make_room(struct join_calls *j, struct thread *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : FIRST_CALLS;
	struct join_call *ring;

	if (t->n < t->cap)
		return 0;
	while (j->room - t->cap + cap > JOIN_CALLS_MAX && j->oldest != t)
		forget(j, j->oldest);
	if (j->room - t->cap + cap > JOIN_CALLS_MAX) {
		t->first = (t->first + 1) & (t->cap - 1);
		t->n--;
		return 0;
	}
	ring = malloc(cap * sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		ring[i] = *call_at(t, i);
	free(t->ring);
	t->ring = ring;
	j->room += cap - t->cap;
	t->cap = cap;
	t->first = 0;
	return 0;
}

int join_calls_add(struct join_calls *j, uint32_t process, uint32_t tid, const struct join_call *c)
{
	struct thread *t = join_calls_find(j, process, tid);
	uint32_t i, moves = MOVES_MAX;
	int err;

	if (!t)
		t = make(j, process, tid);
	if (!t)
		return -ENOMEM;
	if (j->newest != t) {
		unlink_age(j, t);
		link_newest(j, t);
	}
	err = make_room(j, t);
	if (err)
		return err;
	for (i = t->n++; i && moves-- && call_at(t, i - 1)->end_ns > c->end_ns; i--)
		*call_at(t, i) = *call_at(t, i - 1);
	*call_at(t, i) = *c;
	return 0;
}

/* The index of the first call that ended at or after a moment. */
static uint32_t first_ending(const struct thread *t, uint64_t at_ns)
{
	uint32_t lo = 0, hi = t->n;

	/* mostly among the newest */
	for (uint32_t step = 16; step < t->n; step *= 4) {
		if (call_at(t, t->n - step)->end_ns < at_ns) {
			lo = t->n - step + 1;
			break;
		}
		hi = t->n - step;
	}
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (call_at(t, mid)->end_ns < at_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct join_call *outer(struct join_call *a, struct join_call *b)
{
	if (!a || !a->number != !b->number)
		return !a || b->number ? b : a;
	return b->depth < a->depth ? b : a;
}

const struct join_call *join_calls_at(struct join_calls *j, uint32_t process, uint32_t tid,
				      const struct join_moment *m, bool worked, bool *whole)
{
	const struct thread *t = join_calls_find(j, process, tid);
	struct join_call *found = NULL;
	uint64_t at_ns = m->at_ns;
	uint32_t i, first;

	*whole = false;
	if (!t)
		return NULL;
	first = first_ending(t, at_ns);
	/* nested calls end before the outer ones; calls made by the program itself do not
	 * overlap */
	for (i = first; i < t->n; i++) {
		struct join_call *c = call_at(t, i);

		if (c->start_ns <= at_ns) {
			found = outer(found, c);
			c->worked |= worked;
		}
		*whole = !c->depth && c->start_ns <= at_ns;
		if (!c->depth)
			break;
	}
	if (!found && m->seen && first && call_at(t, first - 1)->open_end)
		found = call_at(t, first - 1);
	if (found)
		found->worked |= worked;
	*whole |= found && found->open_end && !found->depth;
	return found;
}

const struct join_call *join_calls_inside(struct join_calls *j, uint32_t process, uint32_t tid,
					  const struct join_span *s, bool worked, bool *whole)
{
	const struct thread *t = join_calls_find(j, process, tid);
	struct join_call *found = NULL;
	uint32_t i = t ? first_ending(t, s->to_ns) : 0;

	*whole = t && i < t->n;
	/* backward: what a call does first, such as loading a module, may take many calls */
	for (uint32_t looks = JOIN_INSIDE_MAX; i && looks; i--, looks--) {
		struct join_call *c = call_at(t, i - 1);

		if (c->end_ns < (found ? found->start_ns : s->from_ns))
			break;
		if (c->start_ns >= s->from_ns && c->makes & s->kinds &&
		    (!found || (!found->number && c->number)))
			found = c;
	}
	if (found)
		found->worked |= worked;
	return found;
}

static struct join_call *begun(struct join_calls *j, uint32_t process, uint32_t tid,
			       uint64_t start_ns, uint16_t func)
{
	const struct thread *t = join_calls_find(j, process, tid);

	for (uint32_t i = t ? first_ending(t, start_ns) : 0; t && i < t->n; i++) {
		struct join_call *c = call_at(t, i);

		if (c->start_ns == start_ns && c->func == func)
			return c;
		if (!c->depth && c->start_ns > start_ns)
			break;
	}
	return NULL;
}

const struct join_call *join_calls_begun(struct join_calls *j, uint32_t process, uint32_t tid,
					 uint64_t start_ns, uint16_t func)
{
	return begun(j, process, tid, start_ns, func);
}

void join_calls_worked(struct join_calls *j, uint32_t process, uint32_t tid, uint64_t start_ns,
		       uint16_t func)
{
	struct join_call *c = begun(j, process, tid, start_ns, func);

	if (c)
		c->worked = true;
}

/* The same for one thread. */
static uint64_t tail_of(const struct thread *t, uint8_t expects, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t n = 0;
	uint32_t i = t->n;

	while (i && !call_at(t, i - 1)->worked)
		i--;
	if (i && call_at(t, i - 1)->start_ns > from_ns + JOIN_TAIL_NS)
		from_ns = call_at(t, i - 1)->start_ns - JOIN_TAIL_NS;
	for (i = first_ending(t, from_ns); i < t->n; i++) {
		const struct join_call *c = call_at(t, i);

		n += c->expects & expects && !c->worked && c->start_ns >= from_ns &&
		     c->end_ns <= to_ns;
	}
	return n;
}

uint64_t join_calls_tail(const struct join_calls *j, uint32_t process, uint8_t expects,
			 uint64_t from_ns, uint64_t to_ns)
{
	uint64_t n = 0;

	for (const struct thread *t = j->oldest; t; t = t->newer)
		if (t->process == process)
			n += tail_of(t, expects, from_ns, to_ns);
	return n;
}

/* Calls of a process that began in a time and have no device work: launches, or all that should have some. */
static uint64_t without_work(const struct join_calls *j, uint32_t process, bool launches,
			     uint64_t from_ns, uint64_t to_ns)
{
	uint64_t n = 0;

	for (const struct thread *t = j->oldest; t; t = t->newer) {
		if (t->process != process)
			continue;
		for (uint32_t i = first_ending(t, from_ns); i < t->n; i++) {
			const struct join_call *c = call_at(t, i);

			n += (launches ? c->launches : c->expects) && !c->worked &&
			     c->start_ns >= from_ns && c->start_ns < to_ns;
		}
	}
	return n;
}

uint64_t join_calls_awaited(const struct join_calls *j, uint32_t process, uint64_t from_ns,
			    uint64_t to_ns)
{
	return without_work(j, process, false, from_ns, to_ns);
}

uint64_t join_calls_launched(const struct join_calls *j, uint32_t process, uint64_t from_ns,
			     uint64_t to_ns)
{
	return without_work(j, process, true, from_ns, to_ns);
}

uint64_t join_calls_first(struct join_calls *j, uint32_t process, uint32_t tid)
{
	const struct thread *t = join_calls_find(j, process, tid);

	return t && t->n ? call_at(t, 0)->start_ns : UINT64_MAX;
}

int join_calls_caused(struct join_calls *j, uint32_t process, uint32_t tid, uint64_t start_ns)
{
	struct thread *t = join_calls_find(j, process, tid);

	if (!t)
		t = make(j, process, tid);
	if (!t)
		return -ENOMEM;
	if (!t->caused_ns || start_ns < t->caused_ns)
		t->caused_ns = start_ns;
	return 0;
}

uint64_t join_calls_first_caused(struct join_calls *j, uint32_t process, uint32_t tid)
{
	const struct thread *t = join_calls_find(j, process, tid);

	return t && t->caused_ns ? t->caused_ns : UINT64_MAX;
}

size_t join_calls_bytes(const struct join_calls *j)
{
	return j->room * sizeof(struct join_call) + j->nthreads * sizeof(struct thread);
}
