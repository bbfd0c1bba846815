/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_api_dump.c - prints the compiled tables of user/api as JSON lines, for check_api.py:
 * what the tables mean, not how they are written.
 */
#include <stdio.h>

#include "../user/api/layout.h"
#include "../user/api/xlat.h"

static void put_name(const char *key, const char *value)
{
	if (value)
		printf(",\"%s\":\"%s\"", key, value);
}

static void put_func(const struct api_func *f)
{
	printf("{\"func\":\"%s\",\"domain\":%d,\"class\":%d,\"ret\":%d,\"flags\":%d,\"since\":%d,"
	       "\"until\":%d,\"args\":[",
	       f->name, f->domain, f->class, f->ret, f->flags, f->since, f->until);
	for (int i = 0; i < f->nargs; i++) {
		const struct api_arg *a = &f->args[i];

		printf("%s{\"name\":\"%s\",\"type\":%d,\"abi\":%d,\"dir\":%d,\"width\":%d,"
		       "\"signed\":%d,\"deref\":%d,\"max\":%d,\"unit\":%d",
		       i ? "," : "", a->name, a->type, a->abi, a->dir, a->width, a->is_signed,
		       a->deref, a->max, a->unit);
		put_name("count", a->count);
		put_name("by", a->by);
		put_name("xlat", a->xlat ? a->xlat->id : NULL);
		put_name("layout", a->layout ? a->layout->name : NULL);
		printf("}");
	}
	printf("]}\n");
}

static void put_struct(const struct api_struct *s)
{
	printf("{\"struct\":\"%s\",\"size\":%d,\"used\":%d,\"nested\":%d,\"selector\":%d,"
	       "\"members\":[",
	       s->name, s->size, s->used, s->nested, s->selector);
	for (int i = 0; i < s->nmembers; i++) {
		const struct api_member *m = &s->members[i];

		printf("%s{\"name\":\"%s\",\"off\":%d,\"width\":%d,\"type\":%d,\"n\":%d,\"list\":%"
		       "d,\"count_off\":%d",
		       i ? "," : "", m->spelled ? m->spelled : m->name, m->off, m->width, m->type,
		       m->n, m->list, m->count_off);
		put_name("xlat", m->xlat ? m->xlat->id : NULL);
		put_name("layout", m->layout ? m->layout->name : NULL);
		printf("}");
	}
	printf("]}\n");
}

static void put_xlat(const struct xlat *x)
{
	printf("{\"xlat\":\"%s\",\"prefix\":\"%s\",\"flags\":%d,\"rows\":[", x->id, x->prefix,
	       x->flags);
	for (int i = 0; i < x->nrows; i++)
		printf("%s[%lld,\"%s\"]", i ? "," : "", (long long)x->rows[i].value,
		       x->rows[i].name);
	printf("]}\n");
}

int main(void)
{
	printf("{\"fields\":{\"INT\":%d,\"UINT\":%d,\"SIZE\":%d,\"PTR\":%d,\"STREAM\":%d,\"FUNC\":%"
	       "d,\"ENUM\":%d,\"FLAGS\":%d,\"BOOL\":%d,\"FLOAT\":%d,\"DIM3\":%d,\"STR\":%d,"
	       "\"BYTES\":%d,\"UNKNOWN\":%d,\"OPEN\":%d}}\n",
	       FIELD_INT, FIELD_UINT, FIELD_SIZE, FIELD_PTR, FIELD_STREAM, FIELD_FUNC, FIELD_ENUM,
	       FIELD_FLAGS, FIELD_BOOL, FIELD_FLOAT, FIELD_DIM3, FIELD_STR, FIELD_BYTES,
	       FIELD_UNKNOWN, FIELD_OPEN);
	for (int i = 0; i < api_nfuncs; i++)
		if (!api_funcs[i].layer) /* CUDA's headers do not have them */
			put_func(&api_funcs[i]);
	for (int i = 0; api_structs[i]; i++)
		put_struct(api_structs[i]);
	for (int i = 0; xlat_all[i]; i++)
		put_xlat(xlat_all[i]);
	return 0;
}
