/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.h - takes the messages of a check instead of printing them, and says why it refused. Knows no
 * domain. */
#ifndef CT_REFUSAL_H
#define CT_REFUSAL_H

/* From this call on, messages are taken instead of printed. Calls must not be nested. */
void refusal_begin(void);
/* Messages are printed again. Returns the last one that was taken, without "error: ", or "" if
 * there was none. It is valid until the next refusal_begin(). */
const char *refusal_end(void);

#endif
