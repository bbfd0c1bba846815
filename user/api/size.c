/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * size.c - computes how many bytes a call moves or allocates: the product of the arguments that the
 * row marks with a unit.
 */
#include "abi.h"
#include "layout.h"
#include "../../wire/control.h"

#include <string.h>

#define UNKNOWN (-1)

static uint64_t size_load(const uint8_t *p, int width)
{
	uint64_t v = 0;

	memcpy(&v, p, width > 8 ? 8 : (size_t)width);
	return v;
}

/* size *= v * unit, saturating. */
static void times(uint64_t *size, uint64_t v, uint8_t unit)
{
	if (unit == API_UNIT_ZERO_IS_ONE && !v)
		v = 1;
	if (__builtin_mul_overflow(v, (uint64_t)(unit & API_UNIT_MASK), &v) ||
	    __builtin_mul_overflow(*size, v, size))
		*size = INT64_MAX;
}

/* Bytes of one channel of a CUarray_format (cuda.h); the block-compressed and multi-planar
 * formats have none. */
static int format_bytes(uint64_t format)
{
	switch (format) {
	case 0x01: /* CU_AD_FORMAT_UNSIGNED_INT8 */
	case 0x08: /* CU_AD_FORMAT_SIGNED_INT8 */ return 1;
	case 0x02: /* CU_AD_FORMAT_UNSIGNED_INT16 */
	case 0x09: /* CU_AD_FORMAT_SIGNED_INT16 */
	case 0x10: /* CU_AD_FORMAT_HALF */ return 2;
	case 0x03: /* CU_AD_FORMAT_UNSIGNED_INT32 */
	case 0x0a: /* CU_AD_FORMAT_SIGNED_INT32 */
	case 0x20: /* CU_AD_FORMAT_FLOAT */ return 4;
	default: return 0;
	}
}

/* Multiplies by what a struct says; false when it does not say it. */
static bool times_struct(uint64_t *size, const struct api_struct *s, const uint8_t *p, uint8_t unit)
{
	uint64_t bits = 0, channels = 1, format = 0;

	for (int i = 0; i < s->nmembers; i++) {
		const struct api_member *m = &s->members[i];
		uint64_t v;

		if (m->layout && !m->list && m->unit && m->unit != API_UNIT_VOID) {
			if (!times_struct(size, m->layout, p + m->off, m->unit))
				return false;
			continue;
		}
		if (m->layout)
			continue;
		v = size_load(p + m->off, m->width);
		if (m->unit == API_UNIT_VOID && v)
			return false;
		if (m->unit && m->unit != API_UNIT_VOID)
			times(size, v, unit == API_UNIT_ZERO_IS_ONE ? unit : m->unit);
		if (s->size_rule == LAYOUT_SIZE_TEXEL && m->type == FIELD_INT)
			bits += (uint32_t)v;
		if (s->size_rule == LAYOUT_SIZE_ARRAY && m->type == FIELD_ENUM)
			format = v;
		if (s->size_rule == LAYOUT_SIZE_ARRAY && !strcmp(m->name, "NumChannels"))
			channels = v;
	}
	if (s->size_rule == LAYOUT_SIZE_TEXEL)
		times(size, bits / 8, 1);
	if (s->size_rule == LAYOUT_SIZE_ARRAY) {
		if (!format_bytes(format))
			return false;
		times(size, channels * (uint64_t)format_bytes(format), 1);
	}
	return true;
}

/* Multiplies by what one argument says; false when it cannot be known. */
static bool times_arg(uint64_t *size, const struct ct_call *c, const struct api_arg *a,
		      const struct abi_arg *w, const struct abi_reads *reads)
{
	const uint8_t *p = NULL;
	uint64_t sum = 0;

	if (w->read != ABI_NONE) {
		p = reads->at[w->read];
		if (!p)
			return false;
		if (a->count) {
			for (uint32_t at = 0; at + a->width <= reads->len[w->read]; at += a->width)
				if (__builtin_add_overflow(sum, size_load(p + at, a->width), &sum))
					sum = INT64_MAX;
			times(size, sum, 1);
			return !reads->cut[w->read];
		}
	} else {
		if (w->word + (a->abi == API_ABI_MEMORY ? (a->width + 7) / 8 : 1) > c->nwords)
			return false;
		p = (const uint8_t *)&c->words[w->word];
	}
	if (a->layout)
		return times_struct(size, a->layout, p, a->unit);
	times(size, size_load(p, a->width), a->unit);
	return true;
}

int64_t api_size(const struct ct_call *c, enum api_arch arch)
{
	const struct abi_plan *p;
	const struct api_func *f;
	struct abi_reads reads;
	uint64_t size = 1;
	bool any = false;

	if (c->func >= api_nfuncs)
		return UNKNOWN;
	f = &api_funcs[c->func];
	p = abi_plan(c->func, arch);
	if (p->err)
		return UNKNOWN;
	if (p->spec.size_word != CT_COUNT_NONE && p->spec.size_word < c->nwords) {
		size = c->words[p->spec.size_word];
		return size > INT64_MAX ? INT64_MAX : (int64_t)size;
	}
	for (int i = 0; i < f->nargs; i++) {
		if (!f->args[i].unit)
			continue;
		if (!any)
			abi_reads_find(c, p, &reads);
		any = true;
		if (!times_arg(&size, c, &f->args[i], &p->args[i], &reads))
			return UNKNOWN;
	}
	if (!any)
		return UNKNOWN;
	return size > INT64_MAX ? INT64_MAX : (int64_t)size;
}
