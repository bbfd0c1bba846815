/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_door.h - the socket that agents connect to, with a key that only the programs have which
 * were given it. Anybody may connect: who can have no agent of ours is shut out at once, and
 * counted. Knows no message.
 */
#ifndef CT_AGENT_DOOR_H
#define CT_AGENT_DOOR_H

#include "../../../cupti/agent/agent.h"
#include "../../util/types.h"

struct agent_kins;

struct agent_door {
	int fd; /* -1: it is shut */
	char path[108], key[AGENT_KEY + 1];
	struct agent_kins *kins;
	uint64_t strangers; /* that were shut out */
	pid_t stranger;	    /* the first one */
	uid_t stranger_uid;
	bool no_room; /* somebody waits, and there is no descriptor left */
};

struct agent_guest {
	int fd; /* the caller's from here on; -1: a stranger, who is gone */
	pid_t pid;
	bool neighbour; /* not known to descend from the program */
};

/* In this folder. Returns 0, or -errno after one message. agent_door_close() in any case. */
int agent_door_open(struct agent_door *, const char *dir);
/* 1: somebody has come; 0: nobody waits. */
int agent_door_accept(struct agent_door *, struct agent_guest *);
/* Says, once there is something to be said, who was shut out. */
void agent_door_tell(const struct agent_door *);
void agent_door_close(struct agent_door *);

/* A path as a word of the text that an agent is given. 0 or -ENAMETOOLONG. */
int agent_door_escape(const char *path, char *out, size_t size);

#endif
