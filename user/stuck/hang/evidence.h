/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evidence.h - what is kept of a hang: a folder with the verdict, stacks, processes, the kernel's log and the last
 * seconds of the trace. Only we can read it; it is there as a whole or not at all, but for a name that ends in
 * .tmp while it is written. docs/hangs.md describes the files.
 */
#ifndef CT_EVIDENCE_H
#define CT_EVIDENCE_H

#include "../../flow/sink.h"
#include "../../source/source.h"
#include "../../trace/flight.h"
#include "../asked.h"
#include "../stuck_look.h"
#include "hang_text.h"

struct evidence;
struct objects;

/* Folders are made in `dir`, at most `most` of them. NULL: after one message. */
struct evidence *evidence_open(const char *dir, unsigned int most);
void evidence_close(struct evidence *); /* takes NULL */

struct evidence_of {
	const struct hang_incident *incident;
	const struct nccl_job *job; /* of its communicators, with the threads of its ranks */
	const struct hang_words *words;
	struct asked *asked;
	uint64_t over_ns;
	const struct stuck_row *rows;
	size_t nrows;
	struct source *source;
	struct objects *objects;
	/* HANG_RANK_ENDED: the stacks of what words->ended has are told by these; those of others were written to this
	 * descriptor when the signal came, -1: they were not. `source` does not matter then. */
	struct stuck_stacks *kept;
	int others_fd;
	struct ring_buf *ring;	      /* NULL: the trace is not kept */
	const struct ct_clock *clock; /* of the trace */
	const struct sink_opts *opts;
};

/* Where it will be: valid until the next one. NULL: there are `most` already. */
const char *evidence_next(struct evidence *, const struct hang_incident *, uint64_t realtime_ns);
/* Writes it there. Returns 0, or -errno after one message. */
int evidence_take(struct evidence *, const struct evidence_of *);
/* The first line of hang.json, and all of them. */
void evidence_incident(struct out *, const struct evidence_of *);
void evidence_verdict(struct out *, const struct evidence_of *);

#endif
