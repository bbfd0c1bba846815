/* SPDX-License-Identifier: BSD-2-Clause */
/* test_collectives.c - calls of NCCL become scopes: ranks, numbers, and what is lost. */
#include <stdlib.h>
#include <string.h>

#include "../../user/event/scopes/scopes.h"
#include "unit.h"

#define COMM 0x7f0000001000

static char log_text[4096];

/* "ncclAllReduce 2/4 #1 =0; " for each that has ended; ? is what is not known. */
static int heard(void *ctx, const struct ct_hdr *h)
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	const struct ct_collective *c = scope_collective(s);
	size_t n = strlen(log_text);

	(void)ctx;
	CHECK(!record_check(h, h->size));
	CHECK(c);
	if (h->kind == CT_SCOPE_END)
		snprintf(log_text + n, sizeof(log_text) - n, "%.*s %d/%d #%d%s; ", s->text_len,
			 s->text, (int)c->rank, (int)c->ranks, (int)c->sequence,
			 s->flags & CT_SCOPE_UNFINISHED ? "!" : "");
	return 0;
}

static struct {
	struct ct_call c;
	uint64_t room[64];
} call;

/* A call at its entry or its return. `out`: what is read at the return, 8 bytes; 0: nothing. */
static const struct ct_hdr *say(uint16_t kind, const char *func, const uint64_t *words, int nwords,
				uint64_t out, uint32_t serial, uint32_t parent)
{
	int row = api_lookup(func, 0, &(bool){ false });
	uint64_t *at = call.room;
	struct ct_spec spec;

	CHECK(row >= 0);
	CHECK(!api_spec(row, API_ARCH_HERE, true, &spec));
	memset(&call, 0, sizeof(call));
	call.c.h = (struct ct_hdr){ .kind = kind, .flags = CT_F_SCOPE, .pid = 10, .tid = 11 };
	call.c.h.start_ns = call.c.h.end_ns = 5;
	call.c.func = (uint16_t)row;
	call.c.nwords = spec.nwords;
	CHECK(nwords <= spec.nwords);
	memcpy(at, words, (size_t)nwords * 8);
	at += spec.nwords;
	if (out) {
		call.c.got = 1;
		*at++ = out;
	}
	*at++ = serial | (uint64_t)parent << 32;
	call.c.h.size = (uint16_t)((char *)at - (char *)&call);
	CHECK(!record_check(&call, call.c.h.size));
	return &call.c.h;
}

static void create(struct scopes *s, uint32_t serial)
{
	/* the communicator's place, 4 ranks, and behind the id this one's rank */
	uint64_t words[] = { 0x1000, 4, 2 };

	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclCommInitRank", words, 3, 0, serial, 0)));
	CHECK(!scopes_record(s, say(CT_LAYER_END, "ncclCommInitRank", words, 3, COMM, serial, 0)));
}

static void reduce(struct scopes *s, uint32_t serial, int32_t ret)
{
	uint64_t words[] = { 1, 2, 100, 7, 0, COMM };
	struct ct_call *c;

	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclAllReduce", words, 6, 0, serial, 0)));
	c = (struct ct_call *)say(CT_LAYER_END, "ncclAllReduce", words, 6, 0, serial, 0);
	c->ret = ret;
	CHECK(!scopes_record(s, &c->h));
}

static struct scopes *begin(void)
{
	struct scopes *s = scopes_open(heard, NULL);

	CHECK(s);
	log_text[0] = '\0';
	return s;
}

static void test_numbered(void)
{
	struct scopes *s = begin();

	create(s, 1);
	reduce(s, 2, 0);
	reduce(s, 3, 4); /* it failed: NCCL has not counted it */
	reduce(s, 4, 7); /* it is under way */
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclAllReduce 2/4 #1; ncclAllReduce 2/4 #0; "
		   "ncclAllReduce 2/4 #2; ",
		   log_text);
	scopes_close(s);
}

/* A record that is lost may have been one of another communicator at this address. */
static void test_lost(void)
{
	struct scopes *s = begin();

	create(s, 1);
	reduce(s, 2, 0);
	reduce(s, 4, 0);
	reduce(s, 5, 0);
	create(s, 6);
	reduce(s, 7, 0);
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclAllReduce 2/4 #1; ncclAllReduce -1/-1 #0; "
		   "ncclAllReduce -1/-1 #0; ncclCommInitRank 2/4 #0; ncclAllReduce 2/4 #1; ",
		   log_text);
	scopes_close(s);
}

static void test_destroyed(void)
{
	uint64_t comm = COMM;
	struct scopes *s = begin();

	create(s, 1);
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclCommDestroy", &comm, 1, 0, 2, 0)));
	CHECK(!scopes_record(s, say(CT_LAYER_END, "ncclCommDestroy", &comm, 1, 0, 2, 0)));
	reduce(s, 3, 0);
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclCommDestroy 2/4 #0; ncclAllReduce -1/-1 #0; ",
		   log_text);
	scopes_close(s);
}

/* The process runs another program: its communicators are gone. */
static void test_exec(void)
{
	struct ct_exit e = { .h = { .size = sizeof(e), .kind = CT_EXIT, .pid = 10, .tid = 10 } };
	struct scopes *s = begin();

	create(s, 1);
	CHECK(!scopes_record(s, &e.h));
	reduce(s, 2, 0);
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclAllReduce -1/-1 #0; ", log_text);
	scopes_close(s);
}

/* What hangs has its number in the row that says so. */
static void test_open(void)
{
	uint64_t words[] = { 1, 2, 100, 7, 0, COMM };
	struct scopes *s = begin();

	create(s, 1);
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclAllReduce", words, 6, 0, 2, 0)));
	CHECK(!scopes_flush(s, 60));
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclAllReduce 2/4 #1!; ", log_text);
	scopes_close(s);
}

/* A record is none without what a collective has. */
static void test_checked(void)
{
	struct {
		struct ct_scope s;
		struct ct_collective c;
	} r = { .s = { .h = { .size = sizeof(r), .kind = CT_SCOPE_END },
		       .kind = CT_SCOPE_COLLECTIVE } };

	CHECK(!record_check(&r, sizeof(r)));
	CHECK(scope_collective(&r.s) == &r.c);
	r.s.layer_len = 1;
	CHECK(record_check(&r, sizeof(r)));
	r.s.layer_len = 0;
	r.s.h.size -= 8;
	CHECK(record_check(&r, sizeof(r)));
	r.s.kind = CT_SCOPE_RANGE;
	CHECK(!scope_collective(&r.s));
}

int main(void)
{
	RUN(test_numbered);
	RUN(test_lost);
	RUN(test_destroyed);
	RUN(test_exec);
	RUN(test_open);
	RUN(test_checked);
	return unit_end();
}
