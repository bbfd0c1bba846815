/* SPDX-License-Identifier: BSD-2-Clause */
/* clocks.h - the clocks, read together: how times of records become times of day, here and in
 * other tools. */
#ifndef CT_CLOCKS_H
#define CT_CLOCKS_H

#include "../event/event.h"

#define CLOCKS_EVERY_NS 10000000000ULL

void clocks_read(struct ct_clock *);

#endif
