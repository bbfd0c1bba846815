/* SPDX-License-Identifier: BSD-2-Clause */
/* perfetto_args.c - fields as debug annotations: numbers stay numbers, structs and lists stay
 * what they are. See perfetto_write.h. */
#include <stdio.h>
#include <string.h>

#include "../../util/put.h"
#include "perfetto_write.h"
#include "../../util/proto.h"

/* any value but a struct or a list, with its name; three dimensions are the longest */
#define ROOM 256
#define MAX_OPEN 16  /* structs in structs */
#define STR_MAX 2048 /* bytes of a string */
#define FLAGS_MAX 1024

enum { EVENT_ANNOTATION = 4 };
enum {
	ARG_NAME = 1,
	ARG_BOOL = 2,
	ARG_UINT = 3,
	ARG_INT = 4,
	ARG_DOUBLE = 5,
	ARG_POINTER = 7,
	ARG_DICT = 11,
	ARG_ARRAY = 12,
	ARG_STRING = 17,
};

static char *perfetto_args_put_name(struct perfetto_writer *w, char *p, const char *name)
{
	return proto_u64(p, ARG_NAME, perfetto_const_iid(w, PERFETTO_ARGS, name));
}

static char *perfetto_args_put_string(struct perfetto_writer *w, char *p, const char *s, size_t n)
{
	return proto_u64(p, ARG_STRING,
			 perfetto_iid(w, PERFETTO_STRINGS, s, n < STR_MAX ? n : STR_MAX));
}

char *perfetto_arg_u64(struct perfetto_writer *w, char *p, const char *name, uint64_t v)
{
	char *begin = p = proto_open(p, EVENT_ANNOTATION);

	p = proto_u64(perfetto_args_put_name(w, p, name), ARG_UINT, v);
	return proto_close(begin, p);
}

char *perfetto_arg_bool(struct perfetto_writer *w, char *p, const char *name, bool v)
{
	char *begin = p = proto_open(p, EVENT_ANNOTATION);

	p = proto_u64(perfetto_args_put_name(w, p, name), ARG_BOOL, v);
	return proto_close(begin, p);
}

char *perfetto_arg_str(struct perfetto_writer *w, char *p, const char *name, const char *s,
		       size_t n)
{
	char *begin = p = proto_open(p, EVENT_ANNOTATION);

	p = perfetto_args_put_string(w, perfetto_args_put_name(w, p, name), s, n);
	return proto_close(begin, p);
}

/* Writes a frame as one string: the function and the line of its source, or its place in the
 * object. */
static char *put_frame(struct perfetto_writer *w, char *p, const struct stack_frame *f,
		       bool mangled)
{
	const char *name = mangled && f->mangled ? f->mangled : f->function;
	char text[STR_MAX];
	int n;

	if (!name)
		n = snprintf(text, sizeof(text), "%.1000s+%#llx", f->object ? f->object : "",
			     (unsigned long long)f->address);
	else if (f->file && f->line)
		n = snprintf(text, sizeof(text), "%.1000s (%.900s:%u)", name, f->file, f->line);
	else
		n = snprintf(text, sizeof(text), "%.2000s", name);
	return perfetto_args_put_string(w, p, text, (size_t)n);
}

char *perfetto_arg_stack(struct perfetto_writer *w, char *p, const char *end, const struct stack *s,
			 bool mangled)
{
	char *begin = p = proto_open(p, EVENT_ANNOTATION), *element;

	p = perfetto_args_put_name(w, p, "stack");
	for (uint32_t i = 0; i < s->nframes; i++) {
		bool room = end - p >= ROOM;

		element = p = proto_open(p, ARG_ARRAY);
		p = room ? put_frame(w, p, s->frames[i], mangled)
			 : perfetto_args_put_string(w, p, "...", 3);
		p = proto_close(element, p);
		if (!room)
			break;
	}
	return proto_close(begin, p);
}

/* The names of the bits that are set, with | between them; what has no name as one hex number. */
static char *perfetto_args_put_flags(struct perfetto_writer *w, char *p, const struct field *f)
{
	char text[FLAGS_MAX], *t = text;
	const struct xlat_row *row;
	uint64_t left = f->u;
	int at = 0;

	while ((row = xlat_flag(f->xlat, f->u, left, &at))) {
		size_t n = strlen(row->name);

		if (n > (size_t)(text + sizeof(text) - t) - 32)
			continue;
		if (t != text)
			*t++ = '|';
		t = put_mem(t, row->name, n);
		left &= ~(uint64_t)row->value;
	}
	if (left || t == text) {
		if (t != text)
			*t++ = '|';
		t = put_hex(t, left);
	}
	return perfetto_args_put_string(w, p, text, (size_t)(t - text));
}

static char *put_dims(char *p, const uint32_t *dim)
{
	for (int i = 0; i < 3; i++) {
		char *begin = p = proto_open(p, ARG_ARRAY);

		p = proto_close(begin, proto_u64(p, ARG_UINT, dim[i]));
	}
	return p;
}

static char *put_hex_bytes(struct perfetto_writer *w, char *p, const struct field *f)
{
	size_t n = f->str_len < STR_MAX / 2 ? f->str_len : STR_MAX / 2;
	char text[STR_MAX];

	for (size_t i = 0; i < n; i++) {
		text[i * 2] = "0123456789abcdef"[(unsigned char)f->str[i] >> 4];
		text[i * 2 + 1] = "0123456789abcdef"[f->str[i] & 15];
	}
	return perfetto_args_put_string(w, p, text, n * 2);
}

static char *put_value(struct perfetto_writer *w, char *p, const struct field *f)
{
	const char *name;

	/* if an input could not be read, at least its pointer is known */
	if (f->absent)
		return proto_u64(p, ARG_POINTER, f->u);
	switch (f->type) {
	case FIELD_INT: return proto_u64(p, ARG_INT, (uint64_t)f->i);
	case FIELD_UINT:
	case FIELD_SIZE:
	case FIELD_DURATION: return proto_u64(p, ARG_UINT, f->u);
	case FIELD_PTR:
	case FIELD_STREAM:
	case FIELD_FUNC: return proto_u64(p, ARG_POINTER, f->u);
	case FIELD_ENUM:
	case FIELD_ERROR:
	case FIELD_WORD:
		name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
		if (!name)
			return proto_u64(p, ARG_INT, (uint64_t)f->i);
		return proto_u64(p, ARG_STRING, perfetto_const_iid(w, PERFETTO_STRINGS, name));
	case FIELD_FLAGS: return perfetto_args_put_flags(w, p, f);
	case FIELD_BOOL: return proto_u64(p, ARG_BOOL, f->u != 0);
	case FIELD_FLOAT:
	case FIELD_RATE: return proto_double(p, ARG_DOUBLE, f->f);
	case FIELD_DIM3: return put_dims(p, f->dim);
	case FIELD_STR: return perfetto_args_put_string(w, p, f->str, f->str_len);
	case FIELD_BYTES: return put_hex_bytes(w, p, f);
	default: return proto_u64(p, ARG_STRING, perfetto_const_iid(w, PERFETTO_STRINGS, "?"));
	}
}

char *perfetto_args(struct perfetto_writer *w, char *p, const char *end, const struct field *f,
		    int n)
{
	char *begins[MAX_OPEN];
	bool list[MAX_OPEN] = { false };
	int open = 0, skip = 0;

	for (int i = 0; i < n; i++, f++) {
		bool opens = f->type == FIELD_OPEN && !f->absent;
		char *begin;

		if (f->type == FIELD_CLOSE) {
			if (skip)
				skip--;
			else if (open)
				p = proto_close(begins[open--], p);
			continue;
		}
		/* what is closed later takes up to four bytes more for each that is open */
		if (skip || open == MAX_OPEN - 1 || end - p < ROOM) {
			skip += opens;
			continue;
		}
		if (f->absent && (f->out || !f->u))
			continue;
		begin = p = proto_open(p, !open	       ? EVENT_ANNOTATION
					  : list[open] ? ARG_ARRAY
						       : ARG_DICT);
		if (f->name && !(open && list[open]))
			p = perfetto_args_put_name(w, p, field_key(f));
		if (opens) {
			begins[++open] = begin;
			list[open] = f->is_list;
		} else {
			p = proto_close(begin, put_value(w, p, f));
		}
	}
	while (open)
		p = proto_close(begins[open--], p);
	return p;
}
