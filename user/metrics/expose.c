/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose.c - see expose.h: adds up.
 *
 * The kernel side hands in its sums for each process, function and direction again and again. The
 * increase since the last reading is added to the series of the process's present kind. So a series
 * never decreases, even if a process ends, reuses an old number, or becomes another program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event/device.h"
#include "../event/gpus.h"
#include "../event/muted.h"
#include "expose_inside.h"

#define SERIES_MAX 32768
#define ENTRIES_MAX (1u << 22)
#define KERNELS_KNOWN 8192
#define HANDLES_MAX 65536
#define LABEL_MAX 256
/* a kind of process without a living process for this long may be replaced by another kind */
#define IDLE_NS 300000000000ULL

struct shown_sums {
	struct {
		uint32_t tgid, start;
		uint16_t func;
		uint8_t sub, how;
		uint32_t pad;
		uint64_t by;
	} key;
	struct expose_sums n; /* as last read; for sizes, `calls` and `failed` hold the two sums */
	uint64_t lost_bytes;  /* bytes taken that are not remembered, or no longer */
	/* part of it was an estimate at some reading: its sums must not decrease */
	bool estimated;
	uint32_t *sizes; /* 2 * CT_SIZE_BUCKETS; NULL: none */
};

struct handle {
	struct {
		uint64_t handle;
		uint32_t tgid, pad;
	} key;
	uint32_t kernel;
};

static void find_signs(struct expose *x)
{
	bool host;

	for (unsigned int i = 0; x->opts.memory && i < (unsigned int)api_nfuncs && i < CT_MAX_FUNCS;
	     i++)
		x->signs[i] = (int8_t)api_memory_sign(i, &host);
}

struct expose *expose_open(const struct expose_opts *opts)
{
	struct expose *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->opts = *opts;
	if (!x->opts.groups)
		x->opts.groups = EXPOSE_GROUPS;
	if (x->opts.kernels > EXPOSE_KERNELS_MAX)
		x->opts.kernels = EXPOSE_KERNELS_MAX;
	hash_map_open(&x->procs, sizeof(struct expose_process),
		      sizeof(((struct expose_process *)0)->key), ENTRIES_MAX);
	hash_map_open(&x->entries, sizeof(struct shown_sums), sizeof(((struct shown_sums *)0)->key),
		      ENTRIES_MAX);
	hash_map_open(&x->series, sizeof(struct series), sizeof(((struct series *)0)->key),
		      SERIES_MAX);
	hash_map_open(&x->kernels, sizeof(struct kernel), KERNEL_NAME, KERNELS_KNOWN);
	hash_map_open(&x->handles, sizeof(struct handle), sizeof(((struct handle *)0)->key),
		      HANDLES_MAX);
	hash_map_open(&x->kernel_series, sizeof(struct kernel_series),
		      sizeof(((struct kernel_series *)0)->key), SERIES_MAX);
	expose_collectives_open(&x->collectives);
	x->groups = calloc(x->opts.groups + 1, sizeof(*x->groups));
	x->places = calloc(x->opts.kernels + 1, sizeof(*x->places));
	if (x->groups)
		expose_other(x)->process = strdup("other");
	if (!x->groups || !x->places || !expose_other(x)->process) {
		expose_close(x);
		return NULL;
	}
	find_signs(x);
	return x;
}

static void empty_group(struct group *g)
{
	free(g->process);
	free(g->container);
	free(g->pod);
	for (int i = 0; i < SIZES_OF; i++)
		free(g->sizes[i]);
	memset(g, 0, sizeof(*g));
}

void expose_close(struct expose *x)
{
	if (!x)
		return;
	for (unsigned int i = 0; x->groups && i <= x->opts.groups; i++)
		empty_group(&x->groups[i]);
	for (size_t i = 0; i < x->entries.n; i++)
		free(((struct shown_sums *)hash_map_at(&x->entries, i))->sizes);
	for (int i = 0; i < CT_MAX_FUNCS; i++)
		free(x->hist_last[i]);
	for (int i = 0; i < x->ndevices; i++)
		free(x->devices[i].model);
	hash_map_close(&x->procs);
	hash_map_close(&x->entries);
	hash_map_close(&x->series);
	hash_map_close(&x->kernels);
	hash_map_close(&x->handles);
	hash_map_close(&x->kernel_series);
	expose_collectives_close(&x->collectives);
	free(x->groups);
	free(x->places);
	free(x);
}

/* ---- kinds of processes ---- */

/* Makes the value of a label: each byte that is not printable ASCII becomes '?'. NULL: the value
 * is "", or there is no memory. */
static char *expose_value_of(const char *s)
{
	size_t n = s ? strnlen(s, LABEL_MAX) : 0;
	char *v = n ? strndup(s, n) : NULL;

	for (char *c = v; c && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return v;
}

static bool expose_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void drop_series(struct hash_map *k, uint32_t group, bool kernels)
{
	for (size_t i = k->n; i-- > 0;) {
		void *item = hash_map_at(k, i);

		if ((kernels ? ((struct kernel_series *)item)->key.group
			     : ((struct series *)item)->key.group) == group)
			hash_map_remove(k, item);
	}
}

/* Finds a free place, or the place of a kind of process that has been gone for long. NULL: there
 * is none. */
static struct group *free_group(struct expose *x)
{
	struct group *oldest = NULL;

	for (unsigned int i = 0; i < x->opts.groups; i++) {
		struct group *g = &x->groups[i];

		if (!g->process)
			return g;
		if (!g->procs && x->now_ns > g->changed_ns + IDLE_NS &&
		    (!oldest || g->changed_ns < oldest->changed_ns))
			oldest = g;
	}
	if (!oldest)
		return NULL;
	drop_series(&x->series, (uint32_t)(oldest - x->groups), false);
	drop_series(&x->kernel_series, (uint32_t)(oldest - x->groups), true);
	expose_collectives_drop(&x->collectives, (uint32_t)(oldest - x->groups));
	empty_group(oldest);
	return oldest;
}

/* Finds the kind of a process: "other" if there are too many, or if there is no memory. */
static struct group *group_of(struct expose *x, const struct process *p)
{
	const struct process_info *info = p->info;
	char *process = expose_value_of(p->comm),
	     *container = expose_value_of(info ? info->container : NULL),
	     *pod = expose_value_of(info ? info->pod : NULL);
	struct group *g;

	if (!process)
		process = strdup("?");
	for (unsigned int i = 0; process && i < x->opts.groups; i++) {
		g = &x->groups[i];
		if (expose_same(g->process, process) && expose_same(g->container, container) &&
		    expose_same(g->pod, pod))
			goto out;
	}
	g = process ? free_group(x) : NULL;
	if (!g) {
		g = expose_other(x);
		goto out;
	}
	*g = (struct group){
		.process = process, .container = container, .pod = pod, .changed_ns = x->now_ns
	};
	return g;
out:
	free(process);
	free(container);
	free(pod);
	return g;
}

/* False if the process that is meant has ended and its number now belongs to another one. */
static bool is_the_process(const struct process *p, uint32_t start)
{
	return (uint32_t)(p->start_boottime_ns >> 10) == start;
}

static struct group *group_of_proc(struct expose *x, struct expose_process *p,
				   const struct process *process)
{
	static const struct process gone = { .comm = "?" };
	struct group *g;

	if (p->group)
		return &x->groups[p->group - 1];
	g = group_of(x, is_the_process(process, p->key.start) ? process : &gone);
	g->procs++;
	p->group = (uint32_t)(g - x->groups) + 1;
	return g;
}

static void leave_group(struct expose *x, struct expose_process *p)
{
	if (!p->group)
		return;
	x->groups[p->group - 1].procs--;
	x->groups[p->group - 1].changed_ns = x->now_ns;
	p->group = 0;
}

/* A process reported its properties, or became another program: finds its kind again. */
static void expose_look_again(struct expose *x, const struct event *ev)
{
	struct expose_process want = { .key = { ev->rec->pid,
						(uint32_t)(ev->proc->start_boottime_ns >> 10) } };
	struct expose_process *p = hash_map_find(&x->procs, &want.key);

	if (!p)
		return;
	leave_group(x, p);
	/* the memory that the program before it held is freed without a call */
	if (ev->rec->kind == CT_EXEC)
		p->device_bytes = p->host_bytes = 0;
}

/* ---- kernels ---- */

/* A kernel's name and its number, + 1; 0: too many are known. */
static uint32_t kernel_named(struct expose *x, const char *name)
{
	char key[KERNEL_NAME] = "";
	struct kernel *k;
	bool made;

	for (size_t i = 0; i < KERNEL_NAME - 1 && name[i]; i++)
		key[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	k = hash_map_get(&x->kernels, key, &made);
	return k ? (uint32_t)(((char *)k - x->kernels.items) / (ptrdiff_t)x->kernels.size) + 1 : 0;
}

/* The names of a process are forgotten when it ends, but its last counters come after that, so
 * they are kept here. */
static void expose_name(struct expose *x, const struct event *ev)
{
	const struct ct_name *n = (const struct ct_name *)ev->rec;
	struct handle want = { .key = { n->handle, ev->rec->pid, 0 } }, *h;
	bool made;

	if (!x->opts.kernels || !ev->kernel)
		return;
	h = hash_map_get(&x->handles, &want.key, &made);
	if (h)
		h->kernel = kernel_named(x, ev->kernel->brief);
}

static struct kernel *kernel_of(struct expose *x, const struct event *ev)
{
	const struct ct_call_count *t = (const struct ct_call_count *)ev->rec;
	struct handle want = { .key = { t->by, ev->rec->pid, 0 } }, *h;
	uint32_t at = 0;

	if (ev->kernel) {
		at = kernel_named(x, ev->kernel->brief);
	} else {
		h = hash_map_find(&x->handles, &want.key);
		at = h && h->kernel ? h->kernel : kernel_named(x, "unknown");
	}
	return at ? hash_map_at(&x->kernels, at - 1) : NULL;
}

static void forget_handles(struct expose *x, uint32_t tgid)
{
	for (size_t i = x->handles.n; i-- > 0;) {
		struct handle *h = hash_map_at(&x->handles, i);

		if (h->key.tgid == tgid)
			hash_map_remove(&x->handles, h);
	}
}

static void take_place(struct expose *x, struct kernel *k, uint32_t place)
{
	x->places[place] =
		(uint32_t)(((char *)k - x->kernels.items) / (ptrdiff_t)x->kernels.size) + 1;
	k->place = place + 1;
}

static void free_place(struct expose *x, uint32_t place)
{
	((struct kernel *)hash_map_at(&x->kernels, x->places[place] - 1))->place = 0;
	x->places[place] = 0;
	for (size_t i = x->kernel_series.n; i-- > 0;) {
		struct kernel_series *s = hash_map_at(&x->kernel_series, i);

		if (s->key.place == place)
			hash_map_remove(&x->kernel_series, s);
	}
}

/* The kernel with the most calls among "other" replaces the named one with the fewest if it has
 * twice as many calls, so that names do not change with each reading. Calls that were counted
 * before stay in the series where they were counted. */
static void rank_kernels(struct expose *x)
{
	uint32_t least = UINT32_MAX;
	struct kernel *most = NULL;

	for (uint32_t i = 0; i < x->opts.kernels; i++) {
		if (!x->places[i])
			return;
		if (least == UINT32_MAX ||
		    ((struct kernel *)hash_map_at(&x->kernels, x->places[i] - 1))->calls <
			    ((struct kernel *)hash_map_at(&x->kernels, x->places[least] - 1))->calls)
			least = i;
	}
	for (size_t i = 0; i < x->kernels.n; i++) {
		struct kernel *k = hash_map_at(&x->kernels, i);

		if (!k->place && (!most || k->calls > most->calls))
			most = k;
	}
	if (!most || least == UINT32_MAX ||
	    most->calls / 2 <=
		    ((struct kernel *)hash_map_at(&x->kernels, x->places[least] - 1))->calls)
		return;
	free_place(x, least);
	take_place(x, most, least);
}

static void count_kernel(struct expose *x, struct group *g, const struct event *ev, uint64_t calls)
{
	struct kernel *k =
		((const struct ct_call_count *)ev->rec)->by == CT_BY_REST ? NULL : kernel_of(x, ev);
	struct kernel_series want = { 0 }, *s = NULL;
	bool made;

	for (uint32_t i = 0; k && !k->place && i < x->opts.kernels; i++)
		if (!x->places[i])
			take_place(x, k, i);
	if (k)
		k->calls += calls;
	if (k && k->place) {
		want.key.group = (uint32_t)(g - x->groups);
		want.key.place = k->place - 1;
		s = hash_map_get(&x->kernel_series, &want.key, &made);
	}
	if (s)
		s->calls += calls;
	else
		g->other_kernels += calls;
}

/* ---- sums ---- */

void expose_begin(struct expose *x, uint64_t now_ns)
{
	x->now_ns = now_ns;
	x->next = 0;
	if (x->opts.kernels)
		rank_kernels(x);
}

/* The increase of a counter. An entry that was made again begins at zero. */
static uint64_t expose_more(uint64_t *last, uint64_t now)
{
	uint64_t n = now >= *last ? now - *last : now;

	*last = now;
	return n;
}

static uint64_t expose_add_memory(struct expose *x, struct expose_process *p, struct shown_sums *e,
				  const struct expose_sums *n, const struct ct_call_count *t)
{
	bool host = false;
	int64_t bytes = (int64_t)n->bytes, *held;

	if (!x->signs[t->func])
		return 0;
	api_memory_sign(t->func, &host);
	held = host ? &p->host_bytes : &p->device_bytes;
	if (x->signs[t->func] > 0)
		bytes -= (int64_t)expose_more(&e->lost_bytes, t->sums.unheld_bytes);
	*held += x->signs[t->func] * bytes;
	/* memory for which there was no room when it was taken, or whose size is not known when
	 * it is freed */
	return expose_more(&e->n.odd, x->signs[t->func] > 0 ? t->sums.unheld : t->sums.unsized);
}

static void add_sums(struct expose *x, struct group *g, struct expose_process *p,
		     struct shown_sums *e, const struct event *ev)
{
	const struct ct_call_count *t = (const struct ct_call_count *)ev->rec;
	struct ct_sums before = { .calls = e->n.calls,
				  .failed = e->n.failed,
				  .ns = e->n.ns,
				  .bytes = e->n.bytes },
		       all;
	uint64_t error = muted_error(&t->unseen), unseen;
	struct expose_sums n;
	struct series want = { .key = { (uint16_t)(g - x->groups), t->func,
					api_way(t->func, t->sub & CT_SUB_KIND) } },
		      *s;
	bool made;

	e->estimated |= muted_unseen(&t->unseen) || error;
	x->any_estimated |= e->estimated;
	all = muted_call_count(t, e->estimated ? &before : NULL);
	unseen = all.calls - (all.calls < t->sums.calls ? all.calls : t->sums.calls);
	n = (struct expose_sums){
		.calls = expose_more(&e->n.calls, all.calls),
		.failed = expose_more(&e->n.failed, all.failed),
		.ns = expose_more(&e->n.ns, all.ns),
		.bytes = expose_more(&e->n.bytes, all.bytes),
		.estimated = unseen > e->n.estimated ? unseen - e->n.estimated : 0,
		.error = error - e->n.error, /* it may decrease: the sum wraps around */
	};
	e->n.estimated += n.estimated;
	e->n.error = error;
	n.odd = expose_add_memory(x, p, e, &n, t);
	n.impossible = expose_more(&e->n.impossible, t->sums.odd);
	x->hist_ns[api_funcs[t->func].class] += n.ns;
	if (!n.calls && !n.ns && !n.bytes && !n.error && !n.impossible)
		return;
	g->changed_ns = x->now_ns;
	s = hash_map_get(&x->series, &want.key, &made);
	if (!s) {
		x->no_room += n.calls;
		return;
	}
	s->n.calls += n.calls;
	s->n.failed += n.failed;
	s->n.ns += n.ns;
	losses_add(&s->n.bytes, n.bytes);
	s->n.odd += n.odd;
	s->n.impossible += n.impossible;
	s->n.estimated += n.estimated;
	s->n.error += n.error;
	if (x->opts.kernels && t->how == CT_BY_KERNEL && api_funcs[t->func].class == API_LAUNCH &&
	    t->by && n.calls)
		count_kernel(x, g, ev, n.calls);
}

static int add_size_row(struct group *g, int of, uint64_t sum, uint32_t *last, const uint32_t *now)
{
	struct expose_sizes *s = g->sizes[of];

	if (!s)
		s = g->sizes[of] = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->sum += sum;
	for (int i = 0; i < CT_SIZE_BUCKETS; i++) {
		s->n[i] += (uint32_t)(now[i] - last[i]); /* it may have wrapped around */
		last[i] = now[i];
	}
	return 0;
}

static int add_sizes(struct group *g, struct shown_sums *e, const struct ct_call_count *t)
{
	uint64_t first = expose_more(&e->n.calls, t->sums.asked[0]),
		 second = expose_more(&e->n.failed, t->sums.asked[1]);
	int err;

	if (t->nbuckets != 2 * CT_SIZE_BUCKETS)
		return 0;
	if (!e->sizes)
		e->sizes = calloc(2 * CT_SIZE_BUCKETS, sizeof(*e->sizes));
	if (!e->sizes)
		return -ENOMEM;
	if (t->by == CT_OF_COPIES)
		return add_size_row(g, OF_COPIES + (int)api_way(t->func, t->sub & CT_SUB_KIND),
				    first, e->sizes, t->hist);
	err = add_size_row(g, OF_GRID, first, e->sizes, t->hist);
	return err ? err
		   : add_size_row(g, OF_BLOCK, second, e->sizes + CT_SIZE_BUCKETS,
				  t->hist + CT_SIZE_BUCKETS);
}

/* Adds durations, by function, for all processes together. */
static int durations(struct expose *x, const struct ct_call_count *t)
{
	struct ct_hist *last = x->hist_last[t->func];
	uint64_t *to = x->hist[api_funcs[t->func].class];

	if (t->nbuckets != CT_HIST_BUCKETS)
		return 0;
	if (!last)
		last = x->hist_last[t->func] = calloc(1, sizeof(*last));
	if (!last)
		return -ENOMEM;
	for (int i = 0; i < CT_HIST_BUCKETS; i++) {
		to[i] += (uint32_t)(t->hist[i] - last->n[i]);
		last->n[i] = t->hist[i];
	}
	x->any_hist = true;
	return 0;
}

/* Drops an entry to which nothing more will be added. */
static void drop_entry(struct expose *x, struct expose_process *p, struct shown_sums *e)
{
	free(e->sizes);
	hash_map_remove(&x->entries, e);
	if (--p->entries)
		return;
	leave_group(x, p);
	if (x->handles.n)
		forget_handles(x, p->key.tgid);
	hash_map_remove(&x->procs, p);
}

static struct shown_sums *entry_get(struct expose *x, const struct shown_sums *want, bool *made)
{
	struct shown_sums *e = x->next < x->entries.n ? hash_map_at(&x->entries, x->next) : NULL;

	*made = false;
	if (!e || memcmp(&e->key, &want->key, sizeof(want->key)))
		e = hash_map_get(&x->entries, &want->key, made);
	if (e)
		x->next = (size_t)((char *)e - x->entries.items) / x->entries.size + 1;
	return e;
}

static int call_count(struct expose *x, const struct event *ev)
{
	const struct ct_call_count *t = (const struct ct_call_count *)ev->rec;
	struct shown_sums want = { .key = { t->h.pid, t->start, t->func, t->sub, t->how, 0,
					    t->by } },
			  *e;
	struct expose_process whose = { .key = { t->h.pid, t->start } }, *p;
	struct group *g;
	bool made, made_proc;
	int err = 0;

	if (!t->h.pid)
		return durations(x, t);
	p = hash_map_get(&x->procs, &whose.key, &made_proc);
	e = p ? entry_get(x, &want, &made) : NULL;
	if (!e) {
		if (p && made_proc)
			hash_map_remove(&x->procs, p);
		return -ENOMEM;
	}
	p->entries += made;
	g = group_of_proc(x, p, ev->proc);
	if (t->how == CT_BY_SIZE)
		err = add_sizes(g, e, t);
	else
		add_sums(x, g, p, e, ev);
	if (t->h.flags & CT_F_LAST)
		drop_entry(x, p, e);
	return err;
}

/* ---- collectives ---- */

/* The kind of a process may be asked for before its calls have been counted. */
static void collective(struct expose *x, const struct event *ev)
{
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	struct expose_process want = { 0 }, *p;
	struct group *g;

	if (!x->opts.collectives || !ev->proc || !expose_collectives_has(s))
		return;
	want.key.tgid = ev->rec->pid;
	want.key.start = (uint32_t)(ev->proc->start_boottime_ns >> 10);
	p = hash_map_find(&x->procs, &want.key);
	g = p ? group_of_proc(x, p, ev->proc) : group_of(x, ev->proc);
	g->changed_ns = x->now_ns;
	expose_collectives_add(&x->collectives, (uint32_t)(g - x->groups), s, x->now_ns);
}

/* ---- devices ---- */

static struct device *device_of(struct expose *x, uint32_t index)
{
	for (int i = 0; i < x->ndevices; i++)
		if (x->devices[i].index == index)
			return &x->devices[i];
	if (x->ndevices == DEVICES_MAX)
		return NULL;
	x->devices[x->ndevices].index = index;
	return &x->devices[x->ndevices++];
}

static int device(struct expose *x, const struct ct_device *d)
{
	struct device *to = d->h.pid ? NULL : device_of(x, d->id);
	char *text, *model;

	if (!to)
		return 0;
	text = strndup(d->name, d->name_len);
	if (!text)
		return -ENOMEM;
	model = expose_value_of(text);
	free(text);
	free(to->model);
	to->model = model;
	to->memory_bytes = d->memory_bytes;
	gpu_uuid_text(d->uuid, to->uuid);
	return 0;
}

static void counter(struct expose *x, const struct event *ev)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;
	struct device *d = device_of(x, c->device);

	if (d)
		d->sample_ns = c->h.end_ns;
	for (uint32_t i = 0; d && i < c->n; i++) {
		const struct metric *m =
			ev->metrics ? metric_table_find(ev->metrics, c->values[i].metric) : NULL;
		int at = 0;

		if (!m)
			continue;
		while (at < d->nvalues && strcmp(d->values[at].name, m->name))
			at++;
		if (at == VALUES_MAX)
			continue;
		if (at == d->nvalues)
			d->nvalues++;
		snprintf(d->values[at].name, sizeof(d->values[at].name), "%s", m->name);
		memcpy(&d->values[at].value, &c->values[i].bits, sizeof(double));
		d->values[at].suspect = c->values[i].flags & CT_VALUE_SUSPECT;
	}
}

int expose_event(struct expose *x, const struct event *ev)
{
	switch (ev->rec->kind) {
	case CT_CALL_COUNT: return call_count(x, ev);
	case CT_PROCESS:
	case CT_EXEC:
	case CT_PROCESS_INFO: expose_look_again(x, ev); return 0;
	case CT_NAME: expose_name(x, ev); return 0;
	case CT_DEVICE: return device(x, (const struct ct_device *)ev->rec);
	case CT_COUNTER: counter(x, ev); return 0;
	case CT_SCOPE_BEGIN: collective(x, ev); return 0;
	case CT_SCOPE_END: collective(x, ev); return 1;
	default: return 0;
	}
}
