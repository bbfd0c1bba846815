/* SPDX-License-Identifier: BSD-2-Clause */
/* tracks.c - see tracks.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/gpus.h"
#include "tracks.h"

void tracks_init(struct tracks *t)
{
	*t = (struct tracks){ .last = TRACKS_NONE };
	hash_map_open_of(&t->all, struct track, key, TRACKS_MAX);
}

void tracks_free(struct tracks *t)
{
	hash_map_close(&t->all);
}

/* Fills in the key of the event's track; false: it has none. */
static bool track_key(struct track *k, const struct event *ev)
{
	const struct slice_row *row = slice_row(ev->rec->kind);
	const struct slice_track_row *track;

	if (!row)
		return false;
	k->track = (uint8_t)slice_track(ev);
	track = &slice_tracks[k->track];
	k->shown_pid = ev->proc->shown_pid;
	k->key.page = track->page;
	k->key.pid = process_unique(ev->proc);
	k->key.first = k->key.second = 0;
	switch ((enum slice_of)track->of) {
	case OF_MACHINE: /* what was not seen of the machine is shown with a process too */
	case OF_PROCESS: break;
	case OF_THREAD: k->key.first = about_tid(ev); break;
	case OF_GPU:
		k->key.pid = k->shown_pid = 0;
		k->key.first = ev->gpu ? ev->gpu->number
				       : ((const struct ct_event *)ev->rec)->device;
		break;
	case OF_STREAM: k->key.second = ev->stream; /* fall through */
	case OF_DEVICE: k->key.first = ev->gpu ? ev->gpu->number : ev->device; break;
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
	struct track want = { 0 }, *k;
	bool made = false;

	if (!track_key(&want, ev))
		return TRACKS_NONE;
	k = t->last < t->all.n ? hash_map_at(&t->all, t->last) : NULL;
	if (!k || memcmp(&k->key, &want.key, sizeof(k->key)))
		k = hash_map_get(&t->all, &want.key, &made);
	if (!k) {
		t->no_room++;
		return TRACKS_NONE;
	}
	if (made) {
		k->shown_pid = want.shown_pid;
		k->track = want.track;
	}
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

static void put_device(struct text *t, uint32_t device)
{
	if (device == CT_UNKNOWN) {
		text_str(t, "unknown GPU");
	} else {
		text_str(t, "GPU ");
		text_u64(t, device);
	}
}

static void put_thread(struct text *t, const struct track *k)
{
	text_str(t, "thread ");
	text_u64(t, k->key.first);
	if (*k->thread) {
		text_str(t, " (");
		text_plain(t, k->thread, CT_COMM_LEN);
		text_str(t, ")");
	}
}

void tracks_name(struct text *t, const struct track *k)
{
	const struct slice_track_row *row = &slice_tracks[k->track];

	if (row->of == OF_THREAD)
		put_thread(t, k);
	else if (row->of == OF_GPU || row->of == OF_DEVICE || row->of == OF_STREAM)
		put_device(t, k->key.first);
	text_str(t, row->name);
	if (row->of != OF_STREAM || k->key.second == CT_UNKNOWN)
		return;
	text_str(t, row->stream);
	text_u64(t, k->key.second);
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
