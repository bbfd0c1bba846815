/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - inside discover: the files worth probing, and what is known of all others (the file cache). discover.c
 * says when and where to look.
 */
#ifndef CT_FILES_H
#define CT_FILES_H

#include "discover.h"
#include "maps.h"
#include "shares.h"
#include "file_cache.h"

struct candidate;
struct rewrites;
struct scans;

#define FILES_WARNED 8

#define FILES_LATER 64

struct files {
	/* set by the owner */
	const uint64_t *capture;
	int prog_fd; /* the iterator program; becomes -1 when it does not work */
	const struct discover_ops *ops;
	void (*met)(void *ctx, const struct ct_vma *); /* sees every mapping of a scan */
	void *ctx, *met_ctx;
	/* NULL: files are compared when they are mapped, and not before */
	struct rewrites *rewrites;
	struct scans *scans; /* who searches them; NULL: we do */

	struct probe_file **list;
	int n;
	struct shares shares;
	uint64_t refused;	       /* files, ever */
	uint32_t freed;		       /* counts up when files are let go */
	bool open;		       /* files stay open while they are held */
	bool retry;		       /* what was refused may find room now */
	uint32_t warned[FILES_WARNED]; /* users */
	int nwarned;

	struct file_cache cache;
	uint32_t round, sweep;
	bool again;	/* a process vanished with a file half looked at */
	bool postponed; /* a file was not searched, because others of its user take long */
	/* processes that are to be scanned later, as they or others of their users take long; 0:
	 * all */
	pid_t later[FILES_LATER];
	int nlater;
	bool said_short; /* that there are no descriptors, or no memory */
	pid_t uid_pid;	 /* whose uid was asked for last, in this round */
	uint32_t uid, uid_round;
	struct candidate *cands;
	size_t ncands;
};

/* Looks at the files that a process (0: every process) has mapped. Returns 0 or -errno. */
int files_scan(struct files *, pid_t pid);

/* Notes that the process has to be scanned again. */
void files_later(struct files *, pid_t pid);

/* Takes in the files whose search took long. none() is told of those that have nothing to probe.
 * Returns their number or -errno. */
int files_scanned(struct files *, void (*none)(void *ctx, uint64_t dev, uint64_t ino), void *ctx);
/* Is it being searched, or waits for that? */
bool files_scanning(const struct files *, uint64_t dev, uint64_t ino);

/* Has this file (as the kernel's mappings have it) been looked at? */
bool files_judged(struct files *, uint64_t dev, uint64_t ino);

/* Files that no process may have mapped yet: gathered by path, then looked at in one go. */
#define FILES_OWN_MAX 64
struct files_own {
	struct {
		void *addr;
		int fd;
		bool met;
		char *path;
	} files[FILES_OWN_MAX];
	int n;
	/* where root has put CUDA's libraries: they are held whether they are mapped or not */
	bool installed;
};
void files_own_add(struct files_own *, const char *path);
/* Likewise of a file that is open (O_PATH is enough; it stays the caller's). */
void files_own_add_open(struct files_own *, int fd, const char *name);
/* Returns 0 or -errno; empties the set. */
int files_own_scan(struct files *, struct files_own *);

void files_close(struct files *);

/* Lists the mappings of a process (0: of every one). Returns their number or -errno. */
int files_list(struct files *, pid_t pid, maps_fn, void *ctx);
void files_next_round(struct files *);
/* Size, times of change: other numbers may mean another content. */
uint64_t files_generation(const struct stat *);

/* ---- held.c: whose the files are, and how long they are held ---- */

/* Takes the descriptors for a file from its user's share. If the share is used up, takes them from
 * files of this user that no process maps any more. False: the file is refused; this is counted,
 * and reported once per user. */
bool files_charge(struct files *, struct probe_file *, struct cached_file *, unsigned want);
/* May there be room for it? */
bool files_room(const struct files *, uint32_t uid, unsigned want);
void files_refuse(struct files *, struct cached_file *, const char *path, uint32_t uid,
		  unsigned want);
/* The real uid of a process. */
uint32_t files_uid(struct files *, pid_t pid);
/* Whether it is one of those that root has installed. */
void files_installed(struct files *, struct probe_file *, bool);
/* Lets a file go; its mark stays if it was rewritten. */
void files_release(struct files *, struct probe_file *, bool rewritten);
/* The same, with a warning: another content was written to it. */
void files_rewritten(struct files *, struct probe_file *);
/* Compares a file whose generation is another one. Lets it go, with a warning, if its functions
 * have changed; returns true then. */
bool files_compare(struct files *, struct probe_file *, const struct ct_vma *, uint64_t generation);
struct probe_file *files_marked(const struct files *, int mark);

/* Has a file lost the mapping by which it was known? Then the caller passes all mappings to
 * files_sweep_vma(), between files_sweep() and files_swept(). A file that was not among them is not
 * mapped any more, and is let go unless it is likely to be mapped again. Returns the number of
 * files that are not mapped any more. */
bool files_lost(const struct files *);
void files_sweep(struct files *);
int files_sweep_vma(void *ctx, const struct ct_vma *); /* ctx: the struct files */
int files_swept(struct files *);

#endif
