/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h - who holds memory: a book of what calls took and gave back, by process, device, kind
 * and call site, with the peaks and the errors: leaks, memory freed twice or by a wrong call,
 * allocations that failed for want of memory. mem answers from it. Knows records and rows; no
 * source, no format.
 *
 * A call is booked once: nested calls are not handed to the ledger. All memory is bounded, and what
 * finds no room is counted.
 */
#ifndef CT_LEDGER_H
#define CT_LEDGER_H

#include "../event/memory/account.h"
#include "../event/memory/growing.h"
#include "blocks.h"
#include "mem_sites.h"

enum ledger_by {
	LEDGER_BY_ALL,
	LEDGER_BY_PROCESS,
	LEDGER_BY_DEVICE,
	LEDGER_BY_KIND,
	LEDGER_BY_STACK,
	LEDGER_BY_LIBRARY,
	LEDGER_LEAK
};

/* Why nobody can free the memory any more: enum account_why from ACCOUNT_EXITED on. */
enum ledger_end { LEDGER_EXITED, LEDGER_EXECED, LEDGER_CONTEXT, LEDGER_REPLACED };

struct ledger_row {
	uint8_t by, where, kind; /* enum ledger_by, account_where; kind: BY_KIND, LEAK */
	uint8_t end;		 /* LEAK: enum ledger_end */
	uint16_t device;	 /* BY_DEVICE, LEAK; LIVE_NO_DEVICE: not known */
	uint32_t process;	 /* all but BY_ALL */
	uint32_t site;		 /* BY_STACK, LEAK */
	const char *library;	 /* BY_LIBRARY; NULL: not known */
	uint64_t bytes, n;	 /* held now; LEAK: leaked */
	uint64_t peak, peak_ns;	 /* the most bytes at a time, and when that was first reached */
	/* totals: bytes taken, allocations, frees */
	uint64_t taken, taken_n, freed_n;
	uint64_t marked;       /* bytes held at the last ledger_mark() */
	uint64_t addresses[3]; /* LEAK: of the first ones */
	uint64_t first_ns;     /* LEAK: when the first was taken */
};

/* Streams and the like, which hold no memory that is known: how many there are, and who made them. */
#define LEDGER_MAKERS 16 /* call sites of each kind, the first ones; more are counted as site 0 */
struct ledger_handles {
	struct growing growing;
	struct ledger_maker {
		uint32_t site;
		uint64_t n; /* made there; 0: the place is free */
	} makers[GROWING_END][LEDGER_MAKERS + 1];
};

/* A free that went wrong, or an unseen one. */
enum ledger_fault_what { LEDGER_DOUBLE, LEDGER_WRONG, LEDGER_INVALID, LEDGER_UNSEEN };
struct ledger_fault {
	uint8_t what;					/* enum ledger_fault_what */
	uint8_t kind;					/* WRONG, DOUBLE: kind of the memory */
	uint32_t process, site, taken_site, freed_site; /* taken_site, freed_site: 0: not known */
	uint64_t address, n, at_ns;			/* address and time of the first of n */
};
#define LEDGER_FAULTS 64 /* kept separately; more are counted only in their processes */

struct ledger_oom {
	uint32_t process, site;
	uint16_t device;
	uint8_t kind;
	/* held by the process at that time: held on devices, host on the host */
	uint64_t at_ns, asked, held, held_n, host;
	struct holders holders;
};
#define LEDGER_OOMS 16 /* kept; more are counted only in their processes */

struct ledger;
struct ledger_opts {
	bool handles;		     /* counts them, too */
	uint32_t live_max, rows_max; /* 0: as many as there is room for by default */
	void (*oom)(void *ctx, const struct ledger_oom *); /* called at once; NULL: not wanted */
	void (*no_block)(void *ctx, const struct blocks_oom *); /* the same of an allocator's */
	/* what an allocator does, and has from CUDA; NULL: not wanted */
	void (*block_changed)(void *ctx, const struct block_change *);
	/* a process ends, and what it holds is still there; NULL: not wanted */
	void (*ends)(void *ctx, const struct ledger *, uint32_t process);
	/* `bytes` more (or less) are held by a call site */
	void (*moved)(void *ctx, uint64_t at_ns, uint32_t process, uint32_t site,
		      enum account_where, int64_t bytes);
	void *ctx;
};

struct ledger {
	struct ledger_opts opts;
	struct account account; /* what is held, and the processes */
	struct blocks blocks;	/* inside that memory, where programs have allocators that say it */
	struct sites *sites;
	struct ledger_row *rows;
	uint32_t nrows;
	struct ledger_fault faults[LEDGER_FAULTS];
	uint32_t nfaults;
	struct ledger_oom ooms[LEDGER_OOMS];
	uint32_t nooms;
	uint64_t first_ns, last_ns; /* of what was seen; 0: nothing */
	uint64_t no_row;	    /* changes for which there was no row */
	struct ledger_index *index;
};

/* NULL: no memory. */
struct ledger *ledger_open(const struct ledger_opts *);
void ledger_close(struct ledger *);
/* Returns 1 if the event changed memory, 0 if not, or -ENOMEM. */
int ledger_event(struct ledger *, const struct event *);
/* The row of all memory of a kind of place; never NULL. */
const struct ledger_row *ledger_all(const struct ledger *, enum account_where);
/* NULL: it had none */
const struct ledger_row *ledger_of_process(const struct ledger *, uint32_t process,
					   enum account_where);
/* Sets `marked` of each row to what it holds now. */
void ledger_mark(struct ledger *);

#endif
