/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * abi.c - finds the word that holds an argument, and the memory that is to be read, for x86-64
 * System V and AAPCS64.
 *
 * words[] of a record begins with the argument registers (6 on x86-64, 8 on aarch64); the stack's
 * 8-byte words follow.
 *   WORD    the next register; none left: the next stack word.
 *   PAIR    two registers; too few left: both words on the stack. On x86-64 later arguments may
 *           still use the
 *           remaining register (psABI 3.2.3), on aarch64 they may not (AAPCS64 C.13: NGRN
 *           becomes 8).
 *   MEMORY  x86-64: copied to the stack in its turn; aarch64: a pointer to a copy, in a WORD
 *           (AAPCS64 B.4).
 *   FLOAT   a vector register, in neither sequence.
 * CUDA's functions have no argument with an alignment above 8.
 */
#include "abi.h"
#include "layout.h"

#include <errno.h>
#include <string.h>

static struct abi_plan plans[2][CT_MAX_FUNCS];

static const int nregs[2] = { [API_X86_64] = 6, [API_AARCH64] = 8 };

static void assign_words(const struct api_func *f, enum api_arch arch, struct abi_plan *p)
{
	int nreg = nregs[arch], reg = 0, stack = nreg, word, need = 0;

	if (f->flags & API_SRET && arch == API_X86_64)
		reg = 1;
	for (int i = 0; i < f->nargs; i++) {
		const struct api_arg *a = &f->args[i];
		int n = 1;

		if (a->abi == API_ABI_FLOAT || a->text_at) {
			p->args[i].word = ABI_NONE;
			continue;
		}
		if (a->abi == API_ABI_PAIR)
			n = 2;
		else if (a->abi == API_ABI_MEMORY && arch == API_X86_64)
			n = (a->width + 7) / 8;
		if (n == 1 && a->abi != API_ABI_MEMORY) {
			word = reg < nreg ? reg++ : stack++;
		} else if (a->abi == API_ABI_MEMORY && arch == API_AARCH64) {
			word = reg < nreg ? reg++ : stack++;
		} else if (a->abi == API_ABI_PAIR && reg + 2 <= nreg) {
			word = reg;
			reg += 2;
		} else {
			if (arch == API_AARCH64)
				reg = nreg;
			word = stack;
			stack += n;
		}
		if (a->type == FIELD_UNKNOWN) {
			p->args[i].word = ABI_NONE;
			continue;
		}
		p->args[i].word = (uint8_t)word;
		if (word + n > need)
			need = word + n;
	}
	if (need > (f->layer ? CT_LAYER_WORDS : CT_MAX_WORDS))
		p->err = -E2BIG;
	else
		p->spec.nwords = (uint8_t)need;
}

static uint8_t find_arg(const struct api_func *f, const char *name)
{
	for (int i = 0; name && i < f->nargs; i++)
		if (!strcmp(f->args[i].name, name))
			return (uint8_t)i;
	return ABI_NONE;
}

/* Adds a read and returns it; NULL when there is no room. */
static struct ct_read *add_read(struct abi_plan *p, int when, int kind, uint8_t from, int len)
{
	struct ct_read *r;

	if (p->spec.nreads >= CT_MAX_READS || len > CT_READ_MAX) {
		p->err = -E2BIG;
		return NULL;
	}
	r = &p->spec.reads[p->spec.nreads++];
	r->when = (uint8_t)when;
	r->kind = (uint8_t)kind;
	r->from = from;
	r->count_from = CT_COUNT_NONE;
	r->len = (uint16_t)len;
	return r;
}

static int abi_bytes_of(const struct api_arg *a)
{
	return a->layout ? a->layout->used : a->width;
}

/* Reads a text whose address is in what another argument, before it, points to. */
static void read_text(const struct api_func *f, const struct api_arg *a, struct abi_arg *w,
		      struct abi_plan *p)
{
	uint8_t of = find_arg(f, a->of);
	struct ct_read *r;

	if (of == ABI_NONE || p->args[of].read == ABI_NONE) {
		p->err = -EINVAL;
		return;
	}
	w->read = p->spec.nreads;
	r = add_read(p, CT_AT_ENTRY, CT_READ_STR, CT_FROM_READ | p->args[of].read, a->max);
	if (r)
		r->off = a->text_at - 1u;
}

/* Reads a value, a struct or a string, and what it points to in turn. */
static void read_value(const struct api_arg *a, struct abi_arg *w, struct abi_plan *p, int when)
{
	struct ct_read *r;
	bool str = a->type == FIELD_STR;
	bool via = str && a->dir != API_IN && a->deref; /* a pointer to a pointer to a string */

	w->read = p->spec.nreads;
	r = add_read(p, when, str && !via ? CT_READ_STR : CT_READ_BYTES, w->word,
		     via   ? 8
		     : str ? a->max
			   : abi_bytes_of(a));
	if (!r)
		return;
	if (via) {
		w->read2 = p->spec.nreads;
		add_read(p, when, CT_READ_STR, CT_FROM_READ | w->read, a->max);
		return;
	}
	for (int i = 0; a->layout && i < a->layout->nmembers; i++) {
		const struct api_member *m = &a->layout->members[i];

		if (!m->list || when != CT_AT_ENTRY)
			continue;
		w->read2 = p->spec.nreads;
		r = add_read(p, when, CT_READ_ARRAY, CT_FROM_READ | w->read,
			     m->max * m->layout->size);
		if (!r)
			return;
		r->off = m->off;
		r->elem = m->layout->size;
		r->count_from = CT_FROM_READ | w->read;
		r->count_off = m->count_off;
	}
}

static void read_list(const struct api_func *f, const struct api_arg *a, struct abi_arg *w,
		      struct abi_plan *p, int when)
{
	const struct abi_arg *count;
	struct ct_read *r;

	if (w->count == ABI_NONE) {
		p->err = -EINVAL;
		return;
	}
	w->read = p->spec.nreads;
	r = add_read(p, when, CT_READ_ARRAY, w->word, a->max);
	if (!r)
		return;
	r->elem = a->width;
	count = &p->args[w->count];
	r->count_from = f->args[w->count].dir == API_IN ? count->word : CT_FROM_READ | count->read;
}

/* Says when there is memory to read for this argument. 0: there is none. */
static int when_read(const struct api_arg *a, enum api_arch arch)
{
	if (a->dir != API_IN)
		return CT_AT_RETURN;
	if (a->deref ||
	    (a->abi == API_ABI_MEMORY && arch == API_AARCH64 && a->type != FIELD_UNKNOWN))
		return CT_AT_ENTRY;
	return 0;
}

/* Values come before lists, because a list's length may be among the values. */
static void plan_reads(const struct api_func *f, enum api_arch arch, struct abi_plan *p, int when)
{
	for (int lists = 0; lists < 2; lists++) {
		for (int i = 0; i < f->nargs && !p->err; i++) {
			const struct api_arg *a = &f->args[i];

			if (when_read(a, arch) != when || (a->count != NULL) != lists)
				continue;
			if (a->text_at)
				read_text(f, a, &p->args[i], p);
			else if (lists)
				read_list(f, a, &p->args[i], p, when);
			else
				read_value(a, &p->args[i], p, when);
		}
	}
}

static void plan_size(const struct api_func *f, struct abi_plan *p)
{
	int n = 0;

	for (int i = 0; i < f->nargs; i++) {
		const struct api_arg *a = &f->args[i];

		if (!a->unit)
			continue;
		n++;
		if (a->unit == 1 && a->abi == API_ABI_WORD && a->dir == API_IN && !a->deref &&
		    a->width == 8)
			p->spec.size_word = p->args[i].word;
	}
	if (n != 1)
		p->spec.size_word = CT_COUNT_NONE;
	else if (p->spec.size_word != CT_COUNT_NONE)
		p->spec.flags |= CT_S_MATCH_SIZE;
}

/* True if the enum says the direction of a copy. */
static bool is_copy_kind(const struct api_arg *a)
{
	return a->type == FIELD_ENUM && a->xlat && !strcmp(a->xlat->id, "memcpy_kind");
}

/* Plans by what the kernel side separates calls when it counts them. */
static void plan_count(const struct api_func *f, struct abi_plan *p)
{
	struct ct_spec *s = &p->spec;
	int sizes = 0;

	s->kind_word = s->stream_word = s->func_word = s->grid_word = s->shared_word =
		CT_COUNT_NONE;
	for (int i = 0; i < f->nargs; i++) {
		const struct api_arg *a = &f->args[i];
		uint8_t word = p->args[i].word;

		if (a->dir != API_IN || a->deref || word == ABI_NONE)
			continue;
		if (is_copy_kind(a))
			s->kind_word = word;
		else if (a->type == FIELD_STREAM && s->stream_word == CT_COUNT_NONE)
			s->stream_word = word;
		else if (a->type == FIELD_FUNC && s->func_word == CT_COUNT_NONE)
			s->func_word = word;
		else if (f->class == API_LAUNCH && a->type == FIELD_DIM3 &&
			 a->abi == API_ABI_PAIR && !sizes++)
			s->grid_word = word;
		else if (f->class == API_LAUNCH && !strcmp(a->name, "gridDimX"))
			s->grid_word = word;
		else if (f->class == API_LAUNCH && a->type == FIELD_SIZE)
			s->shared_word = word;
	}
	if (s->grid_word != CT_COUNT_NONE)
		s->grid_how = sizes ? CT_GRID_DIM3 : CT_GRID_SIX;
	if (f->class == API_COPY && s->flags & CT_S_MATCH_SIZE)
		s->more |= CT_S_COPIES;
}

/* Plans how the kernel side follows memory when it counts calls: it knows allocations whose size
 * is in one word, and frees. */
static void plan_memory(const struct api_func *f, struct abi_plan *p)
{
	struct ct_spec *s = &p->spec;

	s->memory_word = CT_COUNT_NONE;
	for (int i = 0; i < f->nargs; i++) {
		const struct api_arg *a = &f->args[i];
		bool takes = a->role == API_ROLE_ALLOCATES && a->memory < API_MEM_IMPORTED &&
			     s->flags & CT_S_MATCH_SIZE;
		bool frees = a->role == API_ROLE_FREES &&
			     (a->space == API_SPACE_DEVICE || a->space == API_SPACE_HOST ||
			      a->space == API_SPACE_REGISTERED || a->space == API_SPACE_HANDLE);

		/* memory of a graph's node is allocated or freed at the graph's launch */
		if ((!takes && !frees) || a->layout || p->args[i].word == ABI_NONE ||
		    f->class != API_MEMORY)
			continue;
		s->memory_how = frees		   ? CT_MEMORY_FREES
				: a->dir == API_IN ? CT_MEMORY_TAKES_IN
						   : CT_MEMORY_TAKES_OUT;
		s->memory_word = p->args[i].word;
		s->memory_space = (uint8_t)(a->space + 1);
	}
}

static void add_spot(struct abi_plan *p, struct abi_spot spot)
{
	if (p->nspots < ABI_SPOTS)
		p->spots[p->nspots++] = spot;
}

/* Plans where the kernels' handles and the stream are in a struct that is read. */
static void struct_spots(struct abi_plan *p, const struct api_struct *s, struct abi_spot at,
			 uint8_t type)
{
	for (int i = 0; i < s->nmembers; i++) {
		const struct api_member *m = &s->members[i];
		struct abi_spot spot = at;

		if (m->list || m->n)
			continue;
		spot.off = (uint16_t)(at.off + m->off);
		if (m->cases && s->selector >= 0) {
			spot.selector = (uint16_t)(at.off + s->selector);
			spot.cases = m->cases;
		}
		if (m->layout)
			struct_spots(p, m->layout, spot, type);
		else if (m->type == type && type == FIELD_FUNC)
			add_spot(p, spot);
		else if (m->type == type && !p->has_stream) {
			p->stream = spot;
			p->has_stream = true;
		}
	}
}

/* Plans where the handle of the call's kernel is: in the first argument that has one; an output
 * is used only if no input has one. */
static void plan_kernel(const struct api_func *f, struct abi_plan *p)
{
	for (int out = 0; out < 2; out++) {
		for (int i = 0; i < f->nargs && !p->nspots; i++) {
			const struct api_arg *a = &f->args[i];
			struct abi_spot spot = { .word = ABI_NONE, .read = p->args[i].read };

			if ((a->dir != API_IN) != out)
				continue;
			if (spot.read != ABI_NONE && a->layout)
				struct_spots(p, a->layout, spot, FIELD_FUNC);
			if (a->type != FIELD_FUNC || a->count)
				continue;
			if (spot.read == ABI_NONE)
				spot.word = p->args[i].word;
			add_spot(p, spot);
		}
	}
}

/* Plans where the stream is: the first input that is a stream. */
static void plan_stream(const struct api_func *f, struct abi_plan *p)
{
	for (int i = 0; i < f->nargs && !p->has_stream; i++) {
		const struct api_arg *a = &f->args[i];
		struct abi_spot spot = { .word = ABI_NONE, .read = p->args[i].read };

		if (a->dir != API_IN || a->count)
			continue;
		if (spot.read != ABI_NONE && a->layout) {
			struct_spots(p, a->layout, spot, FIELD_STREAM);
		} else if (a->type == FIELD_STREAM && spot.read == ABI_NONE &&
			   p->args[i].word != ABI_NONE) {
			p->stream.word = p->args[i].word;
			p->has_stream = true;
		}
	}
}

static void plan_place(const struct api_func *f, struct abi_plan *p)
{
	p->place = p->place_of = ABI_NONE;
	for (int i = 0; i < f->nargs; i++) {
		if (f->args[i].role < API_ROLE_CURRENT)
			continue;
		p->place = (uint8_t)i;
		p->place_of = find_arg(f, f->args[i].of);
		p->places |= f->args[i].role != API_ROLE_CURRENT || f->args[i].dir == API_IN;
	}
	p->places |= (f->flags & API_ENDS_CONTEXT) != 0;
}

static void plan_name_event(const struct api_func *f, struct abi_plan *p)
{
	struct abi_name_event *l = &p->name_event;

	*l = (struct abi_name_event){ ABI_NONE, ABI_NONE, ABI_NONE, ABI_NONE, ABI_NONE };
	for (int i = 0; i < f->nargs; i++) {
		const struct api_arg *a = &f->args[i];

		if (a->role == API_ROLE_NAMES) {
			l->name = (uint8_t)i;
			l->handle = find_arg(f, a->of);
		} else if (a->role == API_ROLE_SAME_AS) {
			l->handle = (uint8_t)i;
			l->of = find_arg(f, a->of);
		} else if (a->role == API_ROLE_OWNER) {
			l->owner = (uint8_t)i;
		} else if (a->role == API_ROLE_UNLOADS) {
			l->unloads = (uint8_t)i;
		}
	}
	p->teaches = l->handle != ABI_NONE || l->unloads != ABI_NONE || f->flags & API_ENDS_CONTEXT;
	if (p->teaches)
		p->spec.flags |= CT_S_ALWAYS;
	if (l->name != ABI_NONE)
		p->spec.more |= CT_S_WHOLE_NAME;
	if (l->unloads != ABI_NONE || f->flags & API_ENDS_CONTEXT)
		p->spec.more |= CT_S_FORGETS;
	if (f->flags & API_ENTRY_ONLY)
		p->spec.more |= CT_S_ENTRY_ONLY;
	if (api_domains[f->domain].below && f->class == API_LAUNCH && p->nspots)
		p->spec.flags |= CT_S_NESTED;
}

/* Plans what the kernel side does with the scopes of the calling thread. */
static void plan_layer(const struct api_func *f, struct abi_plan *p)
{
	static const uint8_t how[] = {
		[API_LAYER_NONE] = 0,
		[API_LAYER_PUSH] = CT_LAYER_PUSH,
		[API_LAYER_POP] = CT_LAYER_POP,
		[API_LAYER_START] = CT_LAYER_AFTER,
		[API_LAYER_END] = CT_LAYER_NOTE,
		[API_LAYER_MARK] = CT_LAYER_NOTE,
		[API_LAYER_DOMAIN] = CT_LAYER_AFTER,
		[API_LAYER_STRING] = CT_LAYER_AFTER,
		[API_LAYER_CATEGORY] = CT_LAYER_NOTE,
		[API_LAYER_PAYLOAD] = CT_LAYER_NOTE,
		[API_LAYER_OPERATOR] = CT_LAYER_OPERATOR,
		[API_LAYER_NODE] = CT_LAYER_OPERATOR,
		[API_LAYER_BLOCK] = 0,
		[API_LAYER_NO_MEMORY] = 0,
		[API_LAYER_GEMM] = CT_LAYER_CALL,
		[API_LAYER_DESCRIBED] = CT_LAYER_CALL,
		[API_LAYER_DESCRIBE] = CT_LAYER_NOTE,
		[API_LAYER_DERIVE] = CT_LAYER_AFTER,
		[API_LAYER_FORGET] = CT_LAYER_NOTE,
		[API_LAYER_WHOLE] = CT_LAYER_CALL,
		[API_LAYER_PARTS] = CT_LAYER_CALL,
		[API_LAYER_SPREAD] = CT_LAYER_CALL,
		[API_LAYER_ROOTED] = CT_LAYER_CALL,
		[API_LAYER_SEND] = CT_LAYER_CALL,
		[API_LAYER_RECEIVE] = CT_LAYER_CALL,
		[API_LAYER_GROUP_START] = CT_LAYER_CALL,
		[API_LAYER_GROUP_END] = CT_LAYER_CALL,
		[API_LAYER_CREATE] = CT_LAYER_CALL | CT_LAYER_WAITS,
		[API_LAYER_ASK] = CT_LAYER_CALL,
		[API_LAYER_DESTROY] = CT_LAYER_CALL,
	};

	p->spec.layer = how[f->layer];
	if (p->spec.layer && f->nargs && !strcmp(f->args[0].name, "domain"))
		p->spec.layer |= CT_LAYER_DOMAIN;
	if (p->spec.layer && api_domains[f->domain].own_ranges)
		p->spec.layer |= CT_LAYER_OWN;
}

static void make_plan(const struct api_func *f, enum api_arch arch, struct abi_plan *p)
{
	size_t total;

	for (int i = 0; i < f->nargs; i++) {
		p->args[i].read = p->args[i].read2 = ABI_NONE;
		p->args[i].count = find_arg(f, f->args[i].count);
		p->args[i].by = find_arg(f, f->args[i].by);
	}
	p->spec.flags = (uint8_t)f->flags;
	/* what a function of a layer returns may say that the call is under way, with its outputs */
	if (f->ret == API_RET_STATUS && !(f->flags & API_REPORTS_ERROR) && !f->layer)
		p->spec.flags |= CT_S_ERROR;
	if (!api_domains[f->domain].folds)
		p->spec.flags |= CT_S_INTERNAL;
	p->spec.size_word = CT_COUNT_NONE;
	assign_words(f, arch, p);
	if (!p->err)
		plan_reads(f, arch, p, CT_AT_ENTRY);
	p->spec.nentry = p->spec.nreads;
	if (!p->err)
		plan_reads(f, arch, p, CT_AT_RETURN);
	p->ret_read = ABI_NONE;
	if (!p->err && f->ret == API_RET_STR) {
		p->ret_read = p->spec.nreads;
		add_read(p, CT_AT_RETURN, CT_READ_STR, CT_FROM_RETURN, CT_READ_MAX);
	}
	plan_size(f, p);
	plan_count(f, p);
	plan_memory(f, p);
	plan_kernel(f, p);
	plan_stream(f, p);
	plan_place(f, p);
	plan_name_event(f, p);
	plan_layer(f, p);
	total = p->spec.nwords * 8u;
	for (int i = 0; i < p->spec.nreads; i++)
		total += (p->spec.reads[i].kind == CT_READ_BYTES ? 0 : 8) +
			 ((p->spec.reads[i].len + 7u) & ~7u);
	if (total > CT_PLAN_MAX)
		p->err = -E2BIG;
	p->known = true;
}

const struct abi_plan *abi_plan(int func, enum api_arch arch)
{
	struct abi_plan *p = &plans[arch][func];

	if (!p->known)
		make_plan(&api_funcs[func], arch, p);
	return p;
}

int api_spec(int func, enum api_arch arch, bool shown, struct ct_spec *out)
{
	const struct abi_plan *p;

	if (func < 0 || func >= api_nfuncs)
		return -EINVAL;
	p = abi_plan(func, arch);
	if (p->err)
		return p->err;
	*out = p->spec;
	if (shown)
		out->flags |= CT_S_SHOWN;
	else if (p->places)
		out->flags |= CT_S_ALWAYS;
	return 0;
}

void abi_reads_find(const struct ct_call *c, const struct abi_plan *p, struct abi_reads *r)
{
	const uint8_t *at = (const uint8_t *)&c->words[c->nwords],
		      *end = (const uint8_t *)c + c->h.size;

	for (int i = 0; i < p->spec.nreads; i++) {
		const struct ct_read *spec = &p->spec.reads[i];
		uint64_t head;

		r->at[i] = NULL;
		if (!(c->got >> i & 1) || at >= end)
			continue;
		r->len[i] = spec->len;
		r->cut[i] = false;
		if (spec->kind != CT_READ_BYTES) {
			if (end - at < 8)
				continue;
			memcpy(&head, at, sizeof(head));
			at += 8;
			r->cut[i] = head & CT_STR_CUT;
			head &= ~CT_STR_CUT;
			if (head > spec->len)
				head = spec->len;
			r->len[i] = (uint32_t)head;
		}
		if (end - at < (ptrdiff_t)r->len[i]) {
			at = end;
			continue;
		}
		r->at[i] = at;
		at += (r->len[i] + 7) & ~7u;
	}
}
