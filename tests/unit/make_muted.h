/* SPDX-License-Identifier: BSD-2-Clause */
/* make_muted.h - a record of calls that were counted in windows and not recorded one by one. */
#ifndef CT_MAKE_MUTED_H
#define CT_MAKE_MUTED_H

#include "../../user/event/muted.h"

/* If calls are counted, 3 of them failed, and each took 700 ns. The record is valid until the
 * next one is made. */
static inline struct ct_hdr *make_muted(uint32_t pid, uint64_t start_ns, uint64_t end_ns,
					const char *func, uint64_t counted,
					struct ct_estimated unseen)
{
	static union {
		struct ct_muted m;
		uint64_t room[(sizeof(struct ct_muted) + 512) / 8];
	} r;

	r.m = (struct ct_muted){ .h = { .pid = pid, .start_ns = start_ns, .end_ns = end_ns },
				 .counted = counted,
				 .failed = 3,
				 .timed = counted,
				 .ns = counted * 700,
				 .unseen = unseen,
				 .windows = 4 };
	memset(r.m.text, 0, 512);
	muted_name(&r.m, api_next(func, -1));
	return &r.m.h;
}

#endif
