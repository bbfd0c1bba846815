/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares.h - inside discover: how many descriptors the probed files of each user may take. A
 * user is the real uid of the process that maps a file. No user may hold more than what is still free then: a single user gets half of all, two users get a third each, so that there is always something
 * left for the next one.
 */
#ifndef CT_SHARES_H
#define CT_SHARES_H

#include "../../util/types.h"

/* Files that root has installed, or named: only the limit of all counts for them. */
#define SHARES_INSTALLED UINT32_MAX

struct share {
	uint32_t uid;
	unsigned used;
};

struct shares {
	struct share *users;
	size_t n;
	unsigned used, limit; /* of all; limit 0: there is none */
};

/* May the user have so many more? busy: what is taken besides, and will be free soon. */
bool shares_fit(const struct shares *, uint32_t uid, unsigned want, unsigned busy);
/* The user has them from here on, whether they fit or not. Returns 0 or -ENOMEM. */
int shares_take(struct shares *, uint32_t uid, unsigned want);
void shares_give(struct shares *, uint32_t uid, unsigned n);
void shares_free(struct shares *);

#endif
