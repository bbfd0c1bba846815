/* SPDX-License-Identifier: BSD-2-Clause */
/* perfetto_write.c - see perfetto_write.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfetto_write.h"
#include "../../util/proto.h"

#define SEQUENCE 1
#define NAME_MAX_BYTES 16384
#define TRACK_NAME_MAX 128
/* with so many strings of one kind it is time to forget them */
#define DICT_STRINGS (128u << 10)
#define DICT_BYTES (8u << 20)

/* Field numbers of perfetto_trace.proto. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_FIRST = 87,
};
enum { FLAG_CLEARED = 1, FLAG_NEEDED = 2 };
enum { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6 };
enum { DEFAULTS_CLOCK = 58 };
enum {
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_COUNTER = 30,
	EVENT_DOUBLE = 44,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48
};
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_TEXT = 14
};

/* ---- packets ---- */

/* Writes what every packet but the first has: its sequence, and that it needs what was sent
 * before. */
static char *put_sequence(char *p)
{
	return proto_u64(proto_u64(p, PACKET_SEQUENCE, SEQUENCE), PACKET_FLAGS, FLAG_NEEDED);
}

/* A packet of a few bytes. */
static void put_packet(struct perfetto_writer *w, const char *packet, size_t n)
{
	char *p = out_reserve(w->out, n + PROTO_FIELD_MAX), *begin = p;

	p = proto_bytes(p, TRACE_PACKET, packet, n);
	out_commit(w->out, (size_t)(p - begin));
}

void perfetto_write_state(struct perfetto_writer *w, bool first)
{
	char packet[64], *p = packet, *defaults;

	p = proto_u64(p, PACKET_SEQUENCE, SEQUENCE);
	p = proto_u64(p, PACKET_FLAGS, FLAG_CLEARED);
	defaults = p = proto_open(p, PACKET_DEFAULTS);
	p = proto_u64(p, DEFAULTS_CLOCK, CLOCK_ID_MONOTONIC);
	p = proto_close(defaults, p);
	if (first)
		p = proto_u64(p, PACKET_FIRST, 1);
	put_packet(w, packet, (size_t)(p - packet));
	if (first)
		return;
	for (int i = 0; i < PERFETTO_DICTS; i++)
		strings_forget(&w->dicts[i]);
	memset(w->consts, 0, sizeof(w->consts));
	w->interned.len = 0;
}

static char *put_clock(char *p, uint32_t id, uint64_t ns)
{
	char *begin = p = proto_open(p, 1);

	p = proto_u64(p, 1, id);
	p = proto_u64(p, 2, ns);
	return proto_close(begin, p);
}

void perfetto_write_clocks(struct perfetto_writer *w, uint64_t monotonic_ns, uint64_t boottime_ns,
			   uint64_t realtime_ns)
{
	char packet[512], *p = put_sequence(packet), *snapshot;

	snapshot = p = proto_open(p, PACKET_CLOCK_SNAPSHOT);
	p = put_clock(p, CLOCK_ID_MONOTONIC, monotonic_ns);
	p = put_clock(p, CLOCK_ID_BOOTTIME, boottime_ns);
	p = put_clock(p, CLOCK_ID_REALTIME, realtime_ns);
	p = proto_u64(p, 2, CLOCK_ID_MONOTONIC);
	p = proto_close(snapshot, p);
	put_packet(w, packet, (size_t)(p - packet));
}

/* A string of untrusted bytes, cut where it is long. */
static char *perfetto_write_put_text(struct perfetto_writer *w, char *p, uint32_t field,
				     const char *s)
{
	w->scratch.len = 0;
	text_utf8(&w->scratch, s, strnlen(s, TRACK_NAME_MAX));
	if (w->scratch.bad || w->scratch.len > TRACK_NAME_MAX * 3)
		return p;
	return proto_bytes(p, field, w->scratch.s, w->scratch.len);
}

void perfetto_write_track(struct perfetto_writer *w, const struct perfetto_track *t)
{
	char packet[3072], *p = put_sequence(packet), *track, *part;

	track = p = proto_open(p, PACKET_TRACK);
	p = proto_u64(p, TRACK_UUID, t->uuid);
	if (t->parent)
		p = proto_u64(p, TRACK_PARENT, t->parent);
	if (t->name)
		p = perfetto_write_put_text(w, p, TRACK_NAME, t->name);
	if (t->description)
		p = perfetto_write_put_text(w, p, TRACK_TEXT, t->description);
	if (t->process) {
		part = p = proto_open(p, TRACK_PROCESS);
		p = proto_u64(p, 1, t->pid);
		p = perfetto_write_put_text(w, p, 6, t->process);
		p = proto_close(part, p);
	}
	if (t->thread) {
		part = p = proto_open(p, TRACK_THREAD);
		p = proto_u64(p, 1, t->pid);
		p = proto_u64(p, 2, t->tid);
		if (*t->thread)
			p = perfetto_write_put_text(w, p, 5, t->thread);
		p = proto_close(part, p);
	}
	if (t->counter) {
		part = p = proto_open(p, TRACK_COUNTER);
		if (t->unit)
			p = proto_u64(p, 3, t->unit);
		if (t->unit_name && *t->unit_name)
			p = perfetto_write_put_text(w, p, 6, t->unit_name);
		p = proto_close(part, p);
	}
	p = proto_close(track, p);
	put_packet(w, packet, (size_t)(p - packet));
}

static size_t varint_len(uint64_t v)
{
	return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

void perfetto_write_event(struct perfetto_writer *w, enum perfetto_type type, uint64_t ns,
			  uint64_t uuid, uint64_t flow, bool ends, const char *body, size_t len)
{
	char head[48], event[48], *h = head, *e = event, *p, *begin;
	size_t nevent, npacket;

	h = proto_u64(h, PACKET_TIMESTAMP, ns);
	h = put_sequence(h);
	e = proto_u64(e, EVENT_TYPE, type);
	e = proto_u64(e, EVENT_TRACK, uuid);
	if (flow)
		e = proto_fixed64(e, ends ? EVENT_FLOW_END : EVENT_FLOW, flow);
	nevent = (size_t)(e - event) + len;
	npacket = (size_t)(h - head) + 1 + varint_len(nevent) + nevent;
	p = begin = out_reserve(w->out, npacket + PROTO_FIELD_MAX);
	p = proto_varint(proto_tag(p, TRACE_PACKET, PROTO_BYTES), npacket);
	memcpy(p, head, (size_t)(h - head));
	p += h - head;
	p = proto_varint(proto_tag(p, PACKET_TRACK_EVENT, PROTO_BYTES), nevent);
	memcpy(p, event, (size_t)(e - event));
	p += e - event;
	if (len)
		memcpy(p, body, len);
	out_commit(w->out, (size_t)(p + len - begin));
}

void perfetto_write_count(struct perfetto_writer *w, uint64_t ns, uint64_t uuid, int64_t value)
{
	char body[PROTO_FIELD_MAX], *p = proto_u64(body, EVENT_COUNTER, (uint64_t)value);

	perfetto_write_event(w, PERFETTO_COUNTER, ns, uuid, 0, false, body, (size_t)(p - body));
}

void perfetto_write_double(struct perfetto_writer *w, uint64_t ns, uint64_t uuid, double value)
{
	char body[PROTO_FIELD_MAX], *p = proto_double(body, EVENT_DOUBLE, value);

	perfetto_write_event(w, PERFETTO_COUNTER, ns, uuid, 0, false, body, (size_t)(p - body));
}

void perfetto_write_interned(struct perfetto_writer *w)
{
	char head[32], *h, *p, *begin;
	size_t n = w->interned.len;

	if (!n)
		return;
	h = put_sequence(head);
	h = proto_varint(proto_tag(h, PACKET_INTERNED, PROTO_BYTES), n);
	p = begin = out_reserve(w->out, sizeof(head) + PROTO_FIELD_MAX);
	p = proto_varint(proto_tag(p, TRACE_PACKET, PROTO_BYTES), (size_t)(h - head) + n);
	memcpy(p, head, (size_t)(h - head));
	out_commit(w->out, (size_t)(p + (h - head) - begin));
	out_mem(w->out, w->interned.s, n);
	w->interned.len = 0;
}

/* ---- strings ---- */

/* The number of the bytes, from 1 on; 0: no memory. */
static uint32_t perfetto_write_intern(struct perfetto_writer *w, enum perfetto_dict dict,
				      const void *s, size_t n, bool *is_new)
{
	struct strings *d = &w->dicts[dict];
	uint32_t before = d->n, number = strings_add(d, s, n);

	*is_new = d->n != before;
	return number == STRINGS_NONE ? 0 : number + 1;
}

/* A submessage of InternedData with the number and bytes, or with what is in `more`. */
static void intern_add(struct perfetto_writer *w, enum perfetto_dict dict, uint32_t iid,
		       const char *s, size_t n, bool fields)
{
	char *begin = text_room(&w->interned, n + 4 * PROTO_FIELD_MAX), *p = begin, *part;

	if (!begin) {
		w->interned.bad = false;
		return;
	}
	part = p = proto_open(p, dict);
	p = proto_u64(p, 1, iid);
	if (fields) {
		if (n)
			memcpy(p, s, n);
		p += n;
	} else {
		p = proto_bytes(p, 2, s, n);
	}
	p = proto_close(part, p);
	w->interned.len += (size_t)(p - begin);
}

uint32_t perfetto_iid(struct perfetto_writer *w, enum perfetto_dict dict, const char *s, size_t n)
{
	bool is_new;
	uint32_t iid = perfetto_write_intern(w, dict, s, n, &is_new);

	if (!iid || !is_new)
		return iid;
	w->scratch.len = 0;
	/* a NUL ends the string there */
	n = strnlen(s, n);
	if (n > NAME_MAX_BYTES)
		n = NAME_MAX_BYTES;
	text_utf8(&w->scratch, s, n);
	w->scratch.bad = false;
	intern_add(w, dict, iid, w->scratch.s, w->scratch.len, false);
	return iid;
}

uint32_t perfetto_const_iid(struct perfetto_writer *w, enum perfetto_dict dict, const char *s)
{
	uint32_t at = (uint32_t)(((uintptr_t)s * 0x9e3779b97f4a7c15) >> 40) & (PERFETTO_CONSTS - 1);
	int i = dict == PERFETTO_STRINGS;

	if (dict != PERFETTO_STRINGS && dict != PERFETTO_ARGS)
		return perfetto_iid(w, dict, s, strlen(s));
	if (w->consts[i][at].s != s) {
		w->consts[i][at].iid = perfetto_iid(w, dict, s, strlen(s));
		w->consts[i][at].s = s;
	}
	return w->consts[i][at].iid;
}

/* A message by its fields: the same fields are the same message. */
static uint32_t message_iid(struct perfetto_writer *w, enum perfetto_dict dict, const char *fields,
			    size_t n)
{
	bool is_new;
	uint32_t iid = perfetto_write_intern(w, dict, fields, n, &is_new);

	if (iid && is_new)
		intern_add(w, dict, iid, fields, n, true);
	return iid;
}

static uint32_t frame_iid(struct perfetto_writer *w, const struct stack_frame *f, bool mangled)
{
	const char *name = mangled && f->mangled ? f->mangled : f->function;
	char fields[128], *p = fields;

	if (name)
		p = proto_u64(p, 2, perfetto_iid(w, PERFETTO_FUNCTIONS, name, strlen(name)));
	if (f->object) {
		char mapping[PROTO_FIELD_MAX], *m;

		m = proto_u64(mapping, 7,
			      perfetto_iid(w, PERFETTO_OBJECTS, f->object, strlen(f->object)));
		p = proto_u64(p, 3,
			      message_iid(w, PERFETTO_MAPPINGS, mapping, (size_t)(m - mapping)));
	}
	p = proto_u64(p, 4, f->address);
	if (f->file)
		p = proto_u64(p, 5, perfetto_iid(w, PERFETTO_FILES, f->file, strlen(f->file)));
	if (f->line)
		p = proto_u64(p, 6, f->line);
	return message_iid(w, PERFETTO_FRAMES, fields, (size_t)(p - fields));
}

uint32_t perfetto_stack_iid(struct perfetto_writer *w, const struct stack *s, bool mangled)
{
	uint32_t n = s->nframes, iid;
	char *fields, *p;
	bool is_new;

	iid = perfetto_write_intern(w, PERFETTO_STACKS, &s->id, sizeof(s->id), &is_new);
	if (!iid || !is_new)
		return iid;
	p = fields = malloc((size_t)n * PROTO_FIELD_MAX + 1);
	if (!fields)
		return 0;
	/* outermost first */
	for (uint32_t i = n; i--;)
		p = proto_u64(p, 2, frame_iid(w, s->frames[i], mangled));
	intern_add(w, PERFETTO_STACKS, iid, fields, (size_t)(p - fields), true);
	free(fields);
	return iid;
}

int perfetto_write_open(struct perfetto_writer *w, struct out *out)
{
	static const uint8_t dicts[] = { PERFETTO_CATEGORIES, PERFETTO_NAMES,  PERFETTO_ARGS,
					 PERFETTO_FUNCTIONS,  PERFETTO_FRAMES, PERFETTO_STACKS,
					 PERFETTO_OBJECTS,    PERFETTO_FILES,  PERFETTO_MAPPINGS,
					 PERFETTO_STRINGS };

	w->out = out;
	for (size_t i = 0; i < ARRAY_LEN(dicts); i++) {
		if (strings_init(&w->dicts[dicts[i]], UINT32_MAX, UINT32_MAX))
			return -ENOMEM;
	}
	return 0;
}

void perfetto_write_close(struct perfetto_writer *w)
{
	for (int i = 0; i < PERFETTO_DICTS; i++)
		strings_free(&w->dicts[i]);
	text_free(&w->interned);
	text_free(&w->scratch);
}

bool perfetto_write_is_full(const struct perfetto_writer *w)
{
	for (int i = 0; i < PERFETTO_DICTS; i++)
		if (w->dicts[i].n >= DICT_STRINGS || w->dicts[i].len >= DICT_BYTES)
			return true;
	return false;
}
