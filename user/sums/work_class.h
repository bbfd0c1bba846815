/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_class.h - the classes of device work, for `stat --by class`: what it does, by the call that it
 * belongs to (cuBLAS, NCCL) where that was recorded, else by the names of kernels.
 */
#ifndef CT_WORK_CLASS_H
#define CT_WORK_CLASS_H

#include "../event/event.h"

/* "gemm", "attention", "other"; NULL: the name of the kernel is not known. */
const char *work_class(const struct event *);

#endif
