/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - puts the programs on a file's functions, by the best kind of link that the kernel
 * has, and takes them off again quickly.
 */
#ifndef CT_ATTACH_H
#define CT_ATTACH_H

#include "attach_kind.h"
#include "../discover/discover.h"

struct attach;

/* Program descriptors; they stay the caller's. */
struct attach_progs {
	/* loaded for multi, tracefs or perf; with a session kind -1 where all links shall be
	 * sessions */
	int entry_fd, return_fd;
	int session_fd;
};

int attach_open(struct attach **, enum attach_kind, const struct attach_progs *,
		const struct capture_plan *);

/* Attaches all of f->scan.probes. pid != 0: in that process only (session and multi). Sets
 * f->attached. A function that cannot carry a probe is left out and named in one warning.
 * Returns 0 or -errno. */
int attach_file(struct attach *, struct probe_file *f, pid_t pid);

/* With plan->on_demand: attaches these functions (a bitmap) in all files, now and to come, those that are not yet.
 * Returns 0 or -errno. */
int attach_demanded(struct attach *, const uint64_t *funcs);

/* Functions that the user asked for and whose calls are not shown, or not under their names, in the files so far. */
enum attach_unseen {
	ATTACH_LEFT_OUT, /* probes of this kind leave them out */
	ATTACH_INDIRECT, /* they are IFUNCs */
	/* they have their code in common with another function, under whose name their calls are shown */
	ATTACH_SHARED_CODE,
	ATTACH_UNSEEN_END
};
/* A file with functions that no probe tells of. */
void attach_silent(struct attach *, const struct elf_scan *);
unsigned attach_left_out(const struct attach *); /* the number of those that are left out */
/* The name of one that is not among those `told` (PLAN_WORDS words), and is from then on; NULL: there is none. */
const char *attach_unseen_next(const struct attach *, enum attach_unseen, uint64_t *told);

/* How many descriptors the file takes at most once it is attached for this many processes (0:
 * for all): links, and those that replace some of them for a moment. */
unsigned attach_cost(const struct attach *, const struct probe_file *f, int npids);
/* Closes the links and forgets the file. now: the links are closed when this returns; else soon
 * after. */
void attach_release(struct attach *, struct probe_file *f, bool now);

/* Makes the links for this process again. The kernel identifies the process by its first thread,
 * and that thread is a new one after a thread other than the first called exec. Returns 0 or
 * -errno. */
int attach_anew(struct attach *, struct probe_file *f, pid_t pid);

/* The process has ended: the links that were made for it are closed. */
void attach_gone(struct attach *, pid_t pid);

/* Takes functions of class QUERY (a bitmap) off all files, now and to come, re-linking only that
 * group. Returns the number of probes taken off. */
int attach_off(struct attach *, const uint64_t *funcs);
/* Can removed probes be put on again for a short time? Only if links are cheap to make and
 * close. */
bool attach_windows(const struct attach *);
/* Puts all that was taken off on again, and takes it off. Open returns 0 or -errno, with nothing
 * changed. */
int attach_window_open(struct attach *);
void attach_window_close(struct attach *);

/*
 * From here on calls get a return probe only where the entry program allows it: plain pairs are
 * replaced by sessions, and no more are made. A call under way has some time to return by its
 * old link. Nothing happens where the kind is not session.
 */
void attach_sessions(struct attach *);

struct link_set;
/* Puts one program of the source's own on one place of a file, for all processes, by a plain
 * link of the kind's family (for session and multi: loaded for uprobe_multi). Returns 0 or
 * -errno. */
int attach_single(enum attach_kind, int prog_fd, int file_fd, uint64_t offset, struct link_set *);
void attach_single_close(struct link_set *);

/* Descriptors that are still to be closed, of links that were released or replaced. */
unsigned attach_closing(void);

/* Number of links and of functions attached, over all files. */
void attach_totals(const struct attach *, int *links, int *functions);

/* Begins to close all links, in parallel: each takes the kernel as long as threads of the programs that are in a probe, and wait for a
 * processor. Until attach_close(), which waits for it, nothing else may be asked but what is unseen. Safe with NULL. */
void attach_stop(struct attach *);
/* Closes what is open yet. Safe with NULL. */
void attach_close(struct attach *);

/* Removes what a killed run left behind (tracefs events). */
void attach_sweep_stale(void);

#endif
