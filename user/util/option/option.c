/* SPDX-License-Identifier: BSD-2-Clause */
/* option.c - see option.h: a value against its type. Knows no command, no sink and no option. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"
#include "../msg.h"
#include "../parse.h"

/* ---- texts ---- */

const char *option_words(const char *const *words, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; words[i] && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s",
				      !i	     ? ""
				      : words[i + 1] ? ", "
						     : " or ",
				      words[i]);
	return buf;
}

int option_unknown(const char *name, const char *val, const char *const *words)
{
	struct parse_nearest near = { .n = 0 };
	char known[256], nearest[256];

	/* any word is near to one or two letters */
	for (int i = 0; words[i] && strlen(val) > 2; i++)
		parse_nearest_add(&near, val, words[i]);
	msg_error("%s: '%s' is not one of %s%s", name, val,
		  option_words(words, known, sizeof(known)),
		  parse_nearest_text(&near, nearest, sizeof(nearest)));
	return -EINVAL;
}

struct unit {
	uint64_t scale;
	const char *name;
};
static const struct unit times[] = { { 3600000000000, "h" }, { 1000000000, "s" }, { 1000000, "ms" },
				     { 1000, "us" },	     { 1, "ns" },	  { 0, NULL } };
static const struct unit sizes[] = {
	{ 1ULL << 30, "GiB" }, { 1ULL << 20, "MiB" }, { 1ULL << 10, "KiB" }, { 1, "" }, { 0, NULL }
};

/* Writes a bound in the largest unit of which it is a multiple. Returns buf. */
static const char *bound(const struct option_type *t, uint64_t v, char *buf, size_t size)
{
	const struct unit *u = t->kind == OPTION_DURATION ? times
			       : t->kind == OPTION_SIZE	  ? sizes
							  : sizes + 3;

	while (u->scale > 1 && v % u->scale)
		u++;
	snprintf(buf, size, "%llu%s", (unsigned long long)(v / u->scale), u->name);
	return buf;
}

/* " from 100us to 1h", " from 1s on", ", up to 24h"; a bound of one unit is not worth a message. */
static const char *range(const struct option_type *t, char *buf, size_t size)
{
	bool from = t->min > 1, to = t->max < OPTION_MAX;
	char least[32], most[32];

	snprintf(buf, size, "%s%s%s%s%s", from ? " from " : "",
		 from ? bound(t, t->min, least, sizeof(least)) : "", from && !to ? " on" : "",
		 !to	? ""
		 : from ? " to "
			: ", up to ",
		 to ? bound(t, t->max, most, sizeof(most)) : "");
	return buf;
}

/* Reports a value that its type does not have. */
static int wrong(const struct option_type *t, const char *name, const char *val)
{
	char least[32], most[32], text[80] = "";
	bool counts = t->kind == OPTION_COUNT;

	if (!t->how && t->max == OPTION_MAX)
		snprintf(text, sizeof(text), "%s or more", bound(t, t->min, least, sizeof(least)));
	else if (!t->how)
		snprintf(text, sizeof(text), counts ? "%s to %s" : "one from %s to %s",
			 bound(t, t->min, least, sizeof(least)),
			 bound(t, t->max, most, sizeof(most)));
	if (t->how)
		msg_error("%s: '%s' is no %s%s; %s", name, val, t->what,
			  counts ? "" : range(t, text, sizeof(text)), t->how);
	else
		msg_error("%s: '%s' is no %s%s; give %s", name, val, counts ? "number of " : "",
			  t->what, text);
	return -EINVAL;
}

/* ---- values ---- */

static int option_put(const struct option_type *t, void *options, uint64_t v)
{
	char *at = (char *)options + t->at;

	switch (t->width) {
	case 1: *(uint8_t *)(void *)at = (uint8_t)v; break;
	case 4: *(uint32_t *)(void *)at = (uint32_t)v; break;
	default: *(uint64_t *)(void *)at = v; break;
	}
	return 0;
}

static int option_put_text(const struct option_type *t, void *options, const char *text)
{
	*(const char **)(void *)((char *)options + t->at) = text;
	return 0;
}

static int set_number(const struct option_type *t, void *options, const char *name, const char *val)
{
	uint64_t v;
	int err = t->kind == OPTION_DURATION ? parse_duration(val, t->value, &v)
		  : t->kind == OPTION_SIZE   ? parse_size(val, &v)
					     : parse_u64(val, 0, UINT64_MAX, &v);

	return err || v < t->min || v > t->max ? wrong(t, name, val) : option_put(t, options, v);
}

static int set_word(const struct option_type *t, void *options, const char *name, const char *val)
{
	int i = 0;

	while (t->words[i] && strcmp(t->words[i], val))
		i++;
	if (!t->words[i])
		return option_unknown(name, val, t->words);
	return t->kind == OPTION_WORD ? option_put_text(t, options, val)
				      : option_put(t, options, t->value + (uint64_t)i);
}

static uint64_t every_bit(const struct option_type *t)
{
	uint64_t bits = 0;

	for (int i = 0; t->words[i]; i++)
		bits |= 1ULL << i;
	return bits;
}

static int set_list(const struct option_type *t, void *options, const char *name, const char *val)
{
	uint64_t bits = 0;
	char known[256];

	for (const char *at = val; *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ","), i = 0;

		if (t->every && strlen(t->every) == n && !strncmp(t->every, at, n)) {
			bits |= every_bit(t);
			at += n;
			continue;
		}
		while (t->words[i] && (strlen(t->words[i]) != n || strncmp(t->words[i], at, n)))
			i++;
		if (!t->words[i]) {
			msg_error("%s: '%.*s' is no kind of %s; give %s", name,
				  (int)(n < 40 ? n : 40), at, t->what,
				  option_words(t->words, known, sizeof(known)));
			return -EINVAL;
		}
		bits |= 1ULL << i;
		at += n;
	}
	if (bits)
		return option_put(t, options, bits);
	msg_error("%s: an empty list of kinds; give %s%skinds as %s,%s", name, t->alone ? name : "",
		  t->alone ? " alone, or " : "", t->words[0], t->words[1]);
	return -EINVAL;
}

static int set_text(const struct option_type *t, void *options, const char *name, const char *val)
{
	if (t->check && t->check(name, val))
		return -EINVAL;
	if (!t->check && !*val) {
		msg_error("%s: an empty value; give one, or leave %s out", name, name);
		return -EINVAL;
	}
	return option_put_text(t, options, val);
}

static int add_text(const struct option_type *t, void *options, const char *name, const char *val)
{
	const char ***list = (const char ***)(void *)((char *)options + t->at), **more;
	size_t n = 0;

	if (t->check && t->check(name, val))
		return -EINVAL;
	while (*list && (*list)[n])
		n++;
	more = realloc(*list, (n + 2) * sizeof(*more));
	if (!more) {
		msg_error("%s: no memory", name);
		return -EINVAL;
	}
	more[n] = val;
	more[n + 1] = NULL;
	*list = more;
	return 0;
}

int option_set(const struct option_row *r, void *options, const char *name, const char *val)
{
	const struct option_type *t = &r->type;

	if (!val)
		val = t->alone;
	switch (t->kind) {
	case OPTION_HEADING: return 0;
	case OPTION_FLAG: return option_put(t, options, true);
	case OPTION_TIMES: ++*(int *)(void *)((char *)options + t->at); return 0;
	case OPTION_CONST: return option_put(t, options, t->value);
	case OPTION_TEXT: return set_text(t, options, name, val);
	case OPTION_TEXTS: return add_text(t, options, name, val);
	case OPTION_DURATION:
	case OPTION_SIZE:
	case OPTION_COUNT: return set_number(t, options, name, val);
	case OPTION_ENUM:
	case OPTION_WORD: return set_word(t, options, name, val);
	case OPTION_LIST: return set_list(t, options, name, val);
	case OPTION_OTHER: return t->set(options, name, val);
	}
	return -EINVAL;
}

void option_defaults(const struct option_set *set, void *options)
{
	memset(options, 0, set->size);
	for (unsigned int i = 0; i < set->nrows; i++)
		if (set->rows[i].def)
			option_set(&set->rows[i], options, set->rows[i].name, set->rows[i].def);
}

void option_free(const struct option_set *set, void *options)
{
	for (unsigned int i = 0; i < set->nrows; i++) {
		char *at = (char *)options + set->rows[i].type.at;

		if (set->rows[i].type.kind == OPTION_TEXTS)
			free(*(void **)(void *)at);
	}
}
