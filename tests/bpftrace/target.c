/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.c - the target of the bpftrace tests: makes the eleven calls and knows the rows that they
 * must give.
 *
 *         target LIBCUDART        prints "ready"; at a line on stdin makes the calls, printing
 *                                 EVENT and DETAILS of each row that is
 * 				due, then "done"; ends at a second line
 * 	target LIBCUDART NUMBER...	prints the library's own name of each error
 *
 * The library is opened by its path, so the same program runs on the stand-in and on any real
 * libcudart; what the calls return there is taken as it comes. It stays on one CPU: bpftrace
 * does not order the rows of several.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct dim3 {
	unsigned int x, y, z;
};

static void *lib;
static const char *(*error_name)(int error);

static void *symbol(const char *name)
{
	void *address = dlsym(lib, name);

	if (!address) {
		fprintf(stderr, "target: %s\n", dlerror());
		exit(1);
	}
	return address;
}

static void returned(const char *name, int ret)
{
	printf("%-20s returned=%d (%s)\n", name, ret, ret ? error_name(ret) : "success");
}

static void *made_by(const char *name)
{
	int (*call)(void **out) = symbol(name);
	void *out = NULL;

	printf("%s\n", name);
	returned(name, call(&out));
	return out;
}

static void with_pointer(const char *name, const char *what, void *pointer)
{
	int (*call)(void *argument) = symbol(name);

	printf("%-20s %s=0x%lx\n", name, what, (unsigned long)pointer);
	returned(name, call(pointer));
}

static void *memory(size_t size)
{
	int (*call)(void **out, size_t bytes) = symbol("cudaMalloc");
	void *out = NULL;

	printf("%-20s size=%zu bytes\n", "cudaMalloc", size);
	returned("cudaMalloc", call(&out, size));
	return out;
}

static void device(int number)
{
	int (*call)(int dev) = symbol("cudaSetDevice");

	printf("%-20s device=%d\n", "cudaSetDevice", number);
	returned("cudaSetDevice", call(number));
}

static void make_calls(void)
{
	int (*copy)(void *to, const void *from, size_t bytes, int kind) = symbol("cudaMemcpy");
	int (*launch)(const void *fn, struct dim3 grid, struct dim3 block, void **args,
		      size_t shared, void *stream) = symbol("cudaLaunchKernel");
	int (*record)(void *event, void *stream) = symbol("cudaEventRecord");
	struct dim3 one = { 1, 1, 1 };
	void *mem, *stream, *event;
	char from[4096] = "", to[4096];

	device(0);
	made_by("cudaGetDevice");
	mem = memory(1048576);
	memory(~(size_t)0);
	printf("%-20s size=4096 bytes, kind=0\n", "cudaMemcpy");
	returned("cudaMemcpy", copy(to, from, sizeof(from), 0));
	printf("%-20s size=8 bytes, kind=4\n", "cudaMemcpy");
	returned("cudaMemcpy", copy(to, from, 8, 4));
	printf("%-20s function=0x%lx\n", "cudaLaunchKernel", (unsigned long)from);
	returned("cudaLaunchKernel", launch(from, one, one, NULL, 0, NULL));
	stream = made_by("cudaStreamCreate");
	with_pointer("cudaStreamSynchronize", "stream", stream);
	event = made_by("cudaEventCreate");
	printf("%-20s event=0x%lx, stream=0x%lx\n", "cudaEventRecord", (unsigned long)event,
	       (unsigned long)stream);
	returned("cudaEventRecord", record(event, stream));
	with_pointer("cudaEventSynchronize", "event", event);
	with_pointer("cudaFree", "devPtr", mem);
	device(-1);
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!lib) {
		fprintf(stderr, "target: %s\n", argc > 1 ? dlerror() : "no library given");
		return 1;
	}
	error_name = symbol("cudaGetErrorName");
	for (int i = 2; i < argc; i++)
		printf("%s\n", error_name(atoi(argv[i])));
	if (argc > 2)
		return 0;
	CPU_ZERO(&cpus);
	CPU_SET(cpu < 0 ? 0 : cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	printf("ready\n");
	fflush(stdout);
	if (getchar() == EOF)
		return 0;
	make_calls();
	printf("done\n");
	fflush(stdout);
	getchar();
	return 0;
}
