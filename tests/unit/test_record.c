/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_record.c - what record_check() lets through and what it refuses: of each kind of record with sizes in it the largest that is
 * allowed, the smallest that is not, and a record that is 8 bytes shorter than what it announces.
 */
#include <errno.h>

#include "../../user/event/event.h"
#include "unit.h"
#include "../../wire/control.h"

/* The largest size that a head can say, and some bytes behind it that no check may look at. */
static union {
	struct ct_hdr h;
	struct ct_call call;
	struct ct_more more;
	struct ct_absent absent;
	struct ct_name name;
	struct ct_user_stack user_stack;
	struct ct_py_stack py_stack;
	struct ct_py_code py_code;
	struct ct_frame frame;
	struct ct_stack stack;
	struct ct_process process;
	struct ct_thread_name thread_name;
	struct ct_process_info info;
	struct ct_foreign foreign;
	struct ct_muted muted;
	struct ct_unprobed unprobed;
	struct ct_kernel kernel;
	struct ct_cause cause;
	struct ct_marker marker;
	struct ct_metric metric;
	struct ct_counter counter;
	struct ct_call_count call_count;
	struct ct_event event;
	struct ct_device device;
	struct ct_scope scope;
	struct ct_host_segment segment;
	char room[1 << 16];
} r;

static void fresh(int kind, size_t size)
{
	memset(&r, 0, sizeof(r));
	r.h.kind = (uint16_t)kind;
	r.h.size = (uint16_t)size;
}

/* In exactly so much memory: AddressSanitizer notices what is read behind it. */
static int checked_in(size_t avail)
{
	void *exact = malloc(avail);
	int err;

	if (!exact)
		abort();
	memcpy(exact, &r, avail);
	err = record_check(exact, avail);
	free(exact);
	return err;
}

static int checked(void)
{
	return checked_in(r.h.size);
}

/* A record whose announced content ends where it ends is good; one that is 8 bytes shorter is not. */
static void check_ends(int line)
{
	CASE_ROW("line %d", line);
	CHECK_EQ(0, checked());
	r.h.size = (uint16_t)(r.h.size - 8);
	CHECK_EQ(-EBADMSG, checked());
	r.h.size = (uint16_t)(r.h.size + 8);
}

#define ENDS check_ends(__LINE__)
/* A member may be so large, and not larger. The record has room for either. */
#define AT_MOST(member, most)                      \
	do {                                       \
		__auto_type kept = (member);       \
		CASE_ROW("%s", #member " " #most); \
		(member) = (most);                 \
		CHECK_EQ(0, checked());            \
		(member) = (most) + 1;             \
		CHECK_EQ(-EBADMSG, checked());     \
		(member) = kept;                   \
	} while (0)

static void test_heads(void)
{
	fresh(CT_KIND_END, sizeof(r.h));
	CHECK_EQ(0, record_check(&r, sizeof(r.h)));
	CHECK_EQ(-EBADMSG, checked_in(sizeof(r.h) - 1));
	CHECK_EQ(-EBADMSG, checked_in(0));
	r.h.size = sizeof(r.h) + 8;
	CHECK_EQ(-EBADMSG, record_check(&r, sizeof(r.h)));
	CHECK_EQ(0, record_check(&r, sizeof(r.h) + 8));
	r.h.size = sizeof(r.h) + 4;
	CHECK_EQ(-EBADMSG, checked());
	r.h.size = sizeof(r.h) - 8;
	CHECK_EQ(-EBADMSG, record_check(&r, sizeof(r)));
	for (int kind = 0; kind < CT_KIND_END; kind++) {
		if (record_kinds[kind].fixed <= sizeof(r.h))
			continue;
		fresh(kind, record_kinds[kind].fixed - 8);
		CASE_ROW("kind %d", kind);
		CHECK_EQ(-EBADMSG, checked());
	}
}

/* A call with a read of bytes, and one with a text. */
static size_t call_of(const char *name, int *func)
{
	struct ct_spec spec;
	bool per_thread;

	memset(&spec, 0, sizeof(spec));
	*func = api_lookup(name, 13000, &per_thread);
	CHECK(*func >= 0);
	CHECK_EQ(0, api_spec(*func, API_ARCH_HERE, true, &spec));
	fresh(CT_CALL, sizeof(r.call) + spec.nwords * 8u);
	r.call.func = (uint16_t)*func;
	r.call.nwords = spec.nwords;
	return r.h.size;
}

static void test_calls(void)
{
	size_t size;
	int func;

	size = call_of("cudaStreamSynchronize", &func);
	ENDS;
	r.h.size = (uint16_t)(size + 8 * CT_MAX_WORDS);
	AT_MOST(r.call.nwords, CT_MAX_WORDS);
	/* as many words as any function needs */
	r.call.nwords = CT_MAX_WORDS;
	AT_MOST(r.call.func, api_nfuncs - 1);
	r.call.func = 0xffff;
	CHECK_EQ(-EBADMSG, checked());

	/* fewer words than the function has: only of a call that had begun before */
	size = call_of("cudaStreamSynchronize", &func);
	r.call.nwords = 0;
	CHECK_EQ(-EBADMSG, checked());
	r.h.flags = CT_F_BEFORE;
	CHECK_EQ(0, checked());
	call_of("cudaMalloc", &func);
	r.h.size = (uint16_t)(r.h.size + 64);
	r.h.flags = CT_F_BEFORE;
	r.call.nwords = 0;
	r.call.got = 1;
	CHECK_EQ(-EBADMSG, checked());
	r.call.got = 0;
	r.call.nwords = 1;
	CHECK_EQ(-EBADMSG, checked());

	/* the id of its stack is behind all else */
	size = call_of("cudaStreamSynchronize", &func);
	r.h.flags = CT_F_STACK;
	CHECK_EQ(-EBADMSG, checked());
	r.h.size = (uint16_t)(size + 8);
	CHECK_EQ(0, checked());
	fresh(CT_CALL, sizeof(r.call));
	r.h.flags = CT_F_STACK | CT_F_BEFORE;
	CHECK_EQ(-EBADMSG, checked());

	/* the largest */
	call_of("cudaStreamSynchronize", &func);
	r.h.size = sizeof(r.call) + CT_DATA_MAX;
	CHECK_EQ(0, checked());
	r.h.size += 8;
	CHECK_EQ(-EBADMSG, checked());
	r.h.flags = CT_F_STACK;
	CHECK_EQ(0, checked());
}

static void test_reads(void)
{
	__u64 *head;
	size_t size;
	int func;

	/* an output of 8 bytes */
	size = call_of("cudaMalloc", &func);
	r.call.got = 1;
	CHECK_EQ(-EBADMSG, checked());
	r.h.size = (uint16_t)(size + 8);
	ENDS;
	r.call.got = 2; /* a read that the function does not have */
	CHECK_EQ(-EBADMSG, checked());

	/* a text: its length, and so many bytes */
	size = call_of("cuGetProcAddress_v2", &func);
	r.call.got = 1;
	r.h.size = (uint16_t)size;
	CHECK_EQ(-EBADMSG, checked()); /* no length */
	head = &r.call.words[r.call.nwords];
	*head = 16;
	r.h.size = (uint16_t)(size + 24);
	ENDS;
	*head = 17;
	CHECK_EQ(-EBADMSG, checked());
	*head = 16 | CT_STR_CUT;
	CHECK_EQ(0, checked());
	*head = 1ULL << 40;
	CHECK_EQ(-EBADMSG, checked());
	r.h.size = (uint16_t)(size + 8 + CT_READ_MAX + 64);
	for (*head = CT_READ_MAX + 1; *head > 0 && checked(); --*head)
		;
	CHECK(*head > 0 && *head <= CT_READ_MAX);
	*head = CT_READ_MAX + 1;
	CHECK_EQ(-EBADMSG, checked());
}

static void test_pieces(void)
{
	fresh(CT_MORE, sizeof(r.more) + 1000);
	r.more.len = 1000;
	ENDS;
	r.h.size += 8;
	AT_MOST(r.more.len, CT_MORE_PIECE);
	AT_MOST(r.more.offset, CT_NAME_MAX);
	AT_MOST(r.more.read, CT_MAX_READS - 1);
	AT_MOST(r.more.func, api_nfuncs - 1);

	fresh(CT_ABSENT, sizeof(r.absent));
	AT_MOST(r.absent.read, CT_MAX_READS - 1);
	AT_MOST(r.absent.func, api_nfuncs - 1);

	fresh(CT_NAME, sizeof(r.name) + 64);
	r.name.len = 64;
	ENDS;
	r.h.size = sizeof(r.name) + CT_NAME_MAX + 8;
	AT_MOST(r.name.len, CT_NAME_MAX);
	r.name.len = UINT32_MAX;
	CHECK_EQ(-EBADMSG, checked());
}

static void test_stacks(void)
{
	fresh(CT_USER_STACK, sizeof(r.user_stack) + 64);
	r.user_stack.len = 64;
	ENDS;
	r.h.size = sizeof(r.user_stack) + CT_STACK_MAX + 8;
	AT_MOST(r.user_stack.len, CT_STACK_MAX);
	AT_MOST(r.user_stack.nsaved, CT_MAX_FRAMES);
	AT_MOST(r.user_stack.how, CT_STACK_LIVE - (r.user_stack.len ? 1 : 0));
	r.user_stack.how = CT_STACK_ADDRESSES;
	r.user_stack.len = CT_ADDRESSES_MAX * 8;
	CHECK_EQ(0, checked());
	r.user_stack.len += 8;
	CHECK_EQ(-EBADMSG, checked());
	r.user_stack.len = 12;
	CHECK_EQ(-EBADMSG, checked());
	r.user_stack.how = CT_STACK_LIVE;
	r.user_stack.len = 8;
	CHECK_EQ(-EBADMSG, checked());
	r.user_stack.len = 0;
	CHECK_EQ(0, checked());

	fresh(CT_PY_STACK, sizeof(r.py_stack) + 3 * sizeof(r.py_stack.frames[0]));
	r.py_stack.n = 3;
	ENDS;
	r.h.size =
		(uint16_t)(sizeof(r.py_stack) + (CT_PY_PIECE + 1) * sizeof(r.py_stack.frames[0]));
	AT_MOST(r.py_stack.n, CT_PY_PIECE);
	r.py_stack.n = 4;
	AT_MOST(r.py_stack.first, CT_PY_MAX - 4);

	fresh(CT_STACK, sizeof(r.stack) + 16);
	r.stack.nframes = 4;
	ENDS;
	r.stack.nframes = UINT32_MAX;
	CHECK_EQ(-EBADMSG, checked());
}

static void test_codes(void)
{
	/* each text is rounded up to 8 by itself */
	fresh(CT_PY_CODE, sizeof(r.py_code) + 24);
	r.py_code.name_len = r.py_code.file_len = r.py_code.table_len = 1;
	ENDS;
	r.h.size = (uint16_t)(sizeof(r.py_code) + CT_PY_TABLE + CT_PY_FILE + CT_PY_NAME + 64);
	AT_MOST(r.py_code.name_len, CT_PY_NAME);
	AT_MOST(r.py_code.file_len, CT_PY_FILE);
	AT_MOST(r.py_code.table_len, CT_PY_TABLE);
	for (int kind = 0; kind < 256; kind++) {
		int want = kind <= 2 || kind == 4 ? 0 : -EBADMSG;

		CASE_ROW("kind of text %d", kind);
		r.py_code.name_kind = (uint8_t)kind;
		CHECK_EQ(want, checked());
		r.py_code.name_kind = 0;
		r.py_code.file_kind = (uint8_t)kind;
		CHECK_EQ(want, checked());
		r.py_code.file_kind = 0;
	}
}

/* Several texts behind each other: each counts. */
static void test_texts(void)
{
	fresh(CT_FRAME, sizeof(r.frame) + 24);
	r.frame.function_len = r.frame.file_len = r.frame.object_len = 8;
	ENDS;
	fresh(CT_PROCESS_INFO, sizeof(r.info) + 48);
	r.info.exe_len = r.info.cmdline_len = r.info.container_len = 8;
	r.info.pod_len = r.info.host_len = r.info.boot_len = 8;
	ENDS;
	fresh(CT_MUTED, sizeof(r.muted) + 16);
	r.muted.domain_len = r.muted.name_len = 8;
	ENDS;
	fresh(CT_MARKER, sizeof(r.marker) + 16);
	r.marker.text_len = r.marker.domain_len = 8;
	ENDS;
	fresh(CT_METRIC, sizeof(r.metric) + 16);
	r.metric.name_len = r.metric.unit_len = 8;
	ENDS;
	fresh(CT_EVENT, sizeof(r.event) + 8);
	r.event.text_len = 8;
	ENDS;
	fresh(CT_DEVICE, sizeof(r.device) + 8);
	r.device.name_len = 8;
	ENDS;
	fresh(CT_COUNTER, sizeof(r.counter) + 2 * sizeof(r.counter.values[0]));
	r.counter.n = 2;
	ENDS;
	r.counter.n = UINT32_MAX;
	CHECK_EQ(-EBADMSG, checked());
	fresh(CT_FOREIGN, sizeof(r.foreign) + 32);
	r.foreign.kind = CT_CALL;
	r.foreign.nwords = 2;
	r.foreign.name_len = r.foreign.domain_len = 8;
	ENDS;
	r.h.size = sizeof(r.foreign) + 8 * (CT_MAX_WORDS + 1) + 16;
	AT_MOST(r.foreign.nwords, CT_MAX_WORDS);
	r.foreign.kind = CT_ENTER;
	CHECK_EQ(0, checked());
	r.foreign.kind = CT_KERNEL;
	CHECK_EQ(-EBADMSG, checked());
	fresh(CT_CALL_COUNT, sizeof(r.call_count) + 8);
	r.call_count.nbuckets = 2;
	ENDS;
	r.h.size = sizeof(r.call_count) + 4 * (CT_HIST_BUCKETS + 2);
	AT_MOST(r.call_count.nbuckets, CT_HIST_BUCKETS);
	AT_MOST(r.call_count.func, api_nfuncs - 1);
}

static void test_names_of_processes(void)
{
	fresh(CT_PROCESS, sizeof(r.process));
	CHECK_EQ(0, checked());
	memset(r.process.comm, 'x', CT_COMM_LEN);
	CHECK_EQ(-EBADMSG, checked());
	r.h.kind = CT_EXEC;
	CHECK_EQ(-EBADMSG, checked());
	fresh(CT_THREAD_NAME, sizeof(r.thread_name));
	CHECK_EQ(0, checked());
	memset(r.thread_name.comm, 'x', CT_COMM_LEN);
	CHECK_EQ(-EBADMSG, checked());
	fresh(CT_HOST_SEGMENT, sizeof(r.segment));
	CHECK_EQ(0, checked());
	memset(r.segment.object, 'x', sizeof(r.segment.object));
	CHECK_EQ(-EBADMSG, checked());
	r.segment.object[sizeof(r.segment.object) - 1] = '\0';
	CHECK_EQ(0, checked());
	memset(r.segment.other, 'x', CT_COMM_LEN);
	CHECK_EQ(-EBADMSG, checked());
	fresh(CT_UNPROBED, sizeof(r.unprobed));
	r.h.start_ns = r.h.end_ns = 5;
	r.unprobed.processes = 3;
	AT_MOST(r.unprobed.ended, 3);
	r.unprobed.comm[CT_COMM_LEN - 1] = 'x';
	CHECK_EQ(-EBADMSG, checked());
	r.unprobed.comm[CT_COMM_LEN - 1] = '\0';
	r.h.end_ns = 4;
	CHECK_EQ(-EBADMSG, checked());
}

/* Which row a device's work belongs to: one that there is, or none. */
static void test_work(void)
{
	fresh(CT_KERNEL, record_kinds[CT_KERNEL].fixed);
	r.h.start_ns = r.h.end_ns = 5;
	AT_MOST(r.kernel.w.func, api_nfuncs - 1);
	r.kernel.w.func = CT_NO_FUNC;
	CHECK_EQ(0, checked());
	r.h.end_ns = 4;
	CHECK_EQ(-EBADMSG, checked());
	fresh(CT_CAUSE, sizeof(r.cause));
	AT_MOST(r.cause.func, api_nfuncs - 1);
	r.cause.func = CT_NO_FUNC;
	CHECK_EQ(0, checked());
}

static void test_scopes(void)
{
	static const struct {
		int kind;
		size_t more;
	} rows[] = {
		{ CT_SCOPE_RANGE, 0 },
		{ CT_SCOPE_MARK, 0 },
		{ CT_SCOPE_COLLECTIVE, sizeof(struct ct_collective) },
		{ CT_SCOPE_COMMUNICATOR, sizeof(struct ct_collective) },
		{ CT_SCOPE_OPERATOR, 0 },
		{ CT_SCOPE_GEMM, sizeof(struct ct_gemm) },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
		size_t more = rows[i / 2].more;

		fresh(i % 2 ? CT_SCOPE_BEGIN : CT_SCOPE_END, sizeof(r.scope) + more + 40);
		r.scope.kind = (uint8_t)rows[i / 2].kind;
		r.scope.text_len = 16;
		r.scope.domain_len = 9;
		r.scope.category_len = 4;
		r.scope.layer_len = 5;
		r.scope.fields_len = 6;
		ENDS;
	}
	fresh(CT_SCOPE_END, sizeof(r.scope) + 4096);
	AT_MOST(r.scope.kind, CT_SCOPE_KIND_END - 1);
	CHECK_EQ(-EBADMSG, checked()); /* 0 is no kind */
	r.scope.kind = CT_SCOPE_MARK;
	r.h.start_ns = 5;
	r.h.end_ns = 5;
	CHECK_EQ(0, checked());
	r.h.end_ns = 4;
	CHECK_EQ(-EBADMSG, checked());
}

int main(void)
{
	RUN(test_heads);
	RUN(test_calls);
	RUN(test_reads);
	RUN(test_pieces);
	RUN(test_stacks);
	RUN(test_codes);
	RUN(test_texts);
	RUN(test_names_of_processes);
	RUN(test_work);
	RUN(test_scopes);
	return unit_end();
}
