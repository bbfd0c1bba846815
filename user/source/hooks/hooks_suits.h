/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_suits.h - whether hooks can come into a process that runs: asked before anything of it is touched. */
#ifndef CT_HOOKS_SUITS_H
#define CT_HOOKS_SUITS_H

#include <sys/types.h>

/* Returns 0; -ENOTSUP: never into this one, as it was started; or another -errno: perhaps later, or by
 * another user. After one message, if it is not 0. */
int hooks_suits(pid_t pid);

#endif
