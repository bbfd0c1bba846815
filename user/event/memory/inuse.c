/* SPDX-License-Identifier: BSD-2-Clause */
/* inuse.c - see inuse.h. */
#include <stdlib.h>

#include "inuse.h"

static void inuse_moved(void *ctx, const struct live_entry *e, enum account_why why, uint64_t at_ns)
{
	struct inuse *u = ctx;
	int sign = why == ACCOUNT_TAKEN ? 1 : -1;

	(void)at_ns;
	if (e->space != API_SPACE_DEVICE || e->kind == API_MEM_IMPORTED)
		return;
	u->delta += sign * (int64_t)e->bytes;
	u->entries += sign;
	u->device = e->device == LIVE_NO_DEVICE ? CT_UNKNOWN : e->device;
}

struct inuse *inuse_open(void)
{
	static const struct account_ops ops = { .moved = inuse_moved };
	struct inuse *u = calloc(1, sizeof(*u));

	if (u)
		account_open(&u->account, 0, &ops, u);
	return u;
}

void inuse_close(struct inuse *u)
{
	if (u)
		account_close(&u->account);
	free(u);
}

bool inuse_call(struct inuse *u, const struct event *ev, uint32_t *device, int64_t *delta)
{
	if (ev->rec->kind != CT_CALL)
		return false;
	u->delta = 0;
	u->entries = 0;
	account_event(&u->account, ev);
	*device = u->device;
	*delta = u->delta;
	/* memory that comes again at an address is no change: the driver's call inside the
	 * runtime's, which was counted already, or one whose free was not seen */
	return u->entries || u->delta;
}

void inuse_forget(struct inuse *u, uint32_t pid)
{
	account_forget(&u->account, pid, ACCOUNT_EXITED, 0);
}
