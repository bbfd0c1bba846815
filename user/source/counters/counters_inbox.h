/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_inbox.h - what the helper for hardware counters says: each message is checked, its records are
 * handed out, its texts are said. The helper loads other people's libraries: nothing of it is trusted.
 * Knows nothing of how the helper is started and ended.
 */
#ifndef CT_COUNTERS_INBOX_H
#define CT_COUNTERS_INBOX_H

#include "../source.h"

#include "../../../wire/counters_wire.h" /* needs wire/cudatrace.h */

/* All zero at the beginning, but for what the owner sets. */
struct counters_inbox {
	/* the owner's */
	const bool *paused; /* as struct source has it; NULL: never */
	bool optional;	    /* what stands in the way is a warning */
	void (*line)(void *, const char *, size_t);
	void *line_ctx;
	/* what was said */
	bool ready, bye, failed;
	uint64_t received, malformed, lost[CT_LOSS_END];
	/* the message under way */
	size_t len, at;
	__u64 message[COUNTERS_MESSAGE_MAX / 8];
};

/* Receives the next message. 1: there is one, 0: not yet, -ENODATA: there will be none. */
int counters_inbox_next(struct counters_inbox *, int fd);
/* Hands out the records of the message under way, until it is paused. 0, or emit's. */
int counters_inbox_records(struct counters_inbox *, emit_fn emit, void *ctx);

#endif
