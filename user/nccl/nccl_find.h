/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl_find.h - the communicators of NCCL that a process has, found from outside while it runs or
 * hangs: nothing is put into it. They come from the list that the library keeps, where its symbol
 * table says where that is; else the process's private memory is searched for their magic word.
 * All reads have limits of time and size, and pass through user/proc/target.
 */
#ifndef CT_NCCL_FIND_H
#define CT_NCCL_FIND_H

#include "nccl_comm.h"

#define NCCL_COMMS_MAX 1024 /* of one process */

struct nccl_process {
	pid_t pid;
	char comm[16];
	char library[256]; /* path of its libnccl, as the process sees it; only the end of a long one */
	/* why its communicators are not known, a clause such as "the library has no debug
	 * information"; NULL: they are */
	const char *why;
	bool searched; /* the library has no list: its memory was searched */
	bool cut; /* not all of them are here: there are too many, or no time was left to search */
	struct nccl_comm *comms;
	int ncomms;
	const struct nccl_layout *layout; /* the finder's */
};

struct nccl_finder;

struct nccl_finder *nccl_finder_open(void);   /* NULL: no memory */
void nccl_finder_close(struct nccl_finder *); /* takes NULL */

/* Looks at a process. Returns 1 and fills in *out, which is to be freed; 0: it has no libnccl
 * mapped, or is gone; -ENOMEM. */
int nccl_find(struct nccl_finder *, pid_t pid, struct nccl_process *out);
/* Reads a communicator that was found before once more. Returns 0, or -errno: it is gone. */
int nccl_find_again(const struct nccl_process *, const struct nccl_comm *, struct nccl_comm *now);
void nccl_process_free(struct nccl_process *);

struct target;
/* Reads the communicator at an address. Waits at most wait_ms for the layout of a library that is met
 * for the first time; the worker goes on then. Returns 0; -EAGAIN: the layout is not read yet;
 * -ENODATA: the library does not say it; -ENOENT: there is no library; or as nccl_comm_read(). */
int nccl_find_at(struct nccl_finder *, struct target *, uint64_t addr, unsigned int wait_ms,
		 struct nccl_comm *out);

#endif
