/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reach.h - which parts of the area (hooks_wire.h) are accessible. mlockall(2) makes all accessible
 * memory present, and an area has some GiB. So blocks and cells are made accessible when they are
 * first used. A part that was accessible once stays accessible, because a thread that was
 * interrupted in a hook may still write there after the area has been replaced.
 */
#ifndef CT_HOOKS_REACH_H
#define CT_HOOKS_REACH_H

#include "../../wire/hooks_wire.h"

/*
 * Maps the area of so many bytes; or (fd -1) maps memory that nobody reads in place of what is accessible of
 * the last area, and gives the rest back. `over` is the address of the last area, at whose place the new one
 * shall be, or NULL; if the program has mapped something there meanwhile, the new one is elsewhere.
 * Nothing more becomes accessible until reach_begin(). Returns MAP_FAILED, with errno, if there is no room.
 */
void *reach_map(void *over, size_t bytes, int fd);
/* Sets the area's layout; makes its head, and the first blocks and cells, accessible. Returns 0 or
 * -errno. */
int reach_begin(void *area, const struct hooks_start *);

/* How many blocks, or cells, from the first on, are accessible. */
__u32 reach_blocks(void);
__u32 reach_cells(void);
/* Makes the first n blocks or cells accessible, with the lists of the blocks or the extras of the
 * cells. The program's threads call it. Returns 0 or -errno. */
int reach_more_blocks(__u32 n);
int reach_more_cells(__u32 n);
/* Makes another share of the cells accessible, because the program will soon not allow system calls
 * any more. */
void reach_ahead(void);

/* Gives back what makes the area larger than so many bytes, as far as it is not accessible. */
void reach_fit(size_t bytes);

#endif
