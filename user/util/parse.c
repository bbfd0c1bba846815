/* SPDX-License-Identifier: BSD-2-Clause */
/* parse.c - see parse.h. Knows no option and no function. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "parse.h"

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || v < min || v > max)
		return -ERANGE;
	*out = v;
	return 0;
}

/* "12.345" times scale, exactly; digits below one unit are cut. *end is set to what follows the
 * number. */
static int scaled(const char *text, const char **end, uint64_t scale, uint64_t *out)
{
	uint64_t whole = 0, frac = 0, unit = scale;
	bool any = false;

	for (; isdigit((unsigned char)*text); text++) {
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
			return -ERANGE;
		any = true;
	}
	if (*text == '.') {
		uint64_t digits = 0, div = 1;

		for (text++; isdigit((unsigned char)*text); text++) {
			any = true;
			if (div >= 1000000000)
				continue;
			digits = digits * 10 + (uint64_t)(*text - '0');
			div *= 10;
		}
		/* digits < 10^9; unit <= 2^40 or 3.6 * 10^12: widened so that it cannot overflow */
		frac = (uint64_t)((unsigned __int128)digits * unit / div);
	}
	if (!any)
		return -EINVAL;
	*end = text;
	if (__builtin_mul_overflow(whole, scale, &whole) ||
	    __builtin_add_overflow(whole, frac, out))
		return -ERANGE;
	return 0;
}

struct unit {
	const char *name;
	uint64_t scale;
};

static int with_unit(const char *text, const struct unit *units, uint64_t bare, uint64_t *out)
{
	const char *suffix;
	uint64_t v, scale = 0;
	int err;

	err = scaled(text, &suffix, 1, &v);
	if (err)
		return err;
	if (!*suffix)
		scale = bare;
	for (; units->name && *suffix; units++)
		if (!strcmp(suffix, units->name))
			scale = units->scale;
	if (!scale)
		return -EINVAL;
	return scaled(text, &suffix, scale, out);
}

int parse_duration(const char *text, uint64_t bare_ns, uint64_t *out_ns)
{
	static const struct unit units[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", 1000000000 },
		{ "m", 60000000000 },
		{ "min", 60000000000 },
		{ "h", 3600000000000 },
		{ NULL, 0 },
	};

	return with_unit(text, units, bare_ns, out_ns);
}

int parse_size(const char *text, uint64_t *out_bytes)
{
	static const struct unit units[] = {
		{ "B", 1 },
		{ "kB", 1000 },
		{ "KB", 1000 },
		{ "MB", 1000000 },
		{ "GB", 1000000000 },
		{ "TB", 1000000000000 },
		{ "K", 1ULL << 10 },
		{ "k", 1ULL << 10 },
		{ "M", 1ULL << 20 },
		{ "G", 1ULL << 30 },
		{ "T", 1ULL << 40 },
		{ "KiB", 1ULL << 10 },
		{ "MiB", 1ULL << 20 },
		{ "GiB", 1ULL << 30 },
		{ "TiB", 1ULL << 40 },
		{ NULL, 0 },
	};

	return with_unit(text, units, 1, out_bytes);
}

#define WORD_MAX 64

/* Levenshtein's distance with case ignored; words beyond WORD_MAX are far from everything. */
static int distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	int row[WORD_MAX + 1];

	if (na > WORD_MAX || nb > WORD_MAX)
		return 1000;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= na; i++) {
		int diag = row[0];

		row[0] = (int)i;
		for (size_t j = 1; j <= nb; j++) {
			int same = tolower((unsigned char)a[i - 1]) ==
				   tolower((unsigned char)b[j - 1]);
			int best = diag + !same;

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diag = row[j];
			row[j] = best;
		}
	}
	return row[nb];
}

void parse_nearest_add(struct parse_nearest *near, const char *word, const char *candidate)
{
	int cost = distance(word, candidate);
	int limit = 1 + (int)strlen(word) / 4;
	int at;

	/* a word with which a name begins is a good hint too, but comes after the real
	 * misspellings */
	if (strlen(word) >= 4 && !strncasecmp(word, candidate, strlen(word)) && cost > limit)
		cost = limit;
	if (cost > limit)
		return;
	for (int i = 0; i < near->n; i++)
		if (!strcmp(near->names[i], candidate))
			return;
	for (at = near->n; at > 0 && near->cost[at - 1] > cost; at--)
		;
	if (at >= PARSE_NEAREST)
		return;
	if (near->n < PARSE_NEAREST)
		near->n++;
	for (int i = near->n - 1; i > at; i--) {
		memcpy(near->names[i], near->names[i - 1], sizeof(near->names[i]));
		near->cost[i] = near->cost[i - 1];
	}
	snprintf(near->names[at], sizeof(near->names[at]), "%s", candidate);
	near->cost[at] = cost;
}

const char *parse_nearest_text(const struct parse_nearest *near, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < near->n && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s",
				      !i		 ? "; did you mean "
				      : i == near->n - 1 ? " or "
							 : ", ",
				      near->names[i]);
	if (near->n && n < size)
		snprintf(buf + n, size - n, "?");
	return buf;
}
