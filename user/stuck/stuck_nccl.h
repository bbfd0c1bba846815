/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_nccl.h - the communicators of NCCL at repeated looks: which of them go on, and at which a
 * rank has not begun the collective that others wait in. Of all processes of this machine, read
 * from their memory; nothing is put into them.
 */
#ifndef CT_STUCK_NCCL_H
#define CT_STUCK_NCCL_H

#include "../nccl/nccl_job.h"
#include "stuck_look.h"

struct stuck_nccl;

/* pids: only communicators in which one of these takes part; npids 0: all. They are the caller's
 * and stay. NULL: no memory. */
struct stuck_nccl *stuck_nccl_open(const pid_t *pids, int npids);
void stuck_nccl_close(struct stuck_nccl *); /* takes NULL */

/* Looks now. Returns 0 or -ENOMEM. */
int stuck_nccl_look(struct stuck_nccl *);

/* Looks search all processes for communicators so often: every ten seconds, if nobody says otherwise. */
void stuck_nccl_every(struct stuck_nccl *, uint64_t ns);
/* The next look searches all processes again, though it is not time yet. */
void stuck_nccl_search(struct stuck_nccl *);

/* Has any process one, of those that are asked for? */
bool stuck_nccl_any(const struct stuck_nccl *);

/* What the looks found, for nccl_job_free(): a member is still when its counts have not changed for
 * over_ns. rows: the threads that are inside a call. Returns 0 or -ENOMEM. */
int stuck_nccl_job(const struct stuck_nccl *, uint64_t over_ns, const struct stuck_row *rows,
		   size_t nrows, bool python, struct nccl_job *);

/* Names the processes whose communicators cannot be read, or not all, and why. */
void stuck_nccl_unknown(const struct stuck_nccl *, bool json, struct out *);

#endif
