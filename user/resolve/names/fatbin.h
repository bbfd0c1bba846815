/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fatbin.h - the names of the kernels in a "fat binary", the container in which nvcc puts device
 * code: cubins (ELF) and PTX text, plain or compressed. The format is not documented; what is
 * read here was seen in the output of nvcc 11 to 13. All that does not look like that is
 * -EBADMSG or -ENOTSUP: no guess is made. Knows no process.
 */
#ifndef CT_FATBIN_H
#define CT_FATBIN_H

#include "../../util/types.h"

#define FATBIN_MAGIC 0xBA55ED50u

/* The name of a kernel, NUL-terminated, valid during the call. A negative return stops. The same
 * name comes once for each architecture that the code was compiled for. */
typedef int (*fatbin_fn)(void *ctx, const char *name);

/* Reads the containers that follow each other in `data`, with zero bytes between them. *budget:
 * so many bytes may come out of compressed entries, counted down. Returns 0: every entry was
 * understood; -ENOTSUP: one holds something else than a cubin or PTX; -E2BIG: over budget;
 * -EBADMSG, -ENOMEM, or fn's return. */
int fatbin_kernels(const void *data, size_t len, uint64_t *budget, fatbin_fn fn, void *ctx);

/* A part of it, for tests: a PTX text (which may hold anything behind its NUL). */
int fatbin_ptx(const char *text, size_t len, fatbin_fn fn, void *ctx);

#endif
