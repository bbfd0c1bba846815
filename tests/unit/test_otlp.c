/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_otlp.c - spans from hand-made records: which there are, in which traces, under which
 * parents; what the environment configures; answers of collectors, wrong ones too. That others
 * can read both encodings, and how they are sent: tests/export/ otlp.py, which has the requests
 * made here (argument: a prefix of files).
 */
#include <errno.h>
#include <unistd.h>

#include "../../user/export/otlp/otlp.h"
#include "make_play.h"
#include "unit.h"

#define REALTIME 1700000000000000000ULL

static struct sink_opts options(uint64_t min_ns)
{
	return (struct sink_opts){ .version = "test",
				   .start_ns = PLAY_START,
				   .realtime_offset_ns = REALTIME - PLAY_START,
				   .spans.min_ns = min_ns,
				   .host = "node1" };
}

/* ---- spans into a text ---- */

struct got {
	struct text all; /* a request a line */
	uint64_t spans, requests;
	const char *prefix; /* write each request to a file */
};

static void take(void *ctx, struct text *request, uint64_t n)
{
	struct got *g = ctx;

	if (g->prefix) {
		char path[256];
		FILE *f;

		snprintf(path, sizeof(path), "%s.%d.pb", g->prefix, (int)g->requests);
		f = fopen(path, "we");
		if (CHECK(f)) {
			CHECK_EQ(request->len, fwrite(request->s, 1, request->len, f));
			CHECK(!fclose(f));
		}
	} else {
		text_mem(&g->all, request->s, request->len);
		text_str(&g->all, "\n");
	}
	g->spans += n;
	g->requests++;
	text_free(request);
}

/* A sink around the spans, as make_play wants one. */
static struct otlp_spans *spans;
static struct got got;
static bool want_json = true;

static int open_it(struct sink *s, const struct sink_opts *o)
{
	s->opts = o;
	spans = otlp_spans_open(o, want_json, false, take, &got);
	return spans ? 0 : -ENOMEM;
}

static int event(struct sink *s, const struct event *ev)
{
	(void)s;
	return otlp_spans_wants(spans, ev) ? otlp_spans_event(spans, ev) : 0;
}

static int close_it(struct sink *s, const struct sink_end *end)
{
	(void)s, (void)end;
	otlp_spans_flush(spans, true);
	CHECK(!otlp_spans_dropped(spans));
	otlp_spans_close(spans);
	text_mem(&got.all, "", 1);
	return 0;
}

static const struct sink_ops ops = {
	.name = "spans", .open = open_it, .event = event, .close = close_it
};

static void begin(struct play *p, struct sink_opts *o)
{
	text_free(&got.all);
	got = (struct got){ .prefix = got.prefix };
	play_begin(p, &ops, o);
}

static int times(const char *needle)
{
	int n = 0;

	for (const char *at = got.all.s; (at = strstr(at, needle)); at++)
		n++;
	return n;
}

/* The value of a member of the (last - nth) span with that name. */
static const char *member(const char *name, const char *key, char buf[64])
{
	char needle[128];
	const char *at, *span;

	snprintf(needle, sizeof(needle), "\"name\":\"%s\"", name);
	at = strstr(got.all.s, needle);
	for (span = at; span && span > got.all.s && strncmp(span, "{\"traceId\"", 10); span--)
		;
	snprintf(needle, sizeof(needle), "\"%s\":\"", key);
	at = span ? strstr(span, needle) : NULL;
	snprintf(buf, 64, "%.*s", at ? (int)strcspn(at + strlen(needle), "\"") : 0,
		 at ? at + strlen(needle) : "");
	return buf;
}

static void tree(void)
{
	struct sink_opts o = options(0);
	char a[64], b[64];
	struct play p;

	begin(&p, &o);
	play_all(&p);
	play_end(&p, NULL);
	/* 9 calls, 4 kernels with a time, 4 copies, a set, a graph, two for calls without spans,
	 * a root for each process */
	CHECK(got.spans == 9 + 4 + 4 + 1 + 1 + 2 + 2 && times("\"traceId\"") == 23);
	CHECK_TEXT(member("trainer", "spanId", a),
		   member("muted cudaGetDevice", "parentSpanId", b));
	CHECK_TEXT("1700000000000001000", member("muted cudaGetDevice", "startTimeUnixNano", a));
	CHECK_TEXT("1700000000000061000", member("muted cudaGetDevice", "endTimeUnixNano", a));
	CHECK(times("{\"key\":\"calls.counted\",\"value\":{\"intValue\":\"5000\"}},{\"key\":"
		    "\"calls.estimated\",\"value\":{\"intValue\":\"240000\"}},{\"key\":\"calls."
		    "below\",\"value\":{\"intValue\":\"4000\"}},{\"key\":\"calls.above\",\"value\":"
		    "{\"intValue\":\"3000\"}}") == 1);
	CHECK(times("{\"key\":\"calls.estimated\",\"value\":{\"intValue\":\"-900\"}}") == 1);
	CHECK_TEXT(member("cudaMemset", "spanId", a), member("Memset", "parentSpanId", b));
	CHECK_TEXT(member("cudaMemset", "traceId", a), member("Memset", "traceId", b));
	CHECK_TEXT(member("cuLaunchKernel", "spanId", a),
		   member("gemm<4>(float*, int)", "parentSpanId", b));
	CHECK_TEXT(member("trainer", "spanId", a), member("cudaMemset", "parentSpanId", b));
	CHECK_TEXT(member("trainer", "spanId", a), member("Memcpy PtoP", "parentSpanId", b));
	CHECK(strcmp(member("trainer", "traceId", a), member("other", "traceId", b)));
	CHECK_TEXT("1700000000000006000", member("cudaMemset", "startTimeUnixNano", a));
	CHECK_TEXT("1700000000000006100", member("cudaMemset", "endTimeUnixNano", a));
	/* the root is over all that is in it */
	CHECK_TEXT("1700000000000001000", member("trainer", "startTimeUnixNano", a));
	CHECK_TEXT("1700000000000081000", member("trainer", "endTimeUnixNano", a));
	CHECK(times("{\"key\":\"grid_dim\",\"value\":{\"stringValue\":\"[8,1,1]\"}}") == 6);
	CHECK(times("{\"key\":\"block_dim\",\"value\":{\"stringValue\":\"[64,1,1]\"}}") == 2);
	CHECK(times("{\"key\":\"byte_count\",\"value\":{\"intValue\":\"1000000\"}}") == 1);
	CHECK(times("{\"key\":\"bytes\",\"value\":{\"intValue\":\"1000000\"}}") == 1);
	CHECK(times("{\"key\":\"kind\",\"value\":{\"stringValue\":\"cudaMemcpyHostToDevice\"}}") ==
	      2);
	CHECK(times("{\"key\":\"correlation_id\",\"value\":{\"intValue\":\"4\"}}") == 2);
	CHECK(times("{\"key\":\"result\",\"value\":{\"stringValue\":\"cudaErrorMemoryAllocation\"}"
		    "}") == 1);
	CHECK(times("\"status\":{\"code\":2,\"message\":\"cudaErrorMemoryAllocation\"}") == 1 &&
	      times("\"status\"") == 1);
	CHECK(times("{\"key\":\"unfinished\",\"value\":{\"boolValue\":true}}") == 1);
	CHECK(times("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"trainer\"}}") == 1);
	CHECK(times("{\"key\":\"process.pid\",\"value\":{\"intValue\":\"200\"}}") == 1);
	CHECK(times("{\"key\":\"host.name\",\"value\":{\"stringValue\":\"node1\"}}") == 2);
	CHECK(times("{\"key\":\"container.id\",\"value\":{\"stringValue\":\"c0ffee\"}}") == 1 &&
	      times("container.id") == 1);
	CHECK(times("{\"key\":\"process.executable.name\",\"value\":{\"stringValue\":\"train\"}"
		    "}") == 1);
}

static void give_scopes(uint64_t min_ns)
{
	struct sink_opts o = options(min_ns);
	struct made_device m;
	struct play p;
	uint64_t t = PLAY_START;

	begin(&p, &o);
	play_process(&p, CT_PROCESS, 100, "trainer");
	make_scope(&m, 100, 101, t + 2000, t + 3000, CT_SCOPE_RANGE, 2, "for\"ward");
	m.scope.parent = 1;
	m.scope.payload_type = CT_PAYLOAD_I32;
	m.scope.payload = (uint32_t)-3;
	play_give(&p, (struct event){ .rec = &m.h });
	make_scope(&m, 100, 101, t + 2500, t + 2500, CT_SCOPE_MARK, 3, "half");
	play_give(&p, (struct event){ .rec = &m.h });
	make_scope(&m, 100, 101, t + 1000, t + 900000, CT_SCOPE_RANGE, 1, "");
	m.scope.flags = CT_SCOPE_UNNAMED | CT_SCOPE_UNFINISHED;
	play_give(&p, (struct event){ .rec = &m.h });
	m.h.flags = CT_F_HIDDEN;
	play_give(&p, (struct event){ .rec = &m.h });
	play_end(&p, NULL);
}

/* Ranges and marks are below the root; those that are too short are left out. */
static void scopes(void)
{
	char a[64], b[64];

	give_scopes(0);
	CHECK_EQ(4, got.spans);
	CHECK_TEXT(member("trainer", "spanId", a), member("for\\\"ward", "parentSpanId", b));
	CHECK_TEXT("1700000000000002000", member("for\\\"ward", "startTimeUnixNano", a));
	CHECK_TEXT("1700000000000003000", member("for\\\"ward", "endTimeUnixNano", a));
	CHECK_TEXT("1700000000000002500", member("half", "endTimeUnixNano", a));
	CHECK_TEXT("1700000000000001000", member("trainer", "startTimeUnixNano", a));
	CHECK_TEXT("1700000000000900000", member("?", "endTimeUnixNano", a));
	CHECK(times("{\"key\":\"scope.id\",\"value\":{\"intValue\":\"2\"}},{\"key\":\"scope."
		    "parent\",\"value\":{\"intValue\":\"1\"}}") == 1);
	CHECK(times("{\"key\":\"scope.payload\",\"value\":{\"intValue\":\"-3\"}}") == 1);
	CHECK(times("{\"key\":\"scope.domain\",\"value\":{\"stringValue\":\"app\"}}") == 3);
	CHECK(times("{\"key\":\"scope.kind\",\"value\":{\"stringValue\":\"mark\"}}") == 1);
	CHECK(times("\"unfinished\"") == 1);
	give_scopes(100000);
	CHECK_EQ(2, got.spans);
	CHECK(times("for\\\"ward") == 0 && times("\"half\"") == 0);
}

/* Work that is long enough brings its call with it, once, however short that was. */
static void threshold(void)
{
	struct sink_opts o = options(10000);
	char a[64], b[64];
	struct made_device m;
	struct play p;

	begin(&p, &o);
	play_process(&p, CT_PROCESS, 100, "trainer");
	play_calls(&p);
	CHECK(!p.rows);
	play_kernels(&p);
	make_copy(&m, PLAY_AT(1, 90000, 120000), CT_COPY_DTOD, CT_MEM_DEVICE, CT_MEM_DEVICE, 8);
	play_work(&p, &m, 1, NULL);
	play_end(&p, NULL);
	/* three kernels and the copy of 10 us and more, three launches of less, the root */
	CHECK(got.spans == 3 + 1 + 3 + 1);
	CHECK(times("\"name\":\"cudaLaunchKernel\"") == 2 &&
	      times("\"name\":\"cuLaunchKernel\"") == 1);
	CHECK_TEXT(member("cudaLaunchKernel", "spanId", a),
		   member("Memcpy DtoD", "parentSpanId", b));
	CHECK_TEXT("1700000000000001500", member("cudaLaunchKernel", "endTimeUnixNano", a));
}

/* Spans of one trace at most, and each root with a link to the one before. */
static void turns(void)
{
	struct sink_opts o = options(0);
	char first[64], second[64], child[64];
	struct made_device m;
	struct made_call call;
	struct play p;

	begin(&p, &o);
	play_process(&p, CT_PROCESS, 100, "trainer");
	for (uint32_t i = 1; i <= 10001; i++)
		play_call(&p, PLAY_LAUNCH(&call, 0), 100, 101, i, i * 100, i * 100 + 50, NULL,
			  NULL);
	/* work of a call of the first trace, which is full, goes there */
	p.causes[7] = (struct cause){ PLAY_START + 700, PLAY_START + 750, 101, call.c.func };
	make_set(&m, PLAY_AT(7, 2000000, 2000100), CT_MEM_DEVICE, 0, 4);
	play_work(&p, &m, 7, NULL);
	/* a minute later */
	play_call(&p, make_call(&call, "cudaFree", CT_CALL, 0, 0, U(1)), 100, 101, 10002,
		  61000000000, 61000000001, NULL, NULL);
	play_end(&p, NULL);
	CHECK(got.spans == 10001 + 1 + 1 + 3 && got.requests == 20);
	CHECK(times("\"name\":\"trainer\"") == 3 && times("\"links\":[{\"traceId\":\"") == 2);
	member("cudaLaunchKernel", "traceId", first);
	member("Memset", "traceId", child);
	CHECK_TEXT(first, child);
	member("cudaFree", "traceId", second);
	CHECK(strcmp(first, second));
	CHECK(times("{\"key\":\"cudatrace.spans\",\"value\":{\"intValue\":\"10000\"}}") == 1);
	CHECK(times("{\"key\":\"cudatrace.part\",\"value\":{\"intValue\":\"3\"}}") == 1);
}

/* The same file each time; other ids for another program of the same process. */
static void ids(void)
{
	struct sink_opts o = options(0);
	struct made_call call;
	char *before, a[64], b[64];
	struct play p;

	for (int round = 0; round < 2; round++) {
		begin(&p, &o);
		play_all(&p);
		play_end(&p, NULL);
		if (!round)
			before = strdup(got.all.s);
	}
	CHECK_TEXT(before, got.all.s);
	free(before);
	begin(&p, &o);
	play_process(&p, CT_PROCESS, 100, "sh");
	play_call(&p, make_call(&call, "cudaFree", CT_CALL, 0, 0, U(1)), 100, 100, 1, 100, 200,
		  NULL, NULL);
	play_process(&p, CT_EXEC, 100, "python3");
	play_call(&p, make_call(&call, "cudaMalloc", CT_CALL, 0, 0, U(1), U(2)), 100, 100, 1, 300,
		  400, NULL, NULL);
	play_end(&p, NULL);
	CHECK(got.spans == 4 &&
	      times("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"sh\"}}") == 1);
	CHECK(strcmp(member("cudaFree", "spanId", a), member("cudaMalloc", "spanId", b)));
	CHECK(strcmp(member("cudaFree", "traceId", a), member("cudaMalloc", "traceId", b)));
}

static void rubbish(void)
{
	struct sink_opts o = options(0);
	unsigned int seed = 7;
	struct play p;

	for (int json = 0; json < 2; json++) {
		want_json = json;
		begin(&p, &o);
		for (int i = 0; i < 20000; i++)
			play_rubbish(&p, &seed);
		CHECK(p.given > 1000);
		play_end(&p, NULL);
	}
}

/* ---- the environment ---- */

static void where(const char *url, const char *host, int port, const char *path)
{
	struct otlp_config c;
	int err = otlp_config_open(&c, url, OTLP_TRACES);

	CHECK(host ? !err : err == -EINVAL);
	if (host && !err) {
		CHECK_TEXT(host, c.host);
		CHECK_TEXT(path, c.path);
		CHECK(c.port == port);
	}
	otlp_config_close(&c);
}

static void environment(void)
{
	struct otlp_enc enc = { .json = true, .of_resource = true };
	struct otlp_config c;
	struct otlp_given given;

	where("http://127.0.0.1:4318", "127.0.0.1", 4318, "/v1/traces");
	where("http://collector/", "collector", 4318, "/v1/traces");
	where("http://[::1]:9/otel/", "::1", 9, "/otel/v1/traces");
	where("http://h:1/v1/traces", "h", 1, "/v1/traces");
	where("http://h:1/p?q=1", "h", 1, "/p/v1/traces?q=1");
	where("env", "localhost", 4318, "/v1/traces");
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:55/x", 1);
	where("env", "base", 55, "/x/v1/traces");
	setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:56/as/is", 1);
	where("env", "traces", 56, "/as/is");
	where("http://mine:1", "mine", 1, "/v1/traces");
	play_quiet(true);
	where("https://h", NULL, 0, NULL);
	where("h:4318", NULL, 0, NULL);
	where("http://", NULL, 0, NULL);
	where("http://h:99999", NULL, 0, NULL);
	where("http://user:password@h", NULL, 0, NULL);
	setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
	where("http://h", NULL, 0, NULL);
	setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", 1);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", 1);
	where("http://h", NULL, 0, NULL);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", 1);
	where("http://h", NULL, 0, NULL);
	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", 1);
	setenv("OTEL_EXPORTER_OTLP_HEADERS",
	       "a=1, authorization = Basic%20eA%3D%3D ,bad,x=y%0d%0aInjected: 1", 1);
	CHECK(!otlp_config_open(&c, "env", OTLP_TRACES));
	CHECK(c.json);
	CHECK(c.gzip);
	CHECK_EQ(2500, c.timeout_ms);
	CHECK_EQ(2, c.nheaders);
	CHECK_TEXT("authorization", c.headers[1].name);
	CHECK_TEXT("Basic eA==", c.headers[1].value);
	otlp_config_close(&c);
	play_quiet(false);

	setenv("OTEL_RESOURCE_ATTRIBUTES",
	       "service.name=from-list,deployment.environment=a%2Cb,process.pid=9", 1);
	given = otlp_config_resource(&enc);
	text_mem(&enc.attrs, "", 1);
	CHECK(given.service && !given.host);
	CHECK_TEXT("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"from-list\"}},{\"key\":"
		   "\"deployment.environment\",\"value\":{\"stringValue\":\"a,b\"}}",
		   enc.attrs.s);
	enc.attrs.len = 0;
	setenv("OTEL_SERVICE_NAME", "mine", 1);
	otlp_config_resource(&enc);
	text_mem(&enc.attrs, "", 1);
	CHECK(strstr(enc.attrs.s, "\"mine\"") && !strstr(enc.attrs.s, "from-list"));
	text_free(&enc.attrs);
}

/* ---- answers ---- */

static void answers(void)
{
	static const char partial[] = "\x0a\x08\x08\x05\x12\x04no\x1b!";
	static const char json[] =
		"{\"partialSuccess\":{\"rejectedSpans\":\"12\",\"errorMessage\":\"too many\"}}";
	static const char other[] = "{\"x\":{\"rejectedSpans\":3,\"errorMessage\":\"no\"}}";
	static const char quoted[] = "{\"partialSuccess\":{\"errorMessage\":\"a \\\"b\\\"\"}}";
	char words[32], noise[64];
	uint64_t rejected;
	unsigned int seed = 3;

	otlp_get_response(false, partial, sizeof(partial) - 1, &rejected, words, sizeof(words));
	CHECK(rejected == 5);
	CHECK_TEXT("no?!", words);
	otlp_get_response(true, NULL, 0, &rejected, words, sizeof(words));
	otlp_get_response(false, NULL, 0, &rejected, words, sizeof(words));
	CHECK(!rejected && !*words);
	otlp_get_response(false, "\x0a\x7f", 2, &rejected, words, sizeof(words));
	CHECK(!rejected && !*words);
	otlp_get_response(true, json, sizeof(json) - 1, &rejected, words, sizeof(words));
	CHECK(rejected == 12);
	CHECK_TEXT("too many", words);
	otlp_get_response(true, "{\"partialSuccess\":{\"rejectedSpans\":7}}", 38, &rejected, words,
			  sizeof(words));
	CHECK(rejected == 7);
	otlp_get_response(true, "{}", 2, &rejected, words, sizeof(words));
	CHECK(!rejected);
	/* members of these names elsewhere, and what is no JSON */
	otlp_get_response(true, other, sizeof(other) - 1, &rejected, words, sizeof(words));
	CHECK(!rejected && !*words);
	otlp_get_response(true, "\"rejectedSpans\":9", 17, &rejected, words, sizeof(words));
	CHECK(!rejected);
	otlp_get_response(true, quoted, sizeof(quoted) - 1, &rejected, words, sizeof(words));
	CHECK_TEXT("a \"b\"", words);
	for (int i = 0; i < 100000; i++) {
		size_t n = (size_t)rand_r(&seed) % sizeof(noise);

		for (size_t k = 0; k < n; k++)
			noise[k] = (char)(rand_r(&seed) % 4 ? rand_r(&seed) % 20 : rand_r(&seed));
		otlp_get_response(i % 2, noise, n, &rejected, words, sizeof(words));
	}
}

/* The play as protobuf, a file for each request, and as the file that otlp-json writes. */
static int write_files(const char *prefix)
{
	struct sink_opts o = options(0);
	char path[256];
	struct out out;
	struct play p;

	got.prefix = prefix;
	want_json = false;
	begin(&p, &o);
	play_all(&p);
	play_end(&p, NULL);
	snprintf(path, sizeof(path), "%s.jsonl", prefix);
	CHECK(!out_open(&out, path, false));
	o.out = &out;
	play_begin(&p, &sink_otlp_json, &o);
	play_all(&p);
	CHECK(!play_end(&p, NULL) && !out_close(&out));
	text_free(&got.all);
	return unit_end();
}

int main(int argc, char **argv)
{
	static const char *const variables[] = { "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES" };

	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	if (argc > 1)
		return write_files(argv[1]);
	RUN(tree);
	RUN(threshold);
	RUN(scopes);
	RUN(turns);
	RUN(ids);
	RUN(rubbish);
	text_free(&got.all);
	RUN(environment);
	RUN(answers);
	return unit_end();
}
