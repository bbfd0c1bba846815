/* SPDX-License-Identifier: BSD-2-Clause */
/* test_threads.c - the names of threads and of processes that are renamed: which are known, and
 * what a file that is begun later has. */
#include <errno.h>
#include <string.h>

#include "../../user/trace/defs.h"
#include "unit.h"

static struct ct_thread_name named(uint32_t pid, uint32_t tid, const char *name)
{
	struct ct_thread_name n = { .h = { .size = sizeof(n),
					   .kind = CT_THREAD_NAME,
					   .pid = pid,
					   .tid = tid,
					   .start_ns = 5,
					   .end_ns = 5 } };

	snprintf(n.comm, sizeof(n.comm), "%s", name);
	return n;
}

static struct ct_process begun(uint32_t pid, const char *name)
{
	struct ct_process p = {
		.h = { .size = sizeof(p), .kind = CT_PROCESS, .pid = pid, .tid = pid },
		.start_boottime_ns = 77
	};

	snprintf(p.comm, sizeof(p.comm), "%s", name);
	return p;
}

static const char *name_of(struct thread_table *t, uint32_t pid, uint32_t tid)
{
	const char *name = thread_table_find(t, pid, tid);

	return name ? name : "(none)";
}

static void test_table(void)
{
	struct thread_table *t = thread_table_open();
	struct ct_thread_name n = named(7, 8, "loader");

	CHECK(!record_check(&n, sizeof(n)));
	thread_table_record(t, &n.h);
	CHECK_TEXT("loader", name_of(t, 7, 8));
	CHECK(!thread_table_find(t, 7, 9));
	CHECK(!thread_table_find(t, 8, 8));
	n = named(7, 8, "renamed");
	thread_table_record(t, &n.h);
	CHECK_TEXT("renamed", name_of(t, 7, 8));
	/* the leader's is the process's */
	n = named(7, 7, "app");
	thread_table_record(t, &n.h);
	CHECK(!thread_table_find(t, 7, 7));
	/* one that is asked for now and then outlives any number of others */
	for (uint32_t i = 0; i < 1000000; i++) {
		n = named(9, 10 + i, "many");
		thread_table_record(t, &n.h);
		if (i % 10000 == 0)
			CHECK_TEXT("renamed", name_of(t, 7, 8));
	}
	CHECK_TEXT("renamed", name_of(t, 7, 8));
	CHECK_TEXT("many", name_of(t, 9, 1000009));
	CHECK(!thread_table_find(t, 9, 10));
	thread_table_close(t);
	thread_table_close(NULL);
	memset(n.comm, 'x', sizeof(n.comm));
	CHECK(record_check(&n, sizeof(n)) == -EBADMSG);
	n.h.size = sizeof(n) - 8;
	CHECK(record_check(&n, sizeof(n)) == -EBADMSG);
}

static void test_process(void)
{
	struct process_table *t = process_table_open();
	struct ct_process p = begun(7, "python");
	struct ct_thread_name other = named(7, 8, "loader"), leader = named(7, 7, "trainer");

	CHECK(!process_table_record(t, &p.h) && !process_table_record(t, &other.h));
	CHECK_TEXT("python", process_table_find(t, 7)->comm);
	CHECK(!process_table_record(t, &leader.h));
	CHECK_TEXT("trainer", process_table_find(t, 7)->comm);
	CHECK(process_table_find(t, 7)->start_boottime_ns == 77);
	process_table_close(t);
}

struct written {
	int threads, processes;
	char process[CT_COMM_LEN], thread[CT_COMM_LEN];
};

static int take(void *ctx, const struct ct_hdr *h)
{
	struct written *w = ctx;

	w->processes += h->kind == CT_PROCESS;
	w->threads += h->kind == CT_THREAD_NAME;
	if (h->kind == CT_PROCESS)
		memcpy(w->process, ((const struct ct_process *)h)->comm, CT_COMM_LEN);
	else if (h->kind == CT_THREAD_NAME)
		memcpy(w->thread, ((const struct ct_thread_name *)h)->comm, CT_COMM_LEN);
	return 0;
}

/* A file that begins later has each thread's newest name, and the process's. */
static void test_definitions(void)
{
	struct defs *d = defs_open();
	struct ct_process p = begun(7, "python");
	struct ct_thread_name other = named(7, 8, "loader"), leader = named(7, 7, "trainer"),
			      again = named(7, 8, "renamed");
	struct written w = { 0 };

	CHECK(!defs_record(d, &p.h) && !defs_record(d, &other.h) && !defs_record(d, &leader.h) &&
	      !defs_record(d, &again.h));
	CHECK(!defs_write(d, take, &w));
	CHECK(w.processes == 1 && w.threads == 1);
	CHECK_TEXT("trainer", w.process);
	CHECK_TEXT("renamed", w.thread);
	/* another program has other threads */
	p.h.kind = CT_EXEC;
	memset(&w, 0, sizeof(w));
	CHECK(!defs_record(d, &p.h) && !defs_write(d, take, &w));
	CHECK(w.processes == 1 && w.threads == 0);
	defs_close(d);
}

int main(void)
{
	RUN(test_table);
	RUN(test_process);
	RUN(test_definitions);
	return unit_end();
}
