/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demangle.h - the names of C++ functions as people write them. What is given is untrusted; time
 * and size are bounded.
 */
#ifndef CT_DEMANGLE_H
#define CT_DEMANGLE_H

#define DEMANGLE_WIDTH 64 /* columns; a wider name is shortened */

/* Returns the name as the source has it, with parameters, or NULL if it is not a mangled name,
 * if it is too complex, or if there is no memory. The caller frees it. */
char *demangle_full(const char *mangled);

/* Returns a demangled name without its return type; if it is wider than DEMANGLE_WIDTH, with
 * <...> for template arguments and, if that is not enough, with (...) for parameters. NULL: the
 * result is the same as `full`, or there is no memory. The caller frees it. */
char *demangle_brief(const char *full);

#endif
