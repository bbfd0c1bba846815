/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_peer.h - one agent, as its socket tells of it. Everything that comes from there is
 * another user's: lengths, ids and records are checked, the memory for it is bounded, and a peer
 * that does not keep to the protocol is left.
 */
#ifndef CT_AGENT_PEER_H
#define CT_AGENT_PEER_H

#include "../../../wire/agent_wire.h"
#include "../source.h"
#include "agent_conn.h"

struct agent_peer;

struct agent_totals {
	/* CT_LOSS_READ: records that were malformed; the rest comes as CT_LOST */
	uint64_t lost[CT_LOSS_END];
	uint64_t records;
};

/* fd is the peer's from here on. NULL: no memory. */
struct agent_peer *agent_peer_open(int fd, const struct agent_conn_who *,
				   const struct capture_plan *, bool calls);
void agent_peer_close(struct agent_peer *);

/* Hands out the records that have come, a limited number at a time. 0: nothing is left, 1: there is more,
 * -errno of emit. */
int agent_peer_drain(struct agent_peer *, struct agent_totals *, const bool *paused, emit_fn,
		     void *ctx);
/* Asks it to leave the process. */
void agent_peer_stop(struct agent_peer *);

enum peer_state { PEER_HELLO, PEER_NAMES, PEER_STARTING, PEER_RUNNING, PEER_ENDED };
enum peer_state agent_peer_state(const struct agent_peer *);
bool agent_peer_failed(const struct agent_peer *); /* ended without ever having run */
const struct agent_conn *agent_peer_conn(const struct agent_peer *);
/* What is readable when there is something to drain: another one once it has greeted. */
/* Since when a message of the agent has waited (CLOCK_MONOTONIC); UINT64_MAX: none does. */
uint64_t agent_peer_since(const struct agent_peer *);
int agent_peer_fd(const struct agent_peer *);

#endif
