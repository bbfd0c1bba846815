/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types.h - the fixed-width types, and the wire contract on top of them, for the user side.
 * Include this, never cudatrace.h directly.
 */
#ifndef CT_TYPES_H
#define CT_TYPES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../bpf/cudatrace.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
