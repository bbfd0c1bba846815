/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.h - where the threads of running processes are at this moment, without stopping any:
 * their registers and the stack that they use. Nothing is put into a process and nothing in it
 * notices: no signal, no EINTR.
 *
 * For that moment it is also known whether a call of a thread began before our probes were placed: see
 * snapshot_began().
 *
 * Two ways to a thread. One that is off the CPU has its registers in the kernel, where the
 * iterator ct_threads reads them; what is then read of its memory is good if it has not run
 * until all was read, which its switches tell. One that runs is asked by a perf event for a
 * sample: an interrupt copies registers and stack.
 */
#ifndef CT_SNAPSHOT_H
#define CT_SNAPSHOT_H

#include "../discover/discover.h"

/* A function of CUDA's, where a process has it. */
struct snapshot_func {
	uint64_t start;
	uint32_t size; /* bytes; 0: not known */
	uint16_t func; /* row of the table */
	bool per_thread;
};

struct snapshot_range {
	uint64_t start, end;
};

/* A process that has CUDA's code mapped. */
struct snapshot_process {
	pid_t pid;		     /* in our namespace */
	struct ct_process about;     /* the record that announces it */
	struct snapshot_func *funcs; /* by address, one for an address */
	size_t nfuncs;
	struct snapshot_range *code; /* executable mappings of the files that have them */
	size_t ncode;
};

/* A thread that may be in CUDA's code, because its registers or its stack hold an address in that
 * code. */
struct snapshot_thread {
	const struct snapshot_process *process;
	uint32_t tid;	 /* initial namespace */
	pid_t shown_tid; /* ours */
	/* the thread could not be read: of the members below only calls, reach and saved are known */
	bool missed;
	bool sampled;	   /* by a perf event; else it was off the CPU */
	uint64_t switches; /* not sampled: as long as it keeps them it is where it was */
	uint64_t ip, sp, bp, lr;
	uint64_t regs[10]; /* as in struct ct_user_stack */
	uint8_t *stack;	   /* memory from sp on */
	size_t len;
	/* of the calls under way that a probe of ours saw begin: the caller's stack pointer after
	 * the return; 0: none */
	uint64_t calls[CT_MAX_FRAMES];
	/* how far out calls lie that began since all probes were placed, by stack. nreach above
	 * CT_REACHES: some stacks are missing */
	struct ct_reach reach[CT_REACHES];
	uint32_t nreach;
	/* Return addresses that return probes of any tracer replaced, outermost first. Of a thread that was sampled:
	 * those of a moment before and of one after, since the calls may be shorter than that. */
	struct ct_saved saved[2 * CT_MAX_FRAMES];
	int nsaved;
	/* return addresses of calls that are ending or have ended, of the same moments; sp 0: none */
	struct ct_saved ending[4];
};

/* When did a call begin? */
enum snapshot_began {
	SNAPSHOT_BEFORE, /* before the probes were placed; it is still under way, if a stack shows it */
	SNAPSHOT_SINCE,	  /* later; a call from before that had its frame there has ended */
	SNAPSHOT_UNKNOWN, /* its frame is on a stack that was not noted */
};

struct snapshot {
	/* given to snapshot_take(): all threads, with or without a sign of CUDA's code; of these processes alone
	 * (none: of those that the source looks at) */
	bool all;
	const pid_t *only;
	int nonly;
	/* what it found */
	uint64_t at_ns; /* CLOCK_MONOTONIC, when it was begun */
	struct snapshot_process *procs;
	size_t nprocs;
	struct snapshot_thread *threads;
	size_t nthreads;
};

struct snapshot_from {
	int threads_fd; /* the loaded program ct_threads */
	int maps_fd;	/* the loaded program ct_maps */
	struct probe_file *const *files;
	int nfiles;
	const pid_t *pids; /* in our namespace; npids 0: every process */
	int npids;
};

/* Returns 0 or -errno. A process or thread that ends meanwhile is left out. snapshot_free() in
 * any case. */
int snapshot_take(struct snapshot *, const struct snapshot_from *);
void snapshot_free(struct snapshot *);
/* A call of the thread that its stack shows. sp: the caller's stack pointer after the return. Not exact:
 * the largest address that is known to be below that. */
enum snapshot_began snapshot_began(const struct snapshot_thread *, uint64_t sp, bool exact);
/* Is it an address in the CUDA code that the process has mapped? */
bool snapshot_in_code(const struct snapshot_process *, uint64_t addr);

/* One sample of a running thread of our namespace (snapshot_perf.c): fills in registers and
 * stack (*stack is the caller's to free). Returns 0, -EAGAIN (it did not run within timeout_ms),
 * or -errno. */
int snapshot_sample(struct snapshot_thread *, pid_t tid, int timeout_ms);

#endif
