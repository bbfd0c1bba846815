/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_wait.c - rules about waiting for the device. A wait by itself costs nothing: the device
 * is busy meanwhile. What it costs is the time after it, until the thread has given the device
 * work again.
 */
#include "rules.h"

#define EACH_LEAST 10
#define READBACK_LEAST 10
#define POLL_RUN 10	/* queries one after the other */
#define POLL_LEAST 1000 /* in such runs */
#define IDLE_LEAST 100

/* Notes a wait whose cost the thread's next work tells. A trace's last wait is never counted:
 * all has to end. */
static void note(const struct seen *s, enum wait_what what, uint64_t bytes)
{
	struct thread *t = s->t;

	t->wait = rule_site(s, 0);
	t->wait.bytes = bytes;
	t->wait_what = (uint8_t)what;
	t->wait_end_ns = s->h->end_ns;
}

/* The work that follows. */
static int settle(struct hits *h, const struct seen *s, enum wait_what what)
{
	/* a copy that waits for itself has the device at work from its begin on */
	uint64_t given_ns = s->traits & TR_COPY && !(s->traits & TR_ASYNC) ? s->h->start_ns
									   : s->h->end_ns;
	struct thread *t = s->t;

	if (t->wait_what != what || !(s->traits & TR_WORK) || s->failed)
		return 0;
	t->wait_what = WAIT_NONE;
	t->wait.ns = given_ns > t->wait_end_ns ? given_ns - t->wait_end_ns : 0;
	return hits_add(h, &t->wait, NULL);
}

int sync_each_event(void *state, const struct seen *s)
{
	struct sync_each *e = state;
	int err = settle(&e->hits, s, WAIT_EACH);

	if (!(s->traits & TR_SYNC) || s->failed)
		return err;
	e->waits++;
	if (s->t->work == 1 && !s->t->small)
		note(s, WAIT_EACH, 0);
	return err;
}

void sync_each_end(void *state, struct advice *a, struct proc *proc)
{
	struct sync_each *e = state;
	struct advise_finding *f;

	if (e->hits.n < EACH_LEAST || e->hits.n * 2 < e->waits)
		return;
	f = rule_finding_of(a, &rules[RULE_SYNC_EACH], proc, &e->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu of %llu waits came after a single launch, copy or memset of their "
			 "thread. From their ends "
			 "until the thread had "
			 "given the device its next work, %s went by, %s each time.",
			 (unsigned long long)e->hits.n, (unsigned long long)e->waits,
			 rule_time((double)e->hits.ns),
			 rule_time((double)e->hits.ns / (double)e->hits.n));
}

void sync_each_free(void *state)
{
	hits_free(&((struct sync_each *)state)->hits);
}

int readback_event(void *state, const struct seen *s)
{
	struct readback *r = state;
	int err = settle(&r->hits, s, WAIT_READBACK);

	if (s->failed)
		return err;
	if (s->traits & TR_COPY && !(s->traits & TR_ASYNC) && s->way == REPORT_DTOH &&
	    s->bytes <= READBACK_BYTES)
		note(s, WAIT_READBACK, s->bytes);
	else if (s->traits & TR_SYNC && s->t->small && s->t->small_bytes <= READBACK_BYTES)
		note(s, WAIT_READBACK, s->t->small_bytes);
	return err;
}

void readback_end(void *state, struct advice *a, struct proc *proc)
{
	struct readback *r = state;
	struct advise_finding *f;

	if (r->hits.n < READBACK_LEAST)
		return;
	f = rule_finding_of(a, &rules[RULE_READBACK], proc, &r->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu times a thread copied at most %d bytes to the host, waited for them "
			 "and then gave the device "
			 "work again. From "
			 "the ends of the waits until that work was given, %s went by, %s each "
			 "time.",
			 (unsigned long long)r->hits.n, READBACK_BYTES,
			 rule_time((double)r->hits.ns),
			 rule_time((double)r->hits.ns / (double)r->hits.n));
}

void readback_free(void *state)
{
	hits_free(&((struct readback *)state)->hits);
}

/* ---- asking again and again ---- */

#define NOT_READY 600

/* The thread waited for the same before, or for all of the device, and nobody has given any work
 * since. */
static bool is_idle(const struct seen *s)
{
	const struct thread *t = s->t;
	const struct api_func *f = &api_funcs[s->call->func];
	uint64_t word = s->call->nwords && f->nargs ? s->call->words[0] : 0;

	if (!(s->traits & TR_SYNC) || s->failed || !t->waited || t->wait_serial != s->p->serial ||
	    t->wait_device != s->ev->device)
		return false;
	return !api_funcs[t->wait_func].nargs ||
	       (t->wait_func == s->call->func && t->wait_word == word);
}

int polling_event(void *state, const struct seen *s)
{
	struct polling *p = state;
	struct thread *t = s->t;
	struct site one;

	if (is_idle(s)) {
		int err = rule_hit(&p->idle, s, s->ns, 0);

		if (err)
			return err;
	}
	if (!(s->traits & TR_POLL) || (int32_t)s->call->ret != NOT_READY) {
		t->poll_n = 0;
		return 0;
	}
	t->poll_ns = t->poll_n++ ? t->poll_ns + s->ns : s->ns;
	if (t->poll_n < POLL_RUN)
		return 0;
	one = rule_site(s, 0);
	one.n = t->poll_n == POLL_RUN ? POLL_RUN : 1;
	one.ns = t->poll_n == POLL_RUN ? t->poll_ns : s->ns;
	return hits_add(&p->hits, &one, NULL);
}

void polling_end(void *state, struct advice *a, struct proc *proc)
{
	struct polling *p = state;
	struct advise_finding *f;

	f = p->hits.n >= POLL_LEAST ? rule_finding_of(a, &rules[RULE_POLLING], proc, &p->hits)
				    : NULL;
	if (f)
		rule_say(&f->evidence,
			 "%llu queries of events and streams were answered \"not ready\", %d or "
			 "more of "
			 "them one after the other "
			 "with no other work of the thread in between.",
			 (unsigned long long)p->hits.n, POLL_RUN);
	f = p->idle.n >= IDLE_LEAST ? rule_finding_of(a, &rules[RULE_POLLING], proc, &p->idle)
				    : NULL;
	if (f)
		rule_say(&f->evidence,
			 "%llu waits had nothing to wait for: the thread had waited for the same "
			 "before, "
			 "or for the whole device, and "
			 "since then no thread of the process had given a device any work.",
			 (unsigned long long)p->idle.n);
}

void polling_free(void *state)
{
	struct polling *p = state;

	hits_free(&p->hits);
	hits_free(&p->idle);
}
