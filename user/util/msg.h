/* SPDX-License-Identifier: BSD-2-Clause */
/* msg.h - one-sentence messages to stderr. An error says what happened and what to do. */
#ifndef CT_MSG_H
#define CT_MSG_H

extern int msg_verbose; /* -v: 1; -vv: 2 (libbpf's own words too) */
/* Takes each message, with its newline, instead of stderr, as while the terminal is drawn on. NULL: stderr. */
extern void (*msg_taker)(const char *text);

void msg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));   /* "cudatrace: error: ..." */
void msg_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* "cudatrace: warning: ..." */
void msg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* "cudatrace: ..." */
void msg_verb(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* only with -v */

#endif
