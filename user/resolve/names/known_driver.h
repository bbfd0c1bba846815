/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_driver.h - the driver's own description of a kernel, in the process's memory. On driver
 * 580.159.04 the word at 8 bytes behind CUfunction, CUkernel and cudaKernel_t points to the
 * kernel's name. Nobody promises that, so a driver is believed only after it was seen to be so,
 * and never again once it was seen not to be.
 */
#ifndef CT_KNOWN_DRIVER_H
#define CT_KNOWN_DRIVER_H

#include "../../proc/target.h"

struct driver_table; /* what was learnt of each libcuda file */
struct driver;	     /* one of them; valid as long as the table */

struct driver_table *driver_table_open(void); /* NULL: no memory */
void driver_table_close(struct driver_table *);
/* The driver behind a mapping of libcuda.so; NULL: it is no libcuda, it cannot be opened, or
 * there are too many. */
struct driver *driver_of(struct driver_table *, struct target *, const struct target_map *);
bool driver_is(const struct target_map *); /* by the file's name */

bool driver_is_trusted(const struct driver *); /* takes NULL: false */
bool driver_is_refuted(const struct driver *); /* takes NULL: false */
/* Whether another certain pair is worth comparing: the first ones, then one in 64. */
bool driver_wants_pair(struct driver *);
/* A certain pair agreed, or did not. */
void driver_pair(struct driver *, bool agreed);

/* The name that the process's memory has for a handle. Returns its length; 0: there is none that
 * could be one; -ESRCH: the process is gone. Says nothing about whether it is to be believed. */
ssize_t driver_read_name(struct target *, uint64_t handle, char *out, size_t size);

#endif
