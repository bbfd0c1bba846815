/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_merge.c - several recordings as one: times on one clock, numbers kept apart, nothing
 * lost; and what the stages and sinks make of a stored trace: the same as of the records
 * themselves.
 */
#include <errno.h>
#include <unistd.h>

#include "../../user/event/muted.h"
#include "../../user/stages/stages.h"
#include "../../user/trace/align.h"
#include "../../user/trace/merge.h"
#include "../../user/trace/reader.h"
#include "../../user/trace/writer.h"
#include "patch_trace.h"
#include "random.h"
#include "unit.h"

static char out_path[64], json_path[64];

/* ---- clocks ---- */

static void clock_at(struct align *a, uint64_t monotonic, uint64_t realtime, uint64_t error)
{
	struct ct_clock c = { .h = { .size = sizeof(c),
				     .kind = CT_CLOCK,
				     .start_ns = monotonic,
				     .end_ns = monotonic },
			      .realtime_ns = realtime,
			      .error_ns = error };

	align_clock(a, &c);
}

static void test_align(void)
{
	static struct align a, b, many, none;
	uint64_t t;

	/* a recording without readings of the clock */
	CHECK_EQ(0, align_offset(&none, 5000));
	CHECK_EQ(5000, align_time(&none, &none, 5000));
	clock_at(&a, 1000, 1000000, 5);
	CHECK_EQ(999000, align_offset(&a, 0));
	CHECK_EQ(999000, align_offset(&a, 999999));
	CHECK_EQ(0, align_drift(&a));
	/* a clock that runs ahead by 100 in 10000 */
	clock_at(&a, 11000, 1010100, 7);
	CHECK_EQ(999050, align_offset(&a, 6000));
	CHECK_EQ(999100, align_offset(&a, 11000));
	CHECK_EQ(999100, align_offset(&a, 1ULL << 60));
	CHECK(align_drift(&a) == 100 && a.error_ns == 7);
	/* one out of order says nothing */
	clock_at(&a, 500, 5, 1);
	CHECK(a.n == 2);
	clock_at(&b, 50, 1000000, 1);
	t = align_time(&b, &a, 50);
	CHECK(t == 1000);
	t = align_time(&a, &b, 1000);
	CHECK(t == 50);
	/* there and back */
	for (uint64_t i = 1000; i < 11000; i += 97) {
		t = align_time(&b, &a, align_time(&a, &b, i));
		CHECK(t + 1 >= i && t <= i + 1);
	}
	for (uint64_t i = 1; i <= 100000; i++)
		clock_at(&many, i * 10, 5000000 + i * 11, 1);
	CHECK(many.n <= ALIGN_CLOCKS && many.n >= ALIGN_CLOCKS / 4);
	t = align_offset(&many, 500000);
	CHECK(t >= 5000000 + 49000 && t <= 5000000 + 51000);
}

/* ---- files ---- */

static int merge_files(const char *const *paths, int n)
{
	struct merge *m = merge_open();
	struct writer *w = NULL;
	char *head = NULL;
	int err = 0;

	remove(out_path);
	for (int i = 0; i < n && !err; i++)
		err = merge_add(m, paths[i]);
	if (!err)
		head = merge_head(m);
	if (!err)
		err = writer_open(&w, out_path, head);
	if (!err)
		err = merge_write(m, w, NULL);
	CHECK(!writer_close(w));
	free(head);
	merge_close(m);
	return err;
}

struct sums {
	uint64_t kinds[CT_KIND_END], all;
	uint64_t first_kernel_ns[2], last_ns;
	uint32_t pids[8], npids, shown[8], gpus;
	bool sorted, stacks_known;
	char host[8][32];
};

static void count(struct sums *s, const char *path)
{
	struct process_table *procs = process_table_open();
	struct stack_table *stacks = stack_table_open();
	uint64_t last_end = 0;
	const struct ct_hdr *h;
	struct reader *r;

	*s = (struct sums){ .sorted = true, .stacks_known = true };
	CHECK(!reader_open(&r, path));
	while (reader_next(r, &h) == 1) {
		s->all++;
		s->kinds[h->kind]++;
		process_table_record(procs, h);
		stack_table_record(stacks, h);
		if (h->kind == CT_DEVICE && !h->pid)
			s->gpus++;
		if (h->kind == CT_KERNEL) {
			uint64_t *first = &s->first_kernel_ns[h->pid > 1 << 22];

			*first = *first ? *first : h->start_ns;
		}
		if (h->kind != CT_CALL)
			continue;
		if (h->flags & CT_F_STACK) {
			const struct stack *k = stack_table_find(stacks, (const struct ct_call *)h);

			s->stacks_known &= k && k->nframes >= 2;
		}
		for (uint32_t i = 0; i <= s->npids && i < 8; i++) {
			const struct process *p = process_table_find(procs, h->pid);

			if (i < s->npids && s->pids[i] == h->pid)
				break;
			if (i < s->npids)
				continue;
			s->pids[i] = h->pid;
			s->shown[i] = p->shown_pid;
			snprintf(s->host[i], sizeof(s->host[i]), "%s",
				 p->info ? p->info->host : "");
			s->npids++;
			break;
		}
		last_end = h->end_ns > last_end ? h->end_ns : last_end;
	}
	s->last_ns = last_end;
	reader_close(r);
	process_table_close(procs);
	stack_table_close(stacks);
}

static void test_hosts(void)
{
	static const char *const paths[] = { "tests/traces/two.ctrace",
					     "tests/traces/other.ctrace" };
	struct sums a, b, m;

	count(&a, paths[0]);
	count(&b, paths[1]);
	CHECK(!merge_files(paths, 2));
	count(&m, out_path);
	for (int k = 0; k < CT_KIND_END; k++) {
		uint64_t want = a.kinds[k] + b.kinds[k];

		/* one clock; for each process a word of its host */
		if (k == CT_CLOCK)
			want = a.kinds[k];
		if (k == CT_PROCESS_INFO)
			want += a.kinds[CT_PROCESS] + b.kinds[CT_PROCESS];
		CHECK(m.kinds[k] == want);
	}
	CHECK_EQ(3, m.npids);
	CHECK(m.stacks_known);
	CHECK_EQ(2, m.gpus);
	for (uint32_t i = 0; i < m.npids; i++) {
		bool other = m.pids[i] == 4001 + (1 << 22);

		CHECK(other || m.pids[i] == 4001 || m.pids[i] == 4002);
		CHECK_TEXT(other ? "node-b" : "node-a", m.host[i]);
		CHECK(m.shown[i] == (m.pids[i] == 4002 ? 102 : 101));
	}
	/* its clock of the day was 2 ms ahead */
	CHECK(m.first_kernel_ns[0] == a.first_kernel_ns[0]);
	CHECK(m.first_kernel_ns[1] == b.first_kernel_ns[0] + 2000000);
}

/* What happened is in the result once, however many of the inputs have it. */
static void once(const char *const *paths, int n, const struct sums *want)
{
	struct sums m;

	CHECK(!merge_files(paths, n));
	count(&m, out_path);
	for (int k = 0; k < CT_KIND_END; k++)
		CHECK(trace_is_definition((uint16_t)k) || m.kinds[k] == want->kinds[k]);
	CHECK(m.npids == want->npids && m.stacks_known);
}

/* A recording of the records of two.ctrace from the one with number `from` on, up to `to`, as a
 * recorder's dump has them: with the definitions before. */
static void dump(const char *path, const char *part, uint64_t from, uint64_t to)
{
	const struct ct_hdr *h;
	struct writer *w;
	struct reader *r;
	uint64_t at = 0;
	char head[4096];

	remove(path);
	CHECK(!reader_open(&r, "tests/traces/two.ctrace"));
	snprintf(head, sizeof(head), "%s", reader_head(r));
	snprintf(strstr(head, "part "), 16, "part %s\n", part);
	CHECK(!writer_open(&w, path, head));
	while (reader_next(r, &h) == 1) {
		bool happened = !trace_is_definition(h->kind);

		at += happened;
		if (!happened || (at > from && at <= to))
			CHECK(!writer_record(w, h));
	}
	reader_close(r);
	CHECK(!writer_end(w, "reason finished\n") && !writer_close(w));
}

static void test_same_records(void)
{
	static const char two[] = "tests/traces/two.ctrace", other[] = "tests/traces/other.ctrace";
	char first[80], second[80], merged[80];
	struct sums a, b;

	snprintf(first, sizeof(first), "%s.1", out_path);
	snprintf(second, sizeof(second), "%s.2", out_path);
	snprintf(merged, sizeof(merged), "%s.m", out_path);
	count(&a, two);
	count(&b, other);
	/* a file with itself */
	once((const char *const[]){ two, two }, 2, &a);
	once((const char *const[]){ two, two, two }, 3, &a);
	/* dumps of a recorder that overlap, in any order, and one of them twice */
	dump(first, "1", 0, 70);
	dump(second, "2", 40, UINT64_MAX);
	once((const char *const[]){ first, second }, 2, &a);
	once((const char *const[]){ second, first }, 2, &a);
	once((const char *const[]){ second, first, second }, 3, &a);
	/* the same from recorders that say nothing of parts */
	dump(second, "0", 40, UINT64_MAX);
	once((const char *const[]){ first, second }, 2, &a);
	/* what was merged already, with a part of it */
	CHECK(!merge_files((const char *const[]){ first, two }, 2) && !rename(out_path, merged));
	once((const char *const[]){ merged, second }, 2, &a);
	/* another host's are others, though they were at the same moment */
	CHECK(!merge_files((const char *const[]){ two, other, two, other }, 4));
	for (int k = 0; k < CT_KIND_END; k++)
		a.kinds[k] += b.kinds[k];
	count(&b, out_path);
	CHECK(b.kinds[CT_CALL] == a.kinds[CT_CALL] && b.kinds[CT_KERNEL] == a.kinds[CT_KERNEL]);
	unlink(first);
	unlink(second);
	unlink(merged);
}

/* Adds up what a file says of calls without records; the pids that it is said of, added up too. */
static struct muted_sum muted_of(const char *path, unsigned int *records, uint64_t *pids)
{
	struct muted_sum sum = { 0 };
	const struct ct_hdr *h;
	struct reader_stats s;
	struct reader *r;

	*records = 0;
	*pids = 0;
	CHECK(!reader_open(&r, path));
	while (reader_next(r, &h) == 1) {
		if (h->kind != CT_MUTED)
			continue;
		muted_add(&sum, (const struct ct_muted *)h);
		CHECK(muted_func((const struct ct_muted *)h) >= 0);
		++*records;
		*pids += h->pid;
	}
	reader_stats(r, &s);
	CHECK(!s.damaged && !s.malformed);
	reader_close(r);
	return sum;
}

/* Calls that were counted and not recorded: of a file that is given twice once, of two hosts
 * both, each with its own process. */
static void test_muted(void)
{
	static const char muted[] = "tests/traces/muted.ctrace";
	unsigned int records, n;
	uint64_t pids, sum_pids;
	struct muted_sum want = muted_of(muted, &records, &pids), got;
	const struct ct_hdr *h;
	struct reader *r;
	struct writer *w;

	CHECK(records == 4 && pids == 3 * 4001 + 4002);
	CHECK_EQ(5790, want.counted);
	CHECK_EQ(240300, want.unseen.calls);
	CHECK_EQ(4020, want.unseen.below);
	CHECK_EQ(903100, want.unseen.above);
	CHECK(!merge_files((const char *const[]){ muted, muted }, 2));
	got = muted_of(out_path, &n, &sum_pids);
	CHECK_EQ(4, n);
	CHECK_EQ(pids, sum_pids);
	CHECK(!memcmp(&got, &want, sizeof(got)));
	/* the same records on another host */
	CHECK(!reader_open(&r, muted));
	CHECK(!writer_open(&w, json_path,
			   "format 1\nhost node-z\nboot_id z\nstart_ns "
			   "1000000000000\nrealtime_offset_ns 1699999000000000000\n"));
	while (reader_next(r, &h) == 1)
		CHECK(!writer_record(w, h));
	CHECK(!writer_end(w, "reason finished\n") && !writer_close(w));
	reader_close(r);
	CHECK(!merge_files((const char *const[]){ muted, json_path }, 2));
	got = muted_of(out_path, &n, &sum_pids);
	CHECK(n == 8 && sum_pids == 2 * pids + 4 * (1ULL << 22));
	CHECK_EQ(2 * want.counted, got.counted);
	CHECK_EQ(2 * want.unseen.calls, got.unseen.calls);
	CHECK_EQ(2 * want.unseen.above, got.unseen.above);
	CHECK(got.failed == 2 * want.failed && got.ns == 2 * want.ns);
	unlink(json_path);
	unlink(out_path);
}

static void test_not_possible(void)
{
	static const char *const none[] = { "tests/traces/two.ctrace", "tests/traces/README.md" };
	struct writer *w;

	CHECK(merge_files(none, 2) == -EBADMSG);
	/* of another host, cut off before it said what time it was */
	remove(json_path);
	CHECK(!writer_open(&w, json_path, "format 1\nhost node-c\nboot_id c\n") &&
	      !writer_close(w));
	CHECK(merge_files((const char *const[]){ none[0], json_path }, 2) == -ENOTSUP);
}

/* ---- replay ---- */

struct run {
	struct stages stages;
	struct filter filter;
	struct sink sink;
	struct sink_opts opts;
	struct out out;
	uint64_t shown[CT_MAX_FUNCS / 64];
};

static void run_open(struct run *r, const struct sink_ops *ops, const char *path,
		     const struct sink_file *file)
{
	static const struct resolve_opts none;

	memset(r, 0, sizeof(*r));
	memset(r->shown, 0xff, sizeof(r->shown));
	r->filter = (struct filter){ .shown = r->shown,
				     .nested = true,
				     .foreign = true,
				     .definitions = file,
				     .stores = file };
	r->sink.ops = ops;
	CHECK(!stages_open(&r->stages, &none, false, &r->filter, &r->sink, 0));
	if (path)
		CHECK(!out_open(&r->out, path, false));
	r->opts =
		(struct sink_opts){ .out = path ? &r->out : NULL, .file = file, .version = "test" };
	CHECK(!ops->open(&r->sink, &r->opts));
	r->stages.nsinks = 1;
}

static void run_close(struct run *r)
{
	static const struct sink_end end = { .reason = "finished" };

	CHECK(!stages_flush(&r->stages, UINT64_MAX));
	CHECK(!r->sink.ops->close(&r->sink, &end));
	out_close(&r->out);
	stages_close(&r->stages);
}

static char *json_of(const char *path)
{
	const struct ct_hdr *h;
	struct reader *r;
	struct run run;

	run_open(&run, &sink_json, json_path, NULL);
	CHECK(!reader_open(&r, path));
	while (reader_next(r, &h) == 1)
		CHECK(!stages_record(&run.stages, h));
	reader_close(r);
	run_close(&run);
	return unit_read(json_path);
}

/* Stored once more by the recording sink, behind the stages, a trace prints byte by byte as it
 * does itself. */
static void test_stored_again(void)
{
	static const char *const paths[] = { "tests/traces/two.ctrace", "tests/traces/other.ctrace",
					     "tests/traces/calls.ctrace",
					     "tests/traces/newer.ctrace" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct sink_file file = { .path = out_path, .head = "format 1\n" };
		const struct ct_hdr *h;
		char *before, *after;
		struct reader *r;
		struct run run;

		remove(out_path);
		before = json_of(paths[i]);
		run_open(&run, &sink_trace, NULL, &file);
		CHECK(!reader_open(&r, paths[i]));
		while (reader_next(r, &h) == 1)
			CHECK(!stages_record(&run.stages, h));
		reader_close(r);
		run_close(&run);
		after = json_of(out_path);
		if (CHECK(before)) {
			if (CHECK(after)) {
				CHECK(strlen(before) > 1000);
				CHECK_TEXT(after, before);
			}
		}
		free(before);
		free(after);
	}
}

/* ---- hostile ---- */

static uint64_t seed = RANDOM_SEED;
static uint64_t rnd(void)
{
	return random_next(&seed);
}

static void through(const struct sink_ops *ops, const char *path)
{
	const struct ct_hdr *h;
	struct reader *r;
	struct run run;

	run_open(&run, ops, "/dev/null", NULL);
	if (!reader_open(&r, path)) {
		while (reader_next(r, &h) == 1)
			CHECK(!stages_record(&run.stages, h));
		reader_close(r);
	}
	run_close(&run);
}

/* A file whose sums are right and whose records are rubbish goes through the stages, the table,
 * JSON and merge. */
static void test_hostile(void)
{
	static char in[1 << 16], body[4 << 20];
	size_t len, at = TRACE_MAGIC_LEN;
	struct trace_block b;
	FILE *f = fopen("tests/traces/two.ctrace", "re");
	int found = 0, err;

	len = f ? fread(in, 1, sizeof(in), f) : 0;
	CHECK(len > 1000);
	if (CHECK(f))
		CHECK(!fclose(f));
	memcpy(&b, in + at, sizeof(b));
	at += sizeof(b) + b.len;
	memcpy(&b, in + at, sizeof(b));
	b.len = (uint32_t)patch_body(in + at + sizeof(b), body, "none", "none", 0, &found);
	for (int i = 0; i < 1500; i++) {
		char saved[4];
		size_t where[4];

		for (int k = 0; k < 4; k++) {
			where[k] = rnd() % b.len;
			saved[k] = body[where[k]];
			body[where[k]] = (char)rnd();
		}
		b.body_crc = (uint32_t)crc32(0, (const void *)body, b.len);
		b.head_crc = (uint32_t)crc32(0, (const void *)&b,
					     offsetof(struct trace_block, head_crc));
		f = fopen(json_path, "we");
		if (!f || fwrite(in, 1, at, f) != at || fwrite(&b, sizeof(b), 1, f) != 1 ||
		    fwrite(body, 1, b.len, f) != b.len || fclose(f))
			abort();
		through(&sink_json, json_path);
		through(&sink_table, json_path);
		err = merge_files((const char *const[]){ json_path, "tests/traces/other.ctrace",
							 json_path },
				  3);
		CHECK(!err || err == -ENOTSUP); /* its clocks are gone */
		for (int k = 4; k-- > 0;)
			body[where[k]] = saved[k];
	}
}

int main(void)
{
	snprintf(out_path, sizeof(out_path), "/tmp/ct_test_merge.%d", (int)getpid());
	snprintf(json_path, sizeof(json_path), "/tmp/ct_test_merge.%d.json", (int)getpid());
	RUN(test_align);
	RUN(test_hosts);
	RUN(test_same_records);
	RUN(test_muted);
	RUN(test_not_possible);
	RUN(test_stored_again);
	RUN(test_hostile);
	unlink(out_path);
	unlink(json_path);
	return unit_end();
}
