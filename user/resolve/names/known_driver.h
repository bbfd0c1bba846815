/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_driver.h - reads the driver's own description of a kernel in the process's memory. On
 * driver 580.159.04 the word at 8 bytes behind CUfunction, CUkernel and cudaKernel_t points to the
 * kernel's name. This is not documented. So a driver is trusted only after this was seen to be true
 * for it, and never again after it was seen to be false.
 */
#ifndef CT_KNOWN_DRIVER_H
#define CT_KNOWN_DRIVER_H

#include "../../proc/target.h"

struct driver_table; /* what was learned about each libcuda file */
struct driver;	     /* one libcuda file; valid as long as the table */

struct driver_table *driver_table_open(void); /* NULL: no memory */
void driver_table_close(struct driver_table *);
/* Returns the driver behind a mapping of libcuda.so, of which driver_is() is true. NULL: it cannot be
 * opened, or there are too many. */
struct driver *driver_of(struct driver_table *, struct target *, const struct target_map *);
bool driver_is(const struct target_map *); /* by the file's name */

bool driver_is_trusted(const struct driver *); /* takes NULL: false */
bool driver_is_refuted(const struct driver *); /* takes NULL: false */
/* Whether another certain pair of handle and name should be compared: the first pairs are, then one
 * in 64. */
bool driver_wants_pair(struct driver *);
/* Tells whether a certain pair agreed with the driver's memory. */
void driver_pair(struct driver *, bool agreed);

/* Reads the name that the process's memory has for a handle. Returns its length; 0: there is
 * nothing that could be a name; -ESRCH: the process is gone. It does not check whether the driver
 * is trusted. */
ssize_t driver_read_name(struct target *, uint64_t handle, char *out, size_t size);

#endif
