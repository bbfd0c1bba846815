/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_collective.h - how the table prints a call of a library for collectives.
 */
#ifndef CT_TABLE_COLLECTIVE_H
#define CT_TABLE_COLLECTIVE_H

#include "../../event/event.h"
#include "../../flow/row.h"

/* "count=16777216 float32 sum, 64.0 MiB, rank 0 of 8, comm 0x8f31, #1042, returned=0 (success), 31us";
 * the last without `duration` is what it returned. */
void table_collective(struct row *, const struct ct_scope *, const struct ct_collective *,
		      bool duration);

#endif
