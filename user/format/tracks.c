/* SPDX-License-Identifier: BSD-2-Clause */
/* tracks.c - see tracks.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event/device.h"
#include "../event/gpus.h"
#include "about.h"
#include "tracks.h"
#include "../util/table/array.h"

#define TABLE (TRACKS_MAX * 2) /* a power of two */

int tracks_init(struct tracks *t)
{
	*t = (struct tracks){ .table = calloc(TABLE, sizeof(uint32_t)) };
	return t->table ? 0 : -ENOMEM;
}

void tracks_free(struct tracks *t)
{
	free(t->all);
	free(t->table);
	*t = (struct tracks){ 0 };
}

/* Which track that is; false: none. */
static bool key_of(struct track *k, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	*k = (struct track){ .pid = process_unique(ev->proc),
			     .shown_pid = ev->proc->shown_pid,
			     .first = about_tid(ev) };
	switch (h->kind) {
	case CT_CALL:
	case CT_FOREIGN: k->kind = TRACK_THREAD; return true;
	case CT_MARKER: k->kind = TRACK_MARKERS; return true;
	case CT_OVERHEAD: k->kind = TRACK_OVERHEAD; return true;
	case CT_EVENT:
		k->kind = TRACK_EVENTS;
		k->pid = k->shown_pid = 0;
		k->first = ev->gpu ? ev->gpu->number : ((const struct ct_event *)h)->device;
		return true;
	}
	if (!kind_is(h->kind, KIND_WORK))
		return false;
	k->first = ev->gpu ? ev->gpu->number : ev->device;
	k->second = ev->stream;
	k->kind = h->kind == CT_SYNC ? TRACK_WAITS : TRACK_STREAM;
	if (h->kind == CT_MEMORY || h->kind == CT_MANAGED) {
		k->kind = TRACK_MEMORY;
		k->second = 0;
	}
	return true;
}

static bool same(const struct track *a, const struct track *b)
{
	return a->kind == b->kind && a->pid == b->pid && a->first == b->first &&
	       a->second == b->second;
}

/* What is known of a process comes after its first record. */
static void keep_whom(struct track *k, const struct process *p)
{
	struct text whom = { 0 };

	if (k->whom_known)
		return;
	k->whom_known = p->info;
	about_whom(&whom, p);
	if (!whom.bad)
		snprintf(k->whom, sizeof(k->whom), "%.*s", (int)whom.len, whom.s ? whom.s : "");
	text_free(&whom);
}

uint32_t tracks_find(struct tracks *t, const struct event *ev)
{
	struct track key;
	uint64_t h;
	uint32_t at;

	if (!key_of(&key, ev))
		return TRACKS_NONE;
	at = t->last;
	if (at >= t->n || !same(&t->all[at], &key)) {
		h = (((uint64_t)key.pid << 32 | key.first) ^ (uint64_t)key.second << 20 ^
		     (uint64_t)key.kind << 60) *
		    0x9e3779b97f4a7c15;
		for (h >>= 40; t->table[h & (TABLE - 1)]; h++)
			if (same(&t->all[t->table[h & (TABLE - 1)] - 1], &key))
				break;
		at = t->table[h & (TABLE - 1)] - 1;
		if (at == TRACKS_NONE) {
			if (t->n == TRACKS_MAX || !array_room(t->all, t->n)) {
				t->no_room++;
				return TRACKS_NONE;
			}
			t->all[t->n] = key;
			at = t->n++;
			t->table[h & (TABLE - 1)] = t->n;
		}
		t->last = at;
	}
	/* the newest name: a process may become another program */
	if (key.pid && strcmp(ev->proc->comm, "?"))
		memcpy(t->all[at].comm, ev->proc->comm, CT_COMM_LEN);
	if (key.pid)
		keep_whom(&t->all[at], ev->proc);
	if (ev->thread)
		memcpy(t->all[at].thread, ev->thread, CT_COMM_LEN);
	return at;
}

static void device(struct text *t, uint32_t device, const char *after)
{
	text_str(t, "GPU ");
	if (device == CT_UNKNOWN)
		text_str(t, "?");
	else
		text_u64(t, device);
	text_str(t, after);
}

static void stream(struct text *t, uint32_t id, const char *before)
{
	if (id == CT_UNKNOWN)
		return;
	text_str(t, before);
	text_u64(t, id);
}

void tracks_name(struct text *t, const struct track *k)
{
	switch (k->kind) {
	case TRACK_MARKERS:
	case TRACK_THREAD:
	case TRACK_OVERHEAD:
		text_str(t, "thread ");
		text_u64(t, k->first);
		if (*k->thread) {
			text_str(t, " (");
			text_plain(t, k->thread, CT_COMM_LEN);
			text_str(t, ")");
		}
		text_str(t, k->kind == TRACK_MARKERS	? ", NVTX"
			    : k->kind == TRACK_OVERHEAD ? ", overhead"
							: "");
		break;
	case TRACK_STREAM:
		device(t, k->first, "");
		stream(t, k->second, ", stream ");
		break;
	case TRACK_WAITS:
		device(t, k->first, ", waits");
		stream(t, k->second, " of stream ");
		break;
	case TRACK_MEMORY: device(t, k->first, ", memory"); break;
	default: device(t, k->first, ", events");
	}
}

void tracks_process(struct text *t, const struct track *k)
{
	if (!k->pid)
		return;
	if (*k->comm) {
		text_plain(t, k->comm, CT_COMM_LEN);
		text_str(t, " ");
	}
	text_str(t, "(");
	text_u64(t, k->shown_pid);
	text_str(t, k->whom);
	text_str(t, ")");
}
