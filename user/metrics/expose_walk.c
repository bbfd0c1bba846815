/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose_walk.c - see expose.h: the exposed metrics, family by family. families.def lists the sums
 * over calls; the other families are here.
 */
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
#undef FAMILY
#undef FREES
#undef ESTIMATE
};

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

/* A family of one point without labels. */
static void family_point(struct walk *w, const struct expose_family *f, double value)
{
	struct expose_point p = { .value = value };

	begin(w, f);
	put(w, &p);
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
		order[i] = hashmap_at(&w->x->series, i);
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
	static const struct expose_family f = {
		EXPOSE_GAUGE,
		"cudatrace_memory_in_use_bytes",
		"cudatrace.memory.in_use",
		"bytes",
		"By",
		"Memory taken by calls that were counted, and not given back."
	};
	unsigned int n = w->x->opts.groups + 1;
	struct {
		int64_t bytes[2];
		bool any;
	} *held = calloc(n, sizeof(*held));

	begin(w, &f);
	for (size_t i = 0; held && i < w->x->procs.n; i++) {
		const struct expose_process *p = hashmap_at(&w->x->procs, i);

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
	static const struct expose_family f = {
		EXPOSE_COUNTER,
		"cudatrace_kernel_launches",
		"cudatrace.kernel.launches",
		NULL,
		"",
		"Kernel launches by the kernel's name, of those launched most."
	};

	begin(w, &f);
	for (size_t i = 0; i < w->x->kernel_series.n; i++) {
		const struct kernel_series *s = hashmap_at(&w->x->kernel_series, i);
		struct expose_point p = point_of(&w->x->groups[s->key.group]);

		label(&p, "kernel",
		      ((struct kernel *)hashmap_at(&w->x->kernels, w->x->places[s->key.place] - 1))
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
		{ { EXPOSE_HISTOGRAM, "gpu_cuda_kernel_grid_size", "gpu.cuda.kernel.grid.size",
		    NULL, "1", "Blocks in the grid of a kernel launch." },
		  OF_GRID,
		  OF_GRID,
		  0,
		  24,
		  2 },
		{ { EXPOSE_HISTOGRAM, "gpu_cuda_kernel_block_size", "gpu.cuda.kernel.block.size",
		    NULL, "1", "Threads in a block of a kernel launch." },
		  OF_BLOCK,
		  OF_BLOCK,
		  5,
		  10,
		  1 },
		{ { EXPOSE_HISTOGRAM, "gpu_cuda_memory_copies_bytes", "gpu.cuda.memory.copies",
		    "bytes", "By", "Bytes that a call asked to copy." },
		  OF_COPIES,
		  SIZES_OF - 1,
		  6,
		  34,
		  2 },
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
	static const struct expose_family f = { EXPOSE_HISTOGRAM,
						"cudatrace_call_duration_seconds",
						"cudatrace.call.duration",
						"seconds",
						"s",
						"Durations of calls, by class." };
	enum { FIRST = 6, LAST = 29 }; /* octaves; the end of one is 16 << octave */
	double bounds[LAST - FIRST + 1];

	for (int o = FIRST; o <= LAST; o++)
		bounds[o - FIRST] = (double)(16ULL << o) / 1e9;
	begin(w, &f);
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
		{ { EXPOSE_GAUGE, "hw_gpu_utilization_ratio", "hw.gpu.utilization", "ratio", "1",
		    "Share of the time in which the GPU had work." },
		  "gpu",
		  0.01 },
		{ { EXPOSE_GAUGE, "hw_gpu_memory_usage_bytes", "hw.gpu.memory.usage", "bytes", "By",
		    "Memory of the GPU that is in use." },
		  "mem_used",
		  1 },
		{ { EXPOSE_GAUGE, "hw_gpu_memory_utilization_ratio", "hw.gpu.memory.utilization",
		    "ratio", "1", "Share of the GPU's memory that is in use." },
		  "mem_used",
		  0 },
		{ { EXPOSE_GAUGE, "hw_gpu_memory_limit_bytes", "hw.gpu.memory.limit", "bytes", "By",
		    "Memory that the GPU has." },
		  NULL,
		  1 },
		{ { EXPOSE_GAUGE, "hw_power_watts", "hw.power", "watts", "W",
		    "Power that the board draws." },
		  "power",
		  1 },
		{ { EXPOSE_GAUGE, "hw_temperature_celsius", "hw.temperature", "celsius", "Cel",
		    "Temperature of the GPU." },
		  "temp",
		  1 },
		{ { EXPOSE_GAUGE, "cudatrace_gpu_sm_active_ratio", "cudatrace.gpu.sm.active",
		    "ratio", "1", "Share of the time in which multiprocessors had a warp." },
		  "sm",
		  0.01 },
		{ { EXPOSE_GAUGE, "cudatrace_gpu_memory_bandwidth_ratio",
		    "cudatrace.gpu.memory.bandwidth", "ratio", "1",
		    "Share of the GPU memory's bandwidth that is in use." },
		  "dram",
		  0.01 },
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

static void walk_self(struct walk *w)
{
	static const struct expose_family lost = { EXPOSE_COUNTER,
						   "cudatrace_lost_records",
						   "cudatrace.lost.records",
						   NULL,
						   "",
						   "Records that were lost, by cause." };
	static const struct expose_family unprobed[] = {
		{ EXPOSE_COUNTER, "cudatrace_unprobed_processes", "cudatrace.unprobed.processes",
		  NULL, "",
		  "Processes that had CUDA's code mapped before it had its probes, by whether they "
		  "ended before it had." },
		{ EXPOSE_GAUGE, "cudatrace_unprobed_time_max_seconds",
		  "cudatrace.unprobed.time.max", "seconds", "s",
		  "The longest time that such a process ran on without probes." },
	};
	static const struct expose_family gauges[] = {
		{ EXPOSE_GAUGE, "cudatrace_probed_files", "cudatrace.probed.files", NULL, "",
		  "Files that have probes." },
		{ EXPOSE_GAUGE, "cudatrace_processes", "cudatrace.processes", NULL, "",
		  "Processes that run and have made calls." },
		{ EXPOSE_GAUGE, "cudatrace_tally_entries", "cudatrace.tally.entries", NULL, "",
		  "Sums that the kernel side keeps." },
		{ EXPOSE_GAUGE, "cudatrace_tally_entries_limit", "cudatrace.tally.entries.limit",
		  NULL, "", "Sums that it has room for (--processes)." },
		{ EXPOSE_COUNTER, "cudatrace_series_without_room", "cudatrace.series.without.room",
		  NULL, "", "Calls that found no place among the series." },
		{ EXPOSE_COUNTER, "cudatrace_calls_beyond_share", "cudatrace.calls.beyond.share",
		  NULL, "",
		  "Calls counted without their kernel: their process has its share of the kernel "
		  "side's sums." },
		{ EXPOSE_COUNTER, "cudatrace_scrapes", "cudatrace.scrapes", NULL, "",
		  "Answers given before this one." },
		{ EXPOSE_COUNTER, "cudatrace_scrape_time_seconds", "cudatrace.scrape.time",
		  "seconds", "s", "Time that making those answers took." },
		{ EXPOSE_COUNTER, "cudatrace_connections_shut", "cudatrace.connections.shut", NULL,
		  "", "Connections that were shut to make room for others." },
		{ EXPOSE_GAUGE, "cudatrace_start_time_seconds", "cudatrace.start.time", "seconds",
		  "s", "When cudatrace began, since the epoch." },
	};
	static const struct expose_family up = {
		EXPOSE_GAUGE,
		"cudatrace_counters_up",
		"cudatrace.counters.up",
		NULL,
		"",
		"Whether hardware counters (--counters) are being read."
	};
	static const struct expose_family queries = {
		EXPOSE_GAUGE,
		"cudatrace_queries_counted",
		"cudatrace.queries.counted",
		NULL,
		"",
		"Whether calls of class query (cudaGetDevice and its like) are counted (--queries)."
	};
	static const struct expose_family probes[] = {
		{ EXPOSE_COUNTER, "cudatrace_probe_cost_seconds", "cudatrace.probe.cost", "seconds",
		  "s",
		  "CPU time that the probes cost the programs: hits times what an empty pair of "
		  "probes was measured to cost." },
		{ EXPOSE_COUNTER, "cudatrace_programs_cpu_seconds", "cudatrace.programs.cpu",
		  "seconds", "s", "CPU time of the programs since they were seen to make calls." },
		{ EXPOSE_GAUGE, "cudatrace_probe_duty_ratio", "cudatrace.probe.duty", "ratio", "1",
		  "Share of the time in which the probes of frequently called functions are on." },
		{ EXPOSE_GAUGE, "cudatrace_probe_duty_functions", "cudatrace.probe.duty.functions",
		  NULL, "", "Functions whose probes are not on all the time." },
		{ EXPOSE_GAUGE, "cudatrace_probe_cost_ratio", "cudatrace.probe.cost.share", "ratio",
		  "1", "What the probes cost lately, as a share of the programs' CPU time." },
		{ EXPOSE_GAUGE, "cudatrace_probe_cost_limit_ratio", "cudatrace.probe.cost.limit",
		  "ratio", "1", "The limit of that (--max-cost)." },
	};
	static const struct expose_family build = {
		EXPOSE_GAUGE, "cudatrace_build_info",	  "cudatrace.build.info", NULL,
		"",	      "The version of cudatrace."
	};
	static const struct expose_family refused = {
		EXPOSE_COUNTER,
		"cudatrace_refused_files",
		"cudatrace.refused.files",
		NULL,
		"",
		"Files that have no probes because their users' programs map too many."
	};
	static const struct expose_family unhooked = {
		EXPOSE_COUNTER,
		"cudatrace_unhooked_functions",
		"cudatrace.unhooked.functions",
		NULL,
		"",
		"Functions in programs with hooks that have no hook: calls of them are not seen."
	};
	static const struct expose_family partly = {
		EXPOSE_COUNTER,
		"cudatrace_partly_hooked_functions",
		"cudatrace.partly.hooked.functions",
		NULL,
		"",
		"Functions in programs with hooks of which only calls through the dynamic loader "
		"are seen."
	};
	static const struct expose_family interrupted = {
		EXPOSE_COUNTER,
		"cudatrace_interrupted_functions",
		"cudatrace.interrupted.functions",
		NULL,
		"",
		"Functions in programs with hooks that had none for a time, because of another "
		"tracer: calls of them in that time are not seen."
	};
	static const struct expose_family denied = {
		EXPOSE_COUNTER,
		"cudatrace_requests_denied",
		"cudatrace.requests.denied",
		NULL,
		"",
		"Requests without the right name and password (--web-config)."
	};
	static const struct expose_family handshakes = {
		EXPOSE_COUNTER,
		"cudatrace_handshakes_refused",
		"cudatrace.handshakes.refused",
		NULL,
		"",
		"TLS handshakes that were refused because there were too many (--web-config)."
	};
	const struct expose_about *a = w->about;
	const struct probe_cost *c = &a->losses->probes;
	struct expose_point p = { .value = 1 };

	begin(w, &lost);
	for (int i = 0; i < CT_LOSS_END; i++) {
		struct expose_point l = { .value = (double)a->losses->lost[i] };

		label(&l, "cause", loss_name((enum ct_loss)i));
		put(w, &l);
	}
	begin(w, &unprobed[0]);
	for (int ended = 0; ended < 2; ended++) {
		const struct unprobed_sum *u = holes_unprobed(a->losses->holes);
		struct expose_point l = { .value = (double)(ended ? u->ended
								  : u->processes - u->ended) };

		label(&l, "ended", ended ? "true" : "false");
		put(w, &l);
	}
	family_point(w, &unprobed[1], (double)holes_unprobed(a->losses->holes)->longest_ns / 1e9);
	family_point(w, &gauges[0], (double)a->losses->files);
	family_point(w, &refused, (double)holes_number(a->losses->holes, CT_HOLE_FILE_REFUSED));
	family_point(w, &unhooked, (double)holes_number(a->losses->holes, CT_HOLE_UNHOOKED));
	family_point(w, &partly, (double)holes_number(a->losses->holes, CT_HOLE_PARTLY_HOOKED));
	family_point(w, &interrupted, (double)holes_number(a->losses->holes, CT_HOLE_INTERRUPTED));
	family_point(w, &gauges[1], (double)w->x->procs.n);
	family_point(w, &gauges[2], (double)w->x->entries.n);
	family_point(w, &gauges[3], (double)w->x->opts.entries);
	family_point(w, &gauges[4], (double)w->x->no_room);
	family_point(w, &gauges[5], (double)a->losses->beyond);
	family_point(w, &gauges[6], (double)a->scrapes);
	family_point(w, &gauges[7], a->scrape_seconds);
	family_point(w, &gauges[8], (double)a->shut);
	family_point(w, &denied, (double)a->denied);
	family_point(w, &handshakes, (double)a->handshakes_refused);
	family_point(w, &gauges[9], a->start_time_s);
	if (a->counters_ns)
		family_point(w, &up, expose_counters_up(w->x, a));
	family_point(w, &queries, !a->no_queries);
	if (c->reported) {
		family_point(w, &probes[0], (double)c->ns / 1e9);
		family_point(w, &probes[1], (double)c->cpu_ns / 1e9);
		family_point(w, &probes[2], c->duty);
		family_point(w, &probes[3], c->functions);
	}
	if (c->reported) {
		begin(w, &probes[4]);
		if (c->cost >= 0)
			put(w, &(struct expose_point){ .value = c->cost });
		begin(w, &probes[5]);
		if (c->max_cost > 0)
			put(w, &(struct expose_point){ .value = c->max_cost });
	}
	begin(w, &build);
	label(&p, "version", w->x->opts.version);
	put(w, &p);
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
	static const struct expose_family of[] = {
		{ EXPOSE_COUNTER, "cudatrace_collective_calls", "cudatrace.collective.calls", NULL,
		  "", "Calls of NCCL that move data, without those that failed." },
		{ EXPOSE_COUNTER, "cudatrace_collective_bytes", "cudatrace.collective", "bytes",
		  "By", "Bytes of the elements that these calls were given." },
		{ EXPOSE_GAUGE, "cudatrace_collective_sequence", "cudatrace.collective.sequence",
		  NULL, "",
		  "The number of the newest collective that was begun with a communicator. A rank "
		  "whose number stays behind has not arrived." },
	};
	struct collective_series **order = expose_collectives_sorted(&w->x->collectives);
	size_t n = order ? w->x->collectives.series.n : 0;

	begin(w, &of[0]);
	for (size_t i = 0; i < n; i++)
		put_collective(w, order[i], order[i]->calls, true);
	begin(w, &of[1]);
	for (size_t i = 0; i < n; i++)
		put_collective(w, order[i], order[i]->bytes, true);
	begin(w, &of[2]);
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
