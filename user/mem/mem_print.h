/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_print.h - a ledger as text or JSON. Knows ledgers and where they are written to. */
#ifndef CT_MEM_PRINT_H
#define CT_MEM_PRINT_H

#include "../flow/sink.h"
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
/* An allocator inside a program has no block to give. */
void mem_print_no_block(struct out *, const struct ledger *, const struct mem_about *,
			const struct blocks_oom *);
/* The blocks of such allocators, as text, and as members of the JSON object. */
void mem_print_blocks(struct out *, const struct ledger *, const struct mem_about *);
struct json;
void mem_print_blocks_json(struct json *, const struct ledger *, const struct mem_about *);
/* What is held now, and what grew since the last ledger_mark(). */
void mem_print_watch(struct out *, const struct ledger *, const struct mem_about *,
		     uint64_t now_ns);
void mem_print_watch_json(struct out *, const struct ledger *, const struct mem_about *,
			  uint64_t now_ns);

/* Number of records that were lost, and of allocations that the book had no room for: if there
 * are any, it is not known what was leaked. */
uint64_t mem_missing(const struct ledger *, const struct mem_about *);

/* Streams and the like of which a process has more and more. */
struct mem_growth {
	uint32_t process;
	enum growing_kind kind;
	uint64_t made, given;
	uint32_t nmakers;
	/* those of whom most are, first; site 0: all others, or not known */
	struct ledger_maker makers[LEDGER_MAKERS + 1];
};
/* Fills in the next one at or behind *at, from 0 on, which moves on. False: there is none. */
bool mem_next_growth(const struct ledger *, const struct mem_about *, uint64_t *at,
		     struct mem_growth *);

/* Used inside the room: the rows of a kind, the largest first: by their peak, or, for leaks, by
 * their size. The caller frees; NULL: there are none, or no memory. */
const struct ledger_row **mem_rows(const struct ledger *, enum ledger_by, uint32_t *n);
void mem_process_text(struct out *, const struct ledger *, uint32_t process); /* "1234 app" */
void mem_site_line(struct out *, const struct ledger *, uint32_t site);
/* A line for each frame that is not an interpreter's. */
void mem_stack_lines(struct out *, const struct ledger *, uint32_t site);
/* The function that puts a name into a text: text_plain(), or one that does not change it. */
typedef void (*mem_put_fn)(struct text *, const char *s, size_t max);
#define MEM_NAME_BYTES 120
/* A frame: "fill at app.c:12", or with the whole path "fill /src/app.c:12". */
void mem_frame_text(struct text *, const struct site_frame *, bool whole, mem_put_fn);
/* A call site in one line: the code that made the call, and the Python code that led to it. */
void mem_site_text(struct text *, const struct site *, mem_put_fn);
/* The same for n sites that are shown together, into out[0] to out[n - 1]: if two of them have
 * the same text, a caller by which they differ is added. */
void mem_site_texts(const struct sites *, const uint32_t *numbers, size_t n, struct text *out,
		    mem_put_fn);
/* The member "holders"; `counted` is the name of their numbers. */
void mem_print_holders_json(struct json *, const struct holders *, const char *counted);
const char *mem_where_name(enum account_where);	    /* "device" */
const char *mem_end_name(enum ledger_end);	    /* "exited" */
const char *mem_fault_name(enum ledger_fault_what); /* "double_free" */

#endif
