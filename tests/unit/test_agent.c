/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_agent.c - the agent and the source that listens to it, both in this process, with the
 * stand-in's libcuda and libcupti between them: what arrives, a hundred attaches in a row, and
 * either end with a peer that talks nonsense.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../wire/agent_wire.h"
#include "../../target/cupti/cupti.h"
#include "../../target/cupti/queue.h"
#include "../../target/cupti/agent_state.h"
#include "../../user/source/agent/agent.h"
#include "../../user/source/agent/agent_child.h"
#include "../../user/source/agent/agent_funcs.h"
#include "../../user/source/agent/agent_inbox.h"
#include "../../user/source/agent/agent_peer.h"
#include "../../user/source/agent/agent_refused.h"
#include "../../user/source/agent/agent_process.h"
#include "../../user/util/msg.h"
#include "../standin/include/cuda.h"
#include "unit.h"

int cudatrace_agent_start(const char *how);
int cudatrace_agent_stop(void);
void records_convert(const void *record);
void records_reset(void);

/* ---- the device ---- */

static __typeof__(&cuInit) init;
static __typeof__(&cuModuleLoadData) load;
static __typeof__(&cuModuleGetFunction) get_function;
static __typeof__(&cuLaunchKernel) launch_kernel;
static __typeof__(&cuMemsetD8_v2) set_memory;
static __typeof__(&cuMemAlloc_v2) allocate;
static CUfunction kernel;
static CUdeviceptr memory;
static char cupti[PATH_MAX];

static bool have_device(void)
{
	void *lib = dlopen(".output/standin/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUmodule module;

	if (!lib || !realpath(".output/standin/libcupti.so.13", cupti))
		return false;
	init = (__typeof__(init))dlsym(lib, "cuInit");
	load = (__typeof__(load))dlsym(lib, "cuModuleLoadData");
	get_function = (__typeof__(get_function))dlsym(lib, "cuModuleGetFunction");
	launch_kernel = (__typeof__(launch_kernel))dlsym(lib, "cuLaunchKernel");
	set_memory = (__typeof__(set_memory))dlsym(lib, "cuMemsetD8_v2");
	allocate = (__typeof__(allocate))dlsym(lib, "cuMemAlloc_v2");
	return !init(0) && !load(&module, "x") && !get_function(&kernel, module, "_Z7vec_mulPfi") &&
	       !allocate(&memory, (size_t)4096);
}

static void launch(int n)
{
	for (int i = 0; i < n; i++)
		CHECK(!launch_kernel(kernel, 4, 2, 1, 128, 1, 1, 0, NULL, NULL, NULL));
}

/* ---- the source ---- */

static struct capture_plan plan;
static struct source src;
static struct {
	int kinds[CT_KIND_END];
	uint32_t last_correlation;
	/* kernels whose cause had not been told before or is not told after: counted at the end */
	int orphans;
	uint64_t handle;
	char name[64];
	bool pids_right;
	uint64_t lost;
	struct ct_hole hole;
} got;

static int emit(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	CHECK(!record_check(rec, rec->size));
	got.kinds[rec->kind]++;
	if (rec->pid != (uint32_t)getpid())
		got.pids_right = false;
	if (rec->kind == CT_NAME) {
		const struct ct_name *n = (const struct ct_name *)rec;

		got.handle = n->handle;
		snprintf(got.name, sizeof(got.name), "%.*s", (int)n->len, n->name);
	}
	if (rec->kind == CT_KERNEL && got.handle &&
	    !(((const struct ct_kernel *)rec)->name == got.handle))
		got.orphans++;
	if (rec->kind == CT_LOST)
		got.lost += ((const struct ct_lost *)rec)->count;
	if (rec->kind == CT_HOLE)
		got.hole = *(const struct ct_hole *)rec;
	return 0;
}

static void reset(void)
{
	memset(&got, 0, sizeof(got));
	got.pids_right = true;
}

static bool open_source(void)
{
	memset(&plan, 0, sizeof(plan));
	plan.device = (struct plan_device){
		.kinds = AGENT_DEFAULT, .buffer_bytes = 1 << 20, .buffers = 8, .cupti = cupti
	};
	src = (struct source){ .ops = &source_agent };
	return !source_agent.prepare(&src, &plan) && !source_agent.open(&src, &plan) &&
	       !source_agent.start(&src);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Drains until there are so many records of a kind, or no agent is left (kind 0). False: it
 * never came to that. */
static bool drain_until(int kind, int n)
{
	uint64_t until = now_ms() + 20000;
	struct agent_counts c;
	struct pollfd p = { .events = POLLIN };

	source_agent.fds(&src, &p.fd, 1);
	while (now_ms() < until) {
		CHECK(source_agent.drain(&src, emit, NULL) >= 0);
		agent_counts(&src, &c);
		if (kind ? got.kinds[kind] >= n : !c.live)
			return true;
		poll(&p, 1, 5);
	}
	return false;
}

static int attach(void)
{
	char how[PATH_MAX + 64];
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		abort();
	if (agent_how(&plan, fds[1], how, sizeof(how)) || agent_connect_fd(&src, fds[0], getpid()))
		abort();
	err = cudatrace_agent_start(how);
	if (err)
		close(fds[1]); /* the agent's only when it has started */
	return err;
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long rss_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long size = 0, rss = 0;

	if (!f || fscanf(f, "%ld %ld", &size, &rss) != 2)
		abort();
	fclose(f);
	return rss * 4;
}

/* The agent has gone when its thread has. */
static bool alone(int before)
{
	uint64_t until = now_ms() + 10000;

	while (threads() > before && now_ms() < until)
		usleep(1000);
	return threads() <= before;
}

static void test_records(void)
{
	int before = threads();

	reset();
	CHECK(open_source());
	CHECK(!attach());
	CHECK(attach() == -EBUSY); /* one at a time: the second says so, and its end hangs up */
	CHECK(drain_until(CT_DEVICE, 2));
	launch(50);
	CHECK(!set_memory(memory, 3, (size_t)64));
	CHECK(drain_until(CT_KERNEL, 50) && drain_until(CT_SET, 1) && drain_until(CT_CAUSE, 51));
	CHECK(got.kinds[CT_KERNEL] == 50 && got.kinds[CT_SET] == 1 && got.kinds[CT_CAUSE] == 51 &&
	      got.kinds[CT_NAME] == 1);
	CHECK(got.pids_right && !got.orphans && !got.lost && got.handle & CT_HANDLE_DEVICE);
	CHECK_TEXT("_Z7vec_mulPfi", got.name);
	source_agent.stop(&src);
	CHECK(drain_until(0, 0));
	CHECK(alone(before));
	source_agent.close(&src);
}

/* With nobody there afterwards: no descriptor, no thread, no memory. */
static void test_again(void)
{
	int fds = 0, before = threads();
	long rss = 0;

	for (int i = 0; i < 100; i++) {
		reset();
		CHECK(open_source());
		CHECK(!attach());
		CHECK(drain_until(CT_DEVICE, 2));
		launch(10);
		CHECK(drain_until(CT_KERNEL, 10));
		CHECK(got.kinds[CT_KERNEL] == 10 && got.kinds[CT_NAME] == 1 && !got.lost);
		source_agent.stop(&src);
		CHECK(drain_until(0, 0));
		source_agent.close(&src);
		CHECK(alone(before));
		if (i == 10) {
			fds = open_fds();
			rss = rss_kib();
		}
	}
	CHECK(open_fds() == fds);
#ifndef __SANITIZE_ADDRESS__
	CHECK(rss_kib() - rss < 4096);
#else
	(void)rss;
#endif
}

/* The source is gone without a word: the agent leaves by itself, and the next one finds the
 * place free. */
static void test_hang_up(void)
{
	int before = threads();

	reset();
	CHECK(open_source());
	CHECK(!attach());
	CHECK(drain_until(CT_DEVICE, 2));
	source_agent.close(&src);
	CHECK(alone(before));
	launch(3);
	reset();
	CHECK(open_source());
	CHECK(!attach());
	CHECK(drain_until(CT_DEVICE, 2));
	launch(7);
	CHECK(drain_until(CT_KERNEL, 7));
	CHECK(got.kinds[CT_KERNEL] == 7);
	/* and by its own word */
	CHECK(!cudatrace_agent_stop());
	CHECK(drain_until(0, 0));
	CHECK(alone(before));
	CHECK(cudatrace_agent_stop() == -EALREADY);
	source_agent.close(&src);
}

/* A child that forks has no agent, whatever it calls, and may have one of its own. */
static void test_fork(void)
{
	int before = threads(), status;
	pid_t pid;

	reset();
	CHECK(open_source());
	CHECK(!attach());
	CHECK(drain_until(CT_DEVICE, 2));
	pid = fork();
	if (!pid) {
		launch_kernel(kernel, 4, 2, 1, 128, 1, 1, 0, NULL, NULL, NULL);
		_exit(cudatrace_agent_stop() == -EALREADY ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	launch(5);
	CHECK(drain_until(CT_KERNEL, 5));
	CHECK(got.kinds[CT_KERNEL] == 5 && got.pids_right);
	source_agent.stop(&src);
	CHECK(drain_until(0, 0));
	CHECK(alone(before));
	source_agent.close(&src);
}

static int eventfds(void)
{
	char path[64], what[64];
	int n = 0;

	for (int i = 0; i < 256; i++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		len = readlink(path, what, sizeof(what) - 1);
		what[len > 0 ? len : 0] = '\0';
		n += !strcmp(what, "anon_inode:[eventfd]");
	}
	return n;
}

/* The program closes what it finds and opens something of its own at that number: nothing is
 * written there, and it stays open. */
static void test_closed(void)
{
	int before = threads(), fds[2], theirs[2], had;
	char how[PATH_MAX + 64], byte;

	reset();
	CHECK(open_source());
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	CHECK(!agent_how(&plan, fds[1], how, sizeof(how)) &&
	      !agent_connect_fd(&src, fds[0], getpid()));
	/* all eventfds are one inode: a check could not tell one of ours from one of the program's */
	had = eventfds();
	CHECK(!cudatrace_agent_start(how));
	CHECK_EQ(had, eventfds());
	CHECK(drain_until(CT_DEVICE, 2));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, theirs));
	CHECK(send(theirs[0], "theirs", 6, 0) == 6);
	CHECK(dup2(theirs[1], fds[1]) == fds[1]);
	launch(5);
	CHECK(drain_until(0, 0));
	CHECK(alone(before));
	CHECK(recv(theirs[0], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CHECK(recv(fds[1], &byte, 1, MSG_DONTWAIT) == 1 && byte == 't');
	close(fds[1]);
	close(theirs[0]);
	close(theirs[1]);
	source_agent.close(&src);
}

static void put_marker(uint32_t id, uint32_t flags, uint64_t time, const char *name)
{
	struct cupti_marker m = {
		.kind = CUPTI_KIND_MARKER, .flags = flags, .time = time, .id = id, .name = name
	};

	records_convert(&m);
}

/* A range around so many that any table of a fixed size would have turned over. */
static void test_outer_range(void)
{
	static char room[MEET_MSG_MAX];
	const int inner = 10000;
	int n = 0;
	size_t len;

	CHECK(!queue_open());
	put_marker(1, CUPTI_MARK_START, 1, "epoch");
	for (int i = 0; i < inner; i++) {
		put_marker((uint32_t)i + 2, CUPTI_MARK_START, (uint64_t)i + 2, "step");
		put_marker((uint32_t)i + 2, CUPTI_MARK_END, (uint64_t)i + 3, NULL);
	}
	put_marker(1, CUPTI_MARK_END, 70000, NULL);
	put_marker(1, CUPTI_MARK_END, 70001, NULL); /* a second end is of nothing */
	while ((len = queue_take(room, sizeof(room)))) {
		for (size_t at = 0; at < len; at += ((struct ct_hdr *)(room + at))->size) {
			const struct ct_marker *m = (const struct ct_marker *)(room + at);

			CHECK(m->h.kind == CT_MARKER && !record_check(&m->h, len - at));
			n++;
			if (n <= inner)
				continue;
			CHECK(m->id == 1 && m->h.end_ns - m->h.start_ns == 69999 &&
			      m->text_len == 5 && !memcmp(m->text, "epoch", 5));
		}
	}
	CHECK(n == inner + 1);
	records_reset();
	queue_rest();
}

static void test_words(void)
{
	static const char *const bad[] = { "",
					   "v1",
					   "v2 fd=3",
					   "v1 fd=",
					   "v1 fd=x",
					   "v1 fd=99999999999",
					   "v1 path=/x",
					   "v1 path=/x key=short",
					   "v1 fd=3 cupti=%zz",
					   "v1 fd=3 cupti=%00" };
	int before = threads();

	CHECK(cudatrace_agent_start(NULL) == -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(cudatrace_agent_start(bad[i]) < 0);
	CHECK(threads() == before);
	/* a descriptor that is none of ours is left alone, and open */
	int fds[2];
	char how[32];

	CHECK(!pipe(fds));
	snprintf(how, sizeof(how), "v1 fd=%d", fds[0]);
	CHECK(!cudatrace_agent_start(how));
	CHECK(alone(before));
	CHECK(write(fds[1], "x", 1) == 1 && fcntl(fds[0], F_GETFD) >= 0);
	close(fds[0]);
	close(fds[1]);
}

/* ---- a user side that talks nonsense ---- */

static uint32_t seed = 12345;

static uint32_t random32(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8 ^ seed << 13;
}

static size_t start_message(char *msg, uint32_t buffer_bytes)
{
	struct agent_start s = { .h = { .size = sizeof(s), .type = AGENT_START },
				 .version = AGENT_VERSION,
				 .kinds = random32(),
				 .flags = random32() & 15,
				 .buffer_bytes = buffer_bytes,
				 .buffers = 4 };

	memcpy(msg, &s, sizeof(s));
	return sizeof(s);
}

static size_t funcs_message(char *msg, bool wild)
{
	struct agent_list l = { .h.type = AGENT_FUNCS, .flags = AGENT_LAST };
	size_t at = sizeof(l);

	for (int i = 0; i < 40; i++) {
		struct agent_func f = { .cbid = (uint16_t)(1 + random32() % 800),
					.domain = (uint8_t)(1 + random32() % 2),
					.flags = random32() % 16 };
		struct agent_call call;

		f.row = (uint16_t)random32();
		f.size = (uint16_t)(sizeof(f) + (f.flags & AGENT_F_CALL ? sizeof(call) : 0));
		for (size_t b = 0; b < sizeof(call); b++)
			((char *)&call)[b] = (char)random32();
		if (!wild) { /* well-formed at first sight; the reads are still anything */
			call.spec.nwords %= CT_MAX_WORDS + 1;
			call.spec.nreads %= CT_MAX_READS + 1;
			call.spec.nentry %= call.spec.nreads + 1;
			for (int w = 0; w < CT_MAX_WORDS; w++)
				call.words[w].off %= 200;
		}
		memcpy(msg + at, &f, sizeof(f));
		memcpy(msg + at + sizeof(f), &call, sizeof(call));
		at += f.size;
		l.n++;
	}
	l.h.size = (uint32_t)at;
	memcpy(msg, &l, sizeof(l));
	return at;
}

/* Words of a call that lie beyond any function's parameters would be read from whatever is there. */
static void test_far_words(void)
{
	static char msg[MEET_MSG_MAX];
	struct agent_list l = { .h.type = AGENT_FUNCS, .flags = AGENT_LAST, .n = 1 };
	struct agent_func f = { .cbid = 1,
				.domain = AGENT_DRIVER,
				.flags = AGENT_F_CALL,
				.size = sizeof(f) + sizeof(struct agent_call) };

	for (int off = AGENT_PARAMS_MAX - 8; off <= AGENT_PARAMS_MAX; off += 8) {
		struct agent_call call = { .spec.nwords = 1,
					   .words[3] = { (uint16_t)off, 8, AGENT_WORD_ZERO } };
		int before = threads(), fds[2], err = 1;
		struct agent_started s;
		char how[PATH_MAX + 64];
		ssize_t n;

		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
		snprintf(how, sizeof(how), "v1 fd=%d cupti=%s", fds[1], cupti);
		CHECK(!cudatrace_agent_start(how));
		n = (ssize_t)start_message(msg, 1 << 16);
		CHECK(send(fds[0], msg, (size_t)n, 0) == n);
		l.h.size = (uint32_t)(sizeof(l) + f.size);
		memcpy(msg, &l, sizeof(l));
		memcpy(msg + sizeof(l), &f, sizeof(f));
		memcpy(msg + sizeof(l) + sizeof(f), &call, sizeof(call));
		CHECK(send(fds[0], msg, l.h.size, 0) == (ssize_t)l.h.size);
		while (err == 1 && (n = recv(fds[0], msg, sizeof(msg), 0)) > 0) {
			if (agent_msg_check(msg, (size_t)n) != AGENT_STARTED)
				continue;
			memcpy(&s, msg, sizeof(s));
			err = s.err;
		}
		CHECK(err == (off > AGENT_PARAMS_MAX - 8 ? -EPROTO : 0));
		close(fds[0]);
		CHECK(alone(before));
	}
}

static void read_some(int fd)
{
	static char sink[MEET_MSG_MAX];

	while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
		;
}

static void test_bad_user(void)
{
	static char msg[MEET_MSG_MAX];
	int before = threads();

	for (int round = 0; round < 60; round++) {
		char how[PATH_MAX + 64];
		int fds[2];
		size_t n;

		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
		snprintf(how, sizeof(how), "v1 fd=%d cupti=%s", fds[1], cupti);
		CHECK(!cudatrace_agent_start(how));
		usleep(1000);
		n = start_message(msg, round % 3 ? 1 << 20 : random32());
		if (round % 4 == 1)
			msg[random32() % n] ^= (char)random32();
		send(fds[0], msg, n, MSG_NOSIGNAL);
		n = funcs_message(msg, round % 2);
		if (round % 4 == 2)
			msg[random32() % n] ^= (char)random32();
		send(fds[0], msg, round % 5 == 4 ? random32() % n : n, MSG_NOSIGNAL);
		read_some(fds[0]);
		launch(4);
		for (int i = 0; i < 5; i++) {
			for (size_t b = 0; b < 64; b++)
				msg[b] = (char)random32();
			send(fds[0], msg, random32() % 64, MSG_NOSIGNAL | MSG_DONTWAIT);
			read_some(fds[0]);
		}
		launch(2);
		close(fds[0]);
		CHECK(alone(before));
	}
}

/* ---- an agent that talks nonsense ---- */

static int seen;

static int emit_any(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	if (record_check(rec, rec->size))
		abort();
	if (rec->kind == CT_HOLE && ((const struct ct_hole *)rec)->reason == CT_HOLE_NO_PLACE)
		return 0; /* of its user */
	/* whatever it claims, it speaks of its own process, and of no stacks of ours */
	CHECK(rec->pid == (uint32_t)getpid() && !rec->lost && rec->kind != CT_STACK &&
	      rec->kind != CT_PROCESS && rec->kind != CT_EXIT);
	seen++;
	return 0;
}

static size_t hello_message(char *msg, uint32_t pid)
{
	struct agent_hello h = { .h = { .type = AGENT_HELLO, .size = sizeof(h) + 4 },
				 .magic = AGENT_MAGIC,
				 .version = AGENT_VERSION,
				 .pid = pid,
				 .cupti_version = 130001,
				 .path_len = 4 };

	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), "/a\nb", 4);
	return sizeof(h) + 4;
}

static size_t names_message(char *msg)
{
	struct agent_list l = { .h.type = AGENT_NAMES, .n = 1, .flags = AGENT_LAST };
	struct agent_name e = { .cbid = 7, .domain = AGENT_RUNTIME, .len = 22 };

	memset(msg, 0, sizeof(l) + 28);
	l.h.size = sizeof(l) + 28;
	memcpy(msg, &l, sizeof(l));
	memcpy(msg + sizeof(l), &e, sizeof(e));
	memcpy(msg + sizeof(l) + sizeof(e), "cudaLaunchKernel_v7000", 22);
	return l.h.size;
}

static size_t started_message(char *msg)
{
	struct agent_started s = { .h = { .size = sizeof(s), .type = AGENT_STARTED }, .clock = 77 };

	memcpy(msg, &s, sizeof(s));
	return sizeof(s);
}

static size_t records_message(char *msg)
{
	static const uint16_t kinds[] = { CT_KERNEL, CT_COPY,	CT_SET,	    CT_NAME,  CT_CAUSE,
					  CT_LOST,   CT_CALL,	CT_PROCESS, CT_STACK, CT_MARKER,
					  CT_EVENT,  CT_DEVICE, CT_EXIT,    99 };
	struct meet_head head = { .type = AGENT_RECORDS };
	size_t at = sizeof(head);
	int n = 1 + (int)(random32() % 20);

	for (int i = 0; i < n; i++) {
		char rec[256];
		struct ct_hdr *h = (struct ct_hdr *)rec;

		for (size_t b = 0; b < sizeof(rec); b++)
			rec[b] = random32() % 3 ? 0 : (char)random32();
		h->size = random32() % 9 ? (uint16_t)(184 + random32() % 8 * 8)
					 : (uint16_t)random32();
		h->kind = kinds[random32() % ARRAY_LEN(kinds)];
		h->pid = random32();
		h->start_ns = random32();
		h->end_ns = h->start_ns + random32() % 1000;
		memcpy(msg + at, rec, sizeof(rec));
		at += h->size <= sizeof(rec) ? h->size : sizeof(rec);
	}
	head.size = (uint32_t)at;
	memcpy(msg, &head, sizeof(head));
	return at;
}

/* An agent can state only two reasons why something is not seen: it has left CUPTI to its own
 * program, or a child in the program's memory makes calls. */
static void test_holes(void)
{
	static char msg[MEET_MSG_MAX];
	const struct ct_hole good = { .h = { .size = sizeof(good),
					     .kind = CT_HOLE,
					     .flags = CT_F_FINAL,
					     .pid = 1,
					     .start_ns = 5,
					     .end_ns = 5 },
				      .until_ns = CT_HOLE_OPEN,
				      .device = CT_UNKNOWN,
				      .reason = CT_HOLE_PROFILER,
				      .layer = CT_HOLE_DEVICE,
				      .state = CT_HOLE_TAKEN };
	struct ct_hole all[9] = { good, good, good, good, good, good, good, good, good };
	struct meet_head head = { .type = AGENT_RECORDS, .size = sizeof(head) + sizeof(all) };
	uint64_t until = now_ms() + 5000;
	struct losses l = { .files = 0 };
	int fds[2];
	size_t n;

	all[1].reason = CT_HOLE_NO_AGENT;
	all[2].state = CT_HOLE_LOST;
	all[3].layer = CT_HOLE_SCOPES;
	all[4].ns_pid = 1;
	all[5].comm[0] = 'x';
	all[6].until_ns = 6;
	all[7].reason = all[8].reason = CT_HOLE_SHARED_MEMORY;
	all[7].state = all[8].state = CT_HOLE_UNSEEN;
	all[8].layer = CT_HOLE_CALLS;
	reset();
	CHECK(open_source());
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
	CHECK(!agent_connect_fd(&src, fds[0], getpid()));
	n = hello_message(msg, (uint32_t)getpid());
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = names_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = started_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	memcpy(msg, &head, sizeof(head));
	memcpy(msg + sizeof(head), all, sizeof(all));
	CHECK(send(fds[1], msg, head.size, 0) == (ssize_t)head.size);
	while (got.kinds[CT_HOLE] < 3 && now_ms() < until)
		CHECK(source_agent.drain(&src, emit, NULL) >= 0);
	CHECK(got.kinds[CT_HOLE] == 3);
	CHECK(got.hole.h.pid == (uint32_t)getpid() && !got.hole.h.flags &&
	      got.hole.reason == CT_HOLE_SHARED_MEMORY && got.hole.layer == CT_HOLE_CALLS);
	source_agent.losses(&src, &l);
	CHECK(l.lost[CT_LOSS_READ] == 6);
	source_agent.close(&src);
	close(fds[1]);
}

/* An agent can lose what it makes, and no more; however often it says so, a loss is never none. */
static void test_losses(void)
{
	static char msg[MEET_MSG_MAX];
	struct meet_head head = { .type = AGENT_RECORDS,
				  .size = sizeof(head) + sizeof(struct ct_lost) };
	uint64_t until = now_ms() + 5000;
	struct losses l = { .files = 0 };
	struct agent_counts c;
	int fds[2];
	size_t n;

	reset();
	CHECK(open_source());
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
	CHECK(!agent_connect_fd(&src, fds[0], getpid()));
	n = hello_message(msg, (uint32_t)getpid());
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = names_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = started_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	for (uint32_t i = 0; i < 2 * CT_LOSS_END; i++) {
		struct ct_lost lost = {
			.h = { .size = sizeof(lost), .kind = CT_LOST, .start_ns = 1, .end_ns = 1 },
			.cause = i % CT_LOSS_END,
			.count = i < CT_LOSS_END ? UINT64_MAX - 1 : 2
		};

		memcpy(msg, &head, sizeof(head));
		memcpy(msg + sizeof(head), &lost, sizeof(lost));
		CHECK(send(fds[1], msg, head.size, 0) == (ssize_t)head.size);
	}
	/* all of it is read before the other end goes: the source answers */
	while (got.kinds[CT_LOST] < 8 && now_ms() < until)
		CHECK(source_agent.drain(&src, emit, NULL) >= 0);
	shutdown(fds[1], SHUT_WR);
	do {
		CHECK(source_agent.drain(&src, emit, NULL) >= 0);
		agent_counts(&src, &c);
	} while (c.live && now_ms() < until);
	CHECK(!c.live && got.kinds[CT_LOST] == 8);
	source_agent.losses(&src, &l);
	for (int i = 0; i < CT_LOSS_END; i++) {
		bool own = i == CT_LOSS_DEVICE || i == CT_LOSS_AGENT || i == CT_LOSS_TIME ||
			   i == CT_LOSS_DEPTH;

		/* the others' records are counted as malformed */
		CHECK(l.lost[i] == (own			? UINT64_MAX
				    : i == CT_LOSS_READ ? 2u * (CT_LOSS_END - 4)
							: 0));
	}
	CHECK(losses_total(&l) == UINT64_MAX);
	close(fds[1]);
	source_agent.close(&src);
}

/* ---- turns ---- */

#define TURN_RECORDS 100
#define TURN_MESSAGES 20

static bool turn_paused;
static int by_cause[CT_LOSS_END];

/* The time is over after each record. */
static int emit_one(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	if (rec->kind == CT_LOST)
		by_cause[((const struct ct_lost *)rec)->cause]++;
	turn_paused = true;
	return 0;
}

/* An agent that has started and has sent a lot, all of one cause. Returns its end of the connection. */
static int busy_agent(uint32_t cause)
{
	static char msg[MEET_MSG_MAX];
	struct meet_head head = { .type = AGENT_RECORDS,
				  .size = sizeof(head) + TURN_RECORDS * sizeof(struct ct_lost) };
	struct ct_lost lost = { .h = { .size = sizeof(lost), .kind = CT_LOST },
				.cause = cause,
				.count = 1 };
	int fds[2];
	size_t n;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	CHECK(!agent_connect_fd(&src, fds[0], getpid()));
	n = hello_message(msg, (uint32_t)getpid());
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = names_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = started_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	memcpy(msg, &head, sizeof(head));
	for (int i = 0; i < TURN_RECORDS; i++)
		memcpy(msg + sizeof(head) + (size_t)i * sizeof(lost), &lost, sizeof(lost));
	for (int i = 0; i < TURN_MESSAGES; i++)
		CHECK(send(fds[1], msg, head.size, 0) == (ssize_t)head.size);
	return fds[1];
}

/* A drain that ends after one record does not always take that of the same agent. */
static void test_turns(void)
{
	uint64_t until = now_ms() + 20000;
	int a, b;

	CHECK(open_source());
	src.paused = &turn_paused;
	memset(by_cause, 0, sizeof(by_cause));
	a = busy_agent(CT_LOSS_DEVICE);
	b = busy_agent(CT_LOSS_AGENT);
	while ((by_cause[CT_LOSS_DEVICE] < 10 || by_cause[CT_LOSS_AGENT] < 10) &&
	       by_cause[CT_LOSS_DEVICE] + by_cause[CT_LOSS_AGENT] < TURN_RECORDS * TURN_MESSAGES &&
	       now_ms() < until) {
		turn_paused = false;
		CHECK(source_agent.drain(&src, emit_one, NULL) >= 0);
		usleep(200);
	}
	CHECK(by_cause[CT_LOSS_DEVICE] >= 10);
	CHECK(by_cause[CT_LOSS_AGENT] >= 10);
	/* there is more of both, which has waited since then */
	CHECK(source_agent.complete(&src) < now_ms() * 1000000);
	source_agent.close(&src);
	close(a);
	close(b);
}

/* It dies with a message that it has not read: what it had sent before is read. */
static void test_dies_unread(void)
{
	char msg[MEET_MSG_MAX];
	struct pollfd p = { .events = POLLIN };
	struct agent_inbox *inbox;
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
	CHECK(send(fds[0], "unread", 6, 0) == 6);
	for (int i = 0; i < 3; i++)
		CHECK(send(fds[1], "said", 4, 0) == 4);
	close(fds[1]);
	inbox = agent_inbox_open(fds[0], sizeof(msg), AGENT_INBOX_BYTES);
	for (int i = 0; CHECK(inbox != NULL) && i < 4; i++) {
		ssize_t n;

		p.fd = agent_inbox_fd(inbox);
		while ((n = agent_inbox_take(inbox, msg)) == -EAGAIN)
			CHECK(poll(&p, 1, 5000) == 1);
		CHECK_EQ(i < 3 ? 4 : 0, n);
	}
	agent_inbox_close(inbox);
	close(fds[0]);
}

/* What an agent says is said of its process, whatever it says. */
static void test_says(void)
{
	static char msg[MEET_MSG_MAX];
	char own[64], want[256], had[512] = "";
	const char *const says[] = { "100 calls, 0 lost", own };
	uint64_t until = now_ms() + 5000;
	int fds[2], out[2], was = dup(2);
	struct agent_counts c;
	size_t n;

	snprintf(own, sizeof(own), "process %d: it has no device", (int)getpid());
	snprintf(want, sizeof(want),
		 "cudatrace: warning: process %d: 100 calls, 0 lost\ncudatrace: warning: %s\n",
		 (int)getpid(), own);
	reset();
	CHECK(open_source());
	CHECK(!pipe2(out, O_CLOEXEC | O_NONBLOCK));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
	CHECK(!agent_connect_fd(&src, fds[0], getpid()));
	n = hello_message(msg, (uint32_t)getpid());
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = names_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	n = started_message(msg);
	CHECK(send(fds[1], msg, n, 0) == (ssize_t)n);
	for (int i = 0; i < 2; i++) {
		struct meet_head head = { .type = AGENT_SAY };
		struct meet_say s = { .level = MEET_WARN, .len = (uint16_t)strlen(says[i]) };

		head.size = (uint32_t)(sizeof(s) + s.len);
		memcpy(msg, &s, sizeof(s));
		memcpy(msg, &head, sizeof(head));
		memcpy(msg + sizeof(s), says[i], s.len);
		CHECK(send(fds[1], msg, head.size, 0) == (ssize_t)head.size);
	}
	fflush(stderr);
	dup2(out[1], 2);
	for (size_t len = 0; len < strlen(want) && now_ms() < until;) {
		ssize_t got_bytes;

		source_agent.drain(&src, emit, NULL);
		fflush(stderr);
		got_bytes = read(out[0], had + len, sizeof(had) - 1 - len);
		len += got_bytes > 0 ? (size_t)got_bytes : 0;
	}
	dup2(was, 2);
	CHECK_TEXT(want, had);
	shutdown(fds[1], SHUT_WR);
	do {
		source_agent.drain(&src, emit, NULL);
		agent_counts(&src, &c);
	} while (c.live && now_ms() < until);
	close(fds[1]);
	close(out[0]);
	close(out[1]);
	close(was);
	source_agent.close(&src);
}

static void test_bad_agent(void)
{
	static char msg[MEET_MSG_MAX];
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), was = dup(2);

	seen = 0;
	reset();
	CHECK(open_source());
	fflush(stderr);
	dup2(quiet, 2);
	for (int round = 0; round < 400; round++) {
		size_t (*const order[])(char *) = { names_message, started_message, records_message,
						    records_message, records_message };
		uint64_t until = now_ms() + 5000;
		struct agent_counts c;
		int fds[2];
		size_t n;

		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
		CHECK(!agent_connect_fd(&src, fds[0], getpid()));
		n = hello_message(msg, round % 7 ? (uint32_t)getpid() : 1);
		if (round % 5 == 1)
			msg[random32() % n] ^= (char)(1 << random32() % 8);
		send(fds[1], msg, n, MSG_NOSIGNAL);
		for (size_t i = 0; i < ARRAY_LEN(order); i++) {
			n = order[(round % 11 ? i : random32() % ARRAY_LEN(order))](msg);
			if (random32() % 6 == 0)
				msg[random32() % n] ^= (char)(1 << random32() % 8);
			if (random32() % 12 == 0)
				n = random32() % n;
			send(fds[1], msg, n, MSG_NOSIGNAL);
			/* a thread takes it: an answer shows that it was looked at, but not all
			 * have one */
			for (int look = 0; look < 3; look++) {
				usleep(200);
				CHECK(source_agent.drain(&src, emit_any, NULL) >= 0);
			}
			/* an agent sends records when its names were answered; who is not believed is
			 * left */
			while (!i && round % 11 && now_ms() + 4000 < until &&
			       !poll(&(struct pollfd){ fds[1], POLLIN, 0 }, 1, 1))
				CHECK(source_agent.drain(&src, emit_any, NULL) >= 0);
		}
		close(fds[1]);
		do {
			CHECK(source_agent.drain(&src, emit_any, NULL) >= 0);
			agent_counts(&src, &c);
		} while (c.live && now_ms() < until);
		CHECK(!c.live);
	}
	fflush(stderr);
	dup2(was, 2);
	close(was);
	close(quiet);
	/* most of it was sound enough to be shown */
	CHECK(seen > 100);
	source_agent.close(&src);
}

/* A crowd of one process that says nothing gets no thread, no more than some connections, and
 * counts as no agent. */
static void crowd(const struct sockaddr_un *addr)
{
	int before = threads(), fds[300];
	struct agent_counts c;

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		CHECK(!connect(fds[i], (const struct sockaddr *)addr, sizeof(*addr)));
		if (i % 32 == 31)
			CHECK(!source_agent.drain(&src, emit_any, NULL));
	}
	CHECK(threads() == before);
	for (int i = 0; i < 8; i++)
		CHECK(!source_agent.drain(&src, emit_any, NULL));
	agent_counts(&src, &c);
	CHECK(c.live == 4 && !c.started && !c.strangers);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	CHECK(!source_agent.drain(&src, emit_any, NULL));
	agent_counts(&src, &c);
	CHECK(!c.live && !c.started && !c.ended && !c.failed);
}

/* A program waits, and no descriptor is left: the source must not wake up again and again. When
 * a descriptor is free again, the program is accepted. */
static void no_descriptors(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), all[512], n = 0;
	struct rlimit before, few;
	struct pollfd p = { .events = POLLIN };
	struct agent_counts c;

	source_agent.fds(&src, &p.fd, 1);
	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	few = (struct rlimit){ 256, before.rlim_max };
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	while (n < 512 && (all[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	CHECK(!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)));
	CHECK(poll(&p, 1, 0) == 1);
	CHECK(!source_agent.drain(&src, emit_any, NULL));
	CHECK(!poll(&p, 1, 0));
	CHECK(!source_agent.drain(&src, emit_any, NULL));
	CHECK(!poll(&p, 1, 0));
	while (n > 0)
		close(all[--n]);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	CHECK(!source_agent.drain(&src, emit_any, NULL));
	agent_counts(&src, &c);
	CHECK(c.live == 1);
	/* and the next one wakes us */
	close(fd);
	CHECK(!source_agent.drain(&src, emit_any, NULL));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)));
	CHECK(poll(&p, 1, 0) == 1);
	CHECK(!source_agent.drain(&src, emit_any, NULL));
	close(fd);
	CHECK(!source_agent.drain(&src, emit_any, NULL));
}

#define FOREIGN 500

/* Another user's process that does not descend from us: connects, and is hung up on without
 * having been read. Writes how often. */
static void foreign(const struct sockaddr_un *addr, int to, pid_t parent)
{
	int shut = 0;
	char c;

	while (getppid() == parent)
		usleep(1000);
	if (setgid(65534) || setuid(65534))
		_exit(1);
	for (int i = 0; i < FOREIGN; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
			break;
		send(fd, "hello", 5, MSG_NOSIGNAL);
		shut += recv(fd, &c, 1, 0) <= 0;
		close(fd);
	}
	if (write(to, &shut, sizeof(shut)) < 0)
		_exit(1);
	_exit(0);
}

static void foreigners(const struct sockaddr_un *addr)
{
	struct pollfd p = { .events = POLLIN };
	struct agent_counts c;
	int fds[2], shut = 0;
	pid_t pid;

	if (geteuid()) /* cannot become another user */
		return;
	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		pid_t parent = getpid(); /* asked later, it may be another already */

		if (!fork())
			foreign(addr, fds[1], parent);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(fds[1]);
	p.fd = fds[0];
	while (!poll(&p, 1, 1))
		CHECK(!source_agent.drain(&src, emit_any, NULL));
	CHECK(read(fds[0], &shut, sizeof(shut)) == sizeof(shut) && shut == FOREIGN);
	close(fds[0]);
	agent_counts(&src, &c);
	CHECK(c.strangers == FOREIGN && !c.live && !c.started);
}

/* The agent waits for a place in a line that is full, until it is told to, and no longer; where
 * nobody listens not at all. */
static void test_line(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct how how = { .meet.fd = -1 };
	uint64_t before;
	int listener, fd, n = 0;
	pid_t pid;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/ct-line-%d", (int)getpid());
	snprintf(how.meet.path, sizeof(how.meet.path), "%s", addr.sun_path);
	CHECK(link_connect(&how, clock_now() + 60000000000ULL) == -ENOENT);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!bind(listener, (struct sockaddr *)&addr, sizeof(addr)) && !listen(listener, 2));
	do
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	while (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && ++n < 100);
	CHECK(n > 0 && n < 100 && errno == EAGAIN);
	before = clock_now();
	CHECK(link_connect(&how, before + 100000000) == -EAGAIN &&
	      clock_now() >= before + 100000000);
	CHECK(link_connect(&how, 1) == -EAGAIN); /* that is over */
	pid = fork();
	if (!pid) {
		usleep(100000);
		while (n-- >= 0)
			accept(listener, NULL, NULL);
		_exit(0);
	}
	CHECK(!link_connect(&how, clock_now() + 60000000000ULL) && link_fd() >= 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	link_close();
	close(listener);
	CHECK(link_connect(&how, clock_now() + 60000000000ULL) == -ECONNREFUSED);
	unlink(addr.sun_path);
}

/* A peer that does not have the key gets no answer. */
static void test_stranger(void)
{
	static char *cmd[] = { (char *)"/bin/true", NULL };
	static char msg[MEET_MSG_MAX];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path, *end;
	struct losses l = { 0 };
	int fd, tries = 0;
	ssize_t answer;

	memset(&plan, 0, sizeof(plan));
	plan.device = (struct plan_device){ .kinds = AGENT_DEFAULT,
					    .buffer_bytes = 1 << 20,
					    .buffers = 8 };
	plan.cmd = cmd;
	src = (struct source){ .ops = &source_agent };
	unsetenv(AGENT_INJECTION_ENV);
	CHECK(!source_agent.prepare(&src, &plan) && !source_agent.open(&src, &plan) &&
	      !source_agent.start(&src));
	CHECK(plan.env &&
	      !strncmp(plan.env[0], AGENT_INJECTION_ENV "=/", strlen(AGENT_INJECTION_ENV) + 2));
	path = strstr(plan.env[1], "path=") + 5;
	end = strchr(path, ' ');
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.*s", (int)(end - path), path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	send(fd, msg, hello_message(msg, (uint32_t)getpid()), MSG_NOSIGNAL);
	send(fd, msg, names_message(msg), MSG_NOSIGNAL);
	send(fd, msg, records_message(msg), MSG_NOSIGNAL);
	seen = 0;
	/* what came is taken by a thread: the answer, which is to hang up, comes when it has
	 * been looked at */
	do {
		usleep(1000);
		CHECK(!source_agent.drain(&src, emit_any, NULL));
		answer = recv(fd, msg, sizeof(msg), MSG_DONTWAIT);
	} while (answer < 0 && errno == EAGAIN && tries++ < 10000);
	CHECK((!answer || (answer < 0 && errno != EAGAIN)) && !seen);
	crowd(&addr);
	no_descriptors(&addr);
	foreigners(&addr);
	source_agent.losses(&src, &l);
	CHECK(!l.received);
	close(fd);
	source_agent.close(&src);
	CHECK(access(addr.sun_path, F_OK)); /* the socket is taken away, the agent's file stays */
}

static const struct agent_conn *conn_of(const void *conns, int i)
{
	return (const struct agent_conn *)conns + i;
}

/* A user's processes may have as many places as remain free; one that has sent nothing makes room. */
static void test_shares(void)
{
	static struct agent_conn conns[AGENT_CONNS_MAX];
	struct agent_conn_who one = { .pid = 1, .uid = 7 }, other = { .pid = 2, .uid = 8 };
	struct agent_conns all = { AGENT_CONNS_MAX / 2 - 1, conn_of, conns };

	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		conns[i] = (struct agent_conn){ .pid = 100 + i, .uid = 7, .greeted = true };
	CHECK_EQ(-ENOENT, agent_conns_surplus(&all, &one));
	all.n++;
	CHECK_EQ(-EMFILE, agent_conns_surplus(&all, &one));
	CHECK_EQ(-ENOENT, agent_conns_surplus(&all, &other));
	/* somebody else's does not make room for it, its own does */
	conns[3].uid = 8;
	conns[3].greeted = false;
	conns[all.n++].uid = 8;
	CHECK_EQ(-EMFILE, agent_conns_surplus(&all, &one));
	conns[5].greeted = false;
	CHECK_EQ(5, agent_conns_surplus(&all, &one));
	/* of two users each may have a third */
	for (int i = 0; i < AGENT_CONNS_MAX; i++)
		conns[i] = (struct agent_conn){ .pid = 100 + i,
						.uid = i % 2 ? 7 : 8,
						.greeted = true };
	all.n = AGENT_CONNS_MAX / 3 * 2 - 2;
	CHECK_EQ(-ENOENT, agent_conns_surplus(&all, &one));
	all.n += 4;
	CHECK_EQ(-EMFILE, agent_conns_surplus(&all, &one));
}

/* What found no place is a row for each user, once for each change. */
static void test_no_place(void)
{
	static struct agent_refused p;
	struct hole_text t;
	int rows = 0;

	CHECK(!agent_refused_next(&p, CT_HOLE_CALLS, &t));
	agent_refused_add(&p, 1000);
	agent_refused_took(&p, 1000, 5, 5); /* by a connection of its own */
	agent_refused_took(&p, 1000, 5, 6);
	CHECK(agent_refused_next(&p, CT_HOLE_CALLS, &t));
	CHECK_EQ(2, t.hole.count);
	CHECK_EQ(CT_HOLE_NO_PLACE, t.hole.reason);
	CHECK_TEXT("user 1000", t.hole.text);
	CHECK(!record_check(&t.hole.h, t.hole.h.size));
	CHECK(!agent_refused_next(&p, CT_HOLE_CALLS, &t));
	for (uid_t uid = 1000; uid < 1100; uid++)
		agent_refused_add(&p, uid);
	for (; agent_refused_next(&p, CT_HOLE_CALLS, &t); rows++)
		CHECK(rows < AGENT_REFUSED_USERS || (t.hole.count == 84 && !t.hole.text_len));
	CHECK_EQ(AGENT_REFUSED_USERS + 1, rows);
}

static void test_names(void)
{
	bool twin;
	int row;

	row = agent_funcs_row(AGENT_RUNTIME, "cudaMemcpyAsync_ptsz_v7000", 13000, AGENT_FUNCS_ONLY,
			      &twin);
	CHECK(row >= 0 && twin && !strcmp(api_funcs[row].name, "cudaMemcpyAsync"));
	row = agent_funcs_row(AGENT_DRIVER, "cuMemcpyHtoD_v2", 13000, AGENT_FUNCS_ONLY, &twin);
	CHECK(row >= 0 && !twin && !strcmp(api_funcs[row].name, "cuMemcpyHtoD_v2"));
	/* one symbol, two signatures */
	row = agent_funcs_row(AGENT_RUNTIME, "cudaMemPrefetchAsync_v8000", 13000,
			      AGENT_FUNCS_EARLIER, &twin);
	CHECK(row >= 0 && api_funcs[row].until == 1300);
	row = agent_funcs_row(AGENT_RUNTIME, "cudaMemPrefetchAsync_v12020", 13000,
			      AGENT_FUNCS_LATEST, &twin);
	CHECK(row >= 0 && !api_funcs[row].until);
	row = agent_funcs_row(AGENT_RUNTIME, "cudaMemPrefetchAsync_v8000", 11080, AGENT_FUNCS_ONLY,
			      &twin);
	CHECK(row >= 0 && api_funcs[row].until == 1300);
	/* a driver's function by the runtime's domain, and what is no function */
	CHECK(agent_funcs_row(AGENT_RUNTIME, "cuLaunchKernel", 13000, AGENT_FUNCS_ONLY, &twin) < 0);
	CHECK(agent_funcs_row(AGENT_DRIVER, "INVALID", 13000, AGENT_FUNCS_ONLY, &twin) < 0);
}

/* ---- a program that is started without being traced ---- */

static char said[256];

static void take_said(const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
}

static int status_of(const char *const *cmd, int sig)
{
	struct capture_plan p = { .cmd = (char *const *)cmd };
	struct agent_child c = { .status = 0 };

	*said = '\0';
	msg_taker = take_said;
	CHECK(!agent_child_open(&c, &p));
	CHECK_EQ(-1, c.status);
	agent_child_signal(&c, SIGKILL); /* it has not begun: nobody gets it */
	CHECK(!agent_child_start(&c));
	if (sig)
		agent_child_signal(&c, sig);
	for (int i = 0; i < 6000 && !agent_child_ended(&c); i++)
		usleep(10000);
	CHECK(c.ended && agent_child_ended(&c));
	agent_child_signal(&c, SIGKILL); /* it has ended: nobody gets it */
	agent_child_close(&c);
	msg_taker = NULL;
	return c.status;
}

static void test_child(void)
{
	/* a script whose interpreter is not there */
	char script[] = "/tmp/cudatrace-unit.XXXXXX";
	const char *ends[] = { "sh", "-c", "exit 3", NULL }, *waits[] = { "sleep", "100", NULL },
		   *none[] = { script, NULL };
	struct capture_plan p = { .cmd = (char *const *)waits };
	struct agent_child c = { .status = 0 };
	int status = status_of(ends, 0), fd = mkstemp(script);

	CHECK(fd >= 0 && write(fd, "#!/no/such\n", 11) == 11 && !fchmod(fd, 0755));
	close(fd);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK_TEXT("", said);
	status = status_of(waits, SIGTERM);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	status_of(none, 0);
	CHECK(strstr(said, "the program cannot be run: No such file or directory") != NULL);
	unlink(script);
	/* one that is never let go ends, and is reaped */
	CHECK(!agent_child_open(&c, &p));
	agent_child_close(&c);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- the clock of a time namespace ---- */

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static pid_t begin_waiting(void)
{
	pid_t pid = fork();

	while (!pid)
		pause();
	return pid;
}

/* The namespace that a process makes is that of its children alone. */
static void test_clock(void)
{
	static const char offset[] = "monotonic 1000 0";
	int ready[2], fd, status;
	pid_t maker, pids[2] = { 0 };

	CHECK(!pipe(ready));
	maker = fork();
	if (!maker) {
		pid_t child = 0;

		fd = unshare(CLONE_NEWTIME) ? -1 : open("/proc/self/timens_offsets", O_WRONLY);
		if (fd >= 0 && write(fd, offset, sizeof(offset) - 1) > 0)
			child = begin_waiting();
		CHECK(write(ready[1], &child, sizeof(child)) == sizeof(child));
		for (;;)
			pause();
	}
	pids[0] = maker;
	CHECK(read(ready[0], &pids[1], sizeof(pids[1])) == sizeof(pids[1]));
	CHECK_EQ(0, agent_process_ahead_ns(getpid()));
	CHECK_EQ(0, agent_process_ahead_ns(maker));
	if (pids[1] > 0)
		CHECK_EQ(1000000000000LL, agent_process_ahead_ns(pids[1]));
	else
		printf("no time namespaces here\n");
	for (int i = 1; i >= 0; i--)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	CHECK(waitpid(maker, &status, 0) == maker);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	RUN(test_names);
	RUN(test_shares);
	RUN(test_no_place);
	RUN(test_child);
	RUN(test_clock);
	if (!have_device()) {
		printf("not built: make standin\n");
		return 1;
	}
	RUN(test_words);
	RUN(test_records);
	RUN(test_again);
	RUN(test_hang_up);
	RUN(test_fork);
	RUN(test_closed);
	RUN(test_outer_range);
	RUN(test_losses);
	RUN(test_turns);
	RUN(test_holes);
	RUN(test_dies_unread);
	RUN(test_says);
	RUN(test_bad_agent);
	RUN(test_far_words);
	RUN(test_bad_user);
	RUN(test_stranger);
	RUN(test_line);
	return unit_end();
}
