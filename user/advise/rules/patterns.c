/* SPDX-License-Identifier: BSD-2-Clause */
/* patterns.c - see patterns.h. */
#include "patterns.h"

void waits_note(const struct seen *s, enum wait_what what, uint64_t bytes)
{
	struct thread *t = s->t;

	t->wait = rule_site(s, 0);
	t->wait.bytes = bytes;
	t->wait_what = (uint8_t)what;
	t->wait_end_ns = s->h->end_ns;
}

int waits_settle(struct hits *h, const struct seen *s, enum wait_what what)
{
	/* a copy that waits for its own end keeps the device busy from its begin on */
	uint64_t given_ns = s->traits & TR_COPY && !(s->traits & TR_ASYNC) ? s->h->start_ns
									   : s->h->end_ns;
	struct thread *t = s->t;

	if (t->wait_what != what || !(s->traits & TR_WORK) || s->failed)
		return 0;
	t->wait_what = WAIT_NONE;
	t->wait.ns = given_ns > t->wait_end_ns ? given_ns - t->wait_end_ns : 0;
	return hits_add(h, &t->wait, NULL);
}

int turns_add(struct loop_turns *l, const struct seen *s, bool makes, bool busy)
{
	if (s->failed)
		return 0;
	l->made += makes;
	l->given += !makes;
	if (!makes) {
		l->destroyed = true;
	} else if (l->destroyed) {
		l->destroyed = false;
		l->turns += !busy || s->p->serial != l->serial;
		l->serial = s->p->serial;
	}
	return l->turns ? rule_hit(&l->hits, s, s->ns, 0) : 0;
}

void turns_say(struct advise_finding *f, const struct loop_turns *l, const char *what)
{
	if (f)
		rule_say(&f->evidence,
			 "%llu times %s; the %llu calls that make and give back took %s from the "
			 "first such time on.",
			 (unsigned long long)l->turns, what, (unsigned long long)l->hits.n,
			 rule_time((double)l->hits.ns));
}
