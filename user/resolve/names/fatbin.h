/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fatbin.h - the names of the kernels in a "fat binary", the container in which nvcc puts device
 * code: cubins (ELF) and PTX text, plain or compressed. The format is not documented; what is read
 * here was seen in the output of nvcc 11 to 13. Anything else is rejected with -EBADMSG or
 * -ENOTSUP: nothing is guessed. Knows no process.
 */
#ifndef CT_FATBIN_H
#define CT_FATBIN_H

#include "../../util/types.h"

#define FATBIN_MAGIC 0xBA55ED50u

/* Takes the name of a kernel, NUL-terminated, valid during the call. A negative return stops the
 * walk. The same name comes once for each architecture that the code was compiled for. */
typedef int (*fatbin_fn)(void *ctx, const char *name);

/* Reads the containers that follow each other in `data`, with zero bytes between them. *budget: how
 * many bytes may still be decompressed; it is counted down. Returns 0: every entry was understood;
 * -ENOTSUP: an entry has something other than a cubin or PTX; -E2BIG: over budget; -EBADMSG,
 * -ENOMEM, or fn's return. */
int fatbin_kernels(const void *data, size_t len, uint64_t *budget, fatbin_fn fn, void *ctx);

/* A part of it, for tests: reads a PTX text, which may have anything behind its NUL. */
int fatbin_ptx(const char *text, size_t len, fatbin_fn fn, void *ctx);

#endif
