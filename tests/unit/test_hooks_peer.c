/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hooks_peer.c - what the hooks of a process say over their socket, what becomes of it, and what they are told. The
 * other end of a socketpair plays the process: it keeps to the protocol, or does not, or hangs up at a bad moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/source/agent/agent_tids.h"
#include "../../user/source/discover/scans.h"
#include "../../user/source/hooks/hooks_funcs.h"
#include "../../user/source/hooks/hooks_peer.h"
#include "../../user/source/python_seek.h"
#include "../../user/util/msg.h"
#include "../../user/util/now.h"
#include "api_row.h"
#include "unit.h"

#define RUNTIME ".output/standin/libcudart.so.13"

static char said[8192];

static void take_said(const char *text)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s", text);
}

/* What was said since the last time, where %d stands for the process. */
static void check_said(const char *want, pid_t pid)
{
	char text[sizeof(said)];
	size_t n = 0;

	for (; *want && n < sizeof(text) - 16; want++)
		if (want[0] == '%' && want[1] == 'd' && want++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%d", (int)pid);
		else
			text[n++] = *want;
	text[n] = '\0';
	CHECK_TEXT(text, said);
	said[0] = '\0';
}

/* ---- a process, and its hooks' end of the socket ---- */

static struct capture_plan plan;
static struct hooks_files *files;
static struct hooks_peer *peer;
static int hooks; /* the other end */
static pid_t pid;

static void open_peer(const struct hooks_peer_opts *opts)
{
	struct hooks_peer_opts o = *opts;
	int fds[2];

	said[0] = '\0';
	msg_taker = take_said;
	files = hooks_files_open(&plan);
	pid = o.who.pid = o.who.pid ? o.who.pid : getpid();
	o.plan = &plan;
	o.files = files;
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	hooks = fds[1];
	peer = hooks_peer_open(fds[0], &o);
	CHECK(peer != NULL);
}

static void close_peer(void)
{
	hooks_peer_close(peer);
	if (hooks >= 0)
		close(hooks);
	hooks_files_close(files);
	msg_taker = NULL;
	memset(&plan, 0, sizeof(plan));
}

static void says(const void *msg, size_t n)
{
	CHECK_EQ((ssize_t)n, send(hooks, msg, n, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static void greets(void)
{
	struct hooks_hello h = { .h = { sizeof(h), HOOKS_HELLO, 0 },
				 .magic = HOOKS_MAGIC,
				 .version = HOOKS_VERSION,
				 .pid = (uint32_t)pid };

	says(&h, sizeof(h));
}

static void open_greeted(const struct hooks_peer_opts *o)
{
	open_peer(o);
	greets();
	hooks_peer_drain(peer);
}

/* A question, or its answer. */
static void asks(uint16_t type, uint32_t number)
{
	struct hooks_ask a = { .h = { sizeof(a), type, 0 }, .number = number };

	says(&a, sizeof(a));
}

/* The results of n functions, which are all the same. */
static void answers(uint32_t n, uint32_t on, int result)
{
	struct {
		struct hooks_installed i;
		__s32 err[64];
	} m = { .i = { .h = { (uint32_t)(sizeof(m.i) + n * sizeof(m.err[0])), HOOKS_INSTALLED, 0 },
		       .n = n,
		       .on = on } };

	for (uint32_t k = 0; k < n && k < 64; k++)
		m.err[k] = result;
	says(&m, m.i.h.size);
}

static union {
	struct meet_head h;
	struct hooks_start start;
	struct hooks_list list;
	struct hooks_ask ask;
	struct hooks_mute mute;
	struct hooks_python python;
	char bytes[MEET_MSG_MAX];
} got;

/* The next message to the process, and the descriptor that came with it. Its type; 0: there is none; -1: it was hung up. */
static int told(int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec io = { &got, sizeof(got) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(hooks, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *part = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	int passed = -1;

	if (part)
		memcpy(&passed, CMSG_DATA(part), sizeof(int));
	if (fd)
		*fd = passed;
	else if (passed >= 0)
		close(passed);
	if (n <= 0)
		return n == 0 ? -1 : 0;
	CHECK_EQ((uint32_t)n, got.h.size);
	return got.h.type;
}

/* What it is told in answer to its greeting. */
static void read_start(void)
{
	int type;

	CHECK_EQ(HOOKS_START, told(NULL));
	do
		type = told(NULL);
	while (type == HOOKS_SPECS);
	CHECK_EQ(HOOKS_FUNCS, type);
	CHECK_EQ(HOOKS_LAST, got.list.flags);
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* A process that does nothing until it is killed. */
static pid_t start_process(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

static void end_process(pid_t child)
{
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

static void capture_all(void)
{
	for (int i = 0; i < api_nfuncs; i++)
		plan_add(plan.capture, i);
	memcpy(plan.shown, plan.capture, sizeof(plan.shown));
}

/* ---- the greeting ---- */

/* What a process says that greeted well, or did not, and what becomes of it. */
static void test_peers(void)
{
	static const char key[] = "0123456789abcdef0123456789abcdef";
	static const struct {
		const char *what;
		uint32_t magic, version, pid;
		char first;
		uint16_t then;
		enum hooks_peer_state state;
		const char *wrong;
	} rows[] = {
		{ "well", HOOKS_MAGIC, HOOKS_VERSION, 0, '0', 0, HOOKS_PEER_HOOKING, NULL },
		{ "magic", 1, HOOKS_VERSION, 0, '0', 0, HOOKS_PEER_ENDED, "the greeting" },
		{ "version", HOOKS_MAGIC, HOOKS_VERSION + 1, 0, '0', 0, HOOKS_PEER_ENDED,
		  "the greeting" },
		{ "pid", HOOKS_MAGIC, HOOKS_VERSION, 1, '0', 0, HOOKS_PEER_ENDED,
		  "the process id" },
		{ "key", HOOKS_MAGIC, HOOKS_VERSION, 0, '1', 0, HOOKS_PEER_ENDED, "the key" },
		{ "again", HOOKS_MAGIC, HOOKS_VERSION, 0, '0', HOOKS_HELLO, HOOKS_PEER_HOOKING,
		  "the greeting" },
		{ "ours", HOOKS_MAGIC, HOOKS_VERSION, 0, '0', HOOKS_STOP, HOOKS_PEER_HOOKING,
		  "a message" },
		{ "no type", HOOKS_MAGIC, HOOKS_VERSION, 0, '0', 77, HOOKS_PEER_HOOKING,
		  "a message" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hooks_hello h = { .h = { sizeof(h), HOOKS_HELLO, 0 },
					 .magic = rows[i].magic,
					 .version = rows[i].version,
					 .pid = rows[i].pid ? rows[i].pid : (uint32_t)getpid() };
		struct meet_head then = { sizeof(then), rows[i].then, 0 };
		char want[256] = "";

		CASE_ROW("%s", rows[i].what);
		memcpy(h.key, key, sizeof(h.key));
		h.key[0] = rows[i].first;
		open_peer(&(struct hooks_peer_opts){ .who.key = key });
		says(&h, sizeof(h));
		hooks_peer_drain(peer);
		CHECK_EQ(rows[i].state, hooks_peer_state(peer));
		CHECK_EQ(rows[i].state == HOOKS_PEER_HOOKING, hooks_peer_ring(peer) != NULL);
		if (rows[i].then == HOOKS_HELLO)
			says(&h, sizeof(h));
		else if (rows[i].then)
			says(&then, sizeof(then));
		hooks_peer_drain(peer);
		CHECK_EQ(rows[i].wrong ? HOOKS_PEER_ENDED : HOOKS_PEER_HOOKING,
			 hooks_peer_state(peer));
		if (rows[i].wrong)
			snprintf(want, sizeof(want),
				 "cudatrace: warning: process %%d: its hooks sent invalid data "
				 "(%s): the hooks are ignored, and its calls are not shown\n",
				 rows[i].wrong);
		check_said(want, pid);
		close_peer();
	}
}

/* That there is more room in a program that cudatrace starts is no help where it has started it. */
static void test_no_room(void)
{
	static const char key[] = "00000000000000000000000000000000";
	struct hooks_hello h = { .h = { sizeof(h), HOOKS_HELLO, 0 },
				 .magic = HOOKS_MAGIC,
				 .version = HOOKS_VERSION,
				 .pid = (uint32_t)getpid() };

	memcpy(h.key, key, sizeof(h.key));
	open_peer(&(struct hooks_peer_opts){ .who.key = key });
	says(&h, sizeof(h));
	hooks_peer_drain(peer);
	answers(1, 0, 10);
	hooks_peer_drain(peer);
	check_said(
		"cudatrace: warning: process %d: one function has no hook, and its calls are shown "
		"by --source=probes alone: the memory where the jump would land is in use\n",
		pid);
	close_peer();
}

/* The hooks of a process say what became of functions, and later that some were hooked after all: only of those that were refused. */
static void test_results(void)
{
	struct {
		struct hooks_installed i;
		__s32 err[5];
	} all = { .i = { .h = { sizeof(all), HOOKS_INSTALLED, 0 }, .n = 5, .on = 3 },
		  .err = { 0, HOOKS_PARTLY, 10, HOOKS_PARTLY, 99 } };
	struct hooks_installed late = { .h = { sizeof(late), HOOKS_INSTALLED, 0 } };
	static const struct {
		uint32_t late;
		uint64_t unhooked, partly;
	} rows[] = { { 1, 1, 3 }, { 1, 1, 3 }, { 9, 1, 3 }, { 2, 0, 4 }, { 3, 0, 4 } };

	open_greeted(&(struct hooks_peer_opts){ 0 });
	says(&all, sizeof(all));
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_RUNNING, hooks_peer_state(peer));
	CHECK_EQ(2, hooks_peer_unhooked(peer));
	CHECK_EQ(2, hooks_peer_partly(peer));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CASE_ROW("%u", rows[i].late);
		late.late = rows[i].late;
		says(&late, sizeof(late));
		hooks_peer_drain(peer);
		CHECK_EQ(rows[i].unhooked, hooks_peer_unhooked(peer));
		CHECK_EQ(rows[i].partly, hooks_peer_partly(peer));
	}
	close_peer();
}

/* What hooks say is said of their process, whatever they say. */
static void test_says(void)
{
	struct {
		struct meet_say say;
		char text[64];
	} m = { .say = { .h = { .type = HOOKS_SAY }, .level = MEET_WARN } };
	char own[64];
	const char *const texts[] = { "100 calls, 0 lost\x1b[2J", own };

	snprintf(own, sizeof(own), "process %d: it has no room", (int)getpid());
	open_peer(&(struct hooks_peer_opts){ 0 });
	for (int i = 0; i < 2; i++) {
		size_t n = offsetof(struct meet_say, text) + strlen(texts[i]);

		m.say.len = (__u16)strlen(texts[i]);
		m.say.h.size = (__u32)n;
		memcpy((char *)&m + offsetof(struct meet_say, text), texts[i], strlen(texts[i]));
		says(&m, n);
		hooks_peer_drain(peer);
	}
	check_said("cudatrace: warning: process %d: 100 calls, 0 lost?[2J\n"
		   "cudatrace: warning: process %d: it has no room\n",
		   pid);
	close_peer();
}

/* What keeps a descriptor or a message from being taken for what it is not. */
static void test_before_greeting(void)
{
	struct hooks_bye b = { .h = { sizeof(b), HOOKS_BYE, 0 } };

	open_peer(&(struct hooks_peer_opts){ 0 });
	CHECK_EQ(HOOKS_PEER_HELLO, hooks_peer_state(peer));
	CHECK(!hooks_peer_unannounced(peer) && !hooks_peer_ring(peer) && !hooks_peer_loaded(peer));
	CHECK_EQ(pid, hooks_peer_pid(peer));
	CHECK_EQ(pid, hooks_peer_conn(peer)->pid);
	CHECK(hooks_peer_started_ns(peer) && hooks_peer_life(peer)->pid == pid);
	answers(1, 1, 0);
	greets();
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	CHECK(!hooks_peer_ring(peer) && !hooks_peer_ran(peer));
	check_said("cudatrace: warning: process %d: its hooks sent invalid data (a message): the "
		   "hooks are ignored, and its calls are not shown\n",
		   pid);
	/* nothing more is read of it, and it is not told to stop */
	says(&b, sizeof(b));
	hooks_peer_drain(peer);
	hooks_peer_stop(peer);
	hooks_peer_was_read(peer);
	CHECK(!hooks_peer_bye(peer));
	CHECK_EQ(0, told(NULL));
	close_peer();
	check_said("", pid);
}

/* A text is passed on once it is known that the right program says it. */
static void test_says_before_greeting(void)
{
	static const char key[] = "0123456789abcdef0123456789abcdef";
	struct {
		struct meet_say say;
		char text[4];
	} __attribute__((packed))
	m = { .say = { .h = { sizeof(m), HOOKS_SAY, 0 }, .level = MEET_NOTE, .len = 4 } };
	struct hooks_bye b = { .h = { sizeof(b), HOOKS_BYE, 0 } };

	memcpy(m.text, "text", 4);
	open_peer(&(struct hooks_peer_opts){ .who.key = key });
	CHECK(hooks_peer_loaded(peer));
	says(&m, sizeof(m));
	hooks_peer_drain(peer);
	check_said("", pid);
	close_peer();
	/* it has said why it has no hooks: nothing more needs to be said in the end */
	open_greeted(&(struct hooks_peer_opts){ 0 });
	says(&m, sizeof(m));
	says(&b, sizeof(b));
	hooks_peer_drain(peer);
	CHECK(hooks_peer_bye(peer) && !hooks_peer_ran(peer));
	check_said("cudatrace: process %d: text\n", pid);
	close_peer();
}

/* ---- what it is told ---- */

static void test_start(void)
{
	static char *const cmd[] = { (char *)"x", NULL };
	struct stat st;
	char *area;
	int fd;

	plan = (struct capture_plan){ .ring_bytes = 1 << 20,
				      .follow = true,
				      .cmd = cmd,
				      .enter = true,
				      .nested = true,
				      .stack = PLAN_STACK_AUTO,
				      .python = true,
				      .filter.min_duration_ns = 5000 };
	plan_add(plan.capture, row("cudaMalloc"));
	plan_add(plan.capture, row("cudaFree"));
	plan_add(plan.shown, row("cudaFree"));
	open_greeted(&(struct hooks_peer_opts){ .count_by = CT_BY_KERNEL });
	CHECK_EQ(HOOKS_PEER_HOOKING, hooks_peer_state(peer));
	CHECK(hooks_peer_ring(peer) && hooks_peer_unannounced(peer));
	hooks_peer_announced(peer);
	CHECK(!hooks_peer_unannounced(peer));
	CHECK_EQ(HOOKS_START, told(&fd));
	CHECK_EQ(HOOKS_VERSION, got.start.version);
	CHECK_EQ(HOOKS_S_FOLLOW, got.start.flags);
	CHECK_EQ(1 << 18, got.start.ring_bytes);
	CHECK_EQ(HOOKS_THREADS_MAX, got.start.threads);
	CHECK_EQ(0, got.start.cells);
	CHECK_EQ(5000, got.start.min_ticks);
	CHECK(got.start.config.enter && got.start.config.nested && got.start.config.stacks &&
	      got.start.config.python && got.start.config.stop_on_map && !got.start.config.layers);
	CHECK_EQ(CT_PY_FIRST, got.start.config.python_only);
	CHECK(!fstat(fd, &st));
	CHECK_EQ(hooks_area_bytes(HOOKS_THREADS_MAX, 1 << 18, 0), (size_t)st.st_size);
	area = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (CHECK(area != MAP_FAILED)) {
		CHECK_EQ(CT_PHASE_RUNNING, ((struct hooks_area *)area)->phase);
		CHECK_EQ(CT_BY_KERNEL, ((struct hooks_area *)area)->count_by);
		munmap(area, 4096);
	}
	close(fd);
	CHECK_EQ(HOOKS_SPECS, told(NULL));
	CHECK_EQ(2, got.list.n);
	CHECK_EQ(HOOKS_LAST, got.list.flags);
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK_EQ(0, got.list.n);
	CHECK_EQ(HOOKS_LAST, got.list.flags);
	CHECK_EQ(0, got.list.number);
	CHECK_EQ(0, told(NULL));
	hooks_peer_stop(peer);
	CHECK_EQ(HOOKS_STOP, told(NULL));
	CHECK_EQ(sizeof(struct meet_head), got.h.size);
	close_peer();
	check_said("", pid);
}

/* Functions of layers and a counter of cycles, small rings, cells; one that is told to stop before it greets. */
static void test_start_closing(void)
{
	struct hooks_clock *clock = hooks_clock_usable() ? hooks_clock_open() : NULL;
	char *area;
	int fd;

	if (clock)
		hooks_clock_mark(clock);
	plan = (struct capture_plan){ .ring_bytes = 4096,
				      .count = true,
				      .filter.min_duration_ns = 1000 };
	plan_add(plan.capture, row("nvtxRangePushA"));
	open_peer(&(struct hooks_peer_opts){ .clock = clock });
	hooks_peer_stop(peer);
	greets();
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_STOP, told(NULL));
	CHECK_EQ(HOOKS_START, told(&fd));
	CHECK_EQ(clock ? HOOKS_S_TSC : 0, got.start.flags);
	CHECK_EQ(clock ? hooks_clock_ticks(clock, 1000) : 1000, got.start.min_ticks);
	CHECK_EQ(65536, got.start.ring_bytes);
	CHECK_EQ(HOOKS_CELLS, got.start.cells);
	CHECK(got.start.config.layers && got.start.config.count && !got.start.config.stop_on_map);
	area = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (CHECK(area != MAP_FAILED)) {
		CHECK_EQ(CT_PHASE_CLOSED, ((struct hooks_area *)area)->phase);
		munmap(area, 4096);
	}
	close(fd);
	close_peer();
	hooks_clock_close(clock);
}

/* A process whose address space is limited needs that itself. */
static void test_limited(void)
{
	static const struct {
		rlim_t bytes;
		uint32_t threads;
	} rows[] = { { 1UL << 30, 819 }, { 4096, 1 }, { 0, 1 }, { 1UL << 50, HOOKS_THREADS_MAX } };
	pid_t child = start_process();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rlimit l = { rows[i].bytes, RLIM_INFINITY };

		CASE_ROW("%llu", (unsigned long long)rows[i].bytes);
		CHECK(!prlimit(child, RLIMIT_AS, &l, NULL));
		open_greeted(&(struct hooks_peer_opts){ .who.pid = child });
		CHECK_EQ(HOOKS_START, told(NULL));
		CHECK_EQ(65536, got.start.ring_bytes);
		CHECK_EQ(rows[i].threads, got.start.threads);
		close_peer();
	}
	end_process(child);
}

/* It hangs up, or its socket takes nothing: no harm, and one sentence only in the second case. */
static void test_no_start(void)
{
	struct hooks_bye b = { .h = { sizeof(b), HOOKS_BYE, 0 } };
	int small = 1;

	open_peer(&(struct hooks_peer_opts){ 0 });
	greets();
	close(hooks);
	hooks = -1;
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_HOOKING, hooks_peer_state(peer));
	hooks_peer_stop(peer);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	CHECK(!hooks_peer_bye(peer));
	close_peer();
	check_said("", pid);

	/* what it said before it hung up is read */
	open_peer(&(struct hooks_peer_opts){ 0 });
	greets();
	says(&b, sizeof(b));
	close(hooks);
	hooks = -1;
	hooks_peer_drain(peer);
	hooks_peer_drain(peer);
	CHECK(hooks_peer_bye(peer));
	close_peer();
	check_said("cudatrace: warning: process %d: its functions could not be hooked: its calls "
		   "are not shown\n",
		   pid);

	capture_all();
	open_peer(&(struct hooks_peer_opts){ 0 });
	CHECK(!setsockopt(hooks_peer_conn(peer)->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	greets();
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	check_said("cudatrace: warning: process %d: its hooks did not receive what to record "
		   "(Message too long): its calls are not shown\n",
		   pid);
	close_peer();
}

/* A message of a child with a descriptor, which is closed here. -1: without one. */
static void bears(uint32_t tid, uint64_t ns, int fd)
{
	struct hooks_child c = { .h = { sizeof(c), HOOKS_CHILD, 0 }, .tid = tid, .ns = ns };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec io = { &c, sizeof(c) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	CHECK_EQ((ssize_t)sizeof(c), sendmsg(hooks, &m, MSG_NOSIGNAL));
	if (fd >= 0)
		close(fd);
}

/* ---- what it maps ---- */

struct mapped {
	char *at;
	size_t bytes;
};

static struct mapped map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mapped m = { .at = MAP_FAILED };
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		abort();
	m.bytes = (size_t)st.st_size;
	m.at = mmap(NULL, m.bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	if (m.at == MAP_FAILED)
		abort();
	m.bytes = (m.bytes + 4095) & ~4095UL;
	return m;
}

static struct mapped map_runtime(void)
{
	return map_file(RUNTIME);
}

/* Each question is answered with its number, and with what is there since the last one. */
static void test_mapped(void)
{
	struct hooks_func f;
	struct mapped lib;
	int none;

	plan_add(plan.capture, row("cudaMalloc"));
	plan_add(plan.shown, row("cudaMalloc"));
	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	CHECK_EQ(0, got.list.n);
	lib = map_runtime();
	asks(HOOKS_MAPPED, 7);
	asks(HOOKS_MAPPED, 8);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK_EQ(7, got.list.number);
	if (CHECK_EQ(1, got.list.n)) {
		memcpy(&f, got.bytes + sizeof(got.list), sizeof(f));
		CHECK_EQ(row("cudaMalloc"), CT_COOKIE_FUNC(f.cookie));
		CHECK(f.address > (uintptr_t)lib.at && f.address < (uintptr_t)lib.at + lib.bytes);
		CHECK(f.nfile == 16 && !memcmp(f.file, (void *)(uintptr_t)f.address, 16));
	}
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK_EQ(8, got.list.number);
	CHECK_EQ(0, got.list.n);
	CHECK_EQ(0, told(NULL));
	/* the answer to the first list alone is not enough */
	answers(0, 0, 0);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_HOOKING, hooks_peer_state(peer));
	answers(1, 1, 0);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_RUNNING, hooks_peer_state(peer));
	CHECK_EQ(1, hooks_peer_on(peer));
	munmap(lib.at, lib.bytes);
	none = told(NULL);
	CHECK_EQ(0, none);
	close_peer();
	check_said("", pid);
}

/* ---- the order of functions ---- */

/* A copy of the runtime's library under another name: a library that contains a runtime. */
static struct mapped map_inner(void)
{
	static const char name[] = "libcudart.so.13";
	int fd = open(RUNTIME, O_RDONLY | O_CLOEXEC), to = memfd_create("libinner.so", MFD_CLOEXEC);
	struct mapped m = { .at = MAP_FAILED };
	struct stat st;
	char *text;

	if (fd < 0 || to < 0 || fstat(fd, &st))
		abort();
	m.bytes = (size_t)st.st_size;
	text = malloc(m.bytes);
	if (!text || read(fd, text, m.bytes) != (ssize_t)m.bytes)
		abort();
	for (char *at = text; (at = memmem(at, m.bytes - (size_t)(at - text), name, sizeof(name)));)
		memcpy(at, "libinner_.so.13", sizeof(name));
	if (write(to, text, m.bytes) != (ssize_t)m.bytes)
		abort();
	m.at = mmap(NULL, m.bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, 0);
	if (m.at == MAP_FAILED)
		abort();
	free(text);
	close(fd);
	close(to);
	m.bytes = (m.bytes + 4095) & ~4095UL;
	return m;
}

static struct sent {
	struct mapped runtime, inner;
	unsigned int n[3]; /* of the runtime's library, of others, of the inner runtime */
	int at;
} sent_order;

static int take_order(void *ctx, const void *msg, size_t n)
{
	struct sent *s = ctx;
	struct hooks_list l;

	(void)n;
	memcpy(&l, msg, sizeof(l));
	for (uint32_t i = 0; i < l.n; i++) {
		struct hooks_func f;
		int kind = 1;

		memcpy(&f, (const char *)msg + sizeof(l) + i * sizeof(f), sizeof(f));
		if (f.address - (uintptr_t)s->runtime.at < s->runtime.bytes)
			kind = 0;
		else if (f.address - (uintptr_t)s->inner.at < s->inner.bytes)
			kind = 2;
		CHECK(kind >= s->at);
		CHECK_EQ(kind == 0, (f.flags & HOOKS_F_FIRST) != 0);
		s->at = kind;
		s->n[kind]++;
	}
	return 0;
}

/* The runtime's library comes first, then operators, then a runtime inside another library, wherever they are mapped. */
static void test_order(void)
{
	struct hooks_mapped *m = hooks_mapped_open();
	struct mapped layers;

	capture_all();
	files = hooks_files_open(&plan);
	/* the kernel maps downward: in order of addresses the runtime's library is the last one */
	sent_order.runtime = map_file(RUNTIME);
	layers = map_file(".output/standin/libtorch_cpu.so");
	sent_order.inner = map_inner();
	CHECK(hooks_funcs_send(files, m, getpid(), 0, take_order, &sent_order) > 800);
	CHECK(sent_order.n[0] > 400);
	CHECK(sent_order.n[1] > 4);
	CHECK_EQ(sent_order.n[0], sent_order.n[2]);
	munmap(sent_order.runtime.at, sent_order.runtime.bytes);
	munmap(sent_order.inner.at, sent_order.inner.bytes);
	munmap(layers.at, layers.bytes);
	hooks_mapped_close(m);
	hooks_files_close(files);
	memset(&plan, 0, sizeof(plan));
}

/* If there is no room for functions of the runtime, a message says so; also if the list holds
 * others. */
static void test_no_room_for_runtime(void)
{
	struct mapped lib = map_runtime();

	plan_add(plan.capture, row("cudaMalloc"));
	plan_add(plan.shown, row("cudaMalloc"));
	open_greeted(&(struct hooks_peer_opts){ 0 });
	answers(1, 0, HOOKS_NO_ROOM);
	hooks_peer_drain(peer);
	close_peer();
	check_said("cudatrace: warning: process %d: one function has no hook, and its calls are "
		   "shown by --source=probes alone: there is no room for more hooks\n"
		   "cudatrace: warning: process %d: one of the functions for which there is no "
		   "room is a function of CUDA's runtime or driver: calls of CUDA are missing; ask "
		   "for fewer functions, or use --source=probes\n",
		   pid);
	munmap(lib.at, lib.bytes);
}

static int searched;
static uint64_t least_ns, most_ns;

/* It would take too long. */
static int takes_long(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *out)
{
	(void)fd;
	(void)capture;
	memset(out, 0, sizeof(*out));
	searched++;
	CHECK(until_ns >= least_ns && until_ns <= now_ns() + most_ns);
	return -ETIME;
}

/* A file is searched for ten seconds at most; if that was not enough, it is said, and it is not searched again. */
static void test_long_search(void)
{
	struct mapped lib = map_runtime();
	char want[256];

	scans_by = takes_long;
	least_ns = now_ns();
	most_ns = 10000000000ULL;
	capture_all();
	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	CHECK_EQ(0, got.list.n);
	CHECK(searched > 0);
	snprintf(want, sizeof(want),
		 "cudatrace: warning: a file of process %d has no hooks, and its calls are not "
		 "shown: it has more symbols than can be searched in 10 s\n",
		 (int)pid);
	CHECK(!strncmp(said, want, strlen(want)));
	searched = 0;
	munmap(lib.at, lib.bytes);
	lib = map_runtime();
	asks(HOOKS_MAPPED, 1);
	hooks_peer_drain(peer);
	CHECK_EQ(0, searched);
	munmap(lib.at, lib.bytes);
	close_peer();
	scans_by = elf_scan_until;
}

static int count_scans(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *out)
{
	searched++;
	return elf_scan_until(fd, capture, until_ns, out);
}

/* What will be asked for is read when the process says that it was mapped, once, and nothing is said then. */
static void test_ahead(void)
{
	const struct meet_head looks = { .size = sizeof(looks), .type = HOOKS_LOOK };
	struct mapped lib;

	plan_add(plan.capture, row("cudaMalloc"));
	plan_add(plan.shown, row("cudaMalloc"));
	scans_by = count_scans;
	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	lib = map_runtime();
	searched = 0;
	says(&looks, sizeof(looks));
	says(&looks, sizeof(looks));
	hooks_peer_drain(peer);
	CHECK_EQ(1, searched);
	CHECK_EQ(0, told(NULL));
	asks(HOOKS_MAPPED, 1);
	hooks_peer_drain(peer);
	CHECK_EQ(1, searched);
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK_EQ(1, got.list.n);
	munmap(lib.at, lib.bytes);
	close_peer();
	scans_by = elf_scan_until;
}

/* A thread has asked, and its process is killed: nothing invalid was sent. */
static void test_killed_asking(void)
{
	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	answers(0, 0, 0);
	asks(HOOKS_MAPPED, 1);
	asks(HOOKS_READ, 1);
	close(hooks);
	hooks = -1;
	hooks_peer_drain(peer);
	hooks_peer_was_read(peer);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	CHECK(hooks_peer_ran(peer));
	close_peer();
	check_said("", pid);
}

/* It dies with messages that it has not read: what it had said before is dealt with. */
static void test_dies_unread(void)
{
	struct {
		struct meet_say say;
		char text[4];
	} __attribute__((packed))
	m = { .say = { .h = { sizeof(m), HOOKS_SAY, 0 }, .level = MEET_NOTE, .len = 4 } };
	struct hooks_birth birth;
	int fds[2];

	memcpy(m.text, "text", 4);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	open_greeted(&(struct hooks_peer_opts){ 0 });
	answers(3, 2, 8);
	bears(7, 70, fds[0]);
	says(&m, sizeof(m));
	close(hooks); /* START and what followed it are unread */
	hooks = -1;
	hooks_peer_drain(peer);
	CHECK_EQ(3, hooks_peer_unhooked(peer));
	CHECK(hooks_peer_ran(peer));
	if (CHECK(hooks_peer_birth(peer, &birth))) {
		CHECK_EQ(70, birth.ns);
		close(birth.fd);
	}
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	CHECK(hooks_peer_left(peer));
	close(fds[1]);
	close_peer();
	check_said("cudatrace: warning: process %d: 3 functions have no hooks, and their calls are "
		   "shown by --source=probes alone: shorter than five bytes\n"
		   "cudatrace: process %d: text\n",
		   pid);
}

/* The process is gone, and another one holds its socket: what was said is dealt with, and the end does
 * not wait for the other one, who may go on. */
static void test_gone(void)
{
	struct hooks_birth birth;
	int fds[2], sent = 0;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	open_greeted(&(struct hooks_peer_opts){ 0 });
	answers(1, 0, 8);
	bears(7, 70, fds[0]);
	hooks_peer_gone(peer);
	hooks_peer_drain(peer);
	CHECK_EQ(1, hooks_peer_unhooked(peer));
	if (CHECK(hooks_peer_birth(peer, &birth)))
		close(birth.fd);
	CHECK(hooks_peer_state(peer) != HOOKS_PEER_ENDED);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	CHECK(!hooks_peer_left(peer));
	close(fds[1]);
	close_peer();

	open_greeted(&(struct hooks_peer_opts){ 0 });
	hooks_peer_gone(peer);
	/* there is always more than one drain takes */
	for (int i = 100; hooks_peer_state(peer) != HOOKS_PEER_ENDED && sent < 20000; i = 64) {
		for (; i > 0; i--, sent++)
			answers(0, 0, 0);
		hooks_peer_gone(peer);
		hooks_peer_drain(peer);
	}
	CHECK(sent > 4096 && sent < 20000);
	close_peer();
	said[0] = '\0';
}

/* A process that answers may map files without end, like a program that loads a library for each
 * of its kernels; a process that only asks is left. The process has ended, so that there is
 * nothing to list each time. */
static void test_asks_without_end(void)
{
	pid_t child = start_process();
	int answered = 0;

	end_process(child);
	open_greeted(&(struct hooks_peer_opts){ .who.pid = child });
	read_start();
	for (uint32_t i = 1; i <= 12000; i++) {
		answers(0, 0, 0);
		asks(HOOKS_MAPPED, i);
		hooks_peer_drain(peer);
		answered += told(NULL) == HOOKS_FUNCS && got.list.number == i;
	}
	CHECK_EQ(12000, answered);
	check_said("", pid);
	for (uint32_t i = 1; hooks_peer_state(peer) != HOOKS_PEER_ENDED && i < 20000; i++) {
		asks(HOOKS_MAPPED, 12000 + i);
		hooks_peer_drain(peer);
		answered += told(NULL) == HOOKS_FUNCS && got.list.number == 12000 + i;
	}
	/* one list was not answered before */
	CHECK_EQ(12000 + 9999, answered);
	check_said("cudatrace: warning: process %d: its hooks sent invalid data (too much that was "
		   "mapped): the hooks are ignored, and its calls are not shown\n",
		   pid);
	close_peer();
}

/* ---- records that are to be read now ---- */

static void test_reads(void)
{
	static const uint32_t late[] = { 0x40000000, 0x80000000, 0xc0000000, 0xffffffff, 5 };

	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	hooks_peer_was_read(peer);
	CHECK_EQ(0, told(NULL)); /* nobody asked */
	/* the newest of the numbers, which is not the last one, and answers all */
	asks(HOOKS_READ, 1);
	asks(HOOKS_READ, 3);
	asks(HOOKS_READ, 2);
	hooks_peer_drain(peer);
	CHECK_EQ(0, told(NULL));
	hooks_peer_was_read(peer);
	CHECK_EQ(HOOKS_READ, told(NULL));
	CHECK_EQ(3, got.ask.number);
	CHECK_EQ(sizeof(got.ask), got.h.size);
	hooks_peer_was_read(peer);
	CHECK_EQ(0, told(NULL));
	/* numbers begin again some day */
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
		asks(HOOKS_READ, late[i]);
	hooks_peer_drain(peer);
	hooks_peer_was_read(peer);
	CHECK_EQ(HOOKS_READ, told(NULL));
	CHECK_EQ(5, got.ask.number);
	close_peer();
	check_said("", pid);
}

static void test_reads_without_end(void)
{
	int sent = 0;

	open_greeted(&(struct hooks_peer_opts){ 0 });
	while (hooks_peer_state(peer) != HOOKS_PEER_ENDED && sent < 200000) {
		asks(HOOKS_READ, 1);
		sent++;
		hooks_peer_drain(peer);
	}
	CHECK_EQ(100001, sent);
	check_said("cudatrace: warning: process %d: its hooks sent invalid data (too much that is "
		   "to be read now): the hooks are ignored, and its calls are not shown\n",
		   pid);
	close_peer();
}

/* ---- functions without hooks ---- */

/* Each reason is said once when it is first met, and once more in the end if there were more. */
static void test_refused(void)
{
	static const struct {
		int result;
		const char *reason;
	} rows[] = {
		{ 1, "there is no room for more hooks" },
		{ 2, "no code there" },
		{ 3, "the first bytes are not those of the file" },
		{ 4, "another tracer has a breakpoint there" },
		{ 5, "the first instruction is not understood" },
		{ 6, "the first instruction is a branch" },
		{ 7, "the first instruction cannot be moved so far" },
		{ 8, "shorter than five bytes" },
		{ 9, "a jump leads back to its beginning" },
		{ 10, "the memory where the jump would land is in use, which is rarer in programs "
		      "that cudatrace starts" },
		{ 11, "shadow stacks (CET) are in use" },
		{ HOOKS_NO_WRITE, "the process may not write to its code" },
		{ 14, "so far nothing calls them through the dynamic loader, which hooks need on "
		      "this processor" },
		{ 15, "the reason is not known" },
		{ 16, "the reason is not known" },
		{ 1 << 30, "the reason is not known" },
		{ -1, "the reason is not known" },
		{ INT32_MIN, "the reason is not known" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char want[512];

		CASE_ROW("%d", rows[i].result);
		open_greeted(&(struct hooks_peer_opts){ 0 });
		answers(1, 0, rows[i].result);
		hooks_peer_drain(peer);
		snprintf(want, sizeof(want),
			 "cudatrace: warning: process %%d: one function has no hook, and its calls "
			 "are shown by --source=probes alone: %s\n",
			 rows[i].reason);
		check_said(want, pid);
		CHECK_EQ(1, hooks_peer_unhooked(peer));
		CHECK_EQ(rows[i].result == HOOKS_NO_WRITE, hooks_peer_barred(peer));
		answers(3, 1, rows[i].result);
		answers(2, 2, 0);
		hooks_peer_drain(peer);
		check_said("", pid);
		CHECK_EQ(4, hooks_peer_unhooked(peer));
		CHECK_EQ(0, hooks_peer_partly(peer));
		CHECK_EQ(3, hooks_peer_on(peer));
		CHECK(!hooks_peer_barred(peer));
		close_peer();
		snprintf(want, sizeof(want),
			 "cudatrace: warning: process %%d: 4 functions in all have no hooks, and "
			 "their calls are shown by --source=probes alone: %s\n",
			 rows[i].reason);
		check_said(want, pid);
	}
}

/* The first 32 lists only are spoken of, and more functions than a list has are not hooked. */
static void test_many_lists(void)
{
	char want[4096];
	size_t n = 0;

	open_greeted(&(struct hooks_peer_opts){ 0 });
	msg_verbose = 1;
	for (int i = 0; i < 40; i++) {
		answers(2, 1u << 31, i ? 0 : 8);
		hooks_peer_drain(peer);
	}
	msg_verbose = 0;
	for (int i = 0; i < 32; i++) {
		n += (size_t)snprintf(want + n, sizeof(want) - n,
				      "cudatrace: process %%d: hooks are on; 2 of 2 functions\n");
		if (!i)
			n += (size_t)snprintf(want + n, sizeof(want) - n,
					      "cudatrace: warning: process %%d: 2 functions have "
					      "no hooks, and their calls are shown by "
					      "--source=probes alone: shorter than five bytes\n");
	}
	check_said(want, pid);
	CHECK_EQ(64, hooks_peer_on(peer));
	close_peer();
	check_said("", pid);
}

/* ---- the end ---- */

static void test_bye(void)
{
	struct hooks_bye b = { .h = { sizeof(b), HOOKS_BYE, 0 }, .kept = 8192 };

	open_greeted(&(struct hooks_peer_opts){ 0 });
	answers(0, 0, 0);
	says(&b, sizeof(b));
	msg_verbose = 1;
	hooks_peer_drain(peer);
	msg_verbose = 0;
	CHECK(hooks_peer_bye(peer) && hooks_peer_ran(peer));
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	check_said(
		"cudatrace: process %d: the hooks are off; 8 KiB of their code stay mapped, idle\n",
		pid);
	close_peer();

	open_greeted(&(struct hooks_peer_opts){ 0 });
	hooks_peer_gone(peer);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	CHECK(!hooks_peer_bye(peer));
	close_peer();
	check_said("", pid);
}

/* ---- children ---- */

static void test_children(void)
{
	int fds[2], before = count_descriptors();
	struct hooks_birth birth;
	char byte = 'x';

	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	CHECK(!hooks_peer_birth(peer, &birth));
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
		bears((uint32_t)pid + i, 1000 + i, fds[0]);
		CHECK_EQ(1, send(fds[1], &byte, 1, 0));
		close(fds[1]);
	}
	/* one at a time */
	for (uint32_t i = 0; i < 2; i++) {
		hooks_peer_drain(peer);
		hooks_peer_drain(peer);
		if (!CHECK(hooks_peer_birth(peer, &birth)))
			break;
		CHECK_EQ(pid + (pid_t)i, birth.tid);
		CHECK_EQ(1000 + i, birth.ns);
		CHECK_EQ(1, recv(birth.fd, &byte, 1, 0));
		close(birth.fd);
		CHECK(!hooks_peer_birth(peer, &birth));
	}
	CHECK_EQ(HOOKS_PEER_HOOKING, hooks_peer_state(peer));
	/* one that nobody has taken is closed */
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	bears(0, 0, fds[0]);
	close(fds[1]);
	hooks_peer_drain(peer);
	close_peer();
	check_said("", pid);
	CHECK_EQ(before, count_descriptors());
}

/* Descriptors that are not such a socket: refused, and closed. */
static void test_no_children(void)
{
	for (int i = 0; i < 6; i++) {
		int before = count_descriptors(), fd = -1, fds[2] = { -1, -1 };
		struct hooks_birth birth;

		CASE_ROW("%d", i);
		open_greeted(&(struct hooks_peer_opts){ 0 });
		read_start();
		switch (i) {
		case 0: break;
		case 1: fd = open("/dev/null", O_RDWR | O_CLOEXEC); break;
		case 2:
			CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
			fd = fds[0];
			break;
		case 3: fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); break;
		case 4: fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 0); break;
		case 5: fd = memfd_create("x", MFD_CLOEXEC); break;
		}
		CHECK(!i || fd >= 0);
		bears(1, 1, fd);
		hooks_peer_drain(peer);
		CHECK(!hooks_peer_birth(peer, &birth));
		CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
		check_said(
			"cudatrace: warning: process %d: its hooks sent invalid data (a child "
			"without a socket): the hooks are ignored, and its calls are not shown\n",
			pid);
		if (fds[1] >= 0)
			close(fds[1]);
		close_peer();
		CHECK_EQ(before, count_descriptors());
	}
}

/* A descriptor that comes with a message that has none, or with an empty packet. */
static void test_surplus_descriptor(void)
{
	int before = count_descriptors();
	struct hooks_ask a = { .h = { sizeof(a), HOOKS_READ, 0 }, .number = 9 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec io = { &a, sizeof(a) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	open_greeted(&(struct hooks_peer_opts){ 0 });
	read_start();
	memcpy(CMSG_DATA(&control.head), &hooks, sizeof(int));
	CHECK_EQ((ssize_t)sizeof(a), sendmsg(hooks, &m, 0));
	hooks_peer_drain(peer);
	hooks_peer_was_read(peer);
	CHECK_EQ(HOOKS_READ, told(NULL));
	CHECK_EQ(9, got.ask.number);
	io.iov_len = 0;
	CHECK_EQ(0, sendmsg(hooks, &m, 0));
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_PEER_ENDED, hooks_peer_state(peer));
	close_peer();
	CHECK_EQ(before, count_descriptors());
}

/* ---- muted functions ---- */

/* One function is muted. */
static struct hooks_muted *mute_one(int func)
{
	struct hooks_muted *muted = hooks_muted_open(&plan);
	struct ct_call call = { .h = { .pid = 1, .end_ns = 1 }, .func = (uint16_t)func };

	for (int i = 0; muted && i < 100000 && hooks_muted_call(muted, &call) < 0; i++)
		;
	CHECK(muted && hooks_muted_n(muted) == 1);
	return muted;
}

static void check_mute(int func, const struct mapped *lib)
{
	CHECK_EQ(HOOKS_MUTE, told(NULL));
	CHECK_EQ(sizeof(got.mute), got.h.size);
	CHECK_EQ(func, got.mute.func);
	CHECK_EQ(0, got.mute.number);
	CHECK_EQ(HOOKS_MUTE_WINDOWS, got.mute.flags);
	CHECK_EQ((uintptr_t)lib->at, got.mute.within);
	CHECK_EQ(lib->bytes, got.mute.within_bytes);
}

static void test_muted(void)
{
	int func = row("cudaGetDevice");
	struct mapped lib = { 0 };
	struct hooks_muted *muted;

	plan.count = true;
	plan.count_by = CT_BY_FUNCTION;
	capture_all();
	muted = mute_one(func);
	open_peer(&(struct hooks_peer_opts){ .muted = muted });
	said[0] = '\0';
	hooks_peer_mute(peer, 0);
	CHECK_EQ(0, told(NULL)); /* it does not know yet what there is */
	greets();
	hooks_peer_drain(peer);
	read_start();
	CHECK_EQ(0, got.list.n);
	CHECK_EQ(0, told(NULL)); /* it has no such function */
	CHECK(!hooks_peer_mutes(peer, func));
	hooks_peer_mute(peer, 0);
	check_mute(func, &lib);
	/* the runtime is there: where it is has to be known for what it calls itself */
	lib = map_runtime();
	asks(HOOKS_MAPPED, 1);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK(got.list.n > 100 && got.list.number == 1);
	check_mute(func, &lib);
	CHECK(hooks_peer_mutes(peer, func));
	CHECK_EQ(0, told(NULL));
	/* nothing has changed, then it is gone */
	asks(HOOKS_MAPPED, 2);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK_EQ(0, told(NULL));
	munmap(lib.at, lib.bytes);
	lib = (struct mapped){ 0 };
	asks(HOOKS_MAPPED, 3);
	hooks_peer_drain(peer);
	CHECK_EQ(HOOKS_FUNCS, told(NULL));
	CHECK_EQ(0, got.list.n);
	check_mute(func, &lib);
	CHECK_EQ(0, hooks_peer_sent(peer)->calls[0]);
	hooks_peer_gone(peer);
	hooks_peer_drain(peer);
	hooks_peer_mute(peer, 0);
	CHECK_EQ(0, told(NULL));
	close_peer();
	hooks_muted_close(muted);
	check_said("", pid);
}

int main(void)
{
	msg_unlimited = true;
	RUN(test_peers);
	RUN(test_results);
	RUN(test_no_room);
	RUN(test_says);
	RUN(test_before_greeting);
	RUN(test_says_before_greeting);
	RUN(test_start);
	RUN(test_start_closing);
	RUN(test_limited);
	RUN(test_no_start);
	RUN(test_mapped);
	RUN(test_order);
	RUN(test_no_room_for_runtime);
	RUN(test_long_search);
	RUN(test_ahead);
	RUN(test_killed_asking);
	RUN(test_dies_unread);
	RUN(test_gone);
	RUN(test_asks_without_end);
	RUN(test_reads);
	RUN(test_reads_without_end);
	RUN(test_refused);
	RUN(test_many_lists);
	RUN(test_bye);
	RUN(test_children);
	RUN(test_no_children);
	RUN(test_surplus_descriptor);
	RUN(test_muted);
	return unit_end();
}
