/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx.h - brings the object for NVTX 3 (target/nvtx/nvtx.c) into the programs that are traced, so that
 * probes see header-only NVTX. It makes no records: the probes do, beside which this is a source.
 *
 * A program that is started, and what it starts, gets the object by its environment. A process that
 * runs already gets it by injection, if NVTX 3 is a part of its code; it is looked for again while
 * the process maps more.
 */
#ifndef CT_NVTX_SOURCE_H
#define CT_NVTX_SOURCE_H

#include "../source.h"

extern const struct source_ops source_nvtx;

#endif
