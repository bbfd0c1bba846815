/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_values.h - how the table prints one value.
 */
#ifndef CT_TABLE_VALUES_H
#define CT_TABLE_VALUES_H

#include "../../api/field.h"
#include "../../flow/row.h"

#define FIELD_ROOM 512 /* anything but strings and flags: a label, a value, punctuation */

/* A field's value. The row has FIELD_ROOM; what is longer asks for more. per_thread: stream 0 is
 * the per-thread one. */
void table_value(struct row *, const struct field *, bool per_thread);
/* 820ns, 7.1us, 112.4us, 310us, 1.42ms, 2.05s */
char *table_duration(char *p, uint64_t ns);
/* 250ms, 12.3s, 2m13s, 1h02m, 3d04h; with > when it is the least that it can be */
char *table_age(char *p, uint64_t ns, bool least);

#endif
