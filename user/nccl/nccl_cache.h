/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl_cache.h - layouts of struct ncclComm that were read before, in files of our own: the debug information of a library
 * is 40 MB or more, and is on a file server where the job is.
 *
 * A layout is kept for a build id and for the owner of the library's file. Nobody can give a library of another owner a
 * layout by a file of his own that has the same build id. What is read of a file that is kept is checked as all else is.
 */
#ifndef CT_NCCL_CACHE_H
#define CT_NCCL_CACHE_H

#include "nccl_comm.h"

#define NCCL_ID_BYTES 64

struct nccl_key {
	uint64_t size; /* of the library's file: one without debug information has the same build id */
	uint32_t owner;
	uint32_t len;
	uint8_t id[NCCL_ID_BYTES];
};

/* Finds the key of a library. False: it has no build id, or its owner is only said (FUSE), so that nothing is kept. Reads
 * the file: to be called by a worker. */
bool nccl_key_of(int fd, struct nccl_key *);

/* Reads what is kept in a folder. False: nothing, or what is there is not ours alone, damaged or of another library. */
bool nccl_cache_load(const char *folder, const struct nccl_key *, struct nccl_layout *);
/* Keeps a layout. What was there takes its place only when it is written as a whole. Returns 0 or -errno. */
int nccl_cache_store(const char *folder, const struct nccl_key *, const struct nccl_layout *);
/* Where layouts are kept; NULL: nowhere, as only root has such a folder. */
const char *nccl_cache_folder(void);

#endif
