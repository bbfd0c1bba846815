/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chrome.c - Chrome's trace format with the conventions of Kineto, PyTorch's profiler, which
 * TensorBoard, Holistic Trace Analysis and many scripts read. Device work has the device as its pid
 * and the stream as its tid.
 *
 * The format asks for no order, so calls are written as they come. Device work passes through the
 * timeline, since slices of one tid must be nested: a slice that overlaps another goes to another
 * tid, and args.stream keeps the stream. An arrow is written with its device work, when both ends
 * of the arrow are known. We choose the order of the file's members: devices come last, because
 * they are reported during the trace.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/msg.h"
#include "../../flow/about.h"
#include "chrome.h"
#include "../../render/json_fields.h"

#define STEPS_WORK 1048576 /* pieces of device work in which steps are looked for */

static void sort_index(struct chrome *c, struct chrome_file *f, uint32_t pid, uint32_t index)
{
	chrome_event_begin(c, f, 'M', pid, 0, c->opts->start_ns);
	c->row.p = put_lit(c->row.p, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":");
	c->row.p = put_u64(c->row.p, index);
	*c->row.p++ = '}';
	chrome_event_end(c);
}

static struct timeline_track *track_of(struct chrome *c, enum slice_track kind,
				       const struct process *p, uint32_t a, uint32_t b)
{
	const struct timeline_key key = {
		.kind = kind, .pid = p->pid, .start = p->start_boottime_ns, .a = a, .b = b
	};

	return timeline_track(c->timeline, &key);
}

/* The process, which is written to the file when it is new or has a new name. Its `own` is its
 * number in the file, from 1. */
static struct timeline_track *chrome_process_of(struct chrome *c, struct chrome_file *f,
						const struct process *p)
{
	struct timeline_track *tr = track_of(c, SLICE_PROCESS, p, 0, 0);
	struct text who = { 0 };
	char label[160] = "CPU";
	bool made;

	if (!tr)
		return NULL;
	if (!tr->own) {
		tr->own = ++f->processes;
		hash_map_get(&f->leaders,
			     &(struct chrome_tid){ chrome_pid(p), process_tid(p, p->pid) }, &made);
	}
	if (!tr->introduced || strncmp(tr->name, p->comm, CT_COMM_LEN)) {
		memset(tr->name, 0, sizeof(tr->name));
		memcpy(tr->name, p->comm, strnlen(p->comm, CT_COMM_LEN));
		/* if the pid does not identify the process */
		about_whom(&who, p);
		if (who.len && !who.bad)
			snprintf(label, sizeof(label), "CPU, %u%.*s", p->shown_pid,
				 (int)(who.len < 120 ? who.len : 120), who.s);
		text_free(&who);
		if (!tr->introduced)
			chrome_meta(c, f, chrome_pid(p), 0, "process_labels", "labels", label);
		chrome_meta(c, f, chrome_pid(p), 0, "process_name", "name", tr->name);
		tr->introduced = true;
	}
	return tr;
}

/* Each process numbers its calls from 1. In a file of several processes the process's number in
 * the bits above 32 keeps them distinct. */
static uint64_t correlation_of(const struct timeline_track *process, uint32_t number)
{
	return number ? (process->own - 1) << 32 | number : 0;
}

/* A thread's id. The thread is written to the file when it is new or has a new name. */
static uint32_t chrome_thread_of(struct chrome *c, struct chrome_file *f, const struct process *p,
				 uint32_t tid)
{
	struct timeline_track *tr = track_of(c, SLICE_THREAD, p, tid, 0);
	uint32_t shown = process_tid(p, tid);
	const char *thread = c->thread ? c->thread : "";
	char name[64];

	if (!tr || (tr->introduced && !strncmp(tr->name, thread, CT_COMM_LEN)))
		return shown;
	tr->introduced = true;
	snprintf(tr->name, sizeof(tr->name), "%.*s", CT_COMM_LEN, thread);
	snprintf(name, sizeof(name), *thread ? "thread %u (%s)" : "thread %u", shown, tr->name);
	chrome_meta(c, f, chrome_pid(p), shown, "thread_name", "name", name);
	return shown;
}

/* ---- device work ---- */

static bool tid_is_taken(const struct chrome_file *f, uint32_t pid, uint32_t tid)
{
	return hash_map_find(&f->tids, &(struct chrome_tid){ pid, tid });
}

/* Assigns a tid on a device: the stream's number if it is free. If there is no room to remember
 * it, a number that is not used again. */
static uint32_t take_tid(struct chrome_file *f, uint32_t pid, uint32_t stream)
{
	bool made;

	if (!tid_is_taken(f, pid, CT_UNKNOWN))
		hash_map_get(&f->tids, &(struct chrome_tid){ pid, CT_UNKNOWN }, &made);
	return hash_map_get(&f->tids, &(struct chrome_tid){ pid, stream }, &made) && made
		       ? stream
		       : f->next_tid++;
}

/* The number that stands for a device or stream that is not known. */
static uint32_t known_or_none(uint32_t id)
{
	return id == CT_UNKNOWN ? CHROME_NO_GPU : id;
}

/* The GPU that device work ran on, in the whole trace. */
static uint32_t gpu_number(const struct event *ev)
{
	return ev->gpu ? ev->gpu->number : ev->device;
}

/* The tid of a lane, which is written to the file when it is new. */
static uint32_t lane_tid(struct chrome *c, struct chrome_file *f, struct timeline_track *tr,
			 struct timeline_lane *l, int lane)
{
	uint32_t pid = known_or_none(tr->key.a), stream = known_or_none(tr->key.b), tid;
	char name[64];

	if (l->own)
		return (uint32_t)(l->own - 1);
	if (!tid_is_taken(f, pid, CT_UNKNOWN)) {
		if (pid == CHROME_NO_GPU)
			snprintf(name, sizeof(name), "GPU not known");
		else
			snprintf(name, sizeof(name), "GPU %u", pid);
		chrome_meta(c, f, pid, 0, "process_name", "name", name);
		chrome_meta(c, f, pid, 0, "process_labels", "labels", name);
		sort_index(c, f, pid, CHROME_OTHER_TID + pid);
	}
	tid = tr->key.kind == SLICE_STREAM && !lane ? take_tid(f, pid, stream)
						    : take_tid(f, pid, f->next_tid++);
	l->own = (uint64_t)tid + 1;
	if (tr->key.b == CT_UNKNOWN)
		snprintf(name, sizeof(name), "%s%s",
			 tr->key.kind == SLICE_WAITS ? "waits for the context" : "no stream",
			 lane ? " (beside)" : "");
	else
		snprintf(name, sizeof(name), "%sstream %u%s",
			 tr->key.kind == SLICE_WAITS ? "waits for " : "", stream,
			 lane ? " (beside)" : "");
	chrome_meta(c, f, pid, tid, "thread_name", "name", name);
	return tid;
}

/* What is remembered of device work in front of its body. */
struct arrow {
	uint64_t call_ns, correlation;
	uint32_t pid, tid; /* as written to the file */
};

/* True if this is the first arrow of a call, and also if there is no room to remember that. */
static bool begins_arrow(struct chrome_file *f, uint64_t correlation)
{
	uint64_t key = correlation / CHROME_BEGUN, bit = 1ULL << correlation % 64, *word;
	struct chrome_begun *page;
	bool made;

	page = hash_map_get(&f->arrows, &key, &made);
	if (!page)
		return true;
	word = &page->bits[correlation % CHROME_BEGUN / 64];
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

/* Writes an arrow from a call to a piece of its device work. All arrows of a call share their
 * begin, which readers expect only once. */
static void put_arrow(struct chrome *c, struct chrome_file *f, const struct arrow *a, uint32_t pid,
		      uint32_t tid, uint64_t ns)
{
	if (begins_arrow(f, a->correlation)) {
		chrome_event_begin(c, f, 's', a->pid, a->tid, a->call_ns);
		c->row.p = put_u64(put_lit(c->row.p, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":"),
				   a->correlation);
		chrome_event_end(c);
	}
	chrome_event_begin(c, f, 'f', pid, tid, ns);
	c->row.p = put_u64(put_lit(c->row.p,
				   ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\",\"id\":"),
			   a->correlation);
	chrome_event_end(c);
}

static int work_begins(void *ctx, struct timeline_track *tr, struct timeline_lane *l, int lane,
		       const struct timeline_span *s, const char *bytes, bool arrow)
{
	struct chrome *c = ctx;
	struct chrome_file *f = chrome_file_of(c, tr->key.pid, tr->key.start);
	struct arrow a;
	uint32_t tid;

	(void)arrow;
	if (!f)
		return 0;
	memcpy(&a, bytes, sizeof(a));
	tid = lane_tid(c, f, tr, l, lane);
	chrome_slice(c, f, known_or_none(tr->key.a), tid, s->start_ns, s->end_ns, bytes + sizeof(a),
		     s->len - sizeof(a));
	if (a.correlation)
		put_arrow(c, f, &a, known_or_none(tr->key.a), tid, s->start_ns);
	return f->out->error;
}

static int work_ends(void *ctx, struct timeline_track *tr, struct timeline_lane *l, uint64_t ns)
{
	(void)ctx, (void)tr, (void)l, (void)ns;
	return 0;
}

/* A counter's event: {"ph":"C",...,"name":"memory in use","args":{"bytes":1}} */
static int in_use(void *ctx, struct timeline_track *tr, struct timeline_lane *l,
		  const struct timeline_span *s, const char *bytes, bool late)
{
	struct chrome *c = ctx;
	struct chrome_file *f = chrome_file_of(c, tr->key.pid, tr->key.start);
	int64_t delta;

	(void)s, (void)late;
	memcpy(&delta, bytes, sizeof(delta));
	tr->sum = (int64_t)((uint64_t)tr->sum + (uint64_t)delta);
	if (!f)
		return 0;
	chrome_event_begin(c, f, 'C', tr->key.b, 0, l->last_ns);
	c->row.p = put_lit(c->row.p, ",\"name\":\"memory in use, GPU ");
	c->row.p = tr->own == CT_UNKNOWN ? put_lit(c->row.p, "?") : put_u64(c->row.p, tr->own);
	c->row.p = put_i64(put_lit(c->row.p, "\",\"args\":{\"bytes\":"), tr->sum);
	*c->row.p++ = '}';
	chrome_event_end(c);
	return f->out->error;
}

static const struct timeline_ops timeline_ops = { .begin = work_begins,
						  .end = work_ends,
						  .value = in_use };

/* ---- what comes in ---- */

/* The memory in use after a call. */
static int chrome_add_memory(struct chrome *c, const struct event *ev)
{
	struct timeline_span s = { .start_ns = ev->rec->end_ns,
				   .end_ns = ev->rec->end_ns,
				   .what = TIMELINE_VALUE,
				   .len = sizeof(int64_t) };
	struct timeline_track *tr;
	const struct gpu *gpu;
	uint32_t device;
	int64_t delta;

	if (!inuse_call(c->inuse, ev, &device, &delta))
		return 0;
	tr = track_of(c, SLICE_IN_USE, ev->proc, device, chrome_pid(ev->proc));
	if (!tr)
		return -ENOMEM;
	/* the GPU may be reported only after the first call */
	gpu = gpu_table_find(ev->gpus, ev->proc, device);
	tr->own = gpu ? gpu->number : device;
	return timeline_add(c->timeline, tr, &s, &delta);
}

static bool is_on_device(const struct slice *s)
{
	return slice_tracks[s->track].of == OF_STREAM;
}

/* The contents of the event; in front of those of device work is its arrow. False: no memory. */
static bool put_body(struct chrome *c, const struct event *ev, const struct slice *s,
		     uint64_t correlation)
{
	struct arrow a = { 0 };

	if (s->arrow == TIMELINE_TO && s->track == SLICE_STREAM)
		a = (struct arrow){ ev->cause->start_ns, correlation, chrome_pid(ev->proc),
				    process_tid(ev->proc, ev->cause->tid) };
	c->body.len = 0;
	if (is_on_device(s))
		text_mem(&c->body, &a, sizeof(a));
	row_begin_text(&c->row, &c->body);
	chrome_body(c, ev, s, correlation);
	row_end(&c->row);
	return !c->body.bad;
}

static int add_work(struct chrome *c, const struct event *ev, const struct slice *s)
{
	struct timeline_span span = { .start_ns = s->start_ns,
				      .end_ns = s->end_ns,
				      .len = (uint32_t)c->body.len };
	struct timeline_track *tr = track_of(c, s->track, ev->proc, gpu_number(ev), s->stream);

	return tr ? timeline_add(c->timeline, tr, &span, c->body.s) : -ENOMEM;
}

/* Writes a range that was started and ended by its number, perhaps in two threads. Such ranges
 * may overlap in any way. */
static void add_range(struct chrome *c, struct chrome_file *f, const struct slice *s, uint32_t pid,
		      uint32_t tid)
{
	c->ranges++;
	for (int end = 0; end < 2; end++) {
		chrome_event_begin(c, f, end ? 'e' : 'b', pid, tid, end ? s->end_ns : s->start_ns);
		c->row.p = json_next_u64(c->row.p, "id", c->ranges);
		*c->row.p++ = ',';
		row_mem(&c->row, c->body.s, c->body.len);
		chrome_event_end(c);
	}
}

/* An instant of a thread. */
static void add_instant(struct chrome *c, struct chrome_file *f, const struct slice *s,
			uint32_t pid, uint32_t tid)
{
	chrome_event_begin(c, f, 'i', pid, tid, s->start_ns);
	c->row.p = put_lit(c->row.p, ",\"s\":\"t\",");
	row_mem(&c->row, c->body.s, c->body.len);
	chrome_event_end(c);
}

/* True for a step, as PyTorch's profiler annotates it. */
static bool is_step(const struct slice *s)
{
	static const char begin[] = "ProfilerStep#";

	return slice_tracks[s->track].parent == SLICE_THREAD && !s->loose &&
	       s->name_len >= sizeof(begin) - 1 && !memcmp(s->name, begin, sizeof(begin) - 1);
}

/* Writes how often a function was called whose calls have no slices: a mark in its process, at
 * the end of the time that the numbers cover. */
static void add_muted(struct chrome *c, struct chrome_file *f, const struct event *ev,
		      const struct slice *s)
{
	struct field fields[EVENT_MAX_FIELDS];
	int n = event_fields(ev, fields, EVENT_MAX_FIELDS);

	chrome_event_begin(c, f, 'i', chrome_pid(ev->proc), CHROME_OTHER_TID, s->end_ns);
	c->row.p = put_lit(c->row.p, ",\"s\":\"p\",\"cat\":\"muted\",\"name\":");
	json_string(&c->row, s->name, s->name_len);
	row_room(&c->row, JSON_ROOM);
	c->row.p = put_u64(put_lit(c->row.p, ",\"args\":{\"duration_ns\":"),
			   about_duration_ns(ev->rec));
	*c->row.p++ = ',';
	json_fields(&c->row, fields, n);
	row_room(&c->row, 8);
	*c->row.p++ = '}';
	chrome_event_end(c);
}

/* Writes an event that lies in a process. */
static int add_slice(struct chrome *c, struct chrome_file *f, const struct event *ev)
{
	struct timeline_track *process = chrome_process_of(c, f, ev->proc);
	uint32_t pid = chrome_pid(ev->proc), tid;
	struct slice s;
	int err = 0;

	if (!process)
		return -ENOMEM;
	slice_of(&s, c->opts, ev);
	c->no_time += s.no_time;
	if (s.track == SLICE_NOWHERE || s.no_time)
		return 0;
	if (s.track == SLICE_MUTED) {
		add_muted(c, f, ev, &s);
		return 0;
	}
	if (!put_body(c, ev, &s, correlation_of(process, ev->number)))
		return -ENOMEM;
	if (is_on_device(&s)) {
		err = add_work(c, ev, &s);
		return err ? err : s.row;
	}
	f->steps = f->steps || is_step(&s);
	/* overhead belongs to the driver or to CUPTI: in a thread's row it would overlap the
	 * calls */
	tid = s.track == SLICE_OVERHEAD ? CHROME_OTHER_TID
					: chrome_thread_of(c, f, ev->proc, s.tid);
	if (s.loose)
		add_range(c, f, &s, pid, tid);
	else if (s.instant && ev->rec->kind == CT_SCOPE_END)
		add_instant(c, f, &s, pid, tid);
	else
		chrome_slice(c, f, pid, tid, s.start_ns, s.end_ns, c->body.s, c->body.len);
	if (ev->rec->kind == CT_CALL)
		err = chrome_add_memory(c, ev);
	return err ? err : s.row;
}

static void add_counter(struct chrome *c, struct chrome_file *f, const struct event *ev)
{
	const struct ct_counter *k = (const struct ct_counter *)ev->rec;

	for (uint32_t i = 0; i < k->n; i++) {
		const struct work_metric *m = work_metrics_find(c->metrics, k->values[i].metric);
		double v;

		memcpy(&v, &k->values[i].bits, sizeof(v));
		if (!m || k->values[i].flags & CT_VALUE_SUSPECT || !(v - v == 0))
			continue;
		chrome_event_begin(c, f, 'C', ev->gpu ? ev->gpu->number : k->device, 0,
				   k->h.end_ns);
		c->row.p = json_next(c->row.p, "name");
		json_string(&c->row, m->name, strlen(m->name));
		row_room(&c->row, JSON_ROOM);
		c->row.p = put_lit(c->row.p, ",\"args\":{");
		json_string(&c->row, *m->unit ? m->unit : "value", *m->unit ? strlen(m->unit) : 5);
		c->row.p = put_char(put_double(put_char(c->row.p, ':'), v, false), '}');
		chrome_event_end(c);
	}
}

/* Writes a global mark: what was lost, or what happened to a device. */
static void add_mark(struct chrome *c, struct chrome_file *f, const struct event *ev)
{
	struct field fields[EVENT_MAX_FIELDS];
	int n = event_fields(ev, fields, EVENT_MAX_FIELDS);
	struct slice s;

	slice_of(&s, c->opts, ev);
	chrome_event_begin(c, f, 'i', 0, 0, ev->rec->end_ns);
	c->row.p = json_word(put_lit(c->row.p, ",\"s\":\"g\",\"cat\":"), s.category);
	c->row.p = json_next(c->row.p, "name");
	json_string(&c->row, s.name, s.name_len);
	row_room(&c->row, JSON_ROOM);
	c->row.p = put_lit(c->row.p, ",\"args\":{");
	json_fields(&c->row, fields, n);
	row_room(&c->row, 8);
	*c->row.p++ = '}';
	chrome_event_end(c);
}

/* Writes an event that belongs to no process into every file. */
static void add_global(struct chrome *c, const struct event *ev)
{
	for (uint32_t i = 0; i < c->nfiles; i++) {
		if (ev->rec->kind == CT_COUNTER)
			add_counter(c, &c->files[i], ev);
		else
			add_mark(c, &c->files[i], ev);
	}
}

static int process_event(struct chrome *c, const struct event *ev)
{
	struct chrome_file *f = chrome_file_of(c, ev->proc->pid, ev->proc->start_boottime_ns);
	int err;

	if (!f)
		return c->error						 ? c->error
		       : kind_is(ev->rec->kind, KIND_CALL | KIND_DEVICE) ? SINK_UNWRITTEN
									 : 0;
	err = add_slice(c, f, ev);
	return err < 0 ? err : f->out->error ? f->out->error : err;
}

static int chrome_event(struct sink *s, const struct event *ev)
{
	const struct slice_row *row = slice_row(ev->rec->kind);
	struct chrome *c = s->priv;
	int err = 0;

	c->proc = ev->proc;
	c->thread = ev->thread;
	if (steps_event(c->steps, ev) < 0)
		return -ENOMEM;
	switch (ev->rec->kind) {
	case CT_COUNTER: add_global(c, ev); break;
	case CT_DEVICE: err = chrome_devices_record(c->devices, ev); break;
	case CT_METRIC: work_metrics_record(c->metrics, (const struct ct_metric *)ev->rec); break;
	case CT_EXEC:
	case CT_EXIT: inuse_forget(c->inuse, ev->rec->pid); break;
	default:
		if (!row || !row->kineto || about_is_hidden(ev->rec))
			break;
		if (slice_tracks[row->track].of <= OF_GPU)
			add_global(c, ev);
		else
			err = process_event(c, ev);
	}
	return err < 0 ? err : s->opts->out->error ? s->opts->out->error : err;
}

static int chrome_open(struct sink *s, const struct sink_opts *opts)
{
	struct chrome *c = calloc(1, sizeof(*c));

	s->opts = opts;
	s->priv = c;
	if (!c)
		return -ENOMEM;
	c->opts = opts;
	hash_map_open(&c->refused, sizeof(struct chrome_none), sizeof(struct chrome_none),
		      CHROME_REFUSED_MAX);
	c->split = opts->path && strstr(opts->path, "%p");
	c->files = calloc(CHROME_FILES_MAX, sizeof(*c->files));
	c->timeline = timeline_open(&timeline_ops, c);
	c->inuse = inuse_open();
	c->steps = steps_open(NULL, STEPS_WORK);
	c->metrics = work_metrics_open();
	c->devices = chrome_devices_open();
	if (!c->files || !c->timeline || !c->inuse || !c->steps || !c->metrics || !c->devices)
		return -ENOMEM;
	return c->split ? 0 : chrome_file_add(c, NULL);
}

static void say_left_out(const struct chrome *c)
{
	if (c->no_time)
		msg_note("chrome: %llu %s no device time and %s left out",
			 (unsigned long long)c->no_time,
			 c->no_time == 1 ? "piece of device work has"
					 : "pieces of device work have",
			 c->no_time == 1 ? "is" : "are");
	if (timeline_dropped(c->timeline))
		msg_note("chrome: %llu %s too many others and %s left out",
			 (unsigned long long)timeline_dropped(c->timeline),
			 timeline_dropped(c->timeline) == 1 ? "piece of device work overlaps"
							    : "pieces of device work overlap",
			 timeline_dropped(c->timeline) == 1 ? "is" : "are");
	if (steps_no_room(c->steps))
		msg_note("chrome: there is too much device work for finding all steps: the last "
			 "ones are not marked");
}

static int chrome_close(struct sink *s, const struct sink_end *end)
{
	struct chrome *c = s->priv;
	int err = 0, e;

	if (!c)
		return 0;
	if (c->timeline && c->files && c->devices && c->steps) {
		c->proc = NULL;
		err = timeline_flush(c->timeline);
		say_left_out(c);
		err = err ? err : steps_finish(c->steps);
		for (uint32_t i = 0; i < c->nfiles && !err; i++)
			chrome_file_steps(c, &c->files[i]);
		for (uint32_t i = 0; i < c->nfiles; i++)
			chrome_file_end(c, &c->files[i], end->reason);
	}
	for (uint32_t i = 0; i < c->nfiles; i++) {
		hash_map_close(&c->files[i].tids);
		hash_map_close(&c->files[i].leaders);
		hash_map_close(&c->files[i].arrows);
		e = c->files[i].out == &c->files[i].own ? out_close(&c->files[i].own) : 0;
		if (e)
			msg_error("writing the file of process %u failed: %s", c->files[i].pid,
				  strerror(-e));
		err = err ? err : e;
	}
	/* not one of them could be written */
	s->status = !c->nfiles && c->refused.n;
	hash_map_close(&c->refused);
	free(c->files);
	timeline_close(c->timeline);
	inuse_close(c->inuse);
	steps_close(c->steps);
	work_metrics_close(c->metrics);
	chrome_devices_close(c->devices);
	text_free(&c->body);
	free(c);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

const struct sink_ops sink_chrome = {
	.name = "chrome",
	.open = chrome_open,
	.event = chrome_event,
	.close = chrome_close,
};
