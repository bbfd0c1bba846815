/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nvtx.c - tables of header-only NVTX 3 are found in a process (this one), and the object that
 * is put into processes fills their slots and puts them back. The tables here are made by hand, so
 * that each state can be tried; tests/cases/nvtx3.sh has NVIDIA's headers.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../target/nvtx/nvtx_payload.h"
#include "../../wire/nvtx_wire.h"
#include "../../user/source/nvtx/nvtx_find.h"
#include "unit.h"

typedef void (*slot_fn)(void);

struct table {
	struct nvtx_globals g;
	slot_fn slots[NVTX_SLOTS];
	slot_fn *list[NVTX_TABLES];
};
#define CORE_AT(n) (NVTX_SLOT_CORE + (n)-1)
#define CORE_2_AT(n) (NVTX_SLOT_CORE_2 + (n)-1)

static int get_good(uint32_t module, slot_fn ***slots, unsigned int *n);
static void set_version(uint32_t version)
{
	(void)version;
}
static void init_stub(void)
{
}

#define TABLE(how, version_is)                                 \
	{                                                      \
		.g = { .callbacks_size = 16,                   \
		       .get_table = (uint64_t)(how),           \
		       .version_size = 24,                     \
		       .version = (version_is),                \
		       .set_version = (uint64_t)set_version }, \
	}
static struct table good = TABLE(get_good, 3), bad = TABLE(get_good, 3), old = TABLE(get_good, 2);
static struct table no_code = TABLE(&good, 3);

static slot_fn outside; /* where a slot that is no slot of the table would be written */

static int get_good(uint32_t module, slot_fn ***slots, unsigned int *n)
{
	if (module != 1 && module != 5)
		return 0;
	*slots = &good.list[module == 5 ? NVTX_TABLE_CORE_2 : NVTX_TABLE_CORE];
	*n = NVTX_IDS;
	return 1;
}

static void make_lists(struct table *t)
{
	for (int i = 1; i < NVTX_IDS; i++) {
		t->list[NVTX_TABLE_CORE + i] = &t->slots[CORE_AT(i)];
		t->list[NVTX_TABLE_CORE_2 + i] = &t->slots[CORE_2_AT(i)];
	}
}

/* The last one says that one of its slots is elsewhere. */
static void make_all_lists(void)
{
	make_lists(&good);
	make_lists(&old);
	make_lists(&no_code);
	make_lists(&bad);
	bad.list[NVTX_TABLE_CORE_2 + 3] = &outside;
}

int cudatrace_nvtx_start(const char *how);
int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));
int nvtxRangePushA(const char *message);
void *nvtxDomainCreateA(const char *name);
uint64_t nvtxRangeStartA(const char *message);

#define PUSH_A good.slots[CORE_AT(9)]
#define RESOURCE good.slots[CORE_2_AT(6)]

/* ---- finding ---- */

static bool has(const struct nvtx_find *f, const struct table *t)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->at[i] == (uint64_t)(uintptr_t)t)
			return true;
	return false;
}

static void test_find(void)
{
	struct nvtx_find f = { 0 };
	struct target *t;

	if (!CHECK_EQ(0, target_open(&t, getpid(), 0)))
		return;
	CHECK_EQ(1, nvtx_find_new(&f, t));
	CHECK(has(&f, &good));
	CHECK(has(&f, &bad)); /* it looks well from outside */
	CHECK(!has(&f, &old));
	CHECK(!has(&f, &no_code));
	CHECK(!f.cut);
	/* what was searched is not searched again */
	if (nvtx_find_new(&f, t) > 0)
		CHECK(!has(&f, &good));
	nvtx_find_free(&f);
	target_close(t);
}

/* ---- the object ---- */

/* Starts it; returns our end of its socket. */
static int begin(void)
{
	char how[32];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	snprintf(how, sizeof(how), "fd=%d", ends[1]);
	CHECK_EQ(0, cudatrace_nvtx_start(how));
	CHECK_EQ(-1, fcntl(ends[1], F_GETFD)); /* it has its end in a table of its own */
	return ends[0];
}

static struct nvtx_reported ask(int sock, const void *table, bool fresh)
{
	struct nvtx_ask a = { .n = 1, .fresh = fresh, .at = { (uint64_t)(uintptr_t)table } };
	struct nvtx_reported reported = { 0 };

	CHECK_EQ(sizeof(a), send(sock, &a, sizeof(a), MSG_NOSIGNAL));
	CHECK_EQ(sizeof(reported), recv(sock, &reported, sizeof(reported), 0));
	return reported;
}

/* Lets it go, and waits until it has put back. */
static void end(int sock)
{
	struct pollfd p = { .fd = sock };

	shutdown(sock, SHUT_WR);
	poll(&p, 1, 10000);
	CHECK(p.revents & POLLHUP);
	close(sock);
}

static void fill(slot_fn with, uint32_t state)
{
	for (int i = 0; i < NVTX_SLOTS; i++)
		good.slots[i] = with;
	good.g.state = state;
}

static void test_take_and_put_back(void)
{
	int sock;

	fill(NULL, NVTX_COMPLETE);
	sock = begin();
	CHECK_EQ(1, ask(sock, &good, true).taken);
	CHECK(PUSH_A == (slot_fn)nvtxRangePushA);
	CHECK(RESOURCE);
	end(sock);
	CHECK(!PUSH_A && !RESOURCE);
}

/* Where NVTX is not initialised its slots lead to what would do it, and do so again afterwards. */
static void test_fresh(void)
{
	int sock;

	fill(init_stub, NVTX_FRESH);
	sock = begin();
	ask(sock, &good, false); /* its environment names another tool */
	CHECK(PUSH_A == init_stub);
	CHECK_EQ(1, ask(sock, &good, true).taken);
	CHECK(PUSH_A == (slot_fn)nvtxRangePushA);
	end(sock);
	CHECK(PUSH_A == init_stub && RESOURCE == init_stub);

	/* initialised meanwhile: what would initialise it must not come back */
	sock = begin();
	ask(sock, &good, true);
	good.g.state = NVTX_COMPLETE;
	end(sock);
	CHECK(!PUSH_A && !RESOURCE);
}

/* Initialised meanwhile by a call that led to none of our functions: all slots are empty, and are
 * taken again. */
static void test_emptied(void)
{
	int sock;

	fill(init_stub, NVTX_FRESH);
	sock = begin();
	ask(sock, &good, true);
	fill(NULL, NVTX_COMPLETE);
	for (int i = 0; i < 1000 && !__atomic_load_n(&PUSH_A, __ATOMIC_ACQUIRE); i++)
		usleep(10000);
	CHECK(PUSH_A == (slot_fn)nvtxRangePushA);
	end(sock);
	CHECK(!PUSH_A);
}

/* Another tool's slots are left alone; and so is what it has put in the place of ours. */
static void test_other_tool(void)
{
	slot_fn other = (slot_fn)(uintptr_t)strlen; /* code of another object */
	struct nvtx_reported reported;
	int sock;

	fill(other, NVTX_COMPLETE);
	sock = begin();
	reported = ask(sock, &good, true);
	CHECK_EQ(1, reported.others);
	CHECK_EQ(0, reported.taken);
	CHECK(PUSH_A == other);
	fill(NULL, NVTX_COMPLETE);
	CHECK_EQ(1, ask(sock, &good, true).taken);
	PUSH_A = other;
	end(sock);
	CHECK(PUSH_A == other && !RESOURCE);
}

/* Two tracers: the second that leaves puts back. */
static void test_two(void)
{
	int first, second;

	fill(NULL, NVTX_COMPLETE);
	first = begin();
	ask(first, &good, true);
	second = begin();
	CHECK_EQ(1, ask(second, &good, true).taken);
	end(first);
	CHECK(PUSH_A == (slot_fn)nvtxRangePushA);
	end(second);
	CHECK(!PUSH_A);
}

/* What the program itself may not write is not written, not even to put back: memory that is mapped in the table's
 * place must stay as it is. The kernel stores a slot as the program would. */
static void test_read_only(void)
{
	static union {
		struct table t;
		char page[4096];
	} own __attribute__((aligned(4096)));
	slot_fn *push = &own.t.slots[CORE_AT(9)];
	int sock;

	own.t = good;
	make_lists(&own.t);
	memset(own.t.slots, 0, sizeof(own.t.slots));
	own.t.g.state = NVTX_COMPLETE;
	sock = begin();
	CHECK_EQ(1, ask(sock, &own, true).taken);
	CHECK(*push == (slot_fn)nvtxRangePushA);
	CHECK_EQ(0, mprotect(&own, sizeof(own), PROT_READ));
	end(sock);
	CHECK_EQ(0, mprotect(&own, sizeof(own), PROT_READ | PROT_WRITE));
	CHECK(*push == (slot_fn)nvtxRangePushA);
}

static void test_refused(void)
{
	static char heap[2 * NVTX_GLOBALS_BYTES];
	struct nvtx_ask wrong = { .n = NVTX_ASK_MAX + 1 };
	struct pollfd p;
	int sock = begin();

	CHECK_EQ(1, ask(sock, &old, true).refused);
	CHECK_EQ(1, ask(sock, &no_code, true).refused);
	CHECK_EQ(1, ask(sock, heap, true).refused);
	CHECK_EQ(1, ask(sock, (void *)8, true).refused);
	CHECK_EQ(1, ask(sock, (void *)(uintptr_t)-8, true).refused);
	CHECK_EQ(1, ask(sock, (char *)&good + 1, true).refused);
	CHECK_EQ(1, ask(sock, (void *)(uintptr_t)strlen, true).refused); /* not writable */
	CHECK_EQ(0, ask(sock, &bad, true).refused);
	CHECK(!outside && !bad.slots[CORE_AT(9)]);
	/* a message that is none: it leaves */
	send(sock, &wrong, sizeof(wrong), MSG_NOSIGNAL);
	p = (struct pollfd){ .fd = sock };
	poll(&p, 1, 10000);
	CHECK(p.revents & POLLHUP);
	close(sock);
	CHECK(cudatrace_nvtx_start("") != 0);
}

/* What NVTX calls in a program that was started. */
static const void *export_table(uint32_t id)
{
	return id == 1 ? &good.g.callbacks_size : NULL;
}
static const void *no_table(uint32_t id)
{
	(void)id;
	return NULL;
}

static void test_started(void)
{
	fill(init_stub, NVTX_STARTED);
	CHECK_EQ(0, InitializeInjectionNvtx2(NULL));
	CHECK_EQ(0, InitializeInjectionNvtx2(no_table));
	CHECK(PUSH_A == init_stub);
	CHECK_EQ(1, InitializeInjectionNvtx2(export_table));
	CHECK(PUSH_A == (slot_fn)nvtxRangePushA);
	CHECK_EQ(-2, nvtxRangePushA("x"));
	CHECK(nvtxDomainCreateA("a") && nvtxDomainCreateA("a") != nvtxDomainCreateA("a"));
	CHECK(nvtxRangeStartA("a") && nvtxRangeStartA("a") != nvtxRangeStartA("a"));
}

/* ---- payloads ---- */

/* which members are given: type, entries, their number; an id */
#define GIVEN (1u << 2 | 1u << 4 | 1u << 5)
#define GIVEN_ID (1u << 8)

static const char *text_of(const void *domain, uint64_t schema, const void *at, size_t bytes)
{
	static char text[NVTX_PAYLOAD_TEXT];
	struct nvtx_payload p = { schema, bytes, at };
	size_t n = nvtx_payload_text(domain, &p, 1, text);

	CHECK_EQ(strlen(text), n);
	return text;
}

static void test_payload(void)
{
	const struct nvtx_schema_entry entries[] = {
		{ .type = 11, .name = "i8" },
		{ .type = 16, .name = "u32" },
		{ .type = 20, .name = "d" },
		{ .type = 75, .name = "s" },
		{ .type = 23, .name = "p" },
		{ .type = 17, .name = "a name that is longer than what is kept" },
	};
	struct nvtx_schema s = { .fields = GIVEN, .type = 1, .entries = entries, .nentries = 6 };
	struct {
		int8_t i8;
		uint32_t u32;
		double d;
		const char *s;
		void *p;
		int64_t i64;
	} data = { -5, 4000000000u, 0.5, "a\nb", (void *)0x10, INT64_MIN };
	uint64_t id = nvtx_schema_register(&s, &s), other;

	CHECK(id >> 32);
	CHECK_TEXT("i8=-5, u32=4000000000, d=0.5, s=a?b, p=0x10, a name that is longer "
		   "t=-9223372036854775808",
		   text_of(&s, id, &data, sizeof(data)));
	/* of another domain, or of no schema */
	CHECK_TEXT("", text_of(NULL, id, &data, sizeof(data)));
	CHECK_TEXT("", text_of(&s, id + 1000, &data, sizeof(data)));
	/* what lies beyond the payload is not read */
	CHECK_TEXT("i8=-5", text_of(&s, id, &data, 7));
	CHECK_TEXT("", text_of(&s, id, &data, 0));
	CHECK_TEXT("", text_of(&s, id, (void *)8, sizeof(data)));
	data.s = (char *)8;
	CHECK_TEXT("i8=-5, u32=4000000000, d=0.5, s=?", text_of(&s, id, &data, 24));
	/* with a number of the program's own */
	s.fields |= GIVEN_ID;
	s.id = 1 << 24;
	other = nvtx_schema_register(&s, &s);
	CHECK_EQ(1 << 24, other);
	CHECK_TEXT("i8=-5", text_of(&s, other, &data, 7));
}

/* Nothing of what the program says crashes it, and what is not understood is left out. */
static void test_hostile_payload(void)
{
	struct nvtx_schema_entry e[20] = {
		{ .type = 18, .name = "far", .offset = UINT64_MAX - 3 },
	};
	struct nvtx_schema s = { .fields = GIVEN, .type = 1, .entries = e, .nentries = 1 };
	uint64_t data[64] = { 1, 2, 3 };
	static char text[NVTX_PAYLOAD_TEXT];
	struct nvtx_payload p[6] = { { 0 } };

	CHECK_EQ(0, nvtx_schema_register(NULL, NULL));
	CHECK_EQ(0, nvtx_schema_register(NULL, (void *)8));
	CHECK_TEXT("", text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	e[0] = (struct nvtx_schema_entry){ .type = 18, .name = (char *)8 };
	CHECK_TEXT("", text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	s.nentries = SIZE_MAX;
	s.entries = (void *)8;
	CHECK_TEXT("", text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	s.entries = e;
	s.type = 3; /* a union */
	s.nentries = 1;
	CHECK_TEXT("", text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	s.type = 1;
	/* an array, behind which the places are not known; one that says its own */
	e[0] = (struct nvtx_schema_entry){ .type = 18, .name = "first" };
	e[1] = (struct nvtx_schema_entry){
		.flags = 1 << 4, .type = 1, .name = "array", .offset = 8
	};
	e[2] = (struct nvtx_schema_entry){ .type = 18, .name = "third", .offset = 16 };
	s.nentries = 3;
	CHECK_TEXT("first=1, third=3",
		   text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	/* an array of more than is read, or of nothing; one behind the end of the payload */
	e[1].detail = UINT64_MAX;
	e[1].offset = 8;
	CHECK_TEXT("first=1, third=3",
		   text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	e[1].detail = 513;
	CHECK_TEXT("first=1, third=3",
		   text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	e[1] = (struct nvtx_schema_entry){
		.flags = 1 << 4, .type = 18, .name = "array", .detail = 60, .offset = 8
	};
	CHECK_TEXT("first=1, third=3", text_of(NULL, nvtx_schema_register(NULL, &s), data, 24));
	CHECK_TEXT("first=1, array=[2 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		   "...], third=3",
		   text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	/* a schema within one that has no size, and one that lies far away */
	e[3] = (struct nvtx_schema_entry){ .type = 18, .name = "in" };
	s.entries = e + 3;
	s.nentries = 1;
	e[4] = (struct nvtx_schema_entry){ .type = nvtx_schema_register(NULL, &s),
					   .name = "nested",
					   .offset = 8 };
	s.entries = e + 4;
	CHECK_TEXT("", text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	s.fields |= 1 << 6;
	s.bytes = 8;
	s.entries = e + 3;
	e[4].type = nvtx_schema_register(NULL, &s);
	s.entries = e + 4;
	CHECK_TEXT("nested.in=2",
		   text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	e[4].offset = UINT64_MAX - 7;
	CHECK_TEXT("", text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data)));
	s.entries = e;
	/* more members and text than fit */
	for (int i = 0; i < 20; i++)
		e[i] = (struct nvtx_schema_entry){ .type = 18, .name = "abcdefghijklmnop" };
	s.nentries = 20;
	text_of(NULL, nvtx_schema_register(NULL, &s), data, sizeof(data));
	for (int i = 0; i < 6; i++)
		p[i] = (struct nvtx_payload){ nvtx_schema_register(NULL, &s), sizeof(data), data };
	CHECK(nvtx_payload_text(NULL, p, UINT32_MAX, text) < sizeof(text));
	CHECK_TEXT("...", text + strlen(text) - 3);
	CHECK_EQ(0, nvtx_payload_text(NULL, (void *)8, 1, text));
	/* more than are kept: they have ids all the same */
	for (int i = 0; i < 300; i++)
		CHECK(nvtx_schema_register(NULL, &s));
}

/* A registration with very many members or constants that cannot be shown holds the program up only shortly: those behind
 * the first 256 are not looked at. */
static void test_endless_payload(void)
{
	static struct nvtx_enum_entry constants[300];
	static struct nvtx_schema_entry members[300];
	struct nvtx_enum e = { .fields = 1 << 2 | 1 << 3 | 1 << 4,
			       .entries = constants,
			       .nentries = SIZE_MAX,
			       .bytes = 4 };
	struct nvtx_schema_entry of[] = { { .type = 5, .name = "a" } };
	struct nvtx_schema s = { .fields = GIVEN, .type = 1, .entries = of, .nentries = 1 };
	int32_t data[2] = { 7, 8 };

	constants[255] = (struct nvtx_enum_entry){ "seven", 7, 0 };
	constants[256] = (struct nvtx_enum_entry){ "eight", 8, 0 };
	of[0].type = nvtx_enum_register(&e, &e);
	CHECK_TEXT("a=seven", text_of(&e, nvtx_schema_register(&e, &s), data, sizeof(data)));
	CHECK_TEXT("a=8", text_of(&e, nvtx_schema_register(&e, &s), data + 1, sizeof(data[0])));
	for (int i = 0; i < 300; i++)
		members[i] =
			(struct nvtx_schema_entry){ .type = 5, .name = (char *)8, .offset = 4 };
	members[255] = (struct nvtx_schema_entry){ .type = 5, .name = "kept", .offset = 4 };
	members[256] = (struct nvtx_schema_entry){ .type = 5, .name = "left out", .offset = 4 };
	s.entries = members;
	s.nentries = SIZE_MAX;
	CHECK_TEXT("kept=8", text_of(&e, nvtx_schema_register(&e, &s), data, sizeof(data)));
}

/* Names of an enumeration's values; it is told apart by domain, and what is wrong with it names nothing. */
static void test_enumerations(void)
{
	const struct nvtx_enum_entry named[] = { { "one", 1, 0 },
						 { "minus", UINT64_MAX, 0 },
						 { (char *)8, 2, 0 } };
	struct nvtx_enum e = {
		.fields = 1 << 2 | 1 << 3 | 1 << 4, .entries = named, .nentries = 3, .bytes = 4
	};
	struct nvtx_schema_entry of[] = { { .type = nvtx_enum_register(&e, &e), .name = "a" },
					  { .name = "b", .offset = 4 } };
	struct nvtx_schema s = { .fields = GIVEN, .type = 1, .entries = of, .nentries = 2 };
	int32_t data[2] = { 1, -1 };

	of[1].type = of[0].type;
	CHECK_TEXT("a=one, b=minus", text_of(&e, nvtx_schema_register(&e, &s), data, sizeof(data)));
	data[0] = 2; /* its name cannot be read */
	CHECK_TEXT("a=2, b=minus", text_of(&e, nvtx_schema_register(&e, &s), data, sizeof(data)));
	CHECK_TEXT("", text_of(&s, nvtx_schema_register(&s, &s), data, sizeof(data)));
	CHECK_EQ(0, nvtx_enum_register(&e, (void *)8));
	e.bytes = 9;
	of[0].type = nvtx_enum_register(&e, &e);
	CHECK(of[0].type);
	CHECK_TEXT("", text_of(&e, nvtx_schema_register(&e, &s), data, sizeof(data)));
	e.bytes = 4;
	e.nentries = SIZE_MAX;
	for (int i = 0; i < 100; i++)
		CHECK(nvtx_enum_register(&e, &e));
}

int main(void)
{
	make_all_lists();
	RUN(test_endless_payload);
	RUN(test_payload);
	RUN(test_enumerations);
	RUN(test_hostile_payload);
	RUN(test_find);
	RUN(test_take_and_put_back);
	RUN(test_fresh);
	RUN(test_emptied);
	RUN(test_other_tool);
	RUN(test_two);
	RUN(test_read_only);
	RUN(test_refused);
	RUN(test_started);
	return unit_end();
}
