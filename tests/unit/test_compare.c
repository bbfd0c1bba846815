/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_compare.c - `cudatrace compare`: the rank test against counting all cases by hand,
 * conditions, false alarms and power on made-up runs, files that are damaged, and what each
 * format prints.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/compare/compare.h"
#include "../../user/compare/noise.h"
#include "unit.h"

/* Always the same numbers (splitmix64). */
static uint64_t seed = 12345;
static double uniform(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Times of a run: 5 % of noise, and one run in twenty that something held up. */
static double noisy(double median)
{
	return median * exp(0.05 * gauss()) * (uniform() < 0.05 ? 1.3 : 1);
}

/* Messages that are expected do not belong into the log of a test. */
static void quiet(bool on)
{
	static int saved_fd = -1;

	fflush(stderr);
	if (on) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		saved_fd = dup(STDERR_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	} else {
		dup2(saved_fd, STDERR_FILENO);
		close(saved_fd);
	}
}

static int put(int fd, const char *text, size_t n)
{
	CHECK(write(fd, text, n) == (ssize_t)n);
	return fd;
}

static int file_of(const char *text, size_t n)
{
	int fd = put(memfd_create("saved", MFD_CLOEXEC), text, n);

	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int open_text(struct saved *s, const char *path, const char *text)
{
	int fd = file_of(text, strlen(text)), err = saved_open(s, fd, path);

	close(fd);
	return err;
}

/* ---- numbers ---- */

/* The share of all choices of m of n values whose ranks (of equals the mean) add up to those of
 * the last m or more. */
static double by_hand(const double *v, unsigned int n, unsigned int m)
{
	unsigned long all = 0, above = 0;
	double rank[16], sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int less = 0, same = 0;

		for (unsigned int k = 0; k < n; k++) {
			less += v[k] < v[i];
			same += v[k] == v[i];
		}
		rank[i] = less + (same + 1) / 2.0;
	}
	for (unsigned int i = n - m; i < n; i++)
		sum += rank[i];
	for (unsigned int set = 0; set < 1u << n; set++) {
		double s = 0;

		if ((unsigned int)__builtin_popcount(set) != m)
			continue;
		for (unsigned int i = 0; i < n; i++)
			s += set & 1u << i ? rank[i] : 0;
		all++;
		above += s > sum - 1e-9;
	}
	return (double)above / (double)all;
}

static void test_numbers(void)
{
	double odd[] = { 5, 1, 3 }, even[] = { 4, 1, 3, 2 }, v[64];

	CHECK(noise_median(odd, 3) == 3);
	CHECK(noise_median(even, 4) == 2.5);
	CHECK(isnan(noise_median(odd, 0)));
	CHECK(fabs(noise_spread(odd, 3) - 1.4826 * 2 / 3) < 1e-12);
	CHECK(isnan(noise_spread(odd, 1)));
	CHECK(noise_p_above((double[]){ 1, 2, 3 }, 3, (double[]){ 4, 5, 6 }, 3) == 0.05);
	CHECK(noise_p_above((double[]){ 4, 5, 6 }, 3, (double[]){ 1, 2, 3 }, 3) == 1);
	CHECK(noise_p_above((double[]){ 7, 7 }, 2, (double[]){ 7, 7, 7 }, 3) == 1);
	CHECK(noise_p_above(odd, 0, odd, 3) == 1);
	CHECK(fabs(noise_p_least(10, 10) - 1.0 / 184756) < 1e-15);
	for (int round = 0; round < 200; round++) {
		unsigned int n = 2 + (unsigned int)(uniform() * 9),
			     m = 1 + (unsigned int)(uniform() * (n - 1));

		/* few values, so that many are equal */
		for (unsigned int i = 0; i < n; i++)
			v[i] = floor(uniform() * (round % 2 ? 4 : 1000));
		CHECK(fabs(noise_p_above(v, n - m, v + n - m, m) - by_hand(v, n, m)) < 1e-9);
	}
	/* where the exact count ends the normal distribution goes on */
	for (int round = 0; round < 20; round++) {
		double exact, beyond;

		for (int i = 0; i < 40; i++)
			v[i] = gauss() + (i >= 20 ? 0.1 * round : 0);
		exact = noise_p_above(v, 20, v + 20, 20);
		v[40] = 1e9;
		for (int i = 40; i > 20; i--)
			v[i] = v[i - 1];
		v[20] = noise_median(v, 20);
		beyond = noise_p_above(v, 21, v + 21, 20);
		CHECK(fabs(exact - beyond) < 0.05);
	}
}

/* ---- files ---- */

#define HEAD "{\"schema\":\"cudatrace-stat\",\"version\":1,\"summary\":{\"total_api_time\":"
#define SECTIONS(runtime) \
	"},\"runtime\":[" runtime "],\"driver\":[],\"kernels\":[],\"copies\":[],\"sync\":[]}"

static size_t make_run(char *buf, size_t size, double time, unsigned int calls)
{
	return (size_t)snprintf(
		buf, size,
		HEAD "%.0f" SECTIONS("{\"name\":\"cudaMalloc\",\"calls\":%u,\"failed\":0,\"total_"
				     "ns\":%.0f,\"avg_ns\":%.1f,\"bytes\":64}"),
		time, calls, time, time / calls);
}

static void test_file(void)
{
	char text[4096];
	size_t n = make_run(text, sizeof(text), 1000, 10);
	const struct saved_row *row;
	struct saved s;
	double v[8];

	text[n++] = '\n';
	n += make_run(text + n, sizeof(text) - n, 3000, 20);
	CHECK(!open_text(&s, "a", text));
	CHECK_EQ(2, s.nruns);
	CHECK(!s.device);
	CHECK_EQ(0, s.lost);
	row = saved_find(&s, SAVED_CALLS_OF + API_RUNTIME, "cudaMalloc");
	CHECK(row != NULL);
	if (CHECK_EQ(2, saved_values(&s, row, SAVED_CALLS_OF + API_RUNTIME, SAVED_CALLS, v))) {
		CHECK(v[0] == 10);
		CHECK(v[1] == 20);
	}
	CHECK(saved_values(&s, row, SAVED_CALLS_OF + API_RUNTIME, SAVED_P99, v) == 0);
	CHECK(saved_values(&s, saved_find(&s, SAVED_CALLS_OF + API_RUNTIME, ""),
			   SAVED_CALLS_OF + API_RUNTIME, SAVED_AVG, v) == 2 &&
	      v[1] == 150);
	/* what never happened has no calls, and what no device was asked about is not known */
	CHECK(!saved_find(&s, SAVED_CALLS_OF + API_RUNTIME, "cudaFree"));
	CHECK(saved_values(&s, NULL, SAVED_CALLS_OF + API_RUNTIME, SAVED_CALLS, v) == 2 &&
	      v[0] == 0);
	CHECK(saved_values(&s, NULL, SAVED_CALLS_OF + API_RUNTIME, SAVED_AVG, v) == 0);
	CHECK(saved_values(&s, NULL, SAVED_KERNELS, SAVED_CALLS, v) == 0);
	saved_close(&s);
	saved_close(&s);
	/* the names that have their units, and those of version 1, are one number; so is a file with both */
	CHECK(!open_text(
		&s, "both",
		HEAD "5" SECTIONS("") "\n{\"schema\":\"cudatrace-stat\",\"version\":2,\"summary\":{"
				      "\"total_api_time_ns\":7,\"kernel_time_ns\":1" SECTIONS("")));
	CHECK_EQ(2, s.nruns);
	CHECK(saved_values(&s, saved_find(&s, SAVED_SUMMARY, "total_api_time"), SAVED_SUMMARY,
			   SAVED_VALUE, v) == 2 &&
	      v[0] == 5 && v[1] == 7);
	CHECK(!saved_find(&s, SAVED_SUMMARY, "total_api_time_ns"));
	saved_close(&s);
}

static void test_hostile(void)
{
	static const char *const bad[] = {
		"",
		" \n",
		"[]",
		"7",
		"null",
		"\"text\"",
		"{}",
		"{\"schema\":\"cudatrace-stat\"}",
		"{\"schema\":7}",
		"{\"schema\":\"cudatrace-stat\",\"version\":3,\"summary\":{}}",
		"{\"schema\":\"cudatrace-stat\",\"version\":1,\"summary\":[]}",
		"{\"schema\":\"cudatrace-stat\",\"version\":1,\"summary\":{},\"runtime\":{}}",
		/* a section is missing that every version has */
		HEAD "1},\"driver\":[],\"kernels\":[],\"copies\":[],\"sync\":[]}",
		HEAD "1},\"runtime\":[],\"kernels\":[],\"copies\":[],\"sync\":[]}",
		HEAD "1},\"runtime\":[],\"driver\":[],\"kernels\":[],\"copies\":[]}",
		HEAD "1" SECTIONS("7"),
		HEAD "1" SECTIONS("{\"calls\":1}"),
		HEAD "1" SECTIONS("{\"name\":7}"),
		HEAD "1" SECTIONS("{\"name\":\"\"}"),
		HEAD "1" SECTIONS("null"),
		HEAD "1" SECTIONS("[[[[[[[[[[[[1]]]]]]]]]]]]"),
		HEAD "1" SECTIONS("") "x",
		HEAD "1" SECTIONS("") "{",
		"\x89"
		"CTRACE",
		HEAD "1" SECTIONS("{\"name\":\"a\" \"b\"}"),
	};
	static const char *const odd[] = {
		HEAD "1e999" SECTIONS(""),
		HEAD "-5" SECTIONS(""),
		HEAD "\"many\"" SECTIONS(""),
		HEAD "null" SECTIONS(""),
		HEAD
		"1" SECTIONS("{\"name\":\"a\"},{\"name\":\"a\",\"calls\":-1,\"total_ns\":1e400}"),
		HEAD "1" SECTIONS("{\"name\":\"a\\u0000b\\u001b[31m\\ud800\"}"),
		HEAD "1,\"total_api_time\":2" SECTIONS(""),
	};
	char good[1024];
	size_t n = make_run(good, sizeof(good), 1000, 10);
	struct saved s;
	char *many;

	quiet(true);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(open_text(&s, "bad", bad[i]) < 0);
		saved_close(&s);
	}
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		CHECK(!open_text(&s, "odd", odd[i]) || i == 5);
		saved_close(&s);
	}
	/* cut off anywhere, and with any byte changed: an error, or a file; never more */
	for (size_t i = 0; i < n; i++) {
		char cut[1024];

		memcpy(cut, good, i);
		cut[i] = '\0';
		CHECK(open_text(&s, "cut", cut) < 0);
		saved_close(&s);
		memcpy(cut, good, n + 1);
		cut[i] ^= (char)(1 << (i % 7));
		open_text(&s, "changed", cut);
		saved_close(&s);
	}
	/* a run without end */
	many = malloc(20 << 20);
	memset(many, ' ', 20 << 20);
	memcpy(many, HEAD, strlen(HEAD));
	many[(20 << 20) - 1] = '\0';
	CHECK(open_text(&s, "large", many) < 0);
	saved_close(&s);
	/* small things without number take memory out of proportion; some are no fault */
	for (size_t objects = 300000; objects <= 400000; objects += 100000) {
		char *at = many + sprintf(many, "%s1%.*s,\"x\":[{}", HEAD,
					  (int)strlen(SECTIONS("")) - 1, SECTIONS(""));

		for (size_t i = 1; i < objects; i++)
			at = stpcpy(at, ",{}");
		strcpy(at, "]}");
		CHECK((open_text(&s, "objects", many) < 0) == (objects == 400000));
		saved_close(&s);
	}
	free(many);
	quiet(false);
}

/* Makes as many rows as a file may have, and one more: of a section, of sums, of a summary. */
static void test_most_rows(void)
{
	static const char row[] = "{\"name\":\"a\"}";
	/* a run has a row of its summary, and one of sums for the runtime, the driver, kernels, copies and waits */
	const size_t rows = 1000000 / 4 - 6;
	char *text = malloc(4 * (rows + 2) * sizeof(row) + 4096), *at = text;
	struct saved s;

	if (!text)
		abort();
	for (int run = 0; run < 4; run++) {
		at = stpcpy(at, HEAD "1},\"runtime\":[");
		for (size_t i = 0; i < rows; i++)
			at = stpcpy(stpcpy(at, i ? "," : ""), row);
		at = stpcpy(at, "],\"driver\":[],\"kernels\":[],\"copies\":[],\"sync\":[]}");
	}
	quiet(true);
	CHECK_EQ(0, open_text(&s, "most", text));
	CHECK_EQ(4, s.nruns);
	saved_close(&s);
	strcpy(at - 1, ",\"traffic\":[{\"direction\":\"a\"}]}");
	CHECK_EQ(-E2BIG, open_text(&s, "one more", text));
	CHECK_EQ(3, s.nruns);
	saved_close(&s);
	quiet(false);
	free(text);
}

/* ---- conditions ---- */

static void test_parse(void)
{
	static const struct {
		const char *text, *name;
		int field, op, how;
		double number;
	} good[] = {
		{ "cudaMalloc.calls>+10%", "cudaMalloc", SAVED_CALLS, JUDGE_MORE, JUDGE_PERCENT,
		  0.1 },
		{ " cudaMalloc.calls >= -2.5% ", "cudaMalloc", SAVED_CALLS, JUDGE_MORE_EQUAL,
		  JUDGE_PERCENT, -0.025 },
		{ "cudaMemcpy*.p99>5ms", "cudaMemcpy*", SAVED_P99, JUDGE_MORE, JUDGE_VALUE, 5e6 },
		{ "sync.time>+1s", "", SAVED_TIME, JUDGE_MORE, JUDGE_CHANGE, 1e9 },
		{ "total_api_time>+3%", "total_api_time", SAVED_VALUE, JUDGE_MORE, JUDGE_PERCENT,
		  0.03 },
		{ "total_api_time_ns>+3%", "total_api_time", SAVED_VALUE, JUDGE_MORE, JUDGE_PERCENT,
		  0.03 },
		{ "failed>0", "failed_calls", SAVED_VALUE, JUDGE_MORE, JUDGE_VALUE, 0 },
		{ "launches!=+0", "launches", SAVED_VALUE, JUDGE_NOT_EQUAL, JUDGE_CHANGE, 0 },
		{ "launches==+0", "launches", SAVED_VALUE, JUDGE_EQUAL, JUDGE_CHANGE, 0 },
		{ "kernel_utilization<-5%", "kernel_utilization", SAVED_VALUE, JUDGE_LESS,
		  JUDGE_PERCENT, -0.05 },
		{ "kernel(vecAdd*).avg>+10%", "vecAdd*", SAVED_AVG, JUDGE_MORE, JUDGE_PERCENT,
		  0.1 },
		{ "kernel(gemm<4>(float*)).max<=7us", "gemm<4>(float*)", SAVED_MAX,
		  JUDGE_LESS_EQUAL, JUDGE_VALUE, 7000 },
		{ "copy(HtoD).bytes>1MiB", "HtoD", SAVED_BYTES, JUDGE_MORE, JUDGE_VALUE, 1048576 },
		{ "counter(0/sm)<50", "0/sm", SAVED_VALUE, JUDGE_LESS, JUDGE_VALUE, 50 },
	};
	static const char *const bad[] = {
		"",
		">",
		"cudaMalloc",
		"cudaMalloc>1",
		"cudaMalloc.calls",
		"cudaMalloc.calls>",
		"cudaMalloc.calls>10%",
		"cudaMalloc.calls>+x%",
		"cudaMalloc.calls>+10%%",
		"cudaMalloc.calls>+10 apples",
		"cudaMalloc.calls>5ms",
		"cudaMalloc.colour>1",
		"cudaMallloc.calls>1",
		"total_api_tim>+1%",
		"total_api_time>nan",
		"total_api_time>inf",
		"total_api_time>0x10",
		"total_api_time=>1",
		"total_api_time=1",
		"total_api_time<>1",
		"kernel(x)>1",
		"kernel(x)avg>1",
		"kernel x).avg>1",
		"what(x).avg>1",
		".calls>1",
		"kernel(x).>1",
		"total_api_time>+1e999",
		"total_api_time>+-1",
	};
	struct judge_expr e;
	char msg[512];

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK(!judge_parse(&e, good[i].text, msg, sizeof(msg)));
		CHECK_TEXT(good[i].name, e.name ? e.name : "(none)");
		CHECK_EQ(good[i].field, (int)e.field);
		CHECK_EQ(good[i].op, (int)e.op);
		CHECK_EQ(good[i].how, (int)e.how);
		CHECK(fabs(e.number - good[i].number) < 1e-9);
		judge_free(&e);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		msg[0] = '\0';
		if (!judge_parse(&e, bad[i], msg, sizeof(msg)))
			printf("taken for a condition: %s\n", bad[i]);
		CHECK(msg[0] != '\0');
		judge_free(&e);
	}
	CHECK(judge_parse(&e, "total_api_tim>+1%", msg, sizeof(msg)));
	CHECK_TEXT("'total_api_tim>+1%': there is no number 'total_api_tim'; did you mean "
		   "total_api_time?",
		   msg);
	judge_free(&e);
}

/* What one condition says of two files. */
static struct judge_result ask(const char *base, const char *now, const char *text)
{
	struct judge_result r = { .unknown = true };
	struct judge_results all;
	struct saved a, b;
	struct judge_expr e;
	char msg[512];

	CHECK(!open_text(&a, "base", base) && !open_text(&b, "new", now));
	if (judge_parse(&e, text, msg, sizeof(msg)))
		printf("FAILED: %s\n", msg);
	CHECK(!judge_all(&all, &e, 1, &a, &b, 0.05));
	if (all.n)
		r = all.r[0];
	judge_results_free(&all);
	judge_free(&e);
	saved_close(&a);
	saved_close(&b);
	return r;
}

static void test_thresholds(void)
{
	char base[1024], now[1024];

	make_run(base, sizeof(base), 1000, 10);
	make_run(now, sizeof(now), 1100, 11);
	CHECK(!ask(base, now, "cudaMalloc.calls>+10%").hit);
	CHECK(ask(base, now, "cudaMalloc.calls>=+10%").hit);
	CHECK(ask(base, now, "cudaMalloc.calls>+9.9%").hit);
	CHECK(ask(base, now, "cuda*.calls>+9.9%").hit);
	CHECK(ask(base, now, "runtime.time>+50ns").hit);
	CHECK(!ask(base, now, "runtime.time>+0.2us").hit);
	CHECK(ask(base, now, "cudaMalloc.calls!=+0").hit);
	CHECK(!ask(base, now, "cudaMalloc.bytes!=+0").hit);
	CHECK(ask(base, now, "cudaMalloc.bytes==+0").hit);
	CHECK(ask(base, now, "cudaMalloc.calls>10").hit);
	CHECK(!ask(base, now, "cudaMalloc.calls>11").hit);
	CHECK(ask(now, base, "cudaMalloc.calls<+0").hit);
	CHECK(!ask(base, now, "cudaMalloc.avg>+1%").hit);
	/* a function that was not called was called no times; of what nobody has nothing is known */
	CHECK(!ask(base, now, "cudaFree.calls>+0%").hit &&
	      !ask(base, now, "cudaFree.calls>+0%").unknown);
	CHECK(ask(base, now, "cudaFree.avg>+0%").unknown);
	CHECK(ask(base, now, "kernel(*).avg>+0%").unknown);
	CHECK(ask(base, now, "kernel_time>+0%").unknown);
	/* from nothing to something */
	CHECK(ask(HEAD "5" SECTIONS(""), now, "cudaMalloc.calls>+1000%").hit);
	CHECK(isinf(ask(HEAD "5" SECTIONS(""), now, "cudaMalloc.calls>+1000%").c.change));
}

/* A run with so many calls, by so many perhaps wrong. */
static size_t make_estimate(char *buf, size_t size, unsigned int calls, unsigned int error)
{
	return (size_t)snprintf(
		buf, size,
		HEAD "1000,\"total_api_calls\":%u,\"estimated\":%u,\"error\":%u" SECTIONS(
			"{\"name\":\"cudaGetDevice\",\"calls\":%u,\"estimated\":%u,\"error\":%u,"
			"\"failed\":0,\"total_ns\":%u,\"avg_ns\":10,\"bytes\":0}"),
		calls, calls / 2, error, calls, calls / 2, error, calls * 10);
}

static void says(const char *base, const char *now, const char *text, const char *want)
{
	struct judge_result r = ask(base, now, text);
	const char *got = r.unknown ? (r.estimate ? "estimate" : "unknown") : r.hit ? "hit" : "ok";

	if (strcmp(want, got))
		printf("%s:\n", text);
	CHECK_TEXT(want, got);
	CHECK(!r.unknown || !r.hit);
}

/* A number that is an estimate is judged where its whole interval says the same, and nowhere else. */
static void test_estimates(void)
{
	char base[1024], now[1024], few[4096], many[4096];
	size_t n = 0, m = 0;

	make_estimate(base, sizeof(base), 1000, 100);
	make_estimate(now, sizeof(now), 1500, 100);
	says(base, now, "cudaGetDevice.calls>+20%", "hit");	 /* 1400 to 900 and more */
	says(base, now, "cudaGetDevice.calls>+30%", "estimate"); /* 1400 to 1100: 27 % */
	says(base, now, "cudaGetDevice.calls>+80%", "ok");	 /* 1600 to 900: 78 % */
	says(base, now, "cudaGetDevice.calls>+450", "estimate");
	says(base, now, "cudaGetDevice.calls<+0", "ok");
	says(base, now, "cudaGetDevice.calls>1399", "hit");
	says(base, now, "cudaGetDevice.calls>1400", "estimate");
	says(base, now, "cudaGetDevice.calls>1600", "ok");
	says(base, now, "total_api_calls>+30%", "estimate");
	says(base, now, "total_api_calls>+20%", "hit");
	/* the time of the calls that nothing counted is as doubtful as their number */
	says(base, now, "cudaGetDevice.time>+30%", "estimate");
	says(base, now, "cudaGetDevice.time>+20%", "hit");
	says(base, now, "cudaGetDevice.failed>0", "ok");
	/* equal to none of the ends */
	says(base, now, "cudaGetDevice.calls==1500", "estimate");
	says(base, now, "cudaGetDevice.calls!=1550", "estimate");
	says(base, now, "cudaGetDevice.calls==1700", "ok");
	says(base, now, "cudaGetDevice.calls!=1700", "hit");
	says(base, base, "cudaGetDevice.calls==+0", "estimate");
	/* of a lower bound nothing but that can be told: from 0 to any number */
	make_estimate(now, sizeof(now), 1500, 900000);
	says(base, now, "cudaGetDevice.calls>+20%", "estimate");
	says(now, base, "cudaGetDevice.calls>+20%", "estimate");
	says(base, now, "cudaGetDevice.calls<+0", "estimate");
	says(base, now, "cudaGetDevice.calls>2000000", "ok");
	/* several runs show how much estimates scatter, and nothing of what lies above their
	 * lower bounds */
	for (unsigned int i = 0; i < 6; i++) {
		n += make_estimate(few + n, sizeof(few) - n, 1000 + i, 100);
		m += make_estimate(many + m, sizeof(many) - m, 1500 + i, 100);
	}
	says(few, many, "cudaGetDevice.calls>+30%", "hit");
	n = m = 0;
	for (unsigned int i = 0; i < 6; i++) {
		n += make_estimate(few + n, sizeof(few) - n, 1000 + i, 900000);
		m += make_estimate(many + m, sizeof(many) - m, 1500 + i, 900000);
	}
	says(few, many, "cudaGetDevice.calls>+30%", "estimate");
}

/* What programs are told of it. */
static void test_estimate_json(void)
{
	char base[1024], now[1024], msg[512], *text;
	int fd = memfd_create("out", MFD_CLOEXEC);
	struct judge_expr e;
	struct saved a, b;
	struct compare c;
	struct out out;
	off_t n;

	make_estimate(base, sizeof(base), 1000, 100);
	make_estimate(now, sizeof(now), 1500, 100);
	CHECK(!open_text(&a, "base.json", base) && !open_text(&b, "new.json", now));
	CHECK(!judge_parse(&e, "cudaGetDevice.calls>+30%", msg, sizeof(msg)));
	CHECK(!compare_open(&c, &a, &b, &e, 1, 0.05));
	CHECK(c.regressions == 0 && c.unknown == 1);
	CHECK(!out_open_fd(&out, fd, "out"));
	compare_print(&out, COMPARE_JSON, &c, 1, &e, 1, "0");
	compare_print(&out, COMPARE_TEXT, &c, 1, &e, 1, "0");
	CHECK(!out_close(&out));
	n = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)n + 1);
	CHECK(pread(fd, text, (size_t)n, 0) == n);
	CHECK(strstr(text, "\"result\":\"unknown\",\"estimate\":true}"));
	CHECK(strstr(text, "cannot be told: the number is an estimate"));
	free(text);
	close(fd);
	compare_close(&c);
	judge_free(&e);
	saved_close(&a);
	saved_close(&b);
}

/* n runs around a median, as a file. */
static char *series(double median, int n)
{
	char *text = malloc(1024 * (size_t)n);
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += make_run(text + len, 1024, noisy(median), 100);
	return text;
}

/* Returns the share of `rounds` comparisons, of n runs with n runs, in which a condition was
 * true. */
static double alarms(double change, int n, int rounds, const char *const *texts, size_t ntexts)
{
	struct judge_expr e[4];
	char msg[512];
	int hits = 0;

	for (size_t i = 0; i < ntexts; i++)
		CHECK(!judge_parse(&e[i], texts[i], msg, sizeof(msg)));
	for (int i = 0; i < rounds; i++) {
		char *a = series(1e6, n), *b = series(1e6 * (1 + change), n);
		struct judge_results all;
		struct saved base, now;
		bool hit = false;

		CHECK(!open_text(&base, "base", a) && !open_text(&now, "new", b));
		CHECK(!judge_all(&all, e, ntexts, &base, &now, 0.05));
		CHECK(all.tested == ntexts && all.corrected);
		for (size_t k = 0; k < all.n; k++)
			hit |= all.r[k].hit;
		hits += hit;
		judge_results_free(&all);
		saved_close(&base);
		saved_close(&now);
		free(a);
		free(b);
	}
	for (size_t i = 0; i < ntexts; i++)
		judge_free(&e[i]);
	return (double)hits / rounds;
}

static void test_noise(void)
{
	static const char *const any[] = { "total_api_time>+0%" };
	static const char *const several[] = { "total_api_time>+0%", "cudaMalloc.calls>+0%",
					       "cudaMalloc.avg!=+0" };
	static const char *const usual[] = { "total_api_time>+3%" };
	double false_alarms = alarms(0, 10, 2000, any, 1),
	       of_several = alarms(0, 10, 2000, several, 3);
	double power = alarms(0.1, 10, 1000, usual, 1), with_few = alarms(0.1, 5, 500, usual, 1);

	printf("false alarms: %.1f %% of one condition, %.1f %% of three; power at +10 %%: %.1f %% "
	       "with 10 runs, %.1f %% with 5\n",
	       false_alarms * 100, of_several * 100, power * 100, with_few * 100);
	CHECK(false_alarms <= 0.05);
	CHECK(false_alarms > 0.02); /* a test that never speaks would pass the other one */
	CHECK(of_several <= 0.05);
	CHECK(power >= 0.9);
	CHECK(with_few >= 0.5 && with_few < power);
}

/* ---- what is printed ---- */

#define ROW(name, calls, failed, ns)                                                           \
	"{\"name\":\"" name "\",\"calls\":" #calls ",\"failed\":" #failed ",\"total_ns\":" #ns \
	",\"avg_ns\":" #ns ",\"bytes\":0}"

static void test_print(void)
{
	static const char base[] = HEAD
		"2000000,\"failed_calls\":0,\"kernel_time\":500000,\"kernel_utilization\":0.25,"
		"\"memory_efficiency\":20.5},\"runtime\":[" ROW("cudaMalloc", 1, 0, 1500000) "," ROW(
			"cudaFree", 1, 0,
			500000) "],\"driver\":[],\"kernels\":[" ROW("a|b<&\\\"*\\u001b[0m", 4, 0,
								    500000) "],\"copies\":[],"
									    "\"sync\":[],\"lost\":{"
									    "\"ring_full\":3}}";
	static const char now[] = HEAD
		"2500000,\"failed_calls\":1,\"kernel_time\":500000,\"kernel_utilization\":0.2,"
		"\"memory_efficiency\":20.5},\"runtime\":[" ROW(
			"cudaMalloc", 2, 1,
			2500000) "],\"driver\":[],\"kernels\":[" ROW("a|b<&\\\"*\\u001b[0m", 4, 0,
								     600000) "],\"copies\":[],"
									     "\"sync\":[],\"lost\":"
									     "{}}";
	static const char *const texts[] = { "total_api_time>+3%", "failed>0",
					     "cudaMalloc.calls>+10", "kernel(a*).avg>+10%" };
	static const char *const names[] = { "compare.txt", "compare.md", "compare.json",
					     "compare.xml" };
	struct judge_expr e[4];
	struct saved a, b;
	struct compare c;
	char msg[512];

	CHECK(!open_text(&a, "base.json", base) && !open_text(&b, "new|.json", now));
	for (size_t i = 0; i < 4; i++)
		CHECK(!judge_parse(&e[i], texts[i], msg, sizeof(msg)));
	CHECK(!compare_open(&c, &a, &b, e, 4, 0.05));
	CHECK(c.regressions == 3 && c.unknown == 0);
	for (int i = 0; i < 4; i++) {
		int fd = memfd_create("out", MFD_CLOEXEC);
		struct out out;
		char *text;
		off_t n;

		CHECK(!out_open_fd(&out, fd, "out"));
		compare_print(&out, (enum compare_format)i, &c, 1, e, 4, "0");
		CHECK(!out_close(&out));
		n = lseek(fd, 0, SEEK_END);
		text = calloc(1, (size_t)n + 1);
		CHECK(pread(fd, text, (size_t)n, 0) == n);
		CHECK(!memchr(text, '\033', (size_t)n));
		unit_golden(names[i], text);
		free(text);
		close(fd);
	}
	compare_close(&c);
	for (size_t i = 0; i < 4; i++)
		judge_free(&e[i]);
	saved_close(&a);
	saved_close(&b);
}

/* The golden text of a comparison; the caller's files and expressions are closed. */
static void golden_text(const char *name, struct saved *a, struct saved *b,
			enum compare_format format, bool by_step)
{
	int fd = memfd_create("out", MFD_CLOEXEC);
	struct compare c;
	struct out out;
	char *text;
	off_t n;

	CHECK(!compare_open(&c, a, b, NULL, 0, 0.05));
	c.by_step = by_step;
	CHECK(!out_open_fd(&out, fd, "out"));
	compare_print(&out, format, &c, 1, NULL, 0, "0");
	CHECK(!out_close(&out));
	n = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)n + 1);
	CHECK(pread(fd, text, (size_t)n, 0) == n);
	unit_golden(name, text);
	free(text);
	close(fd);
	compare_close(&c);
	saved_close(a);
	saved_close(b);
}

/* A run of so many steps, each of which waits `wait` ns and makes two copies of 3 ns. */
static size_t make_steps(char *to, size_t size, int steps, int wait, int mallocs)
{
	return (size_t)snprintf(
		to, size,
		HEAD "%d,\"failed_calls\":%d,\"span_ns\":%d,\"peak_bytes\":%d,\"kernel_"
		     "utilization\":0.5},\"runtime\":[{\"name\":\"cudaStreamSynchronize\","
		     "\"calls\":%d,\"failed\":0,\"total_ns\":%d,\"avg_ns\":%d,\"bytes\":0},{"
		     "\"name\":\"cudaMalloc\",\"calls\":%d,\"failed\":%d,\"total_ns\":%d,\"avg_"
		     "ns\":1,\"bytes\":0},{\"name\":\"cudaMemcpyAsync\",\"calls\":%d,\"failed\":0,"
		     "\"total_ns\":%d,\"avg_ns\":3,\"bytes\":0}],\"driver\":[],\"kernels\":[],"
		     "\"copies\":[],\"sync\":[{\"name\":\"cudaStreamSynchronize\",\"calls\":%d,"
		     "\"failed\":0,\"total_ns\":%d,\"avg_ns\":%d,\"bytes\":0}],\"lost\":{}}\n",
		steps * (wait + 7) + mallocs, mallocs ? 1 : 0, steps * (wait + 100),
		1 << (20 + mallocs), steps, steps * wait, wait, mallocs, mallocs ? 1 : 0, mallocs,
		2 * steps, 6 * steps, steps, steps * wait, wait);
}

/* Sentences, and sums of one step: runs of different lengths are the same program. */
static void test_words(void)
{
	char base[16384], now[16384], msg[512];
	size_t n = 0, m = 0;
	struct judge_expr step;
	struct saved a, b;

	for (int i = 0; i < 5; i++) {
		n += make_steps(base + n, sizeof(base) - n, 100 + i, 4200000, 0);
		m += make_steps(now + m, sizeof(now) - m, 50 + 2 * i, 6300000 + i, 3);
	}
	CHECK(!open_text(&a, "base.json", base) && !open_text(&b, "new.json", now));
	CHECK(!judge_parse(&step, "cudaStreamSynchronize.calls>0", msg, sizeof(msg)));
	CHECK(!compare_by_step(&a, &step, 0) && !compare_by_step(&b, &step, 0));
	judge_free(&step);
	golden_text("compare_step.txt", &a, &b, COMPARE_TEXT, true);

	/* as many steps in each run; what is not there has no sentence */
	CHECK(!open_text(&a, "base.json", base) && !open_text(&b, "new.json", base));
	CHECK(!compare_by_step(&a, NULL, 100) && !compare_by_step(&b, NULL, 100));
	CHECK(saved_find(&a, SAVED_CALLS_OF + API_RUNTIME, "cudaStreamSynchronize")
		      ->values[SAVED_CALLS] == 1);
	CHECK(saved_find(&a, SAVED_CALLS_OF + API_RUNTIME, "cudaMemcpyAsync")->values[SAVED_CALLS] ==
	      2);
	CHECK(saved_find(&a, SAVED_CALLS_OF + API_RUNTIME, "cudaMemcpyAsync")->values[SAVED_AVG] ==
	      3);
	golden_text("compare_same.md", &a, &b, COMPARE_MARKDOWN, true);

	/* no step: of nothing, of a name that no run has, of no steps */
	CHECK(!open_text(&a, "base.json", base));
	quiet(true);
	CHECK(!judge_parse(&step, "cudaMalloc.calls>0", msg, sizeof(msg)));
	CHECK_EQ(-EINVAL, compare_by_step(&a, &step, 0));
	judge_free(&step);
	CHECK(!judge_parse(&step, "cudaFree.calls>0", msg, sizeof(msg)));
	CHECK_EQ(-EINVAL, compare_by_step(&a, &step, 0));
	judge_free(&step);
	CHECK_EQ(-EINVAL, compare_by_step(&a, NULL, 0));
	quiet(false);
	saved_close(&a);
}

int main(void)
{
	RUN(test_numbers);
	RUN(test_file);
	RUN(test_hostile);
	RUN(test_most_rows);
	RUN(test_parse);
	RUN(test_thresholds);
	RUN(test_estimates);
	RUN(test_estimate_json);
	RUN(test_noise);
	RUN(test_print);
	RUN(test_words);
	return unit_end();
}
