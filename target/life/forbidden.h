/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forbidden.h - what the thread of the hooks does when the program has forbidden system calls to all its threads by
 * an instruction of its own (wire/filters.h): nobody could ask the thread to end before. It may make no system call
 * that the program did not mean it to make. Where the filter lets a thread end, it ends, and that alone; where it
 * does not, no thread of the program ends by itself, and ours sleeps at a page that never comes.
 */
#ifndef CT_HOOKS_FORBIDDEN_H
#define CT_HOOKS_FORBIDDEN_H

#include <stdbool.h>

/* On the thread of the hooks, while it may make system calls. own_table: descriptors of it are nobody else's. */
void forbidden_prepare(bool own_table);
/* To be asked when the thread has slept, and before it makes system calls. */
enum forbidden {
	FORBIDDEN_NOT,
	FORBIDDEN_ENDS, /* the thread must end at once, with forbidden_end() */
	FORBIDDEN_SLEEPS,
};
enum forbidden forbidden_now(void);
__attribute__((noreturn)) void forbidden_end(enum forbidden);
void forbidden_pause(void); /* a moment, without a system call */

#endif
