/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_print.h - a ledger as text or JSON. Knows ledgers and where they are written to. */
#ifndef CT_MEM_PRINT_H
#define CT_MEM_PRINT_H

#include "../format/sink.h"
#include "../util/text.h"
#include "ledger.h"

struct mem_about {
	const char *title, *version; /* title: untrusted bytes; NULL: not known */
	uint64_t start_ns;	     /* of the trace, CLOCK_MONOTONIC */
	int by;			     /* enum ledger_by, the only table; -1: the usual ones */
	uint32_t top;		     /* rows of a table */
	const struct sink_end *end;
};

void mem_print_text(struct out *, const struct ledger *, const struct mem_about *);
void mem_print_json(struct out *, const struct ledger *, const struct mem_about *);
/* An allocation failed for want of memory. */
void mem_print_oom(struct out *, const struct ledger *, const struct mem_about *,
		   const struct ledger_oom *);
/* What is held now, and what grew since the last ledger_mark(). */
void mem_print_watch(struct out *, const struct ledger *, const struct mem_about *,
		     uint64_t now_ns);
void mem_print_watch_json(struct out *, const struct ledger *, const struct mem_about *,
			  uint64_t now_ns);

/* Number of records that were lost, and of allocations that the book had no room for: with any
 * it is not known what was leaked. */
uint64_t mem_missing(const struct ledger *, const struct mem_about *);

/* Inside: the rows of a kind, the largest first: by what they had at most, of leaks by what they
 * are. The caller frees; NULL: there are none, or no memory. */
const struct ledger_row **mem_rows(const struct ledger *, enum ledger_by, uint32_t *n);
/* How a name is put into a text: text_plain(), or as it is. */
typedef void (*mem_put_fn)(struct text *, const char *s, size_t max);
#define MEM_NAME_BYTES 120
/* A frame: "fill at app.c:12", or with the whole path "fill /src/app.c:12". */
void mem_frame_text(struct text *, const struct site_frame *, bool whole, mem_put_fn);
/* A call site in one line: the code that made the call, and the Python code that it was made for. */
void mem_site_text(struct text *, const struct site *, mem_put_fn);
/* The same of n sites that are shown together, into out[0] to out[n - 1]: where two of them
 * would read alike, a caller by which they differ follows. */
void mem_site_texts(const struct sites *, const uint32_t *numbers, size_t n, struct text *out,
		    mem_put_fn);
const char *mem_where_name(enum ledger_where);	    /* "device" */
const char *mem_end_name(enum ledger_end);	    /* "exited" */
const char *mem_fault_name(enum ledger_fault_what); /* "double_free" */

#endif
