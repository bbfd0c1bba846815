/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_group.h - the members of one communicator, compared; what nccl_job.h's files share. */
#ifndef CT_NCCL_GROUP_H
#define CT_NCCL_GROUP_H

#include "nccl_job.h"

struct nccl_kind {
	const char *name;
	uint64_t least, most; /* of the members' counts */
};

struct nccl_group {
	const struct nccl_member *members; /* by rank; those without a rank first */
	size_t n;
	int nranks;   /* as the first one says; -1: not known */
	size_t nseen; /* different ranks */
	/* nothing changed between the looks, and all agree on the number of ranks: they can be
	 * compared */
	bool still;
	/* of collectives: those that the first member counts, as releases of NCCL that work
	 * together count the same */
	struct nccl_kind kinds[NCCL_KINDS];
	int nkinds;
};

/* The communicator whose members begin at `at`, which is less than j->n, of a sorted job. Returns
 * where the next one begins. */
size_t nccl_group_next(const struct nccl_job *j, size_t at, struct nccl_group *);

/* How many ranks it has, as all members say that know it; -1: they do not agree, or none knows it. */
int nccl_group_ranks(const struct nccl_group *);
/* How many of a kind a member has begun. False: it does not say. */
bool nccl_group_count(const struct nccl_member *, const struct nccl_kind *, uint64_t *n);
/* Has it not begun a collective that another member has? */
bool nccl_group_lags(const struct nccl_group *, const struct nccl_member *);
/* Do members call different collectives: has each of some begun one that another has not? */
bool nccl_group_disagrees(const struct nccl_group *);

#endif
