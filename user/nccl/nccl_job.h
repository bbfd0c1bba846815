/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl_job.h - the ranks of communicators put together, of the processes of one machine or of the
 * answers of several: which rank has not begun a collective that others wait in.
 *
 * NCCL counts the collectives that were begun with a communicator, by kind. Ranks whose counts did
 * not change between two looks are compared: where one has a lower count than the others, it has
 * not arrived. Knows no process; what it is given is untrusted.
 */
#ifndef CT_NCCL_JOB_H
#define CT_NCCL_JOB_H

#include "../util/io/out.h"
#include "nccl_comm.h"

#define NCCL_HOST_BYTES 64
#define NCCL_THREADS_MAX 64 /* of a process, that are kept */
#define NCCL_FRAMES_MAX 64  /* of a thread's stack */

struct nccl_thread {
	uint32_t tid;
	char name[16];
	char state[12];	 /* "sleeps", "runs"; "": not known */
	char wait[32];	 /* where in the kernel it sleeps, "" is not known */
	char inside[64]; /* the function of CUDA that it is inside of, "": none is known */
	char **frames;	 /* of Python, innermost first: "Trainer.step (train.py:12)" */
	int nframes;
};

/* A process as a rank of a communicator. */
struct nccl_member {
	uint64_t hash;
	int rank, nranks, device; /* -1: not known */
	char host[NCCL_HOST_BYTES], boot[NCCL_HOST_BYTES];
	uint32_t pid;
	char comm[16];
	uint64_t ts_ns;	   /* CLOCK_MONOTONIC of its machine, at the last look */
	uint64_t still_ns; /* for so long its counts have not changed; 0: they have */
	int ncounts;
	struct nccl_count counts[NCCL_KINDS];
	struct nccl_thread *threads;
	int nthreads;
};

/* A process in an answer whose communicators could not be read. */
struct nccl_unknown {
	uint64_t ts_ns;
	uint32_t pid;
	char comm[16];
	char host[NCCL_HOST_BYTES], boot[NCCL_HOST_BYTES];
	char library[256], why[256];
};

/* What `watch` said of a hang, in a file that it wrote. */
struct nccl_said {
	char host[NCCL_HOST_BYTES], boot[NCCL_HOST_BYTES];
	char id[32], claim[1024];
};

struct nccl_job {
	struct nccl_member *members; /* after nccl_job_sort(): by communicator and rank */
	size_t n;
	bool merged; /* of several answers: a rank that is not there is in none of them */
	/* Is what ranks ask for compared elsewhere? NULL: of no communicator */
	bool (*compared)(void *ctx, uint64_t hash);
	void *ctx;
	struct nccl_unknown *unknown; /* of answers */
	size_t nunknown;
	struct nccl_said *said;
	size_t nsaid;
};

#define NCCL_MEMBERS_MAX 65536

/* A new member, zeroed. NULL: there is no memory, or there are too many. */
struct nccl_member *nccl_job_add(struct nccl_job *);
void nccl_job_free(struct nccl_job *);
void nccl_threads_free(struct nccl_thread *, int n);

/* Sorts the members. Of several that are the same rank of the same process only the one that was
 * looked at last stays. */
void nccl_job_sort(struct nccl_job *);

/* How many members have not begun a collective that other ranks have; after nccl_job_sort(). With
 * `merged`, plus the ranks that are in none of the answers. */
size_t nccl_job_absent(const struct nccl_job *);
/* Prints the communicators whose ranks wait for each other, for people. Returns how many. */
int nccl_job_print(const struct nccl_job *, struct out *);
/* What `watch` said on each machine, a line for each. */
void nccl_job_print_said(const struct nccl_job *, struct out *);
/* The processes whose communicators could not be read, a line for each. */
void nccl_job_print_unknown(const struct nccl_job *, struct out *);
/* Prints a line of JSON for each member; with `merged`, also for each communicator that has ranks which are in
 * none of the answers, and for each process whose communicators could not be read. */
void nccl_job_json(const struct nccl_job *, struct out *);

/* Reads what `stuck --format json` printed or `watch --dump` wrote, from a file that is untrusted, and adds its
 * members; what comes before a damaged line counts. `name` is for messages. Returns 0, or -errno after one message. */
int nccl_job_read(struct nccl_job *, int fd, const char *name);

#endif
