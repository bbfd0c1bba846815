/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_counters.c - see kernel_counters.h. Knows only records. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_counters.h"

#define SAMPLED_MAX 64
#define VALUE_MAX 1e18 /* largest accepted share in percent, so that no sum of shares is infinite */
#define METRICS_MAX 1024
#define SAMPLES_MIN 256
/* the newest ones of one device, enough for a minute at 1 ms; a power of two */
#define SAMPLES_MAX 65536

static const char *const names[KERNEL_COUNTER_END] = { "sm", "dram", "l2_hit" };
static const char *const labels[KERNEL_COUNTER_END] = { "device_sm", "device_dram",
							"device_l2_hit" };

struct sample {
	uint64_t start_ns, end_ns;
	float percent[KERNEL_COUNTER_END]; /* NAN: not known */
};

/* A device, by the machine's number, with a ring of its samples in the order of their ends. */
struct sampled {
	bool known;
	uint8_t uuid[16];
	struct sample *ring;
	uint32_t cap;
	/* positions that only grow: the samples [first, next) are in the ring */
	uint64_t first, next;
};

struct kernel_counters_table {
	struct sampled gpus[SAMPLED_MAX];
	/* by the metric's id: 1 + enum kernel_counter; 0: a metric that is not used here */
	uint8_t roles[METRICS_MAX];
	const struct devices *devices; /* of processes */
	struct kernel_counters answer;
};

struct kernel_counters_table *kernel_counters_open(const struct devices *devices)
{
	struct kernel_counters_table *t = calloc(1, sizeof(*t));

	if (t)
		t->devices = devices;
	return t;
}

void kernel_counters_close(struct kernel_counters_table *t)
{
	if (!t)
		return;
	for (int i = 0; i < SAMPLED_MAX; i++)
		free(t->gpus[i].ring);
	free(t);
}

/* ---- devices ---- */

static void learn_device(struct kernel_counters_table *t, const struct ct_device *d)
{
	static const uint8_t none[16];

	if (d->h.pid || d->id >= SAMPLED_MAX)
		return;
	memcpy(t->gpus[d->id].uuid, d->uuid, sizeof(d->uuid));
	t->gpus[d->id].known = memcmp(d->uuid, none, sizeof(none)) != 0;
}

static struct sampled *gpu_of(struct kernel_counters_table *t, uint32_t pid, uint32_t id)
{
	const struct device_facts *o = devices_find(t->devices, pid, id);

	for (int i = 0; o && i < SAMPLED_MAX; i++)
		if (t->gpus[i].known && !memcmp(t->gpus[i].uuid, o->uuid, sizeof(o->uuid)))
			return &t->gpus[i];
	return NULL;
}

/* ---- samples ---- */

static void learn_metric(struct kernel_counters_table *t, const struct ct_metric *m)
{
	if (m->id >= METRICS_MAX)
		return;
	t->roles[m->id] = 0;
	for (int i = 0; i < KERNEL_COUNTER_END; i++)
		if (m->name_len == strlen(names[i]) && !memcmp(m->text, names[i], m->name_len))
			t->roles[m->id] = (uint8_t)(i + 1);
}

/* Makes room for one more sample; if the ring is full, the oldest sample is dropped. */
static int grow(struct sampled *g)
{
	uint32_t cap = g->cap ? g->cap * 2 : SAMPLES_MIN;
	struct sample *ring;

	if (g->next - g->first < g->cap)
		return 0;
	if (g->cap == SAMPLES_MAX) {
		g->first++;
		return 0;
	}
	ring = malloc(cap * sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = g->first; g->cap && i < g->next; i++)
		ring[i % cap] = g->ring[i % g->cap];
	free(g->ring);
	g->ring = ring;
	g->cap = cap;
	return 0;
}

static struct sample *at(const struct sampled *g, uint64_t i)
{
	return &g->ring[i % g->cap];
}

static int learn_sample(struct kernel_counters_table *t, const struct ct_counter *c)
{
	struct sample s = { .start_ns = c->h.start_ns, .end_ns = c->h.end_ns };
	bool any = false;
	struct sampled *g;
	int err;

	for (int i = 0; i < KERNEL_COUNTER_END; i++)
		s.percent[i] = NAN;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct ct_value *v = &c->values[i];
		uint8_t role = v->metric < METRICS_MAX ? t->roles[v->metric] : 0;
		double d;

		memcpy(&d, &v->bits, sizeof(d));
		if (!role || v->flags & CT_VALUE_SUSPECT || !(fabs(d) < VALUE_MAX))
			continue;
		s.percent[role - 1] = (float)d;
		any = true;
	}
	if (!any || c->device >= SAMPLED_MAX || s.end_ns <= s.start_ns)
		return 0;
	g = &t->gpus[c->device];
	/* The search needs the samples in order. A source hands them out in order; a late sample
	 * is ignored, because it is not worth a sort. */
	if (g->next > g->first && s.end_ns <= at(g, g->next - 1)->end_ns)
		return 0;
	err = grow(g);
	if (!err)
		*at(g, g->next++) = s;
	return err;
}

int kernel_counters_record(struct kernel_counters_table *t, const struct ct_hdr *rec)
{
	switch (rec->kind) {
	case CT_DEVICE: learn_device(t, (const struct ct_device *)rec); return 0;
	case CT_METRIC: learn_metric(t, (const struct ct_metric *)rec); return 0;
	case CT_COUNTER:
		if (rec->pid)
			return 0; /* a process's share of a device */
		return learn_sample(t, (const struct ct_counter *)rec);
	default: return 0;
	}
}

/* The first sample that ends after `ns`. */
static uint64_t first_after(const struct sampled *g, uint64_t ns)
{
	uint64_t low = g->first, high = g->next;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (at(g, mid)->end_ns > ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void add_up(struct kernel_counters *k, const struct sampled *g, uint64_t from,
		   uint64_t until_ns)
{
	double weight[KERNEL_COUNTER_END] = { 0 };

	for (uint64_t i = from; i < g->next && at(g, i)->end_ns <= until_ns; i++) {
		const struct sample *s = at(g, i);
		double ns = (double)(s->end_ns - s->start_ns);

		k->samples++;
		for (int m = 0; m < KERNEL_COUNTER_END; m++) {
			if (isnan(s->percent[m]))
				continue;
			k->percent[m] += (double)s->percent[m] * ns;
			weight[m] += ns;
		}
	}
	for (int m = 0; m < KERNEL_COUNTER_END; m++) {
		k->known[m] = weight[m] > 0;
		k->percent[m] = k->known[m] ? k->percent[m] / weight[m] : 0;
	}
}

const struct kernel_counters *kernel_counters_of(struct kernel_counters_table *t,
						 const struct ct_kernel *k)
{
	const struct ct_hdr *h = &k->w.h;
	const struct sampled *g = gpu_of(t, h->pid, k->w.device);
	const struct sample *s;
	uint64_t from;

	if (!g || g->first == g->next || h->flags & CT_F_NO_TIME || h->end_ns <= h->start_ns)
		return NULL;
	from = first_after(g, h->start_ns);
	if (from < g->next && at(g, from)->start_ns < h->start_ns)
		from++; /* began before the kernel did */
	if (from >= g->next)
		return NULL;
	s = at(g, from);
	if (s->end_ns > h->end_ns || h->end_ns - h->start_ns < 2 * (s->end_ns - s->start_ns))
		return NULL;
	memset(&t->answer, 0, sizeof(t->answer));
	add_up(&t->answer, g, from, h->end_ns);
	return &t->answer;
}

int kernel_counters_fields(const struct kernel_counters *k, struct field *out, int max)
{
	int n = 0;

	for (int m = 0; k && m < KERNEL_COUNTER_END && n < max; m++) {
		if (!k->known[m])
			continue;
		memset(&out[n], 0, sizeof(out[n]));
		out[n].name = out[n].label = labels[m];
		out[n].type = FIELD_FLOAT;
		/* round to the precision of the samples */
		out[n++].f = round(k->percent[m] * 10) / 10;
	}
	return n;
}
