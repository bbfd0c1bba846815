/* SPDX-License-Identifier: BSD-2-Clause */
/* nsys_names.c - names in the form that nsys uses: API functions with the suffix of CUPTI's
 * callback id, kernels by base name. */
#include <string.h>

#include "nsys.h"

/* ---- functions ---- */

static const struct {
	const char *row, *name, *per_thread;
	int version;
} cbids[] = {
#define CBID(row, version, name, twin) { #row, name, twin, version },
#include "nsys_cbid.def"
#undef CBID
};

const char *nsys_api_name(int row, bool per_thread)
{
	const struct api_func *f = &api_funcs[row];
	const char *name = f->name;

	/* if there are several, the newest one of the row's versions */
	for (size_t i = 0; i < ARRAY_LEN(cbids); i++)
		if (!strcmp(cbids[i].row, f->name) &&
		    (name == f->name || !f->until || cbids[i].version < f->until * 10))
			name = per_thread && cbids[i].per_thread ? cbids[i].per_thread
								 : cbids[i].name;
	return name;
}

/* ---- kernels ---- */

/* Returns the place after the bracket that closes the one at p, or the end of the text if there
 * is none. */
static const char *past(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		if (strchr("<({[", *p))
			depth++;
		else if (strchr(">)}]", *p) && !(*p == '>' && p[-1] == '-') && !--depth)
			return p + 1;
	}
	return p;
}

size_t nsys_base_name(const char *full, const char **from)
{
	const char *begin = full, *end = NULL, *p = full;

	*from = full;
	/* names of operators contain brackets, and no kernel is an operator */
	if (strstr(full, "operator"))
		return strlen(full);
	while (*p) {
		if (p[0] == ':' && p[1] == ':') {
			p += 2;
			begin = p;
			end = NULL;
		} else if (*p == ' ') {
			/* the type is before it; after the parameters only "const" and "[clone
			 * ...]" follow */
			if (end && end[0] == '(')
				break;
			begin = ++p;
			end = NULL;
		} else if (*p == '<' || *p == '(' || *p == '{' || *p == '[') {
			/* template arguments or parameters; or a part of the scope like
			 * (anonymous namespace):: */
			if (!end && p > begin)
				end = p;
			else if (end && *p == '(' && *end == '<')
				break;
			p = past(p);
		} else {
			p++;
		}
	}
	if (!end)
		end = p;
	if (end == begin)
		return strlen(full);
	*from = begin;
	return (size_t)(end - begin);
}
