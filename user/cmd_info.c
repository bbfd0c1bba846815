/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_info.c - `cudatrace info FILE`: what a recording holds, and what of it cannot be read. Exit status 3 when
 * something in it is damaged; an end that was cut off is no damage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "trace/reader.h"
#include "util/msg.h"

#define PROCESSES_SHOWN 1000
#define PROCESSES_MAX 100000 /* what more there are share the last entry */

struct info_process {
	struct info_process *next;
	struct process p; /* as it was last; without info */
	uint32_t rank, world_size;
	char *exe, *host;
	uint64_t calls, works;
};

struct info {
	struct out out;
	struct process_table *procs;
	struct info_process *first, **end, *last;
	unsigned int nprocesses;
	uint64_t kinds[CT_KIND_END], unknown_kinds, failed, unfinished;
	uint64_t first_ns, last_ns;
	uint64_t lost[CT_LOSS_END], gaps;
	uint64_t clocks, first_offset_ns;
	int64_t drift_ns;
};

static void text_line(struct info *in, const char *key, const char *value)
{
	out_fmt(&in->out, "%-14s ", key);
	out_plain(&in->out, value, strlen(value));
	out_char(&in->out, '\n');
}

static void count_line(struct info *in, const char *key, uint64_t n)
{
	if (n)
		out_fmt(&in->out, "%-14s %llu\n", key, (unsigned long long)n);
}

/* A line of the head, if it is there. */
static void head_line(struct info *in, const struct reader *r, const char *key, const char *shown)
{
	char text[1024];

	if (reader_value(reader_head(r), key, text, sizeof(text)))
		text_line(in, shown, text);
}

/* All lines of one key: GPUs, arguments. */
static void head_lines(struct info *in, const struct reader *r, const char *key, const char *shown, bool one_line)
{
	const char *at = reader_head(r);
	size_t n = strlen(key);
	bool any = false;

	for (; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		if (strncmp(at, key, n) || at[n] != ' ')
			continue;
		if (!any || !one_line)
			out_fmt(&in->out, "%s%-14s", any ? "\n" : "", any ? "" : shown);
		any = true;
		out_char(&in->out, ' ');
		out_plain(&in->out, at + n + 1, strcspn(at + n + 1, "\n"));
	}
	if (any)
		out_char(&in->out, '\n');
}

static void time_line(struct info *in, const char *key, uint64_t realtime_ns)
{
	time_t s = (time_t)(realtime_ns / 1000000000);
	char text[64];
	struct tm tm;

	if (!gmtime_r(&s, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	out_fmt(&in->out, "%-14s %s.%06uZ\n", key, text, (unsigned int)(realtime_ns % 1000000000 / 1000));
}

/* ---- records ------------------------------------------------------------------------------------------ */

static bool same_process(const struct info_process *i, const struct process *p)
{
	return i->p.pid == p->pid && (i->p.start_boottime_ns == p->start_boottime_ns || !i->p.start_boottime_ns);
}

static struct info_process *process_of(struct info *in, const struct ct_hdr *h)
{
	const struct process *p = process_table_find(in->procs, h->pid);
	struct info_process *i;

	if (!p)
		return NULL;
	if (in->last && same_process(in->last, p))
		return in->last;
	for (i = in->first; i; i = i->next)
		if (same_process(i, p))
			break;
	if (!i && in->nprocesses == PROCESSES_MAX)
		i = in->last;
	if (i) {
		in->last = i;
		return i;
	}
	in->nprocesses++;
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->rank = i->world_size = CT_UNKNOWN;
	in->last = i;
	*in->end = i;
	in->end = &i->next;
	return i;
}

static int learn_process(struct info *in, const struct ct_hdr *h)
{
	struct info_process *i = process_of(in, h);
	const struct process *p = process_table_find(in->procs, h->pid);

	if (!i || !p)
		return -ENOMEM;
	i->p = *p;
	if (!p->info)
		return 0;
	i->rank = p->info->rank;
	i->world_size = p->info->world_size;
	free(i->exe);
	free(i->host);
	i->exe = strdup(p->info->exe);
	i->host = strdup(p->info->host);
	return i->exe && i->host ? 0 : -ENOMEM;
}

static void learn_clock(struct info *in, const struct ct_clock *c)
{
	uint64_t offset = c->realtime_ns - c->h.start_ns;

	if (!in->clocks++)
		in->first_offset_ns = offset;
	in->drift_ns = (int64_t)(offset - in->first_offset_ns);
}

static bool is_work(uint16_t kind)
{
	return kind >= CT_KERNEL && kind <= CT_GRAPH;
}

static int take(struct info *in, const struct ct_hdr *h)
{
	struct info_process *last = NULL;

	if (h->kind < CT_KIND_END)
		in->kinds[h->kind]++;
	else
		in->unknown_kinds++;
	if (process_table_record(in->procs, h))
		return -ENOMEM;
	/* stored for what it says about others' devices */
	if (h->kind == CT_CALL && h->flags & CT_F_HIDDEN) {
		in->kinds[CT_CALL]--;
		return 0;
	}
	switch (h->kind) {
	case CT_PROCESS:
	case CT_EXEC:
	case CT_PROCESS_INFO:
		return learn_process(in, h);
	case CT_CLOCK:
		learn_clock(in, (const struct ct_clock *)h);
		return 0;
	case CT_LOST:
		in->gaps++;
		if (((const struct ct_lost *)h)->cause < CT_LOSS_END)
			in->lost[((const struct ct_lost *)h)->cause] += ((const struct ct_lost *)h)->count;
		return 0;
	case CT_CALL:
		in->failed += api_failed((const struct ct_call *)h);
		in->unfinished += (h->flags & (CT_F_UNFINISHED | CT_F_PENDING)) == CT_F_UNFINISHED;
		break;
	}
	if (h->kind != CT_CALL && h->kind != CT_FOREIGN && !is_work(h->kind))
		return 0;
	last = process_of(in, h);
	if (!last)
		return -ENOMEM;
	if (!last->p.pid)
		last->p = *process_table_find(in->procs, h->pid);
	last->p.info = NULL;
	last->calls += !is_work(h->kind);
	last->works += is_work(h->kind);
	if (h->start_ns && h->start_ns < in->first_ns)
		in->first_ns = h->start_ns;
	if (h->end_ns > in->last_ns)
		in->last_ns = h->end_ns;
	return 0;
}

/* ---- what is printed ---------------------------------------------------------------------------------- */

static void print_head(struct info *in, const struct reader *r)
{
	uint64_t start_ns = reader_number(reader_head(r), "start_ns");

	if (!*reader_head(r))
		text_line(in, "head", "damaged: where and when this was recorded is not known");
	head_line(in, r, "version", "cudatrace");
	head_line(in, r, "host", "host");
	head_line(in, r, "kernel", "kernel");
	head_line(in, r, "driver", "driver");
	head_lines(in, r, "gpu", "GPUs", false);
	head_lines(in, r, "arg", "options", true);
	head_line(in, r, "traced", "traced");
	head_lines(in, r, "merged", "merged", false);
	if (start_ns)
		time_line(in, "begun", start_ns + reader_number(reader_head(r), "realtime_offset_ns"));
}

static void print_processes(struct info *in)
{
	int n = 0, all = 0;

	for (const struct info_process *i = in->first; i; i = i->next)
		all++;
	count_line(in, "processes", (uint64_t)all);
	for (const struct info_process *i = in->first; i && n < PROCESSES_SHOWN; i = i->next, n++) {
		out_fmt(&in->out, "  %-12u ", i->p.shown_pid);
		out_plain(&in->out, i->p.comm, strlen(i->p.comm));
		if (i->rank != CT_UNKNOWN)
			out_fmt(&in->out, ", rank %u", i->rank);
		if (i->rank != CT_UNKNOWN && i->world_size != CT_UNKNOWN)
			out_fmt(&in->out, " of %u", i->world_size);
		if (i->host && *i->host) {
			out_str(&in->out, ", on ");
			out_plain(&in->out, i->host, strlen(i->host));
		}
		out_fmt(&in->out, ": %llu calls", (unsigned long long)i->calls);
		if (i->works)
			out_fmt(&in->out, ", %llu on the device", (unsigned long long)i->works);
		out_char(&in->out, '\n');
	}
	if (all > n)
		out_fmt(&in->out, "  and %d more\n", all - n);
}

static void print_functions(struct info *in, struct reader *r)
{
	const struct trace_func *f;

	for (int i = 0; (f = funcs_at(reader_funcs(r), i)); i++)
		if (f->row < 0)
			out_fmt(&in->out, "%-14s %s: %s\n", "not known", f->name,
				f->fit == FUNCS_CHANGED
					? "another version's, with other arguments: shown with bare words"
					: "not in this version: shown with bare words");
}

static void print_counts(struct info *in)
{
	static const struct {
		uint16_t kind;
		const char *name;
	} kinds[] = { { CT_KERNEL, "kernels" },	 { CT_COPY, "copies" },	       { CT_SET, "sets" },
		      { CT_SYNC, "waits" },	 { CT_GRAPH, "graphs" },       { CT_MEMORY, "memory" },
		      { CT_MANAGED, "managed" }, { CT_OVERHEAD, "overheads" }, { CT_MARKER, "ranges" },
		      { CT_COUNTER, "samples" }, { CT_EVENT, "events" },       { CT_STACK, "stacks" },
		      { CT_NAME, "names" } };
	uint64_t calls = in->kinds[CT_CALL] + in->kinds[CT_FOREIGN];

	out_fmt(&in->out, "%-14s %llu", "calls", (unsigned long long)calls);
	if (in->failed)
		out_fmt(&in->out, ", %llu failed", (unsigned long long)in->failed);
	if (in->unfinished)
		out_fmt(&in->out, ", %llu unfinished", (unsigned long long)in->unfinished);
	out_char(&in->out, '\n');
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		count_line(in, kinds[i].name, in->kinds[kinds[i].kind]);
	count_line(in, "of new kinds", in->unknown_kinds);
	if (in->last_ns >= in->first_ns)
		out_fmt(&in->out, "%-14s %.6f s\n", "span", (double)(in->last_ns - in->first_ns) / 1e9);
}

static void print_end(struct info *in, const struct reader *r, const struct reader_stats *s)
{
	char text[256];
	bool any = false;

	if (in->clocks)
		out_fmt(&in->out, "%-14s read %llu times; the time of day moved by %lld ns against the rest\n",
			"clocks", (unsigned long long)in->clocks, (long long)in->drift_ns);
	for (int i = 0; i < CT_LOSS_END; i++) {
		if (!in->lost[i])
			continue;
		out_fmt(&in->out, "%-14s %llu %s\n", any ? "" : "lost", (unsigned long long)in->lost[i],
			loss_text((enum ct_loss)i));
		any = true;
	}
	if (!any)
		text_line(in, "lost", "nothing");
	else
		count_line(in, "gaps", in->gaps);
	out_fmt(&in->out, "%-14s %llu bytes, %llu blocks%s\n", "file", (unsigned long long)s->bytes,
		(unsigned long long)s->blocks, s->indexed ? ", with an index" : ", no index");
	if (s->damaged || s->malformed)
		out_fmt(&in->out, "%-14s %llu places, %llu bytes, at least %llu records\n", "damaged",
			(unsigned long long)s->damaged + s->malformed, (unsigned long long)s->damaged_bytes,
			(unsigned long long)s->lost_records);
	if (s->cut_bytes)
		out_fmt(&in->out, "%-14s the last %llu bytes are a part of a block\n", "cut off",
			(unsigned long long)s->cut_bytes);
	if (!s->ended)
		text_line(in, "end", "none: whoever wrote this was killed, or writes still");
	else if (reader_end(r) && reader_value(reader_end(r), "reason", text, sizeof(text)))
		text_line(in, "end", text);
}

static int read_all(struct info *in, struct reader *r)
{
	const struct ct_hdr *h;
	int n, err;

	while ((n = reader_next(r, &h)) == 1) {
		err = take(in, h);
		if (err)
			return err;
	}
	return n;
}

int cmd_info(const struct opts *o)
{
	struct info in = { .first_ns = UINT64_MAX, .end = &in.first };
	struct reader_stats stats = { 0 };
	struct reader *r = NULL;
	int err, status = 1;

	if (out_open(&in.out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	in.procs = process_table_open();
	err = in.procs ? reader_open(&r, o->file) : -ENOMEM;
	if (err)
		msg_error("cannot read %s: %s", o->file, reader_error(err));
	else
		err = read_all(&in, r);
	if (r && err)
		msg_error("reading %s failed: %s", o->file, strerror(-err));
	if (!err) {
		reader_stats(r, &stats);
		print_head(&in, r);
		print_processes(&in);
		print_counts(&in);
		print_functions(&in, r);
		print_end(&in, r, &stats);
		status = stats.damaged || stats.malformed ? 3 : 0;
	}
	while (in.first) {
		struct info_process *i = in.first;

		in.first = i->next;
		free(i->exe);
		free(i->host);
		free(i);
	}
	process_table_close(in.procs);
	reader_close(r);
	return cmd_finish(&in.out) ? 1 : status;
}
