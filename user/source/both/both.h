/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * both.h - the source of calls that takes hooks where they can be put on, and probes where they cannot: each
 * call is seen by one of the two.
 */
#ifndef CT_BOTH_H
#define CT_BOTH_H

#include "../source.h"

extern const struct source_ops source_both;

#endif
