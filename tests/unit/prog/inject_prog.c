/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_prog.c - programs that something is injected into: inject_prog MODE. Each does one
 * thing over and over until told to stop, and looks each time whether everything is as it would
 * be if it were alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject_prog.h"
#include "litter.h"

#define NAP_MS 20

static struct shared *sh;

static void bad(int line, long what)
{
	if (!sh->bad)
		sh->bad = 1000l * line + what;
}
#define MUST(cond, what)                     \
	do {                                 \
		if (!(cond))                 \
			bad(__LINE__, what); \
	} while (0)

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- threads that wait ---- */

static int nap_nanosleep(void)
{
	struct timespec t = { .tv_nsec = NAP_MS * 1000000 };

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}
static int nap_poll(void)
{
	return poll(NULL, 0, NAP_MS);
}
static int nap_ppoll(void)
{
	struct timespec t = { .tv_nsec = NAP_MS * 1000000 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &t, &none);
}
static int nap_select(void)
{
	struct timeval t = { .tv_usec = NAP_MS * 1000 };

	return select(0, NULL, NULL, NULL, &t);
}
static int nap_futex(void)
{
	struct timespec t = { .tv_nsec = NAP_MS * 1000000 };
	int word = 0;

	if (syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0) != -1 || errno != ETIMEDOUT)
		return -1;
	errno = 7;
	return 0;
}
static int nap_cond(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec t;
	int err;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += NAP_MS * 1000000;
	if (t.tv_nsec >= 1000000000)
		t.tv_sec++, t.tv_nsec -= 1000000000;
	pthread_mutex_lock(&lock);
	err = pthread_cond_timedwait(&cond, &lock, &t);
	pthread_mutex_unlock(&lock);
	return err == ETIMEDOUT ? 0 : -1;
}
static int nap_epoll(void)
{
	static int fd = -1;
	struct epoll_event e;

	if (fd < 0)
		fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_wait(fd, &e, 1, NAP_MS);
}
static int nap_sem(void)
{
	static int id = -1;
	struct timespec t = { .tv_nsec = NAP_MS * 1000000 };
	struct sembuf op = { .sem_op = -1 };

	if (id < 0) {
		id = semget(IPC_PRIVATE, 1, 0600);
		if (id < 0 || semctl(id, 0, SETVAL, 0))
			return -2;
	}
	if (semtimedop(id, &op, 1, &t) != -1 || errno != EAGAIN)
		return -1;
	errno = 7;
	if (sh->stop)
		semctl(id, 0, IPC_RMID);
	return 0;
}
/* A socket with a time-out: a read returns EINTR after any stop. */
static int nap_recv(void)
{
	static int fds[2] = { -1, -1 };
	struct timeval t = { .tv_usec = NAP_MS * 1000 };
	char c;

	if (fds[0] < 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) ||
		    setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)))
			return -2;
	}
	if (read(fds[0], &c, 1) != -1 || errno != EAGAIN)
		return -1;
	errno = 7;
	return 0;
}

static int __attribute__((noinline)) nap_littered(void)
{
	volatile char room[32768];

	room[0] = 0;
	return nap_nanosleep() + room[0];
}

static int nap_stale(void)
{
	litter(60);
	errno = 7;
	return nap_littered();
}

static void naps(int (*nap)(void))
{
	sh->ready = 1;
	while (!sh->stop) {
		double from = now_ms();
		int err;

		errno = 7;
		err = nap();
		MUST(!err && errno == 7, errno);
		MUST(now_ms() - from >= NAP_MS - 0.1, (long)(now_ms() - from));
		sh->rounds++;
	}
}

/* Blocked in read(2) of a pipe until the other end of standard input is closed. */
static void reads(void)
{
	ssize_t n;
	char c;

	errno = 7;
	sh->ready = 1;
	while ((n = read(0, &c, 1)) == 1)
		sh->rounds++;
	MUST(n == 0 && errno == 7, errno);
}

/* ---- threads that work ---- */

static void *heap(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg + 1;
	unsigned char *held[64] = {};

	while (!sh->stop) {
		unsigned r = seed = seed * 1103515245 + 12345, slot = r >> 8 & 63,
			 len = 1 + (r >> 16) % 3000;

		if (held[slot]) {
			unsigned n = held[slot][0];

			for (unsigned i = 0; i < n; i++)
				MUST(held[slot][i] == n, i);
			free(held[slot]);
			held[slot] = NULL;
			continue;
		}
		held[slot] = r & 1 ? malloc(len + 256) : calloc(1, len + 256);
		memset(held[slot], 1 + len % 200, 1 + len % 200);
		if (!arg)
			sh->rounds++;
		sh->ready = 1;
	}
	for (int i = 0; i < 64; i++)
		free(held[i]);
	return NULL;
}

static void heaps(int n)
{
	pthread_t threads[8];

	for (long i = 1; i < n; i++)
		pthread_create(&threads[i], NULL, heap, (void *)i);
	heap(NULL);
	for (int i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
}

#if defined(__x86_64__)
/* Registers that a function may spoil, held over a few thousand turns of a loop in which no
 * function is called. */
static void vectors(void)
{
	static unsigned char in[64 * 32] __attribute__((aligned(64))),
		out[64 * 32] __attribute__((aligned(64)));
	int wide = __builtin_cpu_supports("avx512f");
	unsigned turn = 0;

	sh->ready = 1;
	while (!sh->stop) {
		unsigned long k_in = 0x1234 + turn, k_out = k_in, general = 0;
		unsigned mx = 0x1f80 | (turn & 3) << 13, mx_out;

		turn++;
		for (size_t i = 0; i < sizeof(in); i++)
			in[i] = (unsigned char)(i * 7 + turn);
		memset(out, 0, sizeof(out));
		errno = (int)turn & 63;
		__asm__ volatile("ldmxcsr %0" ::"m"(mx));
		if (wide)
			__asm__ volatile(".irp "
					 "n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,"
					 "21,22,23,24,25,26,27,28,29,30,31\n"
					 "vmovdqa64 64*\\n(%1), %%zmm\\n\n.endr\n"
					 "kmovw %k0, %%k1\n"
					 "mov $20000, %%ecx\n1: pause\ndec %%ecx\njnz 1b\n"
					 ".irp "
					 "n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,"
					 "21,22,23,24,25,26,27,28,29,30,31\n"
					 "vmovdqa64 %%zmm\\n, 64*\\n(%2)\n.endr\n"
					 "kmovw %%k1, %k0\n"
					 "vzeroupper\n"
					 : "+r"(k_out)
					 : "r"(in), "r"(out)
					 : "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
					   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
					   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
		else
			__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
					 "movdqa 64*\\n(%0), %%xmm\\n\n.endr\n"
					 "mov $20000, %%ecx\n1: pause\ndec %%ecx\njnz 1b\n"
					 ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
					 "movdqa %%xmm\\n, 64*\\n(%1)\n.endr\n" ::"r"(in),
					 "r"(out)
					 : "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
					   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
					   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
		__asm__ volatile("stmxcsr %0" : "=m"(mx_out));
		MUST((mx_out & 0xffc0) == (mx & 0xffc0), mx_out);
		for (int r = 0; r < (wide ? 32 : 16); r++)
			MUST(!memcmp(in + 64 * r, out + 64 * r, wide ? 64 : 16), r);
		MUST(!wide || (k_out & 0xffff) == (k_in & 0xffff), (long)k_out);
		MUST(errno == ((int)turn & 63), errno);
		/* the red zone, the direction flag, and all general registers that fit */
		__asm__ volatile(
			"mov $0x1111, %%rax\nmov $0x2222, %%rdx\nmov $0x3333, %%rsi\nmov $0x4444, "
			"%%rdi\n"
			"mov $0x5555, %%r8\nmov $0x6666, %%r9\nmov $0x7777, %%r10\nmov $0x8888, "
			"%%r11\nstd\n"
			".irp n,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128\nmovq $0x77\\n, "
			"-\\n(%%rsp)\n.endr\n"
			"mov $20000, %%ecx\n1: pause\ndec %%ecx\njnz 1b\n"
			"xor $0x1111, %%rax\nxor $0x2222, %%rdx\nxor $0x3333, %%rsi\nxor $0x4444, "
			"%%rdi\n"
			"xor $0x5555, %%r8\nxor $0x6666, %%r9\nxor $0x7777, %%r10\nxor $0x8888, "
			"%%r11\n"
			"or %%rdx, %%rax\nor %%rsi, %%rax\nor %%rdi, %%rax\nor %%r8, %%rax\nor "
			"%%r9, %%rax\n"
			"or %%r10, %%rax\nor %%r11, %%rax\n"
			".irp n,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128\n"
			"mov $0x77\\n, %%edx\nxor -\\n(%%rsp), %%rdx\nor %%rdx, %%rax\n.endr\n"
			"pushfq\npop %%rdx\nand $0x400, %%rdx\nxor $0x400, %%rdx\nor %%rdx, "
			"%%rax\ncld\n"
			: "=a"(general)
			:
			: "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
		MUST(!general, (long)general);
		sh->rounds++;
	}
}
#else
static void vectors(void)
{
	sh->ready = 1;
	while (!sh->stop)
		sh->rounds++;
}
#endif

/* ---- signals ---- */

static char alternate[65536];

static void handler(int sig, siginfo_t *info, void *ctx)
{
	char here;

	(void)ctx;
	MUST(sig == SIGRTMIN && info->si_code == SI_QUEUE, info->si_code);
	MUST(&here >= alternate && &here < alternate + sizeof(alternate), 0);
	sh->signals++;
	sh->sum += info->si_value.sival_int;
}

static void signals(void)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) }, now;
	sigset_t set;

	sigaltstack(&stack, NULL);
	sigaction(SIGRTMIN, &act, NULL);
	sh->ready = 1;
	while (!sh->stop) {
		for (volatile int i = 0; i < 1000; i++)
			;
		sigaltstack(NULL, &now);
		MUST(now.ss_sp == alternate && now.ss_size == sizeof(alternate) && !now.ss_flags,
		     now.ss_flags);
		pthread_sigmask(SIG_BLOCK, NULL, &set);
		MUST(!sigismember(&set, SIGRTMIN) && !sigismember(&set, SIGUSR1) &&
			     !sigismember(&set, SIGTERM),
		     0);
		sh->rounds++;
	}
}

/* ---- others ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

static void *waiter(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&gate);
	while (!sh->stop)
		pthread_cond_wait(&opened, &gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

static void many(void)
{
	pthread_t threads[64];

	for (int i = 0; i < 64; i++)
		pthread_create(&threads[i], NULL, i < 4 ? heap : waiter, (void *)(long)(i + 1));
	sh->ready = 1;
	while (!sh->stop) {
		nap_nanosleep();
		sh->rounds++;
	}
	pthread_mutex_lock(&gate);
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < 64; i++)
		pthread_join(threads[i], NULL);
}

/* In a call that rules it out, until the other end of standard input is closed. */
static void *until_closed(void *arg)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	MUST(fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, 0, &e), errno);
	sh->ready = 1;
	MUST(epoll_wait(fd, &e, 1, -1) == 1, errno);
	return arg;
}

static void joins(void)
{
	pthread_t thread;
	void *result = NULL;

	pthread_create(&thread, NULL, until_closed, &thread);
	errno = 7;
	MUST(!pthread_join(thread, &result) && result == &thread && errno == 7, errno);
}

/* Everything is allowed but one call, of which `action` becomes. */
static void filtered(unsigned nr, unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	MUST(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), errno);
	naps(nap_nanosleep);
}

static void vforks(void)
{
	pid_t child = vfork();

	if (!child) {
		sh->child = getpid();
		sh->ready = 1;
		while (!sh->stop)
			syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 10000000 }, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void hidden(void)
{
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(3);
	prctl(PR_SET_DUMPABLE, 0);
	naps(nap_nanosleep);
}

/* Ends soon. */
static void brief(void)
{
	sh->ready = 1;
	for (volatile long i = 0; i < 20000000; i++)
		;
}

/* ---- threads that have a descriptor table of their own ---- */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void own_table(void)
{
	MUST(!syscall(SYS_close_range, 0, ~0u, 2 /* CLOSE_RANGE_UNSHARE */), errno);
}

static void *apart(void *arg)
{
	own_table();
	sh->child = (int)syscall(SYS_gettid);
	while (!sh->stop)
		nap_nanosleep();
	return arg;
}

/* The kernel gives out numbers from the lowest on again when it has come to the highest. */
static void numbers_from_the_lowest(void)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0 && write(fd, "300", 3) == 3, errno);
	close(fd);
}

/* A thread that has one sleeps all the time, and its number is lower than the main thread's. */
static void lowest(void)
{
	pthread_t thread;

	numbers_from_the_lowest();
	pthread_create(&thread, NULL, apart, NULL);
	while (!sh->child)
		nap_nanosleep();
	MUST(sh->child < getpid(), sh->child);
	naps(nap_nanosleep);
	pthread_join(thread, NULL);
}

static void *parts(void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
	own_table();
	nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
	return arg;
}

/* Threads come, get one, and end. The main thread waits in a call that rules it out. */
static void part(void)
{
	pthread_t threads[8];

	sh->ready = 1;
	while (!sh->stop) {
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, parts, NULL);
		nap_epoll();
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		sh->rounds++;
	}
}

/* Puts a file that it may only read under the number that each new descriptor gets. */
static void *swapper(void *arg)
{
	int next = dup(0);

	close(next);
	while (!sh->stop) {
		if (fcntl(next, F_GETFD) < 0)
			continue;
		dup2(*(int *)arg, next);
		nap_nanosleep();
		close(next);
	}
	return NULL;
}

static void swaps(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	pthread_t thread;

	MUST(fd >= 0, errno);
	pthread_create(&thread, NULL, swapper, &fd);
	naps(nap_nanosleep);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*nap)(void);
	} table[] = {
		{ "nanosleep", nap_nanosleep }, { "poll", nap_poll },	{ "ppoll", nap_ppoll },
		{ "select", nap_select },	{ "futex", nap_futex }, { "cond", nap_cond },
		{ "epoll", nap_epoll },		{ "sem", nap_sem },	{ "recv", nap_recv },
		{ "stale", nap_stale },
	};
	const char *mode = argc > 1 ? argv[1] : "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
	if (sh == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(mode, table[i].name))
			naps(table[i].nap);
	if (!strcmp(mode, "read"))
		reads();
	else if (!strcmp(mode, "heap"))
		heaps(1);
	else if (!strcmp(mode, "heaps"))
		heaps(4);
	else if (!strcmp(mode, "vectors"))
		vectors();
	else if (!strcmp(mode, "signals"))
		signals();
	else if (!strcmp(mode, "many"))
		many();
	else if (!strcmp(mode, "joins"))
		joins();
	else if (!strcmp(mode, "kills"))
		filtered(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
	else if (!strcmp(mode, "denies"))
		filtered(SYS_memfd_create, SECCOMP_RET_ERRNO | 1);
	else if (!strcmp(mode, "allows"))
		filtered(SYS_ptrace, SECCOMP_RET_ERRNO | 1);
	else if (!strcmp(mode, "vfork"))
		vforks();
	else if (!strcmp(mode, "hidden"))
		hidden();
	else if (!strcmp(mode, "brief"))
		brief();
	else if (!strcmp(mode, "lowest"))
		lowest();
	else if (!strcmp(mode, "part"))
		part();
	else if (*mode == '/')
		swaps(mode);
	return sh->bad ? 1 : 0;
}
