/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trace.c - recordings: what is written is read back byte by byte, for records of all
 * kinds; a file that is cut at any byte or damaged gives the records that are whole and says
 * that others are missing; a file made to harm does none; functions of another version keep
 * their names; definitions are there again in the next file and in the flight recorder's.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/trace/defs.h"
#include "../../user/trace/encode.h"
#include "../../user/trace/reader.h"
#include "../../user/trace/flight.h"
#include "../../user/trace/writer.h"
#include "patch_trace.h"
#include "make_call.h"
#include "random.h"
#include "unit.h"

static char path[64];

static uint64_t seed = RANDOM_SEED;
static uint64_t rnd(void)
{
	return random_next(&seed);
}

static uint64_t below(uint64_t n)
{
	return rnd() % n;
}

/* ---- records ---- */

struct list {
	char *bytes;
	size_t len, cap, n;
};

static void add(struct list *l, const struct ct_hdr *h)
{
	if (l->cap - l->len < h->size) {
		l->cap = (l->cap + h->size) * 2;
		l->bytes = realloc(l->bytes, l->cap);
		if (!l->bytes)
			abort();
	}
	memcpy(l->bytes + l->len, h, h->size);
	((struct ct_hdr *)(l->bytes + l->len))->lost = 0; /* the session has made a CT_LOST of it */
	l->len += h->size;
	l->n++;
}

static void drop(struct list *l)
{
	free(l->bytes);
	*l = (struct list){ 0 };
}

union record {
	struct ct_hdr h;
	struct ct_call call;
	struct ct_work work;
	struct ct_name name;
	struct ct_frame frame;
	struct ct_stack stack;
	struct ct_marker marker;
	struct ct_scope scope;
	struct ct_metric metric;
	struct ct_counter counter;
	struct ct_event event;
	struct ct_device device;
	struct ct_process process;
	struct ct_process_info info;
	struct ct_foreign foreign;
	uint64_t words[8192];
};

static uint64_t clock_ns = 1000000000000;

/* Mostly like in life, sometimes like nothing. */
static uint64_t any_word(void)
{
	switch (below(5)) {
	case 0: return 0;
	case 1: return below(1000);
	case 2: return 0x7f0000000000 + below(1 << 20) * 256;
	case 3: return (uint64_t)-1 - below(3);
	default: return rnd();
	}
}

static void head(union record *r, uint16_t kind, size_t size)
{
	static uint32_t tids[] = { 100, 101, 102, 7777, 4194303 };

	for (size_t i = 0; i < size / 8 + 1; i++)
		r->words[i] = any_word();
	clock_ns += below(100) ? below(5000) : rnd() >> 20;
	r->h = (struct ct_hdr){
		.size = (uint16_t)size,
		.kind = kind,
		.flags = (uint16_t)(below(10) ? 0 : CT_F_UNFINISHED | CT_F_NO_RETURN),
		.lost = (uint16_t)(below(50) ? 0 : below(100)),
		.pid = 100 + (uint32_t)below(2),
		.tid = tids[below(5)],
		.start_ns = below(200) ? clock_ns : rnd(),
	};
	r->h.end_ns = r->h.start_ns + (below(50) ? below(100000) : rnd() >> 1);
	if (r->h.end_ns < r->h.start_ns)
		r->h.end_ns = r->h.start_ns;
}

static void random_call(union record *r)
{
	unsigned int func = (unsigned int)below((uint64_t)api_nfuncs);
	size_t at = sizeof(struct ct_call);
	struct ct_spec spec;

	memset(&spec, 0, sizeof(spec));
	if (api_spec((int)func, API_ARCH_HERE, true, &spec))
		spec.nwords = spec.nreads = 0;
	head(r, below(5) ? CT_CALL : CT_ENTER, sizeof(struct ct_call) + CT_DATA_MAX);
	r->call.func = (uint16_t)func;
	r->call.nwords = spec.nwords;
	r->call.depth = (uint8_t)below(3);
	r->call.got = 0;
	at += spec.nwords * 8u;
	for (int i = 0; i < spec.nreads; i++) {
		uint64_t n = spec.reads[i].kind == CT_READ_BYTES ? spec.reads[i].len
								 : below(spec.reads[i].len + 1u);
		size_t all = (n + (spec.reads[i].kind == CT_READ_BYTES ? 0 : 8) + 7) & ~7ULL;

		if (!below(3) || at + all > sizeof(struct ct_call) + CT_DATA_MAX)
			continue;
		if (spec.reads[i].kind != CT_READ_BYTES)
			memcpy((char *)r + at, &n, sizeof(n));
		at += all;
		r->call.got |= 1u << i;
	}
	if (!below(4)) {
		r->h.flags |= CT_F_STACK;
		r->words[at / 8] = 1 + below(1000);
		at += 8;
	}
	r->h.size = (uint16_t)at;
}

static void random_device(union record *r)
{
	static const struct {
		uint16_t kind, size;
	} kinds[] = {
		{ CT_KERNEL, sizeof(struct ct_kernel) },
		{ CT_KERNEL, sizeof(struct ct_kernel) },
		{ CT_COPY, sizeof(struct ct_copy) },
		{ CT_SET, sizeof(struct ct_set) },
		{ CT_SYNC, sizeof(struct ct_sync) },
		{ CT_GRAPH, sizeof(struct ct_work) },
		{ CT_MEMORY, sizeof(struct ct_memory) },
		{ CT_MANAGED, sizeof(struct ct_managed) },
		{ CT_OVERHEAD, sizeof(struct ct_overhead) },
	};
	size_t k = below(ARRAY_LEN(kinds));

	/* a later version's may be longer */
	head(r, kinds[k].kind, kinds[k].size + 8 * (below(20) ? 0 : below(60)));
	if (r->h.kind != CT_OVERHEAD)
		r->work.func = (uint16_t)(below(3) ? below((uint64_t)api_nfuncs) : CT_NO_FUNC);
}

/* Also such whose lengths say more than the record has, as the head of a later version's may. */
static void random_scope(union record *r)
{
	static const uint8_t kinds[] = { CT_SCOPE_RANGE, CT_SCOPE_MARK, CT_SCOPE_COLLECTIVE };
	uint16_t n = (uint16_t)below(40);

	head(r, below(2) ? CT_SCOPE_BEGIN : CT_SCOPE_END,
	     sizeof(r->scope) + sizeof(struct ct_collective) + 8 * (below(50) ? 20 : 100));
	r->scope.kind = kinds[below(ARRAY_LEN(kinds))];
	r->scope.depth = (uint8_t)below(5);
	r->scope.text_len = r->scope.category_len = r->scope.layer_len = n;
	r->scope.domain_len = r->scope.fields_len = (uint16_t)(n / 3);
}

static void random_other(union record *r)
{
	static const uint16_t kinds[] = { CT_NAME,	   CT_FRAME,   CT_STACK,    CT_MARKER,
					  CT_METRIC,	   CT_COUNTER, CT_EVENT,    CT_DEVICE,
					  CT_CONTEXT,	   CT_STREAM,  CT_CLOCK,    CT_PROCESS,
					  CT_EXEC,	   CT_FORK,    CT_EXIT,	    CT_LOST,
					  CT_PROCESS_INFO, CT_FOREIGN, CT_KIND_END, 999 };
	uint16_t kind = kinds[below(ARRAY_LEN(kinds))];
	uint16_t n = (uint16_t)below(200);

	head(r, kind, 1024 + 8 * (below(100) ? below(10) : below(7000)));
	switch (kind) {
	case CT_NAME: r->name.len = n; break;
	case CT_FRAME: r->frame.function_len = r->frame.file_len = r->frame.object_len = n; break;
	case CT_STACK: r->stack.nframes = n; break;
	case CT_MARKER: r->marker.text_len = r->marker.domain_len = n; break;
	case CT_METRIC: r->metric.name_len = r->metric.unit_len = n; break;
	case CT_COUNTER:
		r->h.size = below(2) ? 40 + 16 * 3 : r->h.size;
		r->counter.n = 3;
		break;
	case CT_EVENT: r->event.text_len = n; break;
	case CT_DEVICE: r->device.name_len = n; break;
	case CT_PROCESS:
	case CT_EXEC: r->process.comm[CT_COMM_LEN - 1] = '\0'; break;
	case CT_PROCESS_INFO:
		r->info.exe_len = r->info.cmdline_len = r->info.container_len = r->info.pod_len =
			r->info.host_len = r->info.boot_len = n / 2;
		break;
	case CT_FOREIGN:
		r->foreign.kind = CT_CALL;
		r->foreign.nwords = (uint8_t)below(CT_MAX_WORDS + 1);
		break;
	}
}

static void random_records(struct list *l, size_t n)
{
	static union record r;

	while (l->n < n) {
		uint64_t what = below(10);

		if (what < 5)
			random_call(&r);
		else if (what < 8)
			random_device(&r);
		else if (what < 9)
			random_scope(&r);
		else
			random_other(&r);
		if (record_check(&r, sizeof(r)))
			continue;
		/* runs of the same, as loops make them */
		for (uint64_t i = below(4) ? 1 : below(50); i-- && l->n < n;) {
			add(l, &r.h);
			r.h.start_ns += below(2000);
			r.h.end_ns = r.h.start_ns + below(3000);
		}
	}
}

/* ---- files ---- */

static void write_list(const struct list *l, const char *end)
{
	struct writer *w;

	remove(path);
	CHECK(!writer_open(&w, path, "format 1\nhost unit\nstart_ns 5\n"));
	for (size_t at = 0; at < l->len;) {
		const struct ct_hdr *h = (const struct ct_hdr *)(l->bytes + at);

		CHECK(!writer_record(w, h));
		at += h->size;
		if (!below(500))
			CHECK(!writer_flush(w));
	}
	CHECK(!(end ? writer_end(w, end) : writer_flush(w)));
	CHECK(!writer_close(w));
}

static int read_list(struct list *l, struct reader_stats *stats)
{
	const struct ct_hdr *rec;
	struct reader *r;
	int err = reader_open(&r, path), n;

	memset(stats, 0, sizeof(*stats));
	if (err)
		return err;
	while ((n = reader_next(r, &rec)) == 1)
		add(l, rec);
	reader_stats(r, stats);
	reader_close(r);
	return n;
}

static void same(const struct list *a, const struct list *b)
{
	size_t at = 0;

	CHECK(a->n == b->n);
	CHECK(a->len == b->len && (!a->len || !memcmp(a->bytes, b->bytes, a->len)));
	while (a->len == b->len && at < a->len) {
		const struct ct_hdr *h = (const struct ct_hdr *)(a->bytes + at);

		if (memcmp(a->bytes + at, b->bytes + at, h->size)) {
			printf("  first difference: kind %u size %u at %zu\n", h->kind, h->size,
			       at);
			return;
		}
		at += h->size;
	}
}

static void test_round_trip(void)
{
	static const size_t sizes[] = { 0, 1, 10, 1000, 60000 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct list in = { 0 }, out = { 0 };
		struct reader_stats stats;

		random_records(&in, sizes[i]);
		write_list(&in, "reason finished\n");
		CHECK(!read_list(&out, &stats));
		same(&in, &out);
		CHECK(stats.ended);
		CHECK(stats.indexed);
		CHECK(!stats.damaged);
		CHECK_EQ(0, stats.cut_bytes);
		CHECK(!stats.malformed);
		CHECK(stats.records == sizes[i]);
		drop(&in);
		drop(&out);
	}
}

static char *read_file(const char *name, size_t *len)
{
	FILE *f = fopen(name, "re");
	char *bytes = malloc(1 << 22);

	*len = f && bytes ? fread(bytes, 1, 1 << 22, f) : 0;
	if (f)
		fclose(f);
	return bytes;
}

static void write_file(const char *bytes, size_t len)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f))
		abort();
}

/* Checks that `part` is a part of `all`, in order, with nothing that is not in `all` except the
 * reader's own CT_LOST records. Returns how many records of `part` these are, or -1. */
static long part_of(const struct list *part, const struct list *all)
{
	size_t at = 0;
	long n = 0;

	for (size_t p = 0; p < part->len;) {
		const struct ct_hdr *h = (const struct ct_hdr *)(part->bytes + p);

		p += h->size;
		if (h->kind == CT_LOST && ((const struct ct_lost *)h)->cause == CT_LOSS_FILE)
			continue;
		for (;; at += ((const struct ct_hdr *)(all->bytes + at))->size) {
			if (at >= all->len)
				return -1;
			if (((const struct ct_hdr *)(all->bytes + at))->size == h->size &&
			    !memcmp(all->bytes + at, h, h->size))
				break;
		}
		at += h->size;
		n++;
	}
	return n;
}

/* Records in many small blocks. */
static char *small_file(struct list *all, size_t *len)
{
	struct reader_stats stats;
	struct writer *w;

	random_records(all, 120);
	remove(path);
	CHECK(!writer_open(&w, path, "format 1\nhost unit\nstart_ns 5\n"));
	for (size_t at = 0, n = 0; at < all->len; n++) {
		const struct ct_hdr *h = (const struct ct_hdr *)(all->bytes + at);

		CHECK(!writer_record(w, h));
		at += h->size;
		if (n % 10 == 9)
			CHECK(!writer_flush(w));
	}
	CHECK(!writer_end(w, "reason finished\n"));
	CHECK(!writer_close(w));
	drop(all);
	CHECK(!read_list(all, &stats));
	return read_file(path, len);
}

static void test_cut(void)
{
	struct list all = { 0 };
	size_t len, whole = 0;
	char *bytes = small_file(&all, &len);

	for (size_t n = 0; n < len; n++) {
		struct list got = { 0 };
		struct reader_stats s;
		int err;
		long found;

		write_file(bytes, n);
		err = read_list(&got, &s);
		found = part_of(&got, &all);
		if (err) {
			CHECK(err == -ENODATA && !got.n);
		} else {
			/* as many as before, or those of one block more: never fewer */
			CHECK(found == (long)got.n && got.n >= whole);
			CHECK(!s.damaged);
			CHECK(!s.malformed);
			CHECK(!s.lost_records);
			CHECK(s.cut_bytes || !s.ended || got.n == all.n);
			whole = got.n;
		}
		drop(&got);
	}
	CHECK(whole == all.n);
	free(bytes);
	drop(&all);
}

static void test_flips(void)
{
	struct list all = { 0 };
	size_t len;
	char *bytes = small_file(&all, &len);
	int opened = 0;

	for (int i = 0; i < 6000; i++) {
		struct list got = { 0 };
		struct reader_stats s;
		size_t at = below(len);
		char was = bytes[at];
		long found;

		bytes[at] = (char)(bytes[at] ^ 1 << below(8));
		write_file(bytes, len);
		if (read_list(&got, &s)) {
			CHECK(at < TRACE_MAGIC_LEN);
		} else {
			opened++;
			found = part_of(&got, &all);
			CHECK(found >= 0);
			/* whatever is missing was said */
			CHECK(found == (long)all.n || s.lost_records || s.cut_bytes);
			CHECK(found >= (long)all.n - 10);
		}
		bytes[at] = was;
		drop(&got);
	}
	CHECK(opened > 5500);
	free(bytes);
	drop(&all);
}

/* Columns of rubbish under sums that are right. */
static void test_hostile(void)
{
	struct list all = { 0 };
	size_t len, at = TRACE_MAGIC_LEN;
	char *bytes = small_file(&all, &len), *body = malloc(4 << 20);
	struct trace_block b;
	int found = 0, read = 0;

	if (!body)
		abort();
	memcpy(&b, bytes + at, sizeof(b));
	at += sizeof(b) + b.len;
	memcpy(&b, bytes + at, sizeof(b));
	CHECK(b.type == TRACE_DATA);
	b.len = (uint32_t)patch_body(bytes + at + sizeof(b), body, "none", "none", 0, &found);
	for (int i = 0; i < 8000; i++) {
		struct list got = { 0 };
		struct reader_stats s;
		char saved[8];
		size_t where[8];
		FILE *f;

		for (int k = 0; k < 8; k++) {
			where[k] = below(b.len);
			saved[k] = body[where[k]];
			if (k <= (int)below(8))
				body[where[k]] =
					(char)(below(2) ? rnd()
							: (uint64_t)(unsigned char)saved[k] ^
								  1u << below(8));
		}
		b.body_crc = (uint32_t)crc32(0, (const void *)body, b.len);
		b.head_crc = (uint32_t)crc32(0, (const void *)&b,
					     offsetof(struct trace_block, head_crc));
		f = fopen(path, "we");
		if (!f || fwrite(bytes, 1, at, f) != at || fwrite(&b, sizeof(b), 1, f) != 1 ||
		    fwrite(body, 1, b.len, f) != b.len || fclose(f))
			abort();
		CHECK(!read_list(&got, &s));
		read += got.n != 0;
		for (int k = 8; k-- > 0;)
			body[where[k]] = saved[k];
		drop(&got);
	}
	CHECK(read > 300);
	free(body);
	free(bytes);
	drop(&all);
}

/* ---- other versions ---- */

static void test_versions(void)
{
	int unknown = 0, changed = 0, known = 0, n;
	const struct ct_hdr *rec;
	struct reader *r;

	CHECK(!reader_open(&r, "tests/traces/newer.ctrace"));
	while ((n = reader_next(r, &rec)) == 1) {
		const struct ct_foreign *f = (const struct ct_foreign *)rec;

		if (rec->kind == CT_CALL)
			known++;
		if (rec->kind != CT_FOREIGN)
			continue;
		if (CHECK_EQ(CT_CALL, f->kind)) {
			if (CHECK(f->nwords >= 1)) {
				CHECK_EQ(0x7f81dc800000, f->words[0]);
				CHECK(!f->ret);
			}
		}
		if (f->why == CT_FOREIGN_UNKNOWN) {
			unknown++;
			CHECK(f->name_len == 13 &&
			      !memcmp(&f->words[f->nwords], "cuMemsetD8_v9driver", 19));
		} else {
			changed++;
			CHECK(f->name_len == 8 &&
			      !memcmp(&f->words[f->nwords], "cudaFreeruntime", 15));
		}
	}
	CHECK(!n);
	CHECK_EQ(3, unknown);
	CHECK_EQ(3, changed);
	CHECK_EQ(6, known);
	reader_close(r);
}

/* A row that has moved: the file was written where the function stood in another place of the
 * table. What is found is the function of that name, wherever it stands now. */
static void test_moved(void)
{
	struct list in = { 0 }, out = { 0 };
	struct reader_stats s;
	struct made_call made;
	int moved = 0;

	for (int a = 0; a < api_nfuncs && moved < 20; a++) {
		for (int b = a + 1; b < api_nfuncs; b++) {
			struct ct_call *c;

			if (api_funcs[a].domain != api_funcs[b].domain ||
			    api_funcs[a].class != api_funcs[b].class ||
			    strlen(api_funcs[a].name) != strlen(api_funcs[b].name) ||
			    api_funcs[a].since != api_funcs[b].since ||
			    api_next(api_funcs[b].name, b) >= 0 ||
			    api_next(api_funcs[b].name, -1) != b ||
			    funcs_layout(a) != funcs_layout(b))
				continue;
			c = make_call(&made, api_funcs[a].name, CT_CALL, 0, 0, U(1), U(2), U(3),
				      U(4), U(5), U(6), U(7), U(8), U(9), U(10), U(11), U(12));
			if (!c || c->func != a)
				break;
			drop(&in);
			drop(&out);
			add(&in, &c->h);
			write_list(&in, NULL);
			CHECK(patch_trace(path, api_funcs[a].name, api_funcs[b].name, 0) == 1);
			CHECK(!read_list(&out, &s));
			CHECK_EQ(1, out.n);
			CHECK(!s.malformed);
			c->func = (uint16_t)b;
			CHECK(out.len == c->h.size && !memcmp(out.bytes, c, out.len));
			moved++;
			break;
		}
	}
	CHECK(moved >= 10);
	drop(&in);
	drop(&out);
}

/* What the first versions wrote is read by all later ones. */
static void test_stored(void)
{
	static const struct {
		const char *name;
		unsigned int calls, kernels, others;
		bool ended;
	} files[] = {
		{ "two", 36, 20, 77, true },
		{ "other", 16, 10, 34, true },
		{ "calls", 12, 0, 3, true },
		{ "killed", 12, 0, 3, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		unsigned int calls = 0, kernels = 0, others = 0;
		const struct ct_hdr *rec;
		struct reader_stats s;
		struct reader *r;
		char name[64];

		snprintf(name, sizeof(name), "tests/traces/%s.ctrace", files[i].name);
		CHECK(!reader_open(&r, name));
		while (reader_next(r, &rec) == 1) {
			calls += rec->kind == CT_CALL;
			kernels += rec->kind == CT_KERNEL;
			others += rec->kind != CT_CALL && rec->kind != CT_KERNEL;
		}
		reader_stats(r, &s);
		CHECK(calls == files[i].calls && kernels == files[i].kernels);
		if (others != files[i].others)
			printf("  %s: %u others\n", files[i].name, others);
		CHECK(others == files[i].others);
		CHECK_EQ(files[i].ended, s.ended);
		CHECK(!s.damaged);
		CHECK_EQ(0, s.cut_bytes);
		CHECK(!s.malformed);
		reader_close(r);
	}
}

static void test_no_recording(void)
{
	struct reader *r;

	CHECK(reader_open(&r, "/proc/nonexistent") == -ENOENT);
	CHECK(reader_open(&r, "/tmp") == -EISDIR);
	CHECK(reader_open(&r, "/dev/null") == -ESPIPE);
	write_file("", 0);
	CHECK(reader_open(&r, path) == -ENODATA);
	write_file("\x89"
		   "CTRACE\n",
		   8);
	CHECK(reader_open(&r, path) == -ENODATA);
	write_file(
		"a text that is longer than the head of a block, which is 56 bytes, and its magic",
		80);
	CHECK(reader_open(&r, path) == -EBADMSG);
}

/* To read a time in the middle of the recording, only its blocks and those with definitions are
 * read. */
static void test_range(void)
{
	struct ct_call c = { .h = { .size = sizeof(c), .kind = CT_ENTER, .pid = 1, .tid = 1 } };
	const struct ct_hdr *rec;
	struct reader_stats s;
	struct writer *w;
	struct reader *r;
	uint64_t n = 0;

	for (c.func = 0; api_funcs[c.func].nargs; c.func++)
		;
	c.h.size += 8 * MAKE_REGS;
	remove(path);
	CHECK(!writer_open(&w, path, "format 1\n"));
	for (int i = 0; i < 100; i++) {
		static union record room;

		c.h.start_ns = c.h.end_ns = 1000 + (uint64_t)i;
		memcpy(&room, &c, sizeof(c));
		room.call.nwords = MAKE_REGS;
		CHECK(!writer_record(w, &room.h));
		if (i % 10 == 9)
			CHECK(!writer_flush(w));
	}
	CHECK(!writer_end(w, "reason finished\n") && !writer_close(w));
	/* with its index, with one that is damaged, and without: the same */
	for (int how = 0; how < 3; how++) {
		static const size_t back[] = { 0, 100, 0 };
		size_t len;
		char *bytes = read_file(path, &len);

		bytes[len - 1 - back[how]] ^= how == 1;
		write_file(bytes, how == 2 ? len - 1 : len);
		free(bytes);
		CHECK(!reader_open(&r, path));
		reader_range(r, 1042, 1055);
		n = 0;
		while (reader_next(r, &rec) == 1)
			n += rec->start_ns >= 1040 && rec->start_ns < 1060;
		reader_stats(r, &s);
		CHECK_EQ(20, n);
		CHECK_EQ(20, s.records);
		CHECK_EQ(10, s.blocks);
		CHECK(!s.lost_records);
		CHECK(s.ended);
		CHECK_EQ(!how, s.indexed);
		reader_close(r);
	}
}

/* ---- beginning anew ---- */

static int to_list(void *ctx, const struct ct_hdr *h)
{
	add(ctx, h);
	return 0;
}

static size_t count(const struct list *l, uint16_t kind)
{
	size_t n = 0;

	for (size_t at = 0; at < l->len; at += ((const struct ct_hdr *)(l->bytes + at))->size)
		n += ((const struct ct_hdr *)(l->bytes + at))->kind == kind;
	return n;
}

static struct ct_process process_of(uint32_t pid, uint64_t boot)
{
	return (struct ct_process){
		.h = { .size = sizeof(struct ct_process), .kind = CT_PROCESS, .pid = pid },
		.start_boottime_ns = boot
	};
}

static void name_of(union record *r, uint32_t pid, uint64_t handle, uint32_t len)
{
	head(r, CT_NAME, 256);
	r->h.pid = pid;
	r->name.handle = handle;
	r->name.len = len;
}

static void test_definitions(void)
{
	struct ct_exit e = { .h = { .size = sizeof(e), .kind = CT_EXIT, .pid = 2 } };
	struct ct_process p = process_of(1, 10), q = process_of(2, 20);
	struct defs *d = defs_open();
	static union record r;
	struct list l = { 0 };

	CHECK(!defs_record(d, &p.h) && !defs_record(d, &q.h));
	for (uint64_t i = 0; i < 5000; i++) {
		name_of(&r, 1 + i % 2, i / 2, 8);
		CHECK(!defs_record(d, &r.h));
	}
	name_of(&r, 1, 7, 0);
	CHECK(!defs_record(d, &r.h)); /* unloaded */
	CHECK(!defs_write(d, to_list, &l));
	CHECK(count(&l, CT_PROCESS) == 2 && count(&l, CT_NAME) == 4999);
	drop(&l);
	/* another process under the number of the first; the second ends: it is written once
	 * more, for what comes late */
	p.start_boottime_ns = 99;
	CHECK(!defs_record(d, &p.h) && !defs_record(d, &e.h));
	CHECK(!defs_write(d, to_list, &l));
	CHECK(count(&l, CT_PROCESS) == 2 && count(&l, CT_NAME) == 2500);
	drop(&l);
	CHECK(!defs_write(d, to_list, &l));
	CHECK(count(&l, CT_PROCESS) == 1 && count(&l, CT_NAME) == 0);
	drop(&l);
	/* far more than there is room for */
	for (uint32_t i = 1; i < 200000; i++) {
		head(&r, CT_FRAME, 1024);
		r.h.pid = 0;
		r.frame.id = i;
		CHECK(!defs_record(d, &r.h));
	}
	CHECK(!defs_write(d, to_list, &l));
	CHECK(l.len < 70u << 20);
	CHECK(defs_dropped(d));
	CHECK_EQ(199999, count(&l, CT_FRAME) + defs_dropped(d));
	drop(&l);
	defs_close(d);
}

/* Records as large as a header can say, so that a thousand of them are all that there is room for. */
#define LARGE 60000u

static uint64_t fill(struct defs *d, uint16_t kind, uint32_t from, uint32_t n)
{
	static union {
		struct ct_hdr h;
		struct ct_name name;
		struct ct_stream stream;
		struct ct_context context;
		struct ct_device device;
		struct ct_metric metric;
		struct ct_node node;
		struct ct_scope scope;
		struct ct_stack stack;
		struct ct_frame frame;
		char room[LARGE];
	} r;
	uint64_t before = defs_dropped(d);

	memset(&r, 0, sizeof(r));
	r.h = (struct ct_hdr){ .size = LARGE, .kind = kind, .pid = 7, .tid = 7 };
	for (uint32_t i = from; i < from + n; i++) {
		switch (kind) {
		case CT_NAME: r.name.handle = i, r.name.len = 8; break;
		case CT_STREAM: r.stream.id = i, r.stream.context = i; break;
		case CT_CONTEXT: r.context.id = i; break;
		case CT_DEVICE: r.device.id = i; break;
		case CT_METRIC: r.metric.id = i; break;
		case CT_NODE: r.node.w.graph_node = i; break;
		case CT_SCOPE_BEGIN: r.scope.id = i; break;
		case CT_THREAD_NAME: r.h.tid = i; break;
		case CT_STACK: r.stack.id = i; break;
		case CT_FRAME: r.frame.id = i; break;
		default: r.h.pid = i; break;
		}
		CHECK(!defs_record(d, &r.h));
	}
	return defs_dropped(d) - before;
}

/* What is dropped first, where a recording has more definitions than there is room for. */
static void test_definitions_full(void)
{
	static const struct {
		uint16_t kind;
		const char *name;
		uint64_t dropped; /* of 1200 */
	} rows[] = {
		/* the older half of the numbers, and then of the rest, until a quarter is free */
		{ CT_FRAME, "frames", 588 },
		/* stacks without frames have no order */
		{ CT_STACK, "stacks", 1118 },
		{ CT_NAME, "names", 1118 },
		{ CT_STREAM, "streams", 1118 },
		{ CT_CONTEXT, "contexts", 1118 },
		{ CT_THREAD_NAME, "threads", 1118 },
		{ CT_SCOPE_BEGIN, "scopes", 1118 },
		{ CT_NODE, "nodes", 1118 },
		{ CT_DEVICE, "devices", 1118 },
		{ CT_METRIC, "metrics", 1118 },
		{ CT_PROCESS_INFO, "infos", 1118 },
		{ CT_PROCESS, "processes", 1119 },
	};
	struct ct_process p = process_of(7, 10);
	struct list l = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct defs *d = defs_open();
		bool is_process = rows[i].kind == CT_PROCESS;

		CASE_ROW("%s", rows[i].name);
		CHECK(!defs_record(d, &p.h));
		CHECK_EQ(rows[i].dropped, fill(d, rows[i].kind, 1000, 1200));
		CHECK(!defs_write(d, to_list, &l));
		/* the process stays, unless there is nothing else */
		CHECK_EQ(1201 - rows[i].dropped,
			 count(&l, CT_PROCESS) + (is_process ? 0 : count(&l, rows[i].kind)));
		CHECK_EQ(!is_process, count(&l, CT_PROCESS) == 1);
		drop(&l);
		defs_close(d);
	}
	defs_close(NULL);
}

/* A child is described as its parent until its own description comes; a main thread's name is its process's. */
static void test_definitions_of_children(void)
{
	struct ct_process p = process_of(1, 10);
	struct ct_fork f = { .h = { .size = sizeof(f), .kind = CT_FORK, .pid = 1, .tid = 1 },
			     .child_pid = 5,
			     .child_ns_pid = 3 };
	struct ct_thread_name n = {
		.h = { .size = sizeof(n), .kind = CT_THREAD_NAME, .pid = 5, .tid = 5 },
		.comm = "renamed"
	};
	struct defs *d = defs_open();
	const struct ct_process *child;
	struct list l = { 0 };

	strcpy(p.comm, "parent");
	CHECK(!defs_record(d, &f.h)); /* of a parent that is not known: nothing */
	CHECK(!defs_write(d, to_list, &l));
	CHECK_EQ(0, l.len);
	CHECK(!defs_record(d, &p.h) && !defs_record(d, &f.h));
	CHECK(!defs_write(d, to_list, &l));
	child = (const struct ct_process *)(l.bytes + sizeof(p));
	if (CHECK_EQ(2 * sizeof(p), l.len)) {
		CHECK_EQ(5, child->h.pid);
		CHECK_EQ(5, child->h.tid);
		CHECK_EQ(1, child->ppid);
		CHECK_EQ(3, child->ns_pid);
		CHECK_EQ(0, child->start_boottime_ns);
		CHECK_TEXT("parent", child->comm);
	}
	drop(&l);
	/* of the child alone; of another thread, and of a process that is not known, as it is */
	CHECK(!defs_record(d, &n.h));
	n.h.tid = 6;
	CHECK(!defs_record(d, &n.h));
	n.h.pid = n.h.tid = 9;
	CHECK(!defs_record(d, &n.h));
	CHECK(!defs_write(d, to_list, &l));
	child = (const struct ct_process *)(l.bytes + sizeof(p));
	CHECK_TEXT("parent", ((const struct ct_process *)l.bytes)->comm);
	CHECK_TEXT("renamed", child->comm);
	CHECK_EQ(2, count(&l, CT_THREAD_NAME));
	drop(&l);
	defs_close(d);
}

/* What is defined again, closed, or defined in another way. */
static void test_definitions_again(void)
{
	struct ct_context c = { .h = { .size = sizeof(c), .kind = CT_CONTEXT, .pid = 1 }, .id = 4 };
	struct ct_node n = { .w.h = { .size = sizeof(n), .kind = CT_NODE, .pid = 1 },
			     .w.graph_node = 8,
			     .origin = 2 };
	struct ct_scope s = { .h = { .size = sizeof(s), .kind = CT_SCOPE_BEGIN, .pid = 1 },
			      .id = 3 };
	struct ct_hdr other = { .size = sizeof(other), .kind = CT_CALL, .pid = 1 };
	struct defs *d = defs_open();
	struct list l = { 0 };

	CHECK(!defs_record(d, &c.h) && !defs_record(d, &c.h));
	c.h.flags = CT_F_HIDDEN;
	CHECK(!defs_record(d, &c.h));
	CHECK(!defs_record(d, &n.w.h));
	n.origin = 0;
	CHECK(!defs_record(d, &n.w.h));
	CHECK(!defs_record(d, &s.h) && !defs_record(d, &other));
	CHECK(!defs_write(d, to_list, &l));
	CHECK_EQ(2, count(&l, CT_CONTEXT));
	CHECK_EQ(1, count(&l, CT_SCOPE_BEGIN));
	CHECK_EQ(0, count(&l, CT_CALL));
	/* that it is a copy says more than the call that made it */
	if (CHECK_EQ(1, count(&l, CT_NODE)))
		CHECK_EQ(2, ((const struct ct_node *)(l.bytes + l.len - sizeof(n)))->origin);
	drop(&l);
	s.h.kind = CT_SCOPE_END;
	CHECK(!defs_record(d, &s.h));
	CHECK(!defs_write(d, to_list, &l));
	CHECK_EQ(0, count(&l, CT_SCOPE_BEGIN));
	drop(&l);
	defs_close(d);
}

static void test_ring(void)
{
	struct ring_buf *ring = ring_buf_open(10000000000, 64 << 20);
	struct ct_process p = process_of(100, 10);
	struct list l = { 0 };
	struct reader_stats s;
	static union record r;
	uint64_t first = UINT64_MAX, last = 0;
	struct writer *w;

	p.h.start_ns = p.h.end_ns = 1;
	CHECK(!ring_buf_record(ring, &p.h));
	/* a minute, a call every millisecond */
	for (uint64_t i = 0; i < 60000; i++) {
		do
			random_call(&r);
		while (record_check(&r, sizeof(r)));
		r.h.pid = 100;
		r.h.start_ns = r.h.end_ns = i * 1000000;
		CHECK(!ring_buf_record(ring, &r.h));
		if (i % 1000 == 999)
			CHECK(!ring_buf_flush(ring, r.h.end_ns));
	}
	for (int twice = 0; twice < 2; twice++) {
		remove(path);
		CHECK(!writer_open(&w, path, "format 1\n") && !ring_buf_write(ring, w));
		CHECK(!writer_end(w, "reason signal\n") && !writer_close(w));
		drop(&l);
		CHECK(!read_list(&l, &s));
		CHECK(s.ended);
		CHECK(!s.damaged);
	}
	CHECK(count(&l, CT_PROCESS) == 1 && !ring_buf_crowded(ring));
	for (size_t at = 0; at < l.len; at += ((const struct ct_hdr *)(l.bytes + at))->size) {
		const struct ct_hdr *h = (const struct ct_hdr *)(l.bytes + at);

		if (h->kind == CT_PROCESS)
			continue;
		first = h->start_ns < first ? h->start_ns : first;
		last = h->end_ns > last ? h->end_ns : last;
	}
	CHECK_EQ(59999000000, last);
	CHECK(first <= 50000000000);
	CHECK(first > 48000000000);
	drop(&l);
	ring_buf_close(ring);
	/* too little memory: the oldest go, and it is counted */
	ring = ring_buf_open(1000000000000, 1 << 20);
	for (uint64_t i = 0; i < 50000; i++) {
		do
			random_call(&r);
		while (record_check(&r, sizeof(r)));
		CHECK(!ring_buf_record(ring, &r.h));
	}
	CHECK(ring_buf_crowded(ring) && ring_buf_bytes(ring) < 2 << 20);
	ring_buf_close(ring);
}

static void test_writer(void)
{
	struct writer *w;
	char old[80];

	snprintf(old, sizeof(old), "%s.old", path);
	write_file("what was there", 14);
	CHECK(!writer_open(&w, path, "format 1\n") && !writer_close(w));
	CHECK(!access(old, F_OK));
	unlink(old);
	CHECK(writer_open(&w, "/proc/nonexistent/x", "format 1\n") == -ENOENT && !w);
	/* a full disk: the error comes, and stays */
	CHECK(writer_open(&w, "/dev/full", "format 1\n") == -ENOSPC && !w);
}

/* What has no size that a reader could go on from is not written, and takes nothing else with it. */
static void test_sizes(void)
{
	static const uint16_t sizes[] = { 0, 8, sizeof(struct ct_hdr) - 1,
					  sizeof(struct ct_exit) + 4 };
	union record rec = { .h = { .size = sizeof(struct ct_exit),
				    .kind = CT_EXIT,
				    .pid = 7,
				    .tid = 7,
				    .start_ns = 5,
				    .end_ns = 5 } };
	struct encoder *e = encode_open();
	const struct ct_hdr *h;
	struct reader_stats s;
	struct reader *r;
	struct writer *w;
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		rec.h.size = sizes[i];
		CHECK(encode_record(e, &rec.h) == -EINVAL);
	}
	encode_close(e);
	CHECK(!writer_open(&w, path, "format 1\n"));
	for (size_t i = 0; i < ARRAY_LEN(sizes) * 2; i++) {
		rec.h.size = i & 1 ? sizes[i / 2] : (uint16_t)sizeof(struct ct_exit);
		CHECK(!writer_record(w, &rec.h));
	}
	CHECK(!writer_flush(w) && !writer_close(w));
	CHECK(!reader_open(&r, path));
	while (reader_next(r, &h) == 1)
		n += h->kind == CT_EXIT;
	reader_stats(r, &s);
	CHECK_EQ((int)ARRAY_LEN(sizes), n);
	CHECK(!s.damaged);
	CHECK(!s.malformed);
	reader_close(r);
}

/* ---- what a loop costs ---- */

#define TURNS 2000
#define OPERATORS 8

static void put_scope(struct encoder *e, uint16_t kind, uint32_t id, uint32_t parent, int which,
		      uint64_t start_ns, uint64_t end_ns)
{
	static const char name[] = "aten::operator_number_0";
	union {
		struct ct_scope s;
		uint64_t words[(sizeof(struct ct_scope) + 40) / 8];
	} r = { .s = { .h = { .size = sizeof(r),
			      .kind = kind,
			      .pid = 7,
			      .tid = 7,
			      .start_ns = start_ns,
			      .end_ns = end_ns },
		       .id = id,
		       .parent = parent,
		       .kind = CT_SCOPE_RANGE,
		       .depth = parent != CT_SCOPE_NONE,
		       .text_len = sizeof(name) - 1,
		       .layer_len = 5 } };

	memcpy(r.s.text, name, sizeof(name) - 1);
	r.s.text[sizeof(name) - 2] = (char)('0' + which);
	memcpy(r.s.text + sizeof(name) - 1, "torch", 5);
	CHECK(encode_record(e, &r.s.h) >= 0);
}

/* Operators of a loop, each in another one, whose times are like nothing: the name of each is stored once, the begin is not stored
 * again with the end, and for a number from one after the other there are two bytes. */
static void test_scopes_of_a_loop(void)
{
	struct encoder *e = encode_open();
	uint64_t now = 1000000000000, bytes = 0;
	const void *body;
	uint32_t len, id = 0;

	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < OPERATORS / 2; i++) {
			uint32_t outer = ++id, inner = ++id;
			uint64_t begun = now += 300 + below(30000),
				 within = now += 300 + below(30000), end;

			put_scope(e, CT_SCOPE_BEGIN, outer, CT_SCOPE_NONE, 2 * i, begun, begun);
			put_scope(e, CT_SCOPE_BEGIN, inner, outer, 2 * i + 1, within, within);
			end = now += 300 + below(30000);
			put_scope(e, CT_SCOPE_END, inner, outer, 2 * i + 1, within, end);
			end = now += 300 + below(30000);
			put_scope(e, CT_SCOPE_END, outer, CT_SCOPE_NONE, 2 * i, begun, end);
		}
		if (turn % 400 == 399) {
			CHECK(!encode_finish(e, &body, &len));
			bytes += len;
		}
	}
	encode_close(e);
	/* of which the four bytes of two numbers that are like nothing are the largest part */
	CHECK(bytes < 5 * TURNS * OPERATORS);
}

int main(void)
{
	snprintf(path, sizeof(path), "%s/ct_test_trace.%d",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	RUN(test_round_trip);
	RUN(test_cut);
	RUN(test_flips);
	RUN(test_hostile);
	RUN(test_versions);
	RUN(test_moved);
	RUN(test_stored);
	RUN(test_no_recording);
	RUN(test_range);
	RUN(test_definitions);
	RUN(test_definitions_full);
	RUN(test_definitions_of_children);
	RUN(test_definitions_again);
	RUN(test_ring);
	RUN(test_writer);
	RUN(test_sizes);
	RUN(test_scopes_of_a_loop);
	unlink(path);
	return unit_end();
}
