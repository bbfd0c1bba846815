// SPDX-License-Identifier: BSD-2-Clause
// target.cc - the program of tests/faults/run.py: target STEPS FAULT AT [CALLS]. It prints "ready PID" and waits for a line. Each of its
// STEPS allocates, copies to and fro, compares and frees. At step AT it prints "at", and does FAULT itself if that is one of its own. At last
// it prints "done CALLS WRONG" (calls of these four functions by this process, and what was wrong), and waits for the end of stdin.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <link.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" cudaError_t cudaStreamAddCallback(cudaStream_t, cudaStreamCallback_t, void *, unsigned int);

static std::atomic<long> calls, wrong;
static jmp_buf back;

static void good(cudaError_t result)
{
	calls++;
	if (result != cudaSuccess)
		wrong++;
}

static void step()
{
	char in[256], out[256];
	void *p = nullptr;

	memset(in, (int)(calls & 127), sizeof(in));
	memset(out, 0, sizeof(out));
	good(cudaMalloc(&p, sizeof(in)));
	good(cudaMemcpy(p, in, sizeof(in), cudaMemcpyHostToDevice));
	good(cudaMemcpy(out, p, sizeof(in), cudaMemcpyDeviceToHost));
	if (memcmp(in, out, sizeof(in)))
		wrong++;
	good(cudaFree(p));
}

static void steps(int n)
{
	while (n--)
		step();
}

static void in_child()
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(240);
		wrong = 0;
		steps(20);
		_exit(wrong ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		wrong++;
}

static void *exits(void *arg)
{
	steps(20);
	pthread_exit(arg);
}

static void *for_ever(void *arg)
{
	for (;;) {
		step();
		pthread_testcancel();
	}
	return arg;
}

static void thread(bool cancel)
{
	long before = calls;
	pthread_t t;
	void *end;

	if (pthread_create(&t, nullptr, cancel ? for_ever : exits, nullptr)) {
		wrong++;
		return;
	}
	while (cancel && calls < before + 40)
		usleep(100);
	if (cancel)
		pthread_cancel(t);
	pthread_join(t, &end);
	if (cancel != (end == PTHREAD_CANCELED))
		wrong++;
}

static void throws(cudaStream_t, cudaError_t, void *)
{
	throw std::runtime_error("callback");
}

static void exception()
{
	int caught = 0;

	for (int i = 0; i < 5; i++) {
		try {
			cudaStreamAddCallback(nullptr, throws, nullptr, 0);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	wrong += caught != 5;
}

static void jumps(cudaStream_t, cudaError_t, void *)
{
	longjmp(back, 1);
}

static void jump()
{
	static int rounds;

	rounds = 0;
	if (setjmp(back))
		rounds++;
	if (rounds < 5)
		cudaStreamAddCallback(nullptr, jumps, nullptr, 0);
}

static std::atomic<long> signals;

static void on_signal(int)
{
	signals++;
}

static void storm()
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = {};
	struct sigaction action = {};

	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &often, nullptr);
	while (signals < 100)
		step();
	setitimer(ITIMER_REAL, &never, nullptr);
}

// What the tracer is connected to: its agent and its hooks talk over sockets.
static void cut()
{
	for (int fd = 3; fd < 256; fd++)
		shutdown(fd, SHUT_RDWR);
}

// What the program forbids itself: the processor's clock, system calls that it does not make, those that are not libc's, and addresses.
static void no_clock()
{
	wrong += prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0;
}

// by an instruction of ours, where no hook of libc's functions is passed
static long system_call(long nr, long a, long b, long c)
{
#ifdef __x86_64__
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
#else
	return syscall(nr, a, b, c);
#endif
}

static void filter(bool raw)
{
	sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
		// what the program itself does without: pthread_create() needs the second
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(raw ? SYS_getpid : SYS_rt_sigprocmask), 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	wrong += prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		 (raw ? system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program)
		      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	if (raw)
		thread(false);
}

static int of_libc(dl_phdr_info *o, size_t, void *range)
{
	for (int i = 0; i < o->dlpi_phnum && strstr(o->dlpi_name, "libc.so"); i++)
		if (o->dlpi_phdr[i].p_type == PT_LOAD && o->dlpi_phdr[i].p_flags & PF_X) {
			static_cast<unsigned long *>(range)[0] = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
			static_cast<unsigned long *>(range)[1] = o->dlpi_phdr[i].p_memsz;
		}
	return 0;
}

static void dispatch()
{
	static char blocks = 1;
	unsigned long range[2] = {};

	dl_iterate_phdr(of_libc, range);
	wrong += prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, range[0], range[1], &blocks) != 0;
}

static void few_addresses()
{
	rlimit limit = { 2UL << 30, 2UL << 30 };

	wrong += setrlimit(RLIMIT_AS, &limit) != 0;
	for (int i = 0; i < 16; i++)
		wrong += !malloc(64 << 20);
}

// All that is open, but for the standard three; and what is open afterwards is the program's own.
static void close_all()
{
	wrong += syscall(SYS_close_range, 3U, ~0U, 0U) != 0;
	steps(20);
	for (int i = 0; i < 64; i++)
		wrong += dup(2) < 0;
}

// A socket of the program's over each number: nobody writes to it, reads from it or shuts it down.
static void over_all()
{
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || fcntl(ends[0], F_DUPFD, 200) != 200 ||
	    fcntl(ends[1], F_DUPFD, 201) != 201) {
		wrong++;
		return;
	}
	for (int fd = 3; fd < 200; fd++)
		wrong += dup2(200, fd) != fd;
	steps(100);
	wrong += recv(201, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
	wrong += send(201, "x", 1, MSG_NOSIGNAL) != 1;
	wrong += recv(200, &byte, 1, MSG_DONTWAIT) != 1 || byte != 'x';
}

static void another_user()
{
	wrong += setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
}

static void another_root()
{
	char empty[] = "/tmp/cudatrace-faults-root.XXXXXX";

	wrong += !mkdtemp(empty) || chroot(empty) || chdir("/");
}

// Nothing but read, write and the end of a thread is allowed from here on.
static bool is_strict;

static void strict()
{
	is_strict = true;
	wrong += prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0;
}

static int calls_too(void *)
{
	steps(20);
	return 0;
}

// A child in the same memory, without a thread pointer of its own: it calls while its parent waits. Its calls are not this process's.
static void same_memory()
{
	static char stack[1 << 18] __attribute__((aligned(16)));
	long before = calls;
	pid_t pid = clone(calls_too, stack + sizeof(stack), CLONE_VM | SIGCHLD, nullptr);
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		wrong++;
	calls = before;
}

// A debugger: it stops a child in each of its steps.
static void debugs()
{
	int status = 0, stops = 0;
	pid_t pid = fork();

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr))
			_exit(9);
		alarm(60);
		wrong = 0;
		for (int i = 0; i < 20; i++) {
			raise(SIGSTOP);
			step();
		}
		_exit(wrong ? 1 : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		stops += WSTOPSIG(status) == SIGSTOP;
		if (ptrace(PTRACE_CONT, pid, nullptr, WSTOPSIG(status) == SIGSTOP ? 0L : (long)WSTOPSIG(status)))
			break;
	}
	wrong += pid < 0 || status || stops != 20;
}

static void become(char **argv, long left)
{
	std::string n = std::to_string(left), so_far = std::to_string(calls);

	execl("/proc/self/exe", argv[0], n.c_str(), "none", "-1", so_far.c_str(), nullptr);
	wrong++;
}

int main(int argc, char **argv)
{
	long n = argc > 3 ? atol(argv[1]) : 0, at = argc > 3 ? atol(argv[3]) : -1;
	std::string fault = argc > 3 ? argv[2] : "none";
	char line[16];

	setvbuf(stdout, nullptr, _IOLBF, 0);
	cudaFree(nullptr);
	if (argc > 4) {
		calls = atol(argv[4]) + 1; // cudaFree above
	} else {
		printf("ready %d\n", (int)getpid());
		// not by stdio: what it has read ahead would be lost by exec
		if (read(0, line, 1) != 1)
			return 1;
	}
	for (long i = 0; i < n; i++) {
		step();
		if (!is_strict)
			usleep(100);
		if (i != at)
			continue;
		puts("at");
		if (fault == "fork")
			in_child();
		else if (fault == "exec")
			become(argv, n - i - 1);
		else if (fault == "thread" || fault == "cancel")
			thread(fault == "cancel");
		else if (fault == "exception")
			exception();
		else if (fault == "longjmp")
			jump();
		else if (fault == "signals")
			storm();
		else if (fault == "socket")
			cut();
		else if (fault == "clock")
			no_clock();
		else if (fault == "filter" || fault == "raw-filter")
			filter(fault == "raw-filter");
		else if (fault == "dispatch")
			dispatch();
		else if (fault == "addresses")
			few_addresses();
		else if (fault == "closefrom")
			close_all();
		else if (fault == "dup2")
			over_all();
		else if (fault == "setuid")
			another_user();
		else if (fault == "chroot")
			another_root();
		else if (fault == "strict")
			strict();
		else if (fault == "clone-vm")
			same_memory();
		else if (fault == "ptrace")
			debugs();
	}
	printf("done %ld %ld\n", calls.load(), wrong.load());
	while (read(0, line, sizeof(line)) > 0)
		;
	if (is_strict)
		syscall(SYS_exit, 0);
	return 0;
}
