/* SPDX-License-Identifier: BSD-2-Clause */
/* test_scopes.c - the scopes stage: ids, parents, what is lost, and what is open in rotated files. */
#include <string.h>

#include "../../user/event/scopes/scopes.h"
#include "../../user/trace/defs.h"
#include "unit.h"
#include "../../wire/control.h"

static char log_text[8192];

/* "+1 outer<0", "-1 outer", with the flags of an end behind it. */
static int heard(void *ctx, const struct ct_hdr *h)
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	size_t n = strlen(log_text);

	(void)ctx;
	CHECK(!record_check(h, h->size));
	if (h->kind == CT_SCOPE_BEGIN)
		snprintf(log_text + n, sizeof(log_text) - n, "+%u %.*s<%d ", s->id, s->text_len,
			 s->text, (int)s->parent);
	else
		snprintf(log_text + n, sizeof(log_text) - n, "-%u%s%.*s ", s->id,
			 s->flags & CT_SCOPE_UNFINISHED ? "!" : "", s->fields_len,
			 s->text + s->text_len + s->domain_len + s->category_len + s->layer_len);
	return 0;
}

static struct {
	struct ct_call c;
	uint64_t room[64];
} call;

static uint32_t pid = 10, tid = 11;

/* A call of a function with one text, at time ns. */
static const struct ct_hdr *say(uint16_t kind, const char *func, const char *text, uint32_t serial,
				uint32_t parent, uint64_t ns)
{
	uint64_t *at = call.room;
	int row = api_lookup(func, 0, &(bool){ false });

	CHECK(row >= 0);
	memset(&call, 0, sizeof(call));
	call.c.h = (struct ct_hdr){ .kind = kind, .flags = CT_F_SCOPE, .pid = pid, .tid = tid };
	call.c.h.start_ns = call.c.h.end_ns = ns;
	call.c.func = (uint16_t)row;
	call.c.nwords = api_funcs[row].nargs;
	at += call.c.nwords;
	if (text) {
		call.c.got = 1;
		*at++ = strlen(text) + 1;
		memcpy(at, text, strlen(text));
		at += strlen(text) / 8 + 1;
	}
	*at++ = serial | (uint64_t)parent << 32;
	call.c.h.size = (uint16_t)((char *)at - (char *)&call);
	CHECK(!record_check(&call, call.c.h.size));
	return &call.c.h;
}

/* The attributes of an event with a payload that has a schema, or without one. */
static const struct ct_hdr *say_attributes(uint32_t payload_type, uint32_t serial, uint64_t ns)
{
	int row = api_lookup("nvtxRangePushEx", 0, &(bool){ false });
	uint32_t attributes[12] = { 3 | 48 << 16, 0, 0, 0, payload_type, 1 };
	uint64_t *at = call.room;
	struct ct_spec spec;

	CHECK(row >= 0);
	memset(&call, 0, sizeof(call));
	call.c.h = (struct ct_hdr){ .kind = CT_LAYER_BEGIN,
				    .flags = CT_F_SCOPE,
				    .pid = 10,
				    .tid = 11,
				    .start_ns = ns,
				    .end_ns = ns };
	call.c.func = (uint16_t)row;
	CHECK(!api_spec(row, API_ARCH_HERE, true, &spec));
	call.c.nwords = spec.nwords;
	at += call.c.nwords;
	call.c.got = 1;
	memcpy(at, attributes, sizeof(attributes));
	at += sizeof(attributes) / 8;
	*at++ = serial;
	call.c.h.size = (uint16_t)((char *)at - (char *)&call);
	CHECK(!record_check(&call, call.c.h.size));
	return &call.c.h;
}

static void push(struct scopes *s, const char *text, uint32_t serial, uint32_t parent, uint64_t ns)
{
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxRangePushA", text, serial, parent, ns)));
}

static void pop(struct scopes *s, uint32_t serial, uint32_t parent, uint64_t ns)
{
	CHECK(!scopes_record(s, say(CT_LAYER_END, "nvtxRangePop", NULL, serial, parent, ns)));
}

static struct scopes *begin(void)
{
	struct scopes *s = scopes_open(heard, NULL, NULL);

	CHECK(s);
	log_text[0] = '\0';
	return s;
}

static void test_nested(void)
{
	struct scopes *s = begin();

	push(s, "outer", 1, 0, 10);
	push(s, "inner", 2, 1, 20);
	pop(s, 2, 1, 30);
	pop(s, 1, 0, 40);
	push(s, "next", 3, 0, 50);
	CHECK_TEXT("+1 outer<0 +2 inner<1 -2 -1 +3 next<0 ", log_text);
	CHECK(!scopes_flush(s, 60));
	CHECK_TEXT("+1 outer<0 +2 inner<1 -2 -1 +3 next<0 -3! ", log_text);
	scopes_close(s);
}

/* The records of a begin, of an end: what is around them is right all the same. */
static void test_lost(void)
{
	struct scopes *s = begin();

	push(s, "outer", 1, 0, 10);
	/* 2 begins, and its record is lost */
	push(s, "child", 3, 2, 30);
	pop(s, 3, 2, 40);
	pop(s, 2, 1, 50);
	push(s, "second", 4, 1, 60);
	/* its end is lost: the next one begins beside it */
	push(s, "third", 5, 1, 80);
	pop(s, 5, 1, 90);
	pop(s, 1, 0, 95);
	CHECK_TEXT("+1 outer<0 +2 child<-1 -2 +3 second<1 -3! +4 third<1 -4 -1 ", log_text);
	scopes_close(s);
}

/* The thread's number is used again by another one, which begins to count anew. */
static void test_reused(void)
{
	struct scopes *s = begin();

	push(s, "old", 1, 0, 10);
	push(s, "older", 2, 1, 20);
	push(s, "new", 1, 0, 30);
	CHECK_TEXT("+1 old<0 +2 older<1 -2! -1! +3 new<0 ", log_text);
	scopes_close(s);
}

static void test_too_deep(void)
{
	struct scopes *s = begin();

	push(s, "inside", 65, CT_SCOPE_UNKNOWN, 10);
	CHECK_TEXT("+1 inside<-1 ", log_text);
	scopes_close(s);
}

static void test_exit(void)
{
	struct ct_exit e = { .h = { .size = sizeof(e), .kind = CT_EXIT, .pid = 10, .tid = 10 } };
	struct scopes *s = begin();

	push(s, "open", 1, 0, 10);
	e.h.start_ns = e.h.end_ns = 20;
	CHECK(!scopes_record(s, &e.h));
	push(s, "again", 1, 0, 30);
	CHECK_TEXT("+1 open<0 -1! +2 again<0 ", log_text);
	scopes_close(s);
}

static void test_mark(void)
{
	struct scopes *s = begin();

	push(s, "outer", 1, 0, 10);
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxMarkA", "here", 0, 1, 20)));
	CHECK_TEXT("+1 outer<0 +2 here<1 -2 ", log_text);
	scopes_close(s);
}

/* A record that says more than it has is none. */
static void test_checked(void)
{
	struct ct_scope bad = { .h = { .size = sizeof(bad), .kind = CT_SCOPE_END },
				.kind = CT_SCOPE_RANGE };
	struct ct_hdr *h = (struct ct_hdr *)say(CT_LAYER_BEGIN, "nvtxRangePushA", "a", 1, 0, 1);

	CHECK(!record_check(&bad, sizeof(bad)));
	bad.text_len = 1;
	CHECK(record_check(&bad, sizeof(bad)));
	bad.text_len = 0;
	bad.kind = CT_SCOPE_KIND_END;
	CHECK(record_check(&bad, sizeof(bad)));
	h->flags = 0;
	CHECK(record_check(h, h->size));
}

static int kept(void *ctx, const struct ct_hdr *h)
{
	CHECK(h->kind == CT_SCOPE_BEGIN);
	*(uint32_t *)ctx = *(uint32_t *)ctx * 10 + ((const struct ct_scope *)h)->id;
	return 0;
}

/* What a payload with a schema says comes before its event, and is that event's alone. */
static void test_payload(void)
{
	struct scopes *s = begin();
	const uint32_t extended = 0xdfbd0009, integer = 1;

	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxPayloadText", "a=1", 0, 0, 5)));
	CHECK(!scopes_record(s, say_attributes(extended, 1, 6)));
	pop(s, 1, 0, 7);
	CHECK(!scopes_record(s, say_attributes(extended, 2, 8)));
	pop(s, 2, 0, 9);
	/* its event was lost: the next one has another payload */
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxPayloadText", "b=2", 0, 0, 10)));
	CHECK(!scopes_record(s, say_attributes(integer, 4, 11)));
	pop(s, 4, 0, 12);
	CHECK(!scopes_record(s, say_attributes(extended, 5, 13)));
	pop(s, 5, 0, 14);
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxPayloadText", "c=3", 0, 0, 15)));
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxPayloadText", "d=4", 0, 0, 15)));
	CHECK(!scopes_record(s, say_attributes(extended, 6, 16)));
	CHECK(!scopes_flush(s, 20));
	CHECK_TEXT("+1 <0 -1a=1 +2 <0 -2 +3 <0 -3 +4 <0 -4 +5 <0 -5!d=4 ", log_text);
	scopes_close(s);
}

/* A file that is begun later repeats those that are open, and no others. */
static void test_repeated(void)
{
	struct ct_scope r = { .h = { .size = sizeof(r), .kind = CT_SCOPE_BEGIN, .pid = 10 },
			      .kind = CT_SCOPE_RANGE };
	struct defs *d = defs_open();
	uint32_t ids = 0;

	for (r.id = 1; r.id <= 3; r.id++)
		CHECK(!defs_record(d, &r.h));
	r.h.kind = CT_SCOPE_END;
	for (r.id = 1; r.id <= 3; r.id += 2)
		CHECK(!defs_record(d, &r.h));
	CHECK(!defs_write(d, kept, &ids));
	CHECK_EQ(ids, 2);
	defs_close(d);
}

/* ---- a process that does all it can: another one loses nothing ---- */

#define HONEST 20

/* Counts what begins; shows that of the honest process. */
static int heard_of(void *ctx, const struct ct_hdr *h)
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	size_t n = strlen(log_text);

	*(uint64_t *)ctx += h->kind == CT_SCOPE_BEGIN;
	if (h->pid == HONEST && h->kind == CT_SCOPE_BEGIN)
		snprintf(log_text + n, sizeof(log_text) - n, "%.*s.%.*s ", s->domain_len,
			 s->text + s->text_len, s->text_len, s->text);
	return 0;
}

static struct scopes *begin_beside(uint64_t *begun)
{
	struct scopes *s = scopes_open(heard_of, NULL, begun);

	CHECK(s);
	*begun = 0;
	log_text[0] = '\0';
	pid = 10;
	tid = 11;
	return s;
}

static void end_beside(struct scopes *s)
{
	pid = 10;
	tid = 11;
	scopes_close(s);
}

static void leaves(struct scopes *s, uint32_t who)
{
	struct ct_exit e = { .h = { .size = sizeof(e), .kind = CT_EXIT, .pid = who, .tid = who } };

	CHECK(!scopes_record(s, &e.h));
}

static void makes_domain(struct scopes *s, const char *name, uint64_t handle)
{
	struct ct_call *c = (struct ct_call *)say(CT_LAYER_END, "nvtxDomainCreateA", name, 0, 0, 1);

	c->ret = (int64_t)handle;
	CHECK(!scopes_record(s, &c->h));
}

static void starts(struct scopes *s, const char *name, uint64_t id)
{
	struct ct_call *c = (struct ct_call *)say(CT_LAYER_END, "nvtxRangeStartA", name, 0, 0, 1);

	c->ret = (int64_t)id;
	CHECK(!scopes_record(s, &c->h));
}

static void test_many_domains(void)
{
	uint64_t begun, words;
	struct scopes *s = begin_beside(&begun);
	struct ct_call *c;

	for (uint64_t i = 1; i <= 1000000; i++)
		makes_domain(s, "mine", i * 64);
	CHECK(scopes_dropped(s) > 900000);
	pid = HONEST;
	makes_domain(s, "theirs", 64);
	c = (struct ct_call *)say(CT_LAYER_BEGIN, "nvtxDomainRangePushEx", NULL, 1, 0, 2);
	words = 64;
	memcpy(c + 1, &words, sizeof(words));
	CHECK(!scopes_record(s, &c->h));
	CHECK_TEXT("theirs. ", log_text);
	end_beside(s);
}

/* Names of any length, in as many threads as one likes: what is kept of them is bounded. */
static void test_many_open(void)
{
	char name[125];
	uint64_t begun, kept;
	struct scopes *s = begin_beside(&begun);

	memset(name, 'x', sizeof(name));
	for (tid = 100; tid < 5100; tid++)
		for (uint32_t i = 1; i <= 20; i++) {
			name[i * 6] = '\0';
			push(s, name, i, i - 1, 1);
			name[i * 6] = 'x';
		}
	kept = begun;
	CHECK(kept > 10000 && kept < 64000); /* 4 MiB of them */
	for (uint64_t i = 1; i <= 100000; i++)
		starts(s, "range", i);
	CHECK(begun - kept < 100);
	CHECK_EQ(scopes_dropped(s), 200000 - begun);
	pid = HONEST;
	push(s, "range", 1, 0, 2);
	starts(s, "other", 1);
	CHECK_TEXT(".range .other ", log_text);
	/* its share is free again when it has ended */
	leaves(s, 10);
	pid = 10;
	tid = 11;
	kept = begun;
	push(s, "new", 1, 0, 3);
	CHECK_EQ(begun, kept + 1);
	end_beside(s);
}

static void test_many_ranges(void)
{
	uint64_t begun;
	struct scopes *s = begin_beside(&begun);

	for (uint64_t i = 1; i <= 100000; i++)
		starts(s, "", i);
	CHECK_EQ(begun, 4096);
	pid = HONEST;
	starts(s, "mine", 1);
	CHECK_TEXT(".mine ", log_text);
	end_beside(s);
}

/* Short processes, more than are kept: those that come later are followed too. */
static void test_many_processes(void)
{
	uint64_t begun;
	struct scopes *s = begin_beside(&begun);

	for (pid = 1000; pid < 301000; pid++) {
		push(s, "short", 1, 0, 1);
		leaves(s, pid);
	}
	CHECK_EQ(begun, 300000);
	CHECK_EQ(scopes_dropped(s), 0);
	pid = HONEST;
	push(s, "here", 1, 0, 2);
	CHECK_TEXT(".here ", log_text);
	end_beside(s);
}

static void says_payload(struct scopes *s)
{
	CHECK(!scopes_record(s, say(CT_LAYER_BEGIN, "nvtxPayloadText", "a=1", 0, 0, 1)));
}

/* Payloads whose events never come: they have a share as all else, and go when their process does. */
static void test_many_payloads(void)
{
	uint64_t begun;
	struct scopes *s = begin_beside(&begun);

	for (pid = 1000; pid < 601000; pid++) {
		says_payload(s);
		leaves(s, pid);
	}
	CHECK_EQ(scopes_dropped(s), 0);
	for (pid = 1000, tid = 100; tid < 100100; tid++)
		says_payload(s);
	CHECK(scopes_dropped(s) > 60000 && scopes_dropped(s) < 70000);
	pid = HONEST;
	push(s, "here", 1, 0, 2);
	CHECK_TEXT(".here ", log_text);
	/* many processes that each take their share leave room for more threads */
	for (pid = 1001; pid < 1032; pid++)
		for (tid = 100; tid < 32100; tid++)
			says_payload(s);
	log_text[0] = '\0';
	for (pid = HONEST, tid = 12; tid < 22; tid++)
		says_payload(s);
	leaves(s, 1001);
	for (tid = 12; tid < 15; tid++)
		push(s, "again", 1, 0, 2);
	CHECK_TEXT(".again .again .again ", log_text);
	end_beside(s);
}

int main(void)
{
	RUN(test_nested);
	RUN(test_lost);
	RUN(test_reused);
	RUN(test_too_deep);
	RUN(test_exit);
	RUN(test_mark);
	RUN(test_checked);
	RUN(test_payload);
	RUN(test_repeated);
	RUN(test_many_domains);
	RUN(test_many_open);
	RUN(test_many_ranges);
	RUN(test_many_processes);
	RUN(test_many_payloads);
	return unit_end();
}
