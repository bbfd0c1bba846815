/* SPDX-License-Identifier: BSD-2-Clause */
/* table_parts.h - inside the table: how it prints a value, a call for products or collectives, and many threads in one row. */
#ifndef CT_TABLE_PARTS_H
#define CT_TABLE_PARTS_H

#include "../../api/field.h"
#include "../../event/event.h"
#include "../../flow/row.h"

/* ---- one value (table_values.c) ---- */

#define FIELD_ROOM 512 /* anything but strings and flags: a label, a value, punctuation */

/* A field's value. The row has FIELD_ROOM; what is longer asks for more. per_thread: stream 0 is
 * the per-thread one. */
void table_value(struct row *, const struct field *, bool per_thread);
/* 820ns, 7.1us, 112.4us, 310us, 1.42ms, 2.05s */
char *table_duration(char *p, uint64_t ns);
/* 250ms, 12.3s, 2m13s, 1h02m, 3d04h; with > when it is the least that it can be */
char *table_age(char *p, uint64_t ns, bool least);

/* ---- a call for products of matrices (table_gemm.c) ---- */

/* "4096 x 4096 x 512, float16, TN, 17.180 GFLOP, returned=0 (success), 31us"; without `duration` the
 * last is what it returned. */
void table_gemm(struct row *, const struct ct_scope *, const struct ct_gemm *, bool duration);

/* ---- a call of a library for collectives (table_collective.c) ---- */

/* "count=16777216 float32 sum, 64.0 MiB, rank 0 of 8, comm 0x8f31, #1042, returned=0 (success), 31us";
 * the last without `duration` is what it returned. */
void table_collective(struct row *, const struct ct_scope *, const struct ct_collective *,
		      bool duration);

/* ---- rows that differ only in the thread become one (table_groups.c): a job has hundreds that wait at one place ---- */

struct table_groups;

struct table_groups *table_groups_open(void);	/* NULL: no memory */
void table_groups_close(struct table_groups *); /* takes NULL */
/* One more row. key: what rows have in common that are one group; tid: as it is printed. Where
 * the key is new, *row and *below (the lines of its stack, which may be empty) are kept, and are
 * empty afterwards. Returns 0 or -ENOMEM. */
int table_groups_add(struct table_groups *, const struct text *key, uint32_t tid, struct text *row,
		     struct text *below);
/* Writes the groups in the order in which their first rows came, and forgets them. */
void table_groups_write(struct table_groups *, struct out *);

#endif
