/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * asked.h - what the ranks of communicators ask for, from the calls of NCCL that were seen: do they ask
 * for the same, and who waits for whom?
 *
 * The calls of a process go on in the order of its streams, as on its device: a collective ends when
 * all ranks that were seen have come to it, a receive when the other rank has come to its send, a
 * send at once, since it may have room for what it sends. What cannot end then is compared, if
 * nothing began for long enough. Knows no source; what it is given is untrusted.
 */
#ifndef CT_ASKED_H
#define CT_ASKED_H

#include "../event/event.h"
#include "../util/io/out.h"

struct asked;

struct asked *asked_open(void);	  /* NULL: no memory */
void asked_close(struct asked *); /* takes NULL */

/* Learns from scopes, processes and losses; others are ignored. Returns 0 or -ENOMEM. */
int asked_event(struct asked *, const struct event *);

/* Which communicators were seen. */
struct asked_seen {
	size_t communicators;
	size_t nameless; /* their ranks cannot be put together: the hash is not known */
	bool cut;	 /* there were more communicators or calls than are kept */
};
void asked_seen(const struct asked *, struct asked_seen *);
/* Is it known of a communicator what a collective of it asked for? */
bool asked_has(const struct asked *, uint64_t hash);

/* Whom asked_print() tells, beside what it prints as JSON; `only`: the communicators that it is about. Each may be
 * NULL. */
struct asked_ear {
	bool (*only)(void *ctx, uint64_t hash);
	/* fault: the word that JSON has: "arguments", "circle"... */
	void (*fault)(void *ctx, uint64_t hash, const char *fault);
	void *ctx;
};
void asked_listen(struct asked *, const struct asked_ear *);

/* Prints what differs, and, of ranks that have begun nothing for over_ns until `now_ns` or the end of
 * their process, who waits for whom. Returns how many communicators have a row, or -ENOMEM. */
int asked_print(struct asked *, uint64_t now_ns, uint64_t over_ns, bool json, struct out *);

#endif
