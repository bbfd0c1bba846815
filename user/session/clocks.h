/* SPDX-License-Identifier: BSD-2-Clause */
/* clocks.h - reads all clocks at one instant, so that cudatrace and other tools can convert the
 * times of records to times of day. */
#ifndef CT_CLOCKS_H
#define CT_CLOCKS_H

#include "../event/event.h"

#define CLOCKS_EVERY_NS 10000000000ULL

void clocks_read(struct ct_clock *);

#endif
