/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode.c - turns a call's record into fields: inputs in the order of the header, then outputs,
 * then the return value.
 *
 * It runs for every row that is printed: no allocation, no search, strings stay in the record. A
 * record whose lengths were checked may still contain any values: every value is used as it is, and
 * every index is checked again here.
 */
#include "abi.h"
#include "layout.h"
#include "xlat.h"

#include <string.h>

struct decoder {
	struct field *out;
	int n, max; /* n: fields written; max: room, minus one for each open struct or list */
	const struct ct_call *call;
	const struct api_func *f;
	const struct abi_plan *plan;
	struct abi_reads reads;
};

/* The label of a row's argument, or of a struct's member. */
struct label {
	const char *name, *label;
	bool out;
};

static struct field *decode_add(struct decoder *d, const struct label *l, uint8_t type)
{
	struct field *f;

	if (d->n >= d->max)
		return NULL;
	f = &d->out[d->n++];
	memset(f, 0, sizeof(*f));
	f->name = l->name;
	f->label = l->label;
	f->type = type;
	f->out = l->out;
	return f;
}

static bool open_group(struct decoder *d, const struct label *l, bool is_list, bool cut)
{
	struct field *f;

	if (d->n + 2 > d->max)
		return false;
	f = decode_add(d, l, FIELD_OPEN);
	f->is_list = is_list;
	f->cut = cut;
	d->max--;
	return true;
}

static void close_group(struct decoder *d)
{
	static const struct label none;

	d->max++;
	decode_add(d, &none, FIELD_CLOSE);
}

static void add_absent(struct decoder *d, const struct label *l, uint8_t type, uint64_t ptr)
{
	struct field *f = decode_add(d, l, type == FIELD_OPEN ? FIELD_PTR : type);

	if (!f)
		return;
	f->absent = true;
	f->u = ptr;
}

static uint64_t narrow(uint64_t v, int width, bool is_signed)
{
	switch (width) {
	case 1: return is_signed ? (uint64_t)(int8_t)v : (uint8_t)v;
	case 2: return is_signed ? (uint64_t)(int16_t)v : (uint16_t)v;
	case 4: return is_signed ? (uint64_t)(int32_t)v : (uint32_t)v;
	default: return v;
	}
}

static uint64_t decode_load(const uint8_t *p, int width)
{
	uint64_t v = 0;

	memcpy(&v, p, width > 8 ? 8 : (size_t)width);
	return v;
}

static void add_number(struct decoder *d, const struct label *l, uint8_t type, uint64_t v,
		       const struct xlat *x)
{
	struct field *f = decode_add(d, l, type);

	if (!f)
		return;
	f->xlat = x;
	f->u = v;
}

static void add_dim3(struct decoder *d, const struct label *l, const void *p)
{
	struct field *f = decode_add(d, l, FIELD_DIM3);

	if (f)
		memcpy(f->dim, p, sizeof(f->dim));
}

static void add_bytes(struct decoder *d, const struct label *l, uint8_t type, const uint8_t *p,
		      uint32_t len, bool cut)
{
	struct field *f = decode_add(d, l, type);

	if (!f)
		return;
	f->str = (const char *)p;
	f->str_len = type == FIELD_STR ? (uint32_t)strnlen((const char *)p, len) : len;
	f->cut = cut;
}

/* A value of `width` bytes in memory. */
static void add_loaded(struct decoder *d, const struct label *l, uint8_t type, const uint8_t *p,
		       int width, bool is_signed, const struct xlat *x)
{
	struct field *f;
	float single;

	if (type == FIELD_FLOAT) {
		f = decode_add(d, l, type);
		if (!f)
			return;
		if (width == 8) {
			memcpy(&f->f, p, 8);
		} else {
			memcpy(&single, p, 4);
			f->f = single;
			f->single = true;
		}
	} else if (type == FIELD_DIM3) {
		add_dim3(d, l, p);
	} else if (type == FIELD_BYTES || type == FIELD_STR) {
		add_bytes(d, l, type, p, (uint32_t)width, false);
	} else {
		add_number(d, l, type, narrow(decode_load(p, width), width, is_signed), x);
	}
}

static void add_struct(struct decoder *d, const struct label *l, const struct api_struct *s,
		       const uint8_t *p, uint32_t len, uint32_t selector,
		       const struct api_arg *top);

/* The list that a struct's member points to (cudaLaunchConfig's attrs): read along with the
 * row's argument `top`. */
static void add_member_list(struct decoder *d, const struct label *l, const struct api_member *m,
			    const uint8_t *p, const struct api_arg *top)
{
	static const struct label element;
	uint8_t read = top ? d->plan->args[top - d->f->args].read2 : ABI_NONE;
	uint32_t len;

	if (read == ABI_NONE || !d->reads.at[read]) {
		if (decode_load(p + m->count_off, 4))
			add_absent(d, l, FIELD_PTR, decode_load(p + m->off, 8));
		else if (open_group(d, l, true, false))
			close_group(d);
		return;
	}
	len = d->reads.len[read];
	if (!open_group(d, l, true, d->reads.cut[read]))
		return;
	for (uint32_t at = 0; at + m->layout->size <= len; at += m->layout->size)
		add_struct(d, &element, m->layout, d->reads.at[read] + at, m->layout->size, 0,
			   NULL);
	close_group(d);
}

static void add_member(struct decoder *d, const struct label *l, const struct api_member *m,
		       const uint8_t *p, uint32_t len, uint32_t selector, const struct api_arg *top)
{
	static const struct label element;

	if (m->list) {
		add_member_list(d, l, m, p, top);
	} else if (m->layout) {
		if (m->selector)
			selector = (uint32_t)decode_load(p + m->selector, 4);
		add_struct(d, l, m->layout, p + m->off, len - m->off, selector, NULL);
	} else if (m->n) {
		if (!open_group(d, l, true, false))
			return;
		for (int i = 0; i < m->n && (uint32_t)(m->off + (i + 1) * m->width) <= len; i++)
			add_loaded(d, &element, m->type, p + m->off + i * m->width, m->width,
				   m->is_signed, m->xlat);
		close_group(d);
	} else {
		add_loaded(d, l, m->type, p + m->off, m->width, m->is_signed, m->xlat);
	}
}

static void add_struct(struct decoder *d, const struct label *l, const struct api_struct *s,
		       const uint8_t *p, uint32_t len, uint32_t selector, const struct api_arg *top)
{
	/* A value whose width another argument selects is not shown as a struct: the member gets
	 * the argument's name. */
	bool flat = top && top->by && s->nested, none = flat;

	if (len < s->used) {
		add_absent(d, l, FIELD_PTR, 0);
		return;
	}
	if (s->selector >= 0)
		selector = (uint32_t)decode_load(p + s->selector, 4);
	if (!flat && !open_group(d, l, false, false))
		return;
	for (int i = 0; i < s->nmembers; i++) {
		const struct api_member *m = &s->members[i];
		const struct label ml = { m->name, m->name, l->out };

		if (m->cases && !(selector < 32 && m->cases >> selector & 1))
			continue;
		none = false;
		add_member(d, flat ? l : &ml, m, p, len, selector, top);
	}
	if (none)
		add_absent(d, l, FIELD_PTR, d->call->words[d->plan->args[top - d->f->args].word]);
	if (!flat)
		close_group(d);
}

/* The value of an argument that another one refers to: a word, or what was read through it. */
static bool arg_value(const struct decoder *d, int arg, uint64_t *v)
{
	const struct api_arg *a = &d->f->args[arg];
	const struct abi_arg *w = &d->plan->args[arg];

	if (a->dir == API_IN && !a->deref) {
		if (w->word >= d->call->nwords)
			return false;
		*v = narrow(d->call->words[w->word], a->width, a->is_signed);
		return true;
	}
	if (w->read == ABI_NONE || !d->reads.at[w->read])
		return false;
	*v = narrow(decode_load(d->reads.at[w->read], a->width), a->width, a->is_signed);
	return true;
}

static void add_list(struct decoder *d, const struct label *l, const struct api_arg *a,
		     const struct abi_arg *w, uint64_t ptr)
{
	static const struct label element;
	uint64_t count;
	uint32_t len;

	if (!d->reads.at[w->read]) {
		/* Nothing is read of an empty list. */
		if (w->count != ABI_NONE && arg_value(d, w->count, &count) && !(uint32_t)count &&
		    ptr) {
			if (open_group(d, l, true, false))
				close_group(d);
		} else {
			add_absent(d, l, FIELD_PTR, ptr);
		}
		return;
	}
	len = d->reads.len[w->read];
	if (!open_group(d, l, true, d->reads.cut[w->read]))
		return;
	for (uint32_t at = 0; at + a->width <= len; at += a->width) {
		const uint8_t *p = d->reads.at[w->read] + at;

		if (a->layout)
			add_struct(d, &element, a->layout, p, a->width, 0, NULL);
		else
			add_loaded(d, &element, a->type, p, a->width, a->is_signed, a->xlat);
	}
	close_group(d);
}

/* Adds what an argument's pointer points to. */
static void add_read(struct decoder *d, const struct label *l, const struct api_arg *a,
		     const struct abi_arg *w)
{
	uint64_t ptr = w->word < d->call->nwords ? d->call->words[w->word] : 0, selector = 0;
	uint8_t read = w->read;

	if (a->count) {
		add_list(d, l, a, w, ptr);
		return;
	}
	if (a->type == FIELD_STR && w->read2 != ABI_NONE)
		read = w->read2;
	if (!d->reads.at[read]) {
		add_absent(d, l, a->type, ptr);
		return;
	}
	if (a->type == FIELD_STR) {
		add_bytes(d, l, FIELD_STR, d->reads.at[read], d->reads.len[read],
			  d->reads.cut[read]);
	} else if (a->layout) {
		if (w->by != ABI_NONE && !arg_value(d, w->by, &selector))
			selector = ~0ULL;
		add_struct(d, l, a->layout, d->reads.at[read], d->reads.len[read],
			   selector < 32 ? (uint32_t)selector : 32, a);
	} else {
		add_loaded(d, l, a->type, d->reads.at[read], a->width, a->is_signed, a->xlat);
	}
}

static void add_input(struct decoder *d, const struct api_arg *a, const struct abi_arg *w)
{
	const struct label l = { a->name, a->label, false };
	const __u64 *words = d->call->words;
	int nwords = d->call->nwords;
	uint32_t dim[3];

	if (w->word == ABI_NONE && w->read == ABI_NONE) {
		decode_add(d, &l, FIELD_UNKNOWN);
	} else if (w->read != ABI_NONE) {
		add_read(d, &l, a, w);
	} else if (a->abi == API_ABI_PAIR) {
		if (w->word + 2 > nwords) {
			decode_add(d, &l, FIELD_UNKNOWN);
			return;
		}
		dim[0] = (uint32_t)words[w->word];
		dim[1] = (uint32_t)(words[w->word] >> 32);
		dim[2] = (uint32_t)words[w->word + 1];
		add_dim3(d, &l, dim);
	} else if (w->word + (a->abi == API_ABI_MEMORY ? (a->width + 7) / 8 : 1) > nwords) {
		decode_add(d, &l, FIELD_UNKNOWN);
	} else if (a->layout) {
		add_struct(d, &l, a->layout, (const uint8_t *)&words[w->word], a->width, 0, NULL);
	} else if (a->type == FIELD_BYTES) {
		add_bytes(d, &l, FIELD_BYTES, (const uint8_t *)&words[w->word], a->width, false);
	} else {
		add_number(d, &l, a->type, narrow(words[w->word], a->width, a->is_signed), a->xlat);
	}
}

static void add_return(struct decoder *d)
{
	static const struct label l = { "returned", "returned", false };
	const struct xlat *errors = api_domains[d->f->domain].errors;
	int64_t ret = d->call->ret;
	uint8_t read = d->plan->ret_read;

	switch (d->f->ret) {
	case API_RET_STATUS:
		add_number(d, &l, errors ? FIELD_ERROR : FIELD_INT, (uint64_t)(int32_t)ret, errors);
		break;
	case API_RET_INT: add_number(d, &l, FIELD_INT, (uint64_t)(int32_t)ret, NULL); break;
	case API_RET_PTR: add_number(d, &l, FIELD_PTR, (uint64_t)ret, NULL); break;
	case API_RET_STR:
		if (read < CT_MAX_READS && d->reads.at[read])
			add_bytes(d, &l, FIELD_STR, d->reads.at[read], d->reads.len[read],
				  d->reads.cut[read]);
		else
			add_number(d, &l, FIELD_PTR, (uint64_t)ret, NULL);
		break;
	default: break;
	}
}

int api_decode(const struct ct_call *c, enum api_arch arch, struct field *out, int max)
{
	struct decoder d = { .out = out, .max = max, .call = c };
	bool entry = c->h.kind == CT_ENTER;

	if (c->func >= api_nfuncs || c->h.flags & CT_F_BEFORE)
		return 0;
	d.f = &api_funcs[c->func];
	d.plan = abi_plan(c->func, arch);
	if (d.plan->err)
		return 0;
	if (d.plan->spec.nreads)
		abi_reads_find(c, d.plan, &d.reads);
	for (int i = 0; i < d.f->nargs; i++)
		if (d.f->args[i].dir == API_IN)
			add_input(&d, &d.f->args[i], &d.plan->args[i]);
	for (int i = 0; i < d.f->nargs && !entry; i++) {
		const struct api_arg *a = &d.f->args[i];
		const struct label l = { a->name, a->label, true };

		if (a->dir != API_IN)
			add_read(&d, &l, a, &d.plan->args[i]);
	}
	if (!entry && !(c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN)))
		add_return(&d);
	return d.n;
}
