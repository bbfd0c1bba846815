/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * book.c - see book.h. Knows records; no source, no format.
 *
 * What is held is not taken from the account of event/memory: these sums are the kernel's own, which
 * adds up calls that have no records (count_memory() in bpf/count.bpf.h), and records must give the same.
 */
#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../event/gpus.h"
#include "book.h"
#include "../util/table/array.h"
#include "../util/table/kept.h"
#include "../../wire/control.h"

#define WORD(name, word, scopes, layers) word,
const char *const book_by_words[] = { BOOK_BY(WORD) NULL };

uint32_t book_scopes(uint8_t by)
{
#define SCOPES(name, word, scopes, layers) scopes,
	static const uint32_t kinds[] = { BOOK_BY(SCOPES) };

	return by < ARRAY_LEN(kinds) ? kinds[by] : 0;
}

uint32_t book_layers(uint8_t by)
{
#define LAYERS(name, word, scopes, layers) layers,
	static const uint32_t bits[] = { BOOK_BY(LAYERS) };

	return by < ARRAY_LEN(bits) ? bits[by] : 0;
}

#define HISTS_MAX 65536 /* each entry takes slightly more than 1 KiB */
#define NAMES_MAX 65536
#define NAMES_BYTES ((size_t)32 << 20)
#define HELD_MAX (1 << 20) /* allocations of recordings */
#define PROCESSES_MAX 65536

struct book_index {
	size_t nhists, nsizes, name_bytes;
	struct hash_map places; /* struct entry_place */
	struct hash_map names;	/* struct kept */
};

struct held {
	struct {
		uint64_t address, start;
		uint32_t pid, space;
	} key;
	uint64_t bytes;
	uint64_t taken_ns; /* when the call that took it had returned */
	/* bytes that were held at the address at that time; their free may still be under way.
	 * 0: none */
	uint64_t before;
	uint32_t by;  /* the entry that counts those bytes as freed by an unseen call */
	bool is_held; /* false: `before` is all that is known of the address */
};
/* a free that was under way when its address was reused returns within this time */
#define FREE_MAX_NS 1000000000ULL

/* A process that was reported. */
struct known {
	struct {
		uint32_t pid, start;
	} key;
	uint32_t shown_pid, nth;
	const char *host;
	char comm[CT_COMM_LEN];
};

struct key {
	uint64_t by, name;
	uint32_t pid, start;
	uint16_t func;
	uint8_t what, sub;
	uint32_t pad;
};
struct entry_place {
	struct key key;
	uint32_t at;
};

struct book *book_open(enum book_by by, bool hists, size_t max)
{
	struct book *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->index = calloc(1, sizeof(*b->index));
	if (!b->index) {
		free(b);
		return NULL;
	}
	hash_map_open_of(&b->index->places, struct entry_place, key, max ? max : BOOK_MAX);
	kept_open(&b->index->names, NAMES_MAX);
	hash_map_open(&b->processes, sizeof(struct known), sizeof(((struct known *)0)->key),
		      PROCESSES_MAX);
	hash_map_open(&b->held, sizeof(struct held), sizeof(((struct held *)0)->key), HELD_MAX);
	b->by = by;
	b->hists = hists;
	return b;
}

void book_close(struct book *b)
{
	struct kept *name;

	if (!b)
		return;
	for (size_t i = 0; i < b->nentries; i++) {
		free(b->entries[i].hist);
		free(b->entries[i].sizes);
	}
	entered_close(b->entered);
	busy_close(&b->busy);
	gauges_close(&b->gauges);
	hash_map_close(&b->held);
	hash_map_close(&b->processes);
	hash_map_each(&b->index->names, name) free(name->text);
	hash_map_close(&b->index->names);
	hash_map_close(&b->index->places);
	free(b->index);
	free(b->entries);
	free(b);
}

/* ---- names ---- */

/* The book's own copy of a name; NULL: no memory, or too many names. Known names are still found
 * when there are too many. */
static const char *book_intern(struct book *b, const char *name)
{
	struct book_index *x = b->index;
	char **place = name ? kept_place(&x->names, name) : NULL;
	size_t bytes = name ? strlen(name) + 1 : 0;

	b->unnamed |= name && (!place || (!*place && x->name_bytes + bytes > NAMES_BYTES));
	if (!place || *place || x->name_bytes + bytes > NAMES_BYTES)
		return place ? *place : NULL;
	*place = strdup(name);
	x->name_bytes += *place ? bytes : 0;
	return *place;
}

/* ---- entries ---- */

static struct key book_key_of(const struct book_entry *e)
{
	return (struct key){ .by = e->by,
			     .name = (uint64_t)(uintptr_t)e->name,
			     .pid = e->pid,
			     .start = e->start,
			     .func = e->func,
			     .what = e->what,
			     .sub = e->sub };
}

/* Finds or makes the entry with the key of `want`. NULL: there is no room. */
static struct book_entry *entry_get(struct book *b, const struct book_entry *want)
{
	const struct key k = book_key_of(want);
	struct entry_place *p = hash_map_look(&b->index->places, &k);

	if (p)
		return &b->entries[p->at];
	p = array_room(b->entries, b->nentries)
		    ? hash_map_get(&b->index->places, &k, &(bool){ false })
		    : NULL;
	if (!p)
		return NULL;
	p->at = (uint32_t)b->nentries;
	b->entries[b->nentries] = *want;
	return &b->entries[b->nentries++];
}

static struct ct_hist *hist_of(struct book *b, struct book_entry *e)
{
	if (!e->hist && b->hists && b->index->nhists < HISTS_MAX) {
		e->hist = calloc(1, sizeof(*e->hist));
		b->index->nhists += e->hist != NULL;
	}
	return e->hist;
}

/* ---- sums ---- */

static void add_square(struct ct_sums *n, uint64_t low, uint64_t high)
{
	uint64_t before = n->squares[0];

	n->squares[0] += low;
	n->squares[1] += high + (n->squares[0] < before);
}

/* Sums of all processes together stop at their end. */
static void book_add_up(__u64 *sum, uint64_t n)
{
	*sum = *sum + n < n ? UINT64_MAX : *sum + n;
}

void book_add(struct ct_sums *a, const struct ct_sums *b)
{
	if (b->timed && (!a->timed || b->min_ns < a->min_ns))
		a->min_ns = b->min_ns;
	if (b->timed && b->max_ns > a->max_ns)
		a->max_ns = b->max_ns;
	a->calls += b->calls;
	a->failed += b->failed;
	a->timed += b->timed;
	a->ns += b->ns;
	add_square(a, b->squares[0], b->squares[1]);
	book_add_up(&a->bytes, b->bytes);
	book_add_up(&a->threads, b->threads);
	book_add_up(&a->shared, b->shared);
	a->odd = a->odd + b->odd < a->odd ? UINT32_MAX : a->odd + b->odd;
}

/* As in wire/sums.h. */
static bool add_size(__u64 *sum, uint64_t size)
{
	if (size >= CT_SIZE_MOST || *sum >= CT_SUM_MOST)
		return false;
	*sum += size;
	return true;
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t p;

	return __builtin_mul_overflow(a, b, &p) ? CT_SIZE_MOST : p;
}

static void add_value(struct ct_sums *n, struct ct_hist *h, uint64_t v)
{
	unsigned __int128 square = (unsigned __int128)v * v;
	struct ct_sums one = { .timed = 1,
			       .ns = v,
			       .min_ns = v,
			       .max_ns = v,
			       .squares = { (uint64_t)square, (uint64_t)(square >> 64) } };

	book_add(n, &one);
	if (h)
		h->n[ct_hist_bucket(v)]++;
}

static void add_time(struct book *b, struct book_entry *e, uint64_t ns)
{
	add_value(&e->n, hist_of(b, e), ns);
}

static bool has_entered(struct book *b)
{
	if (!b->entered)
		b->entered = entered_open();
	return b->entered;
}

static void add_call_time(struct book *b, struct book_entry *e, const struct ct_call *c)
{
	uint64_t out = has_entered(b) ? entered_call(b->entered, c, (size_t)(e - b->entries)) : 0;

	add_time(b, e, c->h.end_ns - c->h.start_ns - out);
}

static unsigned __int128 square(uint64_t v)
{
	return (unsigned __int128)v * v;
}

/* Subtracts time from the sums of a call that was added before and whose duration this was. If several calls were
 * added, the maximum is not changed. */
static void leave_out(struct book *b, struct book_entry *e, uint64_t took_ns, uint64_t ns)
{
	unsigned __int128 sum = (unsigned __int128)e->n.squares[1] << 64 | e->n.squares[0];

	if (e->n.timed == 1 && ns <= e->n.ns) {
		uint64_t left = e->n.ns - ns;

		e->n.timed = e->n.ns = e->n.min_ns = e->n.max_ns = 0;
		e->n.squares[0] = e->n.squares[1] = 0;
		if (e->hist)
			memset(e->hist, 0, sizeof(*e->hist));
		add_time(b, e, left);
		return;
	}
	if (ns > took_ns || ns > e->n.ns || square(took_ns) > sum)
		return;
	e->n.ns -= ns;
	sum -= square(took_ns) - square(took_ns - ns);
	e->n.squares[0] = (uint64_t)sum;
	e->n.squares[1] = (uint64_t)(sum >> 64);
	if (!e->hist || !e->hist->n[ct_hist_bucket(took_ns)])
		return;
	e->hist->n[ct_hist_bucket(took_ns)]--;
	e->hist->n[ct_hist_bucket(took_ns - ns)]++;
}

static void add_bytes(struct book *b, struct book_entry *e, uint64_t bytes)
{
	if (!add_size(&e->n.bytes, bytes)) {
		e->n.odd++;
		return;
	}
	if (!e->sizes && b->index->nsizes < HISTS_MAX) {
		e->sizes = calloc(1, sizeof(*e->sizes));
		b->index->nsizes += e->sizes != NULL;
	}
	if (!e->sizes)
		return; /* the total was added already */
	e->sizes->n.calls++;
	add_value(&e->sizes->n, &e->sizes->hist, bytes);
}

double book_mean_ns(const struct ct_sums *n)
{
	return n->timed ? (double)n->ns / (double)n->timed : 0;
}

double book_deviation_ns(const struct ct_sums *n)
{
	long double mean, squares;

	if (n->timed < 2)
		return 0;
	mean = (long double)n->ns / (long double)n->timed;
	squares = ((long double)n->squares[1] * 18446744073709551616.0L +
		   (long double)n->squares[0]) /
		  (long double)n->timed;
	return squares > mean * mean ? (double)sqrtl(squares - mean * mean) : 0;
}

uint64_t book_bucket_ns(uint32_t b)
{
	return b < 8 ? 2ULL * b : (uint64_t)(8 + b % 8) << (b / 8);
}

static double bucket_begin(uint32_t b)
{
	return (double)book_bucket_ns(b);
}

uint64_t book_quantile_ns(const struct ct_hist *h, const struct ct_sums *n, double q)
{
	uint64_t all = 0, before = 0;
	double rank, ns = 0;

	for (int i = 0; i < CT_HIST_BUCKETS; i++)
		all += h->n[i];
	if (!all)
		return 0;
	rank = q * (double)all;
	for (uint32_t i = 0; i < CT_HIST_BUCKETS; i++) {
		if (!h->n[i] || (double)(before + h->n[i]) < rank) {
			before += h->n[i];
			continue;
		}
		/* From a tenth to eight tenths of the bucket: wherever in it the duration lies,
		 * the answer is within a tenth of it, since a bucket is at most an eighth wide. */
		ns = bucket_begin(i) +
		     (bucket_begin(i + 1) - bucket_begin(i)) *
			     (0.1 + 0.7 * (rank - (double)before) / (double)h->n[i]);
		break;
	}
	if (ns > (double)n->max_ns)
		return n->max_ns;
	return ns < (double)n->min_ns ? n->min_ns : (uint64_t)ns;
}

/* ---- events ---- */

static void seen(struct book *b, const struct ct_hdr *h)
{
	if (!b->first_ns || h->start_ns < b->first_ns)
		b->first_ns = h->start_ns;
	if (h->end_ns > b->last_ns)
		b->last_ns = h->end_ns;
}

static bool by_process(const struct book *b)
{
	return b->by == BOOK_BY_PROCESS || b->by == BOOK_BY_THREAD || b->by == BOOK_BY_STREAM;
}

/* Remembers which process has this number now. */
static struct known *learn_process(struct book *b, const struct process *p)
{
	struct known want = { .key = { p->pid, (uint32_t)(p->start_boottime_ns >> 10) } }, *k;
	bool made;

	k = hash_map_get(&b->processes, &want.key, &made);
	if (!k)
		return NULL;
	if (made) {
		k->shown_pid = p->shown_pid;
		k->nth = p->nth;
		memcpy(k->comm, p->comm, sizeof(k->comm));
	}
	if (!k->host && p->info && *p->info->host)
		k->host = book_intern(b, p->info->host);
	return k;
}

static void book_describe(struct book_entry *e, const struct known *k)
{
	e->shown_pid = k->shown_pid;
	e->nth = k->nth;
	e->host = k->host;
	memcpy(e->comm, k->comm, sizeof(e->comm));
}

static void of_process(struct book *b, struct book_entry *e, const struct event *ev)
{
	const struct known *k;

	if (!by_process(b))
		return;
	e->pid = ev->rec->pid;
	e->shown_pid = ev->proc->shown_pid;
	e->start = (uint32_t)(ev->proc->start_boottime_ns >> 10);
	memcpy(e->comm, ev->proc->comm, sizeof(e->comm));
	k = learn_process(b, ev->proc);
	if (k)
		book_describe(e, k);
}

/* Processes and threads may have other names than at the last event. Sums of a process that has
 * ended may come when another one has its number. */
static void name_entry(struct book *b, struct book_entry *e, const struct event *ev)
{
	if (!e->pid || e->start != (uint32_t)(ev->proc->start_boottime_ns >> 10))
		return;
	e->named = ++b->named;
	memcpy(e->comm, ev->proc->comm, sizeof(e->comm));
	if (b->by == BOOK_BY_THREAD && ev->thread && e->what == BOOK_CALL)
		memcpy(e->thread, ev->thread, sizeof(e->thread));
}

static int no_room(struct book *b, uint64_t n)
{
	b->no_room += n;
	return 1;
}

/* The value by which BOOK_BY_STREAM separates calls of a function. c: the call; NULL: it was
 * counted in the kernel, and `word` is the value found there. */
static uint64_t by_stream(const struct ct_call *c, uint16_t func, const struct ct_spec *spec,
			  uint64_t word)
{
	if (!api_takes_stream(func))
		return BOOK_NO_STREAM;
	if (spec->stream_word != CT_COUNT_NONE)
		return word;
	return c && api_stream(c, API_ARCH_HERE, &word) ? word : BOOK_STREAM_UNKNOWN;
}

/* Takes the kernel side's sums, which cover all calls so far, process by process. */
static int call_count(struct book *b, const struct event *ev)
{
	const struct ct_call_count *t = (const struct ct_call_count *)ev->rec;
	struct book_entry want = { .what = BOOK_CALL,
				   .sub = t->sub,
				   .func = t->func,
				   .by = t->by,
				   .pid = t->h.pid,
				   .start = t->start };
	const struct known *k;
	struct book_entry *e;
	struct ct_spec spec;
	struct ct_hist *h;

	if (b->by == BOOK_BY_STREAM && !api_spec(t->func, API_ARCH_HERE, true, &spec))
		want.by = by_stream(NULL, t->func, &spec, t->by);
	/* the kernel side has two sums for two handles of one kernel */
	if (b->by == BOOK_BY_KERNEL && ev->kernel)
		want.name = book_intern(b, ev->kernel->full);
	want.shown_pid = ev->proc->shown_pid;
	memcpy(want.comm, ev->proc->comm, sizeof(want.comm));
	k = hash_map_find(&b->processes, &(struct known){ .key = { want.pid, want.start } }.key);
	if (k)
		book_describe(&want, k);
	e = entry_get(b, &want);
	if (!e)
		return no_room(b, t->sums.calls);
	name_entry(b, e, ev);
	e->n = t->sums;
	e->muted.unseen = t->unseen;
	h = t->nbuckets == CT_HIST_BUCKETS ? hist_of(b, e) : NULL;
	if (h)
		memcpy(h, t->hist, sizeof(*h));
	return 1;
}

/* The word of a record's call by which calls are separated, as the kernel side does it. */
static uint64_t book_word_at(const struct ct_call *c, uint8_t word)
{
	return word < c->nwords ? c->words[word] : 0;
}

static uint64_t by_of(const struct book *b, const struct event *ev, const struct ct_spec *spec)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;

	switch (b->by) {
	case BOOK_BY_THREAD: return c->h.tid;
	case BOOK_BY_STREAM: return by_stream(c, c->func, spec, book_word_at(c, spec->stream_word));
	case BOOK_BY_DEVICE: return book_device(ev->proc, ev->device);
	case BOOK_BY_CGROUP: return ev->proc->cgroup_id;
	case BOOK_BY_KERNEL: return book_word_at(c, spec->func_word);
	default: return 0;
	}
}

static uint64_t volume(uint64_t x, uint64_t y, uint64_t z)
{
	return product(product(x, y), z);
}

static uint64_t threads_of(const struct ct_call *c, const struct ct_spec *spec)
{
	uint32_t at = spec->grid_word;
	const __u64 *w = &c->words[at];

	if (!spec->grid_how || at + (spec->grid_how == CT_GRID_DIM3 ? 4 : 6) > c->nwords)
		return 0;
	if (spec->grid_how == CT_GRID_DIM3)
		return product(volume((uint32_t)w[0], w[0] >> 32, (uint32_t)w[1]),
			       volume((uint32_t)w[2], w[2] >> 32, (uint32_t)w[3]));
	return product(volume((uint32_t)w[0], (uint32_t)w[1], (uint32_t)w[2]),
		       volume((uint32_t)w[3], (uint32_t)w[4], (uint32_t)w[5]));
}

void book_memory_add(struct book_memory *m, uint16_t func, const struct ct_sums *n)
{
	bool host = false;
	int sign = api_memory_sign(func, &host);
	int64_t *held = host ? &m->host_bytes : &m->device_bytes;

	if (!sign)
		return;
	m->calls += n->calls;
	/* unsigned, because a file may contain any number of bytes */
	*held = (int64_t)((uint64_t)*held + (sign > 0 ? n->bytes - n->unheld_bytes : -n->bytes));
	if (sign > 0)
		m->forgotten += n->unheld;
	else
		m->unknown += n->unsized;
}

/*
 * Records come in the order in which calls returned: one thread's free may come after another
 * thread's allocation that was given the same address. So a free that began before that allocation
 * returned frees what was held there before.
 */
static void add_freed(struct book *b, struct ct_sums *n, const struct ct_call *c, struct held *h)
{
	if (h && h->before && c->h.start_ns < h->taken_ns) {
		n->bytes += h->before;
		b->entries[h->by].n.unheld_bytes -= h->before;
		h->before = 0;
		if (!h->is_held)
			hash_map_remove(&b->held, h);
	} else if (h && h->is_held) {
		n->bytes += h->bytes;
		h->is_held = false;
		if (!h->before || c->h.end_ns - h->taken_ns > FREE_MAX_NS)
			hash_map_remove(&b->held, h);
	} else {
		n->unsized++;
	}
}

/* Handles an address that is returned by an allocation while it is held: its free was not seen,
 * or not yet. */
static void add_taken(struct book *b, struct book_entry *e, const struct ct_call *c, struct held *h,
		      uint64_t bytes)
{
	if (!h) {
		e->n.unheld++;
		e->n.unheld_bytes += bytes;
		return;
	}
	if (h->is_held) {
		e->n.unheld_bytes += h->bytes;
		h->before = h->bytes;
		h->by = (uint32_t)(e - b->entries);
		h->taken_ns = c->h.end_ns;
	}
	h->bytes = bytes;
	h->is_held = true;
}

/* Adds what a call takes or frees: the same sums as the kernel side makes (count_memory in
 * bpf/count.bpf.h). */
static void book_add_memory(struct book *b, struct book_entry *e, const struct event *ev,
			    const struct ct_spec *spec)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	enum api_memory_what what;
	struct api_memory m;
	struct held want;
	bool made;

	if (!spec->memory_how || c->depth)
		return;
	what = api_memory(c, API_ARCH_HERE, &m);
	want = (struct held){ .key = { m.address, ev->proc->start_boottime_ns, c->h.pid,
				       spec->memory_space } };
	if (what == API_MEMORY_FREED)
		add_freed(b, &e->n, c, hash_map_find(&b->held, &want.key));
	else if (what == API_MEMORY_TAKEN)
		add_taken(b, e, c, hash_map_get(&b->held, &want.key, &made),
			  m.bytes < CT_SIZE_MOST ? m.bytes : 0);
}

static int book_call(struct book *b, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct book_entry want = { .what = BOOK_CALL, .func = c->func }, *e;
	struct ct_spec spec;
	int64_t size;
	bool fits;

	if (c->h.flags & CT_F_PENDING || api_spec(c->func, API_ARCH_HERE, true, &spec))
		return 0;
	of_process(b, &want, ev);
	want.by = by_of(b, ev, &spec);
	if (b->by == BOOK_BY_KERNEL && want.by && ev->kernel) {
		want.name = book_intern(b, ev->kernel->full);
		want.by = want.name ? 0 : want.by;
	}
	want.sub = (uint8_t)((spec.kind_word != CT_COUNT_NONE
				      ? book_word_at(c, spec.kind_word) & CT_SUB_KIND
				      : 0) |
			     (book_word_at(c, spec.stream_word) > 2 ? CT_SUB_STREAM : 0));
	e = entry_get(b, &want);
	if (!e)
		return no_room(b, 1);
	name_entry(b, e, ev);
	e->n.calls++;
	e->n.failed += api_failed(c);
	if (!(c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN)))
		add_call_time(b, e, c);
	size = api_failed(c) ? 0 : api_size(c, API_ARCH_HERE);
	fits = size <= 0 || add_size(&e->n.bytes, (uint64_t)size);
	if (spec.grid_how) {
		fits &= add_size(&e->n.threads, threads_of(c, &spec));
		fits &= add_size(&e->n.shared, book_word_at(c, spec.shared_word));
	}
	e->n.odd += !fits;
	book_add_memory(b, e, ev, &spec);
	return 1;
}

/* Adds calls that have no records of their own. Their stream, device and kernel are not known. */
static int book_muted(struct book *b, const struct event *ev)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;
	int func = muted_func(m);
	struct book_entry want = { .what = BOOK_CALL, .func = (uint16_t)func }, *e;

	if (func < 0)
		return 0;
	of_process(b, &want, ev);
	want.by = b->by == BOOK_BY_THREAD   ? m->h.tid
		  : b->by == BOOK_BY_DEVICE ? CT_UNKNOWN
		  : b->by == BOOK_BY_CGROUP ? ev->proc->cgroup_id
					    : 0;
	e = entry_get(b, &want);
	if (!e)
		return no_room(b, m->counted);
	muted_add(&e->muted, m);
	return 0; /* the totals count these calls separately */
}

struct ct_sums book_all(const struct book_entry *e)
{
	struct ct_sums all = e->n, more = { .calls = e->muted.counted,
					    .failed = e->muted.failed,
					    .timed = e->muted.timed,
					    .ns = e->muted.ns };
	uint64_t unseen = muted_unseen(&e->muted.unseen);

	/* the squares of missing records are not known: they are assumed to be like the others */
	if (more.timed) {
		long double mean = (long double)more.ns / (long double)more.timed;

		more.squares[0] = muted_whole(mean * mean * (long double)more.timed);
		more.min_ns = all.timed ? all.min_ns : muted_whole(mean);
		more.max_ns = all.timed ? all.max_ns : muted_whole(mean);
		book_add(&all, &more);
	} else {
		all.calls += more.calls;
		all.failed += more.failed;
	}
	if (unseen && all.timed && all.calls) {
		long double k = 1 + (long double)unseen / (long double)all.calls;
		long double squares = ((long double)all.squares[1] * 18446744073709551616.0L +
				       (long double)all.squares[0]) *
				      k;

		all.ns = muted_whole((long double)all.ns * k);
		all.timed = muted_whole((long double)all.timed * k);
		all.squares[1] = muted_whole(squares / 18446744073709551616.0L);
		all.squares[0] = muted_whole(squares -
					     (long double)all.squares[1] * 18446744073709551616.0L);
	}
	/* calls that take and free memory are each counted */
	if (unseen && all.calls) {
		long double k = 1 + (long double)unseen / (long double)all.calls;

		all.bytes = muted_whole((long double)all.bytes * k);
		all.threads = muted_whole((long double)all.threads * k);
		all.shared = muted_whole((long double)all.shared * k);
	}
	all.calls += unseen;
	return all;
}

static int device_work(struct book *b, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	const struct ct_kernel *k = (const struct ct_kernel *)w;
	struct book_entry want = { .func = CT_NO_FUNC }, *e;

	of_process(b, &want, ev);
	if (b->by == BOOK_BY_DEVICE)
		want.by = book_device(ev->proc, w->device);
	else if (b->by == BOOK_BY_STREAM)
		want.by = w->stream == CT_UNKNOWN ? BOOK_STREAM_UNKNOWN : w->stream;
	switch (w->h.kind) {
	case CT_KERNEL:
		want.what = BOOK_KERNEL;
		want.name = ev->kernel ? book_intern(b, ev->kernel->full) : NULL;
		break;
	case CT_COPY:
		want.what = BOOK_COPY;
		want.sub = ((const struct ct_copy *)w)->kind;
		break;
	default: want.what = BOOK_SET;
	}
	e = entry_get(b, &want);
	if (!e)
		return no_room(b, 1);
	name_entry(b, e, ev);
	e->n.calls++;
	if (!(w->h.flags & CT_F_NO_TIME))
		add_time(b, e, w->h.end_ns - w->h.start_ns);
	if (w->h.kind == CT_COPY) {
		add_bytes(b, e, ((const struct ct_copy *)w)->bytes);
	} else if (w->h.kind == CT_SET) {
		add_bytes(b, e, ((const struct ct_set *)w)->bytes);
	} else {
		uint64_t block = volume(k->block[0], k->block[1], k->block[2]);
		bool fits;

		e->shape = (struct book_shape){ .block = (uint32_t)block,
						.registers = k->registers,
						.shared = k->static_shared + k->dynamic_shared,
						.device = w->device };
		if (!(w->h.flags & CT_F_NO_TIME))
			busy_add(&b->busy, ev->gpu ? 0 : w->h.pid,
				 ev->gpu ? ev->gpu->number : w->device, w->h.start_ns, w->h.end_ns);
		fits = add_size(&e->n.threads,
				product(volume(k->grid[0], k->grid[1], k->grid[2]), block));
		fits &= add_size(&e->n.shared, k->dynamic_shared);
		e->n.odd += !fits;
	}
	return 1;
}

/* Handles the record that an agent has come into a process, inside a call that may have been added before. */
static int entered(struct book *b, const struct event *ev)
{
	struct entered_in in;

	if (!has_entered(b))
		return -ENOMEM;
	if (entered_record(b->entered, ev->rec, &in) && in.at < b->nentries)
		leave_out(b, &b->entries[in.at], in.took_ns, in.ns);
	return 0;
}

/* The only function of the process of which a call took so long. CT_NO_FUNC: there are several. */
static uint16_t only_long(const struct book *b, const struct ct_hdr *h, struct book_entry **in)
{
	uint16_t func = CT_NO_FUNC;

	*in = NULL;
	for (size_t i = 0; i < b->nentries; i++) {
		struct book_entry *e = &b->entries[i];

		if (e->what != BOOK_CALL || (e->pid && e->pid != h->pid) ||
		    e->n.max_ns < h->end_ns - h->start_ns)
			continue;
		if (*in && func != e->func)
			return CT_NO_FUNC;
		func = e->func;
		if (!*in || e->n.max_ns > (*in)->n.max_ns)
			*in = e;
	}
	return func;
}

void book_leave_entered(struct book *b)
{
	struct book_entry *e;
	struct ct_hdr *h;
	size_t i = 0;

	while (b->entered && (h = entered_next(b->entered, &i))) {
		uint16_t func = only_long(b, h, &e);

		if (func == CT_NO_FUNC)
			continue;
		leave_out(b, e, e->n.max_ns, h->end_ns - h->start_ns);
		entered_found(b->entered, h, func);
	}
}

int book_event(struct book *b, const struct event *ev)
{
	b->gpus = ev->gpus ? ev->gpus : b->gpus;
	switch (ev->rec->kind) {
	case CT_PROCESS:
		if (by_process(b))
			learn_process(b, ev->proc);
		return 0;
	case CT_CALL: seen(b, ev->rec); return book_call(b, ev);
	case CT_CALL_COUNT: seen(b, ev->rec); return call_count(b, ev);
	case CT_MUTED: seen(b, ev->rec); return book_muted(b, ev);
	case CT_KERNEL:
	case CT_COPY:
	case CT_SET: seen(b, ev->rec); return device_work(b, ev);
	case CT_ENTERED: return entered(b, ev);
	case CT_COUNTER: return gauges_event(&b->gauges, ev);
	default: return 0;
	}
}
