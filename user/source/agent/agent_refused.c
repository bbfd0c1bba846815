/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_refused.c - see agent_refused.h. */
#include <errno.h>
#include <stdio.h>

#include "../../util/now.h"
#include "agent_refused.h"

void agent_refused_add(struct agent_refused *p, uid_t uid)
{
	int i = 0;

	while (i < p->n && p->users[i].uid != uid)
		i++;
	if (i == p->n && p->n < AGENT_REFUSED_USERS)
		p->users[p->n++].uid = uid;
	if (!p->users[i].refused++)
		p->users[i].since_ns = now_ns();
}

void agent_refused_took(struct agent_refused *p, uid_t uid, pid_t whose, pid_t who)
{
	if (whose != who)
		agent_refused_add(p, uid);
}

bool agent_refused_room(struct agent_refused *p, struct agent_conns all,
			const struct agent_conn_who *who, void (*drop)(void *ctx, int i), void *ctx)
{
	int i;

	while ((i = agent_conns_surplus(&all, who)) >= 0) {
		const struct agent_conn *c = all.at(all.ctx, i);

		agent_refused_took(p, c->uid, c->pid, who->pid);
		drop(ctx, i);
		all.n--;
	}
	if (i != -ENOENT)
		agent_refused_add(p, who->uid);
	return i == -ENOENT;
}

bool agent_refused_next(struct agent_refused *p, enum ct_hole_layer layer, struct hole_text *t)
{
	char text[32] = "";

	for (int i = 0; i <= AGENT_REFUSED_USERS; i++) {
		if (p->users[i].refused == p->users[i].told)
			continue;
		p->users[i].told = p->users[i].refused;
		t->hole = hole_of(0, layer, CT_HOLE_REFUSED, CT_HOLE_NO_PLACE);
		hole_when(&t->hole, p->users[i].since_ns, CT_HOLE_OPEN);
		t->hole.count = p->users[i].refused;
		if (i < AGENT_REFUSED_USERS)
			snprintf(text, sizeof(text), "user %u", (unsigned int)p->users[i].uid);
		hole_say(t, text);
		return true;
	}
	return false;
}
