/* SPDX-License-Identifier: BSD-2-Clause */
/* table_collective.c - see table_collective.h. */
#include <stdio.h>

#include "../../util/text.h"
#include "../../util/units.h"
#include "table_collective.h"
#include "table_values.h"

/* A word, or the number where there is none: ", 12". */
static char *table_collective_put_word(char *p, const char *before, uint32_t v, const char *word)
{
	if (v == CT_UNKNOWN)
		return p;
	p = put_str(p, before);
	return word ? put_str(p, word) : put_u64(p, v);
}

static char *put_what(char *p, const struct ct_collective *c)
{
	char size[32];

	p = put_u64(put_lit(p, "count="), c->count);
	p = table_collective_put_word(p, scope_datatype(c->datatype) ? " " : " type ", c->datatype,
				      scope_datatype(c->datatype));
	p = table_collective_put_word(p, scope_op(c->op) ? " " : " op ", c->op, scope_op(c->op));
	if (c->bytes)
		p = put_str(put_lit(p, ", "), print_bytes(size, sizeof(size), (double)c->bytes));
	p = table_collective_put_word(p, ", root ", c->root, NULL);
	p = table_collective_put_word(p, ", peer ", c->peer, NULL);
	return put_lit(p, ", ");
}

/* "3 calls (ncclSend, ncclRecv), 12.0 MiB, ": what a group's end launches. */
static char *put_group(char *p, const struct ct_scope *s, const struct ct_collective *c)
{
	const char *text = s->text + s->text_len + s->domain_len + s->category_len + s->layer_len;
	char size[32], names[200];
	struct text plain = { 0 };

	p = put_str(put_u64(p, c->members), c->members == 1 ? " call" : " calls");
	snprintf(names, sizeof(names), "%.*s", s->fields_len, text);
	text_plain(&plain, names, sizeof(names));
	if (plain.len && plain.len < sizeof(names))
		p = put_lit(put_mem(put_lit(p, " ("), plain.s, plain.len), ")");
	text_free(&plain);
	if (c->bytes)
		p = put_str(put_lit(p, ", "), print_bytes(size, sizeof(size), (double)c->bytes));
	return put_lit(p, ", ");
}

static char *put_communicator(char *p, const struct ct_collective *c)
{
	if (c->rank != CT_UNKNOWN) {
		p = put_u64(put_lit(p, "rank "), c->rank);
		p = put_lit(p, " of ");
		p = c->ranks != CT_UNKNOWN ? put_u64(p, c->ranks) : put_char(p, '?');
		p = put_lit(p, ", ");
	} else if (c->ranks != CT_UNKNOWN) {
		p = put_lit(put_u64(p, c->ranks), " ranks, ");
	} else if (c->comm) {
		p = put_lit(p, "rank ?, ");
	}
	if (c->comm)
		p = put_lit(put_hex(put_lit(p, "comm "), c->hash ? c->hash : c->comm), ", ");
	if (c->sequence)
		p = put_lit(put_u64(put_char(p, '#'), c->sequence), ", ");
	return p;
}

static char *put_result(char *p, const struct ct_scope *s, int32_t ret)
{
	const char *name = scope_error(s, ret);

	p = put_i64(put_lit(p, "returned="), ret);
	if (!ret)
		return put_lit(p, " (success), ");
	return name ? put_lit(put_str(put_lit(p, " ("), name), "), ") : put_lit(p, ", ");
}

void table_collective(struct row *w, const struct ct_scope *s, const struct ct_collective *c,
		      bool duration)
{
	row_room(w, FIELD_ROOM);
	if (c->members)
		w->p = put_group(w->p, s, c);
	if (c->flags & CT_COLLECTIVE_COUNT)
		w->p = put_what(w->p, c);
	w->p = put_communicator(w->p, c);
	if (c->flags & CT_COLLECTIVE_RETURNED)
		w->p = put_result(w->p, s, c->ret);
	if (s->flags & CT_SCOPE_UNFINISHED)
		w->p = put_lit(w->p, "<unfinished ...>");
	else if (duration)
		w->p = table_duration(w->p, s->h.end_ns - s->h.start_ns);
	else if (c->flags & CT_COLLECTIVE_RETURNED)
		w->p -= 2; /* the comma behind the result */
}
