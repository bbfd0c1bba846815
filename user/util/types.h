/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types.h - the fixed-width types for the user side, and the assertions that all of it uses.
 */
#ifndef CT_TYPES_H
#define CT_TYPES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/*
 * A condition that is always true, whatever a program or a file contains. The build with
 * sanitizers (`make sanitized`) checks it and aborts; others do not evaluate it.
 */
#if defined(__SANITIZE_ADDRESS__)
#define CT_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CT_CHECKED 1
#endif
#endif
#ifdef CT_CHECKED
#define INVARIANT(cond) ((cond) ? (void)0 : invariant_broken(#cond, __FILE__, __LINE__))
_Noreturn void invariant_broken(const char *what, const char *file, int line); /* msg.c */
#else
#define INVARIANT(cond) ((void)sizeof(!!(cond)))
#endif

#endif
