/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_info.c - `cudatrace info FILE`: what a recording contains, and which parts cannot be read.
 * Exit status 3 when something in it is damaged; an end that was cut off is no damage.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "../event/holes/holes.h"
#include "../source/replay_muted.h"
#include "../event/muted.h"
#include "../flow/json_text.h"
#include "../render/table.h"
#include "../trace/reader.h"
#include "../util/table/array.h"
#include "../util/table/hash_map.h"
#include "../util/io/ended.h"
#include "../util/io/json.h"
#include "../util/io/confine.h"
#include "../util/whole/progress.h"
#include "../util/msg.h"
#include "../util/option/option.h"
#include "../util/parse.h"
#include "../util/utf8.h"

#define PROCESSES_SHOWN 1000
#define PROCESSES_MAX 100000
#define LOOKS_MAX 16 /* processes with one pid that are looked through for the right one */
#define HOST_MAX 255

struct info_process {
	struct process p; /* as it was last; without info */
	uint32_t older;	  /* one with the same pid, its place + 1; 0: none */
	uint32_t rank, world_size;
	char *host;
	uint64_t calls, works;
};

/* By pid, the newest. */
struct info_pid {
	uint32_t pid, newest;
};

struct info {
	struct out out;
	const char *file;
	struct reader *r;
	struct reader_stats stats;
	struct process_table *procs;
	struct info_process *processes;
	struct hash_map pids; /* of struct info_pid */
	uint32_t nprocesses, last;
	uint64_t beyond; /* records of processes that there was no room for */
	uint64_t kinds[CT_KIND_END], unknown_kinds, failed, unfinished;
	uint64_t first_ns, last_ns;
	struct muted_sum muted; /* calls without records */
	struct replay_muted *muting;
	uint64_t lost[CT_LOSS_END], gaps;
	struct holes *holes; /* what was not seen */
	uint64_t begin_ns;   /* of the recording, CLOCK_MONOTONIC; 0: not known */
	uint64_t clocks, first_offset_ns;
	int64_t drift_ns;
};

/* Finds the next line "key value" at or behind *at, moves *at behind it, and returns the value; *n: its length.
 * NULL: there is none. */
static const char *next_line(const char **at, const char *key, size_t *n)
{
	size_t len = strlen(key);

	while (*at && **at) {
		const char *line = *at;

		*at = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
		if (strncmp(line, key, len) != 0 || line[len] != ' ')
			continue;
		*n = strcspn(line + len + 1, "\n");
		return line + len + 1;
	}
	return NULL;
}

/* ---- records ---- */

static bool same_process(const struct info_process *i, const struct process *p)
{
	return i->p.pid == p->pid &&
	       (i->p.start_boottime_ns == p->start_boottime_ns || !i->p.start_boottime_ns);
}

/* Returns the place of a new process; PROCESSES_MAX: there is no room. */
static uint32_t new_process(struct info *in, const struct process *p)
{
	struct info_pid *pid;
	bool made;

	if (in->nprocesses == PROCESSES_MAX || !array_room(in->processes, in->nprocesses))
		return PROCESSES_MAX;
	pid = hash_map_get(&in->pids, &p->pid, &made);
	if (!pid)
		return PROCESSES_MAX;
	in->processes[in->nprocesses] = (struct info_process){ .p = *p,
							       .older = made ? 0 : pid->newest + 1,
							       .rank = CT_UNKNOWN,
							       .world_size = CT_UNKNOWN };
	in->processes[in->nprocesses].p.info = NULL;
	pid->newest = in->nprocesses;
	return in->nprocesses++;
}

/* Finds or makes the process. NULL: there is no room for it, which is counted. */
static struct info_process *cmd_info_process_of(struct info *in, const struct process *p)
{
	const struct info_pid *pid;
	uint32_t at;
	int looks = 0;

	if (in->last < in->nprocesses && same_process(&in->processes[in->last], p))
		return &in->processes[in->last];
	pid = hash_map_find(&in->pids, &p->pid);
	for (at = pid ? pid->newest + 1 : 0; at && looks++ < LOOKS_MAX;
	     at = in->processes[at - 1].older) {
		if (!same_process(&in->processes[at - 1], p))
			continue;
		in->last = at - 1;
		return &in->processes[in->last];
	}
	at = new_process(in, p);
	if (at == PROCESSES_MAX) {
		in->beyond++;
		return NULL;
	}
	in->last = at;
	return &in->processes[at];
}

static int learn_process(struct info *in, const struct ct_hdr *h)
{
	const struct process *p = process_table_find(in->procs, h->pid);
	struct info_process *i = p ? cmd_info_process_of(in, p) : NULL;

	if (!i)
		return p ? 0 : -ENOMEM;
	i->p = *p;
	i->p.info = NULL;
	if (!p->info)
		return 0;
	i->rank = p->info->rank;
	i->world_size = p->info->world_size;
	free(i->host);
	i->host = strndup(p->info->host, HOST_MAX);
	if (i->host)
		utf8_plain(i->host);
	return i->host ? 0 : -ENOMEM;
}

static void learn_clock(struct info *in, const struct ct_clock *c)
{
	uint64_t offset = c->realtime_ns - c->h.start_ns;

	if (!in->clocks++)
		in->first_offset_ns = offset;
	in->drift_ns = (int64_t)(offset - in->first_offset_ns);
}

static int info_record(struct info *in, const struct ct_hdr *h)
{
	const struct process *p;
	struct info_process *i;

	replay_muted_record(in->muting, h);
	if (h->kind < CT_KIND_END)
		in->kinds[h->kind]++;
	else
		in->unknown_kinds++;
	if (process_table_record(in->procs, h) ||
	    holes_record(in->holes, h, h->pid ? process_table_find(in->procs, h->pid) : NULL))
		return -ENOMEM;
	/* stored because it determines the devices of other calls */
	if (h->kind == CT_CALL && h->flags & CT_F_HIDDEN) {
		in->kinds[CT_CALL]--;
		return 0;
	}
	switch (h->kind) {
	case CT_PROCESS:
	case CT_EXEC:
	case CT_PROCESS_INFO: return learn_process(in, h);
	case CT_CLOCK: learn_clock(in, (const struct ct_clock *)h); return 0;
	case CT_LOST:
		in->gaps++;
		if (((const struct ct_lost *)h)->cause < CT_LOSS_END)
			losses_add(&in->lost[((const struct ct_lost *)h)->cause],
				   ((const struct ct_lost *)h)->count);
		return 0;
	case CT_MUTED: muted_add(&in->muted, (const struct ct_muted *)h); return 0;
	case CT_CALL:
		in->failed += api_failed((const struct ct_call *)h);
		in->unfinished += (h->flags & (CT_F_UNFINISHED | CT_F_PENDING)) == CT_F_UNFINISHED;
		break;
	}
	if (h->kind != CT_CALL && h->kind != CT_FOREIGN && !kind_is(h->kind, KIND_STREAM))
		return 0;
	p = process_table_find(in->procs, h->pid);
	if (!p)
		return -ENOMEM;
	i = cmd_info_process_of(in, p);
	if (i) {
		i->calls += !kind_is(h->kind, KIND_STREAM);
		i->works += kind_is(h->kind, KIND_STREAM);
	}
	if (h->start_ns && h->start_ns < in->first_ns)
		in->first_ns = h->start_ns;
	if (h->end_ns > in->last_ns)
		in->last_ns = h->end_ns;
	return 0;
}

/* ---- what is printed ---- */

/* The recording is the one row of its tables. */
static const struct info *info_row(const struct table_at *at)
{
	return at->row;
}

#define INFO(name, value) TABLE_GET(name, struct info, in, value)

#define VALUE_MAX \
	1024 /* the length of a line of the file; the context of the tables has room for one */
static struct cell info_text_cell(const struct table_at *at, const char *text)
{
	char *value = (char *)at->ctx;

	return cell_string(text ? reader_value(text, at->column->name, value, VALUE_MAX) : NULL);
}

/* A line of the file's head, or of its end. */
static struct cell info_head_value(const struct table_at *at)
{
	return info_text_cell(at, reader_head(info_row(at)->r));
}

static struct cell info_end_value(const struct table_at *at)
{
	return info_text_cell(at, reader_end(info_row(at)->r));
}

TABLE_SAY(show_damaged, struct info, in,
	  *reader_head(in->r) ? NULL : "damaged: where and when this was recorded is not known")

INFO(info_head_damaged, cell_bool(!*reader_head(in->r)))

/* Writes all lines of one key: GPUs or arguments. All arguments stand in one line. */
static void write_values(struct out *o, const struct table_at *at)
{
	const char *from = reader_head(info_row(at)->r), *value;
	size_t n;

	while ((value = next_line(&from, at->column->name, &n))) {
		if (*at->lines && !strcmp(at->column->name, "arg"))
			out_char(o, ' ');
		else
			table_text_line(o, at);
		out_plain(o, value, n);
	}
}

static void put_values(struct json *j, const struct table_at *at)
{
	const char *from = reader_head(info_row(at)->r), *value;
	size_t n;

	json_open_array(j, at->column->key);
	while ((value = next_line(&from, at->column->name, &n)))
		json_put_bytes(j, NULL, value, n);
	json_end(j);
}

static struct cell info_begun(const struct table_at *at)
{
	const char *head = reader_head(info_row(at)->r);
	uint64_t start_ns = reader_number(head, "start_ns");

	return start_ns ? cell_number(start_ns + reader_number(head, "realtime_offset_ns"))
			: cell_string(NULL);
}

static const char *show_begun(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct cell ns = info_begun(at);
	time_t s = (time_t)(ns.number / 1000000000);
	char text[64];
	struct tm tm;

	if (ns.is != CELL_NUMBER || !gmtime_r(&s, &tm))
		return NULL;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, TABLE_CELL, "%s.%06uZ", text, (unsigned int)(ns.number % 1000000000 / 1000));
	return buf;
}

/* clang-format off */
static const struct table_column head_columns[] = {
	{ .key = "file", TABLE_AT(struct info, file) },
	{ .key = "head_damaged", .head = "head", .text = 1, .get = info_head_damaged, .show = show_damaged },
	{ .key = "cudatrace", .head = "cudatrace", .text = 2, .name = "version", .get = info_head_value },
	{ .key = "host", .head = "host", .text = 3, .name = "host", .get = info_head_value },
	{ .key = "kernel", .head = "kernel", .text = 4, .name = "kernel", .get = info_head_value },
	{ .key = "driver", .head = "driver", .text = 5, .name = "driver", .get = info_head_value },
	{ .key = "gpus", .head = "GPUs", .text = 6, .name = "gpu", .write = write_values, .put = put_values },
	{ .key = "options", .head = "options", .text = 7, .name = "arg", .write = write_values, .put = put_values },
	{ .key = "traced", .head = "traced", .text = 8, .name = "traced", .get = info_head_value },
	{ .key = "merged", .head = "merged", .text = 9, .name = "merged", .write = write_values, .put = put_values },
	{ .key = "begun_unix_ns", .head = "begun", .text = 10, .get = info_begun, .show = show_begun },
};
/* clang-format on */

/* A shell that starts the program may have started many others: with -v they are printed too. */
static bool is_of_interest(const struct info_process *i)
{
	return i->calls || i->works || msg_verbose;
}

#define PROCESS(name, value) TABLE_GET(name, struct info_process, i, value)
static struct cell info_known(uint32_t n)
{
	return n == CT_UNKNOWN ? cell_string(NULL) : cell_number(n);
}

PROCESS(process_name, cell_bytes(i->p.comm, strnlen(i->p.comm, CT_COMM_LEN), false))
PROCESS(process_rank, info_known(i->rank))
PROCESS(process_world, info_known(i->world_size))
PROCESS(process_machine, cell_string(i->host && * i->host ? i->host : NULL))

static void write_process(struct out *o, const struct table_at *at)
{
	const struct info_process *i = at->row;

	out_plain(o, i->p.comm, strnlen(i->p.comm, CT_COMM_LEN));
	if (i->rank != CT_UNKNOWN)
		out_fmt(o, ", rank %u", i->rank);
	if (i->rank != CT_UNKNOWN && i->world_size != CT_UNKNOWN)
		out_fmt(o, " of %u", i->world_size);
	if (i->host && *i->host) {
		out_str(o, ", on ");
		out_plain(o, i->host, strlen(i->host));
	}
	out_fmt(o, ": %llu calls", (unsigned long long)i->calls);
	if (i->works)
		out_fmt(o, ", %llu on the device", (unsigned long long)i->works);
}

/* clang-format off */
static const struct table_column process_columns[] = {
	{ .key = "pid", .text = 1, .width = -12, TABLE_AT(struct info_process, p.shown_pid) },
	{ .text = 2, .width = -1, .write = write_process },
	{ .key = "process", .get = process_name },
	{ .key = "rank", .get = process_rank },
	{ .key = "world_size", .get = process_world },
	{ .key = "host", .get = process_machine },
	{ .key = "calls", TABLE_AT(struct info_process, calls) },
	{ .key = "device_work", TABLE_AT(struct info_process, works) },
};
/* clang-format on */

static void print_processes(struct info *in)
{
	struct table t = TABLE_OF(process_columns, 0, NULL);
	uint32_t shown = 0, idle = 0;

	t.indent = "  ";
	t.edge = true;
	for (uint32_t n = 0; n < in->nprocesses; n++) {
		if (!is_of_interest(&in->processes[n]))
			idle++;
		else if (shown++ < PROCESSES_SHOWN)
			table_text_row(&t, &in->out, &in->processes[n]);
	}
	if (shown > PROCESSES_SHOWN)
		out_fmt(&in->out, "  and %u more\n", shown - PROCESSES_SHOWN);
	if (idle)
		out_fmt(&in->out, "  %u%s process%s made no call%s\n", idle, shown ? " other" : "",
			idle == 1 ? "" : "es", holes_unseen(in->holes) ? " that was seen" : "");
	if (in->beyond)
		out_fmt(&in->out,
			"  %llu records are of further processes, which are not counted here\n",
			(unsigned long long)in->beyond);
}

static void put_processes(struct json *j, const struct table_at *at)
{
	const struct table t = TABLE_OF(process_columns, 0, NULL);

	json_open_array(j, at->column->key);
	for (uint32_t n = 0; n < info_row(at)->nprocesses; n++)
		if (is_of_interest(&info_row(at)->processes[n]))
			table_json_row(&t, j, NULL, &info_row(at)->processes[n]);
	json_end(j);
}

/* clang-format off */
static const struct table_column list_columns[] = {
	{ .key = "process_count", .head = "processes", .text = 1, .brief = true, TABLE_AT(struct info, nprocesses) },
	{ .key = "processes", .put = put_processes },
	{ .key = "records_of_further_processes", TABLE_AT(struct info, beyond) },
};
/* clang-format on */

INFO(info_calls, cell_number(in->kinds[CT_CALL] + in->kinds[CT_FOREIGN]))

static void write_calls(struct out *o, const struct table_at *at)
{
	table_text_line(o, at);
	out_fmt(o, "%llu", (unsigned long long)info_calls(at).number);
	if (info_row(at)->failed)
		out_fmt(o, ", %llu failed", (unsigned long long)info_row(at)->failed);
	if (info_row(at)->unfinished)
		out_fmt(o, ", %llu unfinished", (unsigned long long)info_row(at)->unfinished);
}

INFO(info_calls_muted, cell_number(muted_calls(&in->muted)))

INFO(info_is_estimated, cell_bool(muted_error(&in->muted.unseen) != 0))

/* Returns the functions that have calls without records: as the end of the recording names them, or, if it has no
 * end, as its records do. */
static const char *muted_names(const struct info *in, char names[VALUE_MAX])
{
	const char *const *rows = replay_muted_names(in->muting);

	if (reader_end(in->r) && reader_value(reader_end(in->r), "muted", names, VALUE_MAX))
		return names;
	names[0] = '\0';
	for (int i = 0; rows[i] && strlen(names) + 80 < VALUE_MAX; i++)
		snprintf(names + strlen(names), 80, "%s%.70s", i ? " " : "", rows[i]);
	return *names ? names : NULL;
}

/* "~288500 ±2 % calls have no records, of cudaGetDevice" */
static void write_muted(struct out *o, const struct table_at *at)
{
	const struct muted_sum *m = &info_row(at)->muted;
	char number[32], margin[96], names[VALUE_MAX];
	bool named = muted_names(info_row(at), names);
	uint64_t n = muted_calls(m);

	if (!n && !muted_error(&m->unseen) && !named)
		return;
	table_text_line(o, at);
	muted_margin(margin, sizeof(margin), n, &m->unseen);
	out_fmt(o, "%s%s calls have no records",
		n		  ? muted_number(number, sizeof(number), n, &m->unseen)
		: m->unseen.above ? "some"
				  : "an unknown number of",
		n ? margin : "");
	if (named) {
		out_str(o, ", of ");
		out_plain(o, names, strlen(names));
	}
}

INFO(info_span, cell_number(in->last_ns >= in->first_ns ? in->last_ns - in->first_ns : 0))

static const char *show_span(const struct table_at *at, char buf[TABLE_CELL])
{
	if (info_row(at)->last_ns < info_row(at)->first_ns)
		return NULL;
	snprintf(buf, TABLE_CELL, "%.6f s", (double)info_span(at).number / 1e9);
	return buf;
}

/* Functions that this version does not know. */
static const struct trace_func *next_unknown(const struct table_at *at, int *i)
{
	const struct trace_func *f;

	while ((f = funcs_at(reader_funcs(info_row(at)->r), (*i)++)))
		if (f->row < 0)
			return f;
	return NULL;
}

static void write_functions(struct out *o, const struct table_at *at)
{
	const struct trace_func *f;

	for (int i = 0; (f = next_unknown(at, &i));) {
		/* each function is a fact of its own, with the label */
		if (*at->lines)
			out_char(o, '\n');
		*at->lines = 0;
		table_text_line(o, at);
		out_fmt(o, "%s: %s", f->name,
			f->fit == FUNCS_CHANGED
				? "another version's, with other arguments: shown with bare words"
				: "not in this version: shown with bare words");
	}
}

static void put_functions(struct json *j, const struct table_at *at)
{
	const struct trace_func *f;

	json_open_array(j, at->column->key);
	for (int i = 0; (f = next_unknown(at, &i));)
		json_put_str(j, NULL, f->name);
	json_end(j);
}

#define KIND(word, place, kind)                                                \
	{                                                                      \
		.key = (word), .head = (word), .text = (place), .brief = true, \
		TABLE_AT(struct info, kinds[kind])                             \
	}
/* clang-format off */
static const struct table_column count_columns[] = {
	{ .key = "calls", .head = "calls", .text = 1, .get = info_calls, .write = write_calls },
	{ .key = "failed_calls", TABLE_AT(struct info, failed) },
	{ .key = "unfinished_calls", TABLE_AT(struct info, unfinished) },
	{ .key = "calls_without_records", .head = "muted", .text = 2, .get = info_calls_muted, .write = write_muted },
	{ .key = "calls_without_records_estimated", .get = info_is_estimated },
	{ .key = "functions_without_records", .name = "muted", .get = info_end_value },
	KIND("kernels", 3, CT_KERNEL),
	KIND("copies", 4, CT_COPY),
	KIND("sets", 5, CT_SET),
	KIND("waits", 6, CT_SYNC),
	KIND("graphs", 7, CT_GRAPH),
	KIND("memory", 8, CT_MEMORY),
	KIND("managed", 9, CT_MANAGED),
	KIND("overheads", 10, CT_OVERHEAD),
	KIND("ranges", 11, CT_MARKER),
	KIND("samples", 12, CT_COUNTER),
	KIND("events", 13, CT_EVENT),
	KIND("stacks", 14, CT_STACK),
	KIND("names", 15, CT_NAME),
	{ .key = "records_of_new_kinds", .head = "of new kinds", .text = 16, .brief = true, TABLE_AT(struct info, unknown_kinds) },
	{ .key = "span_ns", .head = "span", .text = 17, .get = info_span, .show = show_span },
	{ .key = "unknown_functions", .head = "not known", .text = 18, .write = write_functions,
	  .put = put_functions },
};
/* clang-format on */

/* ---- how it ended ---- */

static void write_clocks(struct out *o, const struct table_at *at)
{
	if (!info_row(at)->clocks)
		return;
	table_text_line(o, at);
	out_fmt(o,
		"read %llu times; the wall clock moved by %lld ns relative to the monotonic clock",
		(unsigned long long)info_row(at)->clocks, (long long)info_row(at)->drift_ns);
}

static void write_lost(struct out *o, const struct table_at *at)
{
	const struct info *in = info_row(at);

	for (int i = 0; i < CT_LOSS_END; i++) {
		if (!in->lost[i])
			continue;
		table_text_line(o, at);
		out_fmt(o, "%llu %s", (unsigned long long)in->lost[i], loss_text((enum ct_loss)i));
	}
	if (*at->lines)
		return;
	table_text_line(o, at);
	out_str(o, holes_unseen(in->holes) ? "nothing of what was seen" : "nothing");
}

static void put_lost(struct json *j, const struct table_at *at)
{
	json_open_object(j, at->column->key);
	for (int i = 0; i < CT_LOSS_END; i++)
		if (info_row(at)->lost[i])
			json_put_u64(j, loss_name((enum ct_loss)i), info_row(at)->lost[i]);
	json_end(j);
}

/* What was not seen: a line for each reason; with -v one for each row too. */
static void write_holes(struct out *o, const struct table_at *at)
{
	char text[HOLES_TEXT], *line = text, *end;

	holes_text(info_row(at)->holes, info_row(at)->begin_ns, "", "\n", text, sizeof(text));
	for (; (end = strchr(line, '\n')); line = end + 1) {
		table_text_line(o, at);
		out_plain(o, line, (size_t)(end - line));
	}
}

static void write_hole_rows(struct out *o, const struct table_at *at)
{
	const struct info *in = info_row(at);
	char one[HOLES_ROW_TEXT];

	for (size_t i = 0; msg_verbose && i < holes_rows(in->holes); i++) {
		if (holes_void(holes_row(in->holes, i)))
			continue;
		table_text_line(o, at);
		holes_row_text(holes_row(in->holes, i), in->begin_ns, one, sizeof(one));
		out_plain(o, one, strlen(one));
	}
}

static void put_holes(struct json *j, const struct table_at *at)
{
	json_put_holes(j, info_row(at)->holes);
}

static const char *show_gaps(const struct table_at *at, char buf[TABLE_CELL])
{
	bool lost = false;

	for (int i = 0; i < CT_LOSS_END; i++)
		lost |= info_row(at)->lost[i] != 0;
	snprintf(buf, TABLE_CELL, "%llu", (unsigned long long)info_row(at)->gaps);
	return lost && info_row(at)->gaps ? buf : NULL;
}

INFO(info_damaged_places, cell_number(in->stats.damaged + in->stats.malformed))

static void write_file(struct out *o, const struct table_at *at)
{
	const struct reader_stats *s = &info_row(at)->stats;

	table_text_line(o, at);
	out_fmt(o, "%llu bytes, %llu blocks%s", (unsigned long long)s->bytes,
		(unsigned long long)s->blocks, s->indexed ? ", with an index" : ", no index");
}

static void write_damaged(struct out *o, const struct table_at *at)
{
	const struct reader_stats *s = &info_row(at)->stats;

	if (!info_damaged_places(at).number)
		return;
	table_text_line(o, at);
	out_fmt(o, "%llu places, %llu bytes, at least %llu records",
		(unsigned long long)s->damaged + s->malformed, (unsigned long long)s->damaged_bytes,
		(unsigned long long)s->lost_records);
}

static const char *show_cut(const struct table_at *at, char buf[TABLE_CELL])
{
	snprintf(buf, TABLE_CELL, "the last %llu bytes are a part of a block",
		 (unsigned long long)info_row(at)->stats.cut_bytes);
	return info_row(at)->stats.cut_bytes ? buf : NULL;
}

static struct cell info_end_reason(const struct table_at *at)
{
	return info_row(at)->stats.ended ? info_end_value(at) : cell_string(NULL);
}

static const char *show_end(const struct table_at *at, char buf[TABLE_CELL])
{
	struct cell reason;

	if (!info_row(at)->stats.ended)
		return "none: whoever wrote this was killed, or writes still";
	reason = info_end_value(at);
	snprintf(buf, TABLE_CELL, "%.255s", reason.is == CELL_STRING ? reason.s : "");
	return reason.is == CELL_STRING ? buf : NULL;
}

static struct cell info_wait_status(const struct table_at *at)
{
	const struct cell text = info_end_value(at);
	uint64_t status;

	return text.is == CELL_STRING && !parse_u64(text.s, 0, 0xffff, &status)
		       ? cell_number(status)
		       : cell_string(NULL);
}

static const char *show_program(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct cell status = info_wait_status(at);

	return status.is == CELL_NUMBER ? ended_text((int)status.number, buf, TABLE_CELL) : NULL;
}

/* clang-format off */
static const struct table_column end_columns[] = {
	{ .key = "clock_readings", .head = "clocks", .text = 1, .write = write_clocks, TABLE_AT(struct info, clocks) },
	{ .key = "clock_drift_ns", TABLE_AT(struct info, drift_ns) },
	{ .key = "lost", .head = "lost", .text = 2, .write = write_lost, .put = put_lost },
	{ .key = "gaps", .head = "gaps", .text = 3, .show = show_gaps, TABLE_AT(struct info, gaps) },
	{ .head = "not seen", .text = 4, .write = write_holes, .put = put_holes },
	{ .head = "in detail", .text = 5, .write = write_hole_rows },
	{ .key = "file_bytes", .head = "file", .text = 6, .write = write_file, TABLE_AT(struct info, stats.bytes) },
	{ .key = "blocks", TABLE_AT(struct info, stats.blocks) },
	{ .key = "indexed", TABLE_AT(struct info, stats.indexed) },
	{ .key = "damaged_places", .head = "damaged", .text = 7, .get = info_damaged_places, .write = write_damaged },
	{ .key = "damaged_bytes", TABLE_AT(struct info, stats.damaged_bytes) },
	{ .key = "damaged_records", TABLE_AT(struct info, stats.lost_records) },
	{ .key = "cut_off_bytes", .head = "cut off", .text = 8, .show = show_cut, TABLE_AT(struct info, stats.cut_bytes) },
	{ .key = "ended", TABLE_AT(struct info, stats.ended) },
	{ .key = "reason", .head = "end", .text = 9, .name = "reason", .get = info_end_reason, .show = show_end },
	{ .key = "wait_status", .head = "program", .text = 10, .name = "wait_status", .get = info_wait_status, .show = show_program },
};
/* clang-format on */

struct info_options {
	bool json;
};
#define OPTION_STRUCT struct info_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "format", "NAME", ENUM(json, "table", "json"), 0, "table", "table, or json: one object" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

static void print_info(struct info *in, bool as_json)
{
	char value[VALUE_MAX];
	struct table tables[] = { TABLE_OF(head_columns, 0, value),
				  TABLE_OF(list_columns, 0, value),
				  TABLE_OF(count_columns, 0, value),
				  TABLE_OF(end_columns, 0, value) };
	struct json j = json_to(&in->out);

	if (as_json) {
		json_open_object(&j, NULL);
		json_put_u64(&j, "version", 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		tables[i].label = 14;
		if (as_json)
			table_json_members(&tables[i], &j, in);
		else
			table_text_lines(&tables[i], &in->out, in);
		if (!as_json && tables[i].columns == list_columns)
			print_processes(in);
	}
	if (as_json) {
		json_end(&j);
		out_char(&in->out, '\n');
	}
}

/* ---- the command ---- */

/* Calls of the last second before a recording was cut off, which nothing has counted. */
static int take_muted(void *ctx, const struct ct_hdr *h)
{
	muted_add(&((struct info *)ctx)->muted, (const struct ct_muted *)h);
	return 0;
}

/* The numbers that an older version wrote at the end, before there were rows of what was not seen. */
static int old_rows(struct info *in)
{
	static const struct {
		const char *key;
		enum ct_hole_reason reason;
	} keys[] = { { "refused_files", CT_HOLE_FILE_REFUSED },
		     { "unhooked_functions", CT_HOLE_UNHOOKED },
		     { "partly_hooked_functions", CT_HOLE_PARTLY_HOOKED },
		     { "interrupted_functions", CT_HOLE_INTERRUPTED } };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !err && reader_end(in->r); i++) {
		struct ct_hole h = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, keys[i].reason);

		h.count = reader_number(reader_end(in->r), keys[i].key);
		if (h.count)
			err = holes_record(in->holes, &h.h, NULL);
	}
	return err;
}

static int cmd_info_read_all(struct info *in)
{
	struct reader_stats stats;
	const struct ct_hdr *h;
	struct progress shown;
	uint64_t records = 0;
	int n, err = 0;

	reader_stats(in->r, &stats);
	progress_open(&shown, "reading the recording");
	while (!err && (n = reader_next(in->r, &h)) == 1) {
		err = info_record(in, h);
		if (++records % 4096 == 0)
			progress_at(&shown, reader_at(in->r), stats.bytes);
	}
	progress_close(&shown);
	return err ? err : n;
}

static int cmd_info(const struct request *given)
{
	const struct info_options *how = request_own(given, &options);
	struct request open = *given;
	const struct request *o = &open;

	struct info in = { .first_ns = UINT64_MAX, .file = given->file };
	int err, status = 1;

	if (cmd_open_stdin(&open))
		return 1;
	if (out_open(&in.out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	confine(0);
	hash_map_open(&in.pids, sizeof(struct info_pid), sizeof(uint32_t), PROCESSES_MAX);
	in.procs = process_table_open();
	in.holes = holes_open();
	in.muting = replay_muted_open();
	err = !in.procs || !in.holes || !in.muting ? -ENOMEM
	      : o->file_fd			   ? reader_open_fd(&in.r, o->file_fd)
						   : reader_open(&in.r, o->file);
	confine_drop();
	if (err)
		msg_error("cannot read %s: %s", o->file, reader_error(err));
	else
		err = cmd_info_read_all(&in);
	if (in.r && !err)
		err = old_rows(&in);
	if (in.r && !err)
		err = replay_muted_end(in.muting, take_muted, &in);
	if (in.r && err)
		msg_error("reading %s failed: %s", o->file, strerror(-err));
	if (!err) {
		reader_stats(in.r, &in.stats);
		in.begin_ns = reader_number(reader_head(in.r), "start_ns");
		print_info(&in, how->json);
		status = in.stats.damaged || in.stats.malformed ? 3 : 0;
	}
	for (uint32_t i = 0; i < in.nprocesses; i++)
		free(in.processes[i].host);
	free(in.processes);
	hash_map_close(&in.pids);
	process_table_close(in.procs);
	holes_close(in.holes);
	replay_muted_close(in.muting);
	reader_close(in.r);
	return cmd_finish(&in.out) ? 1 : status;
}

/* clang-format off */
const struct command command_info = {
	.run = cmd_info,
	.options = &options,
	.usage = "Usage: cudatrace info [OPTIONS] FILE\n",
	.about = "\nPrints what a recording contains: host, versions, clocks, processes, counts, losses, and which parts cannot be read.\n"
		 "Processes that made no call are counted; -v lists them.\n"
		 "Exit status: 0, also when its end was cut off; 3 when something in it is damaged; 1 when it cannot be read at all.\n",
};
/* clang-format on */
