/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_peer.h - the hooks of one process, as their socket and their area tell of them. What comes
 * from there is another user's: it is checked, and a peer that does not keep to the protocol is left.
 */
#ifndef CT_HOOKS_PEER_H
#define CT_HOOKS_PEER_H

#include "../agent/agent_conn.h"
#include "../bpf/filter_watch.h"
#include "../source.h"
#include "hooks_funcs.h"
#include "hooks_holes.h"
#include "hooks_life.h"
#include "hooks_muted.h"
#include "hooks_reader.h"
#include "hooks_ring.h"

struct hooks_peer;

struct hooks_peer_opts {
	struct agent_conn_who who;
	const struct capture_plan *plan;
	struct hooks_files *files;
	struct hooks_clock *clock;	 /* NULL: the counter cannot be used */
	struct python_seek *python;	 /* NULL: its frames are not wanted */
	const struct hooks_muted *muted; /* NULL: nothing is */
	struct filter_watch *filters;	 /* NULL: the kernel does not tell of filters */
	struct hooks_reader *reader; /* forgets the area before that is closed; NULL: has none */
	bool closing;		     /* nothing is to be recorded any more */
	bool opening;		     /* nothing yet */
	uint8_t count_by;	     /* enum ct_by, where the plan says CT_BY_ASKED */
};

/* A forked child of the process that wants hooks of its own. */
struct hooks_birth {
	int fd;	      /* the taker's */
	uint32_t tid; /* of the parent's thread; 0: not known */
	uint64_t ns;  /* when, as the child says */
};

enum hooks_peer_state {
	HOOKS_PEER_HELLO,
	HOOKS_PEER_HOOKING,
	HOOKS_PEER_RUNNING,
	HOOKS_PEER_ENDED
};

/* fd is the peer's from here on. NULL: no memory. */
struct hooks_peer *hooks_peer_open(int fd, const struct hooks_peer_opts *);
void hooks_peer_close(struct hooks_peer *);
const struct agent_conn *hooks_peer_conn(const struct hooks_peer *);
pid_t hooks_peer_pid(const struct hooks_peer *);
enum hooks_peer_state hooks_peer_state(const struct hooks_peer *);
/* When the process began (CLOCK_BOOTTIME). */
uint64_t hooks_peer_started_ns(const struct hooks_peer *);
/* The dynamic loader brought its hooks, before anything else of the program ran. */
bool hooks_peer_loaded(const struct hooks_peer *);
bool hooks_peer_ran(const struct hooks_peer *); /* its hooks have been on */
/* It has greeted, and what process it is has not been told yet. */
bool hooks_peer_unannounced(const struct hooks_peer *);
void hooks_peer_announced(struct hooks_peer *);
struct hooks_life *hooks_peer_life(struct hooks_peer *);
/* NULL: it has none yet */
struct hooks_ring *hooks_peer_ring(const struct hooks_peer *);
/* It may not write to its own code, so that no function of it can be hooked. */
bool hooks_peer_barred(const struct hooks_peer *);
/* Functions that are hooked. */
unsigned int hooks_peer_on(const struct hooks_peer *);
/* Functions that probes see in their place. */
unsigned int hooks_peer_with_probes(const struct hooks_peer *);
/* Functions that could not be hooked, ever. */
uint64_t hooks_peer_unhooked(const struct hooks_peer *);
/* Are there any that are not of a layer? */
bool hooks_peer_lacks(const struct hooks_peer *);
/* Functions whose calls are seen only where they come through the dynamic loader's slots. */
uint64_t hooks_peer_partly(const struct hooks_peer *);
/* What of it is not seen. */
struct hooks_holes *hooks_peer_holes(const struct hooks_peer *);

/* Deals with what it has said, until hooks_peer_birth() has something. */
void hooks_peer_drain(struct hooks_peer *);
/* Once for each child; after each call there may be more to be drained. */
bool hooks_peer_birth(struct hooks_peer *, struct hooks_birth *);
/* The process is gone, even if another process still holds its socket: its end comes when what was said
 * has been dealt with. */
void hooks_peer_gone(struct hooks_peer *);
/* All that it had written before it was last drained has been handed out: threads that wait for this go
 * on. */
void hooks_peer_was_read(struct hooks_peer *);
/* The muted function with this number is muted in it, or not any more. */
void hooks_peer_mute(struct hooks_peer *, int number);
/* hooks_mapped_mutes() of what it has mapped. */
bool hooks_peer_mutes(const struct hooks_peer *, int func);
struct hooks_muted_sent *hooks_peer_sent(struct hooks_peer *);
/* It has taken its hooks off. */
bool hooks_peer_bye(const struct hooks_peer *);
/* Its connection has ended without that. */
bool hooks_peer_left(const struct hooks_peer *);
/* From here on an area that is made records at once. */
void hooks_peer_opened(struct hooks_peer *);
/* Asks it to take the hooks off. */
void hooks_peer_stop(struct hooks_peer *);
/* The same, since its calls are recorded by probes from then on: nothing is said of what its hooks did not see. */
void hooks_peer_give(struct hooks_peer *);

#endif
