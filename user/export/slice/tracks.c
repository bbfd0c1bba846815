/* SPDX-License-Identifier: BSD-2-Clause */
/* tracks.c - see tracks.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/device.h"
#include "../../event/gpus.h"
#include "../../flow/about.h"
#include "tracks.h"

void tracks_init(struct tracks *t)
{
	*t = (struct tracks){ .last = TRACKS_NONE };
	keyed_open_of(&t->all, struct track, key, TRACKS_MAX);
}

void tracks_free(struct tracks *t)
{
	keyed_close(&t->all);
}

static enum track_kind scope_track(const struct ct_scope *s)
{
	switch (s->kind) {
	case CT_SCOPE_COLLECTIVE:
	case CT_SCOPE_COMMUNICATOR: return TRACK_COLLECTIVES;
	case CT_SCOPE_OPERATOR: return TRACK_OPERATORS;
	case CT_SCOPE_GEMM: return TRACK_PRODUCTS;
	}
	return TRACK_MARKERS;
}

/* Fills in the key of the event's track; false: it has none. */
static bool key_of(struct track *k, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	*k = (struct track){ .key = { .pid = process_unique(ev->proc), .first = about_tid(ev) },
			     .shown_pid = ev->proc->shown_pid };
	switch (h->kind) {
	case CT_CALL:
	case CT_FOREIGN: k->key.kind = TRACK_THREAD; return true;
	case CT_SCOPE_END: k->key.kind = scope_track((const struct ct_scope *)h); return true;
	case CT_MARKER: k->key.kind = TRACK_MARKERS; return true;
	case CT_LOST:
	case CT_MUTED:
	case CT_UNPROBED:
	case CT_HOLE:
		k->key.kind = TRACK_HOLES;
		k->key.first = 0;
		return true;
	case CT_OVERHEAD: k->key.kind = TRACK_OVERHEAD; return true;
	case CT_EVENT:
		k->key.kind = TRACK_EVENTS;
		k->key.pid = k->shown_pid = 0;
		k->key.first = ev->gpu ? ev->gpu->number : ((const struct ct_event *)h)->device;
		return true;
	}
	if (!kind_is(h->kind, KIND_WORK))
		return false;
	k->key.first = ev->gpu ? ev->gpu->number : ev->device;
	k->key.second = ev->stream;
	k->key.kind = h->kind == CT_SYNC ? TRACK_WAITS : TRACK_STREAM;
	if (h->kind == CT_MEMORY || h->kind == CT_MANAGED) {
		k->key.kind = TRACK_MEMORY;
		k->key.second = 0;
	}
	return true;
}

/* Updates the text about the process, which becomes known after its first record. */
static void keep_whom(struct track *k, const struct process *p)
{
	struct text whom = { 0 };

	if (k->whom_known)
		return;
	k->whom_known = p->info;
	about_whom(&whom, p);
	if (p->info && p->info->rank != CT_UNKNOWN) {
		text_str(&whom, ", rank ");
		text_u64(&whom, p->info->rank);
	}
	if (!whom.bad)
		snprintf(k->whom, sizeof(k->whom), "%.*s", (int)whom.len, whom.s ? whom.s : "");
	text_free(&whom);
}

uint32_t tracks_find(struct tracks *t, const struct event *ev)
{
	struct track want, *k;
	bool made = false;

	if (!key_of(&want, ev))
		return TRACKS_NONE;
	k = t->last < t->all.n ? keyed_at(&t->all, t->last) : NULL;
	if (!k || memcmp(&k->key, &want.key, sizeof(k->key)))
		k = keyed_get(&t->all, &want.key, &made);
	if (!k) {
		t->no_room++;
		return TRACKS_NONE;
	}
	if (made)
		k->shown_pid = want.shown_pid;
	t->last = (uint32_t)(k - (struct track *)t->all.items);
	/* the newest name: a process may become another program */
	if (want.key.pid && strcmp(ev->proc->comm, "?"))
		memcpy(k->comm, ev->proc->comm, CT_COMM_LEN);
	if (want.key.pid)
		keep_whom(k, ev->proc);
	if (ev->thread)
		memcpy(k->thread, ev->thread, CT_COMM_LEN);
	return t->last;
}

static void device(struct text *t, uint32_t device, const char *after)
{
	if (device == CT_UNKNOWN) {
		text_str(t, "unknown GPU");
	} else {
		text_str(t, "GPU ");
		text_u64(t, device);
	}
	text_str(t, after);
}

static void stream(struct text *t, uint32_t id, const char *before)
{
	if (id == CT_UNKNOWN)
		return;
	text_str(t, before);
	text_u64(t, id);
}

static void thread(struct text *t, const struct track *k, const char *after)
{
	text_str(t, "thread ");
	text_u64(t, k->key.first);
	if (*k->thread) {
		text_str(t, " (");
		text_plain(t, k->thread, CT_COMM_LEN);
		text_str(t, ")");
	}
	text_str(t, after);
}

void tracks_name(struct text *t, const struct track *k)
{
	switch (k->key.kind) {
	case TRACK_MARKERS: thread(t, k, ", ranges"); break;
	case TRACK_THREAD: thread(t, k, ""); break;
	case TRACK_OVERHEAD: thread(t, k, ", overhead"); break;
	case TRACK_OPERATORS: thread(t, k, ", operators"); break;
	case TRACK_COLLECTIVES: thread(t, k, ", collectives"); break;
	case TRACK_PRODUCTS: thread(t, k, ", products"); break;
	case TRACK_STREAM:
		device(t, k->key.first, "");
		stream(t, k->key.second, ", stream ");
		break;
	case TRACK_WAITS:
		device(t, k->key.first, ", waits");
		stream(t, k->key.second, " of stream ");
		break;
	case TRACK_MEMORY: device(t, k->key.first, ", memory"); break;
	case TRACK_HOLES: text_str(t, "not seen"); break;
	default: device(t, k->key.first, ", events");
	}
}

void tracks_process(struct text *t, const struct track *k)
{
	if (!k->key.pid)
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
