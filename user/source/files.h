/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - inside discover: the files worth probing, and the verdicts on all others. discover.c says when and where to
 * look.
 */
#ifndef CT_FILES_H
#define CT_FILES_H

#include "discover.h"
#include "verdicts.h"

struct candidate;

struct files {
	/* set by the owner */
	const uint64_t *capture;
	int prog_fd; /* the iterator program; becomes -1 when it does not work */
	discover_found_fn found;
	void (*met)(void *ctx, const struct ct_vma *); /* sees every mapping of a scan */
	void *ctx, *met_ctx;

	struct probe_file **list;
	int n;

	struct verdicts verdicts;
	uint32_t round;
	bool again; /* a process vanished with a file half looked at */
	struct candidate *cands;
	size_t ncands, cands_cap;
};

/* Looks at the files that a process (0: every process) has mapped. Returns 0 or -errno. */
int files_scan(struct files *, pid_t pid);

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
};
void files_own_add(struct files_own *, const char *path);
/* Likewise of a file that is open (O_PATH is enough; it stays the caller's). */
void files_own_add_open(struct files_own *, int fd, const char *name);
/* Returns 0 or -errno; empties the set. */
int files_own_scan(struct files *, struct files_own *);

void files_close(struct files *);

/* Makes room for one more element in an array. */
int files_grow(void *array, size_t n, size_t *cap, size_t size);

#endif
