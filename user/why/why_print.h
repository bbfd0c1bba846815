/* SPDX-License-Identifier: BSD-2-Clause */
/* why_print.h - where the time went, as text or JSON. */
#ifndef CT_WHY_PRINT_H
#define CT_WHY_PRINT_H

#include "../flow/sink.h"
#include "../gaps/why.h"

struct why_print {
	const struct why *why;
	const struct why_part *parts;
	size_t n;
	const char *title;   /* what was looked at; untrusted bytes; NULL: not known */
	const char *version; /* of cudatrace */
	bool recorded, gpu;
	uint64_t start_ns;
	const struct losses *losses;
	unsigned int top; /* causes that text shows of each part; 0: all */
};

void why_print_text(struct out *, const struct why_print *);
void why_print_json(struct out *, const struct why_print *);
/* A line for each cause, its chain as frames, and the time: what flame graph programs read. */
void why_print_folded(struct out *, const struct why_print *);
/* Does a cause fulfil one of the conditions of --fail-if? */
bool why_print_fails(const struct why_print *, const char *const *conditions);

#endif
