/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * may.h - which functions may be counted, and not recorded one by one, when a process calls them very often:
 * those of class query, and with a duty also those that the plan names. Not if the user named the function
 * or asked for each call.
 */
#ifndef CT_MUTED_MAY_H
#define CT_MUTED_MAY_H

#include "../../api/api.h"
#include "../../flow/plan.h"

static inline bool muted_may(const struct capture_plan *plan, int func)
{
	return (api_funcs[func].class == API_QUERY || plan_has(plan->on_duty, func)) &&
	       plan_has(plan->shown, func) && !plan_has(plan->named, func) &&
	       !plan_has(plan->awaited, func) && !plan->keep_chatty && !plan->filter.failed_only &&
	       !(api_funcs[func].flags & CT_S_ALWAYS);
}

#endif
