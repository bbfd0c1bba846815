/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_refused.h - processes whose agent or hooks found no place among a source's connections, by user: a row
 * of what was not seen for each user. Knows no socket.
 */
#ifndef CT_AGENT_REFUSED_H
#define CT_AGENT_REFUSED_H

#include "../../event/holes/holes.h"
#include "../../util/types.h"
#include "../../../wire/cudatrace.h"
#include "agent_conn.h"

#define AGENT_REFUSED_USERS 16 /* that have rows of their own */

struct agent_refused {
	struct {
		uid_t uid;
		uint64_t refused, told, since_ns;
	} users[AGENT_REFUSED_USERS + 1]; /* the last: all others */
	int n;
};

/* Makes room for one more connection: drop() closes those that sent nothing. False: there is none, and the process is
 * counted. */
bool agent_refused_room(struct agent_refused *, struct agent_conns, const struct agent_conn_who *,
			void (*drop)(void *ctx, int i), void *ctx);
/* One process of this user was refused. */
void agent_refused_add(struct agent_refused *, uid_t);
/* The place of this user's process was given to another one, which is counted, or to a newer connection of its
 * own. */
void agent_refused_took(struct agent_refused *, uid_t, pid_t whose, pid_t who);
/* A row that has changed since it was asked for; false: there is none. */
bool agent_refused_next(struct agent_refused *, enum ct_hole_layer, struct hole_text *);

#endif
