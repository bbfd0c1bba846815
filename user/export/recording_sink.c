/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recording_sink.c - the sink that stores: every event goes into a recording (user/trace), so that
 * replay gives other sinks the same events. There are three modes: one file; several files of
 * limited size, of which the oldest are dropped; the last seconds in memory, written when a
 * condition is met (the flight recorder). Knows no source and no format of text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../trace/defs.h"
#include "../trace/flight.h"
#include "../trace/writer.h"
#include "../util/io/safe_open.h"
#include "../util/msg.h"
#include "../util/now.h"
#include "../flow/sink.h"

#define FLUSH_NS 1000000000ULL /* a SIGKILL loses at most so much */
/* Files for calls that meet a condition: a program that fails again and again must not fill the
 * disk. */
#define DUMPS_MAX 10
#define RING_BYTES (256ULL << 20)
/* more than any block has: farther than this from --max-size nothing need be calculated */
#define FAR_BYTES (1u << 20)
#define SMALL_BLOCK (4u << 10) /* a file with less room than for this is full */

struct trace_sink {
	const struct sink_file *file;
	struct writer *writer; /* NULL: with `ring` */
	struct ring_buf *ring;
	struct defs *defs; /* with rotation */
	/* of calls, through all files; NULL: with `ring`, which has its own */
	struct numbers *numbers;
	uint64_t begun_ns;     /* of the block */
	uint64_t start_ns;     /* of the trace */
	struct ct_clock clock; /* the last one: each file has one at its begin */
	uint64_t calls, lost, reported_calls, reported_ns; /* for the progress line */
	uint64_t bytes;					   /* of files that are complete */
	uint64_t dumped_ns;
	uint64_t had_bytes, had_missing; /* of the last file that was looked at */
	unsigned int parts;		 /* files begun */
	unsigned int dumps;		 /* of these, for a call that met a condition */
	int dump_error;			 /* of the last dump that failed */
	int error; /* of the file that could not be begun: there is none then */
	bool progress_shown, said;
	bool filled; /* the file has more than definitions */
	const volatile int *stop;
};

/* ---- files ---- */

/* Notes how much the file has, and how much it lacks, before it is closed. */
static void recording_sink_look(struct trace_sink *t)
{
	t->had_bytes = writer_bytes(t->writer);
	t->had_missing = writer_missing(t->writer);
}

static int failed(struct trace_sink *t, const char *path, int err)
{
	if (t->writer)
		recording_sink_look(t);
	if (!t->said && err == -ETIMEDOUT)
		msg_error("the reader of %s does not read: recording stopped after %llu bytes, the "
			  "rest is dropped",
			  path, (unsigned long long)t->had_bytes);
	else if (!t->said)
		msg_error("writing to %s failed after %llu bytes: %s; what is in it can be read, "
			  "the last %llu records are not in it",
			  path, (unsigned long long)t->had_bytes,
			  err == -ESHUTDOWN ? "a second signal" : writer_error(err),
			  (unsigned long long)t->had_missing);
	t->said = true;
	return err;
}

static int store(struct trace_sink *t, const struct ct_hdr *h)
{
	int err;

	if (t->ring)
		return ring_buf_record(t->ring, h);
	if (!t->writer)
		return t->error;
	if (t->defs && trace_is_definition(h->kind)) {
		err = defs_record(t->defs, h);
		if (err)
			return err;
	}
	err = writer_record(t->writer, h);
	return err ? failed(t, t->file->path, err) : 0;
}

static int put_one(void *ctx, const struct ct_hdr *h)
{
	return writer_record(ctx, h);
}

/* Renames FILE.N-1 to FILE.N and so on; the oldest is removed. */
static int shift_files(const struct sink_file *f)
{
	char name[NAME_MAX + 16], to[NAME_MAX + 16];
	struct safe_place at, from;
	int err = safe_place_find(&at, f->path);

	for (unsigned int i = f->rotate; !err && i-- > 0;) {
		from.dir = at.dir;
		snprintf(name, sizeof(name), i ? "%s.%u" : "%s", at.name, i);
		snprintf(to, sizeof(to), "%s.%u", at.name, i + 1);
		if (strlen(name) > NAME_MAX)
			continue;
		strcpy(from.name, name);
		err = safe_place_rename(&from, to);
		err = err == -ENOENT ? 0 : err;
	}
	safe_place_close(&at);
	return err;
}

static int open_writer(struct trace_sink *t, const char *path)
{
	char part[64];
	char *head;
	int err;

	snprintf(part, sizeof(part), "part %u\n", ++t->parts);
	head = malloc(strlen(t->file->head) + sizeof(part));
	if (!head)
		return -ENOMEM;
	strcpy(stpcpy(head, t->file->head), part);
	err = writer_open(&t->writer, path, head);
	free(head);
	if (!err && t->numbers)
		writer_numbers(t->writer, t->numbers);
	if (!err)
		writer_stop(t->writer, t->stop);
	if (err)
		msg_error("cannot write to %s: %s", path, writer_error(err));
	t->said |= err != 0;
	return t->error = err;
}

/* The end of a file that is not the end of the trace. That nothing came since the last record is a part of what it
 * shows. */
static int end_early(struct trace_sink *t, const char *why)
{
	char end[128];

	snprintf(end, sizeof(end), "reason %s\nuptime_ns %llu\n", why,
		 (unsigned long long)(now_ns() - t->start_ns));
	return writer_end(t->writer, end);
}

/* Completes and closes the file. The next file begins with all definitions that are known. */
static int rotate(struct trace_sink *t)
{
	int err = end_early(t, "rotated"), e;

	recording_sink_look(t);
	t->bytes += t->had_bytes;
	e = writer_close(t->writer);
	t->writer = NULL;
	err = err ? err : e;
	if (!err)
		err = shift_files(t->file);
	if (err)
		return t->error = failed(t, t->file->path, err);
	t->filled = false;
	err = open_writer(t, t->file->path);
	if (!err && t->clock.h.size)
		err = put_one(t->writer, &t->clock.h);
	if (!err)
		err = defs_write(t->defs, put_one, t->writer);
	/* a reader finds in it, while it is written, what has been known so far */
	if (!err)
		err = writer_flush(t->writer);
	return err && t->writer ? failed(t, t->file->path, err) : err;
}

/* Writes what is in memory to a file of its own: FILE, then FILE.2 and so on. */
static int dump(struct trace_sink *t, const char *why)
{
	char path[4200];
	int err, e;

	ring_buf_flush(t->ring, 0);
	if (t->parts)
		snprintf(path, sizeof(path), "%s.%u", t->file->path, t->parts + 1);
	else
		snprintf(path, sizeof(path), "%s", t->file->path);
	t->said = false;
	err = open_writer(t, path);
	if (err)
		return t->dump_error = err;
	if (t->clock.h.size)
		err = put_one(t->writer, &t->clock.h);
	if (!err)
		err = ring_buf_write(t->ring, t->writer);
	if (!err)
		err = end_early(t, why);
	recording_sink_look(t);
	t->bytes += t->had_bytes;
	e = writer_close(t->writer);
	t->writer = NULL;
	t->dump_error = err ? err : e;
	if (t->dump_error)
		return failed(t, path, t->dump_error);
	msg_note("wrote %s (%s)", path, why);
	return 0;
}

/* ---- events ---- */

/* True if the call makes the flight recorder write. */
static bool triggers(struct trace_sink *t, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct sink_file *f = t->file;

	if (!t->ring || c->h.kind != CT_CALL || c->h.flags & (CT_F_PENDING | CT_F_HIDDEN))
		return false;
	if (!(f->dump_failed && api_failed(c)) &&
	    !(f->dump_rows && f->dump_rows[c->func / 64] >> (c->func % 64) & 1))
		return false;
	/* what is in memory then has not been written before */
	if (t->dumped_ns && c->h.end_ns < t->dumped_ns + f->last_ns)
		return false;
	t->dumped_ns = c->h.end_ns;
	if (t->dumps++ < DUMPS_MAX)
		return true;
	if (t->dumps == DUMPS_MAX + 1)
		msg_warn(
			"%d files were written: no further call causes a file; a signal still does",
			DUMPS_MAX);
	return false;
}

/*
 * Does a record still fit the file? What a block becomes once it is compressed is not known
 * before: near the limit blocks are written early, each as large as what is left could take
 * uncompressed, until so little is left that no other block is worth its head. 1: it does; 0:
 * the file is full; -errno.
 */
static int recording_sink_fits(struct trace_sink *t, const struct ct_hdr *h)
{
	uint64_t max = t->file->max_bytes;
	int err;

	if (!t->writer || !max || writer_bytes(t->writer) + FAR_BYTES < max ||
	    writer_most(t->writer, h->size) <= max)
		return 1;
	err = writer_flush(t->writer);
	if (err)
		return failed(t, t->file->path, err);
	return writer_most(t->writer, h->size) + SMALL_BLOCK <= max;
}

/* Room for a record, in the next file if need be. A file whose definitions fill it takes what
 * they belong to all the same. -ECANCELED: there is no next file. */
static int recording_sink_make_room(struct trace_sink *t, const struct ct_hdr *h)
{
	int n = recording_sink_fits(t, h);

	if (n || (t->file->rotate && !t->filled))
		return n < 0 ? n : 0;
	return t->file->rotate ? rotate(t) : -ECANCELED;
}

static int trace_event(struct sink *s, const struct event *ev)
{
	struct trace_sink *t = s->priv;
	bool call = ev->rec->kind == CT_CALL && !(ev->rec->flags & CT_F_HIDDEN);
	int err;

	/* the rows are there already, as they were stated */
	if (ev->rec->kind == CT_HOLE && ev->rec->flags & CT_F_FINAL)
		return 0;
	err = recording_sink_make_room(t, ev->rec);
	if (!err)
		err = store(t, ev->rec);
	if (err)
		return err;
	t->filled |= !trace_is_definition(ev->rec->kind);
	t->calls += call;
	if (ev->rec->kind == CT_CLOCK && !ev->rec->pid && ev->rec->size == sizeof(t->clock))
		memcpy(&t->clock, ev->rec, sizeof(t->clock));
	if (ev->rec->kind == CT_LOST)
		t->lost += ((const struct ct_lost *)ev->rec)->count;
	/* what cannot be written now stays in memory, and the trace continues */
	if (call && triggers(t, ev))
		dump(t, api_failed((const struct ct_call *)ev->rec) ? "failed call" : "call");
	return call || kind_is(ev->rec->kind, KIND_DEVICE);
}

/* ---- time ---- */

static void progress(struct trace_sink *t, uint64_t now_ns)
{
	uint64_t took = now_ns - t->reported_ns, bytes = t->bytes;

	if (!t->file->progress || took < FLUSH_NS)
		return;
	bytes += t->ring ? ring_buf_bytes(t->ring) : t->writer ? writer_bytes(t->writer) : 0;
	fprintf(stderr, "\r%llu calls, %.0f/s, %.1f MB%s, %llu lost  ",
		(unsigned long long)t->calls,
		(double)(t->calls - t->reported_calls) * 1e9 / (double)took, (double)bytes / 1e6,
		t->ring ? " in memory" : "", (unsigned long long)t->lost);
	t->reported_calls = t->calls;
	t->reported_ns = now_ns;
	t->progress_shown = true;
}

static int trace_tick(struct sink *s, uint64_t now_ns)
{
	struct trace_sink *t = s->priv;
	int err;

	progress(t, now_ns);
	if (now_ns - t->begun_ns < FLUSH_NS)
		return 0;
	t->begun_ns = now_ns;
	if (t->ring)
		return ring_buf_flush(t->ring, now_ns);
	if (!t->writer)
		return t->error;
	err = writer_flush(t->writer);
	return err ? failed(t, t->file->path, err) : 0;
}

static int trace_dump(struct sink *s)
{
	struct trace_sink *t = s->priv;

	if (t->ring)
		dump(t, "signal");
	return 0;
}

/* ---- beginning and end ---- */

static int trace_open(struct sink *s, const struct sink_opts *opts)
{
	struct trace_sink *t = calloc(1, sizeof(*t));
	int err = 0;

	s->opts = opts;
	s->priv = t;
	if (!t)
		return -ENOMEM;
	t->file = opts->file;
	t->start_ns = opts->start_ns;
	t->stop = opts->out ? opts->out->stop : NULL;
	t->begun_ns = t->reported_ns = clock_ns(CLOCK_MONOTONIC);
	if (t->file->last_ns)
		t->ring = ring_buf_open(t->file->last_ns,
					t->file->max_bytes ? t->file->max_bytes : RING_BYTES);
	else if (t->file->rotate)
		t->defs = defs_open();
	if (!t->file->last_ns)
		t->numbers = numbers_open();
	if ((t->file->last_ns ? !t->ring : !t->numbers) || (t->file->rotate && !t->defs))
		return -ENOMEM;
	if (!t->ring)
		err = open_writer(t, t->file->path);
	if (!err && t->file->rotate && !writer_is_regular(t->writer)) {
		msg_error("--rotate gives the file other names, and %s is not a regular file",
			  t->file->path);
		err = -EINVAL;
	}
	return err ? -EINVAL : 0; /* the reason has been reported */
}

/* Writes the end in the form that replay_losses() and replay_recorded() read. */
static char *end_text(const struct sink_end *end)
{
	const struct losses *l = &end->losses;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f,
		"reason %s\nuptime_ns %llu\ncalls %llu\nfolded %llu\nfiltered %llu\nsent %llu\n"
		"unfinished %llu\nreceived %llu\n",
		end->reason, (unsigned long long)end->uptime_ns, (unsigned long long)l->calls,
		(unsigned long long)l->folded, (unsigned long long)l->filtered,
		(unsigned long long)l->sent, (unsigned long long)l->unfinished,
		(unsigned long long)l->received);
	for (int i = 0; i < CT_LOSS_END; i++)
		if (l->lost[i])
			fprintf(f, "lost.%s %llu\n", loss_name((enum ct_loss)i),
				(unsigned long long)l->lost[i]);
	if (end->muted && end->muted[0]) {
		fputs("muted", f);
		for (int i = 0; end->muted[i]; i++)
			fprintf(f, " %s", end->muted[i]);
		fputc('\n', f);
	}
	if (end->program)
		fprintf(f, "wait_status %d\n", *end->program);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int recording_sink_finish(struct trace_sink *t, const struct sink_end *end)
{
	char *text;
	int err;

	if (t->ring) {
		if (t->file->dump_end)
			return dump(t, end->reason);
		if (t->dump_error)
			return t->dump_error;
		if (!t->parts)
			msg_note("nothing was written: no condition of --dump-on was met");
		return 0;
	}
	if (!t->writer)
		return t->error;
	text = end_text(end);
	err = text ? writer_end(t->writer, text) : -ENOMEM;
	free(text);
	if (!err)
		msg_note("%llu bytes in %s", (unsigned long long)writer_bytes(t->writer),
			 t->file->path);
	return err ? failed(t, t->file->path, err) : 0;
}

static int trace_close(struct sink *s, const struct sink_end *end)
{
	struct trace_sink *t = s->priv;
	uint64_t dropped;
	int err, e;

	if (!t)
		return 0;
	if (t->progress_shown)
		fputc('\n', stderr);
	err = recording_sink_finish(t, end);
	if (t->ring && ring_buf_crowded(t->ring))
		msg_warn("%llu record%s younger than --last %s dropped because memory was full; "
			 "raise --max-size",
			 (unsigned long long)ring_buf_crowded(t->ring),
			 ring_buf_crowded(t->ring) == 1 ? "" : "s",
			 ring_buf_crowded(t->ring) == 1 ? "was" : "were");
	dropped = t->defs ? defs_dropped(t->defs) : t->ring ? ring_buf_unnamed(t->ring) : 0;
	if (dropped)
		msg_warn("%llu names, stacks and frames were too many to keep: they are missing in "
			 "the files after the first",
			 (unsigned long long)dropped);
	if (t->writer)
		recording_sink_look(t);
	e = writer_close(t->writer);
	t->writer = NULL;
	if (!err && e)
		err = failed(t, t->file->path, e);
	ring_buf_close(t->ring);
	defs_close(t->defs);
	numbers_close(t->numbers);
	free(t);
	s->priv = NULL;
	return err;
}

const struct sink_ops sink_trace = {
	.name = "recording",
	.open = trace_open,
	.event = trace_event,
	.tick = trace_tick,
	.dump = trace_dump,
	.close = trace_close,
};
