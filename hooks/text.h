/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - the process's code and mappings, read and written through /proc/self: nothing faults where
 * a library is unmapped meanwhile, and no protection is changed (a process whose text was made writable
 * is passed over by uprobes, for good). For the agent's own thread.
 */
#ifndef CT_HOOKS_TEXT_H
#define CT_HOOKS_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens /proc/self/mem for what follows, and closes it: the program may close any descriptor.
 * Returns 0 or -errno. */
int text_open(void);
void text_close(void);

/* Returns 0 or -errno: -EIO, nothing is mapped there. */
int text_read(__u64 address, void *bytes, size_t n);
/* The same of what the program does not change (its code, as long as no byte of it is swapped): from
 * pages that were read since text_open(). */
int text_look(__u64 address, void *bytes, size_t n);
/* Of code of ours, before anybody runs it. */
int text_write(__u64 address, const void *bytes, size_t n);
/* The same for many small pieces: nothing is there before text_made(), which returns 0 or -errno. After
 * an error it is not known what is there: none of it may ever be led to, and text_made() goes on to fail. */
void text_make(__u64 address, const void *bytes, size_t n);
int text_made(void);
/* One byte, if it still is what it was: 0; 1: it is another one (in *found); or -errno. */
int text_swap(__u64 address, __u8 was, __u8 to, __u8 *found);

/* Every core runs what was written before it returns, and has done what it began before. */
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
/* The one that holds the address, or NULL. */
const struct text_map *text_maps_find(const struct text_maps *, __u64 address);

#endif
