/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top_sink.c - which process calls what, live: the sink behind `cudatrace top`. Reads the counts at each
 * refresh and nothing in between; what is shown is the top room's. Knows libevent, for its
 * clock, keys and the terminal's signals; no source.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch.h"
#include "draw.h"
#include "keys.h"
#include "model.h"
#include "../util/msg.h"
#include "../util/now.h"
#include "../util/option/option.h"
#include "top_options.h"
#include "../flow/sink.h"

#define SAID_MAX 16 /* messages kept while the terminal is drawn on */
#define KEYS_MAX \
	256 /* keys that are read at one wake-up, so that pasted text does not delay everything else */

struct top {
	const struct sink_opts *opts;
	const struct top_options *how;
	struct top_model *model;
	struct top_screen screen;
	struct draw_head head;
	struct event *clock, *keys, *stop, *size;
	bool drawing; /* the terminal is ours */
	bool reading; /* a refresh is under way */
	uint64_t blocks;
	uint64_t own_ns, own_at_ns; /* our own CPU time at the last refresh, and when that was */
	uint64_t hits;		    /* probed calls inside others until then */
	char *said[SAID_MAX];
	unsigned int nsaid;
};

static struct top *speaker; /* whose messages wait until the terminal is given back */

/* ---- messages ---- */

/* Shown in the last line, and said again when the terminal is given back. */
static void keep_message(const char *text)
{
	struct top *t = speaker;

	snprintf(t->screen.note, sizeof(t->screen.note), "%s", text);
	t->screen.note[strcspn(t->screen.note, "\n")] = '\0';
	if (t->nsaid < SAID_MAX) {
		t->said[t->nsaid] = strdup(text);
		t->nsaid += t->said[t->nsaid] != NULL;
	}
}

static void let_speak(struct top *t)
{
	msg_taker = NULL;
	speaker = NULL;
	for (unsigned int i = 0; i < t->nsaid; i++) {
		if (write(STDERR_FILENO, t->said[i], strlen(t->said[i])) < 0 && errno != EINTR)
			break;
	}
	for (unsigned int i = 0; i < t->nsaid; i++)
		free(t->said[i]);
	t->nsaid = 0;
}

/* ---- a refresh ---- */

static void fill_head(struct top *t, uint64_t now)
{
	uint64_t own = clock_ns(CLOCK_PROCESS_CPUTIME_ID), passed = now - t->own_at_ns, inner;
	struct losses l;

	t->opts->losses(t->opts->refresh_ctx, &l);
	t->head.realtime_s = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000);
	t->head.own_percent = passed ? (double)(own - t->own_ns) * 100 / (double)passed : 0;
	t->head.lost = losses_total(&l);
	t->head.holes = l.holes;
	t->head.probe_ns = l.pair_ns;
	t->head.probes = l.probes;
	/* calls inside others are probed too */
	inner = losses_rise(&t->hits, l.folded);
	t->head.cost_percent = -1;
	if (t->head.probe_ns && t->model->interval_ns)
		t->head.cost_percent = model_percent(t->model, (t->model->period.calls + inner) *
								       t->head.probe_ns);
	t->own_ns = own;
	t->own_at_ns = now;
}

/* Makes what was counted until now the period that is shown. Returns 0 or -errno of the source. */
static int read_counts(struct top *t)
{
	uint64_t now;
	int err;

	model_begin(t->model);
	t->reading = true;
	err = t->opts->refresh(t->opts->refresh_ctx);
	t->reading = false;
	if (err)
		return err; /* what did arrive belongs to the next period */
	now = clock_ns(CLOCK_MONOTONIC);
	model_end(t->model, now);
	fill_head(t, now);
	return 0;
}

static void draw(struct top *t)
{
	if (keys_rows(&t->screen, t->model))
		snprintf(t->screen.note, sizeof(t->screen.note), "no memory for the rows");
	draw_screen(&t->screen, t->model, &t->head);
}

static void set_clock(struct top *t)
{
	struct timeval every = { .tv_sec = (time_t)(t->screen.interval_ns / 1000000000),
				 .tv_usec =
					 (suseconds_t)(t->screen.interval_ns % 1000000000 / 1000) };

	event_add(t->clock, &every);
}

static int block(struct top *t)
{
	if (keys_rows(&t->screen, t->model))
		return -ENOMEM;
	t->blocks++;
	(t->how->form == TOP_JSON ? batch_json : batch_text)(t->opts->out, &t->screen, t->model,
							     &t->head);
	return out_flush(t->opts->out);
}

static void refresh_now(struct top *t)
{
	int err = read_counts(t);

	if (err)
		snprintf(t->screen.note, sizeof(t->screen.note), "the counts cannot be read: %s",
			 strerror(-err));
	if (!t->how->batch) {
		draw(t);
		return;
	}
	if (err)
		msg_warn("the counts cannot be read: %s", strerror(-err));
	else
		err = block(t);
	if (err || (t->opts->count && t->blocks >= t->opts->count))
		t->opts->quit(t->opts->refresh_ctx);
}

static void on_clock(evutil_socket_t fd, short what, void *ctx)
{
	struct top *t = ctx;

	(void)fd, (void)what;
	set_clock(t);
	if (!t->screen.paused)
		refresh_now(t);
}

/* ---- the terminal ---- */

static void obey(struct top *t, unsigned int what)
{
	if (what & KEYS_QUIT) {
		t->opts->quit(t->opts->refresh_ctx);
		return;
	}
	if (what & KEYS_VIEW && t->opts->count_by)
		t->opts->count_by(t->opts->refresh_ctx, keys_count_by(&t->screen));
	if (what & KEYS_INTERVAL)
		set_clock(t);
	if (what & KEYS_READ)
		refresh_now(t);
	else if (what)
		draw(t);
}

static void on_keys(evutil_socket_t fd, short what, void *ctx)
{
	unsigned int todo = 0;
	struct top *t = ctx;
	int key, n = 0;

	(void)fd, (void)what;
	while (n < KEYS_MAX && (key = draw_key()) >= 0 && !(todo & KEYS_QUIT)) {
		unsigned int did = keys_press(&t->screen, key);

		/* the next key may be about the rows that this one asks for */
		if (did && !(did & KEYS_QUIT) && keys_rows(&t->screen, t->model))
			did = KEYS_DRAW;
		todo |= did;
		n++;
	}
	/* readable, and nothing to read: the terminal is gone */
	if (!n && what & EV_READ && lseek(STDIN_FILENO, 0, SEEK_CUR) < 0 && !isatty(STDIN_FILENO))
		todo = KEYS_QUIT;
	obey(t, todo);
}

static void on_stop(evutil_socket_t sig, short what, void *ctx)
{
	(void)sig, (void)what;
	draw_suspend();
	draw(ctx);
}

static void on_size(evutil_socket_t sig, short what, void *ctx)
{
	(void)sig, (void)what;
	draw_resize();
	draw(ctx);
}

/* Not before the loop runs: until then there may be messages, which belong above the screen. */
static int take_terminal(struct top *t)
{
	const char *note;
	int err;

	/* before curses, which does not change signals that have a handler */
	if (event_add(t->stop, NULL) || event_add(t->size, NULL))
		return -ENOMEM;
	err = draw_open(t->opts->color, &note);
	if (err)
		return err;
	t->drawing = true;
	speaker = t;
	msg_taker = keep_message;
	snprintf(t->screen.note, sizeof(t->screen.note), "%s", note);
	if (event_add(t->keys, NULL))
		return -ENOMEM;
	t->head.realtime_s = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000);
	t->own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	t->own_at_ns = clock_ns(CLOCK_MONOTONIC);
	draw(t);
	return 0;
}

static void give_terminal(struct top *t)
{
	if (!t->drawing)
		return;
	draw_close();
	t->drawing = false;
	let_speak(t);
}

/* ---- the sink ---- */

static int top_open(struct sink *sink, const struct sink_opts *opts)
{
	struct top *t = calloc(1, sizeof(*t));

	sink->opts = opts;
	sink->priv = t;
	if (!t)
		return -ENOMEM;
	t->opts = opts;
	t->how = opts->own;
	t->head.host = opts->host;
	t->head.no_queries = opts->no_queries;
	keys_open(&t->screen, opts->interval_ns, (enum top_sort)t->how->sort);
	t->model = model_open(clock_ns(CLOCK_MONOTONIC), 0);
	t->clock = event_new(opts->base, -1, 0, on_clock, t);
	t->keys = event_new(opts->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_keys, t);
	t->stop = event_new(opts->base, SIGTSTP, EV_SIGNAL | EV_PERSIST, on_stop, t);
	t->size = event_new(opts->base, SIGWINCH, EV_SIGNAL | EV_PERSIST, on_size, t);
	if (t->model)
		t->model->count_memory = opts->memory;
	if (!t->model || !t->clock || !t->keys || !t->stop || !t->size)
		return -ENOMEM;
	return 0;
}

static int top_event(struct sink *sink, const struct event *ev)
{
	struct top *t = sink->priv;
	int err = model_event(t->model, ev);

	return err < 0 ? err : 0; /* no rows: they are made by the clock */
}

/* The loop runs: the display begins. */
static int top_tick(struct sink *sink, uint64_t now_ns)
{
	struct top *t = sink->priv;

	(void)now_ns;
	if (t->reading || event_pending(t->clock, EV_TIMEOUT, NULL))
		return 0;
	if (t->how->batch) {
		t->own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		t->own_at_ns = clock_ns(CLOCK_MONOTONIC);
	} else if (!t->drawing) {
		int err = take_terminal(t);

		if (err)
			return err;
	}
	set_clock(t);
	return 0;
}

/* Prints what came after the last block, for example the last calls of programs that have ended. */
static void last_block(struct top *t, const struct sink_end *end)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!t->how->batch || !model_pending(t->model) ||
	    (t->opts->count && t->blocks >= t->opts->count))
		return;
	/* -d is over: the rest of a second would have rates of its own, and nothing ended with it */
	if (t->blocks && end && end->reason && !strcmp(end->reason, "duration") &&
	    model_since(t->model, now) < t->screen.interval_ns / 2)
		return;
	model_end(t->model, now);
	fill_head(t, now);
	block(t);
}

static int top_close(struct sink *sink, const struct sink_end *end)
{
	struct top *t = sink->priv;

	if (!t)
		return 0;
	give_terminal(t);
	if (t->model)
		last_block(t, end);
	if (t->clock)
		event_free(t->clock);
	if (t->keys)
		event_free(t->keys);
	if (t->stop)
		event_free(t->stop);
	if (t->size)
		event_free(t->size);
	model_close(t->model);
	free(t->screen.rows);
	free(t);
	sink->priv = NULL;
	return 0;
}

static void top_wants(const void *own, struct sink_wants *wants)
{
	const struct top_options *how = own;

	wants->for_programs = how->form != TOP_TABLE;
	wants->no_names = how->batch;
}

#define OPTION_STRUCT struct top_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "sort", "KEY", ENUM(sort, "pid", "name", "calls", "launches", "api", "sync", "htod", "dtoh", "memory", "failed", "gpu", "busy"), 0, "api", "sort by pid, name, calls, launches, api, sync, htod, dtoh, memory, failed, gpu or busy" },
	{ 'b', "batch", NULL, FLAG(batch), 0, NULL, "print blocks of text one after the other, for logs; needs no terminal" },
	{ 0, "format", "NAME", ENUM(form, "table", "json"), 0, "table", "with --batch: table, or json (an object a line)" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_top = {
	.name = "top",
	.options = &options,
	.wants = top_wants,
	.open = top_open,
	.event = top_event,
	.tick = top_tick,
	.close = top_close,
};
