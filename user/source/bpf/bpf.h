/* SPDX-License-Identifier: BSD-2-Clause */
/* bpf.h - the source of calls that probes see, as source/both knows it. */
#ifndef CT_BPF_SOURCE_H
#define CT_BPF_SOURCE_H

#include "../source.h"

/* Has one more process traced (our namespace), with links of its own: what is given of it (plan->owners). Only where the plan wants
 * it so (plan->apart), after start(). Returns 0 or -errno. */
int bpf_take(struct source *, pid_t);

#endif
