/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_causes.h - inside join: the newest CT_CAUSE records, found by process and correlation id.
 */
#ifndef CT_JOIN_CAUSES_H
#define CT_JOIN_CAUSES_H

#include "../event.h"

#define JOIN_CAUSES_MAX (1u << 19)

struct join_cause {
	uint64_t start_ns, end_ns; /* CUPTI's */
	uint32_t process, correlation, tid;
	uint16_t func; /* row; CT_NO_FUNC: not known */
	uint32_t next; /* in its chain: place + 1; 0: none */
};

struct join_causes;
struct join_causes *join_causes_open(void); /* NULL: no memory */
void join_causes_close(struct join_causes *);
/* If two causes of one thread with the same id overlap (a runtime call and the driver call
 * inside it), the outer one is kept. If they do not overlap, the id was reused. Returns 0 or
 * -ENOMEM. */
int join_causes_add(struct join_causes *, uint32_t process, const struct ct_cause *);
/* NULL: not known. Valid until the next add. */
const struct join_cause *join_causes_find(const struct join_causes *, uint32_t process,
					  uint32_t correlation);
size_t join_causes_bytes(const struct join_causes *);

#endif
