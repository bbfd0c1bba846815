/* SPDX-License-Identifier: BSD-2-Clause */
/* model.c - see model.h: what is kept, and how it is learnt. Rows are made in rows.c. */
#include <errno.h>
#include <stdio.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../api/traits.h"
#include "../event/device.h"
#include "../event/muted.h"
#include "../util/hash.h"
#include "../util/text.h"
#include "../sums/report.h"
#include "state.h"

#define ENTRIES_MAX 262144
#define PROCS_MAX 65536
#define GPUS_MAX 64
#define MEMORY_MAX (1ULL << 50) /* bytes */
#define NAME_MAX_BYTES 512	/* of a kernel's name */

struct top_model *model_open(uint64_t now_ns, size_t max)
{
	struct top_model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->state = calloc(1, sizeof(*m->state));
	m->gpus = calloc(GPUS_MAX, sizeof(*m->gpus));
	if (!m->state || !m->gpus) {
		model_close(m);
		return NULL;
	}
	hash_map_open_of(&m->state->procs, struct top_kept, key, PROCS_MAX);
	hash_map_open_of(&m->state->entries, struct top_entry, key, max ? max : ENTRIES_MAX);
	m->state->last_end_ns = now_ns;
	return m;
}

void model_close(struct top_model *m)
{
	struct top_state *s;

	if (!m)
		return;
	s = m->state;
	for (size_t i = 0; s && i < s->entries.n; i++)
		free(top_entry_at(s, i)->name);
	for (size_t i = 0; s && i < s->procs.n; i++)
		free(top_proc_at(s, i));
	if (s) {
		hash_map_close(&s->entries);
		hash_map_close(&s->procs);
	}
	free(s);
	free(m->gpus);
	free(m);
}

/* ---- finding ---- */

static struct top_proc *proc_find(const struct top_state *s, uint32_t pid, uint32_t start)
{
	const struct top_kept want = { .key = { pid, start } };
	const struct top_kept *k = hash_map_look(&s->procs, &want.key);

	return k ? k->proc : NULL;
}

/* Returns the process, and makes it if it is new. NULL: there is no room. */
static struct top_proc *proc_get(struct top_state *s, uint32_t pid, uint32_t start)
{
	const struct top_kept want = { .key = { pid, start } };
	struct top_proc *p = s->last;
	struct top_kept *k;

	if (p && p->pid == pid && p->start == start)
		return p;
	p = s->last = proc_find(s, pid, start);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	k = p ? hash_map_get(&s->procs, &want.key, &(bool){ false }) : NULL;
	if (!k) {
		free(p);
		return NULL;
	}
	*p = (struct top_proc){ .pid = pid, .start = start, .shown_pid = pid };
	return k->proc = p;
}

static struct top_entry *entry_get(struct top_state *s, const struct top_entry *want)
{
	struct top_entry *e = s->next < s->entries.n ? top_entry_at(s, s->next) : NULL;

	if (!e || memcmp(&e->key, &want->key, sizeof(e->key)))
		e = hash_map_look(&s->entries, &want->key);
	if (!e)
		return hash_map_get(&s->entries, &want->key, &(bool){ false });
	s->next = (size_t)(e - top_entry_at(s, 0)) + 1;
	return e;
}

/* ---- learning ---- */

void top_sums_add(struct top_sums *a, const struct top_sums *b)
{
	a->calls += b->calls;
	a->failed += b->failed;
	a->launches += b->launches;
	a->api_ns += b->api_ns;
	a->sync_ns += b->sync_ns;
	a->htod += b->htod;
	a->dtoh += b->dtoh;
	a->gpu_ns += b->gpu_ns;
	a->busy_ns += b->busy_ns;
	a->estimated += b->estimated;
	a->error += b->error;
}

static void add_all(struct top_model *m, struct top_proc *p, struct top_entry *e,
		    const struct top_sums *d)
{
	m->state->dirty = true;
	top_sums_add(&m->state->adding, d);
	top_sums_add(&p->adding, d);
	if (e)
		top_sums_add(&e->adding, d);
}

/* Text of n bytes at most, as a terminal may have it, cut to what buf holds. */
static void safe(char *buf, size_t size, const char *from, size_t max)
{
	struct text t = { 0 };
	size_t n;

	text_plain(&t, from, max);
	n = t.len < size ? t.len : text_cut(t.s, size - 1);
	if (n)
		memcpy(buf, t.s, n);
	buf[n] = '\0';
	text_free(&t);
}

/* Writes the name of the user from /etc/passwd, or the number. */
static void name_user(struct top_proc *p, uint32_t uid)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	snprintf(p->user, sizeof(p->user), "%u", uid);
	while (f && (pw = fgetpwent(f))) {
		if (pw->pw_uid != uid)
			continue;
		safe(p->user, sizeof(p->user), pw->pw_name, strlen(pw->pw_name));
		break;
	}
	if (f)
		fclose(f);
}

/* The command line, with blanks between the arguments; who runs it, and where. */
static void describe_proc(struct top_proc *p, const struct process *of)
{
	const struct process_info *info = of->info;
	char line[sizeof(p->command)];
	size_t n = info ? info->cmdline_len : 0;

	if (!*p->user && of->heard)
		name_user(p, of->uid);
	if (*p->command || !n)
		return;
	n = n < sizeof(line) ? n : sizeof(line) - 1;
	for (size_t i = 0; i < n; i++)
		line[i] = info->cmdline[i] ? info->cmdline[i] : ' ';
	while (n && line[n - 1] == ' ')
		n--;
	safe(p->command, sizeof(p->command), line, n);
	safe(p->container, 13, info->container, strlen(info->container));
}

/* A process may have executed another program; a new process with its pid changes nothing here. */
static void name_proc(struct top_proc *p, const struct process *of)
{
	bool same = (uint32_t)(of->start_boottime_ns >> 10) == p->start;

	if (same)
		describe_proc(p, of);
	if (*p->label && (!same || !strncmp(p->comm, of->comm, sizeof(p->comm))))
		return;
	if (same)
		p->shown_pid = of->shown_pid;
	if (*p->label) {
		p->command[0] = '\0';
		describe_proc(p, of);
	}
	memcpy(p->comm, of->comm, sizeof(p->comm));
	safe(p->label, sizeof(p->label), of->comm, sizeof(of->comm));
	if (!*p->label)
		memcpy(p->label, "?", 2);
}

static char *kernel_label(const struct event *ev, uint64_t handle)
{
	char buf[NAME_MAX_BYTES + 1];

	if (ev->kernel)
		safe(buf, sizeof(buf), ev->kernel->brief, NAME_MAX_BYTES);
	else
		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)handle);
	return strdup(buf);
}

/* What this reading has more than the last one. If it is less: the kernel side began anew. */
static struct ct_sums since_last(const struct ct_sums *now, const struct ct_sums *last)
{
	struct ct_sums d = *now;

	if (now->calls < last->calls || now->ns < last->ns)
		return d;
	d.calls -= last->calls;
	d.failed -= last->failed < now->failed ? last->failed : now->failed;
	d.ns -= last->ns;
	d.bytes -= last->bytes < now->bytes ? last->bytes : now->bytes;
	return d;
}

/* Device work, from the counts: what came since the last reading. */
static void count_memory(struct top_proc *p, uint16_t func, const struct ct_sums *last,
			 const struct ct_sums *now)
{
	struct book_memory was = { 0 }, is = { 0 };

	book_memory_add(&is, func, now);
	if (now->calls >= last->calls && now->bytes >= last->bytes)
		book_memory_add(&was, func, last);
	p->memory += is.device_bytes - was.device_bytes;
	p->has_memory |= is.device_bytes != 0;
}

static int call_count(struct top_model *m, const struct event *ev)
{
	const struct ct_call_count *t = (const struct ct_call_count *)ev->rec;
	const struct api_func *f = &api_funcs[t->func];
	struct top_state *s = m->state;
	struct top_proc *p = proc_get(s, t->h.pid, t->start);
	const struct top_entry want = {
		.key = { .proc = p, .by = t->by, .func = t->func, .sub = t->sub, .how = t->how }
	};
	struct top_entry *e;
	enum report_way way = report_way_of_call(t->func, t->sub);
	struct top_sums d = { 0 };
	struct ct_sums n, all;

	if (t->how == CT_BY_SIZE)
		return 0;
	s->call_counts++;
	if (p)
		name_proc(p, ev->proc);
	e = p ? entry_get(s, &want) : NULL;
	if (!e) {
		s->no_room += t->sums.calls;
		return 1;
	}
	/* its name may come later than its first call */
	if (t->how == CT_BY_KERNEL && t->by &&
	    (!e->name || (ev->kernel && !strncmp(e->name, "0x", 2)))) {
		free(e->name);
		e->name = kernel_label(ev, t->by);
		if (!e->name)
			return -ENOMEM;
	}
	e->estimated |= muted_unseen(&t->unseen) || muted_error(&t->unseen);
	all = muted_call_count(t, e->estimated ? &e->last : NULL);
	if (m->count_memory && !p->reported_memory)
		count_memory(p, t->func, &e->last, &all);
	n = since_last(&all, &e->last);
	d.error = muted_error(&t->unseen) -
		  e->error; /* the sum may become smaller: unsigned numbers wrap */
	e->error = muted_error(&t->unseen);
	if (e->estimated && n.calls > t->sums.calls - e->counted)
		d.estimated = n.calls - (t->sums.calls - e->counted);
	e->counted = t->sums.calls;
	e->last = all;
	p->round = s->round;
	if (p->going && !(t->h.flags & CT_F_LAST))
		p->going = p->ended = false; /* the process was only missed in one reading */
	p->ended |= t->h.flags & CT_F_LAST;
	d.calls = n.calls;
	d.failed = n.failed;
	d.api_ns = n.ns;
	d.launches = api_traits(t->func) & (TR_LAUNCH | TR_GRAPH) ? n.calls : 0;
	d.sync_ns = f->class == API_SYNC ? n.ns : 0;
	d.htod = way == REPORT_HTOD ? n.bytes : 0;
	d.dtoh = way == REPORT_DTOH ? n.bytes : 0;
	if (d.calls || d.api_ns || d.error)
		add_all(m, p, e, &d);
	return 1;
}

static struct top_proc *proc_of(struct top_model *m, const struct event *ev)
{
	struct top_proc *p =
		proc_get(m->state, ev->rec->pid, (uint32_t)(ev->proc->start_boottime_ns >> 10));

	if (p)
		name_proc(p, ev->proc);
	return p;
}

static int device_work(struct top_model *m, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	struct top_proc *p = proc_of(m, ev);
	struct top_entry want = { .key = { .proc = p, .func = CT_NO_FUNC, .how = TOP_DEVICE } },
			 *e = NULL;
	struct top_sums d = { 0 };

	if (!p)
		return 0;
	m->device = true;
	if (!(w->h.flags & CT_F_NO_TIME) && w->h.end_ns > w->h.start_ns) {
		uint64_t from = w->h.start_ns > p->busy_until_ns ? w->h.start_ns : p->busy_until_ns;

		d.gpu_ns = w->h.end_ns - w->h.start_ns;
		if (w->h.end_ns > from) {
			d.busy_ns = w->h.end_ns - from;
			p->busy_until_ns = w->h.end_ns;
		}
	}
	if (w->h.kind == CT_KERNEL && ev->kernel) {
		want.key.by = hash_bytes(ev->kernel->full, strlen(ev->kernel->full));
		e = entry_get(m->state, &want);
		if (e && !e->name) {
			e->name = kernel_label(ev, 0);
			if (!e->name)
				return -ENOMEM;
		}
	}
	add_all(m, p, e, &d);
	return 1;
}

/* Memory that was allocated before the trace began is not known: when it is freed, the sum may
 * fall below zero. */
static int model_memory(struct top_model *m, const struct event *ev)
{
	const struct ct_memory *r = (const struct ct_memory *)ev->rec;
	struct top_proc *p = proc_of(m, ev);

	if (!p || (r->memory != CT_MEM_DEVICE && r->memory != CT_MEM_MANAGED &&
		   r->memory != CT_MEM_ARRAY))
		return 0;
	if (r->bytes > MEMORY_MAX || p->memory > (int64_t)MEMORY_MAX ||
	    p->memory < -(int64_t)MEMORY_MAX)
		return 0; /* no machine has so much memory */
	if (!p->reported_memory)
		p->memory = 0;
	p->has_memory = p->reported_memory = true;
	if (r->op == CT_MEMORY_ALLOC)
		p->memory += (int64_t)r->bytes;
	else if (r->op == CT_MEMORY_FREE)
		p->memory -= (int64_t)r->bytes;
	return 1;
}

/* The memory of the previous program is freed without a call. */
static void new_program(struct top_model *m, const struct event *ev)
{
	struct top_proc *p =
		proc_find(m->state, ev->rec->pid, (uint32_t)(ev->proc->start_boottime_ns >> 10));

	if (p && !p->reported_memory)
		p->memory = 0;
}

static void process_exit(struct top_model *m, const struct event *ev)
{
	struct top_proc *p =
		proc_find(m->state, ev->rec->pid, (uint32_t)(ev->proc->start_boottime_ns >> 10));

	/* its last counts come with CT_F_LAST */
	if (p && !p->round)
		p->ended = true;
}

/* ---- devices ---- */

static struct top_gpu *gpu_of(struct top_model *m, uint32_t index)
{
	unsigned int at = 0;

	while (at < m->ngpus && m->gpus[at].index < index)
		at++;
	if (at < m->ngpus && m->gpus[at].index == index)
		return &m->gpus[at];
	if (m->ngpus == GPUS_MAX || index == CT_UNKNOWN)
		return NULL;
	memmove(&m->gpus[at + 1], &m->gpus[at], (m->ngpus++ - at) * sizeof(*m->gpus));
	m->gpus[at] = (struct top_gpu){ .index = index, .util = -1, .memory = -1, .power = -1 };
	return &m->gpus[at];
}

static int gpu(struct top_model *m, const struct ct_device *d)
{
	struct top_gpu *g = d->h.pid ? NULL : gpu_of(m, d->id);
	char name[128];

	if (!g)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(d->name_len < 127 ? d->name_len : 127), d->name);
	safe(g->name, sizeof(g->name), name, sizeof(name));
	g->memory_bytes = d->memory_bytes;
	return 1;
}

static int counters(struct top_model *m, const struct event *ev)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;
	struct top_gpu *g = c->h.pid ? NULL : gpu_of(m, c->device);

	if (!g)
		return 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct metric *what = metric_table_find(ev->metrics, c->values[i].metric);
		double value;

		memcpy(&value, &c->values[i].bits, sizeof(value));
		if (!what || !(value >= 0 && value < 1e18))
			continue;
		if (!strcmp(what->name, "gpu")) {
			g->util = value;
			g->suspect = c->values[i].flags & CT_VALUE_SUSPECT;
		} else if (!strcmp(what->name, "mem_used")) {
			g->memory = value;
		} else if (!strcmp(what->name, "power")) {
			g->power = value;
		}
	}
	return 1;
}

int model_event(struct top_model *m, const struct event *ev)
{
	switch (ev->rec->kind) {
	case CT_CALL_COUNT: return call_count(m, ev);
	case CT_KERNEL:
	case CT_COPY:
	case CT_SET: return device_work(m, ev);
	case CT_MEMORY: return model_memory(m, ev);
	case CT_EXEC: new_program(m, ev); return 0;
	case CT_EXIT: process_exit(m, ev); return 0;
	case CT_DEVICE: return gpu(m, (const struct ct_device *)ev->rec);
	case CT_COUNTER: return counters(m, ev);
	default: return 0;
	}
}

/* ---- a refresh ---- */

void model_begin(struct top_model *m)
{
	m->state->round++;
	m->state->next = 0;
	m->state->call_counts = 0;
	m->state->no_room = 0;
}

/* Forgets ended processes that were shown, with all that they had. */
static void model_forget(struct top_state *s)
{
	struct top_entry *e;
	struct top_kept *k;

	hash_map_each(&s->entries, e)
	{
		if (!e->key.proc->going)
			continue;
		free(e->name);
		hash_map_remove(&s->entries, e);
	}
	hash_map_each(&s->procs, k)
	{
		if (!k->proc->going)
			continue;
		free(k->proc);
		hash_map_remove(&s->procs, k);
	}
	s->last = NULL;
}

static void model_settle(struct top_sums *adding, struct top_sums *period, struct top_sums *total)
{
	*period = *adding;
	top_sums_add(total, adding);
	memset(adding, 0, sizeof(*adding));
}

void model_end(struct top_model *m, uint64_t now_ns)
{
	struct top_state *s = m->state;
	bool any = false;

	for (size_t i = 0; i < s->procs.n; i++)
		any |= top_proc_at(s, i)->going;
	if (any)
		model_forget(s);
	for (size_t i = 0; i < s->procs.n; i++) {
		struct top_proc *p = top_proc_at(s, i);

		model_settle(&p->adding, &p->period, &p->total);
		/* the reading had counts, but none of this one */
		if (p->round && s->call_counts && p->round != s->round)
			p->ended = true;
		p->going = p->ended;
	}
	for (size_t i = 0; i < s->entries.n; i++) {
		struct top_entry *e = top_entry_at(s, i);

		model_settle(&e->adding, &e->period, &e->total);
	}
	model_settle(&s->adding, &m->period, &m->total);
	m->nprocs = (unsigned int)s->procs.n;
	m->no_room = s->no_room;
	m->interval_ns = now_ns > s->last_end_ns ? now_ns - s->last_end_ns : 1;
	s->last_end_ns = now_ns;
	s->dirty = false;
}

bool model_pending(const struct top_model *m)
{
	return m->state->dirty;
}

uint64_t model_since(const struct top_model *m, uint64_t now_ns)
{
	return now_ns > m->state->last_end_ns ? now_ns - m->state->last_end_ns : 0;
}

double model_rate(const struct top_model *m, uint64_t value)
{
	return m->interval_ns ? (double)value * 1e9 / (double)m->interval_ns : 0;
}

double model_percent(const struct top_model *m, uint64_t ns)
{
	return m->interval_ns ? (double)ns * 100 / (double)m->interval_ns : 0;
}
