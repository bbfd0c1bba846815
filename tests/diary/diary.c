/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diary.c - a program that makes CUDA calls at random and writes down each of them, for run.py, which compares what cudatrace
 * says with it.
 *
 * 	diary FILE SEED CALLS THREADS WITHOUT [wait]
 *
 * It works in three rounds. In a round THREADS threads make CALLS calls each; between rounds the main thread, which is then the
 * only one, may load and unload a second runtime, fork, and start this program anew. WITHOUT is a comma list of what it leaves
 * out: memory, copy, stream, event, launch, graph, driver, failure, query, hostfunc, callback, shared, fork, exec, dlopen,
 * become. What is left out changes nothing else that the seed decides. wait: it prints "ready" and reads a line of stdin first.
 *
 * A line of FILE is one call that has returned: PID TID FUNCTION RESULT NAME=VALUE..., where a NAME that begins with ~ is no
 * argument, but what a free gives back. The first line of each program that begins has `begins` for the function. Calls that the
 * program makes inside another call are a part of that call, and have no line. A line is written by one write(2) to a file that is open for appending, so that
 * those of a process that ends in whatever way are complete, and those of one thread are in order.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
				 unsigned long long flags);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t fn, void *data,
				  unsigned int flags);
CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned int value, size_t n);

enum { ROUNDS = 3, SLOTS = 6, MOST_THREADS = 32, ROOM = 1 << 16 };

/* Memory that the program has: from which functions, which say how it is freed. */
enum memory { NONE, DEVICE, MANAGED, HOST, POOL, DRIVER };
struct slot {
	void *at;
	size_t bytes, taken; /* asked for, had from CUDA */
	enum memory kind;
};

struct worker {
	uint64_t state;
	struct slot memory[SLOTS];
	cudaStream_t streams[SLOTS];
	cudaEvent_t events[SLOTS];
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	char *host; /* ROOM bytes */
};

static const char *diary_path, *without;
static int diary_fd;
static long calls;
static cudaKernel_t kernel;
static struct slot shared[SLOTS];
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
	perror(what);
	_exit(9);
}

/* splitmix64 */
static uint64_t draw(struct worker *w)
{
	uint64_t z = w->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static bool with(const char *kind)
{
	size_t len = strlen(kind);

	for (const char *s = without; (s = strstr(s, kind)); s += len)
		if ((s == without || s[-1] == ',') && (!s[len] || s[len] == ','))
			return false;
	return true;
}

__attribute__((format(printf, 3, 4))) static int note(const char *function, int result,
						      const char *format, ...)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%d %ld %s %d ", (int)getpid(), syscall(SYS_gettid),
			 function, result);
	va_list args;

	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	line[n++] = '\n';
	if (write(diary_fd, line, (size_t)n) != n)
		fail("diary: write");
	return result;
}

/* ---- memory ---- */

static void allocate(struct worker *w, struct slot *s, uint64_t how)
{
	size_t bytes = 1 + draw(w) % (ROOM - 1), pitch = 0, rows = 1 + bytes % 7;
	cudaStream_t stream = w->streams[bytes % SLOTS];
	CUdeviceptr p = 0;
	int err = 0;

	*s = (struct slot){ NULL, bytes, bytes, DEVICE };
	switch (how % 7) {
	case 0:
		err = cudaMalloc(&s->at, bytes);
		note("cudaMalloc", err, "size=%zu devPtr=%p", bytes, s->at);
		break;
	case 1:
		s->kind = MANAGED;
		err = cudaMallocManaged(&s->at, bytes, cudaMemAttachGlobal);
		note("cudaMallocManaged", err, "size=%zu devPtr=%p", bytes, s->at);
		break;
	case 2:
		s->kind = HOST;
		err = cudaMallocHost(&s->at, bytes);
		note("cudaMallocHost", err, "size=%zu ptr=%p", bytes, s->at);
		break;
	case 3:
		s->kind = HOST;
		err = cudaHostAlloc(&s->at, bytes, cudaHostAllocDefault);
		note("cudaHostAlloc", err, "size=%zu pHost=%p", bytes, s->at);
		break;
	case 4:
		s->kind = POOL;
		err = cudaMallocAsync(&s->at, bytes, stream);
		note("cudaMallocAsync", err, "size=%zu devPtr=%p hStream=%#lx", bytes, s->at,
		     (unsigned long)stream);
		break;
	case 5:
		err = cudaMallocPitch(&s->at, &pitch, bytes, rows);
		s->taken = pitch * rows;
		note("cudaMallocPitch", err, "width=%zu height=%zu devPtr=%p pitch=%zu", bytes,
		     rows, s->at, pitch);
		break;
	case 6:
		if (!with("driver")) {
			s->kind = NONE;
			return;
		}
		s->kind = DRIVER;
		err = cuMemAlloc_v2(&p, bytes);
		s->at = (void *)p;
		note("cuMemAlloc_v2", err, "bytesize=%zu dptr=%p", bytes, s->at);
		break;
	}
	if (err)
		fail("diary: an allocation");
}

static void release(struct worker *w, struct slot *s)
{
	static const char *const words[] = { [DEVICE] = "device", [MANAGED] = "managed" };
	cudaStream_t stream = w->streams[s->bytes % SLOTS];

	switch (s->kind) {
	case NONE: return;
	case DEVICE:
	case MANAGED:
		note("cudaFree", cudaFree(s->at), "devPtr=%p ~taken=%zu ~kind=%s", s->at, s->taken,
		     words[s->kind]);
		break;
	case HOST:
		note("cudaFreeHost", cudaFreeHost(s->at), "ptr=%p ~taken=%zu ~kind=host", s->at,
		     s->taken);
		break;
	case POOL:
		note("cudaFreeAsync", cudaFreeAsync(s->at, stream),
		     "devPtr=%p hStream=%#lx ~taken=%zu ~kind=pool", s->at, (unsigned long)stream,
		     s->taken);
		break;
	case DRIVER:
		note("cuMemFree_v2", cuMemFree_v2((CUdeviceptr)s->at),
		     "dptr=%p ~taken=%zu ~kind=device", s->at, s->taken);
		break;
	}
	s->kind = NONE;
}

static void do_memory(struct worker *w, uint64_t how)
{
	struct slot *s = &w->memory[how % SLOTS];

	if (s->kind)
		release(w, s);
	else
		allocate(w, s, how / SLOTS);
}

/* Memory of one thread becomes another's, which will free it: no call. */
static void do_shared(struct worker *w, uint64_t how)
{
	struct slot *mine = &w->memory[how % SLOTS], *theirs = &shared[how / SLOTS % SLOTS],
		    kept = *mine;

	pthread_mutex_lock(&shared_lock);
	*mine = *theirs;
	*theirs = kept;
	pthread_mutex_unlock(&shared_lock);
}

/* A place on the device and a number of bytes that fits; false: there is none. */
static bool pick(struct worker *w, uint64_t how, struct slot *s)
{
	for (int i = 0; i < SLOTS; i++) {
		*s = w->memory[(how + (uint64_t)i) % SLOTS];
		if (s->kind && s->kind != HOST) {
			s->bytes = s->bytes ? how % s->bytes + 1 : 0;
			return true;
		}
	}
	return false;
}

static void do_copy(struct worker *w, uint64_t how)
{
	cudaStream_t stream = w->streams[how / 16 % SLOTS];
	unsigned long id = (unsigned long)stream;
	struct slot s;
	size_t n;

	if (!pick(w, how, &s))
		return;
	n = s.bytes;
	switch (how / 4096 % 6) {
	case 0:
		note("cudaMemcpy", cudaMemcpy(s.at, w->host, n, cudaMemcpyHostToDevice),
		     "dst=%p src=%p count=%zu kind=cudaMemcpyHostToDevice", s.at, (void *)w->host,
		     n);
		break;
	case 1:
		note("cudaMemcpy", cudaMemcpy(w->host, s.at, n, cudaMemcpyDeviceToHost),
		     "dst=%p src=%p count=%zu kind=cudaMemcpyDeviceToHost", (void *)w->host, s.at,
		     n);
		break;
	case 2:
		note("cudaMemcpyAsync",
		     cudaMemcpyAsync(s.at, w->host, n, cudaMemcpyHostToDevice, stream),
		     "dst=%p src=%p count=%zu kind=cudaMemcpyHostToDevice stream=%#lx", s.at,
		     (void *)w->host, n, id);
		break;
	case 3:
		note("cudaMemset", cudaMemset(s.at, 7, n), "devPtr=%p value=7 count=%zu", s.at, n);
		break;
	case 4:
		note("cudaMemsetAsync", cudaMemsetAsync(s.at, 1, n, stream),
		     "devPtr=%p value=1 count=%zu stream=%#lx", s.at, n, id);
		break;
	case 5:
		note("cudaMemcpyAsync",
		     cudaMemcpyAsync(w->host, s.at, n, cudaMemcpyDeviceToHost, stream),
		     "dst=%p src=%p count=%zu kind=cudaMemcpyDeviceToHost stream=%#lx",
		     (void *)w->host, s.at, n, id);
		break;
	}
}

/* ---- streams, events, launches, graphs ---- */

static void do_stream(struct worker *w, uint64_t how)
{
	cudaStream_t *s = &w->streams[how % SLOTS];
	unsigned long id = (unsigned long)*s;

	switch (how / SLOTS % 4) {
	case 0:
		if (*s) {
			note("cudaStreamDestroy", cudaStreamDestroy(*s), "stream=%#lx", id);
			*s = NULL;
		} else if (how / 64 % 2) {
			int err = cudaStreamCreate(s);

			note("cudaStreamCreate", err, "pStream=%#lx", (unsigned long)*s);
		} else {
			int err = cudaStreamCreateWithFlags(s, cudaStreamNonBlocking);

			note("cudaStreamCreateWithFlags", err, "pStream=%#lx", (unsigned long)*s);
		}
		break;
	case 1: note("cudaStreamSynchronize", cudaStreamSynchronize(*s), "stream=%#lx", id); break;
	case 2: note("cudaStreamQuery", cudaStreamQuery(*s), "stream=%#lx", id); break;
	case 3: note("cudaDeviceSynchronize", cudaDeviceSynchronize(), "%s", ""); break;
	}
}

static void do_event(struct worker *w, uint64_t how)
{
	cudaEvent_t *e = &w->events[how % SLOTS];
	cudaStream_t stream = w->streams[how / 64 % SLOTS];
	int err;

	if (!*e) {
		err = how / 512 % 2 ? cudaEventCreate(e)
				    : cudaEventCreateWithFlags(e, cudaEventDisableTiming);
		note(how / 512 % 2 ? "cudaEventCreate" : "cudaEventCreateWithFlags", err,
		     "event=%p", (void *)*e);
		return;
	}
	switch (how / 512 % 5) {
	case 0:
		note("cudaEventRecord", cudaEventRecord(*e, stream), "event=%p stream=%#lx",
		     (void *)*e, (unsigned long)stream);
		break;
	case 1:
		note("cudaEventSynchronize", cudaEventSynchronize(*e), "event=%p", (void *)*e);
		break;
	case 2: note("cudaEventQuery", cudaEventQuery(*e), "event=%p", (void *)*e); break;
	case 3:
		note("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, *e, 0),
		     "stream=%#lx event=%p", (unsigned long)stream, (void *)*e);
		break;
	case 4:
		note("cudaEventDestroy", cudaEventDestroy(*e), "event=%p", (void *)*e);
		*e = NULL;
		break;
	}
}

static void do_launch(struct worker *w, uint64_t how)
{
	cudaStream_t stream = w->streams[how % SLOTS];
	unsigned int x = 1 + how / 64 % 100, y = 1 + how / 8192 % 4;

	note("cudaLaunchKernel",
	     cudaLaunchKernel((const void *)kernel, (dim3){ x, y, 1 }, (dim3){ 128, 1, 1 }, NULL,
			      64, stream),
	     "sharedMem=64 stream=%#lx", (unsigned long)stream);
}

static void do_graph(struct worker *w, uint64_t how)
{
	cudaStream_t stream = w->streams[how % SLOTS];
	int err;

	if (!w->graph) {
		err = cudaGraphCreate(&w->graph, 0);
		note("cudaGraphCreate", err, "pGraph=%p flags=0", (void *)w->graph);
	} else if (!w->exec) {
		err = cudaGraphInstantiate(&w->exec, w->graph, 0);
		note("cudaGraphInstantiate", err, "pGraphExec=%p graph=%p", (void *)w->exec,
		     (void *)w->graph);
	} else if (how / 8 % 4) {
		note("cudaGraphLaunch", cudaGraphLaunch(w->exec, stream),
		     "graphExec=%p stream=%#lx", (void *)w->exec, (unsigned long)stream);
	} else {
		note("cudaGraphExecDestroy", cudaGraphExecDestroy(w->exec), "graphExec=%p",
		     (void *)w->exec);
		note("cudaGraphDestroy", cudaGraphDestroy(w->graph), "graph=%p", (void *)w->graph);
		w->exec = NULL;
		w->graph = NULL;
	}
}

/* ---- the driver's functions, failures, queries, what calls back ---- */

static void do_driver(struct worker *w, uint64_t how)
{
	CUstream stream = w->streams[how % SLOTS];
	int n = -1;
	struct slot s;

	switch (how / SLOTS % 5) {
	case 0: note("cuCtxSynchronize", cuCtxSynchronize(), "%s", ""); break;
	case 1:
		note("cuStreamSynchronize", cuStreamSynchronize(stream), "hStream=%#lx",
		     (unsigned long)stream);
		break;
	case 2: {
		int err = cuDeviceGetCount(&n);

		note("cuDeviceGetCount", err, "count=%d", n);
		break;
	}
	case 3:
		if (pick(w, how, &s))
			note("cuMemcpyHtoD_v2",
			     cuMemcpyHtoD_v2((CUdeviceptr)s.at, w->host, s.bytes),
			     "dstDevice=%p srcHost=%p ByteCount=%zu", s.at, (void *)w->host,
			     s.bytes);
		break;
	case 4:
		if (pick(w, how, &s))
			note("cuMemsetD32_v2", cuMemsetD32_v2((CUdeviceptr)s.at, 3, s.bytes / 4),
			     "dstDevice=%p ui=3 N=%zu", s.at, s.bytes / 4);
		break;
	}
}

static void do_failure(struct worker *w, uint64_t how)
{
	cudaStream_t stream = NULL;
	void *p = NULL;

	(void)w;
	switch (how % 6) {
	case 0: note("cudaMalloc", cudaMalloc(&p, 1ULL << 40), "size=%llu", 1ULL << 40); break;
	case 1: note("cudaFree", cudaFree((void *)0x1230), "devPtr=0x1230"); break;
	case 2: note("cudaSetDevice", cudaSetDevice(99), "device=99"); break;
	case 3:
		note("cudaLaunchKernel",
		     cudaLaunchKernel((const void *)kernel, (dim3){ 0, 1, 1 }, (dim3){ 1, 1, 1 },
				      NULL, 0, NULL),
		     "sharedMem=0 stream=0");
		break;
	case 4:
		note("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, 77), "%s", "");
		break;
	case 5: note("cudaGetLastError", cudaGetLastError(), "%s", ""); break;
	}
}

static void do_query(struct worker *w, uint64_t how)
{
	size_t free_bytes = 0, total = 0;
	int n = -1, err;

	(void)w;
	switch (how % 4) {
	case 0:
		err = cudaGetDevice(&n);
		note("cudaGetDevice", err, "device=%d", n);
		break;
	case 1:
		err = cudaGetDeviceCount(&n);
		note("cudaGetDeviceCount", err, "count=%d", n);
		break;
	case 2:
		err = cudaMemGetInfo(&free_bytes, &total);
		note("cudaMemGetInfo", err, "free=%zu total=%zu", free_bytes, total);
		break;
	case 3:
		err = cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);
		note("cudaDeviceGetAttribute", err, "value=%d device=0", n);
		break;
	}
}

/* On a thread of the driver's: calls of its own. */
static void host_function(void *arg)
{
	int n = -1, err = cudaGetDeviceCount(&n);

	(void)arg;
	note("cudaGetDeviceCount", err, "count=%d", n);
}

static void do_hostfunc(struct worker *w, uint64_t how)
{
	cudaStream_t stream = w->streams[how % SLOTS];

	note("cudaLaunchHostFunc", cudaLaunchHostFunc(stream, host_function, w),
	     "stream=%#lx fn=%#lx userData=%p", (unsigned long)stream, (unsigned long)host_function,
	     (void *)w);
}

/* Inside of the call that calls it back: its own calls are a part of that one. */
static void called_back(cudaStream_t stream, cudaError_t status, void *data)
{
	int n;

	(void)stream, (void)status, (void)data;
	if (cudaGetDeviceCount(&n))
		fail("diary: in a callback");
}

static void do_callback(struct worker *w, uint64_t how)
{
	cudaStream_t stream = w->streams[how % SLOTS];

	note("cudaStreamAddCallback", cudaStreamAddCallback(stream, called_back, w, 0),
	     "stream=%#lx userData=%p", (unsigned long)stream, (void *)w);
}

/* ---- a round ---- */

static const struct {
	const char *kind;
	void (*make)(struct worker *w, uint64_t how);
	unsigned int weight;
} kinds[] = {
	{ "memory", do_memory, 8 },	{ "copy", do_copy, 8 },		{ "stream", do_stream, 6 },
	{ "event", do_event, 6 },	{ "launch", do_launch, 6 },	{ "graph", do_graph, 3 },
	{ "driver", do_driver, 4 },	{ "failure", do_failure, 2 },	{ "query", do_query, 3 },
	{ "hostfunc", do_hostfunc, 1 }, { "callback", do_callback, 1 }, { "shared", do_shared, 3 },
};

static void work(struct worker *w, long count)
{
	for (long i = 0; i < count; i++) {
		uint64_t which = draw(w) % 51, how = draw(w) >> 8;
		/* So that what a call draws for itself does not change what comes after it. */
		uint64_t next = w->state + 2 * 0x9e3779b97f4a7c15;
		size_t k = 0;

		while (which >= kinds[k].weight)
			which -= kinds[k++].weight;
		if (with(kinds[k].kind))
			kinds[k].make(w, how);
		w->state = next;
	}
}

/* What is left is freed, or leaked: a seventh of it. */
static void tidy(struct worker *w)
{
	for (int i = 0; i < SLOTS; i++)
		if (draw(w) % 7)
			release(w, &w->memory[i]);
	free(w->host);
}

/* The driver's own functions want a current context, which a new thread has not. */
static void begin(struct worker *w, uint64_t seed)
{
	note("cudaSetDevice", cudaSetDevice(0), "device=0");
	memset(w, 0, sizeof(*w));
	w->state = seed;
	w->host = calloc(1, ROOM);
	if (!w->host)
		fail("diary: calloc");
}

static void *thread(void *arg)
{
	struct worker w;

	begin(&w, *(uint64_t *)arg);
	work(&w, calls);
	tidy(&w);
	if (draw(&w) % 2)
		pthread_exit(NULL);
	return NULL;
}

static void make_round(uint64_t seed, int threads)
{
	pthread_t t[MOST_THREADS];
	uint64_t seeds[MOST_THREADS];

	for (int i = 0; i < threads; i++) {
		seeds[i] = seed * 1000003 + (uint64_t)i;
		if (pthread_create(&t[i], NULL, thread, &seeds[i]))
			fail("diary: pthread_create");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

/* A kernel that does nothing. The stand-in does not look at it, a driver compiles it. */
static const char code[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry _Z7vec_mulPfS_i()\n{\n\tret;\n}\n";

static void load_kernel(void)
{
	cudaLibrary_t library = NULL;
	int err = cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0);

	note("cudaLibraryLoadData", err, "library=%p", (void *)library);
	err = cudaLibraryGetKernel(&kernel, library, "_Z7vec_mulPfS_i");
	note("cudaLibraryGetKernel", err, "library=%p name=_Z7vec_mulPfS_i", (void *)library);
}

/* ---- between rounds ---- */

/* A second runtime, of another version, in the same process. */
static void second_runtime(uint64_t how)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	cudaError_t (*get)(void **, size_t), (*give)(void *);
	void *lib, *p = NULL;

	if (n <= 0)
		fail("diary: /proc/self/exe");
	path[n] = 0;
	strcpy(strrchr(path, '/'), "/../standin/12/libcudart.so.12");
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "diary: %s\n", dlerror());
		_exit(9);
	}
	get = (cudaError_t(*)(void **, size_t))dlsym(lib, "cudaMalloc");
	give = (cudaError_t(*)(void *))dlsym(lib, "cudaFree");
	for (uint64_t i = how % 8; i; i--) {
		int err = get(&p, i * 100);

		note("cudaMalloc", err, "size=%lu devPtr=%p", (unsigned long)i * 100, p);
		note("cudaFree", give(p), "devPtr=%p ~taken=%lu ~kind=device", p,
		     (unsigned long)i * 100);
	}
	if (how / 8 % 2)
		dlclose(lib);
}

static char **fresh(uint64_t seed, const char *but)
{
	static char numbers[3][32], rest[512];
	static char *argv[7];

	snprintf(numbers[0], sizeof(numbers[0]), "%lu", (unsigned long)seed);
	snprintf(numbers[1], sizeof(numbers[1]), "%ld", calls / 2);
	snprintf(numbers[2], sizeof(numbers[2]), "1");
	snprintf(rest, sizeof(rest), "%s,%s", without, but);
	argv[0] = "diary";
	argv[1] = (char *)diary_path;
	argv[2] = numbers[0];
	argv[3] = numbers[1];
	argv[4] = numbers[2];
	argv[5] = rest;
	return argv;
}

static void await(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		fail("diary: a child");
}

static void child_works(uint64_t seed)
{
	struct worker w;

	memset(shared, 0, sizeof(shared)); /* the parent's */
	begin(&w, seed);
	work(&w, calls / 2);
	tidy(&w);
	if (seed % 3 == 0)
		exit(0);
	_exit(0);
}

static void start_child(uint64_t seed, bool by_exec)
{
	extern char **environ;
	char **argv = by_exec ? fresh(seed, "fork,exec,become") : NULL;
	pid_t child = -1;

	if (by_exec && seed % 2) {
		if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ))
			fail("diary: posix_spawn");
	} else {
		child = fork();
		if (child < 0)
			fail("diary: fork");
		if (!child && by_exec) {
			execv("/proc/self/exe", argv);
			fail("diary: execv");
		}
		if (!child)
			child_works(seed);
	}
	await(child);
}

static void between(struct worker *w)
{
	uint64_t fork_seed = draw(w) >> 8, exec_seed = draw(w) >> 8, load_seed = draw(w) >> 8;

	if (with("dlopen") && load_seed % 3 == 0)
		second_runtime(load_seed / 3);
	if (with("fork") && fork_seed % 2)
		start_child(fork_seed, false);
	if (with("exec") && exec_seed % 2)
		start_child(exec_seed / 2, true);
}

int main(int argc, char **argv)
{
	struct worker w;
	int threads;

	if (argc < 6)
		return 2;
	diary_path = argv[1];
	calls = atol(argv[3]);
	threads = atoi(argv[4]);
	without = argv[5];
	diary_fd = open(diary_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (diary_fd < 0 || threads < 1 || threads > MOST_THREADS)
		fail("diary: FILE or THREADS");
	if (argc > 6) {
		printf("ready\n");
		fflush(stdout);
		if (getchar() == EOF)
			return 0;
	}
	note("begins", 0, "%s", "");
	begin(&w, strtoull(argv[2], NULL, 10));
	load_kernel();
	for (int i = 0; i < ROUNDS; i++) {
		make_round(draw(&w), threads);
		between(&w);
	}
	work(&w, calls);
	tidy(&w);
	if (with("become") && draw(&w) % 2) {
		execv("/proc/self/exe", fresh(draw(&w) >> 8, "fork,exec,become"));
		fail("diary: execv");
	}
	return 0;
}
