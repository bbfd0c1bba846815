/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * captures.h - which call made each node of the CUDA graphs of each process: what a replayed kernel
 * was captured from. From CT_NODE records.
 */
#ifndef CT_CAPTURES_H
#define CT_CAPTURES_H

#include "../event.h"

#define CAPTURES_MAX 524288 /* nodes; a process has a quarter of them at most */

struct captures;
struct captures *captures_open(void); /* NULL: no memory */
void captures_close(struct captures *);
/* Learns from CT_NODE, and forgets by CT_EXEC, and by CT_PROCESS after CT_EXIT; ignores other records.
 * True if the process's nodes were forgotten. */
bool captures_event(struct captures *, const struct event *);
/* The call that made a node. NULL: the process's nodes are not followed, or node is 0. One that
 * has `before` was made before they were followed, or there was no room for it (captures_dropped).
 * Valid until the next record. */
const struct capture *captures_find(const struct captures *, uint32_t pid, uint64_t node);
uint64_t captures_dropped(const struct captures *); /* nodes for which there was no room */

#endif
