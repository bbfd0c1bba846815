/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crossing.c - is inside dlopen() for a second with an object whose thread-local variables have a number that
 * glibc's list of such objects has no room for yet. (The list has 62 places more than there were objects at the
 * begin.) In an import of PyTorch this lasts as long as the relocations do. A thread that calls
 * dl_iterate_phdr() then follows a null pointer.
 *
 * crossing FOLDER [exits]: the objects are FOLDER/1.so, FOLDER/2.so and so on, each a copy of libcrossing.so.
 * A few objects before, it calls CUDA, prints a line and waits for one. exits: then another thread does the
 * rest, and the main thread ends.
 */
#include <stddef.h>
#include <unistd.h>

#define CLOCK 100 /* a descriptor; a read of it lasts as long as an object's relocations shall */

#ifdef LIBRARY
static __thread int variable = 1;
int crossing_variable(void);
int crossing_variable(void)
{
	return variable++;
}

/* libc's functions may not be bound yet. */
static long read_clock(void *to, size_t n)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(0L), "D"((long)CLOCK), "S"(to), "d"(n)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x0 __asm__("x0") = CLOCK;
	register void *x1 __asm__("x1") = to;
	register size_t x2 __asm__("x2") = n;
	register long x8 __asm__("x8") = 63;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return x0;
#endif
}

static int chosen(void)
{
	return 0;
}

/* The loader calls it while it relocates the object. */
__attribute__((used)) static int (*resolve(void))(void)
{
	unsigned long expirations;

	read_clock(&expirations, sizeof(expirations));
	return chosen;
}
int crossing(void) __attribute__((ifunc("resolve")));
extern int (*crossing_pointer)(void);
int (*crossing_pointer)(void) = crossing;
#else
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "../../../wire/nvtx_wire.h"

#define MORE 62	 /* places */
#define BEFORE 9 /* objects of ours come in between, and their threads see 14 more than there are */
#define SECONDS 1

static void not_initialised(void)
{
}
static int get_table(uint32_t module, void ***slots, unsigned int *n)
{
	(void)module;
	(void)slots;
	(void)n;
	return 0;
}
/* What cudatrace finds if it traces NVTX. */
static struct nvtx_layout globals = { .head = { .state = NVTX_STARTED, /* it is looked at often */
						.callbacks_size = 16,
						.get_table = (uint64_t)get_table,
						.version_size = 24,
						.version = 3,
						.set_version = (uint64_t)not_initialised } };

static void make_globals(void)
{
	for (unsigned int i = 0; i < NVTX_SLOTS; i++)
		globals.slots[i] = (uint64_t)(uintptr_t)not_initialised;
	for (unsigned int i = 1; i < NVTX_IDS; i++) {
		globals.tables[NVTX_TABLE_CORE + i] =
			(uint64_t)(uintptr_t)&globals.slots[NVTX_SLOT_CORE + i - 1];
		globals.tables[NVTX_TABLE_CORE_2 + i] =
			(uint64_t)(uintptr_t)&globals.slots[NVTX_SLOT_CORE_2 + i - 1];
	}
}

/* Opens the next object. Returns the number that its variables have. */
static size_t open_next(const char *folder)
{
	static int n;
	char path[4096];
	size_t number;
	void *lib;

	snprintf(path, sizeof(path), "%s/%d.so", folder, ++n);
	lib = dlopen(path, RTLD_NOW);
	if (!lib || dlinfo(lib, RTLD_DI_TLS_MODID, &number)) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return number;
}

static void start_clock(void)
{
	const struct itimerspec in = { .it_value = { .tv_sec = SECONDS } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd < 0 || dup2(fd, CLOCK) < 0 || timerfd_settime(CLOCK, 0, &in, NULL))
		abort();
	close(fd);
}

static size_t last, first_without;

static void *cross(void *folder)
{
	while (last + 1 < first_without)
		last = open_next(folder);
	start_clock();
	last = open_next(folder);
	close(CLOCK);
	cudaFree(NULL);
	printf("crossed %zd\n", (ssize_t)(last - first_without));
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char line[16];

	if (argc < 2)
		return 2;
	make_globals();
	last = open_next(argv[1]);
	first_without = last + MORE;
	while (last + BEFORE < first_without)
		last = open_next(argv[1]);
	cudaFree(NULL);
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (argc < 3 || strcmp(argv[2], "exits"))
		cross(argv[1]);
	if (pthread_create(&thread, NULL, cross, argv[1]))
		return 1;
	pthread_exit(NULL);
}
#endif
