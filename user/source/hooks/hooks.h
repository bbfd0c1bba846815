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

#endif
