/* SPDX-License-Identifier: BSD-2-Clause */
/* test_holes.c - what was not seen: rows that replace each other, numbers that add up, verdicts, words. */
#include <string.h>

#include "../../user/event/holes/holes.h"
#include "unit.h"

#define S 1000000000ULL

/* States a row, as a source does. */
static void states(struct holes *h, struct ct_hole r, uint64_t from, uint64_t to, uint64_t count,
		   const char *text)
{
	struct hole_text t = { .hole = r };

	hole_when(&t.hole, from, to);
	t.hole.count = count;
	hole_say(&t, text);
	CHECK_EQ(0, record_check(&t, sizeof(t)));
	CHECK_EQ(0, holes_record(h, &t.hole.h, NULL));
}

static struct ct_hole no_hooks(uint32_t pid)
{
	struct ct_hole h = hole_of(pid, CT_HOLE_CALLS, CT_HOLE_UNSEEN, CT_HOLE_NO_HOOKS);

	strcpy(h.comm, "py\n3");
	return h;
}

static const char *said(const struct holes *h)
{
	static char text[HOLES_TEXT];

	size_t n = holes_text(h, S, "; ", "", text, sizeof(text));

	CHECK_EQ(strlen(text), n);
	return text;
}

static void test_replaces(void)
{
	struct holes *h = holes_open();

	CHECK(!holes_fails(h) && !holes_unseen(h) && !holes_rows(h));
	CHECK_TEXT("", said(h));
	states(h, no_hooks(42), 3 * S, CT_HOLE_OPEN, 0, "");
	CHECK_TEXT("; process 42 (py?3) used CUDA and had no hooks: its calls are not known, from "
		   "2.000 s on",
		   said(h));
	states(h, no_hooks(42), 3 * S, 4 * S, 0, "");
	CHECK_EQ(1, holes_rows(h));
	CHECK_TEXT("; process 42 (py?3) used CUDA and had no hooks: its calls are not known, from "
		   "2.000 s to 3.000 s",
		   said(h));
	/* another stretch of the same process, and another process */
	states(h, no_hooks(42), 5 * S, 6 * S, 0, "");
	CHECK_EQ(1, holes_number(h, CT_HOLE_NO_HOOKS));
	states(h, no_hooks(43), 5 * S, CT_HOLE_OPEN, 0, "");
	CHECK_TEXT("; 2 processes used CUDA and had no hooks: their calls are not known, from "
		   "2.000 s on",
		   said(h));
	CHECK(holes_fails(h) && holes_unseen(h));
	holes_close(h);
}

static void test_ends_with_its_process(void)
{
	struct ct_exit e = {
		.h = { .size = sizeof(e), .kind = CT_EXIT, .pid = 7, .end_ns = 9 * S }
	};
	struct holes *h = holes_open();

	states(h, no_hooks(7), 3 * S, CT_HOLE_OPEN, 0, "");
	states(h, no_hooks(8), 3 * S, CT_HOLE_OPEN, 0, "");
	CHECK_EQ(0, holes_record(h, &e.h, NULL));
	CHECK_EQ(9 * S, holes_row(h, 0)->end_ns);
	CHECK_EQ(CT_HOLE_OPEN, holes_row(h, 1)->end_ns);
	holes_close(h);
}

/* A number that a source states replaces the one before; losses of records add up. */
static void test_numbers(void)
{
	struct ct_hole files = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, CT_HOLE_FILE_REFUSED);
	struct ct_lost l = {
		.h = { .size = sizeof(l), .kind = CT_LOST, .start_ns = 2 * S, .end_ns = 3 * S },
		.cause = CT_LOSS_RING,
		.cpu = ~0u,
		.count = 5
	};
	struct holes *h = holes_open();

	states(h, files, 0, 0, 2, "");
	states(h, files, 0, 0, 3, "");
	CHECK_EQ(3, holes_number(h, CT_HOLE_FILE_REFUSED));
	CHECK_TEXT("; 3 libraries were not probed: what was called in them is not known", said(h));
	holes_close(h);
	h = holes_open();
	CHECK_EQ(0, holes_record(h, &l.h, NULL) + holes_record(h, &l.h, NULL));
	CHECK_EQ(10, holes_number(h, CT_HOLE_RECORDS));
	CHECK_TEXT("ring_full", holes_row(h, 0)->text);
	/* the last line says them by cause, and "0 lost of those seen" is not meant */
	CHECK_TEXT("", said(h));
	CHECK(holes_fails(h) && !holes_unseen(h));
	l.cause = CT_LOSS_ORPHAN;
	CHECK_EQ(0, holes_record(h, &l.h, NULL));
	CHECK_EQ(1, holes_rows(h));
	holes_close(h);
}

/* A clause that has the text, which may be anything. */
static void test_text_in_clause(void)
{
	struct ct_hole r = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, CT_HOLE_STRIPPED);
	struct holes *h = holes_open();
	char text[HOLES_ROW_TEXT], path[CT_HOLE_TEXT_MAX + 1];

	states(h, r, 0, 0, 1, "/tmp/a%n\nb.so");
	CHECK_TEXT("; /tmp/a%n?b.so has a CUDA runtime without symbols, and functions of it were "
		   "not found: calls of them are not known",
		   said(h));
	holes_row_text(holes_row(h, 0), S, text, sizeof(text));
	CHECK_TEXT("/tmp/a%n?b.so has a CUDA runtime without symbols, and functions of it were not "
		   "found: calls of them are not known",
		   text);
	CHECK(holes_fails(h) && holes_unseen(h));
	states(h, r, 0, 0, 1, "c.so");
	CHECK_TEXT("; 2 files (/tmp/a%n?b.so and others) have a CUDA runtime without symbols, and "
		   "functions of it were not found: calls of them are not known",
		   said(h));
	holes_close(h);
	/* the longest one fits */
	h = holes_open();
	memset(path, 'x', CT_HOLE_TEXT_MAX);
	path[CT_HOLE_TEXT_MAX] = 0;
	states(h, r, 0, 0, 1, path);
	CHECK(strstr(said(h), "xx has a CUDA runtime") &&
	      strstr(said(h), "calls of them are not known"));
	holes_close(h);
}

/* Calls that were only counted stand in the rows, and are no failure. */
static void test_mutes(void)
{
	struct {
		struct ct_muted m;
		char room[600];
	} m = { .m = { .h = { .pid = 5, .start_ns = S, .end_ns = 2 * S },
		       .counted = 100,
		       .unseen = { 900, 90, 90 } } };
	struct holes *h = holes_open();

	muted_name(&m.m, 0);
	CHECK_EQ(0, holes_record(h, &m.m.h, NULL) + holes_record(h, &m.m.h, NULL));
	CHECK_EQ(1, holes_rows(h));
	CHECK_EQ(2000, holes_row(h, 0)->count);
	CHECK_EQ(180, holes_row(h, 0)->above);
	CHECK(!holes_fails(h) && !holes_unseen(h));
	CHECK_EQ(0, holes_missing_ns(h, 5, HOLES_OF(CT_HOLE_CALLS), S, 2 * S));
	holes_close(h);
}

static void test_missing(void)
{
	struct holes *h = holes_open();

	states(h, no_hooks(5), 2 * S, 4 * S, 0, "");
	states(h, no_hooks(5), 3 * S, 5 * S, 0, "");
	states(h, no_hooks(6), 8 * S, CT_HOLE_OPEN, 0, "");
	CHECK_EQ(3 * S, holes_missing_ns(h, 5, HOLES_OF(CT_HOLE_CALLS), 0, 10 * S));
	CHECK_EQ(5 * S, holes_missing_ns(h, 0, HOLES_OF(CT_HOLE_CALLS), 0, 10 * S));
	CHECK_EQ(S / 2, holes_missing_ns(h, 5, HOLES_OF(CT_HOLE_CALLS), 4 * S + S / 2, 10 * S));
	CHECK_EQ(0, holes_missing_ns(h, 5, HOLES_OF(CT_HOLE_DEVICE), 0, 10 * S));
	CHECK_EQ(0, holes_missing_ns(h, 5, HOLES_OF(CT_HOLE_CALLS), 5 * S, 10 * S));
	/* of the machine: it concerns each process */
	states(h, hole_of(0, CT_HOLE_CALLS, CT_HOLE_LOST, CT_HOLE_QUEUED), 9 * S, 10 * S, 4, "");
	CHECK_EQ(S, holes_missing_ns(h, 77, HOLES_OF(CT_HOLE_CALLS), 0, 10 * S));
	CHECK_EQ(0, holes_missing_ns(NULL, 0, HOLES_OF(CT_HOLE_CALLS), 0, 10 * S));
	holes_close(h);
}

/* Many stretches of one process are joined, and lose nothing of their time and number. */
static void test_joined(void)
{
	struct ct_hole one = hole_of(5, CT_HOLE_DEVICE, CT_HOLE_LOST, CT_HOLE_NO_RECORD);
	struct holes *h = holes_open();

	for (uint64_t i = 1; i <= 1000; i++)
		states(h, one, 2 * i * S, (2 * i + 1) * S, 3, "");
	CHECK_EQ(HOLES_INTERVALS, holes_rows(h));
	CHECK_EQ(3000, holes_number(h, CT_HOLE_NO_RECORD));
	CHECK_EQ(2001 * S, holes_row(h, HOLES_INTERVALS - 1)->end_ns);
	CHECK_TEXT("; 3000 launches have no record of their kernels", said(h));
	one.state = CT_HOLE_UNSEEN;
	states(h, one, S, 2 * S, 1, "");
	CHECK_TEXT("; at least 3001 launches have no record of their kernels", said(h));
	holes_close(h);
	/* as many processes as a hostile machine has */
	h = holes_open();
	for (uint32_t pid = 1; pid <= HOLES_ROWS + 1000; pid++)
		states(h, no_hooks(pid), S, 2 * S, 0, "");
	CHECK_EQ(HOLES_ROWS, holes_rows(h));
	CHECK(holes_fails(h));
	holes_close(h);
}

/* What a file or an agent sends may be anything. */
static void test_hostile(void)
{
	struct hole_text t = { .hole = hole_of(1, 99, 99, 9999) };
	struct holes *h = holes_open();
	char text[HOLES_ROW_TEXT];

	hole_say(&t, "a\nb\033[2J");
	CHECK_EQ(0, record_check(&t, sizeof(t)));
	CHECK_EQ(0, holes_record(h, &t.hole.h, NULL));
	holes_row_text(holes_row(h, 0), 0, text, sizeof(text));
	CHECK_TEXT("something of process 1 is missing, for a reason that a newer version knows "
		   "(a?b?[2J)",
		   text);
	CHECK_TEXT("unknown", hole_state(99));
	t.hole.text_len = 9999;
	CHECK(record_check(&t, sizeof(t)));
	t.hole.text_len = 0;
	memset(t.hole.comm, 'x', sizeof(t.hole.comm));
	CHECK(record_check(&t, sizeof(t)));
	t.hole.comm[CT_COMM_LEN - 1] = '\0';
	t.hole.h.start_ns = 1;
	CHECK(record_check(&t, sizeof(t)));
	holes_close(h);
}

int main(void)
{
	RUN(test_replaces);
	RUN(test_ends_with_its_process);
	RUN(test_numbers);
	RUN(test_text_in_clause);
	RUN(test_mutes);
	RUN(test_missing);
	RUN(test_joined);
	RUN(test_hostile);
	return unit_end();
}
