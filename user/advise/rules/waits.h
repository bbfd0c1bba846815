/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits.h - what rules about waiting for the device share. A wait by itself costs nothing: the
 * device is busy meanwhile. What it costs is the time after it, until the thread has given the
 * device work again.
 */
#ifndef CT_ADVISE_WAITS_H
#define CT_ADVISE_WAITS_H

#include "../rule.h"

enum wait_what { WAIT_NONE, WAIT_EACH, WAIT_READBACK };

/* Notes a wait whose cost the thread's next work tells. A trace's last wait is never counted:
 * all has to end. */
void waits_note(const struct seen *, enum wait_what, uint64_t bytes);
/* The work that follows. */
int waits_settle(struct hits *, const struct seen *, enum wait_what);

#endif
