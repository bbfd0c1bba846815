/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lineage.h - what the scopes of a trace are called and which of them are inside others, by id:
 * what a call or device work was for. From CT_SCOPE_BEGIN and CT_SCOPE_END records.
 *
 * A scope is remembered after its end, since device work comes later. Memory is bounded: the oldest
 * scopes are forgotten first. Then an id has no scope here, and what was inside it is unknown.
 */
#ifndef CT_LINEAGE_H
#define CT_LINEAGE_H

#include "../event.h"

#define LINEAGE_SCOPES 262144
#define LINEAGE_NAMES 65536

/* Begins with its key. */
struct scope_line {
	uint32_t pid, id;
	uint32_t parent; /* id; CT_SCOPE_NONE; CT_SCOPE_UNKNOWN */
	uint8_t kind;	 /* enum ct_scope_kind */
	uint8_t depth;	 /* scopes of its thread that it is inside of */
	uint8_t how;	 /* enum ct_collective_how, of a collective */
	bool ended;
	bool kept;	/* it is not forgotten for newer ones */
	uint32_t ranks; /* of a collective's communicator; CT_UNKNOWN: not known */
	uint64_t bytes; /* of a collective, or of all in a group; 0: not known */
	uint64_t flop;	/* of a call for products; 0: not known, or it is none */
	/* such a call of this name; NULL: it is none. Valid as long as the lineage */
	const struct ct_gemm *gemm;
	uint32_t members; /* calls in a group of which it is the end; 0: it is none */
	const char *name; /* untrusted bytes; "?": not known */
};

struct lineage;
struct lineage *lineage_open(void); /* NULL: no memory */
void lineage_close(struct lineage *);
/* Learns from the records of scopes; ignores others. Returns 0 or -ENOMEM. */
int lineage_record(struct lineage *, const struct ct_hdr *);
/* Keeps a scope, and those around it, until lineage_release() of the process: for what is captured
 * once and replayed for long. Half of the room is for such scopes at most. */
void lineage_keep(struct lineage *, uint32_t pid, uint32_t id);
void lineage_release(struct lineage *, uint32_t pid);
/* The scope with an id in a process; NULL: none, or not known. Valid until the next record. */
const struct scope_line *lineage_find(const struct lineage *, uint32_t pid, uint32_t id);
/* The innermost scope of these kinds (bits 1 << enum ct_scope_kind) that `id` is, or is inside of.
 * NULL with *known: there is none; without: it is not known. */
const struct scope_line *lineage_of_kind(const struct lineage *, uint32_t pid, uint32_t id,
					 uint32_t kinds, bool *known);
/* The id from which to look for scopes of these kinds around an event. Of what a graph's replay did
 * that is the launch of the graph, if there is one of them around it, and the call that was
 * captured otherwise. */
uint32_t lineage_from(const struct event *, uint32_t kinds);

#endif
