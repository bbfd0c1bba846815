/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * life.h - the hooks of a process from the connection to their removal: it puts the first ones on, and takes all of them off.
 */
#ifndef CT_HOOKS_LIFE_H
#define CT_HOOKS_LIFE_H

#include <stdbool.h>

#include "../engine/engine.h"

enum hooks_state { IDLE, STARTING, RUNNING };
extern int hooks_state;
extern char hooks_address[512]; /* where to connect, as wire/agent_wire.h has it */
extern bool hooks_opened;	/* the engine is open */
extern bool hooks_follow;	/* forked children get hooks, too */

void others_say(const struct hook_state *s);
/* A filter may have been set by a system call that no hook saw: no hook makes one from here on. */
void filters_look(int threads);
void hooks_finish(int err);
/* Called when the socket is connected. Puts the first hooks on, and returns 0 if they are on. waits: on a
 * thread of the program. */
int hooks_enter(bool waits);
/* Connects, on the thread that starts that of the hooks. */
int hooks_connect(void);

#endif
