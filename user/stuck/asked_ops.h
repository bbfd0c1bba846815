/* SPDX-License-Identifier: BSD-2-Clause */
/* asked_ops.h - what asked.h's files share: the calls of ranks, and which of them can end. */
#ifndef CT_ASKED_OPS_H
#define CT_ASKED_OPS_H

#include "../event/registry.h"
#include "../util/table/hash_map.h"
#include "asked.h"

#define ASKED_NAME 24
#define ASKED_KEPT 32 /* of a rank's newest collectives */
#define ASKED_NONE UINT32_MAX

/* What a call asks for. */
struct asked_call {
	uint64_t number; /* of the collective, or of the send or receive between two ranks; from 1 */
	uint64_t count;
	uint32_t datatype, op, root;
	char name[ASKED_NAME];
};

struct asked_comm {
	uint64_t hash;
	uint32_t ranks; /* CT_UNKNOWN: not known */
	bool whole;	/* from its making on; nothing of it was lost */
	bool disagree;	/* ranks do not say the same number of ranks */
	/* the least number of a collective for which ranks do not ask for the same; 0: none */
	uint64_t odd;
	struct asked_call kept[ASKED_KEPT]; /* of its newest collectives, as the first rank asked */
	uint32_t first_seat, nseats;	    /* the seats' places, a chain */
	uint64_t come;			    /* all ranks that were seen, unless `moved` */
	bool moved;
};

/* A process as a rank of a communicator. */
struct asked_seat {
	uint32_t comm, rank;  /* a place, and the rank */
	uint32_t party, next; /* places; next: of the same communicator, or ASKED_NONE */
	uint64_t come;	      /* to this collective at most */
	uint64_t last_ns;     /* when it began something last */
	struct asked_call kept[ASKED_KEPT], odd;
};

enum asked_kind { ASKED_COLLECTIVE, ASKED_SEND, ASKED_RECEIVE };

struct asked_op {
	struct asked_call call;
	uint32_t seat, peer;
	uint64_t queue; /* what goes on in order */
	uint64_t batch; /* what begins together */
	uint8_t kind;
	bool open; /* its group has not ended */
	bool begun, done;
	uint32_t mark; /* of the look for a circle */
};

struct asked_party {
	uint32_t shown_pid;
	char comm[CT_COMM_LEN];
	uint64_t ended_ns;    /* 0: it runs */
	struct asked_op *ops; /* that have not ended */
	size_t nops, room, settle_at;
};

/* What one rank sends to another. */
struct asked_pair {
	uint32_t comm, from, to; /* its place, and ranks */
	uint64_t called, sent,
		received;	  /* sends that were called and have begun, receives called */
	uint64_t ended;		  /* receives that have ended */
	struct asked_call *sends; /* from `first` on those behind `ended` */
	size_t first, nsends, room;
	struct asked_call odd[2]; /* a send and its receive that differ; number 0: none */
};

struct asked {
	/* asked_comm by hash; asked_seat; asked_pair; by pid; by thread; nothing is taken out */
	struct hash_map comms, seats, pairs, threads;
	struct registry pids;
	struct asked_party *parties;
	size_t nparties;
	size_t nops;
	uint64_t batches, last_ns;
	size_t nameless;
	bool cut, gaps;
	struct asked_ear ear;
};

static inline struct asked_comm *asked_comm_at(const struct asked *a, uint32_t i)
{
	return hash_map_at(&a->comms, i);
}
static inline struct asked_seat *asked_seat_at(const struct asked *a, uint32_t i)
{
	return hash_map_at(&a->seats, i);
}
#define asked_each_seat(a, comm, s)                             \
	for (uint32_t at_ = asked_comm_at(a, comm)->first_seat; \
	     at_ != ASKED_NONE && ((s) = asked_seat_at(a, at_), true); at_ = (s)->next)

struct asked_pair *asked_pair_find(const struct asked *, uint32_t comm, uint32_t from, uint32_t to);
/* Has a rank of a communicator been seen? Its seat, or NULL. */
struct asked_seat *asked_seat_find(const struct asked *, uint32_t comm, uint32_t rank);

/* Lets all calls end that can. False: that took too long, and is not done. */
bool asked_settle(struct asked *);
/* The first call of the same queue that this one is behind of; NULL: none. */
const struct asked_op *asked_before(const struct asked_party *, const struct asked_op *);

#endif
