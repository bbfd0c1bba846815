/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kinds.h - the properties of each kind of record (kinds.def): the size of its fixed part, its
 * names and its flags. No other file keeps a list of kinds by these properties.
 */
#ifndef CT_KINDS_H
#define CT_KINDS_H

#include "../api/api.h"

enum kind_flag {
	KIND_CALL = 0x1,    /* begins with struct ct_call */
	KIND_WORK = 0x2,    /* begins with struct ct_work: device work that a call caused */
	KIND_STREAM = 0x4,  /* work that runs in the order of a stream */
	KIND_BUSY = 0x8,    /* work that keeps the device busy, as a wait does not */
	KIND_DEVICE = 0x10, /* a row about what devices did or what happened to them */
	/* has a duration: it is counted, and --min-duration applies to it */
	KIND_TIMED = 0x20,
	/* later records cannot be understood without it, so no window and no filter removes it
	 * from a file */
	KIND_DEFINITION = 0x40,
	KIND_RAW = 0x80,    /* a stage or a sink consumes it, so no file contains it */
	KIND_AGENT = 0x100, /* an agent may send it, with any content */
	/* comes often, and each is similar to the one before: a recording stores only the
	 * differences (encode.c) */
	KIND_PATTERN = 0x200,
};

struct kind {
	/* in csv, in other programs' formats and, of device work, in JSON: "copy"; NULL: those formats do not show it */
	const char *word;
	/* in brackets the table's EVENT, and "type" of its JSON object: "memcpy"; NULL: neither
	 * shows it */
	const char *json;
	/* bytes before its tail: sizeof its struct. A shorter record is damaged */
	uint16_t fixed;
	uint16_t flags; /* enum kind_flag */
};

/* Indexed by enum ct_kind. */
extern const struct kind record_kinds[CT_KIND_END];

/* True if the kind has one of the flags. A kind that this version does not know has none. */
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
