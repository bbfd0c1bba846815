/* SPDX-License-Identifier: BSD-2-Clause */
/* hang_text.h - what an incident is, in a sentence, and in the form of findings. */
#ifndef CT_HANG_TEXT_H
#define CT_HANG_TEXT_H

#include "../../findings/findings.h"
#include "../../util/text.h"
#include "endings.h"
#include "hang.h"

/* What the sentence says beside the incident. */
struct hang_words {
	const struct nccl_job *job; /* of its ranks, with their threads; NULL: not known */
	bool gpu;		    /* work of devices is seen */
	uint64_t at_ns;
	const char *folder; /* of its evidence; NULL: there is none */
	bool traced;	    /* the trace is a part of it */
	const struct ended_process
		*ended; /* HANG_RANK_ENDED: that which was sent a signal first, and others */
	size_t nended;
	bool goes_on; /* it was told before, and further processes have ended */
};

/* "rank-absent" and so on. */
const char *hang_word(const struct hang_incident *);
/* "computes", "stopped": for JSON. */
const char *hang_doing_word(enum hang_doing);
/* "SIGABRT", or its number; "itself", "process", "kernel": who sent it. */
const char *hang_signal_word(int signal, char room[16]);
const char *hang_sender_word(uint8_t by);
/* The sentence, without a full stop; untrusted names are made harmless. */
void hang_claim(struct text *, const struct hang_incident *, const struct hang_words *);
/* The same as a finding. What the texts point to lives in the incident, `claim` and `room`. */
void hang_finding(struct finding *, const struct hang_incident *, const struct hang_words *,
		  const char *claim, struct text *room);

#endif
