/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_inbox.h - takes messages off an agent's socket as they come, so that a burst waits here
 * and not in the target: a kernel a microsecond is more than a sink prints. Bounded; when it is
 * full the socket fills, then the agent's own queue, and that counts what is lost. Knows no
 * message.
 */
#ifndef CT_AGENT_INBOX_H
#define CT_AGENT_INBOX_H

#include "../../util/types.h"

#define AGENT_INBOX_BYTES (256u << 20)
/* of all of them together; each may have a message beyond it */
#define AGENT_INBOXES_BYTES (1ull << 30)

struct agent_inbox;

/* The socket (SOCK_SEQPACKET) stays the caller's, who may send on it; nobody else reads it until
 * agent_inbox_close(). NULL: no memory, or no thread. */
struct agent_inbox *agent_inbox_open(int fd, size_t message_max, size_t max_bytes);
void agent_inbox_close(struct agent_inbox *); /* takes NULL; what is there is dropped */
/* Readable while there is something to take. */
/* When the oldest message came that waits (CLOCK_MONOTONIC); UINT64_MAX: none does. */
uint64_t agent_inbox_since(struct agent_inbox *);
int agent_inbox_fd(const struct agent_inbox *);
/* The next message, whole, in a buffer of message_max bytes. Returns its size as it was sent
 * (larger than message_max: cut), 0 when the peer has gone and all was taken, -EAGAIN when there
 * is none now. */
ssize_t agent_inbox_take(struct agent_inbox *, void *msg);

#endif
