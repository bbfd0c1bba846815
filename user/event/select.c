/* SPDX-License-Identifier: BSD-2-Clause */
/* select.c - see select.h. Knows the table of functions; no options, no source. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../util/parse.h"
#include "select.h"

#define WORD_MAX 128

/* Copies a function's name without its _vN; false when it has none. */
static bool without_version(const char *name, char *buf, size_t size)
{
	size_t n = strlen(name);

	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	if (n < 3 || n == strlen(name) || n > size || strncmp(name + n - 2, "_v", 2))
		return false;
	memcpy(buf, name, n - 2);
	buf[n - 2] = '\0';
	return true;
}

bool select_glob(const char *glob, const struct api_func *f)
{
	char base[WORD_MAX];

	if (!fnmatch(glob, f->name, 0))
		return true;
	return without_version(f->name, base, sizeof(base)) && !fnmatch(glob, base, 0);
}

static void select_set(struct selection *s, int func, bool in, bool named)
{
	uint64_t bit = 1ULL << (func % 64);

	if (in) {
		s->shown[func / 64] |= bit;
		if (named)
			s->named[func / 64] |= bit;
	} else {
		s->shown[func / 64] &= ~bit;
		s->named[func / 64] &= ~bit;
	}
}

/* True for the functions that "default" means. */
static bool is_usual(const struct api_func *f)
{
	return f->class != API_INTERNAL && !api_domains[f->domain].not_usual;
}

static int class_of(const char *word)
{
	char lower[WORD_MAX];
	size_t n = strlen(word);

	for (size_t i = 0; i <= n; i++)
		lower[i] = (char)tolower((unsigned char)word[i]);
	return api_class_parse(lower);
}

/* Names the nearest functions and classes. */
static int unknown(const char *word, char *msg, size_t size)
{
	struct parse_nearest near = { .n = 0 };
	char text[3 * WORD_MAX], base[WORD_MAX];

	for (int c = 0; c < API_CLASS_END; c++)
		parse_nearest_add(&near, word, api_class_name((enum api_class)c));
	for (int d = 0; d < API_DOMAIN_END; d++)
		parse_nearest_add(&near, word, api_domain_names[d]);
	parse_nearest_add(&near, word, "all");
	parse_nearest_add(&near, word, "default");
	parse_nearest_add(&near, word, "none");
	for (int i = 0; i < api_nfuncs; i++) {
		/* people type names without _vN, so suggest them without it */
		bool cut = without_version(api_funcs[i].name, base, sizeof(base));

		parse_nearest_add(&near, word, cut ? base : api_funcs[i].name);
	}
	snprintf(msg, size, "-e: no function or class is named '%s'%s", word,
		 parse_nearest_text(&near, text, sizeof(text)));
	if (!near.n)
		snprintf(msg, size, "-e: no function or class is named '%s'; see 'cudatrace list'",
			 word);
	return -EINVAL;
}

/* Nothing can be added to "none", and nothing can be taken out of it. */
static int add_none(struct selection *s, bool in, char *msg, size_t size)
{
	if (!in || s->any) {
		snprintf(msg, size,
			 "-e: 'none' means no function at all: give it alone, or leave it out");
		return -EINVAL;
	}
	s->any = s->none = true;
	return 0;
}

static int select_add_word(struct selection *s, const char *word, char *msg, size_t size)
{
	bool in = *word != '!', glob, hit = false, calls = false;
	enum api_domain domain;
	uint32_t layers = 0;
	int class;

	if (!in)
		word++;
	word += *word == '%'; /* strace's mark of a class */
	if (!*word) {
		snprintf(msg, size,
			 "-e: an empty word; give classes, names and globs, separated by commas");
		return -EINVAL;
	}
	if (s->none || !strcasecmp(word, "none"))
		return add_none(s, in, msg, size);
	if (!s->any && !in)
		for (int i = 0; i < api_nfuncs; i++)
			select_set(s, i, is_usual(&api_funcs[i]), false);
	s->any = true;
	glob = strpbrk(word, "*?[") != NULL;
	class = class_of(word);
	domain = api_domain_find(word, strlen(word));
	for (int i = 0; i < api_nfuncs; i++) {
		const struct api_func *f = &api_funcs[i];
		bool all = !strcasecmp(word, "all"), usual = !strcasecmp(word, "default");
		bool match, named = false;

		if (all || usual) {
			match = all || is_usual(f);
		} else if (class >= 0) {
			match = f->class == class;
		} else if (domain != API_DOMAIN_END) {
			match = f->domain == domain && f->class != API_INTERNAL;
		} else {
			match = select_glob(word, f);
			named = !glob;
		}
		if (!match)
			continue;
		hit = true;
		if (f->layer)
			layers |= api_layer(f->domain);
		else
			calls = true;
		select_set(s, i, in, named);
		if (in)
			s->removed[i / 64] &= ~(1ULL << (i % 64));
		else
			s->removed[i / 64] |= 1ULL << (i % 64);
	}
	if (!calls && in)
		*(layers & (layers - 1) ? &s->either_layer : &s->layers) |= layers;
	if (hit)
		return 0;
	if (!glob)
		return unknown(word, msg, size);
	snprintf(msg, size, "-e: no function matches '%s'; see 'cudatrace list'", word);
	return -EINVAL;
}

int select_add(struct selection *s, const char *list, char *msg, size_t size)
{
	const char *end;

	for (;; list = end + 1) {
		char word[WORD_MAX];
		size_t n;
		int err;

		end = strchrnul(list, ',');
		while (isspace((unsigned char)*list))
			list++;
		n = (size_t)(end > list ? end - list : 0);
		while (n && isspace((unsigned char)list[n - 1]))
			n--;
		if (n >= sizeof(word)) {
			snprintf(msg, size, "-e: a word of %zu characters is no function's name",
				 n);
			return -EINVAL;
		}
		memcpy(word, list, n);
		word[n] = '\0';
		err = select_add_word(s, word, msg, size);
		if (err || !*end)
			return err;
	}
}

int select_finish(struct selection *s, enum api_domain domain, char *msg, size_t size)
{
	bool left = false, said = s->any;

	if (!said)
		select_add(s, domain != API_DOMAIN_END ? api_domain_name(domain) : "default", msg,
			   size);
	for (int i = 0; i < api_nfuncs; i++) {
		if (domain != API_DOMAIN_END && api_funcs[i].domain != domain)
			select_set(s, i, false, false);
		left |= s->shown[i / 64] >> (i % 64) & 1;
	}
	if (left || s->none)
		return 0;
	snprintf(msg, size, "-e%s leaves no function to trace; see 'cudatrace list'",
		 domain != API_DOMAIN_END ? " together with --domain" : "");
	return -EINVAL;
}

uint32_t select_scopes(struct selection *s)
{
	static const uint8_t kinds[API_CLASS_END] = {
		[API_RANGE] = CT_SCOPE_RANGE,		[API_MARK] = CT_SCOPE_MARK,
		[API_COLLECTIVE] = CT_SCOPE_COLLECTIVE, [API_COMMUNICATOR] = CT_SCOPE_COMMUNICATOR,
		[API_OPERATOR] = CT_SCOPE_OPERATOR,	[API_GEMM] = CT_SCOPE_GEMM,
	};
	uint32_t scopes = 0;

	for (int i = 0; i < api_nfuncs; i++) {
		if (!api_funcs[i].layer || api_layer_reports(&api_funcs[i]) ||
		    !(s->shown[i / 64] >> (i % 64) & 1))
			continue;
		scopes |= 1u << kinds[api_funcs[i].class];
		select_set(s, i, false, false);
	}
	return scopes;
}
