/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_code.h - what code a process has that injection cares about: its loader, its libc,
 * whose allocator it uses, and where dlopen is. From its mappings and their files; nothing is
 * stopped for it.
 */
#ifndef CT_INJECT_CODE_H
#define CT_INJECT_CODE_H

#include "inject_regs.h"

enum inject_kind {
	INJECT_OTHER,
	INJECT_LOADER,
	/* a library that defines malloc, or in another file the function itself */
	INJECT_ALLOCATOR,
	INJECT_LIBC,
	/* a function of libc that holds none of its locks while it waits or calls back */
	INJECT_LIBC_OPEN,
	INJECT_LIBC_WAIT, /* what such a one ends in, by a jump: the same while it waits by futex(2) */
	INJECT_LIBC_BASE, /* where threads begin */
	INJECT_ENTRY,	  /* the program's first instructions, which call libc to call main */
	INJECT_VDSO,
	INJECT_NO_CODE,
};

struct inject_code;

/* Returns 0, -ENOEXEC (it loads no objects: no loader, no dlopen), or -errno. */
int inject_code_open(struct inject_code **, struct target *);
void inject_code_close(struct inject_code *); /* takes NULL */

enum inject_kind inject_code_at(const struct inject_code *, uint64_t ip);

/* Addresses in the process; 0: it has none. */
struct inject_functions {
	uint64_t dlopen, dlerror, dladdr, errno_location;
	bool dlopen_internal; /* it is __libc_dlopen_mode */
	struct inject_code_at calls;
};
const struct inject_functions *inject_code_functions(const struct inject_code *);

#endif
