/* SPDX-License-Identifier: BSD-2-Clause */
/* test_registry.c - what is kept for each process: whose it is, when it ends, how much there is; and things
 * of many owners in one table. */
#include "../../user/event/registry.h"
#include "../../user/util/table/owned.h"
#include "unit.h"

#define SECOND 1000000000ULL

struct mine {
	struct registered r;
	uint64_t calls;
	char *text;
};

/* What the callbacks were told. */
struct told {
	uint32_t execs, exits, made_room;
	uint64_t calls; /* of those that were forgotten */
};

static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct told *t = ctx;
	struct mine *m = item;

	CHECK(h->kind == CT_EXEC || h->kind == CT_PROCESS);
	t->execs++;
	m->calls = 0;
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct told *t = ctx;
	struct mine *m = item;

	t->exits += h != NULL;
	t->made_room += h == NULL;
	t->calls += m->calls;
	free(m->text);
}

static void record(struct registry *r, uint16_t kind, uint32_t pid, uint64_t start, uint64_t at_ns)
{
	struct ct_process p = { .h = { .size = sizeof(p),
				       .kind = kind,
				       .pid = pid,
				       .tid = pid,
				       .start_ns = at_ns,
				       .end_ns = at_ns },
				.start_boottime_ns = start };

	registry_record(r, &p.h);
}

static struct mine *call(struct registry *r, uint32_t pid)
{
	struct mine *m = registry_get(r, pid);

	if (m)
		m->calls++;
	if (m && !m->text)
		m->text = strdup("kept"); /* a leak would be seen */
	return m;
}

/* Which record is about another process, and which about the same one. */
static void test_renews(void)
{
	static const struct {
		uint16_t kind;
		uint64_t start;
		bool ends; /* before it */
		uint32_t execs;
		uint64_t calls;
	} rows[] = {
		{ CT_PROCESS, 10, false, 0, 1 }, /* reported again */
		{ CT_PROCESS, 0, false, 0, 1 },
		{ CT_PROCESS, 11, false, 1, 0 }, /* the end of the one before was lost */
		{ CT_PROCESS, 10, true, 0, 1 },	 /* reported by a later file */
		{ CT_PROCESS, 11, true, 1, 0 },
		{ CT_PROCESS, 0, true, 1, 0 },
		{ CT_EXEC, 10, false, 1, 0 },
		{ CT_EXEC, 10, true, 1, 0 },
	};
	static const struct registry_rules rules = { .size = sizeof(struct mine),
						     .most = 16,
						     .stays_ns = UINT64_MAX,
						     .exec = renewed,
						     .gone = forgotten };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct told told = { 0 };
		struct registry r;
		struct mine *m;

		CASE_ROW("%zu", i);
		registry_open(&r, &rules, &told);
		record(&r, CT_PROCESS, 7, 10, 0);
		CHECK(!registry_find(&r, 7)); /* nobody asked for it */
		m = call(&r, 7);
		record(&r, CT_PROCESS, 7, 10, 0);
		if (rows[i].ends)
			record(&r, CT_EXIT, 7, 0, 5);
		CHECK_EQ(rows[i].ends, m->r.exited);
		record(&r, rows[i].kind, 7, rows[i].start, 9);
		CHECK_EQ(rows[i].execs, told.execs);
		CHECK(registry_find(&r, 7) == m && !m->r.exited);
		CHECK_EQ(rows[i].calls, m->calls);
		CHECK_EQ(rows[i].start	? rows[i].start
			 : rows[i].ends ? 0
					: 10,
			 m->r.start_boottime_ns);
		registry_close(&r);
		CHECK_EQ(1, told.made_room);
	}
}

/* Without callbacks a struct is emptied by an exec, and goes at the end of its process. */
static void test_plain(void)
{
	static const struct registry_rules rules = { .size = sizeof(struct mine),
						     .most = 16,
						     .all = true };
	struct registry r;
	struct mine *m;

	registry_open(&r, &rules, NULL);
	record(&r, CT_PROCESS, 7, 10, 0);
	m = registry_find(&r, 7);
	if (!CHECK(m))
		return;
	m->calls = 3;
	record(&r, CT_EXEC, 7, 10, 0);
	CHECK(registry_find(&r, 7) == m && m->r.pid == 7 && !m->calls);
	CHECK_EQ(10, m->r.start_boottime_ns);
	record(&r, CT_EXIT, 7, 0, 1);
	CHECK(!registry_find(&r, 7));
	CHECK_EQ(0, registry_count(&r));
	registry_close(&r);
}

/* A process that has ended stays as long as the rules say, unless it is held. */
static void test_stays(void)
{
	static const struct registry_rules rules = {
		.size = sizeof(struct mine), .most = 1024, .stays_ns = 5 * SECOND, .gone = forgotten
	};
	struct told told = { 0 };
	struct registry r;

	registry_open(&r, &rules, &told);
	call(&r, 1)->r.held = true;
	call(&r, 2);
	record(&r, CT_EXIT, 1, 0, SECOND);
	record(&r, CT_EXIT, 2, 0, SECOND);
	registry_sweep(&r, 6 * SECOND - 1);
	CHECK_EQ(2, registry_count(&r));
	registry_sweep(&r, 6 * SECOND);
	CHECK_EQ(1, registry_count(&r));
	CHECK(registry_find(&r, 1));
	/* many that ended are looked for now and then */
	for (uint32_t pid = 3; pid < 1000; pid++) {
		call(&r, pid);
		record(&r, CT_EXIT, pid, 0, pid * SECOND);
	}
	CHECK(registry_count(&r) < 64);
	CHECK_EQ(0, told.exits);
	registry_close(&r);
	CHECK_EQ(999, told.made_room);
	CHECK_EQ(999, told.calls);
}

/* 10 000 processes live where there is room for 4096: further ones are counted, and those who have a
 * struct keep it. */
static void test_full(void)
{
	static const struct registry_rules rules = {
		.size = sizeof(struct mine), .most = 4096, .stays_ns = UINT64_MAX, .gone = forgotten
	};
	struct told told = { 0 };
	struct registry r;

	registry_open(&r, &rules, &told);
	for (uint32_t pid = 1; pid <= 10000; pid++)
		CHECK(!call(&r, pid) == (pid > 4096));
	CHECK_EQ(4096, registry_count(&r));
	CHECK_EQ(10000 - 4096, r.left_out);
	CHECK_EQ(0, r.forgotten);
	/* one that ends makes room for one */
	record(&r, CT_EXIT, 9, 0, 1);
	CHECK(call(&r, 20000) && !registry_find(&r, 9) && !call(&r, 20001));
	CHECK_EQ(1, told.made_room);
	registry_close(&r);
	CHECK_EQ(4097, told.calls);
}

/* Likewise, where those that were not asked for longest make room: the one that is asked for always stays, and
 * nothing of an earlier process with a number is seen by the next one. */
static void test_forgets(void)
{
	static const struct registry_rules rules = { .size = sizeof(struct mine),
						     .most = 4096,
						     .stays_ns = UINT64_MAX,
						     .forgets = true,
						     .exec = renewed,
						     .gone = forgotten };
	struct told told = { 0 };
	struct registry r;
	struct mine *held;

	registry_open(&r, &rules, &told);
	held = call(&r, 2);
	held->r.held = true;
	for (uint32_t i = 0; i < 10000; i++) {
		CHECK(call(&r, 10 + i));
		call(&r, 1);
	}
	CHECK(registry_count(&r) <= 4096);
	CHECK_EQ(0, r.left_out);
	CHECK_EQ(10002, registry_count(&r) + r.forgotten);
	CHECK(registry_find(&r, 1) && registry_find(&r, 2) == held);
	CHECK_EQ(10000, ((struct mine *)registry_find(&r, 1))->calls);
	CHECK(registry_find(&r, 10009) && !registry_find(&r, 10));
	/* each number is used again and again: one struct, which begins anew */
	for (uint64_t start = 1; start <= 10000; start++) {
		record(&r, CT_PROCESS, 10009, start, start);
		CHECK_EQ(start == 1 ? 2 : 1, call(&r, 10009)->calls);
	}
	CHECK_EQ(9999, told.execs);
	registry_close(&r);
}

/* ---- owned things ---- */

struct thing {
	uint32_t pid, number;
	char *text;
};

static void drop(void *thing)
{
	free(((struct thing *)thing)->text);
}

static bool add(struct owned *s, uint32_t pid, uint32_t number)
{
	struct thing key = { .pid = pid, .number = number }, *t;
	bool made;

	t = owned_get(s, &key, &made);
	if (made)
		t->text = strdup("kept");
	return t;
}

/* One owner cannot have more than its part, and what one has goes with it. */
static void test_owned(void)
{
	struct thing key = { .pid = 7, .number = 3 };
	struct owned s;

	owned_open_of(&s, struct thing, number, 1024, 4);
	s.drop = drop;
	for (uint32_t i = 0; i < 300; i++)
		CHECK(add(&s, 7, i) == (i < 256));
	CHECK_EQ(256, owned_of(&s, 7));
	CHECK(add(&s, 7, 3) && owned_find(&s, &key));
	/* 10 000 owners of one each: as many as there is room for */
	for (uint32_t pid = 100; pid < 10100; pid++)
		CHECK(add(&s, pid, 1) == (pid < 100 + 768));
	CHECK_EQ(0, owned_of(&s, 10000));
	owned_remove(&s, owned_find(&s, &key));
	CHECK_EQ(255, owned_of(&s, 7));
	CHECK(add(&s, 7, 300));
	owned_forget(&s, 7);
	owned_forget(&s, 8);
	CHECK_EQ(0, owned_of(&s, 7));
	CHECK_EQ(768, s.things.n);
	CHECK_EQ(1, owned_of(&s, 100));
	owned_clear(&s);
	CHECK(add(&s, 100, 1));
	owned_close(&s);
}

int main(void)
{
	RUN(test_renews);
	RUN(test_plain);
	RUN(test_stays);
	RUN(test_full);
	RUN(test_forgets);
	RUN(test_owned);
	return unit_end();
}
