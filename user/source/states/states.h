/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.h - the source of host states: why threads are off the CPU, and where they are while they are on it.
 * It takes what bpf/host.bpf.c sends and makes CT_HOST_SEGMENT records of it, each behind the CT_PY_STACK or
 * CT_USER_STACK from which the resolve stage gets its stack.
 */
#ifndef CT_STATES_H
#define CT_STATES_H

#include "../source.h"

#define STATES_HZ 199 /* samples a second of a thread that is on the CPU */

extern const struct source_ops source_states;

#endif
