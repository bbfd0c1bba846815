/* SPDX-License-Identifier: BSD-2-Clause */
/* links.c - see links.h: a set of links of whichever kind is made and closed. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "links.h"

int links_make(enum attach_kind kind, const struct attach_progs *progs, const struct link_target *t, struct link_set *set, int *bad)
{
	switch (kind) {
	case ATTACH_SESSION:
		return links_session(progs, t, set, bad);
	case ATTACH_MULTI:
		return links_multi(progs, t, set, bad);
	case ATTACH_TRACEFS:
		return links_tracefs(progs, t, set, bad);
	case ATTACH_PERF:
		return links_perf(progs, t, set, bad);
	default:
		return -EINVAL;
	}
}

void links_close(struct link_set *set)
{
	while (set->nfds)
		close(set->fds[--set->nfds]);
	links_removed(set);
}

struct later {
	struct link_set set;
	unsigned delay_us;
};

static void *close_later(void *arg)
{
	struct later *later = arg;

	if (later->delay_us)
		usleep(later->delay_us);
	links_close(&later->set);
	free(later);
	return NULL;
}

void links_close_later(const struct link_set *set, unsigned delay_us)
{
	struct later *copy = malloc(sizeof(*copy));
	struct link_set here = *set;
	pthread_t thread;

	if (copy) {
		copy->set = *set;
		copy->delay_us = delay_us;
		if (!pthread_create(&thread, NULL, close_later, copy)) {
			pthread_detach(thread);
			return;
		}
		free(copy);
	}
	links_close(&here);
}
