/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field_add.h - inside event: appending fields to a list. The caller makes sure that there is room.
 */
#ifndef CT_FIELD_ADD_H
#define CT_FIELD_ADD_H

#include <string.h>

#include "event.h"

static inline struct field *field_add(struct field **at, const char *name, enum field_type type)
{
	struct field *f = (*at)++;

	memset(f, 0, sizeof(*f));
	f->name = f->label = name;
	f->type = (uint8_t)type;
	return f;
}

/* The last field has another name in outputs for programs. */
static inline void field_as(struct field **at, const char *key)
{
	(*at)[-1].key = key;
}

static inline struct field *field_add_u(struct field **at, const char *name, enum field_type type,
					uint64_t v)
{
	struct field *f = field_add(at, name, type);

	f->u = v;
	return f;
}

static inline struct field *field_add_str(struct field **at, const char *name, const char *s,
					  size_t n)
{
	struct field *f = field_add(at, name, FIELD_STR);

	f->str = s;
	f->str_len = (uint32_t)n;
	return f;
}

/* A word, or the number if there is no word for it; nothing if the number is not known. */
static inline void field_add_word(struct field **at, const char *name, uint32_t v, const char *word)
{
	if (v == CT_UNKNOWN)
		return;
	if (word)
		field_add_str(at, name, word, strlen(word));
	else
		field_add_u(at, name, FIELD_UINT, v);
}

#endif
