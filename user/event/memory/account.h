/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account.h - the one account of memory in user space: what the calls of processes took and gave
 * back, and what they hold. mem's ledger adds call sites and faults to it, stat takes its peak, and
 * timelines its changes. Knows records and rows; call sites only by their numbers, and no format.
 *
 * A call is booked once: whoever hands in nested calls as well gets the same sums, because memory
 * that is taken again at an address replaces what was there. If calls of a process are seen, they
 * are used; CT_MEMORY records, which report the same, count only for other processes.
 *
 * Two sums are not made here. What the kernel side counts (wire/sums.h) sums/book.c makes again from
 * records, by the rules of the kernel side; and a rule of advise looks at the calls of one process.
 */
#ifndef CT_ACCOUNT_H
#define CT_ACCOUNT_H

#include "../event.h"
#include "../registry.h"
#include "live.h"

/* the last one holds no memory itself */
enum account_where { ACCOUNT_DEVICE, ACCOUNT_HOST, ACCOUNT_ADDRESSES, ACCOUNT_WHERE_END };

/* Why an entry comes or goes. */
enum account_why {
	ACCOUNT_TAKEN,
	ACCOUNT_FREED,	  /* by a call with its address */
	ACCOUNT_RELEASED, /* by the last of its handles or mappings; or its free was not seen */
	/* nobody can free it any more: from here on it is a leak */
	ACCOUNT_EXITED,
	ACCOUNT_EXECED,
	ACCOUNT_CONTEXT_ENDED,
	ACCOUNT_REPLACED, /* another process has the pid: the end of this one was not seen */
};

struct account_process {
	uint32_t pid, shown_pid;
	char comm[CT_COMM_LEN];
	bool used;	 /* the place is taken */
	bool from_start; /* seen from its beginning: all that it holds is in the account */
	bool had;	 /* it took or gave back memory */
	bool by_calls;	 /* its calls are seen */
	bool ended;
	int status;	    /* with ended: the status as in wait(2) */
	uint64_t ended_ns;  /* with ended */
	uint64_t live_n;    /* number of its entries in the table */
	uint64_t unseen_n;  /* frees of memory whose allocation was not seen */
	uint64_t unfreed_n; /* addresses that were allocated again although no free was seen */

	/* The rest is for who asks: the ledger of mem counts there. A place with `handles` is not
	 * given to another process. */
	struct ledger_handles *handles; /* NULL: it made none */
	uint64_t leaked, leaked_n;
	/* failed frees: freed twice, freed by a call that does not match the allocation, nothing
	 * known at the address, others */
	uint64_t doubles_n, wrong_n, invalid_n, failed_frees_n;
	uint64_t oom_n, failed_n; /* failed allocations: for want of memory, for another reason */
	uint64_t driver_of[8];	  /* memory by device, for the first devices of the machine */
	/* as the driver reports it for the whole process, on all devices; 0: not known */
	uint64_t driver_bytes, driver_peak;
};

/* A call that does something to memory. */
struct account_call {
	const struct ct_call *c;
	uint32_t process, site; /* site: a number of the caller's */
	uint64_t address;
	bool allocator; /* called by an allocator inside the program */
};

struct account_ops {
	/* An entry has come or goes; it is still there. */
	void (*moved)(void *ctx, const struct live_entry *, enum account_why, uint64_t at_ns);
	/* A free of what is not in the account. */
	void (*unseen)(void *ctx, const struct account_call *);
	/* A process ends, and what it holds is still there. */
	void (*ends)(void *ctx, uint32_t process, uint64_t at_ns);
};

struct account {
	const struct account_ops *ops; /* NULL, as each of its functions: not wanted */
	void *ctx;
	struct live live;
	struct account_process *processes;
	uint32_t nprocesses;
	struct registry pids;  /* where each is */
	uint32_t free_process; /* where to look for a place first */
	uint64_t bytes[ACCOUNT_WHERE_END], peak[ACCOUNT_WHERE_END]; /* of all processes */
	/* the number of physical memory: handles are reused while the memory is still mapped */
	uint64_t serial;
	/* a process that started later was seen from its beginning; 0: not known */
	uint64_t began_boottime_ns;
	/* allocations that are not in the account, because too much is held at a time */
	uint64_t no_room;
	uint64_t odd_sizes; /* allocations with a size that cannot be (CT_SIZE_MOST): it is in no sum */
};

/* most: allocations at a time; 0: as many as there is room for by default. */
void account_open(struct account *, uint32_t most, const struct account_ops *, void *ctx);
void account_close(struct account *);

/* Takes a record, without call sites. Returns 1 if it is about memory, or 0. */
int account_event(struct account *, const struct event *);
/* The parts of it, for who has call sites. */
/* What a call does that took, gave back or ended memory. */
void account_call(struct account *, const struct event *, const struct account_call *,
		  const struct api_memory *);
/* CT_MEMORY: as the driver reports it, for a process whose calls are not seen. process: as of
 * account_memory_process(). */
void account_memory(struct account *, const struct ct_memory *, uint32_t process, uint32_t site);
uint32_t account_memory_process(struct account *, const struct event *); /* UINT32_MAX: none */
/* Processes begin, run other programs and end; the trace begins. */
void account_life(struct account *, const struct event *);

/* The device that a call works on; LIVE_NO_DEVICE: not known. */
uint16_t account_device(const struct account_process *, const struct event *,
			const struct api_memory *);
enum account_where account_where(const struct live_entry *);

/* Finds or makes the process that has a pid now; UINT32_MAX: no room. */
uint32_t account_process(struct account *, const struct process *);
uint32_t account_process_find(const struct account *, uint32_t pid); /* UINT32_MAX: none */
/* Forgets what a process holds: it has ended, or runs another program. */
void account_forget(struct account *, uint32_t pid, enum account_why, uint64_t at_ns);

#endif
