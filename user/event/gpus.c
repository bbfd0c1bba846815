/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpus.c - see gpus.h. A list of GPUs, and a hash from the numbers that processes use to places in
 * the list. A GPU whose UUID is not known is identified by its host and its number there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"
#include "../util/table/hash_map.h"
#include "gpus.h"

#define NAMES_MAX 65536	       /* (process, device) pairs */
#define STAYS_NS 5000000000ULL /* in which the last records of a process that has ended come */
#define DEVICES_MAX 64	       /* of a process */

struct named {
	struct {
		uint32_t process, device; /* process_unique(); 0: the machine */
	} key;
	uint32_t at;
	uint64_t ended_ns; /* when the process ended; 0: it has not */
};

struct gpu_table {
	struct gpu *gpus[GPUS_MAX];
	uint32_t n;
	struct hash_map names;
	uint64_t ended_ns,
		forgot_ns; /* the last end of a process; when names were last forgotten */
};

struct gpu_table *gpu_table_open(void)
{
	struct gpu_table *t = calloc(1, sizeof(*t));

	if (t)
		hash_map_open(&t->names, sizeof(struct named), sizeof(((struct named *)0)->key),
			      NAMES_MAX);
	return t;
}

void gpu_table_close(struct gpu_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		free(t->gpus[i]);
	hash_map_close(&t->names);
	free(t);
}

void gpu_uuid_text(const uint8_t u[16], char text[48])
{
	char *p = text + sprintf(text, "GPU-");

	for (int i = 0; i < 16; i++)
		p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static bool is_known(const uint8_t uuid[16])
{
	static const uint8_t none[16];

	return memcmp(uuid, none, sizeof(none)) != 0;
}

/* The number that its owner gives it, if that is free; otherwise a number that no GPU has. */
static uint32_t number_for(const struct gpu_table *t, uint32_t wanted)
{
	uint32_t most = 0;
	bool taken = wanted >= GPUS_MAX;

	for (uint32_t i = 0; i < t->n; i++) {
		taken |= t->gpus[i]->number == wanted;
		most = t->gpus[i]->number >= most ? t->gpus[i]->number + 1 : most;
	}
	return taken ? most : wanted;
}

/* Finds the place of a GPU, or adds the GPU. GPUS_MAX: there is no room. */
static uint32_t gpus_place_of(struct gpu_table *t, uint32_t host, uint32_t device,
			      const uint8_t uuid[16])
{
	struct gpu *g;

	for (uint32_t i = 0; i < t->n; i++) {
		g = t->gpus[i];
		if (is_known(uuid) ? !memcmp(g->uuid, uuid, 16)
				   : !*g->text && g->host == host && g->device == device)
			return i;
	}
	g = t->n < GPUS_MAX ? calloc(1, sizeof(*g)) : NULL;
	if (!g)
		return GPUS_MAX;
	g->number = number_for(t, device);
	g->host = host;
	g->device = device;
	memcpy(g->uuid, uuid, sizeof(g->uuid));
	if (is_known(uuid))
		gpu_uuid_text(uuid, g->text);
	t->gpus[t->n] = g;
	return t->n++;
}

static const struct gpu *gpus_find(const struct gpu_table *t, uint32_t process, uint32_t device)
{
	struct named want = { .key = { process, device } };
	const struct named *n = device == CT_UNKNOWN ? NULL : hash_map_find(&t->names, &want.key);

	return n ? t->gpus[n->at] : NULL;
}

/* Names of processes that have ended stay for what is printed at the end, as long as there is room for others. */
static void forget_ended(struct gpu_table *t)
{
	struct named *n;

	if (t->names.n < NAMES_MAX || t->ended_ns - t->forgot_ns <= STAYS_NS)
		return;
	t->forgot_ns = t->ended_ns;
	hash_map_each(&t->names, n) if (n->ended_ns && t->ended_ns - n->ended_ns > STAYS_NS)
		hash_map_remove(&t->names, n);
}

static const struct gpu *gpus_name(struct gpu_table *t, uint32_t process, uint32_t device,
				   uint32_t at)
{
	struct named want = { .key = { process, device } }, *n;
	bool made;

	if (at == GPUS_MAX)
		return NULL;
	n = hash_map_get(&t->names, &want.key, &made);
	if (!n) {
		forget_ended(t);
		n = hash_map_get(&t->names, &want.key, &made);
	}
	if (n) {
		n->at = at;
		n->ended_ns = 0;
	}
	return t->gpus[at];
}

static void process_ended(struct gpu_table *t, uint32_t process, uint64_t at_ns)
{
	struct named want = { .key = { process, 0 } };

	t->ended_ns = at_ns > t->ended_ns ? at_ns : t->ended_ns;
	for (; process && want.key.device < DEVICES_MAX; want.key.device++) {
		struct named *n = hash_map_find(&t->names, &want.key);

		if (n)
			n->ended_ns = at_ns;
	}
}

void gpu_table_record(struct gpu_table *t, const struct process *p, const struct ct_hdr *rec)
{
	const struct ct_device *d = (const struct ct_device *)rec;
	uint32_t host, device;

	if (rec->kind == CT_EXIT && p)
		process_ended(t, process_unique(p), rec->end_ns);
	if (rec->kind != CT_DEVICE || d->id == CT_UNKNOWN)
		return;
	host = rec->pid ? process_host(rec->pid) : d->id >> DEVICE_HOST_SHIFT;
	device = rec->pid ? d->id : d->id & ((1u << DEVICE_HOST_SHIFT) - 1);
	gpus_name(t, rec->pid ? process_unique(p) : 0, d->id,
		  gpus_place_of(t, host, device, d->uuid));
}

const struct gpu *gpu_table_find(const struct gpu_table *t, const struct process *p,
				 uint32_t device)
{
	return gpu_table_named(t, process_unique(p), device);
}

const struct gpu *gpu_table_named(const struct gpu_table *t, uint32_t process, uint32_t device)
{
	return t && process ? gpus_find(t, process, device) : NULL;
}

const struct gpu *gpu_table_worked(struct gpu_table *t, const struct process *p, uint32_t device)
{
	static const uint8_t none[16];
	const struct gpu *g = gpu_table_find(t, p, device);
	uint32_t host = process_host(p->pid);

	return g || device == CT_UNKNOWN ? g
					 : gpus_name(t, process_unique(p), device,
						     gpus_place_of(t, host, device, none));
}

const struct gpu *gpu_table_machine(const struct gpu_table *t, uint32_t device)
{
	return t ? gpus_find(t, 0, device) : NULL;
}

/* ---- the devices of a process ---- */

struct device_list {
	struct registered r;
	struct device_facts *list;
	size_t n;
};

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct device_list *of = item;

	(void)ctx, (void)h;
	free(of->list);
	of->list = NULL;
	of->n = 0;
}

static const struct registry_rules rules = { .size = sizeof(struct device_list),
					     .most = REGISTRY_MOST,
					     .stays_ns = STAYS_NS,
					     .forgets = true,
					     .exec = forgotten,
					     .gone = forgotten };

void devices_open(struct devices *d)
{
	registry_open(&d->processes, &rules, d);
}

void devices_close(struct devices *d)
{
	registry_close(&d->processes);
}

static struct device_facts *device_of(const struct device_list *of, uint32_t id)
{
	for (size_t i = 0; of && i < of->n; i++)
		if (of->list[i].id == id)
			return &of->list[i];
	return NULL;
}

int devices_record(struct devices *d, const struct ct_hdr *h)
{
	const struct ct_device *r = (const struct ct_device *)h;
	struct device_list *of;
	struct device_facts *one;

	if (h->kind != CT_DEVICE) {
		registry_record(&d->processes, h);
		return 0;
	}
	if (!h->pid)
		return 0;
	of = registry_get(&d->processes, h->pid);
	one = device_of(of, r->id);
	if (of && !one && of->n == DEVICES_MAX)
		return 0;
	if (of && !one)
		one = array_add(of->list, of->n);
	if (!one)
		return -ENOMEM;
	*one = (struct device_facts){ .id = r->id,
				      .major = r->major,
				      .minor = r->minor,
				      .multiprocessors = r->multiprocessors,
				      .clock_khz = r->clock_khz };
	memcpy(one->uuid, r->uuid, sizeof(one->uuid));
	return 0;
}

const struct device_facts *devices_find(const struct devices *d, uint32_t pid, uint32_t id)
{
	return device_of(registry_find(&d->processes, pid), id);
}
