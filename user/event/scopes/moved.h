/* SPDX-License-Identifier: BSD-2-Clause */
/* moved.h - the bytes that a collective moves, by the definitions of NVIDIA's nccl-tests
 * (doc/PERFORMANCE.md there). */
#ifndef CT_MOVED_H
#define CT_MOVED_H

#include "lineage.h"

/* Bytes that the bandwidth of a collective is computed from; 0: not known. *bus: what they are
 * multiplied by for the bus bandwidth. */
uint64_t moved_bytes(const struct scope_line *, double *bus);
/* The bytes of the bus bandwidth of a kernel that a collective (NULL: none) launched; 0: not known. Of a group of several calls it is not known: it may have several kernels. */
double moved_on_bus(const struct scope_line *);

#endif
