/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kinds.h - what is known of each kind of record (kinds.def): how large its fixed part is, what
 * it is called, and what it is. Nothing else lists kinds to tell them apart by these properties.
 */
#ifndef CT_KINDS_H
#define CT_KINDS_H

#include "../api/api.h"

enum kind_flag {
	KIND_CALL = 0x1,    /* begins with struct ct_call */
	KIND_WORK = 0x2,    /* begins with struct ct_work: a device did it because of a call */
	KIND_STREAM = 0x4,  /* work in the order of a stream */
	KIND_BUSY = 0x8,    /* work that keeps the device busy, as a wait does not */
	KIND_DEVICE = 0x10, /* a row of what devices did or what befell them */
	/* one that has a duration: it is counted, and --min-duration judges it */
	KIND_TIMED = 0x20,
	/* later records cannot be understood without it: no window and no filter leaves it out
	 * of a file */
	KIND_DEFINITION = 0x40,
	KIND_RAW = 0x80,    /* ends in resolve or join: no file has it */
	KIND_AGENT = 0x100, /* an agent may send it, whatever it says */
	/* comes in numbers and alike: a recording tells one by what differs from the one before
	 * (encode.c) */
	KIND_SLOT = 0x200,
};

struct kind {
	/* in csv and in other programs' formats: "copy"; NULL: it is shown in none */
	const char *word;
	/* "type" of its JSON object, and in brackets the table's EVENT: "memcpy"; NULL: it is
	 * shown in neither */
	const char *json;
	/* bytes before its tail: sizeof its struct. A shorter record is damaged */
	uint16_t fixed;
	uint16_t flags; /* enum kind_flag */
};

/* By enum ct_kind. */
extern const struct kind record_kinds[CT_KIND_END];

/* Does it have one of the flags? A kind that this version does not know has none. */
static inline bool kind_is(uint16_t kind, unsigned int flags)
{
	return kind < CT_KIND_END && record_kinds[kind].flags & flags;
}

/* NULL: it is not shown as JSON. */
static inline const char *kind_json(uint16_t kind)
{
	return kind < CT_KIND_END ? record_kinds[kind].json : NULL;
}

#endif
