/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c - a stored trace as a source. Reads the file and nothing else: no /proc, no kernel side, no privileges.
 * Knows how a recording is read (user/trace) and no stage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../trace/numbers.h"
#include "../trace/reader.h"
#include "../util/msg.h"
#include "source.h"

#define MUTED_MAX 64

struct replay {
	struct reader *reader;
	struct numbers *numbers; /* of calls, where some are left out; else NULL */
	uint64_t start_ns, from_ns, to_ns; /* CLOCK_MONOTONIC */
	bool told_cut;
	bool ranged;
	uint64_t told[CT_LOSS_END]; /* by records */
	uint64_t calls;
	char reason[32], muted_text[2048];
	char host[256];
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
	err = reader_open(&r->reader, plan->file);
	if (err) {
		msg_error("cannot read %s: %s", plan->file, reader_error(err));
		return err;
	}
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

/* Is it of the time that was asked for? A call belongs to the time of its begin, a gap to that of its end. */
static bool in_range(const struct replay *r, const struct ct_hdr *h)
{
	uint64_t at = h->kind == CT_LOST ? h->end_ns : h->start_ns;

	return !r->ranged || trace_is_definition(h->kind) || h->kind == CT_NUMBER || (at >= r->from_ns && at < r->to_ns);
}

/* It ends without an end: what is read of it is not all that there was to be. */
static void tell_cut(struct replay *r)
{
	struct reader_stats stats;

	reader_stats(r->reader, &stats);
	if (stats.ended || r->ranged || r->told_cut)
		return;
	r->told_cut = true;
	if (stats.cut_bytes)
		msg_warn("the recording breaks off: its last %llu bytes are a part of a block and were not read; 'cudatrace info' says "
			 "what there is",
			 (unsigned long long)stats.cut_bytes);
	else
		msg_note("the recording has no end: whoever wrote it was killed, or writes still");
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
			r->told[((const struct ct_lost *)rec)->cause] += ((const struct ct_lost *)rec)->count;
		err = emit(ctx, rec);
		if (err)
			return err;
	}
	if (n)
		return n;
	tell_cut(r);
	return 1;
}

static void replay_stop(struct source *s)
{
	(void)s;
}

/* What its end says, where that was read and all of it was asked for; and what the file itself lost. */
static void replay_losses(struct source *s, struct losses *l)
{
	const struct replay *r = s->priv;
	const char *end = reader_end(r->reader);
	char key[64];

	memcpy(l->lost, r->told, sizeof(l->lost));
	l->calls = r->calls;
	if (!end || r->ranged)
		return;
	l->calls = reader_number(end, "calls");
	l->folded = reader_number(end, "folded");
	l->filtered = reader_number(end, "filtered");
	l->sent = reader_number(end, "sent");
	l->unfinished = reader_number(end, "unfinished");
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

	*out = (struct source_recorded){
		.start_ns = r->start_ns,
		.realtime_offset_ns = reader_number(head, "realtime_offset_ns"),
		.places = reader_number(head, "places"),
		.gpu = reader_number(head, "work"),
		.boottime_offset_ns = reader_number(head, "boottime_offset_ns"),
		.reason = "cut off",
		.host = reader_value(head, "host", r->host, sizeof(r->host)),
	};
	if (!end)
		return;
	out->uptime_ns = reader_number(end, "uptime_ns");
	out->reason = reader_value(end, "reason", r->reason, sizeof(r->reason));
	if (!out->reason || !*out->reason)
		out->reason = "finished";
	/* one of a few words, which outputs have as it is */
	for (char *p = r->reason; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz -", *p))
			*p = '?';
}

static const char *const *replay_muted(struct source *s)
{
	struct replay *r = s->priv;
	int n = 0;

	if (!reader_end(r->reader) ||
	    !reader_value(reader_end(r->reader), "muted", r->muted_text, sizeof(r->muted_text)))
		return NULL;
	for (char *at = strtok(r->muted_text, " "); at && n < MUTED_MAX; at = strtok(NULL, " "))
		if (!at[strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")])
			r->muted[n++] = at; /* else it is no function's name */
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
	free(r);
	s->priv = NULL;
}

const struct source_ops source_replay = {
	.name = "replay",
	.open = replay_open,
	.start = replay_start,
	.fds = replay_fds,
	.drain = replay_drain,
	.stop = replay_stop,
	.losses = replay_losses,
	.muted = replay_muted,
	.recorded = replay_recorded,
	.close = replay_close,
};
