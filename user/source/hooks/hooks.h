/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks.h - the source of calls that are recorded inside the programs (target/hooks/): one that is started
 * has its hooks by LD_PRELOAD, one that runs by injection. Needs no BPF, and for a program that is
 * started no root. docs/hooks.md has the method.
 */
#ifndef CT_HOOKS_SOURCE_H
#define CT_HOOKS_SOURCE_H

#include "../source.h"

extern const struct source_ops source_hooks;

/* For source/both, between start() and begin(): has any process hooks? Gives all that have to probes (plan->owners). 0 or
 * -ENOMEM. */
bool hooks_any(const struct source *);
int hooks_give_all(struct source *);

#endif
