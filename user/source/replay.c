/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c - a stored trace as a source. Reads the file and nothing else: no /proc, no kernel
 * side, no privileges. Knows how a recording is read (user/trace) and no stage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../trace/numbers.h"
#include "../trace/reader.h"
#include "../util/table/array.h"
#include "../util/msg.h"
#include "../util/parse.h"
#include "replay_muted.h"
#include "source.h"

#define MUTED_MAX 64
#define FAR_BLOCKS 8 /* whose rows may be held because of one begin */

struct replay {
	struct reader *reader;
	struct replay_muted *muting;	   /* functions whose calls are only counted */
	struct numbers *numbers;	   /* of calls, where some are left out; else NULL */
	uint64_t start_ns, from_ns, to_ns; /* CLOCK_MONOTONIC */
	bool reported_cut;
	bool ranged;
	uint64_t reported[CT_LOSS_END]; /* by records */
	bool reported_holes;
	uint64_t calls;
	const char *path; /* the plan's */
	/* by block: no record in it or in a later one has a lesser place; NULL: nobody has asked
	 * yet */
	uint64_t *settled;
	uint64_t nsettled;
	bool scanned;
	char reason[32], muted_text[2048];
	char host[256], boot[64];
	const char *muted[MUTED_MAX + 1];
};

static uint64_t later(uint64_t start_ns, uint64_t after_ns)
{
	return after_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + after_ns;
}

static int replay_open(struct source *s, const struct capture_plan *plan)
{
	struct replay *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	s->priv = r;
	r->muting = replay_muted_open();
	if (!r->muting)
		return -ENOMEM;
	err = plan->file_fd ? reader_open_fd(&r->reader, plan->file_fd)
			    : reader_open(&r->reader, plan->file);
	if (err) {
		msg_error("cannot read %s: %s", plan->file, reader_error(err));
		return err;
	}
	r->path = plan->file;
	r->start_ns = reader_number(reader_head(r->reader), "start_ns");
	r->ranged = plan->from_ns || plan->to_ns != UINT64_MAX;
	r->from_ns = plan->from_ns ? later(r->start_ns, plan->from_ns) : 0;
	r->to_ns = later(r->start_ns, plan->to_ns);
	reader_range(r->reader, r->from_ns, r->to_ns);
	if (r->ranged)
		r->numbers = numbers_open();
	return r->ranged && !r->numbers ? -ENOMEM : 0;
}

static int replay_start(struct source *s)
{
	(void)s;
	return 0;
}

static int replay_fds(struct source *s, int *fd, int max)
{
	(void)s, (void)fd, (void)max;
	return 0;
}

/* Says whether a record belongs to the time that the user asked for. A call belongs to the time of its
 * begin; a loss belongs to that of its end, because it is reported when it is over. */
static bool in_range(const struct replay *r, const struct ct_hdr *h)
{
	uint64_t at = h->kind == CT_LOST ? h->end_ns : h->start_ns;

	return !r->ranged || trace_is_definition(h->kind) || h->kind == CT_NUMBER ||
	       (at >= r->from_ns && at < r->to_ns);
}

/* Warns once if the file has no end block: records that the program made are then missing in it. */
static void tell_cut(struct replay *r)
{
	struct reader_stats stats;

	reader_stats(r->reader, &stats);
	if (stats.ended || r->ranged || r->reported_cut)
		return;
	r->reported_cut = true;
	if (stats.cut_bytes)
		msg_warn("the recording is cut off: its last %llu bytes are an incomplete block "
			 "and were not read; 'cudatrace info' shows what it has",
			 (unsigned long long)stats.cut_bytes);
	else
		msg_note("the recording has no end: its writer was killed, or is still writing");
}

/* Recordings before 0.2 count functions without hooks only in their end block, and do not say of which
 * process. They become rows without a process here. */
static int tell_holes(struct replay *r, emit_fn emit, void *ctx)
{
	static const struct {
		const char *key;
		enum ct_hole_reason reason;
	} keys[] = { { "unhooked_functions", CT_HOLE_UNHOOKED },
		     { "partly_hooked_functions", CT_HOLE_PARTLY_HOOKED },
		     { "interrupted_functions", CT_HOLE_INTERRUPTED } };
	const char *end = reader_end(r->reader);
	int err = 0;

	for (size_t i = 0; end && !r->ranged && !r->reported_holes && i < ARRAY_LEN(keys) && !err;
	     i++) {
		struct ct_hole h = { .h = { .size = sizeof(h), .kind = CT_HOLE },
				     .device = CT_UNKNOWN,
				     .reason = (uint16_t)keys[i].reason,
				     .layer = CT_HOLE_CALLS,
				     .state = CT_HOLE_REFUSED };

		h.count = reader_number(end, keys[i].key);
		if (h.count)
			err = emit(ctx, &h.h);
	}
	r->reported_holes = true;
	return err;
}

static int replay_drain(struct source *s, emit_fn emit, void *ctx)
{
	struct replay *r = s->priv;
	const struct ct_hdr *rec;
	struct ct_number number;
	int n, err;

	while ((n = reader_next(r->reader, &rec)) == 1) {
		bool say = r->numbers && numbers_record(r->numbers, rec, &number);

		if (!in_range(r, rec)) {
			numbers_begin(r->numbers);
			continue;
		}
		err = say ? emit(ctx, &number.h) : 0;
		if (err)
			return err;
		if (rec->kind == CT_CALL)
			r->calls++;
		else if (rec->kind == CT_LOST && ((const struct ct_lost *)rec)->cause < CT_LOSS_END)
			losses_add(&r->reported[((const struct ct_lost *)rec)->cause],
				   ((const struct ct_lost *)rec)->count);
		replay_muted_record(r->muting, rec);
		err = emit(ctx, rec);
		if (err || source_paused(s->paused))
			return err;
	}
	if (n)
		return n;
	n = r->ranged ? 0 : replay_muted_end(r->muting, emit, ctx);
	if (n)
		return n;
	err = tell_holes(r, emit, ctx);
	if (err)
		return err;
	tell_cut(r);
	return 1;
}

/* ---- what may still come ---- */

/* Room for the block with this number, counted from 0; blocks without a record that has a place
 * have UINT64_MAX. */
static int settled_room(struct replay *r, uint64_t block, size_t *cap)
{
	if (!array_fit(r->settled, *cap, block + 1))
		return -ENOMEM;
	while (r->nsettled <= block)
		r->settled[r->nsettled++] = UINT64_MAX;
	return 0;
}

/* The least place of a record of the block that the reader is at, by reading them all. */
static int least_place(const struct replay *r, struct reader *reader, uint64_t last_ns,
		       uint64_t *place)
{
	const struct ct_hdr *rec;
	int n;

	*place = last_ns; /* of a gap, if it cannot be read */
	while ((n = reader_span_record(reader, &rec)) == 1) {
		uint64_t at = in_range(r, rec) ? event_place_ns(rec) : 0;

		if (at && at < *place)
			*place = at;
	}
	return n;
}

/*
 * What may still come, by the heads of the blocks: no place is before the block's first begin. A block
 * with a begin that lies many blocks back, of a call that waited for long, would hold the rows of all of
 * them: only such a block is read for it.
 */
static int scan_places(struct replay *r, struct reader *reader, const volatile int *stop)
{
	uint64_t first_ns, last_ns, newest_ns = 0, ends[FAR_BLOCKS] = { 0 };
	struct reader_stats stats;
	size_t cap = 0;
	int n;

	reader_range(reader, r->from_ns, r->to_ns);
	for (unsigned int i = 0; (n = reader_next_span(reader, &first_ns, &last_ns)) == 1; i++) {
		/* the latest end of all blocks but the last FAR_BLOCKS */
		uint64_t back_ns = ends[i % FAR_BLOCKS];

		if (*stop)
			return -EINTR;
		if (first_ns < back_ns)
			n = least_place(r, reader, last_ns, &first_ns);
		reader_stats(reader, &stats);
		if (n < 0 || settled_room(r, stats.blocks, &cap))
			return n < 0 ? n : -ENOMEM;
		r->settled[stats.blocks] = first_ns < r->from_ns ? r->from_ns : first_ns;
		newest_ns = last_ns > newest_ns ? last_ns : newest_ns;
		ends[i % FAR_BLOCKS] = newest_ns;
	}
	for (uint64_t i = r->nsettled; i > 1; i--)
		if (r->settled[i - 1] < r->settled[i - 2])
			r->settled[i - 2] = r->settled[i - 1];
	return n;
}

static uint64_t replay_settled(struct source *s, const volatile int *stop)
{
	struct replay *r = s->priv;
	struct reader_stats stats;
	struct reader *reader;

	if (!r->scanned && !reader_open_fd(&reader, reader_fd(r->reader))) {
		int err = scan_places(r, reader, stop);

		reader_close(reader);
		/* the scan reports nothing: the same place fails again when its records are read */
		if (err)
			r->nsettled = 0;
		if (err == -EINTR)
			return 0;
	}
	r->scanned = true;
	reader_stats(r->reader, &stats);
	return stats.blocks < r->nsettled ? r->settled[stats.blocks] : 0;
}

static void replay_stop(struct source *s)
{
	(void)s;
}

/* The recorder's sums are in the end block. They hold only if that was read and the user asked for the
 * whole time; the losses of the file itself are added in any case. */
static void replay_losses(struct source *s, struct losses *l)
{
	const struct replay *r = s->priv;
	const char *end = reader_end(r->reader);
	char key[64];

	memcpy(l->lost, r->reported, sizeof(l->lost));
	l->calls = r->calls;
	if (!end || r->ranged)
		return;
	l->calls = reader_number(end, "calls");
	l->folded = reader_number(end, "folded");
	l->filtered = reader_number(end, "filtered");
	l->sent = reader_number(end, "sent");
	l->unfinished = reader_number(end, "unfinished");
	l->refused = reader_number(end, "refused_files");
	for (int i = 0; i < CT_LOSS_END; i++) {
		uint64_t n;

		strcpy(stpcpy(key, "lost."), loss_name((enum ct_loss)i));
		n = reader_number(end, key);
		if (n > l->lost[i])
			l->lost[i] = n;
	}
}

static void replay_recorded(struct source *s, struct source_recorded *out)
{
	struct replay *r = s->priv;
	const char *head = reader_head(r->reader), *end = reader_end(r->reader);
	char status[16];
	uint64_t n;

	*out = (struct source_recorded){
		.start_ns = r->start_ns,
		.realtime_offset_ns = reader_number(head, "realtime_offset_ns"),
		.places = reader_number(head, "places"),
		.whole = reader_number(head, "whole"),
		.gpu = reader_number(head, "work"),
		.boottime_offset_ns = reader_number(head, "boottime_offset_ns"),
		.reason = "cut off",
		.program = -1,
		.host = reader_value(head, "host", r->host, sizeof(r->host)),
		.boot = reader_value(head, "boot_id", r->boot, sizeof(r->boot)),
	};
	if (!end)
		return;
	if (!r->ranged && reader_value(end, "wait_status", status, sizeof(status)) &&
	    !parse_u64(status, 0, 0xffff, &n) && !WIFSTOPPED(n))
		out->program = (int)n;
	out->uptime_ns = reader_number(end, "uptime_ns");
	out->reason = reader_value(end, "reason", r->reason, sizeof(r->reason));
	if (!out->reason || !*out->reason)
		out->reason = "finished";
	/* outputs print the reason as it is, and the file may contain anything */
	for (char *p = r->reason; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz -", *p))
			*p = '?';
}

static const char *const *replay_muted(struct source *s)
{
	struct replay *r = s->priv;
	int n = 0;

	/* without an end block, or of a part of the time, the records themselves say it */
	if (!reader_end(r->reader) ||
	    !reader_value(reader_end(r->reader), "muted", r->muted_text, sizeof(r->muted_text)))
		return replay_muted_names(r->muting);
	for (char *at = strtok(r->muted_text, " "); at && n < MUTED_MAX; at = strtok(NULL, " "))
		if (!at[strspn(at,
			       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")])
			r->muted[n++] =
				at; /* a text with other characters is not the name of a function */
	r->muted[n] = NULL;
	return r->muted;
}

static void replay_close(struct source *s)
{
	struct replay *r = s->priv;

	if (!r)
		return;
	reader_close(r->reader);
	numbers_close(r->numbers);
	replay_muted_close(r->muting);
	free(r->settled);
	free(r);
	s->priv = NULL;
}

static void replay_progress(struct source *s, uint64_t *done, uint64_t *all)
{
	const struct replay *r = s->priv;
	struct reader_stats stats;

	reader_stats(r->reader, &stats);
	*done = reader_at(r->reader);
	*all = stats.bytes;
}

const struct source_ops source_replay = {
	.progress = replay_progress,
	.name = "replay",
	.open = replay_open,
	.start = replay_start,
	.fds = replay_fds,
	.drain = replay_drain,
	.stop = replay_stop,
	.losses = replay_losses,
	.muted = replay_muted,
	.recorded = replay_recorded,
	.settled = replay_settled,
	.close = replay_close,
};
