/* SPDX-License-Identifier: BSD-2-Clause */
/* json_fields.c - see json_fields.h. Strings of the target are untrusted bytes: see escape_json(). */
#include <math.h>
#include <stdio.h>

#include "json_fields.h"
#include "../util/put.h"
#include "../util/text.h"

#define STR_MAX 2048  /* bytes shown of one string; the capture brings less */
#define MAX_OPEN 16   /* structs in structs */
#define RATE_MAX 1e18 /* bytes per second that are written in full */

void json_string(struct row *w, const char *s, size_t n)
{
	if (n > STR_MAX)
		n = STR_MAX;
	row_room(w, n * 6 + JSON_ROOM);
	*w->p++ = '"';
	w->p = escape_json(w->p, s, n);
	*w->p++ = '"';
}

static char *put_quoted_hex(char *p, uint64_t v)
{
	*p++ = '"';
	p = put_hex(p, v);
	*p++ = '"';
	return p;
}

char *json_word(char *p, const char *name)
{
	*p++ = '"';
	p = put_str(p, name);
	*p++ = '"';
	return p;
}

/* Writes the names of the bits that are set, and the bits without a name as one hexadecimal string. */
static void json_fields_put_flags(struct row *w, const struct field *f)
{
	uint64_t left = f->u;
	const struct xlat_row *row;
	int at = 0;
	bool first = true;

	*w->p++ = '[';
	while ((row = xlat_flag(f->xlat, f->u, left, &at))) {
		row_room(w, JSON_ROOM);
		if (!first)
			*w->p++ = ',';
		w->p = json_word(w->p, row->name);
		left &= ~(uint64_t)row->value;
		first = false;
	}
	row_room(w, JSON_ROOM);
	if (left) {
		if (!first)
			*w->p++ = ',';
		w->p = put_quoted_hex(w->p, left);
	}
	*w->p++ = ']';
}

static void put_float(struct row *w, double v, bool single)
{
	if (!isfinite(v)) {
		w->p = put_lit(w->p, "null");
		return;
	}
	w->p = put_double(w->p, v, single);
}

static void json_fields_put_bytes(struct row *w, const char *s, size_t n)
{
	if (n > STR_MAX)
		n = STR_MAX;
	row_room(w, n * 2 + JSON_ROOM);
	*w->p++ = '"';
	for (size_t i = 0; i < n; i++) {
		*w->p++ = "0123456789abcdef"[(unsigned char)s[i] >> 4];
		*w->p++ = "0123456789abcdef"[s[i] & 15];
	}
	*w->p++ = '"';
}

void json_value(struct row *w, const struct field *f)
{
	const char *name;

	if (f->absent) {
		/* the output was not there; of an input at least the pointer is known */
		w->p = f->out || !f->u ? put_lit(w->p, "null") : put_quoted_hex(w->p, f->u);
		return;
	}
	switch (f->type) {
	case FIELD_INT: w->p = put_i64(w->p, f->i); break;
	case FIELD_UINT:
	case FIELD_SIZE: w->p = put_u64(w->p, f->u); break;
	case FIELD_PTR:
	case FIELD_STREAM:
	case FIELD_FUNC: w->p = put_quoted_hex(w->p, f->u); break;
	case FIELD_ENUM:
	case FIELD_ERROR:
		name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
		w->p = name ? json_word(w->p, name) : put_i64(w->p, f->i);
		break;
	case FIELD_FLAGS: json_fields_put_flags(w, f); break;
	case FIELD_BOOL: w->p = f->u ? put_lit(w->p, "true") : put_lit(w->p, "false"); break;
	case FIELD_FLOAT: put_float(w, f->f, f->single); break;
	case FIELD_WORD:
		name = xlat_name(f->xlat, f->i);
		w->p = name ? json_word(w->p, name) : put_i64(w->p, f->i);
		break;
	case FIELD_DURATION: w->p = put_u64(w->p, f->u); break;
	case FIELD_RATE:
		/* a size that cannot be true may have more digits than readers accept */
		if (isfinite(f->f) && fabs(f->f) >= RATE_MAX)
			w->p = put_double(w->p, f->f, false);
		else
			w->p += snprintf(w->p, 40, "%.0f", isfinite(f->f) ? f->f : 0.0);
		break;
	case FIELD_DIM3:
		*w->p++ = '[';
		w->p = put_u64(w->p, f->dim[0]);
		*w->p++ = ',';
		w->p = put_u64(w->p, f->dim[1]);
		*w->p++ = ',';
		w->p = put_u64(w->p, f->dim[2]);
		*w->p++ = ']';
		break;
	case FIELD_STR: json_string(w, f->str, f->str_len); break;
	case FIELD_BYTES: json_fields_put_bytes(w, f->str, f->str_len); break;
	default: w->p = put_lit(w->p, "null"); break;
	}
}

void json_fields(struct row *w, const struct field *f, int n)
{
	bool list[MAX_OPEN] = { false };
	int open = 0, skip = 0;
	bool first = true;

	for (int i = 0; i < n; i++, f++) {
		row_room(w, JSON_ROOM);
		if (f->type == FIELD_CLOSE) {
			if (skip)
				skip--;
			else if (open)
				*w->p++ = list[open--] ? ']' : '}';
			first = false;
			continue;
		}
		if (skip || open == MAX_OPEN - 1) {
			skip += f->type == FIELD_OPEN && !f->absent;
			continue;
		}
		if (!first)
			*w->p++ = ',';
		if (!list[open]) {
			w->p = json_word(w->p, f->name ? field_key(f) : "");
			*w->p++ = ':';
		}
		first = false;
		if (f->type != FIELD_OPEN || f->absent) {
			json_value(w, f);
		} else {
			list[++open] = f->is_list;
			*w->p++ = f->is_list ? '[' : '{';
			first = true;
		}
	}
	for (; open; open--)
		*w->p++ = list[open] ? ']' : '}';
}
