/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cupti.c - one line for each record, in the words of CUPTI's activity samples, which other tools
 * read:
 *
 *   DEVICE NVIDIA H200 (0), capability 9.0, global memory (bandwidth 4800 GB/s, size 143771 MB),
 *   multiprocessors 132, clock 1980 MHz
 *   CONTEXT 1, device 0, compute API CUDA, NULL stream 1
 *   DRIVER_API cuCtxCreate [ 10223 - 15637 ]
 *   MEMCPY HtoD [ 22500 - 23012 ] device 0, context 1, stream 7, correlation 1/1
 *   KERNEL "vecAdd(...)" [ 32058 - 35224 ] device 0, context 1, stream 7, correlation 2
 *
 * Times are nanoseconds since the trace began. Devices and contexts come first: calls before the
 * first device work are held back until device work comes. Lines of another process than the one
 * before follow a PROCESS line. Knows no function by name.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/device.h"
#include "../../flow/sink.h"
#include "../../flow/table_text.h"
#include "../../util/table/array.h"

#define EARLY_MAX (1 << 20) /* bytes of lines kept back */

struct cupti {
	struct sink_opts names; /* how kernels are named */
	struct texts *kernels;
	uint32_t pid; /* of the last line; 0: there was none */
	char *early;  /* lines kept back; NULL: no more lines are kept back */
	size_t len, cap;
};

static int cupti_open(struct sink *s, const struct sink_opts *opts)
{
	struct cupti *c = calloc(1, sizeof(*c));

	s->opts = opts;
	s->priv = c;
	if (!c)
		return -ENOMEM;
	c->names = *opts;
	c->names.look.full_names = true;
	c->kernels = texts_open();
	if (!c->kernels)
		return -ENOMEM;
	if (opts->gpu) {
		c->cap = 4096;
		c->early = malloc(c->cap);
		if (!c->early)
			return -ENOMEM;
	}
	return 0;
}

static void write_early(struct cupti *c, struct out *o)
{
	out_mem(o, c->early, c->len);
	free(c->early);
	c->early = NULL;
}

/* Keeps a line back. Returns false if it must be written. */
static bool keep_early(struct cupti *c, struct out *o, const char *line, size_t n)
{
	if (!c->early)
		return false;
	if (c->len + n > EARLY_MAX) {
		write_early(c, o);
		return false;
	}
	if (!array_fit(c->early, c->cap, c->len + n)) {
		write_early(c, o);
		return false;
	}
	memcpy(c->early + c->len, line, n);
	c->len += n;
	return true;
}

static uint64_t since(const struct sink *s, uint64_t ns)
{
	return ns > s->opts->start_ns ? ns - s->opts->start_ns : 0;
}

/* What the target wrote, one character for each byte that has no place in a line. Returns buf. */
static const char *clean_text(char *buf, size_t size, const char *text, size_t n)
{
	size_t i = 0;

	for (; i < n && i + 1 < size && text[i]; i++)
		buf[i] = text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' ? text[i] : '?';
	buf[i] = '\0';
	return buf;
}

/* "command_buffer_full" in CUPTI's capitals. Returns buf. */
static const char *capitals(char *buf, size_t size, const char *word)
{
	size_t i = 0;

	for (; word[i] && i + 1 < size; i++)
		buf[i] = (char)toupper((unsigned char)word[i]);
	buf[i] = '\0';
	return buf;
}

static void put_process(struct cupti *c, struct out *o, const struct event *ev)
{
	char comm[CT_COMM_LEN];

	if (c->pid && c->pid != ev->rec->pid)
		out_fmt(o, "PROCESS %u \"%s\"\n", ev->proc->shown_pid,
			clean_text(comm, sizeof(comm), ev->proc->comm, CT_COMM_LEN));
	c->pid = ev->rec->pid;
}

static void put_device(struct out *o, const struct ct_device *d)
{
	char name[128];

	out_fmt(o,
		"DEVICE %s (%u), capability %u.%u, global memory (bandwidth %" PRIu64
		" GB/s, size %" PRIu64 " MB), multiprocessors %u, clock %u MHz\n",
		clean_text(name, sizeof(name), d->name, d->name_len), d->id, d->major, d->minor,
		(uint64_t)d->bandwidth / 1000000000, (uint64_t)d->memory_bytes >> 20,
		d->multiprocessors, d->clock_khz / 1000);
}

static void put_context(struct out *o, const struct ct_context *c)
{
	out_fmt(o, "CONTEXT %u, device %d, compute API %s, NULL stream %d\n", c->id, (int)c->device,
		c->api == 1 ? "CUDA" : "unknown", (int)c->null_stream);
}

static void put_lost(struct sink *s, const struct event *ev)
{
	const struct ct_lost *l = (const struct ct_lost *)ev->rec;

	out_fmt(s->opts->out, "LOST %" PRIu64 " %s\n", (uint64_t)l->count,
		loss_name((enum ct_loss)l->cause));
}

static void cupti_put_call(struct sink *s, const struct event *ev)
{
	const struct ct_call *call = (const struct ct_call *)ev->rec;
	const struct api_func *f = &api_funcs[call->func];
	struct cupti *c = s->priv;
	char line[256];
	int n = snprintf(line, sizeof(line), "%s_API %s [ %" PRIu64 " - %" PRIu64 " ]\n",
			 api_domain_name((enum api_domain)f->domain), f->name,
			 since(s, call->h.start_ns), since(s, call->h.end_ns));

	for (char *p = line; *p && *p != '_'; p++)
		*p = (char)toupper((unsigned char)*p);

	if (n > 0 && (size_t)n < sizeof(line) && !keep_early(c, s->opts->out, line, (size_t)n))
		out_mem(s->opts->out, line, (size_t)n);
}

/* [ start - end ] device 0, context 1, stream 7: CUPTI's -1 where a number is not known */
static void put_span(const struct sink *s, const struct ct_work *w)
{
	out_fmt(s->opts->out, "[ %" PRIu64 " - %" PRIu64 " ] device %d, context %d, stream %d",
		since(s, w->h.start_ns), since(s, w->h.end_ns), (int)w->device, (int)w->context,
		(int)w->stream);
}

static void put_kernel_name(struct cupti *c, struct out *o, const struct event *ev)
{
	const struct kernel_name *k = ev->kernel;
	const struct text *text = k ? texts_find(c->kernels, texts_key(k, k->cut), k->mangled)
				    : NULL;
	struct text *made;

	if (k && !text) {
		made = texts_add(c->kernels, texts_key(k, k->cut), k->mangled);
		if (made)
			table_kernel(made, &c->names, k);
		text = made;
	}
	if (text)
		out_mem(o, text->s, text->len);
	else
		out_str(o, "?");
}

static void cupti_put_kernel(struct sink *s, const struct event *ev)
{
	out_str(s->opts->out, "KERNEL \"");
	put_kernel_name(s->priv, s->opts->out, ev);
	out_str(s->opts->out, "\" ");
}

static void put_copy(struct sink *s, const struct event *ev)
{
	out_fmt(s->opts->out, "MEMCPY %s ",
		device_copy_kind(((const struct ct_copy *)ev->rec)->kind));
}

static void put_set(struct sink *s, const struct event *ev)
{
	out_fmt(s->opts->out, "MEMSET value=%u ", ((const struct ct_set *)ev->rec)->value);
}

static void put_graph(struct sink *s, const struct event *ev)
{
	out_fmt(s->opts->out, "GRAPH_TRACE %u ", ((const struct ct_work *)ev->rec)->graph);
}

static void put_sync(struct sink *s, const struct event *ev)
{
	char word[64];

	out_fmt(s->opts->out, "SYNCHRONIZATION %s ",
		capitals(word, sizeof(word),
			 device_sync_type(((const struct ct_sync *)ev->rec)->type)));
}

static void put_memory(struct sink *s, const struct event *ev)
{
	const struct ct_memory *m = (const struct ct_memory *)ev->rec;

	out_fmt(s->opts->out, "MEMORY %s 0x%" PRIx64 ", size %" PRIu64 " ",
		m->op == CT_MEMORY_ALLOC ? "ALLOCATION" : "RELEASE", (uint64_t)m->address,
		(uint64_t)m->bytes);
}

static void put_managed(struct sink *s, const struct event *ev)
{
	const struct ct_managed *m = (const struct ct_managed *)ev->rec;
	char word[64];

	out_fmt(s->opts->out, "UNIFIED_MEMORY_COUNTER %s 0x%" PRIx64 ", value %" PRIu64 " ",
		capitals(word, sizeof(word), device_managed_kind(m->kind)), (uint64_t)m->address,
		(uint64_t)m->value);
}

/* ---- device records that are not the program's work ---- */

static void put_overhead(struct sink *s, const struct event *ev)
{
	const struct ct_overhead *o = (const struct ct_overhead *)ev->rec;
	char text[128];

	out_fmt(s->opts->out, "OVERHEAD %s [ %" PRIu64 " - %" PRIu64 " ] THREAD id %u\n",
		capitals(text, sizeof(text), device_overhead_kind(o->type)),
		since(s, o->h.start_ns), since(s, o->h.end_ns), o->h.tid);
}

static void put_marker(struct sink *s, const struct event *ev)
{
	const struct ct_marker *m = (const struct ct_marker *)ev->rec;
	char text[128], domain[128];

	out_fmt(s->opts->out,
		"MARKER id %u [ %" PRIu64 " - %" PRIu64 " ], name \"%s\", domain \"%s\"\n", m->id,
		since(s, m->h.start_ns), since(s, m->h.end_ns),
		clean_text(text, sizeof(text), m->text, m->text_len),
		clean_text(domain, sizeof(domain), m->text + m->text_len, m->domain_len));
}

/* ---- events ---- */

static const struct cupti_row {
	void (*put)(struct sink *, const struct event *);
	bool pair; /* the correlation id stands twice, as in CUPTI's sample */
} rows[CT_KIND_END] = {
	[CT_KERNEL] = { cupti_put_kernel }, [CT_COPY] = { put_copy, true },
	[CT_SET] = { put_set, true },	    [CT_GRAPH] = { put_graph },
	[CT_SYNC] = { put_sync },	    [CT_MEMORY] = { put_memory },
	[CT_MANAGED] = { put_managed },	    [CT_CALL] = { cupti_put_call },
	[CT_LOST] = { put_lost },	    [CT_OVERHEAD] = { put_overhead },
	[CT_MARKER] = { put_marker },
};

static int cupti_event(struct sink *s, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	const struct cupti_row *row = h->kind < CT_KIND_END ? &rows[h->kind] : NULL;
	struct cupti *c = s->priv;
	struct out *o = s->opts->out;

	if (h->kind == CT_DEVICE && h->pid)
		put_device(o, (const struct ct_device *)h);
	else if (h->kind == CT_CONTEXT)
		put_context(o, (const struct ct_context *)h);
	if (!row || !(row->put || kind_is(h->kind, KIND_TIMED)) ||
	    (h->kind == CT_CALL && h->flags & CT_F_PENDING))
		return o->error;
	/* with several processes, the order says to which one a line belongs */
	if (c->early && (h->kind != CT_CALL || (c->pid && c->pid != h->pid)))
		write_early(c, o);
	if (h->kind != CT_LOST) /* also of a scope, which has no line */
		put_process(c, o, ev);
	if (!row->put)
		return o->error;
	row->put(s, ev);
	if (kind_is(h->kind, KIND_WORK)) {
		put_span(s, (const struct ct_work *)h);
		if (row->pair)
			out_fmt(o, ", correlation %u/%u\n", ev->number, ev->number);
		else
			out_fmt(o, ", correlation %u\n", ev->number);
	}
	return o->error ? o->error : h->kind != CT_LOST;
}

static int cupti_close(struct sink *s, const struct sink_end *end)
{
	struct cupti *c = s->priv;

	(void)end;
	if (!c)
		return 0;
	if (c->early)
		write_early(c, s->opts->out);
	texts_close(c->kernels);
	free(c);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_cupti = {
	.name = "cupti",
	.open = cupti_open,
	.event = cupti_event,
	.close = cupti_close,
};
