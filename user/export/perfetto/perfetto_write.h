/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perfetto_write.h - inside the perfetto sink: packets of a Perfetto trace, and the strings in
 * them, each of which is sent once. Field numbers are those of perfetto_trace.proto. Knows no
 * event and no kind.
 */
#ifndef CT_PERFETTO_WRITE_H
#define CT_PERFETTO_WRITE_H

#include "../../util/io/out.h"
#include "../../util/strings.h"
#include "../../flow/sink.h"
#include "../../util/text.h"

/* Kinds of strings that are sent once, by their field number in InternedData. */
enum perfetto_dict {
	PERFETTO_CATEGORIES = 1,
	PERFETTO_NAMES = 2,
	PERFETTO_ARGS = 3,
	PERFETTO_FUNCTIONS = 5,
	PERFETTO_FRAMES = 6,
	PERFETTO_STACKS = 7,
	PERFETTO_OBJECTS = 17, /* paths of mappings */
	PERFETTO_FILES = 18,   /* of source */
	PERFETTO_MAPPINGS = 19,
	PERFETTO_STRINGS = 29, /* values of arguments */
	PERFETTO_DICTS
};

#define PERFETTO_CONSTS 2048	 /* a power of two */
#define PERFETTO_EVENT_MAX 16384 /* bytes of an event's body at most */

struct perfetto_writer {
	struct out *out;
	struct strings dicts[PERFETTO_DICTS];
	struct text interned; /* InternedData that has not been written yet */
	struct text scratch;
	struct {
		const char *s;
		uint32_t iid;
		/* strings that live as long as the program: names and values of arguments */
	} consts[2][PERFETTO_CONSTS];
};

enum perfetto_type {
	PERFETTO_BEGIN = 1,
	PERFETTO_END = 2,
	PERFETTO_INSTANT = 3,
	PERFETTO_COUNTER = 4
};
enum perfetto_unit { PERFETTO_UNIT_NONE = 0, PERFETTO_UNIT_COUNT = 2, PERFETTO_UNIT_BYTES = 3 };

struct perfetto_track {
	uint64_t uuid, parent; /* parent 0: none */
	/* NULL: none; untrusted bytes, as the next ones */
	const char *name;
	const char *process, *thread, *unit_name; /* NULL: it is none */
	const char *description;
	uint32_t pid, tid;
	bool counter;
	uint8_t unit; /* enum perfetto_unit */
};

/* 0 or -ENOMEM; close is safe then */
int perfetto_write_open(struct perfetto_writer *, struct out *);
void perfetto_write_close(struct perfetto_writer *);
/* Writes the first packet, after which nothing that was sent before is valid. Also used in the
 * middle of a trace, when too much is remembered. */
void perfetto_write_state(struct perfetto_writer *, bool first);
void perfetto_write_clocks(struct perfetto_writer *, uint64_t monotonic_ns, uint64_t boottime_ns,
			   uint64_t realtime_ns);
void perfetto_write_track(struct perfetto_writer *, const struct perfetto_track *);
/* body: fields of a TrackEvent; flow: 0 for none, with `ends` it ends here. */
void perfetto_write_event(struct perfetto_writer *, enum perfetto_type, uint64_t ns, uint64_t uuid,
			  uint64_t flow, bool ends, const char *body, size_t len);
void perfetto_write_count(struct perfetto_writer *, uint64_t ns, uint64_t uuid, int64_t value);
void perfetto_write_double(struct perfetto_writer *, uint64_t ns, uint64_t uuid, double value);
/* Writes what was interned and not written yet. Call it before writing any event whose body
 * refers to it. */
void perfetto_write_interned(struct perfetto_writer *);
/* True if so much is remembered that perfetto_write_state() should be called. After that call,
 * no body that was made before it may be written. */
bool perfetto_write_is_full(const struct perfetto_writer *);

/* The number of a string of untrusted bytes; 0: no memory. */
uint32_t perfetto_iid(struct perfetto_writer *, enum perfetto_dict, const char *s, size_t n);
/* The same for a string that lives as long as the program. */
uint32_t perfetto_const_iid(struct perfetto_writer *, enum perfetto_dict, const char *s);
uint32_t perfetto_stack_iid(struct perfetto_writer *, const struct stack *, bool mangled);

/* debug_annotations of an event's body, at p; what finds no room before `end` is left out.
 * Return the new end. */
char *perfetto_arg_u64(struct perfetto_writer *, char *p, const char *name, uint64_t v);
char *perfetto_arg_bool(struct perfetto_writer *, char *p, const char *name, bool v);
char *perfetto_arg_str(struct perfetto_writer *, char *p, const char *name, const char *s,
		       size_t n);
/* The functions of a stack, the innermost first; "..." stands for those that find no room. */
char *perfetto_arg_stack(struct perfetto_writer *, char *p, const char *end, const struct stack *,
			 bool mangled);
char *perfetto_args(struct perfetto_writer *, char *p, const char *end, const struct field *,
		    int n);

#endif
