/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach_kind.h - the kinds of links that kernels have, and what those of this one can do: tried,
 * not told by its version.
 *
 *   session   6.13 on: one uprobe_session link per file and group; the entry program decides
 *             whether the return traps
 *   multi     6.6 on: two uprobe_multi links per file and group
 *   tracefs   below: one entry and one return event in tracefs with all offsets, a perf event each
 *   perf      where tracefs cannot be had: a perf event and a link per function, without QUERY
 *             and INTERNAL
 */
#ifndef CT_ATTACH_KIND_H
#define CT_ATTACH_KIND_H

#include "../../util/types.h"

enum attach_kind { ATTACH_NONE, ATTACH_SESSION, ATTACH_MULTI, ATTACH_TRACEFS, ATTACH_PERF };

#define ATTACH_TYPE_MULTI 48   /* BPF_TRACE_UPROBE_MULTI, Linux 6.6 */
#define ATTACH_TYPE_SESSION 57 /* BPF_TRACE_UPROBE_SESSION, Linux 6.13 */

/* Tries the kinds in order (or only `want`, by name) on this very program. Returns the kind, or
 * -errno. */
int attach_kind_try(const char *want);
const char *attach_kind_name(enum attach_kind);
/* What a call of a function with an empty pair of probes costs more than one without, measured
 * on this very program: some milliseconds. 0: not known (kinds other than session and multi). */
uint64_t attach_kind_pair_ns(enum attach_kind, bool entry_only);
/* Does a link for one process report all its threads? (Session and multi only.) */
bool attach_kind_pid_links(enum attach_kind);

#endif
