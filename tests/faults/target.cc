// SPDX-License-Identifier: BSD-2-Clause
// target.cc - the program of tests/faults/run.py: target STEPS FAULT AT [CALLS]. It prints "ready PID" and waits for a line. Each of its
// STEPS allocates, copies to and fro, compares and frees. At step AT it prints "at", and does FAULT itself if that is one of its own. At last
// it prints "done CALLS WRONG" (calls of these four functions by this process, and what was wrong), and waits for the end of stdin.
#include <cuda_runtime_api.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
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
		alarm(60);
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
	}
	printf("done %ld %ld\n", calls.load(), wrong.load());
	while (read(0, line, sizeof(line)) > 0)
		;
	return 0;
}
