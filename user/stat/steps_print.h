/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_print.h - the steps of all processes as text and as JSON. */
#ifndef CT_STEPS_PRINT_H
#define CT_STEPS_PRINT_H

#include "../util/io/out.h"
#include "../sums/steps.h"

/* most: of the slowest steps of a process; 0: ten. */
void steps_text(const struct steps *, struct out *, uint64_t most);
void steps_json(const struct steps *, struct out *);

#endif
