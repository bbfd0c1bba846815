/* SPDX-License-Identifier: BSD-2-Clause */
/* table_gemm.c - see table_gemm.h. */
#include <stdio.h>

#include "../../util/text.h"
#include "../../util/units.h"
#include "table_gemm.h"
#include "table_values.h"

/* "17.18 GFLOP" */
static const char *flop_text(double flop, char *text, size_t size)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
	size_t i = 0;

	while (flop >= 1000 && i + 1 < ARRAY_LEN(units)) {
		flop /= 1000;
		i++;
	}
	snprintf(text, size, "%.4g %sFLOP", flop, units[i]);
	return text;
}

void table_gemm(struct row *w, const struct ct_scope *s, const struct ct_gemm *g, bool duration)
{
	const char *error = scope_error(s, g->ret);
	char text[224], flop[48];

	row_room(w, FIELD_ROOM);
	if (s->fields_len) {
		const char *operation =
			s->text + s->text_len + s->domain_len + s->category_len + s->layer_len;

		snprintf(text, sizeof(text), "%.*s", (int)s->fields_len, operation);
		w->p = put_str(w->p, text);
	}
	/* a call that is no product has no more text */
	if (g->flop || !s->fields_len) {
		gemm_text(g, text, sizeof(text));
		w->p = put_str(s->fields_len ? put_lit(w->p, ", ") : w->p, text);
	}
	if (g->flop)
		w->p = put_str(put_lit(w->p, ", "), flop_text((double)g->flop, flop, sizeof(flop)));
	if (g->flags & CT_GEMM_RETURNED) {
		w->p = put_i64(put_lit(w->p, ", returned="), g->ret);
		if (!g->ret)
			w->p = put_lit(w->p, " (success)");
		else if (error)
			w->p = put_lit(put_str(put_lit(w->p, " ("), error), ")");
	}
	if (s->flags & CT_SCOPE_UNFINISHED)
		w->p = put_lit(w->p, ", <unfinished ...>");
	else if (duration)
		w->p = table_duration(put_lit(w->p, ", "), s->h.end_ns - s->h.start_ns);
}
