/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_identity.c - which process and which GPU a number means: the tables alone. Recordings of
 * two hosts and two containers, whose pids and device numbers are equal, are written here too
 * (test_identity DIRECTORY); tests/export/identity.py merges them, writes every format, and
 * joins.
 */
#include "../../user/event/gpus.h"
#include "../../user/sums/report.h"
#include "../../user/trace/writer.h"
#include "../../user/util/msg.h"
#include "make_call.h"
#include "make_device.h"
#include "unit.h"

#define T0 1000000000000ULL
#define US 1000ULL

/* ---- the tables ---- */

static struct ct_process process_record(int kind, uint32_t pid, uint32_t shown, uint64_t start_ns)
{
	return (struct ct_process){ .h = { .size = sizeof(struct ct_process),
					   .kind = (uint16_t)kind,
					   .pid = pid,
					   .tid = pid },
				    .start_boottime_ns = start_ns,
				    .ns_pid = shown,
				    .comm = "app" };
}

static const struct process *tell(struct process_table *t, int kind, uint32_t pid, uint32_t shown,
				  uint64_t start_ns)
{
	struct ct_process r = process_record(kind, pid, shown, start_ns);

	CHECK(!process_table_record(t, &r.h));
	return process_table_find(t, pid);
}

static void processes(void)
{
	struct process_table *t = process_table_open();
	const struct process *p = tell(t, CT_PROCESS, 5001, 1, 10);
	struct ct_exit gone = {
		.h = { .size = sizeof(gone), .kind = CT_EXIT, .pid = 5001, .tid = 5001 }
	};
	uint32_t second;

	CHECK(process_unique(p) == 1 && p->nth == 1);
	/* told again, or another program: the same process */
	CHECK(process_unique(tell(t, CT_PROCESS, 5001, 1, 10)) == 1);
	CHECK(process_unique(tell(t, CT_EXEC, 5001, 1, 10)) == 1);
	/* another container */
	p = tell(t, CT_PROCESS, 5002, 1, 20);
	second = process_unique(p);
	CHECK_EQ(PROCESS_MADE_UP, second);
	CHECK_EQ(2, p->nth);
	CHECK_EQ(1, p->shown_pid);
	/* another host, where it is the first */
	p = tell(t, CT_PROCESS, 5001 + (1 << PROCESS_HOST_SHIFT), 1, 10);
	CHECK(process_unique(p) == PROCESS_MADE_UP + 1 && p->nth == 1);
	CHECK(process_host(p->pid) == 1 && process_host_pid(p->pid) == 5001);
	CHECK(process_tid(p, p->pid) == 1 &&
	      process_tid(p, 5005 + (1 << PROCESS_HOST_SHIFT)) == 5005);
	/* the number of one that has ended */
	CHECK(!process_table_record(t, &gone.h));
	p = tell(t, CT_PROCESS, 5001, 1, 30);
	CHECK(process_unique(p) == PROCESS_MADE_UP + 2 && p->nth == 3);
	CHECK(process_unique(process_table_find(t, 5002)) == second);
	/* no process of Linux has such a number: a file may claim it */
	CHECK(process_unique(tell(t, CT_PROCESS, 7, PROCESS_MADE_UP, 1)) == PROCESS_MADE_UP + 3);
	/* whoever is swept for want of room gets its number again */
	for (uint32_t pid = 100000; pid < 101000; pid++) {
		tell(t, CT_PROCESS, pid, pid, pid);
		gone.h.pid = pid;
		CHECK(!process_table_record(t, &gone.h));
	}
	CHECK(process_unique(tell(t, CT_PROCESS, 5002, 1, 20)) == second);
	process_table_close(t);
}

/* Numbers that nothing is known of, as those of processes whose sums come long after their end, take
 * the room of no other process. */
static void unknown_processes(void)
{
	struct process_table *t = process_table_open();

	tell(t, CT_PROCESS, 7, 7, 1);
	for (uint32_t pid = 100000; pid < 200000; pid++)
		CHECK_TEXT("?", process_table_find(t, pid)->comm);
	CHECK_TEXT("app", tell(t, CT_PROCESS, 8, 8, 1)->comm);
	CHECK_TEXT("app", process_table_find(t, 7)->comm);
	process_table_close(t);
}

static const char *counted(struct process_table *t, uint32_t pid, uint32_t start)
{
	return process_table_find_counted(
		       t, &(struct ct_call_count){ .h = { .kind = CT_CALL_COUNT, .pid = pid },
						   .start = start })
		->comm;
}

/* They end a second apart, so that most have ended long ago. */
static void tell_exit(struct process_table *t, uint32_t pid)
{
	struct ct_exit gone = { .h = { .size = sizeof(gone),
				       .kind = CT_EXIT,
				       .pid = pid,
				       .tid = pid,
				       .start_ns = pid * 1000000 * US,
				       .end_ns = pid * 1000000 * US } };

	CHECK(!process_table_record(t, &gone.h));
}

/* Sums that come after the end of their process, when others have ended, or have its number. */
static void ended_processes(void)
{
	struct ct_fork fork = { .h = { .size = sizeof(fork), .kind = CT_FORK, .pid = 7, .tid = 7 },
				.child_pid = 9 };
	struct process_table *t = process_table_open();

	process_table_keep_ended(t);
	tell(t, CT_PROCESS, 7, 7, 1 << 10);
	for (uint32_t pid = 1000; pid < 3000; pid++) {
		tell(t, CT_PROCESS, pid, pid, pid << 10);
		tell_exit(t, pid);
	}
	/* these numbers again, by a record of the process, by a fork, and by a process of which
	 * nothing is known but its sums */
	tell(t, CT_PROCESS, 1000, 1000, 5000 << 10);
	tell(t, CT_PROCESS, 9, 9, 9 << 10);
	tell_exit(t, 9);
	CHECK(!process_table_record(t, &fork.h));
	for (uint32_t pid = 1000; pid < 3000; pid++)
		CHECK_TEXT("app", counted(t, pid, pid));
	CHECK_TEXT("app", counted(t, 1000, 5000));
	CHECK_TEXT("app", counted(t, 9, 9));
	CHECK_TEXT("?", counted(t, 1001, 5000));
	CHECK_TEXT("?", counted(t, 500000, 3));
	process_table_counted(t);
	CHECK_TEXT("?", counted(t, 1001, 1001));
	CHECK_TEXT("app", counted(t, 1000, 5000));
	CHECK_TEXT("app", counted(t, 7, 1));
	process_table_close(t);
}

static char said[1024];

static void take_said(const char *text)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s", text);
}

/* Only so many that have ended are kept. It is said once that there were more. */
static void too_many_ended(void)
{
	struct process_table *t = process_table_open();
	uint32_t kept = 0, pid;

	process_table_keep_ended(t);
	said[0] = '\0';
	msg_taker = take_said;
	for (pid = 1000; pid < 100000; pid++) {
		tell(t, CT_PROCESS, pid, pid, (uint64_t)pid << 10);
		tell_exit(t, pid);
		if (pid == 32000)
			CHECK_TEXT("", said);
	}
	msg_taker = NULL;
	CHECK_TEXT("cudatrace: warning: more than 32768 processes have ended since their sums were "
		   "last read: the calls of further ones are counted, but their names are not "
		   "known (\"?\"), and --comm leaves them out\n",
		   said);
	while (pid-- > 1000)
		kept += !strcmp(counted(t, pid, pid), "app");
	CHECK(kept >= 32768 && kept < 100000 - 1000);
	CHECK_TEXT("app", counted(t, 1000, 1000));
	process_table_close(t);
}

static const struct gpu *tell_device(struct gpu_table *t, uint32_t pid, uint32_t shown, uint32_t id,
				     int uuid)
{
	struct process p = { .pid = pid, .shown_pid = shown, .unique_pid = shown };
	struct made_device m;

	make_device(&m, pid, id, T0, "H200");
	memset(m.device.uuid, uuid, 16);
	gpu_table_record(t, &p, &m.h);
	return pid ? gpu_table_find(t, &p, id) : gpu_table_machine(t, id);
}

static void gpus(void)
{
	struct process first = { .pid = 10, .shown_pid = 10 },
		       third = { .pid = 30, .shown_pid = 30 },
		       other = { .pid = 10 + (1 << PROCESS_HOST_SHIFT), .shown_pid = 40 };
	struct gpu_table *t = gpu_table_open();
	const struct gpu *a = tell_device(t, 10, 10, 0, 1), *b = tell_device(t, 20, 20, 0, 2),
			 *c = tell_device(t, 20, 20, 1, 1);

	CHECK(a && a->number == 0);
	CHECK_TEXT("GPU-01010101-0101-0101-0101-010101010101", a->text);
	if (CHECK(b)) {
		CHECK_EQ(1, b->number);
		CHECK_EQ(a, c);
	}
	/* the machine gives them its own numbers; those of another host's machine lie above these */
	CHECK(tell_device(t, 0, 0, 5, 2) == b);
	CHECK(tell_device(t, 0, 0, 1 << DEVICE_HOST_SHIFT, 3)->number == 2);
	/* calls of a process that told nothing: not known. Its device work is somewhere: by
	 * host, as no UUID is known */
	CHECK(!gpu_table_find(t, &third, 0));
	CHECK(!gpu_table_find(t, &first, CT_UNKNOWN));
	CHECK(!gpu_table_worked(t, &third, CT_UNKNOWN));
	CHECK(gpu_table_worked(t, &third, 3)->number == 3 &&
	      gpu_table_worked(t, &third, 3) == gpu_table_find(t, &third, 3));
	CHECK(!*gpu_table_find(t, &third, 3)->text && gpu_table_worked(t, &third, 0)->number == 4);
	CHECK(gpu_table_worked(t, &other, 3)->number == 5);
	for (uint32_t i = 0; i < 2 * GPUS_MAX; i++)
		gpu_table_worked(t, &third, 100 + i);
	CHECK(!gpu_table_worked(t, &third, 100 + 2 * GPUS_MAX));
	gpu_table_close(t);
}

/* Processes come and go, a hundred a second, more than there is room for: one that begins has its GPU, and one that runs
 * keeps it. */
static void many_processes(void)
{
	struct gpu_table *t = gpu_table_open();
	const struct gpu *a = tell_device(t, 7, 7, 0, 1);
	const struct process runs = { .pid = 7, .shown_pid = 7, .unique_pid = 7 };
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT } };

	for (uint32_t i = 0; i < 200000; i++) {
		struct process p = { .pid = 10, .shown_pid = 10, .unique_pid = 1000 + i };

		if (!CHECK(tell_device(t, 10, p.unique_pid, 0, 1) == a))
			break;
		gone.h.pid = 10;
		gone.h.start_ns = gone.h.end_ns = T0 + i * 10000000ULL;
		gpu_table_record(t, &p, &gone.h);
	}
	CHECK(gpu_table_find(t, &runs, 0) == a);
	gpu_table_close(t);
}

/* ---- sums of the kernel side: those of a process that has ended come when another has its number ---- */

static void call_count(struct book *b, const struct process *now, uint64_t start_ns, uint64_t calls)
{
	struct ct_call_count t = {
		.h = { .size = sizeof(t), .kind = CT_CALL_COUNT, .pid = now->pid },
		.func = (uint16_t)api_next("cudaFree", -1),
		.how = CT_BY_FUNCTION,
		.start = (uint32_t)(start_ns >> 10),
		.sums = { .calls = calls }
	};
	struct event ev = { .rec = &t.h, .proc = now };

	CHECK(book_event(b, &ev) == 1);
}

static void sums(void)
{
	struct process_table *t = process_table_open();
	struct book *b = book_open(BOOK_BY_PROCESS, false, 0);
	const struct process *p = NULL;
	struct report *r;
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT, .pid = 7, .tid = 7 } };

	for (uint64_t start = 1; start <= 3; start++) {
		struct ct_process rec = process_record(CT_PROCESS, 7, 7, start << 20);
		struct event ev = { .rec = &rec.h };

		if (start == 2)
			snprintf(rec.comm, sizeof(rec.comm), "%s", "other");
		CHECK(!process_table_record(t, &rec.h));
		ev.proc = p = process_table_find(t, 7);
		CHECK(!book_event(b, &ev));
		CHECK(!process_table_record(t, &gone.h));
	}
	call_count(b, p, 3 << 20, 30);
	call_count(b, p, 2 << 20, 20);
	call_count(b, p, 1 << 20, 10);
	r = report_make(b);
	CHECK(r && r->nrows[REPORT_CALLS + API_RUNTIME] == 3);
	for (size_t i = 0; r && i < r->nrows[REPORT_CALLS + API_RUNTIME]; i++) {
		static const char *const labels[] = { "app 7 #3  cudaFree", "other 7 #2  cudaFree",
						      "app 7  cudaFree" };
		char label[64];

		snprintf(label, sizeof(label), "%.*s",
			 (int)r->rows[REPORT_CALLS + API_RUNTIME][i].label.len,
			 r->rows[REPORT_CALLS + API_RUNTIME][i].label.s);
		CHECK_TEXT(labels[i], label);
		CHECK(r->rows[REPORT_CALLS + API_RUNTIME][i].n.calls == 30 - 10 * i);
	}
	report_free(r);
	book_close(b);
	process_table_close(t);
}

/* ---- recordings ---- */

static struct writer *out;
static const char *folder;

static void put(const struct ct_hdr *h)
{
	CHECK(!record_check(h, h->size));
	CHECK(!writer_record(out, h));
}

/* realtime: what CLOCK_REALTIME is at T0. */
static void begin(const char *name, const char *host, const char *boot, uint64_t realtime)
{
	struct made_device m;
	char path[512], head[512];

	snprintf(path, sizeof(path), "%s/%s.ctrace", folder, name);
	snprintf(head, sizeof(head),
		 "format 1\nversion 0.1.0\narch x86_64\nhost %s\nboot_id %s\nstart_ns "
		 "%llu\nrealtime_offset_ns %llu\n"
		 "clock_error_ns 1000\nplaces 1\nwork 1\n",
		 host, boot, T0, (unsigned long long)(realtime - T0));
	CHECK(!writer_open(&out, path, head));
	put(&make_clock(&m, T0, realtime, T0)->h);
}

static void end(void)
{
	CHECK(!writer_end(out, "reason finished\nuptime_ns 10000000\ncalls 0\n"));
	CHECK(!writer_close(out));
}

struct who {
	uint32_t pid, shown, rank;
	uint64_t start_boottime_ns;
	const char *comm;
	int uuids[2]; /* of its devices; 0: it has none of that number */
};

static void process(const struct who *w, uint64_t at)
{
	struct ct_process p = process_record(CT_PROCESS, w->pid, w->shown, w->start_boottime_ns);
	struct ct_process_info i = {
		.h = { .size = sizeof(i), .kind = CT_PROCESS_INFO, .pid = w->pid, .tid = w->pid },
		.rank = w->rank,
		.world_size = 4,
		.local_rank = CT_UNKNOWN
	};
	struct ct_thread_name thread = { .h = { .size = sizeof(thread), .kind = CT_THREAD_NAME },
					 .comm = "worker" };
	struct made_device m;

	p.h.start_ns = p.h.end_ns = i.h.start_ns = i.h.end_ns = at;
	memset(p.comm, 0, sizeof(p.comm));
	snprintf(p.comm, sizeof(p.comm), "%s", w->comm);
	put(&p.h);
	put(&i.h);
	for (uint32_t d = 0; d < 2 && w->uuids[d]; d++) {
		make_device(&m, w->pid, d, at, "H200");
		memset(m.device.uuid, w->uuids[d], 16);
		put(&m.h);
		put(&make_context(&m, w->pid, d + 1, d, 7, 0x100 + d, at)->h);
		put(&make_stream(&m, w->pid, 7, d + 1, 0, 3, at)->h);
	}
	put(&make_device_name(&m, w->pid, 1, "_Z4axpyPfPKfi")->h);
	thread.h.pid = w->pid;
	thread.h.tid = w->pid + 1;
	thread.h.start_ns = thread.h.end_ns = at;
	put(&thread.h);
}

/* n launches and their kernels on each of its devices, one after the other. */
static void work(const struct who *w, uint64_t at, int n)
{
	for (int i = 0; i < n; i++) {
		for (uint32_t d = 0; d < 2 && w->uuids[d]; d++) {
			struct made_device m;
			struct made_call c;

			make_call(&c, "cudaLaunchKernel", CT_CALL, 0, 0, U(0x501000),
				  8 | U(1) << 32, U(1), 256 | U(1) << 32, U(1), U(0), U(0), U(0));
			c.c.h.pid = w->pid;
			c.c.h.tid = w->pid + 1;
			c.c.h.start_ns = at;
			c.c.h.end_ns = at + 5 * US;
			put(&c.c.h);
			make_kernel(&m, MAKE_AT(w->pid, d, d + 1, 7, 0, at + 10 * US, at + 15 * US),
				    CT_HANDLE_DEVICE | 1, 8, 256);
			m.work.call_ns = c.c.h.start_ns;
			m.work.func = c.c.func;
			m.h.tid = c.c.h.tid;
			put(&m.h);
			at += 20 * US;
		}
	}
}

static void leave(const struct who *w, uint64_t at)
{
	struct ct_exit e = { .h = { .size = sizeof(e),
				    .kind = CT_EXIT,
				    .pid = w->pid,
				    .tid = w->pid,
				    .start_ns = at,
				    .end_ns = at } };

	put(&e.h);
}

static void sample(uint32_t gpu, int uuid, double value)
{
	struct made_device m;

	make_device(&m, 0, gpu, T0, "H200");
	memset(m.device.uuid, uuid, 16);
	put(&m.h);
	put(&make_metric(&m, 1, "sm_active", "%", CT_METRIC_GPM)->h);
	make_counter(&m, gpu, T0 + 900 * US, T0 + 1000 * US);
	make_value(&m, 1, value, 0);
	put(&m.h);
}

/* What identity.py counts: of `train` 10 kernels on GPU 1 and of `again` 4; of `both` 8 on GPU 2
 * and 8 on GPU 1; of `far` 6 on GPU 3. */
static void write_all(void)
{
	static const uint64_t realtime = 1700000000000000000ULL;
	/* two containers of one host, each with a recorder of its own: pid 1 and device 0 in both */
	static const struct who train = { 5001, 1, 0, 1000, "train", { 1 } };
	static const struct who both = { 5002, 1, 1, 2000, "train", { 2, 1 } };
	/* another host: the same numbers in every respect */
	static const struct who far = { 5001, 1, 2, 1000, "train", { 3 } };
	/* and the number of one that has ended */
	static const struct who again = { 5001, 1, 3, 9000, "train", { 1 } };

	begin("a", "node-a-1", "00000000-0000-4000-8000-0000000000aa", realtime);
	sample(0, 1, 50);
	process(&train, T0);
	work(&train, T0 + 100 * US, 10);
	leave(&train, T0 + 2000 * US);
	process(&again, T0 + 3000 * US);
	work(&again, T0 + 3100 * US, 4);
	end();
	begin("b", "node-a-2", "00000000-0000-4000-8000-0000000000aa", realtime);
	process(&both, T0);
	work(&both, T0 + 103 * US, 8);
	end();
	/* its clock is 300 us behind: what is joined with a call of another host would begin
	 * before it */
	begin("c", "node-b", "00000000-0000-4000-8000-0000000000bb", realtime - 300 * US);
	sample(0, 3, 70);
	process(&far, T0);
	work(&far, T0 + 100 * US, 6);
	end();
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		folder = argv[1];
		write_all();
		return unit_end();
	}
	RUN(processes);
	RUN(unknown_processes);
	RUN(ended_processes);
	RUN(too_many_ended);
	RUN(gpus);
	RUN(many_processes);
	RUN(sums);
	return unit_end();
}
