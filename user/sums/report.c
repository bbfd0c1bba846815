/* SPDX-License-Identifier: BSD-2-Clause */
/* report.c - see report.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../api/traits.h"
#include "../event/gpus.h"
#include "report.h"

#define LABEL_MAX 16384
#define HOST_MAX 64

static const struct {
	const char *name, *title;
} sections[REPORT_SECTION_END] = {
	[REPORT_KERNELS] = { "kernels", "GPU kernels" },
	[REPORT_COPIES] = { "copies", "GPU memory operations" },
	[REPORT_SYNC] = { "sync", "Synchronisation (time blocked)" },
};

static bool is_calls(enum report_section s)
{
	return s >= REPORT_CALLS && s < REPORT_CALLS + API_DOMAIN_END;
}

bool report_section_counts(enum report_section s)
{
	return !is_calls(s) || !api_domains[s - REPORT_CALLS].layer;
}

const char *report_section_name(enum report_section s)
{
	return is_calls(s) ? api_domains[s - REPORT_CALLS].name : sections[s].name;
}

const char *report_section_title(enum report_section s)
{
	return is_calls(s) ? api_domains[s - REPORT_CALLS].title : sections[s].title;
}

const char *report_way_name(enum report_way w)
{
	static const char *const names[REPORT_WAY_END] = {
		[REPORT_HTOD] = "HtoD",	 [REPORT_DTOH] = "DtoH", [REPORT_DTOD] = "DtoD",
		[REPORT_PTOP] = "PtoP",	 [REPORT_HTOH] = "HtoH", [REPORT_UNKNOWN] = "unspecified",
		[REPORT_SET] = "memset",
	};

	return names[w];
}

/* ---- directions of copies ---- */

enum report_way report_way_of_copy(uint8_t kind)
{
	switch (kind) {
	case CT_COPY_HTOD:
	case CT_COPY_HTOA: return REPORT_HTOD;
	case CT_COPY_DTOH:
	case CT_COPY_ATOH: return REPORT_DTOH;
	case CT_COPY_ATOA:
	case CT_COPY_ATOD:
	case CT_COPY_DTOA:
	case CT_COPY_DTOD: return REPORT_DTOD;
	case CT_COPY_HTOH: return REPORT_HTOH;
	case CT_COPY_PTOP: return REPORT_PTOP;
	default: return REPORT_UNKNOWN;
	}
}

enum report_way report_way_of(enum api_way way)
{
	static const enum report_way ways[API_WAY_END] = {
		[API_WAY_UNKNOWN] = REPORT_UNKNOWN,    [API_WAY_HTOD] = REPORT_HTOD,
		[API_WAY_DTOH] = REPORT_DTOH,	       [API_WAY_DTOD] = REPORT_DTOD,
		[API_WAY_PTOP] = REPORT_PTOP,	       [API_WAY_HTOH] = REPORT_HTOH,
		[API_WAY_BY_ADDRESS] = REPORT_UNKNOWN,
	};

	return ways[way];
}

enum report_way report_way_of_call(uint16_t func, uint8_t sub)
{
	if (func >= api_nfuncs || api_funcs[func].class != API_COPY)
		return REPORT_WAY_END;
	return report_way_of(api_way(func, sub & CT_SUB_KIND));
}

static void add_traffic(struct report *r, const struct book_entry *e)
{
	struct report_traffic *t;
	struct ct_sums all;

	if (e->what == BOOK_COPY) {
		t = &r->traffic[report_way_of_copy(e->sub)];
	} else if (e->what == BOOK_SET) {
		t = &r->traffic[REPORT_SET];
	} else if (e->what == BOOK_CALL && !r->device) {
		const struct api_func *f = &api_funcs[e->func];

		if (f->class == API_SET)
			t = &r->traffic[REPORT_SET];
		else if (f->class == API_COPY)
			t = &r->traffic[report_way_of_call(e->func, e->sub)];
		else
			return;
	} else {
		return;
	}
	all = book_all(e);
	t->copies += all.calls;
	losses_add(&t->bytes, all.bytes);
	t->ns += e->what == BOOK_CALL ? 0 : all.ns;
	muted_add_unseen(&t->unseen, &e->muted.unseen);
}

static void add_launch(struct report *r, const struct book_entry *e)
{
	const struct api_func *f = &api_funcs[e->func];
	uint32_t traits = api_traits(e->func);
	struct ct_sums all = book_all(e);

	if (f->class == API_COPY || f->class == API_SET) {
		r->moves += all.calls;
		r->moves_async += traits & TR_ASYNC ? all.calls : 0;
	}
	book_memory_add(&r->memory, e->func, &e->n);
	if (traits & TR_GRAPH) {
		r->graph_launches += all.calls;
		muted_add_unseen(&r->graphs_unseen, &e->muted.unseen);
	}
	if (!(traits & TR_LAUNCH))
		return;
	r->launches += all.calls;
	losses_add(&r->threads, all.threads);
	losses_add(&r->shared_bytes, all.shared);
	muted_add_unseen(&r->launches_unseen, &e->muted.unseen);
	if (e->sub & CT_SUB_STREAM)
		r->on_streams += all.calls;
}

/* ---- rows ---- */

/* The last names of processes and threads. They are also used for what was added before a name
 * changed. */
struct whose {
	struct {
		uint64_t by; /* the thread; NO_THREAD: the process */
		uint32_t pid, start;
	} key;
	uint64_t named;
	char name[CT_COMM_LEN];
};
#define NO_THREAD (~0ULL)

static bool learn_name(struct hash_map *names, const struct book_entry *e, uint64_t by,
		       const char *name)
{
	struct whose want = { .key = { by, e->pid, e->start } }, *w;
	bool made;

	w = hash_map_get(names, &want.key, &made);
	if (!w)
		return false;
	if (made || e->named > w->named) {
		w->named = e->named;
		memcpy(w->name, name, sizeof(w->name));
	}
	return true;
}

static bool learn_names(struct hash_map *names, const struct book *b)
{
	hash_map_open(names, sizeof(struct whose), sizeof(((struct whose *)0)->key),
		      2 * b->nentries + 1);
	for (size_t i = 0; i < b->nentries; i++) {
		const struct book_entry *e = &b->entries[i];

		if (e->pid && !learn_name(names, e, NO_THREAD, e->comm))
			return false;
		if (e->pid && *e->thread && !learn_name(names, e, e->by, e->thread))
			return false;
	}
	return true;
}

static const char *name_of(const struct hash_map *names, const struct book_entry *e, uint64_t by)
{
	struct whose want = { .key = { by, e->pid, e->start } };
	const struct whose *w = hash_map_find(names, &want.key);

	return w ? w->name : "";
}

static void label_stream(struct text *t, const struct book_entry *e)
{
	if (e->by == BOOK_NO_STREAM) {
		text_str(t, " no stream");
		return;
	}
	text_str(t, " stream ");
	if (e->by == BOOK_STREAM_UNKNOWN)
		text_str(t, "?");
	else if (e->what == BOOK_CALL)
		text_hex(t, e->by);
	else
		text_u64(t, e->by);
}

static void label_whom(struct text *t, const struct book *b, const struct hash_map *names,
		       const struct book_entry *e)
{
	const struct gpu *g;
	const char *name;
	uint32_t device;

	switch (b->by) {
	case BOOK_BY_PROCESS:
	case BOOK_BY_THREAD:
	case BOOK_BY_STREAM:
		text_plain(t, name_of(names, e, NO_THREAD), CT_COMM_LEN);
		text_str(t, " ");
		text_u64(t, e->shown_pid ? e->shown_pid : e->pid);
		if (e->host) {
			text_str(t, " on ");
			text_plain(t, e->host, HOST_MAX);
		}
		if (e->nth > 1) {
			text_str(t, " #");
			text_u64(t, e->nth);
		}
		if (b->by == BOOK_BY_THREAD) {
			text_str(t, "/");
			text_u64(t,
				 process_host(e->pid) ? process_host_pid((uint32_t)e->by) : e->by);
			name = name_of(names, e, e->by);
			/* threads that nobody named have the name of their process */
			if (*name && strncmp(name, name_of(names, e, NO_THREAD), CT_COMM_LEN)) {
				text_str(t, " ");
				text_plain(t, name, CT_COMM_LEN);
			}
		} else if (b->by == BOOK_BY_STREAM) {
			label_stream(t, e);
		}
		text_str(t, "  ");
		break;
	case BOOK_BY_DEVICE:
		device = (uint32_t)e->by;
		g = gpu_table_named(b->gpus, (uint32_t)(e->by >> 32), device);
		text_str(t, "device ");
		if (device == CT_UNKNOWN)
			text_str(t, "?");
		else
			text_u64(t, g ? g->number : device);
		text_str(t, "  ");
		break;
	case BOOK_BY_CGROUP:
		text_str(t, "cgroup ");
		text_u64(t, e->by);
		text_str(t, "  ");
		break;
	case BOOK_BY_RANGE:
	case BOOK_BY_COLLECTIVE:
	case BOOK_BY_OPERATOR:
	case BOOK_BY_STEP:
	case BOOK_BY_GEMM:
	case BOOK_BY_CLASS:
	case BOOK_BY_FUNCTION:
	case BOOK_BY_KERNEL: break;
	}
}

static void label(struct text *t, const struct book *b, const struct hash_map *names,
		  const struct book_entry *e)
{
	label_whom(t, b, names, e);
	switch (e->what) {
	case BOOK_KERNEL: text_plain(t, e->name ? e->name : "?", LABEL_MAX); return;
	case BOOK_COPY:
		text_str(t, "memcpy ");
		text_str(t, report_way_name(report_way_of_copy(e->sub)));
		return;
	case BOOK_SET: text_str(t, "memset"); return;
	}
	text_str(t, api_funcs[e->func].name);
	if (b->by != BOOK_BY_KERNEL || (!e->by && !e->name))
		return;
	text_str(t, "  ");
	if (e->name)
		text_plain(t, e->name, LABEL_MAX);
	else
		text_hex(t, e->by);
}

static int by_label(const void *pa, const void *pb)
{
	const struct report_row *a = pa, *b = pb;
	size_t n = a->label.len < b->label.len ? a->label.len : b->label.len;
	int d = n ? memcmp(a->label.s, b->label.s, n) : 0;

	return d ? d : a->label.len < b->label.len ? -1 : a->label.len > b->label.len;
}

static int by_time(const void *pa, const void *pb)
{
	const struct report_row *a = pa, *b = pb;

	if (a->n.ns != b->n.ns)
		return a->n.ns < b->n.ns ? 1 : -1;
	if (a->n.calls != b->n.calls)
		return a->n.calls < b->n.calls ? 1 : -1;
	return by_label(pa, pb);
}

static bool add_hist(struct report_row *row, const struct ct_hist *h)
{
	if (!h)
		return true;
	if (!row->hist)
		row->hist = calloc(1, sizeof(*row->hist));
	if (!row->hist)
		return false;
	for (int i = 0; i < CT_HIST_BUCKETS; i++)
		row->hist->n[i] += h->n[i];
	return true;
}

static bool add_sizes(struct report_row *row, const struct book_sizes *from)
{
	if (!from)
		return true;
	if (!row->sizes)
		row->sizes = calloc(1, sizeof(*row->sizes));
	if (!row->sizes)
		return false;
	book_add(&row->sizes->n, &from->n);
	for (int i = 0; i < CT_HIST_BUCKETS; i++)
		row->sizes->hist.n[i] += from->hist.n[i];
	return true;
}

static bool in_section(const struct book_entry *e, enum report_section s)
{
	if (is_calls(s))
		return e->what == BOOK_CALL && api_funcs[e->func].domain == s - REPORT_CALLS;
	switch (s) {
	case REPORT_SYNC: return e->what == BOOK_CALL && api_funcs[e->func].class == API_SYNC;
	case REPORT_KERNELS: return e->what == BOOK_KERNEL;
	default: return e->what == BOOK_COPY || e->what == BOOK_SET;
	}
}

/* Entries with one label become one row. */
static size_t merge(struct report_row *rows, size_t n)
{
	size_t kept = 0;

	qsort(rows, n, sizeof(*rows), by_label);
	for (size_t i = 0; i < n; i++) {
		if (kept && !by_label(&rows[kept - 1], &rows[i])) {
			struct report_row *into = &rows[kept - 1];

			book_add(&into->n, &rows[i].n);
			muted_add_unseen(&into->unseen, &rows[i].unseen);
			into->recorded += rows[i].recorded;
			add_hist(into, rows[i].hist);
			add_sizes(into, rows[i].sizes);
			free(rows[i].hist);
			free(rows[i].sizes);
			text_free(&rows[i].label);
			continue;
		}
		rows[kept++] = rows[i];
	}
	return kept;
}

/* ---- which entries make one row: a large machine has many more of those than of these ---- */

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Orders entries by the parts of which the label is made. */
static int by_row(const void *pa, const void *pb, void *ctx)
{
	const struct book *book = ctx;
	const struct book_entry *a = &book->entries[*(const uint32_t *)pa],
				*b = &book->entries[*(const uint32_t *)pb];
	enum book_by by = book->by;
	int d = order(a->what, b->what);

	if (!d)
		d = order(a->func, b->func);
	if (!d && a->what == BOOK_COPY)
		d = order(report_way_of_copy(a->sub), report_way_of_copy(b->sub));
	if (!d)
		d = order((uintptr_t)a->name, (uintptr_t)b->name);
	if (!d && (by == BOOK_BY_PROCESS || by == BOOK_BY_THREAD || by == BOOK_BY_STREAM))
		d = order((uint64_t)a->pid << 32 | a->start, (uint64_t)b->pid << 32 | b->start);
	/* two handles of a kernel with a name are one kernel */
	if (!d && by != BOOK_BY_FUNCTION && by != BOOK_BY_PROCESS &&
	    !(by == BOOK_BY_KERNEL && a->name))
		d = order(a->by, b->by);
	return d;
}

static bool has_calls(const struct book_entry *e)
{
	return e->n.calls || muted_calls(&e->muted) || muted_error(&e->muted.unseen);
}

/* The entries of a section, sorted so that those of one row are neighbours. NULL: no memory. */
static uint32_t *sort_section(const struct book *b, enum report_section s, size_t *n)
{
	uint32_t *list;

	*n = 0;
	for (size_t i = 0; i < b->nentries; i++)
		*n += in_section(&b->entries[i], s) && has_calls(&b->entries[i]);
	list = calloc(*n + 1, sizeof(*list));
	if (!list)
		return NULL;
	*n = 0;
	for (size_t i = 0; i < b->nentries; i++)
		if (in_section(&b->entries[i], s) && has_calls(&b->entries[i]))
			list[(*n)++] = (uint32_t)i;
	qsort_r(list, *n, sizeof(*list), by_row, (void *)(uintptr_t)b);
	return list;
}

static int make_rows(struct report *r, const struct book *b, const struct hash_map *names,
		     enum report_section s)
{
	void *ctx = (void *)(uintptr_t)b;
	size_t n, groups = 0;
	uint32_t *list = sort_section(b, s, &n);
	struct report_row *row = NULL;
	int err = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		groups += !i || by_row(&list[i - 1], &list[i], ctx);
	r->rows[s] = calloc(groups + 1, sizeof(*row));
	for (size_t i = 0; i < n && r->rows[s] && !err; i++) {
		const struct book_entry *e = &b->entries[list[i]];
		struct ct_sums all = book_all(e);

		if (!i || by_row(&list[i - 1], &list[i], ctx)) {
			row = &r->rows[s][r->nrows[s]++];
			label(&row->label, b, names, e);
			row->what = e->what;
		}
		row->shape = e->shape;
		book_add(&row->n, &all);
		book_add(&r->totals[s], &all);
		muted_add_unseen(&row->unseen, &e->muted.unseen);
		muted_add_unseen(&r->unseen[s], &e->muted.unseen);
		row->recorded += e->n.timed;
		if (!add_hist(row, e->hist) || !add_sizes(row, e->sizes) || row->label.bad)
			err = -ENOMEM;
	}
	free(list);
	return r->rows[s] ? err : -ENOMEM;
}

/* Drops a histogram that covers only a part of the calls (for example because there was no room
 * for others): it says nothing about all calls. The kernel side adds to a call's sums a moment
 * before its histogram. */
static void drop_partial(struct report_row *row)
{
	uint64_t n = 0;

	for (int i = 0; row->hist && i < CT_HIST_BUCKETS; i++)
		n += row->hist->n[i];
	if (n + n / 100 + 16 >= row->recorded)
		return;
	free(row->hist);
	row->hist = NULL;
}

static int make_section(struct report *r, const struct book *b, const struct hash_map *names,
			enum report_section s)
{
	struct ct_sums *total = &r->totals[s];
	int err = make_rows(r, b, names, s);

	if (err)
		return err;
	r->nrows[s] = merge(r->rows[s], r->nrows[s]);
	qsort(r->rows[s], r->nrows[s], sizeof(*r->rows[s]), by_time);
	for (size_t i = 0; i < r->nrows[s]; i++) {
		struct report_row *row = &r->rows[s][i];

		if (row->sizes)
			row->median_bytes =
				book_quantile_ns(&row->sizes->hist, &row->sizes->n, 0.5);
		row->share = total->ns	    ? (double)row->n.ns / (double)total->ns
			     : total->calls ? (double)row->n.calls / (double)total->calls
					    : 0;
		drop_partial(row);
		if (!row->hist)
			continue;
		row->median_ns = book_quantile_ns(row->hist, &row->n, 0.5);
		row->p90_ns = book_quantile_ns(row->hist, &row->n, 0.9);
		row->p99_ns = book_quantile_ns(row->hist, &row->n, 0.99);
	}
	return 0;
}

static int make_sections(struct report *r, const struct book *b)
{
	struct hash_map names;
	int err = learn_names(&names, b) ? 0 : -ENOMEM;

	for (int s = 0; s < REPORT_SECTION_END && !err; s++)
		err = make_section(r, b, &names, (enum report_section)s);
	hash_map_close(&names);
	return err;
}

struct report *report_make(const struct book *b)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->span_ns = b->last_ns - b->first_ns;
	r->entered.func = CT_NO_FUNC;
	if (b->entered)
		entered_sum(b->entered, &r->entered);
	r->busy_ns = busy_ns(&b->busy);
	r->ndevices = b->busy.ndevices;
	r->gauges = &b->gauges;
	for (size_t i = 0; i < b->nentries; i++)
		r->device |= b->entries[i].what != BOOK_CALL;
	for (size_t i = 0; i < b->nentries; i++) {
		r->odd_sizes += b->entries[i].n.odd;
		add_traffic(r, &b->entries[i]);
		if (b->entries[i].what == BOOK_CALL)
			add_launch(r, &b->entries[i]);
	}
	if (make_sections(r, b)) {
		report_free(r);
		return NULL;
	}
	for (int d = 0; d < API_DOMAIN_END; d++)
		r->timed |= r->totals[REPORT_CALLS + d].timed != 0;
	return r;
}

static double order_key(const struct report_row *row, enum report_order order)
{
	switch (order) {
	case REPORT_BY_CALLS: return (double)row->n.calls;
	case REPORT_BY_FAILED: return (double)row->n.failed;
	case REPORT_BY_AVG: return book_mean_ns(&row->n);
	case REPORT_BY_MAX: return (double)row->n.max_ns;
	case REPORT_BY_BYTES: return (double)row->n.bytes;
	case REPORT_BY_TIME:
	case REPORT_BY_NAME: break;
	}
	return 0;
}

static int by_order(const void *pa, const void *pb, void *ctx)
{
	enum report_order order = *(const enum report_order *)ctx;
	double a = order_key(pa, order), b = order_key(pb, order);

	if (order == REPORT_BY_NAME)
		return by_label(pa, pb);
	return a < b ? 1 : a > b ? -1 : by_time(pa, pb);
}

void report_sort(struct report *r, enum report_order order)
{
	for (int s = 0; s < REPORT_SECTION_END; s++)
		if (r->nrows[s])
			qsort_r(r->rows[s], r->nrows[s], sizeof(*r->rows[s]), by_order, &order);
}

void report_free(struct report *r)
{
	if (!r)
		return;
	for (int s = 0; s < REPORT_SECTION_END; s++) {
		for (size_t i = 0; r->rows[s] && i < r->nrows[s]; i++) {
			text_free(&r->rows[s][i].label);
			free(r->rows[s][i].hist);
			free(r->rows[s][i].sizes);
		}
		free(r->rows[s]);
	}
	free(r);
}

/* ---- occupancy ---- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

double report_occupancy(const struct book_shape *k, const struct ct_device *d)
{
	/* what hardware gives out: registers to a warp of one of four parts, shared memory to a
	 * block, from 8.0 on with a kibibyte that the driver takes of each */
	const uint64_t parts = 4, registers_at_once = 256;
	uint64_t shared_at_once = d->major >= 8 ? 128 : 256, taken = d->major >= 8 ? 1024 : 0;
	/* wide enough for any product of what a device or a file may claim */
	uint64_t warp = d->warp_size ? d->warp_size : 32, warps, blocks;

	if (!k->block || k->block > 1024 || k->registers > 256 || d->major < 7 || !d->max_warps ||
	    !d->max_blocks || warp > 1024)
		return -1;
	warps = (k->block + warp - 1) / warp;
	blocks = least(d->max_warps / warps, d->max_blocks);
	if (k->registers && d->max_registers) {
		uint64_t of_warp = round_up(k->registers * warp, registers_at_once);

		blocks = least(blocks, d->max_registers / parts / of_warp * parts / warps);
	}
	if (k->shared > d->max_shared && d->max_shared)
		return -1;
	if ((k->shared || taken) && d->max_shared)
		blocks = least(blocks, d->max_shared / round_up((uint64_t)k->shared + taken,
								shared_at_once));
	return (double)(blocks * warps) / (double)d->max_warps;
}

void report_calls(const struct report *r, struct ct_sums *all, struct ct_estimated *unseen)
{
	memset(all, 0, sizeof(*all));
	memset(unseen, 0, sizeof(*unseen));
	for (int d = 0; d < API_DOMAIN_END; d++) {
		if (!api_domains[d].folds)
			continue;
		book_add(all, &r->totals[REPORT_CALLS + d]);
		muted_add_unseen(unseen, &r->unseen[REPORT_CALLS + d]);
	}
}
