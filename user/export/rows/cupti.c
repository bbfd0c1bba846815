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
	char *early;  /* lines kept back; NULL: nothing is any more */
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

/* Keeps a line back. False: it must be written. */
static bool keep(struct cupti *c, struct out *o, const char *line, size_t n)
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
static const char *clean(char *buf, size_t size, const char *text, size_t n)
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
			clean(comm, sizeof(comm), ev->proc->comm, CT_COMM_LEN));
	c->pid = ev->rec->pid;
}

static void put_device(struct out *o, const struct ct_device *d)
{
	char name[128];

	out_fmt(o,
		"DEVICE %s (%u), capability %u.%u, global memory (bandwidth %" PRIu64
		" GB/s, size %" PRIu64 " MB), multiprocessors %u, clock %u MHz\n",
		clean(name, sizeof(name), d->name, d->name_len), d->id, d->major, d->minor,
		(uint64_t)d->bandwidth / 1000000000, (uint64_t)d->memory_bytes >> 20,
		d->multiprocessors, d->clock_khz / 1000);
}

static void put_context(struct out *o, const struct ct_context *c)
{
	out_fmt(o, "CONTEXT %u, device %d, compute API %s, NULL stream %d\n", c->id, (int)c->device,
		c->api == 1 ? "CUDA" : "unknown", (int)c->null_stream);
}

static int put_call(struct sink *s, const struct ct_call *call)
{
	const struct api_func *f = &api_funcs[call->func];
	struct cupti *c = s->priv;
	char line[256];
	int n = snprintf(line, sizeof(line), "%s_API %s [ %" PRIu64 " - %" PRIu64 " ]\n",
			 api_domain_name((enum api_domain)f->domain), f->name,
			 since(s, call->h.start_ns), since(s, call->h.end_ns));

	for (char *p = line; *p && *p != '_'; p++)
		*p = (char)toupper((unsigned char)*p);

	if (n > 0 && (size_t)n < sizeof(line) && !keep(c, s->opts->out, line, (size_t)n))
		out_mem(s->opts->out, line, (size_t)n);
	return 1;
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

static int put_work(struct sink *s, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	const struct ct_managed *managed = (const struct ct_managed *)w;
	const struct ct_memory *memory = (const struct ct_memory *)w;
	struct out *o = s->opts->out;
	char word[64];

	switch (w->h.kind) {
	case CT_KERNEL:
		out_str(o, "KERNEL \"");
		put_kernel_name(s->priv, o, ev);
		out_str(o, "\" ");
		break;
	case CT_COPY:
		out_fmt(o, "MEMCPY %s ", device_copy_kind(((const struct ct_copy *)w)->kind));
		break;
	case CT_SET: out_fmt(o, "MEMSET value=%u ", ((const struct ct_set *)w)->value); break;
	case CT_GRAPH: out_fmt(o, "GRAPH_TRACE %u ", w->graph); break;
	case CT_SYNC:
		out_fmt(o, "SYNCHRONIZATION %s ",
			capitals(word, sizeof(word),
				 device_sync_type(((const struct ct_sync *)w)->type)));
		break;
	case CT_MEMORY:
		out_fmt(o, "MEMORY %s 0x%" PRIx64 ", size %" PRIu64 " ",
			memory->op == CT_MEMORY_ALLOC ? "ALLOCATION" : "RELEASE",
			(uint64_t)memory->address, (uint64_t)memory->bytes);
		break;
	default:
		out_fmt(o, "UNIFIED_MEMORY_COUNTER %s 0x%" PRIx64 ", value %" PRIu64 " ",
			capitals(word, sizeof(word), device_managed_kind(managed->kind)),
			(uint64_t)managed->address, (uint64_t)managed->value);
		break;
	}
	put_span(s, w);
	if (w->h.kind == CT_COPY || w->h.kind == CT_SET)
		out_fmt(o, ", correlation %u/%u\n", ev->number, ev->number);
	else
		out_fmt(o, ", correlation %u\n", ev->number);
	return 1;
}

/* Writes device records that are not the program's work. Returns 1 if it wrote a line. */
static int put_other(struct sink *s, const struct ct_hdr *h)
{
	const struct ct_overhead *over = (const struct ct_overhead *)h;
	const struct ct_marker *marker = (const struct ct_marker *)h;
	char text[128], domain[128];
	struct out *o = s->opts->out;

	if (h->kind == CT_OVERHEAD) {
		out_fmt(o, "OVERHEAD %s [ %" PRIu64 " - %" PRIu64 " ] THREAD id %u\n",
			capitals(text, sizeof(text), device_overhead_kind(over->type)),
			since(s, h->start_ns), since(s, h->end_ns), h->tid);
		return 1;
	}
	if (h->kind == CT_MARKER) {
		out_fmt(o,
			"MARKER id %u [ %" PRIu64 " - %" PRIu64 " ], name \"%s\", domain \"%s\"\n",
			marker->id, since(s, h->start_ns), since(s, h->end_ns),
			clean(text, sizeof(text), marker->text, marker->text_len),
			clean(domain, sizeof(domain), marker->text + marker->text_len,
			      marker->domain_len));
		return 1;
	}
	if (h->kind == CT_LOST)
		out_fmt(o, "LOST %" PRIu64 " %s\n", (uint64_t)((const struct ct_lost *)h)->count,
			loss_name((enum ct_loss)((const struct ct_lost *)h)->cause));
	return 0;
}

static bool is_printed(uint16_t kind)
{
	return kind == CT_CALL || kind == CT_LOST || kind_is(kind, KIND_TIMED);
}

static int cupti_event(struct sink *s, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct cupti *c = s->priv;
	struct out *o = s->opts->out;
	int rows = 0;

	if (h->kind == CT_DEVICE && h->pid)
		put_device(o, (const struct ct_device *)h);
	else if (h->kind == CT_CONTEXT)
		put_context(o, (const struct ct_context *)h);
	if (!is_printed(h->kind) || (h->kind == CT_CALL && h->flags & CT_F_PENDING))
		return o->error;
	/* with several processes the order says whose a line is */
	if (c->early && (h->kind != CT_CALL || (c->pid && c->pid != h->pid)))
		write_early(c, o);
	if (h->kind != CT_LOST)
		put_process(c, o, ev);
	if (h->kind == CT_CALL)
		rows = put_call(s, (const struct ct_call *)h);
	else if (kind_is(h->kind, KIND_WORK))
		rows = put_work(s, ev);
	else
		rows = put_other(s, h);
	return o->error ? o->error : rows;
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
	.help = "one line a record, as CUPTI's samples print it",
	.open = cupti_open,
	.event = cupti_event,
	.close = cupti_close,
};
