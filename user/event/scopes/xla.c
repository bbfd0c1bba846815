/* SPDX-License-Identifier: BSD-2-Clause */
/* xla.c - see xla.h. */
#include <string.h>

#include "../device.h"
#include "../field_add.h"
#include "lineage.h"
#include "xla.h"

#define AROUND_MAX 64 /* ranges that are looked at, from the inside */

/* Behind "KEY=" up to `,`, or to the end; a value may have `=` in it. */
static const char *xla_value_of(const char *text, size_t len, const char *key, uint32_t *n)
{
	const char *end = text + len, *next;
	size_t k = strlen(key);

	for (const char *at = text; at < end; at = next + 1) {
		next = memchr(at, ',', (size_t)(end - at));
		next = next ? next : end;
		if ((size_t)(next - at) > k + 1 && !memcmp(at, key, k) && at[k] == '=') {
			*n = (uint32_t)(next - at - k - 1);
			return at + k + 1;
		}
	}
	return NULL;
}

bool xla_range(const char *text, size_t len, struct xla_range *r)
{
	static const char *const begins[] = { "XlaModule:#", "Thunk:#" };
	const char *sharp;

	*r = (struct xla_range){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		size_t n = strlen(begins[i]);

		if (len <= n || memcmp(text, begins[i], n) != 0)
			continue;
		text += n;
		len -= n;
		/* what a text that was cut off ends with may be a part */
		sharp = memrchr(text, '#', len);
		if (sharp)
			len = (size_t)(sharp - text);
		else
			while (len && text[len - 1] != ',')
				len--;
		r->module = xla_value_of(text, len, "hlo_module", &r->module_len);
		r->op = xla_value_of(text, len, "hlo_op", &r->op_len);
		r->name = xla_value_of(text, len, "name", &r->name_len);
		/* commas may be in it */
		if (r->name && r->op > r->name)
			r->name_len = (uint32_t)(r->op - strlen(",hlo_op=") - r->name);
		return r->module || r->op;
	}
	return false;
}

static void xla_add(struct field **at, const char *name, const char *text, uint32_t len, bool shown)
{
	struct field *f = text ? field_add_str(at, name, text, len) : NULL;

	if (f && !shown)
		f->label = "";
}

void xla_scope_fields(struct field **at, const char *text, size_t len)
{
	struct xla_range r;

	if (!xla_range(text, len, &r))
		return;
	/* the row has the text */
	xla_add(at, "hlo_module", r.module, r.module_len, false);
	xla_add(at, "hlo_op", r.op, r.op_len, false);
	xla_add(at, "op_name", r.name, r.name_len, false);
}

void xla_work_fields(struct field **at, const struct event *ev)
{
	const struct scope_line *line = ev->scope;
	struct xla_range r, all = { 0 };

	for (int i = 0; line && i < AROUND_MAX && !all.module; i++) {
		if (line->kind == CT_SCOPE_RANGE && line->name &&
		    xla_range(line->name, strlen(line->name), &r)) {
			if (!all.op) {
				all.op = r.op;
				all.op_len = r.op_len;
				all.name = r.name;
				all.name_len = r.name_len;
			}
			all.module = r.module;
			all.module_len = r.module_len;
		}
		line = line->parent == CT_SCOPE_NONE || line->parent == CT_SCOPE_UNKNOWN
			       ? NULL
			       : lineage_find(ev->lineage, line->pid, line->parent);
	}
	xla_add(at, "hlo_module", all.module, all.module_len, true);
	xla_add(at, "hlo_op", all.op, all.op_len, true);
	xla_add(at, "op_name", all.name, all.name_len, false);
}
