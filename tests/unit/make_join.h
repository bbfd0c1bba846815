/* SPDX-License-Identifier: BSD-2-Clause */
/* make_join.h - join with records that are made here, and what it hands on. */
#ifndef CT_MAKE_JOIN_H
#define CT_MAKE_JOIN_H

#include "../../user/event/holes/holes.h"
#include "../../user/event/join/join.h"
#include "make_call.h"
#include "make_device.h"
#include "api_row.h"
#include "unit.h"

#define MS 1000000ULL
#define US 1000ULL

/* ---- what join hands on ---- */

struct seen {
	uint16_t kind, func;
	uint32_t tid, number, device, context, stream, stack, correlation, scope;
	uint64_t start_ns, call_ns, cause_end_ns;
	bool cause, inferred;
};

struct taker {
	struct seen *seen;
	size_t n, cap;
	char *stored; /* the records, one after the other */
	size_t len, room;
	int error; /* that take() returns */
};

static inline int take(void *ctx, struct event *ev)
{
	struct taker *t = ctx;
	const struct ct_hdr *h = ev->rec;
	struct seen s = { .kind = h->kind,
			  .tid = h->tid,
			  .number = ev->number,
			  .device = ev->device,
			  .context = ev->context,
			  .stream = ev->stream,
			  .start_ns = h->start_ns };

	if (record_check(h, h->size))
		CHECK(!"join hands on a record that is malformed");
	if (h->kind == CT_KERNEL || h->kind == CT_COPY || h->kind == CT_SET ||
	    h->kind == CT_GRAPH) {
		const struct ct_work *w = (const struct ct_work *)h;

		s.func = w->func;
		s.call_ns = w->call_ns;
		s.stack = w->stack;
		s.scope = w->scope;
		s.correlation = w->correlation;
		s.inferred = h->flags & CT_F_INFERRED;
		s.cause = ev->cause;
		if (ev->cause) {
			s.cause_end_ns = ev->cause->end_ns;
			if (ev->cause->start_ns != w->call_ns || ev->cause->tid != h->tid ||
			    ev->cause->func != w->func)
				CHECK(!"the record and the cause differ");
		}
	} else if (h->kind == CT_CALL) {
		s.func = ((const struct ct_call *)h)->func;
	}
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 256;
		t->seen = realloc(t->seen, t->cap * sizeof(*t->seen));
	}
	t->seen[t->n++] = s;
	if (t->len + h->size > t->room) {
		t->room = (t->len + h->size) * 2;
		t->stored = realloc(t->stored, t->room);
	}
	memcpy(t->stored + t->len, h, h->size);
	t->len += h->size;
	return t->error;
}

static inline void taker_free(struct taker *t)
{
	free(t->seen);
	free(t->stored);
	memset(t, 0, sizeof(*t));
}

static inline struct join *begin(struct taker *t, bool no_calls)
{
	struct join_opts opts = { .no_calls = no_calls, .places = true };

	memset(t, 0, sizeof(*t));
	return join_open(&opts, take, t);
}

static inline const struct seen *last(const struct taker *t)
{
	static const struct seen none;

	return t->n ? &t->seen[t->n - 1] : &none;
}

static inline int give(struct join *j, const void *rec)
{
	const struct ct_hdr *h = rec;

	CHECK(!record_check(h, h->size));
	return join_record(j, h);
}

/* ---- the records ---- */

static inline struct ct_call *call_of(struct made_call *m, const char *name, uint32_t pid,
				      uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct ct_call *c = make_call(m, name, CT_CALL, 0, 0, U(0), U(0), U(0), U(0), U(0), U(0),
				      U(0), U(0), U(0), U(0), U(0));

	c->h.pid = pid;
	c->h.tid = tid;
	c->h.start_ns = start_ns;
	c->h.end_ns = end_ns;
	return c;
}

static inline int give_call(struct join *j, const char *name, uint32_t pid, uint32_t tid,
			    uint64_t start_ns, uint64_t end_ns)
{
	struct made_call m;

	return give(j, call_of(&m, name, pid, tid, start_ns, end_ns));
}

static inline int give_cause(struct join *j, uint32_t pid, uint32_t tid, uint32_t correlation,
			     uint64_t start_ns, uint64_t end_ns)
{
	struct made_device m;

	return give(j, make_cause(&m, pid, tid, correlation, row("cudaLaunchKernel"), start_ns,
				  end_ns));
}

static inline int give_kernel(struct join *j, uint32_t pid, uint32_t correlation, uint64_t start_ns,
			      uint64_t end_ns)
{
	struct made_device m;

	return give(j,
		    make_kernel(&m, MAKE_AT(pid, 0, 1, 7, correlation, start_ns, end_ns), 1, 1, 1));
}

static inline int give_process(struct join *j, int kind, uint32_t pid, uint64_t boottime_ns)
{
	struct ct_process p = {
		.h = { .size = sizeof(p), .kind = (uint16_t)kind, .pid = pid, .tid = pid },
		.start_boottime_ns = boottime_ns
	};
	int err = join_process(j, &p.h);

	return err ? err : give(j, &p);
}

static inline struct join_counts counts_of(const struct join *j)
{
	struct join_counts c;

	join_counts(j, &c);
	return c;
}

#endif
