/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perfetto_track.c - the tracks of a Perfetto trace: what they are called, where they stand,
 * what tells them apart. See perfetto.h. Knows no event.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../event/gpus.h"
#include "perfetto.h"

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

struct timeline_key perfetto_track_key(enum slice_track kind, const struct process *proc,
				       uint32_t a, uint32_t b)
{
	return (struct timeline_key){ .kind = (uint32_t)kind |
					      (kind == SLICE_THREAD ? TIMELINE_EARLY : 0),
				      .pid = proc ? proc->pid : 0,
				      .start = proc ? proc->start_boottime_ns : 0,
				      .a = a,
				      .b = b };
}

static struct timeline_key parent_key(const struct timeline_key *k)
{
	const struct slice_track_row *row = &slice_tracks[perfetto_track_kind(k)];
	struct timeline_key parent = { .kind = row->parent |
					       (row->parent == SLICE_THREAD ? TIMELINE_EARLY : 0) };

	if (row->keeps != KEEPS_NOTHING) {
		parent.pid = k->pid;
		parent.start = k->start;
	}
	if (row->keeps == KEEPS_A)
		parent.a = k->a;
	return parent;
}

/* The number of a GPU in the trace, which its processes and the machine may call by others. */
static uint32_t gpu_number(const struct perfetto *pf, const struct timeline_key *k)
{
	const struct gpu *g = perfetto_track_kind(k) == SLICE_MACHINE
				      ? gpu_table_machine(pf->gpus, k->a)
				      : gpu_table_find(pf->gpus, pf->proc, k->a);

	return g ? g->number : k->a;
}

static const char *track_name(const struct perfetto *pf, const struct timeline_key *k, char *buf,
			      size_t size)
{
	const struct slice_track_row *row = &slice_tracks[perfetto_track_kind(k)];
	uint32_t number = row->keeps == KEEPS_A ? k->b : k->a;
	const struct work_metric *m;
	char text[16] = "?";

	if (perfetto_track_kind(k) == SLICE_METRIC) {
		m = work_metrics_find(pf->metrics, k->b);
		snprintf(buf, size, "%s", m ? m->name : "metric");
		return buf;
	}
	if (perfetto_track_kind(k) == SLICE_WAITS && number == CT_UNKNOWN)
		return "waits for the context";
	if (!row->perfetto || !strchr(row->perfetto, '%'))
		return row->perfetto;
	if (perfetto_track_kind(k) == SLICE_GPU || perfetto_track_kind(k) == SLICE_MACHINE)
		number = gpu_number(pf, k);
	if (number != CT_UNKNOWN)
		snprintf(text, sizeof(text), "%u", number);
	snprintf(buf, size, "%.*s%s%s", (int)(strchr(row->perfetto, '%') - row->perfetto),
		 row->perfetto, text, strchr(row->perfetto, '%') + 2);
	return buf;
}

/* Writes what else is known of a process: its host in merged recordings, its pid if that is not
 * the track's, its rank, its arguments. */
static const char *about(const struct process *p, char *buf, size_t size)
{
	const struct process_info *i = p->info;
	size_t n = 0;

	*buf = '\0';
	if (i)
		n = (size_t)snprintf(buf, size, "%.64s%s", i->host, *i->host ? ": " : "");
	if (process_unique(p) != p->shown_pid)
		n += (size_t)snprintf(buf + n, size - n, "pid %u: ", p->shown_pid);
	if (!i)
		return n ? buf : NULL;
	if (i->rank != CT_UNKNOWN)
		n += (size_t)snprintf(buf + n, size - n, "rank %u: ", i->rank);
	for (size_t k = 0; k < i->cmdline_len && n < size - 1; k++)
		buf[n++] = i->cmdline[k] ? i->cmdline[k] : ' ';
	buf[n] = '\0';
	return n ? buf : NULL;
}

/* The name of the thread that a track is of, which is that of the current event. */
static const char *thread_name(const struct perfetto *pf, const struct timeline_track *tr)
{
	return tr->key.a == pf->proc->pid ? pf->proc->comm : pf->thread ? pf->thread : "";
}

/* Describes a track once; a process or a thread is described again when it has a new name. */
int perfetto_track_tell(struct perfetto *pf, struct timeline_track *tr, const char *description)
{
	enum slice_track kind = perfetto_track_kind(&tr->key);
	const struct process *proc = pf->proc;
	const struct work_metric *m = NULL;
	struct perfetto_track t = { 0 };
	char name[128], text[256], comm[CT_COMM_LEN + 1] = "";

	if (tr->introduced && !description)
		return 0;
	tr->introduced = true;
	tr->own = uuid_of(&tr->key, 0);
	if (slice_tracks[kind].parent != SLICE_NOWHERE) {
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
	t.pid = process_unique(proc);
	memcpy(comm, proc->comm, strnlen(proc->comm, CT_COMM_LEN));
	if (kind == SLICE_PROCESS) {
		t.process = comm;
		t.description = about(proc, text, sizeof(text));
		memcpy(tr->name, comm, sizeof(comm));
	} else if (kind == SLICE_THREAD) {
		/* the main thread is the one with the process's number */
		t.tid = tr->key.a == proc->pid ? t.pid : process_tid(proc, tr->key.a);
		snprintf(tr->name, sizeof(tr->name), "%.*s", CT_COMM_LEN, thread_name(pf, tr));
		t.thread = tr->name;
	} else if (kind == SLICE_IN_USE) {
		t.counter = true;
		t.unit = PERFETTO_UNIT_BYTES;
	} else if (kind == SLICE_METRIC) {
		m = work_metrics_find(pf->metrics, tr->key.b);
		t.counter = true;
		t.unit_name = m ? m->unit : NULL;
	}
	perfetto_write_track(&pf->w, &t);
	return 0;
}

/* Returns the track, after it was described to the reader of the trace. NULL: no memory. */
struct timeline_track *perfetto_track(struct perfetto *pf, enum slice_track kind,
				      const struct process *proc, uint32_t a, uint32_t b)
{
	struct timeline_key key = perfetto_track_key(kind, proc, a, b);
	struct timeline_track *tr = timeline_track(pf->timeline, &key);

	if (tr && kind == SLICE_THREAD && tr->introduced &&
	    strncmp(tr->name, thread_name(pf, tr), CT_COMM_LEN))
		tr->introduced = false;
	if (!tr || tr->introduced)
		return tr;
	if (perfetto_track_tell(pf, tr, NULL))
		return NULL;
	return timeline_track(pf->timeline, &key);
}

/* Lanes beside the first are tracks of the same name: the viewer puts them together. */
uint64_t perfetto_track_lane(struct perfetto *pf, struct timeline_track *tr,
			     struct timeline_lane *l, int lane)
{
	struct perfetto_track t = { 0 };
	struct timeline_key parent;
	char name[128];

	if (l->own || !lane)
		return l->own ? l->own : (l->own = tr->own);
	l->own = t.uuid = uuid_of(&tr->key, lane);
	if (perfetto_track_kind(&tr->key) == SLICE_THREAD) {
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
