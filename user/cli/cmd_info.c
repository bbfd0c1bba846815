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
#include "../trace/reader.h"
#include "../util/table/array.h"
#include "../util/table/keyed.h"
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
	struct process_table *procs;
	struct info_process *processes;
	struct keyed pids; /* of struct info_pid */
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

/* The next line "key value" at or behind *at, which it moves on; *n: the length of the value. NULL: there is
 * none. */
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

/* All lines of one key: GPUs, arguments. */
static void head_lines(struct info *in, const struct reader *r, const char *key, const char *shown,
		       bool one_line)
{
	const char *at = reader_head(r), *value;
	bool any = false;
	size_t n;

	while ((value = next_line(&at, key, &n))) {
		if (!any || !one_line)
			out_fmt(&in->out, "%s%-14s", any ? "\n" : "", any ? "" : shown);
		any = true;
		out_char(&in->out, ' ');
		out_plain(&in->out, value, n);
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
	out_fmt(&in->out, "%-14s %s.%06uZ\n", key, text,
		(unsigned int)(realtime_ns % 1000000000 / 1000));
}

/* ---- records ---- */

static bool same_process(const struct info_process *i, const struct process *p)
{
	return i->p.pid == p->pid &&
	       (i->p.start_boottime_ns == p->start_boottime_ns || !i->p.start_boottime_ns);
}

/* The place of one more; PROCESSES_MAX: there is none. */
static uint32_t new_process(struct info *in, const struct process *p)
{
	struct info_pid *pid;
	bool made;

	if (in->nprocesses == PROCESSES_MAX || !array_room(in->processes, in->nprocesses))
		return PROCESSES_MAX;
	pid = keyed_get(&in->pids, &p->pid, &made);
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

/* NULL: there is no room for it, which is counted. */
static struct info_process *process_of(struct info *in, const struct process *p)
{
	const struct info_pid *pid;
	uint32_t at;
	int looks = 0;

	if (in->last < in->nprocesses && same_process(&in->processes[in->last], p))
		return &in->processes[in->last];
	pid = keyed_find(&in->pids, &p->pid);
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
	struct info_process *i = p ? process_of(in, p) : NULL;

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
	i = process_of(in, p);
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

static void print_head(struct info *in, const struct reader *r)
{
	uint64_t start_ns = in->begin_ns = reader_number(reader_head(r), "start_ns");

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
		time_line(in, "begun",
			  start_ns + reader_number(reader_head(r), "realtime_offset_ns"));
}

/* A shell that starts the program may have started many others: with -v they are printed too. */
static bool is_of_interest(const struct info_process *i)
{
	return i->calls || i->works || msg_verbose;
}

static void print_processes(struct info *in)
{
	uint32_t shown = 0, idle = 0, more = 0;

	count_line(in, "processes", in->nprocesses);
	for (uint32_t n = 0; n < in->nprocesses; n++) {
		const struct info_process *i = &in->processes[n];

		if (!is_of_interest(i)) {
			idle++;
			continue;
		}
		if (shown == PROCESSES_SHOWN) {
			more++;
			continue;
		}
		shown++;
		out_fmt(&in->out, "  %-12u ", i->p.shown_pid);
		out_plain(&in->out, i->p.comm, strnlen(i->p.comm, CT_COMM_LEN));
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
	if (more)
		out_fmt(&in->out, "  and %u more\n", more);
	if (idle)
		out_fmt(&in->out, "  %u%s process%s made no call%s\n", idle, shown ? " other" : "",
			idle == 1 ? "" : "es", holes_unseen(in->holes) ? " that was seen" : "");
	if (in->beyond)
		out_fmt(&in->out,
			"  %llu records are of further processes, which are not counted here\n",
			(unsigned long long)in->beyond);
}

static void print_functions(struct info *in, struct reader *r)
{
	const struct trace_func *f;

	for (int i = 0; (f = funcs_at(reader_funcs(r), i)); i++)
		if (f->row < 0)
			out_fmt(&in->out, "%-14s %s: %s\n", "not known", f->name,
				f->fit == FUNCS_CHANGED
					? "another version's, with other arguments: shown with "
					  "bare words"
					: "not in this version: shown with bare words");
}

/* Calls that have no records, behind the number of those that have: " and ~288500 ±2 % that were
 * not recorded (cudaGetDevice)". */
static void print_muted(struct info *in, const struct reader *r)
{
	uint64_t calls = muted_calls(&in->muted);
	char number[32], margin[96], names[1024];
	bool named = reader_end(r) && reader_value(reader_end(r), "muted", names, sizeof(names));
	const char *const *rows = replay_muted_names(in->muting);

	if (!named) {
		names[0] = '\0';
		for (int i = 0; rows[i] && strlen(names) + 80 < sizeof(names); i++)
			snprintf(names + strlen(names), 80, "%s%.70s", i ? " " : "", rows[i]);
		named = *names;
	}

	if (!calls && !muted_error(&in->muted.unseen) && !named)
		return;
	muted_margin(margin, sizeof(margin), calls, &in->muted.unseen);
	if (calls)
		out_fmt(&in->out, "%-14s %s%s calls have no records", "muted",
			muted_number(number, sizeof(number), calls, &in->muted.unseen), margin);
	else
		out_fmt(&in->out, "%-14s %s calls have no records", "muted",
			in->muted.unseen.above ? "some" : "an unknown number of");
	if (named) {
		out_str(&in->out, ", of ");
		out_plain(&in->out, names, strlen(names));
	}
	out_char(&in->out, '\n');
}

static const struct {
	uint16_t kind;
	const char *name;
} kinds[] = { { CT_KERNEL, "kernels" },	 { CT_COPY, "copies" },	       { CT_SET, "sets" },
	      { CT_SYNC, "waits" },	 { CT_GRAPH, "graphs" },       { CT_MEMORY, "memory" },
	      { CT_MANAGED, "managed" }, { CT_OVERHEAD, "overheads" }, { CT_MARKER, "ranges" },
	      { CT_COUNTER, "samples" }, { CT_EVENT, "events" },       { CT_STACK, "stacks" },
	      { CT_NAME, "names" } };

static void print_counts(struct info *in, const struct reader *r)
{
	uint64_t calls = in->kinds[CT_CALL] + in->kinds[CT_FOREIGN];

	out_fmt(&in->out, "%-14s %llu", "calls", (unsigned long long)calls);
	if (in->failed)
		out_fmt(&in->out, ", %llu failed", (unsigned long long)in->failed);
	if (in->unfinished)
		out_fmt(&in->out, ", %llu unfinished", (unsigned long long)in->unfinished);
	out_char(&in->out, '\n');
	print_muted(in, r);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		count_line(in, kinds[i].name, in->kinds[kinds[i].kind]);
	count_line(in, "of new kinds", in->unknown_kinds);
	if (in->last_ns >= in->first_ns)
		out_fmt(&in->out, "%-14s %.6f s\n", "span",
			(double)(in->last_ns - in->first_ns) / 1e9);
}

/* Calls of the last second before a recording was cut off, which nothing has counted. */
static int take_muted(void *ctx, const struct ct_hdr *h)
{
	muted_add(&((struct info *)ctx)->muted, (const struct ct_muted *)h);
	return 0;
}

/* What was not seen: a line for each reason; with -v one for each row too. */
static void print_holes(struct info *in)
{
	char text[HOLES_TEXT], one[HOLES_ROW_TEXT];
	bool any = false;

	holes_text(in->holes, in->begin_ns, "", "\n", text, sizeof(text));
	for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		text_line(in, any ? "" : "not seen", at);
		any = true;
	}
	for (size_t i = 0; msg_verbose && i < holes_rows(in->holes); i++) {
		if (holes_void(holes_row(in->holes, i)))
			continue;
		holes_row_text(holes_row(in->holes, i), in->begin_ns, one, sizeof(one));
		text_line(in, i ? "" : "in detail", one);
	}
}

/* The numbers that an older version wrote at the end, before there were rows of what was not seen. */
static int old_rows(struct info *in, const struct reader *r)
{
	static const struct {
		const char *key;
		enum ct_hole_reason reason;
	} keys[] = { { "refused_files", CT_HOLE_FILE_REFUSED },
		     { "unhooked_functions", CT_HOLE_UNHOOKED },
		     { "partly_hooked_functions", CT_HOLE_PARTLY_HOOKED },
		     { "interrupted_functions", CT_HOLE_INTERRUPTED } };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !err && reader_end(r); i++) {
		struct ct_hole h = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, keys[i].reason);

		h.count = reader_number(reader_end(r), keys[i].key);
		if (h.count)
			err = holes_record(in->holes, &h.h, NULL);
	}
	return err;
}

static void print_end(struct info *in, const struct reader *r, const struct reader_stats *s)
{
	char text[256];
	uint64_t status;
	bool any = false;

	if (in->clocks)
		out_fmt(&in->out,
			"%-14s read %llu times; the wall clock moved by %lld ns relative to the "
			"monotonic clock\n",
			"clocks", (unsigned long long)in->clocks, (long long)in->drift_ns);
	for (int i = 0; i < CT_LOSS_END; i++) {
		if (!in->lost[i])
			continue;
		out_fmt(&in->out, "%-14s %llu %s\n", any ? "" : "lost",
			(unsigned long long)in->lost[i], loss_text((enum ct_loss)i));
		any = true;
	}
	if (!any)
		text_line(in, "lost",
			  holes_unseen(in->holes) ? "nothing of what was seen" : "nothing");
	else
		count_line(in, "gaps", in->gaps);
	print_holes(in);
	out_fmt(&in->out, "%-14s %llu bytes, %llu blocks%s\n", "file", (unsigned long long)s->bytes,
		(unsigned long long)s->blocks, s->indexed ? ", with an index" : ", no index");
	if (s->damaged || s->malformed)
		out_fmt(&in->out, "%-14s %llu places, %llu bytes, at least %llu records\n",
			"damaged", (unsigned long long)s->damaged + s->malformed,
			(unsigned long long)s->damaged_bytes, (unsigned long long)s->lost_records);
	if (s->cut_bytes)
		out_fmt(&in->out, "%-14s the last %llu bytes are a part of a block\n", "cut off",
			(unsigned long long)s->cut_bytes);
	if (!s->ended)
		text_line(in, "end", "none: whoever wrote this was killed, or writes still");
	else if (reader_end(r) && reader_value(reader_end(r), "reason", text, sizeof(text)))
		text_line(in, "end", text);
	if (reader_end(r) && reader_value(reader_end(r), "wait_status", text, sizeof(text)) &&
	    !parse_u64(text, 0, 0xffff, &status))
		text_line(in, "program", ended_text((int)status, text, sizeof(text)));
}

static void print_text(struct info *in, struct reader *r, const struct reader_stats *s)
{
	print_head(in, r);
	print_processes(in);
	print_counts(in, r);
	print_functions(in, r);
	print_end(in, r, s);
}

/* ---- the same as one JSON object, for programs ---- */

/* A line of the head or of the end, or null. */
static void json_value(struct json *j, const char *text, const char *key, const char *name)
{
	char value[1024];

	if (text && reader_value(text, key, value, sizeof(value)))
		json_put_str(j, name, value);
	else
		json_put_null(j, name);
}

static void json_values(struct json *j, const struct reader *r, const char *key, const char *name)
{
	const char *at = reader_head(r), *value;
	size_t n;

	json_open_array(j, name);
	while ((value = next_line(&at, key, &n)))
		json_put_bytes(j, NULL, value, n);
	json_end(j);
}

static void json_number(struct json *j, const char *name, uint32_t n)
{
	if (n == CT_UNKNOWN)
		json_put_null(j, name);
	else
		json_put_u64(j, name, n);
}

static void json_head(struct json *j, const struct reader *r, const char *file)
{
	uint64_t start_ns = reader_number(reader_head(r), "start_ns");

	json_put_u64(j, "version", 1);
	json_put_str(j, "file", file);
	json_put_bool(j, "head_damaged", !*reader_head(r));
	json_value(j, reader_head(r), "version", "cudatrace");
	json_value(j, reader_head(r), "host", "host");
	json_value(j, reader_head(r), "kernel", "kernel");
	json_value(j, reader_head(r), "driver", "driver");
	json_values(j, r, "gpu", "gpus");
	json_values(j, r, "arg", "options");
	json_value(j, reader_head(r), "traced", "traced");
	json_values(j, r, "merged", "merged");
	if (start_ns)
		json_put_u64(j, "begun_unix_ns",
			     start_ns + reader_number(reader_head(r), "realtime_offset_ns"));
	else
		json_put_null(j, "begun_unix_ns");
}

static void json_processes(struct info *in, struct json *j)
{
	json_put_u64(j, "process_count", in->nprocesses);
	json_open_array(j, "processes");
	for (uint32_t n = 0; n < in->nprocesses; n++) {
		const struct info_process *i = &in->processes[n];

		if (!is_of_interest(i))
			continue;
		json_open_object(j, NULL);
		json_put_u64(j, "pid", i->p.shown_pid);
		json_put_bytes(j, "process", i->p.comm, strnlen(i->p.comm, CT_COMM_LEN));
		json_number(j, "rank", i->rank);
		json_number(j, "world_size", i->world_size);
		json_put_str(j, "host", i->host && *i->host ? i->host : NULL);
		json_put_u64(j, "calls", i->calls);
		json_put_u64(j, "device_work", i->works);
		json_end(j);
	}
	json_end(j);
	json_put_u64(j, "records_of_further_processes", in->beyond);
}

static void json_counts(struct info *in, struct json *j, struct reader *r)
{
	const struct trace_func *f;

	json_put_u64(j, "calls", in->kinds[CT_CALL] + in->kinds[CT_FOREIGN]);
	json_put_u64(j, "failed_calls", in->failed);
	json_put_u64(j, "unfinished_calls", in->unfinished);
	json_put_u64(j, "calls_without_records", muted_calls(&in->muted));
	json_put_bool(j, "calls_without_records_estimated", muted_error(&in->muted.unseen) != 0);
	json_value(j, reader_end(r), "muted", "functions_without_records");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		json_put_u64(j, kinds[i].name, in->kinds[kinds[i].kind]);
	json_put_u64(j, "records_of_new_kinds", in->unknown_kinds);
	json_put_u64(j, "span_ns", in->last_ns >= in->first_ns ? in->last_ns - in->first_ns : 0);
	json_open_array(j, "unknown_functions");
	for (int i = 0; (f = funcs_at(reader_funcs(r), i)); i++)
		if (f->row < 0)
			json_put_str(j, NULL, f->name);
	json_end(j);
}

static void json_losses(struct info *in, struct json *j)
{
	json_open_object(j, "lost");
	for (int i = 0; i < CT_LOSS_END; i++)
		if (in->lost[i])
			json_put_u64(j, loss_name((enum ct_loss)i), in->lost[i]);
	json_end(j);
	json_put_u64(j, "gaps", in->gaps);
	json_put_holes(j, in->holes);
}

static void json_file(struct json *j, const struct reader *r, const struct reader_stats *s)
{
	char text[64];
	uint64_t status;

	json_put_u64(j, "file_bytes", s->bytes);
	json_put_u64(j, "blocks", s->blocks);
	json_put_bool(j, "indexed", s->indexed);
	json_put_u64(j, "damaged_places", s->damaged + s->malformed);
	json_put_u64(j, "damaged_bytes", s->damaged_bytes);
	json_put_u64(j, "damaged_records", s->lost_records);
	json_put_u64(j, "cut_off_bytes", s->cut_bytes);
	json_put_bool(j, "ended", s->ended);
	json_value(j, s->ended ? reader_end(r) : NULL, "reason", "reason");
	if (s->ended && reader_end(r) &&
	    reader_value(reader_end(r), "wait_status", text, sizeof(text)) &&
	    !parse_u64(text, 0, 0xffff, &status))
		json_put_u64(j, "wait_status", status);
	else
		json_put_null(j, "wait_status");
}

static void print_json(struct info *in, struct reader *r, const struct reader_stats *s,
		       const char *file)
{
	struct json j = json_to(&in->out);

	json_open_object(&j, NULL);
	json_head(&j, r, file);
	json_processes(in, &j);
	json_counts(in, &j, r);
	json_put_u64(&j, "clock_readings", in->clocks);
	json_put_i64(&j, "clock_drift_ns", in->drift_ns);
	json_losses(in, &j);
	json_file(&j, r, s);
	json_end(&j);
	out_char(&in->out, '\n');
}

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

static int read_all(struct info *in, struct reader *r)
{
	struct reader_stats stats;
	const struct ct_hdr *h;
	struct progress shown;
	uint64_t records = 0;
	int n, err = 0;

	reader_stats(r, &stats);
	progress_open(&shown, "reading the recording");
	while (!err && (n = reader_next(r, &h)) == 1) {
		err = info_record(in, h);
		if (++records % 4096 == 0)
			progress_at(&shown, reader_at(r), stats.bytes);
	}
	progress_close(&shown);
	return err ? err : n;
}

static int cmd_info(const struct request *given)
{
	const struct info_options *how = request_own(given, &options);
	struct request open = *given;
	const struct request *o = &open;

	struct info in = { .first_ns = UINT64_MAX };
	struct reader_stats stats = { 0 };
	struct reader *r = NULL;
	int err, status = 1;

	if (cmd_open_stdin(&open))
		return 1;
	if (out_open(&in.out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	confine(0);
	keyed_open(&in.pids, sizeof(struct info_pid), sizeof(uint32_t), PROCESSES_MAX);
	in.procs = process_table_open();
	in.holes = holes_open();
	in.muting = replay_muted_open();
	err = !in.procs || !in.holes || !in.muting ? -ENOMEM
	      : o->file_fd			   ? reader_open_fd(&r, o->file_fd)
						   : reader_open(&r, o->file);
	confine_drop();
	if (err)
		msg_error("cannot read %s: %s", o->file, reader_error(err));
	else
		err = read_all(&in, r);
	if (r && !err)
		err = old_rows(&in, r);
	if (r && !err)
		err = replay_muted_end(in.muting, take_muted, &in);
	if (r && err)
		msg_error("reading %s failed: %s", o->file, strerror(-err));
	if (!err) {
		reader_stats(r, &stats);
		if (how->json)
			print_json(&in, r, &stats, o->file);
		else
			print_text(&in, r, &stats);
		status = stats.damaged || stats.malformed ? 3 : 0;
	}
	for (uint32_t i = 0; i < in.nprocesses; i++)
		free(in.processes[i].host);
	free(in.processes);
	keyed_close(&in.pids);
	process_table_close(in.procs);
	holes_close(in.holes);
	replay_muted_close(in.muting);
	reader_close(r);
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
