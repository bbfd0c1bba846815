/* SPDX-License-Identifier: BSD-2-Clause */
/* test_captures.c - which call made a node of a graph, and that its scopes are not forgotten. */
#include "../../user/event/scopes/captures.h"
#include "../../user/event/scopes/lineage.h"
#include "unit.h"

static bool node(struct captures *c, uint32_t pid, uint64_t id, uint64_t origin, uint32_t number)
{
	struct ct_node n = { .w = { .h = { .size = sizeof(n), .kind = CT_NODE, .pid = pid } } };
	struct event ev = { .rec = &n.w.h, .number = number };

	n.w.graph_node = id;
	n.origin = origin;
	n.w.call_ns = number * 100;
	n.w.scope = number;
	CHECK(!record_check(&n, sizeof(n)));
	return captures_event(c, &ev);
}

static bool process(struct captures *c, uint16_t kind, uint32_t pid)
{
	struct ct_process p = { .h = { .size = sizeof(p), .kind = kind, .pid = pid } };
	struct event ev = { .rec = &p.h };

	return captures_event(c, &ev);
}

/* The number of the call; 0: it was before the trace; -1: nodes are not followed. */
static int made_by(const struct captures *c, uint32_t pid, uint64_t id)
{
	const struct capture *m = captures_find(c, pid, id);

	if (m && m->before)
		CHECK(!m->number && m->scope == CT_SCOPE_UNKNOWN && m->func == CT_NO_FUNC);
	return m ? (int)m->number : -1;
}

static void test_found(void)
{
	struct captures *c = captures_open();

	CHECK(c);
	CHECK_EQ(-1, made_by(c, 7, 1));
	node(c, 7, 3, 2, 0); /* a copy may be heard of first */
	node(c, 7, 2, 1, 0);
	CHECK_EQ(0, made_by(c, 7, 3));
	node(c, 7, 1, 0, 12);
	CHECK_EQ(12, made_by(c, 7, 3));
	CHECK_EQ(12, made_by(c, 7, 1));
	node(c, 7, 3, 0, 14); /* the call that copied it */
	CHECK_EQ(12, made_by(c, 7, 3));
	CHECK_EQ(0, made_by(c, 7, 4));
	CHECK_EQ(-1, made_by(c, 8, 1)); /* another process's */
	CHECK_EQ(-1, made_by(c, 7, 0)); /* no graph's work */
	node(c, 7, 5, 6, 0);
	node(c, 7, 6, 5, 0); /* a circle, of an agent that lies */
	CHECK_EQ(0, made_by(c, 7, 5));
	captures_close(c);
}

/* A process that has ended may still have kernels on the way; a new one of its number has none. */
static void test_ended(void)
{
	struct captures *c = captures_open();

	node(c, 7, 0, 0, 0);
	CHECK(!process(c, CT_PROCESS, 7)); /* its agent came first */
	node(c, 7, 1, 0, 12);
	CHECK(!process(c, CT_EXIT, 7));
	CHECK_EQ(12, made_by(c, 7, 1));
	CHECK(process(c, CT_PROCESS, 7));
	CHECK_EQ(-1, made_by(c, 7, 1));
	node(c, 7, 1, 0, 13);
	CHECK(process(c, CT_EXEC, 7));
	CHECK_EQ(-1, made_by(c, 7, 1));
	captures_close(c);
}

/* One process cannot fill the table, and processes that have ended leave room. */
static void test_bounded(void)
{
	struct captures *c = captures_open();

	for (uint32_t i = 1; i <= CAPTURES_MAX; i++)
		node(c, 7, i, 0, i);
	CHECK_EQ(CAPTURES_MAX / 4 * 3, captures_dropped(c));
	CHECK_EQ(0, made_by(c, 7, CAPTURES_MAX));
	for (uint32_t pid = 8; pid < 12; pid++) {
		for (uint32_t i = 1; i <= CAPTURES_MAX / 4; i++)
			node(c, pid, i, 0, i);
		process(c, CT_EXIT, pid);
	}
	/* 8 to 10 have filled it and ended, and so 11 had room */
	CHECK_EQ(CAPTURES_MAX / 4 * 3, captures_dropped(c));
	CHECK_EQ(5, made_by(c, 11, 5));
	CHECK_EQ(5, made_by(c, 7, 5));
	CHECK_EQ(-1, made_by(c, 8, 5));
	captures_close(c);
}

static void scope(struct lineage *l, uint32_t id, uint32_t parent)
{
	struct ct_scope s = { .h = { .size = sizeof(s), .kind = CT_SCOPE_BEGIN, .pid = 7 },
			      .id = id,
			      .parent = parent,
			      .kind = CT_SCOPE_RANGE };

	CHECK(!lineage_record(l, &s.h));
}

/* What was captured is replayed for long: its scopes stay when newer ones push others out. */
static void test_kept(void)
{
	struct lineage *l = lineage_open();

	scope(l, 1, CT_SCOPE_NONE);
	scope(l, 2, 1);
	scope(l, 3, 1);
	lineage_keep(l, 7, 2);
	for (uint32_t i = 4; i < 2 * LINEAGE_SCOPES; i++)
		scope(l, i, CT_SCOPE_NONE);
	CHECK(lineage_find(l, 7, 1) && lineage_find(l, 7, 2));
	CHECK(!lineage_find(l, 7, 3));
	CHECK(lineage_find(l, 7, LINEAGE_SCOPES + 2));
	CHECK(!lineage_find(l, 7, LINEAGE_SCOPES + 1)); /* two places fewer */
	lineage_release(l, 7);
	for (uint32_t i = 2 * LINEAGE_SCOPES; i < 4 * LINEAGE_SCOPES; i++)
		scope(l, i, CT_SCOPE_NONE);
	CHECK(!lineage_find(l, 7, 1) && !lineage_find(l, 7, 2));
	/* half of the room is for them, and no more */
	for (uint32_t i = 3 * LINEAGE_SCOPES; i < 4 * LINEAGE_SCOPES; i++)
		lineage_keep(l, 7, i);
	scope(l, 5 * LINEAGE_SCOPES, CT_SCOPE_NONE);
	CHECK(lineage_find(l, 7, 5 * LINEAGE_SCOPES));
	lineage_close(l);
}

int main(void)
{
	RUN(test_found);
	RUN(test_ended);
	RUN(test_bounded);
	RUN(test_kept);
	return unit_end();
}
