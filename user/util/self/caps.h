/* SPDX-License-Identifier: BSD-2-Clause */
/* caps.h - the capabilities of the calling thread. A set is a word with a bit for each, as in
 * /proc/PID/status. */
#ifndef CT_CAPS_H
#define CT_CAPS_H

#include <linux/capability.h>

#include "../types.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* <linux/capability.h> since 5.8 */
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40 /* since 5.9 */
#endif

#define CAPS_BIT(cap) (1ULL << (cap))

uint64_t caps_effective(void);
/* Makes one of the permitted capabilities effective (on), or for a while not effective. Returns
 * 0 or -errno. */
int caps_set(int cap, bool effective);
/* Gives up all capabilities that are not in the set, for good, in the inheritable and ambient
 * sets too. Each thread has its own, so call it before there are other threads. Returns 0 or
 * -errno. */
int caps_keep(uint64_t set);
/* After this call, no program that is executed gets more privileges than this process has.
 * Returns 0 or -errno. */
int caps_no_new(void);

#endif
