/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_make.h - one injection under way, and what is made in the target for it before anything
 * of its own is called. Private to inject.c and inject_make.c.
 */
#ifndef CT_INJECT_MAKE_H
#define CT_INJECT_MAKE_H

#include "inject_code.h"
#include "inject_remote.h"

#define INJECT_TEXT_BYTES 4096 /* room for strings in the target */

struct inject_job {
	pid_t pid;
	const struct inject_what *what;
	struct inject_result *result;
	struct target *target;
	struct inject_code *code;
	struct inject_remote r;
	uint64_t hash;
	char name[48];	     /* of the memfd */
	uint64_t symbol;     /* where the function is in the object */
	uint64_t page;	     /* bytes */
	uint64_t text;	     /* room for strings in the target's scratch memory */
	uint64_t stub;	     /* the mapped page of code; 0: none */
	int64_t memfd, sock; /* in the target; -1: none */
	bool keep_stack;     /* a call was given up: something may point to it */
	int done; /* readable: the thread that does all this has ended; -1: nobody asks */
	int err;
};

/* Says that `what` failed, with what follows from err. Returns err, or -ESRCH where the process
 * has ended. */
int inject_make_failed(struct inject_job *, int err, const char *what);

/* The object: the name that its memfd has, where the function is in it, and where it is mapped
 * (0: nowhere). */
void inject_make_name(struct inject_job *);
int inject_make_symbol(struct inject_job *);
uint64_t inject_make_loaded(struct inject_job *);

/* Where the thread's own stack has room for one frame of a signal, downwards; 0: that is not
 * certain. */
uint64_t inject_make_home(struct inject_job *);

/* In this order; each returns 0, or -errno after one message. */
int inject_make_stack(struct inject_job *);
int inject_make_stub(struct inject_job *);
int inject_make_socket(struct inject_job *);

#endif
