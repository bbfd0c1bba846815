/* SPDX-License-Identifier: BSD-2-Clause */
/* session_plan.h - turns the options into the capture plan of the sources and the filter. */
#ifndef CT_SESSION_PLAN_H
#define CT_SESSION_PLAN_H

#include "../request/request.h"
#include "../event/select.h"
#include "../flow/plan.h"
#include "../stages/window.h"

struct session_plan {
	struct capture_plan capture;
	struct filter filter;
	uint64_t asked
		[PLAN_WORDS]; /* functions that -e names: capture.shown may have more (plan_causes) */
	uint32_t layers; /* that are recorded, or shown of a recording, as the request has them */
	bool names;	 /* some of the functions that are shown use kernels */
	pid_t tid_owner; /* the process that the thread of -L belongs to */
};

/* Whether sinks show on which device a call works. Then all calls that set the device must be
 * captured. */
bool session_plan_places(const struct request *);
/* Whether any function of class query is shown. */
bool session_plan_queries(const struct session_plan *);
/* Makes the plan. window may be NULL. Also checks that the processes, the thread and the cgroup
 * that the options name exist. The plan has pointers into the options and into itself: it must not
 * be copied. Returns 0, or -errno after one message. */
int session_plan(struct session_plan *, const struct request *, const struct window *);

#endif
