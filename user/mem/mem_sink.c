/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_sink.c - who holds memory: the sink behind `cudatrace mem`. The ledger does the counting.
 * Growth is shown by the clock; for a recording, by the recording's clock. And the output memory-viz, which is only the ledger's snapshot. Knows no source.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/msg.h"
#include "../util/option/option.h"
#include "mem_options.h"
#include "mem_page.h"
#include "mem_viz.h"
#include "../flow/sink.h"

struct mem_sink {
	const struct sink_opts *opts;
	const struct mem_options *how;
	struct ledger *ledger;
	struct mem_about about;
	uint64_t due_ns; /* of the next look; 0: not known yet */
	struct out page; /* of the picture */
	struct curve curve;
	bool draws;
	struct mem_viz viz;
	struct out snapshot; /* where it goes, if it has a file of its own */
};

/* Prints it at once in text output; in JSON it is a member of the object. */
static void on_oom(void *ctx, const struct ledger_oom *m)
{
	struct mem_sink *s = ctx;

	if (!s->how->json)
		mem_print_oom(s->opts->out, s->ledger, &s->about, m);
}

static void on_no_block(void *ctx, const struct blocks_oom *m)
{
	struct mem_sink *s = ctx;

	if (!s->how->json)
		mem_print_no_block(s->opts->out, s->ledger, &s->about, m);
}

static void on_moved(void *ctx, uint64_t at_ns, uint32_t process, uint32_t site,
		     enum account_where where, int64_t bytes)
{
	struct mem_sink *s = ctx;

	(void)process;
	curve_add(&s->curve, at_ns, mem_page_series(site, where), bytes);
}

static void on_block(void *ctx, const struct block_change *c)
{
	mem_viz_changed(&((struct mem_sink *)ctx)->viz, c);
}

static void on_end(void *ctx, const struct ledger *l, uint32_t process)
{
	mem_viz_ends(&((struct mem_sink *)ctx)->viz, l, process);
}

/* Before anything is traced for it: can the file be written? */
static int mem_sink_open_file(struct out *o, const char *path, const char *option)
{
	int err = out_open(o, path, false);

	if (err)
		msg_error("--%s: cannot write %s: %s", option, path, strerror(-err));
	return err ? -EINVAL : 0;
}

static int close_file(struct out *o, const char *path, const char *option, int err)
{
	int closed = out_close(o);

	err = err ? err : closed;
	if (err)
		msg_error("--%s: writing %s failed: %s", option, path, strerror(-err));
	return err;
}

static int open_page(struct mem_sink *m, struct ledger_opts *ledger)
{
	int err = m->how->html ? mem_sink_open_file(&m->page, m->how->html, "html") : 0;

	if (err || !m->how->html)
		return err;
	m->draws = true;
	ledger->moved = on_moved;
	return curve_init(&m->curve, m->opts->start_ns, 0);
}

static int close_page(struct mem_sink *m)
{
	int err = mem_page_write(&m->page, m->ledger, &m->curve, &m->about);

	curve_free(&m->curve);
	return close_file(&m->page, m->how->html, "html", err);
}

static void follow_blocks(struct mem_sink *m, struct ledger_opts *ledger)
{
	mem_viz_open(&m->viz);
	ledger->block_changed = on_block;
	ledger->ends = on_end;
}

static int open_snapshot(struct mem_sink *m, struct ledger_opts *ledger)
{
	if (!m->how->viz)
		return 0;
	follow_blocks(m, ledger);
	return mem_sink_open_file(&m->snapshot, m->how->viz, "memory-viz");
}

static int close_snapshot(struct mem_sink *m)
{
	int err = mem_viz_write(&m->viz, m->ledger, &m->snapshot, m->opts->realtime_offset_ns);

	return close_file(&m->snapshot, m->how->viz, "memory-viz", err);
}

static int mem_open(struct sink *s, const struct sink_opts *opts)
{
	struct mem_sink *m = calloc(1, sizeof(*m));
	struct ledger_opts ledger = {
		.handles = true, .oom = on_oom, .no_block = on_no_block, .ctx = m
	};
	int err;

	s->opts = opts;
	s->priv = m;
	if (!m)
		return -ENOMEM;
	m->opts = opts;
	m->how = opts->own;
	m->about = (struct mem_about){ .title = opts->title,
				       .version = opts->version,
				       .start_ns = opts->start_ns,
				       .by = m->how->by ? m->how->by : -1,
				       .top = m->how->top };
	err = open_page(m, &ledger);
	err = err ? err : open_snapshot(m, &ledger);
	if (err)
		return err;
	m->ledger = ledger_open(&ledger);
	if (m->ledger && opts->look.all_frames)
		sites_show_all(m->ledger->sites);
	return m->ledger ? 0 : -ENOMEM;
}

/* Shows growth at each interval that is due by now_ns. For a long pause in a recording, once is
 * enough. */
static void mem_sink_look(struct mem_sink *m, uint64_t now_ns)
{
	const struct mem_options *how = m->how;

	if (!how->watch_ns)
		return;
	if (!m->due_ns)
		m->due_ns = m->opts->start_ns + how->watch_ns;
	if (now_ns < m->due_ns)
		return;
	m->due_ns += (now_ns - m->due_ns) / how->watch_ns * how->watch_ns;
	if (how->json)
		mem_print_watch_json(m->opts->out, m->ledger, &m->about, m->due_ns);
	else
		mem_print_watch(m->opts->out, m->ledger, &m->about, m->due_ns);
	ledger_mark(m->ledger);
	m->due_ns += how->watch_ns;
}

static int mem_event(struct sink *s, const struct event *ev)
{
	struct mem_sink *m = s->priv;

	if (m->opts->recorded)
		mem_sink_look(m, ev->rec->end_ns);
	return ledger_event(m->ledger, ev);
}

static int mem_tick(struct sink *s, uint64_t now_ns)
{
	struct mem_sink *m = s->priv;

	if (!m->opts->recorded)
		mem_sink_look(m, now_ns);
	return 0;
}

/* The exit status of --leak-check. */
static int status_of(const struct ledger *l, const struct mem_about *about)
{
	if (mem_missing(l, about))
		return MEM_STATUS_NOT_KNOWN;
	for (uint32_t i = 0; i < l->account.nprocesses; i++)
		if (l->account.processes[i].used && l->account.processes[i].leaked_n)
			return MEM_STATUS_LEAKS;
	return 0;
}

static void say_missing(const struct mem_sink *m)
{
	if (m->ledger && m->ledger->account.no_room)
		msg_warn("%llu allocations are not counted: more than %u exist at a time",
			 (unsigned long long)m->ledger->account.no_room,
			 (uint32_t)m->ledger->account.live.all.max);
	if (m->ledger &&
	    m->ledger->no_row + m->ledger->blocks.no_row + sites_no_room(m->ledger->sites))
		msg_warn("the tables by call site are incomplete: there are too many call sites");
}

static int done(struct sink *s, int err)
{
	struct mem_sink *m = s->priv;

	ledger_close(m->ledger);
	mem_viz_close(&m->viz);
	free(m);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

static int mem_close(struct sink *s, const struct sink_end *end)
{
	struct mem_sink *m = s->priv;
	int err = 0;

	if (!m)
		return 0;
	m->about.end = end;
	if (m->ledger && m->how->json)
		mem_print_json(m->opts->out, m->ledger, &m->about);
	else if (m->ledger)
		mem_print_text(m->opts->out, m->ledger, &m->about);
	if (m->ledger && m->draws)
		err = close_page(m);
	if (m->ledger && m->how->viz) {
		int failed = close_snapshot(m);

		err = err ? err : failed;
	}
	say_missing(m);
	if (m->ledger && m->how->leak_check)
		s->status = status_of(m->ledger, &m->about);
	return done(s, err);
}

static void mem_wants(const void *own, struct sink_wants *wants)
{
	const struct mem_options *how = own;

	wants->for_programs = how->json;
	wants->files[0] = how->html;
	wants->files[1] = how->viz;
	wants->blocks = how->viz;
	wants->handles = true;
}

#define OPTION_STRUCT struct mem_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "by", "WHAT", ENUM_FROM(by, LEDGER_BY_PROCESS, NULL, "process", "device", "kind", "stack", "library"), 0, NULL,
	  "print only one table: by process, device, kind, stack, or library (the file whose code made\n"
	  "the call)" },
	{ 0, "top", "N", COUNT(top, 1, 1000000, "rows", NULL), 0, "10", "print N rows of a table, and N call sites that leak" },
	{ 0, "format", "NAME", ENUM(json, "table", "json"), 0, "table", "table, or json: everything as one JSON object" },
	{ 0, "json", NULL, FLAG(json), 0, NULL, "the same as --format json",
	  RULES(EXCLUDES("by", "--json has all tables: leave out --by"),
		EXCLUDES("top", "--json has all rows: leave out --top"),
		EXCLUDES("format", "--json is a form of --format: give one of them")) },
	{ 0, "html", "FILE", TEXT(html), 0, NULL, "write a picture too: memory over time by call site, as a page for a browser" },
	{ 0, "memory-viz", "FILE", TEXT(viz), 0, NULL,
	  "write what PyTorch's allocator did and holds, for PyTorch's own viewer; implies --layers\n"
	  "allocator",
	  RULES(EXCLUDES("no-stack", "--memory-viz shows whose the blocks are: leave out --no-stack")) },
	{ 0, "watch", "[=TIME]", DURATION(watch_ns, 10 * MILLI, OPTION_MAX, SECOND, "interval", "give seconds, or 500ms, 2m", .alone = "1"), 0, NULL, "print what has grown every second, or every TIME: 10 (seconds), 500ms" },
	{ 0, "leak-check", NULL, FLAG(leak_check), 0, NULL, "exit with status 4 if anything was leaked, 5 if that is not known because records were lost" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_mem = {
	.name = "mem",
	.options = &options,
	.wants = mem_wants,
	.open = mem_open,
	.event = mem_event,
	.tick = mem_tick,
	.close = mem_close,
};

/* ---- the snapshot as an output of its own ---- */

static int viz_open(struct sink *s, const struct sink_opts *opts)
{
	struct mem_sink *m = calloc(1, sizeof(*m));
	struct ledger_opts ledger = { .ctx = m };

	s->opts = opts;
	s->priv = m;
	if (!m)
		return -ENOMEM;
	m->opts = opts;
	follow_blocks(m, &ledger);
	m->ledger = ledger_open(&ledger);
	return m->ledger ? 0 : -ENOMEM;
}

static int viz_event(struct sink *s, const struct event *ev)
{
	return ledger_event(((struct mem_sink *)s->priv)->ledger, ev);
}

static int viz_close(struct sink *s, const struct sink_end *end)
{
	struct mem_sink *m = s->priv;
	int err = 0;

	(void)end;
	if (!m)
		return 0;
	if (m->ledger)
		err = mem_viz_write(&m->viz, m->ledger, m->opts->out, m->opts->realtime_offset_ns);
	say_missing(m);
	return done(s, err);
}

const struct sink_ops sink_memory_viz = {
	.name = "memory-viz",
	.open = viz_open,
	.event = viz_event,
	.close = viz_close,
};
