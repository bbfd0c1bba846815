/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scans.h - inside discover: files are searched for functions by workers, since a file may be
 * large beyond measure, or lie where nobody serves it. Knows no process and no probe.
 */
#ifndef CT_SCANS_H
#define CT_SCANS_H

#include "../../util/io/bounded.h"
#include "../../flow/plan.h"
#include "elf.h"
#include "maps.h"

struct scans;

/* A file to be searched. Whoever has it frees it with scan_job_free(). */
struct scan_job {
	struct bounded_job job; /* its own, as is home */
	struct scan_job *next;
	struct scans *home;
	struct ct_vma vma; /* the caller's, and so is path */
	char *path;
	int fd; /* -1: none */
	bool all;
	uint64_t capture[PLAN_WORDS]; /* unless `all` */
	struct elf_scan scan;	      /* the caller may take it, and empties it then */
	int err;		      /* as elf_scan() has it */
};

/* generous: the files of processes that the user chose are waited for as long as one may take.
 * NULL: no memory. */
struct scans *scans_open(bool generous);
void scans_close(struct scans *);
/* Readable when scans_next() has something. */
int scans_fd(const struct scans *);

struct scan_job *scan_job_new(const struct ct_vma *, int fd, const uint64_t *capture);
void scan_job_free(struct scan_job *);

/*
 * Searches the file, for at most SCANS_S seconds. Waits for it as long as `owner` has time left
 * of his share of the main loop's. Returns
 *   0             err and scan say what was found;
 *   -EINPROGRESS  it is the worker's, and comes by scans_next() when that is done;
 *   -EBUSY        so many of this owner's take long that it is not begun.
 */
int scans_run(struct scans *, struct scan_job *, uint32_t owner);
/*
 * Searches a file once more whose content may be another one: within the same limits, by a worker
 * that is given up after that. The descriptor stays the caller's. With NULL the caller searches,
 * for at most 1 s. Returns 0 or -errno; free `found` with elf_scan_free() in any case.
 */
int scans_again(struct scans *, int fd, const uint64_t *capture, uint32_t owner,
		struct elf_scan *found);
/* One that took long, and is done; NULL: there is none. */
struct scan_job *scans_next(struct scans *);

/* How files are searched: elf_scan_until(), or what a test has in its place. */
extern int (*scans_by)(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *);

#define SCANS_S 10

#endif
