/* SPDX-License-Identifier: BSD-2-Clause */
/* terminfo.h - a terminal's description for where the machine has none for it. */
#ifndef CT_TOP_TERMINFO_H
#define CT_TOP_TERMINFO_H

#include <ncurses.h>

/* Opens a screen of curses on standard input and output, for a terminal that knows ANSI's sequences. NULL: it
 * cannot be opened. */
SCREEN *terminfo_open(void);

#endif
