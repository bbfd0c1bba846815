/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * at_fork.h - a forked child has the hooks of its parent, which do nothing in it, until it has a connection and an area of its own.
 */
#ifndef CT_HOOKS_AT_FORK_H
#define CT_HOOKS_AT_FORK_H

/* Registers the functions that fork() calls. A library of malloc() may have such functions, too. In
 * the child they must run before ours, because ours need malloc(). So malloc() is called here
 * first: at its first use such a library registers its functions. */
void forks_follow(void);

#endif
