/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_values.c - see table_values.h. Nothing that the target wrote reaches the terminal raw.
 * Knows no record.
 */
#include <stdio.h>
#include <string.h>

#include "table_values.h"

#define STR_MAX 2048

/* C's escapes; everything beyond ASCII in octal, which cannot run into a digit that follows. 4
 * bytes of room a byte. */
static char *put_escaped(char *p, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= ' ' && c < 0x7f) {
			if (c == '"' || c == '\\')
				*p++ = '\\';
			*p++ = (char)c;
		} else if (c == '\n') {
			p = put_lit(p, "\\n");
		} else if (c == '\t') {
			p = put_lit(p, "\\t");
		} else if (c == '\r') {
			p = put_lit(p, "\\r");
		} else {
			*p++ = '\\';
			*p++ = (char)('0' + (c >> 6));
			*p++ = (char)('0' + (c >> 3 & 7));
			*p++ = (char)('0' + (c & 7));
		}
	}
	return p;
}

static void table_values_put_string(struct row *w, const struct field *f)
{
	size_t n = f->str_len < STR_MAX ? f->str_len : STR_MAX;

	row_room(w, n * 4 + FIELD_ROOM);
	*w->p++ = '"';
	w->p = put_escaped(w->p, f->str, n);
	*w->p++ = '"';
	if (f->cut || n < f->str_len)
		w->p = put_lit(w->p, "...");
}

static void table_values_put_bytes(struct row *w, const struct field *f)
{
	size_t n = f->str_len < STR_MAX ? f->str_len : STR_MAX;

	row_room(w, n * 2 + FIELD_ROOM);
	for (size_t i = 0; i < n; i++) {
		*w->p++ = "0123456789abcdef"[(unsigned char)f->str[i] >> 4];
		*w->p++ = "0123456789abcdef"[f->str[i] & 15];
	}
	if (f->cut || n < f->str_len)
		w->p = put_lit(w->p, "...");
}

/* Writes 0x5 (cudaStreamNonBlocking|0x4): bits that have no name are never dropped. */
static void table_values_put_flags(struct row *w, const struct field *f)
{
	uint64_t left = f->u;
	const struct xlat_row *row;
	int at = 0;
	const char *sep = " (";

	w->p = put_hex(w->p, f->u);
	while ((row = xlat_flag(f->xlat, f->u, left, &at))) {
		row_room(w, FIELD_ROOM);
		w->p = put_str(put_str(w->p, sep), row->name);
		left &= ~(uint64_t)row->value;
		sep = "|";
	}
	if (*sep != '|')
		return;
	row_room(w, FIELD_ROOM);
	if (left)
		w->p = put_hex(put_char(w->p, '|'), left);
	*w->p++ = ')';
}

static char *put_enum(char *p, const struct field *f)
{
	const char *name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;

	p = put_i64(p, f->i);
	if (!name)
		return p;
	p = put_str(put_lit(p, " ("), xlat_short(f->xlat, name));
	return put_char(p, ')');
}

static char *table_values_put_word(char *p, const struct field *f)
{
	const char *name = xlat_name(f->xlat, f->i);

	return name ? put_str(p, name) : put_i64(p, f->i);
}

static char *put_error(char *p, const struct field *f)
{
	const char *name;

	if (!f->i)
		return put_lit(p, "0 (success)");
	p = put_i64(p, f->i);
	name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
	return name ? put_char(put_str(put_lit(p, " ("), name), ')') : p;
}

static char *put_stream(char *p, uint64_t v, bool per_thread)
{
	p = put_hex(p, v);
	if (v == 1)
		return put_lit(p, " (legacy)");
	if (v == 2 || (!v && per_thread))
		return put_lit(p, " (per-thread)");
	return p;
}

static char *put_dim3(char *p, const uint32_t dim[3])
{
	p = put_u64(put_char(p, '('), dim[0]);
	p = put_u64(put_char(p, ','), dim[1]);
	p = put_u64(put_char(p, ','), dim[2]);
	return put_char(p, ')');
}

/* 820ns, 7.1us, 112.4us, 310us, 1.42ms, 2.05s */
char *table_duration(char *p, uint64_t ns)
{
	uint64_t tenths = (ns + 50) / 100, hundredths;
	const char *unit = "ms";

	if (ns < 1000)
		return put_lit(put_u64(p, ns), "ns");
	if (tenths < 10000) {
		p = put_u64(p, tenths / 10);
		if (tenths % 10)
			p = put_char(put_char(p, '.'), (char)('0' + tenths % 10));
		return put_lit(p, "us");
	}
	hundredths = (ns + 5000) / 10000;
	if (hundredths >= 100000) {
		hundredths = (ns + 5000000) / 10000000;
		unit = "s";
	}
	p = put_u64(p, hundredths / 100);
	if (hundredths % 100) {
		*p++ = '.';
		*p++ = (char)('0' + hundredths % 100 / 10);
		if (hundredths % 10)
			*p++ = (char)('0' + hundredths % 10);
	}
	return put_str(p, unit);
}

/* 250ms, 12.3s, 2m13s, 1h02m, 3d04h; with > when it is the least that it can be */
char *table_age(char *p, uint64_t ns, bool least)
{
	uint64_t s = ns / 1000000000, rest = s % 60;
	const char *units = "ms";

	if (least)
		*p++ = '>';
	if (!s)
		return put_lit(put_u64(p, ns / 1000000), "ms");
	if (s < 60)
		return put_lit(put_u64(put_char(put_u64(p, s), '.'), ns / 100000000 % 10), "s");
	s /= 60;
	if (s >= 60) {
		rest = s % 60;
		s /= 60;
		units = "hm";
	}
	if (s >= 24 && *units == 'h') {
		rest = s % 24;
		s /= 24;
		units = "dh";
	}
	p = put_char(put_u64(p, s), units[0]);
	p = put_char(put_char(p, (char)('0' + rest / 10)), (char)('0' + rest % 10));
	return put_char(p, units[1]);
}

void table_value(struct row *w, const struct field *f, bool per_thread)
{
	switch (f->absent ? FIELD_PTR : f->type) {
	case FIELD_INT: w->p = put_i64(w->p, f->i); break;
	case FIELD_UINT: w->p = put_u64(w->p, f->u); break;
	case FIELD_SIZE: w->p = put_lit(put_u64(w->p, f->u), " bytes"); break;
	case FIELD_PTR:
	case FIELD_FUNC: w->p = put_hex(w->p, f->u); break;
	case FIELD_STREAM: w->p = put_stream(w->p, f->u, per_thread); break;
	case FIELD_ENUM: w->p = put_enum(w->p, f); break;
	case FIELD_ERROR: w->p = put_error(w->p, f); break;
	case FIELD_FLAGS: table_values_put_flags(w, f); break;
	case FIELD_BOOL: w->p = f->u ? put_lit(w->p, "true") : put_lit(w->p, "false"); break;
	case FIELD_FLOAT: w->p += snprintf(w->p, 40, "%.7g", f->f); break;
	case FIELD_WORD: w->p = table_values_put_word(w->p, f); break;
	case FIELD_DURATION: w->p = table_duration(w->p, f->u); break;
	case FIELD_RATE: w->p += snprintf(w->p, 40, "%.4g GB/s", f->f / 1e9); break;
	case FIELD_DIM3: w->p = put_dim3(w->p, f->dim); break;
	case FIELD_STR: table_values_put_string(w, f); break;
	case FIELD_BYTES: table_values_put_bytes(w, f); break;
	default: *w->p++ = '?'; break;
	}
}
