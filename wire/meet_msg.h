/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meet_msg.h - the messages that the agent and the hooks have in common. Both talk with the user side
 * over a SOCK_SEQPACKET socket: agent_wire.h and hooks_wire.h have the messages of each. A message is one
 * packet, and begins with a head. The first one from the program is a greeting.
 */
#ifndef CT_MEET_MSG_H
#define CT_MEET_MSG_H

#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#define MEET_KEY 32	   /* hex digits */
#define MEET_MSG_MAX 65536 /* bytes of a message */
#define MEET_WAIT_MS 5000  /* how long each side waits for the other's first message */

struct meet_head {
	__u32 size; /* of the whole message; equal to the packet's size */
	__u16 type;
	__u16 pad;
};

/* The first members of each greeting: who it is for, the key from the environment (zero if the socket
 * was inherited), the process id in its own pid namespace. */
#define MEET_HELLO            \
	struct meet_head h;   \
	__u32 magic, version; \
	char key[MEET_KEY];   \
	__u32 pid;
struct meet_hello {
	MEET_HELLO
};

/* A text for the user. */
enum meet_level { MEET_VERB = 0, MEET_NOTE = 1, MEET_WARN = 2, MEET_ERROR = 3 };
struct meet_say {
	struct meet_head h;
	__u16 level; /* enum meet_level */
	__u16 len;   /* of text[] */
	char text[];
};

/* Checks that the n received bytes are one message with the complete fixed part of its type; `fixed`
 * gives the bytes of that, 0 for a type that does not exist. Returns the type and how many bytes
 * follow the fixed part, or -1. */
static inline int meet_msg_type(const void *msg, size_t n, size_t (*fixed)(unsigned int type),
				size_t *rest)
{
	struct meet_head h;
	size_t need;

	if (n < sizeof(h) || n > MEET_MSG_MAX)
		return -1;
	memcpy(&h, msg, sizeof(h));
	need = fixed(h.type);
	if (h.size != n || !need || n < need)
		return -1;
	*rest = n - need;
	return h.type;
}

_Static_assert(sizeof(struct meet_head) == 8, "the layout of messages");
_Static_assert(sizeof(struct meet_hello) == 52, "the layout of messages");
_Static_assert(sizeof(struct meet_say) == 12, "the layout of messages");

#endif
