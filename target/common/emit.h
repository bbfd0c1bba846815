/* SPDX-License-Identifier: BSD-2-Clause */
/* emit.h - the instructions that the engine writes, for this processor. */
#ifndef CT_HOOKS_EMIT_H
#define CT_HOOKS_EMIT_H

#if defined(__x86_64__)
#include "emit_x86.h"
#define EMIT_FILL INSN_INT3
#else
#include "emit_aarch64.h"
#endif

#endif
