/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * msg.h - one-sentence messages to stderr. An error says what happened and what to do. Each is one
 * line: what a terminal does not show as a glyph, as in a hostile name, is an octal escape in it.
 *
 * Errors and warnings of one kind (of one format string, which is never freed) are said
 * MSG_AT_ONCE times, then once in five seconds. Those in between are counted: the next one that
 * is said, or msg_rest(), ends with "(and N more like it)".
 */
#ifndef CT_MSG_H
#define CT_MSG_H

#include <stdbool.h>

#define MSG_AT_ONCE 20

extern bool msg_quiet; /* -q: errors and warnings only */
/* A line of the terminal that the next message replaces: util/whole/progress.h. */
extern bool msg_over_line;
#define MSG_LINE_AGAIN "\r\033[K" /* moves to the beginning of the line and clears it */
extern int msg_verbose;		  /* -v: 1; -vv: 2 (libbpf's own words too) */
/* every message is printed, whatever its rate: for tests that read all of them */
extern bool msg_unlimited;
/* Takes each message, with its newline, instead of stderr, as while the terminal is drawn on.
 * NULL: stderr. */
extern void (*msg_taker)(const char *text);

/* "cudatrace: error: ..." */
void msg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "cudatrace: warning: ..." */
void msg_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void msg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* "cudatrace: ..." */
void msg_verb(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* only with -v */
/*
 * CUDATRACE_DEBUG=join,names: what a part of cudatrace decides, each time it decides. All of these
 * messages are printed, whatever their rate. docs/internals/debugging.md lists them.
 */
enum msg_domain {
	MSG_FILES,  /* which files are probed and released */
	MSG_JOIN,   /* device work and the call that it got */
	MSG_NAMES,  /* handles of kernels and the names that they got */
	MSG_STACKS, /* stacks, and how far they could be unwound */
	MSG_TRACE,  /* blocks of recordings that are written and read */
	MSG_DOMAINS
};
extern unsigned int msg_domains; /* 1 << enum msg_domain */
/* list: "join,names" or "all"; NULL: nothing. Returns false after a message if a word is
 * unknown. */
bool msg_debug_parse(const char *list);
void msg_debug_say(enum msg_domain, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "cudatrace: join: ..." */
#define msg_debug(domain, ...) \
	(msg_domains & 1u << (domain) ? msg_debug_say(domain, __VA_ARGS__) : (void)0)

/* Prints for each kind how many messages were left out. To be called at the end of a session and
 * of the program. */
void msg_rest(void);

#endif
