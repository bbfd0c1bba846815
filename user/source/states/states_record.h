/* SPDX-License-Identifier: BSD-2-Clause */
/* states_record.h - one raw record of the kernel side as records of the wire contract. Knows no map. */
#ifndef CT_STATES_RECORD_H
#define CT_STATES_RECORD_H

#include "../../event/event.h"
#include "../../../wire/host_wire.h"

/* The system calls whose first argument is a descriptor: bit nr of words[nr / 64]. */
void states_fd_calls(uint64_t words[CT_HOST_SYSCALLS / 64]);
/* Hands on the record and before it its stack. raw is untrusted as far as names go; `size` bytes of it are
 * there. Returns 0, -EBADMSG, or emit's. */
int states_emit(const struct ct_host_raw *raw, size_t size, emit_fn emit, void *ctx);

#endif
