/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registry.c - see registry.h. Each struct has memory of its own, so that it stays where it is; a hash
 * finds it by the process's number.
 */
#include <stdlib.h>

#include "registry.h"

#define FIRST_SWEEP 32

void registry_open(struct registry *r, const struct registry_rules *rules, void *ctx)
{
	*r = (struct registry){ .rules = rules, .ctx = ctx };
	hash_map_open_of(&r->places, struct registry_place, pid, rules->most);
	r->sweep_at = rules->stays_ns == UINT64_MAX ? rules->most : FIRST_SWEEP;
}

static void forget(struct registry *r, struct registered *item, const struct ct_hdr *why)
{
	struct registry_place *place = hash_map_look(&r->places, &item->pid);

	r->nexited -= item->exited;
	r->last = NULL;
	hash_map_remove(&r->places, place);
	if (r->rules->gone)
		r->rules->gone(r->ctx, item, why);
	free(item);
}

void registry_forget(struct registry *r, void *item)
{
	forget(r, item, NULL);
}

void registry_close(struct registry *r)
{
	struct registered *item;

	registry_each(r, item) forget(r, item, NULL);
	hash_map_close(&r->places);
}

void *registry_find(const struct registry *r, uint32_t pid)
{
	const struct registry_place *place;

	if (r->last && r->last->pid == pid)
		return r->last;
	place = hash_map_look(&r->places, &pid);
	return place ? place->item : NULL;
}

/* ---- room ---- */

/* Forgets the processes that ended before a moment. */
static void sweep(struct registry *r, uint64_t before_ns)
{
	struct registered *item;

	if (!r->nexited)
		return;
	registry_each(r, item)
	{
		if (item->exited && item->exited_ns <= before_ns && !item->held)
			forget(r, item, NULL);
	}
}

void registry_sweep(struct registry *r, uint64_t now_ns)
{
	if (now_ns > r->rules->stays_ns)
		sweep(r, now_ns - r->rules->stays_ns);
}

void registry_forget_exited(struct registry *r)
{
	sweep(r, UINT64_MAX);
}

/* Forgets those that were asked for in the older half of the time since the oldest was: one at least, and in
 * the long run half of them, so that it costs little for each new one. */
static void forget_oldest(struct registry *r)
{
	uint64_t oldest = r->clock, middle;
	struct registered *item;

	registry_each(r, item) if (!item->held && item->used < oldest) oldest = item->used;
	middle = oldest + (r->clock - oldest) / 2;
	registry_each(r, item)
	{
		if (item->held || item->used > middle)
			continue;
		forget(r, item, NULL);
		r->forgotten++;
	}
}

/* Makes room for one more. This is done again when there are at least twice as many processes as are left
 * now. False: there is no room. */
static bool make_room(struct registry *r)
{
	size_t most = r->rules->most;

	registry_sweep(r, r->now_ns);
	if (r->places.n >= most / 2)
		registry_forget_exited(r);
	if (r->places.n >= most && r->rules->forgets)
		forget_oldest(r);
	while (r->places.n >= r->sweep_at / 2 && r->sweep_at < most)
		r->sweep_at = r->sweep_at < most / 2 ? 2 * r->sweep_at : most;
	return r->places.n < most;
}

/* ---- asking ---- */

void *registry_get(struct registry *r, uint32_t pid)
{
	struct registered *item = registry_find(r, pid);
	struct registry_place *place;

	if (!item) {
		if (r->places.n >= r->sweep_at && !make_room(r)) {
			r->left_out++;
			return NULL;
		}
		item = calloc(1, r->rules->size);
		place = item ? hash_map_get(&r->places, &pid, &(bool){ false }) : NULL;
		if (!place) {
			free(item);
			return NULL;
		}
		item->pid = pid;
		place->item = item;
	}
	item->used = ++r->clock;
	return r->last = item;
}

void *registry_of(struct registry *r, const struct process *p)
{
	struct registered *item = registry_get(r, p->pid);

	if (item && p->start_boottime_ns)
		item->start_boottime_ns = p->start_boottime_ns;
	return item;
}

size_t registry_bytes(const struct registry *r)
{
	return hash_map_bytes(&r->places) + registry_count(r) * r->rules->size;
}

/* ---- records ---- */

bool registry_renews(const struct registered *item, const struct ct_process *r)
{
	return r->h.kind == CT_EXEC || registry_other(item->start_boottime_ns, item->exited, r);
}

static void renew(struct registry *r, struct registered *item, const struct ct_hdr *h)
{
	struct registered same = *item;

	if (r->rules->exec) {
		r->rules->exec(r->ctx, item, h);
		return;
	}
	memset(item, 0, r->rules->size);
	*item = same;
}

static void set_exited(struct registry *r, struct registered *item, bool exited)
{
	r->nexited += exited;
	r->nexited -= item->exited;
	item->exited = exited;
}

void registry_expire(struct registry *r, void *item)
{
	set_exited(r, item, true);
	((struct registered *)item)->exited_ns = r->now_ns;
}

void registry_lives(struct registry *r, void *item)
{
	set_exited(r, item, false);
}

static void process(struct registry *r, struct registered *item, const struct ct_process *p)
{
	bool other = registry_other(item->start_boottime_ns, item->exited, p);

	if (registry_renews(item, p))
		renew(r, item, &p->h);
	set_exited(r, item, false);
	if (other || p->start_boottime_ns)
		item->start_boottime_ns = p->start_boottime_ns;
}

bool registry_record(struct registry *r, const struct ct_hdr *h)
{
	bool ends = h->kind == CT_EXIT;
	struct registered *item;
	uint64_t at_ns = ends ? h->end_ns : h->start_ns;

	if (!ends && h->kind != CT_PROCESS && h->kind != CT_EXEC)
		return false;
	r->now_ns = at_ns > r->now_ns ? at_ns : r->now_ns;
	item = !ends && r->rules->all ? registry_get(r, h->pid) : registry_find(r, h->pid);
	if (item && !ends)
		process(r, item, (const struct ct_process *)h);
	if (!item || !ends)
		return true;
	set_exited(r, item, true);
	item->exited_ns = h->end_ns;
	if (!r->rules->stays_ns)
		forget(r, item, h);
	return true;
}
