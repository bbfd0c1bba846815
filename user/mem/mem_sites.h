/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_sites.h - call sites: the stacks of calls that took memory. Each is kept once, by its content
 * and not by its id, because the table of stacks forgets old ones, and the same stack may come back
 * with another id. Without stacks a site is the called function. Memory is bounded: a stack for
 * which there is no room gets site 0. Knows events; no format, and of memory only who reports blocks of it.
 */
#ifndef CT_MEM_SITES_H
#define CT_MEM_SITES_H

#include "../event/event.h"

#define SITES_MAX 65536
#define SITES_FRAMES 64 /* of a site, innermost first */

struct site {
	const char *func; /* the CUDA function that was called; NULL: not known */
	/* the file whose code called it, without its directory; NULL: not known */
	const char *library;
	uint32_t nframes;
	/* index of the innermost frame of the program itself, not of an interpreter; < nframes,
	 * or 0 */
	uint32_t first;
	bool cut; /* the stack goes on */
	/* what an allocator inside the program reports: its own frames count as an interpreter's */
	bool reported;
	const struct site_frame *frames;
};
/* Strings are untrusted bytes; NULL: not known. */
struct site_frame {
	const char *function, *file, *object;
	const char *shown_file; /* in stacks: frame_file(), a part of `file` */
	uint64_t address;	/* in the object; without one in the process */
	uint64_t offset;	/* in the function */
	uint32_t line;		/* 0: not known */
	uint8_t kind;		/* enum ct_frame_kind */
	/* frame of a language's interpreter, of its interface to C, or of libc's start: the program's code is
	 * in the frames around it */
	bool interpreter;
};

struct sites;
/* max_bytes: of all texts and frames; 0: 32 MiB. NULL: no memory. */
struct sites *sites_open(size_t max_bytes);
void sites_close(struct sites *);
/* All frames of stacks are the program's, and have whole paths (--all-frames). Before the first site. */
void sites_show_all(struct sites *);
/* The site of a call with its stack, or of device work (func CT_NO_FUNC: not known). 0: none, or
 * there is no room for it. */
uint32_t sites_of(struct sites *, unsigned int func, const struct stack *);
/* i < sites_n(). Site 0 has no function and no frames. The result is valid until the next
 * sites_of(), its strings and frames until sites_close(). */
const struct site *sites_get(const struct sites *, uint32_t i);
uint32_t sites_n(const struct sites *);
uint64_t sites_no_room(const struct sites *); /* how often there was no room for a new site */

/* The sites that hold the most, the largest first. */
#define HOLDERS_MAX 5
struct holders {
	uint32_t n;
	struct holder {
		uint32_t site;
		uint64_t bytes, n; /* n: allocations, or blocks */
	} most[HOLDERS_MAX];
};
/* Keeps a site's if it is among them. */
void holders_add(struct holders *, const struct holder *);

#endif
