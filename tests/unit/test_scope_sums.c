/* SPDX-License-Identifier: BSD-2-Clause */
/* test_scope_sums.c - what calls and device work were for, by the names of scopes. */
#include "../../user/event/scopes/lineage.h"
#include "../../user/stat/scopes_print.h"
#include "../../user/sums/book.h"
#include "unit.h"

static struct lineage *lineage;

static void collective_in(uint32_t parent, uint32_t id, const char *name, uint64_t bytes,
			  uint16_t members)
{
	struct {
		struct ct_scope s;
		char text[16];
		struct ct_collective c;
	} r = {
		.s = { .h = { .size = sizeof(r), .kind = CT_SCOPE_BEGIN, .pid = 7 },
		       .id = id,
		       .parent = parent,
		       .kind = CT_SCOPE_COLLECTIVE,
		       .text_len = (uint16_t)strlen(name) },
		.c = { .bytes = bytes, .ranks = 4, .how = CT_COLLECTIVE_WHOLE, .members = members }
	};

	memcpy(r.text, name, strlen(name));
	CHECK(!record_check(&r, sizeof(r)));
	CHECK(!lineage_record(lineage, &r.s.h));
}

static void collective(uint32_t id, const char *name, uint64_t bytes, uint16_t members)
{
	collective_in(CT_SCOPE_NONE, id, name, bytes, members);
}

static void kernel(struct scope_sums *s, uint32_t scope, uint32_t device, uint64_t from,
		   uint64_t to)
{
	struct ct_kernel k = { 0 };
	struct event ev = { .rec = &k.w.h, .scope_id = scope, .lineage = lineage };

	k.w.h = (struct ct_hdr){ .size = sizeof(k), .kind = CT_KERNEL, .pid = 7 };
	k.w.h.start_ns = from;
	k.w.h.end_ns = to;
	k.w.device = device;
	CHECK_EQ(1, scope_sums_event(s, &ev));
}

static const char *json_of(struct scope_sums *s)
{
	static char text[8192];
	FILE *f = tmpfile();
	struct out o = { 0 };
	size_t n;

	CHECK(f && !out_open_fd(&o, fileno(f), "a file"));
	scope_sums_json(s, &o, "collective");
	CHECK(!out_flush(&o));
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	out_close(&o);
	fclose(f);
	return text;
}

/* A kernel of a collective is hidden where others compute on its device. */
static void test_exposed(void)
{
	struct scope_sums *s = scope_sums_open(1u << CT_SCOPE_COLLECTIVE);
	const char *got;

	lineage = lineage_open();
	CHECK(s && lineage);
	collective(1, "ncclAllReduce", 1000, 0);
	collective(2, "ncclBroadcast", 0, 0);
	kernel(s, 1, 0, 100, 200);
	kernel(s, CT_SCOPE_NONE, 0, 150, 400);
	kernel(s, CT_SCOPE_NONE, 1, 100, 200);	  /* another device's */
	kernel(s, CT_SCOPE_UNKNOWN, 0, 100, 200); /* it may be one of a collective */
	kernel(s, 2, 0, 180, 480);		  /* no compute, and its bytes are not known */
	got = json_of(s);
	CHECK(strstr(got, "\"name\":\"ncclAllReduce\",\"count\":0,\"duration_ns\":0,\"calls\":0,"
			  "\"calls_ns\":0,\"inclusive_calls_ns\":0,\"kernels\":1,\"gpu_ns\":100,"
			  "\"inclusive_gpu_ns\":100,\"exposed_ns\":50,\"bytes\":1000"));
	CHECK(strstr(got, "\"name\":\"ncclBroadcast\""));
	CHECK(strstr(got, "\"gpu_ns\":300,\"inclusive_gpu_ns\":300,\"exposed_ns\":80}"));
	scope_sums_close(s);
	lineage_close(lineage);
}

/* Scopes of a recording that lie around each other, or around themselves: a kernel inside counts once for
 * each of them. */
static void test_circles(void)
{
	struct scope_sums *s = scope_sums_open(1u << CT_SCOPE_COLLECTIVE);
	const char *got;

	lineage = lineage_open();
	CHECK(s && lineage);
	collective_in(3, 1, "one", 0, 0);
	collective_in(1, 2, "two", 0, 0);
	collective_in(2, 3, "three", 0, 0);
	collective_in(4, 4, "itself", 0, 0);
	kernel(s, 1, 0, 100, 200);
	kernel(s, 4, 0, 300, 350);
	got = json_of(s);
	CHECK(strstr(got, "\"gpu_ns\":100,\"inclusive_gpu_ns\":100"));
	CHECK(strstr(got, "\"gpu_ns\":50,\"inclusive_gpu_ns\":50"));
	scope_sums_close(s);
	lineage_close(lineage);
}

/* Each collective's bytes count, however many there are, and once, however many kernels it has. */
static void test_many(void)
{
	enum { MANY = 1200000 };
	struct scope_sums *s = scope_sums_open(1u << CT_SCOPE_COLLECTIVE);
	char want[64];

	lineage = lineage_open();
	CHECK(s && lineage);
	for (uint32_t i = 1; i <= MANY; i++) {
		collective(i, "ncclAllReduce", 1000, 0);
		kernel(s, i, 0, i * 100ULL, i * 100ULL + 50);
		/* another kernel of an earlier one */
		if (i > 1000 && i % 16 == 0)
			kernel(s, i - 1000, 0, i * 100ULL + 50, i * 100ULL + 60);
	}
	snprintf(want, sizeof(want), "\"bytes\":%llu", MANY * 1000ULL);
	CHECK(strstr(json_of(s), want));
	scope_sums_close(s);
	lineage_close(lineage);
}

/* Messages name all that --by takes of scopes. */
static void test_words(void)
{
	for (uint8_t by = 0; book_by_words[by]; by++)
		CHECK_EQ(book_scopes(by) != 0,
			 strstr(BOOK_SCOPE_WORDS("and"), book_by_words[by]) != NULL);
	CHECK_EQ(BOOK_LAYER(NCCL), book_layers(BOOK_BY_COLLECTIVE));
	CHECK_EQ(0, book_layers(BOOK_BY_FUNCTION));
}

int main(void)
{
	RUN(test_words);
	RUN(test_exposed);
	RUN(test_circles);
	RUN(test_many);
	return unit_end();
}
