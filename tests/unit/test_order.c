/* SPDX-License-Identifier: BSD-2-Clause */
/* test_order.c - finished rows in the order of time: whatever they come in, what comes too late,
 * what a recording promises, the bound. */
#include <unistd.h>

#include "../../user/flow/order.h"
#include "unit.h"

#define MS 1000000ULL
#define START (1000 * MS)
#define ROWS 5000
#define MIB ((size_t)1 << 20)

/* An order that writes to a file, and what its rows were. */
struct run {
	struct sink_opts opts;
	struct order *order;
	struct out out;
	char path[64];
	uint64_t settled_ns;
	uint64_t places[ROWS * 2];
	size_t n;
};

static uint64_t settled(void *ctx)
{
	return ((struct run *)ctx)->settled_ns;
}

static void run_open(struct run *r)
{
	snprintf(r->path, sizeof(r->path), "/tmp/test_order.%d", (int)getpid());
	CHECK(!out_open(&r->out, r->path, false));
	r->opts.out = &r->out;
	r->opts.refresh_ctx = r;
	CHECK(!order_open(&r->order, &r->opts));
}

/* A row of any kind: its line is its place. */
static void row(struct run *r, int kind, uint64_t start_ns, uint64_t end_ns)
{
	struct ct_hdr h = { .size = sizeof(h),
			    .kind = (uint16_t)kind,
			    .pid = 1,
			    .tid = 1,
			    .start_ns = start_ns,
			    .end_ns = end_ns };
	struct row w;

	order_begin(r->order, &w, &r->out);
	w.p = put_char(put_u64(w.p, end_ns), '\n');
	CHECK(!order_end(r->order, &w, &h));
}

/* Reads what is in the file by now. */
static void look(struct run *r)
{
	char *text, *p;

	CHECK(!out_flush(&r->out));
	text = unit_read(r->path);
	r->n = 0;
	for (p = text; p && *p && r->n < ARRAY_LEN(r->places); p = strchr(p, '\n') + 1)
		r->places[r->n++] = strtoull(p, NULL, 10);
	free(text);
}

static void run_close(struct run *r)
{
	order_close(r->order);
	CHECK(!out_close(&r->out));
	unlink(r->path);
	memset(r, 0, sizeof(*r));
}

static bool ordered(const struct run *r)
{
	for (size_t i = 1; i < r->n; i++)
		if (r->places[i] < r->places[i - 1])
			return false;
	return true;
}

static struct run run;

/* Rows that come up to 200 ms after their end, with ticks between, are in order. */
static void test_random(void)
{
	uint64_t sum = 0, got = 0;

	run = (struct run){ .opts = { .gpu = true } };
	run_open(&run);
	srand(7);
	for (uint64_t i = 0; i < ROWS; i++) {
		uint64_t now = START + i * MS / 10, end = now - (uint64_t)rand() % (200 * MS);

		row(&run, rand() % 2 ? CT_CALL : CT_KERNEL, end - MS, end);
		sum += end;
		if (!(i % 50)) {
			CHECK(!order_tick(run.order, now));
			look(&run);
			CHECK(ordered(&run));
			/* within the stated delay */
			CHECK(run.n <= i + 1 && (i < 4000 || run.n > 1000));
		}
	}
	CHECK(!order_flush(run.order));
	look(&run);
	for (size_t i = 0; i < run.n; i++)
		got += run.places[i];
	CHECK_EQ(ROWS, run.n);
	CHECK(ordered(&run));
	CHECK_EQ(sum, got);
	run_close(&run);
}

/* What comes later than the delay is shown at the next look, behind what is there. */
static void test_late(void)
{
	run = (struct run){ .opts = { .gpu = true } };
	run_open(&run);
	row(&run, CT_CALL, START, START + MS);
	CHECK(!order_tick(run.order, START + MS + ORDER_HOLD_NS - 1));
	look(&run);
	CHECK(run.n == 0);
	CHECK(!order_tick(run.order, START + MS + ORDER_HOLD_NS));
	look(&run);
	CHECK(run.n == 1);
	row(&run, CT_KERNEL, START - 2 * MS, START - MS);
	CHECK(!order_tick(run.order, START + MS + ORDER_HOLD_NS));
	look(&run);
	CHECK(run.n == 2 && run.places[1] == START - MS);
	run_close(&run);
}

/* If the sources have not handed over what ended before, rows wait for that. */
static void test_behind(void)
{
	run = (struct run){ .opts = { .gpu = true, .settled = settled } };
	run_open(&run);
	run.settled_ns = START;
	row(&run, CT_CALL, START, START + MS);
	CHECK(!order_tick(run.order, START + 2 * ORDER_HOLD_NS));
	look(&run);
	CHECK(run.n == 0);
	row(&run, CT_CALL, START - MS, START - MS / 2);
	run.settled_ns = START + 2 * ORDER_HOLD_NS;
	CHECK(!order_tick(run.order, START + 2 * ORDER_HOLD_NS));
	look(&run);
	CHECK(run.n == 2 && ordered(&run));
	run_close(&run);
}

/* Definitions wait for nothing; of two rows with one place the one that came first is the first;
 * an entry has the place of its moment. */
static void test_refused(void)
{
	struct ct_hdr h = { .kind = CT_ENTER, .start_ns = 5, .end_ns = 5 };

	CHECK(event_place_ns(&h) == 5);
	h = (struct ct_hdr){ .kind = CT_CALL, .start_ns = 5, .end_ns = 0 }; /* no end is known */
	CHECK(event_place_ns(&h) == 5);
	h = (struct ct_hdr){ .kind = CT_LOST, .start_ns = 5, .end_ns = 9 };
	CHECK(event_place_ns(&h) == 9);
	h.kind = CT_FOREIGN;
	CHECK(event_place_ns(&h) == 9);
	h.kind = CT_SCOPE_END; /* a range has its row when it ends */
	CHECK(event_place_ns(&h) == 9);
	for (int kind = CT_CLOCK; kind < CT_KIND_END; kind++) {
		h.kind = (uint16_t)kind;
		CHECK(kind == CT_LOST || kind == CT_FOREIGN || kind == CT_SCOPE_END ||
		      !event_place_ns(&h));
	}
	run = (struct run){ .opts = { .gpu = true } };
	run_open(&run);
	row(&run, CT_CALL, START, START + 1);
	row(&run, CT_STREAM, START, START + 9);
	look(&run);
	CHECK(run.n == 1 && run.places[0] == START + 9);
	run_close(&run);
}

/* For a recording, time that passes says nothing: rows are passed on when the source says that
 * nothing earlier will come. */
static void test_recorded(void)
{
	run = (struct run){ .opts = { .gpu = true, .recorded = true, .settled = settled } };
	run_open(&run);
	row(&run, CT_CALL, 1, 100);
	row(&run, CT_CALL, 2, 300);
	CHECK(!order_tick(run.order, UINT64_MAX));
	look(&run);
	CHECK(run.n == 0);
	run.settled_ns = 200;
	CHECK(!order_tick(run.order, 0));
	look(&run);
	CHECK(run.n == 1);
	row(&run, CT_KERNEL, 200, 250);
	run.settled_ns = UINT64_MAX;
	CHECK(!order_tick(run.order, 0));
	look(&run);
	CHECK(run.n == 3 && ordered(&run));
	run_close(&run);
}

/* With --nested the calls keep the order in which they come, and device work stands among them
 * by its end. */
static void test_nested(void)
{
	run = (struct run){ .opts = { .gpu = true, .look.nested = true } };
	run_open(&run);
	row(&run, CT_CALL, START, START + 50); /* the outer one */
	row(&run, CT_CALL, START + 10, START + 20);
	row(&run, CT_CALL, START + 60, START + 70);
	row(&run, CT_KERNEL, START + 30, START + 60);
	CHECK(!order_flush(run.order));
	look(&run);
	if (CHECK_EQ(4, run.n)) {
		CHECK_EQ(START + 50, run.places[0]);
		CHECK_EQ(START + 20, run.places[1]);
		CHECK_EQ(START + 60, run.places[2]);
	}
	run_close(&run);
}

/* Without device work nothing is held, nor where rows of threads that are stuck are grouped. */
static void test_off(void)
{
	run = (struct run){ .opts = { .gpu = false } };
	run_open(&run);
	CHECK(!run.order);
	CHECK(!order_tick(run.order, 1));
	CHECK(!order_flush(run.order));
	row(&run, CT_CALL, 1, 100);
	row(&run, CT_CALL, 1, 50);
	look(&run);
	CHECK(run.n == 2 && run.places[0] == 100);
	run_close(&run);
	run = (struct run){ .opts = { .gpu = true, .stuck = true } };
	run_open(&run);
	CHECK(!run.order);
	run_close(&run);
}

/* A row of 4 MiB. */
static void big_row(struct order *order, struct out *out, uint64_t end_ns)
{
	static char big[4 * MIB];
	struct ct_hdr h = { .kind = CT_CALL, .start_ns = 1, .end_ns = end_ns };
	struct row w;

	memset(big, 'x', sizeof(big));
	order_begin(order, &w, out);
	row_mem(&w, big, sizeof(big));
	CHECK(!order_end(order, &w, &h));
}

/* How often the warning is in what went to standard error. */
static int warnings(const char *path)
{
	char *text = unit_read(path);
	int n = 0;

	for (char *p = text; p && (p = strstr(p, "some rows are out of time order")); p++)
		n++;
	free(text);
	return n;
}

/* More than may be held: the earliest rows go on, in order, and all rows are there in the end.
 * What then comes too late is shown, and of a recording it is said, once. */
static void test_bound(bool recorded)
{
	struct sink_opts opts = { .gpu = true, .recorded = recorded };
	size_t n = ORDER_HOLD_BYTES / (4 * MIB) + 8;
	int saved = dup(STDERR_FILENO);
	struct order *order;
	struct out out;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/test_order.%d.err", (int)getpid());
	CHECK(saved >= 0 && freopen(path, "we", stderr));
	CHECK(!out_open(&out, "/dev/null", false));
	opts.out = &out;
	CHECK(!order_open(&order, &opts));
	for (size_t i = 0; i < n; i++)
		big_row(order, &out, 1000 + i);
	CHECK(out.written + out.len >= 8 * 4 * MIB && out.written + out.len <= 9 * 4 * MIB);
	fflush(stderr);
	CHECK(warnings(path) == 0);
	big_row(order, &out, 900);
	big_row(order, &out, 901);
	CHECK(!order_flush(order) && !out_flush(&out));
	CHECK(out.written == (n + 2) * 4 * MIB);
	fflush(stderr);
	CHECK(warnings(path) == recorded);
	order_close(order);
	CHECK(!out_close(&out));
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	unlink(path);
}

int main(void)
{
	RUN(test_random);
	RUN(test_late);
	RUN(test_behind);
	RUN(test_refused);
	RUN(test_recorded);
	RUN(test_nested);
	RUN(test_off);
	RUN(test_bound, true);
	RUN(test_bound, false);
	return unit_end();
}
