/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * speedscope.c - a file for speedscope (https://www.speedscope.app/file-format-schema.json),
 * written at the end.
 *
 * When calls have stacks: one profile of type "sampled", in which each distinct stack is a sample
 * with its weight, the call and for a launch the kernel below the frames; frames have file and
 * line. When none has: a profile of type "evented" for each thread and each stream, in which every
 * call and every piece of device work stands at its time. Which of the two is written is known only
 * at the end, so both are kept until the first stack comes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/strings.h"
#include "../../flow/about.h"
#include "fold.h"
#include "../../flow/row.h"
#include "../slice/tracks.h"

#define SPANS_MAX (4u << 20) /* of 24 bytes */
#define NAMES_BYTES (32u << 20)
#define NAME_BYTES 65536
#define ROOM 512

/* A call or a piece of device work at its time, on a track. */
struct span {
	uint32_t track, name;
	uint64_t start_ns, end_ns;
};

struct speedscope {
	struct fold *fold;
	bool stacks; /* a stack was seen: spans are not kept any more */
	struct span *spans;
	uint32_t nspans;
	uint64_t left_out; /* spans for which there was no room */
	struct tracks tracks;
	struct strings names;
	struct text text;
	struct row w;
};

/* ---- what comes ---- */

static bool has_span(const struct ct_hdr *h)
{
	const struct slice_row *row = slice_row(h->kind);

	return row && row->flags & SLICE_NESTS && h->end_ns > h->start_ns && slice_is_shown(h) &&
	       !(h->flags & (kind_is(h->kind, KIND_WORK) ? CT_F_NO_TIME : CT_F_NO_RETURN));
}

static void drop_spans(struct speedscope *s)
{
	free(s->spans);
	s->spans = NULL;
	s->nspans = 0;
	s->left_out = 0;
	s->stacks = true;
}

static void keep_span(struct speedscope *s, const struct sink_opts *o, const struct event *ev)
{
	struct span span = { .start_ns = ev->rec->start_ns, .end_ns = ev->rec->end_ns };

	s->text.len = 0;
	about_name(&s->text, o, ev);
	span.track = tracks_find(&s->tracks, ev);
	span.name = s->text.bad ? STRINGS_NONE : strings_add(&s->names, s->text.s, s->text.len);
	if (span.track == TRACKS_NONE || span.name == STRINGS_NONE || s->nspans >= SPANS_MAX ||
	    !array_room(s->spans, s->nspans))
		s->left_out++;
	else
		s->spans[s->nspans++] = span;
}

static int speedscope_event(struct sink *sink, const struct event *ev)
{
	struct speedscope *s = sink->priv;
	int row = fold_event(s->fold, ev);

	if (ev->stack && !s->stacks)
		drop_spans(s);
	if (!s->stacks && has_span(ev->rec))
		keep_span(s, sink->opts, ev);
	return row || (!s->stacks && has_span(ev->rec));
}

static int speedscope_open(struct sink *sink, const struct sink_opts *opts)
{
	struct speedscope *s = calloc(1, sizeof(*s));

	sink->opts = opts;
	sink->priv = s;
	if (!s)
		return -ENOMEM;
	s->fold = fold_open(opts, 0);
	if (!s->fold)
		return -ENOMEM;
	s->fold->places = true;
	tracks_init(&s->tracks);
	return strings_init(&s->names, NAMES_BYTES, UINT32_MAX) ? -ENOMEM : 0;
}

/* ---- the parts of the file ---- */

static void speedscope_put_string(struct speedscope *s, const char *text)
{
	s->text.len = 0;
	text_json(&s->text, text, NAME_BYTES);
	row_room(&s->w, ROOM);
	if (s->text.bad || !s->text.len)
		s->w.p = put_lit(s->w.p, "\"\"");
	else
		row_mem(&s->w, s->text.s, s->text.len);
	row_room(&s->w, ROOM);
}

static void put_begin(struct speedscope *s, const struct sink_opts *o)
{
	char exporter[64];

	s->w.p = put_lit(s->w.p, "{\"$schema\":\"https://www.speedscope.app/"
				 "file-format-schema.json\",\n\"exporter\":");
	snprintf(exporter, sizeof(exporter), "cudatrace %s", o->version ? o->version : "");
	speedscope_put_string(s, exporter);
	s->w.p = put_lit(s->w.p, ",\n\"name\":");
	speedscope_put_string(s, o->title ? o->title : "cudatrace");
	s->w.p = put_lit(s->w.p, ",\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
}

static void speedscope_put_number(struct speedscope *s, bool first, uint64_t v)
{
	row_room(&s->w, ROOM);
	if (!first)
		*s->w.p++ = ',';
	s->w.p = put_u64(s->w.p, v);
}

/* ---- sampled ---- */

static void put_frames(struct speedscope *s)
{
	const struct fold *f = s->fold;

	for (uint32_t i = 1; i < f->names.n; i++) {
		const struct fold_name n = fold_name(f, i);
		struct text name = { 0 };

		text_str(&name, n.kind == FOLD_KERNEL	? "[kernel] "
				: n.kind == FOLD_DEVICE ? "[GPU] "
							: "");
		text_mem(&name, n.text, strlen(n.text) + 1);
		s->w.p = i > 1 ? put_lit(s->w.p, ",\n{\"name\":") : put_lit(s->w.p, "\n{\"name\":");
		speedscope_put_string(s, name.bad ? n.text : name.s);
		if (n.file) {
			s->w.p = put_lit(s->w.p, ",\"file\":");
			speedscope_put_string(s, n.file);
		}
		if (n.file && n.line)
			s->w.p = put_u64(put_lit(s->w.p, ",\"line\":"), n.line);
		*s->w.p++ = '}';
		text_free(&name);
	}
}

/* The frames from the process to the node. */
static void put_sample(struct speedscope *s, uint32_t at)
{
	uint32_t way[4096], n = 0;

	/* deeper than any stack that is taken; what is nearest to the call is kept */
	for (; at && n < ARRAY_LEN(way); at = s->fold->nodes[at].parent)
		way[n++] = s->fold->nodes[at].name - 1;
	*s->w.p++ = '[';
	for (uint32_t i = n; i--;)
		speedscope_put_number(s, i + 1 == n, way[i]);
	row_room(&s->w, ROOM);
	*s->w.p++ = ']';
}

static int put_sampled(struct speedscope *s, const struct sink_opts *o)
{
	static const char *const units[] = { "none", "nanoseconds", "bytes", "nanoseconds" };
	static const char *const names[] = { "calls", "time in calls", "bytes", "time on the GPU" };
	const struct fold *f = s->fold;
	uint32_t at = 0, depth = 0;
	uint64_t sum = 0;
	bool first = true;

	put_begin(s, o);
	put_frames(s);
	row_room(&s->w, ROOM);
	s->w.p = put_str(put_lit(s->w.p, "]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\""),
			 names[o->look.weight]);
	s->w.p = put_str(put_lit(s->w.p, "\",\"unit\":\""), units[o->look.weight]);
	s->w.p = put_lit(s->w.p, "\",\"samples\":[");
	while ((at = fold_next(f, at, &depth))) {
		if (!f->nodes[at].self)
			continue;
		row_room(&s->w, ROOM);
		s->w.p = first ? put_lit(s->w.p, "\n") : put_lit(s->w.p, ",\n");
		put_sample(s, at);
		first = false;
	}
	s->w.p = put_lit(s->w.p, "],\n\"weights\":[");
	first = true;
	for (at = depth = 0; (at = fold_next(f, at, &depth));) {
		if (!f->nodes[at].self)
			continue;
		speedscope_put_number(s, first, f->nodes[at].self);
		sum += f->nodes[at].self;
		first = false;
	}
	row_room(&s->w, ROOM);
	s->w.p = put_u64(put_lit(s->w.p, "],\n\"startValue\":0,\"endValue\":"), sum);
	s->w.p = put_lit(s->w.p, "}]}\n");
	return 0;
}

/* ---- evented ---- */

/* By track, then time; of those that begin together the longest first, which the others are
 * inside of. */
static int speedscope_by_time(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

#define NESTED_MAX 256

struct lane {
	const struct span *open[NESTED_MAX]; /* outermost first */
	uint32_t depth;
	uint64_t zero_ns;
	bool first;
};

static void put_event(struct speedscope *s, struct lane *l, char type, uint32_t frame,
		      uint64_t at_ns)
{
	row_room(&s->w, ROOM);
	s->w.p = l->first ? put_lit(s->w.p, "\n{\"type\":\"") : put_lit(s->w.p, ",\n{\"type\":\"");
	*s->w.p++ = type;
	s->w.p = put_u64(put_lit(s->w.p, "\",\"frame\":"), frame);
	s->w.p = put_u64(put_lit(s->w.p, ",\"at\":"), at_ns - l->zero_ns);
	*s->w.p++ = '}';
	l->first = false;
}

static void close_until(struct speedscope *s, struct lane *l, uint64_t at_ns)
{
	while (l->depth && l->open[l->depth - 1]->end_ns <= at_ns) {
		l->depth--;
		put_event(s, l, 'C', l->open[l->depth]->name, l->open[l->depth]->end_ns);
	}
}

/*
 * A profile of those of the n spans that nest. The others, which overlap what is open, are moved
 * to the front for the next profile: returns their number. The spans that were written are
 * overwritten by then.
 */
static uint32_t put_lane(struct speedscope *s, struct span *spans, uint32_t n, uint32_t lane,
			 uint64_t zero_ns, uint64_t end_ns)
{
	struct lane l = { .zero_ns = zero_ns, .first = true };
	struct span open[NESTED_MAX];
	uint32_t left = 0;
	struct text name = { 0 };

	tracks_process(&name, tracks_at(&s->tracks, spans[0].track));
	text_str(&name, name.len ? ", " : "");
	tracks_name(&name, tracks_at(&s->tracks, spans[0].track));
	if (lane) {
		text_str(&name, ", overlapping ");
		text_u64(&name, lane);
	}
	text_mem(&name, "", 1);
	row_room(&s->w, ROOM);
	s->w.p = put_lit(s->w.p, "{\"type\":\"evented\",\"name\":");
	speedscope_put_string(s, name.bad ? "" : name.s);
	text_free(&name);
	s->w.p =
		put_u64(put_lit(s->w.p, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":"),
			end_ns - zero_ns);
	s->w.p = put_lit(s->w.p, ",\"events\":[");
	for (uint32_t i = 0; i < n; i++) {
		struct span span = spans[i];

		close_until(s, &l, span.start_ns);
		if (l.depth == NESTED_MAX ||
		    (l.depth && span.end_ns > l.open[l.depth - 1]->end_ns)) {
			spans[left++] = span;
			continue;
		}
		open[l.depth] = span;
		l.open[l.depth] = &open[l.depth];
		l.depth++;
		put_event(s, &l, 'O', span.name, span.start_ns);
	}
	close_until(s, &l, UINT64_MAX);
	row_room(&s->w, ROOM);
	s->w.p = put_lit(s->w.p, "]}");
	return left;
}

static int put_evented(struct speedscope *s, const struct sink_opts *o)
{
	uint64_t zero_ns = UINT64_MAX, end_ns = 0;
	uint32_t n;

	qsort(s->spans, s->nspans, sizeof(*s->spans), speedscope_by_time);
	for (uint32_t i = 0; i < s->nspans; i++) {
		zero_ns = s->spans[i].start_ns < zero_ns ? s->spans[i].start_ns : zero_ns;
		end_ns = s->spans[i].end_ns > end_ns ? s->spans[i].end_ns : end_ns;
	}
	put_begin(s, o);
	for (uint32_t i = 0; i < s->names.n; i++) {
		s->w.p = i ? put_lit(s->w.p, ",\n{\"name\":") : put_lit(s->w.p, "\n{\"name\":");
		speedscope_put_string(s, strings_get(&s->names, i));
		*s->w.p++ = '}';
	}
	row_room(&s->w, ROOM);
	s->w.p = put_lit(s->w.p, "]},\n\"profiles\":[");
	for (uint32_t i = 0; i < s->nspans; i += n) {
		uint32_t left, lane = 0;

		for (n = 1; i + n < s->nspans && s->spans[i + n].track == s->spans[i].track;)
			n++;
		left = n;
		do {
			row_room(&s->w, ROOM);
			s->w.p = i || lane ? put_lit(s->w.p, ",\n") : put_lit(s->w.p, "\n");
			left = put_lane(s, s->spans + i, left, lane++, zero_ns, end_ns);
		} while (left);
	}
	row_room(&s->w, ROOM);
	s->w.p = put_lit(s->w.p, "]}\n");
	return 0;
}

static void notes(const struct speedscope *s)
{
	if (s->left_out)
		msg_note("speedscope: %llu %s left out: there is room for %u; choose some by time "
			 "or with -e",
			 (unsigned long long)s->left_out,
			 s->left_out == 1 ? "call or piece of device work is"
					  : "calls and pieces of device work are",
			 SPANS_MAX);
}

static int speedscope_close(struct sink *sink, const struct sink_end *end)
{
	struct speedscope *s = sink->priv;
	int err = 0;

	(void)end;
	if (!s)
		return 0;
	if (s->fold) {
		row_begin(&s->w, sink->opts->out);
		err = fold_finish(s->fold);
		if (!err)
			err = s->stacks || !s->nspans ? put_sampled(s, sink->opts)
						      : put_evented(s, sink->opts);
		row_end(&s->w);
		if (s->stacks || !s->nspans)
			fold_notes(s->fold);
		notes(s);
	}
	fold_close(s->fold);
	free(s->spans);
	tracks_free(&s->tracks);
	strings_free(&s->names);
	text_free(&s->text);
	free(s);
	sink->priv = NULL;
	return err ? err : sink->opts->out->error;
}

const struct sink_ops sink_speedscope = {
	.name = "speedscope",
	.open = speedscope_open,
	.event = speedscope_event,
	.close = speedscope_close,
};
