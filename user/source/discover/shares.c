/* SPDX-License-Identifier: BSD-2-Clause */
/* shares.c - see shares.h. Knows neither files nor links. */
#include "shares.h"

#include <errno.h>
#include <stdlib.h>

#include "files.h"
#include "../../util/table/array.h"

static struct share *shares_find(const struct shares *s, uint32_t uid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->users[i].uid == uid)
			return &s->users[i];
	return NULL;
}

bool shares_fit(const struct shares *s, uint32_t uid, unsigned want, unsigned busy)
{
	const struct share *u = shares_find(s, uid);
	uint64_t used = (uint64_t)s->used + busy + want, own = (uint64_t)(u ? u->used : 0) + want;

	if (!s->limit)
		return true;
	return used <= s->limit && (uid == SHARES_INSTALLED || own <= s->limit - used);
}

int shares_take(struct shares *s, uint32_t uid, unsigned want)
{
	struct share *u = shares_find(s, uid);

	if (!u) {
		if (!array_room(s->users, s->n))
			return -ENOMEM;
		u = &s->users[s->n++];
		*u = (struct share){ .uid = uid };
	}
	u->used += want;
	s->used += want;
	return 0;
}

void shares_give(struct shares *s, uint32_t uid, unsigned n)
{
	struct share *u = shares_find(s, uid);

	if (!u)
		return;
	u->used -= n;
	s->used -= n;
	if (!u->used)
		*u = s->users[--s->n];
}

void shares_free(struct shares *s)
{
	free(s->users);
	*s = (struct shares){ 0 };
}
