/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_conn.h - the connection to cudatrace's code inside one process, which is the agent or the
 * hooks: its credentials, sending, receiving, the greeting, and the texts for the user. What comes
 * from there is untrusted. Knows no message but those of meet_msg.h.
 */
#ifndef CT_AGENT_CONN_H
#define CT_AGENT_CONN_H

#include "../../../wire/meet_msg.h"
#include "../../util/types.h"

/* How long a connection may stay open before the greeting comes. */
#define AGENT_HELLO_NS (2 * MEET_WAIT_MS * 1000000ULL)
/* Of one source. A user's processes may have as many as remain free: half of them, if there is one user. */
#define AGENT_CONNS_MAX 2048

struct agent_tids;

struct agent_conn_who {
	pid_t pid;	 /* ours */
	const char *key; /* that its greeting must have; NULL: inherited socket */
	bool neighbour;	 /* not known to descend from the program */
	uid_t uid;	 /* as the kernel says */
};

struct agent_conn {
	int fd;
	pid_t pid, inner; /* ours; in its own pid namespace */
	uid_t uid;
	bool keyed, neighbour;
	bool greeted;	  /* its greeting was good */
	int64_t ahead_ns; /* how far the process's clock is ahead of ours, in a time namespace */
	char key[MEET_KEY];
	struct agent_tids *tids;
	uint64_t opened_ns;
	int says; /* texts that have come */
};

/* fd is the connection's from here on. Returns 0 or -ENOMEM; agent_conn_close() in any case. */
int agent_conn_open(struct agent_conn *, int fd, const struct agent_conn_who *);
void agent_conn_close(struct agent_conn *);

/* Sends one packet, with a descriptor if `pass` is not -1. Waits a second for room. 0 or -errno. */
int agent_conn_put(struct agent_conn *, const void *msg, size_t n, int pass);
/* Asks for the end, by a message of this type that has only a head. */
void agent_conn_stop(struct agent_conn *, unsigned int type);
/* Receives one packet into MEET_MSG_MAX bytes, and a descriptor that came with it (-1: none; the
 * caller's). Returns the packet's bytes, which may be more; 0: the peer is gone; -errno. */
ssize_t agent_conn_get(struct agent_conn *, void *msg, int *fd);

/* Checks the greeting. NULL: it is good; else what is wrong. */
const char *agent_conn_greet(struct agent_conn *, const struct meet_hello *, uint32_t magic,
			     uint32_t version);
/* Passes a checked text of the process on to the user: not too many, and as said of that process,
 * so that a program that imitates an agent cannot speak for cudatrace or for another process.
 * Returns whether it was passed on. */
bool agent_conn_say(struct agent_conn *, const struct meet_say *);

/* The connections of a source. */
struct agent_conns {
	int n;
	const struct agent_conn *(*at)(const void *ctx, int i);
	const void *ctx;
};
/* No process and no user may take the room of all. Returns the number of a connection that must be closed, for it
 * sent nothing, before this process can have one more; after that it is asked again. -ENOENT: there is
 * room; -EMFILE: there is none. */
int agent_conns_surplus(const struct agent_conns *, const struct agent_conn_who *);

#endif
