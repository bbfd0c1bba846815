/* SPDX-License-Identifier: BSD-2-Clause */
/* advise_print.h - findings as text, Markdown or JSON. Knows findings and where they are written
 * to. */
#ifndef CT_ADVISE_PRINT_H
#define CT_ADVISE_PRINT_H

#include "../flow/sink.h"
#include "advise.h"

struct advise_print {
	const struct advice *advice;
	const struct advise_finding *findings;
	size_t n;
	const char *title;   /* what was looked at; untrusted bytes; NULL: not known */
	const char *version; /* of cudatrace */
	bool recorded;	     /* the events come from a recording */
	uint64_t start_ns;   /* of the trace: the zero of the times */
	const struct losses *losses;
	/* how many calls of these there were; NULL: not known */
	const struct muted_sum *muted_calls;
	/* functions of which not all calls were seen, NULL-terminated; NULL: none */
	const char *const *muted;
};

void advise_print_text(struct out *, const struct advise_print *);
void advise_print_markdown(struct out *, const struct advise_print *);
void advise_print_json(struct out *, const struct advise_print *);
/* Does finding i fulfil one of the conditions of --fail-if? */
bool advise_finding_fails(const struct advise_print *, size_t i, const char *const *conditions);

#endif
