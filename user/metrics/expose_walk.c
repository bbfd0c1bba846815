/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose_walk.c - see expose.h: the exposed metrics, family by family. families.def lists
 * them all.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../api/traits.h"
#include "../event/holes/holes.h"
#include "expose_inside.h"

#define ANY 0 /* a family of all functions */

enum sum { CALLS, BYTES, FAILED, TIME, ODD, IMPOSSIBLE, ESTIMATED, ERROR };
enum label { NONE, DIRECTION, FUNCTION };

static const struct family {
	struct expose_family f;
	enum sum sum;
	enum label label;
	uint32_t traits;
	bool frees;	/* shown only if it is known what is freed */
	bool estimates; /* shown only if some numbers are estimates, and only for those */
} families[] = {
#define FAMILY(name, otel, unit, ucum, sum, label, traits, help) \
	{ { EXPOSE_COUNTER, #name, otel, unit, ucum, help }, sum, label, traits, false, false },
#define FREES(name, otel, unit, ucum, sum, label, traits, help) \
	{ { EXPOSE_COUNTER, #name, otel, unit, ucum, help }, sum, label, traits, true, false },
#define ESTIMATE(kind, name, otel, sum, help) \
	{ { kind, #name, otel, NULL, "", help }, sum, FUNCTION, ANY, false, true },
#include "families.def"
};

/* Those that a function each walks: of_NAME. */
#define ONE(kind, name, otel, unit, ucum, help) \
	static const struct expose_family of_##name = { kind, #name, otel, unit, ucum, help };
#include "families.def"

struct walk {
	struct expose *x;
	const struct expose_about *about;
	expose_fn fn;
	void *ctx;
	const struct expose_family *f;
};

static void begin(struct walk *w, const struct expose_family *f)
{
	w->f = f;
	w->fn(w->ctx, f, NULL);
}

static void put(struct walk *w, const struct expose_point *p)
{
	w->fn(w->ctx, w->f, p);
}

static void label(struct expose_point *p, const char *key, const char *value)
{
	if (value && p->nlabels < EXPOSE_LABELS)
		p->labels[p->nlabels++] = (struct expose_label){ key, value };
}

static struct expose_point point_of(const struct group *g)
{
	struct expose_point p = { 0 };

	label(&p, "process", g->process);
	label(&p, "container_id", g->container);
	label(&p, "pod_uid", g->pod);
	return p;
}

/* ---- sums over calls ---- */

/* Values of cuda.memcpy.kind. */
static const char *const way_names[API_WAY_END] = { "HostToHost",   "HostToDevice",
						    "DeviceToHost", "DeviceToDevice",
						    "Default",	    "PeerToPeer",
						    "Unknown" };

static double value_of(enum sum what, const struct expose_sums *n)
{
	switch (what) {
	case CALLS: return (double)n->calls;
	case BYTES: return (double)n->bytes;
	case FAILED: return (double)n->failed;
	case ODD: return (double)n->odd;
	case IMPOSSIBLE: return (double)n->impossible;
	case ESTIMATED: return (double)n->estimated;
	case ERROR: return (int64_t)n->error > 0 ? (double)(int64_t)n->error : 0;
	default: return (double)n->ns / 1e9;
	}
}

static int by_labels(const void *pa, const void *pb)
{
	const struct series *a = *(const struct series *const *)pa,
			    *b = *(const struct series *const *)pb;

	if (a->key.group != b->key.group)
		return a->key.group < b->key.group ? -1 : 1;
	if (a->key.func != b->key.func)
		return a->key.func < b->key.func ? -1 : 1;
	return a->key.way < b->key.way ? -1 : a->key.way > b->key.way;
}

/* One series for each value of the family's label: neighbours with the same labels are added up. */
static void put_sums(struct walk *w, const struct family *f, const struct series *s, double *sums,
		     bool *any)
{
	const struct api_func *func = &api_funcs[s->key.func];

	for (int way = 0; way < API_WAY_END; way++) {
		struct expose_point p = point_of(&w->x->groups[s->key.group]);

		if (!any[way])
			continue;
		if (f->label == DIRECTION)
			label(&p, "cuda_memcpy_kind", way_names[way]);
		if (f->label == FUNCTION) {
			label(&p, "domain", api_domain_name(func->domain));
			label(&p, "class", api_class_name(func->class));
			label(&p, "function", func->name);
		}
		p.value = sums[way];
		put(w, &p);
		any[way] = false;
		sums[way] = 0;
	}
}

static void walk_family(struct walk *w, const struct family *f, struct series **order, size_t n)
{
	double sums[API_WAY_END] = { 0 };
	bool any[API_WAY_END] = { false };
	uint64_t wanted[CT_MAX_FUNCS / 64] = { 0 };

	for (int i = 0; i < api_nfuncs; i++)
		if (f->traits == ANY || api_traits((unsigned int)i) & f->traits)
			wanted[i / 64] |= 1ULL << (i % 64);
	begin(w, &f->f);
	for (size_t i = 0; i < n; i++) {
		const struct series *s = order[i], *next = i + 1 < n ? order[i + 1] : NULL;
		uint32_t way = f->label == DIRECTION ? s->key.way : 0;

		if (wanted[s->key.func / 64] >> (s->key.func % 64) & 1) {
			sums[way] += value_of(f->sum, &s->n);
			any[way] |= !f->estimates || s->n.estimated || s->n.error;
		}
		if (!next || next->key.group != s->key.group ||
		    (f->label == FUNCTION && next->key.func != s->key.func))
			put_sums(w, f, s, sums, any);
	}
}

static void walk_sums(struct walk *w)
{
	struct series **order = calloc(w->x->series.n + 1, sizeof(*order));

	for (size_t i = 0; order && i < w->x->series.n; i++)
		order[i] = hash_map_at(&w->x->series, i);
	if (order)
		qsort(order, w->x->series.n, sizeof(*order), by_labels);
	for (size_t f = 0; order && f < ARRAY_LEN(families); f++)
		if ((w->x->opts.memory || !families[f].frees) &&
		    (w->x->any_estimated || w->about->losses->probes.reported ||
		     !families[f].estimates))
			walk_family(w, &families[f], order, w->x->series.n);
	free(order);
}

/* The memory that the processes of a kind hold together. */
static void walk_memory(struct walk *w)
{
	unsigned int n = w->x->opts.groups + 1;
	struct {
		int64_t bytes[2];
		bool any;
	} *held = calloc(n, sizeof(*held));

	begin(w, &of_cudatrace_memory_in_use_bytes);
	for (size_t i = 0; held && i < w->x->procs.n; i++) {
		const struct expose_process *p = hash_map_at(&w->x->procs, i);

		if (!p->group)
			continue;
		held[p->group - 1].bytes[0] += p->device_bytes;
		held[p->group - 1].bytes[1] += p->host_bytes;
		held[p->group - 1].any = true;
	}
	for (unsigned int i = 0; held && i < n; i++) {
		for (int host = 0; host < 2 && held[i].any; host++) {
			struct expose_point p = point_of(&w->x->groups[i]);

			label(&p, "memory", host ? "host" : "device");
			p.value = held[i].bytes[host] > 0 ? (double)held[i].bytes[host] : 0;
			put(w, &p);
		}
	}
	free(held);
}

static void walk_kernels(struct walk *w)
{
	begin(w, &of_cudatrace_kernel_launches);
	for (size_t i = 0; i < w->x->kernel_series.n; i++) {
		const struct kernel_series *s = hash_map_at(&w->x->kernel_series, i);
		struct expose_point p = point_of(&w->x->groups[s->key.group]);

		label(&p, "kernel",
		      ((struct kernel *)hash_map_at(&w->x->kernels, w->x->places[s->key.place] - 1))
			      ->name);
		p.value = (double)s->calls;
		put(w, &p);
	}
	for (unsigned int i = 0; i <= w->x->opts.groups; i++) {
		struct expose_point p = point_of(&w->x->groups[i]);

		if (!w->x->groups[i].other_kernels)
			continue;
		label(&p, "kernel", "other");
		p.value = (double)w->x->groups[i].other_kernels;
		put(w, &p);
	}
}

/* ---- histograms ---- */

/* Writes buckets up to 2^first, 2^(first + step)... 2^last, from a histogram that has a bucket
 * for each power of two. */
static void put_sizes(struct walk *w, struct expose_point *p, const struct expose_sizes *s,
		      int first, int last, int step)
{
	uint64_t counts[EXPOSE_BOUNDS + 1] = { 0 };
	double bounds[EXPOSE_BOUNDS];
	int n = 0;

	for (int b = first; b <= last && n < EXPOSE_BOUNDS; b += step)
		bounds[n++] = (double)(1ULL << b);
	for (int b = 0; b < CT_SIZE_BUCKETS; b++) {
		int at = b <= first ? 0 : b > last ? n : (b - first + step - 1) / step;

		counts[at] += s->n[b];
		p->count += s->n[b];
	}
	p->nbounds = n;
	p->bounds = bounds;
	p->counts = counts;
	p->sum = (double)s->sum;
	put(w, p);
}

static void walk_sizes(struct walk *w)
{
	static const struct {
		struct expose_family f;
		int of, last_of, first, last, step;
	} hists[] = {
#define SIZES(name, otel, unit, ucum, of, last_of, first, last, step, help) \
	{ { EXPOSE_HISTOGRAM, #name, otel, unit, ucum, help }, of, last_of, first, last, step },
#include "families.def"
	};

	for (size_t h = 0; h < ARRAY_LEN(hists); h++) {
		begin(w, &hists[h].f);
		for (unsigned int i = 0; i <= w->x->opts.groups; i++) {
			const struct group *g = &w->x->groups[i];

			for (int of = hists[h].of; of <= hists[h].last_of; of++) {
				struct expose_point p = point_of(g);

				if (!g->sizes[of])
					continue;
				if (of >= OF_COPIES)
					label(&p, "cuda_memcpy_kind", way_names[of - OF_COPIES]);
				put_sizes(w, &p, g->sizes[of], hists[h].first, hists[h].last,
					  hists[h].step);
			}
		}
	}
}

/* Buckets up to powers of two, at which the counters' buckets end exactly: from 1 us to about 8
 * s. */
static void walk_durations(struct walk *w)
{
	enum { FIRST = 6, LAST = 29 }; /* octaves; the end of one is 16 << octave */
	double bounds[LAST - FIRST + 1];

	for (int o = FIRST; o <= LAST; o++)
		bounds[o - FIRST] = (double)(16ULL << o) / 1e9;
	begin(w, &of_cudatrace_call_duration_seconds);
	for (int c = 0; c < API_CLASS_END; c++) {
		uint64_t counts[LAST - FIRST + 2] = { 0 };
		struct expose_point p = { .nbounds = LAST - FIRST + 1,
					  .bounds = bounds,
					  .counts = counts,
					  .sum = (double)w->x->hist_ns[c] / 1e9 };

		for (int i = 0; i < CT_HIST_BUCKETS; i++) {
			int at = i / 8 <= FIRST ? 0 : i / 8 > LAST ? p.nbounds : i / 8 - FIRST;

			counts[at] += w->x->hist[c][i];
			p.count += w->x->hist[c][i];
		}
		if (!p.count)
			continue;
		label(&p, "class", api_class_name((enum api_class)c));
		put(w, &p);
	}
}

/* ---- devices ---- */

/* The labels by which dcgm-exporter identifies GPUs. `room` holds them. */
static struct expose_point point_of_device(const struct expose *x, const struct device *d,
					   char room[2][24])
{
	struct expose_point p = { 0 };

	snprintf(room[0], 24, "%u", d->index);
	snprintf(room[1], 24, "nvidia%u", d->index);
	label(&p, "gpu", room[0]);
	label(&p, "UUID", d->uuid);
	label(&p, "device", room[1]);
	label(&p, "modelName", d->model ? d->model : "");
	label(&p, "Hostname", x->opts.host ? x->opts.host : "");
	return p;
}

static bool is_fresh(const struct device *d, const struct expose_about *a)
{
	uint64_t late = a->counters_ns * 3 > 5000000000ULL ? a->counters_ns * 3 : 5000000000ULL;

	return d->sample_ns && a->now_ns < d->sample_ns + late;
}

bool expose_counters_up(const struct expose *x, const struct expose_about *a)
{
	for (int i = 0; i < x->ndevices; i++)
		if (is_fresh(&x->devices[i], a))
			return true;
	return false;
}

static const double *value(const struct device *d, const char *name)
{
	for (int i = 0; i < d->nvalues; i++)
		if (!strcmp(d->values[i].name, name))
			return d->values[i].suspect ? NULL : &d->values[i].value;
	return NULL;
}

/* Uses OpenTelemetry's name if it has one. */
static void walk_devices(struct walk *w)
{
	static const struct {
		struct expose_family f;
		const char *metric; /* NULL: a property of the device */
		double scale;
	} known[] = {
#define DEVICE(name, otel, unit, ucum, metric, scale, help) \
	{ { EXPOSE_GAUGE, #name, otel, unit, ucum, help }, metric, scale },
#include "families.def"
	};

	for (size_t k = 0; k < ARRAY_LEN(known); k++) {
		begin(w, &known[k].f);
		for (int i = 0; i < w->x->ndevices; i++) {
			const struct device *d = &w->x->devices[i];
			const double *v = known[k].metric && is_fresh(d, w->about)
						  ? value(d, known[k].metric)
						  : NULL;
			double limit = (double)d->memory_bytes;
			struct expose_point p;
			char room[2][24];

			if (known[k].metric ? !v || (!known[k].scale && limit < 1) : limit < 1)
				continue;
			p = point_of_device(w->x, d, room);
			p.value = !v ? limit : known[k].scale ? *v * known[k].scale : *v / limit;
			put(w, &p);
		}
	}
}

/* ---- cudatrace itself ---- */

static void put_lost(struct walk *w)
{
	for (int i = 0; i < CT_LOSS_END; i++) {
		struct expose_point p = { .value = (double)w->about->losses->lost[i] };

		label(&p, "cause", loss_name((enum ct_loss)i));
		put(w, &p);
	}
}

static void put_unprobed(struct walk *w)
{
	const struct unprobed_sum *u = holes_unprobed(w->about->losses->holes);

	for (int ended = 0; ended < 2; ended++) {
		struct expose_point p = { .value = (double)(ended ? u->ended
								  : u->processes - u->ended) };

		label(&p, "ended", ended ? "true" : "false");
		put(w, &p);
	}
}

static void put_build(struct walk *w)
{
	struct expose_point p = { .value = 1 };

	label(&p, "version", w->x->opts.version);
	put(w, &p);
}

/* When a family is shown; COUNTERS: if hardware counters are read, PROBES: if the probes' cost is known. */
enum when { ALWAYS, COUNTERS, PROBES };

#define SELF(kind, name, otel, unit, ucum, when, value, help)                            \
	static double value_##name(const struct expose *x, const struct expose_about *a, \
				   const struct losses *l)                               \
	{                                                                                \
		(void)x, (void)a, (void)l;                                               \
		return (double)(value);                                                  \
	}
#include "families.def"

static void walk_self(struct walk *w)
{
	static const struct {
		struct expose_family f;
		enum when when;
		double (*value)(const struct expose *, const struct expose_about *,
				const struct losses *);
		void (*points)(struct walk *); /* in place of value() */
	} rows[] = {
#define SELF(kind, name, otel, unit, ucum, when, value, help) \
	{ { kind, #name, otel, unit, ucum, help }, when, value_##name, NULL },
#define LABELLED(kind, name, otel, unit, ucum, points, help) \
	{ { kind, #name, otel, unit, ucum, help }, ALWAYS, NULL, points },
#include "families.def"
	};
	const struct expose_about *a = w->about;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct expose_point p = { 0 };

		if ((rows[i].when == COUNTERS && !a->counters_ns) ||
		    (rows[i].when == PROBES && !a->losses->probes.reported))
			continue;
		begin(w, &rows[i].f);
		if (rows[i].points) {
			rows[i].points(w);
			continue;
		}
		p.value = rows[i].value(w->x, a, a->losses);
		if (!isnan(p.value))
			put(w, &p);
	}
}

/* ---- collectives ---- */

/* A number as a label; "?": it is not known. */
static const char *known(char text[24], uint32_t v)
{
	if (v == CT_UNKNOWN)
		return "?";
	snprintf(text, 24, "%u", v);
	return text;
}

/* value: of the series; func: by function too. */
static void put_collective(struct walk *w, const struct collective_series *s, uint64_t value,
			   bool func)
{
	struct expose_point p = point_of(&w->x->groups[s->key.group]);
	char hash[24], rank[24], ranks[24];

	snprintf(hash, sizeof(hash), "0x%llx", (unsigned long long)s->key.hash);
	label(&p, "communicator",
	      s->key.hash == COLLECTIVES_OTHER ? "other"
	      : s->key.hash		       ? hash
					       : "?");
	label(&p, "rank", known(rank, s->key.rank));
	label(&p, "ranks", known(ranks, s->key.ranks));
	if (func)
		label(&p, "function", s->key.func);
	p.value = (double)value;
	put(w, &p);
}

static bool is_same_communicator(const struct collective_series *a,
				 const struct collective_series *b)
{
	return a->key.group == b->key.group && a->key.hash == b->key.hash &&
	       a->key.rank == b->key.rank && a->key.ranks == b->key.ranks;
}

/* The highest number of each communicator's functions. */
static void put_sequences(struct walk *w, struct collective_series **order, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		most = order[i]->sequence > most ? order[i]->sequence : most;
		if (i + 1 < n && is_same_communicator(order[i], order[i + 1]))
			continue;
		if (most)
			put_collective(w, order[i], most, false);
		most = 0;
	}
}

static void walk_collectives(struct walk *w)
{
	struct collective_series **order = expose_collectives_sorted(&w->x->collectives);
	size_t n = order ? w->x->collectives.series.n : 0;

	begin(w, &of_cudatrace_collective_calls);
	for (size_t i = 0; i < n; i++)
		put_collective(w, order[i], order[i]->calls, true);
	begin(w, &of_cudatrace_collective_bytes);
	for (size_t i = 0; i < n; i++)
		put_collective(w, order[i], order[i]->bytes, true);
	begin(w, &of_cudatrace_collective_sequence);
	put_sequences(w, order, n);
	free(order);
}

void expose_walk(struct expose *x, const struct expose_about *about, expose_fn fn, void *ctx)
{
	struct walk w = { .x = x, .about = about, .fn = fn, .ctx = ctx };

	walk_sums(&w);
	if (x->opts.memory)
		walk_memory(&w);
	if (x->opts.kernels)
		walk_kernels(&w);
	walk_sizes(&w);
	if (x->any_hist)
		walk_durations(&w);
	if (x->opts.collectives)
		walk_collectives(&w);
	if (about->counters_ns)
		walk_devices(&w);
	walk_self(&w);
}
