/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demangle.h - the names of C++ functions as people write them. What is given is untrusted; time
 * and size are bounded.
 */
#ifndef CT_DEMANGLE_H
#define CT_DEMANGLE_H

#define DEMANGLE_WIDTH 64 /* columns: what is wider is shortened */

/* The name as the source has it, with parameters; NULL: not a mangled name, too complex, or no
 * memory. The caller frees. */
char *demangle_full(const char *mangled);

/* A demangled name without the return type, and when it is wider than DEMANGLE_WIDTH, with <...>
 * for template arguments and, should that not do, (...) for parameters. NULL: it is the same as
 * `full`, or no memory. The caller frees. */
char *demangle_brief(const char *full);

#endif
