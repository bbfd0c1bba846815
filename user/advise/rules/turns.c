/* SPDX-License-Identifier: BSD-2-Clause */
/* turns.c - see turns.h. */
#include "turns.h"

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
			 "first "
			 "such time on.",
			 (unsigned long long)l->turns, what, (unsigned long long)l->hits.n,
			 rule_time((double)l->hits.ns));
}
