/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.c - see window.h.
 *
 * A call's record comes when the call completes. So the window opens at the end of the call that
 * begins it: what begins later also completes later, and no record that belongs to the window has
 * been skipped by then. The two calls that begin and end the window are within it. Device work
 * belongs to the time of the call that asked for it, and its record may come long after the window
 * has closed; so the times of past windows are remembered.
 *
 * The record of a scope's begin comes when it begins. So a scope begins the window at its begin,
 * and ends it at its end.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event/select.h"
#include "../flow/plan.h"
#include "../trace/format.h"
#include "../util/msg.h"
#include "../util/parse.h"
#include "window.h"

#define STRETCHES 256 /* past windows that are remembered; device work of older ones is not shown */

/* What begins or ends the window. */
struct trigger {
	bool given, signal;
	uint64_t nth; /* only the Nth call; 0: each call */
	uint64_t seen;
	const char *layer, *name; /* of a scope; the name may be a glob; NULL: none */
	uint64_t rows[PLAN_WORDS];
};

struct window {
	uint64_t delay_ns;
	struct trigger start, stop;
	bool open, over;
	struct {
		uint64_t from_ns, to_ns;
	} past[STRETCHES];
	unsigned int npast; /* number of windows since the beginning */
	uint64_t from_ns;   /* when the open window began */
	/* start times and threads of the calls that began and ended the latest window */
	uint64_t begin_ns, begin_tid, end_ns, end_tid;
	/* the scope that began the latest window; 0: something else did */
	uint32_t begin_scope, begin_pid;
};

/* Returns the layer's place among api_layer_names if the text is LAYER:NAME, or -1. */
static int layer_of(const char *text)
{
	size_t n = strcspn(text, ":");

	for (int i = 0; text[n] && api_layer_names[i]; i++)
		if (strlen(api_layer_names[i]) == n && !strncmp(text, api_layer_names[i], n))
			return i;
	return -1;
}

uint32_t window_layer(const char *text)
{
	int i = text ? layer_of(text) : -1;

	return i < 0 ? 0 : 1u << i;
}

static int parse_scope(struct trigger *t, const char *name, const char *text)
{
	t->layer = api_layer_names[layer_of(text)];
	t->name = text + strlen(t->layer) + 1;
	if (*t->name)
		return 0;
	msg_error("%s: '%s' has no name after the colon; give %s:NAME", name, text, t->layer);
	return -EINVAL;
}

static int no_function(const char *name, const char *glob, const char *layer)
{
	if (layer)
		msg_error("%s: '%s' is not a call of CUDA; %s:NAME waits for a range of that name",
			  name, glob, layer);
	else
		msg_error("%s: no function matches '%s'; 'cudatrace list' prints all, and the word "
			  "signal waits for %s",
			  name, glob, !strcmp(name, "--start-on") ? "SIGUSR1" : "SIGUSR2");
	return -EINVAL;
}

static int window_parse(struct trigger *t, const char *name, const char *text)
{
	const char *colon = strrchr(text, ':'), *layer = NULL;
	char glob[128];
	int n = 0;

	t->given = true;
	if (!strcmp(text, "signal")) {
		t->signal = true;
		return 0;
	}
	if (window_layer(text))
		return parse_scope(t, name, text);
	if (colon && parse_u64(colon + 1, 1, UINT64_MAX, &t->nth)) {
		msg_error(
			"%s: '%s' is not the number of a call; give GLOB:N, as cudaGraphLaunch:100",
			name, colon + 1);
		return -EINVAL;
	}
	snprintf(glob, sizeof(glob), "%.*s", colon ? (int)(colon - text) : 127, text);
	for (int i = 0; i < api_nfuncs; i++) {
		if (!select_glob(glob, &api_funcs[i]))
			continue;
		if (api_funcs[i].layer) {
			layer = api_domain_name(api_funcs[i].domain);
			continue;
		}
		plan_add(t->rows, i);
		n++;
	}
	return n ? 0 : no_function(name, glob, layer);
}

int window_check(const char *name, const char *text)
{
	struct trigger t = { .given = false };

	return window_parse(&t, name, text);
}

int window_open(struct window **out, const struct window_opts *o)
{
	struct window *w;
	int err = 0;

	*out = NULL;
	if (!o->delay_ns && !o->start_on && !o->stop_on)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->delay_ns = o->delay_ns;
	if (o->start_on)
		err = window_parse(&w->start, "--start-on", o->start_on);
	if (!err && o->stop_on)
		err = window_parse(&w->stop, "--stop-on", o->stop_on);
	if (err) {
		window_close(w);
		return err;
	}
	*out = w;
	return 0;
}

void window_close(struct window *w)
{
	free(w);
}

void window_rows(const struct window *w, uint64_t *set)
{
	for (int i = 0; i < PLAN_WORDS; i++)
		set[i] |= w->start.rows[i] | w->stop.rows[i];
}

bool window_wants_signals(const struct window *w)
{
	return w->start.signal || w->stop.signal;
}

static void open_at(struct window *w, uint64_t ns)
{
	if (w->open || w->over)
		return;
	w->open = true;
	w->from_ns = ns;
	w->begin_scope = 0;
}

static void close_at(struct window *w, uint64_t ns)
{
	if (!w->open)
		return;
	w->open = false;
	w->past[w->npast % STRETCHES].from_ns = w->from_ns;
	w->past[w->npast++ % STRETCHES].to_ns = ns;
	/* only a trigger that can fire again begins another window */
	w->over = !w->start.given || w->start.nth;
}

void window_begin(struct window *w, uint64_t now_ns)
{
	if (!w->start.given)
		open_at(w, now_ns + w->delay_ns);
}

static bool fires(struct trigger *t, const struct ct_call *c)
{
	if (!plan_has(t->rows, c->func))
		return false;
	t->seen++;
	return !t->nth || t->seen == t->nth;
}

void window_call(struct window *w, const struct ct_call *c)
{
	bool start, stop;

	/* only calls that the program itself makes: a driver call nested in a runtime call is not
	 * one of them */
	if (c->h.kind != CT_CALL || c->h.flags & CT_F_PENDING || c->depth)
		return;
	start = fires(&w->start, c);
	stop = fires(&w->stop, c);
	if (stop && w->open) {
		w->end_ns = c->h.start_ns;
		w->end_tid = c->h.tid;
		close_at(w, c->h.end_ns);
	} else if (start && !w->open && !w->over) {
		w->begin_ns = c->h.start_ns;
		w->begin_tid = c->h.tid;
		open_at(w, c->h.end_ns);
	}
}

/* The name is what the program says, of any bytes. */
static bool is_named(const struct trigger *t, const struct ct_scope *s)
{
	const char *layer = s->text + s->text_len + s->domain_len + s->category_len;
	char name[256];

	if (!t->layer || s->flags & CT_SCOPE_UNNAMED || s->layer_len != strlen(t->layer) ||
	    memcmp(layer, t->layer, s->layer_len))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)s->text_len, s->text);
	if (!strcmp(name, t->name) || !fnmatch(t->name, name, 0))
		return true;
	/* of a long name only the beginning was read */
	return s->flags & CT_SCOPE_CUT && *name && !strncmp(name, t->name, strlen(name));
}

void window_scope(struct window *w, const struct ct_scope *s)
{
	bool start = is_named(&w->start, s), stop = is_named(&w->stop, s);

	if (s->h.kind == CT_SCOPE_BEGIN && start && !w->open && !w->over) {
		open_at(w, s->h.start_ns);
		w->begin_scope = s->id;
		w->begin_pid = s->h.pid;
	}
	/* the mark that stands for the start of such a range says nothing of its end */
	if (s->h.kind != CT_SCOPE_END || !stop || s->flags & CT_SCOPE_UNPAIRED)
		return;
	/* if the same name begins and ends it, then it is one scope, from its begin to its end: not
	 * one of this name inside it, or of another thread */
	if (start && w->begin_scope && (s->id != w->begin_scope || s->h.pid != w->begin_pid))
		return;
	close_at(w, s->h.end_ns);
}

void window_signal(struct window *w, bool start, uint64_t now_ns)
{
	if (start && w->start.signal)
		open_at(w, now_ns);
	else if (!start && w->stop.signal)
		close_at(w, now_ns);
}

static bool time_within(const struct window *w, uint64_t ns)
{
	unsigned int n = w->npast < STRETCHES ? w->npast : STRETCHES;

	if (w->open && ns >= w->from_ns)
		return true;
	for (unsigned int i = 1; i <= n; i++) {
		unsigned int at = (w->npast - i) % STRETCHES;

		if (ns > w->past[at].to_ns)
			return false;
		if (ns >= w->past[at].from_ns)
			return true;
	}
	return false;
}

bool window_has(const struct window *w, const struct ct_hdr *h)
{
	const struct ct_work *work = (const struct ct_work *)h;

	if (h->kind == CT_SCOPE_END)
		return time_within(w, h->start_ns);
	if (trace_is_definition(h->kind) || h->kind == CT_LOST || h->kind == CT_UNPROBED)
		return true;
	if (trace_shape(h->kind) == TRACE_SHAPE_WORK && work->call_ns)
		return time_within(w, work->call_ns);
	/* the two calls that begin and end the window */
	if (h->kind == CT_CALL && ((h->start_ns == w->begin_ns && h->tid == w->begin_tid) ||
				   (h->start_ns == w->end_ns && h->tid == w->end_tid)))
		return true;
	return time_within(w, h->start_ns);
}

bool window_begun(const struct window *w)
{
	return w->open || w->npast;
}

bool window_over(const struct window *w)
{
	return w->over && !w->open;
}
