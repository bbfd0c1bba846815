/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_suits.h - whether hooks can come into a process that runs: asked before anything of it is touched. */
#ifndef CT_HOOKS_SUITS_H
#define CT_HOOKS_SUITS_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns 0; -ENOTSUP: never into this one, as it was started; or another -errno: perhaps later, or by
 * another user. After one message, if it is not 0. */
int hooks_suits(pid_t pid);
/* Can hooks come into a program that is started, as far as its file says? NULL: yes; else why not. user: it is run as another
 * one. A script suits: its interpreter is not looked at. */
const char *hooks_suits_program(const char *name, bool user);

#endif
