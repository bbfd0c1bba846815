/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl_comm.h - reads NCCL's communicators (struct ncclComm) out of a process's memory.
 *
 * Where its members lie differs from release to release, and only the debug information of the
 * very library file says it. The struct begins and ends with a magic word: where one of the two is
 * not there, nothing of the struct is believed. What is read is untrusted.
 */
#ifndef CT_NCCL_COMM_H
#define CT_NCCL_COMM_H

#include "../proc/dwarf_layout.h"

#define NCCL_MAGIC 0x0280028002800280ULL
#define NCCL_KINDS 16	      /* of collectives that are counted */
#define NCCL_KIND_BYTES 24    /* bytes of the name of one, with its NUL */
#define NCCL_RANKS_MAX 262144 /* a number of ranks above this is none */

enum nccl_member_of_comm {
	NCCL_START_MAGIC,
	NCCL_END_MAGIC,
	NCCL_HASH,
	NCCL_RANK,
	NCCL_NRANKS,
	NCCL_DEVICE,
	NCCL_SEQ,
	NCCL_MEMBER_END
};

/* Is it the name of a kind of collective, of letters and digits that fit? */
bool nccl_is_kind(const char *name);

struct nccl_layout {
	uint64_t bytes;				      /* of the struct */
	struct dwarf_member members[NCCL_MEMBER_END]; /* names are constants */
	char kinds[NCCL_KINDS][NCCL_KIND_BYTES];      /* "AllReduce"; "": there is no such kind */
	/* in the file's addresses: the variables that hold an array of pointers to the
	 * communicators, and their number; 0: the file does not say */
	uint64_t list, nlist;
};

/* Reads the layout from a library file, at most until `until_ns` (CLOCK_MONOTONIC); to be called
 * by a worker. Returns 0; -ENODATA (no debug information), -ENOENT (it does not describe what is
 * needed), -ETIME, -ENOEXEC, -ENOMEM, -EIO. */
int nccl_layout_read(struct nccl_layout *, int fd, uint64_t until_ns);

/* A layout that was kept somewhere: gives its members their names, and says whether one that was read could be so. */
bool nccl_layout_check(struct nccl_layout *);

struct nccl_count {
	char kind[NCCL_KIND_BYTES];
	uint64_t n; /* how many collectives of the kind were begun with the communicator */
};

struct nccl_comm {
	uint64_t addr;
	uint64_t hash;	  /* the same at all ranks */
	int rank, nranks; /* -1: not known */
	int device;	  /* likewise */
	int ncounts;
	struct nccl_count counts[NCCL_KINDS];
};

/* Copies exactly len bytes of the process's memory; 0 or -errno. */
typedef int (*nccl_read_fn)(void *ctx, uint64_t addr, void *buf, size_t len);

/* Reads the communicator at an address. Returns 0; -EINVAL: there is none; or the error of read. */
int nccl_comm_read(const struct nccl_layout *, uint64_t addr, nccl_read_fn read, void *ctx,
		   struct nccl_comm *out);

/* Reads the addresses of the communicators that the library lists; bias: what is added to the
 * file's addresses. Returns how many of at most `max`, 0 where there is no list, or the error of
 * read. */
int nccl_list_read(const struct nccl_layout *, uint64_t bias, nccl_read_fn read, void *ctx,
		   uint64_t *list, int max);

#endif
