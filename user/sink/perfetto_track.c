/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perfetto_track.c - the tracks of a Perfetto trace: what they are called, where they stand, what tells them apart. See
 * perfetto.h. Knows no event.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perfetto.h"

enum keeps { KEEPS_NOTHING, KEEPS_PROCESS, KEEPS_A };
static const struct track_row {
	const char *name; /* %u: the part of the key that the parent has not */
	uint8_t parent;	  /* enum track_kind */
	uint8_t keeps;	  /* what of the key is the parent's too */
} kinds[T_KINDS] = {
	[T_PROCESS] = { NULL, T_NONE, 0 },
	[T_THREAD] = { NULL, T_PROCESS, KEEPS_PROCESS },
	[T_RANGES] = { "NVTX", T_THREAD, KEEPS_A },
	[T_SPANS] = { "NVTX ranges", T_PROCESS, KEEPS_PROCESS },
	[T_OVERHEAD] = { "overhead", T_PROCESS, KEEPS_PROCESS },
	[T_GPU] = { "GPU %u", T_PROCESS, KEEPS_PROCESS },
	[T_STREAM] = { "stream %u", T_GPU, KEEPS_A },
	[T_WAITS] = { "waits for stream %u", T_GPU, KEEPS_A },
	[T_MEMORY] = { "memory", T_GPU, KEEPS_A },
	[T_MANAGED] = { "managed memory", T_GPU, KEEPS_A },
	[T_IN_USE] = { "memory in use", T_GPU, KEEPS_A },
	[T_MACHINE] = { "GPU %u (machine)", T_NONE, 0 },
	[T_METRIC] = { NULL, T_MACHINE, KEEPS_A },
	[T_EVENTS] = { "events", T_MACHINE, KEEPS_A },
	[T_LOST] = { "lost", T_NONE, 0 },
};

static uint64_t uuid_of(const struct timeline_key *k, int lane)
{
	const uint64_t parts[] = { (uint64_t)perfetto_track_kind(k) << 32 | k->pid, k->start,
				   (uint64_t)k->a << 32 | k->b, (uint64_t)lane };
	uint64_t h = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		h = (h ^ parts[i]) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return h | 1; /* 0 is no track */
}

struct timeline_key perfetto_track_key(enum track_kind kind, const struct process *proc, uint32_t a, uint32_t b)
{
	return (struct timeline_key){ .kind = (uint32_t)kind | (kind == T_THREAD ? TIMELINE_EARLY : 0),
				      .pid = proc ? proc->pid : 0,
				      .start = proc ? proc->start_boottime_ns : 0,
				      .a = a,
				      .b = b };
}

static struct timeline_key parent_key(const struct timeline_key *k)
{
	const struct track_row *row = &kinds[perfetto_track_kind(k)];
	struct timeline_key parent = { .kind = row->parent | (row->parent == T_THREAD ? TIMELINE_EARLY : 0) };

	if (row->keeps != KEEPS_NOTHING) {
		parent.pid = k->pid;
		parent.start = k->start;
	}
	if (row->keeps == KEEPS_A)
		parent.a = k->a;
	return parent;
}

static const char *track_name(const struct perfetto *pf, const struct timeline_key *k, char *buf, size_t size)
{
	const struct track_row *row = &kinds[perfetto_track_kind(k)];
	uint32_t number = row->keeps == KEEPS_A ? k->b : k->a;
	const struct work_metric *m;
	char text[16] = "?";

	if (perfetto_track_kind(k) == T_METRIC) {
		m = work_metrics_find(pf->metrics, k->b);
		snprintf(buf, size, "%s", m ? m->name : "metric");
		return buf;
	}
	if (perfetto_track_kind(k) == T_WAITS && number == CT_UNKNOWN)
		return "waits for the context";
	if (!row->name || !strchr(row->name, '%'))
		return row->name;
	if (number != CT_UNKNOWN)
		snprintf(text, sizeof(text), "%u", number);
	snprintf(buf, size, "%.*s%s%s", (int)(strchr(row->name, '%') - row->name), row->name, text,
		 strchr(row->name, '%') + 2);
	return buf;
}

/* Outside the initial pid namespace the leader's thread id is known, others' are not translated. */
static uint32_t shown_tid(const struct process *proc, uint32_t tid)
{
	return tid == proc->pid ? proc->shown_pid : tid;
}

/* What else is known of a process: its host in merged recordings, its rank, its arguments. */
static const char *about(const struct process_info *i, char *buf, size_t size)
{
	size_t n;

	if (!i)
		return NULL;
	n = (size_t)snprintf(buf, size, "%.64s%s", i->host, *i->host ? ": " : "");
	if (i->rank != CT_UNKNOWN)
		n += (size_t)snprintf(buf + n, size - n, "rank %u: ", i->rank);
	for (size_t k = 0; k < i->cmdline_len && n < size - 1; k++)
		buf[n++] = i->cmdline[k] ? i->cmdline[k] : ' ';
	buf[n] = '\0';
	return n ? buf : NULL;
}

/* Tells of a track, once; of a process again when it has a new name. */
int perfetto_track_tell(struct perfetto *pf, struct timeline_track *tr, const char *description)
{
	enum track_kind kind = perfetto_track_kind(&tr->key);
	const struct process *proc = pf->proc;
	const struct work_metric *m = NULL;
	struct perfetto_track t = { 0 };
	char name[128], text[256], comm[CT_COMM_LEN + 1] = "";

	if (tr->introduced && !description)
		return 0;
	tr->introduced = true;
	tr->own = uuid_of(&tr->key, 0);
	if (kinds[kind].parent != T_NONE) {
		struct timeline_key key = parent_key(&tr->key);
		struct timeline_track *parent = timeline_track(pf->timeline, &key);
		int err = parent ? perfetto_track_tell(pf, parent, NULL) : -ENOMEM;

		if (err)
			return err;
		t.parent = uuid_of(&key, 0);
	}
	t.uuid = tr->own;
	t.name = track_name(pf, &tr->key, name, sizeof(name));
	t.description = description;
	t.pid = proc->shown_pid;
	memcpy(comm, proc->comm, strnlen(proc->comm, CT_COMM_LEN));
	if (kind == T_PROCESS) {
		t.process = comm;
		t.description = about(proc->info, text, sizeof(text));
		memcpy(tr->name, comm, sizeof(comm));
	} else if (kind == T_THREAD) {
		t.tid = shown_tid(proc, tr->key.a);
		t.thread = t.tid == t.pid ? comm : "";
	} else if (kind == T_IN_USE) {
		t.counter = true;
		t.unit = PERFETTO_UNIT_BYTES;
	} else if (kind == T_METRIC) {
		m = work_metrics_find(pf->metrics, tr->key.b);
		t.counter = true;
		t.unit_name = m ? m->unit : NULL;
	}
	perfetto_write_track(&pf->w, &t);
	return 0;
}

/* The track, known to the reader of the trace. NULL: no memory. */
struct timeline_track *perfetto_track(struct perfetto *pf, enum track_kind kind, const struct process *proc, uint32_t a,
				      uint32_t b)
{
	struct timeline_key key = perfetto_track_key(kind, proc, a, b);
	struct timeline_track *tr = timeline_track(pf->timeline, &key);

	if (!tr || tr->introduced)
		return tr;
	if (perfetto_track_tell(pf, tr, NULL))
		return NULL;
	return timeline_track(pf->timeline, &key);
}

/* Lanes beside the first are tracks of the same name: the viewer puts them together. */
uint64_t perfetto_track_lane(struct perfetto *pf, struct timeline_track *tr, struct timeline_lane *l, int lane)
{
	struct perfetto_track t = { 0 };
	struct timeline_key parent;
	char name[128];

	if (l->own || !lane)
		return l->own ? l->own : (l->own = tr->own);
	l->own = t.uuid = uuid_of(&tr->key, lane);
	if (perfetto_track_kind(&tr->key) == T_THREAD) {
		t.parent = tr->own;
		t.name = "calls beside";
	} else {
		parent = parent_key(&tr->key);
		t.parent = parent.kind ? uuid_of(&parent, 0) : 0;
		t.name = track_name(pf, &tr->key, name, sizeof(name));
	}
	perfetto_write_track(&pf->w, &t);
	return l->own;
}
