/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * about.h - what an event is called, and its fields as one line of text, for the outputs that are
 * neither the table nor JSON:
 *
 *   cudaMemcpyAsync                 dst=0x7f1200000000, src=0x5581, count=4096 bytes,
 *                                   kind=HostToDevice, stream=0x0
 *   vecAdd(float const*, int)
 *   copy HtoD
 *
 * All of it is safe to print: well-formed UTF-8, what no terminal shows is escaped. Knows no
 * format.
 */
#ifndef CT_ABOUT_H
#define CT_ABOUT_H

#include "sink.h"
#include "../util/text.h"

/* The word for a record's kind: "call", "kernel", "copy"; NULL: nothing that happened, but a
 * definition. */
const char *about_kind(uint16_t kind);
/* A completed call, also one of a function that is not known here (CT_FOREIGN). */
bool about_is_call(const struct ct_hdr *);
/* The name that a slice or a row has. */
void about_name(struct text *, const struct sink_opts *, const struct event *);
/* name=value, name=value */
void about_fields(struct text *, const struct field *, int n);
/* n bytes of a record, up to a NUL among them; of very many the first. */
void about_text(struct text *, const char *s, size_t n);
/* Bytes that it moves, sets or allocates; -1: it has none, or it is not known how many. */
int64_t about_bytes(const struct ct_hdr *);
/* Nanoseconds; 0 for what has no known duration. */
uint64_t about_duration_ns(const struct ct_hdr *);
/* The thread as users see it. */
uint32_t about_tid(const struct event *);
/* What tells a process from others with its number: " on node-b", " #2" for the second one; ""
 * where there is no other. */
void about_whom(struct text *, const struct process *);

/* The name of the record's thread, of the leader too; NULL: not known. Untrusted bytes. */
const char *about_thread(const struct event *);

#endif
