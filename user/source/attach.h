/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - puts the programs on a file's functions, by the best kind of link that the kernel has, and takes them off
 * again quickly.
 *
 *   session   6.13 on: one uprobe_session link per file and group; the entry program decides whether the return traps
 *   multi     6.6 on: two uprobe_multi links per file and group
 *   tracefs   below: one entry and one return event in tracefs with all offsets, a perf event each
 *   perf      where tracefs cannot be had: a perf event and a link per function, without QUERY and INTERNAL
 *
 * The kind is chosen by trying it, not by the kernel's version.
 */
#ifndef CT_ATTACH_H
#define CT_ATTACH_H

#include "discover.h"

enum attach_kind { ATTACH_NONE, ATTACH_SESSION, ATTACH_MULTI, ATTACH_TRACEFS, ATTACH_PERF };

struct attach;

/* Tries the kinds in order (or only `want`, by name) on this very program. Returns the kind, or -errno. */
int attach_probe_kind(const char *want);
/* What a call of a function with an empty pair of probes costs more than one without, measured on this very program: some
 * milliseconds. 0: not known (kinds other than session and multi). */
uint64_t attach_pair_ns(enum attach_kind, bool entry_only);
const char *attach_kind_name(enum attach_kind);
/* May programs of this kind sleep (bpf_copy_from_user)? From 6.0 on. */
bool attach_sleepable(enum attach_kind);
/* Does a link for one process report all its threads? (See attach.c; session and multi only.) */
bool attach_pid_links_work(enum attach_kind);

/* Program descriptors; they stay the caller's. */
struct attach_progs {
	int entry_fd, return_fd; /* loaded for multi, tracefs or perf; with a session kind -1 where all links shall be sessions */
	int session_fd;
};

int attach_open(struct attach **, enum attach_kind, const struct attach_progs *, const struct capture_plan *);

/* Attaches all of f->scan.probes. pid != 0: in that process only (session and multi). Sets f->attached.
 * A function that cannot carry a probe is left out and named in one warning. Returns 0 or -errno. */
int attach_file(struct attach *, struct probe_file *f, pid_t pid);

/* Takes one QUERY function off a file (all its offsets), re-linking only that group. Returns the number of probes
 * taken off. */
int attach_mute(struct attach *, struct probe_file *f, int func);

struct link_set;
/* Puts one program of the source's own on one place of a file, for all processes, by a plain link of the kind's family (for
 * session and multi: loaded for uprobe_multi). Returns 0 or -errno. */
int attach_single(enum attach_kind, int prog_fd, int file_fd, uint64_t offset, struct link_set *);
void attach_single_close(struct link_set *);

/* Number of links and of functions attached, over all files. */
void attach_totals(const struct attach *, int *links, int *functions);

/* Closes all links, in parallel. Safe with NULL. */
void attach_close(struct attach *);

/* Removes what a killed run left behind (tracefs events). */
void attach_sweep_stale(void);

#endif
