/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stuck.c - `stuck` on a source that is made up: threads that could be looked at, that
 * could not, and some of them only at times. What is printed of them, and the exit status. The
 * program that they are said to be in is this one.
 */
#include "../../user/source/bpf/snapshot.h"
#include "../../user/cli/options/opts.h"
#include "../../user/stuck/stuck.h"
#include "../../user/util/now.h"
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SPACE 4096

/* One thread at one look. */
enum at {
	END,	/* it is not there */
	CALL,	/* inside a call */
	OUT,	/* somewhere else */
	MISSED, /* it could not be looked at */
	BUSY,	/* the same, and probes have seen it begin calls that are further in than CALL's */
	LEFT,	/* the same, and one of these calls lay as far out as CALL's */
	POLLS,	/* inside the call, in which it begins calls */
};

/* Looks of a test, one after the other; the last goes on. */
struct play {
	enum at threads[4];
};
static const struct play *plays;
static int nplays, looks;

static char *code; /* what is said to be a function of CUDA's */
static char stack[SPACE];

static int take(struct source *s, struct snapshot *snap)
{
	const struct play *now = &plays[looks < nplays ? looks : nplays - 1];
	int sync = api_lookup("cudaStreamSynchronize", 13000, &(bool){ false });

	(void)s;
	looks++;
	snap->at_ns = now_ns();
	snap->procs = calloc(1, sizeof(*snap->procs));
	snap->threads = calloc(4, sizeof(*snap->threads));
	snap->nprocs = 1;
	snap->procs->pid = getpid();
	snap->procs->about = (struct ct_process){
		.h = { .size = sizeof(struct ct_process),
		       .kind = CT_PROCESS,
		       .pid = 1000,
		       .tid = 1000,
		       .start_ns = 1,
		       .end_ns = 1 },
		.ns_pid = 1000,
		.comm = "made",
	};
	snap->procs->funcs = malloc(sizeof(*snap->procs->funcs));
	snap->procs->nfuncs = snap->procs->ncode = 1;
	*snap->procs->funcs =
		(struct snapshot_func){ (uintptr_t)code, SPACE, (uint16_t)sync, false };
	snap->procs->code = malloc(sizeof(*snap->procs->code));
	*snap->procs->code = (struct snapshot_range){ (uintptr_t)code, (uintptr_t)code + SPACE };
	for (int i = 0; i < 4 && now->threads[i] != END; i++) {
		enum at at = now->threads[i];
		struct snapshot_thread *t = &snap->threads[snap->nthreads++];

		*t = (struct snapshot_thread){
			.process = snap->procs,
			.tid = 1001 + (uint32_t)i,
			.shown_tid = i ? 0 : gettid(),
			.missed = at == MISSED || at == BUSY || at == LEFT,
			.ip = at == CALL || at == POLLS ? (uintptr_t)code + 8 : (uintptr_t)take,
			.sp = (uintptr_t)stack + 64,
			.switches = (uint64_t)looks,
		};
		if (at == BUSY || at == LEFT || at == POLLS) {
			t->nreach = 1;
			t->reach[0] = (struct ct_reach){ (uintptr_t)stack, (uintptr_t)stack + SPACE,
							 t->sp + (at == LEFT ? 8 : 0) };
		}
		if (t->missed)
			continue;
		t->stack = calloc(1, 64);
		t->len = 64;
	}
	return 0;
}

static int open_source(struct source *s, const struct capture_plan *plan)
{
	(void)s, (void)plan;
	return 0;
}

static int start(struct source *s)
{
	(void)s;
	return 0;
}

static int fds(struct source *s, int *fd, int max)
{
	(void)s, (void)fd, (void)max;
	return 0;
}

static int drain(struct source *s, emit_fn emit, void *ctx)
{
	(void)s, (void)emit, (void)ctx;
	return 0;
}

static int pending(struct source *s, uint64_t min_age_ns, emit_fn emit, void *ctx)
{
	(void)s, (void)min_age_ns, (void)emit, (void)ctx;
	return 0;
}

static void nothing(struct source *s)
{
	(void)s;
}

static void losses(struct source *s, struct losses *out)
{
	(void)s, (void)out;
}

static const struct source_ops made_up = { .name = "made up",
					   .open = open_source,
					   .start = start,
					   .fds = fds,
					   .drain = drain,
					   .stop = nothing,
					   .losses = losses,
					   .pending = pending,
					   .threads = take,
					   .close = nothing };

/* Runs it on the looks; its output is *text, the caller's to free. Returns the exit status. */
static int run(const struct play *list, int n, const char *format, char **text)
{
	char path[64], *args[] = { "stuck", "--over", "20ms", "--format", (char *)(uintptr_t)format,
				   "-o",    path,     NULL };
	struct opts o;
	int status;

	snprintf(path, sizeof(path), "/tmp/test_stuck.%d", (int)getpid());
	plays = list;
	nplays = n;
	looks = 0;
	CHECK(!opts_parse(&o, OPTS_STUCK, 7, args));
	status = stuck_run(&o.ask, request_own(&o.ask, command_stuck.options), &made_up);
	opts_free(&o);
	*text = unit_read(path);
	unlink(path);
	return status;
}

static bool has(const char *text, const char *words)
{
	bool found = text && strstr(text, words);

	if (!found)
		printf("  not there: %s\n  in: %s\n", words, text ? text : "(nothing)");
	return found;
}

/* The last line. */
static const char *sum(const char *text)
{
	const char *at = text ? text + strlen(text) : "";

	while (at > text && (at[0] == '\0' || at[-1] != '\n' || at[0] == '\n'))
		at--;
	return at;
}

static void test_decided(void)
{
	static const struct play none[] = { { { OUT, OUT } } }, some[] = { { { CALL, OUT } } };
	char *text;

	CHECK(run(none, 1, "table", &text) == 0);
	CHECK_TEXT("no thread inside a CUDA call for more than 20ms\n", sum(text));
	CHECK(looks == 2);
	free(text);
	CHECK(run(some, 1, "table", &text) == STUCK_SOME);
	CHECK(has(text, "cudaStreamSynchronize"));
	CHECK_TEXT("1 thread of 1 process inside a CUDA call for more than 20ms\n", sum(text));
	free(text);
}

/* It is looked at again; what still cannot be told is named, with what is known. */
static void test_undecided(void)
{
	static const struct play never[] = { { { MISSED, OUT } } },
				 once[] = { { { CALL, OUT } }, { { MISSED, OUT } } },
				 both[] = { { { CALL, MISSED } } };
	char *text;

	/* the first thread is said to be this one */
	CHECK(!prctl(PR_SET_NAME, "my own name"));
	CHECK(run(never, 1, "table", &text) == STUCK_UNDECIDED);
	CHECK(looks > 2);
	CHECK(has(text, "1001"));
	CHECK(!strstr(text, "1002"));
	CHECK(has(text, "undecided, text=\"it could not be looked at, since it runs and stops all "
			"the time; no call of it was seen\""));
	CHECK_TEXT("no thread is known to be inside a CUDA call for more than 20ms, and of 1 "
		   "thread it cannot be told\n",
		   sum(text));
	free(text);
	CHECK(run(never, 1, "json", &text) == STUCK_UNDECIDED);
	CHECK(has(text, "\"type\":\"event\""));
	CHECK(has(text, "\"pid\":1000,\"tid\":1001,"));
	CHECK(has(text, "\"thread\":\"my own name\""));
	CHECK(has(text, "\"what\":\"undecided\",\"text\":\"it could not be looked at"));
	free(text);
	CHECK(run(once, 2, "table", &text) == STUCK_UNDECIDED);
	CHECK(has(text, "it was inside cudaStreamSynchronize before"));
	free(text);
	CHECK(run(both, 1, "table", &text) == STUCK_SOME);
	CHECK_TEXT("1 thread of 1 process inside a CUDA call for more than 20ms, and of 1 thread "
		   "it cannot be told\n",
		   sum(text));
	free(text);
}

/* What one look misses another one tells. */
static void test_reported_later(void)
{
	static const struct play
		in[] = { { { MISSED } }, { { MISSED } }, { { MISSED } }, { { CALL } } },
		out[] = { { { MISSED } }, { { MISSED } }, { { MISSED } }, { { OUT } } },
		first_out[] = { { { OUT } }, { { MISSED } } },
		first_missed[] = { { { MISSED } }, { { CALL } } };
	char *text;

	CHECK(run(in, 4, "table", &text) == STUCK_SOME);
	free(text);
	CHECK(run(out, 4, "table", &text) == 0);
	free(text);
	/* it was in none at the first look, so that it is not in one for so long */
	CHECK(run(first_out, 2, "table", &text) == 0);
	CHECK(looks == 2);
	free(text);
	/* no probe saw it begin the call, so that it was in it at the first look */
	CHECK(run(first_missed, 2, "table", &text) == STUCK_SOME);
	CHECK(looks == 2);
	free(text);
}

/* Calls that a thread begins may be inside the older one; that it has left that one is known when one of them
 * lies as far out. */
static void test_busy(void)
{
	static const struct play busy[] = { { { BUSY, OUT } } },
				 polls[] = { { { CALL } }, { { POLLS } } },
				 hidden[] = { { { CALL } }, { { BUSY } } },
				 left[] = { { { CALL } }, { { LEFT } } };
	char *text;

	CHECK(run(busy, 1, "table", &text) == STUCK_UNDECIDED);
	free(text);
	CHECK(run(polls, 2, "table", &text) == STUCK_SOME);
	CHECK(has(text, "cudaStreamSynchronize began before the trace"));
	CHECK(looks == 2);
	free(text);
	CHECK(run(hidden, 2, "table", &text) == STUCK_UNDECIDED);
	CHECK(has(text, "it was inside cudaStreamSynchronize before"));
	free(text);
	CHECK(run(left, 2, "table", &text) == 0);
	CHECK(looks == 2);
	free(text);
}

/* On which side of the probes a call began, by how far out later calls lie on its stack. */
static void test_began(void)
{
	struct snapshot_thread t = { .calls = { 0x1500 },
				     .reach = { { 0x1000, 0x2000, 0x1400 },
						{ 0x5000, 0x6000, 0x5800 } },
				     .nreach = 2 };
	static const struct {
		uint64_t sp;
		bool exact;
		enum snapshot_began began;
	} rows[] = {
		{ 0x13f8, true, SNAPSHOT_SINCE },   { 0x1400, true, SNAPSHOT_SINCE },
		{ 0x1408, true, SNAPSHOT_BEFORE },  { 0x1500, true, SNAPSHOT_SINCE },
		{ 0x1400, false, SNAPSHOT_SINCE },  { 0x1500, false, SNAPSHOT_BEFORE },
		{ 0x2000, true, SNAPSHOT_BEFORE },  { 0x5800, true, SNAPSHOT_SINCE },
		{ 0x5800, false, SNAPSHOT_BEFORE }, { 0x5808, true, SNAPSHOT_BEFORE },
		{ 0x3000, true, SNAPSHOT_BEFORE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("row %zu", i);
		CHECK_EQ(rows[i].began, snapshot_began(&t, rows[i].sp, rows[i].exact));
	}
	/* a stack that has no place among those that are noted */
	t.nreach = CT_REACHES + 1;
	CHECK_EQ(SNAPSHOT_UNKNOWN, snapshot_began(&t, 0x3000, true));
	CHECK_EQ(SNAPSHOT_BEFORE, snapshot_began(&t, 0x1408, true));
}

int main(void)
{
	code = mmap(NULL, SPACE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 1;
	RUN(test_decided);
	RUN(test_undecided);
	RUN(test_reported_later);
	RUN(test_busy);
	RUN(test_began);
	return unit_end();
}
