/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_numbers.c - the numbers of calls: those of one file, of the files that a recorder wrote
 * one after the other, of these merged, without the oldest, with a block that is damaged, and of
 * what the flight recorder kept are the same.
 */
#include <unistd.h>

#include "../../user/event/join/join.h"
#include "../../user/trace/defs.h"
#include "../../user/trace/merge.h"
#include "../../user/trace/numbers.h"
#include "../../user/trace/reader.h"
#include "../../user/trace/flight.h"
#include "make_call.h"
#include "unit.h"

#define CALLS 4000
#define PARTS 4
#define HEAD "format 1\nhost h\nboot_id b\nstart_ns 5\n"

static char dir[] = "/tmp/ct-numbers-XXXXXX";

static char *path_of(const char *name, int i)
{
	static char paths[4][64];
	static int at;
	char *p = paths[at++ % 4];

	snprintf(p, sizeof(paths[0]), "%s/%s%d", dir, name, i);
	return p;
}

/* ---- a run ---- */

union room {
	struct ct_hdr h;
	struct ct_process process;
	struct ct_exit exit;
	struct made_call call;
};

static union room run[CALLS * 2];
static int nrun;
static uint32_t numbers[CALLS * 2]; /* of the calls, by their begin */

static void add_process(uint32_t pid, uint64_t start_ns)
{
	run[nrun].process = (struct ct_process){ .h = { .size = sizeof(struct ct_process),
							.kind = CT_PROCESS,
							.pid = pid,
							.tid = pid,
							.start_ns = 1000 + (uint64_t)nrun },
						 .start_boottime_ns = start_ns,
						 .comm = "x" };
	nrun++;
}

static void add_exit(uint32_t pid)
{
	run[nrun].exit = (struct ct_exit){ .h = { .size = sizeof(struct ct_exit),
						  .kind = CT_EXIT,
						  .pid = pid,
						  .tid = pid,
						  .start_ns = 1000 + (uint64_t)nrun } };
	nrun++;
}

/* Begins are the places in run[]; ends are not in their order, as threads' are not. */
static void add_call(uint32_t pid, uint32_t tid, uint16_t flags)
{
	struct ct_call *c = make_call(&run[nrun].call, "cudaDeviceSynchronize", CT_CALL, flags, 0);

	c->h.pid = pid;
	c->h.tid = tid;
	c->h.start_ns = 1000 + (uint64_t)nrun;
	c->h.end_ns = c->h.start_ns + (uint64_t)(nrun * 7919 % 500);
	nrun++;
}

/* Two processes; one ends, with calls that come after its end, and another one gets its number. */
static void make_run(void)
{
	uint32_t counts[2] = { 0, 0 };

	add_process(100, 7);
	add_process(200, 8);
	for (int i = 0; i < CALLS; i++) {
		int which = i % 3 == 0;

		if (i == CALLS / 2)
			add_exit(200);
		if (i == CALLS / 4 * 3) {
			add_process(200, 9);
			counts[1] = 0;
		}
		if (i % 50 == 17) {
			add_call(100, 100, CT_F_HIDDEN);
			add_call(100, 100, CT_F_PENDING | CT_F_UNFINISHED);
		}
		numbers[nrun] = ++counts[which];
		add_call(which ? 200 : 100, 100 + (uint32_t)(i % 5), 0);
	}
}

/* ---- files ---- */

static int to_writer(void *w, const struct ct_hdr *h)
{
	return writer_record(w, h);
}

/* run[from..to), as the recording sink writes a file; `defs` NULL: the first. */
static void write_part(const char *path, int part, int from, int to, struct numbers *n,
		       struct defs *d)
{
	char head[128];
	struct writer *w;

	snprintf(head, sizeof(head), HEAD "part %d\n", part);
	remove(path);
	CHECK(!writer_open(&w, path, head));
	if (n)
		writer_numbers(w, n);
	CHECK(!defs_write(d, to_writer, w));
	for (int i = from; i < to; i++) {
		if (trace_is_definition(run[i].h.kind))
			CHECK(!defs_record(d, &run[i].h));
		CHECK(!writer_record(w, &run[i].h));
		if (i % 97 == 5)
			CHECK(!writer_flush(w));
	}
	CHECK(!writer_end(w, "reason rotated\n"));
	CHECK(!writer_close(w));
}

/* What a file's calls are numbered, on replay. */
struct seen {
	int calls, wrong;
	uint32_t first[2], last[2];
};

static int numbered(void *ctx, struct event *ev)
{
	struct seen *s = ctx;
	uint64_t at = ev->rec->start_ns - 1000;
	int which = ev->rec->pid == 200;

	if (ev->rec->kind != CT_CALL || ev->rec->flags & (CT_F_HIDDEN | CT_F_PENDING))
		return 0;
	s->calls++;
	s->wrong += at >= (uint64_t)nrun || ev->number != numbers[at];
	if (!s->first[which])
		s->first[which] = ev->number;
	s->last[which] = ev->number;
	return 0;
}

static struct seen replay(const char *path)
{
	struct join_opts stored = { .stored = true };
	struct seen s = { 0 };
	struct join *j = join_open(&stored, numbered, &s);
	const struct ct_hdr *h;
	struct reader *r;

	CHECK(!reader_open(&r, path));
	while (reader_next(r, &h) == 1)
		CHECK(!join_record(j, h));
	CHECK(!join_flush(j, UINT64_MAX));
	join_close(j);
	reader_close(r);
	return s;
}

static void write_parts(bool with)
{
	struct numbers *n = with ? numbers_open() : NULL;
	struct defs *d = defs_open();

	for (int i = 0; i < PARTS; i++)
		write_part(path_of("part", i), i + 1, nrun / PARTS * i,
			   i + 1 == PARTS ? nrun : nrun / PARTS * (i + 1), n, d);
	defs_close(d);
	numbers_close(n);
}

/* Reads some of the parts, in another order than that of the file. */
static struct seen merged(unsigned int which)
{
	static const int order[PARTS] = { 2, 0, 3, 1 };
	struct merge *m = merge_open();
	struct writer *w;
	char *head;

	for (int i = 0; i < PARTS; i++)
		if (which >> order[i] & 1)
			CHECK(!merge_add(m, path_of("part", order[i])));
	head = merge_head(m);
	remove(path_of("all", 0));
	CHECK(!writer_open(&w, path_of("all", 0), head));
	CHECK(!merge_write(m, w, NULL));
	CHECK(!writer_close(w));
	free(head);
	merge_close(m);
	return replay(path_of("all", 0));
}

static void test_files(void)
{
	struct defs *d = defs_open();
	struct numbers *n = numbers_open();
	struct seen s, whole;
	int calls = 0;

	write_part(path_of("whole", 0), 1, 0, nrun, n, d);
	numbers_close(n);
	defs_close(d);
	whole = replay(path_of("whole", 0));
	CHECK(whole.calls == CALLS && !whole.wrong);
	write_parts(true);
	for (int i = 0; i < PARTS; i++) {
		s = replay(path_of("part", i));
		CHECK(s.calls > 0 && !s.wrong);
		calls += s.calls;
	}
	CHECK(calls == CALLS);
	s = merged(15);
	CHECK(s.calls == CALLS && !s.wrong);
	/* the oldest is gone; one in the middle is */
	s = merged(14);
	if (CHECK(s.calls > CALLS / 2)) {
		if (CHECK(s.calls < CALLS)) {
			CHECK(!s.wrong);
			CHECK(s.first[0] > 1);
		}
	}
	s = merged(13);
	if (CHECK(s.calls > CALLS / 2)) {
		if (CHECK(s.calls < CALLS)) {
			CHECK(!s.wrong);
			CHECK_EQ(1, s.first[0]);
		}
	}
	/* an older version's files have no such records */
	write_parts(false);
	CHECK(replay(path_of("part", 2)).first[0] == 1);
}

/* A block is damaged: what is behind it keeps its numbers. */
static void test_damaged(void)
{
	struct defs *d = defs_open();
	struct numbers *n = numbers_open();
	struct seen s;
	FILE *f;

	write_part(path_of("whole", 0), 1, 0, nrun, n, d);
	numbers_close(n);
	defs_close(d);
	f = fopen(path_of("whole", 0), "r+e");
	if (!f || fseek(f, 5000, SEEK_SET) || fputc('x', f) == EOF || fputc('y', f) == EOF ||
	    fclose(f))
		abort();
	s = replay(path_of("whole", 0));
	CHECK(s.calls < CALLS);
	CHECK(s.calls > CALLS / 2);
	CHECK(!s.wrong);
}

/* The flight recorder: only the newest blocks are there. */
static void test_ring(void)
{
	struct ring_buf *r = ring_buf_open(1000, 1 << 20);
	struct writer *w;
	struct seen s;

	for (int i = 0; i < nrun; i++) {
		CHECK(!ring_buf_record(r, &run[i].h));
		if (i % 97 == 5)
			CHECK(!ring_buf_flush(r, run[i].h.start_ns));
	}
	CHECK(!ring_buf_flush(r, run[nrun - 1].h.start_ns));
	remove(path_of("ring", 0));
	CHECK(!writer_open(&w, path_of("ring", 0), HEAD));
	CHECK(!ring_buf_write(r, w));
	CHECK(!writer_end(w, "reason signal\n"));
	CHECK(!writer_close(w));
	ring_buf_close(r);
	s = replay(path_of("ring", 0));
	if (CHECK(s.calls > 500)) {
		if (CHECK(s.calls < CALLS / 2)) {
			CHECK(!s.wrong);
			CHECK(s.first[0] > 1000);
		}
	}
}

/* Another recorder saw the same process: no number comes twice. */
static void test_never_twice(void)
{
	struct join_opts stored = { .stored = true };
	struct seen s = { 0 };
	struct join *j = join_open(&stored, numbered, &s);
	struct ct_number n = { .h = { .size = sizeof(n), .kind = CT_NUMBER, .pid = 100 },
			       .number = 10 };

	CHECK(!join_record(j, &n.h));
	CHECK(!join_record(j, &run[2].h));
	CHECK(s.last[run[2].h.pid == 200]);
	s = (struct seen){ 0 };
	for (int i = 2; i < 12; i++)
		CHECK(!join_record(j, &run[i].h));
	n.number = 3;
	CHECK(!join_record(j, &n.h));
	for (int i = 12; i < 14; i++)
		CHECK(!join_record(j, &run[i].h));
	CHECK(s.first[0] == 11 && s.last[0] == s.first[0] + 7);
	join_close(j);
	/* live, nobody else may say it */
	s = (struct seen){ 0 };
	j = join_open(&(struct join_opts){ 0 }, numbered, &s);
	n.number = 1000;
	CHECK(!join_record(j, &n.h));
	CHECK(!join_record(j, &run[3].h));
	CHECK_EQ(1, s.last[0]);
	join_close(j);
}

static bool call_of(struct numbers *n, uint32_t pid, struct ct_number *out)
{
	struct made_call c = { .c.h = { .size = sizeof(c), .kind = CT_CALL, .pid = pid } };

	return numbers_record(n, &c.c.h, out);
}

/* There are as many processes as there is room for. Then those that have ended make room, and
 * others get no numbers. */
static void test_full(void)
{
	struct ct_exit end = { .h = { .size = sizeof(end), .kind = CT_EXIT, .pid = 7 } };
	struct numbers *n = numbers_open();
	struct ct_number out;

	for (uint32_t pid = 1; pid <= NUMBERS_MAX; pid++)
		CHECK(!call_of(n, pid, &out));
	CHECK(!numbers_record(n, &end.h, &out));
	numbers_begin(n);
	CHECK(call_of(n, 1, &out) && out.number == 1);
	CHECK(!call_of(n, NUMBERS_MAX + 1, &out)); /* in the place of 7 */
	numbers_begin(n);
	CHECK(call_of(n, NUMBERS_MAX + 1, &out) && out.number == 1);
	CHECK(!call_of(n, NUMBERS_MAX + 2, &out)); /* a warning, once */
	numbers_begin(n);
	CHECK(!call_of(n, NUMBERS_MAX + 2, &out));
	CHECK(!call_of(n, 7, &out));
	CHECK(call_of(n, 2, &out) && out.number == 1);
	numbers_close(n);
	numbers_close(NULL);
}

int main(void)
{
	char command[96];

	if (!mkdtemp(dir))
		abort();
	make_run();
	RUN(test_files);
	RUN(test_damaged);
	RUN(test_ring);
	RUN(test_never_twice);
	RUN(test_full);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
	return unit_end();
}
