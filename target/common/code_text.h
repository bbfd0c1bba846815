/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * code_text.h - reads and writes the process's code, and reads its mappings, through /proc/self. So
 * nothing faults if a library is unmapped meanwhile, and no protection is changed (uprobes
 * permanently skip a process whose code was made writable). Only our own thread uses this.
 */
#ifndef CT_HOOKS_TEXT_H
#define CT_HOOKS_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens and closes /proc/self/mem for the functions below, unless it is kept open. It does not stay open
 * in the program's descriptor table, because the program may close any descriptor. Returns 0 or -errno. */
int text_open(void);
void text_close(void);

/* The process's memory and its mappings. */
struct text_fds {
	int mem, maps; /* -1: none */
};
/*
 * Opens both, and keeps them open: the calling thread has a descriptor table of its own. Later the
 * process may not be able to open them: after a change of its user /proc/self belongs to root, and
 * after chroot(2) there may be no /proc. What cannot be opened is opened at each use, as before.
 */
void text_keep(void);
/* The same with these, which another thread has kept; and what is kept (-1: none). */
void text_keep_these(struct text_fds);
struct text_fds text_kept(void);
/* Closes them. In a process, or a thread, that has not the descriptor table in which they are: forgets
 * them. */
void text_let_go(void);
void text_forget(void);

/* Returns 0 or -errno; -EIO: nothing is mapped there. Also reads where text_open() has failed, except in
 * a sandbox: a program that has changed its user may not open its own memory. */
int text_read(__u64 address, void *bytes, size_t n);
/* The same for memory that the program does not change (its code, as long as no byte of it is
 * swapped): uses pages that were read since text_open(). */
int text_look(__u64 address, void *bytes, size_t n);
/* Writes our own code, before any thread runs it. */
int text_write(__u64 address, const void *bytes, size_t n);
/* The same for many small pieces: they are written only by text_made(), which returns 0 or -errno.
 * After an error it is not known what was written: no jump may ever lead there, and text_made()
 * fails from then on. */
void text_make(__u64 address, const void *bytes, size_t n);
int text_made(void);
/* Changes one byte if it still has the old value, and returns 0. Returns 1 if it has another value
 * (in *found), or -errno. */
int text_swap(__u64 address, __u8 was, __u8 to, __u8 *found);

/* When it returns, every core runs what was written before, and has completed what it began before. */
void text_sync(void);

struct text_map {
	__u64 lo, hi, offset, ino;
	__u32 dev;
	bool read, write, exec, is_private;
	bool is_stack;	/* the main thread's */
	bool is_probes; /* the kernel's page of uprobes */
};
struct text_maps {
	struct text_map *maps; /* by address */
	unsigned int n;
};
int text_maps_read(struct text_maps *);
void text_maps_free(struct text_maps *);
/* Returns the mapping that contains the address, or NULL. */
const struct text_map *text_maps_find(const struct text_maps *, __u64 address);

#endif
