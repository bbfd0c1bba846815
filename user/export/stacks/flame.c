/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flame.c - a flame graph as one HTML page: flame.html with the data in place of its mark. The
 * assembler puts that file into the binary; its path is relative to the directory where make runs,
 * and the object depends on it.
 *
 * The data is one JSON object in a <script> that is not run. Every name comes from the traced
 * programs: in it '<' is written as an escape, so that nothing in it can end the element, and
 * the page shows names as text only.
 */
#include <errno.h>
#include <string.h>

#include "fold.h"
#include "../../flow/row.h"
#include "../../util/io/embed.h"

#define MARK "@DATA@"
#define NAME_BYTES 65536
#define TITLE_BYTES 1024
#define ROOM 512
#define FILES_BYTES (64u << 20) /* as much as the names have, which contain them */
#define FILES_MAX (512u << 10)

EMBED(flame_page, "user/export/stacks/flame.html");

static int flame_open(struct sink *s, const struct sink_opts *opts)
{
	struct fold *f = fold_open(opts, 0);

	s->opts = opts;
	s->priv = f;
	if (!f)
		return -ENOMEM;
	f->places = true;
	return 0;
}

static int flame_event(struct sink *s, const struct event *ev)
{
	return fold_event(s->priv, ev);
}

static int flame_put_string(struct row *w, struct text *t, const char *s)
{
	size_t from = 0;

	t->len = 0;
	text_json(t, s, NAME_BYTES);
	if (t->bad)
		return -ENOMEM;
	for (size_t i = 0; i < t->len; i++) {
		if (t->s[i] != '<')
			continue;
		row_mem(w, t->s + from, i - from);
		row_mem(w, "\\u003c", 6);
		from = i + 1;
	}
	row_mem(w, t->s + from, t->len - from);
	row_room(w, ROOM);
	return 0;
}

/* A file as people see it. */
static const char *shown_file(const struct sink_opts *o, const struct fold_name *name)
{
	return o->look.all_frames || name->kind != FOLD_PYTHON
		       ? name->file
		       : frame_file(CT_FRAME_PYTHON, name->file);
}

/* "files":["",...],"places":[file,line,...] of each name; file 0: not known */
static int put_places(struct row *w, struct text *t, const struct sink_opts *o,
		      const struct fold *f)
{
	struct strings files;
	int err = strings_init(&files, FILES_BYTES, FILES_MAX);

	if (err)
		return err;
	strings_add(&files, "", 0);
	w->p = put_lit(w->p, ",\n\"places\":[");
	for (uint32_t i = 0; i < f->names.n; i++) {
		struct fold_name name = fold_name(f, i);
		const char *file = name.file ? shown_file(o, &name) : "";
		uint32_t number = strings_add(&files, file, strlen(file));

		row_room(w, ROOM);
		if (i)
			*w->p++ = ',';
		w->p = put_u64(w->p, number == STRINGS_NONE ? 0 : number);
		w->p = put_u64(put_char(w->p, ','), name.line);
	}
	w->p = put_lit(w->p, "],\n\"files\":[");
	for (uint32_t i = 0; i < files.n && !err; i++) {
		if (i)
			*w->p++ = ',';
		err = flame_put_string(w, t, strings_get(&files, i));
	}
	*w->p++ = ']';
	strings_free(&files);
	return err;
}

/* "names":["",...],"kinds":"6012..." one digit a name */
static int put_names(struct row *w, struct text *t, const struct fold *f)
{
	int err;

	w->p = put_lit(w->p, ",\"names\":[");
	for (uint32_t i = 0; i < f->names.n; i++) {
		if (i)
			*w->p++ = ',';
		err = flame_put_string(w, t, fold_name(f, i).text);
		if (err)
			return err;
	}
	w->p = put_lit(w->p, "],\n\"kinds\":\"");
	for (uint32_t i = 0; i < f->names.n; i++) {
		row_room(w, ROOM);
		*w->p++ = (char)('0' + fold_name(f, i).kind);
	}
	*w->p++ = '"';
	return 0;
}

/* "nodes":[depth,name,self,second,...] parents first, the root left out */
static void put_nodes(struct row *w, const struct fold *f)
{
	uint32_t depth = 0, at = 0;
	bool first = true;

	row_room(w, ROOM);
	w->p = put_lit(w->p, ",\n\"nodes\":[");
	while ((at = fold_next(f, at, &depth))) {
		row_room(w, ROOM);
		if (at == f->other && !f->nodes[at].self && !f->nodes[at].second)
			continue;
		if (!first)
			*w->p++ = ',';
		first = false;
		w->p = put_u64(w->p, depth);
		w->p = put_u64(put_char(w->p, ','), f->nodes[at].name);
		w->p = put_u64(put_char(w->p, ','), fold_weight(f, &f->nodes[at]));
		w->p = put_u64(put_char(w->p, ','), fold_second(f, &f->nodes[at]));
	}
	*w->p++ = ']';
}

static int put_data(struct row *w, const struct sink_opts *o, const struct fold *f)
{
	static const char *const units[] = { "calls", "us", "bytes", "ns" };
	static const char *const seconds[] = { "us", "calls", "calls", "work" };
	struct text t = { 0 }, title = { 0 };
	int err;

	fold_clean(&title, o->title ? o->title : "", TITLE_BYTES, false);
	text_mem(&title, "", 1);

	w->p = put_lit(w->p, "{\"version\":");
	err = flame_put_string(w, &t, o->version ? o->version : "");
	w->p = put_lit(w->p, ",\"title\":");
	if (!err)
		err = flame_put_string(w, &t, title.bad ? "" : title.s);
	w->p = put_str(put_lit(w->p, ",\"unit\":\""), units[o->look.weight]);
	w->p = put_str(put_lit(w->p, "\",\"second\":\""), seconds[o->look.weight]);
	w->p = put_u64(put_lit(w->p, "\",\"left_out\":"), f->without_size);
	w->p = put_u64(put_lit(w->p, ",\"other\":"), f->no_room);
	if (!err)
		err = put_names(w, &t, f);
	if (!err)
		err = put_places(w, &t, o, f);
	if (!err) {
		put_nodes(w, f);
		row_room(w, ROOM);
		*w->p++ = '}';
	}
	text_free(&t);
	text_free(&title);
	return err;
}

static int flame_close(struct sink *s, const struct sink_end *end)
{
	size_t size = (size_t)(flame_page_end - flame_page_begin);
	const char *mark = memmem(flame_page_begin, size, MARK, strlen(MARK));
	struct fold *f = s->priv;
	struct row w;
	int err;

	(void)end;
	if (!f)
		return 0;
	err = mark ? fold_finish(f) : -EINVAL;
	if (!err) {
		out_mem(s->opts->out, flame_page_begin, (size_t)(mark - flame_page_begin));
		row_begin(&w, s->opts->out);
		err = put_data(&w, s->opts, f);
		row_end(&w);
		mark += strlen(MARK);
		out_mem(s->opts->out, mark, (size_t)(flame_page_end - mark));
	}
	fold_notes(f);
	fold_close(f);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

const struct sink_ops sink_flame = {
	.name = "flame",
	.open = flame_open,
	.event = flame_event,
	.close = flame_close,
};
