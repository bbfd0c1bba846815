/* SPDX-License-Identifier: BSD-2-Clause */
/* pager.h - shows a long text to a person, on a terminal by the program that PAGER names. Knows
 * no text. */
#ifndef CT_PAGER_H
#define CT_PAGER_H

#include "../../util/io/out.h"

/* Prints what `print` writes to standard output. On a terminal it goes through a pager, which git
 * chooses in the same way: the command in PAGER, or less; none if PAGER is empty or cat. If the
 * pager cannot be started the text is printed without it. Returns the exit status of the command,
 * after one message if it is not 0. */
int pager_print(void (*print)(struct out *, const void *ctx), const void *ctx);

#endif
