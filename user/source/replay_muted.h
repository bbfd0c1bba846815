/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_muted.h - inside the replay source: functions whose calls a recording does not have, because there were
 * too many (CT_HOLE with CT_HOLE_MUTED), and up to when it has their numbers (CT_MUTED). A recording that was
 * cut off, dumped or read while it is written lacks the numbers of its last second: this makes the records
 * that say so, so that nobody takes the numbers before for all.
 */
#ifndef CT_REPLAY_MUTED_H
#define CT_REPLAY_MUTED_H

#include "../event/event.h"

struct replay_muted;
struct replay_muted *replay_muted_open(void); /* NULL: no memory */
void replay_muted_close(struct replay_muted *);
/* Learns from each record. */
void replay_muted_record(struct replay_muted *, const struct ct_hdr *);
/* All records were read: hands out a CT_MUTED for each function of which the last numbers are missing. Its upper
 * end is a call every 5 ns. Returns 0 or emit's error. */
int replay_muted_end(struct replay_muted *, emit_fn emit, void *ctx);
/* The names of the functions, NULL-terminated, valid until the next call. */
const char *const *replay_muted_names(const struct replay_muted *);

#endif
