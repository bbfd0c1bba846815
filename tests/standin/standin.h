/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * standin.h - what the files of the stand-in share.
 *
 * The stand-in is a libcudart and a libcuda that need no GPU. A function FOO with behaviour of its
 * own is written in C as the hidden function in_FOO; stubs.sh makes the exported FOO (and its
 * _ptsz/_ptds twins) as an entry that begins with `push %rbp` and jumps to in_FOO, and a FOO that
 * returns success for every other symbol of CUDA's libraries. The runtime reaches the driver
 * through pointers from cuGetProcAddress_v2, as the real one does, so that one runtime call is seen
 * with the driver's calls inside it.
 *
 * Knobs, read from the environment at the first call (NAME is a function with behaviour of its
 * own):
 *   STANDIN_FAIL=NAME:CODE[,...]     the call returns CODE and does nothing else
 *   STANDIN_DELAY_US=NAME:N[,...]    the call takes N microseconds longer
 *   STANDIN_BLOCK=NAME:PATH[,...]    the call waits until the file PATH exists
 *   STANDIN_WAIT=NAME:FIFO[,...]     the call waits, in one system call, until somebody opens
 *                                    FIFO for writing
 *   STANDIN_SPIN=NAME:PATH[,...]     the call spins, without a system call, until the first byte
 *                                    of file PATH is not '0'
 *   STANDIN_POLL=NAME:PATH[,...]     the same, and it calls cuStreamQuery all the time
 *   STANDIN_REUSE=N                  the first free returns only after N allocations, no larger,
 *                                    were given its address in turn
 *   STANDIN_LAUNCHES=PATH            the driver writes a line "PID HANDLE NAME" for every launch
 *                                    of a kernel it knows
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "include/cuda.h"
#include "include/cuda_runtime_api.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* The size of the "GPU" in bytes. */
#define STANDIN_TOTAL_BYTES (8ULL << 30)
#define STANDIN_DEVICES 2

/* Begins a function with behaviour: declares it, as nobody but stubs.sh's assembler calls it by
 * name. */
#define FN(type, name, ...)                 \
	HIDDEN type in_##name(__VA_ARGS__); \
	type in_##name(__VA_ARGS__)
#define DRV(name, ...) FN(CUresult, name, __VA_ARGS__)
#define RT(name, ...) FN(cudaError_t, name, __VA_ARGS__)

/* The knobs. Returns 0 or the error to return. */
extern HIDDEN int knobs_state; /* 0 not read, 1 none set, 2 some set */
HIDDEN int knobs_slow(const char *name);
static inline int knobs_enter(const char *name)
{
	return __builtin_expect(knobs_state == 1, 1) ? 0 : knobs_slow(name);
}

/* ---- the driver's side ---- */

#define ENTER(name)                             \
	do {                                    \
		int knob_ = knobs_enter(#name); \
		if (knob_)                      \
			return knob_;           \
	} while (0)

enum handle_kind {
	H_FREE,
	H_CONTEXT,
	H_STREAM,
	H_EVENT,
	H_MODULE,
	H_KERNEL,
	H_GRAPH,
	H_GRAPH_EXEC,
	H_GRAPH_NODE,
	H_POOL
};

/* What every opaque pointer of the driver points to. Never given back to malloc: a stale handle
 * can be told, and the next one made has the address of the one freed last. */
struct handle {
	uint32_t kind, flags;
	char *name;    /* a kernel's; 8 bytes behind its handle, as in driver 580 */
	int64_t value; /* an event's time in ns, a stream's priority, a graph's nodes */
	uint64_t id;
	struct handle *owner; /* a kernel's module */
	struct handle *next_free;
};
HIDDEN struct handle *handle_new(enum handle_kind);
/* NULL: not a live handle of the kind */
HIDDEN struct handle *handle_get(const void *p, enum handle_kind);
HIDDEN void handle_free(struct handle *);
HIDDEN void handle_free_owned(const struct handle *owner);
/* A stream argument is valid when it is one of the default streams (0, 1, 2) or a live stream. */
HIDDEN bool handle_stream_ok(const void *p);

enum mem_kind { MEM_DEVICE = 1, MEM_HOST = 2, MEM_MANAGED = 3 };
HIDDEN int mem_alloc(void **p, size_t size, enum mem_kind);
HIDDEN int mem_free(void *p, enum mem_kind);
/* The kind of memory that [p, p + size) lies in; 0: none of ours; -1: begins in ours and goes
 * beyond its end. */
HIDDEN int mem_find(const void *p, size_t size);
HIDDEN size_t mem_used(void);
HIDDEN uint64_t now_ns(void);

/*
 * What the stand-in's libcupti sets to watch calls (tools.c): libcuda exports `standin_tools`;
 * libcudart finds it there once it has started the driver, so its earlier calls are not seen, as
 * with the real one.
 */
struct standin_tools {
	/* NULL: nobody watches */
	uint64_t (*call)(bool driver, const char *name, void *code, uint64_t *regs, uint64_t *stack,
			 uint64_t (*invoke)(void *code, uint64_t *regs, uint64_t *stack));
	/* libcudart's: what the driver launches for a program's function */
	void *(*function)(const void *func);
};
extern struct standin_tools standin_tools;
extern HIDDEN struct standin_tools *tools_at;
extern HIDDEN const bool tools_driver;

/* ---- the runtime's side ---- */

#define RT_ENTER(name)                           \
	do {                                     \
		int knob_ = rt_begin(#name);     \
		if (knob_)                       \
			return rt_result(knob_); \
	} while (0)

/* Loads the driver at the first call, then the knobs. Returns 0 or the error to return. */
HIDDEN int rt_begin(const char *name);
/* Keeps a failure for cudaGetLastError, in the calling thread. Returns its argument. */
HIDDEN cudaError_t rt_result(int err);
/* What the driver is to launch for what the program passed: a registered host function's kernel,
 * made at the first use, or the argument itself. */
HIDDEN CUfunction rt_function(const void *func);

/* Every driver function that the runtime calls. */
/* clang-format off */
#define RT_DRIVER_FUNCS(F) \
	F(cuInit) F(cuDriverGetVersion) F(cuDeviceGetCount) F(cuDeviceGetAttribute) \
	F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuCtxGetDevice) F(cuCtxSynchronize) \
	F(cuMemGetInfo_v2) F(cuMemAlloc_v2) F(cuMemAllocPitch_v2) F(cuMemFree_v2) \
	F(cuMemHostAlloc) F(cuMemFreeHost) F(cuMemAllocManaged) F(cuMemAllocAsync) \
	F(cuMemFreeAsync) F(cuMemcpy) F(cuMemcpyAsync) F(cuMemcpyHtoD_v2) F(cuMemcpyDtoH_v2) \
	F(cuMemcpyDtoD_v2) F(cuMemcpyHtoDAsync_v2) F(cuMemcpyDtoHAsync_v2) \
	F(cuMemcpyDtoDAsync_v2) F(cuMemcpy2D_v2) F(cuMemcpy2DAsync_v2) F(cuMemsetD8_v2) \
	F(cuMemsetD8Async) F(cuStreamCreate) F(cuStreamCreateWithPriority) \
	F(cuStreamDestroy_v2) F(cuStreamSynchronize) F(cuStreamQuery) F(cuStreamWaitEvent) \
	F(cuStreamIsCapturing) F(cuEventCreate) F(cuEventDestroy_v2) F(cuEventRecord) \
	F(cuEventSynchronize) F(cuEventQuery) F(cuEventElapsedTime_v2) F(cuLibraryLoadData) \
	F(cuLibraryUnload) F(cuLibraryGetKernel) F(cuLaunchKernel) F(cuLaunchKernelEx) \
	F(cuLaunchHostFunc) F(cuGraphCreate) F(cuGraphDestroy) F(cuGraphInstantiateWithFlags) \
	F(cuGraphExecDestroy) F(cuGraphLaunch)
/* clang-format on */

#define RT_DRIVER_FIELD(name) __typeof__(&name) p_##name;
struct rt_driver {
	RT_DRIVER_FUNCS(RT_DRIVER_FIELD)
};
extern HIDDEN struct rt_driver rt_driver;
#define CALL(name) rt_driver.p_##name

/* A child of fork() finds the lock free, whatever another thread of its parent was doing. */
#define LOCK_OVER_FORK(mutex)                                                           \
	static void lock_before_fork(void)                                              \
	{                                                                               \
		pthread_mutex_lock(&(mutex));                                           \
	}                                                                               \
	static void unlock_after_fork(void)                                             \
	{                                                                               \
		pthread_mutex_unlock(&(mutex));                                         \
	}                                                                               \
	__attribute__((constructor)) static void watch_forks(void)                      \
	{                                                                               \
		pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork); \
	}

#endif
