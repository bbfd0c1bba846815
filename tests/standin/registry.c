/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registry.c - the stand-in's libcudart: kernels that were compiled into the program. Code made
 * by nvcc registers a fat binary and the host functions of its kernels in its constructors. As
 * in the real runtime the driver hears of them when the first one is wanted: it loads the fat
 * binary as a library and makes the kernel's handle. Unregistering, which the destructors of a
 * library do when it is closed, unloads that library.
 */
#include "standin.h"

#include <pthread.h>
#include <stdlib.h>

struct fat {
	const void *code;
	CUlibrary library;
};

struct func {
	struct func *next;
	const void *host;
	struct fat *fat;
	char *name;
	CUkernel kernel;
};

#define BUCKETS 65536
static struct func *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_OVER_FORK(lock)

static struct func **bucket(const void *host)
{
	return &buckets[((uintptr_t)host * 0x9e3779b97f4a7c15ULL) >> 48];
}

FN(void **, __cudaRegisterFatBinary, void *code)
{
	struct fat *fat = calloc(1, sizeof(*fat));

	if (fat)
		fat->code = code;
	return (void **)fat;
}

FN(void, __cudaRegisterFunction, void **handle, const char *host, char *device, const char *name,
   int limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
	struct func *f = calloc(1, sizeof(*f)), **at = bucket(host);

	(void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
	if (!f)
		return;
	f->host = host;
	f->fat = (struct fat *)handle;
	f->name = strdup(name);
	pthread_mutex_lock(&lock);
	f->next = *at;
	*at = f;
	pthread_mutex_unlock(&lock);
}

FN(void, __cudaUnregisterFatBinary, void **handle)
{
	struct fat *fat = (struct fat *)handle;

	if (!fat)
		return;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS; i++) {
		struct func **at = &buckets[i];

		while (*at) {
			struct func *f = *at;

			if (f->fat != fat) {
				at = &f->next;
				continue;
			}
			*at = f->next;
			free(f->name);
			free(f);
		}
	}
	pthread_mutex_unlock(&lock);
	if (fat->library)
		CALL(cuLibraryUnload)(fat->library);
	free(fat);
}

/* The driver's kernel of a registered host function; 0: it is none. */
static int kernel_of(const void *host, CUkernel *kernel)
{
	struct func *f;
	int err = 0;

	*kernel = NULL;
	pthread_mutex_lock(&lock);
	for (f = *bucket(host); f && f->host != host; f = f->next)
		;
	if (f && !f->fat->library)
		err = CALL(cuLibraryLoadData)(&f->fat->library, f->fat->code, NULL, NULL, 0, NULL,
					      NULL, 0);
	if (f && !err && !f->kernel)
		err = CALL(cuLibraryGetKernel)(&f->kernel, f->fat->library, f->name);
	if (f && !err)
		*kernel = f->kernel;
	pthread_mutex_unlock(&lock);
	return err;
}

CUfunction rt_function(const void *func)
{
	CUkernel kernel;

	return !kernel_of(func, &kernel) && kernel ? (CUfunction)kernel : (CUfunction)func;
}

/* An address that nobody registered is its own handle: programs of the tests that never
 * registered anything launch too. */
static cudaError_t get_kernel(cudaKernel_t *kernel, const void *host)
{
	int err = kernel_of(host, (CUkernel *)kernel);

	if (!err && !*kernel)
		*kernel = (cudaKernel_t)host;
	return rt_result(err);
}

RT(__cudaGetKernel, cudaKernel_t *kernel, const void *host)
{
	RT_ENTER(__cudaGetKernel);
	return get_kernel(kernel, host);
}

RT(cudaGetKernel, cudaKernel_t *kernel, const void *host)
{
	RT_ENTER(cudaGetKernel);
	return get_kernel(kernel, host);
}

RT(cudaGetFuncBySymbol, cudaFunction_t *function, const void *host)
{
	RT_ENTER(cudaGetFuncBySymbol);
	return get_kernel((cudaKernel_t *)function, host);
}
