/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_door.h - the socket that agents and hooks connect to, with a key that only the programs have
 * which were given it, and the descriptor that a source waits on for all its connections. Anybody may
 * connect: a process that can have no agent of ours is shut out at once, and counted. Knows no
 * message.
 */
#ifndef CT_AGENT_DOOR_H
#define CT_AGENT_DOOR_H

#include "../../../wire/meet_msg.h"
#include "../../util/types.h"

struct agent_kins;

struct agent_door {
	int epoll;
	int fd;	   /* -1: it is shut */
	bool deaf; /* it is not waited on */
	char path[108], key[MEET_KEY + 1];
	struct agent_kins *kins;
	uint64_t strangers; /* that were shut out */
	pid_t stranger;	    /* the first one */
	uid_t stranger_uid;
	bool no_room; /* somebody waits, and there is no descriptor left */
};

struct agent_guest {
	int fd;
	pid_t pid;
	uid_t uid;
	bool neighbour; /* not known to descend from the program */
};

/* Without a socket at first. 0 or -errno; agent_door_close() in any case. */
int agent_door_init(struct agent_door *);
/* In this folder. Returns 0, or -errno after one message. */
int agent_door_open(struct agent_door *, const char *dir);
/* Hands the connections that wait to come(), which owns the guest's descriptor. While no descriptor
 * is left, whoever waits would wake the source all the time: so the socket is not waited on until
 * there is one, and only looked at here. */
void agent_door_accept(struct agent_door *, void (*come)(void *ctx, const struct agent_guest *),
		       void *ctx);
/* A connection is waited on (0 or -errno), or no longer. */
int agent_door_add(struct agent_door *, int fd);
void agent_door_remove(struct agent_door *, int fd);
/* Says, once there is something to be said, who was shut out. */
void agent_door_tell(const struct agent_door *);
void agent_door_close(struct agent_door *);

#endif
