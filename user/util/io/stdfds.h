/* SPDX-License-Identifier: BSD-2-Clause */
/* stdfds.h - descriptors 0, 1 and 2 when cudatrace is started without some of them (`2>&-`). */
#ifndef CT_STDFDS_H
#define CT_STDFDS_H

/* Fills what is closed with a descriptor that can neither be read from nor written to, and that
 * no program that is started gets: no file that is opened later takes its number, and messages
 * do not end up in it. Before anything is opened. */
void stdfds_fill(void);

#endif
