/* SPDX-License-Identifier: BSD-2-Clause */
/* test_hooks_holes.c - which rows a process with hooks gets of what is not seen of it: names of functions, and numbers. */
#include <string.h>

#include "../../user/api/api.h"
#include "../../user/event/holes/holes.h"
#include "../../user/source/hooks/hooks_holes.h"
#include "../../user/flow/plan.h"
#include "../../user/util/strings.h"
#include "../../user/source/hooks/hooks_ring.h"
#include "unit.h"

static struct hooks_holes *holes;
static struct hooks_batch *batch;
static struct holes *rows; /* as a session has them */
static int nrecords;

static int learn(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	nrecords++;
	CHECK_EQ(0, record_check(rec, rec->size));
	return holes_record(rows, rec, NULL);
}

/* Returns how many records were made. */
static int tell(void)
{
	nrecords = 0;
	CHECK_EQ(0, hooks_holes_tell(holes, batch));
	CHECK_EQ(0, hooks_batch_emit(batch, learn, NULL));
	return nrecords;
}

static void begin(void)
{
	holes = hooks_holes_open(70, 5000, NULL);
	batch = hooks_batch_open();
	rows = holes_open();
}

static void end(void)
{
	hooks_holes_close(holes);
	hooks_batch_close(batch);
	holes_close(rows);
}

/* A list of n functions, from this row on. */
static void send_list(unsigned int row, unsigned int n)
{
	struct {
		struct hooks_list l;
		struct hooks_func f[64];
	} m = { .l = { .h = { .type = HOOKS_FUNCS }, .n = n } };

	for (unsigned int i = 0; i < n; i++)
		m.f[i].cookie = row + i;
	hooks_holes_sent(holes, &m, sizeof(m.l) + n * sizeof(m.f[0]));
}

/* The count of the row with this text; -1: there is none. */
static int64_t count_of(enum ct_hole_reason reason, const char *text)
{
	for (size_t i = 0; i < holes_rows(rows); i++) {
		const struct holes_row *r = holes_row(rows, i);

		if (r->reason != reason || strcmp(r->text, text))
			continue;
		CHECK_EQ(70, r->pid);
		CHECK(r->end_ns == CT_HOLE_OPEN);
		return (int64_t)r->count;
	}
	return -1;
}

/* The first functions are named, the others are a number; nothing is said twice. */
static void test_names(void)
{
	begin();
	CHECK_EQ(0, tell());
	send_list(3, 40);
	for (int i = 0; i < 40; i++)
		hooks_holes_result(holes, i == 1 || i >= 20 ? 8 : i == 2 ? HOOKS_PARTLY : 0);
	CHECK_EQ(21, hooks_holes_unhooked(holes));
	CHECK_EQ(1, hooks_holes_partly(holes));
	CHECK_EQ(16 + 1 + 1, tell());
	CHECK_EQ(1, count_of(CT_HOLE_UNHOOKED, api_funcs[4].name));
	CHECK_EQ(1, count_of(CT_HOLE_UNHOOKED, api_funcs[23].name));
	CHECK_EQ(5, count_of(CT_HOLE_UNHOOKED, ""));
	CHECK_EQ(1, count_of(CT_HOLE_PARTLY_HOOKED, api_funcs[5].name));
	CHECK_EQ(-1, count_of(CT_HOLE_PARTLY_HOOKED, ""));
	CHECK_EQ(21, holes_number(rows, CT_HOLE_UNHOOKED));
	CHECK_EQ(0, tell());
	CHECK(holes_fails(rows));
	/* results that nobody has asked for have no name */
	hooks_holes_result(holes, 8);
	CHECK_EQ(1, tell());
	CHECK_EQ(6, count_of(CT_HOLE_UNHOOKED, ""));
	end();
}

/* Functions that are hooked later: which they are is not known. */
static void test_late(void)
{
	begin();
	send_list(3, 2);
	hooks_holes_result(holes, 8);
	hooks_holes_result(holes, 8);
	CHECK_EQ(2, tell());
	hooks_holes_late(holes, 9);
	CHECK_EQ(0, tell());
	hooks_holes_late(holes, 1);
	CHECK_EQ(4, tell());
	CHECK_EQ(0, count_of(CT_HOLE_UNHOOKED, api_funcs[3].name));
	CHECK_EQ(0, count_of(CT_HOLE_UNHOOKED, api_funcs[4].name));
	CHECK_EQ(1, count_of(CT_HOLE_UNHOOKED, ""));
	CHECK_EQ(1, count_of(CT_HOLE_PARTLY_HOOKED, ""));
	CHECK_EQ(1, holes_number(rows, CT_HOLE_UNHOOKED));
	hooks_holes_late(holes, 2);
	CHECK_EQ(2, tell());
	CHECK_EQ(0, holes_number(rows, CT_HOLE_UNHOOKED));
	CHECK_EQ(2, holes_number(rows, CT_HOLE_PARTLY_HOOKED));
	end();
}

/* What is not refused any more is no reason to fail, and is not said. */
static void test_void(void)
{
	char text[HOLES_TEXT];

	begin();
	send_list(3, 1);
	hooks_holes_interrupted(holes, 2);
	CHECK_EQ(1, tell());
	hooks_holes_interrupted(holes, 0);
	CHECK_EQ(1, tell());
	CHECK(!holes_fails(rows));
	CHECK(!holes_unseen(rows));
	CHECK_EQ(0, holes_text(rows, 0, "; ", "", text, sizeof(text)));
	end();
}

/* Functions that cannot have hooks are told once: the first ones by name. */
static void test_silent(void)
{
	uint64_t funcs[PLAN_WORDS] = { 0 };

	begin();
	plan_add(funcs, 3);
	plan_add(funcs, 4);
	hooks_holes_silent(holes, CT_HOLE_SHARED_CODE, funcs);
	CHECK_EQ(2, tell());
	hooks_holes_silent(holes, CT_HOLE_SHARED_CODE, funcs);
	CHECK_EQ(0, tell());
	CHECK(holes_fails(rows));
	CHECK(!holes_unseen(rows));
	for (int i = 5; i < 23; i++)
		plan_add(funcs, i);
	hooks_holes_silent(holes, CT_HOLE_INDIRECT, funcs);
	CHECK_EQ(17, tell());
	CHECK_EQ(1, count_of(CT_HOLE_INDIRECT, api_funcs[3].name));
	CHECK_EQ(4, count_of(CT_HOLE_INDIRECT, ""));
	CHECK_EQ(1, count_of(CT_HOLE_SHARED_CODE, api_funcs[4].name));
	CHECK(holes_unseen(rows));
	end();
}

/* Files are told once, by their names. */
static void test_stripped(void)
{
	struct strings files;

	begin();
	CHECK(!strings_init(&files, 1024, 4));
	hooks_holes_stripped(holes, &files);
	CHECK_EQ(0, tell());
	strings_add(&files, "/a.so", 5);
	strings_add(&files, "/b.so", 5);
	CHECK_EQ(2, tell());
	CHECK_EQ(0, tell());
	CHECK_EQ(1, count_of(CT_HOLE_STRIPPED, "/a.so"));
	CHECK_EQ(1, count_of(CT_HOLE_STRIPPED, "/b.so"));
	CHECK(holes_unseen(rows));
	end();
	strings_free(&files);
}

/* The first reason why the hooks are gone counts. */
static void test_gone(void)
{
	begin();
	hooks_holes_shared(holes);
	hooks_holes_gone(holes, CT_HOLE_HOOKS_GONE, 6000);
	hooks_holes_gone(holes, CT_HOLE_NO_HOOKS, 7000);
	CHECK_EQ(2, tell());
	CHECK_EQ(0, tell());
	CHECK_EQ(0, count_of(CT_HOLE_HOOKS_GONE, ""));
	CHECK_EQ(-1, count_of(CT_HOLE_NO_HOOKS, ""));
	CHECK_EQ(0, count_of(CT_HOLE_SHARED_MEMORY, ""));
	CHECK_EQ(4000, holes_missing_ns(rows, 70, 1U << CT_HOLE_CALLS, 0, 10000));
	end();
}

/* A process that went on without its hooks counts once, from the first time on. */
static void test_alone(void)
{
	const struct unprobed_sum *sum;

	begin();
	hooks_holes_alone(holes, 6000, 7000, "one with a name that is too long");
	CHECK_EQ(1, tell());
	CHECK_EQ(0, tell());
	hooks_holes_alone(holes, 9000, 9500, "one");
	CHECK_EQ(1, tell());
	sum = holes_unprobed(rows);
	CHECK_EQ(1, sum->processes);
	CHECK_EQ(0, sum->ended);
	CHECK_EQ(1000, sum->longest_ns);
	/* told together: the whole of it */
	hooks_holes_alone(holes, 20000, 21000, "one");
	hooks_holes_alone(holes, 22000, 23000, "one");
	CHECK_EQ(1, tell());
	CHECK_EQ(1, sum->processes);
	CHECK_EQ(3000, sum->longest_ns);
	end();
}

int main(void)
{
	RUN(test_names);
	RUN(test_late);
	RUN(test_void);
	RUN(test_silent);
	RUN(test_stripped);
	RUN(test_gone);
	RUN(test_alone);
	return unit_end();
}
