/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hostile.c - recordings that are well-formed and mean harm: records that pass the check
 * with any value in any field. Without arguments it reads some of them back. `write SEED FILE`
 * writes one, which tests/export/hostile.py gives to every command; `fill WHAT COUNT FILE` one
 * with so many different processes, names, threads... that no table may keep them all.
 */
#include <unistd.h>

#include "../../user/event/muted.h"
#include "../../user/trace/reader.h"
#include "../../user/trace/writer.h"
#include "patch_trace.h"
#include "random.h"
#include "unit.h"
#include "../../wire/control.h"

static uint64_t state = RANDOM_SEED;
static uint64_t rnd(void)
{
	return random_next(&state);
}

static uint64_t below(uint64_t n)
{
	return rnd() % n;
}

/* ---- values ---- */

static uint64_t any64(void)
{
	static const uint64_t odd[] = {
		0,
		1,
		7,
		255,
		4096,
		INT32_MAX,
		1ULL << 31,
		UINT32_MAX,
		1ULL << 32,
		1ULL << 47,
		INT64_MAX,
		1ULL << 63,
		UINT64_MAX - 1,
		UINT64_MAX,
		0x7ff0000000000000,
		0x7ff8000000000000,
		0xfff0000000000000,
		0x7fefffffffffffff,
	};

	return below(3) ? odd[below(ARRAY_LEN(odd))] : below(2) ? rnd() : below(1000);
}

/* Few ids, so that records speak of each other, and the ends. */
static uint32_t any_id(void)
{
	static const uint32_t odd[] = { 0,	   UINT32_MAX, UINT32_MAX - 1, 1u << 31,
					INT32_MAX, 65535,      65536 };

	return below(6)	  ? (uint32_t)below(6)
	       : below(2) ? odd[below(ARRAY_LEN(odd))]
			  : (uint32_t)rnd();
}

static uint32_t any_pid(void)
{
	return below(12) ? 100 + (uint32_t)below(4) : any_id();
}

static uint32_t any_tid(uint32_t pid)
{
	return below(12) ? pid + (uint32_t)below(3) : any_id();
}

static uint64_t any_handle(void)
{
	return below(6) ? 0x7f0000001000 + below(12) * 16 : any64();
}

static uint64_t any_size(void)
{
	return below(2) ? below(1 << 24) : any64();
}

static uint64_t clock_ns = 1000000000000;

/* Mostly a little later than before; far ahead, far back, the ends. */
static void any_times(struct ct_hdr *h)
{
	switch (below(60)) {
	case 0:
		h->start_ns = any64();
		h->end_ns = any64();
		return;
	case 1:
		clock_ns += rnd() >> (20 + below(30)); /* years, hours */
		break;
	case 2:
		h->start_ns = clock_ns - below(10000000000);
		h->end_ns = h->start_ns + below(1000000);
		return;
	case 3: /* it ends before it begins */
		h->start_ns = clock_ns;
		h->end_ns = clock_ns - 1 - below(1000000);
		return;
	default: clock_ns += below(20000);
	}
	h->start_ns = clock_ns;
	h->end_ns = clock_ns + (below(40) ? below(60000) : rnd() >> (8 + below(40)));
}

/* ---- texts ---- */

static const char *const words[] = {
	"vecAdd(float*)",
	"_Z6vecAddPKfS0_Pfi",
	"_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi",
	"_Z",
	"_ZSt_Z1_",
	"%s%n%d",
	"</script><img src=x onerror=alert(1)>",
	"<!--<script>",
	"]]>",
	"\"quoted\" 'single'",
	"back\\slash\\",
	"=1+1",
	"+cmd|' /C calc'!A0",
	"a,b;c\td\r\ne",
	"\x1b[31mred\x1b]0;title\x07",
	"\xc3\xa4\xc3\xb6",
	"\xe2\x80\xae\xe2\x80\xa8",
	"\xef\xbb\xbf",
	"\xef\xbf\xbf",
	"\xff\xfe",
	"\xc0\x80",
	"\xed\xa0\x80",
	"\xf4\x90\x80\x80",
	"\xf0\x9f\x92\xa9",
	"\xe2\x82",
	"\x80",
	"\x7f\x01\x02\x03",
	"'; DROP TABLE StringIds; --",
	"$(reboot)",
	"../../../etc/passwd",
	"NaN",
	"null",
	"1e999",
	" ",
	"",
};

/* Makes a text of exactly n bytes. */
static void any_text(char *to, size_t n)
{
	size_t at = 0;

	while (at < n) {
		const char *w = words[below(ARRAY_LEN(words))];
		size_t len = strlen(w);

		if (!below(10)) {
			to[at++] = (char)rnd();
			continue;
		}
		len = len < n - at ? len : n - at;
		memcpy(to + at, w, len);
		at += len;
	}
}

static size_t any_length(size_t max)
{
	static const size_t lengths[] = { 0, 1, 7, 8, 15, 16, 31, 32, 255, 256, 1000, 4096 };
	size_t n = below(12)  ? below(24)
		   : below(6) ? lengths[below(ARRAY_LEN(lengths))]
			      : below(max + 1);

	return n < max ? n : max;
}

/* ---- records ---- */

union record {
	struct ct_hdr h;
	struct ct_call call;
	struct ct_work work;
	struct ct_muted muted;
	struct ct_kernel kernel;
	struct ct_copy copy;
	struct ct_set set;
	struct ct_sync sync;
	struct ct_memory memory;
	struct ct_managed managed;
	struct ct_overhead overhead;
	struct ct_marker marker;
	struct ct_metric metric;
	struct ct_counter counter;
	struct ct_event event;
	struct ct_clock clock;
	struct ct_device device;
	struct ct_context context;
	struct ct_stream stream;
	struct ct_name name;
	struct ct_frame frame;
	struct ct_stack stack;
	struct ct_process process;
	struct ct_process_info info;
	struct ct_foreign foreign;
	struct ct_fork fork;
	struct ct_lost lost;
	uint64_t words[8192];
};

/* A record of some length, any value in each word. */
static void begin(union record *r, uint16_t kind, size_t size)
{
	size = (size + 7) & ~(size_t)7;
	for (size_t i = 0; i < size / 8; i++)
		r->words[i] = any64();
	r->h = (struct ct_hdr){ .size = (uint16_t)size,
				.kind = kind,
				.pid = any_pid(),
				.flags = (uint16_t)(below(12)  ? 0
						    : below(2) ? rnd()
							       : 1u << below(16)) };
	r->h.tid = any_tid(r->h.pid);
	any_times(&r->h);
}

/* Argument words by what most rows have there: pointers, sizes, small numbers. */
static uint64_t any_argument(void)
{
	switch (below(4)) {
	case 0: return any_handle();
	case 1: return any_size();
	case 2: return below(5);
	default: return any64();
	}
}

static void any_reads(union record *r, const struct ct_spec *spec, size_t at)
{
	for (int i = 0; i < spec->nreads; i++) {
		bool fixed = spec->reads[i].kind == CT_READ_BYTES;
		uint64_t n = fixed ? spec->reads[i].len : below(spec->reads[i].len + 1u), head;
		size_t all = (n + (fixed ? 0 : 8) + 7) & ~7ULL;

		if (!below(4) || at + all > sizeof(struct ct_call) + CT_DATA_MAX)
			continue;
		head = n | (below(5) ? 0 : CT_STR_CUT);
		for (size_t k = at; k < at + all; k += 8)
			r->words[k / 8] = any_argument();
		if (spec->reads[i].kind == CT_READ_STR)
			any_text((char *)r + at + 8, n);
		if (!fixed)
			memcpy((char *)r + at, &head, sizeof(head));
		at += all;
		r->call.got |= 1u << i;
	}
	if (!below(3)) {
		r->h.flags |= CT_F_STACK;
		r->words[at / 8] = below(20) ? below(8) : any64();
		at += 8;
	} else {
		r->h.flags &= (uint16_t)~CT_F_STACK;
	}
	r->h.size = (uint16_t)at;
}

static void any_call(union record *r)
{
	static const char *const often[] = {
		"cudaMalloc",	  "cudaFree",	     "cudaLaunchKernel", "cudaMemcpyAsync",
		"cudaMemcpy",	  "cudaSetDevice",   "cudaStreamCreate", "cudaStreamSynchronize",
		"cuLaunchKernel", "cuMemAlloc_v2",   "cuCtxSetCurrent",	 "cudaGraphLaunch",
		"cuMemFree_v2",	  "cudaMallocAsync", "cudaFreeAsync",	 "cudaHostAlloc",
		"cudaMemset",	  "cuMemCreate",     "cuMemMap",	 "cudaDeviceSynchronize",
		"cudaMemGetInfo"
	};
	int func = below(3) ? api_next(often[below(ARRAY_LEN(often))], -1)
			    : (int)below((uint64_t)api_nfuncs);
	struct ct_spec spec;

	memset(&spec, 0, sizeof(spec));
	if (func < 0 || api_spec(func, API_ARCH_HERE, true, &spec))
		func = 0, memset(&spec, 0, sizeof(spec));
	begin(r, below(12) ? CT_CALL : CT_ENTER, sizeof(struct ct_call) + CT_DATA_MAX + 8);
	r->call.func = (uint16_t)func;
	r->call.nwords =
		(uint8_t)(below(10) ? spec.nwords
				    : spec.nwords + below(CT_LAYER_WORDS + 1u - spec.nwords));
	r->call.depth = (uint8_t)(below(8) ? 0 : below(3) ? below(4) : rnd());
	r->call.got = 0;
	r->call.ret = (int64_t)(below(5) ? 0 : any64());
	for (int i = 0; i < r->call.nwords; i++)
		r->call.words[i] = any_argument();
	any_reads(r, &spec, sizeof(struct ct_call) + r->call.nwords * 8u);
}

static void any_work(union record *r)
{
	static const struct {
		uint16_t kind, size;
	} kinds[] = {
		{ CT_KERNEL, sizeof(struct ct_kernel) }, { CT_KERNEL, sizeof(struct ct_kernel) },
		{ CT_COPY, sizeof(struct ct_copy) },	 { CT_SET, sizeof(struct ct_set) },
		{ CT_SYNC, sizeof(struct ct_sync) },	 { CT_GRAPH, sizeof(struct ct_work) },
		{ CT_MEMORY, sizeof(struct ct_memory) }, { CT_MANAGED, sizeof(struct ct_managed) },
	};
	size_t k = below(ARRAY_LEN(kinds));

	begin(r, kinds[k].kind, kinds[k].size + (below(20) ? 0 : below(60) * 8));
	if (r->h.end_ns < r->h.start_ns)
		r->h.end_ns = r->h.start_ns;
	r->work.device = any_id();
	r->work.context = any_id();
	r->work.stream = any_id();
	r->work.call_ns = below(3) ? clock_ns - below(100000) : any64();
	r->work.stack = any_id();
	r->work.func = (uint16_t)(below(4) ? below((uint64_t)api_nfuncs) : CT_NO_FUNC);
	switch (r->h.kind) {
	case CT_KERNEL:
		r->kernel.name = any_handle();
		for (int i = 0; i < 3; i++) {
			r->kernel.grid[i] = any_id();
			r->kernel.block[i] = any_id();
		}
		break;
	case CT_COPY:
	case CT_SET:
		r->copy.bytes = any_size();
		r->copy.kind = (uint8_t)(below(5) ? below(11) : rnd());
		break;
	case CT_MEMORY:
		r->memory.address = any_handle();
		r->memory.bytes = any_size();
		r->memory.op = (uint8_t)(below(8) ? 1 + below(2) : rnd());
		r->memory.memory = (uint8_t)(below(8) ? below(8) : rnd());
		break;
	}
}

static void any_definition(union record *r)
{
	static const uint16_t kinds[] = { CT_NAME,   CT_NAME,	 CT_FRAME,  CT_FRAME, CT_STACK,
					  CT_DEVICE, CT_CONTEXT, CT_STREAM, CT_METRIC };
	size_t a = any_length(16384), b = any_length(16384), c = any_length(16384);

	switch (kinds[below(ARRAY_LEN(kinds))]) {
	case CT_NAME:
		begin(r, CT_NAME, sizeof(r->name) + a);
		r->name.handle = any_handle();
		r->name.len = (uint32_t)a;
		r->name.cut = (uint8_t)!below(10);
		any_text(r->name.name, a);
		break;
	case CT_FRAME:
		begin(r, CT_FRAME, sizeof(r->frame) + a + b + c);
		r->frame.id = any_id();
		r->frame.kind = (uint8_t)(below(10) ? below(4) : rnd());
		r->frame.function_len = (uint16_t)a;
		r->frame.file_len = (uint16_t)b;
		r->frame.object_len = (uint16_t)c;
		any_text(r->frame.strings, a + b + c);
		break;
	case CT_STACK:
		a = below(20) ? below(8) : below(10000);
		begin(r, CT_STACK, sizeof(r->stack) + a * 4);
		r->stack.id = any_id();
		r->stack.nframes = (uint32_t)a;
		for (size_t i = 0; i < a; i++)
			r->stack.frames[i] = any_id();
		break;
	case CT_DEVICE:
		begin(r, CT_DEVICE, sizeof(r->device) + a);
		r->device.id = any_id();
		r->device.name_len = (uint32_t)a;
		memset(r->device.uuid, (int)below(3), sizeof(r->device.uuid));
		any_text(r->device.name, a);
		break;
	case CT_CONTEXT:
		begin(r, CT_CONTEXT, sizeof(r->context));
		r->context.id = any_id();
		r->context.device = any_id();
		r->context.null_stream = any_id();
		r->context.handle = any_handle();
		break;
	case CT_STREAM:
		begin(r, CT_STREAM, sizeof(r->stream));
		r->stream.id = any_id();
		r->stream.context = any_id();
		r->stream.handle = any_handle();
		break;
	case CT_METRIC:
		begin(r, CT_METRIC, sizeof(r->metric) + a + b);
		r->h.pid = below(4) ? 0 : r->h.pid;
		r->metric.id = any_id();
		r->metric.name_len = (uint16_t)a;
		r->metric.unit_len = (uint16_t)b;
		any_text(r->metric.text, a + b);
		if (below(2) && a >= 6)
			memcpy(r->metric.text, "l2_hit", 6);
		break;
	}
}

static void any_process(union record *r)
{
	static const uint16_t kinds[] = { CT_PROCESS,	   CT_PROCESS, CT_EXEC,
					  CT_PROCESS_INFO, CT_FORK,    CT_EXIT };
	size_t n[6], sum = 0;

	switch (kinds[below(ARRAY_LEN(kinds))]) {
	case CT_PROCESS:
	case CT_EXEC:
		begin(r, below(4) ? CT_PROCESS : CT_EXEC, sizeof(r->process));
		any_text(r->process.comm, CT_COMM_LEN - 1);
		r->process.comm[below(CT_COMM_LEN)] = '\0';
		r->process.comm[CT_COMM_LEN - 1] = '\0';
		r->process.ns_pid = any_pid();
		if (below(2))
			r->process.start_boottime_ns = 5;
		break;
	case CT_PROCESS_INFO:
		for (int i = 0; i < 6; i++)
			sum += n[i] = any_length(8192);
		begin(r, CT_PROCESS_INFO, sizeof(r->info) + sum);
		r->info.exe_len = (uint16_t)n[0];
		r->info.cmdline_len = (uint16_t)n[1];
		r->info.container_len = (uint16_t)n[2];
		r->info.pod_len = (uint16_t)n[3];
		r->info.host_len = (uint16_t)n[4];
		r->info.boot_len = (uint16_t)n[5];
		any_text(r->info.text, sum);
		break;
	case CT_FORK:
		begin(r, CT_FORK, sizeof(r->fork));
		r->fork.child_pid = any_pid();
		r->fork.child_ns_pid = any_pid();
		break;
	default: begin(r, CT_EXIT, sizeof(struct ct_exit));
	}
}

static void any_other(union record *r)
{
	static const uint16_t kinds[] = { CT_MARKER, CT_COUNTER, CT_COUNTER,	CT_EVENT,
					  CT_CLOCK,  CT_LOST,	 CT_OVERHEAD,	CT_FOREIGN,
					  CT_MUTED,  CT_MUTED,	 CT_CALL_COUNT, CT_KIND_END,
					  4711 };
	uint16_t kind = kinds[below(ARRAY_LEN(kinds))];
	size_t a = any_length(16384), b = any_length(16384);

	switch (kind) {
	case CT_MARKER:
		begin(r, kind, sizeof(r->marker) + a + b);
		r->marker.what = (uint8_t)(below(10) ? below(3) : rnd());
		r->marker.text_len = (uint16_t)a;
		r->marker.domain_len = (uint16_t)b;
		any_text(r->marker.text, a + b);
		break;
	case CT_COUNTER:
		a = below(20) ? below(5) : below(3000);
		begin(r, kind, sizeof(r->counter) + a * sizeof(struct ct_value));
		r->h.pid = below(4) ? 0 : r->h.pid;
		r->counter.device = any_id();
		r->counter.n = (uint32_t)a;
		for (size_t i = 0; i < a; i++)
			r->counter.values[i].metric = any_id();
		break;
	case CT_EVENT:
		begin(r, kind, sizeof(r->event) + a);
		r->event.device = any_id();
		r->event.type = any_id();
		r->event.text_len = (uint32_t)a;
		any_text(r->event.text, a);
		break;
	case CT_CLOCK:
		begin(r, kind, sizeof(r->clock));
		r->h.pid = 0;
		break;
	case CT_LOST:
		begin(r, kind, sizeof(r->lost));
		r->lost.cause = any_id();
		break;
	case CT_FOREIGN:
		begin(r, kind, sizeof(r->foreign) + CT_MAX_WORDS * 8 + 512);
		r->foreign.kind = (uint16_t)(below(10) ? CT_CALL : CT_ENTER);
		r->foreign.nwords = (uint8_t)below(CT_MAX_WORDS + 1);
		r->foreign.name_len = (uint8_t)below(256);
		r->foreign.domain_len = (uint8_t)below(256);
		any_text((char *)&r->foreign.words[r->foreign.nwords], 512);
		break;
	case CT_MUTED: /* numbers of any size and sign, of functions that there are or not */
		begin(r, kind, sizeof(struct ct_muted) + 512);
		r->muted.domain_len = (uint8_t)below(256);
		r->muted.name_len = (uint8_t)below(256);
		any_text(r->muted.text, 512);
		if (below(4))
			muted_name(&r->muted, (int)below((uint64_t)api_nfuncs));
		break;
	default:
		begin(r, kind,
		      kind == CT_OVERHEAD     ? sizeof(r->overhead)
		      : kind == CT_CALL_COUNT ? sizeof(struct ct_call_count)
					      : 32 + below(100) * 8);
	}
}

static void any_record(union record *r)
{
	do {
		uint64_t what = below(20);

		if (what < 8)
			any_call(r);
		else if (what < 13)
			any_work(r);
		else if (what < 16)
			any_definition(r);
		else if (what < 17)
			any_process(r);
		else
			any_other(r);
	} while (record_check(r, sizeof(*r)));
}

/* ---- files ---- */

/* Lines "key value" as no recorder writes them. */
static char *any_lines(const char *const *keys, size_t nkeys, const char *first)
{
	char *text = NULL, value[4096];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		abort();
	fputs(first, f);
	for (size_t i = 0, n = below(30); i < n; i++) {
		const char *key = keys[below(nkeys)];
		size_t room = any_length(sizeof(value));

		if (below(2)) {
			fprintf(f, "%s %s%llu\n", key, below(4) ? "" : "-",
				(unsigned long long)any64());
			continue;
		}
		any_text(value, room);
		fprintf(f, "%s ", key);
		for (size_t k = 0; k < room; k++)
			fputc(value[k] ? value[k] : '\n', f);
		fputc('\n', f);
	}
	fclose(f);
	return text;
}

static char *any_head(void)
{
	static const char *const keys[] = { "version",
					    "arch",
					    "host",
					    "boot_id",
					    "kernel",
					    "driver",
					    "gpu",
					    "start_ns",
					    "realtime_offset_ns",
					    "boottime_offset_ns",
					    "places",
					    "work",
					    "clock_error_ns",
					    "traced",
					    "arg",
					    "part",
					    "merged",
					    "x" };

	return any_lines(keys, ARRAY_LEN(keys),
			 below(4) ? "format 1\nstart_ns 1000000000000\nrealtime_offset_ns "
				    "1700000000000000000\n"
				  : "format 1\n");
}

static char *any_end(void)
{
	static const char *const keys[] = {
		"reason", "uptime_ns",	"calls",    "folded",	      "filtered",
		"sent",	  "unfinished", "received", "lost.ring_full", "lost.malformed",
		"lost.x", "muted",	"x"
	};

	return any_lines(keys, ARRAY_LEN(keys), "");
}

static uint64_t write_any(const char *path, uint64_t seed, size_t n)
{
	char *head, *end;
	union record *r = malloc(sizeof(*r));
	struct writer *w;
	uint64_t kept = 0;

	state = (seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
	clock_ns = 1000000000000;
	for (int i = 0; i < 10; i++)
		rnd();
	head = any_head();
	end = any_end();
	remove(path);
	if (!r || writer_open(&w, path, head))
		abort();
	for (size_t i = 0; i < n;) {
		any_record(r);
		/* runs of the same, as loops make them */
		for (uint64_t k = below(5) ? 1 : below(40); k-- && i < n; i++) {
			kept++;
			if (writer_record(w, &r->h))
				abort();
			r->h.start_ns += below(2000);
			if (r->h.kind == CT_CALL || r->h.end_ns < r->h.start_ns)
				r->h.end_ns = r->h.start_ns + below(3000);
			clock_ns = clock_ns < r->h.end_ns && r->h.end_ns - clock_ns < 10000000
					   ? r->h.end_ns
					   : clock_ns;
		}
		if (!below(300) && writer_flush(w))
			abort();
	}
	if ((below(5) ? writer_end(w, end) : writer_flush(w)) || writer_close(w))
		abort();
	free(head);
	free(end);
	free(r);
	/* names of functions that no version has */
	if ((!below(3) && patch_trace(path, "cudaMalloc", "\"\\\x1b<,=\xff%n\n", 0) < 0) ||
	    (!below(3) && patch_trace(path, "cudaFree", "cudaFree", 1) < 0))
		abort();
	return kept;
}

/* ---- what no table may keep ---- */

static void fill_one(union record *r, const char *what, uint32_t i)
{
	static char text[16001];
	size_t long_at = strlen(what) > 5 ? strlen(what) - 5 : 0;
	int n = snprintf(text, sizeof(text), "%08x_some_longer_text_that_takes_memory", i);

	/* WHAT-long: with texts as long as they may be */
	if (!strcmp(what + long_at, "-long")) {
		memset(text + n, 'x', sizeof(text) - 1 - (size_t)n);
		n = sizeof(text) - 1;
	}
	memset(r, 0, sizeof(*r));
	r->h = (struct ct_hdr){ .pid = 100,
				.tid = 100,
				.start_ns = 1000000000000 + i * 1000ULL,
				.end_ns = 1000000000500 + i * 1000ULL };
	r->h.size = sizeof(struct ct_kernel);
	r->work.func = CT_NO_FUNC;
	if (!strcmp(what, "processes") || !strcmp(what, "infos")) {
		bool info = *what == 'i' && i & 1;

		r->h.kind = info ? CT_PROCESS_INFO : CT_PROCESS;
		r->h.pid = r->h.tid = 1000 + (*what == 'i' ? i / 2 : i);
		r->h.size = info ? sizeof(r->info) + 8192 : sizeof(r->process);
		if (!info) {
			memcpy(r->process.comm, text, CT_COMM_LEN - 1);
			return;
		}
		r->info.exe_len = r->info.cmdline_len = 4096;
		memset(r->info.text, 'x', 8192);
		memcpy(r->info.text, text, (size_t)n);
	} else if (!strcmp(what, "forks")) {
		r->h.kind = CT_FORK;
		r->h.size = sizeof(r->fork);
		r->fork.child_pid = 1000 + i;
	} else if (!strcmp(what, "callers")) {
		r->h.kind = CT_CALL;
		r->call.func = (uint16_t)api_next("cudaDeviceSynchronize", -1);
		r->h.pid = 1000 + i;
		r->h.tid = 1000 + i;
		r->call.nwords = 6;
		r->h.size = sizeof(r->call) + 48;
	} else if (!strcmp(what, "threads")) {
		r->h.kind = CT_CALL;
		r->call.func = (uint16_t)api_next("cudaDeviceSynchronize", -1);
		r->h.tid = 1000 + i;
		r->call.nwords = 6;
		r->call.depth = 1;
		r->h.size = sizeof(r->call) + 48;
	} else if (!strcmp(what, "allocations")) {
		r->h.kind = CT_MEMORY;
		r->h.size = sizeof(r->memory);
		r->memory.op = CT_MEMORY_ALLOC;
		r->memory.memory = CT_MEM_DEVICE;
		r->memory.address = 0x7f0000000000 + i * 4096ULL;
		r->memory.bytes = 4096;
		r->h.end_ns = r->h.start_ns;
	} else if (!strcmp(what, "devices")) {
		r->h.kind = CT_KERNEL;
		r->work.device = r->work.context = i;
		r->work.stream = 7;
	} else if (!strcmp(what, "streams")) {
		r->h.kind = CT_KERNEL;
		r->work.stream = i;
	} else if (!strncmp(what, "handles", 7)) {
		r->h.kind = CT_NAME;
		r->name.handle = i;
		r->name.len = (uint32_t)n;
		r->h.size = (uint16_t)((sizeof(r->name) + (size_t)n + 7) & ~7UL);
		memcpy(r->name.name, text, (size_t)n);
	} else if (!strncmp(what, "kernels", 7)) {
		/* one handle, again and again another name, and a run of it */
		if (i & 1) {
			r->h.kind = CT_KERNEL;
			r->kernel.name = 1;
			return;
		}
		r->h.kind = CT_NAME;
		r->name.handle = 1;
		r->name.len = (uint32_t)n;
		r->h.size = (uint16_t)((sizeof(r->name) + (size_t)n + 7) & ~7UL);
		memcpy(r->name.name, text, (size_t)n);
	} else if (!strncmp(what, "stacks", 6)) {
		static uint32_t id;

		if (!i)
			id = 0;
		switch (i % 3) {
		case 0:
			r->h.kind = CT_FRAME;
			r->frame.id = ++id;
			r->frame.function_len = r->frame.file_len = (uint16_t)n;
			r->h.size = (uint16_t)((sizeof(r->frame) + 2 * (size_t)n + 7) & ~7UL);
			memcpy(r->frame.strings, text, (size_t)n);
			memcpy(r->frame.strings + n, text, (size_t)n);
			break;
		case 1:
			r->h.kind = CT_STACK;
			r->h.size = sizeof(r->stack) + 8;
			r->stack.id = id;
			r->stack.nframes = 1;
			r->stack.frames[0] = id;
			break;
		default:
			r->h.kind = CT_CALL;
			r->h.flags = CT_F_STACK;
			r->call.func = (uint16_t)api_next("cudaMalloc", -1);
			r->call.nwords = 6;
			r->call.words[1] = 4096;
			r->call.words[6] = 0x7f0000000000 + i * 4096ULL;
			r->call.got = 1;
			r->call.words[7] = id;
			r->h.size = sizeof(r->call) + 64;
		}
	} else if (!strncmp(what, "markers", 7)) {
		r->h.kind = CT_MARKER;
		r->marker.id = i;
		r->marker.text_len = r->marker.domain_len = (uint16_t)n;
		r->h.size = (uint16_t)((sizeof(r->marker) + 2 * (size_t)n + 7) & ~7UL);
		memcpy(r->marker.text, text, (size_t)n);
		memcpy(r->marker.text + n, text, (size_t)n);
	} else if (!strcmp(what, "metrics")) {
		r->h.pid = 0;
		r->h.kind = i & 1 ? CT_COUNTER : CT_METRIC;
		r->h.size = i & 1 ? sizeof(r->counter) + 16 : sizeof(r->metric) + 8;
		if (i & 1) {
			r->counter.device = i / 2;
			r->counter.n = 1;
			r->counter.values[0].metric = i / 2;
		} else {
			r->metric.id = i / 2;
			r->metric.name_len = 8;
			memcpy(r->metric.text, text, 8);
		}
	} else if (!strcmp(what, "contexts")) {
		r->h.kind = i % 3 == 0 ? CT_DEVICE : i % 3 == 1 ? CT_CONTEXT : CT_STREAM;
		r->h.size = i % 3 == 0	 ? sizeof(r->device)
			    : i % 3 == 1 ? sizeof(r->context)
					 : sizeof(r->stream);
		if (i % 3 == 0) {
			r->device.id = i / 3;
			memcpy(r->device.uuid, text, 16);
		} else if (i % 3 == 1) {
			r->context.id = r->context.device = i / 3;
			r->context.handle = i;
		} else {
			r->stream.id = r->stream.context = i / 3;
			r->stream.handle = i;
		}
	} else {
		fprintf(stderr, "no such thing: %s\n", what);
		exit(2);
	}
}

static void write_fill(const char *path, const char *what, uint32_t n)
{
	union record *r = malloc(sizeof(*r));
	struct writer *w;

	if (!r || writer_open(&w, path,
			      "format 1\nhost h\nboot_id b\nstart_ns "
			      "1000000000000\nrealtime_offset_ns 1700000000000000000\n"))
		abort();
	for (uint32_t i = 0; i < n; i++) {
		fill_one(r, what, i);
		if (record_check(r, sizeof(*r)) || writer_record(w, &r->h)) {
			fprintf(stderr, "%s: record %u is none\n", what, i);
			exit(1);
		}
	}
	if (writer_end(w, "reason finished\n") || writer_close(w))
		abort();
	free(r);
}

/* ---- here ---- */

/* With functions of another version the columns are not compressed: the files of seeds 31 and
 * 177 take more than 1 MiB then. */
static void test_read_back(const char *path)
{
	for (uint64_t seed = 0; seed < 33; seed++) {
		uint64_t n = write_any(path, seed < 32 ? seed : 177, 1500);
		const struct ct_hdr *h;
		struct reader_stats s;
		struct reader *r;
		int more;

		CHECK(!reader_open(&r, path));
		while ((more = reader_next(r, &h)) == 1)
			CHECK(!record_check(h, h->size));
		reader_stats(r, &s);
		CHECK(!more && !s.damaged && !s.malformed && s.records == n);
		reader_close(r);
	}
}

int main(int argc, char **argv)
{
	char path[64];

	if (argc == 4 && !strcmp(argv[1], "write")) {
		write_any(argv[3], strtoull(argv[2], NULL, 10), 3000);
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "fill")) {
		write_fill(argv[4], argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
		return 0;
	}
	if (argc > 1) {
		fprintf(stderr, "usage: test_hostile [write SEED FILE | fill WHAT COUNT FILE]\n");
		return 2;
	}
	snprintf(path, sizeof(path), "/tmp/ct-hostile-%d", (int)getpid());
	RUN(test_read_back, path);
	remove(path);
	return unit_end();
}
