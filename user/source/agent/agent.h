/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.h - the source of what the agents in the targets tell: device records, or with a session of
 * its own the calls too.
 *
 * source_agent beside another source adds device records; alone (plan->calls_by_agent) it also
 * starts plan->cmd and has the calls. A program that is started gets its agent by the
 * environment; one that runs gets it by injection, which hands the other end of a socketpair to
 * agent_connect_fd().
 */
#ifndef CT_AGENT_SOURCE_H
#define CT_AGENT_SOURCE_H

#include "../source.h"

/*
 * Takes on the agent that is being injected into process `pid` (our pid namespace): fd is our
 * end of a SOCK_SEQPACKET socketpair, owned by the source from here on. After open() and before
 * close(). What went wrong later is told by a message. Returns 0 or -errno; the descriptor is
 * closed then.
 */
int agent_connect_fd(struct source *, int fd, pid_t pid);

/* The text for cudatrace_agent_start(): "v1 fd=5 [cupti=PATH]". fd: as the target numbers it;
 * -1: "fd=N" is written, for inject_run(). Returns 0 or -errno. */
int agent_how(const struct capture_plan *, int fd, char *buf, size_t size);

/* How many agents have greeted, have ended after that, and have ended without having begun; how
 * many connections there are now, and how many were shut because their processes can have no
 * agent of ours. */
struct agent_counts {
	unsigned int started, ended, failed, live;
	uint64_t strangers;
};
void agent_counts(const struct source *, struct agent_counts *);

#endif
