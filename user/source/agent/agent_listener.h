/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_listener.h - the socket that agents and hooks connect to, with a key that only the programs have
 * which were given it, and the descriptor that a source waits on for all its connections. Anybody may
 * connect: the connection of a process that can have no agent of ours is closed at once, and counted. Knows no
 * message.
 */
#ifndef CT_AGENT_LISTENER_H
#define CT_AGENT_LISTENER_H

#include "../../../wire/meet_msg.h"
#include "../../util/types.h"

struct agent_kins;

struct agent_listener {
	int epoll;
	int fd;	     /* -1: it is closed */
	bool paused; /* it is not waited on */
	char path[108], key[MEET_KEY + 1];
	struct agent_kins *kins;
	uint64_t strangers; /* processes whose connections were closed */
	pid_t stranger;	    /* the first one */
	uid_t stranger_uid;
	bool no_room; /* a connection waits, and there is no descriptor left */
};

/* A connection that was accepted. */
struct agent_accepted {
	int fd;
	pid_t pid;
	uid_t uid;
	bool neighbour; /* not known to descend from the program */
};

/* Without a socket at first. 0 or -errno; agent_listener_close() in any case. */
int agent_listener_init(struct agent_listener *);
/* In this folder. Returns 0, or -errno after one message. */
int agent_listener_open(struct agent_listener *, const char *dir);
/* Accepts the connections that wait and hands them to come(), which owns their descriptors. While no descriptor
 * is left, a connection that waits would wake the source all the time: the source does not wait on the socket until
 * there is one, and looks at it only here. */
void agent_listener_accept(struct agent_listener *,
			   void (*come)(void *ctx, const struct agent_accepted *), void *ctx);
/* A connection is waited on (0 or -errno), or no longer. */
int agent_listener_add(struct agent_listener *, int fd);
void agent_listener_remove(struct agent_listener *, int fd);
/* Says whose connections were closed, if there are any. */
void agent_listener_tell(const struct agent_listener *);
void agent_listener_close(struct agent_listener *);

#endif
