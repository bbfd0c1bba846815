/* SPDX-License-Identifier: BSD-2-Clause */
/* symbol.c - see symbol.h. */
#include "symbol.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS (2 * CT_SYMBOLS)

/* By number. Nothing is changed once it has a number. */
static struct symbol {
	char *text;
	struct symbol_args args;
} symbols[CT_SYMBOLS];
static uint16_t buckets[BUCKETS];
static uint32_t nsymbols = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Adds a part of a name. Returns the length so far; 0: it does not fit. */
static size_t add_part(char *buf, size_t len, size_t n, const char *part, size_t bytes)
{
	if (n + 2 + bytes >= len)
		return 0;
	if (n) {
		memcpy(buf + n, "::", 2);
		n += 2;
	}
	memcpy(buf + n, part, bytes);
	return n + bytes;
}

size_t symbol_name(const char *symbol, char *buf, size_t len)
{
	const char *at = symbol;
	size_t n = 0, bytes;

	if (strncmp(at, "_ZN", 3) != 0 || strchr(symbol, '.'))
		return 0;
	for (at += 3; *at != 'E'; at += bytes) {
		if (*at == 'L') /* of one file */
			at++;
		if (!isdigit((unsigned char)*at))
			return 0;
		for (bytes = 0; isdigit((unsigned char)*at) && bytes < len; at++)
			bytes = bytes * 10 + (size_t)(*at - '0');
		if (!bytes || strnlen(at, bytes) < bytes)
			return 0;
		n = add_part(buf, len, n, at, bytes);
		if (!n)
			return 0;
	}
	buf[n] = '\0';
	return n;
}

static bool is_same(const struct symbol *s, const char *name, const struct symbol_args *args)
{
	return !strcmp(s->text, name) && s->args.plan == args->plan &&
	       s->args.undefined == args->undefined && !strcmp(s->args.codes, args->codes);
}

/* Where the name is, or would be. */
static uint32_t symbol_bucket_of(const char *name, const struct symbol_args *args)
{
	uint32_t h = 2166136261u;

	for (const char *c = name; *c; c++)
		h = (h ^ (uint8_t)*c) * 16777619u;
	for (h %= BUCKETS; buckets[h] && !is_same(&symbols[buckets[h]], name, args);)
		h = (h + 1) % BUCKETS;
	return h;
}

uint32_t symbol_number(const char *name, const struct symbol_args *args)
{
	static const struct symbol_args none = { 0 };
	uint32_t at, number;

	args = args ? args : &none;
	pthread_mutex_lock(&lock);
	at = symbol_bucket_of(name, args);
	number = buckets[at];
	if (!number && nsymbols < CT_SYMBOLS) {
		symbols[nsymbols].text = strdup(name);
		symbols[nsymbols].args = *args;
		if (symbols[nsymbols].text) {
			number = nsymbols;
			buckets[at] = (uint16_t)number;
			__atomic_store_n(&nsymbols, nsymbols + 1, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&lock);
	return number;
}

static const struct symbol *symbol_of(uint64_t number)
{
	return number && number < __atomic_load_n(&nsymbols, __ATOMIC_ACQUIRE) ? &symbols[number]
									       : NULL;
}

const char *symbol_text(uint64_t number)
{
	const struct symbol *s = symbol_of(number);

	return s ? s->text : NULL;
}

const struct symbol_args *symbol_args(uint64_t number)
{
	static const struct symbol_args none = { 0 };
	const struct symbol *s = symbol_of(number);

	return s ? &s->args : &none;
}
