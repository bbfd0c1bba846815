/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nvtx.c - tables of header-only NVTX 3 are found in a process (this one), and the object that
 * is put into processes fills their slots and puts them back. The tables here are made by hand, so
 * that each state can be tried; tests/cases/nvtx3.sh has NVIDIA's headers.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../hooks/nvtx_wire.h"
#include "../../user/source/nvtx/nvtx_find.h"
#include "unit.h"

#define SLOTS 16

typedef void (*slot_fn)(void);

struct table {
	struct nvtx_globals g;
	slot_fn slots[2][SLOTS];
	slot_fn *list[2][SLOTS];
	char rest[NVTX_GLOBALS_BYTES];
};

static int get_good(uint32_t module, slot_fn ***slots, unsigned int *n);
static int get_bad(uint32_t module, slot_fn ***slots, unsigned int *n);
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
static struct table good = TABLE(get_good, 3), bad = TABLE(get_bad, 3), old = TABLE(get_good, 2);
static struct table no_code = TABLE(&good, 3);

static slot_fn outside; /* where a slot that is no slot of the table would be written */

static int get_good(uint32_t module, slot_fn ***slots, unsigned int *n)
{
	int m = module == 5;

	if (module != 1 && module != 5)
		return 0;
	for (int i = 1; i < SLOTS; i++)
		good.list[m][i] = &good.slots[m][i];
	*slots = good.list[m];
	*n = SLOTS;
	return 1;
}

/* Says that its slots are elsewhere. */
static int get_bad(uint32_t module, slot_fn ***slots, unsigned int *n)
{
	(void)module;
	for (int i = 1; i < SLOTS; i++)
		bad.list[0][i] = &outside;
	*slots = bad.list[0];
	*n = SLOTS;
	return 1;
}

int cudatrace_nvtx_start(const char *how);
int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));
int nvtxRangePushA(const char *message);
void *nvtxDomainCreateA(const char *name);
uint64_t nvtxRangeStartA(const char *message);

#define PUSH_A good.slots[0][9]
#define RESOURCE good.slots[1][6]

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
	return ends[0];
}

static struct nvtx_told ask(int sock, const void *table, bool fresh)
{
	struct nvtx_ask a = { .n = 1, .fresh = fresh, .at = { (uint64_t)(uintptr_t)table } };
	struct nvtx_told told = { 0 };

	CHECK_EQ(sizeof(a), send(sock, &a, sizeof(a), MSG_NOSIGNAL));
	CHECK_EQ(sizeof(told), recv(sock, &told, sizeof(told), 0));
	return told;
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
	for (int i = 1; i < SLOTS; i++)
		good.slots[0][i] = good.slots[1][i] = with;
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
	struct nvtx_told told;
	int sock;

	fill(other, NVTX_COMPLETE);
	sock = begin();
	told = ask(sock, &good, true);
	CHECK_EQ(1, told.others);
	CHECK_EQ(0, told.taken);
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
	ask(sock, &bad, true);
	CHECK(!outside);
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

int main(void)
{
	RUN(test_find);
	RUN(test_take_and_put_back);
	RUN(test_fresh);
	RUN(test_emptied);
	RUN(test_other_tool);
	RUN(test_two);
	RUN(test_refused);
	RUN(test_started);
	return unit_end();
}
