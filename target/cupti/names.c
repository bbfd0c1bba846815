/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - kernels' names become handles: a number with CT_HANDLE_DEVICE, sent with the name once
 * in an attach. Names are compared, not only their addresses, because the same address may hold
 * another name later. A handle means the same name for the life of the process. A kernel that does
 * not fit into the table gets no name.
 *
 * The record of a kernel points to a name that may live no longer than the kernel's code. When a
 * call begins that unloads code, CUPTI is made to give out the records that it has, and their
 * names are copied. The ends of such calls divide the time into epochs. A name is read only for
 * a kernel that started in the epoch that lasts, while no such call is under way. A record that
 * comes later than that gets the name that was copied from the same address for the epoch in
 * which its kernel started, or none.
 */
#include "agent_state.h"

#include <pthread.h>
#include <stdlib.h>

#define NAMES_MAX 65536
#define SLOTS (2 * NAMES_MAX)
#define NAMES_BYTES (32u << 20) /* of all of them */
#define EPOCHS 64		/* whose ends are remembered */
#define SEEN 4096		/* a power of two */

struct name {
	uint32_t hash, len;
	int sent; /* in which attach */
	bool cut;
	char *text;
};

/* Never held during a call of CUPTI. It ensures that a name's record comes before the first record
 * that uses it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct name *names;
static uint32_t *slots; /* number + 1 */
static uint32_t nnames;
static size_t bytes;

static uint64_t ends_ns[EPOCHS]; /* of epoch i: at i % EPOCHS */
static uint32_t epoch;		 /* which one lasts; the first is 0 */
static uint32_t unloading;	 /* calls under way that unload code */
/* The name copied from an address, and the epochs whose kernels it is for. */
static struct {
	const char *address;
	uint32_t number; /* of its name */
	uint32_t from, to;
} seen[SEEN];

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

/* Returns the number of a name; a new name gets a number. -1: no room. */
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

/* Returns the handle after its CT_NAME has been queued; 0: there is no room for that. */
static uint64_t handle_of(int64_t i)
{
	if (i < 0 || (names[i].sent != agent.attached && !send((uint32_t)i)))
		return 0;
	return CT_HANDLE_DEVICE | (uint64_t)(i + 1);
}

static bool have_tables(void)
{
	if (!names)
		names = calloc(NAMES_MAX, sizeof(*names));
	if (!slots)
		slots = calloc(SLOTS, sizeof(*slots));
	return names && slots;
}

uint64_t names_handle(const char *name)
{
	uint64_t handle = 0;

	if (!name || !*name)
		return 0;
	pthread_mutex_lock(&lock);
	if (have_tables())
		handle = handle_of(number(name));
	pthread_mutex_unlock(&lock);
	return handle;
}

/* Returns the epoch of a moment; -1: it is too long ago and not kept any more. */
static int64_t epoch_of(uint64_t ns)
{
	uint32_t e = epoch;

	while (e && epoch - e < EPOCHS && ns <= ends_ns[(e - 1) % EPOCHS])
		e--;
	return epoch - e < EPOCHS ? (int64_t)e : -1;
}

uint64_t names_of_record(const char *name, uint64_t start_ns)
{
	uint32_t place = (uint32_t)((uintptr_t)name * 0x9e3779b97f4a7c15ULL >> 52) & (SEEN - 1);
	uint64_t handle = 0;
	int64_t when, i = -1;

	if (!name)
		return 0;
	pthread_mutex_lock(&lock);
	when = epoch_of(start_ns);
	if (when == epoch && !unloading) {
		i = *name && have_tables() ? number(name) : -1;
		if (i >= 0 && (seen[place].address != name || seen[place].number != i)) {
			seen[place].address = name;
			seen[place].number = (uint32_t)i;
			seen[place].from = epoch;
		}
		if (i >= 0)
			seen[place].to = epoch;
	} else if (seen[place].address == name && seen[place].from <= when &&
		   when <= seen[place].to) {
		i = seen[place].number;
	}
	handle = handle_of(i);
	pthread_mutex_unlock(&lock);
	return handle;
}

void names_begin(void)
{
	pthread_mutex_lock(&lock);
	unloading = 0; /* in an earlier attach the end of one may not have been seen */
	pthread_mutex_unlock(&lock);
}

void names_unloading(void)
{
	device_flush(false);
	pthread_mutex_lock(&lock);
	unloading++;
	pthread_mutex_unlock(&lock);
}

void names_unloaded(void)
{
	pthread_mutex_lock(&lock);
	if (unloading)
		unloading--;
	ends_ns[epoch++ % EPOCHS] = clock_now();
	pthread_mutex_unlock(&lock);
}
