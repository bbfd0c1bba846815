/* SPDX-License-Identifier: BSD-2-Clause */
/* test_collectives.c - calls of NCCL become scopes: ranks, numbers, and what is lost. */
#include <stdlib.h>
#include <string.h>

#include "../../user/event/scopes/scopes.h"
#include "unit.h"
#include "../../wire/control.h"

#define COMM 0x7f0000001000
#define HASH 0x8f31

static char log_text[4096];

/* "ncclAllReduce 2/4 #1 H; " for each that has ended; -1 is what is not known, H its hash. */
static int heard(void *ctx, const struct ct_hdr *h)
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	const struct ct_collective *c = scope_collective(s);
	size_t n = strlen(log_text);

	(void)ctx;
	CHECK(!record_check(h, h->size));
	CHECK(c);
	if (h->kind == CT_SCOPE_END)
		snprintf(log_text + n, sizeof(log_text) - n, "%.*s %d/%d #%d%s%s; ", s->text_len,
			 s->text, (int)c->rank, (int)c->ranks, (int)c->sequence,
			 s->flags & CT_SCOPE_UNFINISHED ? "!" : "", c->hash == HASH ? " H" : "");
	return 0;
}

static uint32_t pid = 10, tid = 11;
/* What the process says of its communicator when it is asked. */
static struct communicator_is answer;
static int asked, silent; /* how often it was asked, and how often it does not answer */

static bool ask(void *ctx, uint32_t who, uint64_t handle, struct communicator_is *is)
{
	(void)ctx;
	CHECK_EQ(10, who);
	CHECK_EQ(COMM, handle);
	*is = answer;
	return ++asked > silent;
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
	call.c.h = (struct ct_hdr){ .kind = kind, .flags = CT_F_SCOPE, .pid = pid, .tid = tid };
	call.c.h.start_ns = call.c.h.end_ns = 5;
	call.c.func = (uint16_t)row;
	call.c.nwords = spec.nwords;
	CHECK(nwords <= spec.nwords);
	if (nwords)
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

static communicator_fn with;

static struct scopes *begin(void)
{
	struct scopes *s = scopes_open(heard, with, NULL);

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

static struct scopes *begin_asking(uint64_t hash, uint32_t rank, uint32_t ranks)
{
	struct scopes *s;

	answer = (struct communicator_is){ hash, rank, ranks };
	asked = silent = 0;
	with = ask;
	s = begin();
	with = NULL;
	return s;
}

/* A communicator from before the trace is read from the process, once; it has no numbers if the process
 * does not count. */
static void test_from_before(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	for (uint32_t i = 1; i <= 3; i++)
		reduce(s, i, 0);
	CHECK_TEXT("ncclAllReduce 3/8 #0 H; ncclAllReduce 3/8 #0 H; ncclAllReduce 3/8 #0 H; ",
		   log_text);
	CHECK_EQ(2, asked);
	scopes_close(s);
}

/* ---- numbers of a communicator from before the trace ---- */

static uint64_t clock_at; /* of the calls; each takes 10 ns */

static const char *numbers(void)
{
	static char text[256];
	size_t n = 0;

	text[0] = '\0';
	for (const char *at = log_text; (at = strchr(at, '#')) && n < sizeof(text) - 32; at++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d ", atoi(at + 1));
	log_text[0] = '\0';
	return text;
}

/* The process has begun so many collectives, as is read between two times. */
static void counts(uint64_t begun, uint64_t from_ns, uint64_t until_ns)
{
	answer.counted = true;
	answer.begun = begun;
	answer.from_ns = from_ns;
	answer.until_ns = until_ns;
}

static void call_at(struct scopes *s, const char *func, uint32_t serial, bool returns, int32_t ret)
{
	bool all = !strcmp(func, "ncclAlltoAll"), group = !strncmp(func, "ncclGroup", 9);
	uint64_t reduce[] = { 1, 2, 100, 7, 0, COMM }, to_all[] = { 1, 2, 100, 7, COMM, 0 };
	struct ct_call *c = (struct ct_call *)say(returns ? CT_LAYER_END : CT_LAYER_BEGIN, func,
						  all ? to_all : reduce, group ? 0 : 6, 0, serial,
						  0);

	c->h.start_ns = clock_at;
	c->h.end_ns = clock_at + (returns ? 10 : 0);
	c->ret = ret;
	CHECK(!scopes_record(s, &c->h));
}

/* A whole call at a time; ret: what it returns. */
static void whole_at(struct scopes *s, const char *func, uint32_t serial, uint64_t ns, int32_t ret)
{
	clock_at = ns;
	call_at(s, func, serial, false, 0);
	call_at(s, func, serial, true, ret);
}

/* Two readings agree with the calls between them: from then on calls have numbers. */
static void test_numbers_from_before(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	counts(41, 120, 130);
	whole_at(s, "ncclAllReduce", 1, 100, 0); /* the reading after it says 41 */
	counts(42, 220, 230);
	whole_at(s, "ncclAllReduce", 2, 200, 0);
	whole_at(s, "ncclAllReduce", 3, 300, 0);
	whole_at(s, "ncclAlltoAll", 4, 400, 0);	 /* NCCL makes it of sends, and does not count it */
	whole_at(s, "ncclAllReduce", 5, 500, 4); /* it failed */
	whole_at(s, "ncclAllReduce", 6, 600, 0);
	CHECK_TEXT("0 0 43 0 0 44 ", numbers());
	CHECK_EQ(3, asked);
	scopes_close(s);
}

/* A reading while a call was under way says nothing, and the next one is taken. */
static void test_numbers_disturbed(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	counts(41, 120, 130);
	whole_at(s, "ncclAllReduce", 1, 100, 0);
	counts(42, 220, 230);
	whole_at(s, "ncclAllReduce", 2, 125, 0); /* under way at the reading */
	counts(43, 260, 270);
	whole_at(s, "ncclAllReduce", 3, 240, 0); /* 42 is supposed */
	whole_at(s, "ncclAllReduce", 4, 300, 0);
	CHECK_TEXT("0 0 0 44 ", numbers());
	scopes_close(s);
}

/* Records come late: one reading counts all calls that ended before it. */
static void test_numbers_late(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	counts(50, 1000, 1010);
	for (uint32_t i = 1; i <= 5; i++)
		whole_at(s, "ncclAllReduce", i, 100 * i, 0);
	CHECK_EQ(2, asked); /* once for the rank */
	counts(51, 2000, 2010);
	whole_at(s, "ncclAllReduce", 6, 1100, 0);
	whole_at(s, "ncclAllReduce", 7, 2100, 0);
	CHECK_TEXT("0 0 0 0 0 0 52 ", numbers());
	scopes_close(s);
}

/* What is in a group is counted when the group ends. A trace that comes in the midst of one has a reading
 * without the group's calls, which the next one does not confirm. */
static void test_numbers_in_groups(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);
	uint32_t serial = 1;

	counts(10, 120, 130);
	whole_at(s, "ncclAllReduce", serial++, 100, 0); /* in a group that was not seen to begin */
	whole_at(s, "ncclGroupEnd", serial++, 140, 0);
	for (uint64_t at = 200; at <= 500; at += 100) {
		counts(10 + at / 100, at + 40, at + 50);
		whole_at(s, "ncclGroupStart", serial++, at, 0);
		whole_at(s, "ncclAllReduce", serial++, at + 10, 0);
		whole_at(s, "ncclGroupEnd", serial++, at + 20, 0);
	}
	CHECK_TEXT("0 0 0 0 0 0 0 0 0 14 0 0 15 0 ", numbers());
	scopes_close(s);
}

/* Where calls return before they are done, nothing tells what a reading counts. */
static void test_numbers_not_blocking(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	for (uint32_t i = 1; i <= 5; i++) {
		counts(i, 100 * i + 20, 100 * i + 30);
		whole_at(s, "ncclAllReduce", i, 100 * i, 7);
	}
	CHECK_TEXT("0 0 0 0 0 ", numbers());
	scopes_close(s);
}

/* The count of the process does not go with the calls. */
static void test_numbers_of_nonsense(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	for (uint32_t i = 1; i <= 20; i++) {
		counts(i * i * 7, 100 * i + 20, 100 * i + 30);
		whole_at(s, "ncclAllReduce", i, 100 * i, 0);
	}
	CHECK_TEXT("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ", numbers());
	scopes_close(s);
}

/* What a split made: the call does not say the rank. */
static void test_split(void)
{
	uint64_t words[] = { 0x7f0000000001, 0, 0, 0x1000, 0 };
	struct scopes *s = begin_asking(HASH, 1, 2);

	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclCommSplit", words, 5, 0, 1, 0)));
	CHECK(!scopes_record(s, say(CT_LAYER_END, "ncclCommSplit", words, 5, COMM, 1, 0)));
	reduce(s, 2, 0);
	CHECK_TEXT("ncclCommSplit 1/2 #0 H; ncclAllReduce 1/2 #1 H; ", log_text);
	CHECK_EQ(1, asked);
	scopes_close(s);
}

/* It is being made, or the debug information is being read: it is asked again, but ever more
 * seldom. */
static void test_no_answer(void)
{
	struct scopes *s = begin_asking(HASH, 3, 8);

	silent = 2;
	for (uint32_t i = 1; i <= 3; i++)
		reduce(s, i, 0);
	CHECK_TEXT("ncclAllReduce -1/-1 #0; ncclAllReduce -1/-1 #0; ncclAllReduce 3/8 #0 H; ",
		   log_text);
	silent = 1000;
	for (uint32_t i = 5; i <= 104; i++) /* 4 was lost: all is forgotten */
		reduce(s, i, 0);
	CHECK_EQ(3 + 1 + 8, asked); /* one of them how many collectives there were */
	scopes_close(s);
}

/* Memory that says other than the calls is not believed. */
static void test_contradiction(void)
{
	struct scopes *s = begin_asking(HASH, 3, 4);

	create(s, 1);
	reduce(s, 2, 0);
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclAllReduce 2/4 #1; ", log_text);
	scopes_close(s);
	s = begin_asking(HASH, 2, 4);
	create(s, 1);
	reduce(s, 2, 0);
	CHECK_TEXT("ncclCommInitRank 2/4 #0 H; ncclAllReduce 2/4 #1 H; ", log_text);
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

static int ignored(void *ctx, const struct ct_hdr *h)
{
	(void)ctx;
	return h->pid == 10 ? heard(ctx, h) : 0;
}

/* ---- groups ---- */

static void bracket(struct scopes *s, const char *func, uint32_t serial, int32_t ret)
{
	struct ct_call *c;

	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, func, NULL, 0, 0, serial, 0)));
	c = (struct ct_call *)say(CT_LAYER_END, func, NULL, 0, 0, serial, 0);
	c->ret = ret;
	CHECK(!scopes_record(s, &c->h));
}

static void peer(struct scopes *s, const char *func, uint64_t count, uint32_t serial)
{
	uint64_t words[] = { 1, count, 0, 3, COMM, 0 };

	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, func, words, 6, 0, serial, 0)));
	CHECK(!scopes_record(s, say(CT_LAYER_END, func, words, 6, 0, serial, 0)));
}

/* "2 ncclSend, ncclRecv 9B how4 2/4; " for each end of a group. */
static int group_heard(void *ctx, const struct ct_hdr *h)
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	const struct ct_collective *c = scope_collective(s);
	size_t n = strlen(log_text);

	(void)ctx;
	CHECK(!record_check(h, h->size));
	if (h->kind == CT_SCOPE_BEGIN && !strncmp(s->text, "ncclGroupEnd", s->text_len))
		snprintf(log_text + n, sizeof(log_text) - n, "%d %.*s %lluB how%d %d/%d; ",
			 c->members, s->fields_len, s->text + s->text_len + s->layer_len,
			 (unsigned long long)c->bytes, c->how, (int)c->rank, (int)c->ranks);
	return 0;
}

static struct scopes *begin_groups(void)
{
	struct scopes *s = scopes_open(group_heard, NULL, NULL);

	CHECK(s);
	log_text[0] = '\0';
	create(s, 1);
	return s;
}

/* What a group's end launches: all calls since the outermost start. */
static void test_group(void)
{
	struct scopes *s = begin_groups();
	uint32_t at = 1;

	bracket(s, "ncclGroupStart", ++at, 0);
	peer(s, "ncclRecv", 9, ++at);
	bracket(s, "ncclGroupStart", ++at, 0);
	peer(s, "ncclSend", 3, ++at);
	bracket(s, "ncclGroupEnd", ++at, 0); /* launches nothing */
	peer(s, "ncclSend", 4, ++at);
	bracket(s, "ncclGroupEnd", ++at, 0);
	CHECK_TEXT("0  0B how0 -1/-1; 3 ncclSend, ncclRecv 9B how4 2/4; ", log_text);
	/* the next one begins anew, and what is outside of one is in none */
	log_text[0] = '\0';
	reduce(s, ++at, 0);
	bracket(s, "ncclGroupStart", ++at, 0);
	reduce(s, ++at, 0);
	reduce(s, ++at, 0);
	bracket(s, "ncclGroupEnd", ++at, 0);
	CHECK_TEXT("2 ncclAllReduce 800B how1 2/4; ", log_text);
	scopes_close(s);
}

/* Calls of several sorts have no bandwidth in common; those of unknown bytes have no sum. */
static void test_group_of_sorts(void)
{
	uint64_t words[] = { 1, 2, 100, 77, 0, COMM }; /* a type that is not known */
	struct scopes *s = begin_groups();
	uint32_t at = 1;

	bracket(s, "ncclGroupStart", ++at, 0);
	reduce(s, ++at, 0);
	peer(s, "ncclSend", 1, ++at);
	bracket(s, "ncclGroupEnd", ++at, 0);
	bracket(s, "ncclGroupStart", ++at, 0);
	reduce(s, ++at, 0);
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclAllReduce", words, 6, 0, ++at, 0)));
	CHECK(!scopes_record(s, say(CT_LAYER_END, "ncclAllReduce", words, 6, 0, at, 0)));
	bracket(s, "ncclGroupEnd", ++at, 0);
	CHECK_TEXT("2 ncclAllReduce, ncclSend 401B how0 2/4; 2 ncclAllReduce 0B how1 2/4; ",
		   log_text);
	scopes_close(s);
}

/* A start that failed began no group; after a lost record it is not known what is in it; nor is it
 * if the start was before the trace. */
static void test_group_unknown(void)
{
	struct scopes *s = begin_groups();
	uint32_t at = 1;

	bracket(s, "ncclGroupStart", ++at, 5);
	reduce(s, ++at, 0);
	bracket(s, "ncclGroupEnd", ++at, 0);
	bracket(s, "ncclGroupStart", ++at, 0);
	reduce(s, ++at, 0);
	at++;
	reduce(s, ++at, 0);
	bracket(s, "ncclGroupEnd", ++at, 0);
	CHECK_TEXT("0  0B how0 -1/-1; 0  0B how0 -1/-1; ", log_text);
	/* nothing is left of a group that never ends */
	bracket(s, "ncclGroupStart", ++at, 0);
	scopes_close(s);
}

/* Another process makes communicators without end, in ever new threads, and leaves out numbers of
 * scopes: this one's are known all the same. */
static void test_beside_many(void)
{
	uint64_t words[] = { 0x1000, 4, 2 };
	struct scopes *s = scopes_open(ignored, NULL, NULL);

	log_text[0] = '\0';
	pid = 20;
	for (uint32_t i = 0; i < 1000000; i++) {
		tid = 100 + i / 3;
		CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "ncclCommInitRank", words, 3, 0,
					    i % 3 + 1, 0)));
		CHECK(!scopes_record(s, say(CT_LAYER_END, "ncclCommInitRank", words, 3,
					    COMM + 64 * (i + 1), i % 3 + 1, 0)));
	}
	pid = 10;
	tid = 11;
	create(s, 1);
	reduce(s, 2, 0);
	CHECK_TEXT("ncclCommInitRank 2/4 #0; ncclAllReduce 2/4 #1; ", log_text);
	scopes_close(s);
}

int main(void)
{
	RUN(test_numbered);
	RUN(test_lost);
	RUN(test_destroyed);
	RUN(test_exec);
	RUN(test_from_before);
	RUN(test_numbers_from_before);
	RUN(test_numbers_disturbed);
	RUN(test_numbers_late);
	RUN(test_numbers_in_groups);
	RUN(test_numbers_not_blocking);
	RUN(test_numbers_of_nonsense);
	RUN(test_split);
	RUN(test_no_answer);
	RUN(test_contradiction);
	RUN(test_open);
	RUN(test_checked);
	RUN(test_group);
	RUN(test_group_of_sorts);
	RUN(test_group_unknown);
	RUN(test_beside_many);
	return unit_end();
}
