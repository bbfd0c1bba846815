/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pythons.h - inside the bpf source: tells the kernel side which traced processes run Python,
 * and where it keeps its frames (map `pythons`). The kernel side itself takes ended processes
 * out, and gives a forked child its parent's entry.
 */
#ifndef CT_PYTHONS_H
#define CT_PYTHONS_H

#include "../../util/types.h"

struct pythons;

/* map_fd: of the map, the caller's. NULL: no memory. */
struct pythons *pythons_open(int map_fd);
void pythons_close(struct pythons *); /* takes NULL */

/* Looks at a process, by its number in our namespace and in the initial one: when it is first
 * traced and whenever it maps something new or becomes another program. Cheap when it is known.
 * Returns 1 when it runs Python, 0 when not (or a Python that cannot be walked: said once for
 * each reason), -ESRCH or -errno. */
int pythons_look(struct pythons *, pid_t ns_pid, uint32_t initial_pid);

/* The process ended or became another program. */
void pythons_gone(struct pythons *, uint32_t initial_pid);

#endif
