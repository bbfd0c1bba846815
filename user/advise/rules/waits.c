/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.c - see waits.h. */
#include "waits.h"

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
