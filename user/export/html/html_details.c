/* SPDX-License-Identifier: BSD-2-Clause */
/* html_details.c - see html_details.h. */
#include <string.h>

#include "../../flow/about.h"
#include "html_details.h"

static void detail_key(struct text *d, const char *key)
{
	if (d->len)
		text_str(d, "\n");
	text_str(d, key);
	text_str(d, "\t");
}

static void call_details(struct text *d, const struct sink_opts *o, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	const struct field *ret = NULL;

	if (n && f[n - 1].name && !strcmp(f[n - 1].name, "returned"))
		ret = &f[--n];
	if (n) {
		detail_key(d, "arguments");
		about_fields(d, f, n);
	}
	if (ret && !(c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN))) {
		struct field only = *ret;

		only.name = NULL;
		detail_key(d, "returned");
		about_fields(d, &only, 1);
	}
	if (ev->kernel) {
		detail_key(d, "kernel");
		text_plain(d, o->look.mangled ? ev->kernel->mangled : ev->kernel->full, 16384);
	}
	if (c->h.flags & CT_F_UNFINISHED) {
		detail_key(d, "unfinished");
		text_str(d, "it did not return: its thread ended, or jumped out of it");
	}
}

/* Writes a line for each field; a struct or a list is on one line. */
static void field_details(struct text *d, const struct sink_opts *o, const struct event *ev)
{
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS), many;

	if (ev->kernel) {
		detail_key(d, "kernel");
		text_plain(d, o->look.mangled ? ev->kernel->mangled : ev->kernel->full, 16384);
	}
	for (int i = 0; i < n; i += many) {
		struct field bare = f[i];

		many = 1;
		if (f[i].absent && f[i].out)
			continue;
		for (int open = f[i].type == FIELD_OPEN && !f[i].absent; open && i + many < n;
		     many++)
			open += (f[i + many].type == FIELD_OPEN) -
				(f[i + many].type == FIELD_CLOSE);
		detail_key(d, f[i].name ? f[i].name : "");
		bare.name = NULL;
		if (many == 1)
			about_fields(d, &bare, 1);
		else
			about_fields(d, f + i + 1, many - 2);
	}
}

void html_details(struct text *d, const struct sink_opts *o, const struct event *ev, int64_t stack)
{
	if (ev->rec->kind == CT_CALL)
		call_details(d, o, ev);
	else
		field_details(d, o, ev);
	if (about_around(ev)) {
		detail_key(d, "scope");
		text_plain(d, about_around(ev), 1024);
	}
	if (stack < 0)
		return;
	detail_key(d, "stack");
	text_u64(d, (uint64_t)stack);
}
