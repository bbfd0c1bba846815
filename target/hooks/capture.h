/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.h - the work at a hook: it makes the record of a call, in the same way as the kernel side
 * (bpf/capture.bpf.h), and writes it into the thread's ring. It knows no socket and no machine
 * code.
 */
#ifndef CT_HOOKS_CAPTURE_H
#define CT_HOOKS_CAPTURE_H

#include <stdbool.h>

#include "../engine/engine.h"
#include "../../wire/hooks_wire.h"

/*
 * At each call's entry, with the cookie of its function (CT_COOKIE()), and at its return; under the
 * same rules as the engine's entry() and leave(). The first returns whether the return is wanted.
 */
bool capture_enters(struct hook_frame *, const struct hook_regs *, __u64 cookie);
/* Returns whether the thread shall wait until the user side has read the record. */
bool capture_leaves(struct hook_frame *, __u64 cookie, __u64 result);

/* From here on records go to this area (of hooks_area_bytes()), which stays mapped until another
 * area replaces it or capture_close() is called. Returns 0 or -errno. */
int capture_open(int area_fd, const struct hooks_start *);
void capture_spec(unsigned int row, const struct ct_spec *);
/* Ends recording. A thread that is inside a hook may still write, into memory that nobody reads. */
void capture_close(void);
/* In a forked child: the area is the parent's. */
void capture_forget(void);
/* A thread of the process is about to get a new name, or the calling thread has just got one. */
void capture_renames(void);
void capture_renamed(void);
/* The program limits its address space: gives back what makes the area larger than so many bytes, as far as it
 * is not in use. */
void capture_fit(__u64 bytes);
/* The program is about to restrict its system calls (seccomp): from here on no hook makes one. What
 * needs one is missing: texts behind pointers, names of threads, the calls of new threads when there is no block
 * for them. calls: the calling thread may still make one, which makes room ahead. */
void capture_sandboxed(bool calls);
/* What the kernel says of filters (wire/filters.h); 0: nothing, or it says nothing. */
__u64 capture_filters(void);
bool capture_is_sandboxed(void);
/* The kernel sets this word when it is so, before the program can know it. */
void capture_watches(const __u64 *word);
bool capture_is_watched(void);
/* Functions whose hooks were off for a time, because of another tracer. */
void capture_interrupted(unsigned int functions);
/* The connection is gone, although nobody has asked for that: records end here. */
void capture_gone(void);
/* A child that has its parent's memory has made a call, which is not recorded. Makes no system call. */
void capture_in_vfork(void);
/* Returns whether times are read from the processor's counter. */
bool capture_by_ticks(void);
/* As the engine's missed(). */
void capture_missed(__u64 cookie, enum hook_miss);
/* As the engine's counts(). */
void capture_counts(struct hook_thread *);
/* Calls of some functions are only counted from here on (muted_funcs.h). */
void capture_mutes(void);
/* Copies n bytes of the program's memory. Returns 0 if all of them are there. */
int capture_memory(void *to, __u64 n, __u64 from);
/* Are calls recorded? */
bool capture_is_open(void);
/* The area; NULL: there has been none. In a forked child it is the parent's, until capture_forget(). */
struct hooks_area *capture_area(void);

#endif
