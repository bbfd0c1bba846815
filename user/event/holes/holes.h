/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * holes.h - what was not seen: the rows that sources state in CT_HOLE records, and what older records
 * of losses (CT_LOST, CT_UNPROBED, CT_MUTED) say of the same. The last line, `info`, the end of JSON,
 * --strict, sums and verdicts ask for these rows, and keep no count of their own. It knows no source and no
 * output.
 */
#ifndef CT_HOLES_H
#define CT_HOLES_H

#include "../event.h"
#include "../hole_words.h"
#include "../muted.h"

/* Rows with times of one process, layer and reason; further ones are joined with the newest. */
#define HOLES_INTERVALS 256
#define HOLES_ROWS \
	65536 /* in all; what exceeds it is added to the reason's row without a process */

struct holes_row {
	uint32_t pid, tid, device;
	uint16_t reason; /* enum ct_hole_reason */
	uint8_t layer, state;
	/* CLOCK_MONOTONIC; start_ns 0: not known, end_ns CT_HOLE_OPEN: it goes on */
	uint64_t start_ns, end_ns;
	uint64_t count, below, above;
	uint64_t count_from;	/* of a row whose numbers add up: when it first had one; 0: never */
	struct muted_sum muted; /* with CT_HOLE_MUTED */
	uint32_t shown_pid;	/* the pid as outputs show it */
	uint32_t joined;	/* number of other rows that were joined with this one */
	char comm[CT_COMM_LEN]; /* NUL-terminated; "": not known. Untrusted, like the text */
	char *text;		/* "" if there is none */
};

/* What was refused is not any more. */
static inline bool holes_void(const struct holes_row *r)
{
	return r->state == CT_HOLE_REFUSED && !r->count;
}

struct holes;
struct holes *holes_open(void); /* NULL: no memory */
void holes_close(struct holes *);

/* Learns from CT_HOLE, CT_LOST, CT_UNPROBED, CT_MUTED and CT_EXIT; others are ignored. The process is that of the record;
 * NULL: not known. Returns 0 or -ENOMEM. */
int holes_record(struct holes *, const struct ct_hdr *, const struct process *);

/* All that follows takes NULL, as if there were no rows. */

/* The rows, in the order in which they were first stated. */
size_t holes_rows(const struct holes *);
const struct holes_row *holes_row(const struct holes *, size_t i);

/* Does --strict fail? Calls that were counted or estimated (muted) do not make it fail: their number
 * stands in the output, with its error. */
bool holes_fails(const struct holes *);
/* Is there a row, apart from lost records, that concerns calls or device work of which the number is not
 * known? Then "0 lost" is only about what was seen. */
bool holes_unseen(const struct holes *);
/* The number of a reason, as its texts count it. */
uint64_t holes_number(const struct holes *, enum ct_hole_reason);
/* Processes that ran before CUDA's code had its probes. */
const struct unprobed_sum *holes_unprobed(const struct holes *);
/* Stretches of time (CLOCK_MONOTONIC; to_ns CT_HOLE_OPEN: to the end) in which records of some layers (bits 1 <<
 * enum ct_hole_layer) of a process (0: of any) may be missing: the union of the rows whose reasons have HOLES_ALL
 * and whose begins are known. A verdict about such a stretch abstains. In order of time; the caller frees *out. Returns
 * how many. */
struct holes_stretch {
	uint64_t from_ns, to_ns;
};
size_t holes_stretches(const struct holes *, uint32_t pid, unsigned int layers,
		       struct holes_stretch **out);
/* How much of from_ns..to_ns they cover. */
uint64_t holes_within_ns(const struct holes_stretch *, size_t n, uint64_t from_ns, uint64_t to_ns);
/* Both at once. */
uint64_t holes_missing_ns(const struct holes *, uint32_t pid, unsigned int layers, uint64_t from_ns,
			  uint64_t to_ns);
#define HOLES_OF(layer) (1u << (layer))
/* What a verdict about time rests on. */
#define HOLES_OF_TIME \
	(HOLES_OF(CT_HOLE_CALLS) | HOLES_OF(CT_HOLE_DEVICE) | HOLES_OF(CT_HOLE_SCOPES))
/* May calls or device work of these layers be missing, of which the number is not known? */
bool holes_unknown(const struct holes *, unsigned int layers);

/* ---- words ---- */

/* A clause for each reason, between `before` and `after`: "process 4242 (python3) used CUDA and had no hooks: its
 * calls are not known, from 2.310 s on". Lost records and mutes have none: outputs say these with their numbers. Times
 * count from zero_ns; 0: they are not said. Returns the length; a clause that does not fit is left out, and it
 * then says how many these were. */
#define HOLES_TEXT 2048
size_t holes_text(const struct holes *, uint64_t zero_ns, const char *before, const char *after,
		  char *text, size_t size);
/* One row for people: "process 4242 (python3) used CUDA and had no hooks: its calls are not known, from 2.310 s on". */
#define HOLES_ROW_TEXT 640
void holes_row_text(const struct holes_row *, uint64_t zero_ns, char *text, size_t size);

/* ---- for sources ---- */

/* Fills in a record without a time, a text or a number. */
struct ct_hole hole_of(uint32_t pid, enum ct_hole_layer, enum ct_hole_state, enum ct_hole_reason);
/* From when until when (CT_HOLE_OPEN: it goes on; 0, both: not known), CLOCK_MONOTONIC. */
void hole_when(struct ct_hole *, uint64_t from_ns, uint64_t until_ns);
/* The row as it is at the end of a trace: a record with CT_F_FINAL. What has no begin or no end gets that of the trace. */
struct hole_text;
void hole_final(const struct holes_row *, uint64_t begin_ns, uint64_t end_ns, struct hole_text *);
/* A record with room for a text. */
struct hole_text {
	union {
		struct ct_hole hole;
		char room[sizeof(struct ct_hole) + CT_HOLE_TEXT_MAX];
	};
};
/* Writes the text behind the record, and its size; a longer text is cut. */
void hole_say(struct hole_text *, const char *text);

#endif
