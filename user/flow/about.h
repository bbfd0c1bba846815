/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * about.h - the name of an event, and its fields as one line of text, for the outputs that are
 * neither the table nor JSON:
 *
 *   cudaMemcpyAsync                 dst=0x7f1200000000, src=0x5581, count=4096 bytes,
 *                                   kind=HostToDevice, stream=0x0
 *   vecAdd(float const*, int)
 *   copy HtoD
 *
 * All of it is safe to print: it is well-formed UTF-8, and what no terminal shows is escaped. Knows
 * no format.
 */
#ifndef CT_ABOUT_H
#define CT_ABOUT_H

#include "sink.h"
#include "../util/text.h"

/* The word for a record's kind: "call", "kernel", "copy"; NULL: the record is a definition and
 * not something that happened. */
const char *about_kind(uint16_t kind);
/* True for a completed call, including a call of a function that is not known here (CT_FOREIGN). */
bool about_is_call(const struct ct_hdr *);
/* True for a call or a scope that is recorded only because others need it, and is not shown. */
bool about_is_hidden(const struct ct_hdr *);
/* The name of a scope as its program gave it, untrusted bytes, NUL-terminated: "?" where it is not
 * known, with "..." where it is cut. Returns its length. */
#define ABOUT_SCOPE_MAX 1024
size_t about_scope(const struct ct_scope *, char buf[ABOUT_SCOPE_MAX]);
/* The name of the event's slice or row. */
void about_name(struct text *, const struct sink_opts *, const struct event *);
/* name=value, name=value */
void about_fields(struct text *, const struct field *, int n);
/* Appends n bytes of a record, up to the first NUL; of a very long text only the beginning. */
void about_text(struct text *, const char *s, size_t n);
/* Number of bytes that it moves, sets or allocates; -1: it has no size, or the size is not
 * known. */
int64_t about_bytes(const struct ct_hdr *);
/* Words for what makes a row uncertain, separated by spaces, into an empty text. */
void about_flags(struct text *, const struct ct_hdr *);
/* Duration in nanoseconds; 0 if it is not known. */
uint64_t about_duration_ns(const struct ct_hdr *);
/* The thread id that users see. */
uint32_t about_tid(const struct event *);
/* What distinguishes a process from others with the same number: " on node-b", " #2" for the
 * second one; "" if there is no other. */
void about_whom(struct text *, const struct process *);

/* The name of the innermost scope around a call, or around the call that caused device work,
 * untrusted bytes; "?": it is inside one that is not known; NULL: it is inside none. */
const char *about_around(const struct event *);

/* The name of the record's thread, also if it is the leader; NULL: not known. Untrusted bytes. */
const char *about_thread(const struct event *);

#endif
