/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_muted.c - see hooks_muted.h. An area is another user's: its numbers may be anything. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/holes/holes.h"
#include "../../event/muted.h"
#include "../../util/msg.h"
#include "../../util/table/hash_map.h"
#include "../muted/may.h"
#include "../muted/throttle.h"
#include "hooks_muted.h"

#define LATE_NS 1000000000ULL /* of a look after so long only the next one says how often */
#define LOOK_NS 200000000ULL /* between two looks for counted functions that are called too often */
/* between two records of one function and process: a recording that is cut off lacks no more of the numbers */
#define TELL_NS 1000000000ULL
#define KEEPS_NS 1000000000ULL /* a process that keeps its calls may map other libraries later */
#define SEEN_MAX 65536

/* The counted calls of a process to a function. */
struct seen {
	struct {
		uint32_t pid, func;
	} key;
	uint64_t now, last;
	bool looked;
};

struct hooks_muted {
	const struct capture_plan *plan;
	struct throttle *throttle;
	struct hash_map seen;
	size_t next;		       /* of `seen`, at which hooks_muted_looked() goes on */
	uint64_t looked_ns, before_ns; /* of the last look, and of the one before it */
	bool paused;   /* counts are kept by a key that a bare number does not have */
	bool reported; /* some calls have no rows */
	int n, funcs[HOOKS_MUTED];
	uint64_t since_ns[HOOKS_MUTED];
	const char *names[HOOKS_MUTED + 1];
	bool (*mutes)(void *ctx, uint32_t pid, int func);
	void *mutes_ctx;
	/* the last process and function of which the answer was no, and how long that is believed */
	uint32_t kept_pid, kept_func;
	uint64_t kept_until_ns;
};

struct hooks_muted *hooks_muted_open(const struct capture_plan *plan)
{
	struct hooks_muted *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->plan = plan;
	m->paused = plan->count && plan->count_by != CT_BY_FUNCTION &&
		    plan->count_by != CT_BY_ASKED;
	hash_map_open(&m->seen, sizeof(struct seen), sizeof(((struct seen *)0)->key), SEEN_MAX);
	m->throttle = throttle_open(THROTTLE_RATE);
	if (m->throttle)
		return m;
	hooks_muted_close(m);
	return NULL;
}

void hooks_muted_close(struct hooks_muted *m)
{
	if (!m)
		return;
	throttle_close(m->throttle);
	hash_map_close(&m->seen);
	free(m);
}

void hooks_muted_ask(struct hooks_muted *m, bool (*mutes)(void *ctx, uint32_t pid, int func),
		     void *ctx)
{
	m->mutes = mutes;
	m->mutes_ctx = ctx;
}

/* ---- noticing ---- */

/* Does the process record each call of the function, also when it is muted? */
static bool keeps(struct hooks_muted *m, uint32_t pid, uint32_t func, uint64_t now)
{
	if (!m->mutes || m->mutes(m->mutes_ctx, pid, (int)func))
		return false;
	m->kept_pid = pid;
	m->kept_func = func;
	m->kept_until_ns = now + KEEPS_NS;
	return true;
}

static bool is_muted(const struct hooks_muted *m, int func)
{
	for (int i = 0; i < m->n; i++)
		if (m->funcs[i] == func)
			return true;
	return false;
}

static void hooks_muted_say(const struct hooks_muted *m, uint32_t pid, const char *name)
{
	msg_note("process %u calls %s %s: from here on its calls are counted%s (-e %s or "
		 "--keep-chatty %s each)",
		 pid, name, throttle_text(m->throttle),
		 m->plan->count ? ", and their time is measured in short windows"
				: " and not shown",
		 name, m->plan->count ? "measures" : "shows");
}

/* took_ns: in how long the calls were made, if that is known, else 0. */
static int notice(struct hooks_muted *m, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now,
		  uint64_t took_ns)
{
	/* a call that is only counted may be shorter than the user wants to see */
	if (m->paused || m->plan->one_thread || m->plan->filter.min_duration_ns ||
	    m->n == HOOKS_MUTED || func >= (uint32_t)api_nfuncs || !muted_may(m->plan, (int)func) ||
	    is_muted(m, (int)func) ||
	    (pid == m->kept_pid && func == m->kept_func && now < m->kept_until_ns) ||
	    !throttle_calls(m->throttle, pid, func, calls, now) || keeps(m, pid, func, now))
		return -1;
	if (took_ns)
		throttle_is(m->throttle, (uint64_t)((double)calls * 1e9 / (double)took_ns));
	m->funcs[m->n] = (int)func;
	m->names[m->n] = api_funcs[func].name;
	m->since_ns[m->n] = now;
	hooks_muted_say(m, pid, api_funcs[func].name);
	return m->n++;
}

int hooks_muted_call(struct hooks_muted *m, const struct ct_call *c)
{
	return notice(m, c->h.pid, c->func, 1, c->h.end_ns, 0);
}

bool hooks_muted_look_due(const struct hooks_muted *m, uint64_t now)
{
	return m->plan->count && !m->paused && now - m->looked_ns >= LOOK_NS;
}

void hooks_muted_look(struct hooks_muted *m, uint64_t now)
{
	bool late = now - m->looked_ns > LATE_NS;
	struct seen *s;

	m->before_ns = m->looked_ns;
	m->looked_ns = now;
	m->next = 0;
	throttle_calls(m->throttle, 0, 0, 0, now); /* the time over which rates are taken begins */
	hash_map_each(&m->seen, s)
	{
		s->now = 0;
		s->looked &= !late;
	}
}

static void add_cell(void *ctx, const struct ct_entry *e, const union hooks_extra *more)
{
	struct seen want = { .key = { e->key.tgid, e->key.func } }, *s;
	struct hooks_muted *m = ctx;
	bool made;

	(void)more;
	if (e->key.how == CT_BY_SIZE || e->key.func >= api_nfuncs ||
	    !muted_may(m->plan, e->key.func))
		return;
	s = hash_map_get(&m->seen, &want.key, &made);
	if (s)
		s->now += e->n.calls;
}

void hooks_muted_look_at(struct hooks_muted *m, struct hooks_ring *r)
{
	hooks_ring_cells(r, add_cell, m);
}

int hooks_muted_looked(struct hooks_muted *m)
{
	while (m->next < m->seen.n) {
		struct seen *s = hash_map_at(&m->seen, m->next++);
		uint64_t calls = s->now > s->last && s->looked ? s->now - s->last : 0;
		int number;

		s->last = s->now;
		s->looked = true;
		number = calls ? notice(m, s->key.pid, s->key.func, calls, m->looked_ns,
					m->looked_ns - m->before_ns)
			       : -1;
		if (number >= 0)
			return number;
	}
	return -1;
}

bool hooks_muted_count_by(struct hooks_muted *m, uint8_t by)
{
	bool paused = by != CT_BY_FUNCTION, changes = paused != m->paused;

	m->paused = paused;
	return changes && m->n;
}

/* ---- the muted functions ---- */

int hooks_muted_n(const struct hooks_muted *m)
{
	return m->n;
}

int hooks_muted_func(const struct hooks_muted *m, int number)
{
	return m->funcs[number];
}

void hooks_muted_message(const struct hooks_muted *m, int number, const struct hooks_mapped *mapped,
			 struct hooks_mute *out)
{
	bool windows = m->plan->count && !m->plan->no_return;
	uint64_t lo, bytes;

	hooks_mapped_runtime(mapped, &lo, &bytes);
	*out = (struct hooks_mute){ .h = { .size = sizeof(*out), .type = HOOKS_MUTE },
				    .func = (uint32_t)m->funcs[number],
				    .number = (uint16_t)number,
				    .flags = (uint16_t)((m->paused ? HOOKS_MUTE_OFF : 0) |
							(windows ? HOOKS_MUTE_WINDOWS : 0)),
				    .within = lo,
				    .within_bytes = bytes };
}

const char *const *hooks_muted_names(const struct hooks_muted *m)
{
	static const char *const none[1];

	return m->plan->count || m->reported ? m->names : none;
}

/* ---- telling ---- */

bool hooks_muted_due(const struct hooks_muted *m, const struct hooks_muted_sent *told, uint64_t now)
{
	return m->n && now - (told->until_ns ? told->until_ns : m->since_ns[0]) >= TELL_NS;
}

static int tell_one(struct hooks_muted *m, const struct hooks_muted_sent *told, int number,
		    pid_t pid, uint64_t calls, uint64_t now, struct hooks_batch *b)
{
	uint64_t since = m->since_ns[number] > told->until_ns ? m->since_ns[number]
							      : told->until_ns;
	union {
		struct ct_muted m;
		char room[sizeof(struct ct_muted) + 512];
	} rec;

	memset(&rec, 0, sizeof(rec));
	muted_name(&rec.m, m->funcs[number]);
	rec.m.h.pid = (uint32_t)pid;
	rec.m.h.start_ns = since < now ? since : now;
	rec.m.h.end_ns = now;
	rec.m.unseen.calls = (int64_t)calls;
	m->reported = true;
	return hooks_batch_add(b, &rec.m.h);
}

/* States that the calls of a function have no records. CT_MUTED has their numbers. */
static int state(const struct hooks_muted *m, int number, pid_t pid, uint64_t until_ns,
		 struct hooks_batch *b)
{
	struct hole_text t = { .hole = hole_of((uint32_t)pid, CT_HOLE_CALLS, CT_HOLE_MUTED,
					       CT_HOLE_THROTTLED) };

	hole_when(&t.hole, m->since_ns[number], until_ns);
	hole_say(&t, m->names[number]);
	return hooks_batch_add(b, &t.hole.h);
}

int hooks_muted_state(const struct hooks_muted *m, struct hooks_muted_sent *told,
		      const struct hooks_ring *r, struct hooks_batch *b)
{
	int err = 0;

	while (told->stated < m->n && !m->plan->count && !err)
		err = state(m, told->stated++, hooks_ring_pid(r), CT_HOLE_OPEN, b);
	return err;
}

int hooks_muted_tell(struct hooks_muted *m, struct hooks_muted_sent *told,
		     const struct hooks_ring *r, uint64_t now, bool last, struct hooks_batch *b)
{
	int err = hooks_muted_state(m, told, r, b);

	for (int i = 0; i < m->n && !m->plan->count && !err; i++) {
		uint64_t calls = hooks_ring_muted(r, (uint32_t)i), had = told->calls[i];

		if (calls <= had)
			continue;
		told->calls[i] = calls;
		err = tell_one(m, told, i, hooks_ring_pid(r), calls - had, now, b);
	}
	told->until_ns = now;
	for (int i = 0; i < told->stated && last && !err; i++)
		err = state(m, i, hooks_ring_pid(r), now, b);
	return err;
}
