/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reach.h - which parts of the area (wire.h) are accessible. With mlockall(2) all that is accessible
 * is made present, and an area has some GiB. So blocks and cells are made accessible when they are
 * first taken. What was accessible once stays so, because a thread that was interrupted in a hook
 * may still write there when the area has been replaced.
 */
#ifndef CT_HOOKS_REACH_H
#define CT_HOOKS_REACH_H

#include "wire.h"

/*
 * Maps the area, or (fd -1) memory in its place that nobody reads, of so many bytes; `over` is where
 * an earlier one is, which it replaces, or NULL. Nothing more becomes accessible until reach_begin().
 * Returns MAP_FAILED, with errno, where there is no room; then `over` may be replaced in part.
 */
void *reach_map(void *over, size_t bytes, int fd);
/* The area's layout; makes its head, and the first blocks and cells, accessible. 0 or -errno. */
int reach_begin(void *area, const struct hooks_start *);

/* How many blocks, or cells, from the first on, are accessible. */
__u32 reach_blocks(void);
__u32 reach_cells(void);
/* Makes the first n of them accessible; called by the program's threads. A block comes with its
 * lists, a cell with its extra. 0 or -errno. */
int reach_more_blocks(__u32 n);
int reach_more_cells(__u32 n);
/* The program will not allow system calls soon: makes another share of the cells accessible. */
void reach_ahead(void);

#endif
