/* SPDX-License-Identifier: BSD-2-Clause */
/* units.h - numbers for people: a duration or a size in a suitable unit. */
#ifndef CT_UNITS_H
#define CT_UNITS_H

#include "types.h"

/* Both write at most 9 columns ("12.34 us", "1.5 GiB") and return buf. */
const char *print_duration(char *buf, size_t size, double ns);
const char *print_bytes(char *buf, size_t size, double bytes);

#endif
