/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.h - takes the messages of a check instead of printing them, and says why it refused. Knows no
 * domain. */
#ifndef CT_REFUSAL_H
#define CT_REFUSAL_H

/* From here on messages are taken. Not twice at a time. */
void refusal_begin(void);
/* Messages are printed again. The last one that was taken, without "error: "; "": there was none. Valid until the next
 * refusal_begin(). */
const char *refusal_end(void);

#endif
