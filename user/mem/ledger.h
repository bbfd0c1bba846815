/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h - who holds memory: a book of what calls took and gave back, by process, device, kind
 * and call site, with the peaks and the errors: leaks, memory freed twice or by a wrong call,
 * allocations that failed for want of memory. mem answers from it. Knows records and rows; no
 * source, no format.
 *
 * A call is booked once: nested calls are not handed to the ledger. If calls of a process are seen,
 * the ledger uses them; CT_MEMORY records, which report the same, are used only for other
 * processes. All memory is bounded, and what finds no room is counted.
 */
#ifndef CT_LEDGER_H
#define CT_LEDGER_H

#include "../event/event.h"
#include "blocks.h"
#include "growing.h"
#include "live.h"
#include "mem_sites.h"

/* the last one holds no memory itself */
enum ledger_where { LEDGER_DEVICE, LEDGER_HOST, LEDGER_ADDRESSES, LEDGER_WHERE_END };

enum ledger_by {
	LEDGER_BY_ALL,
	LEDGER_BY_PROCESS,
	LEDGER_BY_DEVICE,
	LEDGER_BY_KIND,
	LEDGER_BY_STACK,
	LEDGER_BY_LIBRARY,
	LEDGER_LEAK
};

/* Why nobody can free the memory any more. */
enum ledger_end { LEDGER_EXITED, LEDGER_EXECED, LEDGER_CONTEXT, LEDGER_REPLACED };

struct ledger_row {
	uint8_t by, where, kind; /* enum ledger_by, ledger_where; kind: BY_KIND, LEAK */
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

struct ledger_process {
	uint32_t pid, shown_pid;
	uint64_t start_boottime_ns; /* 0: not known */
	char comm[CT_COMM_LEN];
	bool used;	 /* the place is taken */
	bool from_start; /* seen from its beginning: all that it holds is in the book */
	bool had;	 /* it took or gave back memory */
	bool by_calls;	 /* its calls are seen */
	bool ended;
	int status;			/* with ended: the status as in wait(2) */
	uint64_t ended_ns;		/* with ended */
	struct ledger_handles *handles; /* NULL: it made none */
	uint64_t live_n;		/* number of its entries in the table */
	uint64_t leaked, leaked_n;
	uint64_t unseen_n;  /* frees of memory whose allocation was not seen */
	uint64_t unfreed_n; /* addresses that were allocated again although no free was seen */
	/* failed frees: freed twice, freed by a call that does not match the allocation, nothing
	 * known at the address, others */
	uint64_t doubles_n, wrong_n, invalid_n, failed_frees_n;
	uint64_t oom_n, failed_n; /* failed allocations: for want of memory, for another reason */
	uint64_t driver_of[8];	  /* memory by device, for the first devices of the machine */
	/* as the driver reports it for the whole process, on all devices; 0: not known */
	uint64_t driver_bytes, driver_peak;
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
	void (*block_changed)(void *ctx, const struct blocks_change *);
	/* a process ends, and what it holds is still there; NULL: not wanted */
	void (*ends)(void *ctx, const struct ledger *, uint32_t process);
	/* `bytes` more (or less) are held by a call site */
	void (*moved)(void *ctx, uint64_t at_ns, uint32_t process, uint32_t site, enum ledger_where,
		      int64_t bytes);
	void *ctx;
};

struct ledger {
	struct ledger_opts opts;
	struct live live;
	struct blocks blocks; /* inside that memory, where programs have allocators that say it */
	struct sites *sites;
	struct ledger_row *rows;
	uint32_t nrows;
	struct ledger_process *processes;
	uint32_t nprocesses;
	struct ledger_fault faults[LEDGER_FAULTS];
	uint32_t nfaults;
	struct ledger_oom ooms[LEDGER_OOMS];
	uint32_t nooms;
	uint64_t first_ns, last_ns; /* of what was seen; 0: nothing */
	/* a process that started later was seen from its beginning; 0: not known */
	uint64_t began_boottime_ns;
	/* allocations that are not in the book, because too much is held at a time */
	uint64_t no_room;
	uint64_t no_row; /* changes for which there was no row */
	uint64_t odd_sizes; /* allocations with a size that cannot be (CT_SIZE_MOST): it is in no sum */
	struct ledger_index *index;
};

/* NULL: no memory. */
struct ledger *ledger_open(const struct ledger_opts *);
void ledger_close(struct ledger *);
/* Returns 1 if the event changed memory, 0 if not, or -ENOMEM. */
int ledger_event(struct ledger *, const struct event *);
/* The row of all memory of a kind of place; never NULL. */
const struct ledger_row *ledger_all(const struct ledger *, enum ledger_where);
/* NULL: it had none */
const struct ledger_row *ledger_of_process(const struct ledger *, uint32_t process,
					   enum ledger_where);
/* Sets `marked` of each row to what it holds now. */
void ledger_mark(struct ledger *);

#endif
