/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jumps.c - calls that signals interrupt, whose handlers call CUDA themselves or jump out of the
 * call.
 *
 *         jumps alt above|below N GO    a handler on an alternate stack, above or below the
 *                                       thread's own, calls cudaMalloc and cudaFree N
 *                                       times in one cudaDeviceSynchronize; then GO, which that
 *                                       waits for (STANDIN_BLOCK), is made. Prints
 *                                       "ready" and waits for a line of stdin, or its end; from
 *                                       then on to the next line the thread calls
 * 	                              cudaSetDevice
 *         jumps out N                   N rounds of seven ways to leave cudaDeviceSynchronize by
 *                                       siglongjmp, each followed by a cudaMalloc
 * 	jumps jit N                   the same from code that lies in no file
 * 	jumps leave N OBJECT          N times cudaMalloc and cudaFree; at an instruction of the former that lies in
 *                                       OBJECT, each time at a later one, a signal handler leaves it by siglongjmp
 * 	jumps vfork OBJECT            prints "ready", and waits for a line of stdin; then children of vfork() call
 *                                       _exit(), each killed at a later instruction of it that lies in
 *                                       OBJECT, if it comes so far; then makes three calls of cudaStreamQuery; all
 *                                       that twice; prints "done" and waits for the end of stdin
 * 	jumps step N                  N times cudaStreamQuery(1), with a signal after each instruction
 *                                       of it, whose handler calls cudaStreamQuery(0)
 *         jumps free N                  N rounds of cudaMalloc(500), leaving cudaFree of it by
 *                                       siglongjmp, and cudaFreeAsync of it
 *
 * A second thread sends the signals, each when the call that it is for sleeps. Prints what it did.
 */
#include <cuda_runtime_api.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)1 << 20)

static sigjmp_buf leave;
static volatile int handled, armed, done, lines, calling;
static volatile pid_t tid;
static pthread_t worker;
static int syncs, mallocs, streams, devices;

/* The stand-in waits by nanosleep or clock_nanosleep. */
static int sleeps(pid_t thread)
{
	char path[64], text[64] = "";
	long nr = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		nr = atol(text);
	if (fd >= 0)
		close(fd);
	return nr == SYS_clock_nanosleep
#ifdef SYS_nanosleep
	       || nr == SYS_nanosleep
#endif
		;
}

static void interrupt_call(void)
{
	while (!sleeps(tid))
		usleep(500);
	pthread_kill(worker, SIGUSR1);
}

static void *interrupt_calls(void *arg)
{
	while (!done) {
		if (!armed) {
			usleep(200);
			continue;
		}
		armed = 0;
		interrupt_call();
	}
	return arg;
}

/* ---- out of calls ---- */

static void jump(int sig)
{
	(void)sig;
	siglongjmp(leave, 1);
}

__attribute__((noinline)) static void sync_and_leave(void)
{
	if (sigsetjmp(leave, 1))
		return;
	syncs++;
	armed = 1;
	cudaDeviceSynchronize();
	abort();
}

__attribute__((noinline)) static void allocate(void)
{
	void *p;

	cudaMalloc(&p, 77);
	cudaFree(p);
	mallocs++;
}

/* Calls f from deeper in the stack, over memory that nobody writes to. */
__attribute__((noinline)) static void deeper(int n, void (*f)(void))
{
	volatile char room[256];

	room[0] = (char)n;
	if (n)
		deeper(n - 1, f);
	else
		f();
	room[1] = room[0];
}

static void one_round(void)
{
	sync_and_leave();
	allocate();
	deeper(5, sync_and_leave); /* the next call is made from above it */
	allocate();
	sync_and_leave();
	deeper(5, allocate); /* from below it: by its place it looks as if it were inside */
	sync_and_leave();
	sync_and_leave();
	sync_and_leave(); /* the same function at the same place */
	allocate();
	if (!sigsetjmp(leave, 1)) {
		syncs++;
		armed = 1;
		cudaDeviceSynchronize();
	}
	cudaStreamSynchronize(0); /* another function at the same place */
	streams++;
}

static void out(int n)
{
	while (n--)
		one_round();
	printf("sync %d malloc %d stream %d\n", syncs, mallocs, streams);
}

static void leave_free(int n)
{
	static void *p;

	for (volatile int i = 0; i < n; i++) {
		cudaMalloc(&p, 500);
		if (!sigsetjmp(leave, 1)) {
			armed = 1;
			cudaFree(p);
			abort();
		}
		cudaFreeAsync(p, 0);
	}
}

#ifdef __x86_64__
/* push rbp; mov rbp,rsp; mov rax,rdi; mov rdi,rsi; mov rsi,rdx; call rax; pop rbp; ret */
static const unsigned char calls_rdi[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89,
					   0xf7, 0x48, 0x89, 0xd6, 0xff, 0xd0, 0x5d, 0xc3 };

static void jit(int n)
{
	long (*call)(void *, long, long);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p;

	memcpy(code, calls_rdi, sizeof(calls_rdi));
	memcpy(&call, &code, sizeof(call));
	for (volatile int i = 0; i < n; i++) {
		if (!sigsetjmp(leave, 1)) {
			syncs++;
			armed = 1;
			call(cudaDeviceSynchronize, 0, 0);
			abort();
		}
		call(cudaMalloc, (long)&p, 1000);
		call(cudaFree, (long)p, 0);
		mallocs++;
	}
	printf("sync %d malloc %d\n", syncs, mallocs);
}
#endif

#ifdef __x86_64__
static void step_handler(int sig)
{
	(void)sig;
	cudaStreamQuery(0);
	handled++;
}

/* The trap flag: SIGTRAP after each instruction, until the flags are restored. */
static void step(int n)
{
	signal(SIGTRAP, step_handler);
	for (int i = 0; i < n; i++) {
		__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "cc", "memory");
		cudaStreamQuery((cudaStream_t)1);
		__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "cc", "memory");
	}
	printf("called %d handled %d\n", n, handled);
}
#endif

#ifdef __x86_64__
/* ---- out of what records a call ---- */

static volatile unsigned long object_lo, object_hi;
static volatile int inside, leave_at;

/* Where the code of a mapped file is whose name has this in it. */
static int find_object(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4352], perms[8];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long lo, hi;

		if (sscanf(line, "%lx-%lx %7s", &lo, &hi, perms) == 3 && perms[2] == 'x' &&
		    strstr(line, name)) {
			object_lo = lo;
			object_hi = hi;
		}
	}
	if (f)
		fclose(f);
	return object_hi != 0;
}

static void leave_handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	unsigned long ip = (unsigned long)c->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (ip < object_lo || ip >= object_hi || inside++ < leave_at)
		return;
	siglongjmp(leave, 1);
}

/* Both calls are made at the same place of the stack. */
__attribute__((noinline)) static int malloc_and_leave(void **p)
{
	volatile int left = 1;

	if (!sigsetjmp(leave, 1)) {
		inside = 0;
		__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "cc", "memory");
		cudaMalloc(p, 77);
		__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "cc", "memory");
		left = 0;
	}
	cudaFree(NULL);
	return left;
}

static void leave_recording(int n, const char *object)
{
	struct sigaction sa = { .sa_sigaction = leave_handler, .sa_flags = SA_SIGINFO };
	int left = 0;
	void *p;

	if (!find_object(object))
		exit(3);
	sigaction(SIGTRAP, &sa, NULL);
	for (int i = 0; i < n; i++) {
		leave_at = 20 + 12 * i;
		left += malloc_and_leave(&p);
	}
	printf("left %d of %d\n", left, n);
}

static void kill_handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	unsigned long ip = (unsigned long)c->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (ip >= object_lo && ip < object_hi && inside++ == leave_at)
		kill(getpid(), SIGKILL);
}

/* Returns how the child ended. It has the parent's memory. */
static int vfork_and_exit(void)
{
	struct sigaction sa = { .sa_sigaction = kill_handler, .sa_flags = SA_SIGINFO };
	int status = 0;
	pid_t pid;

	inside = 0;
	pid = vfork();
	if (!pid) {
		sigaction(SIGTRAP, &sa, NULL);
		__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "cc", "memory");
		_exit(7);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

static void vforks(const char *object)
{
	static const int at[] = { 20, 200, 300, 500, 700, 1000, 1500, 2500, 4000 };
	int killed = 0, exited = 0;

	cudaStreamQuery(0);
	puts("ready");
	fflush(stdout);
	getchar();
	if (!find_object(object))
		exit(3);
	/* in the first round, the child makes the thread's first hooked call */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
			int status;

			leave_at = at[i];
			status = vfork_and_exit();
			killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
			exited += WIFEXITED(status) && WEXITSTATUS(status) == 7;
		}
		for (int i = 0; i < 3; i++)
			cudaStreamQuery(0);
	}
	printf("done: killed %s, %d of 18\n", killed ? "some" : "none", killed + exited);
	fflush(stdout);
	while (getchar() != EOF)
		;
}
#endif

/* ---- handlers that call ---- */

static void call_cuda(int sig)
{
	void *p;

	(void)sig;
	cudaMalloc(&p, 1234);
	cudaFree(p);
	handled++;
}

static void *synchronize(void *stack)
{
	stack_t alt = { .ss_sp = stack, .ss_size = STACK_BYTES };

	if (sigaltstack(&alt, NULL))
		abort();
	tid = (pid_t)syscall(SYS_gettid);
	while (!lines)
		sched_yield();
	do {
		cudaSetDevice(0);
		devices++;
	} while (lines < 2);
	calling = 1;
	cudaDeviceSynchronize();
	return NULL;
}

static void alt(int above, int n, const char *go)
{
	char *room = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, above ? room : room + STACK_BYTES, STACK_BYTES);
	pthread_create(&worker, &attr, synchronize, above ? room + STACK_BYTES : room);
	while (!tid)
		usleep(500);
	puts("ready");
	fflush(stdout);
	while (lines < 2) {
		int c = getchar();

		lines += c == '\n' ? 1 : c == EOF ? 2 : 0;
	}
	while (!calling)
		usleep(500);
	while (handled < n) {
		int before = handled;

		interrupt_call();
		while (handled == before)
			usleep(500);
	}
	close(open(go, O_WRONLY | O_CREAT, 0600));
	pthread_join(worker, NULL);
	printf("handled %d devices %d\n", handled, devices);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_flags = SA_ONSTACK | SA_RESTART };
	pthread_t sender;

	if (argc < 3)
		return 2;
	cudaSetDevice(0);
	sa.sa_handler = argc == 5 ? call_cuda : jump;
	sigaction(SIGUSR1, &sa, NULL);
	if (argc == 5) {
		alt(!strcmp(argv[2], "above"), atoi(argv[3]), argv[4]);
		return 0;
	}
#ifdef __x86_64__
	if (!strcmp(argv[1], "vfork")) {
		vforks(argv[2]);
		return 0;
	}
#endif
	worker = pthread_self();
	tid = (pid_t)syscall(SYS_gettid);
	pthread_create(&sender, NULL, interrupt_calls, NULL);
	if (!strcmp(argv[1], "out"))
		out(atoi(argv[2]));
	if (!strcmp(argv[1], "free"))
		leave_free(atoi(argv[2]));
#ifdef __x86_64__
	if (!strcmp(argv[1], "jit"))
		jit(atoi(argv[2]));
	if (!strcmp(argv[1], "leave") && argc == 4)
		leave_recording(atoi(argv[2]), argv[3]);
	if (!strcmp(argv[1], "step"))
		step(atoi(argv[2]));
#endif
	done = 1;
	pthread_join(sender, NULL);
	return 0;
}
