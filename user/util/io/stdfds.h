/* SPDX-License-Identifier: BSD-2-Clause */
/* stdfds.h - descriptors 0, 1 and 2 when cudatrace is started without some of them (`2>&-`). */
#ifndef CT_STDFDS_H
#define CT_STDFDS_H

/* Opens a descriptor in the place of each of them that is closed. It can neither be read from
 * nor written to, and programs that are started do not get it. So no file that is opened later
 * gets its number, and messages do not end up in such a file. Call it before anything is opened. */
void stdfds_fill(void);

#endif
