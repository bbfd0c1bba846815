/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xlat.c - names for the values of enums, flags and error codes: the tables of xlat.def and their
 * search.
 *
 * xlat.def holds the values as CUDA's headers have them, of every version from 11.8 on, sorted
 * by value.
 */
#include "xlat.h"

#include <string.h>

#define V(value, name) { value, #name },
#define ENUM(id, prefix, ...) static const struct xlat_row rows_##id[] = { __VA_ARGS__{ 0, NULL } };
#define FLAGS(id, prefix, ...) \
	static const struct xlat_row rows_##id[] = { __VA_ARGS__{ 0, NULL } };
#include "xlat.def"
#undef ENUM
#undef FLAGS

#define TABLE(id, prefix, is_flags)                                       \
	const struct xlat xlat_##id = { #id, prefix, is_flags, rows_##id, \
					ARRAY_LEN(rows_##id) - 1 };
#define ENUM(id, prefix, ...) TABLE(id, prefix, false)
#define FLAGS(id, prefix, ...) TABLE(id, prefix, true)
#include "xlat.def"
#undef ENUM
#undef FLAGS

#define ENUM(id, prefix, ...) &xlat_##id,
#define FLAGS(id, prefix, ...) &xlat_##id,
const struct xlat *const xlat_all[] = {
#include "xlat.def"
	NULL,
};
#undef ENUM
#undef FLAGS

const char *xlat_name(const struct xlat *x, int64_t value)
{
	int lo = 0, hi = x->nrows;

	/* Most enums start at 0 and have no gaps. */
	if (value >= 0 && value < hi && x->rows[value].value == value)
		return x->rows[value].name;
	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (x->rows[mid].value < value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->nrows && x->rows[lo].value == value ? x->rows[lo].name : NULL;
}

const struct xlat_row *xlat_flag(const struct xlat *x, uint64_t value, uint64_t left, int *at)
{
	while (left && x && *at < x->nrows) {
		const struct xlat_row *row = &x->rows[(*at)++];
		uint64_t bits = (uint64_t)row->value;

		if (bits && (value & bits) == bits && left & bits)
			return row;
	}
	return NULL;
}

const char *xlat_short(const struct xlat *x, const char *name)
{
	size_t n = strlen(x->prefix);

	return !strncmp(name, x->prefix, n) && name[n] ? name + n : name;
}
