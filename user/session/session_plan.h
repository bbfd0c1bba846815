/* SPDX-License-Identifier: BSD-2-Clause */
/* session_plan.h - the options as the sources (capture plan) and the filter see them. */
#ifndef CT_SESSION_PLAN_H
#define CT_SESSION_PLAN_H

#include "../cli/options/opts.h"
#include "../source/plan.h"
#include "../stages/window.h"

struct session_plan {
	struct capture_plan capture;
	struct filter filter;
	bool names;	 /* some rows are about kernels */
	pid_t tid_owner; /* the process of -t */
};

/* Do sinks show on which device calls work? Then the calls that say so are captured, which must
 * be all of them. */
bool session_plan_places(const struct opts *);
/* Is any function of class query to be shown? */
bool session_plan_queries(const struct session_plan *);
/* window may be NULL. Also checks that what the options name exists: processes, the thread, the
 * cgroup. The plan points into the options and into itself: it must not be copied. Returns 0, or
 * -errno after one message. */
int session_plan(struct session_plan *, const struct opts *, const struct window *);

#endif
