/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hole_words.h - the words of CT_HOLE records, and what follows from a reason (holes.def).
 */
#ifndef CT_HOLE_WORDS_H
#define CT_HOLE_WORDS_H

#include "event.h"

/* What the number in a reason's texts counts. */
enum holes_per { HOLES_COUNT, HOLES_PROCESSES };
#define HOLES_FAILS 0x1	 /* --strict fails */
#define HOLES_SPARES 0x2 /* no call and no device record is missing */
#define HOLES_ALL 0x4	 /* while it lasts, any record of the layer may be missing */

const char *hole_layer(uint8_t layer);	  /* "calls"; "unknown" */
const char *hole_state(uint8_t state);	  /* "unseen"; "unknown" */
const char *hole_reason(uint16_t reason); /* "no_hooks"; "unknown" */

struct hole_why {
	const char *word, *one, *many;
	uint8_t per, flags; /* enum holes_per; HOLES_* */
};

/* Of a reason that this version does not know it returns a row that says so. */
const struct hole_why *hole_why(uint16_t reason);

#endif
