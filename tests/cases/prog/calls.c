/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c - the target of the real-BPF tests: one program with a mode for each thing that a traced
 * program can do.
 *
 * 	calls [--wait] MODE [ARGS...]
 *
 * --wait: makes one cudaFree(0), so that everything is loaded; prints "ready PID
 * ADDRESS-OF-cudaMalloc"; goes on when a line comes on stdin, and ends when another does. Modes
 * print what a test needs to know on stdout. Built against the stand-in's headers; linked
 * shared, static, or for the per-thread default stream.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../../user/source/inject/inject_needs.h"

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t fn, void *data,
				  unsigned int flags);

static char **args;
static int nargs;

static long arg(int i)
{
	return i < nargs ? atol(args[i]) : 0;
}

static void queries(long n)
{
	for (long i = 0; i < n; i++)
		cudaStreamQuery(0);
}

static void mode_queries(void)
{
	queries(arg(0));
}

/* The chattiest of queries. */
static void mode_devices(void)
{
	int device;

	for (long i = 0; i < arg(0); i++)
		cudaGetDevice(&device);
}

/* A mallocs and frees, B copies, C memsets. */
static void mode_mix(void)
{
	char host[64] = "x";
	void *p = NULL;

	for (long i = 0; i < arg(0); i++) {
		cudaMalloc(&p, 256);
		cudaFree(p);
	}
	cudaMalloc(&p, sizeof(host));
	for (long i = 0; i < arg(1); i++)
		cudaMemcpy(p, host, sizeof(host), cudaMemcpyHostToDevice);
	for (long i = 0; i < arg(2); i++)
		cudaMemset(p, 0, sizeof(host));
	cudaFree(p);
}

/* The sizes given, one cudaMalloc each. */
static void mode_sizes(void)
{
	void *p;

	for (int i = 0; i < nargs; i++)
		cudaMalloc(&p, (size_t)atol(args[i]));
}

/* A calls that succeed, B that fail. */
static void mode_failing(void)
{
	queries(arg(0));
	for (long i = 0; i < arg(1); i++)
		cudaSetDevice(4711);
}

/* Asks for the texts of errors. */
static void mode_words(void)
{
	const char *text;

	cudaGetErrorString(cudaErrorMemoryAllocation);
	cudaGetErrorName(cudaErrorMemoryAllocation);
	cudaGetErrorName((cudaError_t)123456);
	cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text);
}

static pthread_barrier_t named;

static void *named_thread(void *name)
{
	void *p = NULL;

	pthread_setname_np(pthread_self(), name);
	cudaMalloc(&p, 64);
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&named);
	cudaFree(p);
	return NULL;
}

/* Two threads with names allocate; one of them is renamed by another thread, the process by
 * itself; then all free. */
static void mode_names(void)
{
	static const char *const names[] = { "pt_autograd_0", "loader" };
	pthread_t threads[2];
	void *p = NULL;

	pthread_barrier_init(&named, NULL, 3);
	cudaMalloc(&p, 64);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, named_thread, (void *)(uintptr_t)names[i]);
	pthread_barrier_wait(&named);
	pthread_setname_np(threads[1], "renamed");
	prctl(PR_SET_NAME, "trainer");
	pthread_barrier_wait(&named);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cudaFree(p);
}

/* A calls that fail; the program asks twice for the error of each. */
static void mode_reports(void)
{
	for (long i = 0; i < arg(0); i++) {
		cudaSetDevice(4711);
		cudaPeekAtLastError();
		cudaGetLastError();
	}
}

static void mode_driver(void)
{
	CUdeviceptr p;

	cuInit(0);
	for (long i = 0; i < arg(0); i++) {
		cuMemAlloc(&p, 512);
		cuMemFree(p);
	}
}

/* ---- threads ---- */

static pthread_barrier_t barrier;

static void *thread_queries(void *n)
{
	for (long i = 0; i < arg(3); i++)
		cudaFree(NULL);
	pthread_barrier_wait(&barrier);
	queries((long)n);
	printf("thread %ld %ld\n", (long)syscall(SYS_gettid), (long)n);
	return NULL;
}

/* T threads, each with a random number of calls up to MAX, all at once; then M calls of the main
 * thread. Before that W calls of cudaFree in each: the first makes its context. */
static void mode_threads(void)
{
	long t = arg(0), max = arg(1);
	pthread_t ids[64];

	pthread_barrier_init(&barrier, NULL, (unsigned)t);
	srandom((unsigned)getpid());
	for (long i = 0; i < t && i < 64; i++)
		pthread_create(&ids[i], NULL, thread_queries, (void *)(random() % max + 1));
	for (long i = 0; i < t && i < 64; i++)
		pthread_join(ids[i], NULL);
	queries(arg(2));
}

static void *thread_after_main(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	queries(arg(0));
	exit(0);
}

static void mode_main_gone(void)
{
	static pthread_t self;
	pthread_t t;

	self = pthread_self();
	pthread_create(&t, NULL, thread_after_main, &self);
	pthread_exit(NULL);
}

static void *thread_at_last(void *arg_)
{
	(void)arg_;
	usleep(100000);
	queries(arg(0));
	return NULL;
}

/* The program ends when its last thread returns. */
static void mode_main_leaves(void)
{
	pthread_t t;

	queries(1);
	pthread_create(&t, NULL, thread_at_last, NULL);
	pthread_exit(NULL);
}

/* ---- processes ---- */

static void mode_fork(void)
{
	pid_t child;
	int status;

	queries(1);
	fflush(stdout);
	child = fork();
	if (!child) {
		queries(arg(1));
		_exit(0);
	}
	printf("child %d\n", (int)child);
	queries(arg(0) - 1);
	waitpid(child, &status, 0);
}

/* A calls, then this program again with B calls. */
static void mode_exec(void)
{
	char *argv[] = { "calls", "queries", nargs > 1 ? args[1] : "0", NULL };

	queries(arg(0));
	fflush(stdout);
	execv("/proc/self/exe", argv);
	exit(1);
}

/* The same, but the other program makes as many calls as it is told. */
static void mode_exec_lines(void)
{
	char *argv[] = { "calls", "lines", NULL };

	queries(arg(0));
	fflush(stdout);
	execv("/proc/self/exe", argv);
	exit(1);
}

static void *thread_that_execs(void *unused)
{
	(void)unused;
	mode_exec();
	return NULL;
}

/* The same, by a thread that is not the first. */
static void mode_thread_exec(void)
{
	pthread_t t;

	pthread_create(&t, NULL, thread_that_execs, NULL);
	pthread_join(t, NULL);
}

/* All memory locked, also what is mapped from here on. Prints how much is present. */
static void mode_locked(void)
{
	char line[128];
	FILE *f;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		exit(1);
	queries(arg(0));
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			fputs(line, stdout);
}

static void mode_status(void)
{
	queries(1);
	exit((int)arg(0));
}

static void mode_kill(void)
{
	queries(1);
	kill(getpid(), (int)arg(0));
	pause();
}

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got = sig;
}

/* Waits for a signal and says which one came. */
static void mode_signal(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t all, old;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	queries(1);
	puts("waiting");
	fflush(stdout);
	while (!got)
		sigsuspend(&old);
	queries(2);
	printf("signal %d\n", (int)got);
	exit(40 + got);
}

/* ---- control flow through a call ---- */

static void call_two(cudaStream_t s, cudaError_t err, void *data)
{
	(void)s, (void)err, (void)data;
	queries(2);
}

/* N calls that call the program back, which makes two calls each time. */
static void mode_callback(void)
{
	for (long i = 0; i < arg(0); i++)
		cudaStreamAddCallback(0, call_two, NULL, 0);
}

static size_t size_of_block(int block)
{
	queries(1);
	return (size_t)block * 4;
}

static void mode_occupancy(void)
{
	int grid, block;

	for (long i = 0; i < arg(0); i++)
		cuOccupancyMaxPotentialBlockSize(&grid, &block, NULL, size_of_block, 0, 0);
}

static void deeper(cudaStream_t s, cudaError_t err, void *left)
{
	(void)s, (void)err;
	if ((long)left > 0)
		cudaStreamAddCallback(0, deeper, (void *)((long)left - 1), 0);
}

/* Calls inside calls, DEPTH of them, N times; then M plain calls. */
static void mode_depth(void)
{
	for (long i = 0; i < arg(1); i++)
		cudaStreamAddCallback(0, deeper, (void *)(arg(0) - 1), 0);
	queries(arg(2));
}

static jmp_buf out;

static void jump(cudaStream_t s, cudaError_t err, void *data)
{
	(void)s, (void)err, (void)data;
	longjmp(out, 1);
}

/* N times: out of a call by longjmp, then one plain call. */
static void mode_longjmp(void)
{
	static volatile long i;

	for (i = 0; i < arg(0); i++) {
		if (!setjmp(out))
			cudaStreamAddCallback(0, jump, NULL, 0);
		queries(1);
	}
}

static void leave(cudaStream_t s, cudaError_t err, void *data)
{
	(void)s, (void)err, (void)data;
	pthread_exit((void *)42);
}

static void cleanup(void *flag)
{
	*(int *)flag = 1;
}

static void *thread_leaves(void *flag)
{
	pthread_cleanup_push(cleanup, flag);
	cudaStreamAddCallback(0, leave, NULL, 0);
	pthread_cleanup_pop(0);
	return NULL;
}

/* N threads end inside a call; their clean-up must run. Then M plain calls. */
static void mode_thread_exit(void)
{
	int cleaned = 0;

	for (long i = 0; i < arg(0); i++) {
		int flag = 0;
		pthread_t t;

		pthread_create(&t, NULL, thread_leaves, &flag);
		pthread_join(t, NULL);
		cleaned += flag;
	}
	queries(arg(1));
	printf("cleaned %d\n", cleaned);
}

/* ---- arguments ---- */

static void mode_stack(void)
{
	static char host[4096];
	dim3 grid = { 11, 12, 13 }, block = { 14, 15, 16 };
	CUlibrary lib = NULL;
	CUkernel kernel = NULL;
	cudaStream_t stream = NULL;
	void *p, *none[1] = { NULL };

	cudaStreamCreate(&stream);
	cudaMalloc(&p, 8192);
	cuLibraryLoadData(&lib, "x", NULL, NULL, 0, NULL, NULL, 0);
	cuLibraryGetKernel(&kernel, lib, "nothing");
	cudaLaunchKernel(kernel, grid, block, none, 768, stream);
	cudaMemcpy2DAsync(p, 128, host, 64, 32, 16, cudaMemcpyHostToDevice, stream);
	cuLaunchKernel((CUfunction)kernel, 21, 22, 23, 24, 25, 26, 4096, stream, none, NULL);
	printf("stream %p kernel %p args %p dst %p src %p\n", (void *)stream, (void *)kernel,
	       (void *)none, p, (void *)host);
}

/* Pointers to nowhere, strings without an end, counts beyond reason: what must not hurt the
 * tracer. Refused calls only. */
static void mode_hostile(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *edge =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char escape[] = "\033[31m\"\\\n\xff\xfe\x01%s%n";
	cudaLibrary_t lib = NULL;
	cudaKernel_t kernel;
	char *huge;

	munmap(edge + page, page);
	memset(edge + page - 8, 'A', 8); /* runs into memory that is not there */
	huge = malloc(1 << 20);
	memset(huge, 'B', (1 << 20) - 1);
	huge[(1 << 20) - 1] = 0;

	cudaMalloc((void **)8, 0);
	cudaFree((void *)0xdeadbeefdeadbeef);
	cudaFree((void *)1);
	cudaMemcpy((void *)0x10, (void *)0x20, ~0UL, cudaMemcpyHostToDevice);
	cudaMemcpy((void *)-1L, (void *)-1L, ~0UL, (enum cudaMemcpyKind)77);
	cudaStreamSynchronize((cudaStream_t)0x1234);
	cudaEventRecord((cudaEvent_t)-8L, (cudaStream_t)-8L);
	cudaLibraryLoadFromFile(&lib, (const char *)0x40, NULL, NULL, 0, NULL, NULL, 0);
	cudaLibraryLoadFromFile(&lib, (const char *)-1L, (void *)0x30, (void *)0x30, ~0U,
				(void *)0x30, (void *)0x30, ~0U);
	cudaLibraryLoadFromFile(&lib, edge + page - 8, NULL, NULL, 0, NULL, NULL, 0);
	cudaLibraryLoadFromFile(&lib, huge, NULL, NULL, 0, NULL, NULL, 0);
	cudaLibraryLoadFromFile(&lib, escape, NULL, NULL, 0, NULL, NULL, 0);
	cudaLibraryGetKernel(&kernel, (cudaLibrary_t)0x99, (const char *)0x77);
	cudaLaunchKernel((void *)0x55, (dim3){ ~0U, ~0U, ~0U }, (dim3){ ~0U, ~0U, ~0U },
			 (void **)0x66, ~0UL, (cudaStream_t)0x77);
	cudaMemGetInfo(NULL, (size_t *)8);
	prctl(PR_SET_NAME, "\033[2J\"\\\xff\xc3(");
	queries(1);
	puts("survived");
}

/* ---- configurations ---- */

static void launch_with(const cudaLaunchConfig_t *config, const void *function)
{
	cudaLaunchKernelExC(config, function, NULL);
}

/* The same configuration at many distances from the stack pointer, in its page and beyond. */
static void launch_at_distances(const void *function)
{
	cudaLaunchConfig_t configs[256]; /* 14 KiB */

	for (unsigned int i = 0; i < 256; i++) {
		configs[i] = (cudaLaunchConfig_t){ .gridDim = { i + 1, 2, 3 },
						   .blockDim = { 32, 1, 1 },
						   .dynamicSmemBytes = i };
		launch_with(&configs[i], function);
	}
}

static ucontext_t outside, inside;
static char *stack_end;

/* Memory ends at stack_end, and so does the stack. CUDA does not read the configuration of a call that it
 * refuses. */
static void launch_at_end(void)
{
	for (long at = 8 - (long)sizeof(cudaLaunchConfig_t); at <= 128; at += 8)
		launch_with((const cudaLaunchConfig_t *)(stack_end + at), NULL);
}

static void mode_configs(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *stack =
		mmap(NULL, 17 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stack_end = stack + 16 * page;
	munmap(stack_end, page);
	launch_at_distances((void *)0x55);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = 16 * page;
	inside.uc_link = &outside;
	makecontext(&inside, launch_at_end, 0);
	swapcontext(&outside, &inside);
	puts("survived");
}

/* ---- libraries ---- */

static void *need(void *p, const char *what)
{
	if (p)
		return p;
	printf("cannot find %s: %s\n", what, dlerror());
	exit(1);
}

/* PATH N [PATH N ...]: loads each library and calls it N times at once, without looking back. */
static void mode_dlopen(void)
{
	for (int i = 0; i + 1 < nargs; i += 2) {
		void *lib = need(dlopen(args[i], RTLD_NOW | RTLD_LOCAL), args[i]);
		cudaError_t (*query)(cudaStream_t) =
			need(dlsym(lib, "cudaStreamQuery"), "cudaStreamQuery");

		for (long n = atol(args[i + 1]); n > 0; n--)
			query(0);
	}
}

/* PATH N: a shared object with a static cudart inside; it makes N calls. */
static void mode_inner(void)
{
	void *lib = need(dlopen(args[0], RTLD_NOW | RTLD_LOCAL), args[0]);
	void (*inner_calls)(long) = need(dlsym(lib, "inner_calls"), "inner_calls");

	inner_calls(arg(1));
}

/* ---- a sandbox ---- */

/* N [FLAGS]: kills on any system call but those that follow: on uretprobe(2) and uprobe(2), too. With
 * FLAGS (1: all threads) the filter comes by seccomp(2), else by prctl(2). */
static void mode_seccomp(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_futex, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	queries(1); /* loads the driver while it still may */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    (nargs > 1 ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, (long)arg(1), &prog)
		       : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))) {
		perror("seccomp");
		exit(1);
	}
	queries(arg(0));
	/* the dynamic loader is asked, and its hook makes no system call either */
	if (dlsym(RTLD_DEFAULT, "cudaStreamQuery") && write(1, "survived\n", 9) != 9)
		_exit(1);
	_exit(0);
}

/* N: kills at all that neither injection nor this mode calls (user/source/inject/inject_needs.h). */
static void mode_allows(void)
{
	enum { NEEDS = sizeof(inject_needs) / sizeof(inject_needs[0]) };
	static const int own[] = { __NR_write, __NR_exit_group };
	struct sock_filter filter[2 * (NEEDS + 2) + 2], *f = filter;
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	*f++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < NEEDS + 2; i++) {
		int nr = i < NEEDS ? (int)inject_needs[i].nr : own[i - NEEDS];

		*f++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
		*f++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	*f = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	queries(1);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) || write(1, "allowed\n", 8) != 8)
		_exit(1);
	for (long i = 0; i < arg(0); i++) {
		queries(1);
		usleep(1000);
	}
	_exit(write(1, "survived\n", 9) != 9);
}

/* N: a filter as above that lets prctl(2) through, too, and then another one. */
static void mode_seccomp_twice(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prctl, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_futex, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	queries(1); /* loads the driver while it still may */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(1);
	for (int i = 0; i < 2; i++)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
			_exit(1);
	queries(arg(0));
	_exit(write(1, "survived\n", 9) != 9);
}

static void wait_line(void)
{
	char c;

	ssize_t n;

	while ((n = read(0, &c, 1)) == 1 && c != '\n')
		;
	if (n != 1)
		fprintf(stderr, "calls: stdin ended: %s\n", n ? strerror(errno) : "end of file");
}

/* Without libc, where that is possible. */
static long system_call(long nr, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
#else
	return syscall(nr, a, b, c);
#endif
}

enum filter_how {
	FILTER_LIBC,
	FILTER_RAW,	/* by an instruction of its own */
	FILTER_RAW_ALL, /* the same, for all threads */
	FILTER_ALL,	/* for all threads, by libc */
};
/* A filter of the thread that lets through what this mode does itself, and kills at anything else. ends: a thread may
 * end. */
static int filter_most(enum filter_how how, bool ends)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_read, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prctl, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ends ? __NR_exit : __NR_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	if (how == FILTER_LIBC)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
	if (how == FILTER_ALL)
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				    &prog);
	if (how == FILTER_RAW)
		return (int)system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
					(long)&prog);
	return (int)system_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				(long)&prog);
}

static int of_libc(struct dl_phdr_info *o, size_t size, void *range)
{
	(void)size;
	for (int i = 0; i < o->dlpi_phnum && strstr(o->dlpi_name, "libc.so"); i++)
		if (o->dlpi_phdr[i].p_type == PT_LOAD && o->dlpi_phdr[i].p_flags & PF_X) {
			((unsigned long *)range)[0] = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
			((unsigned long *)range)[1] = o->dlpi_phdr[i].p_memsz;
		}
	return 0;
}

/* System calls that are not made by libc's code become SIGSYS, which ends the program. */
static int dispatch_calls(void)
{
	static char blocks = 1; /* SYSCALL_DISPATCH_FILTER_BLOCK */
	unsigned long range[2];

	dl_iterate_phdr(of_libc, range);
	return prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, range[0], range[1], &blocks);
}

/*
 * N HOW: a query before, and N after the program has forbidden itself something.
 *	tsc, tsc-call	the processor's clock, by prctl(2) or syscall(2)
 *	tsc-waits, dispatch-waits	the same as without -waits, and then a line is waited for
 *	strict		system calls: all but four
 *	raw-strict-waits	the same, by an instruction of its own, and then a line is waited for
 *	filter-tsc	most system calls, then, after N more queries, the processor's clock
 *	filter-all	most system calls, then, after N more queries, the same for all threads
 *	raw-filter	most system calls, by an instruction of its own; then it also asks for the text of an error
 *	raw-filter-waits	the same, and then a line is waited for
 *	raw-all-waits, raw-all-stays-waits	the same for all threads; with stays no thread may end, and the process ends
 *	dispatch	system calls that are not libc's
 * Otherwise the thread ends, because exit_group() may be forbidden.
 */
static void mode_forbids(void)
{
	const char *how = args[1], *text;
	int err = -1;

	queries(1);
	if (!strcmp(how, "tsc") || !strcmp(how, "tsc-waits"))
		err = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (!strcmp(how, "tsc-call"))
		err = (int)syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (!strcmp(how, "strict"))
		err = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	if (!strcmp(how, "filter-tsc")) {
		err = filter_most(FILTER_LIBC, true);
		queries(arg(0));
		err |= prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	}
	if (!strcmp(how, "filter-all")) {
		err = filter_most(FILTER_LIBC, true);
		queries(arg(0));
		err |= filter_most(FILTER_ALL, true);
	}
	if (!strcmp(how, "raw-strict-waits"))
		err = (int)system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0);
	if (strstr(how, "raw-filter"))
		err = filter_most(FILTER_RAW, true);
	if (strstr(how, "raw-all"))
		err = filter_most(FILTER_RAW_ALL, !strstr(how, "stays"));
	if (!strcmp(how, "dispatch") || !strcmp(how, "dispatch-waits"))
		err = dispatch_calls();
	if (strstr(how, "-waits") && write(1, "forbidden\n", 10) == 10)
		wait_line();
	queries(arg(0));
	if (strstr(how, "raw-filter"))
		cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text);
	if (!err && write(1, "survived\n", 9) != 9)
		_exit(1);
	if (strstr(how, "stays"))
		_exit(err != 0);
	syscall(SYS_exit, err != 0);
}

static void *queries_of_thread(void *arg)
{
	queries(*(long *)arg);
	return NULL;
}

/* N: maps and fills memory where the hooks' area was, or will be, if that is free; and waits for a line, N times. Then
 * says whether the memory is as it was. */
static void mode_maps(void)
{
	const size_t page = 1 << 20, size = (size_t)4 << 30;
	unsigned char *at = MAP_FAILED;
	bool same = true;

	for (long i = 0; i < arg(0); i++) {
		queries(1);
		if (at == MAP_FAILED)
			at = mmap((void *)0x200040000000, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  -1, 0);
		for (size_t n = 0; n < size && at != MAP_FAILED && !i; n += page * 64)
			memset(at + n, 7, 64);
		printf("at %ld: %s\n", i, at == MAP_FAILED ? "taken" : "mapped");
		fflush(stdout);
		wait_line();
	}
	for (size_t n = 0; n < size && at != MAP_FAILED && same; n += page * 64)
		same = at[n] == 7 && at[n + 63] == 7;
	printf("%s\n", same ? "as it was" : "changed");
}

/* N MIB HOW: a query, then the process limits its address space (setrlimit, prlimit, call), takes half of
 * it by malloc(), and makes N queries in a new thread. */
static void mode_limited(void)
{
	struct rlimit limit = { (rlim_t)arg(1) << 20, (rlim_t)arg(1) << 20 };
	const char *how = args[2];
	long n = arg(0);
	pthread_t thread;
	int err = -1;

	queries(1);
	if (!strcmp(how, "setrlimit"))
		err = setrlimit(RLIMIT_AS, &limit);
	if (!strcmp(how, "prlimit"))
		err = prlimit(getpid(), RLIMIT_AS, &limit, NULL);
	if (!strcmp(how, "call"))
		err = (int)syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL);
	for (int i = 0; i < 16 && !err; i++)
		err = !malloc((size_t)arg(1) << 15);
	if (err || pthread_create(&thread, NULL, queries_of_thread, &n)) {
		printf("no memory\n");
		return;
	}
	pthread_join(thread, NULL);
	printf("survived\n");
}

/* ---- namespaces ---- */

static void told(const char *what, long result)
{
	printf("%s %s\n", what, result ? strerror(errno) : "ok");
	queries(1);
}

/*
 * [1]: a query after each change of a namespace or of capabilities. Some of these calls are refused
 * to a process of several threads, or do something else there. 1: after the third change no threads
 * can be made.
 */
static void mode_namespaces(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	int ends[2], net;
	char c;

	queries(1);
	told("files", pipe(ends) || unshare(CLONE_FILES));
	close(ends[1]);
	told("end", read(ends[0], &c, 1));
	told("user", syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS | arg(0) * CLONE_NEWPID));
	told("user again", unshare(CLONE_NEWUSER));
	told("net", unshare(CLONE_NEWNET | CLONE_FS));
	net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	told("setns", setns(net, CLONE_NEWNET) || setns(net, 0));
	told("caps", syscall(SYS_capget, &head, caps) || syscall(SYS_capset, &head, caps));
}

/* ---- stretches ---- */

/* A calls, then twice B calls that the program itself marks, with A calls after each. */
static void mode_profiler(void)
{
	queries(arg(0));
	for (int i = 0; i < 2; i++) {
		cudaProfilerStart();
		queries(arg(1));
		cudaProfilerStop();
		queries(arg(0));
	}
}

/* For each line of stdin, a number, makes so many calls and says "made"; -1 makes one that
 * fails. Ends with a 0. */
static void mode_lines(void)
{
	char line[32];
	long n;

	do {
		size_t len = 0;

		while (len < sizeof(line) - 1 && read(0, line + len, 1) == 1 && line[len] != '\n')
			len++;
		line[len] = '\0';
		n = atol(line);
		if (n < 0)
			cudaSetDevice(4711);
		queries(n);
		printf("made %ld\n", n);
		fflush(stdout);
	} while (n);
}

/* A calls, and B more after it has closed its descriptors, as a daemon does. */
static void mode_daemon(void)
{
	queries(arg(0));
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	queries(arg(1));
}

/* ---- main ---- */

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "queries", mode_queries },
	{ "devices", mode_devices },
	{ "mix", mode_mix },
	{ "sizes", mode_sizes },
	{ "failing", mode_failing },
	{ "words", mode_words },
	{ "reports", mode_reports },
	{ "names", mode_names },
	{ "driver", mode_driver },
	{ "threads", mode_threads },
	{ "main-gone", mode_main_gone },
	{ "fork", mode_fork },
	{ "exec", mode_exec },
	{ "exec-lines", mode_exec_lines },
	{ "thread-exec", mode_thread_exec },
	{ "locked", mode_locked },
	{ "status", mode_status },
	{ "kill", mode_kill },
	{ "signal", mode_signal },
	{ "main-leaves", mode_main_leaves },
	{ "callback", mode_callback },
	{ "occupancy", mode_occupancy },
	{ "depth", mode_depth },
	{ "longjmp", mode_longjmp },
	{ "thread-exit", mode_thread_exit },
	{ "stack", mode_stack },
	{ "hostile", mode_hostile },
	{ "configs", mode_configs },
	{ "dlopen", mode_dlopen },
	{ "inner", mode_inner },
	{ "seccomp", mode_seccomp },
	{ "seccomp-twice", mode_seccomp_twice },
	{ "allows", mode_allows },
	{ "forbids", mode_forbids },
	{ "limited", mode_limited },
	{ "maps", mode_maps },
	{ "namespaces", mode_namespaces },
	{ "profiler", mode_profiler },
	{ "lines", mode_lines },
	{ "daemon", mode_daemon },
};

int main(int argc, char **argv)
{
	int wait = argc > 1 && !strcmp(argv[1], "--wait");

	argv += wait;
	argc -= wait;
	args = argv + 2;
	nargs = argc > 2 ? argc - 2 : 0;
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]))
			continue;
		if (wait) {
			cudaFree(0);
			printf("ready %d %p\n", (int)getpid(), dlsym(RTLD_DEFAULT, "cudaMalloc"));
			fflush(stdout);
			wait_line();
		}
		modes[i].run();
		fflush(stdout);
		if (wait) {
			puts("done");
			fflush(stdout);
			wait_line();
		}
		return 0;
	}
	fprintf(stderr, "calls: no such mode\n");
	return 2;
}
