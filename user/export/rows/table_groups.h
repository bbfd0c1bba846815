/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_groups.h - rows that differ only in the thread or the process become one row: a training job has hundreds
 * of threads that wait at the same place, and its ranks do the same. Rows are held back until all have come. Knows no event.
 */
#ifndef CT_TABLE_GROUPS_H
#define CT_TABLE_GROUPS_H

#include "../../flow/row.h"

struct table_groups;

struct table_groups *table_groups_open(void);	/* NULL: no memory */
void table_groups_close(struct table_groups *); /* takes NULL */
/* Adds a row. key: what the rows of a group have in common; pid, tid: as they are printed. If
 * the key is new, *row and *below (the lines of its stack, which may be empty) are kept, and are
 * empty afterwards. Returns 0 or -ENOMEM. */
int table_groups_add(struct table_groups *, const struct text *key, uint32_t pid, uint32_t tid,
		     struct text *row, struct text *below);
/* Writes the groups in the order in which their first rows came, and forgets them. */
void table_groups_write(struct table_groups *, struct out *);

#endif
