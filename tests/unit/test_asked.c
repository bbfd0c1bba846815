/* SPDX-License-Identifier: BSD-2-Clause */
/* test_asked.c - what ranks asked NCCL for: values that differ, groups, communicators from before, hostile
 * records. The cases nccl_asked_* have the rest. */
#include "../../user/stuck/asked.h"
#include "unit.h"

#define SECOND 1000000000ULL

static struct asked *asked;
static uint64_t now;

struct scope_record {
	struct ct_scope s;
	char text[24];
	struct ct_collective c;
};

static void give(struct scope_record *r, uint32_t pid, const char *name, uint8_t kind)
{
	struct process proc = { .pid = pid, .shown_pid = pid, .comm = "job" };
	struct event ev = { .rec = &r->s.h, .proc = &proc };

	r->s.h = (struct ct_hdr){ .size = sizeof(*r),
				  .kind = CT_SCOPE_END,
				  .pid = pid,
				  .tid = pid,
				  .start_ns = now,
				  .end_ns = now + 10 };
	r->s.id = 1;
	r->s.kind = kind;
	r->s.text_len = (uint16_t)strlen(name);
	memcpy(r->text, name, strlen(name));
	CHECK(!record_check(r, sizeof(*r)));
	CHECK(!asked_event(asked, &ev));
	now += 1000;
}

static struct scope_record of(uint32_t rank, uint64_t hash)
{
	return (struct scope_record){ .c = { .comm = 0x1000,
					     .hash = hash,
					     .rank = rank,
					     .ranks = 3,
					     .datatype = 7,
					     .op = CT_UNKNOWN,
					     .root = CT_UNKNOWN,
					     .peer = CT_UNKNOWN } };
}

static void makes(uint32_t rank)
{
	struct scope_record r = of(rank, 0xabc);

	give(&r, 100 + rank, "ncclCommInitRank", CT_SCOPE_COMMUNICATOR);
}

static void reduces(uint32_t rank, uint64_t sequence, uint64_t count)
{
	struct scope_record r = of(rank, 0xabc);

	r.c.flags = CT_COLLECTIVE_COUNT;
	r.c.how = CT_COLLECTIVE_WHOLE;
	r.c.op = 0;
	r.c.sequence = sequence;
	r.c.count = count;
	give(&r, 100 + rank, "ncclAllReduce", CT_SCOPE_COLLECTIVE);
}

static void peer(uint32_t rank, const char *name, uint32_t other, uint64_t count)
{
	struct scope_record r = of(rank, 0xabc);

	r.c.flags = CT_COLLECTIVE_COUNT;
	r.c.how = CT_COLLECTIVE_PEER;
	r.c.peer = other;
	r.c.count = count;
	give(&r, 100 + rank, name, CT_SCOPE_COLLECTIVE);
}

/* What is printed when nothing has begun for `still_ns`. */
static const char *said(uint64_t still_ns)
{
	static char text[65536];
	FILE *f = tmpfile();
	struct out o = { 0 };
	size_t n;

	CHECK(f && !out_open_fd(&o, fileno(f), "a file"));
	CHECK(asked_print(asked, now + still_ns, SECOND, false, &o) >= 0);
	CHECK(!out_flush(&o));
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	out_close(&o);
	fclose(f);
	return text;
}

static void begin(void)
{
	asked_close(asked);
	asked = asked_open();
	CHECK(asked != NULL);
	now = SECOND;
}

static void test_waits(void)
{
	begin();
	for (uint32_t rank = 0; rank < 3; rank++)
		makes(rank);
	for (uint64_t i = 1; i <= 100000; i++)
		for (uint32_t rank = 0; rank < 3; rank++)
			if (i < 100000 || rank != 1)
				reduces(rank, i, 64);
	CHECK_TEXT("", said(SECOND / 2)); /* it may still come */
	CHECK_TEXT("communicator 0xabc of 3 ranks:\n"
		   "  ncclAllReduce #100000 (count=64 float32 sum): ranks 0,2 wait in it, rank 1 "
		   "(job, PID 101) has not come to it\n",
		   said(2 * SECOND));
	reduces(1, 100000, 64);
	CHECK_TEXT("", said(2 * SECOND));
	/* the first of those that differ is kept */
	for (uint64_t i = 100001; i < 100100; i++)
		for (uint32_t rank = 0; rank < 3; rank++)
			reduces(rank, i, i >= 100040 && rank == 2 ? 65 : 64);
	CHECK_TEXT("communicator 0xabc of 3 ranks:\n"
		   "  collective #100040: the ranks do not ask for the same\n"
		   "    ranks 0-1: ncclAllReduce count=64 float32 sum\n"
		   "    rank 2 (job, PID 102): ncclAllReduce count=65 float32 sum\n",
		   said(0));
}

static void test_peers(void)
{
	begin();
	for (uint32_t rank = 0; rank < 3; rank++)
		makes(rank);
	for (int i = 0; i < 5000; i++) {
		peer(0, "ncclSend", 1, 8);
		peer(1, "ncclRecv", 0, 8);
	}
	CHECK_TEXT("", said(2 * SECOND));
	peer(1, "ncclRecv", 0, 4);
	peer(0, "ncclRecv", 1, 4);
	CHECK_TEXT("communicator 0xabc of 3 ranks:\n"
		   "  rank 0 waits in receive #1 from rank 1 (count=4 float32): rank 1 has begun "
		   "no send that matches it\n"
		   "  rank 1 waits in receive #5001 from rank 0 (count=4 float32): rank 0 has "
		   "begun no send that matches it\n"
		   "  a hang, a circle of receives: rank 0 waits in ncclRecv #1 for rank 1, rank 1 "
		   "waits in ncclRecv #5001 for rank 0\n",
		   said(2 * SECOND));
}

/* The numbers of sends of a communicator from before the trace are not known. */
static void test_before(void)
{
	struct asked_seen seen;
	struct scope_record r = of(0, 0);

	begin();
	peer(0, "ncclSend", 1, 8);
	peer(1, "ncclRecv", 0, 4);
	peer(1, "ncclRecv", 0, 4);
	CHECK_TEXT("", said(2 * SECOND));
	r.c.flags = CT_COLLECTIVE_COUNT;
	give(&r, 100, "ncclAllReduce", CT_SCOPE_COLLECTIVE);
	asked_seen(asked, &seen);
	CHECK_EQ(1, seen.communicators);
	CHECK_EQ(1, seen.nameless);
}

static uint64_t seed = 7;
static uint32_t any(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

/* Whatever the records say, it ends, in bounded time and memory. */
static void test_hostile(void)
{
	static const char *const names[] = { "ncclSend",  "ncclRecv",	  "ncclAllReduce",
					     "ncclBcast", "ncclGroupEnd", "\x1b[31m\n" };

	begin();
	for (int i = 0; i < 300000; i++) {
		struct scope_record r = of(any(3000), any(4) ? any(8) : any(1u << 30));

		r.c.comm = any(5);
		r.c.stream = any(200);
		r.c.ranks = any(50) ? 3000 : any(1u << 30);
		r.c.peer = any(10) ? any(3000) : CT_UNKNOWN;
		r.c.how = (uint8_t)any(5);
		r.c.sequence = any(3) ? any(1000) : UINT64_MAX - any(3);
		r.c.count = (uint64_t)any(3) << 62;
		r.c.datatype = any(300);
		r.c.op = any(300);
		r.c.members = any(20) ? 0 : (uint16_t)any(65536);
		r.c.flags = (uint8_t)(any(256) & ~CT_COLLECTIVE_RETURNED);
		give(&r, any(50), names[any(ARRAY_LEN(names))],
		     any(10) ? CT_SCOPE_COLLECTIVE : CT_SCOPE_COMMUNICATOR);
	}
	CHECK(!strchr(said(2 * SECOND), '\x1b'));
}

int main(void)
{
	RUN(test_waits);
	RUN(test_peers);
	RUN(test_before);
	RUN(test_hostile);
	asked_close(asked);
	return unit_end();
}
