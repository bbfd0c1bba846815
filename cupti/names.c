/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - kernels' names become handles: a number with CT_HANDLE_DEVICE, sent with the name once in an attach. Names are
 * compared, not only their addresses: CUPTI's strings live no longer than the module that they belong to. A handle means the
 * same name for the life of the process. What does not fit into the table gets no name.
 */
#include "state.h"

#include <pthread.h>
#include <stdlib.h>

#define NAMES_MAX 65536
#define SLOTS (2 * NAMES_MAX)
#define NAMES_BYTES (32u << 20) /* of all of them */

struct name {
	uint32_t hash, len;
	int sent; /* in which attach */
	bool cut;
	char *text;
};

/* Held over no call of CUPTI's. It is what makes a name's record come before the first that uses it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct name *names;
static uint32_t *slots; /* number + 1 */
static uint32_t nnames;
static size_t bytes;

void names_reset(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	/* in a forked child the lock may be held by a thread that is not there */
	lock = fresh;
}

static bool send(uint32_t i)
{
	struct name *n = &names[i];
	struct ct_name *r;
	uint64_t now = clock_now();

	r = agent_record(CT_NAME, sizeof(*r) + n->len, now, now, 0);
	if (!r)
		return false;
	r->handle = CT_HANDLE_DEVICE | (i + 1);
	r->len = n->len;
	r->source = CT_NAME_DEVICE;
	r->cut = n->cut;
	memcpy(r->name, n->text, n->len);
	queue_commit(r);
	n->sent = agent.attached;
	return true;
}

/* The number of a name, made if it is new; -1: no room. */
static int64_t number(const char *text)
{
	uint32_t h = 2166136261u, at, len = 0;
	struct name *n;

	for (; text[len] && len < CT_NAME_MAX; len++)
		h = (h ^ (uint8_t)text[len]) * 16777619u;
	h ^= h >> 15;
	for (at = h % SLOTS; slots[at]; at = (at + 1) % SLOTS) {
		n = &names[slots[at] - 1];
		if (n->hash == h && n->len == len && !memcmp(n->text, text, len))
			return slots[at] - 1;
	}
	if (nnames == NAMES_MAX || bytes + len > NAMES_BYTES)
		return -1;
	n = &names[nnames];
	n->text = malloc(len ? len : 1);
	if (!n->text)
		return -1;
	memcpy(n->text, text, len);
	n->hash = h;
	n->len = len;
	n->cut = text[len];
	n->sent = 0;
	bytes += len;
	slots[at] = ++nnames;
	return nnames - 1;
}

uint64_t names_handle(const char *name)
{
	int64_t i = -1;

	if (!name || !*name)
		return 0;
	pthread_mutex_lock(&lock);
	if (!names)
		names = calloc(NAMES_MAX, sizeof(*names));
	if (!slots)
		slots = calloc(SLOTS, sizeof(*slots));
	if (names && slots)
		i = number(name);
	if (i >= 0 && names[i].sent != agent.attached && !send((uint32_t)i))
		i = -1;
	pthread_mutex_unlock(&lock);
	return i < 0 ? 0 : CT_HANDLE_DEVICE | (uint64_t)(i + 1);
}
