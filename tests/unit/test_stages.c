/* SPDX-License-Identifier: BSD-2-Clause */
/* test_stages.c - what a record passes through between source and sink: what each stage is given,
 * and how often. */
#include <unistd.h>

#include "../../user/event/event.h"
#include "../../user/stages/stages.h"
#include "unit.h"

/* ---- a sink that keeps what it sees ---- */

static uint64_t seen[CT_KIND_END];
static char cmdline[64];

static int see(struct sink *sink, const struct event *ev)
{
	(void)sink;
	seen[ev->rec->kind]++;
	if (ev->rec->kind == CT_PROCESS_INFO && ev->proc->info)
		snprintf(cmdline, sizeof(cmdline), "%s", ev->proc->info->cmdline);
	return 0;
}
static const struct sink_ops sink_seeing = { .name = "seeing", .event = see };

struct run {
	struct sink sink;
	struct filter filter;
	struct stages stages;
};

static void run_open(struct run *r, bool info)
{
	struct resolve_opts resolve = { .info = info };

	memset(r, 0, sizeof(*r));
	memset(seen, 0, sizeof(seen));
	cmdline[0] = '\0';
	r->sink.ops = &sink_seeing;
	r->filter.definitions = true;
	CHECK(!stages_open(&r->stages, &resolve, false, &r->filter, &r->sink, 0));
	r->stages.nsinks = 1;
}

/* How many times the table of processes was given what came of it. */
static uint64_t entered(struct run *r, const void *rec)
{
	uint64_t before = process_table_learned(world_processes(r->stages.world));

	CHECK(!stages_record(&r->stages, rec));
	CHECK(!stages_flush(&r->stages, UINT64_MAX));
	return process_table_learned(world_processes(r->stages.world)) - before;
}

/* ---- each record is entered once ---- */

static struct ct_hdr head(unsigned int kind, size_t size, uint32_t pid)
{
	return (struct ct_hdr){ .size = (__u16)size,
				.kind = (__u8)kind,
				.pid = pid,
				.tid = pid,
				.start_ns = 1000,
				.end_ns = 1000 };
}

static void test_of_a_source(void)
{
	struct ct_process process = { .h = head(CT_PROCESS, sizeof(process), 10), .comm = "app" };
	struct ct_process exec = { .h = head(CT_EXEC, sizeof(exec), 10), .comm = "other" };
	struct ct_fork forked = { .h = head(CT_FORK, sizeof(forked), 10), .child_pid = 11 };
	struct ct_thread_name name = { .h = head(CT_THREAD_NAME, sizeof(name), 10), .comm = "x" };
	struct ct_exit ended = { .h = head(CT_EXIT, sizeof(ended), 10) };
	struct ct_clock clock = { .h = head(CT_CLOCK, sizeof(clock), 0) };
	struct run r;

	run_open(&r, false);
	CHECK_EQ(1, entered(&r, &process));
	CHECK_EQ(1, entered(&r, &forked));
	CHECK_EQ(1, entered(&r, &name));
	CHECK_EQ(1, entered(&r, &exec));
	CHECK_EQ(1, entered(&r, &ended));
	CHECK_EQ(0, entered(&r, &clock));
	CHECK_TEXT("other", process_table_find(world_processes(r.stages.world), 10)->comm);
	stages_close(&r.stages);
}

/* What a process is, as a recording has it. */
static void test_of_a_recording(void)
{
	struct {
		struct ct_process_info i;
		char text[8];
	} info = { .i = { .h = head(CT_PROCESS_INFO, sizeof(info), 10), .cmdline_len = 6 },
		   .text = "./app" };
	struct ct_process process = { .h = head(CT_PROCESS, sizeof(process), 10), .comm = "app" };
	struct run r;

	run_open(&r, false);
	CHECK_EQ(1, entered(&r, &process));
	CHECK_EQ(1, entered(&r, &info));
	CHECK_EQ(1, seen[CT_PROCESS_INFO]);
	CHECK_TEXT("./app", cmdline);
	stages_close(&r.stages);
}

/* When this process began, as its records have it. */
static uint64_t start_of_this(void)
{
	char *text = unit_read("/proc/self/stat"), *at = text ? strrchr(text, ')') : NULL;
	unsigned long long ticks = 0;

	if (at)
		sscanf(at + 2,
		       "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		       "%*d %llu",
		       &ticks);
	free(text);
	return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* And as resolve makes it of a process that runs, this one. */
static void test_made_by_resolve(void)
{
	struct ct_process process = { .h = head(CT_PROCESS, sizeof(process), (__u32)getpid()),
				      .start_boottime_ns = start_of_this(),
				      .ns_pid = (__u32)getpid(),
				      .comm = "app" };
	struct run r;

	run_open(&r, true);
	CHECK_EQ(2, entered(&r, &process));
	CHECK_EQ(1, seen[CT_PROCESS_INFO]);
	CHECK(strstr(cmdline, "test_stages") != NULL);
	stages_close(&r.stages);
}

int main(void)
{
	RUN(test_of_a_source);
	RUN(test_of_a_recording);
	RUN(test_made_by_resolve);
	return unit_end();
}
